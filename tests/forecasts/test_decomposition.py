"""The decomposition of scores, beside scikit-learn's isotonic regression and by its own laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

import onlinecal as oc

SCORES = {"brier": lambda p, y: (p - y) ** 2, "log": lambda p, y: -np.log(np.where(y == 1, p, 1.0 - p))}


def samples(seed, grid):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 400))
    p = np.round(rng.beta(1, 1, n) * grid) / grid if grid else rng.random(n)
    p = np.clip(p, 0.01, 0.99)
    return p, (rng.random(n) < p ** rng.uniform(0.3, 3)).astype(float)


@pytest.mark.parametrize("score", SCORES)
@given(seed=st.integers(0, 10**6), grid=st.sampled_from([0, 5, 30]))
def test_as_scikit_learn(score, seed, grid):
    p, y = samples(seed, grid)
    best = IsotonicRegression(y_min=0, y_max=1).fit(p, y).predict(p)
    base = np.full(len(y), y.mean())

    def of(q):
        with np.errstate(divide="ignore"):
            return SCORES[score](q, y).mean()

    found = oc.decomposition(oc.JointDistribution.from_samples(p, y), score)
    wanted = of(p), of(p) - of(best), of(base) - of(best), of(base)
    assert np.allclose(found, wanted, rtol=0, atol=1e-12)
    assert found.miscalibration >= 0
    assert found.discrimination >= 0


@given(seed=st.integers(0, 10**6), grid=st.sampled_from([0, 5, 30]))
def test_isotonic_is_a_mean_of_blocks(seed, grid):
    gamma = oc.JointDistribution.from_samples(*samples(seed, grid))
    fitted = oc.isotonic(gamma)
    assert (np.diff(fitted) >= 0).all()
    assert fitted.min() >= 0
    assert fitted.max() <= 1
    for value in np.unique(fitted):
        block = fitted == value
        assert gamma.positives[block].sum() / gamma.counts[block].sum() == pytest.approx(value, abs=1e-12)


def test_recalibrated_forecasts_have_no_miscalibration():
    p, y = samples(3, 30)
    gamma = oc.JointDistribution.from_samples(p, y)
    again = oc.JointDistribution.from_counts(oc.isotonic(gamma), gamma.counts, gamma.positives)
    assert oc.decomposition(again).miscalibration < 1e-15 < oc.decomposition(gamma).miscalibration


def test_impossible_outcome():
    gamma = oc.JointDistribution.from_samples([0.0, 1.0, 0.5], [1, 1, 0])
    found = oc.decomposition(gamma, "log")
    assert found.score == found.miscalibration == math.inf
    assert math.isfinite(found.discrimination)
