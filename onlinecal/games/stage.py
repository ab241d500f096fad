"""One round: the matrix game of a state, and the values of all states from those of the next round.

Let a_i and b_i be the values after y = 0 and y = 1 at point i. The forecaster's best law mixes at most two points, on
either side of a = b. The value is max over q of min_i (1 − q) a_i + q b_i. The kernel walks from one pair of lines to
the next until no line is below their crossing. It returns the cost of a law, and from q its gap to the value.
"""

from typing import Any, NamedTuple

import numpy as np

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.core.arrays import Floats, Ints
from onlinecal.games.states import Alphabet, States, place, word_at

#: the error of a stage beyond its gap, in units in the last place of the largest value. 2 of a value after an outcome,
#: 5 of the cost of a law, 5 of the lowest line
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
    """The letters after a round elsewhere and after one here, what it adds, and those of the mirrored point.

    A tuple, so that kernels take it.
    """

    stay: Ints
    turn: Ints
    shift: Floats
    mirror: Ints
    mirrored: Ints
    fixed: Floats


def moves(alphabet: Alphabet, left: int, symmetric: bool) -> Moves:
    """The letters after the round in which `left` are left, itself included."""
    codes = [alphabet.letters(point, left)[1] for point in alphabet.points]
    shape = len(codes), max(map(len, codes))
    (stay, mirror), turn, shift = (
        np.zeros((2, *shape), np.int64),
        np.zeros((2, *shape), np.int64),
        np.zeros((2, *shape)),
    )
    for j, (point, code) in enumerate(zip(alphabet.points, codes, strict=True)):
        after, shift[:, j, : len(code)] = alphabet.moved(point, left, code)
        stay[j, : len(code)] = alphabet.at(point, left - 1, code)
        turn[:, j, : len(code)] = alphabet.at(point, left - 1, after)
        mirror[j, : len(code)] = alphabet.at(alphabet.m - point, left, alphabet.mirrored(code))
    mirrored = [alphabet.points.index(alphabet.m - point) for point in alphabet.points] if symmetric else []
    return Moves(stay, turn, shift, mirror, np.array(mirrored, np.int64), alphabet.fixed)


@kernel
def after(word, now, then, values, a, b, coming):
    """Fills in a_i and b_i of all points of a word, those of the fixed points behind the others."""
    points = len(word)
    for j in range(points):
        coming[j] = now.stay[j, word[j]]
    for j in range(points):
        same = coming[j]
        coming[j] = now.turn[0, j, word[j]]
        a[j] = values[place(coming, then)] + now.shift[0, j, word[j]]
        coming[j] = now.turn[1, j, word[j]]
        b[j] = values[place(coming, then)] + now.shift[1, j, word[j]]
        coming[j] = same
    for f in range(len(now.fixed)):
        value = values[place(coming, then)]
        a[points + f], b[points + f] = value + now.fixed[f, 0], value + now.fixed[f, 1]


@kernel
def stage(low, high, drawn, its, now, then, values, out):
    """The values of the words at places from `low` to `high`; the largest gap, and the largest value looked at."""
    points = len(its.size)
    n = points + len(now.fixed)
    room, a, b = np.empty((3, points), np.int64), np.empty(n), np.empty(n)
    word, other, coming = room[0], room[1], room[2]
    gap, largest, more = 0.0, 0.0, 0
    for at in range(low, high):
        if more == 0:
            more = word_at(at, its, word)
        else:
            word[points - 1] += 1
        more -= 1
        twin = 0
        for j in range(len(now.mirrored)):
            p = now.mirrored[j]
            other[j] = now.mirror[p, word[p]]
            if twin == 0:
                twin = other[j] - word[j]
        # Two words that mirror each other have one value: the first of them is looked at.
        if twin >= 0:
            after(word, now, then, values, a, b, coming)
            found = against_draw(a, b) if drawn else against_law(a, b)
            gap = max(gap, found[1])
            for k in range(n):
                largest = max(largest, abs(a[k]), abs(b[k]))
            out[at] = found[0]
            if twin > 0:
                out[place(other, its)] = found[0]
    return gap, largest


def look(word: Any, now: Moves, then: States, values: Floats) -> tuple[Floats, Floats]:
    """a_i and b_i of one word, those of the fixed points behind the others."""
    points = len(word)
    a, b = np.empty((2, points + len(now.fixed)))
    after(np.array(word, np.int64), now, then, values, a, b, np.empty(points, np.int64))
    return a, b
