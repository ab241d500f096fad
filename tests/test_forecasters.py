"""Forecasters: their rules, and their guarantees with controls that break them.

Stochastic tests hold for any --seed; where a test is stochastic its false-failure rate is stated.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    FORECASTERS,
    AlmostOneStepAhead,
    CDLMinimiser,
    Constant,
    EmpiricalMean,
    ForecastHedging,
)
from onlinecal.forecasters.hedging import _sinh, pair
from onlinecal.natures import Bernoulli, Contrarian, Drift, UniformTruth
from tests.rounds import asked, drawn

NATURES = [Bernoulli(0.5), Bernoulli(0.1), Bernoulli(1.0), Drift(), Drift(1.0, 0.2), UniformTruth(), Contrarian(),
           Contrarian(sees="draw")]  # fmt: skip
RATE = 1e-9  # of false failures, for each stochastic assertion


def laws(player):
    """What a fresh player of one run says before it has seen anything."""
    law = player.forecast(asked(1))
    return {float(law.atoms[0, j]): float(law.weights[0, j]) for j in range(law.atoms.shape[1])}


# ---------------------------------------------------------------- rules


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
    bias, rounds = np.split(game.forecaster.memory.ints, 2, axis=1)
    assert (bias == m * ones - np.arange(m + 1) * counts).all()
    assert (rounds == counts).all()
    law = game.forecaster.forecast(asked(horizon + 1))
    for run in range(2):
        i = law.atoms[run, 0]
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
    player = CDLMinimiser(2).start(10**9, 1, None)
    player.memory.ints[0] = (0, 2 * 10**8, -2 * 10**8, 10, 10**8, 10**8)
    law = player.forecast(asked(1))
    assert np.isfinite(law.weights).all()
    assert law.weights.sum() == 1.0
    player.memory.ints[0, :3] = (0, 2 * 10**8, -1)
    assert player.forecast(asked(1)).weights[0].tolist() == [0.0, 1.0]


def test_first_forecasts():
    assert laws(Constant(0.3).start(10, 1, None)) == {0: 1.0}
    assert laws(EmpiricalMean().start(10, 1, None)) == {0.5: 1.0}
    assert laws(EmpiricalMean(0).start(10, 1, None)) == {0.5: 1.0}
    assert laws(ForecastHedging(10).start(10, 1, None)) == {5: 0.5, 6: 0.5}
    assert laws(AlmostOneStepAhead(10).start(10, 1, None)) == {5: 1.0}


@pytest.mark.parametrize(
    ("prior", "said"), [(1.0, [1 / 2, 2 / 3, 3 / 4]), (0.5, [1 / 2, 3 / 4, 5 / 6]), (0, [0.5, 1, 1])]
)
def test_empirical_means_of_ones(prior, said):
    game = Game(EmpiricalMean(prior), Bernoulli(1.0), horizon=3, runs=range(1))
    game.advance(3)
    assert game.gammas()[0].predictions == pytest.approx(sorted(set(said)))


@pytest.mark.parametrize(
    "make",
    [lambda: Constant(1.2), lambda: Constant("0.5"), lambda: EmpiricalMean(-1), lambda: ForecastHedging(0),
     lambda: ForecastHedging("T^(1/0)"), lambda: AlmostOneStepAhead("m"), lambda: CDLMinimiser(-3)],
)  # fmt: skip
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize("cls", FORECASTERS.values(), ids=list(FORECASTERS))
def test_documented(cls):
    for section in ("Guarantee", "Information", "Source", "Deviations"):
        assert section in cls.__doc__


# ---------------------------------------------------------------- a guarantee that holds for every sequence


@given(st.lists(st.integers(0, 1), min_size=1, max_size=80))
def test_the_imagined_biases_never_exceed_one(outcomes):
    """On any sequence of outcomes whatever, not only those that our natures make."""
    m = 4
    player = AlmostOneStepAhead(m).start(100, 1, None)
    bias = player.memory.ints[0, :-1]
    for t, y in enumerate(outcomes):
        law = player.forecast(asked(t + 1))
        player.update(drawn(law, 0, y))
        assert np.abs(bias).max() <= m  # in units of 1/m
        assert bias[0] == bias[m] == 0
