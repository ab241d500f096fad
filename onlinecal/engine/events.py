"""The events of a game in order: each question when it is asked, and each outcome when it becomes known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.engine.ledger import Part
from onlinecal.schedules.base import Clock

#: kinds of events, in the last two bits of a code: a question, the outcome of an earlier one, a question whose outcome
#: is known before anything else happens, a look at the law of the next question, which asks none
ASK, RESOLVE, BOTH, LOOK = range(4)
#: where the place of a question begins in a code, and where the number of its part
SLOT, PART = 2, 34

Ints = NDArray[np.int64]
#: the only stream
_ONE = np.zeros(1, np.int64)
_NONE = np.zeros(0, np.int64)


class Events(NamedTuple):
    """Some events of a game, in order."""

    #: kind, place of the question among the open ones, and part, (n,). None: each question is resolved before the next
    codes: Ints | None
    #: of an outcome: how many of its part came before it in this list, (n,)
    rows: Ints | None
    #: (stretch, stream) of each part, and its outcomes in this list
    parts: list[Part]
    resolved: Ints
    #: questions, and the most that are open at once beyond those that were open before: of all streams, and of each
    asked: int
    open: int
    streams: dict[int, int]
    #: what `told` is made of
    log: tuple[Any, ...] = ()

    @property
    def asked_at(self) -> Any:
        """The times of the questions, (asked,) floats; None where these are their numbers."""
        return None if self.codes is None else np.ascontiguousarray(self.log[4][self.log[1] :], np.float64)

    def told(self, last: int) -> tuple[Any, ...]:
        """The outcomes in order: number of the question, when it was asked, when the outcome became known, stream.

        `last` is the number of the last question.
        """
        if self.codes is None:
            numbers = np.arange(last - self.asked + 1, last + 1)
            return numbers, numbers.astype(np.float64), numbers.astype(np.float64), np.zeros_like(numbers)
        due, was, first, before, asked, known, stream = self.log
        return (
            _numbers(due, was, first, before),
            asked[due],
            known[due],
            np.broadcast_to(stream, asked.shape)[due],
        )


class Agenda:
    """Lists the events of one game, some questions at a time.

    At one time of the clock questions come before outcomes, and outcomes in the order of their questions.
    """

    def __init__(
        self,
        clock: Clock,
        cuts: Any,
        streams: int = 1,
        streams_of: Callable[[int, int], Ints] | None = None,
    ) -> None:
        self.clock, self.cuts = clock, np.asarray(cuts, np.float64)
        self.streams, self.streams_of = streams, streams_of
        #: whether question t is asked at time t, and resolved before the next one, in one part
        self.simple = clock.schedule.immediate and not len(self.cuts) and streams_of is None
        self.slots = 0
        self._free = np.zeros(0, np.int64)
        self._asked = np.zeros(0)
        self._known = np.zeros(0)
        #: of the open questions: number, place, part
        self._open = np.zeros((3, 0), np.int64)

    @property
    def open(self) -> int:
        """Questions whose outcome is still to become known."""
        return len(self._asked)

    def upto(self, first: int, last: int) -> Events:
        """The events from question `first` up to, not including, question `last` + 1."""
        asked_now = last - first + 1
        if self.simple:
            return Events(None, None, [(0, 0)], np.array([asked_now]), asked_now, 1, {0: 1})
        asked, known = self.clock.span(first, last)
        soon = self.clock.times(last + 1)[0]
        was = len(self._asked)
        slot, own = np.zeros((2, was + asked_now), np.int64)
        slot[:was], own[:was] = self._open[1:]
        if len(self.cuts):
            own[was:] = np.searchsorted(self.cuts, asked, side="right") * self.streams
        if self.streams_of is not None:
            own[was:] += self.streams_of(first, last)
        if was:
            asked, known = np.concatenate([self._asked, asked]), np.concatenate([self._known, known])
        parts, part = _numbered(own)
        streams, stream = _numbered(own % self.streams) if self.streams > 1 else (_ONE, _ONE)
        due = np.flatnonzero(known < soon)
        times = known[due]
        if (times[1:] < times[:-1]).any():
            due = due[np.argsort(times, kind="stable")]
        codes, rows = np.empty((2, asked_now + len(due)), np.int64)
        counts = np.zeros(len(parts), np.int64)
        open, most = np.zeros((2, len(streams)), np.int64)
        free = np.concatenate([self._free, np.empty(self.slots - len(self._free) + asked_now, np.int64)])
        size, left, self.slots, at_once = _list(
            asked, known, due, was, slot, part, stream, free, len(self._free), self.slots, codes, rows, counts, open,
            most,
        )  # fmt: skip
        self._free = free[:left].copy()
        waits = np.flatnonzero(known >= soon)
        waits = waits[known[waits] < math.inf]
        told = due, was, first, self._open[0], asked, known, streams[stream]
        self._asked, self._known = asked[waits], known[waits]
        self._open = np.stack([_numbers(waits, was, first, told[3]), slot[waits], own[waits]])
        return Events(
            codes[:size],
            rows[:size],
            [divmod(part, self.streams) for part in parts.tolist()],
            counts,
            asked_now,
            at_once,
            dict(zip(streams.tolist(), most.tolist(), strict=True)) if self.streams > 1 else {0: at_once},
            told,
        )

    def ask(self, number: int, time: float, stream: int, kind: int = ASK) -> tuple[Events, Question]:
        """The event of a question that is asked by hand."""
        free = self._free.tolist()
        slot = free.pop() if free else self.slots
        if kind == ASK:
            self.slots, self._free = max(self.slots, slot + 1), np.array(free, np.int64)
        part = int(np.searchsorted(self.cuts, time, side="right")), stream
        log = _NONE, 0, number, _NONE, np.array([time]), np.array([math.inf]), np.array([stream])
        code, none = np.array([slot << SLOT | kind]), np.zeros(1, np.int64)
        events = Events(code, none, [part], none, 1, 1, {stream: 1}, log)
        return events, Question(number, time, slot, part)

    def resolve(self, question: Question, time: float) -> Events:
        """The event of an outcome that is told by hand."""
        self._free = np.append(self._free, question.slot)
        log = (
            np.zeros(1, np.int64), 1, 0, np.array([question.number]), np.array([question.time]), np.array([time]),
            np.array([question.part[1]]),
        )  # fmt: skip
        code = question.slot << SLOT | RESOLVE
        return Events(
            np.array([code]), np.zeros(1, np.int64), [question.part], np.ones(1, np.int64), 0, 0, {}, log
        )


@dataclass(eq=False)
class Question:
    """A question that was asked by hand.

    Attributes
    ----------
    number : int
    time : float
        When it was asked, on the game's clock.
    slot : int
        Its place among the open questions.
    part : (stretch, stream)
    forecast, probability : (runs,) floats
        The forecasts that were drawn, and nature's probabilities of the outcome 1.
    laws : list of dict
        The law of each run, value → probability.
    resolved : bool
        Whether its outcome is known.
    """

    number: int
    time: float
    slot: int
    part: Part
    forecast: Any = None
    probability: Any = None
    laws: Any = None
    resolved: bool = False


def _numbers(places: Ints, was: int, first: int, before: Ints) -> Ints:
    """The numbers of questions by their places: `was` that were open, with numbers `before`, then `first` and so on."""
    return np.where(places < was, np.append(before, 0)[np.minimum(places, was)], places - was + first)


def _numbered(values: Ints) -> tuple[Ints, Ints]:
    """The different values in order, and the place of each among them; for values that are close to each other."""
    least, most = int(values.min()), int(values.max())
    if least == most:
        return np.array([least]), np.zeros(len(values), np.int64)
    there = np.bincount(values - least) > 0
    return np.flatnonzero(there) + least, (np.cumsum(there) - 1)[values - least]


@kernel
def _list(asked, known, due, was, slot, part, stream, free, left, slots, codes, rows, counts, open, most):
    """Merges questions and outcomes into codes; how many events, free places and places there are then, and how many
    more questions were open at once. `free[:left]` are the places without a question.

    Where there are several streams, `open` counts the open questions of each, and `most` has the most of them.
    """
    i, j, size, n, now, at_once, several = was, 0, 0, len(asked), 0, 0, len(stream) == len(asked)
    while i < n or j < len(due):
        if i < n and (j == len(due) or asked[i] <= known[due[j]]):
            if left == 0:
                free[0] = slots
                slots += 1
                left = 1
            place = free[left - 1]
            kind = ASK
            if j < len(due) and due[j] == i and not (i + 1 < n and asked[i + 1] <= known[i]):
                kind = BOTH
                j += 1
            elif known[i] < np.inf:  # a question that is never resolved needs no place once it is asked
                slot[i] = place
                left -= 1
            k = i
            i += 1
            now += 1
            at_once = max(at_once, now)
            if several:
                open[stream[k]] += 1
                most[stream[k]] = max(most[stream[k]], open[stream[k]])
        else:
            kind, k = RESOLVE, due[j]
            place = free[left] = slot[k]
            left += 1
            j += 1
        codes[size] = part[k] << PART | place << SLOT | kind
        if kind != ASK:
            now -= 1
            if several:
                open[stream[k]] -= 1
            rows[size] = counts[part[k]]
            counts[part[k]] += 1
        size += 1
    return size, left, slots, at_once
