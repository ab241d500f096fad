"""Kernel calibration error: Laplace in O(k), the Gaussian contrast, and the estimators of its square."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel as compiled
from onlinecal.errors import InvalidData, InvalidParameter
from onlinecal.joint import JointDistribution
from onlinecal.measures.base import Measure

Floats = NDArray[np.float64]
Kernel = Literal["laplace", "gaussian"]

# exp(−1000/2) is still a normal double; a narrower Gaussian goes through the sum over pairs.
_WIDEST_SERIES = 1000.0
# exp(−6.3²) < 6e-18: pairs further apart than this many scales cannot change the sum.
_REACH = 6.3


def kernel_ce(gamma: JointDistribution, *, kernel: Kernel = "laplace", scale: float = 1.0) -> float:
    """Kernel calibration error kCE^K(Γ): the RKHS norm of the residual's mean embedding.

    kCE^K(Γ) = sup over ‖w‖_K ≤ 1 of E[w(v)(y − v)] = sqrt(Σ_ij r_i r_j K(v_i, v_j)), with
    K(u, v) = exp(−|u − v|/scale) ("laplace") or exp(−((u − v)/scale)²) ("gaussian").
    Both are computed as the root of a sum of squares, so small values keep their digits: Laplace through the
    Markov property, r'Kr = B_1² + Σ_{i>1} (1 − ρ_{i−1}²) B_i² with B_i = r_i + ρ_i B_{i+1} and
    ρ_i = exp(−(v_{i+1} − v_i)/scale).

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    kernel : {"laplace", "gaussian"}, default "laplace"
        The Gaussian is the contrast: its error can be exponentially small where smCE is not.
    scale : float, default 1.0, > 0
        Length scale of the kernel.

    Returns
    -------
    float
        In [0, 1]. Laplace: exact up to rounding, O(k). Gaussian, scale ≥ 0.0224: the features
        exp(−z²/2) zⁿ/sqrt(n!) of z = sqrt(2)(v − 1/2)/scale, cut where the rest is below 1e-17 in the
        result, rounding aside (some 1e-16/scale², relative); O(k/scale²). Narrower Gaussian:
        the sum over pairs within 6.3 scales, O(k²) at worst; right to 1e-15 in the square, thus to 4e-8
        where the result is near 0.

    Raises
    ------
    InvalidParameter
        On another kernel, or a scale that is not positive and finite.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 8.1, Claim 8.3, Theorems 8.5 and 8.6.

    Deviations
    ----------
    The papers take scale = 1, the default; the bounds against smCE and the distance hold for it.

    Examples
    --------
    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_levels([0.45], [1], [0.55])
    >>> round(kernel_ce(gamma), 12)
    0.1
    """
    _check(kernel, scale)
    if kernel == "laplace":
        with np.errstate(over="ignore"):  # levels infinitely many scales apart do not meet
            fall = np.expm1(-np.diff(gamma.predictions) / scale)
        return math.sqrt(_laplace_square(fall, gamma.residuals))
    # Products may overflow to infinity or underflow to 0, where a power would raise.
    widest = max(0.5 * (1.0 / scale) * (1.0 / scale), 1e-300)
    if widest > _WIDEST_SERIES:
        return math.sqrt(max(_gaussian_square(gamma.predictions, gamma.residuals, scale), 0.0))
    return float(np.linalg.norm(_gaussian_moments(gamma, scale, _terms(widest))))


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """The weight function w = Σ_j c_j K(v_j, ·) of RKHS norm 1 that attains a kernel calibration error.

    Attributes
    ----------
    predictions, coefficients : (k,) floats
        v_j and c_j.
    kernel : {"laplace", "gaussian"}
    scale : float
    """

    predictions: Floats
    coefficients: Floats
    kernel: Kernel
    scale: float

    def weights(self, v: Floats) -> Floats:
        """w(v) for each of the n values v, in O(k n)."""
        out = np.empty(len(v))
        for start in range(0, len(v), 256):
            part = slice(start, start + 256)
            apart = np.abs(v[part, None] - self.predictions) / self.scale
            out[part] = np.exp(-apart if self.kernel == "laplace" else -(apart**2)) @ self.coefficients
        return out

    def value(self, gamma: JointDistribution) -> float:
        """Σ r_i w(v_i), after checking that the norm of w is at most 1 (up to 1e-7); O(k²) by plain sums.

        Raises
        ------
        InvalidData
            If the norm is above 1.
        """
        square = float(self.coefficients @ self.weights(self.predictions))
        if not square <= 1.0 + 1e-7:
            raise InvalidData(f"the weight function has squared norm {square!r}; expected at most 1")
        return float(gamma.residuals @ self.weights(gamma.predictions))

    def __str__(self) -> str:
        w = self.weights(self.predictions)
        low, high = int(np.argmin(w)), int(np.argmax(w))
        return (
            f"a weight function of norm 1 for the {self.kernel} kernel of scale {self.scale:g}, from "
            f"{w[low]:+.4g} at v = {self.predictions[low]:.4g} to {w[high]:+.4g} "
            f"at v = {self.predictions[high]:.4g}"
        )


def kernel_ce_witness(
    gamma: JointDistribution, *, kernel: Kernel = "laplace", scale: float = 1.0
) -> KernelWeights:
    """The weight function of norm 1 that attains `kernel_ce`: w = Σ_i r_i K(v_i, ·) / kCE.

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    kernel, scale
        As in `kernel_ce`.

    Returns
    -------
    KernelWeights
        With all coefficients 0 where the error is 0.

    Raises
    ------
    InvalidParameter
        As `kernel_ce`.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Lemma 8.2.

    Deviations
    ----------
    None.

    Examples
    --------
    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_levels([0.45], [1], [0.55])
    >>> round(kernel_ce_witness(gamma).value(gamma), 12)
    0.1
    """
    error = kernel_ce(gamma, kernel=kernel, scale=scale)
    coefficients = gamma.residuals / error if error > 0.0 else np.zeros(gamma.levels)
    return KernelWeights(gamma.predictions, coefficients, kernel, scale)


# ---------------------------------------------------------------- estimators of the square


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
    gamma : JointDistribution
        Γ with k levels.
    seed : int, ≥ 0
        Of the generator; the same seed gives the same estimate.
    pairs : int, optional, ≥ 1
        Number of pairs M. Default: 10 k.
    kernel, scale
        As in `kernel_ce`.

    Returns
    -------
    float
        Within sqrt(2 ln(2/δ) / M) of the square with probability 1 − δ.

    Raises
    ------
    InvalidParameter
        As `kernel_ce`; also on pairs < 1 or a seed that is not an integer ≥ 0.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), §8.4 (full version).

    Deviations
    ----------
    The paper draws samples (v, y); drawing levels and taking their conditional mean leaves less variance.

    Examples
    --------
    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_levels([0.45], [1], [0.55])
    >>> round(kernel_ce_squared_pairs(gamma, seed=1), 12)
    0.01
    """
    _check(kernel, scale)
    m = _count("pairs", 10 * gamma.levels if pairs is None else pairs)
    ends = np.cumsum(gamma.mass)
    # Rounding may leave the last end below a draw, or a draw at an end of an empty step.
    draws = np.searchsorted(ends, _generator(seed).random((2, m)) * ends[-1], side="right")
    i, j = np.minimum(draws, gamma.levels - 1)
    v, gap = gamma.predictions, gamma.means - gamma.predictions
    apart = np.abs(v[i] - v[j]) / scale
    return float(np.mean(gap[i] * gap[j] * np.exp(-apart if kernel == "laplace" else -(apart**2))))


