"""Bairaktari, Hu, Nguyen and Ullman 2026: what can be estimated from samples, and what decision makers can rely on."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import cdl, cutoff_ce, ece, scdl, smooth_ce
from onlinecal.measures.soft_binned import SoftRounding


def test_example_2(seed):
    """Of calibrated forecasts, all distinct, the regret of the quadratic task stays at ⅙ and CDL at ¼.

    This holds however many there are, while what can be estimated goes to 0.

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


def not_told_apart(epsilon):
    """Fair coins at ½ ± ε, and one forecast of ½ + ε that is ε² too low."""
    middle, most = 0.5 - epsilon, 0.5 + epsilon
    coins = JointDistribution.from_levels([middle, most], [0.5, 0.5], [0.5, 0.5])
    return coins, JointDistribution.from_levels([most], [1.0], [most + epsilon**2])


@pytest.mark.parametrize("epsilon", [0.1, 0.03, 0.01, 0.001])
def test_theorem_a_1(epsilon):
    """Two distributions have the same smCE ε². Every way to answer the forecast ½ + ε has a regret of at least ε/6 in
    one of them.
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
    # Those that believe the forecasts act: the regret of the first is that of the task, with stretched payoffs.
    stretched = coins.mass[1] * wrong[0] / max(threshold, 1 - threshold)
    assert oc.tasks.swap_regret(coins, oc.tasks.v_shaped(threshold)) == pytest.approx(stretched, rel=1e-9)


def alternating(cells):
    """Forecasts near ½ with alternating biases."""
    bias = 0.1 / cells
    p = 0.5 + (np.arange(cells) - (cells - 1) / 2) * bias / cells
    return JointDistribution.from_levels(p, np.full(cells, 1 / cells), p + bias * (-1.0) ** np.arange(cells))


@pytest.mark.parametrize("points", [3, 6, 16])
def test_theorem_b_1_has_the_exponent_two_thirds(points):
    """Forecasts from ¼ to ¾ with alternating biases of ¼, each of mass 4/points³, and 0 otherwise: the regret
    of acting on them in the quadratic task is ε^{2/3}/4 at a cutoff error of ε. No way to answer them has less than
    ε^{2/3}/100 in all such games.
    """
    v = np.append(0.0, np.linspace(0.25, 0.75, points))
    mass = np.append(1 - 4 / points**2, np.full(points, 4 / points**3))
    gamma = JointDistribution.from_levels(v, mass, v + np.append(0.0, 0.25 * (-1.0) ** np.arange(points)))
    assert cutoff_ce(gamma) == pytest.approx(points**-3, rel=1e-6)
    assert oc.tasks.swap_regret(gamma, "quadratic") == pytest.approx(0.25 * points**-2, rel=1e-6)


#
# The names of its rows are lost in the text; §1.2 and §1.3 say which they are. Actionable: some response that knows the
# value alone, and no more of Γ, does well. Its swap regret is at most a constant times the value, in every task or
# against every monotone swap. Testable at n^−a: the mean over n samples of any calibrated distribution is of this
# order, at most.


def root_smooth(gamma):
    return math.sqrt(smooth_ce(gamma))


def of_thirds(gamma):
    """Binned ECE at m = n^(1/3), of forecasts that are rounded down."""
    return ece(oc.responses.RoundedDown(round(gamma.weight ** (1 / 3))).beliefs(gamma))


#: against which swaps it bounds the regret, and the exponent a
TABLE_1 = {
    ece: ("all", 0),
    cdl: ("all", 0),
    smooth_ce: ("none", 1 / 2),
    root_smooth: ("all", 1 / 4),
    cutoff_ce: ("monotone", 1 / 2),
    of_thirds: ("all", 1 / 3),
    scdl: ("all", 1 / 2),
}


@pytest.mark.parametrize(("measure", "exponent"), [(f, a) for f, (_, a) in TABLE_1.items()])
def test_table_1_testability(measure, exponent, seed):
    """n^a times the mean of μ over calibrated samples stays as it is, up to a factor of 1.5, where n grows 64 times.

    Forecasts that are all distinct for binned ECE, ECE and CDL; else fair coins, without a random number. The mean of
    N/n samples of the former is off by more than √(2 ln(2·10⁹)/N) with a probability of at most 1e-9. By McDiarmid:
    one of n rounds moves none of the three by more than 2/n.
    """
    rounds = 2_048_000

    def scaled(n):
        if exponent in (0, 1 / 3):
            rng = np.random.default_rng([seed, n])
            drawn = ((p, rng.random(n) < p) for p in rng.random((rounds // n, n)))
            values = [measure(JointDistribution.from_samples(p, y)) for p, y in drawn]
            mean, off = float(np.mean(values)), math.sqrt(2 * math.log(2e9) / rounds)
        else:
            k = np.arange(n + 1)
            law = binom.pmf(k, n, 0.5)
            likely = law > 1e-12 / n  # the others add 1e-12 at most
            values = [measure(JointDistribution.from_counts([0.5], [n], [ones])) for ones in k[likely]]
            mean, off = float(law[likely] @ values), 1e-12
        return n**exponent * (mean - off), n**exponent * (mean + off)

    (low, high), (last_low, last_high) = scaled(1000), scaled(64_000)
    # At an exponent that differs by 0.2 the one would be 2.3 times the other.
    assert low / 1.5 <= last_high
    assert last_low <= 1.5 * high


def test_table_1_what_is_not_actionable():
    """smCE does not bound the regret, whatever the response (`test_theorem_a_1`), nor the cutoff error that of best
    responses.
    """
    assert [name for name, (swaps, _) in TABLE_1.items() if swaps != "all"] == [smooth_ce, cutoff_ce]
    few, more, most = (cdl(gamma) / cutoff_ce(gamma) for gamma in map(alternating, (8, 32, 128)))
    assert most > 3 * more > 9 * few


@pytest.mark.parametrize("n", [500, 20_000])
def test_theorem_4_4(n, seed):
    """Forecasts rounded at random, once each, have little swap regret in all tasks: CDL is below a bound of our own.

    Outcomes are anything; each of the 6 cases fails with a probability of 1e-9.
    """
    rng = np.random.default_rng([seed, n])
    p = rng.random(n)
    for y in (rng.random(n) < p, rng.random(n) < 1 - p, np.arange(n) % 2 == 0):
        gamma = JointDistribution.from_samples(p, y)
        for m in {oc.measures.soft_rounding(gamma).bins, 8}:
            drawn = SoftRounding(m).draw(p, seed=seed)
            chance = math.sqrt((m + 1) / n) + math.sqrt(2 * math.log(1e9) / n)
            assert cdl(drawn, y) <= 2 * (oc.measures.scdl_binned(gamma, m=m) + 1 / m + chance)


def test_draws_have_the_law_of_the_rounding(seed):
    """Each count is a sum of n independent draws: √(2 V ln(2/δ)) + ln(2/δ) more with δ = 1e-9 at most (Bernstein)."""
    n, m = 30_000, 7
    p = np.random.default_rng([seed, 5]).random(n)
    drawn = SoftRounding(m).draw(p, seed=seed)
    assert (np.abs(drawn - p) < 1 / m).all()
    law = SoftRounding(m).rounded(JointDistribution.from_samples(p, np.zeros(n)))
    counts = np.array([(drawn == v).sum() for v in law.predictions])
    assert counts.sum() == n
    assert (np.abs(counts - law.counts) <= np.sqrt(2 * law.counts * math.log(2e9)) + math.log(2e9)).all()
