"""The monotone recalibration and the band in which it lies for calibrated forecasts."""

import numpy as np

import onlinecal as oc
from onlinecal.forecasts.consistency import recalibration

G = oc.JointDistribution


def test_the_curve_is_isotonic_regression():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 31, 400) / 30
    gamma = G.from_samples(p, rng.random(400) < p)
    found = recalibration(gamma, level=0.0)
    assert (found.predictions == gamma.predictions).all()
    assert (found.means == oc.isotonic(gamma)).all()
    assert np.isnan(found.lower).all()
    assert not found.rounded


def test_the_band_is_between_order_statistics():
    """Of one level the curve is the mean outcome: 39 draws leave out the least and the largest of a binomial law."""
    gamma = G.from_counts([0.3], [50], [40])
    found = recalibration(gamma, draws=39, seed=4)
    rng = np.random.default_rng(4)
    draws = np.sort([rng.binomial([50], [0.3])[0] / 50 for _ in range(39)])
    assert (found.lower[0], found.upper[0]) == (draws[0], draws[-1])
    none = recalibration(gamma, draws=38)
    assert (none.lower[0], none.upper[0]) == (0.0, 1.0)


def test_many_levels_are_rounded_and_the_rest_is_the_same():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    gamma = G.from_samples(p, rng.random(3000) < p)
    found = recalibration(gamma, draws=39)
    grid = gamma.round(1000)[0]
    assert found.rounded
    assert (found.predictions == grid.predictions).all()
    assert (found.means == oc.isotonic(grid)).all()
    assert (found.lower <= found.upper).all()
    # Twice the same samples are drawn as counts, and once as single outcomes: both bands are about the diagonal.
    double = recalibration(gamma.merge(gamma), draws=39)
    middle = (found.predictions > 0.3) & (found.predictions < 0.7)
    for each in (found, double):
        assert np.abs(0.5 * (each.lower + each.upper) - each.predictions)[middle].mean() < 0.05


def shares(map_, runs, seed, n=60):
    """Of each run, at which share of the samples the curve lies in a band of 80 %."""
    rng = np.random.default_rng([seed, 11])
    v, found = np.linspace(0.05, 0.95, 10), []
    for run in range(runs):
        counts = np.full(10, n // 10)
        gamma = G.from_counts(v, counts, rng.binomial(counts, map_(v)))
        one = recalibration(gamma, level=0.8, draws=19, seed=run)
        inside = (one.means >= one.lower - 1e-12) & (one.means <= one.upper + 1e-12)
        found.append(gamma.mass @ inside)
    return np.array(found)


def test_calibrated_forecasts_stay_in_the_band(seed):
    """At each level with probability 80 % at least, as draws and samples are exchangeable; a mean of 400 runs below
    70 % has probability at most exp(−2·400·0.1²) = 3e-4 by Hoeffding's inequality, and 9 standard errors in truth."""
    assert shares(lambda v: v, 400, seed).mean() >= 0.7


def test_others_do_not(seed):
    """The control."""
    assert shares(lambda v: np.clip(0.5 + 3 * (v - 0.5), 0, 1), 100, seed, n=600).mean() < 0.6
