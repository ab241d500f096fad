"""Tests of groups, of drift and of differences: their size under the hypothesis, by exact counts, and beside others."""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats

import onlinecal as oc
from onlinecal.forecasts import inference
from onlinecal.forecasts.inference import (
    bridge_exceeds,
    calibration_test,
    drift_test,
    holm,
    score_differences,
    two_sided,
)


@pytest.mark.parametrize("x", [0.05, 0.16, 0.4, 0.8, 1.36, 2.0, 5.0])
def test_the_law_of_the_bridge(x):
    assert bridge_exceeds(x) == pytest.approx(float(scipy.special.kolmogorov(x)), abs=1e-13)


def test_two_sided_and_holm_as_elsewhere():
    for z in (-3.0, 0.0, 1.96):
        assert two_sided(z) == pytest.approx(2.0 * float(scipy.stats.norm.sf(abs(z))), rel=1e-12)
    p_values = np.random.default_rng(0).random(20)
    order = np.argsort(p_values)
    wanted = np.minimum(np.maximum.accumulate((20 - np.arange(20)) * p_values[order]), 1.0)
    assert np.array(holm(p_values.tolist()))[order] == pytest.approx(wanted)
    assert holm([]) == []
    assert holm([0.2]) == [0.2]


def count_exceeds(found, share, runs, failures=1e-7):
    """So many p-values below `share` of `runs` are rarer than `failures` if their law is uniform."""
    return scipy.stats.binom.sf(int(np.sum(np.array(found) <= share)) - 1, runs, share) > failures


def test_the_calibration_test_keeps_its_size_and_sees_a_bias(seed):
    """150 calibrated groups; the count of p ≤ 0.05 is above its limit with probability 1e-7."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(150):
        p = np.round(rng.beta(2, 5, 40), 1)
        found.append(calibration_test(oc.JointDistribution.from_samples(p, rng.random(40) < p), i))
    assert count_exceeds(found, 0.05, 150)
    # All outcomes 1 at 0.1, 40 times: the same happens with probability 1e-40.
    certain = oc.JointDistribution.from_counts([0.1], [40], [40])
    assert calibration_test(certain, 0) == 1e-4


def test_outcomes_drawn_row_by_row_or_counted_give_the_same_test(seed, monkeypatch):
    # Two shares of 9,999 draws each: a difference of 0.05 is 7 standard deviations and more.
    rng = np.random.default_rng(seed)
    for n in (1, 7, 60):
        p = np.round(rng.random(n), 1)
        gamma = oc.JointDistribution.from_samples(p, rng.random(n) < p)
        found = []
        for rows in (0, 1000):
            monkeypatch.setattr(inference, "_ROWS_OF_A_LEVEL", rows)
            found.append(calibration_test(gamma, seed))
        assert found[0] == pytest.approx(found[1], abs=0.05)


def test_the_calibration_test_of_many_levels_is_its_limit():
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    gamma = oc.JointDistribution.from_samples(p, rng.random(3000) < p)
    table = oc.evaluate(gamma, measures=["cutoff_ce"], reference=1)
    assert calibration_test(gamma, 0) == pytest.approx(table.rows[0].p_large_n, rel=1e-12)
    # Weights of 2 each are as no weights.
    assert calibration_test(gamma, 0, gamma.counts) == calibration_test(gamma, 0)
    assert calibration_test(oc.JointDistribution.from_counts([0.0, 1.0], [3, 3], [0, 3]), 0) == 1.0


def test_drift_keeps_its_size_and_is_found(seed):
    """400 logs without drift, twice: either count is above its limit with probability 1e-7."""
    rng = np.random.default_rng([seed, 2])
    found, neighbours = [], []
    for _ in range(400):
        p = rng.random(500)
        drift = drift_test(p, (rng.random(500) < p).astype(float))
        found.append(drift.p_value)
        neighbours.append(drift.correlation_p)
    assert count_exceeds(found, 0.05, 400)
    assert count_exceeds(neighbours, 0.07, 400)  # normal only for large n
    p = np.full(400, 0.5)
    y = np.repeat([0.0, 1.0], 200)
    drift = drift_test(p, y)
    assert drift.statistic == pytest.approx(10.0)  # 200 · 0.5 / (0.5 √400)
    assert drift.p_value < 1e-80
    assert drift.correlation == pytest.approx((399 - 2) / 400)
    # A bias that stays is no drift.
    assert drift_test(np.zeros(10), np.ones(10)).p_value == 1.0
    assert drift_test(np.zeros(1), np.ones(1)).p_value == 1.0
    assert drift_test(p, y, np.full(400, 3.0)).statistic == pytest.approx(10.0)


def test_differences_are_those_of_a_paired_test():
    rng = np.random.default_rng(3)
    p, y = rng.random(300), (rng.random(300) < 0.5).astype(float)
    q = np.clip(p + 0.1, 0.01, 0.99)
    found = score_differences({"a": p, "b": q}, y)
    assert [(d.score, d.first, d.second) for d in found] == [("brier", "a", "b"), ("log", "a", "b")]
    for d, score in zip(
        found, (lambda x: (x - y) ** 2, lambda x: -np.log(np.where(y == 1, x, 1 - x))), strict=True
    ):
        wanted = score(p) - score(q)
        assert d.mean == pytest.approx(wanted.mean(), abs=1e-14)
        assert d.error == pytest.approx(wanted.std(ddof=1) / math.sqrt(300), rel=1e-12)
        assert d.p_value == pytest.approx(scipy.stats.ttest_1samp(wanted, 0.0).pvalue, rel=1e-9)
    assert [d.adjusted for d in found] == holm([d.p_value for d in found])
    # Whole weights are rows that are there so often, in the mean.
    w = rng.integers(1, 4, 300).astype(float)
    weighted = score_differences({"a": p, "b": q}, y, w)[0]
    n = w.astype(int)
    repeated = score_differences({"a": np.repeat(p, n), "b": np.repeat(q, n)}, np.repeat(y, n))
    assert weighted.mean == pytest.approx(repeated[0].mean, abs=1e-14)


def test_an_infinite_score_has_no_difference_and_equal_columns_differ_by_nothing():
    y = np.array([1.0, 0.0, 1.0])
    found = score_differences({"a": np.array([0.0, 0.5, 0.5]), "b": np.full(3, 0.5)}, y)
    assert [d.score for d in found] == ["brier"]
    same = score_differences({"a": np.full(30, 0.5), "b": np.full(30, 0.5)}, np.tile(y, 10))
    assert [(d.mean, d.p_value) for d in same] == [(0.0, 1.0)] * 2
    assert score_differences({"a": y[:1], "b": y[:1]}, y[:1]) == []
    assert score_differences({"a": y, "b": y}, y, np.array([1.0, 0.0, 1e-30])) == []


@pytest.mark.parametrize("light", [0.0, 1e-12])
def test_rows_of_no_weight_are_no_samples(light):
    """A test of 1,000 rows of which 35 have the weight is Student's test of the 35; of 29 there is none."""
    rng = np.random.default_rng(5)
    forecasts, y = {"a": rng.random(1000), "b": rng.random(1000)}, (rng.random(1000) < 0.5).astype(float)
    heavy = np.arange(1000) < 35
    brier, log = score_differences(forecasts, y, np.where(heavy, 1.0, light))
    a, b = ((p[heavy] - y[heavy]) ** 2 for p in forecasts.values())
    wanted = scipy.stats.ttest_rel(a, b)
    assert brier.error == pytest.approx(np.std(a - b, ddof=1) / math.sqrt(35), rel=1e-9)
    assert brier.p_value == pytest.approx(wanted.pvalue, rel=1e-6)
    assert [brier.adjusted, log.adjusted] == holm([brier.p_value, log.p_value])
    for d in score_differences(forecasts, y, np.where(np.arange(1000) < 29, 1.0, light)):
        assert (d.p_value, d.adjusted) == (None, None)
        assert d.error > 0.0


