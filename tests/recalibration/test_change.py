"""What recalibration changed: intervals of the change hold the truth, also where forecasts learn from outcomes."""

import math

import numpy as np
import pytest
from scipy import stats

import onlinecal as oc
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES
from onlinecal.recalibration import change
from onlinecal.recalibration.change import SCORES, changes
from onlinecal.recalibration.replay import work

OTHERS = ("smooth_ece", "smooth_ce", "cutoff_ce", "scdl")


def learnt(generator, runs, n, slope):
    """Streams that no sample is drawn from: probabilities wander with the outcomes so far, forecasts learn of them.

    Returns p, what was made of it by means of past outcomes in bins, q = P(y = 1 | past), and y, each (runs, n).
    """
    rows = np.arange(runs)
    ones, counts = np.full((runs, 10), 0.5), np.ones((runs, 10))
    last = np.full(runs, 0.5)
    p, made, q, y = np.empty((4, runs, n))
    for t in range(n):
        p[:, t] = generator.integers(1, 20, runs) / 20
        q[:, t] = np.clip(0.5 + slope * (p[:, t] - 0.5) + 0.2 * (last - 0.5), 0.02, 0.98)
        place = (p[:, t] * 9.999).astype(int)
        made[:, t] = (ones[rows, place] / counts[rows, place]).clip(0.05, 0.95)
        y[:, t] = generator.random(runs) < q[:, t]
        ones[rows, place] += y[:, t]
        counts[rows, place] += 1.0
        last += 0.1 * (y[:, t] - last)
    return p, made, q, y


def expected(score, p, q):
    """Of each forecast, given what was known before it."""
    if score == "brier":
        return q * (1.0 - p) ** 2 + (1.0 - q) * p**2
    return -q * np.log(p) - (1.0 - q) * np.log(1.0 - p)


@pytest.mark.parametrize("slope", [0.4, 1.0])
def test_intervals_of_scores_hold_the_mean_expected_difference(seed, slope):
    """They are made for 95 %; fewer than the 1e-8 quantile of Binomial(600, 0.93). A third as wide, they hold 63 %."""
    runs = 600
    p, made, q, y = learnt(np.random.default_rng([seed, 61]), runs, 300, slope)
    held, half = dict.fromkeys(SCORES, 0), dict.fromkeys(SCORES, 0)
    for i in range(runs):
        for name, (low, high) in change._paired(p[i], made[i], y[i], 199, i).items():
            truth = float((expected(name, made[i], q[i]) - expected(name, p[i], q[i])).mean())
            held[name] += low <= truth <= high
            half[name] += abs(truth - 0.5 * (low + high)) <= (high - low) / 6.0
    for name in SCORES:
        assert held[name] >= stats.binom.ppf(1e-8, runs, 0.93)
        # Of a true 67 % with a probability below 1e-9 (Hoeffding's inequality).
        assert half[name] < 0.81 * runs


@pytest.mark.slow
def test_intervals_of_other_measures_hold_the_change(full, seed):
    """As above; the truth is the measure with probabilities in the place of outcomes."""
    runs = 200 if full else 25
    p, made, q, y = learnt(np.random.default_rng([seed, 62]), runs, 300, 0.4)
    held = dict.fromkeys(OTHERS, 0)
    for i in range(runs):
        rows = [oc.evaluate(values, y[i], measures=OTHERS).rows for values in (p[i], made[i])]
        found = changes(p[i], made[i], y[i], list(zip(*rows, strict=True)), OTHERS, 99, i)
        for one in found:
            before, after = (
                MEASURES[one.measure].function(with_probabilities(v, q[i])) for v in (p[i], made[i])
            )
            low, high = one.interval
            assert low <= one.ends[0] <= one.ends[1] <= high
            held[one.measure] += low <= after - before <= high
    for name, many in held.items():
        assert many >= stats.binom.ppf(1e-8, runs, 0.93), name


def with_probabilities(v, q):
    levels, place = np.unique(v, return_inverse=True)
    counts = np.bincount(place).astype(float)
    return JointDistribution.from_levels(levels, counts, np.bincount(place, q) / counts)


def test_the_change_is_told_with_what_it_is_for(seed):
    rng = np.random.default_rng([seed, 63])
    p = rng.integers(1, 20, 400) / 20
    y = (rng.random(400) < 0.3 + 0.4 * p) * 1.0
    done = []
    found = oc.recalibrate(p, y, measures=["brier", "smooth_ce"], bootstrap=50, progress=done.append)
    assert sum(done) == work(400, 50)
    text = str(found)
    said = " ".join(text.split())
    assert "for the mean of its expected differences, each given all that was known before" in said
    assert "both intervals at 97.5 %" in said
    assert max(map(len, text.split("after − before")[0].splitlines()[:3])) <= 80
    rows = {row["measure"]: row for row in found.as_json()}
    for name, row in rows.items():
        assert row["change_upper"] == found.after[name] - found.before[name]
        assert row["change_interval"][0] <= row["change_lower"] <= row["change_interval"][1]
    # Of the same outcomes, so that it is less than either error alone.
    wide = np.ptp(rows["brier"]["before_interval"]) + np.ptp(rows["brier"]["after_interval"])
    assert np.ptp(rows["brier"]["change_interval"]) < 0.75 * wide
    # Without draws there are no intervals.
    plain = oc.recalibrate(p, y, measures=["brier"], progress=done.append)
    assert plain.changes[0].interval is None
    assert "after − before" not in str(plain)
    assert sum(done) == work(400, 50) + work(400, 0)


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.02])
def test_intervals_of_scores_hold_it_for_rare_events(seed, rate):
    """Made for 95 %; fewer than the 1e-8 quantile of Binomial(300, 0.94). By Student's law they held 70 % to 93 %."""
    generator = np.random.default_rng([seed, 63])
    for n in (10, 30, 100):
        held = dict.fromkeys(SCORES, 0)
        for i in range(300):
            p = 1e-4 + 2.0 * rate * 0.999 * generator.random(n)
            q = 0.5 * (p + rate)
            found = change._paired(p, q, (generator.random(n) < q).astype(float), 199, i)
            for name, (low, high) in found.items():
                held[name] += low <= float((expected(name, q, q) - expected(name, p, q)).mean()) <= high
        assert min(held.values()) >= stats.binom.ppf(1e-8, 300, 0.94), (n, held)


def test_what_has_no_change_has_none():
    sure = oc.recalibrate([0.0] * 40 + [0.5], [1.0] + [0.0] * 40, measures=["log_loss"], bootstrap=50)
    assert math.isinf(sure.before["log_loss"])
    assert sure.changes[0].interval is None
    same = changes(*np.full((3, 40), 1.0), [], [], 50, 0)
    assert same == []
    assert change._paired(*np.full((3, 40), 1.0), 50, 0)["brier"] == (0.0, 0.0)
    # One forecast, one outcome: the differences are all alike, which does not make the next one sure.
    low, high = change._paired(np.full(40, 0.3), np.full(40, 0.6), np.ones(40), 50, 0)["brier"]
    assert low == pytest.approx(0.4**2 - 0.7**2)
    assert high > low
