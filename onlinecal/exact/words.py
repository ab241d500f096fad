"""States of a game as words: at each grid point one letter, which a round there replaces by another.

A letter costs the least number of rounds in which its point can come to it. Where a round can be lost without a trace
(played at 0 with y = 0), t rounds reach the words of cost at most t. Where letters count rounds, they reach those of
cost t. Words stand in the order of their costs, then of their letters, without holes. A place is a sum of numbers from
tables.
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


class Letters(NamedTuple):
    """The letters of one point with r rounds left; which they are after a round elsewhere, and after one here."""

    cost: Ints
    stay: Ints
    turn: Ints
    shift: Floats
    mirror: Ints


@dataclass(eq=False)
class Biases:
    """Letters are the biases m·E_i = Σ (m·y − i) of each point.

    With `separate`, the total is Σ |E_i|, counted when it comes, and biases with a settled sign are one letter. Biases
    above `most` are one letter in each direction. Where rounds are `charged`, a round that would lead there costs that
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

    def _settled(self, point: int, left: int) -> tuple[int, int]:
        """The biases from which on, downwards and upwards, all are one letter."""
        low, high = -left * (self.m - point), left * point
        return (low, high) if self.charged is not None else (max(low, -self.most), min(high, self.most))

    def _made(self, point: int, left: int) -> tuple[Ints, Ints, Ints]:
        cost, value = self._least[point]
        known = slice(np.searchsorted(cost, self.horizon - left, side="right"))
        cost, value = cost[known], value[known]
        keep = np.ones(len(value), bool) if self.charged is None else np.abs(value) <= self.most
        low, high = self._settled(point, left)
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

    def tables(self) -> float:
        """Bytes of the tables of letters."""
        return 8.0 * KEPT * (self.m + 1) * (self.m * self.horizon + 1)

    def costs(self, point: int, left: int) -> Ints:
        """The costs of the letters of a point, also for `left` = 0."""
        return self._letters(point, left)[0]

    def values(self, point: int, left: int) -> Ints:
        """The biases m·E; of a letter for several the one that is reached soonest."""
        return self._letters(point, left)[1]

    def letter(self, point: int, left: int, value: Any) -> int:
        """The letter of a bias m·E; −1 without one."""
        at = int(value) + point * self.horizon
        letters = self._letters(point, left)[2]
        return int(letters[at]) if 0 <= at < len(letters) else -1

    def letters_from(self, point: int, left: int, low: int, high: int) -> Ints:
        """The letters of the biases from `low` to `high`."""
        zero = point * self.horizon
        return self._letters(point, left)[2][zero + low : zero + high + 1]

    def rounds(self, point: int, value: Any) -> int:
        """The least number of rounds in which a point can come to that; more than the horizon where it cannot."""
        cost, values = self._least[point]
        found = cost[values == int(value)]
        return int(found[0]) if len(found) else self.horizon + 1

    def _moved(self, point: int, left: int, value: Ints) -> tuple[Ints, Floats]:
        """(2, K) each: the biases after the point is played, with outcome 0 and 1, and the gain of the total."""
        step = np.array([[-point], [self.m - point]])
        after = value + step
        shift = (np.abs(after) - np.abs(value)) / self.m if self.separate else np.zeros(after.shape)
        if self.charged is not None:
            beyond = np.abs(after) > self.most
            return np.where(beyond, value, after), np.where(beyond, self.charged[point][:, None], shift)
        if self.most < sys.maxsize:
            (low, high), (then_low, then_high) = self._settled(point, left), self._settled(point, left - 1)
            above = value >= high
            below = ~above & (value <= low)
            shift = np.where(above, step / self.m, np.where(below, -step / self.m, shift))
            after = np.where(above, np.maximum(after, then_high), after)
            after = np.where(below, np.minimum(after, then_low), after)
        return after, shift

    def letters(self, point: int, left: int) -> Letters:
        """The letters of one point with `left` ≥ 1 rounds left."""
        cost, value, _ = self._letters(point, left)
        later = self._letters(point, left - 1)[2]
        after, shift = self._moved(point, left, value)
        zero = point * self.horizon
        mirrored = self._letters(self.m - point, left)[2]
        mirror = mirrored[-value + (self.m - point) * self.horizon]
        return Letters(cost, later[value + zero], later[after + zero], shift, mirror)


@dataclass(eq=False)
class Counts:
    """Letters are the numbers of rounds and of outcomes 1 at each point, (n_i, s_i); methods as of `Biases`."""

    m: int
    horizon: int

    counted, separate, fixed_points, fixed = True, False, (), np.empty((0, 2))

    def __post_init__(self) -> None:
        self.points = tuple(range(self.m + 1))

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


