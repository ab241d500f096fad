"""Upper distance from calibration: the best grouping of levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import count
from onlinecal.measures.base import Between, Bracket, Measure
from onlinecal.measures.distance_lower import distance_lower, distance_lower_witness
from onlinecal.measures.interval import MOST, best_partition, group_starts, prefix_sums
from onlinecal.measures.witnesses.distances import LevelGroups, Potentials

# Blocks of the contiguous grouping where every end would be too many.
_BLOCKS = 1000


@of_gamma
def distance_upper(gamma: JointDistribution, *, max_levels: int = 12) -> Bracket:
    """Upper distance from calibration: the cheapest way to move whole levels so that all are calibrated.

    dCE_up(Γ) = min over partitions of the levels into groups, each moved to its mean outcome, of
    Σ_i w_i |v_i − mean of i's group|. Groups need not be contiguous.

    Parameters
    ----------
    max_levels : int, default 12, 1 to 16
        Exact by enumeration (O(3^k)) up to this k, else a bracket.

    Returns
    -------
    Bracket
        Of width 0 for k ≤ max_levels. Otherwise below: the lower end of `distance_lower`; above: the best of the
        partition of `interval_ce`, the levels alone (the ECE), and contiguous groups that end at up to 1000 blocks.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 5.2.

    Examples
    --------
    Lemma 4.5: a fair coin forecast as 0.4 or 0.6.

    >>> round(distance_upper(JointDistribution.from_levels([0.4, 0.6], [1, 1], [0.5, 0.5])).upper, 12)
    0.1
    """
    labels, exact = _grouping(gamma, max_levels)
    upper = _cost(gamma, labels)
    if exact:
        return Bracket(upper, upper)
    return Bracket(min(distance_lower(gamma).lower, upper), upper)


@of_gamma
def distance_upper_witness(gamma: JointDistribution, *, max_levels: int = 12) -> LevelGroups:
    """The groups of levels behind the upper end of `distance_upper`."""
    return LevelGroups(_grouping(gamma, max_levels)[0])


@of_gamma
def distance_upper_counterpart(gamma: JointDistribution, *, max_levels: int = 12) -> Potentials:
    """Potentials that bound `distance_lower` below, and with it `distance_upper` (BGHN23, Theorem 5.5)."""
    count("max_levels", max_levels, most=16)
    return distance_lower_witness(gamma).potentials


def _grouping(gamma: JointDistribution, max_levels: int) -> tuple[NDArray[np.int64], bool]:
    """The best groups found, and whether they are the best of all."""
    most = count("max_levels", max_levels, most=16)  # 3^16 steps take a second
    if not gamma.residuals.any():
        return np.arange(gamma.levels), True
    if gamma.levels <= most:
        return _enumerate(gamma.predictions, gamma.mass, gamma.means)[1], True
    k = gamma.levels
    cuts = np.unique(np.linspace(0, k, min(k, _BLOCKS) + 1).astype(np.int64))
    before = _contiguous(
        gamma.predictions,
        prefix_sums(gamma.mass),
        prefix_sums(gamma.mass * gamma.means),
        prefix_sums(gamma.mass * gamma.predictions),
        cuts,
    )
    found = [np.arange(k), _labels(k, cuts[group_starts(before)])]
    if _BLOCKS < k <= MOST["mean"]:
        found.append(_labels(k, best_partition(gamma, "mean", None)[1]))
    return min(found, key=lambda labels: _cost(gamma, labels)), False


def _cost(gamma: JointDistribution, labels: NDArray[np.int64]) -> float:
    """Σ w_i |v_i − mean outcome of i's group|."""
    return float(gamma.mass @ _distances(labels, gamma.predictions, gamma.mass, gamma.means))


@kernel
def _distances(labels, v, w, q):
    """|v_i − mean outcome of i's group| for each level."""
    groups = labels.max() + 1
    mass, ones, members = np.zeros(groups), np.zeros(groups), np.zeros(groups, np.int64)
    for i in range(len(v)):
        mass[labels[i]] += w[i]
        ones[labels[i]] += w[i] * q[i]
        members[labels[i]] += 1
    out = np.empty(len(v))
    for i in range(len(v)):
        group = labels[i]
        # A level on its own keeps its mean to the last digit, and where that is the forecast nothing moves.
        out[i] = abs(v[i] - (q[i] if members[group] == 1 else ones[group] / mass[group]))
    return out


def _labels(k: int, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.searchsorted(starts, np.arange(k), side="right") - 1


@kernel
def _contiguous(v, mass, ones, moved, cuts):
    """The start of the last group before each cut, for the best contiguous groups that end at cuts."""
    m = len(cuts) - 1
    cost, before = np.zeros(m + 1), np.zeros(m + 1, np.int64)
    for b in range(1, m + 1):
        best = np.inf
        end = cuts[b]
        for a in range(b - 1, -1, -1):
            start = cuts[a]
            # A group costs at least its residual.
            residual = (ones[end] - ones[start]) - (moved[end] - moved[start])
            if cost[a] + abs(residual) >= best:
                continue
            mean = (ones[end] - ones[start]) / (mass[end] - mass[start])
            low, high = start, end  # the first level of the group above the mean
            while low < high:
                middle = (low + high) >> 1
                if v[middle] > mean:
                    high = middle
                else:
                    low = middle + 1
            below = mean * (mass[low] - mass[start]) - (moved[low] - moved[start])
            above = (moved[end] - moved[low]) - mean * (mass[end] - mass[low])
            if cost[a] + below + above < best:
                best = cost[a] + below + above
                before[b] = a
        cost[b] = best
    return before


@kernel
def _enumerate(v, w, q):
    """Least cost of all partitions into groups, and the groups, over subsets of at most 16 items."""
    k = len(v)
    full = (1 << k) - 1
    single = np.zeros(full + 1)
    for s in range(1, full + 1):
        mass, ones = 0.0, 0.0
        for i in range(k):
            if s >> i & 1:
                mass += w[i]
                ones += w[i] * q[i]
        mean = ones / mass
        for i in range(k):
            if s >> i & 1:
                single[s] += w[i] * abs(v[i] - mean)
    cost, choice = np.zeros(full + 1), np.zeros(full + 1, np.int64)
    for s in range(1, full + 1):
        # The group of the lowest item: that item and any subset of the others.
        lowest = s & -s
        rest = s ^ lowest
        part = rest
        best = np.inf
        while True:
            here = single[part | lowest] + cost[rest ^ part]
            if here < best:
                best = here
                choice[s] = part | lowest
            if part == 0:
                break
            part = (part - 1) & rest
        cost[s] = best
    labels = np.zeros(k, np.int64)
    left = full
    group = 0
    while left:
        for i in range(k):
            if choice[left] >> i & 1:
                labels[i] = group
        left ^= choice[left]
        group += 1
    return cost[full], labels


MEASURES = (
    Measure(
        function=distance_upper,
        symbol="dCE_up",
        source="BGHN23 Def. 5.2",
        complexity="O(3^k), k ≤ 12; beyond, a bracket",
        bracket=True,
        continuous="no",
        complete="yes (c = 1/2)",
        sound="yes (s = 1)",
        witness=distance_upper_witness,
        counterpart=distance_upper_counterpart,
        upper=lambda gamma, max_levels=12: _cost(gamma, _grouping(gamma, max_levels)[0]),
        sampling=Between(
            "distance_lower", "surrogate_interval_ce", "dCE_low ≤ dCE_up ≤ intCE ≤ SintCE: BGHN23 §6"
        ),
    ),
)
