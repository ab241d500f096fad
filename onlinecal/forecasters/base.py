"""The protocol of forecasters: a specification starts a player, the player states laws, the engine draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel
from onlinecal.errors import InvalidForecast, InvalidParameter
from onlinecal.guarantee import Guarantee
from onlinecal.strategy import make, required
from onlinecal.streams import Stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Law:
    """Finite laws of this round's forecast, one for each run.

    A player owns one `Law` and fills its arrays in place, so that a round allocates nothing.

    Attributes
    ----------
    grid : (points,) floats or None
        The values that a grid forecaster plays. With a grid the ledger keeps counts by index, and no value is ever
        rounded back to a bin.
    atoms : (runs, size) array
        Indices into `grid` (int64), or, without a grid, the values themselves (float64).
    weights : (runs, size) floats
        Probabilities of the atoms; each row sums to 1.
    drawn : (runs,) ints
        Which atom the engine drew, for players that look at more than its value when they are told the outcome.
    """

    def __init__(self, runs: int, size: int, grid: Floats | None = None) -> None:
        self.grid = grid
        self.atoms: NDArray[Any] = np.zeros((runs, size), np.float64 if grid is None else np.int64)
        self.weights = np.full((runs, size), 1.0 / size)
        self.drawn = np.zeros(runs, np.int64)

    @property
    def points(self) -> bool:
        """Whether each of the laws is a single point, which several atoms of one value are too."""
        known = np.where(self.weights > 0.0, self.atoms, -1)
        return bool(((known == known.max(axis=1, keepdims=True)) | (self.weights == 0.0)).all())


def grid_of(m: int) -> Floats:
    """0, 1/m, …, 1, each the correctly rounded quotient."""
    return np.arange(m + 1) / m


class Unplayable(Exception):
    """What a player said for one run makes no law; the engine says so, with the name, the round and the run.

    Attributes
    ----------
    run : int
        Counted from 0 among those that the player plays.
    said : object
    expected : str
    """

    def __init__(self, run: int, said: Any, expected: str) -> None:
        super().__init__(run, said, expected)
        self.run, self.said, self.expected = run, said, expected


class Player(Protocol):
    """A forecaster in a game: R runs in lockstep."""

    def forecast(self, view: ForecasterView) -> Law:
        """The laws of this round. Pure: it may be asked twice and answers the same."""

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        """What was drawn from the laws, (runs,) atoms (indices for a grid), and how the events turned out, (runs,)."""


@dataclass(slots=True)
class ForecasterView:
    """What a forecaster sees before it commits itself.

    Attributes
    ----------
    round : int
        1, 2, …
    context : mapping
        What nature reveals before the forecast, only of the kinds that the forecaster `needs`; (runs,) arrays, valid in
        this round.
    """

    round: int
    context: dict[str, Floats]


@dataclass(frozen=True)
class Forecaster:
    """Base of the specifications; a subclass is a frozen dataclass of parameters with `start`."""

    #: kinds of context that it cannot play without
    needs: ClassVar[frozenset[str]] = frozenset()
    #: whether every law that it states is a single forecast that depends on the past alone; None if it does not say
    deterministic: ClassVar[bool | None] = None
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

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What is proved about it; empty for nothing."""
        return ()


class ScalarPlayer(Protocol):
    """A forecaster written for one run in plain Python."""

    def forecast(self) -> Any:
        """A number in [0, 1], or a law as a mapping value → probability."""

    def update(self, forecast: float, outcome: int) -> None:
        """The forecast that was drawn, and the outcome 0 or 1."""


@dataclass(frozen=True)
class Scalar(Forecaster):
    """Plays a forecaster written for one run: any object with `forecast()` and `update(forecast, outcome)`.

    Parameters
    ----------
    make : callable
        Makes a fresh one: a class or function without arguments, or with the one argument `horizon`.
    name : str
        What it is called in tables.

    Information
    -----------
    One Python object a run, so tens of times slower than the built-in players. It is `deterministic` if its class
    says so by an attribute of that name.
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
        declared = getattr(self.make, "deterministic", None)
        return declared if isinstance(declared, bool) else None

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """One object of its own for each run."""
        import inspect

        arguments = inspect.signature(self.make).parameters
        tuned = "horizon" in arguments
        return _Lifted([self.make(horizon=horizon) if tuned else self.make() for _ in range(runs)])


class _Lifted:
    def __init__(self, players: list[ScalarPlayer]) -> None:
        self.players = players
        self.law = Law(len(players), 1)

    def forecast(self, view: ForecasterView) -> Law:
        laws = [_law(run, player.forecast()) for run, player in enumerate(self.players)]
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

    def update(self, forecast: Floats, outcome: Ints) -> None:
        for player, p, y in zip(self.players, forecast.tolist(), outcome.tolist(), strict=True):
            player.update(p, y)


def _law(run: int, said: Any) -> dict[Any, Any]:
    """What was said as a mapping value → probability."""
    law = {said: 1.0} if isinstance(said, Real) else said
    if (
        not isinstance(law, dict)
        or not law
        or not all(isinstance(x, Real) for pair in law.items() for x in pair)
    ):
        raise Unplayable(run, said, "a number in [0, 1], or a dict of them with weights")
    return law


def as_forecaster(thing: Any) -> Forecaster:
    """A specification from one, or from the class (or factory) of a scalar forecaster."""
    if isinstance(thing, Forecaster):
        return thing
    if isinstance(thing, type) and issubclass(thing, Forecaster):
        return make("forecaster", thing)
    if isinstance(thing, type) and hasattr(thing, "forecast") and hasattr(thing, "update"):
        return Scalar(thing, name=thing.__name__)
    raise InvalidForecast(
        f"{thing!r} is not a forecaster; expected a Forecaster, or a class with forecast() and "
        "update(forecast, outcome)"
    )


@kernel
def grid_mean(atoms, weights, grid, out):
    """Mean of each law on a grid."""
    runs, size = atoms.shape
    for r in range(runs):
        mean = 0.0
        for j in range(size):
            mean += weights[r, j] * grid[atoms[r, j]]
        out[r] = mean


@kernel
def real_mean(atoms, weights, out):
    """Mean of each law given by values."""
    runs, size = atoms.shape
    for r in range(runs):
        mean = 0.0
        for j in range(size):
            mean += weights[r, j] * atoms[r, j]
        out[r] = mean


@kernel
def grid_values(atoms, grid, out):
    """Values of the atoms of each law on a grid."""
    runs, size = atoms.shape
    for r in range(runs):
        for j in range(size):
            out[r, j] = grid[atoms[r, j]]
