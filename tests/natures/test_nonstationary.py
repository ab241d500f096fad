"""Natures that move, or remember: their rules and randomness."""

import itertools
import math

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import Constant, EmpiricalMean
from onlinecal.natures import (
    Markov,
    Piecewise,
    RandomWalk,
    Sight,
)
from tests.by_hand import noted, own_uniforms, truths


def test_random_walk_steps_by_the_logit_and_turns_at_the_edge(seed):
    step, edge = 0.7, 0.1
    nature = RandomWalk(step, first=0.3, edge=edge)
    q = truths(nature, 3000, seed=seed)
    end = math.log((1 - edge) / edge)
    here = np.full(3, math.log(0.3 / 0.7))
    turned = 0
    for t, u in enumerate(own_uniforms(nature, 3000, seed=seed)):
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


def test_steps_and_pieces_in_t():
    """Expressions in T are what they come to; the parameters, and so the draws, are those of different natures."""
    for first, second, horizon in (
        (RandomWalk("T^(-1/2)"), RandomWalk(0.1), 100),
        (Piecewise(), Piecewise(10), 500),
        (Piecewise("T"), Piecewise(1000), 50),
        (Piecewise(change_rate="5/T"), Piecewise(change_rate=0.05), 100),
    ):
        one, two = (spec.start(horizon, Stream(0, ("same",), range(1))).memory for spec in (first, second))
        assert (one.floats == two.floats).all()
        assert (one.shared == two.shared).all()


def test_piecewise_has_equal_pieces_of_fresh_levels(seed):
    q, u = truths(Piecewise(7), 3000, seed=seed), own_uniforms(Piecewise(7), 3000, seed=seed)
    begins = [t for t in range(3000) if t == 0 or t * 7 // 3000 > (t - 1) * 7 // 3000]
    assert len(begins) == 7
    assert {b - a for a, b in itertools.pairwise(begins)} <= {428, 429}
    for a, b in zip(begins, [*begins[1:], 3000], strict=True):
        assert (q[a:b] == u[a]).all()
    many = Piecewise(1000)  # no more pieces than rounds
    assert (truths(many, 50, seed=seed) == own_uniforms(many, 50, seed=seed)).all()


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
    for nature, changes in ((Piecewise(change_rate=0), False), (Piecewise(change_rate=1), True)):
        own = own_uniforms(nature, 100)
        assert (truths(nature, 100) == (own if changes else own[0])).all()


def chain(nature, horizon, runs, seed):
    return np.array([round.outcome for round in noted(Constant(), nature, horizon, runs, seed)[0]])


def test_markov_is_the_chain(seed):
    nature, q = Markov(0.2, 0.6), np.full(3, 0.25)
    for round in noted(Constant(), nature, 500, 3, seed)[0]:
        assert (round.q == q).all()
        q = np.where(round.outcome == 1, 1 - 0.6, 0.2)
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
