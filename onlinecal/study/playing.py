"""Plays the cells of a study by an executor; each is handed over when all its runs are there."""

from collections import defaultdict, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing

from onlinecal.core.errors import OnlinecalError, WorkerError
from onlinecal.core.progress import Progress
from onlinecal.study.executors.base import Executor, Lost, Outcome, Unit, Work, units
from onlinecal.study.planning import Cell
from onlinecal.study.played import Batch, Played, together
from onlinecal.study.run import result

#: how often a unit is played again where its worker is gone
AGAIN = 3


def play_cells(
    cells: Sequence[Cell], progress: Progress, executor: Executor
) -> Iterator[tuple[Cell, Played | OnlinecalError]]:
    """Plays the cells; each is yielded when it is finished, in whatever order.

    The numbers do not depend on the executor, nor on the order in which units are finished.

    Parameters
    ----------
    cells : sequence of Cell
    progress : Progress
    executor : Executor
        Within its context. It ends what it plays also where the caller stops before.

    Yields
    ------
    cell : Cell
    played : Played or OnlinecalError
        Its numbers, or why it cannot be played: other units of that cell are forgotten.
    """
    with closing(play_groups(cells, progress, executor)) as groups:
        for cell, found in (each for group in groups for each in group):
            yield cell, found if isinstance(found, OnlinecalError) else result(cell, found)


def play_groups(
    cells: Sequence[Cell], progress: Progress, executor: Executor
) -> Generator[list[tuple[Cell, Batch | OnlinecalError]]]:
    """The same in lists of all that has been finished since the last, as numbers."""
    if not cells:
        return
    fresh = units(cells, executor.workers, executor.beside)
    again: deque[Unit] = deque()
    under_way: dict[Unit, int] = {}  # and how many run-rounds of them have been told
    lost: dict[Unit, int] = defaultdict(int)
    played: dict[int, dict[Unit, Batch]] = defaultdict(dict)
    failed: set[int] = set()

    def following() -> Unit | None:
        """Of cells that have not failed: first the units that are played again."""
        while unit := again.popleft() if again else next(fresh, None):
            if unit.cell not in failed:
                cell, under_way[unit] = cells[unit.cell], 0
                progress.describe(f"{cell.forecaster.label} vs {cell.nature.label}, T = {cell.horizon:,}")
                return unit
        return None

    def worked(unit: Unit, rounds: int) -> None:
        if unit in under_way:
            under_way[unit] += rounds
            progress.advance(rounds)

    def taken(unit: Unit, outcome: Outcome) -> Batch | OnlinecalError | None:
        """The result of its cell, if it is known now."""
        cell, told = cells[unit.cell], under_way.pop(unit)
        whole = isinstance(outcome, Batch)
        progress.advance((cell.horizon * (unit.last - unit.first) if whole else 0) - told)
        if unit.cell in failed:
            return None
        if isinstance(outcome, Lost):
            lost[unit] += outcome.times
            if lost[unit] <= AGAIN:
                again.append(unit)
                return None
            gone = f"its worker was gone {lost[unit]} times ({outcome.why})"
            said = f"{gone}; expected that it fits into memory and does not end its process"
            outcome = WorkerError(said)
        if isinstance(outcome, OnlinecalError):
            failed.add(unit.cell)
            return outcome
        parts = played[unit.cell]
        parts[unit] = outcome
        if sum(part.last - part.first for part in parts) < cell.runs - cell.first:
            return None
        return together(
            [batch for _, batch in sorted(played.pop(unit.cell).items(), key=lambda each: each[0])]
        )

    with closing(executor.play(Work(cells, following, worked))) as events:
        for group in events:
            found = [(cells[unit.cell], taken(unit, outcome)) for unit, outcome in group]
            if finished := [(cell, what) for cell, what in found if what is not None]:
                yield finished
