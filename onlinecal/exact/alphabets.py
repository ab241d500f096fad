"""States of a game as words: at each grid point one letter, which a round there replaces by another.

A letter costs the least number of rounds in which its point can come to it. Where a round can be lost without a trace
(played at 0 with y = 0), t rounds reach the words of cost at most t; where letters count rounds, those of cost t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: numbers of rounds left for which the letters of each point are kept
KEPT = 4


@dataclass(frozen=True)
class Letters:
    """The letters of one point with r rounds left."""

    cost: Ints
    stay: Ints
    turn: Ints
    shift: Floats
    mirror: Ints


class Alphabet(Protocol):
    """The letters of all points, for any number of rounds left."""

    #: steps of the grid
    m: int
    #: the points that have more than one letter
    points: tuple[int, ...]
    #: the others, at which a round changes nothing but the total
    fixed_points: tuple[int, ...]
    #: (fixed points, 2): what a round there adds to the total with outcome 0, and with 1
    fixed: Floats
    #: whether all words of t rounds have cost t
    counted: bool
    #: whether the total is counted when it comes, and not from the letters at the end
    separate: bool

    def letters(self, point: int, left: int) -> Letters:
        """The letters of one point with `left` ≥ 1 rounds left."""

    def costs(self, point: int, left: int) -> Ints:
        """Their costs alone, also for `left` = 0."""

    def letter(self, point: int, left: int, value: Any) -> int:
        """The letter of a bias m·E, or of (n, s) rounds and outcomes 1; −1 without one."""

    def rounds(self, point: int, value: Any) -> int:
        """The least number of rounds in which a point can come to that; more than the horizon where it cannot."""

    def values(self, point: int, left: int) -> Any:
        """The biases m·E of the letters, or rows (n, s)."""

    def shorter(self, horizon: int) -> Alphabet:
        """The same for a game of another length."""

    def tables(self) -> float:
        """Bytes of the tables of letters."""


class Biases:
    """Letters are the biases m·E_i = Σ (m·y − i) of each point."""

    counted = False

    def __init__(self, m: int, horizon: int, separate: bool) -> None:
        self.m, self.horizon, self.separate = m, horizon, separate
        #: points with one letter: at 0 the outcome 1 costs 1 for ever, and at m the outcome 0
        fixed = {0: (0.0, 1.0), m: (1.0, 0.0)} if separate else {}
        if m == 1:
            fixed.pop(0, None)  # so that there is a word
        self.points = tuple(i for i in range(m + 1) if i not in fixed)
        self.fixed_points = tuple(fixed)
        self.fixed = np.array(list(fixed.values())).reshape(-1, 2)
        self._kept: dict[tuple[int, int], tuple[Ints, Ints, Ints]] = {}

    @cached_property
    def _least(self) -> list[tuple[Ints, Ints]]:
        """For each point all biases of at most T rounds, and the least number of rounds for each, ascending in that."""
        found = []
        for i in range(self.m + 1):
            # Rounds with biases that cancel are no part of the cheapest: fewer than `ones` outcomes 1, or `zeros` 0.
            common = math.gcd(self.m, i)
            ones, zeros = i // common, (self.m - i) // common
            most = self.horizon + 1
            few = [(np.arange(s, most), s) for s in range(min(ones, most))]
            many = [(np.arange(ones, most - z) + z, z) for z in range(min(zeros, max(most - ones, 0)))]
            n = np.concatenate([each for each, _ in few + many])
            s = np.concatenate([np.full(len(each), s) for each, s in few] + [each - z for each, z in many])
            value = self.m * s - i * n
            order = np.lexsort((value, n))
            found.append((n[order], value[order]))
        return found

    def _letters(self, point: int, left: int) -> tuple[Ints, Ints, Ints]:
        """Costs, values, and, by value from −(point · T) on, the letters."""
        key = point, left
        if key not in self._kept:
            if len(self._kept) > KEPT * (self.m + 1):
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = self._made(point, left)
        return self._kept[key]

    def settled(self, point: int, left: int) -> tuple[int, int]:
        """The biases from which on, downwards and upwards, no round that is left can change the sign."""
        return -left * (self.m - point), left * point

    def told_apart(self, value: Ints) -> NDArray[np.bool_]:
        """Whether each bias is a letter."""
        return np.ones(len(value), bool)

    def _made(self, point: int, left: int) -> tuple[Ints, Ints, Ints]:
        cost, value = self._least[point]
        known = slice(np.searchsorted(cost, self.horizon - left, side="right"))
        cost, value = cost[known], value[known]
        keep = self.told_apart(value)
        low, high = self.settled(point, left)
        if self.separate:
            # Of the values beyond which the sign is settled the cheapest stands for all.
            above, below = keep & (value >= high), keep & (value <= low)
            below &= ~above
            keep &= ~(above | below)
            for beyond in (above, below):
                keep[np.flatnonzero(beyond)[:1]] = True
        cost, value = cost[keep], value[keep]
        letter = np.full(self.m * self.horizon + 1, -1)
        letter[value + point * self.horizon] = np.arange(len(value))
        if self.separate:
            zero = point * self.horizon
            for k in np.flatnonzero((value <= low) & (value < high)):
                letter[: max(zero + low, -1) + 1] = k
            for k in np.flatnonzero(value >= high):
                letter[zero + high :] = k
        return cost, value, letter

    def shorter(self, horizon: int) -> Alphabet:
        return Biases(self.m, horizon, self.separate)

    def tables(self) -> float:
        return 8.0 * KEPT * (self.m + 1) * (self.m * self.horizon + 1)

    def costs(self, point: int, left: int) -> Ints:
        return self._letters(point, left)[0]

    def values(self, point: int, left: int) -> Ints:
        """The biases m·E; of a letter for several the one that is reached soonest."""
        return self._letters(point, left)[1]

    def letter(self, point: int, left: int, value: Any) -> int:
        at = int(value) + point * self.horizon
        letters = self._letters(point, left)[2]
        return int(letters[at]) if 0 <= at < len(letters) else -1

    def letters_from(self, point: int, left: int, low: int, high: int) -> Ints:
        """The letters of the biases from `low` to `high`."""
        zero = point * self.horizon
        return self._letters(point, left)[2][zero + low : zero + high + 1]

    def rounds(self, point: int, value: Any) -> int:
        cost, values = self._least[point]
        found = cost[values == int(value)]
        return int(found[0]) if len(found) else self.horizon + 1

    def moved(self, point: int, left: int, value: Ints) -> tuple[Ints, Floats]:
        """(2, K) each: the biases after the point is played, with outcome 0 and 1, and the gain of the total."""
        after = value + np.array([[-point], [self.m - point]])
        if not self.separate:
            return after, np.zeros(after.shape)
        return after, (np.abs(after) - np.abs(value)) / self.m

    def letters(self, point: int, left: int) -> Letters:
        cost, value, _ = self._letters(point, left)
        later = self._letters(point, left - 1)[2]
        after, shift = self.moved(point, left, value)
        zero = point * self.horizon
        mirrored = self._letters(self.m - point, left)[2]
        mirror = mirrored[-value + (self.m - point) * self.horizon]
        return Letters(cost, later[value + zero], later[after + zero], shift, mirror)


class Counts:
    """Letters are the numbers of rounds and of outcomes 1 at each point, (n_i, s_i)."""

    counted = True
    separate = False

    def __init__(self, m: int, horizon: int) -> None:
        self.m, self.horizon = m, horizon
        self.points = tuple(range(m + 1))
        self.fixed_points: tuple[int, ...] = ()
        self.fixed = np.empty((0, 2))

    def shorter(self, horizon: int) -> Alphabet:
        return Counts(self.m, horizon)

    def tables(self) -> float:
        return 8.0 * (self.m + 1) * (self.horizon + 1) * (self.horizon + 2) / 2.0

    def costs(self, point: int, left: int) -> Ints:
        return np.tril_indices(self.horizon - left + 1)[0]

    def values(self, point: int, left: int) -> Ints:
        """(K, 2): the rounds and the outcomes 1."""
        return np.stack(np.tril_indices(self.horizon - left + 1), axis=1)

    def letter(self, point: int, left: int, value: Any) -> int:
        n, s = (int(number) for number in value)
        return n * (n + 1) // 2 + s if 0 <= s <= n <= self.horizon - left else -1

    def rounds(self, point: int, value: Any) -> int:
        n, s = (int(number) for number in value)
        return n if 0 <= s <= n else self.horizon + 1

    def letters(self, point: int, left: int) -> Letters:
        n, s = np.tril_indices(self.horizon - left + 1)
        place = n * (n + 1) // 2 + s
        after = place + n + 1
        return Letters(n, place, np.stack([after, after + 1]), np.zeros((2, len(n))), place - s + (n - s))
