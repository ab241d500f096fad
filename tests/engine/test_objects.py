"""Objects in plain Python as players: their numbers, what they see and keep, and how failures are named."""

import gc
import math
import pickle
import re
import signal
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.engine import game as module
from onlinecal.engine.steps import law
from onlinecal.forecasters.base import as_forecaster
from onlinecal.natures.base import as_nature
from onlinecal.schedules import Constant, Schedule
from tests.engine import test_steps as steps
from tests.engine.games import Coin, Laws, Mean, SeesDraw, SeesLaw, Shown, Timed, game_of, played

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


@pytest.mark.parametrize(
    ("said", "levels"),
    [
        *(
            (x, [float(x)])
            for x in (1, True, np.True_, np.float32(0.25), np.int64(0), np.array(0.5), Fraction(1, 3), 1e-320)
        ),
        (-0.0, [0.0]),
        ({-0.0: 1.0}, [0.0]),
        ({np.float32(0.5): np.float64(1)}, [0.5]),
        ({1: 1, 0.5: 0}, [1.0]),
        ({0.2: 0.5, np.nextafter(0.2, 1): 0.5}, None),
        ({i / 64: 1 / 64 for i in range(64)}, None),
    ],
    ids=lambda x: repr(x)[:30],
)
def test_numbers_of_every_kind(said, levels):
    game = played(Says(said), horizon=1)
    assert levels is None or [np.signbit(p) == 0 and p for p in game.gammas()[0].predictions] == levels
    if not isinstance(said, dict):
        assert played(f.Constant(), Asks(said), horizon=3).resolved == 3


#: what is no number in [0, 1], and what is no law, with what the message shows of it
NONSENSE = [
    *((x, repr(x)) for x in ("0.5", None, 1j, [0.5], b"1")),
    (np.array([0.5]), "[0.5]"),
    (np.array("0.5"), "an array of shape ()"),
    (np.datetime64(0, "s"), "datetime.datetime(1970"),
    (10**400, "OverflowError"),
    (math.nan, "nan"),
    (np.nextafter(1.0, 2.0), "1.0000000000000002"),
    (-1e-300, "-1e-300"),
]
NO_LAWS = [
    ({}, "{}"),
    ({"a": 1}, "{'a': 1}"),
    ({0.5: "1"}, "{0.5: '1'}"),
    ({0.2: 0.5, 0.3: 0.4}, "the forecasts [0.2, 0.3] with weights [0.5, 0.4]"),
    ({0.2: -0.5, 0.3: 1.5}, "the forecasts [0.2, 0.3] with weights [-0.5, 1.5]"),
    ({0.5: math.nan}, "the forecasts [0.5] with weights [nan]"),
    (
        {False: 0.7, True: 0.3},
        "keys are outcomes and no forecasts in round 7, run 4; expected the forecast itself",
    ),
    ({np.False_: 1.0}, "expected the forecast itself, 0.0"),
]


@pytest.mark.parametrize(("said", "shown"), [*NONSENSE, *NO_LAWS], ids=lambda x: repr(x)[:20])
def test_nonsense_is_named_with_round_and_run(said, shown):
    says, asks = (cls(said, at=7) for cls in (Says, Asks))
    games = [
        (says, n.Bernoulli(0.4), "forecaster 'Says'"),
        (f.Rounded(as_forecaster(says), 3), SeesLaw, "forecaster 'rounded'"),
    ]
    if not isinstance(said, dict):
        games += [(Mean, asks, "nature 'Asks'"), (Mean, n.Mixture((as_nature(asks),)), "nature 'mixture'")]
    for forecaster, nature, who in games:
        game = game_of(forecaster, nature, 20, runs=range(4, 7))
        # Runs are in different rounds: the game is over.
        for again in (*[partial(game.advance, 20)] * 2, game.ask, game.laws, game.gammas, game.certificates):
            match = rf"{who} (stated|failed) .*in round 7, run 4[;:] "
            with pytest.raises(InvalidForecast, match=match) as told:
                again()
            assert str(told.value).isprintable()
            assert shown in str(told.value)


def test_a_dataclass_may_make_its_defaults():
    @dataclass
    class Keeps:
        said: list = field(default_factory=lambda: [0.25])

        def forecast(self):
            return self.said[-1]

        def update(self, forecast, outcome):
            self.said.append(0.5)

    (gamma,) = played(Keeps, horizon=3, runs=range(1)).gammas()
    assert gamma.predictions.tolist() == [0.25, 0.5]


def test_a_class_may_state_larger_laws():
    """As a part of another; alone, it may at once."""
    law = {i / 100: 1 / 100 for i in range(100)}
    assert played(Says(law), horizon=1).resolved == 1
    wide, narrow = (as_forecaster(cls(law)) for cls in (type("Wide", (Says,), {"atoms": 100}), Says))
    assert played(f.Rounded(wide, 3), horizon=1).resolved == 1
    said = r"stated a law of 100 atoms .*; expected at most 64, or a class attribute"
    with pytest.raises(InvalidForecast, match=said):
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


