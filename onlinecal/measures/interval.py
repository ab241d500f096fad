"""Interval calibration: the best partition into intervals, exact or bracketed.

Levels 1 … k have prefix sums P_0 = 0, …, P_k of their residuals. A group a+1 … b costs |P_b − P_a| and is as wide as
its levels are apart. H(W) is the least cost of groups of which none is wider than W; by maximum width the least
H(W) + W is wanted.
"""

import heapq
import math
from functools import partial

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import choice, count
from onlinecal.measures.base import Between, Bracket, Ints, row
from onlinecal.measures.smooth_ce import smooth_ce, smooth_ce_witness
from onlinecal.measures.witnesses.bins import IntervalPartition, LeastCosts, Width
from onlinecal.measures.witnesses.weights import LipschitzWeights


def least_max_width(
    prefix: Floats, low: Floats, high: Floats, most: float = math.inf
) -> tuple[float, float, Ints]:
    """min over W of H(W) + W, until it is found or H was evaluated `most` times: bounds, and where each last group
    begins.

    H falls as W grows, so W in (left, right) gives at least H(right) + left. The interval with the lowest bound is
    halved. Widths from the widest group that was used up to W are done with.
    """
    narrow = partial(_narrow, prefix, locked(low), locked(high))
    least, widest = float((high - low).max()), float(high[-1] - low[0])
    error, used, groups = narrow(least)
    best = error + used
    error, used, before = narrow(widest)
    if error + used < best:
        best, groups = error + used, before
    parts, evaluations = [(error + least, least, used, error, False)], 2
    while parts and parts[0][0] < best and evaluations < most:
        _, left, right, error, bare = heapq.heappop(parts)
        end = min(float(np.nextafter(right, 0.0)), best - error)
        if end <= left:
            continue
        middle = end if bare else 0.5 * (left + end)
        if not left < middle < end:
            middle = end
        here, used, before = narrow(middle)
        evaluations += 1
        if here + used < best:
            best, groups = here + used, before
        if used > left:
            heapq.heappush(parts, (here + left, left, used, here, False))
        if middle < end:
            heapq.heappush(parts, (error + middle, middle, right, error, used <= left))
    return min(parts[0][0], best) if parts else best, best, groups


@kernel
def _narrow(prefix, low, high, widest):
    """Least cost of groups of which none is wider than `widest`."""
    # cost[b] = min of cost[a] + |P_b − P_a| over a window of a. An a is dropped when a later a' costs no more: then it
    # never wins. For those kept |cost[a'] − cost[a]| ≤ |P_a' − P_a|, so the best a is next to P_b in the order of P,
    # above or below.
    k = len(low)
    cost, before = np.zeros(k + 1), np.zeros(k + 1, np.int64)
    kept, size = np.zeros(k + 1, np.int64), 1  # the a that are kept, by ascending P
    first = 0
    for b in range(1, k + 1):
        while high[b - 1] - low[first] > widest:
            j = _place(prefix, kept, size, prefix[first])
            if j < size and kept[j] == first:
                size = _move(kept, size, j + 1, -1)
            first += 1
        p = prefix[b]
        left = right = _place(prefix, kept, size, p)
        best = np.inf
        for j in range(max(left - 1, 0), min(right + 1, size)):
            here = cost[kept[j]] + abs(p - prefix[kept[j]])
            if here < best:
                before[b] = kept[j]
                best = here
        cost[b] = best
        while left > 0 and cost[kept[left - 1]] >= best + (p - prefix[kept[left - 1]]):
            left -= 1
        while right < size and cost[kept[right]] >= best + (prefix[kept[right]] - p):
            right += 1
        size = _move(kept, size, right, left + 1 - right)
        kept[left] = b
    used = 0.0
    b = k
    while b > 0:
        used = max(used, high[b - 1] - low[before[b]])
        b = before[b]
    return cost[k], used, before


