"""Smooth calibration error: exact, in O(k log k), with the Lipschitz weights that attain it."""

import heapq
from functools import partial

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import locked
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.levels import LevelSets
from onlinecal.measures.base import row, seminorm
from onlinecal.measures.witnesses.weights import (
    CancelledResiduals,
    LipschitzWeights,
    Metric,
    apart_of,
    distances,
)


@kernel
def isotonic_duals(v, rows) -> Floats:
    """smCE in the identity metric, for each row of residuals."""
    out = np.empty(rows.shape[0])
    for b in range(rows.shape[0]):
        out[b] = _isotonic_dual(v, rows[b])
    return out


@kernel
def _isotonic_duals_each(v, r, starts):
    """The same for each of several Γ."""
    out = np.empty(len(starts) - 1)
    for b in range(len(out)):
        i, j = starts[b], starts[b + 1]
        out[b] = _isotonic_dual(v[i:j], r[i:j])
    return out


@kernel
def _isotonic_dual(v, r):
    # The level set {g > s} of the optimal g starts at the last maximum of Σ_{j≥i} d_j sign(P_j − s). With Q_s the queue
    # at the end of that walk, fed where P > s and drained where P < s, smCE = Σ d_i |P_i| + ∫ (1 − Q_s) ds over s from
    # 0 to P_k.
    end = 0.0
    for x in r:
        end += x
    sign = -1.0 if end < 0.0 else 1.0
    end *= sign
    above = 0.0  # mass at or above P_k, which need not be told apart
    queue = [(0.0, 0.0) for _ in range(0)]  # (−P, mass), greatest P first
    area, p = 0.0, 0.0
    for i in range(len(v) - 1):
        p += r[i]
        d = v[i + 1] - v[i]
        area += d * abs(p)
        here = sign * p
        if here >= end:
            above += d  # 2 d come, and d of the same goes
            continue
        left = max(d - above, 0.0)
        above = max(above - d, 0.0)
        while left > 0.0 and len(queue) > 0 and -queue[0][0] > here:
            key, mass = queue[0]
            if mass > left:
                queue[0] = (key, mass - left)
            else:
                heapq.heappop(queue)
            left = max(left - mass, 0.0)
        if here > 0.0:
            heapq.heappush(queue, (-here, 2.0 * d - left))
    rest = above * end
    for key, mass in queue:
        rest -= mass * key
    return area + (end - rest)


@kernel
def chain_dual(distances, r):
    """smCE for distances of at most 2, and the interval [low_i, high_i] to which the way back clips the dual's g_i."""
    # H_i(g), the least dual objective with g_i = g, is convex with break points of total mass 2. Level i adds 2 d_i at
    # P_i; |g_{i+1} − g_i| then takes d_i at each end.
    k = len(r)
    low, high = np.zeros(k), np.zeros(k)
    mass = np.zeros(k)  # node 0 is the start, node i the level i
    mass[0] = 2.0
    down, up = [(0.0, 0)], [(-0.0, 0)]  # (P, node) and (−P, node); exhausted nodes leave lazily
    p = 0.0
    right = 0.0  # H_i(g) = g + right for g above all break points
    for i in range(k - 1):
        p += r[i]
        d = distances[i]
        mass[i + 1] = 2.0 * d
        heapq.heappush(down, (p, i + 1))
        heapq.heappush(up, (-p, i + 1))
        _take(down, mass, d)
        right -= _take(up, mass, d) + d * p
        # Mass 2 is left, so neither end can have eaten through to the other's top.
        low[i] = down[0][0]
        high[i] = -up[0][0]
    p += r[k - 1]
    value = right + p
    for at, node in down:
        if at > p:
            value += mass[node] * (at - p)
    return value, low, high


@kernel
def _take(heap, mass, amount):
    """Takes `amount` of mass from the top, where a node stays at least; Σ of mass times key."""
    moment = 0.0
    while len(heap) > 1 and mass[heap[0][1]] <= amount:
        key, node = heapq.heappop(heap)
        amount -= mass[node]
        moment += mass[node] * key
        mass[node] = 0.0
    key, node = heap[0]
    mass[node] = max(mass[node] - amount, 0.0)
    return moment + amount * key


