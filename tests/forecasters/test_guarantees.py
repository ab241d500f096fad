"""Guarantees in games against the hardest natures, and controls that break them: worse players, natures that see too
much. Proofs round by round are in test_proofs.py.
"""

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.checks.facts import playable
from onlinecal.checks.guarantees import check
from onlinecal.core.guarantee import Sight
from onlinecal.core.strategy import parameters, required, strategy_key
from onlinecal.engine.steps import LEARN, compiled, state
from onlinecal.exploit import exploit
from onlinecal.forecasters.hedging import point_of
from onlinecal.measures import brier, ece, u_calibration
from tests.by_hand import Driven, measured
from tests.examples import defaults, of_classes, of_two
from tests.marks import slow, some_fast

ALTERNATING = n.Markov(1.0, 1.0)
#: other grids, and kernels
OTHERS = {
    f.ForecastHedging: [1, 50], f.FosterVohra: [1, 50, ("T^(1/3)", "all")], f.CDLMinimiser: ["2 * T^(1/2)"],
    f.StepCEMinimiser: [7], f.ThresholdHedging: ["T^(1/2)", 7], f.SoftHedging: ["T^(1/2)", 1, 64],
    f.AlmostOneStepAhead: ["T^(1/3)"],
    f.DefensiveForecasting: [("laplace", 0.1), ("gaussian", 1.0), ("gaussian", 0.1)],
}  # fmt: skip
#: all that guarantee something, and two that are hurt
KEPT = [
    [cls(), *(cls(*(of if isinstance(of, tuple) else (of,))) for of in OTHERS.get(cls, ()))]
    for cls in of_two(f.FORECASTERS).values()
    if not required(cls) and cls().guarantees
]
KEPT += [[f.Constant(0.5), f.Constant(0.2)], [f.EmpiricalMean()]]
#: natures that can be made without parameters and play 2000 rounds, and the hardest of others
HARD = [nature for nature in defaults(n.NATURES) if playable(2000, nature) == 2000]
HARD += [
    n.Contrarian("draw"),
    *map(n.Greedy, ("square", "kink")),
    n.Greedy("kink", kink=0.2),
    n.Bernoulli(0.02),
]
HARD += [ALTERNATING]


@pytest.mark.parametrize("nature", some_fast(4, HARD), ids=strategy_key)
@pytest.mark.parametrize("forecasters", KEPT, ids=lambda of: strategy_key(of[0]))
def test_guarantees_are_kept(forecasters, nature, seed):
    """Those of the forecaster, on one grid a nature in turn, and those of the nature.

    Bounds for every sequence are held at all checkpoints. Expected ones are at the end, where each fails by chance once
    in 10⁹ seeds, and rates, once in 10⁶.
    """
    forecaster = forecasters[HARD.index(nature) % len(forecasters)]
    for found in check([forecaster], [nature], horizon=2000, runs=8, seed=seed):
        assert found.holds is not False, found


#: the groups of a question, and natures that have them; in the last a third of the rounds of `first` go one way
MEMBERS = {"odd": 0.5, "first": 0.5, "third": 1 / 3}
STOCHASTIC = n.Grouped(n.UniformTruth(0.2, 0.2), MEMBERS, {"odd": 0.3, "first": 0.3, "third": -0.1})
SHIFTED = n.GroupContrarian(MEMBERS, {"first": 0.7, "all": 0.3})
SIZES = {"odd": "T/2", "first": "T/2", "third": "T/3"}
#: those of groups and of classes with their natures
OF_GROUPS = [f.GroupHedging(), f.GroupHedging(sizes=SIZES), f.GroupHedging(weights="size", sizes=SIZES)]
OF_CLASSES = [cls() for cls in of_classes(f.FORECASTERS).values() if not required(cls) and cls().guarantees]
MANY = [
    *product(OF_GROUPS, (STOCHASTIC, n.GroupContrarian(MEMBERS), SHIFTED)),
    *product(OF_CLASSES, (
        n.ContrarianClasses(), n.ContrarianClasses(2), n.GreedyClasses(), n.GreedyClasses(2),
        n.Categorical((1 / 3,) * 3), n.Categorical((0.0, 1.0, 0.0)), n.DriftClasses(),
    )),
]  # fmt: skip


