"""Inequalities of the papers on random Γ, as they are printed, and examples that need their constants.

BGHN23 is Błasiok, Gopalan, Hu, Nakkiran 2023; BN24 Błasiok, Nakkiran 2024; GH25 Gopalan, Hu 2025; BHNU26 Bairaktari,
Hu, Nguyen, Ullman 2026. Relations between two measures without a further number: tests/core/test_relations.py.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.game import Game
from onlinecal.measures import (
    cdl,
    cfdl,
    distance_lower,
    distance_upper,
    ece,
    interval_ce,
    kernel_ce,
    random_interval_ce,
    scdl,
    smooth_ce,
    smooth_ece,
    smooth_ece_at,
    surrogate_interval_ce,
)
from tests.experiments import script
from tests.oracles.moduli import MODULI
from tests.strategies import ANY

levels = JointDistribution.from_levels
fair_coins, four_points = script("consistency").fair_coins, script("consistency").four_points
ROUNDING = 1e-7
#: the mean size of a normal number
C = math.sqrt(2.0 / math.pi)


def kernel(v, t, sigma):
    """Reflected Gaussian of centre v at the points t, image after image."""
    images = range(-math.ceil(4.5 * sigma) - 1, math.ceil(4.5 * sigma) + 2)
    places = [2 * k + side * v for k in images for side in (1, -1)]
    density = sum(np.exp(-0.5 * ((t - place) / sigma) ** 2) for place in places)
    return density / (sigma * math.sqrt(2 * math.pi))


def error_of_the_diagram(gamma, sigma, points=20_000):
    """BN24, (8): the ECE that a reader of the smoothed diagram sees, ∫ |ŷ(t) − t| δ(t) dt."""
    t, rows = (np.arange(points) + 0.5) / points, zip(gamma.predictions, gamma.mass, gamma.means, strict=True)
    return float(np.abs(sum(w * (q - t) * kernel(v, t, sigma) for v, w, q in rows)).mean())


def gained(gamma):
    """BN24, §1.2: the squared loss that η gains, from v to κ(v) = v + η(v) in [0, 1], the most over 1-Lipschitz η."""
    v, mass = gamma.predictions, gamma.mass
    bias, apart = gamma.means - v, np.diff(v)
    sides = [{"type": "ineq", "fun": lambda eta, s=s: apart + s * np.diff(eta)} for s in (-1, 1)]
    found = minimize(
        lambda eta: mass @ (eta**2 - 2 * eta * bias), np.zeros(len(v)), jac=lambda eta: 2 * mass * (eta - bias),
        bounds=list(zip(-v, 1 - v, strict=True)), method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
        constraints=sides if len(v) > 1 else (),
    )  # fmt: skip
    assert found.success, found.message
    return -float(found.fun)


#: theorem → what is at most what, of Γ and a width. Constants that copies of the papers have lost are derived:
#: smoothing moves by E|σZ| = Cσ, and kernels at u and v differ by C|u − v|/σ in total
THEOREMS = {
    "BGHN23 claim 6.6": lambda g, e: (interval_ce(g), random_interval_ce(g, epsilon=e) + e),
    "BGHN23 lemma 6.7": lambda g, e: (random_interval_ce(g, epsilon=e), (1 + 2 / e) * distance_lower(g).upper),
    "BGHN23 claim B.1": lambda g, e: (random_interval_ce(g, epsilon=2 * e), random_interval_ce(g, epsilon=e)),
    "BGHN23 theorem 6.11": lambda g, e: (surrogate_interval_ce(g), 6 * math.sqrt(distance_lower(g).upper)),
    "BGHN23 theorem C.3": lambda g, e: (kernel_ce(g, kernel="gaussian"), math.sqrt(2) * smooth_ce(g)),
    "BN24 lemma 8": lambda g, e: (smooth_ce(g), smooth_ece_at(g, sigma=e) + C * e),
    "BN24 lemma 8, distance": lambda g, e: (distance_lower(g).lower / 2, smooth_ece_at(g, sigma=e) + C * e),
    "BN24 lemma 9": lambda g, e: (smooth_ece_at(g, sigma=e), (1 + C / e) * distance_lower(g).upper),
    "BN24 theorem 7, left": lambda g, e: (distance_lower(g).lower / 2, smooth_ece(g)),
    "BN24 theorem 7, right": lambda g, e: (smooth_ece(g), 2 * math.sqrt(distance_lower(g).upper)),
    "BN24 lemma 13": lambda g, e: (
        abs(error_of_the_diagram(g, max(e, 0.02)) - smooth_ece_at(g, sigma=max(e, 0.02))), C * max(e, 0.02) + 1e-5
    ),
    "BN24 theorem 16": lambda g, e: (smooth_ce(g, metric="logit"), 12 * math.sqrt(smooth_ce(g))),
    "BN24 §1.2, left": lambda g, e: (smooth_ce(g) ** 2, gained(g) + 1e-6),
    "BN24 §1.2, right": lambda g, e: (gained(g), 2 * smooth_ce(g) + 1e-6),
    "GH25 theorem 4.3, left": lambda g, e: (ece(g) ** 2, cfdl(g, task="quadratic")),
    "GH25 theorem 4.3, right": lambda g, e: (cfdl(g, task="quadratic"), cdl(g)),
    # Rounding to the 1/SCDL points of the minimum moves by half of it, and leaves a CDL of at most 4·SCDL.
    "BHNU26 theorem 6.1, left": lambda g, e: (distance_lower(g).lower, 2 * math.sqrt(scdl(g)) + scdl(g) / 2),
    "BHNU26 theorem 6.1, right": lambda g, e: (scdl(g), MODULI["scdl"](distance_lower(g).upper)),
}  # fmt: skip


@pytest.mark.parametrize("name", THEOREMS)
@given(gamma=ANY, width=st.floats(0.005, 1.0))
def test_inequalities(name, gamma, width):
    less, more = THEOREMS[name](gamma, width)
    assert less <= more + ROUNDING


A = 1e-3
FAR = levels([A**2, A], [1, 1], [A, 0.0])
UNSURE, WRONG = levels([0.25], [1.0], [0.5]), levels([0.0, 1.0], [1, 1], [1.0, 0.0])
#: what is needed of them → (value, what it is, relative tolerance)
NEEDED = {
    # The levels are 0.02 apart; shifted intervals of width 0.05 keep them so with probability 2/5, at a bias of 0.005.
    "BGHN23 lemma 6.7, 1/ε": (random_interval_ce(fair_coins(0.01), epsilon=0.05), 2 * 0.01 / 0.05 * 0.01, 1e-9),
    "BGHN23 theorem C.3, √2": (
        kernel_ce(fair_coins(A), kernel="gaussian"), math.sqrt(2) * smooth_ce(fair_coins(A)), 1e-2
    ),
    "BGHN23 lemma 8.7, √": (kernel_ce(levels([0.5 - A, 0.5 + A], [1, 1], [1, 0])), math.sqrt(A) / 2, 0.05),
    "BN24 §1.2, left": (gained(UNSURE), smooth_ce(UNSURE) ** 2, 1e-6),
    "BN24 §1.2, right": (gained(WRONG), 1.5 * smooth_ce(WRONG), 1e-6),
    # Two forecasts near 0, far apart in log odds, with opposite errors.
    "BN24 theorem 16, √": (smooth_ce(FAR, metric="logit"), math.sqrt(smooth_ce(FAR)), 0.1),
    "GH25 §4.6, one level": (cdl(levels([0.5], [1.0], [0.5 + A])), 2 * A, 1e-6),
    "BGHN23 lemma 4.5": (distance_upper(fair_coins(A)).upper, A, 1e-9),
}  # fmt: skip


@pytest.mark.parametrize("name", NEEDED)
def test_constants_that_are_needed(name):
    value, so, within = NEEDED[name]
    assert value == pytest.approx(so, rel=within)


@pytest.mark.parametrize("alpha", [0.2, 0.01, 1e-3])
def test_bghn23_roots_that_are_needed(alpha):
    """Lemmas 4.5 and 6.8, and BN24's theorem 7: no multiple of a distance bounds what its root does."""
    gamma, coins = four_points(alpha), fair_coins(alpha)
    upper = distance_upper(gamma)
    assert upper.lower == upper.upper <= 5 * alpha**2 + 1e-15
    assert alpha - 1e-15 <= interval_ce(gamma) <= 4 * math.sqrt(distance_lower(gamma).lower) + ROUNDING
    assert distance_lower(coins).upper <= 2 * alpha**2 + 1e-9
    assert alpha > 0.01 or smooth_ece(coins) > 10 * distance_lower(coins).upper


