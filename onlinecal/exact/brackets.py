"""Bounds on the value of longer games: large biases are counted for the forecaster, or against it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import count, number
from onlinecal.exact.alphabets import Biases, Floats, Ints
from onlinecal.exact.game import LONGEST, Solution, _Game
from onlinecal.exact.memory import check_memory, threads_of
from onlinecal.exact.totals import ROUNDING, measure_named, of_biases, totals
from onlinecal.measures.base import Measure


@dataclass(frozen=True)
class ValueBracket:
    """A lower and an upper bound on the value of a game.

    Attributes
    ----------
    m, horizon : int
    measure : str
        Its total T·μ is paid by the forecaster.
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
    measure: str
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
    m: int, horizon: int, clip: float, measure: str = "ece", *,
    progress: bool | None = None, threads: int | None = None,
) -> ValueBracket:  # fmt: skip
    r"""A certified bracket of the value V of the game on 0, 1/m, …, 1, with nature seeing the law.

    Two other games are solved, in which biases beyond `clip` are not told apart. Their totals are, on every course of
    play, at most and at least that of the game itself.

    *Lower, of total ECE.* As soon as E_i ≥ c at the end of a round, Σ (y − i/m) over the later rounds at i is added to
    the total in place of their effect on |E_i|; for E_i ≤ −c, −Σ (y − i/m). As |E + S| ≥ ±(E + S), the total is at most
    the true one.

    *Upper, of all measures.* The total is a seminorm N of the vector of biases. A round that would move E_i by d to
    where |E_i| is larger than c adds N(d e_i) to the total and leaves E_i as it is. As N(E + d e_i + S) ≤ N(E + S) +
    N(d e_i), the total is, by induction over such rounds, at least the true one. Of total ECE N(d e_i) is |d|.

    *Lower, of the other measures.* Such a round takes N(d e_i) from the total. As N(E + d e_i + S) ≥ N(E + S) − N(d
    e_i), the total is at most the true one; and no value is below 0. The forecaster can force such rounds by forecasts
    of 0 and 1 in turns, so that this bound is 0 for clips well below T/4, and close from there on.

    If F ≤ G on every course of play, each strategy gets no less of G than of F, and so min max F ≤ min max G. In both
    games the rest of the total depends on the state alone, and both players know it from the course of play, so that
    backward induction solves them over the same strategies.

    Parameters
    ----------
    m : int
        Steps of the grid, from 1.
    horizon : int
        T, at most 100,000.
    clip : float
        c, from 1. The larger, the narrower the bracket, and the more states: of total ECE at most (2mc + 1)^(m−1), of
        another measure (c + 1)^2 times as many.
    measure : str, default "ece"
        One with a total that is a seminorm of the biases.
    progress, threads
        As for `onlinecal.exact.solve`.

    Returns
    -------
    ValueBracket

    Source
    ------
    This package.

    Examples
    --------
    >>> found = value_bracket(2, 40, 4.0)
    >>> found.lower <= 10.374115 <= found.upper, found.width < 0.01
    (True, True)
    """
    m, horizon = count("m", m), count("horizon", horizon, 1, LONGEST)
    clip = number("value_bracket", "clip", clip, 1.0)
    record = measure_named(measure)
    if not of_biases(record):
        expected = "ece, smooth_ce, kernel_ce, cutoff_ce, step_ce or another seminorm of the biases"
        said = "depends on more than the biases, so that no clip brackets it"
        raise InvalidParameter(f"measure {measure!r} {said}; expected {expected}")
    most = int(min(clip, horizon) * m)
    found: list[Floats] = []
    states = 0
    for sign in (-1, 1):
        if measure == "ece":
            alphabet: Biases = Clipped(m, horizon, most, upper=sign > 0)
        else:
            alphabet = Charged(m, horizon, most, sign * charges(record, m))
        check_memory(alphabet, horizon, measure, False)
        game = _Game(record, m, horizon, "law", False, threads_of(threads), alphabet)
        solution = Solution(m, horizon, measure, "law")
        game.run(solution, progress)
        assert solution.values is not None
        # The charges of rounds are, like the totals at the end, not exact.
        error = solution.error + ROUNDING * horizon * record.largest * (measure != "ece")
        found.append(solution.values + sign * error)
        states = max(states, solution.states)
    lowers, uppers = locked(np.maximum(found[0], 0.0)), locked(found[1])
    ends = float(lowers[-1]), float(uppers[-1])
    return ValueBracket(m, horizon, measure, clip, *ends, states, lowers, uppers)


def charges(measure: Measure, m: int) -> Floats:
    """(m + 1, 2): the seminorm of the bias that a round at each point leaves, with outcome 0 and with 1."""
    grid = np.arange(m + 1) / m
    left = np.eye(m + 1) * np.stack([-grid, 1.0 - grid])[:, :, None]
    return np.stack([totals(measure, grid, biases)[0] for biases in left], axis=1)


class Clipped(Biases):
    """Biases of which those beyond a number are one letter (lower bound), or are not reached (upper bound)."""

    def __init__(self, m: int, horizon: int, most: int, *, upper: bool) -> None:
        super().__init__(m, horizon, separate=True)
        self.most, self.upper = most, upper

    def settled(self, point: int, left: int) -> tuple[int, int]:
        """As `Biases` has it; for a lower bound, from `most` on too."""
        low, high = super().settled(point, left)
        return (low, high) if self.upper else (max(low, -self.most), min(high, self.most))

    def told_apart(self, value: Ints) -> NDArray[np.bool_]:
        """All biases for a lower bound; for an upper one those up to `most`."""
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

    def shorter(self, horizon: int) -> Clipped:
        return Clipped(self.m, horizon, self.most, upper=self.upper)


class Charged(Biases):
    """Biases up to a number; a round that would lead beyond it leaves the bias as it is, and is charged."""

    def __init__(self, m: int, horizon: int, most: int, charged: Floats) -> None:
        super().__init__(m, horizon, separate=False)
        self.most, self.charged = most, charged

    def told_apart(self, value: Ints) -> NDArray[np.bool_]:
        """Those up to `most`."""
        return np.abs(value) <= self.most

    def moved(self, point: int, left: int, value: Ints) -> tuple[Ints, Floats]:
        """As `Biases` has it, but beyond the largest bias."""
        after, _ = super().moved(point, left, value)
        beyond = np.abs(after) > self.most
        return np.where(beyond, value, after), np.where(beyond, self.charged[point][:, None], 0.0)

    def shorter(self, horizon: int) -> Charged:
        return Charged(self.m, horizon, self.most, self.charged)
