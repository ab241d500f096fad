"""Parts of composed forecasters: objects in plain Python; and parts that state no law."""

from __future__ import annotations

import copy
import math
import pickle
import re

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidForecast
from onlinecal.engine2 import game as module
from onlinecal.engine2.game import Game
from onlinecal.engine2.law import brief as shown
from onlinecal.engine2.steps import law, shared
from onlinecal.forecasters.base import as_forecaster
from onlinecal.schedules import Pareto, Poisson, Schedule
from tests.engine2.test_same import bits
from tests.engine2.test_steps import Says

T = 120
SCHEDULES = {"none": Schedule(), "random": Schedule(Poisson(2), Pareto())}


class Laws:
    """Laws of more and more atoms, now and then a whole number."""

    def __init__(self):
        self.ones, self.rounds = 0, 0

    def forecast(self):
        if self.rounds % 5 == 0:
            return self.rounds % 2
        size = 1 + self.rounds % 40
        return {(i + 1) / (size + self.ones + 1): 1 / size for i in range(size)}

    def update(self, forecast, outcome):
        assert (type(forecast), type(outcome)) == (float, int)
        self.ones, self.rounds = self.ones + outcome, self.rounds + 1


class Looks:
    """Says what it is shown of the round, and finds what it left there."""

    needs = frozenset({"truth"})

    def __init__(self):
        self.shift = 0.0

    def forecast(self, round):
        round.memo = round.time
        return (round.context["truth"] + round.number % 7 + round.time % 3 + self.shift) / 11

    def update(self, forecast, outcome, round):
        assert round.memo == round.time
        self.shift = (self.shift + outcome + round.number * round.context["truth"]) % 1


class Fails:
    """Raises an error in one of its methods when that is called for the fourth time."""

    def __init__(self, where):
        self.where, self.calls = where, 0

    def _at(self, where):
        self.calls += where == self.where
        if where == self.where and self.calls == 4:
            raise ValueError("boom")

    def forecast(self):
        self._at("forecast")
        return 0.5

    def update(self, forecast, outcome):
        self._at("update")


WHOLES = {
    "rounded": lambda x: f.Rounded(x, 5, "random"),
    "doubling": lambda x: f.Doubling(x, first=30),
    "mixture": lambda x: f.ExpertMixture((f.EmpiricalMean(), x)),
    "delayed": f.Delayed,
    "nested": lambda x: f.Delayed(f.ExpertMixture((x, f.Rounded(x, 3)))),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("cls", [Laws, Looks])
@pytest.mark.parametrize("whole", WHOLES)
def test_plain_parts_play_the_same_in_all_ways(whole, cls, name, monkeypatch):
    spec, given = WHOLES[whole](as_forecaster(cls)), {"horizon": T, "runs": range(2, 4), "seed": 5}
    nature, given = n.UniformTruth(), given | {"schedule": SCHEDULES[name]}

    def end(game):
        game.advance(T)
        return bits(game.gammas())

    in_python = Game(spec, nature, **given)
    in_python.hand_over()
    expected = end(in_python)
    paused = Game(spec, nature, **given)
    paused.advance(T // 3)
    twin, handed = pickle.loads(pickle.dumps(paused)), copy.deepcopy(paused)
    handed.hand_over()
    assert end(twin) == expected
    assert end(paused) == expected
    assert end(handed) == expected
    monkeypatch.setattr(module, "THREAD", 1)
    assert end(Game(spec, nature, threads=2, **given)) == expected


class Mean:
    """(1 + ones)/(2 + rounds), with a law of two values in every third round."""

    def __init__(self):
        self.ones, self.rounds = 0, 0

    def forecast(self):
        p = (self.ones + 1) / (self.rounds + 2)
        return p if self.rounds % 3 else {p: 1 - p, 0.5 * p: p}

    def update(self, forecast, outcome):
        self.ones, self.rounds = self.ones + outcome, self.rounds + 1


@pytest.mark.parametrize(
    "whole", ["rounded", "mixture"]
)  # each copy and epoch of a record is compiled again: minutes
def test_records_are_parts_as_the_plain_class_is(whole, monkeypatch):
    def played():
        spec = WHOLES[whole](as_forecaster(Mean))
        game = Game(spec, n.Drift(), horizon=T, runs=range(2), schedule=SCHEDULES["random"])
        game.advance(T)
        return game.forecaster.in_python, bits(game.gammas())

    in_python, plain = played()
    monkeypatch.setattr(Mean, "oc_compiled", True, raising=False)
    assert in_python
    assert played() == (False, plain)


@pytest.mark.parametrize("whole", WHOLES)
def test_a_player_says_whether_a_part_is_in_plain_python(whole):
    """A row does not hold the state of an object: what copies rows asks for this."""
    for part in (as_forecaster(Laws), f.EmpiricalMean()):
        game = Game(WHOLES[whole](part), n.Drift(), horizon=T, runs=range(2))
        assert game.forecaster.in_python is isinstance(part, f.Scalar)


@pytest.mark.parametrize("where", ["forecast", "update"])
@pytest.mark.parametrize("whole", WHOLES)
def test_an_error_of_a_plain_part_is_named_with_its_line(whole, where):
    spec = WHOLES[whole](as_forecaster(Fails, {"where": where}))
    for name in SCHEDULES:
        game = Game(spec, n.Drift(), horizon=T, runs=range(5, 7), schedule=SCHEDULES[name])
        match = r"forecaster .* failed in round \d+, run 5: ValueError: boom \(.*test_parts.py:\d+\)$"
        with pytest.raises(InvalidForecast, match=match) as told:
            game.advance(T)
        if name == "none" and whole in ("rounded", "mixture"):
            assert " in round 4, " in str(told.value)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("x", "stated 'x'"),
        ({0.2: 0.5, 0.3: 0.4}, "the forecasts [0.2, 0.3] with weights [0.5, 0.4]"),
        ({i / 64: 1 / 65 for i in range(65)}, "expected at most 64, or a class attribute"),
    ],
)
def test_nonsense_of_a_plain_part_is_named(said, shown):
    class Odd(Laws):
        def forecast(self):
            return said if self.rounds == 6 else 0.5

    game = Game(f.Rounded(as_forecaster(Odd), 3), n.Drift(), horizon=20, runs=range(4, 6))
    with pytest.raises(InvalidForecast, match=r"forecaster 'rounded' .*in round 7, run 4") as told:
        game.advance(20)
    assert shown in str(told.value)