@kernel
def chain_duals(distances, rows):
    out = np.empty(rows.shape[0])
    for b in range(rows.shape[0]):
        out[b] = chain_dual(distances, rows[b])[0]
    return out


@kernel
def dual_path(r, low, high):
    """The dual's g_1, …, g_k on the way back from g_k = P_k."""
    k = len(r)
    p = 0.0
    for i in range(k):
        p += r[i]
    g = np.empty(k)
    g[k - 1] = p
    for i in range(k - 2, -1, -1):
        g[i] = min(max(g[i + 1], low[i]), high[i])
    return g


@kernel
def lipschitz_weights(distances, r, low, high):
    """The weights that complementary slackness leaves: forward the reachable intervals, back a choice."""
    k = len(r)
    prefix, p = np.empty(k), 0.0
    for i in range(k):
        p += r[i]
        prefix[i] = p
    g = dual_path(r, low, high)
    least, most = np.empty(k), np.empty(k)
    a, b = -1.0, 1.0
    before = 0.0
    for i in range(k):
        if i > 0:
            d = distances[i - 1]
            if prefix[i - 1] > g[i - 1]:
                a, b = a - d, b - d
            elif prefix[i - 1] < g[i - 1]:
                a, b = a + d, b + d
            else:
                a, b = a - d, b + d
            a, b = min(max(a, -1.0), 1.0), min(max(b, -1.0), 1.0)
        if g[i] > before:
            a, b = 1.0, 1.0
        elif g[i] < before:
            a, b = -1.0, -1.0
        before = g[i]
        least[i], most[i] = a, b
    weights = np.empty(k)
    weights[k - 1] = least[k - 1] if p < 0.0 else most[k - 1]
    for i in range(k - 2, -1, -1):
        # Into the interval as far as the Lipschitz constraint lets: rounding may cost digits of the value,
        # never feasibility.
        d = distances[i]
        after = weights[i + 1]
        if prefix[i] > g[i]:
            w = after + d
        elif prefix[i] < g[i]:
            w = after - d
        else:
            w = min(max(after, least[i]), most[i])
            w = min(max(w, after - d), after + d)
        weights[i] = min(max(w, -1.0), 1.0)
    return weights


@of_gamma
def smooth_ce(gamma: JointDistribution, *, metric: Metric = "identity") -> float:
    """Smooth calibration error smCE(Γ), in which close forecasts share their errors.

    smCE(Γ) = max Σ_i r_i ω_i over |ω_i| ≤ 1, |ω_{i+1} − ω_i| ≤ h(v_{i+1}) − h(v_i), with h(v) = v. For another
    increasing h it is the weak calibration error under the metric |h(u) − h(v)|. By duality it is min Σ_i |g_i −
    g_{i−1}| + Σ_i d_i |P_i − g_i| over g with g_0 = 0, g_k = P_k, where P_i = r_1 + … + r_i and d_i is the distance
    from level i to i + 1. For h(v) = v the distances add to at most 1, and a monotone g is optimal. The value is
    |P_k| plus the error of an isotonic L1 regression of the P_i. Exact up to rounding, in O(k log k) at worst.

    Source: Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 7.2 and Theorem 7.14 (there a linear program); Błasiok,
    Nakkiran (2024), Definition 14, for the metric.

    Parameters
    ----------
    metric : {"identity", "logit"} or callable, default "identity"
        h, an increasing function of an array of predictions. With "logit" the levels 0 and 1 are infinitely far from
        all others, so their weights are free in [−1, 1].

    Examples
    --------
    >>> round(smooth_ce(JointDistribution.from_samples([0.4, 0.6], [1, 0])), 12)
    0.06
    """
    return float(smooth_norm(gamma, gamma.residuals[None, :], metric=metric)[0])


def _smooth_ces(sets: LevelSets, *, metric: Metric = "identity") -> Floats | None:
    if not isinstance(metric, str) or metric != "identity":
        return None
    return np.asarray(_isotonic_duals_each(sets.predictions, sets.residuals, sets.starts))


