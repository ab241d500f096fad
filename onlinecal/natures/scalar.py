"""Natures that somebody wrote in plain Python, for one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.plain import Plain, check_made, lifted, no_options
from onlinecal.core.strategy import build, required, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.natures.base import Nature, NaturePlayer, NatureRound, Sight, heard, refused
from onlinecal.rounds.law import Floats, Unplayable, brief
from onlinecal.rounds.protocol import takes

#: what a plain nature must have
METHODS = {"probability": ""}


class ScalarRound:
    """A round of one run, as a plain nature sees it; `SightError` for more than it declares.

    Attributes
    ----------
    number : int
        1, 2, …
    time : float
        When the question is asked, on the game's clock.
    """

    __slots__ = ("_forecast", "_law", "_name", "_sight", "number", "time")

    def __init__(
        self,
        name: str,
        sight: Sight,
        number: int,
        time: float,
        law: dict[float, float] | None = None,
        forecast: float | None = None,
    ) -> None:
        self._name, self._sight, self.number, self.time = name, sight, number, time
        self._law, self._forecast = law, forecast

    @property
    def law(self) -> dict[float, float]:
        """The law of the forecast, value → probability; for sight LAW."""
        if self._law is None:
            raise refused(self._name, self._sight, "the law", self.number, Sight.LAW)
        return self._law

    @property
    def forecast(self) -> float:
        """The forecast that was drawn; for sight DRAW."""
        if self._forecast is None:
            raise refused(self._name, self._sight, "the drawn forecast", self.number, Sight.DRAW)
        return self._forecast


class ScalarNaturePlayer(Protocol):
    """A nature written for one run in plain Python; it may also have `update(forecast, outcome)`."""

    #: P(y = 1) of the next round, as ``probability()`` or ``probability(round)`` with a `ScalarRound`
    probability: Callable[..., float]


@dataclass(frozen=True)
class Scalar(Plain, Nature):  # type: ignore[override]
    """Plays a nature written for one run: an object with `probability()` or `probability(round)`, and maybe `update`.

    `update(forecast, outcome)` tells it a past round. `round` has a number, a time, and for the sight that its class
    declares the law, a dict value → probability, and the forecast.

    Parameters
    ----------
    make : callable
        Makes a fresh one: a class or function without arguments, or with the one argument `horizon`.
    name : str
        What it is called in tables.

    Information
    -----------
    Sees what its class declares: ``sight = "law"``, or a `Sight`. Default: HISTORY if it has `update`, else nothing.
    One Python object a run, so tens of times slower than the built-in players. The facts of `onlinecal.core.facts` are
    what its class says by attributes of those names.

    Raises
    ------
    InvalidParameter
        A parameter without a default; a sight that is none; from `start` one that its methods cannot use.
    """

    make: Callable[..., ScalarNaturePlayer]
    name: str = "scalar"

    def __post_init__(self) -> None:
        missing = [key for key in required(self.make) if key != "horizon"]
        if missing:
            raise InvalidParameter(
                f"nature {self.name!r} cannot be made without arguments: {self.make!r} needs {', '.join(missing)}; "
                "expected defaults for all but horizon"
            )
        self.sight  # noqa: B018  # refuses what is none

    @property
    def sight(self) -> Sight:
        """The sight that its class declares, or else HISTORY where it has `update`."""
        declared = getattr(self.origin, "sight", None)
        if declared is None:
            return Sight.HISTORY if callable(getattr(self.origin, "update", None)) else Sight.NOTHING
        if isinstance(declared, str):
            declared = Sight.__members__.get(declared.upper(), declared)
        if not isinstance(declared, Sight):
            known = ", ".join(repr(name.lower()) for name in Sight.__members__)
            raise InvalidParameter(
                f"nature {self.name!r} declares sight = {brief(declared)}; expected {known}, or a Sight"
            )
        return declared

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """One object of its own for each run."""
        players, sight = self.players(horizon, runs), self.sight
        shown, told = not takes(players[0].probability, False), callable(getattr(players[0], "update", None))
        fault = ""
        if sight >= Sight.LAW and not shown:
            fault = "its probability() needs no round, by which it would see; expected probability(round)"
        elif sight is Sight.NOTHING and told:
            fault = "its update would never be called; expected sight HISTORY, or no such method"
        if fault:
            raise InvalidParameter(f"its class declares sight {sight.name}, but {fault}")
        return (LiftedNature if sight is Sight.NOTHING else HearingNature)(
            players, self.name, sight, shown, told
        )


class LiftedNature:
    """Plays plain natures, one for each run, in a game of all runs at once."""

    def __init__(self, players: list[Any], name: str, sight: Sight, shown: bool, told: bool) -> None:
        self.players, self.name, self.seen, self.shown, self.told = players, name, sight, shown, told
        self.q = np.empty(len(players))

    def probability(self, round: NatureRound) -> Floats:
        for run, player in enumerate(self.players):
            if self.shown:
                law = round.law.of(run) if self.seen >= Sight.LAW else None
                drawn = float(round.forecast[run]) if self.seen >= Sight.DRAW else None
                stated = player.probability(
                    ScalarRound(self.name, self.seen, round.number, round.time, law, drawn)
                )
            else:
                stated = player.probability()
            self.q[run] = number_of(stated, run)
        return self.q


class HearingNature(LiftedNature):
    """The same of those that see the history."""

    def update(self, round: NatureRound) -> None:
        if not self.told:
            return
        forecasts, outcomes = heard(round, len(self.players))
        for player, p, y in zip(self.players, forecasts.tolist(), outcomes.tolist(), strict=True):
            player.update(p, y)


def number_of(stated: Any, run: int) -> float:
    """The number that a plain nature stated; `Unplayable` if it is none."""
    if not isinstance(stated, Real):
        raise Unplayable(f"stated q = {brief(stated)}", "a number in [0, 1]", run)
    return float(stated)


def as_nature(
    thing: Any, options: Mapping[str, Any] = MappingProxyType({}), called: str | None = None
) -> Nature:
    """A specification from one, or from what makes a plain nature.

    Parameters
    ----------
    thing : Nature, class, function, functools.partial or object
        Of a plain class, with ``probability()`` and maybe ``update(forecast, outcome)``, each run has an object of its
        own; of an object, a deep copy. A function makes such an object, or a Nature.
    options : mapping, optional
        Parameters for a class or function.
    called : str, optional
        What messages call it. Default: its own name.

    Raises
    ------
    InvalidParameter
        It is nothing of the kind; a parameter that it does not have, lacks or refuses.
    """
    if isinstance(thing, type) and issubclass(thing, Nature):
        name = called or strategy_name(thing)
        return build("nature", {name: thing}, name, options)
    if isinstance(thing, Nature):
        no_options("nature", thing, options, called)
        return thing
    make, name, sample = lifted("nature", thing, options, METHODS, called)
    if isinstance(sample, Nature):
        return sample
    check_made("nature", called or name, sample, METHODS)
    return Scalar(make, name=name)
