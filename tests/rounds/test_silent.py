"""What played other numbers without a word: it is refused, or it is the same in each way of playing it."""

import math
import random
import pickle
from functools import partial
from pathlib import Path

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


# ---------------------------------------------------------------- what a class holds


class Seen:
    """Counts outcomes in a list of its class."""

    seen = [0]  # noqa: RUF012
    also = seen

    def forecast(self):
        return 1 / (len(self.seen) + len(self.also))

    def update(self, forecast, outcome):
        self.seen.append(outcome)


class Inherits(Seen):
    """Of a class whose base has the list; its `__init__` changes it."""

    def __init__(self, start=2):
        self.seen.extend([1] * start)


class Shaken:
    """A generator of the class."""

    random = np.random.default_rng(1)

    def forecast(self):
        return float(self.random.random())

    def update(self, forecast, outcome):
        pass


class Given:
    """A generator as a default."""

    def __init__(self, random=random.Random(1)):  # noqa: B008
        self.random = random

    def forecast(self):
        return self.random.random()

    def update(self, forecast, outcome):
        pass


class Table:
    """A shared object with a dict, counted under the class's own name for it."""

    class Counts(dict):
        pass

    counts = Counts()

    def forecast(self):
        return 1 / (1 + self.counts.get("n", 0))

    def update(self, forecast, outcome):
        self.counts["n"] = self.counts.get("n", 0) + 1


class Line(Seen):
    """Known by its class, as through `functools.partial`."""

    missing = object()

    def __init__(self, start=1):
        self.last = self.missing
        self.seen.append(start)

    def forecast(self):
        return 1.0 if self.last is Line.missing else 1 / len(self.seen)

    def update(self, forecast, outcome):
        self.last = outcome
        self.seen.append(outcome)


def of_a_function():
    return Seen()


SHARING = [Seen, Inherits, Shaken, Given, Table, Line, Seen(), of_a_function, partial(Line, start=3)]


def predictions(forecaster, runs, horizon=6, nature=Bernoulli(0.4)):
    """The forecasts of each run."""
    game = Game(forecaster, nature, horizon=horizon, runs=runs, keeps=())
    game.advance(horizon)
    return [game.transcripts.of(i).forecasts.tolist() for i in range(len(runs))]


@pytest.mark.parametrize(
    "forecaster", SHARING, ids=lambda each: getattr(each, "__name__", type(each).__name__)
)
def test_no_run_sees_what_another_has_put_into_its_class(forecaster):
    together = predictions(forecaster, range(3))
    assert together == [predictions(forecaster, range(i, i + 1))[0] for i in (2, 0, 1)]
    assert together[0] == together[1] == together[2]
    assert Seen.seen == [0] and not Table.counts


def test_the_processes_of_a_study_play_the_same_class():
    totals = [
        oc.play([Seen, Inherits], Bernoulli(0.4), horizon=30, runs=4, jobs=jobs, measures=["ece"])
        .curve("ece", who)
        .totals
        for jobs in (1, 2)
        for who in ("Seen", "Inherits")
    ]
    assert (totals[0] == totals[2]).all()
    assert (totals[1] == totals[3]).all()


class Tells:
    """A nature that counts in its class."""

    said = {"n": 0}  # noqa: RUF012

    def probability(self):
        self.said["n"] += 1
        return 1 / self.said["n"]


class Bell:
    """A world that counts in its class."""

    said = [0]  # noqa: RUF012

    def run(self, env, market):
        while True:
            self.said.append(0)
            yield env.timeout(1.0)
            market.resolve(market.ask(), len(self.said) % 3 == 0)


@pytest.mark.parametrize("nature", [Tells, Bell])
def test_natures_and_worlds_have_their_own_too(nature):
    one, many = (
        oc.play(EmpiricalMean(), nature, horizon=20, runs=n, measures=["brier"], seed=4) for n in (1, 3)
    )
    assert (many.curve("brier").totals[:, :1] == one.curve("brier").totals).all()
    assert Bell.said == [0] and Tells.said == {"n": 0}


def test_what_cannot_be_copied_for_each_run_is_refused():
    slots = type("Slots", (Seen,), {"__slots__": ()})
    assert predictions(slots, range(2))  # its base has room for attributes
    bare = type("Bare", (), {"__slots__": (), "seen": [], "forecast": Seen.forecast, "update": Seen.update})
    with pytest.raises(
        InvalidParameter, match=r"class Bare: seen = \[\] can change, .* expected it made in __init__"
    ):
        predictions(bare, range(2))
    steady = type(
        "Steady", (Seen,), {"turns": (x for x in (0.1, 0.9)), "forecast": lambda self: next(self.turns)}
    )
    with pytest.raises(
        InvalidParameter, match=r"class Steady: .*turns cannot be copied, and each run needs its own"
    ):
        predictions(steady, range(2))


WRITTEN_DOWN = []


class Global(Seen):
    """Keeps outcomes in a list of its module, which no run has alone."""

    def forecast(self):
        return 1 / (1 + len(WRITTEN_DOWN))

    def update(self, forecast, outcome):
        WRITTEN_DOWN.append(outcome)


def test_what_a_module_holds_is_shared_as_the_page_says():
    WRITTEN_DOWN.clear()
    assert predictions(Global, range(2)) != predictions(Global, range(2))
    page = (Path(__file__).parents[2] / "docs" / "writing.md").read_text()
    assert "What a module holds, such as a global list, is shared by all runs" in " ".join(page.split())