def kernel_ce_squared_fourier(
    gamma: JointDistribution, *, seed: int, draws: int = 100, scale: float = 1.0
) -> float:
    """Unbiased estimate of the Laplace kernel_ce² from random Fourier features.

    The mean over ω ~ Cauchy(1/scale) of |Σ_i r_i exp(−iωv_i)|²; each term lies in [0, 1].

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    seed : int, ≥ 0
        Of the generator.
    draws : int, default 100, ≥ 1
        Number of frequencies averaged; O(k) each.
    scale : float, default 1.0, > 0
        Of the Laplace kernel.

    Returns
    -------
    float
        Within sqrt(ln(2/δ) / (2 draws)) of the square with probability 1 − δ.

    Raises
    ------
    InvalidParameter
        On a scale, number of draws or seed out of range.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Algorithm 1 and Theorem 8.13 (full version).

    Deviations
    ----------
    None; the paper's algorithm is one draw.

    Examples
    --------
    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_levels([0.45], [1], [0.55])
    >>> round(kernel_ce_squared_fourier(gamma, seed=1), 12)
    0.01
    """
    _check("laplace", scale)
    frequencies = _generator(seed).standard_cauchy(_count("draws", draws)) / scale
    v, r = gamma.predictions, gamma.residuals
    total = 0.0
    for frequency in frequencies:
        angle = frequency * v
        total += float(r @ np.cos(angle)) ** 2 + float(r @ np.sin(angle)) ** 2
    return total / len(frequencies)


