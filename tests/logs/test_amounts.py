"""Outcomes that are no 0 and 1: amounts with a threshold, ties, expected outcomes."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import OnlinecalError
from onlinecal.logs.columns import Asked
from onlinecal.logs.measuring import Settings
from onlinecal.logs.source import report_of
from onlinecal.monitoring.monitor import Monitor
from onlinecal.monitoring.watching import watch

AMOUNTS = "p,temperature\n.25,3\n.5,12.5\n.75,10\n.5,\n"
TIES = "p,result,site\n.25,0,a\n.5,.5,b\n.75,1,b\n.25,.5,a\n"


def measured(tmp_path, text, settings=None, **asked):
    path = tmp_path / "f.csv"
    path.write_text(text)
    return report_of(str(path), Asked(**asked), settings or Settings(draws=0, measures=("brier", "ece")))


@pytest.mark.parametrize("parts", [False, True])
def test_an_event_is_made_of_an_amount(tmp_path, parts):
    path = tmp_path / "f.csv"
    path.write_text(AMOUNTS)
    asked = Asked(outcome="temperature", above=10.0, skip_missing=True)
    report = report_of(str(path), asked, Settings(draws=0, measures=("brier",)), parts)
    assert report.columns[0].brier.score == pytest.approx((0.25**2 + 0.5**2 + 0.75**2) / 3)
    assert "outcome 1 is 'temperature' above 10" in report.said
    monitor, state = Monitor(), tmp_path / "state"
    watch(monitor, path, asked, state=state)
    assert monitor.events == 3
    with pytest.raises(OnlinecalError, match="--above 0"):
        watch(Monitor.load(state), path, Asked(outcome="temperature", above=0.0))


@pytest.mark.parametrize(
    ("text", "asked", "words"),
    [
        (AMOUNTS, {"outcome": "temperature"}, "holds '3'; expected 0 or 1.*--above NUMBER has the event"),
        (AMOUNTS, {"outcome": "temperature", "above": 10.0, "positive": "3"}, "--above 10 beside the word '3'"),
        (AMOUNTS, {"outcome": "temperature", "above": np.nan}, "--above nan; expected a finite number"),
        (AMOUNTS, {"outcome": "temperature", "above": 1.0, "fractional": True}, "--above 1 beside --fractional"),
        (AMOUNTS, {"outcome": "temperature", "above": 1.0, "classes": True}, "--above 1 beside --classes"),
        (AMOUNTS.replace("12.5", "hot"), {"outcome": "temperature", "above": 10.0}, "is 'hot'; expected a number"),
        (TIES, {}, "holds '.5'; expected 0 or 1.*--fractional. takes numbers between 0 and 1 as expected outcomes"),
        (TIES + ".5,1.5,b\n", {"fractional": True}, "holds '1.5'; expected 0 or 1"),
        (TIES, {"fractional": True, "weight": "p"}, "--fractional beside --weight p; expected one or the other"),
    ],
)  # fmt: skip
def test_amounts_and_ties_are_refused_with_what_to_write(tmp_path, text, asked, words):
    with pytest.raises(OnlinecalError, match=words):
        measured(tmp_path, text, **asked)


def test_expected_outcomes(tmp_path):
    """ECE is that of their means; the Brier score is the expected one, in which a tie is no certainty."""
    report = measured(tmp_path, TIES, fractional=True, by=("site",))
    p, q = np.array([0.25, 0.5, 0.75, 0.25]), np.array([0, 0.5, 1, 0.5])
    assert report.rows == 4
    assert report.columns[0].brier.score == pytest.approx(np.mean((p - q) ** 2 + q * (1 - q)))
    assert report.columns[0].evaluation["ece"] == pytest.approx(0.25 * 0.25)
    groups = {part.name: (part.rows, part.forecast, part.event) for part in report.columns[0].groups}
    assert groups == {"a": (2, 0.25, 0.25), "b": (2, 0.625, 0.75)}
    assert any(
        "2 of 4 outcomes q are between 0 and 1" in text and "0.125 more" in text for text in report.said
    )


def test_intervals_of_expected_outcomes_count_rows(tmp_path, seed):
    """They are those of rows as clusters, and calibrated ones are not refuted: p is not small too often."""
    rng, small = np.random.default_rng([seed, 91]), 0
    for i in range(40):
        p = rng.choice([0.25, 0.5, 0.75], 200)
        q = np.where(rng.random(200) < 0.5, rng.beta(4 * p, 4 * (1 - p)).round(3), rng.random(200) < p)
        text = "p,result\n" + "".join(f"{a},{b}\n" for a, b in zip(p, q, strict=True))
        settings = Settings(99 if i else 200, measures=("cutoff_ce",), seed=i)
        report = measured(tmp_path, text, settings, fractional=True)
        small += report.columns[0].evaluation.rows[0].p_value <= 0.05
    assert small <= 11  # more have a probability below 1e-5 if each is small with probability .05
    between = (q > 0) & (q < 1)
    both, label = np.concatenate((p, p[between])), np.concatenate((np.arange(200), np.flatnonzero(between)))
    y = np.concatenate((np.where(between, 1.0, q), np.zeros(between.sum())))
    w = np.concatenate((np.where(between, q, 1.0), 1.0 - q[between]))
    both, y, w, label = (each[np.argsort(label, kind="stable")] for each in (both, y, w, label))
    found = oc.evaluate(both, y, weights=w, clusters=label, measures=["cutoff_ce"], bootstrap=99, seed=i)
    row = report.columns[0].evaluation.rows[0]
    assert (row.value, *row.interval) == pytest.approx((found["cutoff_ce"], *found.rows[0].interval))
    same = oc.evaluate(p, q, fractional=True, measures=["cutoff_ce"], bootstrap=99, seed=i)
    assert (same["cutoff_ce"], same.rows[0].interval) == (row.value, row.interval)


def test_python_has_the_same_arguments():
    p, y = [0.25, 0.5, 0.75, 0.25], [0, 0.5, 1, 0.5]
    assert oc.evaluate(p, y, fractional=True, measures=["ece"])["ece"] == pytest.approx(0.25 * 0.25)
    assert oc.measures.ece(oc.JointDistribution.from_counts(p, np.ones(4), y)) == pytest.approx(0.25 * 0.25)
    assert oc.measures.brier(p, [3, 12.5, 10, 11], above=10) == pytest.approx(
        (0.25**2 + 0.5**2 + 2 * 0.75**2) / 4
    )
    for options, words in [
        ({"fractional": True, "weights": np.ones(4)}, "fractional = True with weights"),
        ({"fractional": True, "clusters": [1, 2]}, "clusters"),
        ({}, r"y\[1\] = 0.5 is not an outcome; expected 0 or 1"),
        ({"above": 10.0, "positive": 1}, "above = 10.0 beside labels"),
        ({"above": np.inf}, "above = inf; expected a number in"),
    ]:
        with pytest.raises(OnlinecalError, match=words):
            oc.evaluate(p, y, **options)
