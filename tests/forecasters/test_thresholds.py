"""Exponential weights over signed thresholds: the rule, each step of the proof, the bound, and what breaks it."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core._compile import part_of_kernel
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.game import Game
from onlinecal.exploit import exploit
from onlinecal.forecasters import StepCEMinimiser
from onlinecal.forecasters import thresholds as thresholds_module
from onlinecal.forecasters.thresholds import _memory, _tree, best_rate
from onlinecal.measures import cutoff_ce, step_ce
from onlinecal.natures import Bernoulli, Contrarian, Drift, Greedy, HalfCrossing, KinkApproach
from onlinecal.rounds.steps import law, law_weights
from tests.bounds_in_games import Games
from tests.by_hand import Driven
from tests.oracles.forecasters import StepCE

ROUNDING = 1e-9
RATE = 1e-9  # of false failures, for each bound on a mean


def with_biases(m, horizon, biases):
    """A player whose only run has these m·E_i."""
    player = Driven(StepCEMinimiser(m), horizon)
    tree = _tree(np.asarray(biases, np.int64), best_rate(horizon, m) / m)
    player.memory.ints[0], player.memory.floats[0] = biases, tree.ravel()
    return player


@st.composite
def states(draw):
    """A grid, T, how often each point was played, and with how many ones."""
    m = draw(st.integers(1, 12))
    counts = np.array(draw(st.lists(st.integers(0, 40), min_size=m + 1, max_size=m + 1)))
    return m, draw(st.integers(1, 10_000)), counts, np.array([draw(st.integers(0, int(n))) for n in counts])


# ---------------------------------------------------------------- the rule


@given(st.integers(1, 40), st.integers(1, 80), st.integers(0, 99))
def test_after_any_game_the_tree_is_that_of_its_biases(m, horizon, seed):
    game = Game(StepCEMinimiser(m), Bernoulli(0.4), horizon=horizon, runs=range(2), seed=seed)
    game.advance(horizon)
    biases = m * game.history.positives - np.arange(m + 1) * game.history.counts
    for run in range(2):
        tree = _tree(biases[run], best_rate(horizon, m) / m)
        # To the last bit: the laws depend on the biases alone, whatever the order of the rounds.
        assert (game.forecaster.memory.ints[run] == biases[run]).all()
        assert (game.forecaster.memory.floats[run] == tree.ravel()).all()


@given(states())
def test_the_law_is_that_of_the_rule(state):
    m, horizon, counts, ones = state
    biases = m * ones - np.arange(m + 1) * counts
    law = with_biases(m, horizon, biases).points()
    rule = StepCE(m, horizon)
    rule.bias = biases
    assert rule.agrees({i / m: w for i, w in law.items()})


@given(
    st.integers(1, 30).flatmap(
        lambda m: st.lists(st.integers(-(10**11), 10**11), min_size=m + 1, max_size=m + 1)
    )
)
def test_huge_biases_give_laws(biases):
    m = len(biases) - 1
    law = with_biases(m, 10**8, biases).points()
    assert sum(law.values()) == 1.0
    assert all(0 <= i <= m and 0 < w <= 1 for i, w in law.items())


@given(st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.floats(-3, 3)), min_size=2), st.integers(250, 500))
def test_the_law_is_that_of_the_rule_beyond_floats(exponents, size):
    """From e^ηP that are floats to those that are far from it: the sums are then taken by logarithms."""
    m, horizon = len(exponents) - 1, 1000
    moved = np.array([sign * size + more for sign, more in exponents])
    rule = StepCE(m, horizon)
    rule.bias = np.diff(moved * m / rule.rate, prepend=0.0).astype(np.int64)
    law = with_biases(m, horizon, rule.bias).ask()
    i, (w, rest) = int(law.atoms[0, 0]), law.weights[0]
    (here, size), (there, other) = rule.gain(i), rule.gain(i + 1)
    here, there = (
        w * here * math.exp(size - max(size, other)),
        rest * there * math.exp(other - max(size, other)),
    )
    below, above = i == 0 and w == 1.0 and here < 0.0, i + 1 == m and rest == 1.0 and there > 0.0
    # A weight may be too small for a float.
    assert below or above or (abs(here + there) <= 1e-9 and here >= -1e-9)


def test_exact_ties_of_large_weights():
    """Thresholds of opposite signs whose weights are of equal size, and far beyond any float."""
    m, horizon = 4, 100
    law = with_biases(m, horizon, [0, 10**7, -2 * 10**7, 10**7, 0]).points()
    assert sum(law.values()) == 1.0
    assert set(law) <= {1, 2}


# ---------------------------------------------------------------- the proof


@given(states())
def test_the_proof_step_by_step(state):
    """From any state and for either outcome Φ = Σ cosh(ηP_k) grows by the factor of the proof at most, in expectation;
    it bounds the total; and the stated potential is its logarithm.
    """
    m, horizon, counts, ones = state
    grid, rate = np.arange(m + 1) / m, best_rate(horizon, m)
    player = with_biases(m, horizon, m * ones - np.arange(m + 1) * counts)
    stated = StepCEMinimiser(m).guarantees[0].potential

    def log_potential(counts, ones):
        exponents = rate * np.cumsum(ones - counts * grid)
        return np.logaddexp.reduce(np.concatenate([exponents, -exponents])) - math.log(2)

    before = log_potential(counts, ones)
    largest = np.abs(np.cumsum(ones - counts * grid)).max()
    assert rate * largest <= before + math.log(2) + ROUNDING
    if counts.sum():
        gamma = JointDistribution.from_counts(grid, counts, ones)
        assert counts.sum() * step_ce(gamma) == pytest.approx(largest, abs=1e-9)
        assert stated.of(gamma, horizon) == pytest.approx(before, rel=1e-9)
    allowed = stated.growth(None, 0.5, horizon)
    coarse = max(1.0, 2 * math.sinh(rate / (2 * m)))
    assert allowed == pytest.approx(
        math.log(math.exp(rate**2 / 8) + coarse * math.expm1(rate) / (4 * m)), rel=1e-9
    )
    for y in (0, 1):
        after = [
            math.log(w) + log_potential(counts + one, ones + y * one)
            for i, w in player.points().items()
            for one in [np.eye(m + 1, dtype=int)[i]]
        ]
        assert np.logaddexp.reduce(after) <= before + allowed + ROUNDING


def test_the_growth_is_below_the_exponent_of_the_bound():
    """T times the growth, and the start: what Jensen's inequality makes of them is at most the stated bound."""
    for m in ("T^(1/2)", 1, 3, 50, "2 * T^(1/2)"):
        (guarantee,) = StepCEMinimiser(m).guarantees
        for horizon in (1, 2, 5, 10, 100, 1000, 10**4, 10**6, 10**8):
            steps = StepCEMinimiser(m).steps_at(horizon)
            rate = best_rate(horizon, steps)
            proved = (
                math.log(2 * steps + 2) + horizon * guarantee.potential.growth(None, 0.5, horizon)
            ) / rate
            assert min(horizon, proved) <= guarantee.bound(horizon) * (1 + ROUNDING)
            assert rate > 0.96 * steps or 2 * math.sinh(rate / (2 * steps)) <= 1


