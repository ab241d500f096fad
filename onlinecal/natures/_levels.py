"""What natures keep of each level that has been forecast: a hash table for each run, with numbers beside the keys.

Levels are told apart by all bits of their value. Keys and numbers take 8 bytes each; the table doubles when it is half
full.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel
from onlinecal.forecasters.base import Floats, Ints

#: entries of a fresh table; a power of two
FIRST = 64
#: no level: the bits of a forecast are never negative
EMPTY = -1


def fresh(runs: int, cells: int | None = None) -> tuple[Ints, Floats]:
    """Empty keys and their numbers; with `cells` the numbers are those of cells and the keys stay empty."""
    return np.full((runs, FIRST), EMPTY, np.int64), np.zeros((runs, FIRST if cells is None else cells + 1))


def doubled(keys: Ints, *values: Floats) -> tuple[NDArray[Any], ...]:
    """The same entries, of one or several arrays of numbers, in a table of twice the size."""
    runs, places = keys.shape
    wider: NDArray[np.int64] = np.full((runs, 2 * places), EMPTY, np.int64)
    moved = [np.zeros((runs, 2 * places)) for _ in values]
    for old, new in zip(values, moved, strict=True):
        _rehash(keys, old, wider, new)
    return (wider, *moved)


@kernel
def place(keys, r, bits):
    """Where a level is in the table of run r, or where it would go; there is always a free place."""
    mask = keys.shape[1] - 1
    # Folded to 31 bits, so that the product fits in 63; its upper bits depend on all those below, in which grid
    # values differ.
    at = (((bits ^ (bits >> 31)) & 0x7FFFFFFF) * 0x9E3779B1 >> 24) & mask
    while keys[r, at] != bits and keys[r, at] != EMPTY:
        at = (at + 1) & mask
    return at


@kernel
def _rehash(keys, sums, new_keys, new_sums):
    for r in range(keys.shape[0]):
        for i in range(keys.shape[1]):
            if keys[r, i] != EMPTY:
                at = place(new_keys, r, keys[r, i])
                new_keys[r, at] = keys[r, i]
                new_sums[r, at] = sums[r, i]
