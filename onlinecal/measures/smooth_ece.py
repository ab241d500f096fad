"""SmoothECE: the residual smoothed by a reflected Gaussian, at the scale that equals its own error."""

import math
from typing import Literal

import numpy as np
import scipy

from onlinecal.core.arrays import locked
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import number
from onlinecal.measures.base import Change, Ends, Ints, Known, Sampling, row, seminorm
from onlinecal.measures.smooth_ece_line import FINEST, Line, absolute_integrals, damped, spread
from onlinecal.measures.witnesses.kernels import SmoothedSigns

Transform = Literal["identity", "logit"]

_COARSE = 4096
# This number of steps is slow enough that a shorter line is looked for.
_LONG = 1 << 16
# Accuracy wanted at a given σ, and of the fixed point.
_AT = 1e-7
_FIXED = {"identity": 1e-6, "logit": 1e-5}
# The proof of a fixed point interpolates on a mesh of 2^20 steps. It errs by this times (h/σ)² Σ|r|, and needs this
# number of steps to a σ.
_PROOF, _PROOF_STEPS = 0.121, 3.0


@of_gamma
def smooth_ece_at(gamma: JointDistribution, *, sigma: float, transform: Transform = "identity") -> float:
    """Smoothed calibration error at scale σ: ∫ |residual smoothed by a Gaussian of width σ|.

    smECE_σ(Γ) = ∫_0^1 |r̂_σ(t)| dt, r̂_σ(t) = Σ_i r_i K_σ(v_i, t) with the Gaussian reflected at 0 and 1; in
    cosines a_0 + 2 Σ_{j≥1} a_j exp(−(πjσ)²/2) cos(πjt), a_j = Σ_i r_i cos(πjv_i). With "logit" the integral is over
    the log odds, where nothing needs reflecting. Levels at 0 and 1 are infinitely far and add their |r_i|.
    Non-increasing in σ.

    Source: Błasiok, Nakkiran (2024), §3 and, for the transform, §5.3.

    Parameters
    ----------
    sigma : float, in [1e-4, 10]
        Width of the Gaussian, in v or in log odds.
    transform : {"identity", "logit"}, default "identity"
        Where the smoothing takes place.

    Returns
    -------
    float
        In [0, 1]. Levels are spread linearly on a mesh of spacing h = L/N and transformed (scipy.fft). The error is
        at most 0.242 (h/σ)² Σ|r_i|, and N is chosen to make that 1e-7, up to N = 2^20. So it is ≤ 1e-7 for
        "identity" and σ ≥ 5e-4, and ≤ 2.3e-5 at σ = 1e-4. For "logit" L is the range of the log odds plus 18 σ;
        gaps wider than 18 σ are cut to that. O(k + N log N).

    Examples
    --------
    >>> round(smooth_ece_at(JointDistribution.from_samples([0.4, 0.6], [1, 0]), sigma=0.05), 5)
    0.5727
    """
    width = number("smooth_ece_at", "sigma", sigma, 1e-4, 10.0)
    return _at(Line(gamma, transform, width), width)


def _at(line: Line, sigma: float) -> float:
    # The mesh may err beyond what holds at every scale.
    return min(max(line.error(sigma, line.mesh(sigma, _AT)), line.least), line.most)


@of_gamma
def smooth_ece(gamma: JointDistribution, *, transform: Transform = "identity") -> float:
    """SmoothECE: the one σ* at which the error smoothed at scale σ* equals σ*.

    smECE(Γ) = σ* with smECE_{σ*}(Γ) = σ*, of `smooth_ece_at`. Since that does not increase in σ, |smECE_σ − σ| at
    any σ bounds the distance to σ*. The search stops when it and the mesh error are small.

    Source: Błasiok, Nakkiran (2024), Definition 3 and Theorem 7; §5.3 for the transform.

    Parameters
    ----------
    transform : {"identity", "logit"}, default "identity"
        As in `smooth_ece_at`.

    Returns
    -------
    float
        In [0, 1]; exactly 0 if all r_i = 0. "identity": error at most 1.1e-6 where the value is 5e-4 or more or k ≤
        50, at most 1e-4 always. "logit": error at most 1.1e-5 where k ≤ 100. Also where the log odds are within ±12
        and the value is 4e-3 or more. Otherwise it is half of what is left when the finest mesh (N = 2^20) resolves
        no more. The error of a value is the `within` of its `explain`. O(k + N log N), N some 350/σ* ("identity").

    Examples
    --------
    >>> round(smooth_ece(JointDistribution.from_samples([0.45], [1])), 9)
    0.55
    """
    return _fixed_point(gamma, transform)[0]


