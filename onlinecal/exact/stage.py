"""One round of the game: in every state, the value from the values with one round fewer left."""

from typing import Any, NamedTuple

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Floats, Ints
from onlinecal.exact.policy import against_draw, against_law
from onlinecal.exact.words import Alphabet, Words, next_word, place, word_at

#: the error of a stage beyond its gap, in units in the last place of the largest value. 2 of a value after an outcome,
#: 5 of the cost of a law, 5 of the lowest line
UNITS = 12.0


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
