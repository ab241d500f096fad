"""Plays the cells of a study by an executor; each is handed over when all its runs are there."""

from collections import defaultdict, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing

from onlinecal.core.progress import Progress
from onlinecal.study.executors.base import Done, Event, Executor, Failed, Fault, Unit, units
from onlinecal.study.plan import Cell
from onlinecal.study.played import Batch, Played, together
from onlinecal.study.run import result

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
        Its numbers, or its fault: other units of that cell are forgotten.
    """
    with closing(play_groups(cells, progress, executor)) as groups:
        for cell, found in (each for group in groups for each in group):
            yield cell, found if isinstance(found, Fault) else result(cell, found)


def play_groups(
    cells: Sequence[Cell], progress: Progress, executor: Executor
) -> Generator[list[tuple[Cell, Batch | Fault]], None, None]:
    """The same in lists of all that has been finished since the last, as numbers."""
    again: deque[Unit] = deque()
    under_way: dict[Unit, int] = {}  # and how many run-rounds of them have been told
    lost: dict[Unit, int] = defaultdict(int)
    played: dict[int, list[Done]] = defaultdict(list)
    failed: set[int] = set()

    def worked(unit: Unit, rounds: int) -> None:
        if unit in under_way:
            under_way[unit] += rounds
            progress.advance(rounds)

    def following(fresh: Iterator[Unit]) -> Unit | None:
        """Of cells that have not failed: first the units that are played again."""
        while again:
            if (unit := again.popleft()).cell not in failed:
                return unit
        return next((unit for unit in fresh if unit.cell not in failed), None)

    def taken(event: Event) -> Batch | Fault | None:
        """The result of its cell, if it is known now."""
        unit, cell = event.unit, cells[event.unit.cell]
        told = under_way.pop(unit)
        if unit.cell in failed:
            return None
        if isinstance(event, Done):
            progress.advance(cell.horizon * (unit.last - unit.first) - told)
            parts = played[unit.cell]
            parts.append(event)
            if sum(part.unit.last - part.unit.first for part in parts) < cell.runs - cell.first:
                return None
            del played[unit.cell]
            return together(sorted((part.batch for part in parts), key=lambda batch: batch.first))
        progress.advance(-told)
        if isinstance(event, Failed):
            fault = event.fault
        else:
            lost[unit] += event.times
            if lost[unit] <= AGAIN:
                again.append(unit)
                return None
            gone = f"its worker was gone {lost[unit]} times ({event.why})"
            said = f"{gone}; expected that it fits into memory and does not end its process"
            fault = Fault("WorkerError", said)
        failed.add(unit.cell)
        played.pop(unit.cell, None)
        return fault

    try:
        if not cells:
            return
        executor.begin(cells, worked)
        fresh = units(cells, executor.workers, executor.beside)
        unit = following(fresh)
        while unit is not None or under_way:
            while unit is not None and executor.room > 0:
                under_way[unit] = 0
                cell = cells[unit.cell]
                progress.describe(f"{cell.forecaster.label} vs {cell.nature.label}, T = {cell.horizon:,}")
                executor.submit(unit)
                unit = following(fresh)
            found = [(cells[event.unit.cell], taken(event)) for event in executor.events()]
            if finished := [(cell, what) for cell, what in found if what is not None]:
                yield finished
            unit = unit or following(fresh)
    finally:
        executor.close()
