"""Checks of options that several measures have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinecal.errors import InvalidParameter


def integer(measure: str, name: str, value: Any, least: int, most: int | None = None) -> int:
    """`value` as an int, or the error that says what was expected."""
    if not _whole(value) or value < least or (most is not None and value > most):
        upper = "" if most is None else f" and at most {most}"
        raise InvalidParameter(
            f"{measure}: {name} = {value!r}; expected an integer of at least {least}{upper}"
        )
    return int(value)


def count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """The same without a measure's name, for an option that several functions have in common: a number, a seed."""
    if not _whole(value) or value < least or (most is not None and value > most):
        upper = "" if most is None else f" and ≤ {most}"
        raise InvalidParameter(f"{name} = {value!r}; expected an integer ≥ {least}{upper}")
    return int(value)


def number(measure: str, name: str, value: Any, least: float, most: float = math.inf) -> float:
    """`value` as a float in [least, most], or the error that says what was expected."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not real or not least <= value <= most:
        raise InvalidParameter(f"{measure}: {name} = {value!r}; expected a number in [{least:g}, {most:g}]")
    return float(value)


def choice(measure: str, name: str, value: Any, known: tuple[str, ...]) -> str:
    """`value` if it is one of the known words."""
    if not isinstance(value, str) or value not in known:
        words = ", ".join(repr(word) for word in known)
        raise InvalidParameter(f"{measure}: {name} = {value!r}; expected one of {words}")
    return value


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
