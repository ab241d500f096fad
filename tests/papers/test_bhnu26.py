"""Bairaktari, Hu, Nguyen and Ullman 2026: what can be estimated from samples, and what decision makers can rely on."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES, cdl, cutoff_ce, distance_lower, ece, scdl, smooth_ce
from tests.gammas_metric import ANY

ROUNDING = 1e-9


def test_example_2(seed):
    """Calibrated forecasts that are all distinct: the regret of the quadratic task stays at ⅙ and CDL at ¼, however
    many there are, while what can be estimated goes to 0.

    A sum of n terms of variance at most 1/16 is more than 6 standard deviations away with probability below 1e-8.
    """
    rng, n = np.random.default_rng(seed), 100_000
    p = rng.random(n)
    gamma = JointDistribution.from_samples(p, (rng.random(n) < p).astype(float))
    assert gamma.levels > 0.999 * n
    off = 6 * 0.25 / math.sqrt(n)
    assert oc.measures.cfdl(gamma, task="quadratic") == pytest.approx(1 / 6, abs=off)
    assert ece(gamma) == pytest.approx(1 / 3, abs=off)
    # The envelope's value at ½ is twice a supremum over thresholds of such sums: |E[(y − t) …]| = t(1 − t)/2 each.
    assert cdl(gamma) == pytest.approx(1 / 4, abs=4 * off)
    assert max(scdl(gamma), smooth_ce(gamma), cutoff_ce(gamma)) < 10 * off


@settings(deadline=None)
@given(gamma=ANY)
def test_theorem_6_1(gamma):
    """SCDL and the lower distance d bound each other by roots.

    Below: the forecasts rounded to the m* = 1/SCDL points of the minimum have CDL at most 4·SCDL, so E|Q − V| ≤ 2√SCDL
    by the quadratic task, and rounding moves them by 1/(2m*) at most: d ≤ 2√SCDL + SCDL/2. Above: SCDL_m of calibrated
    forecasts is 0 and moves with the forecasts by its modulus (Theorem 5.1).
    """
    value, lower = scdl(gamma), distance_lower(gamma)
    assert lower.lower <= 2.0 * math.sqrt(value) + value / 2.0 + ROUNDING
    assert value <= MEASURES["scdl"].modulus(lower.upper) + ROUNDING


def test_theorem_6_1_is_tight_above():
    # SCDL is of the order of the root of the lower distance: of the first of the two distributions of Theorem A.1.
    for epsilon in (0.05, 0.01, 0.002):
        gamma, _ = not_told_apart(epsilon)
        assert scdl(gamma) >= 0.2 * math.sqrt(distance_lower(gamma).upper)


def not_told_apart(epsilon):
    """Fair coins at ½ ± ε, and one forecast of ½ + ε that is ε² too low."""
    middle, most = 0.5 - epsilon, 0.5 + epsilon
    coins = JointDistribution.from_levels([middle, most], [0.5, 0.5], [0.5, 0.5])
    return coins, JointDistribution.from_levels([most], [1.0], [most + epsilon**2])


@pytest.mark.parametrize("epsilon", [0.1, 0.03, 0.01, 0.001])
def test_theorem_a_1(epsilon):
    """Two distributions of the same smCE ε²: whoever answers the forecast ½ + ε, in whatever way, has a regret of at
    least ε/6 in one of them.
    """
    coins, low = not_told_apart(epsilon)
    assert smooth_ce(coins) == pytest.approx(epsilon**2, rel=1e-9)
    assert smooth_ce(low) == pytest.approx(epsilon**2, rel=1e-9)
    # Act if the event is likelier than ½ + ε/2: payoffs y − ½ − ε/2 and 0. Acting is wrong in the first, always, and
    # right in the second.
    threshold = 0.5 + epsilon / 2
    wrong = threshold - 0.5, low.means[0] - threshold
    for share in np.linspace(0.0, 1.0, 101):  # how often ½ + ε is answered by acting
        regrets = coins.mass[1] * share * wrong[0], (1.0 - share) * wrong[1]
        assert max(regrets) >= epsilon / 6
    # Whoever believes the forecasts acts: the regret of the first is that of the task, whose payoffs are stretched.
    stretched = coins.mass[1] * wrong[0] / max(threshold, 1 - threshold)
    assert oc.tasks.swap_regret(coins, oc.tasks.v_shaped(threshold)) == pytest.approx(stretched, rel=1e-9)


@pytest.mark.parametrize("cells", [4, 16, 64])
def test_cutoff_calibration_hides_what_alternates(cells):
    """As in Theorem B.1: biases that alternate from cell to cell leave the cutoff error that of one cell, while those
    who answer each forecast best lose in every second cell.
    """
    bias = 0.1 / cells
    p = 0.5 + (np.arange(cells) - (cells - 1) / 2) * bias / cells
    q = p + bias * (-1.0) ** np.arange(cells)
    gamma = JointDistribution.from_levels(p, np.full(cells, 1 / cells), q)
    assert cutoff_ce(gamma) == pytest.approx(bias / cells, rel=1e-6)
    assert ece(gamma) == pytest.approx(bias, rel=1e-9)
    assert cdl(gamma) >= bias / 2


@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
def test_theorem_8_1(n):
    """Nothing that bounds swap regret is estimated better than 1/√n: forecasts of ½ for coins of ½, or of ½ + ½/√n.

    Their swap regrets are 0 and at least 1/√n, and no test tells n samples of one from those of the other with errors
    that add to less than 0.6.
    """
    off = 0.5 / math.sqrt(n)
    fair, biased = (JointDistribution.from_levels([0.5], [1.0], [0.5 + x]) for x in (0.0, off))
    k = np.arange(n + 1)
    apart = 0.5 * np.abs(binom.pmf(k, n, 0.5) - binom.pmf(k, n, 0.5 + off)).sum()
    assert apart < 0.4
    # The task that acts above ½: who acts at ½ by a tie, or not, loses nothing when fair, and the bias when not.
    assert cdl(fair) == scdl(fair) == 0.0
    assert cdl(biased) == pytest.approx(2 * off, rel=0.1)
    # So SCDL too, which is at least a quarter of the regret after rounding, is as far apart as that by a constant.
    assert scdl(biased) >= off / 2


@pytest.mark.parametrize("n", [16, 64, 256, 1024])
def test_what_samples_of_a_calibrated_forecast_show(n):
    """The other side of Theorem 8.1, without a random number: E SCDL of n fair coins called ½ is of the order 1/√n."""
    k = np.arange(n + 1)
    values = np.array([scdl(JointDistribution.from_counts([0.5], [n], [ones])) for ones in k])
    mean = float(binom.pmf(k, n, 0.5) @ values)
    assert 0.2 <= mean * math.sqrt(n) <= 0.8