@kernel
def _place(prefix, kept, size, p):
    """The first of the kept with a prefix sum of at least p."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if prefix[kept[middle]] < p:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _move(kept, size, start, by):
    """Moves what is kept from `start` on by some places; how many are kept then."""
    if by > 0:
        for j in range(size - 1, start - 1, -1):
            kept[j + by] = kept[j]
    elif by < 0:
        for j in range(start, size):
            kept[j + by] = kept[j]
    return size + by


# Exact up to here unless the caller says otherwise: some seconds.
MOST = {"mean": 200_000, "max": 50_000}
# Widths tried where the search over the greatest width is to give a bracket only.
_TRIED = 32


@of_gamma
def interval_ce(gamma: JointDistribution, *, width: Width = "mean", max_levels: int | None = None) -> float:
    """Interval calibration error intCE(Γ): binned error plus bin width, at the best partition.

    intCE(Γ) = min over interval partitions of Σ_j |Σ_{v_i ∈ I_j} r_i| + Σ_j mass(I_j) width(I_j); with width="max"
    the second sum is the largest width. An interval need be no wider than the levels in it. Mean width: a pruned
    dynamic program over end points, O(k²) at worst, O(k^(5/3)) as a rule. Maximum width: H(W) = least binned error with
    widths ≤ W takes O(k log k), and falls with W. Halving tries a few hundred widths as a rule, O(k) at worst.

    Source: Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 6.1; Gopalan, Hu (2025), Definition 6.10 for the maximum
    width.

    Parameters
    ----------
    width : {"mean", "max"}, default "mean"
        Which width is added.
    max_levels : int, optional, ≥ 1
        Refuse larger k. Default: 200 000 for "mean", 50 000 for "max": some seconds.

    Examples
    --------
    >>> round(interval_ce(JointDistribution.from_samples([0.4, 0.6], [1, 0])), 12)
    0.2
    """
    return best_partition(gamma, width, max_levels)[0]


def interval_ce_witness(
    gamma: JointDistribution, *, width: Width = "mean", max_levels: int | None = None
) -> IntervalPartition:
    return _intervals(gamma, best_partition(gamma, width, max_levels)[1], width)


def least_costs(
    gamma: JointDistribution, *, width: Width = "mean", max_levels: int | None = None
) -> LeastCosts:
    """The least cost of the levels up to each, by mean width: no partition costs less, by either width."""
    _check_levels(gamma, width, max_levels)
    v, prefix, mass = gamma.predictions, prefix_sums(gamma.residuals), prefix_sums(gamma.mass)
    return LeastCosts(_mean_program(prefix, mass, v, v)[0][1:])


@of_gamma
def interval_ce_bracket(gamma: JointDistribution, *, width: Width = "mean", blocks: int = 2000) -> Bracket:
    """A certified bracket of `interval_ce` for any number of levels, in O(k log k + m²).

    Mean width. Above: the best partition with intervals that end between blocks of equally many levels, or the ECE.
    Below: smCE(Γ) ≤ intCE(Γ), since a 1-Lipschitz weight gains at most |Σ_{i ∈ I} r_i| + mass(I) width(I) / 2 on an
    interval I. The ends meet where all residuals have one sign: both are the bias |Σ r_i|. Otherwise smCE may be as
    small as intCE²/32. Maximum width: the search of `interval_ce` on all levels, stopped after 32 widths; some
    percent apart as a rule.

    Source: Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 6.1, for the measure; the bracket is ours.

    Parameters
    ----------
    width : {"mean", "max"}, default "mean"
        As in `interval_ce`.
    blocks : int, default 2000, ≥ 1
        Number of blocks m; with m ≥ k the bracket closes. For "max" nothing else depends on it.

    Examples
    --------
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> bracket = interval_ce_bracket(gamma, blocks=1)
    >>> interval_ce_bracket(gamma).width, round(bracket.lower, 12), round(bracket.upper, 12)
    (0.0, 0.06, 0.2)
    """
    lower, upper, _ = _in_blocks(gamma, width, blocks)
    return Bracket(min(smooth_ce(gamma), upper) if lower is None else lower, upper)


def _intervals(gamma: JointDistribution, starts: Ints, width: Width) -> IntervalPartition:
    v = gamma.predictions
    ends = np.append(starts[1:], gamma.levels) - 1
    return IntervalPartition(tuple(zip(v[starts].tolist(), v[ends].tolist(), strict=True)), width)


def _in_blocks(gamma: JointDistribution, width: Width, blocks: int) -> tuple[float | None, float, Ints]:
    """A lower bound if the search gives one, the cost of a partition, and the first levels of its groups."""
    choice("", "width", width, ("mean", "max"))
    m = count("blocks", blocks)
    if m >= gamma.levels:
        value, starts = best_partition(gamma, width, gamma.levels)
        return value, value, starts
    if width == "max":
        v = gamma.predictions
        lower, upper, groups = least_max_width(prefix_sums(gamma.residuals), v, v, _TRIED)
        return lower, upper, group_starts(groups)
    cuts = np.linspace(0, gamma.levels, m + 1).astype(np.int64)
    upper, starts = _program(gamma, width, cuts)
    # Every level an interval of its own is a partition too, of width 0: its cost is the ECE.
    alone = float(np.abs(gamma.residuals).sum())
    return (None, alone, np.arange(gamma.levels)) if alone < upper else (None, upper, cuts[starts])


def _bracket_witness(
    gamma: JointDistribution, *, width: Width = "mean", blocks: int = 2000
) -> IntervalPartition:
    """The partition behind the upper end of `interval_ce_bracket`."""
    return _intervals(gamma, _in_blocks(gamma, width, blocks)[2], width)


def _bracket_counterpart(
    gamma: JointDistribution, *, width: Width = "mean", blocks: int = 2000
) -> LeastCosts | LipschitzWeights:
    """The proof of its lower end: Lipschitz weights, or least costs where every level is a block."""
    choice("", "width", width, ("mean", "max"))
    if count("blocks", blocks) >= gamma.levels:
        return least_costs(gamma, width=width, max_levels=gamma.levels)
    return smooth_ce_witness(gamma, measure="interval_ce_bracket")


def best_partition(gamma: JointDistribution, width: Width, max_levels: int | None) -> tuple[float, Ints]:
    """Value and first levels of the groups."""
    _check_levels(gamma, width, max_levels)
    return _program(gamma, width, np.arange(gamma.levels + 1))


def _check_levels(gamma: JointDistribution, width: Width, max_levels: int | None) -> None:
    most = _limit(width=width, max_levels=max_levels)
    if gamma.levels > most:
        raise InvalidParameter(
            f"Γ has {gamma.levels} levels, more than max_levels = {most}: the exact value takes long; "
            "expected fewer, a larger max_levels, or interval_ce_bracket"
        )


def _program(gamma: JointDistribution, width: str, cuts: Ints) -> tuple[float, Ints]:
    """The best partition with ends at `cuts` only, which are numbers of levels from 0 to k."""
    prefix = prefix_sums(gamma.residuals)[cuts]
    low, high = gamma.predictions[cuts[:-1]], gamma.predictions[cuts[1:] - 1]
    if width == "max":
        _, value, before = least_max_width(prefix, low, high)
        return value, group_starts(before)
    costs, before = _mean_program(prefix, prefix_sums(gamma.mass)[cuts], locked(low), locked(high))
    return float(costs[-1]), group_starts(before)


def prefix_sums(values: Floats) -> Floats:
    return np.concatenate((np.zeros(1), np.cumsum(values)))


def group_starts(before: Ints) -> Ints:
    starts = [int(before[-1])]
    while starts[-1] > 0:
        starts.append(int(before[starts[-1]]))
    return np.array(starts[::-1])


@kernel
def _mean_program(prefix, mass, low, high):
    """Least cost of the blocks before each end, and where their last group starts."""
    k = len(low)
    cost, before = np.zeros(k + 1), np.zeros(k + 1, np.int64)
    for b in range(1, k + 1):
        best, start = np.inf, 0
        least = abs(prefix[b])
        for a in range(b - 1, -1, -1):
            residual = abs(prefix[b] - prefix[a])
            wide = (mass[b] - mass[a]) * (high[b - 1] - low[a])
            here = cost[a] + wide
            if here + residual < best:
                best = here + residual
                start = a
            # For a' < a: cost[a] ≤ cost[a'] + (group a'…a). Its residual differs from that of a'…b by at most
            # `residual`. Its mass·width is less by at least that of a…b. So a'…b costs at least here − residual.
            # Also the residuals of all groups together are at least |prefix[b]|.
            if here - residual >= best or wide + least >= best:
                break
        cost[b] = best
        before[b] = start
    return cost, before


def _limit(*, width: Width = "mean", max_levels: int | None = None) -> int:
    choice("", "width", width, ("mean", "max"))
    return count("max_levels", MOST[width] if max_levels is None else max_levels)


def _bracketed(gamma: JointDistribution, *, width: Width = "mean", max_levels: int | None = None) -> Bracket:
    return interval_ce_bracket(
        gamma, width=width, blocks=min(_limit(width=width, max_levels=max_levels), 2000)
    )


_BETWEEN = Between("distance_lower", "surrogate_interval_ce", "dCE_low ≤ dCE_up ≤ intCE ≤ SintCE: BGHN23 §6")


MEASURES = (
    row(
        interval_ce,
        "intCE | BGHN23 Def. 6.1; GH25 Def. 6.10 | O(k²), pruned | no | yes (c = 1/2) | yes (s = 1)",
        witness=interval_ce_witness,
        counterpart=least_costs,
        limit=_limit,
        fallback=_bracketed,
        sampling=_BETWEEN,
    ),
    row(
        interval_ce_bracket,
        "intCE | BGHN23 Def. 6.1 | O(k log k + blocks²) | no | yes (c = 1/2) | yes (s = 1)",
        witness=_bracket_witness,
        counterpart=_bracket_counterpart,
        sampling=_BETWEEN,
        bracket=True,
    ),
)
