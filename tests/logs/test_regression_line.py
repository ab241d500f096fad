"""Logistic recalibration: the largest likelihood, intervals that hold the truth, and why a number is missing."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

import onlinecal as oc
from onlinecal.logs.line import calibration_line
from tests.coverage_intervals import LEVELS as GRID


def sample(rng, n=400, chance=lambda p: 0.1 + 0.8 * p):
    p = rng.choice(GRID, n)
    return p, (rng.random(n) < chance(p)).astype(float)


def test_it_is_the_fit_of_scikit_learn(seed):
    rng = np.random.default_rng([seed, 1])
    p, y = sample(rng)
    weights = rng.exponential(size=len(p))
    plain = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    for w in (None, weights):
        found = calibration_line(p, y, weights=w)
        plain.fit(logit(p)[:, None], y, sample_weight=w)
        assert found.intercept.value == pytest.approx(plain.intercept_[0], abs=1e-5)
        assert found.slope.value == pytest.approx(plain.coef_[0, 0], abs=1e-5)
        # In the large the fitted chances have the mean of the outcomes.
        fitted = expit(found.in_the_large.value + logit(p))
        assert np.average(fitted, weights=w) == pytest.approx(np.average(y, weights=w), abs=1e-9)


def test_sure_forecasts_that_were_wrong_have_the_largest_likelihood_too(seed):
    """The likelihood has no slope at the numbers, also where it is nearly flat from slope 1 on."""
    rng, found = np.random.default_rng([seed, 6]), 0
    for _ in range(300):
        p, y = rng.choice([1e-15, 1 - 1e-15, 0.5, 0.2], 10), rng.integers(0, 2, 10)
        line = calibration_line(p, y)
        x = logit(p)
        if math.isfinite(line.slope.value):
            found += 1
            rest = y - expit(line.intercept.value + line.slope.value * x)
            assert max(abs(rest.sum()), abs(rest @ x) / np.abs(x).max()) < 1e-6
    assert found > 150


def test_errors_are_those_of_leaving_each_unit_out(seed):
    """One step of Newton's method from the coefficients is near the fit without the unit."""
    rng = np.random.default_rng([seed, 2])
    p, y = sample(rng, 300)
    clusters = np.arange(300) // 5
    found = calibration_line(p, y, clusters=clusters)
    without = [calibration_line(p[clusters != g], y[clusters != g]) for g in range(60)]
    for name, one in found._asdict().items():
        moved = np.array([getattr(each, name).value for each in without]) - one.value
        free = min(len(np.unique(clusters[y == kind])) for kind in (0, 1)) - 1
        half = 0.5 * (one.interval[1] - one.interval[0])
        assert half > 2.0 * math.sqrt(59 / 60 * (moved**2).sum()) * 0.97
        assert free > 30


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters"])
def test_an_interval_is_students_with_the_larger_error_of_two(kind, seed):
    """One step of Newton's method without each unit, and the model: the square root of diag(H⁻¹ Σ w² x xᵀ v H⁻¹)."""
    rng = np.random.default_rng([seed, 7])
    p, y = sample(rng, 90)
    w = rng.uniform(0.5, 2.0, 90) if kind == "weights" else np.ones(90)
    of = np.arange(90) // 3 if kind == "clusters" else np.arange(90)
    given = {"weights": w} if kind == "weights" else {"clusters": of} if kind == "clusters" else {}
    large, intercept, slope = calibration_line(p, y, **given, level=0.9)
    mass = np.array([np.bincount(of, w * (y == kind)) for kind in (0, 1)])
    free = min(row.sum() ** 2 / (row**2).sum() for row in mass) - 1.0
    x = np.stack((np.ones(90), logit(p)), axis=1)
    for found, x_, mean in (
        ([large], x[:, :1], expit(large.value + logit(p))),
        ([intercept, slope], x, expit(intercept.value + slope.value * logit(p))),
    ):
        each = (w * mean * (1 - mean))[:, None, None] * (x_[:, :, None] * x_[:, None, :])
        scores, curve = (w * (y - mean))[:, None] * x_, each.sum(axis=0)
        steps = [
            np.linalg.solve(curve - each[of == g].sum(axis=0), scores[of == g].sum(axis=0))
            for g in range(of[-1] + 1)
        ]
        jackknife = (len(steps) - 1) / len(steps) * (np.array(steps) ** 2).sum(axis=0)
        inverse = np.linalg.inv(curve)
        model = np.diag(inverse @ (w[:, None, None] * each).sum(axis=0) @ inverse)
        half = student.ppf(0.95, free) * np.sqrt(np.maximum(jackknife, model))
        for one, wide in zip(found, half, strict=True):
            assert one.interval == pytest.approx((one.value - wide, one.value + wide), rel=1e-6)


