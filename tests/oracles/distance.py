"""Distances from calibration straight from their definitions: the coupling program, all set partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from onlinecal.core.joint import JointDistribution


def distance_lower(gamma: JointDistribution, grid: int = 0) -> float:
    """Linear program (11) over couplings Π(u, v, y), u in the levels, 0, 1, and a grid of `grid` steps.

    An upper bound of the distance; at most h²/2 above it where neighbouring u are at most h apart: the dual
    potentials, linear in between, break their constraint by at most that.
    """
    u = np.unique(np.concatenate(([0.0, 1.0], gamma.predictions, np.linspace(0.0, 1.0, grid + 1))))
    k, m = gamma.levels, len(u)
    cost = np.tile(np.abs(gamma.predictions[:, None] - u).reshape(-1), 2)  # index y·k·m + i·m + j
    marginal = sp.kron(sp.eye(2 * k), np.ones((1, m)))
    calibrated = sp.hstack([sp.kron(np.ones((1, k)), sp.diags(y - u)) for y in (0.0, 1.0)])
    given = np.concatenate([gamma.mass * (1.0 - gamma.means), gamma.mass * gamma.means])
    answer = linprog(
        cost,
        A_eq=sp.vstack([marginal, calibrated], format="csc"),
        b_eq=np.concatenate([given, np.zeros(m)]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0, answer.message
    return float(answer.fun)


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    """All partitions of a set."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for partition in partitions(rest):
        yield [[first], *partition]
        for i, group in enumerate(partition):
            yield [*partition[:i], [first, *group], *partition[i + 1 :]]


def cheapest_grouping(v: Sequence[float], w: Sequence[float], q: Sequence[float]) -> float:
    """Σ w_i |v_i − mean of i's group|, least over all partitions."""
    best = float("inf")
    for partition in partitions(range(len(v))):
        cost = 0.0
        for group in partition:
            mean = sum(w[i] * q[i] for i in group) / sum(w[i] for i in group)
            cost += sum(w[i] * abs(v[i] - mean) for i in group)
        best = min(best, cost)
    return best
