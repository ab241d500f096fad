"""Smoothed error by quadrature of the Gaussians: on [0, 1] with their reflections, or along the log odds."""

from __future__ import annotations

import math

import numpy as np

from onlinecal.core.joint import JointDistribution
from tests.oracles.smooth import logit


def smooth_ece_at(gamma: JointDistribution, sigma: float, transform: str = "identity") -> float:
    """Midpoint rule of 400 points a σ or more, which errs by some 6e-7 Σ|r|.

    In log odds the levels 0 and 1 are infinitely far from all else, and count in full.
    """
    rows, outer = list(zip(gamma.predictions.tolist(), gamma.residuals.tolist(), strict=True)), 0.0
    low, high = 0.0, 1.0
    if transform == "identity":
        images = math.ceil(4.5 * sigma) + 1
        shifts = [2.0 * m for m in range(-images, images + 1)]
        rows = [(m + sign * v, r) for v, r in rows for m in shifts for sign in (1, -1)]
    else:
        outer = sum(abs(r) for v, r in rows if v in (0.0, 1.0))
        rows = [(logit(v), r) for v, r in rows if 0.0 < v < 1.0]
        if not rows:
            return outer
        low, high = rows[0][0] - 9.0 * sigma, rows[-1][0] + 9.0 * sigma
    points = max(40_000, math.ceil(400.0 * (high - low) / sigma))
    t = low + (high - low) * (np.arange(points) + 0.5) / points
    smoothed = np.zeros(points)
    for centre, r in rows:
        if low - 9.0 * sigma <= centre <= high + 9.0 * sigma:
            smoothed += r * np.exp(-0.5 * ((t - centre) / sigma) ** 2)
    return outer + float(np.abs(smoothed).mean()) * (high - low) / (sigma * math.sqrt(2.0 * math.pi))
