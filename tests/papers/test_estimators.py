"""The estimators of Błasiok et al. 2023 beside the exact values. Hoeffding: each check fails with probability 1e-12.

The mean of N terms in an interval of length c misses its expectation by more than c √(ln(2/δ)/(2N)) with probability δ.
"""

import math

import numpy as np
import pytest

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import ece, kernel_ce, random_interval_ce, surrogate_interval_ce
from tests.experiments import script

PAPER = script("bghn23")
LAPLACE = (PAPER.kernel_ce_squared_fourier, PAPER.kernel_ce_squared_binning)
BIASED = JointDistribution.from_levels([0.05, 0.3, 0.7, 0.9], [1, 1, 1, 1], [0.9, 1.0, 0.0, 0.0])
WIDEST, TOTAL = 0.85**2, ece(BIASED) ** 2
RUNS, SHIFTS = 20_000, 5000


def slack(length, runs=RUNS):
    return length * math.sqrt(math.log(2e12) / (2.0 * runs))


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_estimators_are_unbiased(seed, scale):
    """A bias of 2 slack (0.02 for the last two, of a square of 0.07) is seen with probability 1 − 2e-12."""
    square = kernel_ce(BIASED, scale=scale) ** 2
    pairs = PAPER.kernel_ce_squared_pairs(BIASED, seed=seed, pairs=RUNS, scale=scale)
    assert abs(pairs - square) <= slack(2.0 * WIDEST)
    for estimator in LAPLACE:
        assert abs(estimator(BIASED, seed=seed, draws=RUNS, scale=scale) - square) <= slack(TOTAL)
        other = estimator(BIASED, seed=seed, draws=RUNS, scale=0.1)
        assert abs(other - kernel_ce(BIASED) ** 2) > slack(TOTAL)  # the control: another scale is told apart


def test_the_sampled_surrogate(seed):
    """The minimum of 8 means; the control is the next best width."""
    gamma = JointDistribution.from_levels([0.1, 0.35, 0.6, 0.62], [1, 2, 1, 2], [0.4, 0.2, 0.9, 0.5])
    exact = min(random_interval_ce(gamma, epsilon=2.0**-j) + 2.0**-j for j in range(8))
    sampled = PAPER.surrogate_interval_ce_sampled(gamma, seed=seed, shifts=SHIFTS, finest=7)
    assert abs(sampled - exact) <= slack(ece(gamma), SHIFTS)
    assert abs(random_interval_ce(gamma, epsilon=0.5) + 0.5 - exact) > slack(ece(gamma), SHIFTS)


def test_the_surrogate_within_a_precision(seed):
    """Each fails with a probability of at most 1e-8."""
    shifts, finest = PAPER.draws_for(0.3, 1e-8)
    rng = np.random.default_rng([seed, 7])
    p = rng.random(60)
    for gamma in (BIASED, JointDistribution.from_samples(p, rng.random(60) < 1.0 - p)):
        drawn = PAPER.surrogate_interval_ce_sampled(gamma, seed=seed, shifts=shifts, finest=finest)
        assert abs(drawn - surrogate_interval_ce(gamma)) <= 0.3
