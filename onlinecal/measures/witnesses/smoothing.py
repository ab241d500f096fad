"""The witness of SmoothECE: a sign for every place, and the absolute integral of the smoothed residual."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy  # its parts are loaded when they are first used

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.measures.witnesses.base import Witness, number, vector, whole
from onlinecal.measures.witnesses.sums import SLACK, UNIT, residuals, running, total

# |f − its linear interpolation|, integrated: h²/8 times ∫ |f''| ≤ Σ|r| E|Z² − 1|/σ² = Σ|r| 4 φ(1)/σ², rounded up.
_MESH = 0.121
_ACCURACY = 1e-7
_FINEST = 1 << 20
# exp(−9²/2) < 3e-18: cosines beyond, and parts of a Gaussian further out, do not count.
_REACH = 9.0
# So many cosines of levels are some seconds.
_MOST = 2_000_000_000


@dataclass(frozen=True, eq=False)
class SmoothedSigns(Witness):
    """The sign s(t) of the residual smoothed at scale σ: it sees the whole smoothed error, ∫ s(t) r̂_σ(t) dt.

    Below, Σ r_i E[s(v_i + σZ)], Z normal and s reflected at 0 and 1, in closed form: no other |s| ≤ 1 sees more. Above,
    ∫ |r̂_σ| of the linear interpolation of r̂_σ on a mesh of spacing h, with its cosines summed over the levels, and
    0.121 (h/σ)² Σ|r_i|, made 1e-7 up to 2^20 steps; never more than Σ|r_i|. The interpolation of more than 2·10⁹
    cosines (levels times frequencies) is left out: then only Σ|r_i| is proved above.

    As smECE_σ does not increase with σ, its fixed point is at least min(σ, smECE_σ) and at most max(σ, smECE_σ).

    Attributes
    ----------
    sigma : float
        From 1e-9 to 10, or 0: then nothing is smoothed.
    changes : (c,) floats
        Ascending places t in v, or in log odds, where the sign changes.
    first : {1, -1}
        The sign before the first of them.
    transform : {"identity", "logit"}
        Where the smoothing takes place. Levels 0 and 1 have infinite log odds and signs of their own.
    measure : {"smooth_ece_at", "smooth_ece"}
        Whether smECE_σ is meant, or the fixed point.
    """

    side = "both"

    sigma: float
    changes: Floats
    first: int
    transform: Literal["identity", "logit"]
    measure: Literal["smooth_ece_at", "smooth_ece"]

    @property
    def about(self) -> Mapping[str, Mapping[str, Any]]:
        at = {"sigma": self.sigma} if self.measure == "smooth_ece_at" else {}
        return {self.measure: {"transform": self.transform, **at}}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        sigma = number("sigma", self.sigma, 0.0, 10.0)
        if 0.0 < sigma < 1e-9:
            raise InvalidData(f"sigma = {sigma!r}; expected 0 or a width from 1e-9 to 10")
        changes = vector("changes", self.changes)
        first = whole("first", self.first, -1, 1)
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
    v, r = gamma.predictions, residuals(gamma)
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
        low, high = -(_REACH + 0.5) * sigma, 1.0 + (_REACH + 0.5) * sigma
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
        while start < changes.shape[0] and changes[start] < x[i] - _REACH * sigma:
            start += 1
        while end < changes.shape[0] and changes[end] <= x[i] + _REACH * sigma:
            end += 1
        sign = first if start % 2 == 0 else -first
        value = sign
        for j in range(start, end):
            value -= sign * math.erfc(
                (changes[j] - x[i]) * narrow
            )  # the jump −2 sign, times P(x + σZ > change)
            sign = -sign
        out[i] = value
        widest = max(widest, end - start)
    return out, widest


def _above(v: Floats, r: Floats, size: float, sigma: float, logit: bool) -> float:
    """∫ |r̂_σ| of the line, at most."""
    # Gaussians 18 σ apart do not meet: wider gaps are cut to that, and the ends fade out likewise.
    reach = _REACH * sigma
    first, last = (reach, reach) if logit else (min(float(v[0]), reach), min(1.0 - float(v[-1]), reach))
    place = first + np.concatenate(([0.0], running(np.minimum(np.diff(v), 2.0 * reach))))
    length = float(place[-1]) + last
    place = place / length
    if not logit and length > 0.5:  # as it is, without the rounding of sums
        length, place = 1.0, v
    narrow = sigma / length
    terms = math.ceil(_REACH / (math.pi * narrow)) + 1
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
    # The transform errs by some units times log2 of its length in the root of the mean square, and that of the curve
    # is at most size/narrow; angles by 4 units of π j, turned steps by less than 2e-14, each sum by a unit a level.
    rounded = (1e-13 + 4e-14 * math.log2(mesh) + len(v) * UNIT) / narrow + 8.0 * UNIT / narrow**2
    return integral + _MESH * (1.0 / (mesh * narrow)) ** 2 * size + rounded * size


@kernel
def _cosines(place, r, terms):
    """a_j = Σ_i r_i cos(πj place_i), each angle turned by steps of π place_i and set anew every 32 steps."""
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
