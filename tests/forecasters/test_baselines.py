"""Baselines: their rules."""

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    Constant,
    EmpiricalMean,
    LastOutcome,
    Logistic,
    Shifted,
    Tempered,
    Truthful,
    UniformRandom,
)
from onlinecal.measures import brier
from onlinecal.natures import Bernoulli, UniformTruth
from tests.rounds_by_hand import asked


@pytest.mark.parametrize(
    ("prior", "said"), [(1.0, [1 / 2, 2 / 3, 3 / 4]), (0.5, [1 / 2, 3 / 4, 5 / 6]), (0, [0.5, 1, 1])]
)
def test_empirical_means_of_ones(prior, said):
    game = Game(EmpiricalMean(prior), Bernoulli(1.0), horizon=3, runs=range(1))
    game.advance(3)
    assert game.gammas()[0].predictions == pytest.approx(sorted(set(said)))


def first_law(player, context=None):
    law = player.forecast(asked(**context or {}))
    values = law.atoms if law.grid is None else law.grid[law.atoms]
    return values[0], law.weights[0]


def test_baselines():
    assert first_law(LastOutcome().start(9, 1, None))[0].tolist() == [0.5]
    values, weights = first_law(UniformRandom(4).start(9, 1, None))
    assert values.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert weights.tolist() == [0.2] * 5
    truth = {"truth": np.array([0.2])}
    assert first_law(Truthful().start(9, 1, None), truth)[0][0] == 0.2
    assert first_law(Tempered(1.0).start(9, 1, None), truth)[0][0] == 0.2
    assert first_law(Tempered(2.0).start(9, 1, None), truth)[0][0] == pytest.approx(0.04 / (0.04 + 0.64))
    for q in (0.0, 1.0, 0.5):
        assert first_law(Tempered(3.0).start(9, 1, None), {"truth": np.array([q])})[0][0] == q
    assert first_law(Shifted(0.25).start(9, 1, None), truth)[0][0] == pytest.approx(0.45)
    assert first_law(Shifted(-0.25).start(9, 1, None), truth)[0][0] == 0.0
    assert first_law(Shifted(1.0).start(9, 1, None), truth)[0][0] == 1.0


@pytest.mark.parametrize("x", [-1.0, -0.3, 0.0, 0.4, 1.0])
def test_logistic(x):
    def said(slope, intercept=0.0):
        player = Logistic(slope, intercept).start(9, 1, None)
        return first_law(player, {"features": np.array([x])})[0][0]

    assert said(4.0, 0.5) == pytest.approx(1 / (1 + np.exp(-(4 * x + 0.5))), rel=1e-14)
    assert said(-4.0) == pytest.approx(1 - said(4.0), rel=1e-12)  # the flipped one
    # So steep that the exponential of the larger number would overflow.
    assert said(1000.0) == pytest.approx(0.5 + 0.5 * np.sign(x), abs=1e-100)


def test_last_outcome_remembers():
    game = Game(LastOutcome(), Bernoulli(0.5), horizon=200, runs=range(3))
    last = np.full(3, 0.5)
    for t in range(1, 201):
        law = game.forecaster.forecast(asked(t))
        assert law.grid[law.atoms[:, 0]].tolist() == last.tolist()
        open = game.ask()
        game.resolve(open)
        last = open.round.outcome.astype(float)


def test_the_truthful_are_calibrated_and_the_tempered_are_not(seed):
    """Brier totals: E[(y − q)²] = 1/6 for uniform truths.

    Hoeffding over 8·4000 rounds: off by more than 0.02 with probability below 2·exp(−2·32000·0.02²) < 2e-11.
    """
    briers = {}
    for forecaster in (Truthful(), Tempered(4.0)):
        game = Game(forecaster, UniformTruth(), horizon=4000, runs=range(8), seed=seed)
        game.advance(4000)
        briers[forecaster] = np.mean([brier(gamma) for gamma in game.gammas()])
    assert briers[Truthful()] == pytest.approx(1 / 6, abs=0.02)
    assert briers[Tempered(4.0)] > briers[Truthful()] + 0.01


@pytest.mark.parametrize(
    "make",
    [
        lambda: Constant(1.2),
        lambda: Constant("0.5"),
        lambda: EmpiricalMean(-1),
        lambda: UniformRandom(0),
        lambda: Tempered(-1),
        lambda: Shifted(1.5),
        lambda: Logistic(float("nan")),
        lambda: Logistic(1.0, 1e4),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidParameter):
        make()
