"""Subsampled smooth and step calibration: the definition, what is proved without drawing, draws, and truthfulness."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.errors import InvalidData
from onlinecal.measures import (
    smooth_ce,
    step_ce,
    subsampled_smooth_ce,
    subsampled_smooth_ce_sampled,
    subsampled_step_ce,
    subsampled_step_ce_sampled,
)
from tests.strategies import ANY

G = oc.JointDistribution
KINDS = [
    (smooth_ce, subsampled_smooth_ce, subsampled_smooth_ce_sampled),
    (step_ce, subsampled_step_ce, subsampled_step_ce_sampled),
]


def by_definition(whole, p, y):
    """The mean over all subsets of the total of the whole measure, over T."""
    total = 0.0
    for some in product((False, True), repeat=len(p)):
        kept = np.array(some)
        if kept.any():
            total += kept.sum() * whole(p[kept], y[kept])
    return total / 2 ** len(p) / len(p)


@pytest.mark.parametrize(("whole", "exact", "sampled"), KINDS)
@pytest.mark.parametrize("grid", [1, 2, 10, None])
def test_it_is_that_of_the_definition(whole, exact, sampled, grid, seed):
    rng = np.random.default_rng([seed, 1])
    for n in (1, 3, 6):
        p = rng.random(n) if grid is None else rng.integers(0, grid + 1, n) / grid
        y = rng.integers(0, 2, n)
        truth = by_definition(whole, p, y)
        found = exact(p, y)
        assert found.width == 0.0
        assert found.lower == pytest.approx(truth, abs=1e-12)
        bounds = exact(p, y, subsets=1)
        assert bounds.lower - 1e-12 <= truth <= bounds.upper + 1e-12
        # One draw in a million is off by more, of 24 at most.
        drawn = sampled(G.from_samples(p, y), seed=seed, draws=200)
        assert drawn.lower - 1e-12 <= truth <= drawn.upper + 1e-12


@pytest.mark.parametrize(("whole", "exact", "sampled"), KINDS)
@pytest.mark.parametrize("n", [1000, 1001, 30_000])
def test_many_rounds_at_one_level(whole, exact, sampled, n):
    """A binomial number of outcomes 1 in a subset, less one of outcomes 0: (Binomial(n, ½) − zeros)/2."""
    ones = n // 3
    halves = np.arange(n + 1)
    expected = binom.pmf(halves, n, 0.5) @ np.abs(halves - (n - ones)) / 2 / n
    found = exact(G.from_counts([0.5], [n], [ones]), subsets=100_000)
    assert (found.lower, found.upper) == pytest.approx((expected, expected), rel=1e-12)


@pytest.mark.parametrize(("whole", "exact", "sampled"), KINDS)
@given(gamma=ANY)
def test_it_is_within_its_bounds(whole, exact, sampled, gamma):
    found, bounds = exact(gamma), exact(gamma, subsets=1)
    assert bounds.lower - 1e-12 <= found.lower <= found.upper <= bounds.upper + 1e-12
    assert found.lower >= whole(gamma) / 2 - 1e-12
    wrong = gamma.mass @ (gamma.means * (1 - gamma.predictions) + (1 - gamma.means) * gamma.predictions)
    assert found.upper <= wrong / 2 + 1e-12


@pytest.mark.parametrize(("whole", "exact", "sampled"), KINDS)
def test_of_what_rounds_weights_are_is_not_known(whole, exact, sampled):
    # Half a round each: of one of outcome 1 and one of outcome 0, or of more that are lighter.
    gamma = G.from_counts([0.5], [1.0], [0.5])
    bounds = exact(gamma)
    assert bounds.lower == 0.0
    for parts in (1, 2, 6):  # rounds of equal weight have the value of as many rounds of weight 1
        value = exact(G.from_counts([0.5], [2 * parts], [parts]))
        assert value.upper <= bounds.upper
    for bad in (gamma, G.from_counts([0.5], [2.0**70], [2.0**69])):
        with pytest.raises(InvalidData, match="expected whole numbers of rounds"):
            sampled(bad, seed=1)


@pytest.mark.parametrize(("whole", "exact", "sampled"), KINDS)
def test_draws_are_those_of_the_seed_and_hold_the_truth(whole, exact, sampled, seed):
    rng = np.random.default_rng([seed, 2])
    gamma = G.from_samples(rng.random(300), rng.integers(0, 2, 300))
    few, many, certain = (
        sampled(gamma, seed=seed, draws=50),
        sampled(gamma, seed=seed, draws=5000),
        exact(gamma),
    )
    assert few == sampled(gamma, seed=seed, draws=50) != sampled(gamma, seed=seed + 1, draws=50)
    assert many.upper - many.lower <= (few.upper - few.lower) / 5
    # Each is off with a probability of at most 1e-6.
    assert max(certain.lower, few.lower, many.lower) <= min(certain.upper, few.upper, many.upper)
    # Truth is missed with a probability of at most 1/10 for each of 300 seeds; 80 or more times below 1e-14.
    gamma = G.from_samples([0.2, 0.4, 0.4, 0.6, 0.9, 0.9, 0.1, 0.5], [0, 1, 0, 1, 1, 0, 0, 1])
    drawn = [sampled(gamma, seed=1000 * seed + i, draws=20, confidence=0.9) for i in range(300)]
    assert sum(not found.lower <= exact(gamma).lower <= found.upper for found in drawn) < 80
