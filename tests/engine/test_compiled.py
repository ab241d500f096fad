"""Plain classes as compiled steps: the same bytes as without, or the reason why not."""

import enum
import functools
import linecache
import math
import pickle
import random
import re
import time

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import forecasters
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.engine import record
from onlinecal.engine.game import Game
from onlinecal.engine.record import compiled_steps
from onlinecal.natures import Bernoulli, UniformTruth
from onlinecal.schedules import Pareto, Poisson, Schedule
from tests.engine.test_plain import Mean

LOW = 0.25


def between(p, low=0.0, high=1.0):
    return min(max(p, low), high)


class EMA:
    def __init__(self, rate=0.1):
        self.rate, self.mean = rate, 0.5

    def forecast(self):
        return self.mean

    def update(self, forecast, outcome):
        self.mean += self.rate * (outcome - self.mean)


class Window:
    """The last outcomes in a ring; its length depends on the horizon."""

    def __init__(self, horizon, share=0.01):
        self.seen = [0] * max(2, int(share * horizon))
        self.at = 0

    def forecast(self):
        total = 0
        for i, y in enumerate(self.seen):
            if i >= 0:
                total += y
        return total / len(self.seen)

    def update(self, forecast, outcome):
        self.at -= 1
        self.seen[self.at % len(self.seen)] = outcome


class Powers:
    """Functions of math and of this module, powers, methods and a while."""

    STEP = 0.3

    def __init__(self):
        self.t, self.x = 1, 0.0

    def rate(self, power=0.5):
        return self.STEP / self.t**power

    def forecast(self):
        return between(0.5 + 0.5 * math.tanh(self.x), high=1 - LOW**2)

    def update(self, forecast, outcome):
        self.t += 1
        self.x += self.rate() * (outcome - forecast) + self.rate(power=2) * math.log(self.t)
        while abs(self.x) > 3.0:
            self.x = self.x * 2**-1 - (-self.x) % 0.7 // 3


class Biases:
    """Entries of an array, in a loop with break, and the number of the round."""

    def __init__(self, m=7):
        self.m, self.bias = m, np.zeros(m + 1)

    def forecast(self, round):
        i = 0
        for i in range(self.m):
            if self.bias[i] >= 0.0 > self.bias[i + 1] or round.number < i:
                break
        else_ = i + 1
        return {i / self.m: 0.5, else_ / self.m: 0.5}

    def update(self, forecast, outcome):
        self.bias[round(forecast * self.m)] += forecast - outcome
        self.bias[-1] *= 0.5


class Shuffled:
    """A generator of its own, in whole numbers."""

    def __init__(self, seed=12345):
        self.seed, self.up = seed, False

    def forecast(self):
        self.seed = (self.seed * 1103515245 + 12345) % 2147483648
        x = self.seed / 2147483648
        return x if self.up and x > LOW else 1 - x

    def update(self, forecast, outcome):
        self.up = not self.up or outcome == 1


class Share(enum.IntEnum):
    OF = 4


class Private:
    """Slots, attributes of the class's own, a member of an enumeration, and a sum of truth values."""

    __slots__ = ("__x",)

    def __init__(self):
        self.__x = 0.5

    def forecast(self):
        return ((self.__x > LOW) + (self.__x > 0.5)) / Share.OF

    def update(self, forecast, outcome):
        self.__x += 0.1 * (outcome - self.__x)


class Against:
    sight = "draw"

    def __init__(self, lean=0.4):
        self.lean, self.n = lean, 0

    def probability(self, round):
        return 0.5 + self.lean * (1 if round.forecast < 0.5 else -1) * (round.number % 2)


class Swing:
    def __init__(self):
        self.last = 0.5

    def probability(self):
        return 1 - self.last

    def update(self, forecast, outcome):
        self.last = forecast


class Late:
    def __init__(self, horizon):
        self.half, self.t = horizon / 2, 0

    def probability(self):
        self.t += 1
        return float(self.t > self.half)


class Noisy:
    """Numbers of the run, in `__init__` and later, and of the context."""

    needs = frozenset({"truth"})

    def __init__(self, horizon, stream):
        self.stream, self.seen, self.begin = stream, 0, stream.uniform(horizon)
        self.noise = list(stream.block(5)[:, 0])

    def forecast(self, round):
        mean = self.noise[round.number % 5] + self.stream.uniform(round.number) + self.begin
        return (mean + round.context["truth"]) / 4

    def update(self, forecast, outcome, round):
        self.seen += outcome
        self.begin = (self.begin + round.context["truth"] * self.stream.uniform(self.seen)) % 1


