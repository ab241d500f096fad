"""Witnesses of kernel calibration, in orthonormal coordinates, and of SmoothECE, a sign for every place."""

import math
from dataclasses import dataclass
from functools import cache
from math import fsum
from typing import Literal

import numpy as np
import scipy

from onlinecal.core.arrays import Ints, locked
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.sums import running
from onlinecal.core.validation import integer, number
from onlinecal.measures.witnesses.base import Bracket, Witness, between, vector

Kernel = Literal["laplace", "gaussian", "polynomial"]

MOST_DEGREE = 1000

# exp(−10²/2) < 2e-22: parts of a Gaussian further out than this many standard deviations do not count.
_REACH = 10.0


@dataclass(frozen=True, eq=False)
class KernelWeights(Witness):
    """The weight function w = Σ_j c_j K(v_j, ·) that attains a kernel calibration error.

    Below, Σ r_i w(v_i) / ‖w‖ with the norm of the kernel's space. Above, the norm of the residual's own
    Σ r_j K(v_j, ·). Both functions are written in orthonormal coordinates, so that small norms keep their digits.
    Those of the Laplace kernel go along the levels from the left. Those of the Gaussian are values on a mesh. Those
    of the polynomial kernel are powers of 2v − 1. Rounding: 1e-16 for each level and degree, and 1e-14.

    Attributes
    ----------
    predictions, coefficients : (k,) floats
        v_j and c_j.
    kernel, scale, degree :
        As of `kernel_ce`; a scale from 1e-290 on.
    """

    side = "both"
    about = ("kernel_ce",)

    predictions: Floats
    coefficients: Floats
    kernel: Kernel
    scale: float = 1.0
    degree: int = 2

    def weights(self, v: Floats) -> Floats:
        """w(v) for each of the n values v, in O(k n)."""
        form = {
            "laplace": lambda u: np.exp(-np.abs(u - self.predictions) / self.scale),
            "gaussian": lambda u: np.exp(-(((u - self.predictions) / self.scale) ** 2)),
            "polynomial": lambda u: (
                (0.5 + 0.5 * (2.0 * u - 1.0) * (2.0 * self.predictions - 1.0)) ** self.degree
            ),
        }[self.kernel]
        return np.array([form(u) @ self.coefficients for u in v])

    def bound(self, gamma: JointDistribution) -> Bracket:
        c = vector("KernelWeights.coefficients", self.coefficients, gamma.levels)
        number("KernelWeights", "scale", self.scale, 1e-290, 1e290)
        integer("KernelWeights", "degree", self.degree, 0, MOST_DEGREE)
        c = c / np.abs(c).max() if c.any() else c
        mine, other = (self._coordinates(gamma.predictions, x) for x in (gamma.residuals, c))
        upper, norm = math.hypot(*mine), math.hypot(*other)
        return between(fsum(mine * (other / norm)) if norm > 0.0 else 0.0, upper)

    def _coordinates(self, v: Floats, c: Floats) -> Floats:
        """Of Σ c_i K(v_i, ·); their inner products are those of the kernel's space."""
        if self.kernel == "polynomial":
            z = 2.0 * v - 1.0
            return _shares(self.degree) * [fsum(c * z**j) for j in range(self.degree + 1)]
        return (_along if self.kernel == "laplace" else _on_mesh)(v, c, self.scale)

    def __str__(self) -> str:
        # Some levels are enough to show it.
        v = self.predictions[:: max(1, len(self.predictions) // 256)]
        w = self.weights(v)
        low, high = int(np.argmin(w)), int(np.argmax(w))
        size = f"degree {self.degree}" if self.kernel == "polynomial" else f"scale {self.scale:g}"
        return (
            f"a weight function of norm 1 for the {self.kernel} kernel of {size}, among others "
            f"{w[low]:+.4g} at v = {v[low]:.4g} and {w[high]:+.4g} at v = {v[high]:.4g}"
        )


@cache
def _shares(degree: int) -> Floats:
    """The roots of C(d, j)/2^d: what the polynomial kernel makes of powers."""
    shares: Floats = locked(np.sqrt([math.comb(degree, j) / 2**degree for j in range(degree + 1)]))
    return shares


def _along(v: Floats, c: Floats, scale: float) -> Floats:
    """Coordinates for the Laplace kernel, one a level."""
    # It is Markov: K(v_i, ·) = ρ K(v_{i+1}, ·) + sqrt(1 − ρ²) × a new direction, ρ = exp(−(v_{i+1} − v_i)/scale).
    with np.errstate(over="ignore"):  # levels infinitely many scales apart do not meet
        fall = np.expm1(-np.diff(v) / scale)
    carried, before = [], 0.0
    for step, x in zip([0.0, *fall.tolist()], c.tolist(), strict=True):
        before = (before + x) + step * before  # ρ b + c, where ρ − 1 keeps digits that ρ loses
        carried.append(before)
    return np.array(carried) * np.sqrt(np.append(-fall * (2.0 + fall), 1.0))


def _on_mesh(v: Floats, c: Floats, scale: float) -> Floats:
    """Coordinates for the Gaussian kernel, one a point of a mesh: at least six points to a scale."""
    # exp(−(u − v)²/s²) is ∫ φ_u φ_v with φ_u(t) = (2/(s sqrt π))^½ exp(−2 (t − u)²/s²). A sum over the mesh errs by
    # 2 exp(−6²π²/4) < 1e-38 of that. The spacing is a power of two: places in it lose no digit.
    spacing = 2.0 ** math.floor(math.log2(scale / 6.0))
    width = 0.5 * scale / spacing
    place = v / spacing
    nearest = np.rint(place)
    # Levels further apart do not meet: wider gaps are cut.
    apart = 2 * math.ceil(_REACH * width) + 1
    points = np.append(0, np.cumsum(np.minimum(np.diff(nearest), apart).astype(np.int64)))
    values = _spread(points, place - nearest, c, width, int(points[-1]) + apart)
    return values * math.sqrt(1.0 / (width * math.sqrt(math.pi)))


def _spread(points: Ints, rest: Floats, c: Floats, width: float, size: int) -> Floats:
    """Σ_i c_i exp(−(t − p_i)²/(2 width²)) for the whole numbers t below `size` on a circle, p_i = point_i + rest_i."""
    values, reach = np.zeros(size), math.ceil(_REACH * width)
    for step in range(-reach, reach + 1):
        values += np.bincount((points + step) % size, c * np.exp(-0.5 * ((step - rest) / width) ** 2), size)
    return values


# |f − its linear interpolation|, integrated: h²/8 times ∫ |f''| ≤ Σ|r| E|Z² − 1|/σ² = Σ|r| 4 φ(1)/σ², rounded up.
_MESH = 0.121
_ACCURACY = 1e-7
_FINEST = 1 << 20
# exp(−9²/2) < 3e-18: parts of a Gaussian further out do not count.
_FAR_OUT = 9.0


@dataclass(frozen=True, eq=False)
class SmoothedSigns(Witness):
    """The sign s(t) of the residual smoothed at scale σ: it sees the whole smoothed error, ∫ s(t) r̂_σ(t) dt.

    Below, |Σ r_i E[s(v_i + σZ)]|, Z normal and s reflected at 0 and 1, in closed form: no other |s| ≤ 1 sees more.
    Above, ∫ |r̂_σ| of the linear interpolation of r̂_σ on a mesh of spacing h. To this comes 0.121 (h/σ)² Σ|r_i|,
    made 1e-7 up to 2^20 steps; never more than Σ|r_i|. Rounding: 1e-14/σ.

    As smECE_σ does not increase with σ, its fixed point is at least min(σ, smECE_σ) and at most max(σ, smECE_σ).

    Attributes
    ----------
    sigma : float
        From 1e-9 to 10, or 0: then nothing is smoothed.
    changes : (c,) floats
        Places t in v, or in log odds, where the sign changes.
    transform, measure :
        As of "smooth_ece_at" or "smooth_ece". Levels 0 and 1 have infinite log odds and signs of their own.
    """

    side = "both"
    about = ("smooth_ece_at", "smooth_ece")

    sigma: float
    changes: Floats
    transform: Literal["identity", "logit"]
    measure: Literal["smooth_ece_at", "smooth_ece"]

    def bound(self, gamma: JointDistribution) -> Bracket:
        sigma = number("SmoothedSigns", "sigma", self.sigma, 0.0, 10.0)
        if sigma > 0.0:
            number("SmoothedSigns", "sigma", sigma, 1e-9)
        changes, logit = np.sort(vector("SmoothedSigns.changes", self.changes)), self.transform == "logit"
        if not logit:
            changes = np.clip(changes, 0.0, 1.0)
        v, r = gamma.predictions, gamma.residuals
        lower = upper = every = fsum(np.abs(r))
        if sigma > 0.0:
            # Levels 0 and 1 lie at infinite log odds, where nothing is smoothed.
            inner = (v > 0.0) & (v < 1.0) if logit else np.ones(len(v), dtype=np.bool_)
            alone, v, r = fsum(np.abs(r[~inner])), v[inner], r[inner]
            if logit:
                v = np.log(v) - np.log1p(-v)
            if len(v):
                lower = alone + _seen(v, r, sigma, changes, logit)
                upper = min(alone + _integral(v, r, sigma, logit), every)
        if self.measure == "smooth_ece":
            lower, upper = min(sigma, lower), max(sigma, upper)
        return between(lower, upper)

    def __str__(self) -> str:
        where = "the prediction" if self.transform == "identity" else "the log odds"
        return (
            f"the residual, smoothed in {where} by σ = {self.sigma:.6g}; changes of sign: {len(self.changes)}"
        )


def _seen(v: Floats, r: Floats, sigma: float, changes: Floats, logit: bool) -> float:
    """|Σ r_i E[s(v_i + σZ)]|."""
    reach = _FAR_OUT * sigma
    if not logit:
        # The line is mirrored at 0 and 1 as far as a Gaussian reaches.
        tiles = 2.0 * np.arange(math.floor(-0.5 * reach), math.ceil(0.5 + 0.5 * reach) + 1)[:, None]
        changes = np.sort(np.concatenate((tiles + changes, tiles - changes)).ravel())
    # s is 1, and less or more by 2 beyond each change: P(v_i + σZ > change) is 0 or 1 but for near levels.
    above = np.append(running(r[::-1])[::-1], 0.0)
    low, high = np.searchsorted(v, changes - reach), np.searchsorted(v, changes + reach)
    narrow = 1.0 / (sigma * math.sqrt(2.0))
    jumps = [
        above[b] + 0.5 * fsum(r[a:b] * scipy.special.erfc((change - v[a:b]) * narrow))
        for change, a, b in zip(changes, low, high, strict=True)
    ]
    return float(abs(above[0] - 2.0 * fsum(jumps[::2]) + 2.0 * fsum(jumps[1::2])))


def _integral(v: Floats, r: Floats, sigma: float, logit: bool) -> float:
    """∫ |r̂_σ| at most, by a mesh on which r̂_σ is linear: a part of a line that is mirrored at both ends."""
    # Gaussians 18 σ apart do not meet: wider gaps are cut to that, and the ends fade out likewise.
    reach = _FAR_OUT * sigma
    ends = (reach, reach) if logit else (min(float(v[0]), reach), min(1.0 - float(v[-1]), reach))
    place = ends[0] + np.append(0.0, running(np.minimum(np.diff(v), 2.0 * reach)))
    length = float(place[-1]) + ends[1]
    if not logit and length > 0.5:  # as it is, without the rounding of sums
        length, place = 1.0, v
    size = fsum(np.abs(r))
    # At three points to a σ frequencies beyond the mesh are below exp(−(3π)²/2) < 1e-19: a transform refines it.
    coarse = max(math.ceil(3.0 * length / sigma), 8)
    fine = math.ceil(max(2.0, math.sqrt(_MESH * size / _ACCURACY)) * length / sigma)
    fine = min(scipy.fft.next_fast_len(max(fine, coarse), real=True), _FINEST)
    if coarse > fine:
        return size
    width = sigma / length * coarse
    place = place * (coarse / length)
    nearest = np.rint(place)
    curve = _spread(nearest.astype(np.int64), place - nearest, r, width, 2 * coarse)
    curve = curve + np.roll(curve[::-1], 1)
    waves = scipy.fft.rfft(curve) / (2 * coarse)
    curve = scipy.fft.irfft(waves, 2 * fine, norm="forward")[: fine + 1]
    a, b = curve[:-1], curve[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(a * b >= 0.0, 0.5 * np.abs(a + b), 0.5 * (a * a + b * b) / np.abs(a - b))
    step = length / (sigma * fine)
    return fsum(parts) * step / math.sqrt(2.0 * math.pi) + _MESH * step**2 * size
