"""Estimates from random draws of what other families compute exactly: the papers' own algorithms.

They are here to be compared with, not to be used: the exact value is there sooner. So they have no row in the
catalogue.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import count, number
from onlinecal.measures.kernel import Kernel, check_kernel, kernel_at

Floats = NDArray[np.float64]

#: draws that are made at once, and kept
MOST = 10_000_000


@of_gamma
def kernel_ce_squared_pairs(
    gamma: JointDistribution,
    *,
    seed: int,
    pairs: int | None = None,
    kernel: Kernel = "laplace",
    scale: float = 1.0,
) -> float:
    """Unbiased estimate of kernel_ce² from independent pairs of levels, drawn by their mass.

    The mean of (q_i − v_i)(q_j − v_j) K(v_i, v_j) over the pairs; each term lies in [−1, 1]. May be negative.

    Parameters
    ----------
    seed : int, ≥ 0
        Of the generator; the same seed gives the same estimate.
    pairs : int, optional, from 1 to 10^7
        Number of pairs M. Default: 10 k.
    kernel, scale
        As in `kernel_ce`.

    Returns
    -------
    float
        Within sqrt(2 ln(2/δ) / M) of the square with probability 1 − δ.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), §8.4 (full version).

    Deviations
    ----------
    The paper draws samples (v, y); drawing levels and taking their conditional mean leaves less variance.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.45], [1], [0.55])
    >>> round(kernel_ce_squared_pairs(gamma, seed=1), 12)
    0.01
    """
    scale = check_kernel(kernel, scale)
    if kernel == "polynomial":
        raise InvalidParameter(
            "kernel_ce_squared_pairs: kernel = 'polynomial'; expected 'laplace' or 'gaussian', for kernel_ce has it in "
            "less time"
        )
    m = 10 * gamma.levels if pairs is None else count("pairs", pairs, most=MOST)
    ends = np.cumsum(gamma.mass)
    # Rounding may leave the last end below a draw, or a draw at an end of an empty step.
    draws = np.searchsorted(ends, _generator(seed).random((2, m)) * ends[-1], side="right")
    i, j = np.minimum(draws, gamma.levels - 1)
    v, gap = gamma.predictions, gamma.means - gamma.predictions
    apart = np.abs(v[i] - v[j]) / scale
    return float(np.mean(gap[i] * gap[j] * kernel_at(apart, kernel)))


@of_gamma
def kernel_ce_squared_fourier(
    gamma: JointDistribution, *, seed: int, draws: int = 100, scale: float = 1.0
) -> float:
    """Unbiased estimate of the Laplace kernel_ce² from random Fourier features.

    The mean over ω ~ Cauchy(1/scale) of |Σ_i r_i exp(−iωv_i)|²; each term lies in [0, 1].

    Parameters
    ----------
    seed : int, ≥ 0
        Of the generator.
    draws : int, default 100, from 1 to 10^7
        Number of frequencies averaged; O(k) each.
    scale : float, default 1.0, > 0
        Of the Laplace kernel.

    Returns
    -------
    float
        Within sqrt(ln(2/δ) / (2 draws)) of the square with probability 1 − δ.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Algorithm 1 and Theorem 8.13 (full version).

    Deviations
    ----------
    None; the paper's algorithm is one draw.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.45], [1], [0.55])
    >>> round(kernel_ce_squared_fourier(gamma, seed=1), 12)
    0.01
    """
    scale = check_kernel("laplace", scale)
    frequencies = _generator(seed).standard_cauchy(count("draws", draws, most=MOST)) / scale
    v, r = gamma.predictions, gamma.residuals
    angles = (frequency * v for frequency in frequencies.tolist())
    return _mean(float(r @ np.cos(angle)) ** 2 + float(r @ np.sin(angle)) ** 2 for angle in angles)


@of_gamma
def kernel_ce_squared_binning(
    gamma: JointDistribution, *, seed: int, draws: int = 100, scale: float = 1.0
) -> float:
    """Unbiased estimate of the Laplace kernel_ce² from bins of random width and shift.

    The mean over δ ~ Gamma(2, scale), τ ~ U(0, δ) of Σ_t (Σ_{i: ⌊(v_i + τ)/δ⌋ = t} r_i)²; terms in [0, 1].

    Parameters
    ----------
    seed : int, ≥ 0
        Of the generator.
    draws : int, default 100, from 1 to 10^7
        Number of binnings averaged; O(k) each.
    scale : float, default 1.0, > 0
        Of the Laplace kernel.

    Returns
    -------
    float
        Within sqrt(ln(2/δ) / (2 draws)) of the square with probability 1 − δ.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Algorithm 2 and Theorem 8.14 (full version).

    Deviations
    ----------
    As printed it returns Σ_t B[t]² of sums over samples; here r_i carries the 1/n that its theorem needs.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.45], [1], [0.55])
    >>> round(kernel_ce_squared_binning(gamma, seed=1), 12)
    0.01
    """
    scale = check_kernel("laplace", scale)
    generator = _generator(seed)
    widths = generator.gamma(2.0, scale, count("draws", draws, most=MOST))
    shifts = generator.random(len(widths)) * widths
    v, r = gamma.predictions, gamma.residuals
    binnings = zip(shifts.tolist(), widths.tolist(), strict=True)
    return _mean(float(np.square(_bin_residuals(v, r, shift, width)).sum()) for shift, width in binnings)


@of_gamma
def surrogate_interval_ce_sampled(
    gamma: JointDistribution,
    *,
    seed: int,
    shifts: int | None = None,
    finest: int | None = None,
    precision: float | None = None,
    failure: float = 0.05,
) -> float:
    """The paper's estimate of `surrogate_interval_ce`: shifts drawn at random, widths 1 to 2^−finest.

    min over 0 ≤ j ≤ finest of 2^−j + mean over drawn r of Σ_t |Σ_{v_i ∈ [r + t 2^−j, r + (t+1) 2^−j)} r_i|.
    Each mean is unbiased for RintCE(Γ, 2^−j); the minimum is not. With a precision ε and a probability of failure δ,
    |estimate − SintCE(Γ)| ≤ ε with probability 1 − δ or more: the finest width is in (ε/4, ε/2], and by Hoeffding's
    inequality m ≥ (2/ε²) ln(2 (finest + 1)/δ) shifts keep all means within ε/2.

    Parameters
    ----------
    seed : int, ≥ 0
        Of the generator.
    shifts : int, default 100, from 1 to 200,000
        Shifts drawn for each width.
    finest : int, default 10, from 1 to 50
        Last j.
    precision : float, optional, in (0, 1)
        ε, in place of the two.
    failure : float, default 0.05, in (0, 1)
        δ, with a precision.

    Returns
    -------
    float
        O(k · shifts · finest).

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), §6.2 and Theorem 6.12.

    Deviations
    ----------
    The theorem leaves its constant open, and its ε is for Γ too, which is a sample there and known here.

    Examples
    --------
    >>> gamma = JointDistribution.from_samples([0.45], [1])
    >>> round(surrogate_interval_ce_sampled(gamma, seed=1), 12)
    0.5509765625
    """
    if precision is None:
        shifts = count("shifts", 100 if shifts is None else shifts, most=MOST // 50)
        finest = count("finest", 10 if finest is None else finest, most=50)
    elif shifts is None and finest is None:
        shifts, finest = _numbers(precision, failure)
    else:
        raise InvalidParameter(
            "surrogate_interval_ce_sampled: precision beside shifts or finest; expected one or the other"
        )
    draws = _generator(seed).random((finest + 1, shifts))
    v, r = gamma.predictions, gamma.residuals
    best = math.inf
    for j, row in enumerate(draws):
        width = 2.0**-j
        moves = (row * -width).tolist()
        errors = (float(np.abs(_bin_residuals(v, r, shift, width)).sum()) for shift in moves)
        best = min(best, _mean(errors) + width)
    return best


# ---------------------------------------------------------------- inside


def _numbers(precision: float, failure: float) -> tuple[int, int]:
    """How many shifts, and the last j, for a precision of the surrogate."""
    least = math.nextafter(0.0, 1.0)
    epsilon = number("surrogate_interval_ce_sampled", "precision", precision, least, 1.0)
    delta = number("surrogate_interval_ce_sampled", "failure", failure, least, 1.0)
    finest = math.ceil(1.0 - math.log2(epsilon))
    needed = math.log(2.0 * (finest + 1.0) / delta) * 2.0 * (1.0 / max(epsilon, 1e-150)) ** 2
    if not needed <= MOST // 50:
        raise InvalidParameter(
            f"surrogate_interval_ce_sampled: precision = {precision!r} takes {needed:.3g} shifts, and {MOST // 50:,} "
            "are the most; expected a larger one, or surrogate_interval_ce, which is exact"
        )
    return math.ceil(needed), finest


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(count("seed", seed, least=0))


def _bin_residuals(v: Floats, r: Floats, shift: float, width: float) -> Floats:
    """Σ r_i of each bin that holds a level, level i lying in bin ⌊(v_i + shift)/width⌋."""
    bins = np.floor((v + shift) / width)
    new = np.empty(len(v), dtype=bool)
    new[0] = True
    np.not_equal(bins[1:], bins[:-1], out=new[1:])
    return np.add.reduceat(r, np.flatnonzero(new))


def _mean(terms: Iterable[float]) -> float:
    """Their mean, added one by one: `sum` compensates from Python 3.12 on, and would give other digits there."""
    total = 0.0
    n = 0
    for term in terms:
        total += term
        n += 1
    return total / n
