"""Smooth calibration error: exact, in O(k log k), with the Lipschitz weights that attain it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel
from onlinecal.errors import InvalidData, InvalidParameter
from onlinecal.joint import JointDistribution
from onlinecal.measures.base import Measure

Floats = NDArray[np.float64]
Metric = Literal["identity", "logit"]

# Weights stay in [−1, 1], so levels that are 2 or more apart do not constrain each other.
_FAR = 2.0


def smooth_ce(gamma: JointDistribution, *, metric: Metric = "identity") -> float:
    """Smooth calibration error smCE(Γ): the largest correlation of the residual with a Lipschitz weight.

    smCE(Γ) = max Σ_i r_i ω_i over |ω_i| ≤ 1, |ω_{i+1} − ω_i| ≤ h(v_{i+1}) − h(v_i), h(v) = v or logit v.
    By duality it is min Σ_i |g_i − g_{i−1}| + Σ_i d_i |P_i − g_i| over g with g_0 = 0, g_k = P_k, where
    P_i = r_1 + … + r_i and d_i is the distance from level i to i + 1. For h(v) = v the distances add to at
    most 1, and then a monotone g is optimal: |P_k| plus the error of an isotonic L1 regression of the P_i.

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    metric : {"identity", "logit"}, default "identity"
        d(u, v) = |h(u) − h(v)|. With "logit" the levels 0 and 1 are infinitely far from all others, so
        their weights are free in [−1, 1].

    Returns
    -------
    float
        In [0, 1]; exact up to rounding. O(k log k) time at worst, O(k) memory.

    Raises
    ------
    InvalidParameter
        On another metric.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 7.2 and Theorem 7.14 (there a linear program);
    Błasiok, Nakkiran (2024), Definition 14, for the metric.

    Deviations
    ----------
    None in the value. The algorithm is not the papers' linear program but the dual above.

    Examples
    --------
    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> round(smooth_ce(gamma), 12)
    0.06
    """
    if metric == "identity":
        return float(_isotonic_dual(gamma.predictions, gamma.residuals))
    return float(_chain_dual(_distances(gamma, metric), gamma.residuals)[0])


@dataclass(frozen=True, eq=False)
class LipschitzWeights:
    """Weights ω_i that attain a smooth calibration error.

    Attributes
    ----------
    predictions, weights : (k,) floats
        v_i and ω_i.
    metric : {"identity", "logit"}
        The metric in which ω is 1-Lipschitz.
    """

    predictions: Floats
    weights: Floats
    metric: Metric = "identity"

    def value(self, gamma: JointDistribution) -> float:
        """Σ r_i ω_i, after checking |ω_i| ≤ 1 and |ω_{i+1} − ω_i| ≤ d(v_i, v_{i+1}) (up to 1e-12).

        Raises
        ------
        InvalidData
            If Γ has other levels, or the weights break a constraint.
        """
        if not np.array_equal(self.predictions, gamma.predictions):
            raise InvalidData(
                f"expected the levels of {gamma!r}; the weights have {len(self.predictions)} others"
            )
        largest = float(np.abs(self.weights).max())
        if not largest <= 1.0 + 1e-12:
            raise InvalidData(f"the largest |weight| is {largest!r}; expected at most 1")
        excess = np.abs(np.diff(self.weights)) - _distances(gamma, self.metric)
        if len(excess) and not excess.max() <= 1e-12:
            i = int(np.argmax(excess))
            raise InvalidData(
                f"weights[{i}] and weights[{i + 1}] differ by {float(excess[i])!r} more than v does;"
                " expected 1-Lipschitz weights"
            )
        return float(self.weights @ gamma.residuals)

    def __str__(self) -> str:
        low, high = int(np.argmin(self.weights)), int(np.argmax(self.weights))
        return (
            f"weights on {len(self.weights)} levels, 1-Lipschitz in the {self.metric} metric, from "
            f"{self.weights[low]:+.4g} at v = {self.predictions[low]:.4g} to {self.weights[high]:+.4g} "
            f"at v = {self.predictions[high]:.4g}"
        )


def smooth_ce_witness(gamma: JointDistribution, *, metric: Metric = "identity") -> LipschitzWeights:
    """The Lipschitz weights that attain `smooth_ce`, found by walking back through the dual.

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    metric : {"identity", "logit"}, default "identity"
        As in `smooth_ce`.

    Returns
    -------
    LipschitzWeights
        Its `value(gamma)` is the smooth calibration error; O(k log k).

    Raises
    ------
    InvalidParameter
        On another metric.

    Source
    ------
    Complementary slackness of the dual in `smooth_ce`: ω_i = ±1 where g jumps up or down at i, and
    ω_i − ω_{i+1} = ±d_i where P_i is above or below g_i.

    Deviations
    ----------
    None.

    Examples
    --------
    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> witness = smooth_ce_witness(gamma)
    >>> print(witness)
    weights on 2 levels, 1-Lipschitz in the identity metric, from +0.8 at v = 0.6 to +1 at v = 0.4
    >>> round(witness.value(gamma), 12)
    0.06
    """
    distances = _distances(gamma, metric)
    _, low, high = _chain_dual(distances, gamma.residuals)
    return LipschitzWeights(gamma.predictions, _weights(distances, gamma.residuals, low, high), metric)


def _distances(gamma: JointDistribution, metric: str) -> Floats:
    """d(v_i, v_{i+1}); infinite ones are cut to 2, which leaves the weights as free."""
    v = gamma.predictions
    if metric == "identity":
        return np.diff(v)
    if metric != "logit":
        raise InvalidParameter(f"metric = {metric!r}; expected 'identity' or 'logit'")
    # log1p of (odds ratio − 1) keeps digits that logit v_{i+1} − logit v_i cancels between neighbours.
    # A level below 1e-300 may overflow the quotient: then the distance is far above 2 all the same.
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(np.log1p(np.diff(v) / (v[:-1] * (1.0 - v[1:]))), _FAR)


# ---------------------------------------------------------------- the value, where distances add to at most 1


@kernel
def _isotonic_dual(v, r):
    """smCE in the identity metric.

    The level set {g > s} of the optimal g starts at the last maximum of Σ_{j≥i} d_j sign(P_j − s), so only
    the queue Q_s of that walk (fed by d where P > s, drained where P < s) at its end is needed, for s between
    0 and P_k: smCE = Σ d_i |P_i| + ∫ (1 − Q_s) ds. Q is mass on the line: a heap with the largest P on top.
    """
    k = len(v)
    end = 0.0
    for i in range(k):
        end += r[i]
    sign = 1.0
    if end < 0.0:
        sign = -1.0
        end = -end
    at = np.empty(k)
    mass = np.empty(k)
    size = 0
    above = 0.0  # mass at or above P_k, which need not be told apart
    area = 0.0
    p = 0.0
    for i in range(k - 1):
        p += r[i]
        d = v[i + 1] - v[i]
        area += d * abs(p)
        here = sign * p
        if here >= end:
            above += d  # 2 d come, and d of the same goes
            continue
        if above >= d:
            above -= d
            left = 0.0
        else:
            left = d - above
            above = 0.0
            while size > 0 and left > 0.0 and at[0] > here:
                if mass[0] > left:
                    mass[0] -= left
                    left = 0.0
                else:
                    left -= mass[0]
                    size -= 1
                    if size > 0:
                        _sink(at, mass, size, at[size], mass[size])
        if here > 0.0:
            if size > 0 and at[0] == here:
                mass[0] += 2.0 * d - left
            else:
                _rise(at, mass, size, here, 2.0 * d - left)
                size += 1
    rest = above * end
    for j in range(size):
        rest += mass[j] * at[j]
    return area + (end - rest)


@kernel
def _rise(at, mass, size, key, weight):
    """Put (key, weight) into the max-heap of `size` entries."""
    j = size
    while j > 0:
        up = (j - 1) >> 1
        if at[up] >= key:
            break
        at[j] = at[up]
        mass[j] = mass[up]
        j = up
    at[j] = key
    mass[j] = weight


@kernel
def _sink(at, mass, size, key, weight):
    """Put (key, weight) in place of the top of the max-heap of `size` entries."""
    j = 0
    child = 1
    while child < size:
        if child + 1 < size and at[child + 1] > at[child]:
            child += 1
        if at[child] <= key:
            break
        at[j] = at[child]
        mass[j] = mass[child]
        j = child
        child = 2 * j + 1
    at[j] = key
    mass[j] = weight


# ---------------------------------------------------------------- any distances, and the way back


@kernel
def _chain_dual(distances, r):
    """smCE for any distances, and the interval [low_i, high_i] to which the way back clips the dual's g_i.

    H_i(g) = min over g_1 … g_i with g_i = g of the dual objective so far is convex; its break points have
    total mass 2, at first all at 0. Level i adds 2 d_i at P_i; |g_{i+1} − g_i| then takes d_i at each end.
    """
    k = len(r)
    low = np.zeros(k)
    high = np.zeros(k)
    at = np.zeros(k)  # node 0 is the start, node i the level i
    mass = np.zeros(k)
    mass[0] = 2.0
    down = np.zeros(k, np.int64)  # heaps of nodes, smallest and largest on top; exhausted nodes leave lazily
    up = np.zeros(k, np.int64)
    small, large = 1, 1
    p = 0.0
    right = 0.0  # H_i(g) = g + right for g above all break points
    for i in range(k - 1):
        p += r[i]
        d = min(distances[i], 2.0)
        at[i + 1] = p
        mass[i + 1] = 2.0 * d
        _push(down, at, small, i + 1, 1.0)
        _push(up, at, large, i + 1, -1.0)
        small += 1
        large += 1
        small, _ = _take(down, at, mass, small, d, 1.0)
        large, moment = _take(up, at, mass, large, d, -1.0)
        right += moment - d * p
        # Mass 2 is left, so neither end can have eaten through to the other's top.
        low[i] = at[down[0]]
        high[i] = at[up[0]]
    p += r[k - 1]
    value = right + p
    for j in range(k):
        if at[j] > p:
            value += mass[j] * (at[j] - p)
    return value, low, high


@kernel
def _push(heap, at, size, node, sign):
    key = sign * at[node]
    j = size
    while j > 0:
        parent = (j - 1) >> 1
        if sign * at[heap[parent]] <= key:
            break
        heap[j] = heap[parent]
        j = parent
    heap[j] = node


@kernel
def _take(heap, at, mass, size, amount, sign):
    """Take `amount` of mass from the top; returns the size left and Σ of mass times position taken.

    The last node stays even where rounding exhausts it, so that the top is always defined.
    """
    moment = 0.0
    while size > 1 and mass[heap[0]] <= amount:
        node = heap[0]
        amount -= mass[node]
        moment += mass[node] * at[node]
        mass[node] = 0.0
        size -= 1
        last = heap[size]
        key = sign * at[last]
        j = 0
        child = 1
        while child < size:
            if child + 1 < size and sign * at[heap[child + 1]] < sign * at[heap[child]]:
                child += 1
            if sign * at[heap[child]] >= key:
                break
            heap[j] = heap[child]
            j = child
            child = 2 * j + 1
        heap[j] = last
    node = heap[0]
    moment += amount * at[node]
    mass[node] = max(mass[node] - amount, 0.0)
    return size, moment


@kernel
def _weights(distances, r, low, high):
    """The weights that complementary slackness leaves: forward the reachable intervals, back a choice."""
    k = len(r)
    prefix = np.empty(k)
    p = 0.0
    for i in range(k):
        p += r[i]
        prefix[i] = p
    g = np.empty(k)
    g[k - 1] = p
    for i in range(k - 2, -1, -1):
        g[i] = min(max(g[i + 1], low[i]), high[i])
    least = np.empty(k)
    most = np.empty(k)
    a, b = -1.0, 1.0
    before = 0.0
    for i in range(k):
        if i > 0:
            d = min(distances[i - 1], 2.0)
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
        d = min(distances[i], 2.0)
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


def _modulus(moved: float, *, metric: Metric = "identity") -> float:
    """By how much the value changes at most when predictions move by `moved` on average.

    (y − v) ω(v) is 2-Lipschitz in v for |ω| ≤ 1 and ω 1-Lipschitz. In log odds no average of |v − v'| bounds it.
    """
    if metric != "identity":
        raise InvalidParameter(
            f"smooth_ce: max_levels with metric = {metric!r}; expected 'identity', for "
            "nothing is proved about rounding in another metric"
        )
    return 2.0 * moved


MEASURES = (
    Measure(
        function=smooth_ce,
        symbol="smCE",
        source="BGHN23 Def. 7.2; BN24 Def. 14",
        complexity="O(k log k)",
        continuous="yes",
        complete="yes (c = 1)",
        sound="yes (s = 2)",
        decisions="gain in squared loss from any Lipschitz recalibration",
        witness=smooth_ce_witness,
        modulus=_modulus,
    ),
)
