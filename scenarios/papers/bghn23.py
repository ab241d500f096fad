"""Błasiok, Gopalan, Hu and Nakkiran 2023: the paper's estimators from random draws (§6.2, §8.4).

onlinecal computes `kernel_ce` and `surrogate_interval_ce` exactly, and sooner; these are here to be compared with. Each
takes Γ, a seed and the number of draws.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.joint import JointDistribution

Floats = NDArray[np.float64]


def kernel_ce_squared_pairs(
    gamma: JointDistribution, *, seed: int, pairs: int, kernel: str = "laplace", scale: float = 1.0
) -> float:
    """Unbiased estimate of kernel_ce² (§8.4): the mean of (q_i − v_i)(q_j − v_j) K(v_i, v_j) over drawn pairs.

    The paper draws samples; levels and their conditional means leave less variance. Terms lie in [−1, 1].
    """
    ends = np.cumsum(gamma.mass)
    draws = np.searchsorted(ends, np.random.default_rng(seed).random((2, pairs)) * ends[-1], side="right")
    i, j = np.minimum(draws, gamma.levels - 1)  # rounding may leave the last end below a draw
    v, gap = gamma.predictions, gamma.means - gamma.predictions
    apart = np.abs(v[i] - v[j]) / scale
    return float(np.mean(gap[i] * gap[j] * np.exp(-apart if kernel == "laplace" else -(apart**2))))


def kernel_ce_squared_fourier(
    gamma: JointDistribution, *, seed: int, draws: int = 100, scale: float = 1.0
) -> float:
    """Unbiased estimate of the Laplace kernel_ce² (Algorithm 1): |Σ_i r_i exp(−iωv_i)|², ω ~ Cauchy(1/scale)."""
    frequencies = np.random.default_rng(seed).standard_cauchy(draws) / scale
    r = gamma.residuals
    angles = (frequency * gamma.predictions for frequency in frequencies)
    return float(np.mean([(r @ np.cos(angle)) ** 2 + (r @ np.sin(angle)) ** 2 for angle in angles]))


def kernel_ce_squared_binning(
    gamma: JointDistribution, *, seed: int, draws: int = 100, scale: float = 1.0
) -> float:
    """Unbiased estimate of the Laplace kernel_ce² (Algorithm 2): squared sums of r in bins of random width and shift.

    As printed it sums over samples; here r_i carries the 1/n that Theorem 8.14 needs.
    """
    generator = np.random.default_rng(seed)
    widths = generator.gamma(2.0, scale, draws)
    shifts = generator.random(draws) * widths
    binnings = zip(shifts, widths, strict=True)
    return float(np.mean([np.square(_binned(gamma, shift, width)).sum() for shift, width in binnings]))


def surrogate_interval_ce_sampled(
    gamma: JointDistribution, *, seed: int, shifts: int = 100, finest: int = 10
) -> float:
    """Estimate of `surrogate_interval_ce` (§6.2): drawn shifts for each of the widths 1 to 2^−finest."""
    draws = np.random.default_rng(seed).random((finest + 1, shifts))
    widths = 2.0 ** -np.arange(finest + 1)
    errors = [
        np.mean([np.abs(_binned(gamma, shift * -width, width)).sum() for shift in row])
        for row, width in zip(draws, widths, strict=True)
    ]
    return float((errors + widths).min())


def draws_for(precision: float, failure: float) -> tuple[int, int]:
    """`shifts` and `finest` with which |estimate − SintCE| ≤ precision fails with probability `failure` (Theorem 6.12).

    The finest width is in (ε/4, ε/2], and by Hoeffding's inequality m ≥ (2/ε²) ln(2 (finest + 1)/δ) shifts keep all
    means within ε/2.
    """
    finest = math.ceil(1.0 - math.log2(precision))
    return math.ceil(math.log(2.0 * (finest + 1.0) / failure) * 2.0 / precision**2), finest


def _binned(gamma: JointDistribution, shift: float, width: float) -> Floats:
    """Σ r_i of each bin that holds a level, level i lying in bin ⌊(v_i + shift)/width⌋."""
    bins = np.floor((gamma.predictions + shift) / width)
    return np.add.reduceat(gamma.residuals, np.flatnonzero(np.diff(bins, prepend=np.nan)))
