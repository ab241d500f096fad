"""Distances of the loess-smoothed calibration curve from the diagonal: `ici`, `e50` and `e90`."""

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.measures.base import Change, Ints, Sampling, row

#: the share of the weight in a neighbourhood: the default of R's loess
SPAN = 0.75
#: more levels than this are put into as many groups of about equal weight, each at its mean
GROUPS = 500
# Rounding of sums of masses.
_ROUNDING = 1e-12


@of_gamma
def ici(gamma: JointDistribution) -> float:
    """Integrated calibration index: the mean of |c(p) − p| for the calibration curve c smoothed by loess.

    Loess is local quadratic regression of y on p with tricube weights, over the nearest three quarters of the weight
    (degree 2, span 0.75). It is not clipped to [0, 1]. A quadratic miscalibration is smoothed without bias, a
    calibrated Γ has the value 0, and errors that alternate between near forecasts cancel.

    Source: Austin & Steyerberg 2019; Cleveland & Devlin 1988 (loess). Deviations: R's loess interpolates the curve, and
    rounds the number of rows in a neighbourhood down. Here each level has its own regression. Above 500 levels it
    is that of groups of neighbouring levels.

    Examples
    --------
    >>> round(ici(JointDistribution.from_levels([0.2, 0.5, 0.8], [1, 1, 1], [0.3, 0.5, 0.7])), 6)
    0.066667
    """
    error, groups = curve_error(gamma)
    return float(groups.mass @ np.abs(error))


@of_gamma
def e50(gamma: JointDistribution) -> float:
    """E50: the median of |c(p) − p| for the calibration curve c smoothed by loess, as in `ici`.

    Source: Austin & Steyerberg 2019; Harrell 2015 for the name. Deviation: it is the least value with half of the
    weight at or below it.
    """
    return _quantile(0.5, gamma)


@of_gamma
def e90(gamma: JointDistribution) -> float:
    """E90: the 90th percentile of |c(p) − p| for the calibration curve c smoothed by loess, as in `ici`.

    Source: Austin & Steyerberg 2019. Deviation: it is the least value with 0.9 of the weight at or below it.
    """
    return _quantile(0.9, gamma)


class Groups(NamedTuple):
    """Neighbouring levels together, each level by itself where there are few."""

    starts: Ints  # the first level of each
    mass: Floats
    residuals: Floats
    local: Floats  # (k, k): errors of the curve are these times residuals
    weight: Floats  # (k, k): tricube weights
    z: Floats  # (k, k): distances of groups from each, in widths of its neighbourhood
    solved: Floats  # (k, 3, 3): inverses of the moments of neighbourhoods


def curve_error(gamma: JointDistribution) -> tuple[Floats, Groups]:
    """c(p) − p at each group, and the groups."""
    starts = np.arange(gamma.levels)
    v, mass, residuals = gamma.predictions, gamma.mass, gamma.residuals
    if gamma.levels > GROUPS:
        before = np.cumsum(mass) - mass
        starts = np.flatnonzero(np.diff(np.floor(GROUPS * before), prepend=-1.0))
        total = np.add.reduceat(mass, starts)
        v, mass, residuals = (
            np.add.reduceat(mass * v, starts) / total,
            total,
            np.add.reduceat(residuals, starts),
        )
    local, *others = _regressions(v.tobytes(), mass.tobytes())
    return local @ residuals, Groups(starts, mass, residuals, local, *others)


