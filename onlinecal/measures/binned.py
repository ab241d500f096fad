"""Expected calibration error and its binned forms."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import cell
from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import choice, integer, number
from onlinecal.measures.base import Measure, Sampling
from onlinecal.measures.residual_norms import (
    bin_cells,
    bin_means,
    bin_norm,
    bin_width_errors,
    bins_of_levels,
    ece_norm,
    level_errors,
)
from onlinecal.measures.sampling import each_level, seminorm
from onlinecal.measures.witnesses.bins import Bins
from onlinecal.measures.witnesses.weights import ErrorWeights

MAX_BINS = 10_000_000
"""More bins than this are refused: a memory guard, far above any use."""


@of_gamma
def ece(gamma: JointDistribution, *, order: float = 1.0) -> float:
    """Expected calibration error of order p: (Σ w_i |q_i − v_i|^p)^{1/p} over the level sets.

    Parameters
    ----------
    order : float, default 1
        p ≥ 1: 1 is Σ |r_i|, `math.inf` the largest |q_i − v_i|.

    Returns
    -------
    float
        In [0, 1].

    Source
    ------
    Foster & Vohra 1998; Błasiok, Gopalan, Hu & Nakkiran 2023, §4.3.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.4, 0.6], [0.5, 0.5], [0.0, 1.0])
    >>> ece(gamma), ece(gamma, order=2)
    (0.4, 0.4)
    """
    order = number("ece", "order", order, 1.0)
    if order == 1.0:
        return float(np.abs(gamma.residuals).sum())
    errors = np.abs(gamma.means - gamma.predictions)
    largest = float(errors.max())
    if order == math.inf or largest == 0.0:
        return largest
    # Scaled by the largest error: a high power of a small one would vanish.
    return largest * float((gamma.mass * (errors / largest) ** order).sum()) ** (1.0 / order)


@of_gamma
def ece_witness(gamma: JointDistribution, *, order: float = 1.0) -> ErrorWeights:
    """The weights of the levels that attain `ece`, by Hölder's inequality.

    For order p they are sign(q − v) |q − v|^{p − 1}, divided by the largest; for p = ∞ all weight is at one level.
    """
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

    v_i is compared with the edge j/m as rounded once. So a grid value i/m' lies where the fraction lies: 0.3 is in bin
    3 of 10; but 1 − 0.9 is 0.09999999999999998, in bin 0.

    Parameters
    ----------
    bins : int, default 10
        m, from 1 to 10⁷.
    strategy : {"width", "quantile"}, default "width"

    Returns
    -------
    float
        In [0, 1]; never above `ece`, and a bound on no distance: errors within a bin cancel.

    Source
    ------
    Naeini, Cooper & Hauskrecht 2015; Błasiok et al. 2023, §2.3.

    Deviations
    ----------
    Papers and libraries differ on the side of an edge; here a bin holds its lower edge.

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

    Σ_j |Σ_{v_i ∈ I_j} r_i| + Σ_j mass(I_j) width(I_j). By `width` each bin is 1/m wide; by `quantile` a bin is the
    interval from its least to its greatest prediction.

    Parameters
    ----------
    bins, strategy
        As in `binned_ece`.

    Returns
    -------
    float
        In [0, 2]; at least `interval_ce`, hence at least `distance_upper`.

    Source
    ------
    Błasiok et al. 2023, eq. (5) and Definition 6.1.

    Examples
    --------
    >>> gamma = JointDistribution.from_samples([0.499, 0.501], [0, 1])
    >>> round(binned_ece_width(gamma, bins=3), 6), round(binned_ece_width(gamma, bins=1, strategy="quantile"), 6)
    (0.333333, 0.002)
    """
    gap, width = _in_bins("binned_ece_width", gamma, bins, strategy)
    return gap + width


@of_gamma
def bins_witness(
    gamma: JointDistribution,
    *,
    bins: int = 10,
    strategy: Literal["width", "quantile"] = "width",
    measure: Literal["binned_ece", "binned_ece_width"] = "binned_ece",
) -> Bins:
    """The levels in each bin of `binned_ece` or `binned_ece_width`."""
    m = integer(measure, "bins", bins, 1, MAX_BINS)
    by = choice(measure, "strategy", strategy, ("width", "quantile"))
    number, starts = bins_of_levels(gamma, m, by)
    return Bins(number[starts], starts, m, strategy, measure)


def _in_bins(measure: str, gamma: JointDistribution, bins: Any, strategy: Any) -> tuple[float, float]:
    """Binned ECE and average width."""
    m = integer(measure, "bins", bins, 1, MAX_BINS)
    if choice(measure, "strategy", strategy, ("width", "quantile")) == "width":
        return _equal_width(gamma.predictions, gamma.mass, gamma.residuals, m)
    return _equal_mass(gamma.predictions, gamma.counts, gamma.weight, gamma.mass, gamma.residuals, m)


@kernel
def _equal_width(v, w, r, m):
    gap, width, total, mass, j = 0.0, 0.0, 0.0, 0.0, 0
    for i in range(v.shape[0]):
        if j < m - 1 and v[i] >= (j + 1) / m:
            gap += abs(total)
            width += mass * ((j + 1) / m - j / m)
            total, mass = 0.0, 0.0
            j = min(cell(v[i], m), m - 1)
        total += r[i]
        mass += w[i]
    return gap + abs(total), width + mass * ((j + 1) / m - j / m)


@kernel
def _equal_mass(v, n, weight, w, r, m):
    # Weights of whole rounds make every comparison below exact: (2 N_{<i} + n_i) m against 2 (j+1) N.
    gap, width, total, mass, below = 0.0, 0.0, 0.0, 0.0, 0.0
    first, j = 0, 0
    for i in range(v.shape[0]):
        middle = (2.0 * below + n[i]) * m
        if j < m - 1 and middle >= 2.0 * (j + 1) * weight:
            if i > first:
                gap += abs(total)
                width += mass * (v[i - 1] - v[first])
            total, mass = 0.0, 0.0
            first = i
            j = min(max(int(middle / (2.0 * weight)), j + 1), m - 1)
            while j < m - 1 and middle >= 2.0 * (j + 1) * weight:
                j += 1
            while middle < 2.0 * j * weight:
                j -= 1
        total += r[i]
        mass += w[i]
        below += n[i]
    return gap + abs(total), width + mass * (v[v.shape[0] - 1] - v[first])


_FEWER = "binned_ece with fewer bins, or smooth_ce"

MEASURES = (
    Measure(
        function=ece,
        symbol="ECE_p",
        source="FV98; BGHN23 §4.3",
        complexity="O(k)",
        witness=ece_witness,
        continuous="no",
        complete="yes",
        sound="yes",
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
    Measure(
        function=binned_ece,
        symbol="binnedECE",
        source="NCH15; BGHN23 §2.3",
        complexity="O(k)",
        witness=bins_witness,
        continuous="no",
        complete="yes",
        sound="no",
        # Of quantiles, the bins are those of the sample.
        sampling=seminorm(bin_norm, cells=bin_cells, instead=_FEWER, means=bin_means),
    ),
    Measure(
        function=binned_ece_width,
        symbol="binnedECE + width",
        source="BGHN23 eq. (5)",
        complexity="O(k)",
        witness=partial(bins_witness, measure="binned_ece_width"),
        continuous="no",
        complete="no",
        sound="yes",
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