@pytest.mark.parametrize("horizon", [4000, slow(64_000)])
@pytest.mark.parametrize(("forecaster", "nature"), MANY)
def test_bounds_of_groups_and_of_classes_are_kept(forecaster, nature, horizon, seed):
    """Means of 8 runs are half of the bound or less, with a spread of a tenth of it."""
    found = [*check([forecaster], [nature], horizon=horizon, runs=8, seed=seed, of=[forecaster])]
    assert len(found) == len(forecaster.facing(nature).guarantees)
    assert all(each.holds for each in found)


@dataclass(frozen=True)
class OtherWeights(f.StepCEMinimiser):
    """A mistake: η is multiplied by `times`."""

    times: float = 1.0

    def start(self, horizon, stream):
        # η depends on T as 1/√T, and the grid is given: as at T/times², but for its steps.
        return f.StepCEMinimiser(self.steps_at(horizon)).start(horizon / self.times**2, stream)


@dataclass(frozen=True)
class OtherRate(f.ThresholdHedging):
    """A mistake: the rates are multiplied by `times`."""

    times: float = 1.0

    def start(self, horizon, stream):
        player = super().start(horizon, stream)
        player.shared[1] *= self.times
        return player


def wrong_side(run, place, forecast, outcome, number):
    """Its imagined player takes i where y = 1 and i + 1 where y = 0."""
    mine = state(run)
    m = len(mine) - 2
    atom = point_of(forecast, m)
    i = min(atom + 1 - outcome, m)
    mine[i] += m * outcome - i
    mine[m + 1] += i != atom
    return 0


class WrongSide(f.AlmostOneStepAhead):
    def start(self, horizon, stream):
        player = super().start(horizon, stream)
        player.learn = compiled(LEARN, wrong_side)
        return player


AHEAD, DRAW = f.AlmostOneStepAhead("T^(1/3)"), n.Contrarian("draw")
HEDGING, STEPS, LEADER, MANSOUR = (
    f.ForecastHedging(),
    f.StepCEMinimiser(),
    f.PerturbedLeader(),
    f.BlumMansour(),
)
CDL, ALL, FOSTER = f.CDLMinimiser(), f.ThresholdHedging(), f.FosterVohra()
#: forecaster, which of its guarantees, player in its place, nature, and by how much the bound is broken
BREAK = [
    (HEDGING, 0, AHEAD, n.Contrarian(), 1),
    (HEDGING, 0, HEDGING, DRAW, 1),
    (FOSTER, 0, AHEAD, n.Contrarian(), 1),
    (FOSTER, 0, FOSTER, DRAW, 1),
    (CDL, 0, f.AlmostOneStepAhead(), n.Contrarian(), 1),
    (CDL, 0, CDL, DRAW, 1),
    (STEPS, 0, OtherWeights(times=1e-3), n.Greedy("square"), 1),
    (STEPS, 0, OtherWeights(times=100.0), n.Greedy("square"), 2),
    (STEPS, 0, STEPS, DRAW, 2),
    (ALL, 0, OtherRate(times=1e-9), n.Bernoulli(0.1), 2),
    (ALL, 0, OtherRate(times=1e3), n.Contrarian(), 2),
    (ALL, 0, f.Constant(0.5), n.Bernoulli(0.9), 2),
    (ALL, 0, ALL, DRAW, 2),
    # The other perturbed leader, of which nothing is proved against those that see the law.
    (ALL, 0, LEADER, n.Greedy("kink"), 1),
    # A coarse grid, noise that does not fade, and again the other leader.
    (ALL, 1, f.ThresholdHedging(2), n.Bernoulli(0.25), 1),
    (ALL, 1, OtherRate(times=0.01), n.Contrarian(), 1),
    (ALL, 1, LEADER, n.Contrarian(), 1),
    # Whose biases are those of a player that always errs; and who follows the past.
    (f.AlmostOneStepAhead(), 0, WrongSide(), n.Contrarian(), 1),
    (f.SimplexHedging(), 0, f.ClassMean(), n.ContrarianClasses(), 1),
    # Rates.
    (MANSOUR, 0, f.AlmostOneStepAhead(), n.Contrarian(), 0),
    (MANSOUR, 0, f.EmpiricalMean(), n.Drift(), 0),
    (LEADER, 0, f.EmpiricalMean(), ALTERNATING, 0),  # the leader without noise
    (LEADER, 0, LEADER, n.Contrarian(), 0),  # sees the law, which the theorem does not allow
]


