"""Measures straight from their definitions: programs, partitions of sets, quadrature, bins by exact fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from onlinecal.core.joint import JointDistribution

#: HiGHS stops at 1e-7 unless told; these are the tightest tolerances that it takes
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def least(costs: Any, **program: Any) -> float:
    """The value of a linear program."""
    answer = linprog(costs, method="highs", options=TIGHT, **program)
    assert answer.status == 0, answer.message
    return float(answer.fun)


def on_line(metric: Any, v: Any) -> Any:
    """h(v) of a metric |h(u) − h(v)|."""
    with np.errstate(divide="ignore"):
        return {"identity": np.asarray, "logit": lambda v: np.log(v) - np.log1p(-v)}.get(metric, metric)(v)


def smooth_ce(gamma: JointDistribution, metric: Any = "identity") -> float:
    """The linear program over ω with the constraint between neighbours, of which all others follow."""
    # Residuals near HiGHS's tolerance are scaled up; weights in [−1, 1] are nowhere further apart than 2.
    unit, size = sp.eye(gamma.levels, format="csr"), max(float(np.abs(gamma.residuals).max()), 1e-300)
    step, gaps = unit[1:] - unit[:-1], np.minimum(np.diff(on_line(metric, gamma.predictions)), 2.0)
    rows, bounds = sp.vstack([step, -step], format="csc"), np.concatenate([gaps, gaps])
    return -least(-gamma.residuals / size, A_ub=rows, b_ub=bounds, bounds=(-1.0, 1.0)) * size


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


def smooth_ece_at(gamma: JointDistribution, sigma: float, transform: str = "identity") -> float:
    """Midpoint rule of 400 points a σ or more, which errs by some 6e-7 Σ|r|.

    In log odds the levels 0 and 1 are infinitely far from all else, and count in full.
    """
    rows, outer = list(zip(gamma.predictions.tolist(), gamma.residuals.tolist(), strict=True)), 0.0
    low, high = 0.0, 1.0
    if transform == "identity":
        images = math.ceil(4.5 * sigma) + 1
        shifts = [2.0 * m for m in range(-images, images + 1)]
        rows = [(m + sign * v, r) for v, r in rows for m in shifts for sign in (1, -1)]
    else:
        outer = sum(abs(r) for v, r in rows if v in (0.0, 1.0))
        rows = [(math.log(v) - math.log1p(-v), r) for v, r in rows if 0.0 < v < 1.0]
        if not rows:
            return outer
        low, high = rows[0][0] - 9.0 * sigma, rows[-1][0] + 9.0 * sigma
    points = max(40_000, math.ceil(400.0 * (high - low) / sigma))
    t = low + (high - low) * (np.arange(points) + 0.5) / points
    smoothed = np.zeros(points)
    for centre, r in rows:
        if low - 9.0 * sigma <= centre <= high + 9.0 * sigma:
            smoothed += r * np.exp(-0.5 * ((t - centre) / sigma) ** 2)
    return outer + float(np.abs(smoothed).mean()) * (high - low) / (sigma * math.sqrt(2.0 * math.pi))


def distance_lower(gamma: JointDistribution, grid: int = 0) -> float:
    """Linear program (11) over couplings Π(u, v, y), u in the levels, 0, 1, and a grid of `grid` steps.

    An upper bound of the distance; at most h²/2 above it where neighbouring u are at most h apart. The reason:
    the dual potentials, linear in between, break their constraint by at most that.
    """
    u = np.unique(np.concatenate(([0.0, 1.0], gamma.predictions, np.linspace(0.0, 1.0, grid + 1))))
    k, m = gamma.levels, len(u)
    cost = np.tile(np.abs(gamma.predictions[:, None] - u).reshape(-1), 2)  # index y·k·m + i·m + j
    marginal = sp.kron(sp.eye(2 * k), np.ones((1, m)))
    calibrated = sp.hstack([sp.kron(np.ones((1, k)), sp.diags(y - u)) for y in (0.0, 1.0)])
    given = np.concatenate([gamma.mass * (1.0 - gamma.means), gamma.mass * gamma.means])
    rows = sp.vstack([marginal, calibrated], format="csc")
    return least(cost, A_eq=rows, b_eq=np.concatenate([given, np.zeros(m)]))


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
    arriving there. Then the value is below the distance.
    """
    u = np.unique(np.concatenate(([0.0, 1.0], gamma.predictions, np.linspace(0.0, 1.0, grid + 1))))
    k, m = gamma.levels, len(u)
    with np.errstate(invalid="ignore"):
        apart = np.abs(on_line(metric, gamma.predictions)[:, None] - on_line(metric, u))
        cells = slack * np.diff(on_line(metric, u))
    apart[np.isnan(apart)] = 0.0  # an end, infinitely far from all others, to itself
    apart = np.minimum(apart, 2.0)
    reach = np.maximum(np.append(cells, 0.0), np.append(0.0, cells))
    apart = np.maximum(apart - reach, 0.0) if slack else apart
    cost = np.stack([np.stack([apart + (y != z) for z in (0, 1)]) for y in (0, 1)])  # y, z, level, u
    ones = np.ones((1, m))
    leave = sp.block_diag([sp.hstack([sp.kron(sp.eye(k), ones)] * 2)] * 2)
    arrive = sp.hstack([sp.kron(np.ones((1, k)), sp.diags(z - u)) for _ in (0, 1) for z in (0.0, 1.0)])
    given = np.concatenate([gamma.mass * (1.0 - gamma.means), gamma.mass * gamma.means])
    rows = sp.vstack([leave, arrive], format="csc")
    return least(cost.reshape(-1), A_eq=rows, b_eq=np.concatenate([given, np.zeros(m)]))


