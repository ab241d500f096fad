"""The events of a game in order: each question when it is asked, and each outcome when it becomes known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from onlinecal.core._compile import index, kernel
from onlinecal.core.arrays import Ints
from onlinecal.engine.ledger import Part
from onlinecal.schedules.base import Clock

#: kinds of events, in the last two bits of a code. ASK: a question. RESOLVE: the outcome of an earlier one. BOTH: a
#: question and its outcome, with nothing between. LOOK: the law of the next question is read, without the question.
ASK, RESOLVE, BOTH, LOOK = range(4)
#: first bits of the other fields of a code. ONLY: 1 if the event happens only for outcome 0, 3 only for outcome 1.
#: SLOT: the place of the question. PART: the number of its part.
ONLY, SLOT, PART = 2, 4, 36

#: the only stream
_ONE = np.zeros(1, np.int64)
_NONE = np.zeros(0, np.int64)


class Events(NamedTuple):
    """Some events of a game, in order."""

    #: kind, place of the question among the open ones, and part, (n,). None: each question is resolved `lag` questions
    #: later, just after that one
    codes: Ints | None
    #: of an outcome: how many of its part came before it in this list, (n,). None where there is one part.
    #: Where delays depend on outcomes, the driver writes it, and −1 where the outcome is the other one.
    rows: Ints | None
    #: (stretch, stream) of each part, and its outcomes in this list, at most
    parts: list[Part]
    resolved: list[int]
    #: number of questions. Most questions open at once beyond those open before: of all streams, and of each.
    asked: int
    open: int
    streams: dict[int, int]
    #: what `told` is made of; None where a question is asked every unit
    log: tuple[Any, ...] | None = None
    lag: int = 0

    @property
    def asked_at(self) -> Any:
        """The times of the questions, (asked,) floats; None where these are their numbers."""
        return None if self.log is None else np.ascontiguousarray(self.log[1][len(self.log[3]) :])

    def told(self, last: int) -> tuple[Any, ...]:
        """The outcomes in order: number of the question, when it was asked, when the outcome became known, stream.

        `last` is the number of the last question.
        """
        if self.log is None:
            numbers = np.arange(last - self.lag + 1 - self.resolved[0], last - self.lag + 1)
            return numbers, numbers.astype(np.float64), numbers + float(self.lag), np.zeros_like(numbers)
        due, asked, known, before, first, stream = self.log
        return _numbers(due, before, first), asked[due], known[due], np.broadcast_to(stream, asked.shape)[due]

    def settled(self) -> Events:
        """The same once it is played: where delays depend on outcomes, with those alone that became known."""
        if self.log is None or self.log[2].ndim == 1:
            return self
        assert self.codes is not None
        assert self.rows is not None
        resolves = self.codes & 3 == RESOLVE
        happened = self.rows[resolves] >= 0
        part = self.codes[resolves][happened] >> PART
        due, asked, known, *others = self.log
        question, outcome = due[happened] >> 1, due[happened] & 1
        when = known.max(axis=1)
        when[question] = known[question, outcome]
        return self._replace(
            resolved=np.bincount(part, minlength=len(self.parts)).tolist(),
            log=(question, asked, when, *others),
        )


class Agenda:
    """Lists the events of one game, some questions at a time.

    At one time of the clock questions come before outcomes, and outcomes in the order of their questions.
    """

    def __init__(
        self, clock: Clock, cuts: Any, streams: int = 1, streams_of: Callable[[int, int], Ints] | None = None
    ) -> None:
        self.clock, self.cuts = clock, np.asarray(cuts, np.float64)
        self.streams, self.streams_of = streams, streams_of
        #: where question t is asked at time t, and resolved just after question t + lag, in one part: the lag
        self.parted = len(self.cuts) > 0 or streams_of is not None
        self.lag = None if self.parted else clock.schedule.lag
        self.slots = 0
        self._free = _NONE
        #: whether delays depend on outcomes: each question has a time for either, in two columns
        self.by_outcome = clock.schedule.delays.by_outcome
        #: the open questions in the order of their outcomes: the times of question and outcome (infinite: never).
        #: Then number, place and part of each.
        self._times: tuple[Any, Any] = np.zeros(0), np.zeros((0, 2) if self.by_outcome else 0)
        self._open = np.zeros((3, 0), np.int64)

    @property
    def open(self) -> int:
        """The number of questions with an outcome that is still to become known, or may be."""
        return self._open.shape[1]

    def upto(self, first: int, last: int) -> Events:
        """The events from question `first` up to, not including, question `last` + 1."""
        if self.lag is not None:
            return self._unlisted(first, last, self.lag)
        new, was, before = last - first + 1, self.open, self._open[0]
        asked, known = self.clock.span(first, last)
        soon = self.clock.times(last + 1)[0]
        own = self._parts(first, last, asked)
        simple = not was and not self.parted and not self.by_outcome
        if simple and known[-1] < soon and (known[:-1] < asked[1:]).all():
            log = np.arange(new), asked, known, before, first, _ONE
            return Events(None, None, [(0, 0)], [new], new, 1, {0: 1}, log)
        slot = np.empty(was + new, np.int64)
        slot[:was] = self._open[1]
        if was:
            asked, known = (np.concatenate(each) for each in zip(self._times, (asked, known), strict=True))
        parts, part = _numbered(own)
        streams, stream = _numbered(own % self.streams) if self.streams > 1 else (_ONE, _ONE)
        ends = known.ravel()
        due = np.argsort(ends, kind="stable") if (ends[1:] < ends[:-1]).any() else np.arange(len(ends))
        codes = np.empty(new + len(ends), np.int64)
        rows = np.full(len(codes) if self.parted or self.by_outcome else 0, -1)
        counts = np.zeros(len(parts), np.int64)
        open, most = np.zeros((2, len(streams)), np.int64)
        free = np.empty(self.slots + new, np.int64)
        free[: len(self._free)] = self._free
        size, told, left, self.slots, at_once = _list(
            asked, known.reshape(was + new, -1), soon, due, was, slot, part, stream, free, len(self._free),
            self.slots, codes, rows, counts, open, most,
        )  # fmt: skip
        self._free, waits, later = free[:left].copy(), due[told:], known
        if self.by_outcome:
            later = known.copy()
            later.ravel()[due[:told]] = math.inf
            waits = np.flatnonzero((later < math.inf).any(axis=1))
        else:
            waits = waits[known[waits] < math.inf]
        own = np.broadcast_to(own, asked.shape)
        self._times = asked[waits], later[waits]
        self._open = np.stack([_numbers(waits, before, first), slot[waits], own[waits]])
        return Events(
            codes[:size],
            rows[:size] if len(rows) else None,
            [divmod(part, self.streams) for part in parts.tolist()],
            counts.tolist(),
            new,
            at_once,
            dict(zip(streams.tolist(), most.tolist(), strict=True)) if self.streams > 1 else {0: at_once},
            (due[:told], asked, known, before, first, streams[stream]),
        )

    def _unlisted(self, first: int, last: int, lag: int) -> Events:
        """The same where each question is resolved just after a later one."""
        were, new = min(first - 1, lag), last - first + 1
        self.slots = min(last, lag + 1) if lag else self.slots
        known, most = were + new - min(last, lag), min(last, lag + 1) - were
        return Events(None, None, [(0, 0)], [known], new, most, {0: most}, None, lag)

    def _parts(self, first: int, last: int, asked: Any) -> Ints:
        """The part of each question, of the open ones too; a single number where there is one part."""
        if not self.parted:
            return _ONE
        own = np.searchsorted(self.cuts, asked, side="right") * self.streams
        if self.streams_of is not None:
            own += self.streams_of(first, last)
        return np.concatenate([self._open[2], own])

    def ask(self, number: int, time: float, stream: int, kind: int = ASK) -> tuple[Events, Question]:
        """The event of a question that is asked by hand."""
        slot = self.slots
        if kind == ASK:
            self._list_open(number - 1)
            if len(self._free):
                slot, self._free = int(self._free[-1]), self._free[:-1]
            self.slots = max(self.slots, slot + 1)
        question = Question(number, time, slot, (int(np.searchsorted(self.cuts, time, side="right")), stream))
        return self._single(question, kind, math.inf), question

    def resolve(self, question: Question, time: float) -> Events:
        """The event of an outcome that is told by hand."""
        self._free = np.append(self._free, question.slot)
        return self._single(question, RESOLVE, time)

    def _single(self, question: Question, kind: int, known: float) -> Events:
        told, number, stream = int(kind == RESOLVE), question.number, question.part[1]
        before, times = np.full(told, number), np.array([[question.time], [known]])
        log = np.zeros(told, np.int64), *times, before, number, np.array([stream])
        codes, asked = np.array([question.slot << SLOT | kind]), 1 - told
        streams = {stream: 1} if asked else {}
        return Events(codes, None, [question.part], [told], asked, asked, streams, log)

    def _list_open(self, last: int) -> None:
        """Lists the open questions, the last among them, where each is resolved `lag` questions later."""
        if self.lag:
            open, places = np.arange(max(1, last + 1 - self.lag), last + 1), self.lag + 1
            self._times = open.astype(np.float64), (open + self.lag).astype(np.float64)
            self._open = np.stack([open, (open - 1) % places, np.zeros_like(open)])
            self._free = np.setdiff1d(np.arange(self.slots), self._open[1])
            self.lag = None


@dataclass(eq=False, frozen=True)
class Question:
    """A question that was asked by hand: when, its place among the open ones, and its stretch and stream.

    Of each run the forecast that was drawn and nature's probability, (runs,), and the law, value → probability. Its
    attributes are read-only.
    """

    number: int
    time: float
    slot: int
    part: Part
    forecast: Any = field(default=None, repr=False)
    probability: Any = field(default=None, repr=False)
    laws: Any = field(default=None, repr=False)
    #: whether its outcome is known
    resolved: bool = False


def _numbers(places: Ints, before: Ints, first: int) -> Ints:
    """The numbers of questions by their places: those that were open `before`, then `first` and so on."""
    was = len(before)
    return np.where(places < was, np.append(before, 0)[np.minimum(places, was)], places - was + first)


def _numbered(values: Ints) -> tuple[Ints, Ints]:
    """The different values in order, and the place of each among them; for values that are close to each other."""
    least, most = (int(values[0]),) * 2 if len(values) == 1 else (int(values.min()), int(values.max()))
    if least == most:
        return np.array([least]), np.zeros(len(values), np.int64)
    there = np.bincount(values - least) > 0
    return np.flatnonzero(there) + least, (np.cumsum(there) - 1)[values - least]


@kernel
def _list(
    asked, known, soon, due, was, slot, part, stream, free, left, slots, codes, rows, counts, open, most
):
    """Merges questions and outcomes that are known before `soon` into codes. The numbers of events, outcomes, free
    places and places, and (at most) of questions open at once beyond those before.

    `free[:left]` are the places without a question, and `due` the places in `known` in the order of time.

    `known` has a column, or one for each outcome where delays depend on it. Then both are listed, a question keeps its
    place until the later one, and the driver writes the rows.
    Where there are several streams, `open` counts the open questions of each, and `most` has the most of them.
    """
    i, j, size, n, now, at_once = was, 0, 0, len(known), 0, 0
    one, several, two = len(part) == 1, len(stream) == n, known.shape[1] - 1
    until = asked[i] if i < n else soon
    while True:
        k, y = (due[index(j)] >> two, due[index(j)] & two) if j < len(due) else (0, 0)
        first = final = closed = True
        if j < len(due) and known[index(k), y] < until:
            kind, place = RESOLVE, slot[index(k)]
            if two:
                kind |= (1 | y << 1) << ONLY
                time, other = known[index(k), y], known[index(k), 1 - y]
                first = not (other < time or (other == time and y == 1))
                # Without another time the outcome may be known since the last list, or never become known.
                closed, final = other < np.inf, not first or other == np.inf
            if final:
                free[index(left)] = place
                left += 1
            j += 1
        elif i < n:
            if left == 0:
                free[0] = slots
                slots += 1
                left = 1
            place, until, last = free[index(left - 1)], soon, min(known[index(i), 0], known[index(i), two])
            if i + 1 < n:
                until = asked[index(i + 1)]
            kind = ASK
            now += 1
            at_once = max(at_once, now)
            if several:
                open[stream[i]] += 1
                most[stream[i]] = max(most[stream[i]], open[stream[i]])
            if not two and k == i and last < until:
                kind = BOTH
                j += 1
            elif last < np.inf:  # a question that is never resolved needs no place once it is asked
                slot[index(i)] = place
                left -= 1
            k = i
            i += 1
        else:
            return size, j, left, slots, at_once
        own = part[0 if one else k]
        codes[index(size)] = own << PART | place << SLOT | kind
        if kind != ASK:
            if final and closed:
                now -= 1
                if several:
                    open[stream[k]] -= 1
            if not two and len(rows) > 0:
                rows[index(size)] = counts[index(own)]
            counts[index(own)] += int(first)
        size += 1
