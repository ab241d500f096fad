"""Rounds that are kept: by both drivers, paused, pickled and by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.engine2.game import Game
from onlinecal.forecasters import ForecastHedging
from onlinecal.natures import Bernoulli, Drift, Nature
from onlinecal.schedules import ByOutcome, Constant, Pareto, Poisson, Schedule

T = 150
SCHEDULES = Schedule(), Schedule(delays=Constant(3)), Schedule(Poisson(2), Pareto())


class Weather(Nature):
    """A plain nature that reveals two numbers of the round."""

    reveals = frozenset({"weather", "day"})

    def start(self, horizon, stream):
        return _Weather()


class _Weather:
    def context(self, round):
        return {"weather": 1 / round.number, "day": round.number % 7}

    def probability(self):
        return 0.3


def rows(transcript):
    return {
        name: (values.dtype, values.tolist())
        for name, values in (vars(transcript) | transcript.context).items()
        if name != "context"
    }


def kept(game):
    return [rows(game.transcripts.of(run)) for run in range(len(game.runs))]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda each: each.label)
@pytest.mark.parametrize(
    ("nature", "keeps"), [(Drift(), ()), (Weather(), ("weather",)), (Weather(), ("weather", "day"))]
)
def test_rounds_are_the_same_in_all_ways(nature, keeps, schedule):
    given = {"horizon": T, "runs": range(1, 3), "seed": 3, "schedule": schedule, "keeps": keeps}
    in_python = Game(ForecastHedging(), nature, **given)
    in_python.hand_over()
    in_python.advance(T)
    expected = kept(in_python)
    game = Game(ForecastHedging(), nature, **given)
    game.advance(T // 3)
    game = pickle.loads(pickle.dumps(game))
    game.advance(T)
    assert kept(game) == expected
    if game.compiled:
        handed = Game(ForecastHedging(), nature, **given)
        handed.advance(T // 3)
        handed.hand_over()
        handed.advance(T)
        assert kept(handed) == expected


def test_rounds_of_delays_by_outcome_have_the_time_of_their_own_outcome():
    schedule = Schedule(delays=ByOutcome(1, 9))
    given = {"horizon": T, "runs": range(3), "seed": 3, "schedule": schedule, "keeps": ()}
    game = Game(ForecastHedging(), Bernoulli(), **given)
    game.advance(T)
    alone = Game(ForecastHedging(), Bernoulli(), **given)
    alone.hand_over()
    alone.advance(T)
    for run in range(3):
        found = game.transcripts.of(run)
        assert (found.known - found.asked == np.where(found.outcomes == 1, 9, 1)).all()
        assert (np.diff(found.known) >= 0).all()
        assert set(found.outcomes) == {0, 1}
    assert kept(game) == kept(alone)


def test_rounds_by_hand_and_by_the_loop():
    game = Game(ForecastHedging(), Drift(), horizon=T, runs=range(2), keeps=())
    first, second = game.ask(), game.ask(2.5)
    game.resolve(second, 4.0, outcome=1)
    game.resolve(first)
    game.advance(5)
    found = game.transcripts.of(0)
    assert found.numbers.tolist() == [2, 1, 3, 4, 5]
    assert found.asked.tolist() == [2.5, 1.0, 3.0, 4.0, 5.0]
    assert found.known.tolist() == [4.0, 1.0, 3.0, 4.0, 5.0]
    assert found.outcomes[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        found.forecasts[0] = 1.0


def test_context_that_is_not_revealed_is_refused():
    with pytest.raises(InvalidParameter, match="wind is to be kept with the rounds; nature 'drift'"):
        Game(ForecastHedging(), Drift(), horizon=T, runs=range(1), keeps=["wind"])
