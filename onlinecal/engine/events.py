"""The events of a game in order: each question when it is asked, each outcome when it becomes known.

At one time of the clock questions come before outcomes, and these in the order of their questions. An event is a code:
``place * CODE + kind``, with the place of its question among the open ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from onlinecal.core._compile import kept
from onlinecal.core.arrays import Ints
from onlinecal.schedules.base import Clock

#: a question; a question with its outcome at once; an outcome. Then outcomes that come at this time only if they are
#: 0, or 1.
ASK, BOTH, RESOLVE, IF_ZERO, IF_ONE = range(5)
CODE = 8


class Listed(NamedTuple):
    """The events from one question up to another. Without codes, each question is resolved at once."""

    codes: Ints
    #: the part of each event's question, an index of `names`; empty where there is one
    parts: Any
    names: list[int]
    times: Any
    #: when their outcomes become known, one or two columns
    known: Any
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
        #: open questions: number, place, part; and when their outcomes become known, one or two columns
        self.waiting = np.zeros((0, 3), np.int64)
        self.known = np.zeros((0, 1 + self.by_outcome))
        #: places that are free, and how many there are
        self.free, self.places = np.zeros(0, np.int64), 1

    @property
    def open(self) -> int:
        """The number of questions with an outcome that is still to become known, or may be."""
        return len(self.waiting)

    def parts_of(self, first: int, last: int, times: Any) -> Any:
        """The part of each question: stretch · streams + stream."""
        streams = (
            np.zeros(last + 1 - first, np.int64) if self.streams_of is None else self.streams_of(first, last)
        )
        if not len(self.cuts):
            return streams
        return np.searchsorted(self.cuts, times, side="right") * self.streams + streams

    def part_of(self, number: int, time: float) -> int:
        """The part of one question."""
        return int(self.parts_of(number, number, np.array([time]))[0]) if self.parted else 0

    def upto(self, first: int, last: int) -> Listed:
        """The events from question `first` up to, not including, question `last` + 1."""
        new, old = last + 1 - first, len(self.waiting)
        at_once = self.clock.schedule.immediate and old == 0
        if at_once:
            asked = known = np.arange(first, last + 1, dtype=np.float64)
            soon = last + 1.0
        else:
            asked, known = self.clock.span(first, last)
            soon = self.clock.times(last + 1)[0]
        part = self.parts_of(first, last, asked) if self.parted else np.zeros(0, np.int64)
        if not (at_once or old or self.by_outcome):
            at_once = bool(known[-1] < soon and (known[:-1] < asked[1:]).all())
        if self.parted and old:
            part = np.concatenate([self.waiting[:, 2], part])
        names, own = _numbered(part) if self.parted else ([0], np.zeros(0, np.int32))
        if at_once:
            return Listed(np.zeros(0, np.int64), own, names, asked, known, new)
        ends = np.concatenate([self.known, known.reshape(new, -1)])
        times, columns = ends.ravel(), ends.shape[1]
        # Stable: outcomes of one time come in the order of their questions.
        due = np.argsort(times, kind="stable") if (times[1:] < times[:-1]).any() else np.arange(len(times))
        # Memory that is not touched costs nothing.
        place, room = np.empty(old + new, np.int64), np.empty(len(self.free) + old + new, np.int64)
        place[:old], room[: len(self.free)] = self.waiting[:, 1], self.free
        codes = np.empty(new + len(due), np.int64)
        parts = np.empty(len(codes) if len(own) else 0, np.int32)
        size, told, free, self.places = merge(
            asked, ends, due, soon, place, room, len(self.free), self.places, own, codes, parts
        )
        self.free = room[:free].copy()
        if columns == 2:  # what is over for one outcome cannot happen again
            times[due[:told]] = np.inf
            left = np.flatnonzero((ends < np.inf).any(axis=1))
        else:
            left = np.sort(due[told:])
            left = left[times[left] < np.inf]
        numbers = np.where(
            left < old, np.append(self.waiting[:, 0], 0)[np.minimum(left, old)], left - old + first
        )
        of = part[left] if self.parted else np.zeros_like(left)
        self.waiting, self.known = np.stack([numbers, place[left], of], axis=1), ends[left]
        return Listed(codes[:size], parts[:size], names, asked, known, told)


def _numbered(parts: Ints) -> tuple[list[int], Any]:
    """The different parts, and which of them each is; none where there is one."""
    least = parts.min()
    above = parts - least if least else parts
    there = np.bincount(above) > 0  # `np.unique` sorts them, which takes five times as long
    which = (np.cumsum(there) - 1).astype(np.int32)[above]
    return (np.flatnonzero(there) + least).tolist(), which if there.sum() > 1 else which[:0]


@kept
def merge(
    asked: Any, ends: Any, due: Any, soon: float, place: Any, free: Any, many: int, places: int, own: Any, codes: Any,
    parts: Any,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Writes the codes in order and, where there is room, the part of the question of each, of its `own`.

    `due` are the outcomes in order. A place is free again after the last outcome of its question.
    """
    new, two = len(asked), ends.shape[1] - 1
    old, size, told, before = len(place) - new, 0, 0, -1
    for i in range(old, old + new + 1):
        until = asked[i - old] if i < old + new else soon
        while told < len(due):
            of, y = due[told] >> two, due[told] & two
            end, other = ends[of, y], ends[of, two - y]
            if not end < until:
                break
            kind, told = IF_ZERO + y if two else RESOLVE, told + 1
            if not two or other == np.inf or other < end or (other == end and y == 1):
                free[many] = place[of]
                many += 1
            if before == of and kind == RESOLVE:
                size, kind = size - 1, BOTH
            codes[size], before = place[of] * CODE + kind, -1
            if len(parts) > 0:
                parts[size] = own[of]
            size += 1
        if i < old + new:
            if many == 0:
                free[0], many, places = places, 1, places + 1
            many -= 1
            place[i] = free[many]
            # A question that is never resolved needs no place once it is asked.
            if not min(ends[i, 0], ends[i, two]) < np.inf:
                many += 1
            codes[size], before = place[i] * CODE + ASK, i
            if len(parts) > 0:
                parts[size] = own[i]
            size += 1
    return size, told, many, places
