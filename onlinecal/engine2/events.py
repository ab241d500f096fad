"""The events of a game in order: each question when it is asked, each outcome when it becomes known.

At one time of the clock questions come before outcomes, and these in the order of their questions. An event is a code:
``place * CODE + kind``, with the place of its question among the open ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from onlinecal.core.arrays import Ints
from onlinecal.engine2.run import HOW
from onlinecal.schedules.base import Clock

#: a question; a question with its outcome at once; an outcome; an outcome that comes then only if it is 0, or 1
ASK, BOTH, RESOLVE, IF_ZERO, IF_ONE = range(5)
CODE = 8


class Listed(NamedTuple):
    """The events from one question up to another. Without codes, each question is resolved at once."""

    codes: Ints
    #: the part of each event's question, an index of `names`; empty where there is one
    parts: Any
    names: list[int]
    times: Any
    #: outcomes that are told, at most
    told: int


class Events:
    """Lists the events of a game, some questions at a time. A part is a stretch between two cuts, and a stream."""

    def __init__(
        self,
        clock: Clock,
        cuts: Iterable[float] = (),
        streams: int = 1,
        streams_of: Callable[[int, int], Any] | None = None,
    ) -> None:
        self.clock, self.streams, self.streams_of = clock, streams, streams_of
        self.cuts = np.array(sorted(cuts), np.float64)
        self.by_outcome = clock.schedule.delays.by_outcome
        self.parted = len(self.cuts) > 0 or streams > 1
        #: open questions: number, place, part; when they were asked; when their outcomes become known, one or two columns
        self.waiting = np.zeros((0, 3), np.int64)
        self.asked_at = np.zeros(0)
        self.known = np.zeros((0, 1 + self.by_outcome))
        #: places that are free, and how many there are
        self.free, self.places = np.zeros(0, np.int64), 1

    @property
    def open(self) -> int:
        """The number of questions with an outcome that is still to become known, or may be."""
        return len(self.waiting)

    def parts_of(self, first: int, last: int, times: Any) -> Any:
        """The part of each question: stretch · streams + stream."""
        part = np.searchsorted(self.cuts, times, side="right") * self.streams
        return part + (0 if self.streams_of is None else self.streams_of(first, last))

    def part_of(self, number: int, time: float) -> int:
        """The part of one question."""
        return int(self.parts_of(number, number, np.array([time]))[0]) if self.parted else 0

    def upto(self, first: int, last: int) -> Listed:
        """The events from question `first` up to, not including, question `last` + 1."""
        asked, known = self.clock.span(first, last)
        known = known.reshape(len(asked), -1)
        soon, new, old = self.clock.times(last + 1)[0], len(asked), len(self.waiting)
        rows = np.zeros((new, 3), np.int64)
        rows[:, 0] = np.arange(first, last + 1)
        if self.parted:
            rows[:, 2] = self.parts_of(first, last, asked)
        rows, ends = np.concatenate([self.waiting, rows]), np.concatenate([self.known, known])
        names, part = _numbered(rows[:, 2]) if self.parted else ([0], np.zeros(0, np.int32))
        columns = ends.shape[1]
        if old == 0 and columns == 1 and known[-1, 0] < soon and (known[:-1, 0] < asked[1:]).all():
            return Listed(np.zeros(0, np.int64), part, names, asked, new)
        # Stable: questions first, then outcomes in the order of their questions.
        order = np.argsort(np.concatenate([asked, ends.ravel()]), kind="stable")
        codes, owners = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
        room = np.concatenate([self.free, np.zeros(old + new, np.int64)])
        size, told, free, self.places = merge(
            order, ends, soon, old, rows, room, len(self.free), self.places, codes, owners
        )
        self.free = room[:free].copy()
        if columns == 2:  # what is over for one outcome cannot happen again
            ends = np.where(ends < soon, np.inf, ends)
            left = (ends < np.inf).any(axis=1)
        else:
            left = (ends[:, 0] >= soon) & (ends[:, 0] < np.inf)
        self.asked_at = np.concatenate([self.asked_at, asked])[left]
        self.waiting, self.known = rows[left], ends[left]
        return Listed(codes[:size], part[owners[:size]] if len(part) else part, names, asked, told)


def _numbered(parts: Ints) -> tuple[list[int], Any]:
    """The different parts, and which of them each is; none where there is one."""
    names, which = np.unique(parts, return_inverse=True)
    return names.tolist(), which.astype(np.int32) if len(names) > 1 else np.zeros(0, np.int32)


@njit(cache=True, **HOW)
def merge(
    order: Any,
    ends: Any,
    soon: float,
    old: int,
    rows: Any,
    free: Any,
    many: int,
    places: int,
    codes: Any,
    owners: Any,
) -> tuple[int, int, int, int]:
    """Writes the codes in order and whose they are; a place is free again after the last outcome of its question."""
    size, told, new, columns = 0, 0, len(rows) - old, ends.shape[1]
    for k in order:
        if k < new:
            i, kind = old + k, ASK
            if many == 0:
                free[0], many, places = places, 1, places + 1
            many -= 1
            rows[i, 1] = free[many]
            # A question that is never resolved needs no place once it is asked.
            if not ends[i].min() < np.inf:
                many += 1
        else:
            i, y = (k - new) // columns, (k - new) % columns
            end = ends[i, y]
            if not end < soon:
                continue
            kind, told = RESOLVE if columns == 1 else IF_ZERO + y, told + 1
            other = ends[i, columns - 1 - y]
            last = columns == 1 or other == np.inf or other < end or (other == end and y == 1)
            if size > 0 and kind == RESOLVE and owners[size - 1] == i and codes[size - 1] & CODE - 1 == ASK:
                size, kind = size - 1, BOTH
            if last:
                free[many] = rows[i, 1]
                many += 1
        codes[size], owners[size] = rows[i, 1] * CODE + kind, i
        size += 1
    return size, told, many, places
