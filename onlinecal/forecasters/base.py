"""Specifications of forecasters: each starts a player of one run, which states laws; the engine draws."""

import copy
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, cast

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.core.expressions import depends_on_horizon, grid_steps
from onlinecal.core.guarantee import Guarantee, Potential, Sight
from onlinecal.core.joint import JointDistribution
from onlinecal.core.simplex import grid_points, simplex_grid
from onlinecal.core.specification import (
    STEPS,
    Composition,
    OfPlain,
    Specification,
    allow,
    declared,
    optional,
    part,
    specified,
)
from onlinecal.core.strategy import classes_of, every, parameters


def grid_of(m: int) -> Floats:
    """0, 1/m, …, 1, each the correctly rounded quotient."""
    return np.arange(m + 1) / m


@dataclass(frozen=True)
class Forecaster(Specification):
    """Base of the specifications; a subclass is a frozen dataclass of parameters with `start`."""

    role: ClassVar[str] = "forecaster"
    #: kinds of context that it cannot play without
    needs: ClassVar[frozenset[str]] = frozenset()
    #: names of the totals that its player proves of its own play
    certifies: ClassVar[frozenset[str]] = frozenset()
    #: whether every law is a single forecast that depends on the past alone; None if it does not say
    deterministic: ClassVar[bool | None] = None

    def steps_at(self, horizon: int) -> int | None:
        """The m of the grid 0, 1/m, …, 1 of all its forecasts at this horizon; None for no such grid."""
        return None

    def facing(self, nature: Any) -> Any:
        """Itself against a nature, of which it may be told the groups, or how many classes there are."""
        return self


class InSteps(Forecaster):
    """A forecaster with a parameter `m`, a number of steps that may depend on T."""

    allowed = allow(m=STEPS)

    m: int | str

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return depends_on_horizon(self.m)


@dataclass(frozen=True)
class OnGrid(InSteps):
    """A forecaster on the grid 0, 1/m, …, 1."""

    #: whether ½ is on the grid at every T: totals against fair coins and contrarians depend on that
    even: ClassVar[bool] = False

    def steps_at(self, horizon: int) -> int:
        return grid_steps("m", self.m, horizon, even=self.even)

    def _expected(
        self,
        column: Column,
        formula: str,
        source: str,
        bound: Callable[[float, int], float],
        slack: Callable[[float, int, int, float], float],
        potential: Potential | None = None,
    ) -> tuple[Guarantee]:
        """A bound in expectation against natures that see the law: `bound` (T, m), `slack` (T, m, runs, δ)."""
        own = Guarantee(
            column,
            formula,
            lambda horizon: bound(horizon, self.steps_at(int(horizon))),
            "expected",
            Sight.LAW,
            source,
            slack=lambda horizon, runs, rate: slack(horizon, self.steps_at(int(horizon)), runs, rate),
            potential=potential,
        )
        return (own,)

    def _potential(
        self,
        of: Callable[[float, int, Floats, Floats], float],
        growth: Callable[[float, int, float, JointDistribution], float],
    ) -> Potential:
        """The potential of a proof: `of` (T, m, E, n), E_i and n_i of all grid points, and `growth` (T, m, v, Γ)."""

        def whole(gamma: Any, horizon: int) -> float:
            m = self.steps_at(horizon)
            return of(horizon, m, *biases(gamma, m))

        return Potential(whole, lambda gamma, v, horizon: growth(horizon, self.steps_at(horizon), v, gamma))


def biases(gamma: JointDistribution, m: int) -> tuple[Floats, Floats]:
    """E_i and n_i of all points of the grid of m steps."""
    bias, rounds = np.zeros(m + 1), np.zeros(m + 1)
    at = np.rint(gamma.predictions * m).astype(np.int64)
    bias[at] = gamma.positives - gamma.counts * gamma.predictions
    rounds[at] = gamma.counts
    return bias, rounds


class OfClasses(Forecaster):
    """A forecaster of as many classes as nature has: 0 before it faces one."""

    of_classes = True
    classes = cast(Any, 0)
    #: how many classes it can play
    most_classes: ClassVar[float] = math.inf

    def facing(self, nature: Any) -> Any:
        if classes_of(nature) in (0, self.classes) or classes_of(nature) > self.most_classes:
            return self
        # No parameter: the key and the label are those of the forecaster, whatever nature it faces.
        faced = copy.copy(self)
        object.__setattr__(faced, "classes", nature.classes)
        return faced


