"""How far SmoothECE on a sample may lie from its value on the population."""

from __future__ import annotations

import math

import numpy as np
import scipy  # its parts are loaded when they are first used
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.measures.sampling import Change
from onlinecal.measures.smooth_ece_line import Line, absolute_integral

# Steps of the mesh to a σ: for a norm by itself, and for the many of an interval. The error is at most
# 0.242/_FINE² Σ|r|, 6e-5 of it; noise is smoothed by σ/√96 more in the second, which is 0.5 % in σ.
_FINE, _COARSE = 64.0, 4.0
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
    return _smoothed(change.gamma, change.residuals, transform, scales(change.samples), _COARSE)


def scale_means(samples: float, *, transform: str = "identity") -> Floats | None:
    """√n E ∫|ρ̂_σ − ρ_σ| ≤ (sup over v of ∫ K_σ(v, t)² dt)^½ ≤ (1 + 1/(√π σ))^½."""
    return _mean(scales(samples)) if transform == "identity" else None


def one_mean(samples: float, *, sigma: float, transform: str = "identity") -> Floats | None:
    """The same at one σ."""
    return _mean(np.array([float(sigma)])) if transform == "identity" else None


def _mean(sigma: Floats) -> Floats:
    return np.asarray(np.sqrt(1.0 + 1.0 / (math.sqrt(math.pi) * sigma)))


def sigma_cells(gamma: JointDistribution, *, sigma: float, transform: str = "identity") -> NDArray[np.int64]:
    """Levels within the same 2 σ count together."""
    v = gamma.predictions
    if transform == "logit":
        with np.errstate(divide="ignore"):
            v = np.log(v) - np.log1p(-v)
    return np.unique(np.floor(v / (2.0 * sigma)), return_inverse=True)[1]


def _smoothed(
    gamma: JointDistribution, residuals: Floats, transform: str, sigmas: Floats, steps: float
) -> Floats:
    """(B, J): ∫ |residual smoothed by σ_j|, each on a mesh of so many steps to σ_j."""
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
    cosines = scipy.fft.dct(_spread_rows(line.place, np.ascontiguousarray(residuals), finest), type=1, axis=1)
    for j, sigma in enumerate(sigmas):
        mesh, narrow = mesh_of(float(sigma)), math.pi * float(sigma) / line.length
        terms = min(mesh + 1, finest + 1, math.ceil(9.0 / narrow) + 1)
        damped = np.zeros((len(fixed), mesh + 1))
        damped[:, :terms] = cosines[:, :terms] * np.exp(-0.5 * (narrow * np.arange(terms)) ** 2)
        out[:, j] += _integrals(scipy.fft.dct(damped, type=1, axis=1)) / mesh
    return out


@kernel
def _spread_rows(place, rows, mesh):
    """Rows of residuals on mesh + 1 points, each split linearly onto its neighbours; inner ones halved."""
    out = np.zeros((rows.shape[0], mesh + 1))
    for i in range(rows.shape[1]):
        x = place[i] * mesh
        j = min(int(x), mesh - 1)
        share = x - j
        for b in range(rows.shape[0]):
            out[b, j] += rows[b, i] * (1.0 - share)
            out[b, j + 1] += rows[b, i] * share
    out[:, 1:mesh] *= 0.5
    return out


@kernel
def _integrals(rows):
    out = np.empty(rows.shape[0])
    for b in range(rows.shape[0]):
        out[b] = absolute_integral(rows[b])
    return out