FORECASTERS = {
    "itself": lambda x: x,
    "rounded": lambda x: f.Rounded(x, 5, "random"),
    "doubling": lambda x: f.Doubling(x, first=30),
    "mixture": lambda x: f.ExpertMixture((f.EmpiricalMean(), x)),
    "delayed": lambda x: f.Delayed(x, slots=5),
    "separate": lambda x: f.Separate(f.Rounded(x, 5)),
}
NATURES = {
    "itself": lambda x: x,
    "mixture": lambda x: n.Mixture((n.Drift(), x)),
    "switch": lambda x: n.Switch(n.Switch(x, x, 20), x, 25),
    "streams": lambda x: n.Streams((x, x), "random"),
}


@pytest.mark.parametrize(
    "made", [*(("forecaster", k) for k in FORECASTERS), *(("nature", k) for k in NATURES)], ids=str
)
def test_an_error_in_any_method_of_any_part_is_named(made, monkeypatch):
    monkeypatch.setattr(module, "THREAD", 1)
    role, kind = made
    methods = ("forecast", "update") if role == "forecaster" else ("probability", "update", "context")
    methods = methods[: 2 if kind == "mixture" else 3]  # a mixture reveals nothing
    for where, (schedule, threads) in product(methods, ((Schedule(), 1), (LATE, 2))):
        mine, theirs = Laws, n.Streams((n.Drift(), n.Drift())) if kind == "separate" else n.Drift()
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


@pytest.mark.parametrize(
    "error",
    [_Odd(), RuntimeError("two\nlines\x1b[31m"), KeyError("x\ny"), StopIteration(), MemoryError()],
)
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
        with pytest.raises(error):
            game.advance(9)
        with pytest.raises(InvalidForecast, match="interrupted"):
            game.advance(9)


def test_ctrl_c_is_ctrl_c_wherever_it_comes():
    """It may also come on the way into a method, where no code of player or engine can catch it."""

    def interrupt(*_):
        raise KeyboardInterrupt

    def play(game, seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        game.advance(10**7)

    played(Mean, n.Drift(), 9)  # nothing is compiled any more
    # Python ignores what is raised in a callback of its collector, and a library of the tests may have one.
    callbacks, gc.callbacks[:] = gc.callbacks[:], []
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for i in range(40):
            game = game_of(Mean, n.Drift(), 10**7, runs=range(1))
            with pytest.raises(KeyboardInterrupt):
                play(game, 0.004 + i / 4000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.callbacks[:] = callbacks


def test_a_player_that_cannot_be_started_is_named():
    @dataclass(frozen=True)
    class Unable(n.Nature):
        error: object

        def start(self, horizon, stream):
            raise self.error

    for error in (MemoryError("7 TiB"), ValueError("boom")):
        with pytest.raises(InvalidParameter, match=rf"nature 'unable' .*{error}"):
            game_of(nature=Unable(error))

    class ThirdFails(Mean):
        made = 0

        def __init__(self):
            super().__init__()
            ThirdFails.made += 1
            assert ThirdFails.made != 3, "no third"

    match = "'ThirdFails' cannot be started at T = 6: AssertionError: no third"
    with pytest.raises(InvalidParameter, match=match):
        game_of(ThirdFails, runs=range(4))


# ---------------------------------------------------------------- what they see


@pytest.mark.parametrize("what", ["law", "forecast"])
def test_a_forecaster_sees_neither_law_nor_draw(what):
    """The sight of natures is in tests/natures, and that rounds may be changed beside plain Python in test_game.py."""
    peeps = type("Peeps", (Mean,), {"forecast": lambda self, round: getattr(round, what)})
    with pytest.raises(InvalidForecast, match=r"asked for the .* in round 1 but declares sight NOTHING"):
        played(peeps)


def test_a_kind_of_context_that_is_missing_or_no_number():
    for said, words in (
        ({}, "revealed {} in round 1, run 0; expected a dict with 'side'"),
        ({"side": "left"}, "revealed side = 'left' in round 1, run 0; expected a finite number"),
        ({"side": np.zeros(3)}, r"revealed side = \[0, 0, 0\] in round 1, run 0; expected a finite number"),
        ({"side": math.nan}, "revealed side = nan in round 1, run 0; expected a finite number"),
        ({"side": np.float32("inf")}, "revealed side = inf in round 1"),
        (None, "revealed None in round 1"),
    ):
        nature = type("Half", (Timed,), {"context": lambda self, round, said=said: said})
        with pytest.raises(InvalidForecast, match=words):
            played(nature=nature, keeps=["side"])


class Two:
    """A nature with two streams in turn."""

    streams, reveals, told, shift = ("a", "b"), frozenset({"stream"}), None, 0

    def streams_of(self, first, last):
        return np.arange(first, last + 1) % 2 if self.told is None else self.told(last + 1 - first)

    def context(self, round):
        return {"stream": (round.number + self.shift) % 2}

    def probability(self):
        return 0.5


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"told": lambda self, n: np.full(n, 7)}, r"streams_of(1, 1) gave [7]; expected 1 integers from 0 to 1"),
        ({"told": lambda self, n: None}, "gave an array of shape (); expected 1 integers"),
        ({"told": lambda self, n: np.arange(n + 1)}, "gave [0, 1]; expected 1 integers"),
        ({"told": lambda self, n: [-1] * n}, "gave [-1]"),
        ({"told": lambda self, n: 1 / 0}, "'Changed', streams_of(1, 1): ZeroDivisionError"),
        ({"shift": 1}, "revealed stream = 0 in round 1, run 0; expected 1, which its streams_of gives"),
    ],
)  # fmt: skip
def test_streams_that_cannot_be(changed, said):
    """They were rounds of no stream, or of another than the context says."""
    assert [g.weight for s in (0, 1) for g in played(nature=Two, horizon=7).gammas(s)] == [3, 3, 4, 4]
    changed = type("Changed", (Two,), changed)
    with pytest.raises(InvalidForecast, match=re.escape(said)):
        played(nature=changed, horizon=6, keeps=["stream"])


