"""Expected calibration error and its binned forms."""

import math
from functools import partial
from typing import Any, Literal

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import cell, cells
from onlinecal.core.joint import CHUNK, Floats, JointDistribution, of_gamma
from onlinecal.core.levels import LevelSets
from onlinecal.core.validation import choice, integer, number
from onlinecal.measures.base import Change, Ints, Sampling, each_level, row, seminorm
from onlinecal.measures.witnesses.bins import Bins
from onlinecal.measures.witnesses.weights import ErrorWeights


def bins_of_levels(gamma: JointDistribution, m: int, strategy: str) -> tuple[Ints, Ints]:
    """The number of the bin of each level, and the levels at which bins start."""
    if strategy == "width":  # without numba, which takes longer to load than a page of a study needs
        number = np.minimum(cells(gamma.predictions, m), m - 1)
    else:
        number = _numbers(gamma.predictions, gamma.counts, gamma.weight, m, False)
    return number, np.flatnonzero(np.diff(number, prepend=-1))


@kernel
def _numbers(v, n, weight, m, by_width):
    """The bin of each level: by its prediction against j/m, or by the middle of its rounds against j W/m."""
    out, below, j = np.empty(len(v), np.int64), 0.0, 0
    for i in range(len(v)):
        if by_width:
            if j < m - 1 and v[i] >= (j + 1) / m:
                j = min(cell(v[i], m), m - 1)
        else:
            # Weights of whole rounds make every comparison exact.
            middle = (2.0 * below + n[i]) * m
            if j < m - 1 and middle >= 2.0 * (j + 1) * weight:
                # A quotient may be off by one: the edges decide.
                j = min(np.int64(middle / (2.0 * weight)), m - 1)
                j -= middle < 2.0 * j * weight
                j += j < m - 1 and middle >= 2.0 * (j + 1) * weight
            below += n[i]
        out[i] = j
    return out


def level_errors(change: Change, *, order: float = 1.0) -> Floats:
    """Σ |r_i|; of order p the norm of q* − q by the masses of a sample, and what those change in that of q − v."""
    if order == 1.0:
        return np.abs(change.residuals).sum(axis=1)[:, None]
    gamma = change.gamma
    mass = np.maximum(gamma.mass + change.ones + change.zeros, 1e-300)
    moved = np.clip((gamma.mass * gamma.means + change.ones) / mass, 0.0, 1.0) - gamma.means
    bias = np.abs(gamma.means - gamma.predictions)
    before = weighted_norm_of(bias, gamma.mass[None, :], order)
    return (weighted_norm_of(moved, mass, order) + np.abs(weighted_norm_of(bias, mass, order) - before))[
        :, None
    ]


def weighted_norm_of(errors: Floats, mass: Floats, order: float) -> Floats:
    """(Σ w_i |e_i|^p)^{1/p} for rows of masses (B, k), each divided by its sum."""
    errors = np.abs(errors)
    # Scaled by the largest error: a high power of a small one would vanish.
    largest = np.broadcast_to(errors, mass.shape).max(axis=1)
    if order == math.inf:
        return largest
    size = np.where(largest > 0.0, largest, 1.0)
    total = (mass * (errors / size[:, None]) ** order).sum(axis=1) / mass.sum(axis=1)
    return np.asarray(largest * total ** (1.0 / order))


def ece_norm(gamma: JointDistribution, residuals: Floats, *, order: float = 1.0) -> Floats:
    """`ece` of order 1 as a seminorm: Σ |r_i|."""
    return np.asarray(np.abs(residuals).sum(axis=1))


def bin_norm(
    gamma: JointDistribution, residuals: Floats, *, bins: int = 10, strategy: Any = "width"
) -> Floats:
    """`binned_ece` as a seminorm: Σ_j |Σ_{I_j} r_i|, for the bins that Γ has."""
    _, starts = bins_of_levels(gamma, bins, strategy)
    return np.asarray(np.abs(np.add.reduceat(residuals, starts, axis=1)).sum(axis=1))


def bin_width_errors(change: Change, *, bins: int = 10, strategy: Any = "width") -> Floats:
    """Those of binned ECE, and what changed masses add to the average width."""
    error = bin_norm(change.gamma, change.residuals, bins=bins, strategy=strategy)
    if strategy == "quantile":
        v = change.gamma.predictions
        _, starts = bins_of_levels(change.gamma, bins, strategy)
        width = v[np.append(starts[1:], len(v)) - 1] - v[starts]
        error += np.abs(np.add.reduceat(change.ones + change.zeros, starts, axis=1) @ width)
    return error[:, None]


def bin_cells(gamma: JointDistribution, *, bins: int = 10, strategy: Any = "width") -> Ints:
    _, starts = bins_of_levels(gamma, bins, strategy)
    return np.searchsorted(starts, np.arange(gamma.levels), side="right")