def test_equal_rows_count_once_each_and_a_cluster_of_copies_is_one_row(seed):
    rng = np.random.default_rng([seed, 3])
    p, y = sample(rng, 200)
    alone = calibration_line(p, y)
    assert calibration_line(oc.JointDistribution.from_samples(p, y)) == alone
    many = calibration_line(np.repeat(p, 4), np.repeat(y, 4), clusters=np.repeat(np.arange(200), 4))
    same = calibration_line(p, y, weights=np.full(200, 3.0), clusters=np.arange(200))
    narrow = calibration_line(np.repeat(p, 4), np.repeat(y, 4))
    for a, b, c, d in zip(alone, same, many, narrow, strict=True):
        assert b.value == pytest.approx(a.value, abs=1e-8)
        assert b.interval == pytest.approx(a.interval, abs=1e-6)
        assert (c.value, d.value) == pytest.approx((a.value, a.value), abs=1e-8)
        # The model's error, which takes copies as independent, is then the smaller one.
        width, clustered, independent = (high - low for low, high in (a.interval, c.interval, d.interval))
        assert 0.6 * width > independent
        assert width >= clustered > 0.9 * width


@pytest.mark.parametrize(
    ("p", "y", "why", "large"),
    [
        ([0.2, 0.4, 0.6, 0.7], [0, 0, 1, 1], "a threshold separates", True),
        ([0.2, 0.4, 0.6, 0.7], [1, 1, 1, 0], "a threshold separates", True),
        ([0.2, 0.4, 0.4, 0.7], [0, 0, 1, 1], "a threshold separates", True),
        ([0.2, 0.4, 0.4, 0.7], [1, 1, 0, 0], "a threshold separates", True),
        ([0.3, 0.3, 0.3, 0.3], [0, 1, 0, 0], "all forecasts are as good as equal", True),
        ([0.5, 0.5 + 1e-15, 0.5 - 1e-15, 0.5], [0, 1, 0, 1], "all forecasts are as good as equal", True),
        ([0.3, 0.4, 0.5, 0.6], [1, 1, 1, 1], "all outcomes are 1", False),
        ([0.0, 0.4, 0.5, 0.6], [1, 0, 1, 1], "1 wrong forecast of exactly 0 or 1", False),
        ([0.0, 1.0, 0.5, 0.6], [0, 1, 1, 1], "all outcomes are equal", False),
        ([0.0, 1.0, 1.0], [0, 1, 1], "all outcomes are equal", False),
        ([0.0, 1.0, 0.3, 0.6, 0.7], [0, 1, 1, 0, 1], "not positive", True),
    ],
)
def test_what_has_no_number_says_why(p, y, why, large):
    found = calibration_line(p, y)
    for one in found[1:]:
        assert math.isnan(one.value)
        assert one.interval is None
        assert why in one.how
    assert math.isfinite(found.in_the_large.value) == large
    table = oc.evaluate(p, y, measures=["calibration_slope", "ece"], bootstrap=5).table()
    assert math.isnan(table.loc["calibration_slope", "value"])
    assert why in table.loc["calibration_slope", "interval_by"]


def test_right_forecasts_of_certainty_tell_nothing(seed):
    p, y = sample(np.random.default_rng([seed, 4]))
    more = calibration_line([0.0, 1.0, *p], [0, 1, *y])
    assert [one.value for one in more] == pytest.approx([one.value for one in calibration_line(p, y)])


@pytest.mark.parametrize("odds", [0.0, 0.5, -5.0])
def test_forecasts_that_differ_by_a_millionth_have_a_slope(odds):
    """Of their log odds, or of 1 where these are less. It may be negative."""
    for share, there in ((0.99e-6, False), (1.01e-6, True)):
        p = expit([odds, odds - math.copysign(share * max(1.0, abs(odds)), odds)] * 3)
        slope = calibration_line(p, [0, 1, 1, 0, 1, 0]).slope.value
        assert math.isfinite(slope) is there
    assert calibration_line([0.2, 0.4, 0.6, 0.8] * 2, [1, 1, 0, 0, 0, 1, 1, 0]).slope.value < 0.0


def test_one_sample_of_an_outcome_and_few_clusters_have_no_interval():
    p, y = np.tile(GRID, 2), np.zeros(38)
    y[7] = 1.0
    found = calibration_line(p, y)
    assert math.isfinite(found.slope.value)
    assert "one sample of an outcome" in found.slope.how
    # Any number fits as well.
    flat = calibration_line([5e-324, 1 - 2**-53] * 3, [1, 0, 0, 1, 1, 0]).in_the_large
    assert "without one of the samples nothing tells it" in flat.how
    y[::3] = 1.0
    assert "clusters" in calibration_line(p, y, clusters=np.arange(38) // 10).slope.how
    assert calibration_line(oc.JointDistribution.from_levels(GRID, GRID, GRID)).slope.interval is None