@lru_cache(maxsize=2)  # draws of outcomes have the same forecasts
def _regressions(predictions: bytes, masses: bytes) -> tuple[Floats, Floats, Floats, Floats]:
    """Local quadratic regressions at sorted predictions."""
    v, mass = (np.frombuffer(part) for part in (predictions, masses))
    apart = v[None, :] - v[:, None]
    order = np.argsort(np.abs(apart), axis=1, kind="stable")
    inside = np.cumsum(mass[order], axis=1)
    last = np.argmax(inside >= SPAN - _ROUNDING, axis=1)
    width = np.abs(np.take_along_axis(apart, np.take_along_axis(order, last[:, None], 1), 1))
    # A level with most of the weight is alone.
    nearest = np.minimum(np.diff(v, prepend=-np.inf), np.diff(v, append=np.inf))
    width = np.maximum(width, nearest[:, None])
    # What is farther away than the width has no weight: cut off first, as widths may be subnormal.
    z = np.clip(apart, -width, width) / np.where(width > 0.0, width, 1.0)
    weight = (1.0 - np.abs(z) ** 3) ** 3
    # Sums of the powers 0 to 4 of z.
    powers, part = [], weight * mass
    for _ in range(5):
        powers.append(part.sum(axis=1))
        part = part * z
    moments = np.stack([np.stack(powers[i : i + 3], axis=1) for i in range(3)], axis=1)
    solved = np.linalg.pinv(moments, rcond=1e-10, hermitian=True)
    return weight * _quadratic(solved[:, 0], z), weight, z, solved


def _quadratic(at: Floats, z: Floats) -> Floats:
    """Quadratics with coefficients (k, 3), at z (k, k)."""
    return np.asarray(at[:, :1] + z * (at[:, 1:2] + z * at[:, 2:]))


def _quantile(share: float, gamma: JointDistribution) -> float:
    error, groups = curve_error(gamma)
    return float(_quantiles(np.abs(error)[None, :], groups.mass[None, :], share)[0])


def _quantiles(values: Floats, mass: Floats, share: float) -> Floats:
    """Of each row (B, k) the least value with a share of the mass at or below it."""
    order = np.argsort(values, axis=1)
    mass = np.broadcast_to(mass, values.shape)
    inside = np.cumsum(np.take_along_axis(mass, order, 1), axis=1)
    first = np.argmax(inside >= share * inside[:, -1:] - _ROUNDING, axis=1)
    return np.take_along_axis(values, np.take_along_axis(order, first[:, None], 1), 1)[:, 0]


def _moved(change: Change) -> tuple[Floats, Groups, Floats, Floats]:
    """The errors of the curve, and to the first order their changes and those of masses, (B, k)."""
    error, groups = curve_error(change.gamma)
    residuals, masses = (
        np.add.reduceat(part, groups.starts, axis=1)
        for part in (change.residuals, change.ones + change.zeros)
    )
    # A row adds its distance from the local fit.
    weight, z = groups.weight, groups.z
    sums = np.stack([(weight * z**power) @ groups.residuals for power in range(3)], axis=1)
    fitted = groups.local * _quadratic(np.einsum("iab,ib->ia", groups.solved, sums), z)
    return error, groups, residuals @ groups.local.T - masses @ fitted.T, masses


def _mean_errors(change: Change) -> Floats:
    error, groups, moved, masses = _moved(change)
    return (np.abs(moved) @ groups.mass + np.abs(masses @ np.abs(error)))[:, None]


def _quantile_errors(change: Change, share: float) -> Floats:
    """By how much the quantile changes here, or from 0: the larger of the two."""
    error, groups, moved, masses = _moved(change)
    before = _quantiles(np.abs(error)[None, :], groups.mass[None, :], share)[0]
    new = np.maximum(groups.mass + masses, 0.0)
    after = _quantiles(np.abs(error + moved), new, share)
    alone = _quantiles(np.abs(moved), new, share)
    return np.maximum(np.abs(after - before), alone)[:, None]


_FACTS = "AS19 | O(k²), k ≤ 500; beyond, that of 500 groups | no | yes | no"
_SOURCE = "the normal law of local regressions"

MEASURES = (
    row(ici, f"ICI | {_FACTS}", largest=np.inf, sampling=Sampling(_mean_errors, _SOURCE)),
    row(
        e50,
        f"E50 | {_FACTS}",
        largest=np.inf,
        sampling=Sampling(partial(_quantile_errors, share=0.5), _SOURCE),
    ),
    row(
        e90,
        f"E90 | {_FACTS}",
        largest=np.inf,
        sampling=Sampling(partial(_quantile_errors, share=0.9), _SOURCE),
    ),
)