def kernel_ce_squared_binning(
    gamma: JointDistribution, *, seed: int, draws: int = 100, scale: float = 1.0
) -> float:
    """Unbiased estimate of the Laplace kernel_ce² from bins of random width and shift.

    The mean over δ ~ Gamma(2, scale), τ ~ U(0, δ) of Σ_t (Σ_{i: ⌊(v_i + τ)/δ⌋ = t} r_i)²; terms in [0, 1].

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    seed : int, ≥ 0
        Of the generator.
    draws : int, default 100, ≥ 1
        Number of binnings averaged; O(k) each.
    scale : float, default 1.0, > 0
        Of the Laplace kernel.

    Returns
    -------
    float
        Within sqrt(ln(2/δ) / (2 draws)) of the square with probability 1 − δ.

    Raises
    ------
    InvalidParameter
        On a scale, number of draws or seed out of range.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Algorithm 2 and Theorem 8.14 (full version).

    Deviations
    ----------
    As printed it returns Σ_t B[t]² of sums over samples; here r_i carries the 1/n that its theorem needs.

    Examples
    --------
    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_levels([0.45], [1], [0.55])
    >>> round(kernel_ce_squared_binning(gamma, seed=1), 12)
    0.01
    """
    _check("laplace", scale)
    generator = _generator(seed)
    widths = generator.gamma(2.0, scale, _count("draws", draws))
    shifts = generator.random(len(widths)) * widths
    v, r = gamma.predictions, gamma.residuals
    total = 0.0
    for width, shift in zip(widths, shifts, strict=True):
        bins = np.floor((v + shift) / width)
        starts = np.flatnonzero(np.concatenate(([True], bins[1:] != bins[:-1])))
        total += float(np.square(np.add.reduceat(r, starts)).sum())
    return total / len(widths)


# ---------------------------------------------------------------- inside


def _check(kernel: str, scale: float) -> None:
    if kernel not in ("laplace", "gaussian"):
        raise InvalidParameter(f"kernel = {kernel!r}; expected 'laplace' or 'gaussian'")
    if not (isinstance(scale, (int, float, np.number)) and 0.0 < scale < math.inf):
        raise InvalidParameter(f"scale = {scale!r}; expected a positive finite length")


def _count(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidParameter(f"{name} = {value!r}; expected an integer ≥ 1")
    return int(value)


def _generator(seed: int) -> np.random.Generator:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidParameter(f"seed = {seed!r}; expected an integer ≥ 0")
    return np.random.default_rng(int(seed))


@compiled
def _laplace_square(fall, r):
    """r'Kr as a sum of squares; fall_i = ρ_i − 1, so 1 − ρ_i² = −fall_i (2 + fall_i) keeps its digits."""
    b = r[-1]
    total = 0.0
    for i in range(len(r) - 2, -1, -1):
        total -= fall[i] * (2.0 + fall[i]) * b * b
        b = r[i] + (b + fall[i] * b)
    return total + b * b


def _terms(widest: float) -> int:
    """How many Gaussian features leave a rest ≤ 1e-34 in the square: a Poisson tail."""
    n = math.ceil(2.0 * widest) + 2
    # From n = 2 widest on the weights fall by half or more, so the tail is at most twice its first term.
    while n * math.log(widest) - math.lgamma(n + 1.0) - widest > math.log(0.5e-34):
        n += 1
    return n


def _gaussian_moments(gamma: JointDistribution, scale: float, terms: int) -> Floats:
    """Σ_i r_i exp(−z_i²/2) z_iⁿ / sqrt(n!), n < terms; their inner product is exp(−(u−v)²/s²)."""
    z = (gamma.predictions - 0.5) * (math.sqrt(2.0) / scale)
    return _moments(z, gamma.residuals * np.exp(-0.5 * z * z), np.sqrt(np.arange(1.0, terms)))


@compiled
def _moments(z, start, roots):
    moments = np.zeros(len(roots) + 1)
    for i in range(len(z)):
        term = start[i]
        moments[0] += term
        for n in range(len(roots)):
            term *= z[i] / roots[n]
            moments[n + 1] += term
    return moments


@compiled
def _gaussian_square(v, r, scale):
    total = 0.0
    for i in range(len(v)):
        row = 0.0
        j = i + 1
        while j < len(v):
            apart = (v[j] - v[i]) / scale
            if apart > _REACH:
                break
            row += r[j] * math.exp(-apart * apart)
            j += 1
        total += r[i] * (r[i] + 2.0 * row)
    return total


def _modulus(moved: float, *, kernel: Kernel = "laplace", scale: float = 1.0) -> float:
    """By how much the value changes at most when predictions move by `moved` on average.

    The norm of the mean embedding changes by at most E|v − v'| + E‖φ(v) − φ(v')‖, where ‖φ(v) − φ(v')‖² =
    2 − 2 K(v, v') is at most 2 |v − v'|/scale (Laplace) or 2 ((v − v')/scale)² (Gaussian).
    """
    return moved + math.sqrt(2.0 * moved / scale if kernel == "laplace" else 2.0 * (moved / scale) ** 2)


MEASURES = (
    Measure(
        function=kernel_ce,
        symbol="kCE",
        source="BGHN23 Def. 8.1, Thm 8.5, 8.6",
        complexity="O(k) Laplace; O(k/scale²) Gaussian, O(k²) below scale 0.0224",
        continuous="yes",
        complete="yes (c = 1/2, Laplace)",
        sound="yes (s = 2, Laplace); Gaussian no",
        decisions="",
        witness=kernel_ce_witness,
        modulus=_modulus,
    ),
)
