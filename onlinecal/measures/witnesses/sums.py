"""Compensated sums for proofs, with known small errors, and Γ's masses and residuals made with them.

The error of each sum below is at most `SLACK` times the sum of the absolute values of its terms, where the terms are
products of at most three numbers of Γ. For n terms a compensated sum errs by u·|sum| + (n·u)²·Σ|terms|, u = 2⁻⁵³, which
is u·Σ|terms| in all as long as n < 10⁷; a residual w_i (q_i − v_i) by 4u of itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.joint import Floats, JointDistribution

Ints = NDArray[np.int64]

UNIT = 2.0**-53
"""The relative error of one operation."""

SLACK = 18.0 * UNIT
"""The error of a sum, relative to the sum of its absolute terms: twice what was counted."""


def masses(gamma: JointDistribution) -> Floats:
    """w_i, within 2 units."""
    return gamma.counts / total(gamma.counts)


def residuals(gamma: JointDistribution) -> Floats:
    """r_i = w_i (q_i − v_i), within 4 units of each."""
    return masses(gamma) * (gamma.means - gamma.predictions)


def means_rounded(gamma: JointDistribution) -> float:
    """The largest |q_i − s_i/n_i| of the levels: how far rounding has moved the mean of n_i rounds with s_i ones.

    A larger difference than 4 units is that of outcomes 1 whose mass underflowed: there the mean was given.
    """
    return float(_means_rounded(np.array(gamma.counts), np.array(gamma.positives), np.array(gamma.means)))


def total(x: Floats) -> float:
    """Σ x."""
    return float(_total(np.array(x)))


def running(x: Floats) -> Floats:
    """x_0 + … + x_i for each i."""
    return np.asarray(_running(np.array(x)))


def grouped(x: Floats, group: Ints, groups: int) -> Floats:
    """Σ of the x_i with group_i = g, for each g < `groups`."""
    return np.asarray(_grouped(np.array(x), np.array(group), groups))


def lines(x: Floats, first: Ints, n: Floats, c: Floats) -> Floats:
    """Σ n_l (c_l − x_j)_+ over the l with first_l ≤ j, for each point x_j; the points ascend.

    The height falls with the joint slope of the lines that have begun and not ended; a line ends at the first point at
    or beyond c_l. Besides what lies between c_l and that point, terms add to 2 Σ n_l (c_l − x_{first_l})_+.
    """
    ends = np.searchsorted(x, c)
    used = first < ends
    first, ends, n, c = first[used], ends[used], n[used], c[used]
    begin, end = np.argsort(first, kind="stable"), np.argsort(ends, kind="stable")
    arguments = (np.array(x), first[begin], n[begin], c[begin], ends[end], n[end], c[end])
    return np.asarray(_lines(*arguments))


# Kernels get copies above: a view, or an array that is not to be written, would be compiled anew.


@kernel
def add(total, rest, x):
    """total + rest + x, unevaluated: the sum as rounded, and what rounding left (Knuth's two-sum)."""
    s = total + x
    b = s - total
    return s, rest + ((total - (s - b)) + (x - b))


@kernel
def times(a, b):
    """a b, unevaluated: the product as rounded, and what rounding lost (Dekker)."""
    product = a * b
    high, other = _high(a), _high(b)
    low, rest = a - high, b - other
    return product, low * rest - (((product - high * other) - low * other) - high * rest)


@kernel
def _high(x):
    """The upper 26 bits of x (Veltkamp)."""
    scaled = 134217729.0 * x
    return scaled - (scaled - x)


@kernel
def _means_rounded(n, s, q):
    most = 0.0
    for i in range(n.shape[0]):
        product, lost = times(n[i], q[i])
        most = max(most, abs((s[i] - product) - lost) / n[i])
    return min(most, 4.0 * UNIT)


@kernel
def _total(x):
    s, rest = 0.0, 0.0
    for i in range(x.shape[0]):
        s, rest = add(s, rest, x[i])
    return s + rest


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


@kernel
def _lines(x, first, n, c, ends, m, d):
    """Lines (n, c) begin at `first`, lines (m, d) end at `ends`: the same lines, in the order of either."""
    out = np.empty(x.shape[0])
    height, rest, rate, left = 0.0, 0.0, 0.0, 0.0
    begun, ended = 0, 0
    for j in range(x.shape[0]):
        if j > 0:
            height, rest = add(height, rest, -(rate + left) * (x[j] - x[j - 1]))
        while begun < first.shape[0] and first[begun] == j:
            height, rest = add(height, rest, n[begun] * (c[begun] - x[j]))
            rate, left = add(rate, left, n[begun])
            begun += 1
        while ended < ends.shape[0] and ends[ended] == j:
            height, rest = add(height, rest, m[ended] * (x[j] - d[ended]))
            rate, left = add(rate, left, -m[ended])
            ended += 1
        out[j] = height + rest
    return out
