"""Units of play: runs of a cell, cut so that all workers are busy to the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from onlinecal.core.plain import Plain
from onlinecal.rounds.players import made_of_steps
from onlinecal.rounds.protocol import start
from onlinecal.study.plan import Cell
from onlinecal.study.run import batch_size
from onlinecal.worlds.base import World

#: seconds, roughly, of a run-round: of steps alone, and beside plain Python
STEPS, PYTHON = 5e-8, 1e-6
#: seconds, roughly, below which a unit is not cut
LEAST = 0.1
#: how many units each worker is to have, so that all end at about the same time
EACH = 4
#: a unit that takes this many times less than its share is played first
SHORT = 16


class Unit(NamedTuple):
    """Runs `first` up to, not including, `last` of the cell at a place among the cells."""

    cell: int
    first: int
    last: int


def seconds_of() -> Callable[[Cell], float]:
    """A function of a cell: seconds, roughly, of a run-round. Only the order of play depends on it."""
    kinds: dict[int, tuple[Any, bool]] = {}

    def in_steps(role: str, cell: Cell) -> bool:
        entry = getattr(cell, role)
        if id(entry) not in kinds:
            plain = isinstance(entry.strategy, Plain | World)
            kinds[id(entry)] = (
                entry,
                not plain and made_of_steps(start(role, entry.strategy, cell.horizon, range(1), cell.seed)),
            )
        return kinds[id(entry)][1]

    return lambda cell: STEPS if in_steps("forecaster", cell) and in_steps("nature", cell) else PYTHON


def units(cells: Sequence[Cell], workers: int, beside: int = 1) -> Iterator[Unit]:
    """The units of a study, in the order in which they are to be begun.

    One worker plays cells in their order, in batches as large as memory allows. Several play what is short first, which
    soon shows what fails, and then the longest cells first, so that all end at about the same time. Long cells are cut.
    `beside` is the number of workers that share the memory of a machine.
    """
    if workers == 1:
        for place, cell in enumerate(cells):
            yield from _cut(place, cell, batch_size(cell))
        return
    seconds = list(map(seconds_of(), cells))
    long = [cell.horizon * (cell.runs - cell.first) * each for cell, each in zip(cells, seconds, strict=True)]
    share = max(LEAST, sum(long) / (EACH * workers))
    order = sorted(
        range(len(cells)), key=lambda place: -long[place] if long[place] > share / SHORT else -math.inf
    )
    for place in order:
        cell, size = cells[place], batch_size(cells[place], beside)
        if long[place] > share:
            size = min(size, max(1, int(share / (cell.horizon * seconds[place]))))
        yield from _cut(place, cell, size)


def _cut(place: int, cell: Cell, size: int) -> Iterator[Unit]:
    """Parts of about the same size, none of them larger."""
    runs = cell.runs - cell.first
    parts = -(-runs // size)
    for i in range(parts):
        yield Unit(place, cell.first + runs * i // parts, cell.first + runs * (i + 1) // parts)
