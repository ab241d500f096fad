"""Parts of compositions: players of steps, also where these steps call an object in plain Python.

Numba's `objmode` calls it, and an error that the object raises goes through the steps as one of theirs does.
"""

from __future__ import annotations

from functools import cache
from itertools import count as counted
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numba import njit, objmode

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.strategy import strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import count
from onlinecal.engine.law import Unplayable, check_law
from onlinecal.engine.play import Question
from onlinecal.engine.result import certified_by
from onlinecal.engine.run import Run, law, note, shared, state
from onlinecal.engine.seats import seat
from onlinecal.engine.start import apart, begin
from onlinecal.engine.steps import ASKED_AT, LEARN, MOVE, REVEAL, SAY, Forecaster, Nature, Player

#: atoms of the law of a plain forecaster, at most, unless its class has an attribute `atoms`
ATOMS = 64
#: the objects that play in this process, by the number that is the state of their part
PLAYING: WeakValueDictionary[int, _Object] = WeakValueDictionary()
NUMBERS = counted(1)


def begin_part(role: str, strategy: Any, horizon: int, stream: Stream) -> Any:
    """A player of steps for a part of a composition, at its beginning."""
    if getattr(strategy, "takes_all", False):
        what = (
            f"{strategy_name(strategy)!r} needs all context, which a part of another forecaster is not given"
        )
        raise InvalidParameter(f"{what}; expected the kinds that it needs, by name")
    player = begin(role, strategy, horizon, stream)
    if isinstance(player, Player):
        return player
    return (ForecasterPart if role == "forecaster" else NaturePart)(strategy, player, horizon, stream)


class _Object:
    """One run of an object in plain Python, with its open questions by number."""

    def __init__(self, role: str, strategy: Any, player: Any) -> None:
        self.seat, self.open = seat(role, strategy, player), dict[int, Question]()
        self.kinds = sorted(strategy.needs if role == "forecaster" else strategy.reveals)

    def say(self, number: int, noted: Floats, values: Floats, weights: Floats, most: int) -> int:
        """Writes the law of a question, of which the note has the time and the context."""
        context = dict(zip(self.kinds, noted[1:].tolist(), strict=True))
        question = self.open[number] = Question(number, float(noted[0]), context=context)
        said = check_law(self.seat.state_law(question))
        if len(said) > most:
            expected = f"at most {most}, or a class attribute `atoms` that is as large"
            raise Unplayable(f"stated a law of {len(said)} atoms", expected)
        values[: len(said)], weights[: len(said)] = np.array(said).T
        return len(said)

    def reveal(self, number: int, noted: Floats) -> None:
        """Writes the context of a question behind its time."""
        question = self.open[number] = Question(number, float(noted[0]))
        self.seat.reveal(question)
        noted[1 : 1 + len(self.kinds)] = [question.context[kind] for kind in self.kinds]

    def move(self, number: int, noted: Floats, values: Floats, weights: Floats, forecast: float) -> float:
        """The probability of the outcome 1. A question of which nothing is revealed begins here."""
        if number not in self.open:
            self.open[number] = Question(number, float(noted[0]))
            self.seat.show(self.open[number])
        question = self.open[number] if self.seat.hears else self.open.pop(number)
        question.law = list(zip(values.tolist(), weights.tolist(), strict=True))
        question.forecast = forecast
        return self.seat.move(question)

    def learn(self, number: int, forecast: float, outcome: int) -> None:
        """Tells the outcome of a question."""
        question = self.open.pop(number)
        question.forecast, question.outcome = forecast, outcome
        self.seat.learn(question)


