"""One round of the game: in every state, the value from the values with one round fewer left.

With a_i and b_i the values after y = 0 and y = 1 at point i, the forecaster's best law mixes at most two points, on
either side of a = b, and the value is max over q of min_i (1 − q) a_i + q b_i. The kernel walks from one pair of lines
to the next until no line is below their crossing; it returns the cost of a law, and from q its gap to the value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.exact.words import Alphabet, Words, next_word, place, word_at

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: the error of a stage beyond the gap that it reports, in units in the last place of the largest value: 2 of a value
#: after an outcome (a sum, a quotient), 5 of the cost of a law (two products, a sum, a share), 5 of the lowest line
UNITS = 12.0


@part_of_kernel
def against_law(a, b):
    """The best law: its cost, the gap to the value, two points, the share of the first, nature's q."""
    n = len(a)
    i = j = 0
    for k in range(1, n):
        if a[k] < a[i] or (a[k] == a[i] and b[k] < b[i]):
            i = k
        if b[k] < b[j] or (b[k] == b[j] and a[k] < a[j]):
            j = k
    if b[i] <= a[i]:
        return a[i], 0.0, i, i, 1.0, 0.0
    if a[j] <= b[j]:
        return b[j], 0.0, j, j, 1.0, 1.0
    # Line i rises in q, line j falls.
    for _ in range(n + 2):
        rise, fall = b[i] - a[i], a[j] - b[j]
        q = (a[j] - a[i]) / (rise + fall)
        low, k = a[i] + q * rise, i
        for other in range(n):
            value = a[other] + q * (b[other] - a[other])
            if value < low:
                low, k = value, other
        if k in (i, j):
            break
        if b[k] > a[k]:
            i = k
        elif b[k] < a[k]:
            j = k
        else:
            i = j = k
            break
    if i == j:
        return a[i], 0.0, i, i, 1.0, q
    share = fall / (rise + fall)
    cost = max(share * a[i] + (1.0 - share) * a[j], share * b[i] + (1.0 - share) * b[j])
    return cost, max(cost - low, 0.0), i, j, share, q


@part_of_kernel
def against_draw(a, b):
    """The same where nature sees what is drawn: the best point."""
    i = 0
    for k in range(1, len(a)):
        if max(a[k], b[k]) < max(a[i], b[i]):
            i = k
    return max(a[i], b[i]), 0.0, i, i, 1.0, 1.0 if b[i] > a[i] else 0.0


class Moves(NamedTuple):
    """The letters after a round; a tuple, so that kernels take it."""

    stay: Ints
    turn: Ints
    shift: Floats
    mirror: Ints
    mirrored: Ints
    fixed: Floats


def moves(alphabet: Alphabet, left: int, symmetric: bool) -> Moves:
    """The letters after the round in which `left` are left, itself included."""
    letters = [alphabet.letters(point, left) for point in alphabet.points]
    most = max(len(each.cost) for each in letters)
    stay, mirror = np.zeros((2, len(letters), most), np.int64)
    turn, shift = np.zeros((2, len(letters), most), np.int64), np.zeros((2, len(letters), most))
    for j, each in enumerate(letters):
        stay[j, : len(each.stay)], mirror[j, : len(each.stay)] = each.stay, each.mirror
        turn[:, j, : len(each.stay)], shift[:, j, : len(each.stay)] = each.turn, each.shift
    mirrored = [alphabet.points.index(alphabet.m - point) for point in alphabet.points] if symmetric else []
    return Moves(stay, turn, shift, mirror, np.array(mirrored, np.int64), alphabet.fixed)


@kernel
def after(word, now, then, values, a, b, same, cost, part):
    """Fills in a_i and b_i of all points of a word, those of the fixed points behind the others."""
    points = len(word)
    # Places are sums over the points from the last to the first: those behind the point that is played stay.
    cost[points], part[points] = 0, 0
    for j in range(points - 1, -1, -1):
        same[j] = now.stay[j, word[j]]
        cost[j] = cost[j + 1] + then.cost[j, same[j]]
        if j == points - 1:
            part[j] = then.last[same[j]]
        else:
            part[j] = part[j + 1] + then.before[j, cost[j], same[j]]
    for j in range(points):
        for y in range(2):
            k = now.turn[y, j, word[j]]
            c = cost[j + 1] + then.cost[j, k]
            at = then.last[k] if j == points - 1 else part[j + 1] + then.before[j, c, k]
            for i in range(j - 1, -1, -1):
                c += then.cost[i, same[i]]
                at += then.before[i, c, same[i]]
            value = values[at + then.offset[c]] + now.shift[y, j, word[j]]
            if y == 0:
                a[j] = value
            else:
                b[j] = value
    if len(now.fixed) > 0:
        value = values[part[0] + then.offset[cost[0]]]
        for f in range(len(now.fixed)):
            a[points + f] = value + now.fixed[f, 0]
            b[points + f] = value + now.fixed[f, 1]


@kernel
def stage(low, high, drawn, its, now, then, values, out):
    """The values of the words at places from `low` to `high`; the largest gap, and the largest value looked at."""
    points = len(its.size)
    n = points + len(now.fixed)
    word, other = np.empty(points, np.int64), np.empty(points, np.int64)
    a, b = np.empty(n), np.empty(n)
    same = np.empty(points, np.int64)
    cost, part = np.empty(points + 1, np.int64), np.empty(points + 1, np.int64)
    gap, largest = 0.0, 0.0
    c = word_at(low, its, word)
    for at in range(low, high):
        twin = 0
        for j in range(len(now.mirrored)):
            p = now.mirrored[j]
            other[j] = now.mirror[p, word[p]]
            if twin == 0:
                twin = other[j] - word[j]
        # Of two words that mirror each other the first is looked at.
        if twin >= 0:
            after(word, now, then, values, a, b, same, cost, part)
            found = against_draw(a, b) if drawn else against_law(a, b)
            gap = max(gap, found[1])
            for k in range(n):
                largest = max(largest, abs(a[k]), abs(b[k]))
            out[at] = found[0]
            if twin > 0:
                out[place(other, its)] = found[0]
        c = next_word(c, its, word)
    return gap, largest


def look(word: Any, now: Moves, then: Words, values: Floats) -> tuple[Floats, Floats]:
    """a_i and b_i of one word, those of the fixed points behind the others."""
    points = len(word)
    a, b = np.empty((2, points + len(now.fixed)))
    same, cost, part = (np.empty(n, np.int64) for n in (points, points + 1, points + 1))
    after(np.array(word, np.int64), now, then, values, a, b, same, cost, part)
    return a, b
