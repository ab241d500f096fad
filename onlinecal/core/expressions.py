"""Parameters that depend on the horizon: `"T^(1/3)"` and the like, parsed, never evaluated as code."""

import ast
import math
import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import as_float, is_number

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt, "log": math.log, "ceil": math.ceil, "floor": math.floor, "min": min, "max": max,
}  # fmt: skip
#: T at which a parameter is tried before the horizon is known
TRIED = (2, 5, *(10**k for k in range(1, 10)))
_GRAMMAR = f"numbers, T, + - * / ^, brackets and {', '.join(_FUNCTIONS)}"


def value_at(expression: float | str, horizon: int) -> float:
    """The value of a number or of an expression in T at a horizon; a finite number.

    >>> value_at("T^(1/2)", 10_000), value_at(7, 10_000)
    (100.0, 7.0)
    >>> value_at("__import__('os')", 10)
    Traceback (most recent call last):
    ...
    onlinecal.core.errors.InvalidParameter: expression "__import__('os')" is not understood; ...
    """
    if is_number(expression):
        value: Any = as_float(expression)
    elif isinstance(expression, str):
        try:
            # Short expressions only: nothing sensible is longer, and nesting cannot exhaust the parser.
            if len(expression) > 100:
                raise ValueError
            value = _value_of(expression, horizon)
        except (ArithmeticError, TypeError) as error:
            said = f"has no value at T = {horizon}: {error}"
            raise InvalidParameter(f"expression {expression!r} {said}") from None
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            said = f"is not understood; expected {_GRAMMAR}"
            raise InvalidParameter(f"expression {expression!r} {said}") from None
    else:
        raise InvalidParameter(f"{expression!r} is neither a number nor an expression in T")
    if isinstance(value, complex) or not math.isfinite(value):
        said = f"is {value} at T = {horizon}; expected a finite number"
        raise InvalidParameter(f"expression {expression!r} {said}")
    return float(value)


def depends_on_horizon(expression: float | str) -> bool:
    """Whether a parameter speaks of T; one that does need not change with it (``"T/T"``).

    >>> depends_on_horizon("T^(1/3)"), depends_on_horizon("2^3"), depends_on_horizon(8)
    (True, False, False)
    """
    return isinstance(expression, str) and re.search(r"\bT\b", expression) is not None


def _at_some(check: Callable[[int], Any]) -> None:
    """Refuses an expression that `check` refuses at every T that is tried, as the horizon is not known yet."""
    for horizon in TRIED:
        try:
            check(horizon)
            return
        except InvalidParameter as error:
            refused = error
    raise refused


def check_expression(
    name: str, expression: Any, low: float, high: float, horizon: int | None = None
) -> float:
    """The value of a parameter at a horizon, in [low, high]. Without one, an expression is in range at some T."""
    if horizon is None:
        _check_form(name, expression)
        _at_some(lambda t: check_expression(name, expression, low, high, t))
        return math.nan
    value = value_at(expression, horizon)
    if not low <= value <= high:
        at = f", which is {value:g} at T = {horizon}" if isinstance(expression, str) else ""
        raise InvalidParameter(f"{name} = {expression!r}{at}; expected a number in [{low:g}, {high:g}]")
    return value


def _check_form(name: str, expression: Any) -> None:
    if not (is_number(expression) or isinstance(expression, str)):
        raise InvalidParameter(f"{name} = {expression!r}; expected a number or an expression in T")


def check_steps(name: str, expression: Any) -> None:
    """Refuse what is no number of steps of a grid at any T that is tried, before T is known."""
    _check_form(name, expression)
    _at_some(lambda t: grid_steps(name, expression, t))


def grid_steps(name: str, expression: float | str, horizon: int, *, even: bool = False) -> int:
    """The number of steps m of a forecasting grid: the expression rounded up, at least 1, at most 10^6.

    With `even` an expression in T is rounded up to an even number.

    >>> grid_steps("m", "T^(1/3)", 1331), grid_steps("m", "T^(1/3)", 1331, even=True), grid_steps("m", 11, 9, even=True)
    (11, 12, 11)
    """
    value = value_at(expression, horizon)
    # A cube root that should be 10 comes out as 9.999999999999998 or 10.000000000000002; neither is 11.
    nearest = round(value)
    steps = nearest if abs(value - nearest) <= 1e-9 * abs(value) else math.ceil(value)
    if not 1 <= steps <= 10**6:
        raise InvalidParameter(
            f"{name} = {expression!r} is a grid of {value:g} steps at T = {horizon}; expected 1 to 10^6"
        )
    return steps + steps % 2 if even and depends_on_horizon(expression) else steps


@lru_cache(1000)
def _value_of(text: str, horizon: int) -> Any:
    """The value of an expression, which is kept: bounds and grids ask for it in each round."""
    return _value(ast.parse(text.replace("^", "**").strip(), mode="eval").body, horizon)


def _value(node: ast.expr, horizon: int) -> Any:
    match node:
        case ast.Constant(value=bool()):
            raise ValueError
        case ast.Constant(value=int() | float() as number):
            return float(number)  # floats stay as long as they are, integer powers do not
        case ast.Name(id="T"):
            return float(horizon)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, horizon), _value(right, horizon))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand, horizon))
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as arguments, keywords=[]) if name in _FUNCTIONS:
            values = [_value(a, horizon) for a in arguments]
            try:
                return _FUNCTIONS[name](*values)
            except ValueError as error:  # of a logarithm of 0
                raise ArithmeticError(error) from None
    raise ValueError