def bin_means(samples: float, *, bins: int = 10, strategy: Any = "width") -> Floats | None:
    # By Cauchy–Schwarz: the variances of the bins add to at most 1.
    return np.array([math.sqrt(bins)]) if strategy == "width" else None


MAX_BINS = 10_000_000
"""More bins than this are refused: a memory guard, far above any use."""


def _size(residuals: Floats) -> float:
    """Σ |r_i|, added in NumPy's order, without a copy of all."""
    if len(residuals) <= CHUNK:
        return float(np.abs(residuals).sum())
    half = len(residuals) // 2
    half -= half % 8
    return _size(residuals[:half]) + _size(residuals[half:])


@of_gamma
def ece(gamma: JointDistribution, *, order: float = 1.0) -> float:
    """Mean gap between forecast and frequency, of order p: (Σ w_i |q_i − v_i|^p)^{1/p} over the level sets, in [0, 1].

    Source: Foster & Vohra 1998; Błasiok, Gopalan, Hu & Nakkiran 2023, §4.3.

    Parameters
    ----------
    order : float, default 1
        p ≥ 1: 1 is Σ |r_i|, `math.inf` the largest |q_i − v_i|.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.4, 0.6], [0.5, 0.5], [0.0, 1.0])
    >>> ece(gamma), ece(gamma, order=2)
    (0.4, 0.4)
    """
    order = number("ece", "order", order, 1.0)
    if order == 1.0:
        return _size(gamma.residuals)
    return float(weighted_norm_of(gamma.means - gamma.predictions, gamma.mass[None, :], order)[0])


def _eces(sets: LevelSets, *, order: float = 1.0) -> Floats | None:
    return sets.sums(np.abs(sets.residuals)) if order == 1.0 else None


def ece_witness(gamma: JointDistribution, *, order: float = 1.0) -> ErrorWeights:
    """The weights that attain `ece` by Hölder: sign(q − v) |q − v|^{p − 1}, scaled to 1; for p = ∞ all at one level."""
    value = ece(gamma, order=order)
    errors = gamma.means - gamma.predictions
    size = np.abs(errors)
    if order == 1.0 or value == 0.0:
        weights = np.sign(errors)
    elif order == math.inf:
        weights = np.zeros(gamma.levels)
        i = int(np.argmax(size))
        weights[i] = math.copysign(1.0, errors[i])
    else:
        weights = np.sign(errors) * (size / size.max()) ** (order - 1.0)
    return ErrorWeights(gamma.predictions, weights, float(order))


@of_gamma
def binned_ece(gamma: JointDistribution, *, bins: int = 10, strategy: str = "width") -> float:
    """Expected calibration error after the predictions are put into bins: Σ_j |Σ_{v_i ∈ I_j} r_i| over m bins.

    By `width`, I_j = [j/m, (j+1)/m), the last one closed. By `quantile`, level i is in the bin j with
    j/m ≤ W_{<i} + w_i/2 < (j+1)/m, where W_{<i} is the mass below it: no level set is ever divided.
    The value is never above `ece`, and a bound on no distance: errors within a bin cancel.

    v_i is compared with the edge j/m as rounded once. So a grid value i/m' lies where the fraction lies: 0.3 is in bin
    3 of 10; but 1 − 0.9 is 0.09999999999999998, in bin 0. Papers and libraries differ on the side of an edge.

    Source: Naeini, Cooper & Hauskrecht 2015; Błasiok et al. 2023, §2.3.

    Parameters
    ----------
    bins : int, default 10
        m, from 1 to 10⁷.
    strategy : {"width", "quantile"}, default "width"

    Examples
    --------
    An arbitrarily small change of prediction, and an odd number of bins, make all of the error cancel:

    >>> gamma = JointDistribution.from_samples([0.499, 0.501], [0, 1])
    >>> round(binned_ece(gamma, bins=2), 6), binned_ece(gamma, bins=3)
    (0.499, 0.0)
    """
    gap, _ = _in_bins("binned_ece", gamma, bins, strategy)
    return gap


@of_gamma
def binned_ece_width(gamma: JointDistribution, *, bins: int = 10, strategy: str = "width") -> float:
    """Binned ECE plus the average width of the bins: a certified upper bound of the distance to calibration.

    Σ_j |Σ_{v_i ∈ I_j} r_i| + Σ_j mass(I_j) width(I_j), in [0, 2] and at least `interval_ce`. By `width` each bin is 1/m
    wide; by `quantile` a bin is the interval from its least to its greatest prediction.

    Source: Błasiok et al. 2023, eq. (5) and Definition 6.1.

    Parameters
    ----------
    bins, strategy
        As in `binned_ece`.

    Examples
    --------
    >>> gamma = JointDistribution.from_samples([0.499, 0.501], [0, 1])
    >>> round(binned_ece_width(gamma, bins=3), 6), round(binned_ece_width(gamma, bins=1, strategy="quantile"), 6)
    (0.333333, 0.002)
    """
    gap, width = _in_bins("binned_ece_width", gamma, bins, strategy)
    return gap + width


