"""Witnesses of interval calibration: a partition into intervals, and costs that no partition undercuts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.measures.witnesses.base import WRONG, Witness, vector
from onlinecal.measures.witnesses.sums import SLACK, UNIT, grouped, masses, residuals, running, total

Width = Literal["mean", "max"]


@dataclass(frozen=True)
class IntervalPartition(Witness):
    """Intervals that attain an interval calibration error; between them lies no level.

    Attributes
    ----------
    intervals : tuple of (float, float)
        Closed intervals [low, high], ascending and disjoint, that hold every level of Γ.
    width : {"mean", "max"}
        Which width is added.
    """

    side = "upper"

    intervals: tuple[tuple[float, float], ...]
    width: Width = "mean"

    @property
    def about(self) -> Mapping[str, Mapping[str, Any]]:
        return {name: {"width": self.width} for name in ("interval_ce", "interval_ce_bracket")}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        ends = vector("intervals", [end for low, high in self.intervals for end in (low, high)])
        steps = np.diff(ends)
        if not (len(ends) and (steps[::2] >= 0.0).all() and (steps[1::2] > 0.0).all()):
            raise InvalidData("the intervals overlap or are out of order; expected an ascending partition")
        low, high = ends[::2], ends[1::2]
        index = np.searchsorted(low, gamma.predictions, side="right") - 1
        outside = (index < 0) | (gamma.predictions > high[index])
        if outside.any():
            v = float(gamma.predictions[int(np.argmax(outside))])
            raise InvalidData(f"level {v!r} lies in none of the intervals; expected a partition")
        r, widths = residuals(gamma), high - low
        binned = total(np.abs(grouped(r, index, len(low))))
        added = total(masses(gamma) * widths[index]) if self.width == "mean" else float(widths.max())
        return -math.inf, binned + added + SLACK * (total(np.abs(r)) + added)

    def __str__(self) -> str:
        widest = max(b - a for a, b in self.intervals)
        shown = ", ".join(f"[{a:.4g}, {b:.4g}]" for a, b in self.intervals[:4])
        more = ", …" if len(self.intervals) > 4 else ""
        return f"{len(self.intervals)} intervals ({shown}{more}), the widest {widest:.4g}"


@dataclass(frozen=True, eq=False)
class LeastCosts(Witness):
    """A cost F_b for the levels up to b that no partition of them undercuts.

    If F_b ≤ F_a + |r_{a+1} + … + r_b| + (w_{a+1} + … + w_b)(v_b − v_{a+1}) for all a < b, F_0 = 0, then the intervals
    of any partition add up to F_k at least. By how much this fails at b is taken from F_b and all later ones. The
    check looks at pairs in O(k²) at worst; it stops for b where those before follow from the ones checked, so that it
    takes about as long as the dynamic program. Nothing is known that proves as much in less time.

    Attributes
    ----------
    costs : (k,) floats
        F_1, …, F_k. They are for the mean width, which the largest is not below: a bound for both, close for the mean.
    """

    side = "lower"

    costs: Floats

    @property
    def about(self) -> Mapping[str, Mapping[str, Any]]:
        return {"interval_ce": {}, "interval_ce_bracket": {}}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        costs = np.concatenate((np.zeros(1), vector("costs", self.costs, gamma.levels)))
        start = np.zeros(1)
        prefix = np.concatenate((start, running(residuals(gamma))))
        mass = np.concatenate((start, running(masses(gamma))))
        undercut, where = _undercut(costs, prefix, mass, gamma.predictions)
        if undercut > WRONG * max(1.0, costs[-1]):
            raise InvalidData(
                f"costs[{where - 1}] is above that of a partition; expected costs that none undercuts"
            )
        # Each step of a partition is rounded.
        slack = 24.0 * UNIT * (1.0 + float(np.abs(costs).max()))
        return float(costs[-1]) - undercut - gamma.levels * slack, math.inf

    def __str__(self) -> str:
        return f"least costs of the levels up to each of the {len(self.costs)}, which no partition undercuts"


@kernel
def _undercut(costs, prefix, mass, v):
    """Σ over b of how far F_b is above the cheapest last interval, and the b where that is most."""
    k = v.shape[0]
    below = 0.0  # by how much F may be below |P|: no cost can, but numbers given may
    for b in range(1, k + 1):
        below = max(below, abs(prefix[b]) - costs[b])
    undercut, worst, where = 0.0, 0.0, k
    for b in range(1, k + 1):
        most = 0.0
        for a in range(b - 1, -1, -1):
            residual = abs(prefix[b] - prefix[a])
            wide = (mass[b] - mass[a]) * (v[b - 1] - v[a])
            most = max(most, costs[b] - costs[a] - wide - residual)
            # For a' < a, with the inequality for a' and a known: F_a' + cost(a', b) ≥ F_a − cost(a', a) + cost(a', b),
            # and the residuals of these two differ by at most `residual`, their widths by at least `wide`. Also
            # F_a' + |P_b − P_a'| ≥ |P_b| − below.
            if costs[a] + wide - residual >= costs[b] or wide + abs(prefix[b]) - below >= costs[b]:
                break
        undercut += most
        if most > worst:
            worst, where = most, b
    return undercut, where
