"""Delays: how long after a question its outcome becomes known."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.files import Table, located
from onlinecal.core.strategy import check_number
from onlinecal.rounds.law import Floats
from onlinecal.schedules.base import Delays


@dataclass(frozen=True)
class Geometric(Delays):
    """Whole units, memoryless: P(delay = k) = p (1 − p)^k for k = 0, 1, …, with mean (1 − p)/p.

    Parameters
    ----------
    mean : float, default 10
        At least 0.
    """

    mean: float = 10.0

    def __post_init__(self) -> None:
        check_number("mean", self.mean, 0.0, 1e12)

    def known(self, first: int, asked: Floats, uniforms: Floats) -> Floats:
        if self.mean == 0:
            return asked
        # log(1 − p) for p = 1/(1 + mean), without the loss of digits at large means
        stay = -math.log1p(1.0 / self.mean)
        return asked + np.floor(np.log1p(-uniforms) / stay)


@dataclass(frozen=True)
class Pareto(Delays):
    """Heavy tails, cut off: P(delay > x) = (scale/x)^shape from x = scale up to the cap, where the rest lies.

    Parameters
    ----------
    shape : float, default 1.5
        Above 0; up to 1 the mean would be infinite without the cap.
    scale : float, default 1
        The least delay, above 0.
    cap : float, default 10000
        The longest delay, at least the scale.
    """

    shape: float = 1.5
    scale: float = 1.0
    cap: float = 10_000.0

    def __post_init__(self) -> None:
        for name in ("shape", "scale", "cap"):
            check_number(name, getattr(self, name), 0.0, 1e15)
            if getattr(self, name) == 0:
                raise InvalidParameter(f"{name} = 0; expected a number above 0")
        if self.cap < self.scale:
            raise InvalidParameter(
                f"cap = {self.cap!r} is below scale = {self.scale!r}; expected cap ≥ scale"
            )

    def known(self, first: int, asked: Floats, uniforms: Floats) -> Floats:
        return asked + np.minimum(self.scale * (1.0 - uniforms) ** (-1.0 / self.shape), self.cap)


@dataclass(frozen=True)
class Recorded(Delays):
    """Outcomes become known at the times in a file; where there is none, never.

    Parameters
    ----------
    file : str
        A CSV or Parquet file, as of the nature `replay`.
    column : str, default "resolved"
        Of numbers, or dates, which count as days since 1970. An empty cell is an outcome that does not become known.
    """

    file: str = field(metadata={"key": False})
    column: str = "resolved"
    moments: Floats = field(init=False, repr=False, compare=False)
    #: digest of the column
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        table = Table(located(self.file))
        moments = table.numbers(self.column, dates=True, gaps=math.inf)
        object.__setattr__(self, "moments", moments)
        object.__setattr__(self, "fingerprint", digest(moments))

    @property
    def length(self) -> int:
        return len(self.moments)

    def known(self, first: int, asked: Floats, uniforms: Floats) -> Floats:
        return self.moments[first - 1 : first - 1 + len(asked)]


def digest(column: Floats) -> str:
    """A digest of a column, which becomes read-only."""
    column.flags.writeable = False
    return hashlib.sha256(column.tobytes()).hexdigest()[:16]
