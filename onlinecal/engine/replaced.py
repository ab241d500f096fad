"""Functions that compiled methods of plain classes have in place of those and operators of Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import overload

from onlinecal.engine.run import law
from onlinecal.engine.uniforms import own_uniform

#: methods divide as Python does, and an index beyond a list is an error
HOW: Any = {"error_model": "python", "nogil": True, "boundscheck": True}


def _valued(function: Callable[..., Any]) -> Any:
    """A function of `math` that ends where Python's does: without a value of numbers that have one."""

    def valued(x: float) -> float:
        y = function(x)
        if (math.isnan(y) and not math.isnan(x)) or (math.isinf(y) and math.isfinite(x)):
            raise ValueError
        return y

    return njit(**HOW)(valued)


def _whole(function: Callable[..., Any]) -> Any:
    """A function that makes a whole number, which ends where it has no 64 bits."""

    def whole(x: float) -> int:
        if not -(2.0**63) <= x < 2.0**63:
            raise ValueError
        return int(function(x))

    return njit(**HOW)(whole)


def power(a: Any, b: Any) -> Any:
    """a ** b."""


@overload(power, strict=False)
def _power(a: Any, b: Any) -> Any:
    def of_whole(a: int, b: int) -> Any:
        if b < 0:
            raise ValueError
        y, square = np.int64(1), np.int64(a)  # by squares: numba 0.61 has large powers of whole numbers wrong
        while b > 0:
            if b & 1:
                y *= square
            square *= square
            b >>= 1
        return y

    def of_real(a: float, b: float) -> float:
        y = math.pow(a, b)
        known = math.isfinite(a) and math.isfinite(b)
        if (math.isnan(y) and not (math.isnan(a) or math.isnan(b))) or (math.isinf(y) and known):
            raise ValueError
        return y

    return of_whole if isinstance(a, types.Integer) and isinstance(b, types.Integer) else of_real


def fit(value: Any, field: str) -> Any:
    """A value that is stored in a whole attribute of this name; no code of a real value."""


@overload(fit, prefer_literal=True, strict=False)
def _fit(value: Any, field: Any) -> Any:
    if isinstance(value, types.Float):
        raise TypingError(f"<real in {getattr(field, 'literal_value', '')}>")
    return lambda value, field: value


@njit(**HOW)
def atom(run: Any, size: int, value: float, weight: float) -> int:
    """Writes an atom as a dict does: of equal values the first stays, and the last weight."""
    (values, weights), at = law(run), 0
    while at < size and values[at] != value:
        at += 1
    if at == size:
        values[at] = value
    weights[at] = weight
    return max(size, at + 1)


@njit(**HOW)
def number(run: Any, i: int) -> float:
    """Number i of the stream of the run."""
    if i < 0:
        raise ValueError
    return own_uniform(run, i)


VALUED = math.sqrt, math.exp, math.expm1, math.log, math.log1p, math.sin, math.cos, math.atan, math.tanh
CALLS: dict[Any, Any] = {float: njit(**HOW)(lambda x: x * 1.0)}  # also of a truth value
CALLS |= {f: _valued(f) for f in VALUED} | {f: _whole(f) for f in (int, round, math.floor, math.ceil)}
TRUTHS = bool, math.isnan, math.isinf, math.isfinite
#: how many arguments a function may take
TAKES = dict.fromkeys((*CALLS, *TRUTHS, abs, math.fabs, len), (1, 1))
TAKES |= {math.copysign: (2, 2), min: (2, 99), max: (2, 99)}