@pytest.mark.parametrize(("promising", "which", "playing", "nature", "factor"), BREAK)
def test_controls_break_the_guarantees(promising, which, playing, nature, factor, seed):
    stated = replace(promising.guarantees[which], against=Sight.DRAW, potential=None)
    cls = dataclass(frozen=True)(type("Pretending", (type(playing),), {"guarantees": (stated,)}))
    pretending = cls(**parameters(playing))
    (found,) = check([pretending], [nature], horizon=4000, runs=16, seed=seed, of=[pretending])
    assert found.holds is False
    assert found.ratio > factor


@pytest.mark.parametrize(
    ("spec", "horizon", "measure"),
    [*((f.ForecastHedging(m), T, "ece") for m, T in ((1, 60), (2, 24), (3, 12), (4, 12))),
     *((f.StepCEMinimiser(m), T, "step_ce") for m in (1, 2, 4) for T in (1, 2, 6))],
)  # fmt: skip
def test_the_worst_nature_stays_below_the_bound(spec, horizon, measure):
    """Exactly, over all natures that see the law."""
    found = exploit(spec, horizon, measure)
    assert found.value - found.error <= spec.guarantees[0].bound(horizon)


# ---------------------------------------------------------------- bounds in numbers


def by_thresholds(t, m):
    """The bound of the docstring of threshold hedging, with its λ."""
    scale = 5 * math.sqrt(math.log(2 + 5 * m / math.sqrt(t)) / t)
    spread = 0.35 * math.sqrt(t) + (1 + math.log(t)) / 12
    largest, total = t / 16 + 4 * spread**2 / t, m * math.sqrt(t) / 8 + t / 16 + m * spread / 2
    phi = math.exp(scale) - 1 - scale
    last = 2 / scale * math.log(2 + 2 * phi * total * math.exp(phi * largest))
    return min(t, 0.85 * math.sqrt(t) + 0.13 * (1 + math.log(t)) + t / m + last)


def by_pairs(t, m):
    return t / (2 * m) + m + 1 + math.sqrt((m + 1) * (m + 1 + t / 2 + t / m))


def by_signed_thresholds(t, m):
    rate = math.sqrt(8 * math.log(2 * m + 2) / t)
    return min(t, math.sqrt(t * math.log(2 * m + 2) / 2) + t / (4 * m) * (math.exp(rate) - 1) / rate)


def by_coarse_grid(t, m):
    if m * m < t:
        return t
    return 10 * t / m + m * (
        (0.3 + 3 * math.log(1 + m / 10)) * math.log(10 + math.log(t)) + 0.6 * math.log(m + 1)
    )


