"""Arrival processes, by which questions are asked, and delays, after which their outcomes become known."""

import hashlib
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.files import Table, located, times
from onlinecal.core.specification import above_zero, allow, number, optional, whole
from onlinecal.core.validation import is_number
from onlinecal.schedules.base import Arrivals, Delays, shortest


@dataclass(frozen=True)
class Poisson(Arrivals):
    """Questions at random, independently of each other: a Poisson process.

    Parameters
    ----------
    rate : float, default 1
        Questions a unit of the clock, in (0, 10^9].
    """

    allowed = allow(rate=above_zero(1e9))

    rate: float = 1.0

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
        Questions at a time, from 1 to 10^6.
    every : float, optional
        Units of the clock from one burst to the next, in (0, 10^9]. Default: as many as there are questions in one.
    """

    allowed = allow(size=whole(1, 10**6), every=optional(above_zero(1e9)))

    size: int = 10
    every: float | None = None

    def times(self, first: int, before: float, uniforms: Floats) -> Floats:
        every = float(self.size if self.every is None else self.every)
        numbers: Floats = np.arange(first - 1.0, first - 1.0 + len(uniforms))
        return (numbers // self.size + 1.0) * every


@dataclass(frozen=True)
class Geometric(Delays):
    """Whole units, memoryless: P(delay = k) = p (1 − p)^k for k = 0, 1, …, with mean (1 − p)/p.

    Parameters
    ----------
    mean : float, default 10
        In [0, 10^12].
    """

    allowed = allow(mean=number(0.0, 1e12))

    mean: float = 10.0

    def known(self, first: int, asked: Floats, uniforms: Floats) -> Floats:
        if self.mean == 0:
            return asked
        # log(1 − p) for p = 1/(1 + mean), without the loss of digits at large means
        stay = -math.log1p(1.0 / self.mean)
        return asked + np.floor(np.log1p(-uniforms) / stay)


@dataclass(frozen=True)
class Pareto(Delays):
    """Heavy tails, cut off: P(delay > x) = (scale/x)^shape from x = scale to the cap, with the rest there.

    Parameters
    ----------
    shape : float, default 1.5
        In (0, 10^15]; up to 1 the mean would be infinite without the cap.
    scale : float, default 1
        The least delay, in (0, 10^15].
    cap : float, default 10000
        The longest delay, at least the scale and at most 10^15.
    """

    allowed = allow(shape=above_zero(1e15), scale=above_zero(1e15), cap=above_zero(1e15))

    shape: float = 1.5
    scale: float = 1.0
    cap: float = 10_000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cap < self.scale:
            raise InvalidParameter(f"cap = {self.cap!r} < scale = {self.scale!r}; expected cap ≥ scale")

    def known(self, first: int, asked: Floats, uniforms: Floats) -> Floats:
        with np.errstate(over="ignore"):  # such delays are the cap
            return asked + np.minimum(self.scale * (1.0 - uniforms) ** (-1.0 / self.shape), self.cap)


@dataclass(frozen=True)
class ByOutcome(Delays):
    """A delay for each outcome: a claim that fails may be known early, and a missing event only at the end.

    Runs of a game have different outcomes, so each run has its own order of events. The runs are played in turn.

    Parameters
    ----------
    no, yes : Delays or float
        The delays of outcome 0 and of outcome 1, both read at the same uniform. A number is a constant delay, at most
        10^15.
    """

    by_outcome: ClassVar[bool] = True

    no: Delays | float = 0.0
    yes: Delays | float = 10.0

    def __post_init__(self) -> None:
        for name in ("no", "yes"):
            delays = getattr(self, name)
            if is_number(delays):
                number(0.0, 1e15)(name, delays)
            elif not isinstance(delays, Delays) or delays.by_outcome:
                raise InvalidParameter(
                    f"{name} = {delays!r}; expected delays that do not depend on the outcome, or a number"
                )

    @property
    def length(self) -> int | None:
        """The smaller length of the two."""
        return shortest(part for part in (self.no, self.yes) if isinstance(part, Delays))

    def known(self, first: int, asked: Floats, uniforms: Floats, outcome: int = 0) -> Floats:
        delays = self.yes if outcome else self.no
        return delays.known(first, asked, uniforms) if isinstance(delays, Delays) else asked + float(delays)


@dataclass(frozen=True)
class _OfFile:
    """Times of a column, kept with their digest, which stands for the file in keys."""

    file: str = field(metadata={"key": False})
    column: str = "time"
    moments: Floats = field(init=False, repr=False, compare=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        moments = self._read(Table(located(self.file)))
        moments.flags.writeable = False
        object.__setattr__(self, "moments", moments)
        object.__setattr__(self, "fingerprint", hashlib.sha256(moments.tobytes()).hexdigest()[:16])

    def _read(self, table: Table) -> Floats:
        return times(table, self.column)

    @property
    def length(self) -> int:
        return len(self.moments)


@dataclass(frozen=True)
class Scheduled(_OfFile, Arrivals):
    """Questions at the times in a file.

    Parameters
    ----------
    file : str
        A CSV or Parquet file, as of the nature `replay`.
    column : str, default "time"
        Of numbers, or dates, which count as days since 1970; they must not go back.
    """

    def times(self, first: int, before: float, uniforms: Floats) -> Floats:
        return self.moments[first - 1 : first - 1 + len(uniforms)]


@dataclass(frozen=True)
class Recorded(_OfFile, Delays):
    """Outcomes become known at the times in a file; without a time, never.

    Parameters
    ----------
    file : str
        A CSV or Parquet file, as of the nature `replay`.
    column : str, default "resolved"
        Of numbers, or dates, which count as days since 1970. An empty cell is an outcome that does not become known.
    """

    column: str = "resolved"

    def _read(self, table: Table) -> Floats:
        return table.numbers(self.column, dates=True, gaps=math.inf)

    def known(self, first: int, asked: Floats, uniforms: Floats) -> Floats:
        return self.moments[first - 1 : first - 1 + len(asked)]