def _fixed_point(gamma: JointDistribution, transform: Transform) -> tuple[float, float]:
    """σ* and its error."""
    line = Line(gamma, transform, 1.0)
    # smECE_σ lies between |Σ r_i| and Σ |r_i| for every σ, hence so does σ*.
    low, high = line.least, line.most
    if high - low <= 1e-12:
        return high, high - low
    accuracy = _FIXED[transform]
    mesh, sigma = _COARSE, None
    while True:
        wanted = min(1e-4, 0.01 * high) if mesh == _COARSE else 0.1 * accuracy
        sigma, slack = _root(line, low, high, mesh, wanted, around=sigma)
        error = slack + line.bound(sigma, mesh) if line.resolves(sigma, mesh) else math.inf
        if error <= 1.1 * accuracy:
            return min(max(sigma, low), high), error
        # The root is off by the error of its mesh. A mesh fine enough there may still be too coarse at the next.
        finer = line.mesh(max(sigma - slack, 1e-300), accuracy)
        if finer >= _LONG or mesh == FINEST:
            # This number of steps is slow, or too small. But where σ is small Gaussians reach less far: a shorter
            # line will do.
            below, above = line.around(sigma, mesh)
            low, high = max(low, below), max(low, below, min(high, above))
            if line.shortened(high) <= 0.5 * line.length:
                line, mesh, sigma = Line(gamma, transform, high), _COARSE, None
                continue
            if mesh == FINEST:
                return 0.5 * (low + high), 0.5 * (high - low)
        mesh = max(finer, min(2 * mesh, FINEST))


def smoothed_signs_at(
    gamma: JointDistribution, *, sigma: float, transform: Transform = "identity"
) -> SmoothedSigns:
    """The places where the residual smoothed at scale σ changes sign: the proof of `smooth_ece_at`."""
    width = number("smooth_ece_at", "sigma", sigma, 1e-4, 10.0)
    return _signs(gamma, width, transform, "smooth_ece_at")


def smoothed_signs(gamma: JointDistribution, *, transform: Transform = "identity") -> SmoothedSigns:
    """The signs of the residual smoothed at the scale `smooth_ece`, or at a larger one that the proof resolves."""
    return _signs(gamma, smooth_ece(gamma, transform=transform), transform, "smooth_ece")


def _signs(
    gamma: JointDistribution,
    sigma: float,
    transform: Transform,
    measure: Literal["smooth_ece_at", "smooth_ece"],
) -> SmoothedSigns:
    """The signs on a mesh, each change where the line between two points crosses 0."""
    line = Line(gamma, transform, max(sigma, 1e-9))
    if measure == "smooth_ece" and sigma > 0.0:
        # A proof at a σ that it does not resolve is far off; one at a larger σ bounds σ* by that.
        while sigma < (least := max(_provable(line), 1e-9)):
            sigma = 1.1 * least
            line = Line(gamma, transform, sigma)
    if not line.residuals.any() or sigma == 0.0:
        return SmoothedSigns(sigma, np.zeros(0), transform, measure)
    mesh = line.mesh(sigma, 1e-6)
    curve = line.curve(sigma, mesh)
    # A value that is nothing but rounding has no sign of its own.
    seen = np.flatnonzero(np.abs(curve) >= 1e-12 * np.abs(curve).max())
    turns = np.flatnonzero(np.diff(np.sign(curve[seen])))
    left, right = seen[turns], seen[turns + 1]
    share = curve[left] / (curve[left] - curve[right])
    places = (left + share * (right - left)) / mesh
    return SmoothedSigns(sigma, line.origin(places), transform, measure)


