"""Sums and products that keep what rounding leaves, against fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from onlinecal.core.sums import grouped, products, running

UNIT = Fraction(1, 2**53)


def far(found, terms):
    """By how much a sum misses more than Ogita, Rump and Oishi 2005, Corollary 4.6, allow."""
    exactly, n = sum(terms, Fraction(0)), len(terms)
    return abs(Fraction(found) - exactly) - UNIT * abs(exactly) - (2 * n * UNIT) ** 2 * sum(map(abs, terms))


@given(st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 2)), min_size=1, max_size=40))
@example([(1.0, 0), (2.0**-60, 0), (-1.0, 0)])
@example([(2.0**-60, 1), (1.0, 1), (-1.0, 1)])
def test_sums_are_rounded_once(rows):
    x, group = (np.array(each) for each in zip(*rows, strict=True))
    terms = [Fraction(each) for each in x.tolist()]
    for i, found in enumerate(running(x).tolist(), 1):
        assert far(found, terms[:i]) <= 0
    for g, found in enumerate(grouped(x, group, 3).tolist()):
        assert far(found, [term for term, own in zip(terms, group, strict=True) if own == g]) <= 0


@given(*[st.floats(2.0**-100, 2.0**100)] * 2)
@example(1 / 3, 0.1)
@example(0.1, 0.3)
def test_a_product_and_what_rounding_lost_are_the_product(a, b):
    product, lost = products(a, b)
    assert product == a * b
    assert Fraction(product) + Fraction(lost) == Fraction(a) * Fraction(b)
