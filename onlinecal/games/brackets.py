"""Bounds on the value of longer games: large biases are counted for the forecaster, or against it."""

from dataclasses import dataclass, field

import numpy as np

from onlinecal.core.arrays import Floats, locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import count, number
from onlinecal.games.solving import LONGEST, solved
from onlinecal.games.states import Biases
from onlinecal.games.totals import ROUNDING, measure_named, of_biases, totals
from onlinecal.measures.base import Measure


@dataclass(frozen=True)
class ValueBracket:
    """A lower and an upper bound on the value of a game.

    Attributes
    ----------
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

    *Lower, of total ECE.* As soon as E_i ≥ c, Σ (y − i/m) over the later rounds at i takes the place of their effect on
    |E_i|. For E_i ≤ −c it is −Σ (y − i/m). As |E + S| ≥ ±(E + S), the total is at most the true one.

    *Upper, of all measures.* The total is a seminorm N of the vector of biases. A round that would move E_i by d to
    where |E_i| is larger than c adds N(d e_i) to the total and leaves E_i as it is. As N(E + d e_i + S) ≤ N(E + S) +
    N(d e_i), the total is, by induction over such rounds, at least the true one. Of total ECE N(d e_i) is |d|.

    *Lower, of the other measures.* Such a round takes N(d e_i) from the total. As N(E + d e_i + S) ≥ N(E + S) − N(d
    e_i), the total is at most the true one; and no value is below 0. The forecaster can force such rounds by forecasts
    of 0 and 1 in turns. So this bound is 0 for clips well below T/4, and close from there on.

    If F ≤ G on every course of play, each strategy gets no less of G than of F, and so min max F ≤ min max G. The rest
    of either total depends on the state alone, which both players know. So backward induction solves both games over
    the same strategies.

    Source: This package.

    Parameters
    ----------
    m : int
        Steps of the grid, from 1.
    horizon : int
        T, at most 100,000.
    clip : float
        c, from 1. Larger ones narrow the bracket, and take more states: of total ECE at most (2mc + 1)^(m−1). Other
        measures take (c + 1)^2 times as many.
    measure : str, default "ece"
        One with a total that is a seminorm of the biases.
    progress, threads
        As for `onlinecal.games.solve`.

    Examples
    --------
    >>> found = value_bracket(2, 40, 4.0)
    >>> found.lower <= 10.374115 <= found.upper, found.width < 0.01
    (True, True)
    """
    m, horizon = count("m", m), count("horizon", horizon, 1, LONGEST)
    clip = number("value_bracket", "clip", clip, 1.0)
    record, ece = measure_named(measure), measure == "ece"
    if not of_biases(record):
        expected = "ece, smooth_ce, kernel_ce, cutoff_ce, step_ce or another seminorm of the biases"
        said = "depends on more than the biases, so that no clip brackets it"
        raise InvalidParameter(f"measure {measure!r} {said}; expected {expected}")
    found: list[Floats] = []
    states = 0
    for sign in (-1, 1):
        charged = None if ece and sign < 0 else sign * charges(record, m)
        alphabet = Biases(m, horizon, ece, int(min(clip, horizon) * m), charged)
        solution = solved(record, alphabet, "law", progress=progress, threads=threads)
        assert solution.values is not None
        # The charges of rounds are, like the totals at the end, not exact.
        error = solution.error + ROUNDING * horizon * (not ece)
        found.append(solution.values + sign * error)
        states = max(states, solution.states)
    lowers, uppers = locked(np.maximum(found[0], 0.0)), locked(found[1])
    ends = float(lowers[-1]), float(uppers[-1])
    return ValueBracket(m, horizon, measure, clip, *ends, states, lowers, uppers)


def charges(measure: Measure, m: int) -> Floats:
    """(m + 1, 2): the seminorm of the bias that a round at each point leaves, with outcome 0 and with 1."""
    steps = np.arange(m + 1)
    if measure.name == "ece":
        return np.stack([steps, m - steps], axis=1) / m
    grid = steps / m
    left = np.eye(m + 1) * np.stack([-grid, 1.0 - grid])[:, :, None]
    return np.stack([totals(measure, grid, biases)[0] for biases in left], axis=1)
