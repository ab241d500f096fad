"""The states of a game: at each grid point a code, for its bias, or for its rounds and outcomes.

A letter of a point is a code that it can have. It costs the least number of rounds that lead to it. Mostly a round can
be lost without a trace (played at 0 with y = 0). Then the states after t rounds are the words with letters that cost at
most t together. Where codes count rounds, they cost t together.

Words stand in the order of their letters, without holes. The place of a word is a sum of numbers from tables.
"""

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Floats, Ints

#: numbers of rounds left for which the letters of each point are kept
KEPT = 4


@dataclass(eq=False)
class Biases:
    """Codes are the biases m·E_i = Σ (m·y − i) of each point.

    With `separate`, the total is Σ |E_i|, counted when it comes, and biases with a settled sign have one code. Biases
    above `most` have one code in each direction. Where rounds are `charged`, a round that would lead there costs that
    number instead.
    """

    m: int
    horizon: int
    separate: bool
    most: int = sys.maxsize
    charged: Floats | None = None

    counted = False

    def __post_init__(self) -> None:
        # Points with one letter: at 0 the outcome 1 costs 1 for ever, and at m the outcome 0.
        fixed = {0: (0.0, 1.0), self.m: (1.0, 0.0)} if self.separate else {}
        if self.m == 1:
            fixed.pop(0, None)  # so that there is a word
        self.points = tuple(i for i in range(self.m + 1) if i not in fixed)
        self.fixed_points = tuple(fixed)
        #: (fixed points, 2): what a round there adds to the total with outcome 0, and with 1
        self.fixed: Floats = np.array(list(fixed.values())).reshape(-1, 2)
        self._kept: dict[tuple[int, int], tuple[Ints, Ints, Ints]] = {}

    @cached_property
    def _least(self) -> list[tuple[Ints, Ints]]:
        """For each point the least number of rounds for all biases of at most T rounds, ascending, and these."""
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

    def tables(self) -> float:
        """Bytes of the tables of letters."""
        return 8.0 * KEPT * (self.m + 1) * (self.m * self.horizon + 1)

    def _settled(self, point: int, left: int) -> tuple[int, int]:
        """The biases from which on, downwards and upwards, the sign is settled."""
        low, high = -left * (self.m - point), left * point
        return (low, high) if self.charged is not None else (max(low, -self.most), min(high, self.most))

    def bounds(self, point: int, left: int) -> tuple[int, int]:
        """The least and the largest code."""
        played = self.horizon - left
        low, high = -point * played, (self.m - point) * played
        if self.separate:
            settled = self._settled(point, left)
            low, high = max(low, settled[0]), min(high, settled[1])
        return low, high

    def _letters(self, point: int, left: int) -> tuple[Ints, Ints, Ints]:
        """Costs and codes of the letters, and the letter of each code from the least on; −1 for none."""
        if (point, left) not in self._kept:
            if len(self._kept) > KEPT * (self.m + 1):
                self._kept.pop(next(iter(self._kept)))
            cost, value = self._least[point]
            known = cost <= self.horizon - left
            if self.charged is not None:
                known &= np.abs(value) <= self.most
            low, high = self.bounds(point, left)
            codes, first = np.unique(np.clip(value[known], low, high), return_index=True)
            # Several biases may have one code: the cheapest stands for all. Letters are in the order of their costs.
            order, letter = np.argsort(first), np.full(high - low + 1, -1)
            letter[codes[order] - low] = np.arange(len(order))
            self._kept[point, left] = cost[known][first[order]], codes[order], letter
        return self._kept[point, left]

    def letters(self, point: int, left: int) -> tuple[Ints, Ints]:
        """Costs and codes of the letters with `left` rounds left, also for 0."""
        return self._letters(point, left)[:2]

    def at(self, point: int, left: int, codes: Any) -> Ints:
        """The letters of codes that this point can have."""
        low, high = self.bounds(point, left)
        found: Ints = self._letters(point, left)[2][np.clip(codes, low, high) - low]
        return found

    def after(self, point: Any, code: Any, outcome: Any) -> Any:
        """The codes after one round more at the point."""
        return code + (self.m * outcome - point)

    def moved(self, point: int, left: int, code: Ints) -> tuple[Ints, Floats]:
        """(2, K) each: the codes after the point is played, with outcome 0 and 1, and the gain of the total."""
        after = np.stack([self.after(point, code, y) for y in (0, 1)])
        shift = (np.abs(after) - np.abs(code)) / self.m if self.separate else np.zeros(after.shape)
        if self.charged is not None:
            beyond = np.abs(after) > self.most
            return np.where(beyond, code, after), np.where(beyond, self.charged[point][:, None], shift)
        if self.separate:
            low, high = self._settled(point, left)
            above, below, move = code >= high, (code <= low) & (code < high), (after - code) / self.m
            shift = np.where(above, move, np.where(below, -move, shift))
            after = np.where(above, np.maximum(after, code), np.where(below, np.minimum(after, code), after))
        return after, shift

    def mirrored(self, code: Ints) -> Ints:
        """The codes of a point when forecasts p become 1 − p, and outcomes 1 − y."""
        return -code

    def given(self, codes: Ints) -> Floats:
        """Codes of all points, in rows, as `totals` takes them."""
        return codes / self.m

    def code_of(self, point: int, rounds: int, ones: int) -> int:
        """The code of a point after these rounds, with these outcomes 1."""
        return self.m * ones - point * rounds

    def rounds(self, point: int, code: int) -> int:
        """The least number of rounds in which a point can come to that; more than the horizon where it cannot."""
        cost, values = self._least[point]
        found = cost[values == code]
        return int(found[0]) if len(found) else self.horizon + 1