#: values and weights of what is no law
WRONG = [([math.nan], [1.0]), ([1.5], [1.0]), ([0.25], [0.999]), ([0.5, 0.25], [2.0, -1.0])]
STATED = {
    "rounded": lambda x: f.Rounded(x, 3),
    "at random": lambda x: f.Rounded(x, 3, "random"),
    "doubling": f.Doubling,
    "mixture": lambda x: f.ExpertMixture((f.Constant(), x)),
    "aggregation": lambda x: f.ExpertAggregation((f.Constant(), x)),
}


def says_as_shared(run, number):
    size, (values, weights) = int(shared(run)[0]), law(run)
    for j in range(size):
        values[j], weights[j] = shared(run)[1 + j], shared(run)[1 + size + j]
    return size


class Sure(Says):
    deterministic = True
    needs_horizon = False


@pytest.mark.parametrize(("values", "weights"), WRONG)
@pytest.mark.parametrize("whole", STATED)
def test_what_a_part_stated_is_named_where_it_is_no_law(whole, values, weights):
    made = STATED[whole](Sure(says_as_shared, size=2, kept=(len(values), *values, *weights)))
    match = (
        rf"forecaster .* stated the forecasts {brief(values)} with weights {brief(weights)} in round 1, run 3"
    )
    for by_hand in (False, True):
        game = Game(made, n.Drift(), horizon=9, runs=range(3, 5))
        with pytest.raises(InvalidForecast, match=match):
            game.ask() if by_hand else game.advance(9)


@pytest.mark.parametrize("size", [0, -7, 99])
@pytest.mark.parametrize("whole", STATED)
def test_a_part_without_a_law_of_its_size_is_refused(whole, size):
    def none(run, number):
        return int(shared(run)[0])

    game = Game(STATED[whole](Sure(none, kept=(size,))), n.Drift(), horizon=9, runs=range(3, 5))
    with pytest.raises(
        InvalidForecast, match=r"forecaster .* stated a law of -?\d+ atoms.* in round 1, run 3"
    ):
        game.advance(9)


def brief(numbers):
    return re.escape(shown(np.array(numbers)))
