"""Objects in plain Python as players: their numbers, what they see and keep, and how failures are named."""

import gc
import math
import re
import signal
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.engine import game as module
from onlinecal.forecasters.base import as_forecaster
from onlinecal.natures.base import as_nature
from onlinecal.schedules import Constant, Pareto, Poisson, Schedule
from tests.engine.games import Laws, Mean, SeesLaw, Timed, game_of, played

LATE = Schedule(delays=Constant(3))


@dataclass
class Says:
    """States this in round `at`, and else 1/2."""

    what: object
    at: int = 1
    rounds: int = 0

    def forecast(self):
        self.rounds += 1
        return self.what if self.rounds == self.at else 0.5

    def update(self, forecast, outcome): ...


class Asks(Says):
    def probability(self):
        return super().forecast()


# ---------------------------------------------------------------- what can be stated


NUMBERS = 1, True, np.True_, np.float32(0.25), np.int64(0), np.array(0.5), Fraction(1, 3), 1e-320, -0.0
LAWS = [
    ({-0.0: 1.0}, 0.0),
    ({0.25: 1 - 9e-10}, 0.25),
    ({np.float32(0.5): np.float64(1)}, 0.5),
    ({1: 1, 0.5: 0}, 1.0),
]


@pytest.mark.parametrize(("said", "level"), [*((x, float(x)) for x in NUMBERS), *LAWS], ids=repr)
def test_numbers_of_every_kind(said, level):
    assert game_of(Says(said)).laws()[0] == {level: pytest.approx(1.0)}
    (found,) = played(Says(said), horizon=1).gammas()[0].predictions
    assert (found, np.signbit(found)) == (level, False)
    if not isinstance(said, dict):
        assert played(f.Constant(), Asks(said), horizon=3).resolved == 3


#: what is no number in [0, 1], and what is no law, with what the message shows of it
NO_NUMBERS = [
    *((x, repr(x)) for x in ("0.5", None, 1j, [0.5], b"1")), (np.array([0.5]), "[0.5]"),
    (np.array("0.5"), "an array of shape ()"), (np.datetime64(0, "s"), "datetime.datetime(1970"),
    (10**400, "OverflowError"), (math.nan, "nan"), (np.nextafter(1.0, 2.0), "1.0000000000000002"), (-1e-300, "-1e-300"),
]  # fmt: skip
NO_LAWS = [
    ({}, "{}"), ({"a": 1}, "{'a': 1}"), ({0.5: "1"}, "{0.5: '1'}"), ({0.5: math.nan}, "with weights [nan]"),
    ({0.2: 0.5, 0.3: 0.4}, "the forecasts [0.2, 0.3] with weights [0.5, 0.4]"), ({0.2: 1 + 2e-9}, "with weights [1.0"),
    ({0.2: -0.5, 0.3: 1.5}, "the forecasts [0.2, 0.3] with weights [-0.5, 1.5]"),
    ({False: 0.7, True: 0.3}, "expected the forecast itself, 0.3"), ({np.False_: 1.0}, "the forecast itself, 0.0"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "shown"), [*NO_NUMBERS, *NO_LAWS], ids=lambda x: repr(x)[:20])
def test_nonsense_is_named_with_round_and_run(said, shown):
    says, asks = (cls(said, at=7) for cls in (Says, Asks))
    games = [
        (says, COIN, "forecaster 'Says'"),
        (f.Rounded(as_forecaster(says), 3), SeesLaw, "forecaster 'rounded'"),
    ]
    if not isinstance(said, dict):
        games += [(Mean, asks, "nature 'Asks'"), (Mean, n.Mixture((as_nature(asks),)), "nature 'mixture'")]
    for forecaster, nature, who in games:
        game = game_of(forecaster, nature, 20, runs=range(4, 7))
        # Runs are in different rounds: the game is over.
        for again in (*[partial(game.advance, 20)] * 2, game.ask, game.laws, game.gammas, game.certificates):
            with pytest.raises(
                InvalidForecast, match=rf"{who} (stated|failed) .*in round 7, run 4[;:] "
            ) as told:
                again()
            assert str(told.value).isprintable()
            assert shown in str(told.value)


