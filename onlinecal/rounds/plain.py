"""Players in plain Python as steps: compiled code calls their methods by Python's own functions for C.

A player is an object with the state of one run. Compiled code calls the methods of its `Seat`, which has the numbers
that go to and fro. It stops at a method that raises an error (`played`).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import types

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import address
from onlinecal.core.errors import SightError
from onlinecal.core.guarantee import Sight
from onlinecal.rounds.law import Unplayable, brief, is_scalar, law_of, summed
from onlinecal.rounds.steps import (
    CONTEXT,
    RAISED,
    VALUES,
    WEIGHTS,
    Memory,
    asked_at,
    hear,
    ints,
    law,
    law_values,
    law_weights,
    learn,
    move,
    reveal,
)
from onlinecal.rounds.words import floats_at, ints_at

#: the whole numbers of a run: two methods of its seat, the one that reveals context, and its words
FIRST, SECOND, THIRD, WORDS_AT = range(4)
#: the words of a seat: the size of a law that is in its place, or `FAILED`. The number of the round and its time. Where
#: context, values and weights are, and how many. The drawn forecast. The two arguments of a call.
SAID, NUMBER, TIME, CONTEXT_AT, VALUES_AT, WEIGHTS_AT, SIZE, DRAWN, FORECAST, OUTCOME, WORDS = range(11)
FAILED = -1

_lock = types.ExternalFunction("PyGILState_Ensure", types.int32())
_unlock = types.ExternalFunction("PyGILState_Release", types.void(types.int32))
_call = types.ExternalFunction("PyObject_CallNoArgs", types.intp(types.intp))
_call_with = types.ExternalFunction(
    "PyObject_Vectorcall", types.intp(types.intp, types.intp, types.intp, types.intp)
)
_as_float = types.ExternalFunction("PyFloat_AsDouble", types.float64(types.intp))
_float = types.ExternalFunction("PyFloat_FromDouble", types.intp(types.float64))
_whole = types.ExternalFunction("PyLong_FromLongLong", types.intp(types.int64))
_drop = types.ExternalFunction("Py_DecRef", types.void(types.intp))


def played(code: Callable[..., Any], *given: Any) -> Any:
    """Calls compiled code that calls methods; raises the error of a method, at which the code stopped."""
    try:
        return code(*given)
    except SystemError as error:  # Python says by it that the code returned while an error was set
        raise error.__cause__ or error from None


class Round:
    """A round as a plain player sees it, with its number and the time of the question.

    `context` has the kinds that a forecaster `needs`. `memo` is the player's own: it comes back with the outcome of the
    round. A player that asks for more than its sight allows raises `SightError`.
    """

    __slots__ = ("_forecast", "_law", "_name", "_sight", "context", "memo", "number", "time")

    def __init__(
        self,
        name: str,
        number: int,
        time: float,
        *,
        sight: Sight = Sight.NOTHING,
        context: Mapping[str, float] | None = None,
        law: dict[float, float] | None = None,
        forecast: float | None = None,
    ) -> None:
        self._name, self._sight, self._law, self._forecast = name, sight, law, forecast
        self.number, self.time, self.context, self.memo = number, time, dict(context or {}), None

    @property
    def law(self) -> dict[float, float]:
        """The law of the forecast, value → probability; for natures of sight LAW."""
        if self._law is None:
            raise self._refused("the law", Sight.LAW)
        return self._law

    @property
    def forecast(self) -> float:
        """The forecast that was drawn; for natures of sight DRAW."""
        if self._forecast is None:
            raise self._refused("the drawn forecast", Sight.DRAW)
        return self._forecast

    def _refused(self, what: str, needed: Sight) -> SightError:
        return SightError(
            f"{self._name!r} asked for {what} in round {self.number} but declares sight {self._sight.name}; expected "
            f"sight {needed.name}"
        )


class Seat:
    """One run of a plain player, and the methods that compiled code calls."""

    def __init__(
        self,
        player: Any,
        name: str,
        kinds: Any,
        sight: Sight | None,
        shown: bool,
        kept: bool,
        streams_of: Any,
    ) -> None:
        self.player, self.name, self.kinds, self.sight = player, name, tuple(kinds), sight
        self.shown, self.kept, self.streams_of = shown, kept, streams_of
        #: the open rounds, where `update` is given them
        self.open: dict[int, Round] = {}
        self._enter()

    def _enter(self) -> None:
        self.words = np.zeros(WORDS)
        #: views by which Python reads and writes single numbers in a third of the time that an array takes
        self._floats: Any = memoryview(self.words.data)
        self._ints: Any = memoryview(self.words.view("q").data)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("words", "_floats", "_ints")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._enter()

    def forecast(self) -> float:
        """Asks a forecaster; a law of other form than a number goes to the place of the steps' own."""
        round = self._round() if self.shown or self.kept else None
        said = self.player.forecast(round) if self.shown else self.player.forecast()
        if type(said) is float:
            return said
        if type(said) is not dict and is_scalar(said):
            return float(said)
        law, ints = law_of(said), self._ints
        if len(law) > ints[SIZE]:
            expected = f"at most {ints[SIZE]}, or a class attribute `atoms` that is as large"
            raise Unplayable(f"stated a law of {len(law)} atoms", expected)
        _floats(ints[VALUES_AT], len(law))[:] = list(map(float, law))
        _floats(ints[WEIGHTS_AT], len(law))[:] = list(map(float, law.values()))
        ints[SAID] = len(law)
        return 0.0

    def probability(self) -> float:
        """Asks a nature."""
        round = self._round() if self.shown or self.kept else None
        q = self.player.probability(round) if self.shown else self.player.probability()
        if type(q) is float:
            return q
        if is_scalar(q):
            return float(q)
        raise Unplayable(f"stated q = {brief(q)}", "a number in [0, 1]")

    def update(self, forecast: float, outcome: int) -> None:
        """Tells the player a round."""
        if self.kept:
            self.player.update(forecast, outcome, self.open.pop(self._ints[NUMBER]))
        else:
            self.player.update(forecast, outcome)

    def reveal(self) -> None:
        """Asks a nature for context."""
        number = self._ints[NUMBER]
        said = self.player.context(Round(self.name, number, self._floats[TIME]))
        places = _floats(self._ints[CONTEXT_AT], len(self.kinds))
        for i, kind in enumerate(self.kinds):
            try:
                value = said[kind]
            except (KeyError, IndexError, TypeError):
                raise Unplayable(f"revealed {brief(said)}", f"a dict with {kind!r}") from None
            if not is_scalar(value) or not math.isfinite(value):
                raise Unplayable(f"revealed {kind} = {brief(value)}", "a finite number")
            if kind == "stream" and value != (own := self.streams_of(number, number)[0]):
                raise Unplayable(f"revealed stream = {brief(value)}", f"{own}, which its streams_of gives")
            places[i] = float(value)

    def _round(self) -> Round:
        ints, law, forecast, told = self._ints, None, None, None
        sight = Sight.NOTHING if self.sight is None else self.sight
        if sight >= Sight.LAW:
            law = summed(_floats(ints[VALUES_AT], ints[SIZE]), _floats(ints[WEIGHTS_AT], ints[SIZE]))
            if sight >= Sight.DRAW:
                forecast = self._floats[DRAWN]
        elif self.sight is None and self.kinds:
            told = dict(zip(self.kinds, _floats(ints[CONTEXT_AT], len(self.kinds)), strict=True))
        round = Round(
            self.name, ints[NUMBER], self._floats[TIME], sight=sight, context=told, law=law, forecast=forecast
        )
        if self.kept:
            self.open[round.number] = round
        return round


