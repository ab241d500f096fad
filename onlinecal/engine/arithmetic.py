"""Python's arithmetic of whole and real numbers in compiled code: the same numbers, or an error.

Python's whole numbers have no largest one: what goes beyond 64 bits here raises an error. A number that is whole on one
path and real on another is a real one here (*mixed*). Python's would stay whole, so it raises an error beyond 2^53. An
error are also a division by zero, and a function of `math` without a value.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cfunc, float64, njit

from onlinecal.engine.run import law
from onlinecal.engine.uniforms import own_uniform

#: unlike steps of the package, methods divide as Python does: by zero is an error
HOW: Any = {"error_model": "python", "nogil": True}
#: whole numbers are equal to real ones up to here; and the limit of 64 bits
EXACT, LIMIT = 2.0**53, 9.2e18

if TYPE_CHECKING:
    from typing import no_type_check as part
else:

    def part(function: Any) -> Any:
        """Marks a part of compiled methods; its machine code is kept on disk, where there is a place for it."""
        try:
            return njit(cache=True, forceinline=True, **HOW)(function)
        except RuntimeError:
            return njit(forceinline=True, **HOW)(function)


@part
def fits(size):
    """Refuses whole numbers beyond 64 bits, by their size as a real number."""
    if not abs(size) < LIMIT:
        raise OverflowError("a whole number of more than 64 bits")


@part
def whole(a):
    """A truth value or whole number as one of 64 bits."""
    return np.int64(a)


@part
def real(a):
    """The real number that is equal to a whole one."""
    if not -EXACT <= a <= EXACT:
        raise OverflowError("a whole number of more than 53 bits where there may be a real one")
    return float(np.int64(a))


@part
def rounded(a):
    """The real number that is nearest to a whole one."""
    return float(np.int64(a))


@part
def add(a, b):
    """a + b of whole numbers; the others also."""
    x, y = np.int64(a), np.int64(b)
    fits(float(x) + float(y))
    return x + y


@part
def subtract(a, b):
    """a − b."""
    x, y = np.int64(a), np.int64(b)
    fits(float(x) - float(y))
    return x - y


@part
def multiply(a, b):
    """a · b."""
    x, y = np.int64(a), np.int64(b)
    fits(float(x) * float(y))
    return x * y


@part
def power(a, b):
    """a to the power b."""
    x, n, z = np.int64(a), np.int64(b), np.int64(1)
    if n < 0:
        raise ValueError("a negative power of a whole number")
    while n > 0:
        if n & 1:
            fits(float(x) * float(z))
            z *= x
        n >>= 1
        if n > 0:  # a factor of the power: where it is too large, so is the power
            fits(float(x) * float(x))
            x *= x
    return z


@part
def stays(a, b, z):
    """The result z of two mixed numbers. Those that are whole in Python are at most 2^53."""
    if EXACT < abs(z) < np.inf and abs(a) <= EXACT and abs(b) <= EXACT and a % 1 == 0 and b % 1 == 0:
        raise OverflowError("a whole number of more than 53 bits where there may be a real one")
    return z


@part
def add_mixed(a, b):
    """a + b of mixed numbers; the others also."""
    return stays(a, b, a + b)


@part
def subtract_mixed(a, b):
    """a − b."""
    return stays(a, b, a - b)


@part
def multiply_mixed(a, b):
    """a · b."""
    return stays(a, b, a * b)


@cache
def powers() -> tuple[Any, Any]:
    """a to the power b of real numbers, and of mixed ones, by the function of C that Python calls."""
    # It is called at its address: where the compiler sees b it has rules of its own, such as a · a.
    of_c: Any = cfunc(float64(float64, float64), cache=False)(lambda a, b: math.pow(a, b)).ctypes

    def real_power(a: float, b: float) -> float:
        z = of_c(a, b)
        if not math.isfinite(z) and math.isfinite(a) and math.isfinite(b):
            raise ValueError("a power without a real value")
        return z

    power = njit(**HOW)(real_power)
    return power, njit(**HOW)(lambda a, b: stays(a, b, power(a, b)))


@part
def smaller(a, b):
    """The same one of two numbers as `min`."""
    return b if b < a else a


@part
def larger(a, b):
    """The same one of two numbers as `max`."""
    return b if b > a else a


def _to_whole(function: Callable[..., Any]) -> Any:
    """A function of a real number to whole ones."""

    def rounded(a: float) -> int:
        fits(a)
        return np.int64(function(a))  # type: ignore[return-value]

    return part(rounded)


def _with_value(function: Callable[..., Any]) -> Any:
    """A function of `math`: where it has no value it raises an error, as there."""

    def valued(a: float) -> float:
        value: float = function(a)
        if (math.isnan(value) and not math.isnan(a)) or (math.isinf(value) and math.isfinite(a)):
            raise ValueError("a function of math without a value")
        return value

    return part(valued)


#: functions of one real number: to whole ones, to real ones, and to truth values
TO_WHOLE = {f: _to_whole(f) for f in (builtins.int, builtins.round, math.floor, math.ceil)}
TO_REAL = {
    f: _with_value(f)
    for f in (math.sqrt, math.exp, math.expm1, math.log, math.log1p, math.sin, math.cos, math.atan, math.tanh)
}
TO_TRUTH = {f: f for f in (math.isnan, math.isinf, math.isfinite)}


# ---------------------------------------------------------------- lists and laws


@part
def entry(ints, at, i):
    """The place of entry i of a list; the state has its beginning at `at`, and then its length."""
    length = ints[at + 1]
    if i < -length or i >= length:
        raise IndexError("an index out of range")
    return ints[at] + i + (length if i < 0 else 0)


@part
def atom(run, size, value, weight):
    """Adds an atom to the law as a dict would: one of the same value gets this weight. The number of atoms."""
    values, weights = law(run)
    for j in range(size):
        if values[j] == value:
            weights[j] = weight
            return size
    values[size], weights[size] = value, weight
    return size + 1


@part
def number_of_stream(run, i):
    """Number i of the stream of the run."""
    if i < 0:
        raise IndexError("a negative index of a stream")
    return own_uniform(run, i)
