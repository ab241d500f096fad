"""SmoothECE: the residual smoothed by a reflected Gaussian, at the scale that equals its own error."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, next_fast_len

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import number
from onlinecal.measures.base import Measure
from onlinecal.measures.witnesses.smoothing import SmoothedSigns

Floats = NDArray[np.float64]
Transform = Literal["identity", "logit"]

# A mesh of spacing h errs by at most this times (h/σ)² Σ|r|: twice (linear spreading of the levels, linear
# interpolation before the integral) 1/8 times E|Z² − 1| = 4 φ(1) = 0.96788, Z normal; rounded up.
_MESH = 0.242
# So many steps to a σ at least: then the cosines that the mesh does not have are below exp(−(2π)²/2) < 3e-9.
_STEPS = 2.0
_FINEST = 1 << 20
_COARSE = 4096
# Accuracy wanted at a given σ, and of the fixed point.
_AT = 1e-7
_FIXED = {"identity": 1e-6, "logit": 1e-5}
# exp(−9²/2) < 3e-18: cosines beyond, and parts of a Gaussian further out, do not count.
_REACH = 9.0


@of_gamma
def smooth_ece_at(gamma: JointDistribution, *, sigma: float, transform: Transform = "identity") -> float:
    """Smoothed calibration error at scale σ: ∫ |residual smoothed by a Gaussian of width σ|.

    smECE_σ(Γ) = ∫_0^1 |r̂_σ(t)| dt, r̂_σ(t) = Σ_i r_i K_σ(v_i, t) with the Gaussian reflected at 0 and 1; in
    cosines a_0 + 2 Σ_{j≥1} a_j exp(−(πjσ)²/2) cos(πjt), a_j = Σ_i r_i cos(πjv_i).
    With "logit" the integral is over the log odds, where nothing needs reflecting; levels at 0 and 1 are
    infinitely far and add their |r_i|. Non-increasing in σ.

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    sigma : float, in [1e-4, 10]
        Width of the Gaussian, in v or in log odds.
    transform : {"identity", "logit"}, default "identity"
        Where the smoothing takes place.

    Returns
    -------
    float
        In [0, 1]. Levels are spread linearly on a mesh of spacing h = L/N and transformed (scipy.fft); the
        error is at most 0.242 (h/σ)² Σ|r_i|, and N is chosen to make that 1e-7, up to N = 2^20. So it is ≤
        1e-7 for "identity" and σ ≥ 5e-4, and ≤ 2.3e-5 at σ = 1e-4. For "logit" L is the range of the log
        odds plus 18 σ. O(k + N log N).

    Raises
    ------
    InvalidParameter
        On another transform, or σ out of range.

    Source
    ------
    Błasiok, Nakkiran (2024), §3 and, for the transform, §5.3.

    Deviations
    ----------
    None beyond the stated error.

    Examples
    --------
    >>> from onlinecal.core.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> round(smooth_ece_at(gamma, sigma=0.05), 5)
    0.5727
    """
    width = number("smooth_ece_at", "sigma", sigma, 1e-4, 10.0)
    line = _Line(gamma, transform, width)
    # The mesh may err beyond what holds at every scale.
    return min(max(line.error(width, line.mesh(width, _AT)), line.least), line.most)


@of_gamma
def smooth_ece(gamma: JointDistribution, *, transform: Transform = "identity") -> float:
    """SmoothECE: the one σ* at which the error smoothed at scale σ* equals σ*.

    smECE(Γ) = σ* with smECE_{σ*}(Γ) = σ*, of `smooth_ece_at`. Since that does not increase in σ,
    |smECE_σ − σ| at any σ bounds the distance to σ*: the search stops when it and the mesh error are small.

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    transform : {"identity", "logit"}, default "identity"
        As in `smooth_ece_at`.

    Returns
    -------
    float
        In [0, 1]; exactly 0 if all r_i = 0. "identity": error at most 1.1e-6 where the value is 5e-4 or
        more, at most 1e-4 always. "logit": at most 1.1e-5 where N = 2^20 is enough for that (log odds
        within ±12 and a value of 4e-3 or more, say), at most 1e-4 for a value of 2e-3 or more and log odds
        within ±30. O(k + N log N), N some 350/σ* ("identity").

    Raises
    ------
    InvalidParameter
        On another transform.

    Source
    ------
    Błasiok, Nakkiran (2024), Definition 3 and Theorem 7; §5.3 for the transform.

    Deviations
    ----------
    None beyond the stated error.

    Examples
    --------
    >>> from onlinecal.core.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.45], [1])
    >>> round(smooth_ece(gamma), 9)
    0.55
    """
    line = _Line(gamma, transform, 1.0)
    # smECE_σ lies between |Σ r_i| and Σ |r_i| for every σ, hence so does σ*.
    low, high = line.least, line.most
    if high - low <= 1e-12:
        return high
    accuracy = _FIXED[transform]
    mesh = _COARSE
    sigma, slack = _root(line, low, high, mesh, min(1e-4, 0.01 * high))
    # The coarse root is off by its mesh error; a mesh fine enough there may still be too coarse at the next.
    while slack > accuracy or (mesh < _FINEST and mesh < line.mesh(sigma, accuracy)):
        if mesh < line.mesh(sigma, accuracy):
            mesh = max(line.mesh(max(sigma - slack, 1e-9), accuracy), min(2 * mesh, _FINEST))
        sigma, slack = _root(line, low, high, mesh, 0.1 * accuracy, around=sigma)
    if line.bound(sigma, mesh) > 5e-5 or sigma * mesh < _STEPS * line.length:
        # So small that the finest mesh does not resolve it: only an upper bound is left; its half errs least.
        sigma = min(sigma, 1e-4) / 2.0
    return min(max(sigma, low), high)


@of_gamma
def smoothed_signs_at(
    gamma: JointDistribution, *, sigma: float, transform: Transform = "identity"
) -> SmoothedSigns:
    """Where the residual smoothed at scale σ changes sign: what proves `smooth_ece_at`.

    Parameters
    ----------
    gamma, sigma, transform
        As in `smooth_ece_at`.

    Returns
    -------
    SmoothedSigns

    Raises
    ------
    InvalidParameter
        As `smooth_ece_at`.

    Source
    ------
    Błasiok, Nakkiran (2024), §3.

    Deviations
    ----------
    None.

    Examples
    --------
    >>> from onlinecal.core.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> print(smoothed_signs_at(gamma, sigma=0.05))
    the residual, smoothed in the prediction by σ = 0.05, is positive at first; changes of sign: 1
    """
    width = number("smooth_ece_at", "sigma", sigma, 1e-4, 10.0)
    return _signs(gamma, width, transform, "smooth_ece_at")


@of_gamma
def smoothed_signs(gamma: JointDistribution, *, transform: Transform = "identity") -> SmoothedSigns:
    """The signs of the residual smoothed at the scale that is `smooth_ece`: they prove that it is a fixed point.

    Parameters
    ----------
    gamma, transform
        As in `smooth_ece`.

    Returns
    -------
    SmoothedSigns
        Where the scale is below what the finest mesh resolves, with a larger one, whose bounds are wider.

    Raises
    ------
    InvalidParameter
        As `smooth_ece`.

    Source
    ------
    Błasiok, Nakkiran (2024), Definition 3.

    Deviations
    ----------
    None.

    Examples
    --------
    >>> from onlinecal.core.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.45], [1])
    >>> round(smoothed_signs(gamma).value(gamma), 9)
    0.55
    """
    return _signs(gamma, smooth_ece(gamma, transform=transform), transform, "smooth_ece")


def _signs(
    gamma: JointDistribution,
    sigma: float,
    transform: Transform,
    measure: Literal["smooth_ece_at", "smooth_ece"],
) -> SmoothedSigns:
    """The signs on a mesh, each change where the line between two points crosses 0."""
    line = _Line(gamma, transform, max(sigma, 1e-4))
    if measure == "smooth_ece" and sigma > 0.0:
        sigma = max(sigma, _STEPS * line.length / _FINEST)
    if len(line.residuals) == 0 or sigma == 0.0:
        return SmoothedSigns(sigma, np.zeros(0), 1, transform, measure)
    mesh = line.mesh(sigma, 1e-6)
    curve = line.curve(sigma, mesh)
    # What is nothing but rounding has no sign of its own.
    seen = np.flatnonzero(np.abs(curve) > 1e-12 * np.abs(curve).max())
    if len(seen) == 0:
        return SmoothedSigns(sigma, np.zeros(0), 1, transform, measure)
    turns = np.flatnonzero(np.diff(np.sign(curve[seen])))
    left, right = seen[turns], seen[turns + 1]
    share = curve[left] / (curve[left] - curve[right])
    places = (left + share * (right - left)) / mesh
    changes = places if transform == "identity" else line.origin(places)
    return SmoothedSigns(sigma, changes, int(np.sign(curve[seen[0]])), transform, measure)


def _at_error(gamma: JointDistribution, *, sigma: float, transform: Transform = "identity") -> float:
    """The error that `smooth_ece_at` states."""
    line = _Line(gamma, transform, sigma)
    return line.bound(sigma, line.mesh(sigma, _AT))


def _fixed_error(gamma: JointDistribution, *, transform: Transform = "identity") -> float:
    """The error that `smooth_ece` states, or what the finest mesh resolves of long log odds."""
    return max(1e-4, _STEPS * _Line(gamma, transform, 1e-4).length / _FINEST)


class _Line:
    """The residuals on a line of length L, cut to where anything is."""

    def __init__(self, gamma: JointDistribution, transform: str, sigma: float) -> None:
        r, v = gamma.residuals, gamma.predictions
        self.fixed = 0.0
        self.coordinate = v
        if transform == "identity":
            self.length, self.place = 1.0, v
        elif transform == "logit":
            inner = (v > 0.0) & (v < 1.0)
            self.fixed = float(np.abs(r[~inner]).sum())
            v, r = v[inner], r[inner]
            self.coordinate = odds = np.log(v) - np.log1p(-v)
            # Gaussians further apart than 2 · 9 σ do not meet: wider gaps need no mesh. The ends fade out
            # likewise.
            margin = _REACH * sigma
            gaps = np.minimum(np.diff(odds), 2.0 * margin)
            place = np.concatenate(([margin], margin + np.cumsum(gaps))) if len(v) else odds
            self.length = float(place[-1]) + margin if len(v) else 1.0
            self.place = place / self.length
        else:
            raise InvalidParameter(f"transform = {transform!r}; expected 'identity' or 'logit'")
        self.residuals = r
        self.moving = float(np.abs(r).sum())
        self.most = self.fixed + self.moving
        self.least = self.fixed + abs(float(r.sum()))
        self._cosines: dict[int, Floats] = {}

    def mesh(self, sigma: float, accuracy: float) -> int:
        """The number of steps whose error at σ is at most `accuracy`, if there is one below 2^20."""
        need = self.length / sigma * max(_STEPS, math.sqrt(_MESH * self.moving / accuracy))
        if need >= _FINEST:
            return _FINEST
        return int(next_fast_len(max(math.ceil(need), 64), real=True))

    def bound(self, sigma: float, mesh: int) -> float:
        """The error of `error` at σ on this mesh."""
        return _MESH * self.moving * (self.length / (mesh * sigma)) ** 2

    def origin(self, place: Floats) -> Floats:
        """The predictions, or log odds, at places of the line from 0 to 1: as far from the nearest level as there."""
        right = np.minimum(np.searchsorted(self.place, place), len(self.place) - 1)
        left = np.maximum(right - 1, 0)
        near = np.where(place - self.place[left] < self.place[right] - place, left, right)
        return np.asarray(self.coordinate[near] + (place - self.place[near]) * self.length)

    def error(self, sigma: float, mesh: int) -> float:
        """smECE_σ on this mesh."""
        if len(self.residuals) == 0:
            return self.fixed
        return self.fixed + float(_absolute_integral(self.curve(sigma, mesh))) / mesh

    def curve(self, sigma: float, mesh: int) -> Floats:
        """The smoothed residual at the points of this mesh."""
        if mesh not in self._cosines:
            self._cosines = {mesh: dct(_spread(self.place, self.residuals, mesh), type=1)}
        cosines = self._cosines[mesh]
        narrow = math.pi * sigma / self.length
        terms = min(mesh + 1, math.ceil(_REACH / narrow) + 1)
        damped = np.zeros(mesh + 1)
        damped[:terms] = cosines[:terms] * np.exp(-0.5 * (narrow * np.arange(terms)) ** 2)
        return np.asarray(dct(damped, type=1))


def _root(
    line: _Line, low: float, high: float, mesh: int, accuracy: float, around: float | None = None
) -> tuple[float, float]:
    """σ with |smECE_σ − σ| ≤ accuracy on this mesh, and that difference.

    F(σ) = smECE_σ − σ falls with slope ≤ −1, so σ + F(σ) lies beyond the root: each evaluation gives both
    ends of an interval. Within it, a secant, and the middle where the secant gains too little.
    """
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


@kernel
def _spread(place, r, mesh):
    """The residuals on mesh + 1 points, each split linearly onto its neighbours; inner ones halved.

    The cosine transform of type I counts inner points twice and the two ends once.
    """
    out = np.zeros(mesh + 1)
    for i in range(len(r)):
        x = place[i] * mesh
        j = min(int(x), mesh - 1)
        share = x - j
        out[j] += r[i] * (1.0 - share)
        out[j + 1] += r[i] * share
    for j in range(1, mesh):
        out[j] *= 0.5
    return out


@kernel
def _absolute_integral(values):
    """∫ |linear interpolation| over equal steps of length 1."""
    total = 0.0
    for j in range(len(values) - 1):
        a, b = values[j], values[j + 1]
        if a * b >= 0.0:
            total += 0.5 * abs(a + b)
        else:
            total += 0.5 * (a * a + b * b) / abs(a - b)
    return total


MEASURES = (
    Measure(
        function=smooth_ece,
        symbol="smECE",
        source="BN24 Def. 3",
        complexity="O(k + N log N), N ≈ 350/smECE",
        witness=smoothed_signs,
        within=_fixed_error,
        accuracy="within 1.1e-6 (below 5e-4: 1e-4)",
        continuous="yes",
        complete="yes (c = 1/2)",
        sound="yes (s = 2)",
        decisions="",
    ),
    Measure(
        function=smooth_ece_at,
        symbol="smECE_σ",
        source="BN24 Def. 3",
        complexity="O(k + N log N), N ≈ 1600/σ",
        witness=smoothed_signs_at,
        within=_at_error,
        accuracy="within 1e-7 (σ < 5e-4: 2.3e-5)",
        continuous="yes",
        complete="yes",
        sound="no, for one σ",
        decisions="",
        example={"sigma": 0.1},
    ),
)
