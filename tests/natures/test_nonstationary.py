"""Natures that move, or remember: their rules and randomness."""

import itertools
import math

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import Constant, EmpiricalMean
from onlinecal.natures import (
    Markov,
    Piecewise,
    RandomWalk,
    Sight,
)
from tests.natures.test_stochastic import truths, uniforms


def test_random_walk_steps_by_the_logit_and_turns_at_the_edge(seed):
    step, edge = 0.7, 0.1
    q = truths(RandomWalk(step, first=0.3, edge=edge), 3000, seed=seed)
    end = math.log((1 - edge) / edge)
    here = np.full(3, math.log(0.3 / 0.7))
    turned = 0
    for t, u in enumerate(uniforms(3000, seed=seed)):
        for r in range(3):
            here[r] += step if u[r] < 0.5 else -step
            if abs(here[r]) > end:
                here[r] = math.copysign(2 * end - abs(here[r]), here[r])
                turned += 1
        assert q[t] == pytest.approx(1 / (1 + np.exp(-here)), abs=1e-12)
    assert (
        turned > 0
    )  # within 7 steps of an edge, always: not to turn in 3000 rounds has probability below 1e-9
    assert edge - 1e-12 <= q.min() <= q.max() <= 1 - edge + 1e-12
    assert len({tuple(q[:, r]) for r in range(3)}) == 3


def test_random_walk_with_a_step_in_t():
    assert (truths(RandomWalk("T^(-1/2)"), 100) == truths(RandomWalk(0.1), 100)).all()


def test_piecewise_has_equal_pieces_of_fresh_levels(seed):
    q = truths(Piecewise(7), 3000, seed=seed)
    u = uniforms(3000, seed=seed)
    begins = [t for t in range(3000) if t == 0 or t * 7 // 3000 > (t - 1) * 7 // 3000]
    assert len(begins) == 7
    assert {b - a for a, b in itertools.pairwise(begins)} <= {428, 429}
    for a, b in zip(begins, [*begins[1:], 3000], strict=True):
        assert (q[a:b] == u[a]).all()
    assert (truths(Piecewise(), 500, seed=seed) == truths(Piecewise(10), 500, seed=seed)).all()
    assert (truths(Piecewise("T"), 50, seed=seed) == uniforms(50, seed=seed)).all()
    assert (
        truths(Piecewise(1000), 50, seed=seed) == uniforms(50, seed=seed)
    ).all()  # no more pieces than rounds


def test_piecewise_with_a_change_rate(seed):
    horizon, runs, rate = 4000, 4, 0.05
    q = truths(Piecewise(change_rate=rate), horizon, runs, seed)
    changed = q[1:] != q[:-1]
    # Changes are Binomial(15996, 0.05): by Hoeffding more than 0.026·15996 from the mean with probability < 1e-9.
    assert abs(changed.mean() - rate) < 0.026
    # About 800 fresh levels, at least 384 of them: Kolmogorov–Smirnov beyond 3.4/√n has probability below 2e-10.
    levels = np.sort(np.concatenate([q[1:][changed], q[0]]))
    gap = np.abs(levels - (np.arange(len(levels)) + 0.5) / len(levels)).max()
    assert gap < 3.4 / math.sqrt(len(levels)) + 0.5 / len(levels)
    assert (truths(Piecewise(change_rate=0), 100) == uniforms(100)[0]).all()
    assert (truths(Piecewise(change_rate=1), 100) == uniforms(100)).all()
    assert (truths(Piecewise(change_rate="5/T"), 100) == truths(Piecewise(change_rate=0.05), 100)).all()


class Recorder(Constant):
    """A constant that remembers all outcomes, to look at what a nature did."""

    def start(self, horizon, runs, stream):
        player = super().start(horizon, runs, stream)
        self.__dict__["outcomes"] = outcomes = []
        player.update = lambda round: outcomes.append(round.outcome)
        return player


def chain(nature, horizon, runs, seed):
    recorder = Recorder()
    Game(recorder, nature, horizon=horizon, runs=range(runs), seed=seed).advance(horizon)
    return np.array(recorder.outcomes)


def test_markov_outcomes_are_the_chain_that_the_engines_coins_make(seed):
    nature = Markov(0.2, 0.6)
    y = chain(nature, 500, 3, seed)
    u = Stream(seed, ("outcome", strategy_key(nature), "T=500"), range(3)).block(500)
    q = np.full(3, 0.25)
    for t in range(500):
        assert (y[t] == (u[t] < q)).all()
        q = np.where(y[t] == 1, 1 - 0.6, 0.2)
    assert nature.sight is Sight.HISTORY


def test_markov_at_its_ends(seed):
    still = chain(Markov(0, 0), 50, 40, seed)
    assert (still == still[0]).all()
    assert 0 < still[0].sum() < 40  # all of 40 fair coins alike: 2^−39
    assert (chain(Markov(1, 1), 50, 4, seed)[1:] != chain(Markov(1, 1), 50, 4, seed)[:-1]).all()
    assert chain(Markov(0, 1), 50, 4, seed).sum() == 0


def test_markov_does_not_look_at_the_forecast(seed):
    """Its outcomes are the same whoever forecasts."""
    games = [Game(f, Markov(), horizon=300, runs=range(4), seed=seed) for f in (Constant(), EmpiricalMean())]
    for game in games:
        game.advance(300)
    ones = [[gamma.positives.sum() for gamma in game.gammas()] for game in games]
    assert ones[0] == ones[1]


def test_an_expression_that_is_out_of_range_only_at_this_horizon():
    with pytest.raises(InvalidParameter, match=r"change_rate = '20/T', which is 2 at T = 10; expected"):
        Game(Constant(), Piecewise(change_rate="20/T"), horizon=10, runs=range(1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomWalk(0),
        lambda: RandomWalk(5),
        lambda: RandomWalk(edge=0),
        lambda: RandomWalk(first=0.001),
        lambda: RandomWalk(True),
        lambda: Piecewise(0),
        lambda: Piecewise(5, 0.1),
        lambda: Piecewise(change_rate=1.5),
        lambda: Piecewise(change_rate="T"),
        lambda: Markov(1.5),
        lambda: Markov(p10=float("nan")),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidParameter):
        make()