def discontinuity(epsilon):
    """BGHN23, Table 2: four inputs of the same probability; predictions of b and c are ε away from ½."""
    a, b = 1 / 6, 1 / 48
    predictions = np.array([0.5 - b, 0.5 - epsilon, 0.5 + epsilon, 0.5 + b])
    means = predictions + np.array([a, -a, 2 * a, -2 * a])
    return JointDistribution.from_counts(predictions, np.full(4, 0.25), means / 4)


def test_bghn23_lemma_6_9_and_table_2():
    beta, jump = 1 / 48, discontinuity(0.0)
    assert (jump.levels, interval_ce(jump) >= 2 * beta - 1e-15) == (3, True)
    for gamma in map(discontinuity, (1e-2, 1e-4, 1e-8, 1e-12)):
        assert (gamma.levels, interval_ce(gamma) <= beta + 1e-15) == (4, True)
    # Continuous measures stay: smooth calibration and the lower distance.
    assert smooth_ce(gamma) == pytest.approx(smooth_ce(jump), abs=1e-10)
    assert distance_lower(gamma).lower == pytest.approx(distance_lower(jump).lower, abs=1e-7)


#: BGHN23, Table 1: continuous, complete, sound, as printed; ECE, two binned errors, three scores, two forms of ECCE
TABLE_1 = {
    "ece": (False, True, True), "binned_ece": (False, True, False), "binned_ce": (False, True, False),
    "brier": (True, False, True), "log_loss": (True, False, True), "nce": (True, False, True),
    "cutoff_ce": (False, True, True), "step_ce": (False, True, True), "kernel_ce": (True, True, True),
    "smooth_ce": (True, True, True),
}  # fmt: skip


