"""Functions that compiled methods of plain classes have in place of those of Python, which end where Python's do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numba import TypingError, njit, types
from numba.extending import overload

from onlinecal.engine.run import law
from onlinecal.engine.uniforms import own_uniform

#: methods divide as Python does, and an index beyond a list is an error
HOW: Any = {"error_model": "python", "nogil": True, "boundscheck": True}
#: why a real number is not stored
REAL = "what begins as a whole number gets a real one"


def _valued(function: Callable[..., Any]) -> Any:
    """A function of `math` that ends where it has no value, of a number that is one."""

    def valued(x: float) -> float:
        y = function(x)
        if (math.isnan(y) and not math.isnan(x)) or (math.isinf(y) and math.isfinite(x)):
            raise ValueError
        return y

    return njit(**HOW)(valued)


def _whole(function: Callable[..., Any]) -> Any:
    """A function that makes a whole number, which ends where that has no 64 bits."""

    def whole(x: float) -> int:
        if not -(2.0**63) <= x < 2.0**63:
            raise ValueError
        return int(function(x))

    return njit(**HOW)(whole)


def power(a: Any, b: Any) -> Any:
    """a ** b of real numbers."""


@overload(power, strict=False)
def _power(a: Any, b: Any) -> Any:
    if not isinstance(a, types.Float) and not isinstance(b, types.Float):
        raise TypingError("<<a power of two whole numbers; expected products, or a real base such as 2.0>>")

    def of_real(a: float, b: float) -> float:
        y = math.pow(a, b)
        known = math.isfinite(a) and math.isfinite(b)
        if (math.isnan(y) and not (math.isnan(a) or math.isnan(b))) or (math.isinf(y) and known):
            raise ValueError
        return y

    return of_real


def whole(value: Any) -> Any:
    """A value that is stored in a whole attribute; a real one is not compiled."""


@overload(whole, strict=False)
def _stored(value: Any) -> Any:
    if isinstance(value, types.Float):
        raise TypingError(f"<<{REAL}; expected 0.0 in place of 0>>")
    return lambda value: value


def forecast(value: Any) -> Any:
    """A forecast of a law that is a dict; a truth value, kept as a whole number or not, is an outcome there."""


@overload(forecast, strict=False)
def _forecast(value: Any) -> Any:
    if not isinstance(value, types.Float):
        raise TypingError("<<a truth value or whole number is a forecast of a law; expected float(…) of it>>")
    return lambda value: value


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
def uniform(run: Any, i: int) -> float:
    """Number i of the stream of the run."""
    if i < 0:
        raise ValueError
    return own_uniform(run, i)


#: the functions that methods may call, and what is compiled in their place
CALLS: dict[Any, Any] = {each: each for each in (
    abs, bool, enumerate, len, max, min, range, math.copysign, math.fabs, math.isfinite, math.isinf, math.isnan,
)}  # fmt: skip
CALLS |= {each: _valued(each) for each in (
    math.sqrt, math.exp, math.expm1, math.log, math.log1p, math.sin, math.cos, math.atan, math.tanh,
)}  # fmt: skip
CALLS |= {each: _whole(each) for each in (int, round, math.floor, math.ceil)}
CALLS[float] = njit(**HOW)(lambda x: x * 1.0)  # also of a truth value
