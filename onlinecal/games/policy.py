"""Tables of the value of total ECE, in which players look up how to play."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Floats, Ints, locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.games.solving import solve
from onlinecal.games.stage import against_law
from onlinecal.games.states import numbered

#: the head of a layer: points, rounds played, letters, places of its values and of their costs. Then of each point its
#: number, its least and its largest code, and the place of its letters
POINTS, PLAYED, LETTERS, VALUES, COSTS, FIRST = range(6)
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
        block = _block(alphabet, left, at, number)
        head[1 + left] = at
        blocks.append(block)
        values.append(layer)
        at, number = at + len(block), number + len(layer)
    return Policy(
        locked(np.concatenate(blocks)), locked(np.concatenate(values)), solution.value, solution.error
    )


def _block(alphabet: Any, left: int, at: int, number: int) -> Ints:
    """The tables of one layer, which begin at `at`; its values begin at `number`."""
    its = numbered(alphabet, left)
    points, most = its.cost.shape
    head = np.zeros(FIRST + 4 * points, np.int64)
    parts, begin = [head], at + len(head)
    for j, point in enumerate(alphabet.points):
        low, high = alphabet.bounds(point, left)
        letters = alphabet.at(point, left, np.arange(low, high + 1))
        head[FIRST + 4 * j : FIRST + 4 * j + 4] = point, low, high, begin
        parts.append(letters)
        begin += len(letters)
    head[:FIRST] = points, alphabet.horizon - left, most, number, begin
    return np.concatenate([*parts, its.cost.ravel(), its.before.ravel()])


@kernel
def value_of(table, values, left, biases):
    """The value of a state of biases m·E_i, without Σ |E_i|; NaN where the rounds cannot lead there."""
    if left <= 0:
        return 0.0
    # The tables may be whole numbers or floats that are whole.
    block = int(table[1 + left])
    points, played, letters = (
        int(table[block + POINTS]),
        int(table[block + PLAYED]),
        int(table[block + LETTERS]),
    )
    # The place of a word as in `states`.
    costs, at, b = int(table[block + COSTS]), int(table[block + VALUES]), played
    before = costs + points * letters
    for j in range(points):
        row = block + FIRST + 4 * j
        bias = min(max(biases[int(table[row])], table[row + 1]), table[row + 2])
        k = int(table[int(table[row + 3] + bias - table[row + 1])])
        if k < 0:
            return np.nan
        cost = int(table[costs + j * letters + k])
        if cost > b:
            return np.nan
        at += int(table[before + (j * (played + 1) + b) * letters + k]) if j < points - 1 else k
        b -= cost
    return values[at]


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
