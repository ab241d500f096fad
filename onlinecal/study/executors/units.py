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

#: seconds, roughly, of a round and of a run-round: of steps alone, beside plain players, of all others
COMPILED, PLAIN, EVENT = (0.0, 5e-8), (0.0, 2e-6), (2e-5, 1e-7)
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


def rates_of() -> Callable[[Cell], tuple[float, float]]:
    """A function of a cell: seconds, roughly, of a round and of a run-round. Only the order of play depends on it."""
    kinds: dict[int, tuple[Any, str]] = {}

    def kind(role: str, cell: Cell) -> str:
        entry = getattr(cell, role)
        if id(entry) not in kinds:
            own = "plain" if isinstance(entry.strategy, Plain) else ""
            if not own and made_of_steps(start(role, entry.strategy, cell.horizon, range(1), cell.seed)):
                own = "steps"
            kinds[id(entry)] = entry, own
        return kinds[id(entry)][1]

    def rates(cell: Cell) -> tuple[float, float]:
        both = kind("forecaster", cell), kind("nature", cell)
        if "" in both or cell.panel.keeps:
            return EVENT
        return PLAIN if "plain" in both else COMPILED

    return rates


def units(cells: Sequence[Cell], workers: int, beside: int = 1) -> Iterator[Unit]:
    """The units of a study, in the order in which they are to be begun.

    One worker plays cells in their order, in batches as large as memory allows. Several play what is short first, which
    soon shows what fails, and then the longest cells first, so that all end at about the same time. Long cells are cut
    where that costs little: a round of the event loop takes about as long for one run as for a hundred. `beside` is how
    many workers share the memory of a machine.
    """
    if workers == 1:
        for place, cell in enumerate(cells):
            yield from _cut(place, cell, batch_size(cell))
        return
    rates = list(map(rates_of(), cells))
    long = [
        cell.horizon * (a + b * (cell.runs - cell.first)) for cell, (a, b) in zip(cells, rates, strict=True)
    ]
    share = max(LEAST, sum(long) / (EACH * workers))
    order = sorted(
        range(len(cells)), key=lambda place: -long[place] if long[place] > share / SHORT else -math.inf
    )
    for place in order:
        cell, (a, b), size = cells[place], rates[place], batch_size(cells[place], beside)
        if long[place] > share:
            # As many runs as take the share, and a round at least twice as long as it takes of itself.
            size = min(size, max(1, int((share / cell.horizon - a) / b), int(a / b)))
        yield from _cut(place, cell, size)


def _cut(place: int, cell: Cell, size: int) -> Iterator[Unit]:
    """Parts of about the same size, none of them larger."""
    runs = cell.runs - cell.first
    parts = -(-runs // size)
    for i in range(parts):
        yield Unit(place, cell.first + runs * i // parts, cell.first + runs * (i + 1) // parts)
