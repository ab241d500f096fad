"""Kernel calibration error: Laplace in O(k), the Gaussian contrast, polynomials; the averaged two-bin error."""

import math
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel as compiled
from onlinecal.core.arrays import locked
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import choice, integer, positive
from onlinecal.measures.base import Change, Ends, Known, Sampling, row, seminorm
from onlinecal.measures.witnesses.kernels import MOST_DEGREE, Kernel, KernelWeights

# exp(−1000/2) is still a normal double; a narrower Gaussian goes through the sum over pairs.
_WIDEST_SERIES = 1000.0
# exp(−6.3²) < 6e-18: pairs further apart than this many scales cannot change the sum.
_REACH = 6.3


@of_gamma
def kernel_ce(
    gamma: JointDistribution, *, kernel: Kernel = "laplace", scale: float = 1.0, degree: int = 2
) -> float:
    """Kernel calibration error kCE^K(Γ): the RKHS norm of the residual's mean embedding, in [0, 1].

    kCE^K(Γ) = sup over ‖w‖_K ≤ 1 of E[w(v)(y − v)] = sqrt(Σ_ij r_i r_j K(v_i, v_j)), with K(u, v) = exp(−|u −
    v|/scale) ("laplace"), exp(−((u − v)/scale)²) ("gaussian") or ((1 + (2u − 1)(2v − 1))/2)^degree ("polynomial").
    All are roots of sums of squares, so small values keep their digits. Laplace takes O(k), the polynomial O(k degree).
    The Gaussian takes O(k/scale²) by features, cut where the rest is below 1e-17 (rounding: some 1e-16/scale²,
    relative). Below scale 0.0224 it is a sum over pairs, O(k²) at worst: right to 1e-15 in the square, thus to 4e-8
    near 0.

    Source: Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 8.1, Claim 8.3, Theorems 8.5 and 8.6. Gopalan & Hu (2025),
    §3.3, for the polynomial kernel. Deviations: the papers take scale = 1; the bounds against smCE and the distance
    hold for it. GH25 does not say which polynomial: this one is at most 1, and does not change by an exchange of
    outcomes.

    Parameters
    ----------
    kernel : {"laplace", "gaussian", "polynomial"}, default "laplace"
        The Gaussian is the contrast: its error can be exponentially small where smCE is not. The polynomial sees no
        more than the first `degree` moments of the residual.
    scale : float, default 1.0, > 0
        Length scale of the first two kernels.
    degree : int, default 2
        Of the polynomial, from 0 (|E[y] − E[v]|) to 1000.

    Examples
    --------
    >>> round(kernel_ce(JointDistribution.from_levels([0.45], [1], [0.55])), 12)
    0.1
    """
    r = gamma.residuals
    # By a power of two, which changes no digit, so that squares of tiny residuals are not lost.
    size = math.ldexp(1.0, min(-math.frexp(float(np.abs(r).max()))[1], 1000))
    return float(kernel_norm(gamma, size * r[None, :], kernel=kernel, scale=scale, degree=degree)[0]) / size


def kernel_ce_witness(
    gamma: JointDistribution, *, kernel: Kernel = "laplace", scale: float = 1.0, degree: int = 2
) -> KernelWeights:
    """The weight function of norm 1 that attains `kernel_ce`: w = Σ_i r_i K(v_i, ·) / kCE."""
    error = kernel_ce(gamma, kernel=kernel, scale=scale, degree=degree)
    coefficients = gamma.residuals / error if error > 0.0 else np.zeros(gamma.levels)
    return KernelWeights(gamma.predictions, coefficients, kernel, float(scale), int(degree))


def _terms(widest: float) -> int:
    """The number of Gaussian features that leave a rest ≤ 1e-34 in the square: a Poisson tail."""
    n = math.ceil(2.0 * widest) + 2
    # From n = 2 widest on the weights fall by half or more, so the tail is at most twice its first term.
    while n * math.log(widest) - math.lgamma(n + 1.0) - widest > math.log(0.5e-34):
        n += 1
    return n


def _polynomial_moments(v: Floats, rows: Floats, degree: int) -> Floats:
    """Σ_i r_i (2v_i − 1)^j sqrt(C(d, j)/2^d), j ≤ d, for each row of residuals."""
    powers = np.vander(2.0 * v - 1.0, degree + 1, increasing=True)
    return (rows @ powers) * np.sqrt([math.comb(degree, j) / 2**degree for j in range(degree + 1)])


def _gaussian_moments(v: Floats, r: Floats, scale: float, terms: int) -> Floats:
    """Σ_i r_i exp(−z_i²/2) z_iⁿ / sqrt(n!), n < terms; their inner product is exp(−(u−v)²/s²)."""
    z = (v - 0.5) * (math.sqrt(2.0) / scale)
    return _moments(z, r * np.exp(-0.5 * z * z), np.sqrt(np.arange(1.0, terms)))


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


@compiled
def _laplace_squares(fall, rows):
    """r'Kr as B_1² + Σ_{i>1} (1 − ρ_{i−1}²) B_i² with B_i = r_i + ρ_i B_{i+1}, as K is Markov; fall_i = ρ_i − 1."""
    out = np.zeros(len(rows))
    for j in range(len(rows)):
        b = rows[j, -1]
        for i in range(rows.shape[1] - 2, -1, -1):
            out[j] -= fall[i] * (2.0 + fall[i]) * b * b
            b = rows[j, i] + (b + fall[i] * b)
        out[j] += b * b
    return out


