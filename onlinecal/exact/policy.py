"""The play of both sides: the matrix game of one state, and tables of the value of total ECE.

Let a_i and b_i be the values after y = 0 and y = 1 at point i. The forecaster's best law mixes at most two points, on
either side of a = b. The value is max over q of min_i (1 − q) a_i + q b_i. The kernel walks from one pair of lines to
the next until no line is below their crossing. It returns the cost of a law, and from q its gap to the value.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.core.arrays import Floats, Ints, locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.exact.words import words


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


#: the head of a layer: points, cost of the dearest word, letters, places of its values and of their costs. Then of each
#: point its number, its least and its largest bias, and the place of its letters
POINTS, DEAREST, LETTERS, VALUES, COSTS, FIRST = range(6)
#: the longest game with tables on each grid, by its steps m: some seconds and 100 MB
LONGEST = {1: 1200, 2: 1200, 3: 150, 4: 64, 5: 32, 6: 22, 7: 18, 8: 16}


def longest(m: int) -> int:
    """Rounds of the longest game with tables; `InvalidParameter` for a grid without any."""
    if m not in LONGEST:
        raise InvalidParameter(
            f"m = {m}; expected a grid of at most {max(LONGEST)} steps, for which games are solved beforehand"
        )
    return LONGEST[m]


def slack(horizon: float, runs: int, rate: float) -> float:
    """The largest distance of the mean of the runs from the value but with probability `rate` (Azuma)."""
    return math.sqrt(2.0 * horizon * math.log(1.0 / rate) / runs)


@dataclass(frozen=True)
class Policy:
    """The tables of one game, its value and error; `floats` has the value of each state without Σ |E_i|.

    `ints` has m, T, the beginnings of the layers with 1, 2, …, T rounds left, and the layers.
    """

    ints: Ints
    floats: Floats
    value: float
    error: float

    def value_at(self, biases: Ints, left: int) -> float:
        """The value of a state of biases m·E_i with `left` rounds left."""
        so_far = float(np.abs(biases).sum()) / int(self.ints[0])
        return so_far + float(value_of(self.ints, self.floats, left, np.array(biases, np.int64)))


@lru_cache(maxsize=4)
def policy(m: int, horizon: int) -> Policy:
    """The tables of the game of total ECE on 0, 1/m, …, 1; nature sees at most the law, T ≤ `longest`."""
    from onlinecal.exact.game import solve  # which imports this file

    if horizon > longest(m):
        raise InvalidParameter(
            f"m = {m}, T = {horizon}; expected T ≤ {longest(m)}, up to which games on this grid are solved beforehand"
        )
    solution = solve(m, horizon, keep=True, progress=False)
    game, alphabet = solution._game, solution._game.alphabet
    head = np.zeros(2 + horizon, np.int64)
    head[:2] = m, horizon
    blocks, values, at, number = [head], [], len(head), 0
    for left in range(horizon, 0, -1):
        layer = game.layer(left)
        block = _block(alphabet, left, horizon - left, at, number)
        head[1 + left] = at
        blocks.append(block)
        values.append(layer)
        at, number = at + len(block), number + len(layer)
    return Policy(
        locked(np.concatenate(blocks)), locked(np.concatenate(values)), solution.value, solution.error
    )


def _block(alphabet: Any, left: int, played: int, at: int, number: int) -> Ints:
    """The tables of one layer, which begin at `at`; its values begin at `number`."""
    its = words(alphabet, left, played)
    points, most = its.cost.shape
    head = np.zeros(FIRST + 4 * points, np.int64)
    parts, begin = [head], at + len(head)
    for j, point in enumerate(alphabet.points):
        # Beyond the bias from which on its sign is settled all are one letter.
        low = max(-point * played, -left * (alphabet.m - point))
        high = min((alphabet.m - point) * played, left * point)
        letters = alphabet.letters_from(point, left, low, high)
        head[FIRST + 4 * j : FIRST + 4 * j + 4] = point, low, high, begin
        parts.append(letters)
        begin += len(letters)
    head[:FIRST] = points, played, most, number, begin
    return np.concatenate([*parts, its.cost.ravel(), its.before[: points - 1].ravel(), its.last, its.offset])


@kernel
def value_of(table, values, left, biases):
    """The value of a state of biases m·E_i, without Σ |E_i|; NaN where the rounds cannot lead there."""
    if left <= 0:
        return 0.0
    # The tables may be whole numbers or floats that are whole.
    block = int(table[1 + left])
    points, dearest, letters = (
        int(table[block + POINTS]), int(table[block + DEAREST]), int(table[block + LETTERS])
    )  # fmt: skip
    # The words as in `onlinecal.exact.words`.
    costs = int(table[block + COSTS])
    before = costs + points * letters
    last = before + (points - 1) * (dearest + 1) * letters
    c = at = 0
    for j in range(points - 1, -1, -1):
        row = block + FIRST + 4 * j
        bias = min(max(biases[int(table[row])], table[row + 1]), table[row + 2])
        k = int(table[int(table[row + 3] + bias - table[row + 1])])
        if k < 0:
            return np.nan
        c += int(table[costs + j * letters + k])
        if c > dearest:
            return np.nan
        at += int(table[last + k if j == points - 1 else before + (j * (dearest + 1) + c) * letters + k])
    return values[int(table[block + VALUES]) + at + int(table[last + letters + c])]


@kernel
def play(table, values, number, biases, room):
    """The play of round `number`: the two points of the law, the share of the first, nature's q; `room` is for 2 (m +
    1).

    In a state that the rounds of the game do not lead to, the middle and a coin.
    """
    m, horizon = int(table[0]), int(table[1])
    left = min(max(horizon - number + 1, 1), horizon)
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
