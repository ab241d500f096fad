"""Python's arithmetic of whole and real numbers in compiled code: the same numbers, or an error.

Python's whole numbers have no largest one: what goes beyond 64 bits here raises an error. So does a division by zero,
and a function of `math` without a value.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from onlinecal.core._compile import part_of_kernel


def _function(real: Callable[..., Any], whole: Callable[..., Any] | None = None, strict: bool = False) -> Any:
    """A function of compiled code, with another body where all arguments are whole numbers."""

    def unary(a: Any) -> Any:
        raise NotImplementedError

    def binary(a: Any, b: Any) -> Any:
        raise NotImplementedError

    def chosen(*kinds: Any) -> Any:
        if strict and all(isinstance(k, types.Boolean) for k in kinds):
            raise TypingError(COMPARED)
        return whole if whole and all(isinstance(k, types.Integer | types.Boolean) for k in kinds) else real

    for body in (real, whole):
        if body:
            body.__annotations__ = {}  # Numba would have the same ones on both sides
    # Of the error model of Python: a division by zero raises an error.
    mark: Any = {"error_model": "python", "forceinline": True}
    if real.__code__.co_argcount == 1:
        overload(unary, jit_options=mark)(lambda a: chosen(a))
        return unary
    overload(binary, jit_options=mark)(lambda a, b: chosen(a, b))
    return binary


@intrinsic
def _hidden(typingctx: Any, number: Any) -> Any:
    """The same number, as no constant that the compiler knows: it has rules of its own for some powers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        same = builder.asm(ir.FunctionType(word, [word]), "", "=r,0", [builder.bitcast(args[0], word)], False)
        return builder.bitcast(same, ir.DoubleType())

    return types.float64(types.float64), codegen


@part_of_kernel
def _fits(size):
    """Refuses whole numbers beyond 64 bits, and quotients of such beyond 53, by their size as a real number."""
    if not abs(size) < 9.2e18:
        raise OverflowError("a whole number of more than 64 bits")


def _add(a: Any, b: Any) -> Any:
    x, y = np.int64(a), np.int64(b)
    _fits(float(x) + float(y))
    return x + y


def _subtract(a: Any, b: Any) -> Any:
    x, y = np.int64(a), np.int64(b)
    _fits(float(x) - float(y))
    return x - y


def _multiply(a: Any, b: Any) -> Any:
    x, y = np.int64(a), np.int64(b)
    _fits(float(x) * float(y))
    return x * y


def _divide(a: Any, b: Any) -> Any:
    x, y = np.int64(a), np.int64(b)
    _fits(1024.0 * max(abs(float(x)), abs(float(y))))  # of 53 bits: the quotient is rounded once
    return x / y


def _power(a: Any, b: Any) -> Any:
    x, y = float(a), float(b)
    z = math.pow(_hidden(x), _hidden(y))  # type: ignore[call-arg]  # numba gives the first one
    if not math.isfinite(z) and math.isfinite(x) and math.isfinite(y):
        raise ValueError("a power without a real value")
    return z


def _whole_power(a: Any, b: Any) -> Any:
    x, n, z = np.int64(a), np.int64(b), np.int64(1)
    if n < 0:
        raise ValueError("a negative power of a whole number")
    while n > 0:
        if n & 1:
            _fits(float(x) * float(z))
            z *= x
        n >>= 1
        if n > 0:  # a factor of the power: where it is too large, so is the power
            _fits(float(x) * float(x))
            x *= x
    return z


def _operators(strict: bool) -> dict[str, Any]:
    """The operators by their names in translated code; `strict` ones take no two comparisons."""
    return {
        "Add": _function(lambda a, b: a + b, _add, strict),
        "Sub": _function(lambda a, b: a - b, _subtract, strict),
        "Mult": _function(lambda a, b: a * b, _multiply, strict),
        "Div": _function(lambda a, b: a / b, _divide, strict),
        "FloorDiv": _function(lambda a, b: a // b, strict=strict),
        "Mod": _function(lambda a, b: a % b, strict=strict),
        "Pow": _function(_power, _whole_power, strict),
        "BitAnd": operator.and_,
        "BitOr": operator.or_,
        "BitXor": operator.xor,
    }


#: the operators, and those of classes that have numbers of NumPy
OPERATORS, OF_NUMPY = _operators(False), _operators(True)


def _near_zero(function: Callable[..., Any]) -> Any:
    """A function to whole numbers."""

    def rounded(a: Any) -> Any:
        _fits(a)
        return np.int64(function(a))

    return _function(rounded, lambda a: np.int64(a))


def _with_value(function: Callable[..., Any]) -> Any:
    """A function of `math`: where it has no value it raises an error, as there."""

    def valued(a: Any) -> Any:
        value = function(a)
        if (math.isnan(value) and not math.isnan(a)) or (math.isinf(value) and math.isfinite(a)):
            raise ValueError("a function of math without a value")
        return value

    return _function(valued)


#: the functions of Python in compiled code
FUNCTIONS: dict[Any, Any] = {
    f: f for f in (abs, min, max, math.isnan, math.isinf, math.isfinite, math.fabs, math.copysign)
}
FUNCTIONS |= {f: _near_zero(f) for f in (builtins.int, builtins.round, math.floor, math.ceil)}
FUNCTIONS |= {builtins.bool: _function(lambda a: a != 0), builtins.float: _function(lambda a: a * 1.0)}
FUNCTIONS |= {
    f: _with_value(f)
    for f in (math.sqrt, math.exp, math.expm1, math.log, math.log1p, math.sin, math.cos, math.atan, math.tanh)
}

#: what it says of arithmetic and indices that NumPy has other rules for
COMPARED = "is a comparison, which NumPy adds and indexes in another way than Python"
#: the error that the compiler raises where a whole number would become a real one
NOT_WHOLE = "begins as a whole number and becomes a real one"


def _whole(kind: Any) -> Any:
    if not isinstance(kind, types.Integer | types.Boolean):
        raise TypingError(NOT_WHOLE)
    return lambda a: np.int64(a)


def whole(a: Any) -> Any:
    """The same whole number; a real one is not compiled."""
    raise NotImplementedError


overload(whole)(lambda a: _whole(a))


def exact_whole(number: Any) -> Any:
    """The same number, exact if it is of a whole type."""
    raise NotImplementedError


overload(exact_whole)(
    lambda number: (
        (lambda number: exact(number)) if isinstance(number, types.Integer) else (lambda number: number)
    )
)


def _index(kind: Any) -> Any:
    if isinstance(kind, types.Boolean):
        raise TypingError(COMPARED)
    return lambda i: i


def index(i: Any) -> Any:
    """The same index; a comparison is not compiled."""
    raise NotImplementedError


overload(index)(lambda i: _index(i))


@part_of_kernel
def exact(number):
    """The same number, which as a whole one is equal to a real one."""
    if 9007199254740992 < abs(number) < np.inf:
        raise OverflowError("a whole number of more than 53 bits where there may be a real one")
    return number


@part_of_kernel
def place(length, i):
    """The place of entry i of a list; a negative one counts from the end."""
    if i < -length or i >= length:
        raise IndexError("an index out of range")
    return i + (length if i < 0 else 0)
