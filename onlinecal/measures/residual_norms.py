"""Measures that are seminorms of the residuals, for many at once: over levels, bins, intervals and moments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.measures.sampling import Change

Ints = NDArray[np.int64]


def bins_of_levels(gamma: JointDistribution, m: int, strategy: str) -> tuple[Ints, Ints]:
    """The number of the bin of each level, and the levels at which bins start."""
    if strategy == "width":
        place, edge = gamma.predictions, lambda j: j / m
        number = np.minimum((place * m).astype(np.int64), m - 1)
    else:
        n = gamma.counts
        place, edge = (2.0 * np.cumsum(np.append(0.0, n[:-1])) + n) * m, lambda j: 2.0 * j * gamma.weight
        number = np.minimum((place / (2.0 * gamma.weight)).astype(np.int64), m - 1)
    # A product or quotient may be off by one: the edges decide.
    number -= place < edge(number)
    number += (number < m - 1) & (place >= edge(number + 1))
    return number, np.flatnonzero(np.diff(number, prepend=-1))


def level_errors(change: Change, *, order: float = 1.0) -> Floats:
    """Σ |r_i|; of order p the norm of q* − q by the masses of a sample, and what those change in that of q − v."""
    if order == 1.0:
        return np.abs(change.residuals).sum(axis=1)[:, None]
    gamma = change.gamma
    mass = np.maximum(gamma.mass + change.ones + change.zeros, 1e-300)
    moved = np.clip((gamma.mass * gamma.means + change.ones) / mass, 0.0, 1.0) - gamma.means
    bias = np.abs(gamma.means - gamma.predictions)
    before = weighted_norm_of(bias, gamma.mass[None, :], order)
    return (weighted_norm_of(moved, mass, order) + np.abs(weighted_norm_of(bias, mass, order) - before))[
        :, None
    ]


def weighted_norm_of(errors: Floats, mass: Floats, order: float) -> Floats:
    """(Σ w_i |e_i|^p)^{1/p} for rows of masses (B, k), each divided by its sum."""
    errors = np.abs(errors)
    largest = np.broadcast_to(errors, mass.shape).max(axis=1)
    if order == math.inf:
        return largest
    size = np.where(largest > 0.0, largest, 1.0)
    total = (mass * (errors / size[:, None]) ** order).sum(axis=1) / mass.sum(axis=1)
    return np.asarray(largest * total ** (1.0 / order))


def ece_norm(gamma: JointDistribution, residuals: Floats, *, order: float = 1.0) -> Floats:
    """`ece` of order 1 as a seminorm: Σ |r_i|."""
    return np.asarray(np.abs(residuals).sum(axis=1))


def bin_norm(
    gamma: JointDistribution, residuals: Floats, *, bins: int = 10, strategy: Any = "width"
) -> Floats:
    """`binned_ece` as a seminorm: Σ_j |Σ_{I_j} r_i|, for the bins that Γ has."""
    _, starts = bins_of_levels(gamma, bins, strategy)
    return np.asarray(np.abs(np.add.reduceat(residuals, starts, axis=1)).sum(axis=1))


def bin_width_errors(change: Change, *, bins: int = 10, strategy: Any = "width") -> Floats:
    """Those of binned ECE, and what changed masses add to the average width."""
    error = bin_norm(change.gamma, change.residuals, bins=bins, strategy=strategy)
    if strategy == "quantile":
        v = change.gamma.predictions
        _, starts = bins_of_levels(change.gamma, bins, strategy)
        width = v[np.append(starts[1:], len(v)) - 1] - v[starts]
        error += np.abs(np.add.reduceat(change.ones + change.zeros, starts, axis=1) @ width)
    return error[:, None]


def bin_cells(gamma: JointDistribution, *, bins: int = 10, strategy: Any = "width") -> Ints:
    _, starts = bins_of_levels(gamma, bins, strategy)
    return np.searchsorted(starts, np.arange(gamma.levels), side="right")


def bin_means(samples: float, *, bins: int = 10, strategy: Any = "width") -> Floats | None:
    # By Cauchy–Schwarz: the variances of the bins add to at most 1.
    return np.array([math.sqrt(bins)]) if strategy == "width" else None


@kernel
def extremes(r):
    """Least and greatest prefix sum, P_0 = 0 included, and how many terms each has; sums are compensated."""
    low, high, at_low, at_high = 0.0, 0.0, 0, 0
    total, rest = 0.0, 0.0
    for i in range(r.shape[0]):
        s = total + r[i]
        b = s - total
        rest += (total - (s - b)) + (r[i] - b)
        total = s
        p = total + rest
        if p < low:
            low, at_low = p, i + 1
        elif p > high:
            high, at_high = p, i + 1
    return low, at_low, high, at_high


@kernel
def _ranges(residuals):
    """Least and greatest prefix sum of each row."""
    out = np.empty((residuals.shape[0], 2))
    for b in range(residuals.shape[0]):
        low, _, high, _ = extremes(residuals[b])
        out[b, 0], out[b, 1] = low, high
    return out


def cutoff_norm(gamma: JointDistribution, residuals: Floats) -> Floats:
    """`cutoff_ce` as a seminorm: max P − min P."""
    low, high = _ranges(residuals).T
    return np.asarray(high - low)


def step_norm(gamma: JointDistribution, residuals: Floats) -> Floats:
    """`step_ce` as a seminorm: max |P_j|."""
    low, high = _ranges(residuals).T
    return np.maximum(-low, high)


def moment_norm(gamma: JointDistribution, residuals: Floats, *, degree: int = 2) -> Floats:
    """`low_degree_ce` as a seminorm: max |Σ r_i v_i^j|."""
    powers = np.vander(gamma.predictions, int(degree) + 1, increasing=True)
    return np.asarray(np.abs(residuals @ powers).max(axis=1))
