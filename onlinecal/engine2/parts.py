"""Parts of compiled forecasters: players of steps, also where these steps call an object in plain Python.

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
from onlinecal.core.strategy import strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import count
from onlinecal.engine2.law import Unplayable
from onlinecal.engine2.play import Question, check_law
from onlinecal.engine2.run import Run, law, note, shared, state
from onlinecal.engine2.seats import PlainForecaster
from onlinecal.engine2.start import begin
from onlinecal.engine2.steps import ASKED_AT, LEARN, SAY, Forecaster, Player

#: atoms of the law of a plain forecaster, at most, unless its class has an attribute `atoms`
ATOMS = 64
#: the objects that play in this process, by the number that is the state of their part
PLAYING: WeakValueDictionary[int, _Object] = WeakValueDictionary()
NUMBERS = counted(1)


def begin_part(strategy: Any, horizon: int, stream: Stream) -> Any:
    """A forecaster of steps for a part of a composition, at its beginning."""
    if getattr(strategy, "takes_all", False):
        what = (
            f"{strategy_name(strategy)!r} needs all context, which a part of another forecaster is not given"
        )
        raise InvalidParameter(f"{what}; expected the kinds that it needs, by name")
    player = begin("forecaster", strategy, horizon, stream)
    return player if isinstance(player, Player) else PlainPart(strategy, player, horizon, stream)


class _Object:
    """One run of a forecaster in plain Python, with its open questions by number."""

    def __init__(self, strategy: Any, player: Any) -> None:
        self.seat, self.kinds = PlainForecaster(player, strategy), sorted(strategy.needs)
        self.open: dict[int, Question] = {}

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

    def learn(self, number: int, forecast: float, outcome: int) -> None:
        """Tells the outcome of a question."""
        question = self.open.pop(number)
        question.forecast, question.outcome = forecast, outcome
        self.seat.learn(question)


class PlainPart(Forecaster):
    """Steps that call one object for each run; the state is its number among those that play."""

    def __init__(self, strategy: Any, player: Any, horizon: int, stream: Stream) -> None:
        most, kinds = count("atoms", getattr(player, "atoms", ATOMS)), enumerate(sorted(strategy.needs), 1)
        say, learn = plain_steps()
        super().__init__(
            say, learn, [0.0], [most], size=most, note=1 + len(strategy.needs), needs={0: ASKED_AT, **dict(kinds)},
            certificates=certified if strategy.certifies else None,
        )  # fmt: skip
        self.strategy, self.horizon, self.begun = strategy, horizon, stream
        self.objects, self.in_python = [_Object(strategy, player)], True

    def spread(self, runs: range) -> None:
        """As `Player.spread`, with an object for each run."""
        super().spread(runs)
        for run in runs[1:]:
            own = self.begun.over(range(run, run + 1))
            self.objects.append(_Object(self.strategy, self.strategy.start(self.horizon, own)))
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


def certified(player: PlainPart) -> dict[str, Floats]:
    """The totals that the objects certify, name → (runs,)."""
    said = [each.seat.player.certificates() for each in player.objects]
    return {name: np.array([float(each[name]) for each in said]) for name in said[0]}


def _say(key: int, number: int, noted: Floats, values: Floats, weights: Floats, most: int) -> int:
    return PLAYING[key].say(number, noted, values, weights, most)


def _learn(key: int, number: int, forecast: float, outcome: int) -> None:
    PLAYING[key].learn(number, forecast, outcome)


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

    return njit(SAY, error_model="numpy")(say), njit(LEARN, error_model="numpy")(learn)