#: the most points of a table, unless it is asked for a grid with more
POINTS = 10**5


class OnSimplex(OfClasses):
    """A forecaster of classes with a parameter `m`, the steps of the grid 1/m of the simplex, or None."""

    allowed = allow(m=optional(STEPS))

    m: int | str | None

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return self.m is None or depends_on_horizon(self.m)

    def steps_at(self, horizon: int) -> int:
        if self.m is not None:
            return grid_steps("m", self.m, horizon)
        finest = 1
        while finest * finest < horizon and grid_points(finest + 1, self.classes or 2) <= POINTS:
            finest += 1
        return finest

    def table_at(self, horizon: int) -> Floats:
        """The points of its grid, as `simplex_grid` has them."""
        if not self.classes:
            raise InvalidParameter("it has as many classes as nature; expected a game of classes")
        m = self.steps_at(horizon)
        points = grid_points(m, self.classes)
        if points > 100 * POINTS:
            raise InvalidParameter(
                f"m = {m} of {self.classes} classes is a grid of {points:,} points; expected at most {100 * POINTS:,}"
            )
        return simplex_grid(m, self.classes)


class OfOthers(Composition, Forecaster):
    """A forecaster made of others."""

    allowed = allow(of=part("forecaster"))

    of: Any

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset().union(*(part.needs for part in self._parts.values()))

    @property
    def deterministic(self) -> bool | None:  # type: ignore[override]
        return every(part.deterministic for part in self._parts.values())

    def facing(self, nature: Any) -> Any:
        told = {name: _facing(value, nature) for name, value in parameters(self).items()}
        changed = {name: value for name, value in told.items() if value is not getattr(self, name)}
        return replace(self, **changed) if changed else self


def _facing(value: Any, nature: Any) -> Any:
    """A parameter that is a forecaster, or a list of them, against a nature."""
    if isinstance(value, Forecaster):
        return value.facing(nature)
    if isinstance(value, tuple):
        told = tuple(_facing(each, nature) for each in value)
        return value if all(map(operator.is_, told, value)) else told
    return value


@dataclass(frozen=True)
class Scalar(OfPlain, Forecaster):
    """Plays a forecaster in plain Python: any object with `forecast()` and `update(forecast, outcome)`.

    `forecast(round)` and `update(forecast, outcome, round)` are given the same `onlinecal.engine.seats.Round`. It has
    a number, a time, the context that the class `needs`, and room for a memo.

    Information: One Python object a run. A law has at most 64 values, or the class attribute `atoms`. The facts of
    `onlinecal.core.strategy`, and `needs`, are class attributes of those names. With `needs = "all"` the context is all
    that nature reveals. With `needs = "groups"` it is nature's groups, which `round.groups` has too, name → 0 or 1.

    Parameters
    ----------
    make : callable
        Makes a fresh one: a class or function without arguments, or with the one argument `horizon`.
    name : str
        The name in tables.
    groups : tuple of str
        Those of nature, of which a class with `needs = "groups"` is told.
    """

    make: Callable[..., Any]
    name: str = "scalar"
    groups: tuple[str, ...] = field(default=(), metadata={"key": "unless default"})
    deterministic = declared("deterministic")

    @property
    def takes_all(self) -> bool:
        """Whether it is given all that nature reveals, whatever that is."""
        return bool(getattr(self.origin, "needs", None) == "all")

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """The kinds of context that the class declares; none that must be there if it takes all."""
        if self.takes_groups:
            return frozenset(self.groups)
        return frozenset() if self.takes_all else _needs.__get__(self)

    @property
    def takes_groups(self) -> bool:
        """Whether it is given nature's groups, whatever they are."""
        return bool(getattr(self.origin, "needs", None) == "groups")

    def facing(self, nature: Any) -> Any:
        return replace(self, groups=nature.group_names) if self.takes_groups else self


_needs = declared("needs", frozenset)
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
        The name in messages. Default: its own name.
    """
    return specified(Forecaster, Scalar, METHODS, thing, options, called, InvalidForecast)
