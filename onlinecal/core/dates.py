"""Dates and times as they are written in cells."""

import math
import re
from datetime import UTC, datetime, timedelta


def as_time(cell: str) -> tuple[float | None, bool]:
    """The number of a cell that holds a time, or None; and whether it is a date: days since 1970."""
    # Reads ISO 8601, with or without a zone; 2024/2/3 and 2024.2.3 are 2024-02-03, and 2024-02 is its first day.
    text = cell.strip()
    try:
        number = float(text)
    except ValueError:
        return _days(text), True
    good = math.isfinite(number) and text.isascii() and "_" not in text
    return (number, False) if good else (_days(text), True)


def _days(text: str) -> float | None:
    if found := _LOOSE.fullmatch(text):
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


#: year, month and day, also where they are not written as in ISO 8601; and 1970
_LOOSE = re.compile(r"(\d{4})([-/.])(\d\d?)(?:\2(\d\d?))?((?:[T ].*)?)", re.ASCII)
_EPOCH, _NAIVE, _ONE = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1), timedelta(days=1)