@dataclass(eq=False)
class Counts:
    """Codes are n(n + 1)/2 + s, of n rounds at a point with s outcomes 1; methods as of `Biases`."""

    m: int
    horizon: int

    counted, separate, fixed_points, fixed = True, False, (), np.empty((0, 2))

    def __post_init__(self) -> None:
        self.points = tuple(range(self.m + 1))

    def tables(self) -> float:
        return 8.0 * (self.m + 1) * (self.horizon + 1) * (self.horizon + 2) / 2.0

    def letters(self, point: int, left: int) -> tuple[Ints, Ints]:
        played = self.horizon - left
        codes = np.arange((played + 1) * (played + 2) // 2)
        return self.rounds(point, codes), codes

    def at(self, point: int, left: int, codes: Any) -> Any:
        return codes

    def after(self, point: Any, code: Any, outcome: Any) -> Any:
        return code + self.rounds(point, code) + 1 + outcome

    def moved(self, point: int, left: int, code: Ints) -> tuple[Ints, Floats]:
        return np.stack([self.after(point, code, y) for y in (0, 1)]), np.zeros((2, len(code)))

    def mirrored(self, code: Ints) -> Ints:
        rounds, ones = self.given(code).T
        return code + rounds - 2 * ones

    def given(self, codes: Ints) -> Ints:
        rounds = self.rounds(0, codes)
        return np.stack([rounds, codes - rounds * (rounds + 1) // 2], axis=-1)

    def code_of(self, point: int, rounds: int, ones: int) -> int:
        return rounds * (rounds + 1) // 2 + ones

    def rounds(self, point: Any, code: Any) -> Any:
        return np.floor((np.sqrt(8.0 * code + 1.0) - 1.0) / 2.0).astype(np.int64)


Alphabet = Biases | Counts


class States(NamedTuple):
    """The numbered states with some rounds left; a tuple, so that kernels take it.

    `cost` is of each point's letters. `before[j, b, k]`: the words with a letter before k at point j, where b rounds
    are for the points from j on. With b rounds for the last point, its first letter is `first[b]` of `many[b]`.
    """

    size: Ints
    cost: Ints
    before: Ints
    first: Ints
    many: Ints
    number: int


def numbered(alphabet: Alphabet, left: int) -> States:
    """The states with `left` rounds left."""
    played, costs = alphabet.horizon - left, [alphabet.letters(point, left)[0] for point in alphabet.points]
    size = np.array([len(cost) for cost in costs])
    cost, before = (
        np.zeros((len(costs), size.max()), np.int64),
        np.zeros((len(costs) - 1, played + 1, size.max()), np.int64),
    )
    for row, own in zip(cost, costs, strict=True):
        row[: len(own)] = own
    many = np.bincount(costs[-1], minlength=played + 1)
    upto = np.cumsum(many)
    first, many = (upto - many, many) if alphabet.counted else (np.zeros_like(upto), upto)
    ways = many
    for j in range(len(costs) - 2, -1, -1):
        budget = np.arange(played + 1 if j else 1) + (
            0 if j else played
        )  # all rounds are for the first point on
        rest = budget[:, None] - costs[j]
        found = np.where(rest >= 0, ways[rest], 0)
        before[j, budget[0] :, : size[j]] = np.cumsum(found, axis=1) - found
        ways = found.sum(axis=1)
    return States(size, cost, before, first, many, int(ways[-1]))


def how_many(alphabet: Any, left: int) -> float:
    """Their number without tables: up to rounding, also where it is far too large to have them."""
    played = alphabet.horizon - left
    *others, last = (
        np.bincount(alphabet.letters(point, left)[0], minlength=played + 1) for point in alphabet.points
    )
    ways = np.ones(1)
    for letters in others:
        ways = np.convolve(ways, letters.astype(float))[: played + 1]
    rest = last if alphabet.counted else np.cumsum(last)
    return float(ways @ rest[::-1][: len(ways)])


@kernel
def place(word, its):
    """The place of a word."""
    last, at, b = len(its.size) - 1, 0, len(its.many) - 1
    for j in range(last):
        at += its.before[j, b, word[j]]
        b -= its.cost[j, word[j]]
    return at + word[last] - its.first[b]


@kernel
def word_at(at, its, word):
    """Writes the word at a place; returns how many words from it on have the same letters but the last."""
    last, b = len(its.size) - 1, len(its.many) - 1
    for j in range(last):
        low, high = 0, its.size[j]
        while high - low > 1:
            middle = (low + high) >> 1
            low, high = (middle, high) if its.before[j, b, middle] <= at else (low, middle)
        word[j] = low
        at -= its.before[j, b, low]
        b -= its.cost[j, low]
    word[last] = at + its.first[b]
    return its.many[b] - at


@kernel
def words_between(low, high, its):
    """The words at places from `low` to `high`, in rows."""
    rows = np.empty((high - low, len(its.size)), np.int64)
    for at in range(low, high):
        word_at(at, its, rows[at - low])
    return rows
