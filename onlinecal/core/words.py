"""How numbers of things are written in sentences."""

from __future__ import annotations


def number_of(count: int, thing: str) -> str:
    """How many of a thing there are.

    >>> number_of(1, "run"), number_of(1_000, "finished cell"), number_of(0, "pair")
    ('1 run', '1,000 finished cells', '0 pairs')
    """
    return f"{count:,} {thing}{'s' * (count != 1)}"


def fixed(exponent: float, digits: int = 2) -> str:
    """An exponent with so many digits after the point, and no minus before zeros.

    >>> fixed(-0.001), fixed(-0.006), fixed(0.5)
    ('0.00', '-0.01', '0.50')
    """
    return f"{round(exponent, digits) + 0.0:.{digits}f}"
