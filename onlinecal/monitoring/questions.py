"""Questions whose outcomes have not been taken into account: which may be next, and who bets on it."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from onlinecal.core.errors import InvalidData


@dataclass(slots=True)
class Question:
    """A forecast that waits for its outcome, or (in their order) for that of an earlier one."""

    ticket: int
    forecast: float
    chain: int  # which of the totals bets on it; −1 for none
    epoch: int  # in which epoch it was asked
    outcome: float = math.nan
    # ln of what its total has after the worse of the two outcomes; NaN until somebody asks
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
        """The one whose outcome is taken next."""
        for question in self.open.values():
            if question.answered:
                return question
            if self.chains is None:
                return None
        return None

    def bet_on(self, epoch: int) -> Iterator[Question]:
        """Those that are bet on in this epoch: not those that were open when it began, nor those of no chain."""
        return (q for q in self.open.values() if q.epoch == epoch and q.chain >= 0)
