"""The row of floats that a player has in each run; a step is given a pointer to it.

    header | state | places of parts | rows of parts | values of the law | weights | notes

A header says where the others begin and end. Places are whole numbers and count from the row's own header. They may
lead beyond the row, always forward. Numbers that all runs share are there once, behind the last row. So is a
forecaster's table of points. A nature reads the law and the table of the forecaster, whose row follows. A part has a
piece of the note and of the law of its whole. Whole numbers are the same memory seen by `.view(np.int64)`. This file
alone knows the layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import carray, config, types
from numba.extending import models, register_model

from onlinecal.core._compile import STATE, kept, linked
from onlinecal.core.arrays import Floats

#: raised with each change of what compiled code knows of a row
LAYOUT = 3
#: the header: where the state ends and places of parts begin; where shared numbers begin and end; where the table of
#: points begins and ends. Then come values and weights, and how many there are at most. Then come the note of the
#: question at hand, the first note, and the numbers of a note. Last comes the generator of the run's own uniforms.
PARTS, SHARED, SHARED_END, POINTS, POINTS_END, VALUES, WEIGHTS, ATOMS, NOTE, NOTES, KEPT, GENERATOR = range(
    12
)
HEADER = 19


def stamp() -> str:
    """The layout, whether ends are checked, and the state of the package."""
    checked = ".checked" if config.BOUNDSCHECK else ""  # type: ignore[attr-defined]
    return f"{LAYOUT}{checked}.{STATE}"


class RowPointer(types.CPointer):
    """The type of a pointer to a row, with the `stamp` in its key.

    Numba keeps machine code on disk by the file of a function and by its types. So cached code of another package or
    layout is never found, also that of users' steps.
    """

    def __init__(self, stamp: str) -> None:
        self.stamp = stamp
        super().__init__(types.float64)
        self.name = f"row_{stamp}"  # by which types of functions of it are told apart

    @property
    def key(self) -> tuple[Any, ...]:
        return self.dtype, self.addrspace, self.stamp


register_model(RowPointer)(models.PointerModel)
RUN = RowPointer(stamp())
#: in the signatures of steps, for readers and checkers of types
Run = Any


if TYPE_CHECKING:
    # Kernels are written without types: numba finds them where they are called.
    from typing import no_type_check as accessor
    from typing import no_type_check as kernel
else:

    def kernel(function: Any) -> Any:
        """Marks a function that steps call. Its machine code is kept as a part of theirs."""
        return linked(function)

    def accessor(function: Any) -> Any:
        """The same, without a call."""
        return linked(function, forceinline=True)


@accessor
def places(run):
    """The whole numbers of the header."""
    return carray(run, HEADER).view(np.int64)


@accessor
def state(run):
    """The run's own numbers."""
    return carray(run, places(run)[PARTS])[HEADER:]


@accessor
def shared(run):
    """Numbers that are the same in all runs, only to be read."""
    at = places(run)
    return carray(run, at[SHARED_END])[at[SHARED] :]


@accessor
def table(run):
    """The points of a forecaster of K classes, only to be read: class k of point i is at i·K + k."""
    at = places(run)
    return carray(run, at[POINTS_END])[at[POINTS] :]


@accessor
def note(run):
    """The numbers that are kept with the question at hand."""
    at = places(run)
    return carray(run, at[NOTE] + at[KEPT])[at[NOTE] :]


@accessor
def law(run):
    """The values and the weights of the law."""
    at = places(run)
    values, weights, atoms = at[VALUES], at[WEIGHTS], at[ATOMS]
    return carray(run, values + atoms)[values:], carray(run, weights + atoms)[weights:]


@accessor
def generator(run):
    """The generator of the run's own uniforms, as `uniforms` says."""
    return carray(run, HEADER)[GENERATOR:]


@accessor
def take_note(run, slot):
    """Makes the note of this open question the one at hand."""
    at = places(run)
    at[NOTE] = at[NOTES] + slot * at[KEPT]


def _pointer(run: Any) -> Any:
    return run


