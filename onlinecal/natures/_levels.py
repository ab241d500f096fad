"""Natures that keep numbers of each level that has been forecast, or of each cell of levels."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinecal.core.arrays import cells as cells_of
from onlinecal.core.guarantee import Sight
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, law, shared, state

#: the state: how many levels there are, how many are settled, one number of the nature's own. Then come rows, each with
#: a level (or the number of a cell) and its numbers. The settled ones are in ascending order; the newcomers behind
#: them, a few, also are. Behind all are zeros, as of a level to come.
MANY, SETTLED, OWN, BEGIN = range(4)
#: shared: how many numbers a row has, and how many cells there are, or 0; then what was given
WIDE, CELLS, GIVEN = range(3)
#: the numbers of a level: how often it was drawn, and its bias. `Ratchet` also keeps 1 while this is on its way down
DRAWN, BIAS, FALLS = range(3)


#: the fact `memory` of a nature that keeps numbers of levels, or of cells of them
memory_of_levels: Any = property(lambda self: "O(t)" if self.cells is None else "O(cells)")


def level_nature(
    move: Any, hear: Any, given: Sequence[float], *, numbers: int = 2, own: float = 0.0, cells: int | None = None,
    note: int = 0, classes: int = 0,
) -> steps.Nature:  # fmt: skip
    """A nature that sees the law and keeps this many numbers of each drawn level, or cell."""
    most = math.inf if cells is None else cells + 1

    def grows(coming: steps.Coming) -> int:
        return BEGIN + (1 + numbers) * (int(min(coming.asked, coming.levels, most)) + 1)

    first, given = [0.0, 0.0, own], [1 + numbers, cells or 0, *given]
    return steps.Nature(
        move, first, given, sight=Sight.LAW, hear=hear, note=note, classes=classes, grows=grows
    )


#: the cell of a value, in steps
cell_of = kernel(cells_of)


@kernel
def first_from(rows, low, high, key):
    """The first of some rows with a key that is not below this one."""
    while low < high:
        middle = (low + high) >> 1
        if rows[middle, 0] < key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def found(run, value):
    """The rows, the key of a level, and the place of its row. If it is new, that is a level to come."""
    mine, wide, cells = state(run), int(shared(run)[WIDE]), int(shared(run)[CELLS])
    rows = mine[BEGIN : BEGIN + (len(mine) - BEGIN) // wide * wide].reshape(-1, wide)
    many, settled, key = int(mine[MANY]), int(mine[SETTLED]), float(cell_of(value, cells)) if cells else value
    k = first_from(rows, 0, settled, key)
    if k == settled or rows[k, 0] != key:
        k = first_from(rows, settled, many, key)
        if k < many and rows[k, 0] != key:
            k = many
    return rows, key, k


@kernel
def level(run, value):
    """The numbers of a level; zeros if it is new."""
    rows, _, k = found(run, value)
    return rows[k, 1:]


@kernel
def own_level(run, value):
    """The numbers of a level, which is entered if it is new."""
    mine, (rows, key, k) = state(run), found(run, value)
    if k == int(mine[MANY]):
        k = entered(mine, rows, key)
    return rows[k, 1:]


@kernel
def drawn_level(run, value, residual):
    """The numbers of a level, with a round in which it was drawn."""
    numbers = own_level(run, value)
    numbers[DRAWN] += 1.0
    numbers[BIAS] += residual
    return numbers


@kernel
def entered(mine, rows, key):
    """The place of a level that is new, which becomes a newcomer; if these are many now, all are settled."""
    settled, many = int(mine[SETTLED]), int(mine[MANY])
    k = first_from(rows, settled, many, key)
    rows[k + 1 : many + 1] = rows[k:many]
    rows[k], rows[k, 0], many = 0.0, key, many + 1
    mine[MANY] = many
    # So a level costs a number of moves of order √MANY in the mean, and few levels are searched once.
    if 4 * (many - settled) ** 2 <= settled:
        return k
    news = rows[settled:many].copy()
    for left in range(len(news) - 1, -1, -1):
        k = first_from(rows, 0, settled, news[left, 0])
        rows[k + left + 1 : settled + left + 1] = rows[k:settled]
        rows[k + left], settled = news[left], k
    mine[SETTLED] = many
    return first_from(rows, 0, many, key)


@kernel
def ends_of(run, size):
    """The lowest and the highest forecast of a law."""
    (values, weights), lowest, highest = law(run), np.inf, -np.inf
    for j in range(size):
        if weights[j] > 0.0:
            lowest, highest = min(lowest, values[j]), max(highest, values[j])
    return lowest + 0.0, highest + 0.0  # −0 is the level 0


def count_round(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    drawn_level(run, forecast, outcome - forecast)
    return 0