@pytest.mark.parametrize("given", ["side", 5, ("a", 1)], ids=repr)
def test_names_that_are_no_names(given):
    for role, name, game in (
        ("forecaster", "needs", lambda: game_of(type("Odd", (Shown,), {"needs": given}), Timed)),
        ("nature", "reveals", lambda: game_of(nature=type("Odd", (Timed,), {"reveals": given}))),
        ("nature", "streams", lambda: game_of(nature=type("Odd", (Two,), {"streams": given}))),
    ):
        match = re.escape(f"{role} 'Odd' declares {name} = {given!r}; expected names, in a set or tuple")
        with pytest.raises(InvalidParameter, match=match):
            game()


# ---------------------------------------------------------------- what they do to themselves and others


def test_a_player_may_play_games_of_its_own():
    class Inner(Mean):
        def forecast(self):
            try:
                played(Says("x"), horizon=2)
            except InvalidForecast:
                return played(Says(0.25), horizon=3).gammas()[0].predictions[0]

        def update(self, forecast, outcome):
            played(Fails("forecast"), horizon=9 if self.rounds == 5 else 3)
            self.rounds += 1

    game = game_of(Inner, horizon=9, schedule=LATE)
    with pytest.raises(
        InvalidForecast,
        match=r"'Inner' failed in round 6, run 0: InvalidForecast: .*'Fails' failed in round 4",
    ):
        game.advance(9)


def test_a_player_cannot_go_on_with_the_game_that_asks_it():
    class Asking(Mean):
        def forecast(self):
            held[0].ask()

    held = [game_of(Asking, horizon=2)]
    for _ in range(2):
        with pytest.raises(
            InvalidForecast, match=r"in round 1, run 0: .*game in which it is asked; expected"
        ):
            held[0].advance(2)


def test_no_run_sees_what_another_has_put_into_a_default():
    class Seen(Mean):
        def __init__(self, seen=[]):  # noqa: B006
            self.seen = seen

        def forecast(self):
            return 1 / (1 + len(self.seen))

        def update(self, forecast, outcome):
            self.seen.append(outcome)

    for _ in range(2):
        said = [gamma.predictions.tolist() for gamma in played(Seen, horizon=3, runs=range(2)).gammas()]
        assert said == [[1 / 3, 1 / 2, 1.0]] * 2


def test_what_cannot_be_pickled_is_said_and_the_game_goes_on():
    assert pickle.loads(pickle.dumps(played(Says(0.25), Timed, 9))).resolved == 9
    for what in (lambda: 0.25, lambda: (x for x in "abc")):  # how objects are made is in the game, too
        held = game_of(as_forecaster(lambda what=what: Says(what(), at=0)), horizon=9)
        held.advance(3)
        with pytest.raises(Exception, match="pickle"):
            pickle.dumps(held)
        held.advance(9)
        assert held.resolved == 9


def test_nothing_is_lost_or_left_over_round_after_round():
    told = type("Told", (SeesDraw,), {"reveals": Timed.reveals, "context": Timed.context})
    game = game_of(Shown, told, 6_000, runs=range(1), schedule=LATE)
    held = []
    for until in (500, 2_000, 6_000):
        game.advance(until)
        gc.collect()
        references = [sys.getrefcount(player[0]) for player in (game.forecaster, game.nature)]
        held.append((len(gc.get_objects()), references, len(game.plays[0].waiting)))
    assert abs(held[1][0] - held[2][0]) < 500  # of 4,000 rounds
    assert held[1][1:] == held[2][1:]
    assert held[2][2] == 3


def scribbles(run, place, forecast, outcome, number):
    law(run)[0][0] = 0.125
    return 0


@pytest.mark.parametrize("schedule", [Schedule(), LATE], ids=["at once", "late"])
def test_a_nature_hears_the_forecast_whatever_a_step_writes(schedule):
    heard = []
    hears = type("Hears", (Coin,), {"update": lambda self, forecast, outcome: heard.append(forecast)})
    game = game_of(steps.Says(learn=scribbles), hears, 20, runs=range(1), schedule=schedule, keeps=())
    game.advance(20)
    assert heard == game.transcripts.of(0).forecasts.tolist() == [0.5] * len(heard)