def test_a_class_may_state_larger_laws():
    """As a part of another; alone, it may at once."""
    law = {i / 100: 1 / 100 for i in range(100)}
    assert played(Says(law), horizon=1).resolved == 1
    wide, narrow = (as_forecaster(cls(law)) for cls in (type("Wide", (Says,), {"atoms": 100}), Says))
    assert played(f.Rounded(wide, 3), horizon=1).resolved == 1
    with pytest.raises(InvalidForecast, match=r"stated a law of 100 atoms .*; expected at most 64"):
        played(f.Rounded(narrow, 3), horizon=1)
    for atoms in (0, 2.5, "many", None):
        with pytest.raises(InvalidParameter, match="atoms = "):
            game_of(f.Rounded(as_forecaster(type("Wide", (Mean,), {"atoms": atoms})), 3))


# ---------------------------------------------------------------- failures


class _Odd(Exception):
    def __str__(self):
        raise ValueError("no words")


class Fails:
    """Raises an error when a method is called for the fourth time."""

    error = ValueError("boom")
    sight = "law"
    reveals = frozenset({"side"})

    def __init__(self, where):
        self.where, self.calls = where, 0

    def _at(self, where, value=None):
        self.calls += where == self.where
        if where == self.where and self.calls == 4:
            raise self.error
        return value

    def forecast(self):
        return self._at("forecast", 0.5)

    def update(self, forecast, outcome):
        self._at("update")

    def context(self, round):
        return self._at("context", {"side": 1})

    def probability(self, round):
        return self._at("probability", 0.5)


COIN, DRIFT = n.Bernoulli(0.4), n.Drift()
FORECASTERS = {
    "itself": lambda x: x, "rounded": lambda x: f.Rounded(x, 5, "random"), "doubling": lambda x: f.Doubling(x, first=9),
    "mixture": lambda x: f.ExpertMixture((f.EmpiricalMean(), x)), "delayed": lambda x: f.Delayed(x, slots=5),
    "separate": lambda x: f.Separate(f.Rounded(x, 5)),
}  # fmt: skip
NATURES = {
    "itself": lambda x: x, "mixture": lambda x: n.Mixture((DRIFT, x)), "streams": lambda x: n.Streams((x, x), "random"),
    "switch": lambda x: n.Switch(n.Switch(x, x, 20), x, 25),
}  # fmt: skip


@pytest.mark.parametrize(
    "part", [*product(["forecaster"], FORECASTERS), *product(["nature"], NATURES)], ids=str
)
def test_an_error_in_any_method_of_any_part_is_named(part, monkeypatch):
    monkeypatch.setattr(module, "THREAD", 1)
    role, kind = part
    methods = ("forecast", "update") if role == "forecaster" else ("probability", "update", "context")
    methods = methods[: 2 if kind == "mixture" else 3]  # a mixture reveals nothing
    for where, (schedule, threads) in product(methods, ((Schedule(), 1), (LATE, 2))):
        mine, theirs = Laws, n.Streams((DRIFT, DRIFT)) if kind == "separate" else DRIFT
        if role == "forecaster":
            mine = FORECASTERS[kind](as_forecaster(Fails, {"where": where}))
        else:
            theirs = NATURES[kind](as_nature(Fails, {"where": where}))
        options = {"schedule": schedule, "threads": threads, "keeps": sorted(theirs.reveals)}
        game = game_of(mine, theirs, 40, range(5, 9), **options)
        match = rf"{role} .* failed in round \d+, run 5: ValueError: boom \(.*test_objects.py:\d+\)$"
        with pytest.raises(InvalidForecast, match=match) as told:
            game.advance(40)
        assert kind not in ("itself", "rounded", "mixture", "switch") or " in round 4, " in str(told.value)


ERRORS = _Odd(), RuntimeError("two\nlines\x1b[31m"), KeyError("x\ny"), StopIteration(), MemoryError()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_failure_is_told_in_one_line(error):
    failing, memory = type("Failing", (Fails,), {"error": error}), isinstance(error, MemoryError)
    match = "no memory left for round 4 .*: MemoryError " if memory else "failed in round 4, run 0: "
    with pytest.raises(InvalidForecast, match=match) as told:
        played(failing("forecast"), horizon=9)
    assert str(told.value).isprintable()
    assert memory or told.value.__cause__ is error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_failure_goes_through_and_the_game_is_over(error):
    stopping = type("Stopping", (Fails,), {"error": error()})
    for game in (game_of(stopping("update"), horizon=9), game_of(Mean, stopping("probability"), horizon=9)):
        for expected, match in ((error, None), (InvalidForecast, "interrupted")):
            with pytest.raises(expected, match=match):
                game.advance(9)