def kernel_norm(
    gamma: JointDistribution,
    residuals: Floats,
    *,
    kernel: Kernel = "laplace",
    scale: float = 1.0,
    degree: int = 2,
) -> Floats:
    scale, v = _checked(kernel, scale, degree), gamma.predictions
    if kernel == "polynomial":
        return np.asarray(np.linalg.norm(_polynomial_moments(v, residuals, degree), axis=1))
    if kernel == "laplace":
        return np.sqrt(_laplace_squares(_fall(v, scale), locked(residuals)))
    return np.array([_gaussian(v, row, scale) for row in residuals])


def _checked(kernel: str, scale: float, degree: int) -> float:
    """The scale as a float, after all options were checked."""
    choice("kernel_ce", "kernel", kernel, ("laplace", "gaussian", "polynomial"))
    integer("kernel_ce", "degree", degree, 0, MOST_DEGREE)
    return positive("kernel_ce: scale", scale, "a positive finite length")


def _fall(v: Floats, scale: float) -> Floats:
    with np.errstate(over="ignore"):  # levels infinitely many scales apart do not meet
        return np.asarray(np.expm1(-np.diff(v) / scale))


def _gaussian(v: Floats, r: Floats, scale: float) -> float:
    # Products may overflow to infinity or underflow to 0, where a power would raise.
    widest = max(0.5 * (1.0 / scale) * (1.0 / scale), 1e-300)
    if widest > _WIDEST_SERIES:
        return math.sqrt(max(_gaussian_square(v, r, scale), 0.0))
    return float(np.linalg.norm(_gaussian_moments(v, r, scale, _terms(widest))))


def _narrow_error(gamma: JointDistribution, **options: Any) -> float:
    """The error of a narrow Gaussian, by the sum over pairs: 1e-15 in the square."""
    size = 1.0 / options.get("scale", 1.0)  # no power: it would raise where a product is infinite
    return 4e-8 if options.get("kernel") == "gaussian" and 0.5 * size * size > _WIDEST_SERIES else 0.0


@of_gamma
def atb(gamma: JointDistribution) -> float:
    """Averaged two-bin calibration error: the squared errors of two bins, averaged over the edge between them.

    ATB(Γ) = ∫_0^1 [ (Σ_{v_i < t} r_i)² + (Σ_{v_i ≥ t} r_i)² ] dt = Σ_ij r_i r_j (1 − |v_i − v_j|), in O(k).

    Of samples it is truthful: given the probabilities of the events, no predictions have a smaller expected ATB.
    The variances of the two sums add to the same for all predictions. Only the truth has no squared bias beside
    them. smCE²/5 ≤ ATB ≤ smCE: ω(v) = Σ_j r_j (1 − |v − v_j|) is 1-Lipschitz and at most 1, so ATB = Σ r_i ω(v_i) ≤
    smCE. By parts from t = 1/2, residuals against any such ω sum to at most ∫ (|P| + |S| + max(|P|, |S|)) dt ≤ √5
    √ATB, with P and S the two sums at t.

    Source: Hartline, Hu, Wu 2026 (COLT; arXiv 2508.13100), with 1/T² before the squares of sums over T samples.

    Examples
    --------
    >>> atb(JointDistribution.from_levels([0.5], [1], [0.75]))
    0.0625
    """
    return float(_squares(gamma, gamma.residuals[None, :])[0])


def _squares(gamma: JointDistribution, residuals: Floats) -> Floats:
    """ATB of each row of residuals (B, k)."""
    v = gamma.predictions
    # the edge is below the first level, between two, or above the last
    wide = np.diff(v, prepend=0.0, append=1.0)
    none = np.zeros((len(residuals), 1))
    below = np.concatenate((none, np.cumsum(residuals, axis=1)), axis=1)
    above = np.concatenate((np.cumsum(residuals[:, ::-1], axis=1)[:, ::-1], none), axis=1)
    return np.asarray((below**2 + above**2) @ wide)


def _root(change: Change) -> Floats:
    return np.sqrt(_squares(change.gamma, change.residuals))[:, None]


def _limits(known: Known, radii: Floats) -> Ends:
    low, high = np.sqrt(known.ends)
    return max(float(low - radii[0]), 0.0) ** 2, float(high + radii[0]) ** 2


MEASURES = (
    row(
        kernel_ce,
        "kCE | BGHN23 Def. 8.1, Thm 8.5, 8.6 "
        "| O(k) Laplace; O(k/scale²) Gaussian, O(k²) below scale 0.0224; O(k degree) polynomial "
        "| yes | yes (c = 1/2, Laplace) | yes (s = 2, Laplace); others no",
        witness=kernel_ce_witness,
        within=_narrow_error,
        # E‖ρ̂ − ρ‖² = (E[(y − v)²] − ‖ρ‖²)/n.
        sampling=seminorm(kernel_norm, means=lambda samples, **options: np.array([1.0])),
    ),
    row(
        atb,
        "ATB | HHW26 | O(k) | yes | yes (c = 1) | yes (s = 4)",
        # Its root is the norm of two functions of t. E‖ρ̂ − ρ‖² = ∫ (Var P̂ + Var Ŝ) dt ≤ E[(y − v)²]/n.
        sampling=Sampling(
            _root, "the triangle inequality for √ATB", limits=_limits, means=lambda samples: np.array([1.0])
        ),
    ),
)
