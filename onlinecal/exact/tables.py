"""How a solved game is looked up: what steps of players take from the tables that `onlinecal.exact.policy` makes."""

from __future__ import annotations

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.exact.matrix import against_law

#: what the tables say first of a layer: points, cost of the dearest word, letters, where its values and the costs of
#: its letters begin; and then of each point which it is, its least and its largest bias, and where its letters are
POINTS, DEAREST, LETTERS, VALUES, COSTS, FIRST = range(6)


@kernel
def value_of(table, values, left, biases):
    """The value of a state of biases m·E_i, without Σ |E_i|; NaN where so few rounds cannot have led there."""
    if left <= 0:
        return 0.0
    block = table[1 + left]
    points, dearest, letters = table[block + POINTS], table[block + DEAREST], table[block + LETTERS]
    # The words as in `onlinecal.exact.words`.
    costs = table[block + COSTS]
    before = costs + points * letters
    last = before + (points - 1) * (dearest + 1) * letters
    c = at = 0
    for j in range(points - 1, -1, -1):
        row = block + FIRST + 4 * j
        bias = min(max(biases[table[row]], table[row + 1]), table[row + 2])
        k = table[table[row + 3] + bias - table[row + 1]]
        if k < 0:
            return np.nan
        c += table[costs + j * letters + k]
        if c > dearest:
            return np.nan
        at += table[last + k] if j == points - 1 else table[before + (j * (dearest + 1) + c) * letters + k]
    return values[table[block + VALUES] + at + table[last + letters + c]]


@kernel
def play(table, values, number, biases, room):
    """How both sides play in round `number` of a state: the two points of the law, the share of the first, nature's q.

    `room` is for 2 (m + 1) numbers. In a state that the rounds of the game do not lead to, the middle and a coin.
    """
    m = table[0]
    left = min(max(table[1] - number + 1, 1), table[1])
    a, b = room[: m + 1], room[m + 1 : 2 * (m + 1)]
    for i in range(m + 1):
        now = biases[i]
        for y in range(2):
            biases[i] = now + m * y - i
            value = value_of(table, values, left - 1, biases) + (abs(biases[i]) - abs(now)) / m
            if y == 0:
                a[i] = value
            else:
                b[i] = value
        biases[i] = now
        if not abs(a[i] + b[i]) < np.inf:
            return m // 2, m // 2, 1.0, 0.5
    _, _, low, high, share, q = against_law(a, b)
    return low, high, share, q
