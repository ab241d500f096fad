"""THE GAME. A forecaster meets a nature, question by question, in one run.

A question is asked: nature may reveal context. The forecaster states the law of its forecast, which is drawn from it.
Nature, from what its sight allows, states q; the outcome is 1 if a uniform is below q. Of K classes q are K numbers
(`outcomes`). The outcome becomes known at once or later: then the history, the forecaster and nature receive it, in
this order.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from onlinecal.core.streams import Stream
from onlinecal.engine.law import Unplayable, as_law, brief, check_law, draw
from onlinecal.engine.outcomes import TWO, Outcomes
from onlinecal.schedules.base import Clock

#: questions of which the times are read together
BLOCK = 1024


class Stopped(Exception):
    """A player stopped a run: by an error of its own, or by what cannot be played."""

    def __init__(self, forecaster: bool, number: int, fault: Exception, run: int | None = None) -> None:
        super().__init__(forecaster, number, fault, run)
        self.forecaster, self.number, self.fault, self.run = forecaster, number, fault, run


@dataclass(eq=False, slots=True)
class Question:
    """A question in one run, and what became of it."""

    number: int
    time: float
    part: int = 0
    context: dict[str, float] = field(default_factory=dict)
    #: the atoms of the law, value and weight
    law: list[tuple[Any, float]] = field(default_factory=list)
    place: int = 0
    #: of K classes: K numbers
    forecast: Any = math.nan
    probability: Any = math.nan
    outcome: int = -1
    #: what forecaster and nature keep with it
    note: Any = None
    hidden: Any = None
    resolved: bool = False


class Play:
    """One run of a game, of players as `seats.seat` makes them.

    `draws` and `outcomes` are streams of its own. `part_of` is the part of the history of a question of this number and
    time. `keep` says of a question, with the time at which its outcome is known, whether it can be kept.
    `ready` makes both players fit for the questions up to this number, with this many open. `extend` keeps several
    rounds that have one part; None where there are more. `run` is told where a player stops it. `groups` are kinds of
    context that are 0 or 1. `outcomes_of` says what forecasts and outcomes are.
    """

    def __init__(
        self,
        forecaster: Any,
        nature: Any,
        clock: Clock,
        draws: Stream,
        outcomes: Stream,
        part_of: Callable[[int, float], int],
        keep: Callable[[Question, float], bool],
        ready: Callable[[int, int], None],
        extend: Callable[[list[float], list[int]], None] | None = None,
        run: int | None = None,
        groups: Sequence[str] = (),
        outcomes_of: Outcomes = TWO,
    ) -> None:
        self.forecaster, self.nature, self.clock = forecaster, nature, clock
        self.draws, self.outcomes, self.part_of, self.keep, self.ready = draws, outcomes, part_of, keep, ready
        self.extend, self.run, self.groups, self.outcomes_of, self.asked = extend, run, groups, outcomes_of, 0
        #: open questions of the schedule: when their outcomes become known, number, question
        self.waiting: list[tuple[float, int, Question]] = []

    def ask(self, number: int, time: float) -> Question:
        """Asks a question."""
        q = Question(number, time, self.part_of(number, time))
        forecaster = False
        try:
            self.nature.reveal(q)
            for group in self.groups:
                if q.context[group] not in (0, 1):
                    raise not_a_member(group)
            forecaster = True
            q.law = self.outcomes_of.check(self.forecaster.state_law(q))
            q.place, q.forecast = draw(q.law, self.draws.uniform(number - 1) if len(q.law) > 1 else 0.0)
            forecaster = False
            q.probability = self.nature.move(q)
            q.outcome = self.outcomes_of.outcome(q.probability, self.outcomes, number - 1)
        except Exception as error:
            raise Stopped(forecaster, number, error, self.run) from error
        return q

    def look(self, number: int, time: float) -> list[tuple[Any, float]]:
        """The law of the next question, which is not asked: all is as it was."""
        kept = [(each, each.save()) for each in (self.forecaster, self.nature)]
        forecaster, q = False, Question(number, time)
        try:
            self.nature.reveal(q)
            forecaster = True
            return self.outcomes_of.check(self.forecaster.state_law(q))
        except Exception as error:
            raise Stopped(forecaster, number, error, self.run) from error
        finally:
            for each, rows in kept:
                each.put_back(rows)

    def resolve(self, q: Question, known: float) -> None:
        """Makes the outcome of a question known, at this time."""
        forecaster = True
        try:
            if not self.keep(q, known):
                raise Unplayable(f"stated the forecast {q.forecast!r}", "a point of its grid")
            self.forecaster.learn(q)
            forecaster = False
            self.nature.learn(q)
        except Exception as error:
            raise Stopped(forecaster, q.number, error, self.run) from error
        q.resolved = True

    def play(self, until: int) -> None:
        """Plays by the clock, up to the time of question `until` + 1."""
        at_once = self.clock.schedule.immediate and self.extend is not None and not self.waiting
        while self.asked < until:
            first, last = self.asked + 1, min(until, self.asked + BLOCK)
            if at_once and self._straight(first, last):
                self.asked = last
                continue
            for time, known in zip(*(times.tolist() for times in self.clock.span(first, last)), strict=True):
                self.tell_before(time)
                self.asked += 1
                self.ready(self.asked, len(self.waiting) + 1)
                q = self.ask(self.asked, time)
                if isinstance(known, list):  # a delay may depend on the outcome
                    known = known[q.outcome]
                if known < math.inf:
                    heapq.heappush(self.waiting, (known, q.number, q))
        self.tell_before(self.clock.times(until + 1)[0])

    def _straight(self, first: int, last: int) -> bool:
        """The same rounds where each outcome is known at once: without questions, uniforms and history by blocks.

        False where a player keeps something with a question.
        """
        self.ready(last, 1)
        mine, theirs = self.forecaster.straight(), self.nature.straight()
        if mine is None or theirs is None or self.extend is None:
            return False
        (say, learn), (move, hear), said, came = mine, theirs, list[float](), list[int]()
        number, forecaster = first, True
        of_both = self.draws, self.outcomes
        draws, outcomes = (each.numbers_from(first - 1, last + 1 - first) for each in of_both)
        try:
            for number, u, v in zip(range(first, last + 1), draws, outcomes, strict=True):
                stated = say()
                if type(stated) is float and 0.0 <= stated <= 1.0:
                    p, law = stated + 0.0, [(stated, 1.0)]
                else:
                    law = check_law(as_law(stated))
                    _, p = draw(law, u)
                forecaster = False
                q = move(number, law, p)
                if not 0.0 <= q <= 1.0:
                    raise Unplayable(f"stated q = {brief(q)}", "a probability in [0, 1]")
                y = 1 if v < q else 0
                forecaster = True
                learn(p, y)
                if hear is not None:
                    forecaster = False
                    hear(p, y, number)
                    forecaster = True
                said.append(p)
                came.append(y)
        except Exception as error:
            raise Stopped(forecaster, number, error, self.run) from error
        self.extend(said, came)
        return True

    def tell_before(self, time: float) -> None:
        """Tells the outcomes that become known before this time."""
        while self.waiting and self.waiting[0][0] < time:
            known, _, q = heapq.heappop(self.waiting)
            self.resolve(q, known)


def not_a_member(group: str) -> Unplayable:
    """The fault of a nature that says of a question neither that it is in a group nor that it is not."""
    return Unplayable(f"revealed neither 0 nor 1 of the group {group!r}", "one of them")
