"""Testers of calibration: both errors are as rare as promised, and a wrong count of samples breaks the promise."""

import math

import numpy as np
import pytest
import scipy.stats

from onlinecal.core.joint import JointDistribution
from onlinecal.forecasts.testers import samples_to_test, tolerant_test

RUNS = 400


def samples(rng, n, bias, runs=RUNS):
    """Γ of runs with half of the forecasts ¼ and half ¾, and events by `bias` likelier: at this lower distance."""
    for _ in range(runs):
        counts = np.array([n // 2, n - n // 2], dtype=float)
        ones = rng.binomial(counts.astype(int), [0.25 + bias, 0.75 + bias]).astype(float)
        yield JointDistribution.from_counts([0.25, 0.75], counts, ones)


def too_many(found, probability, runs=RUNS):
    """Whether so many errors have a probability below 1e-9 if each has this one at most."""
    return scipy.stats.binom.sf(found - 1, runs, probability) < 1e-9


@pytest.mark.parametrize(("near", "far"), [(0.0, 0.1), (0.05, 0.2)])
@pytest.mark.parametrize("measure", ["distance_lower", "smooth_ce"])
def test_both_errors_are_as_rare_as_promised(near, far, measure, seed):
    if measure == "smooth_ce" and near > 0:
        near /= 2
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


def test_samples_that_are_counted_many_times_break_the_promise(seed):
    """A wrong alarm then has a probability of 0.58 for large n: fewer than 120 of 400 one below 1e-12."""
    rng = np.random.default_rng(seed)
    wrong = 0
    for ones in rng.binomial(400, 0.5, RUNS):
        gamma = JointDistribution.from_counts([0.5], [256 * 400.0], [256.0 * ones])
        wrong += tolerant_test(gamma, far=0.2, measure="smooth_ce").verdict == "far"
    assert wrong > 120
    assert too_many(wrong, 0.05)


def test_the_numbers_are_those_of_the_formulas():
    gamma = JointDistribution.from_counts([0.5], [400.0], [300.0])
    found = tolerant_test(gamma, far=0.4, near=0.1, alpha=0.01)
    threshold = 0.1 + (1 + math.sqrt(2 * math.log(100))) / 20
    assert found.threshold == pytest.approx(threshold, rel=1e-12)
    assert found.beta == pytest.approx(math.exp(-400 * (0.4 - threshold) ** 2 / 2), rel=1e-9)
    assert found.verdict == "near"  # 0.25 is below
    assert found.value.lower == pytest.approx(0.25, abs=1e-6)
    assert str(found).startswith("near: distance_lower = ")
    smooth = tolerant_test(gamma, far=0.9, near=0.01, alpha=0.01, measure="smooth_ce")
    assert smooth.threshold == pytest.approx(0.02 + (2 + math.sqrt(2 * math.log(100))) / 20, rel=1e-12)
    assert smooth.value == pytest.approx(0.25, rel=1e-12)
    assert tolerant_test(gamma, far=0.05).beta == 1.0  # too few samples say nothing of what is so near
