"""Distances from calibration straight from their definitions: the coupling program, all set partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

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


def cheapest_grouping(
    v: Sequence[float], w: Sequence[float], q: Sequence[float], order: float = 1.0
) -> float:
    """(Σ w_i |v_i − mean of i's group|^order)^(1/order), or the largest difference, least over all partitions."""
    best = float("inf")
    for partition in partitions(range(len(v))):
        apart = []
        for group in partition:
            mean = sum(w[i] * q[i] for i in group) / sum(w[i] for i in group)
            apart += [(w[i], abs(v[i] - mean)) for i in group]
        finite = order < float("inf")
        cost = sum(w * d**order for w, d in apart) ** (1 / order) if finite else max(d for _, d in apart)
        best = min(best, cost)
    return best


def distance_in_metric(gamma: JointDistribution, metric: Any, grid: int, slack: float = 0.0) -> float:
    """The program over couplings of (v, y) with calibrated (u, z), u in the levels and a grid.

    The cost is |h(u) − h(v)| + |y − z|. `slack` times the width of each cell of the grid is taken off the cost of
    arriving there: then the value is below the distance.
    """
    h = {"identity": lambda v: v, "logit": lambda v: np.log(v) - np.log1p(-v)}.get(metric, metric)
    u = np.unique(np.concatenate(([0.0, 1.0], gamma.predictions, np.linspace(0.0, 1.0, grid + 1))))
    k, m = gamma.levels, len(u)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(h(gamma.predictions)[:, None] - h(u))
        cells = slack * np.diff(h(u))
    apart[np.isnan(apart)] = 0.0  # an end, infinitely far from all others, to itself
    apart = np.minimum(apart, 2.0)
    reach = np.maximum(np.append(cells, 0.0), np.append(0.0, cells))
    apart = np.maximum(apart - reach, 0.0) if slack else apart
    cost = np.stack([np.stack([apart + (y != z) for z in (0, 1)]) for y in (0, 1)])  # y, z, level, u
    ones = np.ones((1, m))
    leave = sp.block_diag([sp.hstack([sp.kron(sp.eye(k), ones)] * 2)] * 2)
    arrive = sp.hstack([sp.kron(np.ones((1, k)), sp.diags(z - u)) for _ in (0, 1) for z in (0.0, 1.0)])
    given = np.concatenate([gamma.mass * (1.0 - gamma.means), gamma.mass * gamma.means])
    answer = linprog(
        cost.reshape(-1),
        A_eq=sp.vstack([leave, arrive], format="csc"),
        b_eq=np.concatenate([given, np.zeros(m)]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0, answer.message
    return float(answer.fun)
