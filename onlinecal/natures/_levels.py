"""Levels that have been forecast, in a hash table of each run, with numbers that a nature keeps of each.

Levels are told apart by all bits of their value, and numbered in the order in which they come. The whole numbers of the
state are the number of levels, room for them and the mask of the table. Then come the levels looked up last, the bits
of each level, and the table of numbers plus 1. The floats are a few of the nature's own, and then, column after column,
those of the levels.
"""

from typing import Any

import numpy as np

from onlinecal.core._compile import index, kernel, part_of_kernel
from onlinecal.core.arrays import cells as cells_of
from onlinecal.core.guarantee import Sight
from onlinecal.engine2 import steps as new
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.steps import Memory, Step, ints, law_values, law_weights
from onlinecal.rounds.words import bits_of

#: levels that a fresh state has room for, and places of its table in use; powers of two
FIRST, PLACES = 64, 32
#: the first whole numbers of the state
LEVELS, ROOM, MASK, LAST = range(4)
#: how many levels that were looked up last are kept: one for each value of a law that has two
LASTS = 2
HEAD = LAST + LASTS


def make_room(memory: Memory, more: int) -> None:
    """Makes room for new levels, and one more with numbers of 0: that of a level to come."""
    levels, had = int(memory.ints[:, LEVELS].max()), int(memory.ints[0, ROOM])
    if levels + more < had:
        return
    # More than is needed, so that what is copied stays in proportion to what is played.
    room = 1 << (levels + more).bit_length()
    columns, own = divmod(memory.floats.shape[1], had)
    ints = np.zeros((memory.runs, HEAD + 3 * room), np.int64)
    floats = np.zeros((memory.runs, own + columns * room))
    places = int(memory.ints[:, MASK].max()) + 1
    for there, here, length in ((0, 0, HEAD + levels), (HEAD + had, HEAD + room, places)):
        ints[:, here : here + length] = memory.ints[:, there : there + length]
    for there, here, length in (
        (0, 0, own),
        *((own + k * had, own + k * room, levels) for k in range(columns)),
    ):
        floats[:, here : here + length] = memory.floats[:, there : there + length]
    ints[:, ROOM] = room
    memory.ints, memory.floats = ints, floats


def level_player(
    move: Step, hear: Step, *, columns: int = 1, own: Any = (), cells: int | None = None, **more: Any
) -> CompiledNature:
    """A nature that sees the law, and enters the level of each drawn forecast into its table, or counts in cells."""
    if cells is not None:
        return CompiledNature(move, Memory(floats=cells + 1, **more), sight=Sight.LAW, hear=hear)
    ints, numbers = [0, FIRST, PLACES - 1] + [0] * (LASTS + 3 * FIRST), [*own] + [0.0] * (columns * FIRST)
    memory = Memory(ints=ints, floats=numbers, **more)
    return CompiledNature(move, memory, sight=Sight.LAW, hear=hear, reserve=make_room, grows_with="levels")


@part_of_kernel
def ends(run, size):
    """The places of the lowest and of the highest forecast of a law."""
    values, weights = law_values(run), law_weights(run)
    lowest = highest = -1
    for j in range(size):
        if weights[j] > 0.0:
            if lowest < 0 or values[j] < values[lowest]:
                lowest = j
            if highest < 0 or values[j] > values[highest]:
                highest = j
    return lowest, highest


@part_of_kernel
def find(run, j):
    """The number of the level of the law's j-th value; if it is new, that which it would have."""
    state, bits, last = ints(run), _bits(law_values(run)[j]), LAST + j % LASTS
    if state[index(HEAD + state[last])] != bits:
        return _found(run, last, bits)
    return state[last]


@part_of_kernel
def enter(run, forecast):
    """The number of the level of the drawn forecast, entered if it is new."""
    state, bits = ints(run), _bits(forecast)
    # Without a branch, as it cannot be predicted.
    at = state[index(LAST + np.int64(state[index(HEAD + state[LAST])] != bits))]
    if state[index(HEAD + at)] != bits or state[LEVELS] == 0:
        return _entered(run, bits)
    return at


