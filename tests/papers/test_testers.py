"""Tests of calibration keep the bounds of their errors; errors on samples are those that are known exactly."""

import doctest
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given

from onlinecal.core.joint import JointDistribution
from tests.experiments import script
from tests.strategies import gammas

testers = script("testers")
alpha_n, samples_to_test, t_cal, tolerant_test = (
    testers.alpha_n, testers.samples_to_test, testers.t_cal, testers.tolerant_test
)  # fmt: skip

RUNS = 400

# ---------------------------------------------------------------- near or far


def samples(rng, n, bias, runs=RUNS):
    """Γ of runs with half of the forecasts ¼ and half ¾, and events by `bias` likelier: at this lower distance."""
    for _ in range(runs):
        counts = np.array([n // 2, n - n // 2], dtype=float)
        ones = rng.binomial(counts.astype(int), [0.25 + bias, 0.75 + bias]).astype(float)
        yield JointDistribution.from_counts([0.25, 0.75], counts, ones)


def too_many(found, probability, runs=RUNS):
    """Whether `found` errors or more have a probability below 1e-9 if each has `probability` at most."""
    return scipy.stats.binom.sf(found - 1, runs, probability) < 1e-9


@pytest.mark.parametrize(
    ("measure", "near", "far"),
    [("distance_lower", 0.05, 0.2), ("smooth_ce", 0.0, 0.1), ("smooth_ce", 0.025, 0.2)],
)
def test_both_errors_are_as_rare_as_promised(near, far, measure, seed):
    runs = 8 if measure == "distance_lower" else 100
    n = samples_to_test(far=far, near=near, alpha=0.05, beta=0.05, measure=measure)
    rng = np.random.default_rng(seed)
    found = {
        bias: [tolerant_test(g, far=far, near=near, measure=measure) for g in samples(rng, n, bias, runs)]
        for bias in (near, far)
    }
    assert not too_many(sum(t.verdict == "far" for t in found[near]), 0.05, runs)
    assert not too_many(sum(t.verdict == "near" for t in found[far]), 0.05, runs)
    assert all(t.beta <= 0.05 for t in found[far])
    # One sample fewer is not enough for the bound.
    fewer = tolerant_test(next(samples(rng, n - 1, 0.0, 1)), far=far, near=near, measure=measure)
    assert fewer.beta > 0.05
    assert tolerant_test(next(samples(rng, 40, 0.0, 1)), far=0.05).beta == 1.0


# ---------------------------------------------------------------- at all scales of bins


def by_pairs(p, y, m):
    """(1/n) Σ over bins of the sum over pairs of two samples of (y − v)(y' − v')/(n_b − 1)."""
    bins = np.minimum(np.floor(p * m), m - 1)
    total = 0.0
    for b in np.unique(bins):
        gaps = (y - p)[bins == b]
        if len(gaps) > 1:
            total += sum(2 * a * c for a, c in combinations(gaps.tolist(), 2)) / (len(gaps) - 1)
    return total / len(p)


@given(gamma=gammas(max_levels=12))
def test_the_statistic_pair_by_pair(gamma):
    p = np.repeat(gamma.predictions, gamma.counts.astype(int))
    y = np.concatenate([np.arange(n) < s for n, s in zip(gamma.counts, gamma.positives, strict=True)])
    found = t_cal(gamma, seed=0, draws=3)
    assert (found.bins[0], found.samples) == (2, len(p))
    for m, error in zip(found.bins, found.errors, strict=True):
        assert error == pytest.approx(by_pairs(p, y, m), abs=1e-12)
    assert 1 / 4 <= found.p_value <= 1


def test_the_level_is_kept(seed):
    """p ≤ 1/5 has a probability of 1/5 or less: of 400 tests more than 126 have it with one of 1e-7 at most."""
    rng = np.random.default_rng([seed, 11])
    rejected = 0
    for trial in range(RUNS):
        p = rng.random(20) if trial % 2 else rng.integers(0, 4, 20) / 3
        rejected += t_cal(p, rng.random(20) < p, seed=trial, draws=4).p_value <= 0.2
    assert scipy.stats.binom.sf(126, RUNS, 0.2) < 1e-7
    assert rejected <= 126


# ---------------------------------------------------------------- errors on samples


def test_a_coin_as_it_is_known_exactly(seed):
    """E|N/n − ½| of n fair coins; each interval fails with a probability of at most 1e-7."""
    coin = JointDistribution.from_levels([0.5], [1.0], [0.5])
    found = alpha_n(coin, "ece", samples=[10, 100, 1000], repetitions=400, seed=seed)
    assert found.value == 0.0
    for (low, high), mean, n in zip(found.interval(1 - 1e-7), found.mean, (10, 100, 1000), strict=True):
        k = np.arange(n + 1)
        assert low <= mean <= high
        assert low <= float(scipy.stats.binom.pmf(k, n, 0.5) @ np.abs(k / n - 0.5)) <= high
    assert found.exponent == pytest.approx(-0.5, abs=0.07)


def test_examples():
    """They have thresholds, numbers of samples and p-values."""
    for name in ("testers", "consistency"):
        found = doctest.testmod(script(name))
        assert found.attempted > 0
        assert found.failed == 0
