"""The first screen of `measure`: in 30 lines whether forecasts are calibrated, where not, at what cost, how sure."""

import json
import re

import numpy as np
import pytest

from tests.command_line import onlinecal


def panel(rng):
    """100 questions, each forecast by 6 overconfident people."""
    logit = rng.normal(0, 1.2, 100)
    question = np.repeat(np.arange(100), 6)
    y = (rng.random(100) < 1 / (1 + np.exp(-logit)))[question]
    p = 1 / (1 + np.exp(-2.5 * logit[question] - rng.normal(0, 0.3, 600)))
    rows = "".join(f"{q},{a:.3f},{b:d}\n" for q, a, b in zip(question, p, y, strict=True))
    return {"panel.csv": "question,forecast,outcome\n" + rows}


def market(rng):
    """180 markets in JSON, as Manifold gives them."""
    words = rng.choice(["YES", "NO", "MKT", "CANCEL", None], 180, p=[0.4, 0.4, 0.05, 0.05, 0.1])
    rows = [
        {
            "id": f"m{i}",
            "outcomeType": "BINARY",
            "probability": float(p),
            "pool": {"YES": 1.0},
            "isResolved": bool(word),
        }
        | ({"resolution": str(word)} if word else {})
        for i, (word, p) in enumerate(zip(words, rng.beta(0.7, 0.7, 180), strict=True))
    ]
    return {"markets.json": json.dumps(rows)}


def sixty(rng):
    """60 rows on a grid."""
    p = rng.integers(0, 11, 60) / 10
    rows = "".join(f"{a},{b:d}\n" for a, b in zip(p, rng.random(60) < 0.2 + 0.6 * p, strict=True))
    return {"sixty.csv": "forecast,outcome\n" + rows}


@pytest.mark.parametrize("made", [panel, market, sixty])
def test_the_first_screen(tmp_path, made):
    ((name, text),) = made(np.random.default_rng(11)).items()
    (tmp_path / name).write_text(text)
    lines = onlinecal(f"measure {name} --draws 50", cwd=tmp_path, columns=80).stdout.splitlines()
    said = " ".join(" ".join(lines).split())
    assert len(lines) <= 30
    # Whether, how sure, where, at what cost, what recalibration could gain, what next.
    assert re.search(r"(Not calibrated|Calibration is not refuted|Perhaps not calibrated)", said)
    assert re.search(r"\(p = [\d.e-]+\)", said)
    assert re.search(r"cting when p [≥>] [\d.]+ loses [\d.]+ per decision", said)
    assert re.search(r"recalibration could gain [\d.]+ of the Brier score [\d.]+", said, re.I)
    assert re.match(r"Next: (onlinecal |more |name )", said[said.rindex("Next: ") :])
    assert ("Read as a Manifold export of markets." in said) is (made is market)
    assert ("are one cluster each" in said) is (made is panel)
