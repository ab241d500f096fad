"""Plays runs in which a player is written in plain Python: one call of compiled code for each event."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, repeat
from typing import Any

from onlinecal.core.errors import OnlinecalError
from onlinecal.core.sight import Sight
from onlinecal.engine import kernels as k
from onlinecal.engine.events import ASK, BOTH, RESOLVE, SLOT
from onlinecal.engine.loop import InPython, Loop, Stopped
from onlinecal.forecasters.base import law_of
from onlinecal.natures.scalar import ScalarRound, number_of


def play(loop: Loop) -> None:
    """Plays the events of a loop in all its runs, one run after the other.

    Raises
    ------
    Stopped
        By a player: of the runs, the first that is stopped. Those after it have not been played.
    """
    for run in range(loop.questions.runs):
        _Run(loop, run).play()


def _place(code: int) -> int:
    """The place of an event's question among those that are open."""
    return code >> SLOT & 0xFFFFFFFF


class _Run:
    """One run, and where Python reads and writes what compiled code takes and gives."""

    def __init__(self, loop: Loop, run: int) -> None:
        self.loop, self.run = loop, run
        self._enter()

    def _enter(self) -> None:
        loop = self.loop
        self.table, self.arrays = loop.table(1, range(loop.questions.runs))
        k.enter(self.table, 0, self.run, *loop.arrays())
        words = self.loop.questions.words[self.run].reshape(-1)
        lane = self.arrays[0][0]
        #: views by which Python reads and writes single numbers in a third of the time that an array takes
        self.words: Any = memoryview(words)
        self.ints: Any = memoryview(words.view("q"))
        self.stated: Any = memoryview(lane)
        self.lane: Any = memoryview(lane.view("q"))
        self.width = self.loop.questions.width
        self.values, self.weights = self.loop.questions.places[3:5]

    def play(self) -> None:
        loop, run, table, next_event = self.loop, self.run, self.table, k.play_next
        forecaster: Any = None
        nature: Any = None
        show, hears = None, False
        if isinstance(loop.forecaster, InPython):
            forecaster = loop.forecaster.players[run]
        if isinstance(loop.nature, InPython):
            nature, hears = loop.nature.players[run], loop.nature.lifted.told
            show = self._shown() if loop.nature.lifted.shown else None
        codes = loop.events.codes
        stated, turn = self.stated, True
        outcome: int | None = None
        for code in repeat(BOTH, loop.count) if codes is None else codes.tolist():
            kind, outcome = code & 3, None
            try:
                if kind != RESOLVE:
                    # Methods are looked up each time, as a player may exchange its own.
                    if forecaster is not None:
                        turn = True
                        said = forecaster.forecast()
                        if isinstance(said, float):
                            stated[k.STATED] = said
                        elif self._state(code, said):
                            table, stated = self.table, self.stated
                    if nature is not None:
                        turn = False
                        q = nature.probability() if show is None else nature.probability(show(code))
                        stated[k.STATED_Q] = q if isinstance(q, float) else number_of(q, run)
                outcome = next_event(table)
                if outcome < 0:
                    raise loop.stopped(table, self.arrays, -outcome)
                if kind != ASK:
                    drawn = stated[k.STATED]
                    if forecaster is not None:
                        turn = True
                        forecaster.update(drawn, outcome)
                    if hears:
                        turn = False
                        nature.update(drawn, outcome)
            except (OnlinecalError, Stopped):
                raise
            except Exception as error:
                number = int(table[k.NUMBER]) + (outcome is None)
                if kind == RESOLVE:
                    number = self.ints[_place(code) * self.width + k.OF_NUMBER]
                raise Stopped(turn, number, error, run) from error

    def _shown(self) -> Callable[[int], ScalarRound]:
        """A function of the code of a question: the round as the nature in Python sees it."""
        nature, times = self.loop.nature.lifted, iter(self.loop.events.times(self.loop.asked))
        name, sight, number = nature.name, nature.seen, count(self.loop.asked + 1)

        def show(code: int) -> ScalarRound:
            law = forecast = None
            if sight >= Sight.LAW:
                what = k.draw_next(self.table, _place(code))
                if what != k.FINE:
                    raise self.loop.stopped(self.table, self.arrays, what)
                at, law = _place(code) * self.width, dict[float, float]()
                for j in range(self.lane[k.SIZE]):
                    value, weight = self.words[at + self.values + j], self.words[at + self.weights + j]
                    if weight > 0.0:
                        law[value] = law.get(value, 0.0) + weight
                if sight >= Sight.DRAW:
                    forecast = self.words[at + self.values + self.lane[k.PICK]]
            return ScalarRound(name, sight, next(number), next(times), law, forecast)

        return show

    def _state(self, code: int, said: Any) -> bool:
        """Takes a law that is no float; whether what compiled code reads is elsewhere now."""
        law = law_of(self.run, said)
        questions, moved = self.loop.questions, len(law) > self.loop.questions.size
        if moved:
            before = [self.table[place] for place in (k.FIRST, k.NUMBER)], self.lane[k.LOGGED]
            questions.reserve(0, len(law))
            self._enter()
            self.table[[k.FIRST, k.NUMBER]], self.lane[k.LOGGED] = before
        at = _place(code) * self.width
        for j, (value, weight) in enumerate(law.items()):
            self.words[at + self.values + j], self.words[at + self.weights + j] = float(value), float(weight)
        self.lane[k.SIZE], self.lane[k.IN_PLACE] = len(law), k.IN_SLOT
        return moved
