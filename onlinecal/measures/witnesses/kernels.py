"""Witnesses of kernel calibration, in orthonormal coordinates, and of SmoothECE, a sign for every place."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
import scipy

from onlinecal.core._compile import kernel
from onlinecal.core._compile import kernel as compiled
from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.validation import choice, integer
from onlinecal.measures.witnesses.base import (
    SLACK,
    UNIT,
    About,
    Witness,
    add,
    number,
    residuals,
    running,
    same_levels,
    total,
    vector,
)

Kernel = Literal["laplace", "gaussian", "polynomial"]

# With 1/(2 scale²) up to 1000, exp(−1000/2) is still a normal double; a narrower Gaussian goes through the pairs.
_NARROW = math.sqrt(0.5 / 1000.0)
# exp(−6.3²) < 6e-18: pairs further apart than this many scales cannot change the sum.
_REACH = 6.3
MOST_DEGREE = 1000


@dataclass(frozen=True, eq=False)
class KernelWeights(Witness):
    """The weight function w = Σ_j c_j K(v_j, ·) of RKHS norm 1 that attains a kernel calibration error.

    Below, Σ r_i w(v_i) / max(1, ‖w‖). Above, the norm of the residual's own Σ r_j K(v_j, ·). Both functions are
    written in orthonormal coordinates of the kernel. Those of the Laplace kernel go along the levels from the left.
    Those of the Gaussian are Taylor's series about the middle of the levels, so that small norms keep their digits.
    Those of the polynomial kernel are powers of 2v − 1. Gaussians narrower than 0.0224 are summed over pairs, right
    to 1e-15 in the square.

    Attributes
    ----------
    predictions, coefficients : (k,) floats
        v_j and c_j.
    kernel, scale, degree :
        As of `kernel_ce`.
    """

    side = "both"

    predictions: Floats
    coefficients: Floats
    kernel: Kernel
    scale: float = 1.0
    degree: int = 2

    @property
    def about(self) -> About:
        return {"kernel_ce": {"kernel": self.kernel, "scale": self.scale, "degree": self.degree}}

    def weights(self, v: Floats) -> Floats:
        """w(v) for each of the n values v, in O(k n)."""
        out = np.empty(len(v))
        if self.kernel == "polynomial":
            mine = _powers(self.predictions, self.coefficients, self.degree)[0] * _shares(self.degree)
            return np.asarray(np.polynomial.polynomial.polyval(2.0 * v - 1.0, mine))
        for start in range(0, len(v), 256):
            part = slice(start, start + 256)
            apart = np.abs(v[part, None] - self.predictions) / self.scale
            out[part] = np.exp(-apart if self.kernel == "laplace" else -(apart**2)) @ self.coefficients
        return out

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        same_levels("predictions", self.predictions, gamma)
        c = vector("coefficients", self.coefficients, gamma.levels)
        scale = number("scale", self.scale, 5e-324)
        r = residuals(gamma)
        narrow = choice("", "kernel", self.kernel, get_args(Kernel)) == "gaussian" and scale < _NARROW
        # By a power of two, which loses nothing, so that squares of tiny residuals are not lost.
        size = math.ldexp(1.0, min(-math.frexp(float(np.abs(r).max()))[1], 1000))
        lower, upper = (_by_pairs if narrow else self._by_coordinates)(gamma.predictions, size * r, c, scale)
        return lower / size, upper / size

    def _by_coordinates(self, v: Floats, r: Floats, c: Floats, scale: float) -> tuple[float, float]:
        if self.kernel == "polynomial":
            degree = integer("", "degree", self.degree, 0, MOST_DEGREE)
            (mine, error), (other, off) = _powers(v, r, degree), _powers(v, c, degree)
        else:
            place = _along if self.kernel == "laplace" else _series
            (mine, error), (other, off) = place(v, r, scale), place(v, c, scale)
        own, norm = math.sqrt(total(mine * mine)), math.sqrt(total(other * other))
        _check_norm(max(0.0, norm - off) ** 2)
        lost = error * (norm + off) + off * own + SLACK * norm * own
        lower = (total(mine * other) - lost) / (max(1.0, norm + off) * (1.0 + SLACK))
        return lower, (own + error) * (1.0 + SLACK)

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


def _check_norm(square: float) -> None:
    """Refuses what is certainly no weight function: of levels that nearly meet, rounding moves the norm itself."""
    if not square <= 1.0 + 1e-7:
        raise InvalidData(f"the weight function has squared norm {square!r}; expected at most 1")


def _along(v: Floats, c: Floats, scale: float) -> tuple[Floats, float]:
    """Coordinates of Σ c_i K(v_i, ·) for the Laplace kernel, and the norm of their error."""
    # It is Markov: K(v_i, ·) = ρ K(v_{i+1}, ·) + sqrt(1 − ρ²) × a new direction, ρ = exp(−(v_{i+1} − v_i)/scale).
    with np.errstate(over="ignore"):  # levels infinitely many scales apart do not meet
        fall = np.expm1(-np.diff(v) / scale)
    coordinates, errors = _carry(fall, c)
    return coordinates, math.sqrt(total(errors * errors)) * (1.0 + SLACK)


@compiled
def _carry(fall, c):
    k = c.shape[0]
    out, errors = np.empty(k), np.empty(k)
    b, error = 0.0, 0.0
    for i in range(k):
        if i > 0:
            # ρ b + c as (b + c) + (ρ − 1) b: what is lost is relative to the small second part.
            step = fall[i - 1] * b
            whole = b + c[i]
            after = whole + step
            error = error * (1.0 + fall[i - 1]) * (1.0 + 8.0 * UNIT) + UNIT * (
                8.0 * abs(step) + abs(whole) + abs(after) + 4.0 * abs(c[i])
            )
            b = after
        else:
            b = c[0]
            error = 4.0 * UNIT * abs(b)
        left = 1.0 if i == k - 1 else math.sqrt(-fall[i] * (2.0 + fall[i]))
        out[i] = left * b
        errors[i] = left * error + 10.0 * UNIT * abs(out[i])
    return out, errors


def _series(v: Floats, c: Floats, scale: float) -> tuple[Floats, float]:
    """Coordinates of Σ c_i K(v_i, ·) for the Gaussian kernel, and the norm of their error."""
    # With z = sqrt(2)(v − middle)/scale these are Σ c_i exp(−z²/2) zⁿ/sqrt(n!), cut where a Poisson tail leaves 1e-34.
    z = (v - 0.5 * (v[0] + v[-1])) * (math.sqrt(2.0) / scale)
    mean = max(float((z * z).max()), 1e-300)
    terms = math.ceil(2.0 * mean) + 2
    # From n = 2·mean on the weights fall by half or more, so the tail is at most twice its first term.
    while terms * math.log(mean) - math.lgamma(terms + 1.0) - mean > math.log(0.5e-34):
        terms += 1
    size = total(np.abs(c))
    coordinates = _moments(z, c * np.exp(-0.5 * z * z), np.sqrt(np.arange(1.0, terms)))
    return coordinates, size * (1e-17 + UNIT * (4.0 * terms + 8.0 * mean + 32.0))


@compiled
def _moments(z, start, roots):
    sums, rest = np.zeros(len(roots) + 1), np.zeros(len(roots) + 1)
    for i in range(len(z)):
        term = start[i]
        sums[0], rest[0] = add(sums[0], rest[0], term)
        for n in range(len(roots)):
            term *= z[i] / roots[n]
            sums[n + 1], rest[n + 1] = add(sums[n + 1], rest[n + 1], term)
    return sums + rest


@cache
def _shares(degree: int) -> Floats:
    """The roots of C(d, j)/2^d: what the polynomial kernel makes of powers."""
    shares: Floats = locked(np.sqrt([math.comb(degree, j) / 2**degree for j in range(degree + 1)]))
    return shares


def _powers(v: Floats, c: Floats, degree: int) -> tuple[Floats, float]:
    """Coordinates Σ c_i sqrt(C(d, j)/2^d) (2v − 1)^j of Σ c_i K(v_i, ·) for the polynomial kernel, and their error's
    norm.
    """
    z = 2.0 * v - 1.0
    coordinates = np.array(_shares(degree))
    term = np.array(c)
    for j in range(degree + 1):
        coordinates[j] *= total(term)
        term = term * z
    return coordinates, UNIT * (4.0 * degree + 16.0) * total(np.abs(c))


def _by_pairs(v: Floats, r: Floats, c: Floats, scale: float) -> tuple[float, float]:
    (inner, lost), (square, off), (own, error) = (_pairs(v, x, y, scale) for x, y in ((r, c), (c, c), (r, r)))
    _check_norm(square - off)
    norm = math.sqrt(max(1.0, square + off)) * (1.0 + SLACK)
    return (inner - lost) / norm, math.sqrt(max(own, 0.0) + error) * (1.0 + SLACK)


def _pairs(v: Floats, a: Floats, b: Floats, scale: float) -> tuple[float, float]:
    """Σ a_i b_j K(v_i, v_j) for the Gaussian kernel, and a bound of its error."""
    found, size = _pairs_within(v, a, b, scale)
    return found, 8.0 * UNIT * size + 6e-18 * total(np.abs(a)) * total(np.abs(b))


@compiled
def _pairs_within(v, a, b, scale):
    value, rest, size = 0.0, 0.0, 0.0
    for i in range(len(v)):
        value, rest = add(value, rest, a[i] * b[i])
        size += abs(a[i] * b[i])
        j = i + 1
        while j < len(v):
            apart = (v[j] - v[i]) / scale
            if apart > _REACH:
                break
            both = a[i] * b[j] + a[j] * b[i]
            value, rest = add(value, rest, both * math.exp(-apart * apart))
            size += abs(a[i] * b[j]) + abs(a[j] * b[i])
            j += 1
    return value + rest, size


# |f − its linear interpolation|, integrated: h²/8 times ∫ |f''| ≤ Σ|r| E|Z² − 1|/σ² = Σ|r| 4 φ(1)/σ², rounded up.
_MESH = 0.121
_ACCURACY = 1e-7
_FINEST = 1 << 20
# exp(−9²/2) < 3e-18: cosines beyond, and parts of a Gaussian further out, do not count.
_FAR_OUT = 9.0
# This number of cosines of levels takes some seconds.
_MOST = 2_000_000_000


@dataclass(frozen=True, eq=False)
class SmoothedSigns(Witness):
    """The sign s(t) of the residual smoothed at scale σ: it sees the whole smoothed error, ∫ s(t) r̂_σ(t) dt.

    Below, Σ r_i E[s(v_i + σZ)], Z normal and s reflected at 0 and 1, in closed form: no other |s| ≤ 1 sees more.
    Above, ∫ |r̂_σ| of the linear interpolation of r̂_σ on a mesh of spacing h, with its cosines summed over the
    levels. To this comes 0.121 (h/σ)² Σ|r_i|, made 1e-7 up to 2^20 steps; never more than Σ|r_i|. The interpolation
    of more than 2·10⁹ cosines (levels times frequencies) is left out: then only Σ|r_i| is proved above.

    As smECE_σ does not increase with σ, its fixed point is at least min(σ, smECE_σ) and at most max(σ, smECE_σ).

    Attributes
    ----------
    sigma : float
        From 1e-9 to 10, or 0: then nothing is smoothed.
    changes, first : (c,) floats, and 1 or -1
        Ascending places t in v, or in log odds, where the sign changes; the sign before the first of them.
    transform, measure :
        As of "smooth_ece_at" or "smooth_ece". Levels 0 and 1 have infinite log odds and signs of their own.
    """

    side = "both"

    sigma: float
    changes: Floats
    first: int
    transform: Literal["identity", "logit"]
    measure: Literal["smooth_ece_at", "smooth_ece"]

    @property
    def about(self) -> About:
        at = {"sigma": self.sigma} if self.measure == "smooth_ece_at" else {}
        return {self.measure: {"transform": self.transform, **at}}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        sigma = number("sigma", self.sigma, 0.0, 10.0)
        if 0.0 < sigma < 1e-9:
            raise InvalidData(f"sigma = {sigma!r}; expected 0 or a width from 1e-9 to 10")
        changes = vector("changes", self.changes)
        first = integer("", "first", self.first, -1, 1)
        logit = self.transform == "logit"
        if first == 0 or not (np.diff(changes) >= 0.0).all():
            raise InvalidData("signs do not alternate; expected first = 1 or -1, and ascending changes")
        if not logit and len(changes) and not (changes[0] >= 0.0 and changes[-1] <= 1.0):
            raise InvalidData("a sign changes outside of [0, 1]; expected places of predictions")
        lower, upper = _integrals(gamma, sigma, changes, first, logit)
        return (min(sigma, lower), max(sigma, upper)) if self.measure == "smooth_ece" else (lower, upper)

    def __str__(self) -> str:
        where = "the prediction" if self.transform == "identity" else "the log odds"
        sign = "positive" if self.first > 0 else "negative"
        return (
            f"the residual, smoothed in {where} by σ = {self.sigma:.6g}, is {sign} at first; changes of sign: "
            f"{len(self.changes)}"
        )


def _integrals(
    gamma: JointDistribution, sigma: float, changes: Floats, first: int, logit: bool
) -> tuple[float, float]:
    """Σ r_i E[s(v_i + σZ)], rounded down, and ∫ |r̂_σ|, rounded up."""
    v, r = gamma.predictions.copy(), residuals(gamma)
    every = total(np.abs(r))
    most = every * (1.0 + SLACK)
    if sigma == 0.0:
        return every * (1.0 - SLACK), most
    ends, farthest = 0.0, 1.0 + 10.0 * sigma
    if logit:
        inner = (v > 0.0) & (v < 1.0)
        ends, v, r = total(np.abs(r[~inner])), v[inner], r[inner]
        if not len(v):
            return ends * (1.0 - SLACK), most
        v = np.log(v) - np.log1p(-v)
        farthest = 2.0 + float(np.abs(v).max())
    else:
        # The line is mirrored at 0 and 1 as far as a Gaussian reaches.
        low, high = -(_FAR_OUT + 0.5) * sigma, 1.0 + (_FAR_OUT + 0.5) * sigma
        tiles = 2.0 * np.arange(math.floor(0.5 * low), math.ceil(0.5 * high) + 1)[:, None]
        places = np.sort(np.concatenate((tiles + changes, tiles - changes)).ravel())
        places = places[(places >= low) & (places <= high)]
        first = first * (-1) ** int((places < 0.0).sum() + (places == 0.0).sum() // 2)
        changes = places
    size = total(np.abs(r))
    seen, windows = _seen(v, changes, float(first), sigma)
    # A place that is rounded by δ moves its Gaussian by δ/σ, which changes its integrals by less than that.
    shifts = (4.0 * UNIT * farthest / sigma + SLACK) * size + SLACK * ends
    lower = ends + total(r * seen) - 8.0 * UNIT * (windows + 1.0) * size - shifts
    return lower, min(ends + _above(v, r, size, sigma, logit) + shifts, most)


@kernel
def _seen(x, changes, first, sigma):
    """E[s(x_i + σZ)] for each x_i, and how many changes at most lie within reach."""
    out, widest = np.empty(x.shape[0]), 0
    narrow = 1.0 / (sigma * math.sqrt(2.0))
    start, end = 0, 0
    for i in range(x.shape[0]):
        while start < changes.shape[0] and changes[start] < x[i] - _FAR_OUT * sigma:
            start += 1
        while end < changes.shape[0] and changes[end] <= x[i] + _FAR_OUT * sigma:
            end += 1
        sign = first if start % 2 == 0 else -first
        value = sign
        for j in range(start, end):
            # the jump −2 sign, times P(x + σZ > change)
            value -= sign * math.erfc((changes[j] - x[i]) * narrow)
            sign = -sign
        out[i] = value
        widest = max(widest, end - start)
    return out, widest


def _above(v: Floats, r: Floats, size: float, sigma: float, logit: bool) -> float:
    """∫ |r̂_σ| of the line, at most."""
    # Gaussians 18 σ apart do not meet: wider gaps are cut to that, and the ends fade out likewise.
    reach = _FAR_OUT * sigma
    first, last = (reach, reach) if logit else (min(float(v[0]), reach), min(1.0 - float(v[-1]), reach))
    place = first + np.concatenate(([0.0], running(np.minimum(np.diff(v), 2.0 * reach))))
    length = float(place[-1]) + last
    place = place / length
    if not logit and length > 0.5:  # as it is, without the rounding of sums
        length, place = 1.0, v
    narrow = sigma / length
    terms = math.ceil(_FAR_OUT / (math.pi * narrow)) + 1
    if size == 0.0 or terms * len(v) > _MOST or terms > _FINEST:
        return size
    need = max(2.0, math.sqrt(_MESH * size / _ACCURACY)) / narrow
    mesh = min(int(scipy.fft.next_fast_len(max(math.ceil(need), 64, terms), real=True)), _FINEST)
    cosines = np.zeros(mesh + 1)
    cosines[:terms] = _cosines(place, r, terms) * np.exp(-0.5 * (math.pi * narrow * np.arange(terms)) ** 2)
    height = np.abs(curve := scipy.fft.dct(cosines, type=1))
    a, b = curve[:-1], curve[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = 0.5 * (a * a + b * b) / np.abs(a - b)
    integral = total(np.where(a * b >= 0.0, 0.5 * (height[:-1] + height[1:]), crossing)) / mesh
    # The transform errs by some units times log2 of its length in the root of the mean square. That of the curve is
    # at most size/narrow. Angles err by 4 units of π j, turned steps by less than 2e-14, each sum by a unit a
    # level.
    rounded = (1e-13 + 4e-14 * math.log2(mesh) + len(v) * UNIT) / narrow + 8.0 * UNIT / narrow**2
    return integral + _MESH * (1.0 / (mesh * narrow)) ** 2 * size + rounded * size


@kernel
def _cosines(place, r, terms):
    """a_j = Σ_i r_i cos(πj place_i), each angle turned by steps of π place_i and set again every 32 steps."""
    sums = np.zeros(terms)
    for i in range(place.shape[0]):
        angle = math.pi * place[i]
        c, s = math.cos(angle), math.sin(angle)
        x, y = 1.0, 0.0
        for j in range(terms):
            if j % 32 == 0:
                x, y = math.cos(j * angle), math.sin(j * angle)
            sums[j] += r[i] * x
            x, y = x * c - y * s, x * s + y * c
    return sums
