"""Questions by hand: in any order and mixed with the schedule's, outcomes from outside, and what is refused."""

import copy
import math
from functools import partial
from itertools import product

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.schedules import Constant, Schedule
from tests.engine.games import Laws, Mean, SeesDraw, Shown, Timed, again, came_to, game_of, played
from tests.engine.test_objects import Fails

PAIRS = [
    (f.CDLMinimiser(), n.Greedy()), (f.DefensiveForecasting(), SeesDraw), (Laws, n.Drift()), (Shown, Timed),
    (f.Separate(f.ForecastHedging()), n.Streams((n.Greedy(), n.Contrarian("draw")))),
    (f.Delayed(f.PerturbedLeader(), slots=9), n.Mixture((n.Greedy(), n.Drift()))),
]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_by_hand_and_by_the_schedule_mix(pair, seed):
    """With open questions, whether the game is stored meanwhile or not, and in Python."""

    def flying(stop, in_python=False):
        schedule, waiting = Schedule(delays=Constant(1)), []
        game = game_of(*pair, 90, seed=seed, schedule=schedule, cuts=[30.5], keeps=())
        game.in_python |= in_python
        for until in (10, 30, 31, 60, 90):
            waiting += [game.ask(game.asked + 1.0) for _ in range(2)]
            game, waiting = stop((game, waiting))
            game.resolve(waiting.pop(until % len(waiting)), time=until + 5.0, outcome=until % 2)
            game.advance(until)
        for question in waiting[::-1]:
            game.resolve(question, time=200.0)
        assert (game.asked, game.resolved) == (90, 89)  # the last question of the schedule stays open
        return came_to(game)

    played_through = flying(lambda both: both)
    assert flying(again) == flying(copy.deepcopy) == played_through == flying(again, in_python=True)


@pytest.mark.parametrize("forecaster", [f.ForecastHedging(3), Laws], ids=str)
def test_what_a_question_says(forecaster, seed):
    game = game_of(forecaster, n.Contrarian("draw"), 40, runs=range(2, 5), seed=seed, keeps=())
    for number in range(1, 41):
        laws = game.laws()
        assert game.asked == number - 1
        question = game.ask(time=number + 0.5)
        assert (question.number, question.time, question.resolved) == (number, number + 0.5, False)
        assert question.laws == laws
        for p, q, law in zip(question.forecast, question.probability, laws, strict=True):
            assert (p in law, q) == (True, p < 0.5)
        for name in ("number", "time", "forecast", "probability", "laws", "resolved"):
            with pytest.raises(AttributeError, match=name):
                setattr(question, name, 3)
        laws[0].clear(), question.laws[0].clear()
        question.forecast[:] = question.probability[:] = 0.0  # copies
        game.resolve(question)
        assert question.resolved
    rounds = game.transcripts.of(1)
    assert rounds.asked.tolist() == rounds.known.tolist() == [number + 0.5 for number in range(1, 41)]
    with pytest.raises(InvalidParameter, match="round 41 is beyond the horizon 40"):
        game.ask()


def test_rounds_are_kept_in_the_order_of_their_outcomes_which_may_come_from_outside():
    """In each run its own; what forecasters make of them is in tests/forecasters/test_in_flight.py."""
    game = game_of(f.ForecastHedging(), n.Drift(), 9, keeps=())
    first, second = game.ask(), game.ask(2.5)
    game.resolve(second, 4.0, outcome=1)
    game.resolve(first, outcome=0)
    for good in (True, 1.0, np.int8(1), [0, 1], np.array([True, False])):
        game.resolve(game.ask(), outcome=good)
    game.advance(9)
    found, other = map(game.transcripts.of, range(2))
    assert found.numbers.tolist() == [2, 1, *range(3, 10)]
    assert found.asked.tolist() == [2.5, 1.0, *range(3, 10)]
    assert found.known.tolist() == [4.0, 1.0, *range(3, 10)]
    assert found.outcomes[:7].tolist() == [1, 0, 1, 1, 1, 0, 1]
    assert other.outcomes[:7].tolist() == [1, 0, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    "told",
    [
        *({"outcome": y} for y in (2, -1, 0.5, math.nan, "1", [0], [0, 1, 1], [[0, 1]], [0, None], 1j)),
        *({"time": time} for time in ("x", math.nan, math.inf, True, 1j, 2.5)),
    ],
    ids=repr,
)
def test_what_is_no_outcome_or_time_is_refused_and_changes_nothing(told):
    game, (name, value) = game_of(), *told.items()
    question = game.ask(3.0)
    if name == "time" and value != 2.5:  # a question may be asked before the others
        with pytest.raises(InvalidParameter, match=r"time = .*; expected a finite number$"):
            game.ask(**told)
    with pytest.raises(
        InvalidParameter, match=rf"{name} = .*; expected (0 or 1, or|a finite number, 3\.0 or)"
    ):
        game.resolve(question, **told)
    assert (game.asked, game.resolved) == (1, 0)
    game.resolve(question, 3.0)
    assert game.resolved == 1


def test_a_question_is_resolved_once_and_by_its_game():
    game, other = game_of(f.ForecastHedging(2)), game_of(f.ForecastHedging(2))
    game.advance(2)
    question = game.ask()
    game.resolve(question, time=7.0)
    stored, after = again(game), came_to(game)
    foreign = other.ask(), other.ask(), game_of(horizon=50, runs=range(5)).ask(), again(other.ask())
    match = r"^.{1,80} is no open question of this game; expected one that it asked, each once"
    for bad, each in product((question, copy.copy(question), *foreign, None, "round", 3), (game, stored)):
        with pytest.raises(InvalidParameter, match=match):
            each.resolve(bad)
    assert came_to(game) == came_to(stored) == after
    game.advance(6)


@pytest.mark.parametrize(("where", "number"), [("forecast", 4), ("update", 5), ("probability", 4)])
def test_a_player_that_fails_by_hand_ends_the_game(where, number):
    game = game_of(Mean, Fails(where)) if where == "probability" else game_of(Fails(where))
    first = game.ask()

    def go_on():
        while True:
            game.resolve(game.ask())

    with pytest.raises(InvalidForecast, match=rf"failed in round {number}, run 0: ValueError: boom") as told:
        go_on()
    calls = [game.ask, game.laws, game.gammas, game.certificates]
    for each in (*calls, partial(game.advance, 6), partial(game.resolve, first)):
        with pytest.raises(InvalidForecast) as said:
            each()
        assert str(said.value) == str(told.value)


def test_a_look_at_laws_that_fails_leaves_the_game_as_it_was():
    class Once(Mean):
        looks = 0

        def forecast(self):
            self.looks += 1
            return 7 if self.looks == 3 else super().forecast()

    game = game_of(Once, n.Drift(), runs=range(1))
    game.resolve(game.ask())
    game.laws()
    with pytest.raises(InvalidForecast, match=r"stated the forecasts \[7\] .* in round 2, run 0"):
        game.laws()
    game.advance(6)
    assert came_to(game) == came_to(played(Mean, n.Drift(), 6, runs=range(1)))
