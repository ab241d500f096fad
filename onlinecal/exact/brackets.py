"""Bounds on the value of longer games: large biases are counted for the forecaster, or against it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.validation import count, number
from onlinecal.exact.alphabets import Biases, Floats, Ints
from onlinecal.exact.game import Solution, _Game
from onlinecal.exact.memory import check_memory, threads_here
from onlinecal.exact.totals import measure_named


@dataclass(frozen=True)
class ValueBracket:
    """A lower and an upper bound on the value of a game of total ECE.

    Attributes
    ----------
    m, horizon : int
    clip : float
        The largest bias |E_i| that is told apart.
    lower, upper : float
        The value is between them; rounding is included.
    lowers, uppers : (T,) floats
        The same of the games of 1, …, T rounds, which come on the way.
    states : int
        The most states with the same number of rounds left, of the two games that were solved.
    """

    m: int
    horizon: int
    clip: float
    lower: float
    upper: float
    states: int
    lowers: Floats = field(repr=False, compare=False)
    uppers: Floats = field(repr=False, compare=False)

    @property
    def width(self) -> float:
        """Upper − lower."""
        return self.upper - self.lower


def value_bracket(
    m: int, horizon: int, clip: float, *, progress: bool | None = None, threads: int | None = None
) -> ValueBracket:
    r"""A certified bracket of the value V of the game of total ECE on 0, 1/m, …, 1, with nature seeing the law.

    Two other games are solved, in which biases beyond `clip` are not told apart, so that the number of states stops
    growing with T. Their totals are, on every course of play, at most and at least that of the game itself.

    *Lower.* As soon as E_i ≥ c at the end of a round, what happens at i from then on is added to the total with its
    sign, Σ (y − i/m), in place of what it does to |E_i|; for E_i ≤ −c, −Σ (y − i/m). As |E + S| ≥ E + S and ≥ −(E + S),
    the total is at most the true one.

    *Upper.* A round that would make |E_i| larger than c adds its |y − i/m| to the total and leaves E_i as it is. As |E
    + d + S| ≤ |E + S| + |d|, the total is, by induction over such rounds, at least the true one.

    If F ≤ G on every course of play, then each strategy gets no less of G than of F against each other, and so min max
    F ≤ min max G. In both games the state, with the numbers that replace biases, is all that the rest of the
    total depends on, so that backward induction solves them, and both players know it from the course of play, so that
    they are games with the same strategies.

    Parameters
    ----------
    m : int
        Steps of the grid, from 1.
    horizon : int
        T.
    clip : float
        c, from 1. The larger, the narrower the bracket, and the more states: at most (2mc + 1)^(m−1).
    progress, threads
        As for `onlinecal.exact.solve`.

    Returns
    -------
    ValueBracket

    Raises
    ------
    InvalidParameter
        Memory has no room for it.

    Source
    ------
    This package.

    Deviations
    ----------
    none

    Examples
    --------
    >>> found = value_bracket(2, 40, 4.0)
    >>> found.lower <= 10.374115 <= found.upper, found.width < 0.01
    (True, True)
    """
    m, horizon = count("m", m), count("horizon", horizon)
    clip = number("value_bracket", "clip", clip, 1.0)
    record = measure_named("ece")
    found: list[Floats] = []
    states = 0
    for sign in (-1, 1):
        alphabet = Clipped(m, horizon, int(min(clip, horizon) * m), upper=sign > 0)
        check_memory(alphabet, horizon, "ece", False)
        game = _Game(record, m, horizon, "law", False, count("threads", threads or threads_here()), alphabet)
        solution = Solution(m, horizon, "ece", "law")
        game.run(solution, progress)
        assert solution.values is not None
        found.append(solution.values + sign * solution.error)
        states = max(states, solution.states)
    lowers, uppers = found
    return ValueBracket(m, horizon, clip, float(lowers[-1]), float(uppers[-1]), states, lowers, uppers)


class Clipped(Biases):
    """Biases of which those beyond a number are one letter (for a lower bound), or are not reached (for an upper one).

    Parameters
    ----------
    m, horizon : int
    most : int
        The largest |m·E|, at least m.
    upper : bool
    """

    def __init__(self, m: int, horizon: int, most: int, *, upper: bool) -> None:
        super().__init__(m, horizon, separate=True)
        self.most, self.upper = most, upper

    def settled(self, point: int, left: int) -> tuple[int, int]:
        """As `Biases` has it; for a lower bound, from `most` on too."""
        low, high = super().settled(point, left)
        return (low, high) if self.upper else (max(low, -self.most), min(high, self.most))

    def told_apart(self, value: Ints) -> NDArray[np.bool_]:
        """All for a lower bound, of which those that are settled are one letter; for an upper one up to `most`."""
        return np.abs(value) <= self.most if self.upper else super().told_apart(value)

    def moved(self, point: int, left: int, value: Ints) -> tuple[Ints, Floats]:
        """As `Biases` has it, but beyond the largest bias."""
        after, shift = super().moved(point, left, value)
        if self.upper:
            # |d| is added as it is: the bias has the sign of what it is moved by.
            return np.where(np.abs(after) > self.most, value, after), shift
        low, high = self.settled(point, left)
        then_low, then_high = self.settled(point, left - 1)
        above = value >= high
        below = ~above & (value <= low)
        change = np.array([[-point], [self.m - point]]) / self.m
        shift = np.where(above, change, np.where(below, -change, shift))
        after = np.where(above, np.maximum(after, then_high), after)
        return np.where(below, np.minimum(after, then_low), after), shift
