"""What natures keep of each level that has been forecast: a hash table for each run, with numbers beside the keys.

Levels are told apart by all bits of their value. The whole numbers of the state are how many levels there are, and the
keys; the others are a few numbers of the nature's own and then, column after column, the numbers beside the keys, 8
bytes each. The engine asks for room before it plays on, and the table then doubles until no more than half of it can be
taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.rounds.steps import Memory, ints, law_values

#: entries of a fresh table; a power of two
FIRST = 64
#: no level: the bits of a forecast are never negative
EMPTY = -1


def level_table(runs: int, *, columns: int = 1, own: Any = (), **more: Any) -> Memory:
    """Memory with an empty table.

    Parameters
    ----------
    runs : int
    columns : int, default 1
        How many numbers stand beside each key; 0 at first.
    own : sequence of float, optional
        The nature's own numbers, fewer than `FIRST`; they stand before the columns.
    **more
        For `Memory`.
    """
    numbers = [*own] + [0.0] * (columns * FIRST)
    return Memory(runs, ints=[0] + [EMPTY] * FIRST, floats=numbers, **more)


def make_room(memory: Memory, rounds: int) -> None:
    """Tables in which no more than half of the places are taken after so many rounds."""
    needed = 2 * (int(memory.ints[:, 0].max()) + rounds)
    had = memory.ints.shape[1] - 1
    if needed <= had:
        return
    # More than is needed, so that what is copied stays in proportion to what is played.
    places = 1 << needed.bit_length()
    columns, own = divmod(memory.floats.shape[1], had)
    old_ints, old_floats = memory.ints, memory.floats
    memory.ints = np.full((memory.runs, 1 + places), EMPTY, np.int64)
    memory.ints[:, 0] = old_ints[:, 0]
    memory.floats = np.zeros((memory.runs, own + columns * places))
    memory.floats[:, :own] = old_floats[:, :own]
    _rehash(old_ints[:, 1:], old_floats[:, own:], memory.ints[:, 1:], memory.floats[:, own:], columns)


@kernel
def find(run, j):
    """Where the level of the law's j-th value is in the table, or where it would go."""
    values = law_values(run)
    # The level of −0 is that of 0, as in the forecasts that are drawn.
    return _place(ints(run)[1:], values.view(np.int64)[j] if values[j] > 0.0 else 0)


@kernel
def enter(run, size, forecast):
    """Where the level of the drawn forecast is, entered if it is new; −1 where the law has no such value."""
    # The forecast is a value of the law; where it stands there its bits can be read.
    values = law_values(run)
    for j in range(size):
        if values[j] == forecast:
            at, state = find(run, j), ints(run)
            if state[1 + at] == EMPTY:
                state[1 + at] = values.view(np.int64)[j] if values[j] > 0.0 else 0
                state[0] += 1
            return at
    return -1


@kernel
def _place(keys, bits):
    """Where these bits are, or where they would go; there is always a free place."""
    mask = len(keys) - 1
    # Folded to 31 bits, so that the product fits in 63; its upper bits depend on all those below, in which grid
    # values differ.
    at = (((bits ^ (bits >> 31)) & 0x7FFFFFFF) * 0x9E3779B1 >> 24) & mask
    while keys[at] != bits and keys[at] != EMPTY:
        at = (at + 1) & mask
    return at


@kernel
def _rehash(keys, numbers, new_keys, new_numbers, columns):
    had, places = keys.shape[1], new_keys.shape[1]
    for r in range(keys.shape[0]):
        for i in range(had):
            if keys[r, i] != EMPTY:
                at = _place(new_keys[r], keys[r, i])
                new_keys[r, at] = keys[r, i]
                for column in range(columns):
                    new_numbers[r, column * places + at] = numbers[r, column * had + i]