#: forecaster, which guarantee, its bound by T, and its slack at T = 10⁴, 8 runs, and failures of 1e-9
STATED = [
    (f.DefensiveForecasting(), 0, lambda t: math.sqrt(t) / 2, None),
    (f.DefensiveForecasting(), 1, lambda t: math.sqrt(t / 2), None),
    (f.AlmostOneStepAhead(), 0, lambda t: 2 * math.sqrt(t) + 1, None),
    (f.AlmostOneStepAhead(), 1, lambda t: 4 * math.sqrt(t) + 2, None),
    (HEDGING, 0, lambda t: by_pairs(t, HEDGING.steps_at(t)), 357.5027506537054),
    (f.ForecastHedging(30), 0, lambda t: by_pairs(t, 30), 363.6681051057535),
    (f.FosterVohra(30), 0, lambda t: t / 60 + math.sqrt(62 * t), 1792.2349747526673),
    (CDL, 0, lambda t: math.sqrt(t) * (10 + 4.1 * math.log(1 + math.sqrt(t) / 10) * math.log(10 + math.log(t))),
     155.42449377709806),
    (f.CDLMinimiser(100), 0, lambda t: by_coarse_grid(t, 100), 155.42449377709806),
    (f.SoftHedging(16), 0, lambda t: min(t, max(t / 16, 24 * (2 + math.log(8.5)) * math.log(3 + math.log(t)))), None),
    (f.ThresholdHedging(40), 0, lambda t: by_thresholds(t, 40), 88.00360724241264),
    (f.ThresholdHedging(40), 1, lambda t: 0.456 * (1 + math.log(t)) + 0.35 + 0.85 * math.sqrt(t) / 40 + t / 6400,
     11.98319827785821),
    (f.StepCEMinimiser(20), 0, lambda t: by_signed_thresholds(t, 20), 47.372113642750406),
    (f.StepCEMinimiser(1), 0, lambda t: by_signed_thresholds(t, 1), 77.78493431248442),
    (MANSOUR, 0, lambda t: t ** (1 / 3) * math.log(t), None), (LEADER, 0, math.sqrt, None),
    (f.SimplexHedging(5), 0, lambda t: math.sqrt(1.5 * 21 * t) + 2 * t / 15, 1509.9575815031858),
    (f.GroupHedging(10, ("odd",)), 1, lambda t: math.sqrt(22 * t) + t / 20, 1261.8880003964946),
    (f.GroupHedging(10, ("odd",)), 3, lambda t: 2 * t, 381429.01372140367),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "which", "bound", "slack"), STATED)
def test_bounds_are_those_of_the_docstrings(spec, which, bound, slack):
    stated = spec.guarantees[which]
    for t in (100, 800, 10**4, 10**6):
        assert stated.bound(t) == pytest.approx(bound(t), rel=1e-9)
    assert slack is None or stated.slack(10**4, 8, 1e-9) == pytest.approx(slack, rel=1e-12)


#: the same of bounds with b questions open at once; those of groups are in test_groups.py
LATE = [
    (f.DefensiveForecasting(), 0, lambda t, b: math.sqrt((0.25 + 2 * (b - 1)) * t)),
    (f.DefensiveForecasting(), 1, lambda t, b: math.sqrt((0.5 + 4 * (b - 1)) * t)),
    (f.AlmostOneStepAhead(30), 0, lambda t, b: t / 30 + 29 * b),
    (f.AlmostOneStepAhead(30), 1, lambda t, b: t / 15 + 58 * b),
    (f.SimplexHedging(5), 0, lambda t, b: math.sqrt(1.5 * 21 * (2 * b - 1) * t) + 2 * t / 15 + b),
]


@pytest.mark.parametrize(("spec", "which", "bound"), LATE)
def test_delayed_bounds_are_those_of_the_docstrings(spec, which, bound):
    for t, b in ((100, 1), (800, 2), (10**4, 50)):
        assert spec.guarantees[which].delayed(t, b) == pytest.approx(bound(t, b), rel=1e-9)


def test_the_value_of_a_game_bounds_games_up_to_the_longest(monkeypatch):
    """Beyond it bounds are what is known of any game."""
    monkeypatch.setattr("onlinecal.forecasters.minimax.longest", lambda m: 9)
    mine, theirs = (spec.guarantees[0].bound for spec in (f.Minimax(), n.Maximin()))
    assert 0 < theirs(9) <= mine(9) < 9
    assert (theirs(10), mine(10)) == (0, 10)


