"""Proved bounds as data that plots draw, tables print and tests check."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.sight import Sight

Kind = Literal["deterministic", "expected", "rate"]


class Forecasters(Enum):
    """The forecasters against which a nature's bound is proved."""

    EVERY = "every forecaster"
    #: each law is a single forecast, which is then known before it is made
    DETERMINISTIC = "every deterministic forecaster"


@dataclass(frozen=True)
class OnGrid:
    """The forecasters on 0, 1/m, …, 1 only, against which a nature's bound is proved."""

    m: int

    @property
    def value(self) -> str:
        """In words."""
        return f"every forecaster on 0, 1/{self.m}, …, 1"

    def fits(self, grid: Any) -> bool:
        """Whether a player with these values, or (None) with any, is one of them."""
        return grid is not None and all(abs(v * self.m - round(v * self.m)) < 1e-12 for v in grid)


def log(horizon: float) -> float:
    """The natural logarithm in a rate, and 1 where it is below 1."""
    return max(1.0, math.log(horizon))


@dataclass(frozen=True)
class Potential:
    """A number (Γ, T) ↦ `of` with a mean over the law that no round raises by more than the mean of `growth` (Γ, v, T).

    For either outcome the mean is a finite sum, so that every round is a test of the rule. Without `growth` it proves a
    bound from below: no round lowers it, whatever is drawn. If `linear`, a round is shared out among all forecasts.
    """

    of: Callable[[Any, int], float]
    growth: Callable[[Any, float, int], float] | None = None
    linear: bool = False


@dataclass(frozen=True)
class Guarantee:
    """A proved bound on the total T·μ of a measure in a game of T rounds.

    Attributes
    ----------
    column : Column
        The bounded column. A name alone is a measure of the catalogue.
    formula : str
        The bound in words: ``"2√T + 1"``.
    bound : callable
        T ↦ the value. For a rate, up to a constant that no source states.
    kind : {"deterministic", "expected", "rate"}
        Holds for every sequence; in expectation over the engine's draws; or as a growth rate only.
    against : Sight, Forecasters or OnGrid
        The natures that see at most that much; or, of a nature's guarantee, the forecasters that it hurts.
    source : str
        Authors, year, theorem.
    upper : bool
        Whether it bounds the total from above (forecasters) or from below (natures).
    anytime : bool
        Whether the bound holds at every round t by its value at t; else only by its value at the horizon to which
        the player is tuned.
    slack : callable, optional
        Of an expected bound: (T, runs, δ) ↦ the excess of the mean total of the runs that has probability at most δ.
    potential : Potential, optional
        Of a bound that is proved by one.
    delayed : callable, optional
        (T, most questions that are open at once, with the one being asked) ↦ the bound on the total over the resolved
        rounds of a game with delays. T is the horizon; of a bound from below, the number of resolved rounds.
    """

    column: Column
    formula: str
    bound: Callable[[float], float]
    kind: Kind
    against: Sight | Forecasters | OnGrid
    source: str
    upper: bool = True
    anytime: bool = False
    slack: Callable[[float, int, float], float] | None = None
    potential: Potential | None = None
    delayed: Callable[[float, int], float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.column, str):
            object.__setattr__(self, "column", Column("measure", self.column))
        if not isinstance(self.column, Column):
            raise InvalidParameter(
                f"a guarantee on {self.column!r}; expected a Column or the name of a measure"
            )
        if not isinstance(self.against, Sight | Forecasters | OnGrid):
            expected = "a Sight, Forecasters.EVERY or Forecasters.DETERMINISTIC"
            raise InvalidParameter(
                f"a guarantee on {self.measure} against {self.against!r}; expected {expected}"
            )

    @property
    def measure(self) -> str:
        """The name of the column."""
        return self.column.name

    def binds(self, forecaster: Any, nature: Any) -> bool:
        """Whether it is known to hold in a game of these two."""
        if isinstance(self.against, Sight):
            return bool(nature.sight <= self.against)
        return self.against is Forecasters.EVERY or forecaster.deterministic is True

    @property
    def short(self) -> str:
        """The relation alone: ``cdl = O(√T log T)``."""
        if self.kind == "rate":
            return f"{self.measure} = {'O' if self.upper else 'Ω'}({self.formula})"
        return f"{self.measure} {'≤' if self.upper else '≥'} {self.formula}"

    def __str__(self) -> str:
        mean = " in expectation" if self.kind == "expected" else ""
        return f"total {self.short}{mean}, against {self.whom} ({self.source})"

    @property
    def whom(self) -> str:
        """The players against which it holds, in words."""
        return _WHOM[self.against] if isinstance(self.against, Sight) else self.against.value


_WHOM = {
    Sight.NOTHING: "every oblivious nature",
    Sight.HISTORY: "every nature that sees the history",
    Sight.LAW: "every nature that sees the law",
    Sight.DRAW: "every sequence",
}
