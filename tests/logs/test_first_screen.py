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


def test_few_clusters_and_forecasts_in_per_cent_take_no_more_lines(tmp_path):
    """Of 60 rows on a grid of 1/100 some are equal by chance, which is no caution above the verdict."""
    rng = np.random.default_rng(3)
    p = rng.integers(0, 101, 60) / 100
    rows = "".join(
        f"{a},{b:d},g{i % 7}\n" for i, (a, b) in enumerate(zip(p, rng.random(60) < 0.5, strict=True))
    )
    (tmp_path / "g.csv").write_text("forecast,outcome,g\n" + rows)
    (tmp_path / "f.csv").write_text(
        "".join(line.rpartition(",")[0] + "\n" for line in ("forecast,outcome,g\n" + rows).splitlines())
    )
    few = onlinecal("measure g.csv --cluster g --draws 50", cwd=tmp_path, columns=80).stdout
    alone = onlinecal("measure f.csv --draws 50", cwd=tmp_path, columns=80).stdout
    assert len(few.splitlines()) <= 30 >= len(alone.splitlines())
    assert "7 clusters" in few
    assert "equal to an earlier one" not in alone
    assert "alibrat" in alone.splitlines()[3]
