"""What is played at a time: a study cut into units, each some runs of a cell, that keep all workers busy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from onlinecal.core.plain import Plain
from onlinecal.rounds.players import made_of_steps
from onlinecal.rounds.protocol import start
from onlinecal.study.plan import Cell
from onlinecal.study.run import batch_size

#: seconds, roughly, of a round and of a run-round: of steps alone, beside plain players, of all others
COMPILED, PLAIN, EVENT = (0.0, 5e-8), (0.0, 2e-6), (2e-5, 1e-7)
#: seconds, roughly, below which a unit is not cut
LEAST = 0.1
#: units that there are to be for each worker, so that all end at about the same time
EACH = 4
#: what takes so many times less than a unit should is played first
SHORT = 16


class Unit(NamedTuple):
    """Runs `first` up to, not including, `last` of the cell at a place among the cells."""

    cell: int
    first: int
    last: int


class Estimate:
    """How long cells take, roughly: only the order in which they are played, and in which parts, depends on it."""

    def __init__(self) -> None:
        self._kinds: dict[int, tuple[Any, str]] = {}

    def seconds(self, cell: Cell, runs: int) -> float:
        """Of so many runs of a cell."""
        a, b = self.rates(cell)
        return cell.horizon * (a + b * runs)

    def rates(self, cell: Cell) -> tuple[float, float]:
        """Seconds of a round, and of a run-round."""
        kinds = [self._kind("forecaster", cell.forecaster, cell), self._kind("nature", cell.nature, cell)]
        if "" in kinds or cell.panel.keeps:
            return EVENT
        return PLAIN if "plain" in kinds else COMPILED

    def _kind(self, role: str, entry: Any, cell: Cell) -> str:
        if id(entry) not in self._kinds:
            if isinstance(entry.strategy, Plain):
                kind = "plain"
            else:
                player = start(role, entry.strategy, cell.horizon, range(1), cell.seed)
                kind = "steps" if made_of_steps(player) else ""
            self._kinds[id(entry)] = entry, kind
        return self._kinds[id(entry)][1]


def units(cells: Sequence[Cell], workers: int, beside: int = 1) -> Iterator[Unit]:
    """The units of a study, in the order in which they are to be begun.

    One worker plays cells in their order, in batches as large as memory allows. Several play what is short first, which
    soon shows what fails, and then the longest cells before others, so that all end at about the same time. Cells that
    would keep one busy while the others have nothing to do are cut, where that costs little: a round of the event loop
    takes about as long for one run as for a hundred.

    Parameters
    ----------
    cells : sequence of Cell
    workers : int
        How many play at once.
    beside : int, default 1
        How many of them share the memory of a machine.
    """
    if workers == 1:
        for place, cell in enumerate(cells):
            yield from _cut(place, cell, batch_size(cell))
        return
    estimate = Estimate()
    long = [estimate.seconds(cell, cell.runs - cell.first) for cell in cells]
    share = max(LEAST, sum(long) / (EACH * workers))
    order = sorted(
        range(len(cells)), key=lambda place: -long[place] if long[place] > share / SHORT else -math.inf
    )
    for place in order:
        cell, size = cells[place], batch_size(cells[place], beside)
        if long[place] > share:
            a, b = estimate.rates(cell)
            # So many runs take the share, and a round at least twice as long as it takes of itself.
            size = min(size, max(1, int((share / cell.horizon - a) / b), int(a / b)))
        yield from _cut(place, cell, size)


def _cut(place: int, cell: Cell, size: int) -> Iterator[Unit]:
    """Parts of about the same size, none of them larger."""
    runs = cell.runs - cell.first
    parts = -(-runs // size)
    for i in range(parts):
        yield Unit(place, cell.first + runs * i // parts, cell.first + runs * (i + 1) // parts)