FORECASTERS, NATURES = (EMA, Mean, Window, Powers, Biases, Shuffled, Private), (Against, Swing, Late)
PAIRS = [
    *((f, Bernoulli(0.4)) for f in FORECASTERS),
    *((EMA, n) for n in NATURES),
    (Mean, Swing),
    (Noisy, UniformTruth()),
]
T = 700
LATE = Schedule(Poisson(2), Pareto())


def played(forecaster, nature, **options):
    game = Game(forecaster, nature, horizon=T, runs=range(3), seed=5, keeps=(), **options)
    game.advance(T // 2)
    game = pickle.loads(pickle.dumps(game))
    game.advance(T)
    rounds = [game.transcripts.of(run) for run in range(3)]
    return game, [(each.forecasts.tobytes(), each.outcomes.tobytes()) for each in rounds]


@pytest.fixture
def marked(monkeypatch):
    def mark(*things):
        for thing in things:
            if isinstance(thing, type):
                monkeypatch.setattr(thing, "oc_compiled", True, raising=False)
                oc.compiled(thing)

    return mark


@pytest.mark.parametrize(
    "pair", PAIRS, ids=lambda pair: "-".join(getattr(each, "__name__", "") for each in pair)
)
def test_a_compiled_class_plays_the_same_bytes(pair, marked):
    options = {}, {"schedule": LATE, "threads": 2}
    plain = [played(*pair, **each) for each in options]
    marked(*pair)
    for each, (game, numbers) in zip(options, plain, strict=True):
        compiled, same = played(*pair, **each)
        assert same == numbers, each
        assert compiled.compiled is not game.compiled


def test_a_stream_is_rehearsed_as_that_of_its_own_run(marked):
    def end():
        game = Game(Noisy, UniformTruth(), horizon=50, runs=range(7, 9))
        game.advance(50)
        return [(g.predictions.tobytes(), g.counts.tobytes()) for g in game.gammas()]

    plain = end()
    marked(Noisy)
    assert end() == plain


def test_it_is_no_other_strategy(marked):
    study = {"horizon": [50, 100], "runs": 2, "measures": ["ece"], "seed": 3}
    plain = oc.play([functools.partial(EMA, rate=0.3), EMA(0.2)], Swing, **study)
    marked(EMA, Swing)
    compiled = oc.play([functools.partial(EMA, rate=0.3), EMA(0.2)], Swing, **study)
    assert plain.forecasters == compiled.forecasters
    for who in plain.forecasters:
        one, two = (each.curve("ece", who).totals.tobytes() for each in (plain, compiled))
        assert one == two


def test_a_subclass_is_plain(marked):
    marked(EMA)
    for cls, compiled in ((EMA, True), (type("Own", (EMA,), {}), False)):
        assert Game(cls, Bernoulli(), horizon=5, runs=range(1)).compiled is compiled


@pytest.mark.parametrize(
    "whole", [forecasters.Delayed, forecasters.Doubling, functools.partial(forecasters.Rounded, m=5)]
)
def test_parts_are_compiled_once_for_a_class(whole, marked):
    """Copies and epochs have the same steps, as their lists are as long."""

    def end():
        game = Game(
            whole(forecasters.as_forecaster(functools.partial(Window, share=0.001))),
            Bernoulli(0.4),
            horizon=T,
            runs=range(2),
            schedule=LATE,
        )
        game.advance(T)
        return [(g.predictions.tobytes(), g.counts.tobytes()) for g in game.gammas()]

    plain = end()
    marked(Window)
    compiled_steps.cache_clear()
    assert end() == plain
    assert compiled_steps.cache_info().misses == 1


def test_it_is_played_beside_the_plain_object_once_for_the_same_beginning(marked, monkeypatch):
    """In other games and copies not again; with other numbers at the beginning it is."""
    beginnings = []

    def noted(role, strategy, made, thing, record):
        beginnings.append(thing.rate)

    marked(EMA)
    monkeypatch.setattr(record, "PLAYED_BESIDE", set())
    monkeypatch.setattr(record, "rehearse", noted)
    for rate, horizon in ((0.1, 50), (0.1, 60), (0.2, 50), (0.1, 50)):
        one = forecasters.as_forecaster(functools.partial(EMA, rate))
        Game(forecasters.Delayed(one), Bernoulli(), horizon=horizon, runs=range(2), schedule=LATE).advance(
            horizon
        )
    assert beginnings == [0.1, 0.2]


def test_it_is_several_times_as_fast(marked):
    """About ten times; both are timed on the same machine in the same process."""

    def seconds(horizon):
        game = Game(EMA, Bernoulli(), horizon=horizon, runs=range(2))
        game.advance(100)
        begin = time.process_time()
        game.advance(horizon)
        return (time.process_time() - begin) / horizon

    plain = seconds(20_000)
    marked(EMA)
    assert 3 * seconds(200_000) < plain


# ---------------------------------------------------------------- what is refused


def made(forecast="return self.x", update="pass", init="self.x = 0.5", name="Mine"):
    """A class in a text, with its line numbers: `forecast` is in line 5, `update` in line 7."""
    text = f"class {name}:\n def __init__(self, x=1):\n  {init}\n def forecast(self):\n  {forecast}\n"
    text += f" def update(self, forecast, outcome):\n  {update}\n"
    file, space = (
        f"<{len(linecache.cache)}>",
        {"__name__": __name__, "random": random, "np": np, "math": math},
    )
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec"), space)
    return space[name]


LIST = {"init": "self.x = [1]"}
RANDOM = {"init": "self.r, self.x = random.Random(1), 0.5", "update": "self.x = self.r.random()"}
REFUSALS = {
    "update, line 7: self.x.append() is not compiled; expected lists of fixed length": {
        **LIST, "forecast": "return self.x[0]", "update": "self.x.append(1)"
    },
    "update, line 7: `[1]` is not compiled": {**LIST, "forecast": "return 0.5", "update": "self.x = [1]"},
    "update, line 7: the whole list self.x": {**LIST, "forecast": "return 0.5", "update": "self.x = 1"},
    "update, line 7: random.random() is not compiled": {"update": "self.x = random.random()"},
    "update, line 7: self.r.random() is not compiled": RANDOM,
    "update, line 7: np.exp() is not compiled": {"update": "self.x = np.exp(-self.x)"},
    "update, line 7: `try: …` is not compiled": {"update": "try: pass\n  finally: pass"},
    "update, line 7: `self.x in (1, 2)` is not compiled": {"update": "self.x = self.x in (1, 2)"},
    "update, line 7: 'a' is no number": {"update": "self.x = 'a'"},
    "forecast, line 5: self.x is of the type builtins.NoneType": {"init": "self.x = None"},
    "forecast, line 5: self.y is not made in __init__": {"forecast": "return self.y"},
    "forecast, line 5: `[x for x in self.x]` is not compiled": {**LIST, "forecast": "return max([x for x in self.x])"},
    "forecast, line 5: the whole list self.x": {**LIST, "forecast": "return max(self.x)"},
    "forecast, line 5: round() is not compiled": {"forecast": "return round(self.x, 2)"},
    "late, line 8: self.late() is called by what it calls": {
        "update": "self.x = self.late()\n def late(self): return self.late()"},
}  # fmt: skip


@pytest.mark.parametrize(("message", "parts"), REFUSALS.items(), ids=list(REFUSALS))
def test_what_cannot_be_compiled_is_said_at_once(message, parts):
    with pytest.raises(InvalidParameter, match=re.escape(f"Mine.{message}") + ".*"):
        oc.compiled(made(**parts))


def test_an_error_stops_the_game_in_its_round():
    failing = "self.x = 1 / (1000 - outcome - self.n); self.n += 1"
    late = oc.compiled(made(update=failing, init="self.n, self.x = 0, 0.5"))
    game = Game(late, Bernoulli(0.0), horizon=2000, runs=range(1))
    match = r"forecaster 'Mine' failed in round 1001, run 0: ZeroDivisionError"
    with pytest.raises(InvalidForecast, match=match):
        game.advance(2000)


TWO_NAMES = {"update": "self.x[0] += 0.1; self.y[0] -= 0.2", "forecast": "return self.x[0] % 1"}


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("line 5: it is not compiled: .*getitem", LIST | {
            "forecast": "return self.x[self.x[0]]", "init": "self.x = [0.5]"}),
        ("Mine.update, line 7: self.x is an array of whole numbers and gets a real one; expected", {
            "init": "self.x = np.array([0])", "forecast": "return 0.5",
            "update": "self.x[0] = 0.5 if forecast > 2 else 0"}),
        ("self.x = 18446744073709551616 is .*; expected numbers of 64 bits", {
            "forecast": "return 0.5", "update": "self.x = self.x * 4", "init": "self.x = 1"}),
        ("round 1 of a rehearsal: it ends compiled alone", {"forecast": "return 2 ** self.x", "init": "self.x = -1"}),
        ("which is or shares the numbers of self.y; expected", TWO_NAMES | {"init": "self.x = self.y = [0.5, 0.0]"}),
    ],
)  # fmt: skip
def test_a_game_says_what_cannot_be_told_before(message, parts):
    with pytest.raises(InvalidParameter, match=message):
        Game(oc.compiled(made(**parts)), Bernoulli(), horizon=9, runs=range(1))
