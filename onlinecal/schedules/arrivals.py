"""Arrival processes: when questions are asked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.files import Table, located, times
from onlinecal.core.strategy import check_number, check_whole
from onlinecal.rounds.law import Floats
from onlinecal.schedules.base import Arrivals
from onlinecal.schedules.delays import digest


@dataclass(frozen=True)
class Poisson(Arrivals):
    """Questions at random, independently of each other: a Poisson process.

    Parameters
    ----------
    rate : float, default 1
        Questions a unit of the clock, in (0, 10^9].
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        check_number("rate", self.rate, 0.0, 1e9)
        if self.rate == 0:
            raise InvalidParameter("rate = 0; expected a number above 0, or no question would ever be asked")

    def times(self, first: int, before: float, uniforms: Floats) -> Floats:
        gaps = np.log1p(np.negative(uniforms, out=uniforms), out=uniforms)
        gaps /= -self.rate
        gaps[:1] += before
        # One sum after the other, so that they are the same in blocks of any size.
        return np.cumsum(gaps, out=gaps)


@dataclass(frozen=True)
class Bursts(Arrivals):
    """Several questions at once, then none for a while. Those of one time are all asked before any outcome is known.

    Parameters
    ----------
    size : int, default 10
        Questions at a time.
    every : float, optional
        Units of the clock from one burst to the next, above 0. Default: as many as there are questions in one.
    """

    size: int = 10
    every: float | None = None

    def __post_init__(self) -> None:
        check_whole("size", self.size, 1, 10**6)
        if self.every is not None:
            check_number("every", self.every, 0.0, 1e9)
            if self.every == 0:
                raise InvalidParameter("every = 0; expected a number above 0")

    def times(self, first: int, before: float, uniforms: Floats) -> Floats:
        every = float(self.size if self.every is None else self.every)
        numbers: Floats = np.arange(first - 1.0, first - 1.0 + len(uniforms))
        return (numbers // self.size + 1.0) * every


@dataclass(frozen=True)
class Scheduled(Arrivals):
    """Questions at the times in a file.

    Parameters
    ----------
    file : str
        A CSV or Parquet file, as of the nature `replay`.
    column : str, default "time"
        Of numbers, or dates, which count as days since 1970; they must not go back.
    """

    file: str = field(metadata={"key": False})
    column: str = "time"
    moments: Floats = field(init=False, repr=False, compare=False)
    #: digest of the column
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        moments = times(Table(located(self.file)), self.column)
        object.__setattr__(self, "moments", moments)
        object.__setattr__(self, "fingerprint", digest(moments))

    @property
    def length(self) -> int:
        return len(self.moments)

    def times(self, first: int, before: float, uniforms: Floats) -> Floats:
        return self.moments[first - 1 : first - 1 + len(uniforms)]
