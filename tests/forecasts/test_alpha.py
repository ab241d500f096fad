"""Testability by simulation: a case that is known exactly, rates, intervals, and bad input."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter, UnknownName

COIN = oc.JointDistribution.from_levels([0.5], [1.0], [0.5])
GRID = np.arange(21) / 20
FINE = oc.JointDistribution.from_levels(GRID, np.ones(21), GRID)


def exact(n):
    """E|N/n − ½| of n fair coins."""
    k = np.arange(n + 1)
    return float(binom.pmf(k, n, 0.5) @ np.abs(k / n - 0.5))


def test_a_coin_as_it_is_known_exactly(seed):
    """Each interval fails with a probability of at most 1e-7."""
    found = oc.alpha_n(COIN, "ece", samples=[10, 100, 1000], repetitions=400, seed=seed)
    assert found.errors.shape == (3, 400)
    for (low, high), mean, n in zip(found.interval(1 - 1e-7), found.mean, (10, 100, 1000), strict=True):
        assert low <= mean <= high
        assert low <= exact(n) <= high
    assert found.value == 0.0


def test_intervals_narrow_with_repetitions(seed):
    few, many = (oc.alpha_n(COIN, "smooth_ce", samples=[100], repetitions=r, seed=seed) for r in (30, 3000))
    widths = [float(np.diff(f.interval())[0, 0]) for f in (few, many)]
    assert widths[1] < widths[0] / 3
    wide = float(np.diff(many.interval(1 - 1e-9))[0, 0])
    assert wide > widths[1]


@pytest.mark.parametrize("measure", ["smooth_ce", "cutoff_ce"])
def test_what_is_testable_goes_like_the_root_of_n(measure, seed):
    """Both errors are norms of nearly normal noise, over √n; their deviation is below 0.6 of their mean.

    So that of a mean of 400 is below 0.03 of it, and 25 % are six of the deviations of the ratio of two.
    """
    found = oc.alpha_n(FINE, measure, samples=[100, 10_000], repetitions=400, seed=seed)
    assert found.mean[1] / found.mean[0] == pytest.approx(0.1, rel=0.25)
    assert found.exponent == pytest.approx(-0.5, abs=0.07)


def test_what_is_not_testable_stays(seed):
    """Of distinct predictions CDL stays near ¼ and ECE near ⅓ (Example 2 of Bairaktari et al. 2026).

    Of 50 samples and 20 repetitions the mean ECE deviates by 0.25/√1000 < 0.01; ties in predictions take 2 % at most.
    """
    v = (np.arange(5_000) + 0.5) / 5_000
    gamma = oc.JointDistribution.from_levels(v, np.ones(len(v)), v)
    for measure, size in (("ece", 1 / 3), ("cdl", 1 / 4)):
        found = oc.alpha_n(gamma, measure, samples=[50, 200], repetitions=20, seed=seed)
        assert found.mean == pytest.approx(size, abs=0.1)
        assert found.exponent > -0.2


def test_seeds_tables_and_reading_only(seed):
    a, b = (oc.alpha_n(COIN, "ece", samples=[10], repetitions=5, seed=seed) for _ in range(2))
    assert (a.errors == b.errors).all()
    assert math.isnan(a.exponent)
    table = a.table()
    assert list(table.columns) == ["samples", "mean", "lower", "upper", "deviation", "times_root"]
    assert table["times_root"][0] == pytest.approx(a.mean[0] * math.sqrt(10))
    with pytest.raises(ValueError, match="read-only"):
        a.errors[0, 0] = 1.0
    (one,) = oc.alpha_n(COIN, "ece", samples=[10], repetitions=1).interval()
    assert one.tolist() == [0.0, 1.0]


def test_brackets_count_what_they_allow(seed):
    found = oc.alpha_n(FINE, "distance_lower", samples=[200], repetitions=3, seed=seed)
    assert (found.errors >= 0).all()
    assert found.mean[0] < 0.2


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"measure": "smoothce"}, UnknownName, "smooth_ce"),
        ({"measure": "subsampled_smooth_ce"}, InvalidParameter, "number of rounds"),
        ({"samples": []}, InvalidParameter, "samples is empty"),
        ({"samples": [0]}, InvalidParameter, "samples = 0"),
        ({"repetitions": 0}, InvalidParameter, "repetitions = 0"),
        ({"seed": -1}, InvalidParameter, "seed = -1"),
        ({"order": 0.5}, InvalidParameter, "order"),
        ({"nonsense": 1}, InvalidParameter, "nonsense"),
    ],
    ids=str,
)
def test_bad_input(options, error, said):
    with pytest.raises(error, match=said):
        oc.alpha_n(COIN, **{"measure": "ece", **options})


def test_other_bad_input():
    with pytest.raises(InvalidData, match="expected a JointDistribution"):
        oc.alpha_n([0.5], "ece")
    found = oc.alpha_n(COIN, "ece", samples=[10], repetitions=2)
    for wrong in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidParameter, match="confidence"):
            found.interval(wrong)
    sure = oc.JointDistribution.from_levels([0.0], [1.0], [0.5])
    with pytest.raises(InvalidParameter, match="infinite"):
        oc.alpha_n(sure, "log_loss")
    with pytest.raises(InvalidParameter, match="no largest value"):
        oc.alpha_n(COIN, "log_loss", samples=[5], repetitions=2).interval()
