"""Binned calibration errors of any order: root mean square, debiased, the largest; soft bins."""

import math
from collections.abc import Sequence

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import choice, integer, number, positive, vector
from onlinecal.measures.base import Change, Ints, Sampling, no_share, row
from onlinecal.measures.binned import MAX_BINS, bins_of_levels, weighted_norm_of

Counted = int | Sequence[float] | None

#: bins where none are asked for, and how many a sweep tries
BINS, SWEPT = 10, 1000

MAX_SOFT_BINS = 100_000


@of_gamma
def binned_ce(
    gamma: JointDistribution,
    *,
    order: float = 2.0,
    bins: Counted = None,
    strategy: str = "width",
    debiased: bool = False,
) -> float:
    """Binned calibration error of order p: (Σ_j w_j |q_j − v_j|^p)^{1/p} over bins, in [0, 1].

    Bins are those of `binned_ece` with mass w_j, mean outcome q_j and mean prediction v_j; p = ∞ is the largest
    |q_j − v_j| (MCE), p = 1 is `binned_ece`. With the strategy "sweep" (ECE_sweep) bins are those of "quantile".
    Their number is the largest b such that, for every number up to b, mean outcomes do not fall between bins.

    Source: Kumar, Liang, Ma 2019, Definition 2.1 and §5. Bröcker 2012 debiases in the terms of Brier's decomposition.
    Naeini, Cooper, Hauskrecht 2015 for MCE. Roelofs, Cain, Shlens, Mozer 2022 for the sweep, and on the bias of all.
    Błasiok, Gopalan, Hu, Nakkiran 2023, eq. (4), for any partition into intervals. Deviations: the root of a negative
    debiased sum is 0. No bin of a sweep divides the rows of one prediction; bins without rows do not count.

    Parameters
    ----------
    order : float, default 2
        p ≥ 1; `math.inf` is allowed.
    bins : int or sequence of float, optional
        Their number, for a sweep the most that is tried. Edges that increase from 0 to 1 take the place of a
        strategy: bins are [a, b), the last one closed. Default: 10; for a sweep 1000.
    strategy : {"width", "quantile", "sweep"}, default "width"
        The first two as in `binned_ece`. A sweep to b bins takes O(k + b² log k).
    debiased : bool, default False
        For p = 2, of samples: the root of Σ_j w_j [(q_j − v_j)² − q_j (1 − q_j)/(n_j − 1)], or 0 where that is
        negative, with n_j samples in the bin. The sum is unbiased where a bin holds one prediction; a bin with one
        sample keeps its square.

    Examples
    --------
    >>> gamma = JointDistribution.from_counts([0.25, 0.75], [5, 5], [1, 3])
    >>> round(binned_ce(gamma), 6), round(binned_ce(gamma, order=float("inf")), 6), binned_ce(gamma, debiased=True)
    (0.111803, 0.15, 0.0)
    >>> round(binned_ce(gamma, bins=[0.0, 0.8, 1.0]), 6)                # one bin: they cancel
    0.1
    """
    order = number("binned_ce", "order", order, 1.0)
    mass, errors, starts = bins_of(gamma, bins, strategy)
    if not debiased:
        return float(weighted_norm_of(errors, mass[None, :], order)[0])
    if order != 2.0:
        raise InvalidParameter(f"binned_ce: debiased with order = {order:g}; expected order = 2")
    samples = np.add.reduceat(gamma.counts, starts)
    q = np.add.reduceat(gamma.positives, starts) / samples
    bias = np.where(samples > 1.0, q * (1.0 - q) / np.maximum(samples - 1.0, 1e-300), 0.0)
    return math.sqrt(max(float(mass @ (errors**2 - bias)), 0.0))