def _levels(gamma: JointDistribution) -> list[tuple[float, float, float]]:
    return list(zip(gamma.predictions.tolist(), gamma.mass.tolist(), gamma.means.tolist(), strict=True))


def _best_scoring_rule(terms: list[tuple[float, float, float]]) -> float:
    """The largest Σ c S(p; q) of terms (c, p, q) over scoring rules S(p, 0), S(p, 1) in [0, 1] that are proper.

    A rule that is proper on these points is a decision task with the points as actions. Every task gives
    one, by best responses. So nothing of kinks or envelopes is used here.
    """
    points = sorted({0.0, 1.0, *(p for _, p, _ in terms)})
    objective, rows = np.zeros(2 * len(points)), []
    for c, p, q in terms:
        at = 2 * points.index(p)
        objective[[at, at + 1]] += c * (1 - q), c * q
    for p, q in permutations(range(len(points)), 2):
        row = np.zeros(2 * len(points))
        # S(q; p) ≤ S(p; p) where S(x; p) = (1 − p) S(x, 0) + p S(x, 1)
        row[[2 * q, 2 * q + 1, 2 * p, 2 * p + 1]] = 1 - points[p], points[p], points[p] - 1, -points[p]
        rows.append(row)
    return -least(-objective, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), bounds=(0, 1))


def cdl(gamma: JointDistribution) -> float:
    """Σ w_i (S(q_i; q_i) − S(v_i; q_i)), maximised over proper S."""
    return _best_scoring_rule([(s * w, p, q) for v, w, q in _levels(gamma) for s, p in ((1, q), (-1, v))])


def u_calibration(gamma: JointDistribution) -> float:
    """S(b; b) − Σ w_i S(v_i; q_i), maximised over proper S, with b = E[y]."""
    b = sum(w * q for _, w, q in _levels(gamma))
    return _best_scoring_rule([(1.0, b, b), *((-w, v, q) for v, w, q in _levels(gamma))])


def rounded(gamma: JointDistribution, m: int, soft: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """W_j and W_j Q_j of BHNU26 Lemma 3.1, from the hat functions; hard: all mass to the point below."""
    mass, ones = np.zeros(m + 1), np.zeros(m + 1)
    for v, w, q in _levels(gamma):
        for j in range(m + 1):
            share = max(0.0, 1 - m * abs(v - j / m)) if soft else j / m <= v and (j == m or v < (j + 1) / m)
            mass[j] += w * share
            ones[j] += w * share * q
    return mass, ones


def threshold_losses(gamma: JointDistribution, m: int, soft: bool = True) -> list[float]:
    """The loss of each threshold 1 to m, both sums term by term."""
    both = list(zip(*rounded(gamma, m, soft), strict=True))
    return [
        sum(max(q - w * i / m, 0.0) for w, q in both[:i])
        + sum(max(w * (i - 1) / m - q, 0.0) for w, q in both[i:])
        for i in range(1, m + 1)
    ]


def _top(errors: Any, weights: Any, order: float) -> float:
    """(Σ w e^order)^(1/order), or the largest error."""
    top = max(errors) or 1.0
    if order == math.inf:
        return float(max(errors))
    return float(
        top * sum(w * (e / top) ** order for w, e in zip(weights, errors, strict=True)) ** (1 / order)
    )


def ece(gamma: JointDistribution, order: float) -> float:
    return _top(np.abs(gamma.means - gamma.predictions), gamma.mass, order)


def soft_binned_ece(gamma: JointDistribution, bins: int, temperature: float, order: float) -> float:
    """Weights exp(−(v − c)²/T) of the middles c, by differences from the largest."""
    far = (gamma.predictions[:, None] - (np.arange(bins) + 0.5) / bins) ** 2 / temperature
    near = np.exp(far.min(axis=1, keepdims=True) - far)
    shares = near / near.sum(axis=1, keepdims=True)
    mass, residual = gamma.mass @ shares, gamma.residuals @ shares
    held = mass > 1e-290
    return _top(np.abs(residual[held] / mass[held]), mass[held], order)


def interval_program(gamma: JointDistribution, widest: float = math.inf) -> float:
    """The least cost of groups, by mean width, or of groups no wider than `widest` and without their width."""
    v, r = gamma.predictions, np.append(0.0, np.cumsum(gamma.residuals))
    mass, cost = np.append(0.0, np.cumsum(gamma.mass)), np.zeros(gamma.levels + 1)
    for b in range(1, gamma.levels + 1):
        a = np.flatnonzero(v[b - 1] - v[:b] <= widest)
        wide = (mass[b] - mass[a]) * (v[b - 1] - v[a]) if widest == math.inf else 0.0
        cost[b] = (cost[a] + np.abs(r[b] - r[a]) + wide).min()
    return float(cost[-1])


def interval_ce_by_widths(gamma: JointDistribution) -> float:
    """With the largest width: over all differences of levels."""
    apart = np.unique(np.abs(gamma.predictions[:, None] - gamma.predictions))
    return min(interval_program(gamma, widest) + float(widest) for widest in apart)


def atb(gamma: JointDistribution) -> float:
    """∫ of both squared sums, exactly, on the pieces on which they do not change."""
    rows = [(Fraction(v), Fraction(r)) for v, r in zip(gamma.predictions, gamma.residuals, strict=True)]
    total = Fraction(0)
    for a, b in pairwise(sorted({Fraction(0), Fraction(1), *(v for v, _ in rows)})):
        below = sum(r for v, r in rows if v < (a + b) / 2)
        total += (b - a) * (below**2 + (sum(r for _, r in rows) - below) ** 2)
    return float(total)
