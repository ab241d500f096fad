"""A watch that goes on: what is kept of how its lines are read, and the refusal of what differs."""

from __future__ import annotations

import codecs
from dataclasses import replace
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.forecasts.reading import Asked
from onlinecal.forecasts.sheet import unknown_encoding

#: the settings by which lines are read, but the encoding, and the options that name them
_OPTIONS = {
    "forecast": "--forecast", "outcome": "--outcome", "key": "--id", "time": "--time", "positive": "--positive",
    "percent": "--percent", "delimiter": "--delimiter",
}  # fmt: skip


def kept(asked: Asked, delimiter: str | None) -> dict[str, Any]:
    """The settings by which lines are read, as a state keeps them."""
    forecast = asked.forecasts[0] if asked.forecasts else None
    positive = None if asked.positive is None else asked.positive.strip().lower()
    values = {name: getattr(asked, name, None) for name in _OPTIONS}
    return values | {"forecast": forecast, "positive": positive, "delimiter": delimiter}


def as_before(asked: Asked, delimiter: str | None, before: dict[str, Any]) -> Asked:
    """The same columns and words as before, where none or the same are asked for.

    Raises
    ------
    InvalidParameter
        Others are.
    """
    for name, now in kept(asked, delimiter).items():
        if now not in (None, False, before[name]):
            raise _differs(_OPTIONS[name], before[name], now)
    same = {name: before[name] for name in ("outcome", "key", "time", "positive", "percent")}
    return replace(asked, forecasts=(before["forecast"],), **same)


def check_encoding(wanted: str | None, before: str) -> None:
    """Refuses another encoding than that of the lines before; the mark at the begin of a file is no part of it."""
    if wanted is not None:
        name = codec(wanted).removesuffix("-sig")
        if name != before and not before.startswith(f"{name}-"):
            raise _differs("--encoding", before, wanted)


def codec(name: str) -> str:
    """The name that Python has for an encoding of text."""
    try:
        "".encode(name)
        return codecs.lookup(name).name
    except LookupError:
        raise unknown_encoding(name) from None


def _differs(option: str, before: Any, now: Any) -> InvalidParameter:
    given = option if now is True else f"{option} {now}"
    was = f"{option} {before}" if before else f"no {option}"
    return InvalidParameter(
        f"{given}, but the state is of a watch with {was}; expected the same, or another --state"
    )