#: a pointer to the first number of a vector, given `vector.ctypes`
pointer = kept(_pointer, RUN(RUN))


@accessor
def inner(run, k, first, atom):
    """The row of part k. Its note begins at place `first` of that of the whole, its law at that atom."""
    own = places(run)
    at = carray(run, own[PARTS] + k + 1).view(np.int64)[own[PARTS] + k]
    part = pointer(carray(run, at + HEADER)[at:].ctypes)
    of = places(part)
    of[NOTE] = own[NOTE] + first - at
    of[VALUES], of[WEIGHTS], of[ATOMS] = own[VALUES] + atom - at, own[WEIGHTS] + atom - at, own[ATOMS] - atom
    return part


def width(player: Any, open: int, atoms: int) -> int:
    """How many numbers the row of a player has, for this many open questions and atoms of a law."""
    own = HEADER + player.state.shape[1] + len(player.parts) + 2 * atoms + open * player.note
    return int(own) + sum(width(part, 0, 0) for part in player.parts)


def shared_width(player: Any) -> int:
    """How many numbers its runs share."""
    table = 0 if player.own_table else player.table.size
    return len(player.shared) + table + sum(map(shared_width, player.parts))


def make_rows(runs: int, wide: int, common: int) -> tuple[Floats, Floats]:
    """Rows of zeros, and room for this many shared numbers behind them."""
    room: Floats = np.zeros(runs * wide + common)
    return room[: runs * wide].reshape(runs, wide), room[runs * wide :]


def lay(player: Any, rows: Floats, open: int, atoms: int, common: Floats, far: int) -> Floats:
    """Lays a player into rows that are zero: its state and notes are views of them from now on.

    Its shared numbers come to `common`, this far from the header of the first row. Returns the rest of `common`.
    """
    parts = HEADER + player.state.shape[1]
    at, heads = parts + len(player.parts), rows.view(np.int64)
    common, far = put(rows, SHARED, player.shared, common, far)
    if player.own_table:
        heads[:, POINTS], heads[:, POINTS_END] = HEADER, HEADER + player.table.size
    else:
        common, far = put(rows, POINTS, player.table, common, far)
    for k, part in enumerate(player.parts):
        wide, left = width(part, 0, 0), len(common)
        heads[:, parts + k], part.whole = at, player
        common = lay(part, rows[:, at : at + wide], 0, 0, common, far - at)
        at, far = at + wide, far + left - len(common)
    notes = at + 2 * atoms
    heads[:, PARTS], heads[:, VALUES:GENERATOR] = parts, (at, at + atoms, atoms, notes, notes, player.note)
    rows[:, GENERATOR:HEADER] = player.generators
    rows[:, HEADER:parts] = player.state
    kept = min(player.notes.shape[1], open * player.note)
    rows[:, notes : notes + kept] = player.notes[:, :kept]
    player.rows, player.notes = rows, rows[:, notes : notes + open * player.note]
    player.state, player.laid = rows[:, HEADER:parts], True
    player.generators = rows[:, GENERATOR:HEADER]
    return common


def put(rows: Floats, place: int, numbers: Floats, common: Floats, far: int) -> tuple[Floats, int]:
    """Writes numbers that the runs share, and from `place` on in the headers where they begin and end.

    Returns the rest of `common`, and how far it is.
    """
    own, heads = numbers.size, rows.view(np.int64)
    heads[:, place] = far - np.arange(len(rows)) * (rows.strides[0] // rows.itemsize)
    heads[:, place + 1] = heads[:, place] + own
    common[:own] = numbers.ravel()
    return common[own:], far + own


def point_to_law(rows: Floats, mine_from: int) -> None:
    """Has natures at the beginning of these rows read law and table in the rows of the forecasters behind."""
    heads = rows.view(np.int64)
    for place in (POINTS, POINTS_END, VALUES, WEIGHTS):
        heads[:, place] = mine_from + heads[:, mine_from + place]
    heads[:, ATOMS] = heads[:, mine_from + ATOMS]
