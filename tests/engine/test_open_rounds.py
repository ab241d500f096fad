"""Open rounds: what is not the game's own or comes twice is refused, and what is handed out is nobody else's."""

import copy
import pickle

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import Constant, EmpiricalMean, ForecastHedging
from onlinecal.natures import Bernoulli, UniformTruth


def game_of(forecaster=None, nature=None, horizon=6, runs=2, **options):
    return Game(
        forecaster or EmpiricalMean(), nature or Bernoulli(), horizon=horizon, runs=range(runs), **options
    )


# ---------------------------------------------------------------- whose round it is, and once


@pytest.mark.parametrize("loop", ["auto", "event"])
def test_a_round_of_another_game_is_refused_and_changes_nothing(loop):
    mine = game_of(ForecastHedging(2), loop=loop)
    mine.advance(2)
    before = [gamma.counts.tolist() for gamma in mine.gammas()]
    for other in (
        game_of(ForecastHedging(2)),  # of the same form
        game_of(ForecastHedging(100), horizon=50),
        game_of(ForecastHedging(2), runs=5),
        game_of(horizon=50),
    ):
        for _ in range(4):
            with pytest.raises(InvalidParameter, match=r"round . was not asked by this game"):
                mine.resolve(other.ask())
    assert mine.resolved == 2
    assert [gamma.counts.tolist() for gamma in mine.gammas()] == before
    mine.advance(6)


def test_a_round_is_resolved_once_whatever_time_it_had():
    game = game_of()
    open = game.ask()
    game.resolve(open, time=7.0)
    for again in (open, copy.copy(open)):
        with pytest.raises(InvalidParameter, match="round 1 has been resolved"):
            game.resolve(again)
    assert game.resolved == 1


def test_rounds_that_were_pickled_alone_are_no_longer_of_the_game():
    game = game_of()
    open = game.ask()
    with pytest.raises(InvalidParameter, match="pickled together"):
        game.resolve(pickle.loads(pickle.dumps(open)))
    game, open = pickle.loads(pickle.dumps((game, open)))
    game.resolve(open)
    assert game.resolved == 1


def test_a_copied_game_is_a_game_of_its_own():
    game = game_of(horizon=20, loop="event")
    game.advance(10)
    other = copy.copy(game)
    game.advance(20), other.advance(20)
    assert game.gammas()[0].weight == other.gammas()[0].weight == 20
    assert (game.gammas()[0].predictions == other.gammas()[0].predictions).all()


@pytest.mark.parametrize("time", ["x", float("nan"), float("inf"), True, 1j])
def test_times_are_times(time):
    game = game_of()
    with pytest.raises(InvalidParameter, match=r"time = .*; expected a finite number"):
        game.ask(time)
    open = game.ask(3.0)
    with pytest.raises(InvalidParameter, match=r"time = .*; expected a finite number, 3\.0 or later"):
        game.resolve(open, time)
    with pytest.raises(InvalidParameter, match=r"time = 2\.5; expected a finite number, 3\.0 or later"):
        game.resolve(open, 2.5)
    game.resolve(open, 3.0)
    assert game.resolved == 1


# ---------------------------------------------------------------- what is handed out


def test_the_law_of_the_next_round_is_a_copy():
    game = game_of(Constant(0.3))
    law = game.law()
    for array in (law.atoms, law.weights, law.support, law.mean):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.9
    kept = game_of(loop="event")
    kept.advance(1)
    law = kept.law()
    mean = law.mean.tolist()
    kept.advance(5)
    assert law.mean.tolist() == mean != kept.law().mean.tolist()  # the control: laws change
    kept.advance(6)
    with pytest.raises(InvalidParameter, match="round 7 is beyond the horizon 6"):
        kept.law()


class _Needs(ForecastHedging):
    needs = frozenset({"truth"})


@pytest.mark.parametrize("how", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_what_is_shown_of_copied_rounds_can_only_be_read(how):
    game = game_of(_Needs(), UniformTruth())
    open = game.ask()
    game, open = how((game, open))
    law = open.round.law
    for array in (
        open.round.context["truth"],
        law.grid,
        law.atoms,
        law.support,
        law.mean,
        open.round.forecast,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    game.resolve(open)


# ---------------------------------------------------------------- the form of an array


@pytest.mark.filterwarnings(
    "ignore:Setting the .* has been deprecated:DeprecationWarning"
)  # which NumPy 2.5 says
def test_the_form_of_what_is_handed_out_is_nobody_elses():
    """Locked arrays have a shape, strides and a type that can be set in place; each reader has its own."""
    game = game_of(_Needs(), UniformTruth(), runs=4)
    round = game.ask().round

    def shown():
        law = round.law
        arrays = [law.grid, law.atoms, law.weights, law.support, law.mean]
        return [*arrays, round.forecast, round.drawn, round.atom, round.context["truth"]]

    forms = [(array.shape, array.dtype, array.tolist()) for array in shown()]
    for array in shown():
        array.shape = (array.size, 1)
    for array in shown():
        array.dtype = np.uint8
    assert [(array.shape, array.dtype, array.tolist()) for array in shown()] == forms
    game.advance(6)
