"""Testability by simulation: a case that is known exactly, rates, intervals, and bad input."""

import numpy as np
import pytest
from scipy.stats import binom

import onlinecal as oc

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

    Of 50 samples and 8 repetitions the mean ECE deviates by 0.25/√400 < 0.013; ties in predictions take 2 % at most.
    """
    v = (np.arange(5_000) + 0.5) / 5_000
    gamma = oc.JointDistribution.from_levels(v, np.ones(len(v)), v)
    for measure, size in (("ece", 1 / 3), ("cdl", 1 / 4)):
        found = oc.alpha_n(gamma, measure, samples=[50, 200], repetitions=8, seed=seed)
        assert found.mean == pytest.approx(size, abs=0.1)
        assert found.exponent > -0.2


def test_brackets_count_what_they_allow(seed):
    found = oc.alpha_n(FINE, "distance_lower", samples=[200], repetitions=3, seed=seed)
    assert (found.errors >= 0).all()
    assert found.mean[0] < 0.2