class _Part(Player):
    """Steps that call one object for each run; the state is its number among those that play."""

    def _of(self, role: str, strategy: Any, player: Any, horizon: int, stream: Stream) -> None:
        self.role, self.strategy, self.horizon, self.begun = role, strategy, horizon, stream
        self.objects, self.in_python = [_Object(role, strategy, player)], True

    def spread(self, runs: range) -> None:
        """As `Player.spread`, with an object for each run."""
        super().spread(runs)
        for run in runs[1:]:
            player = self.strategy.start(self.horizon, self.begun.over(range(run, run + 1)))
            self.objects.append(_Object(self.role, self.strategy, apart(self.strategy, player)))
        self._enter()

    def _enter(self) -> None:
        for row, each in zip(self.state, self.objects, strict=True):
            row[0] = next(NUMBERS)
            PLAYING[int(row[0])] = each

    def kept(self) -> dict[str, Any]:
        """As `Player.kept`, with the objects."""
        return super().kept() | {"objects": self.objects}

    def restore(self, kept: dict[str, Any]) -> None:
        """As `Player.restore`: the objects play in this process from now on."""
        super().restore(kept)
        self._enter()


class ForecasterPart(_Part, Forecaster):
    """A forecaster in plain Python as a part of another."""

    def __init__(self, strategy: Any, player: Any, horizon: int, stream: Stream) -> None:
        most, kinds = count("atoms", getattr(player, "atoms", ATOMS)), enumerate(sorted(strategy.needs), 1)
        say, learn, *_ = plain_steps()
        super().__init__(
            say, learn, [0.0], [most], size=most, note=1 + len(strategy.needs), needs={0: ASKED_AT, **dict(kinds)},
            certificates=certified if strategy.certifies else None,
        )  # fmt: skip
        self._of("forecaster", strategy, player, horizon, stream)


class NaturePart(_Part, Nature):
    """A nature in plain Python as a part of another."""

    def __init__(self, strategy: Any, player: Any, horizon: int, stream: Stream) -> None:
        _, learn, move, reveal = plain_steps()
        kinds = dict(enumerate(sorted(strategy.reveals), 1))
        hears = strategy.sight >= Sight.HISTORY and hasattr(player, "update")
        super().__init__(
            move, [0.0], sight=strategy.sight, hear=learn if hears else None, reveal=reveal if kinds else None,
            reveals=kinds, times=[0], streams_of=getattr(player, "streams_of", None), note=1 + len(kinds),
        )  # fmt: skip
        self._of("nature", strategy, player, horizon, stream)


def certified(player: ForecasterPart) -> dict[str, Floats]:
    """The totals that the objects certify, name → (runs,)."""
    return certified_by(each.seat.player for each in player.objects)


# Functions, as old versions of numba pickle what code names that is played by Python: objects cannot be.
def _say(key: int, number: int, noted: Floats, values: Floats, weights: Floats, most: int) -> int:
    return PLAYING[key].say(number, noted, values, weights, most)


def _learn(key: int, number: int, forecast: float, outcome: int) -> None:
    PLAYING[key].learn(number, forecast, outcome)


def _move(key: int, number: int, noted: Floats, values: Floats, weights: Floats, forecast: float) -> float:
    return PLAYING[key].move(number, noted, values, weights, forecast)


def _reveal(key: int, number: int, noted: Floats) -> None:
    PLAYING[key].reveal(number, noted)


@cache
def plain_steps() -> Any:
    """The steps, compiled; numba keeps no machine code on disk that calls Python."""

    def say(run: Run, number: int) -> int:
        key, most, noted, (values, weights) = int(state(run)[0]), int(shared(run)[0]), note(run), law(run)
        with objmode(size="int64"):
            size = _say(key, number, noted, values, weights, most)
        return size

    def learn(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
        key = int(state(run)[0])
        with objmode():
            _learn(key, number, forecast, outcome)
        return 0

    def move(run: Run, size: int, forecast: float, number: int) -> float:
        key, noted, (values, weights) = int(state(run)[0]), note(run), law(run)
        values, weights = values[:size], weights[:size]
        with objmode(q="float64"):
            q = _move(key, number, noted, values, weights, forecast)
        return q

    def reveal(run: Run, number: int) -> int:
        key, noted = int(state(run)[0]), note(run)
        with objmode():
            _reveal(key, number, noted)
        return 0

    steps: Any = (SAY, say), (LEARN, learn), (MOVE, move), (REVEAL, reveal)
    for _, step in steps:
        step.calls_python = True
    return [njit(signature, error_model="numpy")(step) for signature, step in steps]
