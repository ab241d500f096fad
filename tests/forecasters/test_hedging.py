"""Hedging on a grid: the pair that is found, its biases, its weights, its constants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    CDLMinimiser,
    ForecastHedging,
)
from onlinecal.forecasters.hedging import _sinh, pair
from onlinecal.natures import Bernoulli, Greedy
from onlinecal.rounds.hand import Hand
from tests.by_hand import Driven
from tests.forecasters.biases import set_biases, weights


@given(st.integers(1, 40).flatmap(lambda m: st.lists(st.integers(-5, 5), min_size=m + 1, max_size=m + 1)))
def test_a_pair_of_opposite_signs_is_always_found(bias):
    bias[0], bias[-1] = abs(bias[0]), -abs(bias[-1])
    i = pair(np.array(bias))
    assert bias[i] >= 0 >= bias[i + 1]


@given(st.integers(1, 30), st.data())
def test_biases_are_what_they_say(m, data):
    """After any game the forecaster's integers are m·E, and the AdaNormalHedge ratio is that of its definition."""
    horizon = data.draw(st.integers(1, 60))
    game = Game(
        CDLMinimiser(m), Bernoulli(0.4), horizon=horizon, runs=range(2), seed=data.draw(st.integers(0, 99))
    )
    game.advance(horizon)
    counts, ones = game.history.counts, game.history.positives
    state = game.forecaster.memory.ints
    bias, pairs, rounds = state[:, : m + 1], state[:, m + 1], state[:, m + 2 :]
    assert (bias == m * ones - np.arange(m + 1) * counts).all()
    assert (rounds == counts).all()
    law = Hand(game.forecaster).ask(horizon + 1)
    for run in range(2):
        i = law.atoms[run, 0]
        assert i == pairs[run] == pair(bias[run])
        h = [abs(ada_normal_hedge(bias[run, j] / m, counts[run, j])) for j in (i, i + 1)]
        share = 0.5 if sum(h) == 0 else h[1] / sum(h)
        assert law.weights[run, 0] == pytest.approx(share, abs=1e-12)


def ada_normal_hedge(bias, rounds):
    """h(E, n) by the letter of Luo and Schapire."""

    def w(r, c):
        return 0.5 * (
            math.exp(max(r + 1, 0) ** 2 / (3 * (c + 1))) - math.exp(max(r - 1, 0) ** 2 / (3 * (c + 1)))
        )

    return w(bias, rounds) - w(-bias, rounds)


@given(st.floats(0, 2 / 3))
def test_the_series_is_the_hyperbolic_sine(x):
    assert _sinh(x) == pytest.approx(math.sinh(x), rel=4e-16, abs=5e-324)


def test_weights_of_huge_biases_do_not_overflow():
    player, rounds = Driven(CDLMinimiser(2), 10**9), np.array([10, 10**8, 10**8])
    set_biases(player, np.array([0, 2 * 10**8, -2 * 10**8]), rounds)
    assert sum(player.law().values()) == 1.0
    set_biases(player, np.array([0, 2 * 10**8, -1]), rounds)
    assert player.points() == {2: 1.0}


@pytest.mark.parametrize("nature", [Greedy(), Bernoulli(0.5)], ids=["greedy", "bernoulli"])
def test_kept_weights_are_those_of_the_biases(nature):
    game = Game(CDLMinimiser(9), nature, horizon=500, runs=range(3))
    game.advance(500)
    memory = game.forecaster.memory
    for ints, floats in zip(memory.ints, memory.floats, strict=True):
        biases, rounds = ints[:10], ints[11:]
        assert rounds.sum() == 500
        assert floats[:-1] == pytest.approx(weights(biases, rounds), rel=1e-15, abs=0)


def test_the_bound_of_hedging_in_the_words_of_its_docstring():
    (guarantee,) = ForecastHedging().guarantees
    by_power = [guarantee.bound(t) / t ** (2 / 3) for t in (1000, 10**6, 10**15)]
    assert by_power == pytest.approx([1.43, 1.2279, (1 + math.sqrt(2)) / 2], rel=2e-4)
    assert max(guarantee.bound(t) / t ** (2 / 3) for t in range(1000, 20_000, 7)) == by_power[0]
    for m, horizon in ((1, 7), (4, 500), (30, 10**5)):
        said = horizon / (2 * m) + m + 1 + math.sqrt((m + 1) * (m + 1 + horizon / 2 + horizon / m))
        assert ForecastHedging(m).guarantees[0].bound(horizon) == pytest.approx(said, rel=1e-12)
