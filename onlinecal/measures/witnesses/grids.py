"""Witnesses of the soft-binned decision loss: the worst threshold of a grid, and the grid itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import FINEST, Floats, JointDistribution
from onlinecal.measures.witnesses.base import Witness, whole
from onlinecal.measures.witnesses.sums import SLACK, grouped, lines, masses, times

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class GridThreshold(Witness):
    """The threshold i of a grid of multiples of 1/m at which a binned decision loss is attained; all are compared.

    Attributes
    ----------
    threshold : int
        i, from 1 to m: actions change between (i − 1)/m and i/m.
    m : int
    soft : bool
        Whether predictions are rounded at random to both neighbours, or down.
    """

    side = "both"

    threshold: int
    m: int
    soft: bool

    @property
    def about(self) -> Mapping[str, Mapping[str, Any]]:
        return {"scdl_binned": {"m": self.m, "soft": self.soft}}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        m = whole("m", self.m, 1, FINEST)
        i = whole("threshold", self.threshold, 1, m)
        if (gamma.means == gamma.predictions).all():
            return 0.0, 0.0
        at, losses = threshold_losses(gamma, m, bool(self.soft), i)
        slack = 8.0 * SLACK
        return float(losses[np.searchsorted(at, i)]) - slack, float(losses.max()) + slack

    def __str__(self) -> str:
        how = "at random to a neighbouring multiple" if self.soft else "down to a multiple"
        return (
            f"predictions rounded {how} of 1/{self.m}; who acts one way up to {(self.threshold - 1) / self.m:.6g} and "
            f"another from {self.threshold / self.m:.6g} on loses most"
        )


def grid_bounds(gamma: JointDistribution, m: int) -> tuple[float, float]:
    """Bounds of SCDL = min over powers of two of max(SCDL_m, 1/m) that follow from the grids m and 2m.

    A finer grid loses at least as much as this one, SCDL_m ≤ SCDL_2m, and a coarser one has 1/m' ≥ 2/m.
    """
    if m < 1 or m > FINEST or m & (m - 1):
        raise InvalidData(f"a grid of 1/{m}; expected a power of two up to 2^50")
    slack = 8.0 * SLACK
    here = float(threshold_losses(gamma, m, True)[1].max())
    upper = max(here + slack, 1.0 / m)
    if m == FINEST:  # no finer one counts
        return min(max(here - slack, 1.0 / m), 2.0 / m), upper
    lower = min(here - slack, 2.0 / m) if m > 1 else here - slack
    if lower < upper:
        finer = float(threshold_losses(gamma, 2 * m, True)[1].max())
        lower = max(lower, min(finer - slack, 1.0 / m))
    return lower, upper


def threshold_losses(gamma: JointDistribution, m: int, soft: bool, also: int = 1) -> tuple[Ints, Floats]:
    """Thresholds i, `also` among them, where the loss can be largest, and the loss at each.

    With W_j and S_j the mass and the mass of outcomes 1 that are rounded to j/m, it is Σ_{j<i} (S_j − W_j i/m)_+ +
    Σ_{j≥i} (W_j (i − 1)/m − S_j)_+: convex between two points with mass, hence largest for i = j or j + 1 of one.
    """
    w = masses(gamma)
    down, up = _neighbours(gamma.predictions, m, soft)
    parts = np.concatenate((down, down + 1)), np.concatenate((w * (1.0 - up), w * up))
    point, place = np.unique(parts[0], return_inverse=True)
    mass = grouped(parts[1], place, len(point))
    ones = grouped(parts[1] * np.tile(gamma.means, 2), place, len(point))
    point, mass, ones = (x[mass > 0.0] for x in (point, mass, ones))
    mean = np.minimum(ones / mass, 1.0)
    at = np.unique(np.concatenate((point, point + 1, [also])))
    at = at[(at >= 1) & (at <= m)]
    # Lines of points below i begin with i = j + 1, those of points from i on, in the mirror, with i = j.
    rising = lines(at / m, np.searchsorted(at, point + 1), mass, mean)
    last = np.searchsorted(at, point, side="right") - 1
    falling = lines(-((at[::-1] - 1) / m), len(at) - 1 - last, mass, -mean)[::-1]
    return at, rising + falling


@kernel
def _neighbours(v, m, soft):
    """The point j of the grid below each v, and the share that is rounded up to j + 1."""
    point, share = np.empty(v.shape[0], np.int64), np.zeros(v.shape[0])
    for i in range(v.shape[0]):
        product, lost = times(v[i], float(m))  # a share is small beside v m, and not to be lost
        j = min(int(product), m)
        nearest = int(product + 0.5)
        if soft and nearest / m == v[i]:  # a float that is j/m, rounded, is that point of the grid
            j = nearest
        elif soft:
            while j > 0 and (product - j) + lost < 0.0:
                j -= 1
            share[i] = min(max((product - j) + lost, 0.0), 1.0)
        else:
            # Hard bins [j/m, (j+1)/m) have edges as rounded to floats.
            while j < m and v[i] >= (j + 1) / m:
                j += 1
            while v[i] < j / m:
                j -= 1
        point[i] = j
    return point, share
