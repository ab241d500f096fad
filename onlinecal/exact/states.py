"""States of a game and values as text."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import count
from onlinecal.exact.rational import RATIONAL, rational_value

#: a rational number of more characters is not printed
LEGIBLE = 40


def counts_of(text: str, m: int, horizon: int) -> NDArray[np.int64]:
    """Rounds and outcomes 1 of each point, (m + 1, 2), from rounds as ``forecast:outcome``, with commas.

    >>> counts_of("0.5:1, 0.5:0", 2, 4).tolist()
    [[0, 0], [2, 1], [0, 0]]
    """
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


def rational_text(m: int, horizon: int, measure: str, sight: str) -> str:
    """The value of a small game as a fraction; "" where that is long."""
    if measure not in RATIONAL or horizon > 6 or m > 6:
        return ""
    text = str(rational_value(m, horizon, measure, sight))
    return text if len(text) <= LEGIBLE else ""
