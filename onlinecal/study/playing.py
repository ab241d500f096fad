"""Plays the cells of a study by an executor, and hands each over as soon as all its runs are there."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing

from onlinecal.core.progress import Progress
from onlinecal.study.executors.base import Done, Event, Executor, Failed, Fault
from onlinecal.study.executors.units import Unit, units
from onlinecal.study.plan import Cell
from onlinecal.study.played import Played
from onlinecal.study.run import join

#: how often a unit is played again where its worker is gone
AGAIN = 3


def play_cells(
    cells: Sequence[Cell], progress: Progress, executor: Executor
) -> Iterator[tuple[Cell, Played | Fault]]:
    """Plays the cells; each is yielded when it is finished, in whatever order.

    The numbers do not depend on the executor, nor on the order in which units are finished.

    Parameters
    ----------
    cells : sequence of Cell
    progress : Progress
    executor : Executor
        Within its context. Closed at the end, also where the caller stops before.

    Yields
    ------
    cell : Cell
    played : Played or Fault
        What came out, or why nothing did: other units of that cell are forgotten.
    """
    with closing(play_groups(cells, progress, executor)) as groups:
        for group in groups:
            yield from group


def play_groups(
    cells: Sequence[Cell], progress: Progress, executor: Executor
) -> Generator[list[tuple[Cell, Played | Fault]], None, None]:
    """The same in lists: all that has been finished since the last."""
    try:
        if cells:
            yield from _Playing(cells, progress, executor).through()
    finally:
        executor.close()


class _Playing:
    def __init__(self, cells: Sequence[Cell], progress: Progress, executor: Executor) -> None:
        self.cells, self.progress, self.executor = cells, progress, executor
        self.again: deque[Unit] = deque()
        self.under_way: dict[Unit, int] = {}  # and how many run-rounds of them have been told
        self.lost: dict[Unit, int] = defaultdict(int)
        self.played: dict[int, list[Done]] = defaultdict(list)
        self.failed: set[int] = set()

    def through(self) -> Iterator[list[tuple[Cell, Played | Fault]]]:
        self.executor.begin(self.cells, self._worked)
        fresh = units(self.cells, self.executor.workers, self.executor.beside)
        unit = self._next(fresh)
        while unit is not None or self.under_way:
            while unit is not None and self.executor.room > 0:
                self.under_way[unit] = 0
                cell = self.cells[unit.cell]
                self.progress.describe(
                    f"{cell.forecaster.label} vs {cell.nature.label}, T = {cell.horizon:,}"
                )
                self.executor.submit(unit)
                unit = self._next(fresh)
            taken = [(self.cells[event.unit.cell], self._take(event)) for event in self.executor.events()]
            if finished := [(cell, what) for cell, what in taken if what is not None]:
                yield finished
            unit = unit or self._next(fresh)

    def _next(self, fresh: Iterator[Unit]) -> Unit | None:
        """Of cells that have not failed: first the units that are played again."""
        while self.again:
            if (unit := self.again.popleft()).cell not in self.failed:
                return unit
        return next((unit for unit in fresh if unit.cell not in self.failed), None)

    def _worked(self, unit: Unit, rounds: int) -> None:
        if unit in self.under_way:
            self.under_way[unit] += rounds
            self.progress.advance(rounds)

    def _take(self, event: Event) -> Played | Fault | None:
        """The result of its cell, if it is known now."""
        unit, cell = event.unit, self.cells[event.unit.cell]
        told = self.under_way.pop(unit)
        if unit.cell in self.failed:
            return None
        if isinstance(event, Done):
            self.progress.advance(cell.horizon * (unit.last - unit.first) - told)
            parts = self.played[unit.cell]
            parts.append(event)
            if sum(part.unit.last - part.unit.first for part in parts) < cell.runs - cell.first:
                return None
            del self.played[unit.cell]
            parts.sort(key=lambda part: part.unit.first)
            return join(cell, [part.batch for part in parts], sum(part.seconds for part in parts))
        self.progress.advance(-told)
        if isinstance(event, Failed):
            fault = event.fault
        else:
            self.lost[unit] += event.times
            if self.lost[unit] <= AGAIN:
                self.again.append(unit)
                return None
            fault = Fault(
                "WorkerError",
                f"its worker was gone {self.lost[unit]} times ({event.why}); expected that it fits into memory and "
                "does not end its process",
            )
        self.failed.add(unit.cell)
        self.played.pop(unit.cell, None)
        return fault