def _floats(at: int, count: int) -> Any:
    return (ctypes.c_double * count).from_address(at)


class Objects(Memory):
    """The memory of a plain player: an object for each run."""

    in_python = True

    def __init__(self, make: Callable[[int | None], Seat], methods: Any, context: int) -> None:
        super().__init__(ints=WORDS_AT + 1, context=context)
        self.methods, self.seats = methods, [make(None)]
        self.make: Any = make

    def spread(self, runs: range) -> None:
        """Makes an object for each of these runs."""
        super().spread(runs)
        self.seats += [self.make(run) for run in runs[1:]]
        self.make = None

    def link(self) -> None:
        """Writes down where the methods and words of the seats are."""
        # Compiled code needs each method as long as it knows its address.
        self.__dict__["calls"] = kept = [
            [getattr(seat, name) for name in self.methods] for seat in self.seats
        ]
        for row, seat, calls in zip(self.ints, self.seats, kept, strict=True):
            row[: len(calls)] = [id(call) for call in calls]
            row[WORDS_AT] = address(seat.words)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "calls"}


# ---------------------------------------------------------------- steps


@kernel
def _show(run, number, size, forecast):
    """Writes what the seat shows of the round; its words as whole numbers."""
    words, numbers = ints_at(ints(run)[WORDS_AT], WORDS), floats_at(ints(run)[WORDS_AT], WORDS)
    words[SAID], words[NUMBER], numbers[TIME] = 0, number, asked_at(run)
    words[CONTEXT_AT], words[VALUES_AT], words[WEIGHTS_AT] = run[CONTEXT], run[VALUES], run[WEIGHTS]
    words[SIZE], numbers[DRAWN] = size, forecast
    return words


