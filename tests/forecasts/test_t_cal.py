"""T-Cal: its statistic pair by pair, its level for any number of draws, and what it sees."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binom

import onlinecal as oc
from onlinecal.measures import binned_ce
from tests.gammas_metric import gammas


def by_pairs(p, y, m):
    """(1/n) Σ over bins of the sum over pairs of two samples of (y − v)(y' − v')/(n_b − 1)."""
    bins = np.minimum(np.floor(p * m), m - 1)
    total = 0.0
    for b in np.unique(bins):
        gaps = (y - p)[bins == b]
        if len(gaps) > 1:
            total += sum(2 * a * c for a, c in combinations(gaps.tolist(), 2)) / (len(gaps) - 1)
    return total / len(p)


@given(gamma=gammas(max_samples=12))
def test_the_statistic_pair_by_pair(gamma):
    p = np.repeat(gamma.predictions, gamma.counts.astype(int))
    y = np.concatenate([np.arange(n) < s for n, s in zip(gamma.counts, gamma.positives, strict=True)])
    found = oc.t_cal(gamma, seed=0, draws=3)
    assert found.bins[0] == 2
    assert found.samples == len(p)
    for m, error in zip(found.bins, found.errors, strict=True):
        assert error == pytest.approx(by_pairs(p, y, m), abs=1e-12)
    assert 1 / 4 <= found.p_value <= 1


def test_it_is_without_bias():
    """The mean over all outcomes of three samples is the squared error of their bin, counted pair by pair."""
    p, q = np.array([0.3, 0.3, 0.3]), 0.5
    mean = 0.0
    for y in np.ndindex(2, 2, 2):
        chance = np.prod([q if one else 1 - q for one in y])
        mean += chance * oc.t_cal(p, np.array(y), seed=0, draws=1).errors[0]
    assert mean == pytest.approx(0.2**2, abs=1e-12)


def test_the_level_is_kept(seed):
    """p ≤ 1/5 has a probability of 1/5 or less: of 400 tests more than 126 have it with one of 1e-7 at most."""
    rng = np.random.default_rng([seed, 11])
    times = 400
    rejected = 0
    for trial in range(times):
        p = rng.random(20) if trial % 2 else rng.integers(0, 4, 20) / 3
        rejected += oc.t_cal(p, rng.random(20) < p, seed=trial, draws=4).p_value <= 0.2
    assert binom.sf(126, times, 0.2) < 1e-7
    assert rejected <= 126


def test_it_sees_what_few_bins_do_not(seed):
    """Errors of ±0.4·min(p, 1 − p) that change sign 16 times: those of 8 bins cancel, and those of 16 do not.

    Of 4000 samples 4000·T has a mean of 53 and a standard deviation below 7 with 16 bins, 0.6 and 1 with 8, and 0 and 1
    where forecasts are right: each bound fails with a probability below 1e-6.
    """
    rng = np.random.default_rng([seed, 12])
    p = rng.random(4000)
    right = p + 0.4 * np.where(np.floor(16 * p) % 2 == 0, 1, -1) * np.minimum(p, 1 - p)
    y = rng.random(4000) < right
    found = oc.t_cal(p, y, seed=seed, draws=199)
    assert found.p_value <= 2 / 200
    assert found.errors[3] > 0.005 > 0.002 > found.errors[2]
    assert binned_ce(p, y, bins=16) > binned_ce(p, y, bins=8)
    assert "p = 0.0" in str(found)


def test_one_sample_and_certain_forecasts():
    assert oc.t_cal([0.4], [1], seed=0, draws=9).p_value == 1.0
    assert oc.t_cal([0.0, 1.0] * 5, [0, 1] * 5, seed=0, draws=9).p_value == 1.0
    assert oc.t_cal([0.0] * 5, [1] * 5, seed=0, draws=9).p_value == 0.1
    assert oc.t_cal([0.2, 0.7], [0, 1], seed=3) == oc.t_cal([0.2, 0.7], [0, 1], seed=3)
