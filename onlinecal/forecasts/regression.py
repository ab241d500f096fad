"""Kernel regression of outcomes on predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import integer, number
from onlinecal.measures.smooth_ece import smooth_ece

Floats = NDArray[np.float64]

#: a smaller σ is drawn as this
LEAST = 0.002
#: levels above which predictions are spread on as many steps of half of `LEAST`
MOST_LEVELS = 1000


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The mean outcome near each prediction."""

    sigma: float  # the width of the Gaussian
    at: Floats  # from 0 to 1
    means: Floats  # Σ n_i q_i K(t, v_i) / Σ n_i K(t, v_i)
    density: Floats  # of predictions: Σ w_i K(t, v_i), with integral 1
    samples: Floats  # how many samples of equal weight would have as much to say: (Σ n_i K)² / Σ n_i K²

    def band(self, level: float) -> tuple[Floats, Floats]:
        """Between what the mean outcome near each prediction lies, each by itself, of what samples are drawn from.

        The interval of Clopper and Pearson for this number of samples, approximate as their weights differ.
        """
        from scipy.special import betaincinv

        tail, n = 0.5 * (1.0 - level), self.samples
        ones = n * self.means
        with np.errstate(invalid="ignore"):
            lower = np.where(ones > 0.0, betaincinv(ones, n - ones + 1.0, tail), 0.0)
            upper = np.where(ones < n, betaincinv(ones + 1.0, n - ones, 1.0 - tail), 1.0)
        return lower, upper


@of_gamma
def smoothed(gamma: JointDistribution, *, sigma: float | None = None, points: int = 1001) -> Smoothed:
    """Kernel regression of outcomes on predictions with a Gaussian that is reflected at 0 and 1.

    Source: Błasiok, Nakkiran 2024, §1.1 and §4 (Nadaraya 1964, Watson 1964); the band: Korn, Graubard 1998.

    Deviation: The band is an interval for a number of samples, where the paper resamples.

    >>> found = smoothed([0.2, 0.8], [1, 0], sigma=0.1, points=3)
    >>> found.means.round(3)
    array([1. , 0.5, 0. ])
    """
    points = integer("smoothed", "points", points, 2, 100_000)
    width = max(smooth_ece(gamma), LEAST) if sigma is None else number("smoothed", "sigma", sigma, LEAST, 1.0)
    v, counts, positives = gamma.predictions, gamma.counts, gamma.positives
    if gamma.levels > MOST_LEVELS:
        v, counts, positives = _spread(gamma)
    at = np.linspace(0.0, 1.0, points)
    # The images of a level under reflections at 0 and 1, as far as Gaussians reach.
    shifts = 2.0 * np.arange(-4, 5) if width > 0.1 else np.array([-2.0, 0.0, 2.0])
    near = ((at[:, None] - v) / width) ** 2
    least = near.min(axis=1, keepdims=True)
    kernel = np.zeros_like(near)
    for shift in shifts:
        for image in (v + shift, shift - v):
            kernel += np.exp(0.5 * (least - ((at[:, None] - image) / width) ** 2))
    total = kernel @ counts
    means = np.clip(kernel @ positives / total, 0.0, 1.0)
    density = total * np.exp(-0.5 * least[:, 0]) / (gamma.weight * width * np.sqrt(2.0 * np.pi))
    return Smoothed(width, at, means, density, total**2 / (kernel**2 @ counts))


def _spread(gamma: JointDistribution) -> tuple[Floats, Floats, Floats]:
    """Levels, counts and positives on multiples of 1/1000: each level on the two beside it, with its own mean."""
    place = gamma.predictions * MOST_LEVELS
    left = np.minimum(place.astype(np.int64), MOST_LEVELS - 1)
    share = place - left
    both = np.concatenate((left, left + 1))
    counts, positives = (
        np.bincount(both, np.concatenate((part * (1.0 - share), part * share)), MOST_LEVELS + 1).astype(
            np.float64
        )
        for part in (gamma.counts, gamma.positives)
    )
    there = counts > 0.0
    return (np.arange(MOST_LEVELS + 1) / MOST_LEVELS)[there], counts[there], positives[there]
