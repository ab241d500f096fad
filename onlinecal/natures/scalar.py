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
from onlinecal.natures.base import Nature, NaturePlayer, NatureRound, Sight, heard
from onlinecal.rounds.law import Floats, Unplayable, brief

#: what a plain nature must have
METHODS = {"probability": ""}


class ScalarNaturePlayer(Protocol):
    """A nature written for one run in plain Python; it may also have `update(forecast, outcome)`."""

    def probability(self) -> float:
        """P(y = 1) of the next round."""


@dataclass(frozen=True)
class Scalar(Plain, Nature):  # type: ignore[override]
    """Plays a nature written for one run: any object with `probability()` and maybe `update(forecast, outcome)`.

    Parameters
    ----------
    make : callable
        Makes a fresh one: a class or function without arguments, or with the one argument `horizon`.
    name : str
        What it is called in tables.

    Information
    -----------
    Sees HISTORY if it has `update`, else nothing. One Python object a run, so tens of times slower than the built-in
    players. The facts of `onlinecal.core.facts` are what its class says by attributes of those names.
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

    @property
    def sight(self) -> Sight:
        """HISTORY for those that are told the past."""
        return Sight.HISTORY if callable(getattr(self.origin, "update", None)) else Sight.NOTHING

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """One object of its own for each run."""
        players = self.players(horizon, runs)
        return HearingNature(players) if self.sight is Sight.HISTORY else LiftedNature(players)


class LiftedNature:
    def __init__(self, players: list[Any]) -> None:
        self.players, self.q = players, np.empty(len(players))

    def probability(self, round: NatureRound) -> Floats:
        for run, player in enumerate(self.players):
            self.q[run] = number_of(player.probability(), run)
        return self.q


class HearingNature(LiftedNature):
    def update(self, round: NatureRound) -> None:
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
