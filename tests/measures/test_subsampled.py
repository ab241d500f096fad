"""Subsampled smooth and step calibration: the definition, what is proved without drawing, draws, and truthfulness."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.errors import InvalidData
from onlinecal.measures import (
    smooth_ce,
    step_ce,
    subsampled,
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
def test_it_is_that_of_the_definition(whole, exact, sampled, grid, seed, monkeypatch):
    monkeypatch.setattr(subsampled, "BLOCK", 5)  # classes and draws come in several blocks
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
    for bad in (gamma, *(G.from_counts([0.5], [2.0**power], [2.0 ** (power - 1)]) for power in (62, 70))):
        with pytest.raises(InvalidData, match=r"expected whole numbers of rounds below 2\^62"):
            sampled(bad, seed=1)
    assert sampled(G.from_counts([0.5], [2.0**61], [2.0**60]), seed=1, draws=1).value < 1e-7


@pytest.mark.parametrize(("whole", "exact", "sampled"), KINDS)
def test_as_many_subsets_as_asked_for_are_enumerated(whole, exact, sampled):
    """One round at each of three levels is in the subset or not: 2³ classes, of 8 different pairs."""
    gamma = G.from_samples([0.11, 0.37, 0.83], [0, 1, 0])
    assert exact(gamma, subsets=8).width == 0.0 < exact(gamma, subsets=7).width
    # Of 49² pairs of numbers of outcomes, 145 are different, which is found out for 16 times as many as asked for.
    gamma = G.from_counts([1 / 3], [96], [48])
    assert exact(gamma, subsets=151).width == 0.0 < exact(gamma, subsets=150).width


def law_of(norm, gamma):
    """‖e‖/T, and no less than E sup Σ ε_t e_t ω(p_t)/T: by Lévy, or by the integrals of what lies beyond x."""
    parts = gamma.predictions, gamma.positives, gamma.counts - gamma.positives
    size = [
        (v, math.sqrt(n) * apart) for v, s, z in zip(*parts, strict=True) for n, apart in ((s, 1 - v), (z, v))
    ]

    def beyond(keep):
        return math.hypot(*(e for v, e in size if keep(v))) / gamma.weight

    whole = beyond(lambda v: True)
    if norm is step_ce:
        return whole, math.sqrt(2.0) * whole
    integral = 0.0
    for left, right in pairwise(sorted({0.0, 0.5, 1.0, *gamma.predictions})):
        x = (left + right) / 2
        integral += (right - left) * beyond(lambda v, x=x: v < x if x < 0.5 else v > x)
    return whole, whole + integral


@pytest.mark.parametrize(("whole", "exact", "sampled"), KINDS)
@pytest.mark.parametrize("means", [(0.25, 0.5, 0.75), (0.5, 0.25, 1.0)])
def test_bounds_and_intervals_are_those_of_their_formulas(whole, exact, sampled, means):
    gamma = G.from_counts([0.25, 0.375, 0.75], [400, 800, 1200], np.multiply(means, [400, 800, 1200]))
    size, signs = law_of(whole, gamma)
    found, half = exact(gamma, subsets=1), whole(gamma) / 2
    assert found.lower == pytest.approx(max(half, size / math.sqrt(8)), rel=1e-12)
    assert found.upper == pytest.approx(half + signs / 2, rel=1e-12)
    for draws, confidence in ((20, 0.9), (50, 1 - 1e-6)):
        drawn = sampled(gamma, seed=1, draws=draws, confidence=confidence)
        radius = size * math.sqrt(math.log(2 / (1 - confidence)) / (2 * draws))
        assert drawn.upper - drawn.value == pytest.approx(radius, rel=1e-9)
        assert drawn.lower == pytest.approx(max(drawn.value - radius, 0.0), rel=1e-9)
        assert (drawn.draws, drawn.seed, drawn.confidence) == (draws, 1, pytest.approx(confidence, abs=1e-15))


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