def test_the_bound_at_root_t():
    (guarantee,) = StepCEMinimiser().guarantees
    for horizon, apart in ((1000, 0.03), (10**5, 0.003), (10**8, 1e-4)):
        about = math.sqrt(horizon) * (math.sqrt(math.log(2 * math.sqrt(horizon) + 2) / 2) + 0.25)
        assert about < guarantee.bound(horizon) < (1 + apart) * about
    steps = StepCEMinimiser().steps_at
    assert [t for t in range(1, 100) if best_rate(t, steps(t)) > 0.96 * steps(t)] == [1, 2, 3]


# ---------------------------------------------------------------- the bound in games


HORIZON, RUNS = 4000, 8


GAMES = Games(HORIZON, RUNS, RATE)
mean_total, allowed = GAMES.mean_total, GAMES.allowed


@pytest.mark.parametrize("m", ["T^(1/2)", 7])
@pytest.mark.parametrize(
    "nature", [Contrarian(), Greedy(), Greedy("square"), KinkApproach(), HalfCrossing(), Drift(), Bernoulli()],
    ids=repr,
)  # fmt: skip
def test_it_keeps_its_bound(nature, m, seed):
    assert mean_total(StepCEMinimiser(m), nature, seed, step_ce) <= allowed(StepCEMinimiser(m))
    assert mean_total(StepCEMinimiser(m), nature, seed, cutoff_ce) <= 2 * allowed(StepCEMinimiser(m))


@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("horizon", [1, 2, 6])
def test_the_worst_nature_of_all_does_not_force_more(m, horizon):
    """Exactly, over all natures that see the law."""
    assert exploit(StepCEMinimiser(m), horizon, "step_ce").value <= StepCEMinimiser(m).guarantees[0].bound(
        horizon
    )


@dataclass(frozen=True)
class OtherRate(StepCEMinimiser):
    """A mistake: η is so many times what it should be."""

    times: float = 1.0

    def start(self, horizon, stream):
        # η depends on T as 1/√T, and the grid is given.
        m = self.steps_at(horizon)
        player = StepCEMinimiser(m).start(horizon, stream)
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


class NoMixing(StepCEMinimiser):
    def start(self, horizon, stream):
        player = super().start(horizon, stream)
        player.steps = _likelier, player.steps[1]
        return player


def test_controls_break_the_bound(seed):
    """At η/1000 and 100 η, without mixing, and against a nature that sees the draw."""
    limit = allowed(StepCEMinimiser())
    assert mean_total(OtherRate(times=1.0), Greedy("square"), seed, step_ce) < limit
    assert mean_total(OtherRate(times=1e-3), Greedy("square"), seed, step_ce) > limit
    assert mean_total(OtherRate(times=100.0), Greedy("square"), seed, step_ce) > 2 * limit
    assert mean_total(NoMixing(), Contrarian(), seed, step_ce) > 2 * limit
    assert mean_total(StepCEMinimiser(), Contrarian(sees="draw"), seed, step_ce) > 2 * limit
