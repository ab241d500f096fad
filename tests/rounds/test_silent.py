"""What played other numbers without a word: it is refused, or it is the same in each way of playing it."""

import math
import pickle
from functools import partial

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import EmpiricalMean
from onlinecal.natures import Bernoulli

# ---------------------------------------------------------------- questions


class Bus:
    """A world that writes `value` to an attribute of each question that it asks."""

    reveals, streams = frozenset({"stream"}), ("north", "south")

    def __init__(self, name, value):
        self.name, self.value = name, value

    def run(self, env, market):
        while True:
            question = market.ask(stream=market.rng.integers(2))
            setattr(question, self.name, self.value)
            yield env.timeout(1.0)
            market.resolve(question, 1)


WRITTEN = {"time": 0.5, "stream": 0, "number": 1, "forecast": 0.9, "resolved": True}


@pytest.mark.parametrize(("name", "value"), WRITTEN.items(), ids=list(WRITTEN))
def test_a_world_only_reads_its_questions(name, value):
    match = rf"AttributeError: {name} of question 1, asked at 0,? is read-only, and was set to {value}"
    with pytest.raises(InvalidForecast, match=match):
        oc.play(EmpiricalMean(), partial(Bus, name, value), horizon=5, runs=1)


@pytest.mark.parametrize(
    "name", ["number", "time", "slot", "part", "forecast", "probability", "laws", "resolved"]
)
def test_the_questions_of_a_game_are_only_read(name):
    game = Game(EmpiricalMean(), Bernoulli(), horizon=5, runs=range(2))
    question = game.ask()
    before = getattr(question, name)
    with pytest.raises(AttributeError, match=name):
        setattr(question, name, 3)
    assert getattr(question, name) is before
    game.resolve(question, time=4.0)
    assert question.resolved