def test_doubling_keeps_the_order_of_the_error(seed):
    """Restarts cost a constant factor: the sum over epochs is below 1/(1 − 2^{−2/3}) < 2.71 times the last bound."""
    horizon = 16 * (2**9 - 1)
    mean = measured(f.Doubling(HEDGING), n.Contrarian(), ece, horizon, seed, runs=8).mean()
    # The slack of hedging's own test at this horizon and rate 1e-9 is 290.
    assert mean <= 2.71 * 2.6 * horizon ** (2 / 3) + 290


def test_the_mixture_is_as_good_as_its_best_expert(seed):
    """Hedge: the expected Brier total exceeds the best expert's by at most √(T ln K / 2).

    The mean over 8 runs of 4000 rounds lies within T·√(ln(2/1e-9)/(2·32000)) < 74 of its expectation with probability
    1 − 1e-9.
    """
    horizon, experts = 4000, (f.Constant(0.9), f.Constant(0.2), f.Constant(0.5))
    total = measured(f.ExpertMixture(experts), n.Bernoulli(0.9), brier, horizon, seed, runs=8).mean()
    limit = horizon * 0.09 + math.sqrt(horizon * math.log(3) / 2) + 74
    assert total <= limit < horizon * (0.9 * 0.64 + 0.1 * 0.04)  # which the expert of 0.2 has


def test_the_perturbed_leader_draws_from_its_law(seed):
    """Without past p = Z_1/(Z_0 + Z_1), 0/0 read as 1/2, is symmetric, and P(p = 0) = P(Z_1 = 0, Z_0 > 0) = ¼·¾.

    Hoeffding for n = 16·4096 values: off by more than 0.014 with probability below 2·exp(−2n·0.014²) < 1e-10.
    """
    player, p = Driven(f.PerturbedLeader(3.0, atoms=16), 4096, seed=seed), []
    for player.told in range(4096):
        p += [value for value, _ in player.ask().law]
    shares = np.mean(p), np.mean(np.equal(p, 0.0)), np.mean(np.equal(p, 1.0))
    assert shares == pytest.approx((0.5, 3 / 16, 3 / 16), abs=0.014)


# ---------------------------------------------------------------- what is not bounded


@dataclass(frozen=True)
class AgainstTheMajority(n.Nature):
    """y = 0 if at least half of the atoms lie above one half, else y = 1."""

    sight = Sight.LAW

    def start(self, horizon, stream):
        return self

    def probability(self, round):
        return float(2 * sum(w for v, w in round.law.items() if v > 0.5) < 1)


@pytest.mark.parametrize(("atoms", "horizon"), [(1, 1000), slow((16, 8000))])
def test_a_nature_that_sees_the_law_hurts_the_perturbed_leader_in_proportion_to_t(atoms, horizon, seed):
    """The docstring's T·E|B/K − 1/2|. Its proof sums over rounds |f − 1/2|, at least as large in the mean, and what
    the draws add. Each round is at most 3/2 from its mean given the past: Azuma and Hoeffding, with a failure in 10⁹
    seeds.
    """
    own = f.PerturbedLeader(atoms=atoms)
    forced = sum(math.comb(atoms, j) * abs(j / atoms - 0.5) for j in range(atoms + 1)) / 2**atoms
    found = measured(own, AgainstTheMajority(), u_calibration, horizon, seed).mean()
    assert found >= forced * horizon - 1.5 * math.sqrt(2 * horizon * math.log(1e9) / 16)
    assert forced == pytest.approx(1 / math.sqrt(2 * math.pi * atoms), rel=0.3 / atoms)
    # Natures that see less do not: these totals are of order √T.
    assert measured(own, ALTERNATING, u_calibration, horizon, seed).mean() < 4 * math.sqrt(horizon)
