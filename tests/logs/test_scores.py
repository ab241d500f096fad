"""Scores and errors by the names of the field, against scikit-learn and by brute force; intervals of AUC."""

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score

import onlinecal as oc
from onlinecal.core.errors import UnknownName
from onlinecal.logs.units import Rows
from onlinecal.measures import ace, auc, brier_skill, e50, e90, ici, mce, rmsce
from onlinecal.measures.loess import curve_error


def sample(seed, n=300, decimals=2):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(decimals)
    return p, (rng.random(n) < p**1.5).astype(float), rng.exponential(size=n)


@pytest.mark.parametrize("decimals", [1, 2, 15])
def test_scores_are_those_of_scikit_learn(seed, decimals):
    p, y, w = sample([seed, 1], decimals=decimals)
    for weights in (None, w):
        gamma = oc.JointDistribution.from_samples(p, y, weights=weights)
        assert auc(gamma) == pytest.approx(roc_auc_score(y, p, sample_weight=weights), abs=1e-12)
        base = np.average(y, weights=weights)
        score = brier_score_loss(y, p, sample_weight=weights)
        assert brier_skill(gamma) == pytest.approx(1.0 - score / (base * (1.0 - base)), abs=1e-12)


def test_errors_of_bins_are_those_of_scikit_learn(seed):
    # No forecast lies on the edge of a bin: libraries differ on its side.
    p, y, _ = sample([seed, 2], decimals=15)
    for bins in (1, 5, 10):
        happened, forecast = calibration_curve(y, p, n_bins=bins)
        counts = np.histogram(p, np.linspace(0.0, 1.0, bins + 1))[0]
        gaps, mass = np.abs(happened - forecast), counts[counts > 0] / len(p)
        assert mce(p, y, bins=bins) == pytest.approx(gaps.max(), abs=1e-12)
        assert rmsce(p, y, bins=bins) == pytest.approx(math.sqrt(mass @ gaps**2), abs=1e-12)
        happened, forecast = calibration_curve(y, p, n_bins=bins, strategy="quantile")
        assert ace(p, y, bins=bins) == pytest.approx(np.abs(happened - forecast).mean(), abs=1e-12)


def test_the_largest_error_is_of_levels_unless_bins_are_asked_for():
    assert mce([0.1, 0.2, 0.2], [0, 1, 1]) == pytest.approx(0.8)
    assert mce([0.1, 0.2, 0.2], [0, 1, 1], bins=1) == pytest.approx(0.5)


def loess(p, y, w):
    """c(p) − p of each row: a local quadratic regression by least squares."""
    found = []
    for x in p:
        apart = np.abs(p - x)
        order = np.argsort(apart, kind="stable")
        width = apart[order][np.argmax(np.cumsum(w[order]) >= 0.75 * w.sum() * (1.0 - 1e-12))]
        root = np.sqrt(w * np.clip(1.0 - (apart / width) ** 3, 0.0, None) ** 3)
        columns = np.stack((np.ones(len(p)), p - x, (p - x) ** 2), axis=1)
        found.append(np.linalg.lstsq(columns * root[:, None], y * root, rcond=None)[0][0] - x)
    return np.abs(found)


@pytest.mark.parametrize("decimals", [1, 15])
def test_the_curve_is_that_of_local_regressions(seed, decimals):
    p, y, w = sample([seed, 3], 120, decimals)
    gamma, error = oc.JointDistribution.from_samples(p, y, weights=w), loess(p, y, w)
    assert ici(gamma) == pytest.approx(np.average(error, weights=w), abs=1e-9)
    order = np.argsort(error)
    inside = np.cumsum(w[order]) / w.sum()
    for share, found in ((0.5, e50(gamma)), (0.9, e90(gamma))):
        assert found == pytest.approx(error[order][np.argmax(inside >= share)], abs=1e-9)


def test_many_levels_are_smoothed_in_groups(seed):
    p, y, _ = sample([seed, 4], 1200, 15)
    error = loess(p, y, np.ones(1200))
    assert ici(p, y) == pytest.approx(error.mean(), abs=2e-4)
    assert e90(p, y) == pytest.approx(np.quantile(error, 0.9), abs=2e-3)
    assert ici(oc.JointDistribution.from_levels(np.sort(p), np.ones(1200), np.sort(p))) == 0.0


@pytest.mark.parametrize(("levels", "groups"), [(500, 500), (501, 500), (2000, 500)])
def test_groups_are_of_neighbouring_levels_of_about_equal_weight(levels, groups):
    """Each begins with the first level of which 1/500 more of the weight is below; without groups none is joined."""
    rng = np.random.default_rng(levels)
    w, v = rng.random(levels), (np.arange(levels) + 0.5) / levels
    found = curve_error(oc.JointDistribution.from_levels(v, w, rng.random(levels)))[1]
    below = np.floor(500 * (np.cumsum(w / w.sum()) - w / w.sum()))
    starts = np.flatnonzero(np.diff(below, prepend=-1.0)) if levels > groups else np.arange(levels)
    assert found.starts.tolist() == starts.tolist()
    assert found.mass.sum() == pytest.approx(1.0)