def test_bghn23_table_1_is_that_of_the_catalogue():
    """Its columns are held by tests/measures/test_catalogue.py."""
    for name, cells in TABLE_1.items():
        record = oc.measures.MEASURES[name]
        assert (
            tuple(text.startswith("yes") for text in (record.continuous, record.complete, record.sound))
            == cells
        )


@pytest.mark.parametrize("epsilon", [0.1, 0.05, 0.01, 0.005])
def test_bghn23_theorem_8_6(epsilon):
    """Of v uniform on [¼, ¾] and E[y − v | v] = ¼ cos(t/ε) exp(−t²/ε), t = v − ½, the Gaussian error is exponentially
    small, smooth calibration is not, and the Laplace kernel follows it. The proof has exp(−Ω(1/ε)) where the theorem
    says exp(−1/ε): the waves are cut off at ±¼.
    """
    v = 0.25 + 0.5 * (np.arange(2001) + 0.5) / 2001
    t = v - 0.5
    gamma = levels(v, np.ones(2001), v + np.cos(t / epsilon) * np.exp(-(t**2) / epsilon) / 4)
    assert smooth_ce(gamma) >= epsilon**2.5
    assert kernel_ce(gamma, kernel="gaussian") <= np.exp(-1 / (16 * epsilon))
    assert kernel_ce(gamma) >= smooth_ce(gamma) / 3


@pytest.mark.parametrize("epsilon", [0.05, 0.002])
def test_gh25_section_4_6_even_shift(epsilon):
    """v uniform on [⅓, ⅔], each ε too low: CDL is at most 3ε², near the least that Theorem 4.3 allows."""
    v = np.linspace(1 / 3, 2 / 3, 4001)
    gamma = levels(v, np.ones(len(v)), v + epsilon)
    assert ece(gamma) == pytest.approx(epsilon, rel=1e-9)
    apart = v[1] - v[0]  # a sum over levels in place of the integral
    assert epsilon**2 * (1 - 1e-9) <= cdl(gamma) <= 3 * epsilon * (epsilon + apart)


F = oc.forecasters


@pytest.mark.parametrize(
    "who", [F.AlmostOneStepAhead, F.DefensiveForecasting, F.EmpiricalMean, F.ForecastHedging]
)
def test_gh25_section_5_who_is_not_random_has_large_ece_and_cdl(who):
    """Nature says 1 exactly if the forecast is below ½. All rounds of a forecast then have one outcome, at least ½ away
    from it. The rule to act from ½ on loses in each; smCE may be small all the same. Forecast hedging is the control.
    """
    game = Game(who(), oc.natures.Contrarian(), horizon=2000, runs=range(1))
    game.advance(2000)
    (gamma,) = game.gammas()
    if who is F.ForecastHedging:
        assert (ece(gamma) < 0.25, cdl(gamma) < 0.5) == (True, True)
        return
    assert set(gamma.means) <= {0.0, 1.0}
    assert ece(gamma) >= 0.5
    assert cdl(gamma) == pytest.approx(1.0, abs=1e-12)
    assert who is F.EmpiricalMean or 2000 * smooth_ce(gamma) <= 2 * (2 * np.sqrt(2000) + 1)


def test_gh25_section_1_4_calibration_is_no_utility(seed):
    """A predictor that always says the mean is calibrated, and so is the truth: only losses tell them apart."""
    truth = np.sort(np.random.default_rng(seed).uniform(0.05, 0.95, 50))
    bayes, mean = levels(truth, np.ones(50), truth), levels([truth.mean()], [1.0], [truth.mean()])
    for measure in (ece, smooth_ce, cdl, scdl, smooth_ece, kernel_ce):
        assert measure(bayes) == pytest.approx(0.0, abs=1e-7) == measure(mean)
    assert oc.measures.brier(mean) - oc.measures.brier(bayes) == pytest.approx(truth.var(), rel=1e-9)


@pytest.mark.parametrize("n", [100, 1_000_000])
def test_bhnu26_theorem_8_1(n):
    """Nothing that bounds swap regret is estimated better than 1/√n: coins of ½ and of ½ + ½/√n have swap regrets of 0
    and at least 1/√n, and no test tells n samples of one from those of the other with errors that add to less than 0.6.
    """
    k, off = np.arange(n + 1), 0.5 / math.sqrt(n)
    fair, biased = (levels([0.5], [1.0], [0.5 + x]) for x in (0.0, off))
    assert 0.5 * np.abs(binom.pmf(k, n, 0.5) - binom.pmf(k, n, 0.5 + off)).sum() < 0.4
    assert cdl(fair) == scdl(fair) == 0.0
    assert cdl(biased) == pytest.approx(2 * off, rel=0.1)
    assert scdl(biased) >= off / 2
