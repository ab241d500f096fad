"""What is written in a cell of a file of forecasts: a number, an outcome, or nothing."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

#: cells that stand for nothing, in lower case
EMPTY = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "<na>"})

#: words for 1 and 0 that need no `positive`, in lower case
WORDS = {"true": 1.0, "false": 0.0}

#: the white space that `str.strip` takes away
SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
SPACES += "\u2028\u2029\u202f\u205f\u3000"


def is_plain(text: str) -> bool:
    """Whether a text that Python reads as a number is one: Python also reads 1_0, and digits of every script."""
    return text.isascii() and "_" not in text


def is_empty(cell: str) -> bool:
    """Whether a cell stands for nothing."""
    return cell.strip().lower() in EMPTY


def as_number(cell: str) -> tuple[float | None, bool]:
    """What is written, and whether it has a per cent sign; NaN for nothing, None for what is no number.

    It is the float64 next to that, also with a decimal comma.
    """
    text = cell.strip()
    if text.lower() in EMPTY:
        return nan, False
    if marked := text.endswith("%"):
        text = text[:-1].rstrip()
    if not is_plain(text):
        return None, marked
    for way in (text, text.replace(",", ".")) if text.count(",") == 1 and "." not in text else (text,):
        try:
            value = float(way)
            return None if value != value else value, marked
        except ValueError:
            continue
    return None, marked


def as_outcome(cell: str, positive: str | None = None) -> float | None:
    """0 or 1; NaN for nothing, None for what is no outcome.

    Parameters
    ----------
    cell : str
    positive : str, optional
        What stands there where the event happened, in capitals or not; 2 is also 2.0. Then all else is 0. Default: 1
        or true for 1, and 0 or false for 0.
    """
    text = cell.strip().lower()
    if text in EMPTY:
        return nan
    if positive is not None:
        wanted = positive.strip().lower()
        return float(text == wanted or _equal(text, wanted))
    if (value := WORDS.get(text)) is not None:
        return value
    return next((float(x) for x in (0, 1) if _equal(text, str(x))), None)


def _equal(text: str, other: str) -> bool:
    """As numbers."""
    one = as_number(text)
    return one[0] is not None and one == as_number(other)


# ---------------------------------------------------------------- what is said of them

#: the refusal of per cent signs without `percent`
SIGNS = "{where}: column {name!r} has per cent signs; expected probabilities in [0, 1], or --percent"


#: the caution about `percent` where `hardly_per_cent` holds
UNIT = (
    "caution: no cell of column {name!r} is above 1, and --percent divides all of them by 100; leave it out if they "
    "are probabilities"
)


def hardly_per_cent(largest: float) -> bool:
    """Whether forecasts that were per cent, with this largest one, might have been probabilities."""
    return 0.0 < largest <= 0.01


def outside(where: str, name: str, shown: str, percent: bool, values: Any) -> str:
    """The message about a cell that is no forecast; numbers of the column tell whether it looks like per cent."""
    # Probabilities that rounding or a slip has lifted above 1 are few, and hardly above 1.
    looks = min(values) >= 0.0 and max(values) <= 100.0 and np.median(values) >= 2.0
    hint = "; these look like per cent: --percent" if looks and not percent else ""
    expected = "per cent from 0 to 100" if percent else "a probability in [0, 1]"
    return f"{where}: column {name!r} holds {shown}; expected {expected}{hint}"
