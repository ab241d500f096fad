"""The program of the lower distance on many nodes, by an interior point method in time O(nodes) a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel

Floats = NDArray[np.float64]

# Steps after which it gives up: some 20 are usual.
_STEPS = 80
# Share of the way to the nearest bound that a step goes.
_BACK = 0.995


def interior_plan(
    nodes: Floats, ones: Floats, zeros: Floats, gap: float
) -> tuple[Floats, Floats, Floats] | None:
    """Potentials and arriving mass whose values are about `gap` apart, nearly feasible; None where it is not reached.

    Maximises E[a] over the ones + E[b] over the zeros, for 1-Lipschitz a and b with u a(u) + (1 − u) b(u) ≤ 0 at the
    nodes, by Mehrotra's predictor and corrector (1992). The multipliers of the last constraint are the arriving mass.
    Of the five constraints a node has, each joins it to itself or to the next one: the equations of a step are
    tridiagonal in blocks of two.
    """
    a, b, arriving, reached = _interior(nodes, ones, zeros, gap, _STEPS, _BACK)
    return (a, b, arriving) if reached else None


@kernel
def _factor(u, wa, wb, wt, m11, m12, m22):
    """The blocks of A'DA after elimination from the left, inverted in place; wa, wb, wt are the weights D."""
    n = len(u)
    for i in range(n):
        p = wt[i] * u[i] * u[i]
        q = wt[i] * u[i] * (1.0 - u[i])
        r = wt[i] * (1.0 - u[i]) * (1.0 - u[i])
        if i < n - 1:
            p += wa[i]
            r += wb[i]
        if i > 0:
            p += wa[i - 1] - wa[i - 1] * wa[i - 1] * m11[i - 1]
            q -= wa[i - 1] * wb[i - 1] * m12[i - 1]
            r += wb[i - 1] - wb[i - 1] * wb[i - 1] * m22[i - 1]
        det = p * r - q * q
        if not (det > 0.0 and p > 0.0):
            return False
        m11[i] = r / det
        m12[i] = -q / det
        m22[i] = p / det
    return True


@kernel
def _solve(wa, wb, m11, m12, m22, x, y):
    """Solves A'DA (x, y) = (x, y) in place, by the blocks of `_factor`."""
    n = len(x)
    for i in range(1, n):
        x[i] += wa[i - 1] * (m11[i - 1] * x[i - 1] + m12[i - 1] * y[i - 1])
        y[i] += wb[i - 1] * (m12[i - 1] * x[i - 1] + m22[i - 1] * y[i - 1])
    for i in range(n - 1, -1, -1):
        right = x[i]
        below = y[i]
        if i < n - 1:
            right += wa[i] * x[i + 1]
            below += wb[i] * y[i + 1]
        x[i] = m11[i] * right + m12[i] * below
        y[i] = m12[i] * right + m22[i] * below


@kernel
def _across(u, x, y, out):
    """A (x, y): rises and falls of x, of y, and u x + (1 − u) y."""
    n = len(u)
    for i in range(n - 1):
        out[0, i] = x[i + 1] - x[i]
        out[1, i] = -out[0, i]
        out[2, i] = y[i + 1] - y[i]
        out[3, i] = -out[2, i]
    for i in range(n):
        out[4, i] = u[i] * x[i] + (1.0 - u[i]) * y[i]


@kernel
def _back(u, z, x, y):
    """A'z, added to x and y with the sign −."""
    n = len(u)
    for i in range(n):
        x[i] -= u[i] * z[4, i]
        y[i] -= (1.0 - u[i]) * z[4, i]
    for i in range(n - 1):
        rise = z[0, i] - z[1, i]
        x[i + 1] -= rise
        x[i] += rise
        rise = z[2, i] - z[3, i]
        y[i + 1] -= rise
        y[i] += rise


@kernel
def _interior(u, ones, zeros, gap, steps, back):
    n = len(u)
    # Rows 0 to 3 have one entry less than nodes: the last stays out of everything.
    s, z = np.ones((5, n)), np.zeros((5, n))
    rows = 5 * n - 4
    a = np.full(n, -0.25)
    b = np.full(n, -0.25)
    for j in range(4):
        for i in range(n - 1):
            s[j, i] = u[i + 1] - u[i]
            z[j, i] = 0.25
    for i in range(n):
        s[4, i] = 0.25
        z[4, i] = 1.0 / n
    ds, dz, rc, line = np.zeros((5, n)), np.zeros((5, n)), np.zeros((5, n)), np.zeros((5, n))
    wa, wb, wt, m11, m12 = np.empty(n - 1), np.empty(n - 1), np.empty(n), np.empty(n), np.empty(n)
    m22, x, y, right_a, right_b = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for _ in range(steps):
        for i in range(n):
            right_a[i] = ones[i]
            right_b[i] = zeros[i]
        _back(u, z, right_a, right_b)
        total, off = 0.0, 0.0
        for i in range(n):
            off += abs(right_a[i]) + abs(right_b[i])
            for j in range(5):
                total += s[j, i] * z[j, i]
        if not (total < np.inf and off < np.inf):
            return a, b, z[4], False
        if total <= gap and off <= gap:
            return a, b, z[4], True
        mu = total / rows
        for i in range(n - 1):
            wa[i] = z[0, i] / s[0, i] + z[1, i] / s[1, i]
            wb[i] = z[2, i] / s[2, i] + z[3, i] / s[3, i]
        for i in range(n):
            wt[i] = z[4, i] / s[4, i]
        if not _factor(u, wa, wb, wt, m11, m12, m22):
            return a, b, z[4], False
        primal = dual = 1.0
        for corrected in range(2):
            sigma = 0.0
            if corrected:
                after = 0.0
                for j in range(5):
                    for i in range(n):
                        after += (s[j, i] + primal * ds[j, i]) * (z[j, i] + dual * dz[j, i])
                sigma = (after / total) ** 3
            for j in range(5):
                for i in range(n):
                    second = ds[j, i] * dz[j, i] if corrected else 0.0
                    rc[j, i] = sigma * mu - s[j, i] * z[j, i] - second
                    line[j, i] = rc[j, i] / s[j, i]
            for j in range(4):
                rc[j, n - 1] = line[j, n - 1] = 0.0
            for i in range(n):
                x[i] = right_a[i]
                y[i] = right_b[i]
            _back(u, line, x, y)
            _solve(wa, wb, m11, m12, m22, x, y)
            _across(u, x, y, line)
            primal = dual = 1.0
            for j in range(5):
                for i in range(n - 1 if j < 4 else n):
                    ds[j, i] = -line[j, i]
                    dz[j, i] = (rc[j, i] - z[j, i] * ds[j, i]) / s[j, i]
                    if ds[j, i] < 0.0:
                        primal = min(primal, -back * s[j, i] / ds[j, i])
                    if dz[j, i] < 0.0:
                        dual = min(dual, -back * z[j, i] / dz[j, i])
        for i in range(n):
            a[i] += primal * x[i]
            b[i] += primal * y[i]
            for j in range(5):
                s[j, i] += primal * ds[j, i]
                z[j, i] += dual * dz[j, i]
    return a, b, z[4], False