def bins_witness(
    gamma: JointDistribution,
    *,
    bins: int = 10,
    strategy: Literal["width", "quantile"] = "width",
    measure: Literal["binned_ece", "binned_ece_width"] = "binned_ece",
) -> Bins:
    m, by = _checked(measure, bins, strategy)
    return Bins(bins_of_levels(gamma, m, by)[0], m, strategy, measure)


def _in_bins(measure: str, gamma: JointDistribution, bins: Any, strategy: Any) -> tuple[float, float]:
    m, by = _checked(measure, bins, strategy)
    number = _numbers(gamma.predictions, gamma.counts, gamma.weight, m, by == "width")
    return _sums(number, gamma.predictions, gamma.mass, gamma.residuals, m if by == "width" else 0)


def _checked(measure: str, bins: Any, strategy: Any) -> tuple[int, str]:
    by: str = choice(measure, "strategy", strategy, ("width", "quantile"))
    return integer(measure, "bins", bins, 1, MAX_BINS), by


def _binned_eces(sets: LevelSets, *, bins: int = 10, strategy: Any = "width") -> Floats:
    gaps, _ = _in_bins_each(sets, bins, strategy)
    return gaps


def _binned_widths(sets: LevelSets, *, bins: int = 10, strategy: Any = "width") -> Floats:
    gaps, widths = _in_bins_each(sets, bins, strategy)
    return gaps + widths


def _in_bins_each(sets: LevelSets, m: int, by: str) -> tuple[Floats, Floats]:
    parts = sets.predictions, sets.counts, sets.mass, sets.residuals, sets.starts, sets.weights
    found = _each(*parts, int(m), by == "width")
    return found[0], found[1]


@kernel
def _each(v, n, w, r, starts, weights, m, by_width):
    """`_sums` of each of several Γ."""
    out = np.empty((2, len(weights)))
    for b in range(len(weights)):
        i, j = starts[b], starts[b + 1]
        number = _numbers(v[i:j], n[i:j], weights[b], m, by_width)
        out[0, b], out[1, b] = _sums(number, v[i:j], w[i:j], r[i:j], m if by_width else 0)
    return out


@kernel
def _sums(number, v, w, r, m):
    """Σ |Σ r| over the bins, and their mean width: 1/m, or for m = 0 from the least to the greatest level."""
    gap, width, total, mass, first = 0.0, 0.0, 0.0, 0.0, 0
    for i in range(len(v)):
        total += r[i]
        mass += w[i]
        if i + 1 == len(v) or number[i + 1] != number[i]:
            gap += abs(total)
            width += mass * ((number[i] + 1) / m - number[i] / m if m > 0 else v[i] - v[first])
            total, mass, first = 0.0, 0.0, i + 1
    return gap, width


_FEWER = "binned_ece with fewer bins, or smooth_ce"


MEASURES = (
    row(
        ece,
        "ECE_p | FV98; BGHN23 §4.3 | O(k) | no | yes | yes",
        many=_eces,
        witness=ece_witness,
        # GH25 Theorem 4.3: at a kink t a level loses at most |r_i|, and the kinks of a task weigh at most 2. Also for
        # other orders: ECE_1 ≤ ECE_p.
        decisions="swap regret of every task ≤ 2 ECE",
        sampling=Sampling(
            level_errors,
            "the triangle inequality, over levels; not testable on distinct predictions: BHNU26 §1.2",
            norm=ece_norm,
            cells=each_level,
            share=lambda order=1.0: 0.05 if order == 1.0 else 0.0,
            instead="binned_ece, smooth_ce or scdl",
        ),
    ),
    row(
        binned_ece,
        "binnedECE | NCH15; BGHN23 §2.3 | O(k) | no | yes | no",
        many=_binned_eces,
        witness=bins_witness,
        # Of quantiles, the bins are those of the sample.
        sampling=seminorm(bin_norm, cells=bin_cells, instead=_FEWER, means=bin_means),
    ),
    row(
        binned_ece_width,
        "binnedECE + width | BGHN23 eq. (5) | O(k) | no | no | yes",
        many=_binned_widths,
        witness=partial(bins_witness, measure="binned_ece_width"),
        largest=2.0,
        # Swaps see the bin. The ECE of the beliefs b_j is Σ_j |Σ_{I_j} (r_i + w_i (v_i − b_j))|, at most this, and
        # their CDL is at most twice that.
        decisions="swap regret of responding to a point of the bin, not v, ≤ 2 ×, every task",
        sampling=Sampling(
            bin_width_errors,
            "the triangle inequality; the average width is linear in the masses",
            cells=bin_cells,
            instead=_FEWER,
            means=bin_means,
        ),
    ),
)