def test_weighted_differences_keep_their_size(seed):
    """400 logs of 34 heavy rows among 300; the count of p ≤ 0.05 is above its limit at 0.06 with probability 1e-7."""
    rng, found = np.random.default_rng([seed, 7]), []
    for _ in range(400):
        q = rng.uniform(0.1, 0.9, 300)
        forecasts = {name: np.clip(q + rng.normal(0.0, 0.1, 300), 0.02, 0.98) for name in "ab"}
        weights = np.where(np.arange(300) < 34, rng.uniform(50.0, 100.0, 300), 0.1)
        brier = score_differences(forecasts, (rng.random(300) < q).astype(float), weights)[0]
        found.append(brier.p_value)
    assert scipy.stats.binom.sf(int(np.sum(np.array(found) <= 0.05)) - 1, 400, 0.06) > 1e-7


def test_dependence_of_neighbours_widens_the_error(seed):
    """Rows that are there twice say no more: with a lag the error is nearly that of the rows once.

    It varies by some 1.3 %, and is 1.2 % too small in the mean: 15 % are more than ten standard deviations.
    """
    rng = np.random.default_rng([seed, 4])
    p, q, y = rng.random(20_000), rng.random(20_000), (rng.random(20_000) < 0.5).astype(float)
    once = score_differences({"a": p, "b": q}, y)[0].error
    twice = [np.repeat(x, 2) for x in (p, q, y)]
    plain = score_differences({"a": twice[0], "b": twice[1]}, twice[2])[0].error
    lagged = score_differences({"a": twice[0], "b": twice[1]}, twice[2], lags=20)[0].error
    assert plain == pytest.approx(once / math.sqrt(2.0), rel=1e-3)
    assert once * 0.85 < lagged < once * 1.15