def _at_error(gamma: JointDistribution, *, sigma: float, transform: Transform = "identity") -> float:
    line = Line(gamma, transform, sigma)
    return line.bound(sigma, line.mesh(sigma, _AT))


def _provable(line: Line) -> float:
    """The σ from which on the error of a proof is at most σ."""
    step = line.length / FINEST
    return max((_PROOF * line.moving * step**2) ** (1.0 / 3.0), _PROOF_STEPS * step)


def _root(
    line: Line, low: float, high: float, mesh: int, accuracy: float, around: float | None = None
) -> tuple[float, float]:
    """σ with |smECE_σ − σ| ≤ accuracy on this mesh, and that difference: a secant, with the middle now and then."""
    # F(σ) = smECE_σ − σ falls with slope ≤ −1, so σ + F(σ) lies beyond the root: each evaluation gives both ends.
    sigma = around if around is not None else 0.5 * (low + high)
    points: list[tuple[float, float]] = []
    for _ in range(60):
        gap = line.error(sigma, mesh) - sigma
        if abs(gap) <= accuracy:
            return sigma, abs(gap)
        if gap > 0.0:
            low, high = max(low, sigma), min(high, sigma + gap)
        else:
            low, high = max(low, sigma + gap), min(high, sigma)
        points.append((sigma, gap))
        guess = sigma + 0.5 * gap
        if len(points) > 1:
            (s, f), (t, g) = points[-2:]
            if f != g:
                guess = t - g * (t - s) / (g - f)
        shrink = len(points) % 4 == 3  # now and then halve, whatever the secant says
        sigma = guess if low < guess < high and not shrink else 0.5 * (low + high)
        if high - low <= 1e-15:
            break
    return sigma, high - low


def _limits(known: Known, radii: Floats, *, transform: Transform = "identity") -> Ends:
    """The interval of σ* of the population, if smECE_σ(ρ̂ − ρ) ≤ c_j at σ_j, and so at all larger σ.

    At each σ_j it is between min and max of σ_j and smECE_σj ± c_j; at σ* of the sample, with c_j of the next smaller
    σ_j.
    """
    grid = scales(known.samples)
    value = 0.5 * (known.ends[0] + known.ends[1])
    # A line that is not shortened for the least σ is the same for all.
    line = Line(known.gamma, transform, float(grid.min()))
    widths = [] if math.isinf(line.width) else grid.tolist()
    lines = [Line(known.gamma, transform, width) for width in widths] or [line] * len(grid)
    seen = np.array([_at(one, float(s)) for one, s in zip(lines, grid, strict=True)])
    if (smaller := grid <= value).any():
        grid = np.append(grid, value)
        seen, radii = np.append(seen, value), np.append(radii, radii[int(np.argmax(smaller))])
    lower, upper = np.minimum(grid, seen - radii).max(), np.maximum(grid, seen + radii).min()
    return min(float(lower), value), max(float(upper), value)


# Steps of the mesh to a σ: for a norm by itself, and for the many of an interval. The error is at most
# 0.242/_FINE² Σ|r|, 6e-5 of it; noise is smoothed by σ/√96 more in the second, which is 0.5 % in σ.
_FINE, _ROUGH = 64.0, 4.0
_MOST = 1 << 16


def smoothed_norm(
    gamma: JointDistribution, residuals: Floats, *, sigma: float, transform: str = "identity"
) -> Floats:
    """`smooth_ece_at` as a seminorm of residuals (B, k) at the levels of Γ, within 6e-5 Σ|r_i|."""
    return np.asarray(_smoothed(gamma, residuals, transform, np.array([float(sigma)]), _FINE)[:, 0])


