"""Sums and products in kernels that keep what rounding leaves, and sums of arrays by them."""

from typing import Any

import numpy as np

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.core.arrays import Floats, Ints


@kernel
def add(total, rest, x):
    """total + rest + x, unevaluated: the sum as rounded, and what rounding left (Knuth's two-sum)."""
    s = total + x
    b = s - total
    return s, rest + ((total - (s - b)) + (x - b))


def products(a: Any, b: Any) -> Any:
    """a b, unevaluated: the product as rounded, and what rounding lost (Dekker)."""
    product = a * b
    high, other = 134217729.0 * a, 134217729.0 * b
    # The upper 26 bits of each (Veltkamp), and the rest.
    high, other = high - (high - a), other - (other - b)
    low, rest = a - high, b - other
    return product, low * rest - (((product - high * other) - low * other) - high * rest)


#: the same of two numbers, in kernels
times = part_of_kernel(products)


# Kernels get copies: a view, or an array that is not to be written, would be compiled again.


def running(x: Floats) -> Floats:
    """x_0 + … + x_i for each i, rounded once."""
    return np.asarray(_running(np.array(x)))


def grouped(x: Floats, group: Ints, groups: int) -> Floats:
    """Σ of the x_i with group_i = g, for each g < `groups`, rounded once."""
    return np.asarray(_grouped(np.array(x), np.array(group), groups))


@kernel
def _running(x):
    out = np.empty(x.shape[0])
    s, rest = 0.0, 0.0
    for i in range(x.shape[0]):
        s, rest = add(s, rest, x[i])
        out[i] = s + rest
    return out


@kernel
def _grouped(x, group, groups):
    s, rest = np.zeros(groups), np.zeros(groups)
    for i in range(x.shape[0]):
        g = group[i]
        s[g], rest[g] = add(s[g], rest[g], x[i])
    return s + rest
