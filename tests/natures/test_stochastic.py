"""Natures whose rounds are independent: their rules and what they reveal."""

import math

import numpy as np
import pytest

from onlinecal.natures import (
    Bernoulli,
    Drift,
    LogisticFeatures,
    Sawtooth,
    Sinusoid,
    UniformTruth,
)
from tests.by_hand import own_uniforms, revealed, truths


def test_rules():
    assert (truths(Bernoulli(0.3), 5) == 0.3).all()
    assert truths(Drift(), 4)[:, 0].tolist() == pytest.approx([1 / 8, 3 / 8, 5 / 8, 7 / 8])
    assert truths(Drift(1.0, 0.5), 2)[:, 0].tolist() == pytest.approx([0.875, 0.625])
    assert truths(Drift(0.7, 0.7), 3)[:, 0].tolist() == pytest.approx([0.7] * 3)
    assert 0 <= truths(Drift(), 1)[0, 0] <= 1


def test_uniform_truths_are_uniform_and_known_before(seed):
    q = truths(UniformTruth(), 4000, runs=2, seed=seed)
    # Kolmogorov–Smirnov for 8000 values: above 4.5/√8000 with probability below 2·exp(−2·4.5²) < 1e-17.
    ranks = np.sort(q.ravel())
    assert np.abs(ranks - (np.arange(8000) + 0.5) / 8000).max() < 4.5 / math.sqrt(8000)
    assert (revealed(UniformTruth(), 4000, 2, seed)["truth"] == q).all()
    narrow = UniformTruth(0.2, 0.6)
    own = own_uniforms(narrow, 4000, 2, seed)
    assert truths(narrow, 4000, 2, seed) == pytest.approx(0.2 + 0.4 * own, abs=1e-15)
    assert (truths(UniformTruth(1.0, 1.0), 9) == 1.0).all()


def test_sawtooth_is_drift_in_every_cycle():
    saw = truths(Sawtooth(4), 1000)[:, 0]
    drift = truths(Drift(), 250)[:, 0]
    assert saw == pytest.approx(np.tile(drift, 4), abs=1e-12)
    assert truths(Sawtooth(1), 60) == pytest.approx(truths(Drift(), 60), abs=1e-15)
    assert (truths(Sawtooth("T^(1/2)/5"), 100) == truths(Sawtooth(2), 100)).all()
    assert (truths(Sawtooth(0), 5) == 0).all()
    assert truths(Sawtooth(1e9), 1000).max() <= 1


def test_sinusoid():
    q = truths(Sinusoid(period=40, amplitude=0.3), 100)[:, 0]
    assert q == pytest.approx([0.5 + 0.3 * math.sin(2 * math.pi * t / 40) for t in range(1, 101)], abs=1e-12)
    full = truths(Sinusoid(), 1000)
    assert full.max() == pytest.approx(1, abs=1e-9)
    assert 0 <= full.min() <= 1e-9
    assert full.max() <= 1
    assert (full[:100] == truths(Sinusoid(100), 1000)[:100]).all()
    assert truths(Sinusoid(), 3).shape == (3, 3)  # the period is never below a round


def test_features_give_the_truth_through_the_curve(seed):
    nature = LogisticFeatures(slope=-3.0, bend=2.0)
    q, shown = truths(nature, 2000, 2, seed), revealed(nature, 2000, 2, seed)
    assert set(shown) == {"features"} == nature.reveals
    x = shown["features"]
    assert q == pytest.approx((1 / (1 + np.exp(3 * x))) ** 2, abs=1e-12)
    # Kolmogorov–Smirnov for 4000 values: above 4/√4000 with probability below 2·exp(−32) < 3e-14.
    ranks = (np.sort(x.ravel()) + 1) / 2
    assert np.abs(ranks - (np.arange(4000) + 0.5) / 4000).max() < 4 / math.sqrt(4000)
