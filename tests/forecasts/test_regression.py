"""Kernel regression of outcomes on predictions, and how often its band holds what it is for."""

import math

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.forecasts import regression
from onlinecal.forecasts.regression import LEAST, smoothed
from onlinecal.measures import smooth_ece

G = oc.JointDistribution


def reflected(t, v, sigma):
    """The density at t of v plus a Gaussian, reflected at 0 and 1 until it is in [0, 1]."""
    images = [s * v + 2 * m for m in range(-12, 13) for s in (1, -1)]
    return sum(math.exp(-0.5 * ((t - image) / sigma) ** 2) for image in images) / (
        sigma * math.sqrt(2 * math.pi)
    )


@pytest.mark.parametrize("sigma", [0.01, 0.07, 0.3, 1.0])
def test_the_regression_is_that_of_the_definition(sigma):
    rng = np.random.default_rng(3)
    v = np.sort(np.append(rng.random(12), [0.0, 1.0]))
    counts = rng.integers(1, 9, 14).astype(float)
    gamma = G.from_counts(v, counts, rng.binomial(counts.astype(int), 0.4))
    found = smoothed(gamma, sigma=sigma, points=23)
    for t, mean, density, samples in zip(found.at, found.means, found.density, found.samples, strict=True):
        kernel = np.array([reflected(t, x, sigma) for x in v])
        assert density == pytest.approx((gamma.mass * kernel).sum(), rel=1e-9, abs=1e-300)
        if density > 1e-200:
            weights = gamma.counts * kernel
            assert mean == pytest.approx((weights * gamma.means).sum() / weights.sum(), abs=1e-9)
            assert samples == pytest.approx(weights.sum() ** 2 / (gamma.counts * kernel**2).sum(), rel=1e-9)


def test_far_from_all_levels_it_is_the_mean_of_the_nearest():
    found = smoothed([0.2, 0.2, 0.9], [0, 1, 1], sigma=LEAST, points=101)
    assert found.means[(found.at > 0.0) & (found.at < 0.54)] == pytest.approx(0.5)
    assert found.means[found.at > 0.56] == pytest.approx(1.0)
    assert found.samples[found.at < 0.54] == pytest.approx(2.0)


def test_the_width_is_smooth_ece_or_the_least():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    gamma = G.from_samples(p, rng.random(300) < p**2)
    assert smoothed(gamma).sigma == smooth_ece(gamma) > LEAST
    assert smoothed(G.from_counts([0.5], [10], [5])).sigma == LEAST


def test_the_density_has_integral_one():
    rng = np.random.default_rng(0)
    for sigma in (0.01, 0.2):
        found = smoothed(rng.random(50) ** 4, rng.integers(0, 2, 50), sigma=sigma, points=2001)
        assert np.trapezoid(found.density, found.at) == pytest.approx(1.0, abs=1e-3)


def test_many_levels_are_spread_on_a_grid(monkeypatch):
    """As near to the exact one as the step over σ, squared."""
    rng = np.random.default_rng(0)
    p = rng.random(1500)
    gamma = G.from_samples(p, rng.random(1500) < p)
    spread = {sigma: smoothed(gamma, sigma=sigma) for sigma in (0.005, 0.05)}
    monkeypatch.setattr(regression, "MOST_LEVELS", 1500)
    for sigma, found in spread.items():
        exact = smoothed(gamma, sigma=sigma)
        assert np.abs(found.means - exact.means).max() < 0.5 * (0.001 / sigma) ** 2
        assert found.density == pytest.approx(exact.density, rel=(0.001 / sigma) ** 2)
        assert found.samples == pytest.approx(exact.samples, rel=0.2 * 0.001 / sigma)


def test_ends_of_the_band():
    none, all_ = (smoothed([0.3] * 20, [y] * 20, sigma=0.1) for y in (0, 1))
    low, high = none.band(0.95)
    assert low.tolist() == [0.0] * len(low)
    assert high == pytest.approx(1.0 - 0.025 ** (1 / 20))  # of Clopper and Pearson, in closed form
    low, high = all_.band(0.95)
    assert low == pytest.approx(0.025 ** (1 / 20))
    assert high.tolist() == [1.0] * len(high)


DESIGNS = {
    "calibrated": (np.linspace(0, 1, 21), lambda v: v),
    "off": (np.linspace(0, 1, 201), lambda v: np.clip(v + 0.1 * np.sin(6 * v), 0, 1)),
    "rare": (np.linspace(0, 0.05, 201), lambda v: 2 * v),
    "strong": (np.linspace(0, 1, 11), lambda v: v**3),
}


def coverage(name, samples, runs, seed, shorter=1.0):
    """Of each run, the share of the density of predictions at which the band holds the population's smoothed mean."""
    rng = np.random.default_rng([seed, samples])
    v, q = DESIGNS[name][0], DESIGNS[name][1](DESIGNS[name][0])
    truth, shares = G.from_levels(v, np.full(len(v), 1 / len(v)), q), []
    for _ in range(runs):
        counts = rng.multinomial(samples, truth.mass)
        there = counts > 0
        own = G.from_counts(v[there], counts[there], rng.binomial(counts, q)[there])
        found = smoothed(own, points=101)
        real = smoothed(truth, sigma=found.sigma, points=101)
        low, high = (found.means + shorter * (end - found.means) for end in found.band(0.95))
        inside = (low <= real.means + 1e-9) & (real.means <= high + 1e-9)
        shares.append((inside * real.density).sum() / real.density.sum())
    return np.array(shares)


@pytest.mark.parametrize("samples", [30, 300])
@pytest.mark.parametrize("name", DESIGNS)
def test_the_band_holds_the_smoothed_mean(name, samples, seed):
    """At least 93 % on average, up to five standard errors of the simulation: 3e-7 by the normal law."""
    shares = coverage(name, samples, 60, seed)
    assert shares.mean() >= 0.93 - 5 * max(shares.std(), 0.05) / 60**0.5


def test_a_band_of_half_the_width_does_not(seed):
    """The control, for which coverage is near 70 %."""
    shares = coverage("calibrated", 300, 60, seed, shorter=0.5)
    assert shares.mean() < 0.93 - 5 * max(shares.std(), 0.05) / 60**0.5
