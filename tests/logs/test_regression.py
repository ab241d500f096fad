"""Scores in three parts beside scikit-learn, the monotone curve with its band, and kernel regression with its band."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.isotonic import IsotonicRegression

import onlinecal as oc
from onlinecal.logs import regression
from onlinecal.logs.clusters import Clustered
from onlinecal.logs.regression import LEAST, recalibration, smoothed
from onlinecal.logs.resampling import Resample
from onlinecal.measures import smooth_ece

G = oc.JointDistribution
SCORES = {"brier": lambda p, y: (p - y) ** 2, "log": lambda p, y: -np.log(np.where(y == 1, p, 1.0 - p))}


@pytest.mark.parametrize("score", SCORES)
@given(seed=st.integers(0, 10**6), grid=st.sampled_from([0, 5, 30]))
def test_as_scikit_learn(score, seed, grid):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 400))
    p = np.round(rng.beta(1, 1, n) * grid) / grid if grid else rng.random(n)
    p = np.clip(p, 0.01, 0.99)
    y = (rng.random(n) < p ** rng.uniform(0.3, 3)).astype(float)
    gamma = G.from_samples(p, y)
    best = IsotonicRegression(y_min=0, y_max=1).fit(p, y).predict(p)
    assert oc.isotonic(gamma)[np.searchsorted(gamma.predictions, p)] == pytest.approx(best, abs=1e-12)

    def of(q):
        with np.errstate(divide="ignore"):
            return SCORES[score](q, y).mean()

    found, base = oc.decomposition(gamma, score), of(np.full(n, y.mean()))
    assert np.allclose(found, (of(p), of(p) - of(best), base - of(best), base), rtol=0, atol=1e-12)
    assert found.miscalibration >= 0 <= found.discrimination
    mended = G.from_counts(oc.isotonic(gamma), gamma.counts, gamma.positives)
    assert oc.decomposition(mended, score).miscalibration < 1e-13


def test_impossible_outcome():
    found = oc.decomposition(G.from_samples([0.0, 1.0, 0.5], [1, 1, 0]), "log")
    assert found.score == found.miscalibration == math.inf
    assert math.isfinite(found.discrimination)


# ---------------------------------------------------------------- the monotone curve


def test_the_band_is_between_order_statistics():
    """Of one level the curve is the mean outcome. 39 draws leave out the least and the largest of a binomial law."""
    gamma = G.from_counts([0.3], [50], [40])
    found = recalibration(gamma, draws=39, seed=4)
    rng = np.random.default_rng(4)
    draws = np.sort([rng.binomial([50], [0.3])[0] / 50 for _ in range(39)])
    assert (found.lower[0], found.upper[0]) == (draws[0], draws[-1])
    # The band of all values: as many further draws leave it as may, in units of the ends' distance from the middle.
    down, middle, up = draws[19] - draws[0] + 0.01, draws[19], draws[-1] - draws[19] + 0.01
    more = [rng.binomial([50], [0.3])[0] / 50 - middle for _ in range(39)]
    times = sorted(max(x / up, -x / down) for x in more)[37]
    assert found.lowest[0] == pytest.approx(max(min(middle - times * down, draws[0]), 0.0))
    assert found.highest[0] == pytest.approx(min(max(middle + times * up, draws[-1]), 1.0))
    # Of several levels, with outcomes drawn by clusters: the isotonic regression of each draw.
    p, y = np.repeat([0.2, 0.3, 0.6, 0.7], 60), np.arange(240) % 3 < 1
    gamma = G.from_samples(p, y)
    resample = Clustered(gamma, (p, y * 1.0, np.ones(240)), np.arange(240) // 4)
    found, rng = recalibration(gamma, draws=39, seed=4, resample=resample), np.random.default_rng(4)
    draws = [oc.isotonic(resample.calibrated(rng)) for _ in range(39)]
    assert (found.lower.tolist(), found.upper.tolist()) == (
        np.min(draws, 0).tolist(),
        np.max(draws, 0).tolist(),
    )
    gamma = G.from_counts([0.3], [50], [40])
    # Of 1000 levels none is rounded.
    v = np.arange(1000) / 1000 + 0.0004
    for levels in (v, np.append(v, 0.9999)):
        fine = recalibration(G.from_samples(levels, levels > 0.5), draws=1)
        assert fine.rounded is (len(levels) == 1001)
        assert np.array_equal(fine.predictions, levels) is not fine.rounded
    few = recalibration(gamma, draws=38)
    assert (few.lower[0], few.upper[0]) == (0.0, 1.0)
    assert np.isnan(recalibration(gamma, level=0.0).lower).all()
    # Of weights that are not whole there are no samples to draw again.
    assert np.isnan(recalibration(G.from_counts([0.3, 0.6], [50, 10.5], [4, 5])).lower).all()


def test_many_levels_are_rounded_and_the_rest_is_the_same():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    gamma = G.from_samples(p, rng.random(3000) < p)
    found, grid = recalibration(gamma, draws=39), gamma.round(1000)[0]
    assert found.rounded
    assert (found.predictions == grid.predictions).all()
    assert (found.means == oc.isotonic(grid)).all()
    # Twice the same samples are drawn as counts, and once as single outcomes: both bands are about the diagonal.
    middle = (found.predictions > 0.3) & (found.predictions < 0.7)
    for each in (found, recalibration(gamma.merge(gamma), draws=39)):
        assert (each.lower <= each.upper).all()
        assert np.abs(0.5 * (each.lower + each.upper) - each.predictions)[middle].mean() < 0.05


def test_sums_of_weights_are_rounded_up(seed):
    generator = np.random.default_rng(seed)
    p, y = 1.0 - np.arange(9_000) % 20 * 1e-9, np.arange(9_000) % 2.0
    p[1::3] /= 2.0
    w = 10.0 ** generator.uniform(-6, 6, len(p))
    gamma = G.from_samples(p, y, weights=w)
    found = recalibration(gamma, draws=40, resample=Resample(gamma, (p, y, w)))
    assert np.all(found.lowest <= found.highest)


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("n", [60, 200])
def test_calibrated_curves_stay_in_the_band_of_all_values(seed, n, skewed):
    """The whole curve leaves it in 10 % of runs at most; of 400, in more than the quantile with probability 1e-6.

    Controls: it leaves the band of each value more often. A forecast that is off leaves that of all in half of runs
    or more: of 100, in more than 25 but for 3e-7.
    """
    rng, outside, single, off = np.random.default_rng([seed, n]), 0, 0, 0
    for run in range(400):
        p = rng.random(n) ** (4 if skewed else 1)
        for truth in (p, p**4)[: 1 + (run % 4 == 0)]:
            one = recalibration(G.from_samples(p, rng.random(n) < truth), level=0.9, draws=19, seed=run)
            left = (one.means < one.lowest - 1e-12) | (one.means > one.highest + 1e-12)
            if truth is p:
                outside += left.any()
                single += ((one.means < one.lower - 1e-12) | (one.means > one.upper + 1e-12)).any()
            else:
                off += left.any()
    most = stats.binom.isf(1e-6, 400, 0.1)
    assert outside <= most < single
    assert off > 25


# ---------------------------------------------------------------- the smoothed curve


def reflected(t, v, sigma):
    """The density at t of v plus a Gaussian, reflected at 0 and 1 until it is in [0, 1]."""
    images = [s * v + 2 * m for m in range(-12, 13) for s in (1, -1)]
    return sum(math.exp(-0.5 * ((t - x) / sigma) ** 2) for x in images) / (sigma * math.sqrt(2 * math.pi))


@pytest.mark.parametrize("sigma", [0.01, 0.07, 0.3, 1.0])
def test_the_regression_is_that_of_the_definition(sigma):
    rng = np.random.default_rng(3)
    v = np.sort(np.append(rng.random(12), [0.0, 1.0]))
    counts = rng.integers(1, 9, 14).astype(float)
    gamma = G.from_counts(v, counts, rng.binomial(counts.astype(int), 0.4))
    found = smoothed(gamma, sigma=sigma, points=23)
    p = np.repeat(v, counts.astype(int))
    y = np.arange(len(p)) - np.searchsorted(p, p) < np.repeat(gamma.positives, counts.astype(int))
    resample = Clustered(gamma, (p, y * 1.0, np.ones(len(p))), np.arange(len(p)) // 2)
    near = smoothed(gamma, sigma=sigma, points=23, resample=resample).samples
    for i, (t, mean, density, samples) in enumerate(
        zip(found.at, found.means, found.density, found.samples, strict=True)
    ):
        kernel = np.array([reflected(t, x, sigma) for x in v])
        assert density == pytest.approx((gamma.mass * kernel).sum(), rel=1e-9, abs=1e-300)
        if density > 1e-200:
            weights = gamma.counts * kernel
            assert mean == pytest.approx((weights * gamma.means).sum() / weights.sum(), abs=1e-9)
            assert samples == pytest.approx(weights.sum() ** 2 / (gamma.counts * kernel**2).sum(), rel=1e-9)
            (own,) = resample.samples_near(kernel[None], np.arange(14), np.array([mean]))
            assert near[i] == pytest.approx(own, rel=1e-6)


@pytest.mark.parametrize("levels", [(0.98, 1.0), (0.0, 0.02)])
def test_far_from_all_levels_both_reflections_of_a_level_count(levels):
    """At the other end they are as near as the level itself."""
    gamma = G.from_counts(levels, [10, 10], [2, 9])
    found = smoothed(gamma, sigma=0.1, points=2)
    for t, mean in zip(found.at, found.means, strict=True):
        weights = [reflected(t, v, 0.1) for v in levels]
        assert mean == pytest.approx(np.average([0.2, 0.9], weights=weights), rel=1e-9)


def test_its_width_its_ends_and_what_is_far_from_all_levels():
    found = smoothed([0.2, 0.2, 0.9], [0, 1, 1], sigma=LEAST, points=101)
    assert found.means[(found.at > 0.0) & (found.at < 0.54)] == pytest.approx(0.5)
    assert found.means[found.at > 0.56] == pytest.approx(1.0)
    assert found.samples[found.at < 0.54] == pytest.approx(2.0)
    rng = np.random.default_rng(0)
    p = rng.random(300)
    gamma = G.from_samples(p, rng.random(300) < p**2)
    assert smoothed(gamma).sigma == smooth_ece(gamma) > LEAST
    assert smoothed(G.from_counts([0.5], [10], [5])).sigma == LEAST
    for y, ends in ((0, (0.0, 1.0 - 0.025 ** (1 / 20))), (1, (0.025 ** (1 / 20), 1.0))):
        band = smoothed([0.3] * 20, [y] * 20, sigma=0.1).band(0.95)
        assert [np.unique(end.round(12)).tolist() for end in band] == [[pytest.approx(x)] for x in ends]


def test_many_levels_are_spread_on_a_grid(monkeypatch):
    """As near to the exact one as the step over σ, squared."""
    rng = np.random.default_rng(0)
    p = rng.random(1500)
    gamma = G.from_samples(p, rng.random(1500) < p)
    spread = {sigma: smoothed(gamma, sigma=sigma) for sigma in (0.005, 0.05)}
    resample = Resample(gamma, (gamma.predictions, gamma.positives, np.ones(1500)))
    of_rows = {sigma: smoothed(gamma, sigma=sigma, resample=resample).samples for sigma in spread}
    few = G.from_counts([0.123, 0.5, 0.789], [10, 20, 30], [1, 9, 25])
    plain = smoothed(few, sigma=0.05).means
    for most in (3, 2):
        monkeypatch.setattr(regression, "MOST_LEVELS", most)
        assert np.array_equal(smoothed(few, sigma=0.05).means, plain) is (most == 3)
    monkeypatch.setattr(regression, "MOST_LEVELS", 1500)
    for sigma, found in spread.items():
        exact = smoothed(gamma, sigma=sigma)
        assert np.abs(found.means - exact.means).max() < 0.5 * (0.001 / sigma) ** 2
        assert found.density == pytest.approx(exact.density, rel=(0.001 / sigma) ** 2)
        assert found.samples == pytest.approx(exact.samples, rel=0.2 * 0.001 / sigma)
        assert of_rows[sigma] == pytest.approx(exact.samples, rel=2.0 * 0.001 / sigma)


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
