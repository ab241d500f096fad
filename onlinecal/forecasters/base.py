"""Specifications of forecasters: each starts a player of one run, which states laws; the engine draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np

from onlinecal.core.errors import InvalidForecast, InvalidParameter, shown
from onlinecal.core.expressions import check_steps, depends_on_horizon, grid_steps
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.plain import Plain, check_made, lifted, no_options
from onlinecal.core.strategy import build, every, memory_of, required, some, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.rounds.law import Floats


def grid_of(m: int) -> Floats:
    """0, 1/m, …, 1, each the correctly rounded quotient."""
    return np.arange(m + 1) / m


@dataclass(frozen=True)
class Forecaster:
    """Base of the specifications; a subclass is a frozen dataclass of parameters with `start`."""

    #: kinds of context that it cannot play without
    needs: ClassVar[frozenset[str]] = frozenset()
    #: names of the totals that its player proves of its own play
    certifies: ClassVar[frozenset[str]] = frozenset()
    #: whether every law that it states is a single forecast that depends on the past alone; None if it does not say
    deterministic: ClassVar[bool | None] = None
    #: whether its play may depend on the horizon; this and the next two facts: onlinecal.core.strategy
    needs_horizon: ClassVar[bool | None] = None
    #: whether rounds may be resolved late and in any order
    safe_under_delay: ClassVar[bool | None] = None
    #: how the state of a run grows, at most: "O(m)"
    memory: ClassVar[str | None] = None
    #: how many bytes one of these takes, at most: "O(m)" is that many times the brackets
    unit_bytes: ClassVar[float] = 64.0
    #: raised when its numbers change: results are kept under it (tests/versions.py)
    version: ClassVar[int] = 1

    def start(self, horizon: int, stream: Stream) -> Any:
        """Starts a player of one run, with fresh state.

        Parameters
        ----------
        horizon : int
            T, for players that are tuned to it.
        stream : Stream
            The player's own uniforms, for laws that are themselves random. The engine draws from the law.

        Returns
        -------
        CompiledForecaster or object
            An object in plain Python has ``forecast()`` and ``update(forecast, outcome)`` (`Scalar`), and is started
            for each run.
        """
        raise TypeError(f"{type(self).__name__} has no method start(horizon, stream)")

    def steps_at(self, horizon: int) -> int | None:
        """The m of the grid 0, 1/m, …, 1 of all its forecasts at this horizon; None for no such grid."""
        return None

    @property
    def length(self) -> int | None:
        """How many rounds it can play; None for any number."""
        return None

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The proved bounds; empty for nothing."""
        return ()


class InSteps(Forecaster):
    """A forecaster with a parameter `m`, a number of steps that may depend on T."""

    m: int | str

    def __post_init__(self) -> None:
        check_steps("m", self.m)

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return depends_on_horizon(self.m)


@dataclass(frozen=True)
class OnGrid(InSteps):
    """A forecaster on the grid 0, 1/m, …, 1."""

    def steps_at(self, horizon: int) -> int:
        return grid_steps("m", self.m, horizon)


class OfOthers(Forecaster):
    """A forecaster made of others, `of`: the facts follow from theirs."""

    of: Any

    def __post_init__(self) -> None:
        check_forecasters("of", tuple(self._parts.values()))

    @property
    def _parts(self) -> dict[str, Forecaster]:
        of = self.of
        return {f"of[{k}]": part for k, part in enumerate(of)} if isinstance(of, tuple) else {"of": of}

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset().union(*(part.needs for part in self._parts.values()))

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        return every(part.deterministic for part in self._parts.values())

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return some(part.needs_horizon for part in self._parts.values())

    @property
    def safe_under_delay(self) -> bool | None:  # type: ignore[override]
        return every(part.safe_under_delay for part in self._parts.values())

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        return memory_of(self._parts)


class ScalarPlayer(Protocol):
    """A forecaster in plain Python."""

    #: a number in [0, 1], or a law as a dict value → probability; of ``()`` or ``(round)``
    forecast: Callable[..., Any]
    #: tells the forecast that was drawn and the outcome, 0 or 1; of ``(forecast, outcome)`` or with the round behind
    update: Callable[..., None]


@dataclass(frozen=True)
class Scalar(Plain, Forecaster):  # type: ignore[override]
    """Plays a forecaster in plain Python: any object with `forecast()` and `update(forecast, outcome)`.

    With an argument more, `forecast(round)` and `update(forecast, outcome, round)` are given the same
    `onlinecal.rounds.plain.Round`: number, time, context of the kinds that the class `needs`, and room for a memo.

    Parameters
    ----------
    make : callable
        Makes a fresh one: a class or function without arguments, or with the one argument `horizon`.
    name : str
        The name in tables.

    Information
    -----------
    One Python object a run. A law has at most 64 values, or the class attribute `atoms`. The facts of
    `onlinecal.core.strategy`, and `needs`, are class attributes of those names.
    """

    make: Callable[..., ScalarPlayer]
    name: str = "scalar"

    def __post_init__(self) -> None:
        missing = [key for key in required(self.make) if key != "horizon"]
        if missing:
            raise InvalidParameter(
                f"forecaster {self.name!r} cannot be made without arguments: {self.make!r} needs "
                f"{', '.join(missing)}; expected defaults for all but horizon"
            )

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        return self._declared("deterministic", bool)

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(getattr(self.origin, "needs", ()))

    def start(self, horizon: int, stream: Stream) -> ScalarPlayer:
        return self.player(horizon)


#: what a plain forecaster must have, with the arguments
METHODS = {"forecast": "", "update": "forecast, outcome"}


def as_forecaster(
    thing: Any, options: Mapping[str, Any] = MappingProxyType({}), called: str | None = None
) -> Forecaster:
    """A specification from one, or from what makes a plain forecaster.

    Parameters
    ----------
    thing : Forecaster, class, function, functools.partial or object
        A plain class has ``forecast()`` and ``update(forecast, outcome)``. Each run has an object, or a deep copy.
    options : mapping, optional
        Parameters for a class or function.
    called : str, optional
        What messages call it. Default: its own name.
    """
    if isinstance(thing, type) and issubclass(thing, Forecaster):
        name = called or strategy_name(thing)
        return build("forecaster", {name: thing}, name, options)
    if isinstance(thing, Forecaster):
        no_options("forecaster", thing, options, called)
        return thing
    make, name, sample = lifted("forecaster", thing, options, METHODS, called, InvalidForecast)
    if isinstance(sample, Forecaster):
        return sample
    check_made("forecaster", called or name, sample, METHODS)
    return Scalar(make, name=name)


def check_forecasters(name: str, values: Sequence[Any]) -> None:
    """Refuses a parameter that is no list of forecasters, or an empty one."""
    if not values:
        raise InvalidParameter(f"{name} is empty; expected at least one forecaster")
    for value in values:
        if not isinstance(value, Forecaster):
            raise InvalidParameter(
                f"{name} = {shown(value)}; expected a forecaster (in a scenario: a table with a name)"
            )
