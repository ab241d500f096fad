"""How both sides play for the value of total ECE, as tables that compiled steps look up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.exact.game import solve
from onlinecal.exact.tables import FIRST, value_of
from onlinecal.exact.words import words

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: the longest game on each grid whose tables are made, by its steps m: some seconds and 100 MB
LONGEST = {1: 1200, 2: 1200, 3: 150, 4: 64, 5: 32, 6: 22, 7: 18, 8: 16}


def longest(m: int) -> int:
    """Rounds of the longest game whose tables are made.

    Raises
    ------
    InvalidParameter
        There are none for so fine a grid.
    """
    if m not in LONGEST:
        raise InvalidParameter(
            f"m = {m}; expected a grid of at most {max(LONGEST)} steps, for which games are solved beforehand"
        )
    return LONGEST[m]


def slack(horizon: float, runs: int, rate: float) -> float:
    """By how much the mean of so many runs may miss the value, with probability `rate`, as the total of those who play
    by it moves by at most 1 a round in either direction (Azuma).
    """
    return math.sqrt(2.0 * horizon * math.log(1.0 / rate) / runs)


@dataclass(frozen=True)
class Policy:
    """The tables of one game.

    Attributes
    ----------
    ints : (…,) ints
        m, T, where the layer with 1, 2, …, T rounds left begins; the layers.
    floats : (…,) floats
        The value of each state, without Σ |E_i|.
    value, error : float
        Of the game.
    """

    ints: Ints
    floats: Floats
    value: float
    error: float

    def value_at(self, biases: Ints, left: int) -> float:
        """The value of a state of biases m·E_i with so many rounds left."""
        so_far = float(np.abs(biases).sum()) / int(self.ints[0])
        return so_far + float(value_of(self.ints, self.floats, left, np.array(biases, np.int64)))


@lru_cache(maxsize=4)
def policy(m: int, horizon: int) -> Policy:
    """The tables of the game of total ECE on 0, 1/m, …, 1, with nature seeing at most the law.

    Raises
    ------
    InvalidParameter
        The game is longer than `longest`.
    """
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
