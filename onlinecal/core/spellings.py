"""How numbers, outcomes and times are written in a cell of a file."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

#: cells that stand for nothing, in lower case
EMPTY = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "<na>"})
#: words for 1 and 0 that need no `positive`, in lower case
WORDS = {"true": 1.0, "false": 0.0}


def as_number(cell: str) -> tuple[float | None, bool]:
    """The float64 next to what is written, NaN for nothing, None for no number; and whether it has a per cent sign.

    A decimal comma will do. Python would read 1_0 as 10, and digits of every script.
    """
    text = cell.strip()
    if text.lower() in EMPTY:
        return math.nan, False
    if marked := text.endswith("%"):
        text = text[:-1].rstrip()
    if text.isascii() and "_" not in text:
        for way in (text, text.replace(",", ".")) if text.count(",") == 1 and "." not in text else (text,):
            try:
                value = float(way)
                return None if value != value else value, marked
            except ValueError:
                continue
    return None, marked


def as_outcome(cell: str, positive: str | None = None) -> float | None:
    """0 or 1; NaN for nothing, None for what is no outcome.

    With `positive`, the word for 1 in any letters (2 is also 2.0), all else is 0.
    """
    text = cell.strip().lower()
    if text in EMPTY:
        return math.nan
    if positive is not None:
        wanted = positive.strip().lower()
        return float(text == wanted or _equal(text, wanted))
    if (value := WORDS.get(text)) is not None:
        return value
    return next((float(x) for x in (0, 1) if _equal(text, str(x))), None)


def _equal(text: str, other: str) -> bool:
    """Whether both are the same number."""
    one = as_number(text)
    return one[0] is not None and one == as_number(other)


def as_time(cell: str) -> tuple[float | None, bool]:
    """The number of a cell that holds a time, or None; and whether it is a date.

    A finite number is itself. A date of ISO 8601, with or without a time of day and a zone (default UTC), is days since
    1970, to the microsecond; 2024/2/3 and 2024.2.3 are 2024-02-03, and 2024-02 is its first day.
    """
    text = cell.strip()
    try:
        number = float(text)
    except ValueError:
        return _days(text), True
    good = math.isfinite(number) and text.isascii() and "_" not in text
    return (number, False) if good else (_days(text), True)


def _days(text: str) -> float | None:
    usual = text[4:8:3] == "--" and text[9:10].isdigit()
    if not usual and (found := _LOOSE.fullmatch(text)):
        year, month, day, rest = found.group(1, 3, 4, 5)
        text = f"{year}-{month:0>2}-{day or 1:0>2}{rest}"
    # Python takes any character between date and time, also the sign of a zone; and eight digits are a number.
    if text.isdigit() or text[10 if text[4:5] == "-" else 8 :][:1] not in ("", "T", "t", " "):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment - (_EPOCH if moment.tzinfo else _NAIVE)) / _ONE


#: year, month and day that are not written as in ISO 8601; and 1970
_LOOSE = re.compile(r"(\d{4})([-/.])(\d\d?)(?:\2(\d\d?))?((?:[T ].*)?)", re.ASCII)
_EPOCH, _NAIVE, _ONE = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1), timedelta(days=1)
