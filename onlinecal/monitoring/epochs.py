"""The money of a test, from one alarm to the next, and its open questions."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData
from onlinecal.monitoring.alarms import Alarm
from onlinecal.monitoring.bets import (
    COUNT,
    COUNTED,
    HUGE,
    IMPOSSIBLE,
    PEAK,
    POWER,
    Bettors,
    bet_on_all,
    cell_of,
    log_of,
    log_total,
    look_ahead,
    new_clock,
)

Floats = NDArray[np.float64]


@dataclass(slots=True)
class Question:
    """A forecast that waits for its outcome, or (in their order) for that of an earlier one."""

    ticket: int
    forecast: float
    chain: int  # which of the totals bets on it; −1 for none
    epoch: int  # in which epoch it was asked
    outcome: float = math.nan
    # ln of what its total has after the worse of the two outcomes; NaN until it is asked for
    worst: float = math.nan

    @property
    def answered(self) -> bool:
        """Whether the outcome is known."""
        return not math.isnan(self.outcome)


@dataclass
class Questions:
    """Of a monitor."""

    chains: int | None
    asked: int = 0  # how many there were; tickets are 1, 2, …
    # ticket → question, in their order; of a plain one the first is found slowly when many are gone
    open: OrderedDict[int, Question] = field(default_factory=OrderedDict)
    begun: tuple[int, int] = (0, 0)

    def ask(self, p: float, epoch: int) -> Question:
        """The next one."""
        chain = 0
        if self.chains is not None:
            busy = {other.chain for other in self.open.values()}
            chain = next((c for c in range(self.chains) if c not in busy), -1)
        question = Question(self.asked + 1, p, chain, epoch)
        self.open[question.ticket] = question
        self.asked = question.ticket
        return question

    def of(self, ticket: Any) -> Question:
        """The open question of this ticket that has no outcome yet."""
        question = self.open.get(ticket) if isinstance(ticket, int) else None
        if question is None or question.answered:
            known = isinstance(ticket, int) and 1 <= ticket <= self.asked
            what = "has its outcome, or was dropped" if known else "was not given by this monitor"
            raise InvalidData(f"ticket {ticket!r} {what}; expected that of an open question")
        return question

    def ready(self) -> Question | None:
        """The question with the outcome to be taken next."""
        for question in self.open.values():
            if question.answered:
                return question
            if self.chains is None:
                return None
        return None

    def bet_on(self, epoch: int) -> Iterator[Question]:
        """Those that are bet on in this epoch: not those that were open when it began, nor those of no chain."""
        return (q for q in self.open.values() if q.epoch == epoch and q.chain >= 0)


@dataclass(eq=False)
class Epoch:
    """All that changes from one alarm to the next: it is exchanged as a whole."""

    number: int  # 1, 2, …
    alarms: tuple[Alarm, ...]  # all before it
    banks: Floats
    clocks: Floats  # of each total
    sums: Floats  # of the events of this epoch, and of all
    peak: float = 1.0  # the largest e-value so far, where there are several totals

    @classmethod
    def begin(
        cls, number: int, alarms: tuple[Alarm, ...], sums: Floats, bettors: Bettors, chains: int
    ) -> Epoch:
        """Nothing has been bet yet; `sums` are those of all events before, (4, K)."""
        banks = np.stack([bettors.bank() for _ in range(chains)])
        clocks = np.stack([new_clock() for _ in range(chains)])
        return cls(number, alarms, banks, clocks, np.stack([np.zeros_like(sums), sums]))

    @property
    def events(self) -> int:
        """Taken since the beginning of all."""
        return int(self.sums[1, COUNTED].sum())

    @property
    def bank(self) -> Floats:
        """Of all totals together, (4, I, D), in the largest of their units."""
        powers = self.clocks[:, POWER] - self.clocks[:, POWER].max()
        return np.asarray(np.tensordot(HUGE**powers, self.banks, axes=1))

    def bet(self, b: Bettors, chain: int, p: Floats, y: Floats, level: float) -> tuple[int, bool]:
        """Takes events until this total is at least 1/level; how many, and whether it is."""
        bank, clock = self.banks[chain], self.clocks[chain]
        found: tuple[int, bool] = bet_on_all(
            bank, clock, self.sums, b.edges, b.ends, b.prior, b.lifts, p, y, level
        )
        return found

    def count(self, b: Bettors, p: float, y: float) -> None:
        """Counts an event without bets."""
        self.sums[1][:, cell_of(b.edges, p)] += np.array([1.0, p, y, (y - p) ** 2])

    def log_e(self, b: Bettors, questions: Questions) -> float:
        """ln of the mean of the totals, with open questions at the worse of their outcomes."""
        if questions.chains is None:
            return log_total(self.clocks[0])
        if self.clocks[:, IMPOSSIBLE].any():
            return math.inf
        logs = [log_total(clock) for clock in self.clocks]
        for q in questions.bet_on(self.number):
            # What was taken, but for an interrupt that left the question here, is in the total.
            if (q.ticket, self.events - 1) != questions.begun:
                if math.isnan(q.worst):
                    # Nobody else bets with this money until the outcome is known.
                    bank, clock = self.banks[q.chain], self.clocks[q.chain]
                    both = look_ahead(bank, clock, b.edges, b.ends, b.prior, b.lifts, q.forecast)
                    q.worst = log_of(clock, min(both))
                logs[q.chain] = q.worst
        top = max(logs)
        return top + math.log(math.fsum(math.exp(one - top) for one in logs) / len(logs))

    @property
    def largest(self) -> float:
        """The largest e-value so far."""
        if self.clocks[:, IMPOSSIBLE].any():
            return math.inf
        return max(1.0, float(self.clocks[0, PEAK]) if len(self.clocks) == 1 else self.peak)

    @property
    def taken(self) -> int:
        """Events that were bet on."""
        return int(self.clocks[:, COUNT].sum())
