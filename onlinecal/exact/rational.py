"""Values as rational numbers, for games that are small enough to write them down."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from onlinecal.core.validation import choice, count

#: measures with totals that are rational numbers on a grid of rational points
RATIONAL = ("ece", "cutoff_ce", "step_ce")

#: rounds up to which a value is computed: its digits double with each
LONGEST = 10

State = tuple[int, ...]


def rational_value(m: int, horizon: int, measure: str = "ece", sight: str = "law") -> Fraction:
    """The value of a game as a rational number, by the recursion of `onlinecal.exact.solve` without rounding.

    >>> [str(rational_value(2, horizon)) for horizon in (1, 2, 3)]
    ['1/2', '3/4', '29/28']
    """
    m, horizon = count("m", m), count("horizon", horizon, 1, LONGEST)
    measure = choice("rational_value", "measure", measure, RATIONAL)
    sight = choice("rational_value", "sight", sight, ("law", "draw", "history"))

    @cache
    def value(left: int, state: State) -> Fraction:
        if left == 0:
            return _total(measure, m, state)
        outcomes = [
            [value(left - 1, (*state[:i], state[i] + m * y - i, *state[i + 1 :])) for y in (0, 1)]
            for i in range(m + 1)
        ]
        least = min(max(pair) for pair in outcomes)
        if sight == "draw":
            return least
        rising = [(a, b) for a, b in outcomes if a < b]
        falling = [(a, b) for a, b in outcomes if a > b]
        mixed = ((a * d - b * c) / (a - b + d - c) for a, b in falling for c, d in rising)
        return min(least, min(mixed, default=least))

    return value(horizon, (0,) * (m + 1))


def _total(measure: str, m: int, state: State) -> Fraction:
    if measure == "ece":
        return Fraction(sum(map(abs, state)), m)
    prefixes = [0]
    for bias in state:
        prefixes.append(prefixes[-1] + bias)
    if measure == "cutoff_ce":
        return Fraction(max(prefixes) - min(prefixes), m)
    return Fraction(max(map(abs, prefixes)), m)
