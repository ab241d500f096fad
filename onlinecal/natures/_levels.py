"""Levels that have been forecast, in order, with numbers that a nature keeps of each."""

from typing import Any

import numpy as np

from onlinecal.core.arrays import cells as cells_of
from onlinecal.core.guarantee import Sight
from onlinecal.engine import steps
from onlinecal.engine.steps import kernel, law

#: the state of a nature with levels: how many there are, how many are settled, one number of its own. Then come
#: the levels, each with its value and the numbers that the nature keeps of it. The settled ones are in ascending order;
#: the newcomers behind them, a few, also are. Behind all are zeros, as of a level to come.
MANY, SETTLED, OWN, BEGIN = range(4)


def level_nature(
    move: Any,
    hear: Any,
    shared: Any,
    *,
    numbers: int = 1,
    own: float = 0.0,
    cells: int | None = None,
    note: int = 0,
) -> steps.Nature:
    """A nature that sees the law and keeps this many numbers of each drawn level, or one of each cell."""
    if cells is not None:
        return steps.Nature(move, [0.0] * (cells + 1), shared, sight=Sight.LAW, hear=hear, note=note)

    def grows(coming: steps.Coming) -> int:
        return BEGIN + (1 + numbers) * (int(min(coming.asked, coming.levels)) + 1)

    return steps.Nature(move, [0.0, 0.0, own], shared, sight=Sight.LAW, hear=hear, note=note, grows=grows)


#: the cell of a value, in steps
cell_of = kernel(cells_of)


@kernel
def ends_of(run, size):
    """The lowest and the highest forecast of a law."""
    (values, weights), lowest, highest = law(run), np.inf, -np.inf
    for j in range(size):
        if weights[j] > 0.0:
            lowest, highest = min(lowest, values[j]), max(highest, values[j])
    return lowest + 0.0, highest + 0.0  # −0 is the level 0


@kernel
def first_from(mine, wide, value, low, high):
    """The number of the first level from `low` on that is not below a value; each takes `wide` places."""
    while low < high:
        middle = (low + high) >> 1
        if mine[BEGIN + middle * wide] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def place_of(mine, wide, value):
    """The place of the numbers of a level; if it is new, of those of a level to come."""
    many, settled = int(mine[MANY]), int(mine[SETTLED])
    k = first_from(mine, wide, value, 0, settled)
    if k == settled or mine[BEGIN + k * wide] != value:
        k = first_from(mine, wide, value, settled, many)
        if k < many and mine[BEGIN + k * wide] != value:
            k = many
    return BEGIN + k * wide + 1


@kernel
def entered(mine, wide, value):
    """The place of the numbers of a level, which is entered if it is new."""
    at = place_of(mine, wide, value)
    if at == BEGIN + int(mine[MANY]) * wide + 1:
        return enter_new(mine, wide, value)
    return at


@kernel
def enter_new(mine, wide, value):
    """The same of a level that is new."""
    many, settled = int(mine[MANY]), int(mine[SETTLED])
    at = BEGIN + first_from(mine, wide, value, settled, many) * wide
    for i in range(BEGIN + many * wide - 1, at - 1, -1):  # the newcomers above move up
        mine[i + wide] = mine[i]
    mine[at], mine[at + 1 : at + wide] = value, 0.0
    mine[MANY] += 1.0
    # So a level costs a number of moves of order √MANY in the mean, and few levels are searched once.
    if 4 * (many + 1 - settled) ** 2 > settled:
        settle(mine, wide)
        at = BEGIN + first_from(mine, wide, value, 0, many + 1) * wide
    return at + 1


@kernel
def settle(mine, wide):
    """Merges the newcomers into the others, from the highest down."""
    own, end = BEGIN + int(mine[SETTLED]) * wide, BEGIN + int(mine[MANY]) * wide
    news = mine[own:end].copy()
    left = len(news)
    while left > 0:
        end -= wide
        if own > BEGIN and mine[own - wide] > news[left - wide]:
            own -= wide
            for i in range(wide):
                mine[end + i] = mine[own + i]
        else:
            left -= wide
            for i in range(wide):
                mine[end + i] = news[left + i]
    mine[SETTLED] = mine[MANY]
