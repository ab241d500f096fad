"""Bairaktari, Hu, Nguyen and Ullman 2026: what can be estimated from samples, and what decision makers can rely on."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import cdl, cutoff_ce, distance_lower, ece, scdl, smooth_ce
from onlinecal.measures.soft_binned import SoftRounding
from tests.oracles.moduli import MODULI
from tests.strategies import ANY

ROUNDING = 1e-9


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


@given(gamma=ANY)
def test_theorem_6_1(gamma):
    """SCDL and the lower distance d bound each other by roots.

    Below: the forecasts rounded to the m* = 1/SCDL points of the minimum have CDL at most 4·SCDL. So E|Q − V| ≤ 2√SCDL
    by the quadratic task. Rounding moves them by 1/(2m*) at most: d ≤ 2√SCDL + SCDL/2. Above: SCDL_m of calibrated
    forecasts is 0 and moves with the forecasts by its modulus (Theorem 5.1).
    """
    value, lower = scdl(gamma), distance_lower(gamma)
    assert lower.lower <= 2.0 * math.sqrt(value) + value / 2.0 + ROUNDING
    assert value <= MODULI["scdl"](lower.upper) + ROUNDING


def test_theorem_6_1_is_tight_above():
    # SCDL is of the order of the root of the lower distance, for the first distribution of Theorem A.1.
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


#: answers to forecasts of 0 … 1, each a law over the actions 0 … 1, all in steps of 1/STEPS
STEPS = 480
ACTIONS = np.arange(STEPS + 1) / STEPS
ERRORS = (ACTIONS - ACTIONS[:, None]) ** 2


def regret_of(answers, mass, means):
    """Swap regret of random answers in the quadratic task, E[(a − E[y | a])²], for mass and mean at each forecast."""
    chosen = mass @ answers
    means = np.divide((mass * means) @ answers, chosen, out=ACTIONS.copy(), where=chosen > 0)
    return float(chosen @ (ACTIONS - means) ** 2)


def beyond_cutoffs(points):
    """`points` forecasts from ¼ to ¾ with alternating biases of ¼, each of mass 4/points³; 0 for all other rounds."""
    at = np.rint(STEPS * np.linspace(0.25, 0.75, points)).astype(int)
    mass, means = np.zeros(STEPS + 1), ACTIONS.copy()
    mass[at], means[at] = 4 / points**3, ACTIONS[at] + 0.25 * (-1.0) ** np.arange(points)
    mass[0] = 1 - mass.sum()
    return mass, means


def shares(*rows):
    """Answers from unnormalised weights of all pairs of forecast and action."""
    return np.array(rows) / np.sum(rows, axis=1, keepdims=True)


WIDE = np.abs(ACTIONS - ACTIONS[:, None])
ANSWERS = {
    "the forecast": np.eye(STEPS + 1),
    "rounded to tenths": np.eye(STEPS + 1)[np.rint(STEPS * np.round(ACTIONS, 1)).astype(int)],
    "rounded to thirds": np.eye(STEPS + 1)[np.rint(STEPS * np.round(3 * ACTIONS) / 3).astype(int)],
    "one half": np.eye(STEPS + 1)[np.full(STEPS + 1, STEPS // 2)],
    **{f"with noise of {s:g}": shares(*np.exp(-((WIDE / s) ** 2) / 2)) for s in (0.01, 0.03, 0.1, 0.3)},
    **{f"even within {s:g}": shares(*(s >= WIDE)) for s in (0.02, 0.05, 0.13, 0.3)},
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("points", [3, 4, 6, 9, 16])
def test_theorem_b_1(name, points):
    """However forecasts are answered, at random too, some distribution is bad for the answers. Its cutoff error is
    ε = 1/points³ at most, its swap regret in the quadratic task at least ε^{2/3}/100. Constants and proof are ours,
    for the formulas are lost in our copy.

    Let s = 0.01/K² for K ≥ 3 points. Say that answers to some forecast v are farther from v than s in mean square. Then
    outcomes of probability v after that one forecast have a cutoff error of 0 and a regret above s. Else take
    `beyond_cutoffs`, with points d = ½/(K − 1) apart: its cutoff error is 1/K³. Let g(a) = ±1 with the sign of the bias
    of the point within d/2 of a, else 0. The regret is at least E[(y − a) g(a)]²/E[g(a)²], by Cauchy and Schwarz. By
    Markov g is the sign of the point's own bias but with probability 4s/d² ≤ 0.16, and E|a − v| ≤ √s. Answers to 0 are
    1/8 or more from 0 where g is not 0. So E[(y − a) g] ≥ (4/K²) (¼ (1 − 0.32) − √s) − 8s ≥ 0.4/K², and
    E[g²] ≤ 4/K² + 64s. The regret is at least 0.16/4.64/K², above s.
    """
    answers, epsilon = ANSWERS[name], points**-3
    mass, means = beyond_cutoffs(points)
    gamma = JointDistribution.from_levels(ACTIONS[mass > 0], mass[mass > 0], means[mass > 0])
    assert cutoff_ce(gamma) == pytest.approx(epsilon, rel=1e-6)
    one_forecast = max((answers * ERRORS).sum(axis=1))  # the regret of one calibrated forecast
    assert max(one_forecast, regret_of(answers, mass, means)) >= 0.01 * epsilon ** (2 / 3)


@pytest.mark.parametrize("points", [3, 4, 6, 9, 16])
def test_theorem_b_1_has_the_exponent_two_thirds(points):
    """Answers that are the forecast itself have a regret of ε^{2/3}/4 at a cutoff error of ε."""
    mass, means = beyond_cutoffs(points)
    gamma = JointDistribution.from_levels(ACTIONS[mass > 0], mass[mass > 0], means[mass > 0])
    regret = oc.tasks.swap_regret(gamma, "quadratic")
    assert regret == pytest.approx(regret_of(np.eye(STEPS + 1), mass, means), rel=1e-9)
    assert regret == pytest.approx(0.25 * cutoff_ce(gamma) ** (2 / 3), rel=1e-6)


@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
def test_theorem_8_1(n):
    """Nothing that bounds swap regret is estimated better than 1/√n: forecasts of ½ for coins of ½, or of ½ + ½/√n.

    Their swap regrets are 0 and at least 1/√n. No test tells n samples of one from those of the other with errors
    that add to less than 0.6.
    """
    off = 0.5 / math.sqrt(n)
    fair, biased = (JointDistribution.from_levels([0.5], [1.0], [0.5 + x]) for x in (0.0, off))
    k = np.arange(n + 1)
    apart = 0.5 * np.abs(binom.pmf(k, n, 0.5) - binom.pmf(k, n, 0.5 + off)).sum()
    assert apart < 0.4
    # The task that acts above ½: a tie at ½, either way, costs nothing when fair, and the bias when not.
    assert cdl(fair) == scdl(fair) == 0.0
    assert cdl(biased) == pytest.approx(2 * off, rel=0.1)
    # So SCDL too is as far apart as that, by a constant. It is at least a quarter of the regret after rounding.
    assert scdl(biased) >= off / 2


def test_section_1_3_binned_ece_is_estimated_at_the_third_root(seed):
    """Of n calibrated forecasts with m = n^(1/3) it is at most 1/m + √((m + 1)/n) in expectation, by Cauchy
    and Schwarz. By McDiarmid's inequality it is √(2 ln(10⁹)/n) more with a probability of 1e-9. ECE is not so small.
    """
    rng = np.random.default_rng([seed, 3])
    for n in (1000, 27_000):
        p = rng.random(n)
        gamma = JointDistribution.from_samples(p, rng.random(n) < p)
        m = round(n ** (1 / 3))
        found = ece(oc.responses.RoundedDown(m).beliefs(gamma))
        assert found <= 1 / m + math.sqrt((m + 1) / n) + math.sqrt(2 * math.log(1e9) / n)
        assert ece(gamma) > 0.2


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


@given(gamma=ANY)
def test_table_1_actionability(gamma):
    """Where it says all: tests/measures/test_bounds_for_decision_makers.py, and of the root of smCE here, by CDL."""
    assert {f for f, (swaps, _) in TABLE_1.items() if swaps == "all"} == {
        ece,
        cdl,
        root_smooth,
        of_thirds,
        scdl,
    }
    # Soft bins of the width of the root: 2 (SCDL_m + 1/m), and SCDL_m ≤ 2m δ for the lower distance δ ≤ 2 smCE.
    root = math.sqrt(2.0) * root_smooth(gamma)
    if root > 1e-6:
        m = math.ceil(1 / root)
        bound = 2 * (2 * m * root**2 + 1 / m)
        assert cdl(oc.responses.Rounded(m).beliefs(gamma)) <= bound + ROUNDING <= 10 * root + 2 * ROUNDING


def test_table_1_what_is_not_actionable():
    """smCE does not bound the regret, whatever the response, nor the cutoff error that of best responses."""
    assert [name for name, (swaps, _) in TABLE_1.items() if swaps != "all"] == [smooth_ce, cutoff_ce]
    for epsilon in (0.1, 0.01, 0.001):  # Theorem A.1: a regret of ε/6 at an smCE of ε²
        test_theorem_a_1(epsilon)
    ratios = []
    for cells in (8, 32, 128):
        gamma = alternating(cells)
        ratios.append(cdl(gamma) / cutoff_ce(gamma))
    assert ratios[1] > 3 * ratios[0]
    assert ratios[2] > 3 * ratios[1]


def test_hard_bins_act_and_are_tested_like_soft_ones_and_jump(seed):
    """§1.5, the remark: rounding down in place of soft bins. They rise with m too, and what calibrated samples show
    goes like 1/√n. Moving a forecast across the edge of a bin changes the value by a constant. With soft bins it does
    not. (What it bounds: test_bounds_for_decision_makers.py.)
    """
    rng = np.random.default_rng([seed, 15])
    hard = partial(oc.measures.scdl_binned, soft=False)
    for n in (1000, 64_000):
        p = rng.random(n)
        gamma = JointDistribution.from_samples(p, rng.random(n) < p)
        values = [hard(gamma, m=2**e) for e in range(6)]
        assert (np.diff(values) >= -ROUNDING).all()
        # For each of the 8 thresholds (Q_j − i/m)_+ is at most the error of Q_j: in the mean √(m/n)/2 over all. A
        # sample adds 1/n at most; McDiarmid with 1e-9 in all.
        assert values[3] <= (0.5 * math.sqrt(8) + math.sqrt(0.5 * math.log(8e9))) / math.sqrt(n)
    # A fair coin called ½, in bins of width ½, and called a little less: then its bin is said to be 0 … ½.
    at, below = (JointDistribution.from_levels([v], [1.0], [0.9]) for v in (0.5, 0.5 - 1e-9))
    assert abs(hard(at, m=2) - hard(below, m=2)) > 0.3
    soft = oc.measures.scdl_binned
    assert abs(soft(at, m=2) - soft(below, m=2)) <= 4e-9 + ROUNDING


def bound_of_draws(gamma, m, n, delta):
    chance = math.sqrt((m + 1) / n) + math.sqrt(2 * math.log(1 / delta) / n)
    return 2 * (oc.measures.scdl_binned(gamma, m=m) + 1 / m + chance)


@pytest.mark.parametrize("n", [500, 20_000])
def test_theorem_4_4(n, seed):
    """Forecasts rounded at random, once each, have little swap regret in all tasks: CDL is below `bound_of_draws`.

    Outcomes are anything; each of the 6 cases fails with a probability of 1e-9.
    """
    rng = np.random.default_rng([seed, n])
    p = rng.random(n)
    for y in (rng.random(n) < p, rng.random(n) < 1 - p, np.arange(n) % 2 == 0):
        gamma = JointDistribution.from_samples(p, y)
        for m in {oc.measures.soft_rounding(gamma).bins, 8}:
            drawn = SoftRounding(m).draw(p, seed=seed)
            assert cdl(drawn, y) <= bound_of_draws(gamma, m, n, 1e-9)


def test_theorem_4_4_needs_the_rounding(seed):
    """Calibrated forecasts that are all distinct have a CDL of ¼, but for 6 standard deviations (`test_example_2`)."""
    rng, n = np.random.default_rng([seed, 4]), 100_000
    p = rng.random(n)
    gamma = JointDistribution.from_samples(p, rng.random(n) < p)
    assert cdl(gamma) > 0.23 > bound_of_draws(gamma, 32, n, 1e-9)


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
