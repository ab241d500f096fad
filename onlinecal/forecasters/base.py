"""The protocol of forecasters: a specification starts a player, the player states laws, the engine draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np

from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.core.expressions import check_steps, depends_on_horizon, grid_steps
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.plain import Plain, check_made, lifted, no_options
from onlinecal.core.strategy import build, required, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.rounds.law import Floats, Law, Unplayable, brief
from onlinecal.rounds.record import Round, Stage, check_round


def grid_of(m: int) -> Floats:
    """0, 1/m, …, 1, each the correctly rounded quotient."""
    return np.arange(m + 1) / m


def context(round: Round, kind: str, runs: int) -> Floats:
    """The context of this kind as (runs,) floats; of "stream" as whole numbers.

    Raises
    ------
    InvalidParameter
        It is missing, or not of that form.
    """
    values = round.context.get(kind)
    whole = kind == "stream"
    if values is None or values.shape != (runs,) or values.dtype != (np.int64 if whole else np.float64):
        raise InvalidParameter(
            f"round {round.number} has {kind} = {brief(values)}; expected {runs} "
            f"{'whole numbers' if whole else 'floats'}, one a run"
        )
    return values


def stream_of(round: Round, runs: int) -> int:
    """The stream of a round, as its context says.

    Raises
    ------
    Unplayable
        It is no whole number, or not the same in all runs.
    """
    streams = round.context["stream"]
    if streams.shape != (runs,) or streams.dtype != np.int64 or streams.min() != streams.max():
        raise Unplayable(
            f"is asked a question of the streams {brief(streams)}",
            f"one whole number for all of the {runs} runs",
        )
    return int(streams[0])


class Player(Protocol):
    """A forecaster in a game: R runs in lockstep.

    A player has `certificates` if and only if its specification `certifies` something; the engine refuses others when
    a game begins.
    """

    def forecast(self, round: Round) -> Law:
        """The laws of this round. Pure: it may be asked twice and answers the same.

        What `update` will need of this moment goes into ``round.memo``: other rounds may be asked before this one is
        resolved.
        """

    def update(self, round: Round) -> None:
        """A round whose outcome is known: its law, what was drawn from it, the outcome, and the memo."""


class Certifying(Player, Protocol):
    """A player that proves bounds on its own play."""

    def certificates(self) -> dict[str, Floats]:
        """Name → (runs,) totals of all resolved rounds, of the names that the specification `certifies`."""


@dataclass(frozen=True)
class Forecaster:
    """Base of the specifications; a subclass is a frozen dataclass of parameters with `start`."""

    #: kinds of context that it cannot play without
    needs: ClassVar[frozenset[str]] = frozenset()
    #: names of the totals that its player proves of its own play
    certifies: ClassVar[frozenset[str]] = frozenset()
    #: whether every law that it states is a single forecast that depends on the past alone; None if it does not say
    deterministic: ClassVar[bool | None] = None
    #: whether its play may depend on the horizon; this and the next two facts: onlinecal.core.facts
    needs_horizon: ClassVar[bool | None] = None
    #: whether rounds may be resolved late and in any order
    safe_under_delay: ClassVar[bool | None] = None
    #: how the state of a run grows, at most: "O(m)"
    memory: ClassVar[str | None] = None
    #: how many bytes one of these takes, at most: "O(m)" is so many times what is in the brackets
    unit_bytes: ClassVar[float] = 64.0
    #: raised when its numbers change: results are kept under it (tests/versions.py)
    version: ClassVar[int] = 1

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player with fresh state.

        Parameters
        ----------
        horizon : int
            T, for those that are tuned to it.
        runs : int
            How many runs it plays in lockstep.
        stream : Stream
            Uniforms of its own, for laws that are themselves random. Drawing from the law is the engine's work.
        """
        raise TypeError(f"{type(self).__name__} has no method start(horizon, runs, stream)")

    def steps_at(self, horizon: int) -> int | None:
        """The m of the grid 0, 1/m, …, 1 on which all its forecasts are in a game of so many rounds; None for no such
        grid, or where it does not say.
        """
        return None

    @property
    def length(self) -> int | None:
        """How many rounds it can play; None for any number."""
        return None

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What is proved about it; empty for nothing."""
        return ()


class InSteps(Forecaster):
    """A forecaster with a parameter `m`, a number of steps that may depend on T."""

    m: int | str

    def __post_init__(self) -> None:
        check_steps("m", self.m)

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        """Where `m` does."""
        return depends_on_horizon(self.m)


@dataclass(frozen=True)
class OnGrid(InSteps):
    """A forecaster whose forecasts are 0, 1/m, …, 1."""

    def steps_at(self, horizon: int) -> int:
        """`m` at this horizon."""
        return grid_steps("m", self.m, horizon)


class ScalarPlayer(Protocol):
    """A forecaster written for one run in plain Python."""

    def forecast(self) -> Any:
        """A number in [0, 1], or a law as a mapping value → probability."""

    def update(self, forecast: float, outcome: int) -> None:
        """The forecast that was drawn, and the outcome 0 or 1."""


@dataclass(frozen=True)
class Scalar(Plain, Forecaster):  # type: ignore[override]
    """Plays a forecaster written for one run: any object with `forecast()` and `update(forecast, outcome)`.

    Parameters
    ----------
    make : callable
        Makes a fresh one: a class or function without arguments, or with the one argument `horizon`.
    name : str
        What it is called in tables.

    Information
    -----------
    One Python object a run, so tens of times slower than the built-in players. The facts of `onlinecal.core.facts` are
    what its class says by attributes of those names.
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
        """What its class declares."""
        return self._declared("deterministic", bool)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """One object of its own for each run."""
        return Lifted(self.players(horizon, runs))