@kernel
def _done(words, result):
    """Drops a result. Without one a method raised an error, which Python keeps until compiled code returns."""
    if result == 0:
        words[SAID] = FAILED
    _drop(result)


@kernel
def _number(words, method):
    """Calls a method that returns a float."""
    hold = _lock()
    result = _call(method)
    number = _as_float(result) if result != 0 else np.nan
    _done(words, result)
    _unlock(hold)
    return number


@kernel
def _tell(run, number, forecast, outcome):
    """Calls the second method with a forecast and an outcome; the code of the step."""
    words = ints_at(ints(run)[WORDS_AT], WORDS)
    words[SAID], words[NUMBER] = 0, number
    hold = _lock()
    words[FORECAST], words[OUTCOME] = _float(forecast), _whole(outcome)
    _done(words, _call_with(ints(run)[SECOND], ints(run)[WORDS_AT] + 8 * FORECAST, 2, 0))
    _drop(words[FORECAST])
    _drop(words[OUTCOME])
    _unlock(hold)
    return RAISED if words[SAID] == FAILED else 0


@law
def ask_object(run, number):
    """States the law that the object states."""
    words = _show(run, number, len(law_values(run)), np.nan)
    p = _number(words, ints(run)[FIRST])
    if words[SAID] == 0:
        law_values(run)[0], law_weights(run)[0] = p, 1.0
        return 1
    return RAISED if words[SAID] == FAILED else words[SAID]


@learn
def tell_object(run, number, size, drawn, outcome):
    """Tells the object the round."""
    return _tell(run, number, law_values(run)[drawn], outcome)


@move
def move_object(run, number, size, forecast):
    """States the probability that the object states."""
    words = _show(run, number, size, forecast)
    q = _number(words, ints(run)[FIRST])
    return float(RAISED) if words[SAID] == FAILED else q


@hear
def object_hears(run, number, size, forecast, outcome):
    """Tells the object the round."""
    return _tell(run, number, forecast, outcome)


@reveal
def object_reveals(run, number):
    """Reveals the context that the object reveals."""
    words = _show(run, number, 0, np.nan)
    hold = _lock()
    _done(words, _call(ints(run)[THIRD]))
    _unlock(hold)
    return RAISED if words[SAID] == FAILED else 0
