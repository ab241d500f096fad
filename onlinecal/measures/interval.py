"""Interval calibration: the best partition into intervals, exact or bracketed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import count
from onlinecal.measures.base import Between, Bracket, Measure
from onlinecal.measures.interval_max import least_max_width
from onlinecal.measures.smooth_ce import smooth_ce, smooth_ce_witness
from onlinecal.measures.witnesses.partitions import IntervalPartition, LeastCosts, Width
from onlinecal.measures.witnesses.weights import LipschitzWeights

# Exact up to here unless the caller says otherwise: some seconds.
MOST = {"mean": 200_000, "max": 50_000}
# Widths tried where the search over the greatest width is to give a bracket only.
_TRIED = 32


@of_gamma
def interval_ce(gamma: JointDistribution, *, width: Width = "mean", max_levels: int | None = None) -> float:
    """Interval calibration error intCE(Γ): binned error plus bin width, at the best partition.

    intCE(Γ) = min over interval partitions of Σ_j |Σ_{v_i ∈ I_j} r_i| + Σ_j mass(I_j) width(I_j);
    with width="max" the second sum is the largest width. An interval need be no wider than the levels in it.
    Mean width: a dynamic program over end points. Going left from b, no group wider than a…b can win once
    F(a) + mass·width − |residual| of a…b, or |r_1 + … + r_b| + mass·width, reaches the best so far.
    Maximum width: H(W) = least binned error with widths ≤ W takes O(k log k). It falls with W, so H(W_2) + W_1
    bounds all of (W_1, W_2]; halving stops where no part can win (`interval_max` has both with their proofs).

    Parameters
    ----------
    width : {"mean", "max"}, default "mean"
        Which width is added.
    max_levels : int, optional, ≥ 1
        Refuse larger k. Default: 200 000 for "mean", 50 000 for "max": some seconds.

    Returns
    -------
    float
        In [0, 1]; exact up to rounding. "mean": O(k²) at worst, O(k^(5/3)) as a rule. "max": O(k log k) for each width
        tried: a few hundred as a rule, O(k) where nearly all widths are equally good.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 6.1; Gopalan, Hu (2025), Definition 6.10 for the maximum width.

    Examples
    --------
    >>> round(interval_ce(JointDistribution.from_samples([0.4, 0.6], [1, 0])), 12)
    0.2
    """
    return best_partition(gamma, width, max_levels)[0]


@of_gamma
def interval_ce_witness(
    gamma: JointDistribution, *, width: Width = "mean", max_levels: int | None = None
) -> IntervalPartition:
    """The partition that attains `interval_ce`."""
    return _intervals(gamma, best_partition(gamma, width, max_levels)[1], width)


@of_gamma
def least_costs(
    gamma: JointDistribution, *, width: Width = "mean", max_levels: int | None = None
) -> LeastCosts:
    """The least cost of the levels up to each, by mean width: no partition costs less, by either width."""
    _check_levels(gamma, width, max_levels)
    v, prefix, mass = gamma.predictions, prefix_sums(gamma.residuals), prefix_sums(gamma.mass)
    before = _mean_program(prefix, mass, v, v)[1]
    return LeastCosts(_costs(before, prefix, mass, v)[1:])


@of_gamma
def interval_ce_bracket(gamma: JointDistribution, *, width: Width = "mean", blocks: int = 2000) -> Bracket:
    """A certified bracket of `interval_ce` for any number of levels.

    Mean width. Above: the best partition whose intervals end between blocks of equally many levels, or the ECE.
    Below: smCE(Γ) ≤ intCE(Γ), since a 1-Lipschitz weight gains at most |Σ_{i ∈ I} r_i| + mass(I) width(I) / 2
    on an interval I. The ends meet where all residuals have one sign: both are the bias |Σ r_i|. Otherwise smCE may
    be as small as intCE²/32.
    Maximum width: the search of `interval_ce` on all levels, stopped after 32 widths; some percent apart as a rule.

    Parameters
    ----------
    width : {"mean", "max"}, default "mean"
        As in `interval_ce`.
    blocks : int, default 2000, ≥ 1
        Number of blocks m; with m ≥ k the bracket closes. For "max" nothing else depends on it.

    Returns
    -------
    Bracket
        O(k log k + m²); "max": O(k log k).

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 6.1, for the measure; the bracket is ours.

    Examples
    --------
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> bracket = interval_ce_bracket(gamma, blocks=1)
    >>> interval_ce_bracket(gamma).width, round(bracket.lower, 12), round(bracket.upper, 12)
    (0.0, 0.06, 0.2)
    """
    lower, upper, _ = _in_blocks(gamma, width, blocks)
    return Bracket(min(smooth_ce(gamma), upper) if lower is None else lower, upper)


def _check_width(width: str) -> None:
    if width not in ("mean", "max"):
        raise InvalidParameter(f"width = {width!r}; expected 'mean' or 'max'")


def _intervals(gamma: JointDistribution, starts: NDArray[np.int64], width: Width) -> IntervalPartition:
    """The intervals of groups that start at these levels."""
    v = gamma.predictions
    ends = np.append(starts[1:], gamma.levels) - 1
    return IntervalPartition(tuple(zip(v[starts].tolist(), v[ends].tolist(), strict=True)), width)


def _in_blocks(
    gamma: JointDistribution, width: Width, blocks: int
) -> tuple[float | None, float, NDArray[np.int64]]:
    """A lower bound if the search gives one, the cost of a partition, and the first levels of its groups."""
    _check_width(width)
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


@of_gamma
def _bracket_witness(
    gamma: JointDistribution, *, width: Width = "mean", blocks: int = 2000
) -> IntervalPartition:
    """The partition behind the upper end of `interval_ce_bracket`."""
    return _intervals(gamma, _in_blocks(gamma, width, blocks)[2], width)


@of_gamma
def _bracket_counterpart(
    gamma: JointDistribution, *, width: Width = "mean", blocks: int = 2000
) -> LeastCosts | LipschitzWeights:
    """What proves its lower end: Lipschitz weights, or least costs where every level is a block."""
    _check_width(width)
    if count("blocks", blocks) >= gamma.levels:
        return least_costs(gamma, width=width, max_levels=gamma.levels)
    return smooth_ce_witness(gamma)


def best_partition(
    gamma: JointDistribution, width: str, max_levels: int | None
) -> tuple[float, NDArray[np.int64]]:
    """Value and first levels of the groups."""
    _check_levels(gamma, width, max_levels)
    return _program(gamma, width, np.arange(gamma.levels + 1))


def _check_levels(gamma: JointDistribution, width: str, max_levels: int | None) -> None:
    _check_width(width)
    most = count("max_levels", MOST[width] if max_levels is None else max_levels)
    if gamma.levels > most:
        raise InvalidParameter(
            f"Γ has {gamma.levels} levels, more than max_levels = {most}: the exact value takes long; "
            "expected fewer, a larger max_levels, or interval_ce_bracket"
        )


def _program(
    gamma: JointDistribution, width: str, cuts: NDArray[np.int64]
) -> tuple[float, NDArray[np.int64]]:
    """The best partition with ends at `cuts` only, which are numbers of levels from 0 to k."""
    prefix = prefix_sums(gamma.residuals)[cuts]
    low, high = gamma.predictions[cuts[:-1]], gamma.predictions[cuts[1:] - 1]
    if width == "max":
        _, value, before = least_max_width(prefix, low, high)
        return value, group_starts(before)
    value, before = _mean_program(prefix, prefix_sums(gamma.mass)[cuts], low, high)
    return float(value), group_starts(before)


def prefix_sums(values: Floats) -> Floats:
    return np.concatenate((np.zeros(1), np.cumsum(values)))


def group_starts(before: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = [int(before[-1])]
    while starts[-1] > 0:
        starts.append(int(before[starts[-1]]))
    return np.array(starts[::-1])


@kernel
def _mean_program(prefix, mass, low, high):
    """Least cost of the blocks before each end, and where its last group starts."""
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
            # `residual`, its mass·width is less by at least that of a…b: a'…b costs at least here − residual.
            # Also the residuals of all groups together are at least |prefix[b]|.
            if here - residual >= best or wide + least >= best:
                break
        cost[b] = best
        before[b] = start
    return cost[k], before


@kernel
def _costs(before, prefix, mass, v):
    """Cost of the partition of the levels before each end, from where its last group starts."""
    cost = np.zeros(len(before))
    for b in range(1, len(before)):
        a = before[b]
        cost[b] = cost[a] + abs(prefix[b] - prefix[a]) + (mass[b] - mass[a]) * (v[b - 1] - v[a])
    return cost


def _limit(*, width: Width = "mean") -> int:
    _check_width(width)
    return MOST[width]


def _above(gamma: JointDistribution, most: int, *, width: Width = "mean") -> Bracket:
    return interval_ce_bracket(gamma, width=width, blocks=min(most, 2000))


_BETWEEN = Between("distance_lower", "surrogate_interval_ce", "dCE_low ≤ dCE_up ≤ intCE ≤ SintCE: BGHN23 §6")

MEASURES = (
    Measure(
        function=interval_ce,
        symbol="intCE",
        source="BGHN23 Def. 6.1; GH25 Def. 6.10",
        complexity="O(k²), pruned",
        continuous="no",
        complete="yes (c = 1/2)",
        sound="yes (s = 1)",
        witness=interval_ce_witness,
        counterpart=least_costs,
        limit=_limit,
        fallback=_above,
        sampling=_BETWEEN,
    ),
    Measure(
        function=interval_ce_bracket,
        symbol="intCE",
        source="BGHN23 Def. 6.1",
        complexity="O(k log k + blocks²)",
        witness=_bracket_witness,
        counterpart=_bracket_counterpart,
        sampling=_BETWEEN,
        bracket=True,
        continuous="no",
        complete="yes (c = 1/2)",
        sound="yes (s = 1)",
    ),
)