class Lifted:
    def __init__(self, players: list[ScalarPlayer]) -> None:
        self.players = players
        self.law = Law(len(players), 1)

    def forecast(self, round: Round) -> Law:
        laws = [law_of(run, player.forecast()) for run, player in enumerate(self.players)]
        size = max(1, *map(len, laws))
        if self.law.atoms.shape[1] != size:
            self.law = Law(len(laws), size)
        atoms, weights = self.law.atoms, self.law.weights
        for run, law in enumerate(laws):
            # Unused places repeat the first value with no weight.
            atoms[run] = next(iter(law))
            weights[run] = 0.0
            for j, (value, weight) in enumerate(law.items()):
                atoms[run, j], weights[run, j] = value, weight
        return self.law

    def update(self, round: Round) -> None:
        check_round(round, self.law)
        told = round._row("forecast").tolist(), round._row("outcome", Stage.RESOLVED).tolist()
        for player, p, y in zip(self.players, *told, strict=True):
            player.update(p, y)


def law_of(run: int, said: Any) -> dict[Any, Any]:
    """The law that a plain forecaster stated, as a mapping value → probability; `Unplayable` if it is none."""
    law = {said: 1.0} if isinstance(said, Real) else said
    if (
        not isinstance(law, dict)
        or not law
        or not all(isinstance(x, Real) for pair in law.items() for x in pair)
    ):
        raise Unplayable(f"stated {brief(said)}", "a number in [0, 1], or a dict of them with weights", run)
    return law


#: what a plain forecaster must have, with the arguments
METHODS = {"forecast": "", "update": "forecast, outcome"}


def as_forecaster(
    thing: Any, options: Mapping[str, Any] = MappingProxyType({}), called: str | None = None
) -> Forecaster:
    """A specification from one, or from what makes a plain forecaster.

    Parameters
    ----------
    thing : Forecaster, class, function, functools.partial or object
        Of a plain class, with ``forecast()`` and ``update(forecast, outcome)``, each run has an object of its own; of
        an object, a deep copy. A function makes such an object, or a Forecaster.
    options : mapping, optional
        Parameters for a class or function.
    called : str, optional
        What messages call it. Default: its own name.

    Raises
    ------
    InvalidForecast
        It is nothing of the kind.
    InvalidParameter
        A parameter that it does not have, lacks or refuses.
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
