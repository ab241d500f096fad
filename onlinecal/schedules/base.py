"""When questions are asked and their outcomes become known: what arrivals and delays are, and the clock of a game."""

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter, OnlinecalError, failure
from onlinecal.core.specification import Checked, allow, number
from onlinecal.core.strategy import strategy_key, strategy_label
from onlinecal.core.streams import Stream
from onlinecal.core.validation import Named

#: size of a block of times, at least and at most
BLOCK, MOST = 2**10, 2**15


@dataclass(frozen=True)
class _Times(Checked):
    """The facts of arrivals and delays; a subclass is a frozen dataclass of parameters."""

    #: whether this class looks at the uniforms, which are all 0 otherwise; a subclass states it again
    draws: ClassVar[bool] = True

    @property
    def length(self) -> int | None:
        """For how many questions there are times; None for any number."""
        return None


@dataclass(frozen=True)
class Arrivals(_Times):
    """When questions are asked; a subclass is a frozen dataclass of parameters."""

    def times(self, first: int, before: float, uniforms: Floats) -> Floats:
        """The times of questions `first`, first + 1, …, one for each uniform, which do not descend.

        Parameters
        ----------
        first : int
            From 1.
        before : float
            The time of the question before them; 0 for the first.
        uniforms : (n,) floats on [0, 1)
            The same for every question, in all blocks. The arrays belong to the method.
        """
        raise TypeError(f"{type(self).__name__} has no method times(first, before, uniforms)")


@dataclass(frozen=True)
class Delays(_Times):
    """How long after a question its outcome becomes known; a subclass is a frozen dataclass of parameters."""

    #: whether the delay depends on the outcome: `known` is given 0 or 1 as a fourth argument, and called for both
    by_outcome: ClassVar[bool] = False

    def known(self, first: int, asked: Floats, uniforms: Floats) -> Floats:
        """The times at which the outcomes of questions `first`, first + 1, … become known; infinite for never.

        Parameters
        ----------
        first : int
            From 1.
        asked : (n,) floats
            The times of the questions, before which no outcome is known.
        uniforms : (n,) floats on [0, 1)
            The same for both outcomes where these matter.
        """
        raise TypeError(f"{type(self).__name__} has no method known(first, asked, uniforms)")


@dataclass(frozen=True)
class EveryUnit(Arrivals):
    """Question t is asked at time t."""

    draws: ClassVar[bool] = False

    def times(self, first: int, before: float, uniforms: Floats) -> Floats:
        return np.arange(first, first + len(uniforms), dtype=np.float64)


@dataclass(frozen=True)
class Constant(Delays):
    """Every outcome becomes known at the same distance from its question.

    At one time of the clock questions come before outcomes. With a question every unit and a delay of d, outcome t is
    told at the end of round t + d.

    Parameters
    ----------
    delay : float, default 0
        In units of the clock, in [0, 10^15].
    """

    draws: ClassVar[bool] = False
    allowed = allow(delay=number(0.0, 1e15))

    delay: float = 0.0

    def known(self, first: int, asked: Floats, uniforms: Floats) -> Floats:
        return asked + float(self.delay)


def shortest(parts: Iterable[Arrivals | Delays]) -> int | None:
    """For how many questions all of them have times; None for any number."""
    return min((part.length for part in parts if part.length is not None), default=None)