def test_ctrl_c_is_ctrl_c_wherever_it_comes():
    """It may also come on the way into a method, where no code of player or engine can catch it."""

    def interrupt(*_):
        raise KeyboardInterrupt

    def play(game, seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        game.advance(10**7)

    played(Mean, DRIFT, 9)  # nothing is compiled any more
    # Python ignores what is raised in a callback of its collector, and a library of the tests may have one.
    callbacks, gc.callbacks[:] = gc.callbacks[:], []
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for i in range(40):
            game = game_of(Mean, DRIFT, 10**7, runs=range(1))
            with pytest.raises(KeyboardInterrupt):
                play(game, 0.004 + i / 4000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.callbacks[:] = callbacks


# ---------------------------------------------------------------- what they see and reveal


class Two:
    """A nature with two streams in turn."""

    streams, reveals, told, shift = ("a", "b"), frozenset({"stream"}), None, 0

    def streams_of(self, first, last):
        return np.arange(first, last + 1) % 2 if self.told is None else self.told(last + 1 - first)

    def context(self, round):
        return {"stream": (round.number + self.shift) % 2}

    def probability(self):
        return 0.5


def shows(said):
    return Timed, {"context": lambda self, round: said}


@pytest.mark.parametrize(
    ("base", "changed", "said"),
    [
        (*shows({}), "revealed {} in round 1, run 0; expected a dict with 'side'"),
        (*shows({"side": "left"}), "revealed side = 'left' in round 1, run 0; expected a finite number"),
        (*shows({"side": np.zeros(3)}), "revealed side = [0, 0, 0] in round 1, run 0; expected a finite number"),
        (*shows({"side": math.nan}), "revealed side = nan in round 1, run 0; expected a finite number"),
        (*shows({"side": np.float32("inf")}), "revealed side = inf in round 1"),
        (*shows(None), "revealed None in round 1"),
        (Two, {"told": lambda self, n: np.full(n, 7)}, "streams_of(1, 1) gave [7]; expected 1 integers from 0 to 1"),
        (Two, {"told": lambda self, n: None}, "gave an array of shape (); expected 1 integers"),
        (Two, {"told": lambda self, n: np.arange(n + 1)}, "gave [0, 1]; expected 1 integers"),
        (Two, {"told": lambda self, n: [-1] * n}, "gave [-1]"),
        (Two, {"told": lambda self, n: 1 / 0}, "'Changed', streams_of(1, 1): ZeroDivisionError"),
        (Two, {"shift": 1}, "revealed stream = 0 in round 1, run 0; expected 1, which its streams_of gives"),
    ],
)  # fmt: skip
def test_context_and_streams_that_cannot_be(base, changed, said):
    played(nature=base, horizon=6)  # the control
    changed = type("Changed", (base,), changed)
    with pytest.raises(InvalidForecast, match=re.escape(said)):
        played(nature=changed, horizon=6, keeps=sorted(base.reveals))


class Open:
    """Takes all that is revealed, and finds it again."""

    needs = "all"

    def forecast(self, round):
        round.memo = dict(round.context)
        return 0.5

    def update(self, forecast, outcome, round):
        assert round.memo == round.context == Telling.shown(round.number)


class Telling:
    """Reveals two numbers, and finds them and its memo again."""

    reveals, sight = frozenset({"day", "night"}), "history"

    @staticmethod
    def shown(number):
        return {"day": number % 7, "night": 0.5 / number}

    def context(self, round):
        round.memo = round.number
        return self.shown(round.number)

    def probability(self, round):
        assert (round.memo, round.context) == (round.number, self.shown(round.number))
        return 0.3

    def update(self, forecast, outcome, round):
        assert (round.memo, round.context) == (round.number, self.shown(round.number))


@pytest.mark.parametrize("schedule", [Schedule(), Schedule(Poisson(2), Pareto())], ids=lambda s: s.label)
def test_context_and_memo_come_back_with_the_outcome(schedule):
    """Of a nature that reveals nothing there is none."""
    assert played(Open, Telling, 40, schedule=schedule).resolved > 5
    with pytest.raises(InvalidForecast, match="AssertionError"):
        played(Open, COIN, 9)


@pytest.mark.parametrize("what", ["law", "forecast"])
def test_a_forecaster_sees_neither_law_nor_draw(what):
    """The sight of natures is in tests/natures, and that rounds may be changed beside plain Python in test_game.py."""
    peeps = type("Peeps", (Mean,), {"forecast": lambda self, round: getattr(round, what)})
    with pytest.raises(InvalidForecast, match=r"asked for the .* in round 1 but declares sight NOTHING"):
        played(peeps)