Alphabet = Biases | Counts


class Words(NamedTuple):
    """The words with `left` rounds left; a tuple, so that kernels take it."""

    cost: Ints
    size: Ints
    ways: Ints
    before: Ints
    last: Ints
    offset: Ints
    first: int

    @property
    def number(self) -> int:
        return int(self.offset[-1])


def words(alphabet: Alphabet, left: int, played: int) -> Words:
    """The words of the states after `played` rounds, with `left` left."""
    costs = [alphabet.costs(point, left) for point in alphabet.points]
    size = np.array([len(cost) for cost in costs], np.int64)
    cost = np.full((len(costs), int(size.max())), played + 1, np.int64)
    for row, own in zip(cost, costs, strict=True):
        row[: len(own)] = own
    ways = np.zeros((len(costs) + 1, played + 1), np.int64)
    before = np.zeros((max(len(costs) - 1, 1), played + 1, cost.shape[1]), np.int64)
    last = np.zeros(cost.shape[1], np.int64)
    _count(cost, size, ways, before, last)
    offset = np.zeros(played + 2, np.int64)
    first = played if alphabet.counted else 0
    np.cumsum(ways[0, first:], out=offset[first + 1 :])
    return Words(cost, size, ways, before, last, offset, first)


def how_many(alphabet: Alphabet, left: int, played: int) -> float:
    """The same number without the tables: up to rounding, also where it is far too large to have them."""
    *others, last = (
        np.bincount(alphabet.costs(point, left), minlength=played + 1)[: played + 1]
        for point in alphabet.points
    )
    ways = np.ones(1)
    for letters in others:
        ways = np.convolve(ways, letters.astype(float))[: played + 1]
    rest = last if alphabet.counted else np.cumsum(last)
    return float(ways @ rest[::-1][: len(ways)])


@kernel
def _count(cost, size, ways, before, last):
    points = len(size)
    ways[points, 0] = 1
    for j in range(points - 1, -1, -1):
        if j == points - 1:
            for k in range(size[j]):
                c = cost[j, k]
                last[k] = ways[j, c]
                ways[j, c] += 1
            continue
        for c in range(ways.shape[1]):
            total = 0
            for k in range(size[j]):
                before[j, c, k] = total
                if cost[j, k] <= c:
                    total += ways[j + 1, c - cost[j, k]]
            ways[j, c] = total


@kernel
def place(word, its):
    points = len(its.size)
    c = its.cost[points - 1, word[points - 1]]
    at = its.last[word[points - 1]]
    for j in range(points - 2, -1, -1):
        c += its.cost[j, word[j]]
        at += its.before[j, c, word[j]]
    return at + its.offset[c]


@kernel
def _begin(j, c, its, word):
    """The first letters from point j on that cost c together."""
    points = len(its.size)
    for i in range(j, points):
        k = 0
        while its.ways[i + 1, c - its.cost[i, k]] == 0:
            k += 1
        word[i] = k
        c -= its.cost[i, k]


@kernel
def word_at(at, its, word):
    """The word at a place; returns its cost."""
    c = its.first
    while its.offset[c + 1] <= at:
        c += 1
    rest, budget = at - its.offset[c], c
    points = len(its.size)
    for j in range(points):
        k = its.size[j] - 1
        if j < points - 1:
            while its.before[j, budget, k] > rest:
                k -= 1
            rest -= its.before[j, budget, k]
        else:
            while its.cost[j, k] != budget or its.last[k] != rest:
                k -= 1
        word[j] = k
        budget -= its.cost[j, k]
    return c


@kernel
def next_word(c, its, word):
    """Put the next word in the place of one of cost c; returns its cost."""
    rest = 0
    for j in range(len(its.size) - 1, -1, -1):
        rest += its.cost[j, word[j]]
        for k in range(word[j] + 1, its.size[j]):
            if its.cost[j, k] > rest:
                break
            if its.ways[j + 1, rest - its.cost[j, k]] > 0:
                word[j] = k
                _begin(j + 1, rest - its.cost[j, k], its, word)
                return c
    c += 1
    while c + 1 < len(its.offset) and its.ways[0, c] == 0:
        c += 1
    if c + 1 < len(its.offset):
        _begin(0, c, its, word)
    return c


@kernel
def words_between(low, high, its):
    """The words at places from `low` to `high`, in rows."""
    rows = np.empty((high - low, len(its.size)), np.int64)
    word = np.empty(len(its.size), np.int64)
    c = word_at(low, its, word)
    for at in range(low, high):
        rows[at - low] = word
        c = next_word(c, its, word)
    return rows
