"""Words of letters up to a cost, each at a place of its own in one array, without holes.

They are in the order of their costs, then of their letters. The place of a word is a sum of numbers from tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.exact.alphabets import Alphabet

Ints = NDArray[np.int64]


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
        """The number of words."""
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
    """The place of a word."""
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