def smooth_ce_witness(
    gamma: JointDistribution, *, metric: Metric = "identity", measure: str = "smooth_ce"
) -> LipschitzWeights:
    """Lipschitz weights that attain `smooth_ce`: ±1 where g jumps, and steps ±d_i by the sign of P_i − g_i."""
    apart = apart_of(gamma, metric, measure)
    _, low, high = chain_dual(apart, gamma.residuals)
    weights = lipschitz_weights(apart, gamma.residuals, low, high)
    return LipschitzWeights(gamma.predictions, weights, metric, measure)


def smooth_ce_dual(
    gamma: JointDistribution, *, metric: Metric = "identity", measure: str = "smooth_ce"
) -> CancelledResiduals:
    """The residuals left after others have been carried to where they cancel: the optimal g of the dual."""
    _, low, high = chain_dual(apart_of(gamma, metric, measure), gamma.residuals)
    return CancelledResiduals(dual_path(gamma.residuals, low, high)[:-1], metric, measure)


@of_gamma
def earthmover_distance(gamma: JointDistribution) -> float:
    """Earth mover's distance between Γ and the same predictions with right outcomes, (v, ỹ) with ỹ ~ Ber(v).

    The metric of points (u, y), (v, z) is |u − v| + |y − z|. By Kantorovich and Rubinstein it is the largest Σ_i
    r_i ω_i over |ω_i| ≤ 1 that are 2-Lipschitz in v. Such are the differences f(v, 1) − f(v, 0) of 1-Lipschitz f.
    smooth_ce ≤ it ≤ 2 smooth_ce, and it is at most `ece`, which is the same with the distance 1 between any two
    points.

    Source: Gopalan & Hu 2025, §3.2 and Lemma 3.4, with the proof of the duality taken to both sides.

    Examples
    --------
    >>> round(earthmover_distance(JointDistribution.from_samples([0.4, 0.6], [1, 0])), 12)
    0.12
    """
    return float(earthmover_norm(gamma, gamma.residuals[None, :])[0])


def earthmover_norm(gamma: JointDistribution, residuals: Floats) -> Floats:
    return np.asarray(chain_duals(apart_of(gamma, "identity", "earthmover_distance"), locked(residuals)))


def smooth_norm(gamma: JointDistribution, residuals: Floats, *, metric: Metric = "identity") -> Floats:
    """`smooth_ce` as a seminorm: the supremum over Lipschitz weights."""
    if metric == "identity":
        return np.asarray(isotonic_duals(gamma.predictions, locked(residuals)))
    return np.asarray(chain_duals(distances(gamma, metric), locked(residuals)))


def _means(samples: float, *, metric: Metric = "identity") -> Floats | None:
    # ∫ω dρ = ω(1) ρ[0, 1] − ∫ ω'(x) ρ[0, x] dx, and √n E|ρ̂ − ρ|[0, x] ≤ 1.
    return np.array([2.0]) if metric == "identity" else None


MEASURES = (
    row(
        smooth_ce,
        "smCE | BGHN23 Def. 7.2; BN24 Def. 14 | O(k log k) | yes | yes (c = 1) | yes (s = 2)",
        many=_smooth_ces,
        # E[(v − y)² − (v + δ − y)²] = 2 E[δ (y − v)] − E[δ²]. A monotone 1-Lipschitz κ has such a δ = κ(v) − v; one of
        # slopes down to −1 has half of one, and the bound doubles.
        decisions="gain in squared loss from v + δ(v), δ 1-Lipschitz, ≤ 2 smCE",
        witness=smooth_ce_witness,
        counterpart=smooth_ce_dual,
        sampling=seminorm(
            smooth_norm,
            means=_means,
            source="BGHN23 Theorem 9.5, Corollary 9.9: the triangle inequality, over Lipschitz weights",
        ),
    ),
    row(
        earthmover_distance,
        "EMD | GH25 Lemma 3.4 | O(k log k) | yes | yes (c = 1) | yes (s = 2)",
        witness=partial(smooth_ce_witness, measure="earthmover_distance"),
        counterpart=partial(smooth_ce_dual, measure="earthmover_distance"),
        # As for smCE, with |ω'| ≤ 2.
        sampling=seminorm(
            earthmover_norm,
            means=lambda samples: np.array([3.0]),
            source="GH25 Lemma 3.4: the triangle inequality, over 2-Lipschitz weights",
        ),
    ),
)