@dataclass(frozen=True)
class Schedule(Named):
    """Arrivals and delays of a game, which all its runs share.

    >>> from onlinecal.schedules import Constant, Poisson, Schedule
    >>> Schedule(Poisson(2), Constant(10)).label
    'poisson (rate=2), delay 10'
    """

    arrivals: Arrivals = EveryUnit()
    delays: Delays = Constant()

    def __post_init__(self) -> None:
        if not isinstance(self.arrivals, Arrivals) or not isinstance(self.delays, Delays):
            raise InvalidParameter(
                f"a schedule of {self.arrivals!r}, {self.delays!r}; expected Arrivals, Delays"
            )

    @property
    def immediate(self) -> bool:
        """Whether every outcome is known before the next question is asked, one question a unit."""
        return self.lag == 0

    @property
    def lag(self) -> int | None:
        """With a question a unit and a constant delay of whole units, the delay; None for any other schedule."""
        if type(self.arrivals) is not EveryUnit or type(self.delays) is not Constant:
            return None
        return int(self.delays.delay) if float(self.delays.delay).is_integer() else None

    @property
    def label(self) -> str:
        """The difference from a question every unit and no delay, in words; "" for none."""
        parts = [] if type(self.arrivals) is EveryUnit else [strategy_label(self.arrivals)]
        if type(self.delays) is Constant:
            delay = float(self.delays.delay)
            text = f"{delay:g}" if float(f"{delay:g}") == delay else repr(delay).removesuffix(".0")
            parts += [f"delay {text}"] if delay else []
        else:
            parts.append(f"{strategy_label(self.delays)} delay")
        return ", ".join(parts)

    @property
    def length(self) -> int | None:
        """How many questions there are; None for any number."""
        return shortest((self.arrivals, self.delays))

    def check_length(self, horizon: int) -> None:
        """Refuses a horizon that is longer than the schedule."""
        length = self.length
        if length is not None and horizon > length:
            raise InvalidParameter(
                f"horizon = {horizon}, but the schedule has {length} questions; expected at most {length}"
            )

    def clock(self, horizon: int, seed: int) -> "Clock":
        """The times of a game: a function of the schedule, the horizon and the seed alone."""
        return Clock(self, horizon, seed)


class Clock:
    """The times of questions and outcomes of a game, read in order. The game ends when question T + 1 would be asked,
    or, if it never is, when every outcome is known.
    """

    def __init__(self, schedule: Schedule, horizon: int, seed: int) -> None:
        self.schedule, self.horizon = copy.deepcopy(schedule), horizon
        self._streams = [
            Stream(seed, (role, strategy_key(part), f"T={horizon}"), range(1))
            for role, part in (("arrivals", schedule.arrivals), ("delays", schedule.delays))
        ]
        length = schedule.length
        self._last = horizon + 1 if length is None or length > horizon else horizon
        #: times that are drawn and not passed: the number of the first question, when they are asked, and known
        self._first, self._asked = 1, np.empty(0)
        self._known = np.empty((0, 2) if schedule.delays.by_outcome else 0)

    def times(self, number: int) -> tuple[float, float]:
        """The times of question `number` and of its outcome; infinite beyond the last question.

        Where the delay depends on the outcome, the later of the two times.
        """
        if number > self._last:
            return math.inf, math.inf
        asked, known = self.span(number, number)
        return float(asked[0]), float(known.max())

    def span(self, first: int, last: int) -> tuple[Floats, Floats]:
        """The same of questions `first` to `last`, none of them beyond the last one.

        Where delays depend on outcomes, the second array has two columns: the times for outcome 0 and for outcome 1.
        """
        if first < self._first:
            raise InvalidParameter(f"question {first} was asked before; expected them in their order")
        pieces, number = [(self._asked, self._known)], self._first + len(self._asked)
        while number <= last:
            pieces.append(self._draw(number, float(pieces[-1][0][-1]) if number > 1 else 0.0))
            number += len(pieces[-1][0])
        if len(pieces) > 1:
            self._asked, self._known = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
        passed, many = first - self._first, last + 1 - first
        self._first, self._asked, self._known = first, self._asked[passed:], self._known[passed:]
        return self._asked[:many], self._known[:many]

    def check(self) -> None:
        """Refuses a schedule by which no outcome would become known in the game, or with times that cannot be.

        Drawn times are looked at until one outcome is known in time, those of a file to the end.
        """
        self.schedule.check_length(self.horizon)
        earliest, end = math.inf, math.inf
        for first in range(1, self._last + 1, BLOCK):
            asked, known = self.span(first, min(first + BLOCK - 1, self._last))
            earliest = min(earliest, float(known[: self.horizon + 1 - first].min(initial=math.inf)))
            end = float(asked[-1])
            if self.schedule.length is None and earliest < end:
                return
        if not earliest < (math.inf if self._last == self.horizon else end):
            raise InvalidParameter(
                f"with {self.schedule.label} no outcome becomes known before question {self.horizon + 1} would be "
                f"asked, when a game of T = {self.horizon} ends; expected shorter delays or a longer game"
            )

    def _draw(self, first: int, before: float) -> tuple[Floats, Floats]:
        """The next block of times, of the same size however they are read; question `first` − 1 was asked `before`."""
        # As many as there were before: short games draw few, and long ones seldom.
        count = min(max(BLOCK, min(MOST, first - 1)), self._last + 1 - first)
        parts = self.schedule.arrivals, self.schedule.delays
        u, v = (
            stream.block_from(first - 1, count)[:, 0]
            if vars(type(part)).get("draws", True)
            else np.zeros(count)
            for stream, part in zip(self._streams, parts, strict=True)
        )
        arrivals, delays = parts
        asked = beginnings(arrivals, first, before, u)
        if not delays.by_outcome:
            return asked, endings(delays, first, asked, v)
        both = [endings(delays, first, asked, v.copy(), outcome=outcome) for outcome in (0, 1)]
        return asked, np.stack(both, axis=1)


