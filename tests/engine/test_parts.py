"""Parts of composed forecasters: objects in plain Python, as records and as they are.

Parts that state no law are in test_careless.py.
"""

from __future__ import annotations

import pickle

import pytest

from onlinecal import natures as n
from onlinecal.core.errors import InvalidParameter
from onlinecal.engine import game as module
from onlinecal.engine.game import Game
from onlinecal.forecasters.base import as_forecaster
from onlinecal.schedules import Pareto, Poisson, Schedule
from tests.engine.games import Laws, Looks, bits
from tests.examples import WHOLES

T = 120
SCHEDULES = {"none": Schedule(), "random": Schedule(Poisson(2), Pareto())}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("cls", [Laws, Looks])
@pytest.mark.parametrize("whole", WHOLES)
def test_objects_as_parts_play_the_same_in_all_ways(whole, cls, name, monkeypatch):
    spec, given = WHOLES[whole](as_forecaster(cls)), {"horizon": T, "runs": range(2, 4), "seed": 5}
    nature, given = n.UniformTruth(), given | {"schedule": SCHEDULES[name]}

    def end(game):
        game.advance(T)
        return bits(game.gammas())

    defined = Game(spec, nature, **given)
    defined.in_python = True
    expected = end(defined)
    paused = Game(spec, nature, **given)
    paused.advance(T // 3)
    twin = pickle.loads(pickle.dumps(paused))
    assert end(twin) == expected
    assert end(paused) == expected
    monkeypatch.setattr(module, "THREAD", 1)
    assert end(Game(spec, nature, threads=2, **given)) == expected


@pytest.mark.parametrize("whole", WHOLES)
def test_a_plain_part_that_takes_all_is_refused(whole):
    class Open(Looks):
        needs = "all"

    with pytest.raises(InvalidParameter, match=r"'Open' needs all context, .*; expected the kinds"):
        Game(WHOLES[whole](as_forecaster(Open)), n.UniformTruth(), horizon=T, runs=range(1))


class Mean:
    """(1 + ones)/(2 + rounds), with a law of two values in every third round."""

    def __init__(self):
        self.ones, self.rounds = 0, 0

    def forecast(self):
        p = (self.ones + 1) / (self.rounds + 2)
        return p if self.rounds % 3 else {p: 1 - p, 0.5 * p: p}

    def update(self, forecast, outcome):
        self.ones, self.rounds = self.ones + outcome, self.rounds + 1


@pytest.mark.parametrize("whole", WHOLES)
def test_compiled_classes_are_parts_as_the_plain_class_is(whole, monkeypatch):
    def played():
        spec = WHOLES[whole](as_forecaster(Mean))
        game = Game(spec, n.Drift(), horizon=T, runs=range(2), schedule=SCHEDULES["random"])
        game.advance(T)
        return game.forecaster.in_python, bits(game.gammas())

    in_python, plain = played()
    monkeypatch.setattr(Mean, "oc_compiled", True, raising=False)
    assert in_python
    assert played() == (False, plain)