def test_a_level_with_most_of_the_weight_is_alone():
    gamma = oc.JointDistribution.from_counts([0.3, 0.6], [90, 10], [45, 6])
    assert ici(gamma) == pytest.approx(0.9 * 0.2)
    assert (e50(gamma), e90([0.3], [1])) == (pytest.approx(0.2), pytest.approx(0.7))


def test_one_class_has_no_auc_and_says_why():
    assert math.isnan(auc([0.2, 0.4], [0, 0]))
    assert (brier_skill([0.2, 0.4], [0, 0]), brier_skill([0.0], [0])) == (-math.inf, 1.0)
    found = oc.evaluate([0.2, 0.4] * 20, [0] * 40, measures=["auc"], bootstrap=20)
    assert "all outcomes are 0" in found.rows[0].interval_by
    assert str(found).splitlines()[2].split() == ["auc", "–", "none"]
    for p, y, why in (
        ([0.1, 0.2, 0.3, 0.7], [0, 0, 1, 1], "separates"),
        ([0.1, 0.5, 0.3], [0, 0, 1], "one sample"),
    ):
        assert why in oc.evaluate(p, y, measures=["auc"], bootstrap=20).rows[0].interval_by


@pytest.mark.parametrize("weighted", [False, True])
def test_the_interval_of_auc_is_that_of_delong(weighted, seed):
    """Variances of placements over the numbers of samples, which of weights are (Σ w)²/Σ w².

    One sample of either kind is added, with the variance of placements if outcomes are as likely as forecast.
    """
    p, y, w = sample([seed, 5], 80)
    w = w if weighted else np.ones(80)
    squares, samples = 0.0, []
    better = (p[:, None] > p) + 0.5 * (p[:, None] == p)
    value = np.average(np.average(better[y == 1][:, y == 0], weights=w[y == 0], axis=1), weights=w[y == 1])
    for kind, chance, one in ((1, p, better), (0, 1 - p, better.T)):
        place = np.average(one[:, y != kind], weights=w[y != kind], axis=1)
        said = np.average((place - np.average(place, weights=w * chance)) ** 2, weights=w * chance)
        mine = w[y == kind]
        samples.append(mine.sum() ** 2 / (mine**2).sum())
        squares += ((mine / mine.sum() * (place[y == kind] - value)) ** 2).sum() + said / samples[-1] ** 2
    error = math.sqrt(squares)
    from scipy.stats import t

    width = t.ppf(0.975, min(samples) - 1) * error / (value * (1.0 - value))
    expected = expit(math.log(value / (1.0 - value)) + np.array([-width, width]))
    row = oc.evaluate(p, y, weights=w if weighted else None, measures=["auc"], bootstrap=1).rows[0]
    assert row.value == pytest.approx(value)
    assert row.interval == pytest.approx(expected.tolist())


def test_a_cluster_of_copies_has_the_auc_of_a_row(seed):
    p, y, _ = sample([seed, 5], 80)
    row = oc.evaluate(p, y, measures=["auc"], bootstrap=1).rows[0]
    copies = oc.evaluate(
        np.repeat(p, 3), np.repeat(y, 3), clusters=np.repeat(np.arange(80), 3), measures=["auc"], bootstrap=1
    ).rows[0]
    assert copies.interval == pytest.approx(row.interval, abs=5e-3)


def test_rows_stay_in_the_order_asked_for_and_games_do_not_have_them():
    names = ["auc", "ece", "calibration_slope", "brier"]
    assert [row.name for row in oc.evaluate([0.2, 0.7] * 9, [0, 1, 1] * 6, measures=names).rows] == names
    with pytest.raises(UnknownName, match="auc"):
        oc.play("forecast_hedging", "drift", horizon=10, runs=1, measures=["auc"])


@pytest.mark.parametrize("gap", [1e-15, 3.5e-134, 1e-300, 5e-324])
def test_levels_as_near_as_subnormal_numbers_have_a_smoothed_curve(gap):
    """Nearly all of the neighbourhood of two levels is farther away than it is wide."""
    gamma = oc.JointDistribution.from_levels([0.0, gap, 1.0], [2, 1, 1], [0.0, 0.0, 0.0])
    assert ici(gamma) == pytest.approx(0.25, abs=1e-9)
    assert (e50(gamma), e90(gamma)) == pytest.approx((0.0, 1.0), abs=1e-9)


def test_squares_of_clusters_are_without_bias():
    rows = Rows(*np.full((3, 6), 0.5), np.ones(6), np.array([0, 0, 1, 1, 2, 2]))
    assert rows.squares(np.array([1.0, 1.0, -1.0, 0.0, -1.0, 0.0])) == pytest.approx(6.0 * 3 / 2)
