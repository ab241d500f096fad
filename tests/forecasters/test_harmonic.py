"""Γ of laws, and what errors those of harmonic weights have; their rule is in test_classes.py."""

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import ClassMean, ForecastHedging, Harmonic, SimplexHedging
from onlinecal.measures.classes import ece
from onlinecal.natures import Categorical, Contrarian, ContrarianClasses
from onlinecal.schedules import Constant, Schedule


@pytest.mark.parametrize(("classes", "known"), [
    (2, (0.258, 0.208, 0.174)), (3, (0.304, 0.244, 0.204)), (10, (0.512, 0.414, 0.347)),
])  # fmt: skip
def test_errors_of_laws_against_a_contrarian(classes, known):
    """Of a prototype; this play is not random. Draws from the laws err by far more."""
    for horizon, value in zip((256, 1024, 4096), known, strict=True):
        game = Game(Harmonic(), ContrarianClasses(classes), horizon=horizon, runs=range(2), laws=True)
        game.advance(horizon)
        laws = [game.gamma_of_laws(run) for run in range(2)]
        assert [round(ece(gamma), 3) for gamma in laws] == [value] * 2
        assert [gamma.weight for gamma in laws] == pytest.approx([horizon] * 2)
        assert min(map(ece, game.gammas())) > value + 0.1


class Shares:
    """A plain forecaster with two points."""

    classes = 3

    def forecast(self):
        return {(0.5, 0.5, 0.0): 0.25, (0.0, 0.5, 0.5): 0.75}

    def update(self, forecast, outcome): ...


@pytest.mark.parametrize("mine", [SimplexHedging(3), Harmonic(), Shares], ids=str)
@pytest.mark.parametrize("in_python", [False, True])
def test_each_round_counts_with_its_whole_law(mine, in_python, seed):
    """The sum of the laws that questions show; it is the same from compiled code, and from a game in two pieces."""
    given = {"horizon": 60, "runs": range(2), "seed": seed}
    game, hand = Game(mine, Categorical(), laws=True, **given), Game(mine, Categorical(), **given)
    game.in_python |= in_python
    game.advance(25)
    game.advance(60)
    expected = [{}, {}]
    for _ in range(60):
        question = hand.ask()
        hand.resolve(question)
        for each, law, q in zip(expected, question.laws, question.each, strict=True):
            for point, w in law.items():
                each.setdefault(point, np.zeros(3))[q.outcome] += w
    for run, each in enumerate(expected):
        gamma = game.gamma_of_laws(run)
        there = {point: tallies for point, tallies in each.items() if tallies.any()}
        assert [tuple(point) for point in gamma.predictions.tolist()] == sorted(there)
        assert gamma.tallies == pytest.approx(np.array([there[point] for point in sorted(there)]), abs=1e-12)


def test_without_randomness_laws_are_draws():
    game = Game(ClassMean(5), Categorical(), horizon=200, runs=range(1), laws=True)
    game.advance(200)
    (drawn,), laws = game.gammas(), game.gamma_of_laws(0)
    assert np.array_equal(drawn.predictions, laws.predictions)
    assert np.array_equal(drawn.tallies, laws.tallies)


def test_what_is_refused():
    given = {"horizon": 20, "runs": range(1)}
    with pytest.raises(InvalidParameter, match=r"10,?000"):
        Game(Harmonic(), ContrarianClasses(), horizon=10_001, runs=range(1))
    with pytest.raises(InvalidParameter, match="expected outcomes that become known at once"):
        Game(Harmonic(), ContrarianClasses(), laws=True, schedule=Schedule(delays=Constant(2)), **given)
    with pytest.raises(InvalidParameter, match="nature 'contrarian'; expected one of classes"):
        Game(ForecastHedging(), Contrarian(), laws=True, **given)
    with pytest.raises(InvalidParameter, match="expected laws=True at its beginning"):
        Game(Harmonic(), ContrarianClasses(), **given).gamma_of_laws(0)
