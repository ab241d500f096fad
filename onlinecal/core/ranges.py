"""Ranges of numbers: ``{from = 0.1, to = 0.9, steps = 9}``, by a step, or evenly spaced in the logarithm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal, localcontext
from typing import Any

from onlinecal.core.errors import InvalidParameter, shown, suggestion
from onlinecal.core.validation import is_number, is_whole

#: the keys of which one at least tells a range
ENDS = ("from", "to", "steps", "step", "spacing")
#: values of one parameter
MOST = 1_000_000
#: significant digits of what is not whole: the decimal number that was meant, 0.3 and not 0.30000000000000004
DIGITS = 15


def ranged(name: str, spec: Mapping[str, Any], *, whole: bool = False) -> list[int | float]:
    """The numbers of a range, ascending, computed in decimal numbers; rounded to integers, each once, if `whole`.

    >>> ranged("q", {"from": 0.1, "to": 0.5, "steps": 5})
    [0.1, 0.2, 0.3, 0.4, 0.5]
    >>> ranged("m", {"from": 10, "to": 1000, "steps": 3, "spacing": "log"})
    [10, 100, 1000]
    >>> ranged("m", {"from": 10, "to": 45, "step": 10})
    [10, 20, 30, 40]
    """
    said = f"{name} = {dict(spec)!r}"
    for key in spec:
        if key not in ENDS:
            raise InvalidParameter(f"{said}: a range has no {key!r}{suggestion(str(key), ENDS)}")
    for key in ("from", "to"):
        if key not in spec:
            raise InvalidParameter(f"{said}: a range needs {key!r}; expected from, to, and steps or step")
    if ("steps" in spec) == ("step" in spec):
        raise InvalidParameter(
            f"{said}; expected either steps (how many) or step (how far apart), one of the two"
        )
    for key in ("from", "to", "step"):
        value, kind = spec.get(key, 0), ""
        if not (is_number(value) and math.isfinite(value)):
            kind = "a finite number"
        elif whole and value != int(value):
            kind = f"a whole number, as {name} is one"
        if kind:
            raise InvalidParameter(f"{said}: {key} = {shown(value)}; expected {kind}")
    low, high = _exact(spec["from"]), _exact(spec["to"])
    if low > high:
        raise InvalidParameter(f"{said}: from is above to; expected from ≤ to")
    spacing = spec.get("spacing", "linear")
    if spacing not in ("linear", "log"):
        raise InvalidParameter(f"{said}: spacing = {spacing!r}; expected 'linear' or 'log'")
    if spacing == "log" and ("step" in spec or low <= 0):
        raise InvalidParameter(f"{said}: expected steps and from > 0 with spacing = 'log'")
    with localcontext() as context:
        context.prec = 40
        values = _spaced(said, spec, low, high, spacing == "log")
        if whole:
            values = list(dict.fromkeys(value.to_integral_value() for value in values))
            if len(values) < spec.get("steps", 0) and high - low + 1 < spec["steps"]:
                there = f"there are {int(high - low) + 1} whole numbers"
                raise InvalidParameter(f"{said}: {there}, fewer than steps = {spec['steps']}")
        else:
            context.prec = DIGITS
            values = [value if value in (low, high) else +value for value in values]
    given = [spec[key] for key in ("from", "to", "step") if key in spec]
    if whole or (all(map(is_whole, given)) and all(value == int(value) for value in values)):
        return [int(value) for value in values]
    return [float(value) for value in values]


def _spaced(said: str, spec: Mapping[str, Any], low: Decimal, high: Decimal, log: bool) -> list[Decimal]:
    if "step" in spec:
        step = _exact(spec["step"])
        if step <= 0:
            raise InvalidParameter(f"{said}: step = {spec['step']!r}; expected a number above 0")
        count = (high - low) / step
        if count >= MOST:
            raise InvalidParameter(f"{said}: {count:.3g} values; expected at most {MOST:,}")
        return [low + i * step for i in range(int(count) + 1)]
    steps = spec["steps"]
    if not is_whole(steps) or not 2 <= steps <= MOST:
        raise InvalidParameter(f"{said}: steps = {shown(steps)}; expected an integer from 2 to {MOST:,}")
    if low == high:
        raise InvalidParameter(f"{said}: from and to are the same; expected from < to")
    last = steps - 1
    if log:
        ratio = (high / low).ln() / last
        inner = [low * (ratio * i).exp() for i in range(1, last)]
    else:
        inner = [low + (high - low) * i / last for i in range(1, last)]
    return [low, *inner, high]


def _exact(number: Any) -> Decimal:
    """The decimal number that was written."""
    return Decimal(int(number)) if is_whole(number) else Decimal(repr(float(number)))
