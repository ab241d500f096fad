"""How numbers are written in sentences."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def number_of(count: int, thing: str) -> str:
    """How many of a thing there are.

    >>> number_of(1, "run"), number_of(1_000, "finished cell"), number_of(0, "pair")
    ('1 run', '1,000 finished cells', '0 pairs')
    """
    return f"{count:,} {thing}{'s' * (count != 1)}"


def fixed(exponent: float, digits: int = 2) -> str:
    """An exponent with some digits after the point, and no minus before zeros.

    >>> fixed(-0.001), fixed(-0.006), fixed(0.5)
    ('0.00', '-0.01', '0.50')
    """
    return f"{round(exponent, digits) + 0.0:.{digits}f}"


def at_least(number: float, digits: int) -> str:
    """The least number with `digits` digits that is no smaller: of an upper bound.

    >>> at_least(33.6507875007, 8), at_least(2.24e-11, 2), at_least(0.5, 12)
    ('33.650788', '2.3e-11', '0.5')
    """
    return _rounded(number, digits, ROUND_CEILING)


def at_most(number: float, digits: int) -> str:
    """The greatest number with `digits` digits that is no larger: of a lower bound.

    >>> at_most(33.6500186788, 8)
    '33.650018'
    """
    return _rounded(number, digits, ROUND_FLOOR)


def with_error(number: float, error: float, digits: int = 12) -> str:
    """A number that is wrong by at most `error`, and by how much the digits that are written are at most.

    >>> with_error(6.509627442442, 2e-13), with_error(0.5, 0.0)
    ('6.50962744244 ± 3e-12', '0.5 ± 0')
    """
    text = f"{number:.{digits}g}"
    return f"{text} ± {at_least(error + abs(float(Decimal(text) - Decimal(number))), 1)}"


def _rounded(number: float, digits: int, how: str) -> str:
    return f"{Context(prec=digits, rounding=how).create_decimal_from_float(number):g}"