@of_gamma
def soft_binned_ece(
    gamma: JointDistribution, *, bins: int = 15, temperature: float = 0.01, order: float = 2.0
) -> float:
    """Binned calibration error with soft bins: each prediction is in all bins, in shares that fall with the distance.

    (Σ_j W_j |E_j|^p)^{1/p} with the shares u_j(v) = exp(−(v − c_j)²/T) / Σ_l exp(−(v − c_l)²/T) for the middles c_j
    = (j − ½)/m. Masses are W_j = E[u_j(v)], errors E_j = E[u_j(v) (y − v)]/W_j. It is differentiable in the
    predictions, a loss to train with. In [0, 1], for p = 1 at most `ece`; O(k m).

    Source: Karandikar et al. 2021, equation (11). Deviations: they measure the confidence in the top label; here it is
    the prediction of y = 1. The default temperature is ours.

    Parameters
    ----------
    bins : int, default 15
        m, from 1 to 100,000.
    temperature : float, default 0.01, > 0
        T. As it goes to 0, the bins become those of `binned_ce` of equal width, but for predictions on their edges.
    order : float, default 2
        p ≥ 1; `math.inf` is allowed.

    Examples
    --------
    >>> round(soft_binned_ece(JointDistribution.from_levels([0.45], [1], [0.55])), 12)
    0.1
    """
    p = number("soft_binned_ece", "order", order, 1.0)
    mass, residual = _on_soft_bins(gamma.predictions, bins, temperature, gamma.mass, gamma.residuals)
    held = mass > 0.0
    errors = np.clip(residual[held] / mass[held], -1.0, 1.0)
    return float(weighted_norm_of(errors, mass[None, held], p)[0])


