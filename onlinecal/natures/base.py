"""The protocol of natures: what they may see is declared, and enforced by the view that they get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinecal.errors import InvalidParameter, SightError
from onlinecal.forecasters.base import Floats, Ints, Law, grid_mean, grid_values, real_mean
from onlinecal.guarantee import Guarantee
from onlinecal.sight import Sight
from onlinecal.strategy import make
from onlinecal.streams import Stream


class LawView:
    """This round's laws as a nature sees them: read-only."""

    def __init__(self, law: Law) -> None:
        self._law = law
        self._atoms, self._weights = locked(law.atoms), locked(law.weights)
        self._mean = np.empty(len(law.atoms))
        self._mean_view = locked(self._mean)
        self._values = np.empty(law.atoms.shape)
        self._values_view = locked(self._values)

    @property
    def support(self) -> Floats:
        """The values that may be drawn, (runs, size); valid until the next round."""
        grid = self._law.grid
        if grid is None:
            return self._atoms
        grid_values(self._law.atoms, grid, self._values)
        return self._values_view

    @property
    def weights(self) -> Floats:
        """Their probabilities, (runs, size)."""
        return self._weights

    @property
    def mean(self) -> Floats:
        """Mean forecast of each run, (runs,); valid until the next round."""
        law = self._law
        if law.grid is None:
            real_mean(law.atoms, law.weights, self._mean)
        else:
            grid_mean(law.atoms, law.weights, law.grid, self._mean)
        return self._mean_view


class NatureView:
    """What a nature sees in a round. Asking for more than its `Sight` raises `SightError`.

    The past comes through the player's own `update`, which the engine calls for natures that see the history.

    Attributes
    ----------
    round : int
        1, 2, …
    """

    def __init__(self, name: str, sight: Sight) -> None:
        self.round = 0
        self._name = name
        self._sight = sight
        self._law: LawView | None = None
        self._forecast: Floats | None = None

    @property
    def law(self) -> LawView:
        """The laws of this round's forecast."""
        if self._law is None:
            raise self._refuse("the law", Sight.LAW)
        return self._law

    @property
    def forecast(self) -> Floats:
        """The forecasts drawn in this round, (runs,)."""
        if self._forecast is None:
            raise self._refuse("the drawn forecast", Sight.DRAW)
        return self._forecast

    def show(self, law: Law, forecast: Floats) -> None:
        """For the engine: what this round's law and draw are, as far as they may be seen."""
        if self._sight >= Sight.LAW:
            self._law = LawView(law)
        if self._sight >= Sight.DRAW:
            self._forecast = locked(forecast)

    def follow(self, whole: NatureView) -> None:
        """For natures made of others: this round as `whole` shows it, as far as this view's own sight goes."""
        self.round = whole.round
        if self._sight >= Sight.LAW:
            self._law = whole.law
        if self._sight >= Sight.DRAW:
            self._forecast = whole.forecast

    def _refuse(self, what: str, needed: Sight) -> SightError:
        return SightError(
            f"nature {self._name!r} asked for {what} in round {self.round} but declares sight {self._sight.name}; "
            f"expected sight {needed.name}"
        )


class NaturePlayer(Protocol):
    """A nature in a game: R runs in lockstep."""

    def probability(self, view: NatureView) -> Floats | float:
        """q_t = P(y_t = 1) for each run, (runs,) or one number for all."""

    # A nature that sees the history also has
    #     update(forecast: (runs,) floats, outcome: (runs,) ints)
    # and one that reveals context before the forecast
    #     context(round) -> dict of (runs,) floats.


@dataclass(frozen=True)
class Nature:
    """Base of the specifications; a subclass is a frozen dataclass of parameters with `start`."""

    #: what it sees; a subclass may make it depend on its parameters
    sight: ClassVar[Any] = Sight.NOTHING
    #: kinds of context that it reveals before the forecast
    reveals: ClassVar[frozenset[str]] = frozenset()
    #: whether its outcomes are recorded: games of several horizons then meet the same ones again, the shorter those of
    #: the longer's beginning, and are not independent
    recorded: ClassVar[Any] = False
    #: raised when its numbers change: results are kept under it (tests/versions.py)
    version: ClassVar[int] = 1

    def start(self, horizon: int, runs: int, stream: Stream) -> NaturePlayer:
        """A player with fresh state.

        Parameters
        ----------
        horizon : int
            T, for those that plan to the end.
        runs : int
            How many runs it plays in lockstep.
        stream : Stream
            Uniforms of its own, for a q_t that is itself random. Drawing y_t from q_t is the engine's work.
        """
        raise TypeError(f"{type(self).__name__} has no method start(horizon, runs, stream)")

    @property
    def length(self) -> int | None:
        """How many rounds it can play; None for any number."""
        return None

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What it is proved to force on forecasters; empty for nothing."""
        return ()


def as_nature(thing: Any) -> Nature:
    """A specification from one, or from its class."""
    if isinstance(thing, type) and issubclass(thing, Nature):
        return make("nature", thing)
    if isinstance(thing, Nature):
        return thing
    raise InvalidParameter(f"{thing!r} is not a nature; expected a Nature, or its class")


class Oblivious:
    """A nature player whose q_t is the same in all runs and needs no state: q_t = rule(t)."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule

    def probability(self, view: NatureView) -> float:
        return self.rule(view.round)


def locked(array: NDArray[Any]) -> Any:
    """A read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


__all__ = [
    "Floats",
    "Ints",
    "LawView",
    "Nature",
    "NaturePlayer",
    "NatureView",
    "Oblivious",
    "Sight",
    "locked",
]
