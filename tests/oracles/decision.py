"""The decision measures from their definitions: programs over proper scoring rules, and plain loops."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from onlinecal.core.joint import JointDistribution


def _rows(gamma: JointDistribution) -> list[tuple[float, float, float]]:
    return list(zip(gamma.predictions.tolist(), gamma.mass.tolist(), gamma.means.tolist(), strict=True))


def _best_scoring_rule(points: list[float], objective: np.ndarray) -> float:
    """Maximise over scoring rules S(p, 0), S(p, 1) in [0, 1], proper for every pair of points.

    A rule that is proper on these points is a decision task whose actions are the points, and every task
    gives one, by best responses. So nothing of kinks or envelopes is used here.
    """
    size = len(points)
    rows = []
    for a, p in enumerate(points):
        for b in range(size):
            if a != b:  # S(b; p) ≤ S(a; p) where S(x; p) = (1 − p) S(x, 0) + p S(x, 1)
                row = np.zeros(2 * size)
                row[2 * b] += 1 - p
                row[2 * b + 1] += p
                row[2 * a] -= 1 - p
                row[2 * a + 1] -= p
                rows.append(row)
    result = linprog(
        -objective,
        A_ub=np.array(rows) if rows else None,
        b_ub=np.zeros(len(rows)) if rows else None,
        bounds=(0, 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0, result.message
    return -float(result.fun)


def cdl(gamma: JointDistribution) -> float:
    """Σ w_i (S(q_i; q_i) − S(v_i; q_i)), maximised over proper S."""
    rows = _rows(gamma)
    points = sorted({0.0, 1.0, *(v for v, _, _ in rows), *(q for _, _, q in rows)})
    at = {p: i for i, p in enumerate(points)}
    objective = np.zeros(2 * len(points))
    for v, w, q in rows:
        for sign, p in ((1, q), (-1, v)):
            objective[2 * at[p]] += sign * w * (1 - q)
            objective[2 * at[p] + 1] += sign * w * q
    return _best_scoring_rule(points, objective)


def u_calibration(gamma: JointDistribution) -> float:
    """S(b; b) − Σ w_i S(v_i; q_i), maximised over proper S, with b = E[y]."""
    rows = _rows(gamma)
    b = sum(w * q for _, w, q in rows)
    points = sorted({0.0, 1.0, b, *(v for v, _, _ in rows)})
    at = {p: i for i, p in enumerate(points)}
    objective = np.zeros(2 * len(points))
    objective[2 * at[b]] += 1 - b
    objective[2 * at[b] + 1] += b
    for v, w, q in rows:
        objective[2 * at[v]] -= w * (1 - q)
        objective[2 * at[v] + 1] -= w * q
    return _best_scoring_rule(points, objective)


def rounded(gamma: JointDistribution, m: int, soft: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """W_j and W_j Q_j of BHNU26 Lemma 3.1, from the hat functions; hard: all mass to the point below."""
    mass, ones = np.zeros(m + 1), np.zeros(m + 1)
    for v, w, q in _rows(gamma):
        for j in range(m + 1):
            share = (
                max(0.0, 1 - m * abs(v - j / m))
                if soft
                else float(j / m <= v and (j == m or v < (j + 1) / m))
            )
            mass[j] += w * share
            ones[j] += w * share * q
    return mass, ones


def scdl_binned(gamma: JointDistribution, m: int, soft: bool = True) -> float:
    """The maximum over all i, both sums term by term."""
    mass, ones = rounded(gamma, m, soft)
    best = 0.0
    for i in range(1, m + 1):
        total = sum(max(ones[j] - mass[j] * i / m, 0.0) for j in range(i))
        best = max(best, total + sum(max(mass[j] * (i - 1) / m - ones[j], 0.0) for j in range(i, m + 1)))
    return best
