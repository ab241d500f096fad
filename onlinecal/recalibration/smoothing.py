"""Perfect calibration by a random shift: the post-processing of SmoothECE."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its parts are loaded when they are first used
from numpy.typing import ArrayLike

from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import check_unit, count, number, vector
from onlinecal.measures.smooth_ece import smooth_ece

#: points of [0, 1] at which the map is known, at least; and points to a σ
_POINTS, _FINE = 2001, 100


@dataclass(frozen=True, eq=False)
class SmoothRecalibration:
    """A random post-processing κ = κ₂ ∘ κ₁ of forecasts: a reflected Gaussian step, and the mean outcome there.

    κ₁(p) is p + σZ reflected into [0, 1], Z normal, and κ₂(t) = E[y | κ₁(p) = t]. For Γ with levels v_i, masses m_i and
    mean outcomes μ_i it is Σ_i m_i μ_i K_σ(v_i, t) / Σ_i m_i K_σ(v_i, t). The pair (κ(p), y) is perfectly calibrated on
    Γ. With σ = SmoothECE(Γ) a forecast is moved by E|κ(p) − p| ≤ (1 + 2√(2/π)) σ.

    Source: Błasiok and Nakkiran 2024, "Smooth ECE", Theorem 20, for the identity transform. The constant of its O(·) is
    ours: |κ(p) − p| ≤ |E[y − p | κ₁]| + |E[p | κ₁] − p|; the first has mean SmoothECE_σ = σ, the second at most 2
    E|κ₁(p) − p| ≤ 2σ√(2/π). Levels are spread linearly on points σ/100 apart, and the map is linear between them, which
    errs by 1e-4.

    Attributes
    ----------
    gamma : JointDistribution
    sigma : float
        σ; where it is 0, Γ is calibrated and κ the identity.
    points, values : (N,) floats
        κ₂ at equal steps; between them it is interpolated.
    """

    gamma: JointDistribution
    sigma: float
    points: Floats
    values: Floats

    @property
    def bound(self) -> float:
        """The bound of E|κ(p) − p| over Γ."""
        return (1.0 + 2.0 * math.sqrt(2.0 / math.pi)) * self.sigma

    def __call__(self, p: ArrayLike, seed: int = 0) -> Floats:
        """κ(p): (n,) forecasts drawn for (n,) forecasts, each by itself."""
        base = forecasts_of(p)
        if self.sigma == 0.0:
            return base + 0.0
        steps = np.random.default_rng(count("seed", seed, 0)).standard_normal(len(base))
        return np.asarray(np.interp(_reflected(base + self.sigma * steps), self.points, self.values))

    def mean(self, p: ArrayLike) -> Floats:
        """E κ(p), (n,), within 1e-5 for this κ₂: no draws, and no proof that it is calibrated."""
        return np.asarray(np.interp(forecasts_of(p), self.points, self.means))

    @cached_property
    def means(self) -> Floats:
        """E κ at the points."""
        return mean_values(self.sigma, self.values)


def mean_values(sigma: float, values: Floats) -> Floats:
    """E κ₂(κ₁) at equal steps of [0, 1], by κ₂ there."""
    return np.clip(_smoothed(values, sigma) / (2.0 * (len(values) - 1)), 0.0, 1.0)


@of_gamma
def smooth_recalibration(gamma: JointDistribution, *, sigma: float | None = None) -> SmoothRecalibration:
    """The random post-processing that makes forecasts perfectly calibrated on the samples that it is made from.

    Parameters
    ----------
    gamma : JointDistribution
    sigma : float, optional
        In [1e-4, 10]. Default: SmoothECE of the samples, at which the bound holds, or 1e-4 below it; 0 where the
        samples are calibrated.

    Examples
    --------
    >>> fitted = smooth_recalibration([0.3, 0.3, 0.3, 0.9], [0, 1, 1, 1])
    >>> fitted.mean([0.3, 0.9]).round(2)
    array([0.72, 0.85])
    """
    if sigma is None:
        found = smooth_ece(gamma)
        width = max(found, 1e-4) if found > 0.0 else 0.0
    else:
        width = number("smooth_recalibration", "sigma", sigma, 1e-4, 10.0)
    if width == 0.0:
        ends = np.array([0.0, 1.0])
        return SmoothRecalibration(gamma, 0.0, ends, ends)
    size = max(_POINTS, math.ceil(_FINE / width) + 1)
    points = np.linspace(0.0, 1.0, size)
    return SmoothRecalibration(gamma, width, points, _mean_outcome(gamma, width, points))


def _mean_outcome(gamma: JointDistribution, sigma: float, points: Floats) -> Floats:
    """κ₂ at the points; where no level comes near, the mean outcome of the nearest one."""
    steps = len(points) - 1
    v, mass = gamma.predictions, gamma.mass
    ones = mass * v + gamma.residuals
    left = np.minimum((v * steps).astype(np.int64), steps - 1)
    share = v * steps - left
    smoothed = []
    for weights in (ones, mass):
        mesh = np.bincount(left, weights * (1.0 - share), steps + 1).astype(np.float64)
        mesh += np.bincount(left + 1, weights * share, steps + 1)
        # The transform counts inner points twice and the two ends once.
        mesh[1:-1] *= 0.5
        smoothed.append(_smoothed(mesh, sigma))
    there = smoothed[1] > 1e-10 * smoothed[1].max()
    values = np.empty(len(points))
    values[there] = smoothed[0][there] / smoothed[1][there]
    if not there.all():
        near = np.searchsorted(0.5 * (v[1:] + v[:-1]), points[~there])
        values[~there] = (ones / mass)[near]
    return np.clip(values, 0.0, 1.0)


def _smoothed(values: Floats, sigma: float) -> Floats:
    """2 (N − 1) times the mean of N values around each point, under a reflected Gaussian."""
    damped = np.exp(-0.5 * (math.pi * sigma * np.arange(len(values))) ** 2)
    return np.asarray(scipy.fft.dct(scipy.fft.dct(values, type=1) * damped, type=1))


def _reflected(x: Floats) -> Floats:
    """The place in [0, 1] that a walk to x is at which turns round at 0 and at 1."""
    folded = np.mod(x, 2.0)
    return np.minimum(folded, 2.0 - folded)


def forecasts_of(p: ArrayLike) -> Floats:
    """Forecasts as a vector of probabilities, which may be empty."""
    base = vector("p", p)
    if len(base):
        check_unit("p", base)
    return base