@part_of_kernel
def _bits(value):
    """The bits of a value; the level of −0 is that of 0."""
    return bits_of(value + 0.0)


@kernel
def _found(run, last, bits):
    """The same as `find`, for a level that was not looked up last."""
    state = ints(run)
    level = state[HEAD + state[ROOM] + _place(state, bits)] - 1
    if level < 0:
        return state[LEVELS]
    state[last] = level
    return level


@kernel
def _entered(run, bits):
    """The same as `enter`, for a level that was not looked up last."""
    state = ints(run)
    table = HEAD + state[ROOM]
    at = table + _place(state, bits)
    if state[at] == 0:
        level = state[LEVELS]
        state[HEAD + level] = bits
        state[LEVELS] = state[at] = level + 1
        if 4 * level > state[MASK] and state[MASK] < state[ROOM]:
            _spread(state)
        return level
    return state[at] - 1


@part_of_kernel
def _place(state, bits):
    """Where in the table these bits are, or where they would go; there is always a free place."""
    mask, table = state[MASK], HEAD + state[ROOM]
    # Folded to 31 bits, so that the product fits in 63.
    at = (((bits ^ (bits >> 31)) & 0x7FFFFFFF) * 0x9E3779B1 >> 24) & mask
    while state[table + at] != 0 and state[HEAD + state[table + at] - 1] != bits:
        at = (at + 1) & mask
    return at


@kernel
def _spread(state):
    """Uses twice as many places of the table, which has twice as many as there can be levels."""
    table, mask = HEAD + state[ROOM], state[MASK]
    state[MASK] = 2 * mask + 1
    for i in range(mask + 1):
        state[table + i] = 0
    for level in range(state[LEVELS]):
        state[table + _place(state, state[HEAD + level])] = level + 1


# ---------------------------------------------------------------- levels in order

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
) -> new.Nature:
    """A nature that sees the law and keeps this many numbers of each drawn level, or one of each cell."""
    if cells is not None:
        return new.Nature(move, [0.0] * (cells + 1), shared, sight=Sight.LAW, hear=hear, note=note)

    def grows(coming: new.Coming) -> int:
        return BEGIN + (1 + numbers) * (int(min(coming.asked, coming.levels)) + 1)

    return new.Nature(move, [0.0, 0.0, own], shared, sight=Sight.LAW, hear=hear, note=note, grows=grows)


#: the cell of a value, in steps
cell_of = new.kernel(cells_of)


@new.kernel
def ends_of(run, size):
    """The lowest and the highest forecast of a law."""
    (values, weights), lowest, highest = new.law(run), np.inf, -np.inf
    for j in range(size):
        if weights[j] > 0.0:
            lowest, highest = min(lowest, values[j]), max(highest, values[j])
    return lowest + 0.0, highest + 0.0  # −0 is the level 0


@new.kernel
def first_from(mine, wide, value, low, high):
    """The number of the first level from `low` on that is not below a value; each takes `wide` places."""
    while low < high:
        middle = (low + high) >> 1
        if mine[BEGIN + middle * wide] < value:
            low = middle + 1
        else:
            high = middle
    return low


@new.kernel
def place_of(mine, wide, value):
    """The place of the numbers of a level; if it is new, of those of a level to come."""
    many, settled = int(mine[MANY]), int(mine[SETTLED])
    k = first_from(mine, wide, value, 0, settled)
    if k == settled or mine[BEGIN + k * wide] != value:
        k = first_from(mine, wide, value, settled, many)
        if k < many and mine[BEGIN + k * wide] != value:
            k = many
    return BEGIN + k * wide + 1


@new.kernel
def entered(mine, wide, value):
    """The place of the numbers of a level, which is entered if it is new."""
    at = place_of(mine, wide, value)
    if at == BEGIN + int(mine[MANY]) * wide + 1:
        return enter_new(mine, wide, value)
    return at


@new.kernel
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


@new.kernel
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