class Load(NamedTuple):
    """The most questions open when one is asked, itself included, and the outcomes known at the end, or their
    bounds.
    """

    most_open: int
    resolved: int


@lru_cache(maxsize=256)
def load(schedule: Schedule, horizon: int, seed: int) -> Load:
    """The load of a game."""
    clock = schedule.clock(horizon, seed)
    asked, known = clock.span(1, horizon)
    known = np.sort(known.max(axis=1) if schedule.delays.by_outcome else known)
    open = np.arange(1, horizon + 1) - np.searchsorted(known, asked, side="left")
    resolved = np.searchsorted(known, clock.times(horizon + 1)[0], side="left")
    return Load(int(open.max()), int(resolved))


def beginnings(
    arrivals: Arrivals, first: int, before: float, uniforms: Floats, what: str = "question"
) -> Floats:
    """`Arrivals.times`, checked, as an array of its own; the uniforms may be written over."""
    times = _numbers(lambda: arrivals.times(first, before, uniforms), len(uniforms), arrivals)
    ends = times[[0, -1]] if len(times) else np.full(2, before)
    good = np.isfinite(ends).all() and (first == 1 or ends[0] >= before) and (times[1:] >= times[:-1]).all()
    if not good:
        steps = np.diff(times, prepend=before if first > 1 else times[:1])
        i = int(np.argmin(np.isfinite(times) & (steps >= 0.0)))
        said = f", after {float(times[i - 1]) if i else before!r}" if first + i > 1 else ""
        raise InvalidParameter(
            f"{strategy_label(arrivals)}: {what} {first + i} at time {times[i]}{said}; expected finite times that do "
            "not go back"
        )
    return times


def endings(
    delays: Delays,
    first: int,
    begun: Floats,
    uniforms: Floats,
    said: str = "the outcome of question {} is known at time {}, which is asked at {}; expected no outcome before its "
    "question",
    outcome: int | None = None,
) -> Floats:
    """`Delays.known`, checked, as an array of its own; of one outcome where the delay depends on it."""
    given = () if outcome is None else (outcome,)
    times = _numbers(lambda: delays.known(first, begun.copy(), uniforms, *given), len(begun), delays)
    late = times >= begun
    if not late.all():
        i = int(np.argmin(late))
        raise InvalidParameter(f"{strategy_label(delays)}: {said.format(first + i, times[i], begun[i])}")
    return times


def _numbers(give: Callable[[], Any], count: int, part: Any) -> Floats:
    try:
        values = give()
    except OnlinecalError:
        raise
    except Exception as error:
        raise InvalidParameter(f"{strategy_label(part)} failed: {failure(error)}") from error
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (count,):
        raise InvalidParameter(f"{strategy_label(part)} gave {values!r}; expected {count} times")
    return numbers
