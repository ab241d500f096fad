"""Values of small games without rounding, and states as people write them."""

import math
from fractions import Fraction
from functools import cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import choice, count

#: measures with totals that are rational numbers on a grid of rational points
RATIONAL = ("ece", "cutoff_ce", "step_ce")
#: rounds up to which a value is computed: its digits double with each
LONGEST = 10
#: a rational number of more characters is not printed
LEGIBLE = 40


def rational_value(m: int, horizon: int, measure: str = "ece", sight: str = "law") -> Fraction:
    """The value of a game as a rational number, by the recursion of `solve`: 1/2, 3/4 and 29/28 for T = 1, 2, 3 and m =
    2.
    """
    m, horizon = count("m", m), count("horizon", horizon, 1, LONGEST)
    measure = choice("rational_value", "measure", measure, RATIONAL)
    sight = choice("rational_value", "sight", sight, ("law", "draw", "history"))

    @cache
    def value(left: int, state: tuple[int, ...]) -> Fraction:
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


def _total(measure: str, m: int, state: tuple[int, ...]) -> Fraction:
    if measure == "ece":
        return Fraction(sum(map(abs, state)), m)
    sums = [0, *accumulate(state)]
    return Fraction(max(sums) - min(sums) if measure == "cutoff_ce" else max(map(abs, sums)), m)


def rational_text(m: int, horizon: int, measure: str, sight: str) -> str:
    """The value of a small game as a fraction; "" where that is long."""
    if measure not in RATIONAL or horizon > 6 or m > 6:
        return ""
    return legible(rational_value(m, horizon, measure, sight))


def legible(value: Fraction) -> str:
    """A fraction as text; "" where that is long."""
    # Python refuses to write numbers of thousands of digits.
    return "" if value.denominator.bit_length() > 4 * LEGIBLE or len(str(value)) > LEGIBLE else str(value)


def counts_of(text: str, m: int, horizon: int) -> NDArray[np.int64]:
    """Rounds and outcomes 1 of each point, (m + 1, 2), from text: "0.5:1, 0.5:0" is two rounds of forecast:outcome."""
    counts = np.zeros((count("m", m) + 1, 2), np.int64)
    for said in filter(None, (part.strip() for part in text.split(","))):
        forecast, _, outcome = said.partition(":")
        try:
            place = float(forecast) * m
        except ValueError:
            place = math.nan
        on_grid = -1e-9 <= place <= m + 1e-9 and abs(place - round(place)) <= 1e-9
        if not on_grid or outcome.strip() not in ("0", "1"):
            expected = f"forecast:outcome with a forecast of 0, 1/{m}, …, 1 and an outcome 0 or 1"
            raise InvalidParameter(f"round {said!r}; expected {expected}")
        counts[round(place)] += 1, int(outcome)
    if (played := int(counts[:, 0].sum())) >= count("horizon", horizon):
        raise InvalidParameter(f"{played} rounds have been played of T = {horizon}; expected fewer")
    return counts
