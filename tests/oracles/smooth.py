"""Smooth calibration straight from its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from onlinecal.core.joint import JointDistribution

#: HiGHS stops at 1e-7 unless told; these are the tightest tolerances that it takes
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def logit(v: float) -> float:
    if v in (0.0, 1.0):
        return math.inf if v else -math.inf
    return math.log(v) - math.log1p(-v)


def least(costs: Any, **program: Any) -> float:
    """The value of a linear program."""
    answer = linprog(costs, **program, method="highs", options=TIGHT)
    assert answer.status == 0, answer.message
    return float(answer.fun)


def smooth_ce(gamma: JointDistribution, metric: Any = "identity") -> float:
    """The linear program over ω, with the Lipschitz constraint between *every* pair of levels."""
    k = gamma.levels
    scale = {"identity": float, "logit": logit}.get(metric, metric)
    h = [scale(v) for v in gamma.predictions.tolist()]
    rows, bounds = [], []
    for i in range(k):
        for j in range(i):
            if math.isfinite(h[i] - h[j]):
                for sign in (1.0, -1.0):
                    row = np.zeros(k)
                    row[i], row[j] = sign, -sign
                    rows.append(row)
                    bounds.append(h[i] - h[j])
    # Residuals near HiGHS's tolerance are scaled up.
    size = max(float(np.abs(gamma.residuals).max()), 1e-300)
    answer = least(
        -gamma.residuals / size,
        A_ub=np.array(rows) if rows else None,
        b_ub=np.array(bounds) if rows else None,
        bounds=[(-1.0, 1.0)] * k,
    )
    return -answer * size


def smooth_ce_by_weights(gamma: JointDistribution) -> float:
    """The linear program over ω with the constraint between neighbours alone, of which all others follow."""
    k, size = gamma.levels, float(np.abs(gamma.residuals).max())
    gaps = np.diff(gamma.predictions)
    step = sp.diags([np.ones(k - 1), -np.ones(k - 1)], [0, 1], shape=(k - 1, k), format="csc")
    answer = least(
        -gamma.residuals / size,
        A_ub=sp.vstack([step, -step], format="csc"),
        b_ub=np.concatenate([gaps, gaps]),
        bounds=(-1.0, 1.0),
    )
    return -answer * size


def smooth_ce_by_flow(gamma: JointDistribution) -> float:
    """Its dual: the cheapest way to level the residuals out, moved to neighbours at their distance, or dropped at 1."""
    k, size = gamma.levels, float(np.abs(gamma.residuals).max())
    along = sp.diags([np.ones(k - 1), -np.ones(k - 1)], [0, -1], shape=(k, k - 1), format="csc")
    drop = sp.eye(k, format="csc")
    gaps = np.diff(gamma.predictions)
    answer = least(
        np.concatenate([gaps, gaps, np.ones(2 * k)]),
        A_eq=sp.hstack([along, -along, drop, -drop], format="csc"),
        b_eq=gamma.residuals / size,
        bounds=(0.0, None),
    )
    return answer * size


def earthmover_distance(gamma: JointDistribution) -> float:
    """The cheapest coupling of (v, y) with (v, ỹ), the distance of two points |u − v| + |y − z|."""
    v, w, q = gamma.predictions, gamma.mass, gamma.means
    k = gamma.levels
    places = np.concatenate([v, v])
    outcomes = np.repeat([0.0, 1.0], k)
    cost = np.abs(places[:, None] - places) + np.abs(outcomes[:, None] - outcomes)
    leave, arrive = (np.concatenate([w * (1.0 - m), w * m]) for m in (q, v))
    rows = np.vstack([np.kron(np.eye(2 * k), np.ones(2 * k)), np.kron(np.ones(2 * k), np.eye(2 * k))])
    return least(cost.ravel(), A_eq=rows, b_eq=np.concatenate([leave, arrive]))