def scales(samples: float) -> Floats:
    """Scales σ from 1 down to 1/(2√n) by factors of 2^(1/3), fixed before any outcome; none below 2^−13."""
    last = min(max(math.ceil(3.0 * math.log2(2.0 * math.sqrt(samples))), 0), 39)
    return np.asarray(2.0 ** (-np.arange(last + 1) / 3.0))


def scale_errors(change: Change, *, transform: str = "identity") -> Floats:
    """smECE_σ of the changed residuals, at each of `scales`."""
    return _smoothed(change.gamma, change.residuals, transform, scales(change.samples), _ROUGH)


def scale_means(samples: float, *, sigma: float | None = None, transform: str = "identity") -> Floats | None:
    """√n E ∫|ρ̂_σ − ρ_σ| ≤ (sup over v of ∫ K_σ(v, t)² dt)^½ ≤ (1 + 1/(√π σ))^½."""
    at = scales(samples) if sigma is None else np.array([float(sigma)])
    return np.sqrt(1.0 + 1.0 / (math.sqrt(math.pi) * at)) if transform == "identity" else None


def sigma_cells(gamma: JointDistribution, *, sigma: float, transform: str = "identity") -> Ints:
    """Levels within the same 2 σ count together."""
    v = gamma.predictions
    if transform == "logit":
        with np.errstate(divide="ignore"):
            v = np.log(v) - np.log1p(-v)
    return np.unique(np.floor(v / (2.0 * sigma)), return_inverse=True)[1]


def _smoothed(
    gamma: JointDistribution, residuals: Floats, transform: str, sigmas: Floats, steps: float
) -> Floats:
    """(B, J): ∫ |residual smoothed by σ_j|, each on a mesh with a number of steps to σ_j."""
    line = Line(gamma, transform, float(sigmas.max()))
    fixed = np.zeros(len(residuals))
    if transform == "logit":
        inner = (gamma.predictions > 0.0) & (gamma.predictions < 1.0)
        fixed = np.abs(residuals[:, ~inner]).sum(axis=1)
        residuals = residuals[:, inner]
    out = np.empty((len(fixed), len(sigmas)))
    out[:] = fixed[:, None]
    if residuals.shape[1] == 0:
        return out

    def mesh_of(sigma: float) -> int:
        most = min(max(math.ceil(steps * line.length / sigma), 64), _MOST)
        return int(scipy.fft.next_fast_len(most, real=True))

    finest = mesh_of(float(sigmas.min()))
    cosines = scipy.fft.dct(
        spread(locked(line.place), locked(np.ascontiguousarray(residuals)), finest), type=1, axis=1
    )
    for j, sigma in enumerate(sigmas):
        mesh = mesh_of(float(sigma))
        out[:, j] += absolute_integrals(damped(cosines, float(sigma) / line.length, mesh)) / mesh
    return out


MEASURES = (
    row(
        smooth_ece,
        "smECE | BN24 Def. 3 | O(k + N log N), N ≈ 350/smECE | yes | yes (c = 1/2) | yes (s = 2)",
        witness=smoothed_signs,
        within=lambda gamma, transform="identity": _fixed_point(gamma, transform)[1],  # of the search
        sampling=Sampling(
            scale_errors,
            "smECE_σ is a seminorm that falls with σ (BN24 §3)",
            limits=_limits,
            means=scale_means,
        ),
        version=2,
        accuracy="within 1.1e-6 (below 5e-4: 1e-4)",
    ),
    row(
        smooth_ece_at,
        "smECE_σ | BN24 Def. 3 | O(k + N log N), N ≈ 1600/σ | yes | yes | no, for one σ",
        witness=smoothed_signs_at,
        within=_at_error,
        accuracy="within 1e-7 (σ < 5e-4: 2.3e-5)",
        example={"sigma": 0.1},
        sampling=seminorm(
            smoothed_norm, cells=sigma_cells, instead="smooth_ece_at with a larger σ", means=scale_means
        ),
        version=2,
    ),
)
