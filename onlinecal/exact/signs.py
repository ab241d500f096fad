"""The sign preservation game: one player points at cells of a row, the other writes signs into them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import count

#: the longest row, and the most rounds on it: half a minute and 200 MB
CELLS, ROUNDS = 14, 200

#: what `SignGame.cell` says where pointing at no cell is better
STOP = -1


@dataclass(frozen=True)
class SignGame:
    """A solved game.

    Attributes
    ----------
    values : (rounds + 1,) ints
        Signs that are left in the end under optimal play, for 0, 1, …, `rounds` rounds.
    """

    cells: int
    rounds: int
    reuse: bool
    values: NDArray[np.int64]
    #: (rounds + 1, states): the value, and the cell to point at, of every state
    tables: tuple[NDArray[np.int8], NDArray[np.int8]] = field(repr=False, compare=False)

    @property
    def value(self) -> int:
        """The value with all the rounds."""
        return int(self.values[-1])

    def at(self, signs: Sequence[int], left: int) -> tuple[int, int]:
        """The number of signs that are left in the end, and the cell to point at now."""
        row, left = [int(sign) for sign in signs], count("left", left, 0, self.rounds)
        marks = [sign for sign in row if sign]
        size = len(row) == self.cells or (len(row) < self.cells and not self.reuse)
        if not size or not {*row} <= {-1, 0, 1} or marks != sorted(marks, reverse=True):
            expected = f"{self.cells} of 1, 0 and -1, every 1 to the left of every -1"
            raise InvalidParameter(f"signs = {row}; expected {expected}")
        mask = sum(1 << i for i, sign in enumerate(row) if sign)
        place = _first(len(row)) * (not self.reuse) + mask * (len(row) + 1) + marks.count(1)
        return int(self.tables[0][left, place]), int(self.tables[1][left, place])


def _first(length: int) -> int:
    """The place at which the states of rows of this length begin."""
    return sum((1 << shorter) * (shorter + 1) for shorter in range(length))


@lru_cache(maxsize=8)
def sign_preservation(cells: int, rounds: int, *, reuse: bool = True) -> SignGame:
    r"""The exact value of the sign preservation game.

    There are `cells` cells in a row, all empty, and up to `rounds` rounds. In each the first player points at an empty
    cell, or ends the game; the second writes + or − into it. Then every − to the left of the cell and every + to its
    right is taken away. In the end the first player gets the number of signs that are left. Without `reuse` no cell is
    pointed at twice; with it, cells without their signs are empty again.

    In the calibration game cells are probabilities. Nature tosses coins of one of them for a while, and the forecaster
    chooses the sign of its bias Σ (y − p). Outcomes of a larger mean repair negative biases to the left, others
    positive ones to the right. The forecaster cannot repair the rest.

    Source: Qiao and Valiant 2021, "Stronger calibration lower bounds via sidestepping", without reuse; Dagan et al.
    2025, "Breaking the T^{2/3} barrier for sequential calibration", with it. Values by backward induction. After every
    move all + are to the left of the cell and all − to its right. So a state is the set of cells with signs and the
    number of +. Without reuse, cells that have lost their signs do not count. Deviations: the rules are derived from
    the calibration game as told above. The papers' abstracts alone were at hand; the rules have not been compared with
    the full texts.

    Parameters
    ----------
    cells : int
        From 1 to 14.
    rounds : int
        From 0 to 200.
    reuse : bool, default True

    Examples
    --------
    >>> [sign_preservation(n, 20).value for n in range(1, 7)]
    [1, 1, 2, 2, 3, 3]
    """
    cells, rounds = count("cells", cells, 1, CELLS), count("rounds", rounds, 0, ROUNDS)
    firsts = np.array([0 if reuse else _first(n) for n in range(cells + 2)], np.int64)
    states = (1 << cells) * (cells + 1) if reuse else int(firsts[-1])
    values, points = np.zeros((rounds + 1, states), np.int8), np.full((rounds + 1, states), STOP, np.int8)
    _signs_now(cells, reuse, firsts, values[0])
    for left in range(1, rounds + 1):
        _one_round(cells, reuse, firsts, values[0], values[left - 1], values[left], points[left])
    empty = values[:, firsts[cells]].astype(np.int64)
    return SignGame(cells, rounds, bool(reuse), locked(empty), (locked(values), locked(points)))


@kernel
def marked(mask):
    found = 0
    while mask:
        mask &= mask - 1
        found += 1
    return found


@kernel
def written(mask, plus, cell):
    """The cells of which + and − stay when this one gets a sign; `plus` of the signs, the leftmost, are +."""
    first, rest = 0, mask
    for _ in range(plus):
        first |= rest & -rest
        rest &= rest - 1
    return first & ((1 << cell) - 1), rest & ~((2 << cell) - 1)


@kernel
def _signs_now(cells, reuse, firsts, values):
    for length in range(cells if reuse else 0, cells + 1):
        for mask in range(1 << length):
            for plus in range(length + 1):
                values[firsts[length] + mask * (length + 1) + plus] = marked(mask)


@kernel
def _one_round(cells, reuse, firsts, now, earlier, values, points):
    for length in range(cells if reuse else 0, cells + 1):
        for mask in range(1 << length):
            for plus in range(marked(mask) + 1):
                at = firsts[length] + mask * (length + 1) + plus
                best, point = now[at], -1
                for cell in range(length):
                    if mask >> cell & 1:
                        continue
                    left, right = written(mask, plus, cell)
                    stays, row = left | right | (1 << cell), length
                    if not reuse:
                        # Without the cells that lose their signs.
                        gone, stays, row = mask & ~stays, 0, 0
                        for i in range(length):
                            if not gone >> i & 1:
                                if (left | right | (1 << cell)) >> i & 1:
                                    stays |= 1 << row
                                row += 1
                    minus = firsts[row] + stays * (row + 1) + marked(left)
                    value = min(earlier[minus], earlier[minus + 1])
                    if value > best:
                        best, point = value, cell
                values[at], points[at] = best, point


def sign_table(cells: int, rounds: int) -> Any:
    """The cells to point at with reuse, for steps of players: (rounds + 1) × states, by left, signs, and how many +."""
    return sign_preservation(cells, rounds).tables[1].astype(np.int64).ravel()
