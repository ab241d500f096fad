"""Bounds in expectation and rates in games, each with controls that break it: worse players, natures that see too much.

Bounds for every sequence are in test_deterministic.py, proofs round by round in test_proofs.py.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.checks.facts import playable
from onlinecal.core._compile import part_of_kernel
from onlinecal.core.guarantee import Sight
from onlinecal.core.strategy import required, strategy_key, strategy_label
from onlinecal.decisions.tasks import external_regret
from onlinecal.engine.game import Game
from onlinecal.exploit import exploit
from onlinecal.forecasters import thresholds as thresholds_module
from onlinecal.forecasters.thresholds import _memory, best_rate
from onlinecal.growth import trend as growth_of_ratio
from onlinecal.measures import cdl, cutoff_ce, ece, step_ce, u_calibration
from onlinecal.rounds.steps import law, law_weights
from tests.bounds_in_games import Games

RATE = 1e-9  # of false failures, for each expected bound
ALTERNATING = n.Markov(1.0, 1.0)
squared = partial(external_regret, task="quadratic")
#: what is bounded, horizon and runs, parameters of the grid
BOUNDS = {
    "ece of hedging": (f.ForecastHedging, ece, 0, Games(8000, 32, RATE), ("T^(1/3)", 1, 50)),
    "ece of foster_vohra": (f.FosterVohra, ece, 0, Games(8000, 32, RATE), ("T^(1/3)", 1, 50)),
    "cdl": (f.CDLMinimiser, cdl, 0, Games(8000, 32, RATE), ("T^(1/2)", "2 * T^(1/2)")),
    "step_ce": (f.StepCEMinimiser, step_ce, 0, Games(4000, 8, RATE), ("T^(1/2)", 7)),
    "u_calibration": (
        f.ThresholdHedging,
        u_calibration,
        0,
        Games(4000, 8, RATE),
        ("4 * T^(1/2)", "T^(1/2)", 7),
    ),
    "squared loss": (f.ThresholdHedging, squared, 1, Games(4000, 64, RATE), ("4 * T^(1/2)",)),
}
#: natures that can be made without parameters and play so many rounds, and the hardest of others
HARD = [cls() for cls in n.NATURES.values() if not required(cls) and playable(8000, cls()) == 8000]
HARD += [n.Greedy("square"), n.Greedy("kink"), n.Greedy("kink", kink=0.2), n.Bernoulli(0.02)]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("nature", HARD, ids=strategy_key)
@pytest.mark.parametrize("what", BOUNDS)
def test_expected_bounds_are_kept(what, nature, seed):
    """One grid a nature, in turn."""
    cls, measure, which, games, grids = BOUNDS[what]
    forecaster = cls(grids[HARD.index(nature) % len(grids)])
    assert nature.sight <= forecaster.guarantees[which].against
    found = games.mean_total(forecaster, nature, seed, measure)
    assert found <= games.allowed(forecaster, which)
    if what == "step_ce":  # the cutoff calibration error is at most twice as large
        assert games.mean_total(forecaster, nature, seed, cutoff_ce) <= 2 * games.allowed(forecaster)


@pytest.mark.parametrize("horizon", [30, 300, 30_000])
@pytest.mark.parametrize("nature", [n.Contrarian(), n.Greedy("kink"), n.Bernoulli()], ids=strategy_key)
def test_threshold_hedging_keeps_its_bound_at_other_horizons(nature, horizon, seed):
    games, own = Games(horizon, 8, RATE), f.ThresholdHedging()
    assert games.mean_total(own, nature, seed, u_calibration) <= games.allowed(own)


@dataclass(frozen=True)
class OtherWeights(f.StepCEMinimiser):
    """A mistake: η is so many times what it should be."""

    times: float = 1.0

    def start(self, horizon, stream):
        # η depends on T as 1/√T, and the grid is given.
        m = self.steps_at(horizon)
        player = f.StepCEMinimiser(m).start(horizon, stream)
        other = _memory(m, self.times * best_rate(horizon, m) / m, np.zeros(m + 1, np.int64))
        player.memory.floats, player.memory.shared = other.floats, other.shared
        return player


_mixed = part_of_kernel(thresholds_module._state.function)


@law
def _likelier(run, number):
    """A mistake: it plays the likelier of the two points."""
    size, weights = _mixed(run, number), law_weights(run)
    weights[0] = 1.0 if weights[0] >= 0.5 else 0.0
    weights[1] = 1.0 - weights[0]
    return size


class NoMixing(f.StepCEMinimiser):
    def start(self, horizon, stream):
        player = super().start(horizon, stream)
        player.steps = _likelier, player.steps[1]
        return player


@dataclass(frozen=True)
class OtherRate(f.ThresholdHedging):
    """A mistake: the rates are so many times what they should be."""

    times: float = 1.0

    def start(self, horizon, stream):
        player = super().start(horizon, stream)
        player.memory.shared[1] *= self.times
        return player


AHEAD, DRAW = f.AlmostOneStepAhead("T^(1/3)"), n.Contrarian("draw")
#: what is bounded, who plays instead, against whom, and by how much the bound is broken
BREAK = [
    ("ece of hedging", AHEAD, n.Contrarian(), 1),
    ("ece of hedging", f.ForecastHedging(), DRAW, 1),
    ("ece of foster_vohra", AHEAD, n.Contrarian(), 1),
    ("ece of foster_vohra", f.FosterVohra(), DRAW, 1),
    ("cdl", f.AlmostOneStepAhead(), n.Contrarian(), 1),
    ("cdl", f.CDLMinimiser(), DRAW, 1),
    ("step_ce", OtherWeights(times=1e-3), n.Greedy("square"), 1),
    ("step_ce", OtherWeights(times=100.0), n.Greedy("square"), 2),
    ("step_ce", NoMixing(), n.Contrarian(), 2),
    ("step_ce", f.StepCEMinimiser(), DRAW, 2),
    ("u_calibration", OtherRate(times=1e-9), n.Bernoulli(0.1), 2),
    ("u_calibration", OtherRate(times=1e3), n.Contrarian(), 2),
    ("u_calibration", f.Constant(0.5), n.Bernoulli(0.9), 2),
    ("u_calibration", f.ThresholdHedging(), DRAW, 2),
    # The other perturbed leader, of which nothing is proved against those that see the law.
    ("u_calibration", f.PerturbedLeader(), n.Greedy("kink"), 1),
    # A coarse grid, noise that does not fade, and again the other leader.
    ("squared loss", f.ThresholdHedging(2), n.Bernoulli(0.25), 1),
    ("squared loss", OtherRate(times=0.01), n.Contrarian(), 1),
    ("squared loss", f.PerturbedLeader(), n.Contrarian(), 1),
]


@pytest.mark.parametrize(("what", "playing", "nature", "factor"), BREAK)
def test_controls_break_the_bounds(what, playing, nature, factor, seed):
    cls, measure, which, games, _ = BOUNDS[what]
    limit = games.allowed(cls(), which)
    assert games.mean_total(playing, nature, seed, measure) > factor * limit
    if hasattr(playing, "times"):  # the mistake alone
        assert games.mean_total(type(playing)(times=1.0), nature, seed, measure) < limit


@pytest.mark.parametrize("times", [1e-9, 1e9])
@pytest.mark.parametrize("m", [1, 2, 1000])
def test_extreme_rates_still_give_laws(times, m, seed):
    for nature in (n.Contrarian(), n.Bernoulli()):
        game = Game(OtherRate(m, times), nature, horizon=200, runs=range(4), seed=seed)
        game.advance(200)
        assert game.resolved == 200


@pytest.mark.parametrize(
    ("spec", "horizon", "measure"),
    [*((f.ForecastHedging(m), T, "ece") for m, T in ((1, 60), (2, 24), (3, 12), (4, 12))),
     *((f.StepCEMinimiser(m), T, "step_ce") for m in (1, 2, 4) for T in (1, 2, 6))],
)  # fmt: skip
def test_the_worst_nature_stays_below_the_bound(spec, horizon, measure):
    """Exactly, over all natures that see the law."""
    found = exploit(spec, horizon, measure)
    assert found.value - found.error <= spec.guarantees[0].bound(horizon)


# ---------------------------------------------------------------- what is not bounded


@dataclass(frozen=True)
class AgainstTheMajority(n.Nature):
    """y = 0 if at least half of the atoms lie above one half, else y = 1."""

    sight = Sight.LAW

    def start(self, horizon, stream):
        return self

    def probability(self, round):
        return float(2 * sum(w for v, w in round.law.items() if v > 0.5) < 1)


@pytest.mark.parametrize("atoms", [1, 4, 16])
def test_a_nature_that_sees_the_law_hurts_the_perturbed_leader_in_proportion_to_t(atoms, seed):
    """The docstring's T·E|B/K − 1/2|. Its proof is a sum over rounds of |f − 1/2|, at least as large in the mean, and
    of what the draws add, each round at most 3/2 from its mean given the past: Azuma and Hoeffding at RATE.
    """
    games, own = Games(8000, 16, RATE), f.PerturbedLeader(atoms=atoms)
    forced = sum(math.comb(atoms, j) * abs(j / atoms - 0.5) for j in range(atoms + 1)) / 2**atoms
    found = games.mean_total(own, AgainstTheMajority(), seed, u_calibration)
    assert found >= forced * 8000 - 1.5 * math.sqrt(2 * 8000 * math.log(1 / RATE) / 16)
    assert forced == pytest.approx(1 / math.sqrt(2 * math.pi * atoms), rel=0.3 / atoms)
    # Natures that see less do not: these totals are of order √T.
    assert games.mean_total(own, ALTERNATING, seed, u_calibration) < 4 * math.sqrt(8000)


# ---------------------------------------------------------------- rates

#: A rate has no constant, so what is asserted is that measured/bound does not grow: over seeds 0–7 at the small size
#: its growth exponents were −0.34 … 0.03 with standard deviations up to 0.033, those of the controls 0.37 … 0.55.
#: This much is five standard deviations from both.
FLAT = 0.2
COIN, STEPS = n.Bernoulli(), n.Sawtooth()
KEPT = [
    *((f.CDLMinimiser(), nature) for nature in (COIN, n.Drift(), STEPS, n.UniformTruth(), n.Contrarian())),
    *((f.BlumMansour(), nature) for nature in (COIN, n.Drift(), STEPS, n.UniformTruth(), n.Contrarian())),
    *(
        (f.PerturbedLeader(), nature)
        for nature in (COIN, n.Drift(), STEPS, n.UniformTruth(), n.Sidestepping(), ALTERNATING)
    ),
]
#: who promises, who plays instead, against whom
BROKEN = [
    (f.CDLMinimiser(), f.AlmostOneStepAhead(), n.Contrarian()),
    (f.CDLMinimiser(), f.EmpiricalMean(), n.Drift()),
    (f.BlumMansour(), f.AlmostOneStepAhead(), n.Contrarian()),
    (f.BlumMansour(), f.EmpiricalMean(), n.Drift()),
    (f.PerturbedLeader(), f.EmpiricalMean(), ALTERNATING),  # the leader without noise
    (
        f.PerturbedLeader(),
        f.PerturbedLeader(),
        n.Contrarian(),
    ),  # who sees the law, which the theorem does not allow
]


def trend(promising, playing, nature, seed, full):
    """The growth exponent of measured/bound in fresh games of 500 … 16 000 (`--full`: 256 000) rounds."""
    (guarantee,) = promising.guarantees
    horizons = [500 * 2**k for k in range(10 if full else 6)]
    name, bracket, task = guarantee.measure.partition("[")
    measures, tasks = ([], [task.removesuffix("]")]) if bracket else ([name], [])
    study = oc.play(playing, nature, horizon=horizons, runs=16, seed=seed, measures=measures, tasks=tasks)
    curve = study.curve(guarantee.measure)
    return growth_of_ratio(curve.rounds, curve.totals, guarantee.bound).value


@pytest.mark.slow
@pytest.mark.parametrize(("forecaster", "nature"), KEPT, ids=strategy_label)
def test_rates_are_kept(forecaster, nature, seed, full):
    assert nature.sight <= forecaster.guarantees[0].against
    assert trend(forecaster, forecaster, nature, seed, full) < FLAT


@pytest.mark.slow
@pytest.mark.parametrize(("promising", "playing", "nature"), BROKEN, ids=strategy_label)
def test_controls_break_the_rates(promising, playing, nature, seed, full):
    assert trend(promising, playing, nature, seed, full) > FLAT