def _on_soft_bins(v: Floats, bins: int, temperature: float, *parts: Floats) -> list[Floats]:
    """The sum in each bin, (…, m), of the (…, k) parts, which belong to predictions v."""
    m = integer("soft_binned_ece", "bins", bins, 1, MAX_SOFT_BINS)
    width = positive("soft_binned_ece: temperature", temperature, "a positive finite number")
    middles = (np.arange(m) + 0.5) / m
    held = [np.zeros((*part.shape[:-1], m)) for part in parts]
    rows = max(1, 2**20 // m)
    for start in range(0, len(v), rows):
        some = slice(start, start + rows)
        with np.errstate(over="ignore"):  # bins infinitely far away have no share
            apart = (v[some, None] - middles) ** 2 / width
        nearest = apart.min(axis=1, keepdims=True)
        if not np.isfinite(nearest).all():  # nor has then any but the nearest
            apart = np.abs(v[some, None] - middles)
            apart = np.where(apart == apart.min(axis=1, keepdims=True), 0.0, np.inf)
            nearest = np.zeros((len(apart), 1))
        share = np.exp(nearest - apart)
        share /= share.sum(axis=1, keepdims=True)
        for part, sums in zip(parts, held, strict=True):
            sums += part[..., some] @ share
    return held


def bins_of(gamma: JointDistribution, bins: Counted, strategy: str) -> tuple[Floats, Floats, Ints]:
    """Mass and error of each bin that holds levels, and its first level."""
    by = choice("binned_ce", "strategy", strategy, ("width", "quantile", "sweep"))
    if bins is None or not np.ndim(bins):
        most = SWEPT if by == "sweep" else BINS
        m = integer("binned_ce", "bins", most if bins is None else bins, 1, MAX_BINS)
        if by == "sweep":
            m, by = swept(gamma, m), "quantile"
        _, starts = bins_of_levels(gamma, m, by)
    else:
        if by != "width":
            raise InvalidParameter(f"binned_ce: edges with strategy = {strategy!r}; expected one of them")
        edges = vector("bins", bins, InvalidParameter)
        if not (len(edges) > 1 and edges[0] == 0.0 and edges[-1] == 1.0 and (np.diff(edges) > 0.0).all()):
            raise InvalidParameter(f"binned_ce: bins = {bins!r}; expected edges rising from 0 to 1")
        number_of = np.minimum(np.searchsorted(edges, gamma.predictions, "right"), len(edges) - 1)
        starts = np.flatnonzero(np.diff(number_of, prepend=-1))
    mass = np.add.reduceat(gamma.mass, starts)
    return mass, np.add.reduceat(gamma.residuals, starts) / mass, starts


def swept(gamma: JointDistribution, most: int) -> int:
    """The number of bins of equal mass of a sweep, at most `most`."""
    n, s = gamma.counts, gamma.positives
    middle = 2.0 * np.cumsum(np.append(0.0, n[:-1])) + n
    sums = np.cumsum(np.append(0.0, n)), np.cumsum(np.append(0.0, s))
    # Of whole numbers all products are exact; else equal means may seem to fall by rounding.
    whole = gamma.weight < 2.0**26 and not ((n % 1.0).any() or (s % 1.0).any())
    return int(_swept(middle, *sums, gamma.weight, 0.0 if whole else 1e-12, most))


@kernel
def _swept(middle, counts, ones, weight, slack, most):
    k = len(middle)
    for m in range(2, most + 1):
        before, start = -1.0, 0
        size = 1.0
        for j in range(1, m + 1):
            low, high = start, k  # where bin j begins: the first level with 2 N_{<i} + n_i ≥ 2 j N/m
            if j < m:
                edge = 2.0 * j * weight
                while low < high:
                    middle_level = (low + high) >> 1
                    if middle[middle_level] * m >= edge:
                        high = middle_level
                    else:
                        low = middle_level + 1
            if high == start:
                continue
            here, events = counts[high] - counts[start], ones[high] - ones[start]
            if before * here > events * size + slack * here * size:
                return m - 1
            before, size, start = events, here, high
    return most


def bin_errors(
    change: Change,
    *,
    order: float = 2.0,
    bins: Counted = None,
    strategy: str = "width",
    debiased: bool = False,
) -> Floats:
    """The norm of e* − e by the masses of a sample, and what those change in that of e."""
    mass, errors, starts = bins_of(change.gamma, bins, strategy)
    new = np.maximum(mass + np.add.reduceat(change.ones + change.zeros, starts, axis=1), 1e-300)
    after = (mass * errors + np.add.reduceat(change.residuals, starts, axis=1)) / new
    return _apart(mass, errors, new, after, order)


def _apart(mass: Floats, errors: Floats, new: Floats, after: Floats, order: float) -> Floats:
    other = weighted_norm_of(errors, new, order) - weighted_norm_of(errors, mass[None, :], order)
    return (weighted_norm_of(np.clip(after, -1.0, 1.0) - errors, new, order) + np.abs(other))[:, None]


def bins_together(
    gamma: JointDistribution, *, bins: Counted = None, strategy: str = "width", **options: object
) -> Ints:
    _, _, starts = bins_of(gamma, bins, strategy)
    return np.searchsorted(starts, np.arange(gamma.levels), side="right")


def _soft_errors(change: Change, *, bins: int = 15, temperature: float = 0.01, order: float = 2.0) -> Floats:
    gamma = change.gamma
    v, gains = gamma.predictions, change.ones + change.zeros
    mass, residual = _on_soft_bins(v, bins, temperature, gamma.mass, gamma.residuals)
    gained, moved = _on_soft_bins(v, bins, temperature, gains, change.residuals)
    held = mass > 0.0
    errors = np.clip(residual[held] / mass[held], -1.0, 1.0)
    new = np.maximum(mass[held] + gained[:, held], 1e-300)
    return _apart(mass[held], errors, new, (residual[held] + moved[:, held]) / new, order)


def _soft_cells(gamma: JointDistribution, *, bins: int = 15, **options: object) -> Ints:
    """Levels with the same nearest bin count together."""
    number = np.minimum((gamma.predictions * bins).astype(np.int64), bins - 1)
    return np.unique(number, return_inverse=True)[1]


def _refuses(*, strategy: str = "width", debiased: bool = False, **options: object) -> str:
    if strategy == "sweep":
        return "the number of bins of a sweep is that of the sample; a number that is given has one"
    if not debiased:
        return ""
    return "a debiased estimate may be 0 where the error is not; ask for it without debiased, which has one"


MEASURES = (
    row(
        binned_ce,
        "binnedCE_p | KLM19; NCH15; RCSM22 | O(k) | no | yes | no",
        sampling=Sampling(
            bin_errors,
            "the triangle inequality, over bins",
            cells=bins_together,
            share=no_share,
            instead="binned_ece, or fewer bins",
            refuses=_refuses,
        ),
    ),
    row(
        soft_binned_ece,
        "SB-ECE_p | KCTLSMR21 | O(k m) | yes | yes | no",
        sampling=Sampling(
            _soft_errors,
            "the triangle inequality, over bins",
            cells=_soft_cells,
            share=no_share,
            instead="binned_ece, or fewer bins",
        ),
    ),
)
