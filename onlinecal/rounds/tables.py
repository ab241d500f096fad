"""What steps find the state of a run by: a table of addresses and lengths, filled for one run after the other."""

from __future__ import annotations

from onlinecal.core._compile import kernel
from onlinecal.rounds.steps import (
    ATOMS,
    FLOATS,
    INTS,
    KEYS,
    SCRATCH,
    SHARED,
    SHARED_INTS,
    VALUES,
    WEIGHTS,
    address_of,
)


@kernel
def give(fields, r, arrays, room, atoms, values, weights):
    """Makes `fields` the run r of these arrays, with room and law of its own."""
    ints, floats, shared_ints, shared, keys = arrays
    fields[INTS], fields[INTS + 1] = address_of(ints) + 8 * r * ints.shape[1], ints.shape[1]
    fields[FLOATS], fields[FLOATS + 1] = address_of(floats) + 8 * r * floats.shape[1], floats.shape[1]
    fields[SHARED_INTS], fields[SHARED_INTS + 1] = address_of(shared_ints), len(shared_ints)
    fields[SHARED], fields[SHARED + 1] = address_of(shared), len(shared)
    fields[KEYS], fields[KEYS + 1] = address_of(keys) + 16 * r, 2
    fields[SCRATCH], fields[SCRATCH + 1] = address_of(room), len(room)
    fields[ATOMS], fields[ATOMS + 1] = address_of(atoms), len(atoms)
    fields[VALUES], fields[VALUES + 1] = address_of(values), len(values)
    fields[WEIGHTS], fields[WEIGHTS + 1] = address_of(weights), len(weights)


@kernel
def give_row(fields, place, rows, r):
    """Makes row r of a (runs, n) array the run's context or memo."""
    fields[place], fields[place + 1] = address_of(rows) + 8 * r * rows.shape[1], rows.shape[1]


@kernel
def first_above(values, x):
    """The place of the first of some ascending numbers that is above x; their number where none is."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low
