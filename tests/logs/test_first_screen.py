"""The first screen of `measure`: in 30 lines whether forecasts are calibrated, where not, at what cost, how sure."""

import json
import re

import numpy as np
import pytest

from tests.command_line import onlinecal
from tests.logs.made import flat


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


def per_cent(rng):
    """60 rows of whole per cent, of which some are equal by chance, in seven clusters."""
    p = rng.integers(0, 101, 60) / 100
    rows = "".join(f"{a},{b:d}\n" for a, b in zip(p, rng.random(60) < 0.5, strict=True))
    return {"cents.csv": "forecast,outcome\n" + rows}


def in_clusters(rng):
    """The same, in seven clusters."""
    header, *rows = per_cent(rng)["cents.csv"].splitlines()
    rows = "".join(f"{row},g{i % 7}\n" for i, row in enumerate(rows))
    return {"clusters.csv --cluster g": f"{header},g\n{rows}"}


def classes(k, shift):
    """400 rows of k classes, of which a share of outcomes becomes the first class."""

    def drawn(rng):
        p = rng.multinomial(10, rng.dirichlet(np.ones(k), 400)) / 10
        y = np.minimum((rng.random(400)[:, None] > p.cumsum(axis=1)).sum(axis=1), k - 1)
        y[rng.random(400) < shift] = 0
        header = ",".join(f"class {i}" for i in range(k))
        rows = (",".join([*map(str, row), f"class {label}"]) for row, label in zip(p, y, strict=True))
        return {"a.csv --classes 'class*'": f"{header},y\n" + "\n".join(rows) + "\n"}

    return drawn


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (panel, ["are one cluster each"]), (market, ["Read as a Manifold export of markets."]), (sixty, []),
        (per_cent, []), (in_clusters, ["7 clusters"]),
        *((classes(k, shift), ["Not calibrated (p = "] * (shift > 0)) for k in (3, 5, 14) for shift in (0.0, 0.5)),
    ],
)  # fmt: skip
def test_the_first_screen(tmp_path, made, words):
    """In 30 lines whether, how sure, where, at what cost, what recalibration could gain, and last what next."""
    ((command, text),) = made(np.random.default_rng(3)).items()
    (tmp_path / command.split()[0]).write_text(text)
    lines = onlinecal(f"measure {command} --draws 50", cwd=tmp_path, columns=80).stdout.splitlines()
    said = flat(" ".join(lines))
    assert len(lines) <= 30
    assert "Next: " in "\n".join(lines[-4:])
    assert all(each in said for each in words)
    assert "equal to an earlier one" not in said
    for each, of in (("Read as a Manifold export of markets.", market), ("are one cluster each", panel)):
        assert (each in said) is (made is of)
    if "--classes" in command:
        assert ("Not calibrated (p = " in said) == bool(words)
        assert said.index("alibrat") < said.index("measure value")
    elif made in (panel, market, sixty):
        assert re.search(r"(Not calibrated|Calibration is not refuted|Perhaps not calibrated)", said)
        assert re.search(r"\(p = [\d.e-]+\)", said)
        assert re.search(r"cting when p [≥>] [\d.]+ loses [\d.]+ per decision", said)
        assert re.search(r"recalibration could gain [\d.]+ of the Brier score [\d.]+", said, re.I)
