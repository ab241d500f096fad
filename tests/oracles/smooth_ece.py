"""Smoothed error by quadrature of the reflected Gaussians, one image after another."""

from __future__ import annotations

import math

import numpy as np

from onlinecal.core.joint import JointDistribution


def smooth_ece_at(gamma: JointDistribution, sigma: float, points: int = 40_000) -> float:
    """Midpoint rule on [0, 1]; it errs by some 0.1 (1/(points σ))² Σ|r|."""
    t = (np.arange(points) + 0.5) / points
    images = math.ceil(4.5 * sigma) + 1
    smoothed = np.zeros(points)
    for v, r in zip(gamma.predictions.tolist(), gamma.residuals.tolist(), strict=True):
        for m in range(-images, images + 1):
            for centre in (2.0 * m + v, 2.0 * m - v):
                if -9.0 * sigma <= centre <= 1.0 + 9.0 * sigma:
                    smoothed += r * np.exp(-0.5 * ((t - centre) / sigma) ** 2)
    return float(np.abs(smoothed).mean()) / (sigma * math.sqrt(2.0 * math.pi))


def smooth_ece_at_logit(gamma: JointDistribution, sigma: float, points: int = 200_000) -> float:
    """Midpoint rule over the log odds, with 100 points a σ or more; the levels 0 and 1 are nowhere near and count in
    full.
    """
    inner = [(math.log(v) - math.log1p(-v), r) for v, r in _pairs(gamma) if 0.0 < v < 1.0]
    outer = sum(abs(r) for v, r in _pairs(gamma) if v in (0.0, 1.0))
    if not inner:
        return outer
    low, high = inner[0][0] - 9.0 * sigma, inner[-1][0] + 9.0 * sigma
    points = max(points, math.ceil(100.0 * (high - low) / sigma))
    t = low + (high - low) * (np.arange(points) + 0.5) / points
    smoothed = np.zeros(points)
    for h, r in inner:
        smoothed += r * np.exp(-0.5 * ((t - h) / sigma) ** 2)
    return outer + float(np.abs(smoothed).mean()) * (high - low) / (sigma * math.sqrt(2.0 * math.pi))


def _pairs(gamma: JointDistribution) -> list[tuple[float, float]]:
    return list(zip(gamma.predictions.tolist(), gamma.residuals.tolist(), strict=True))
