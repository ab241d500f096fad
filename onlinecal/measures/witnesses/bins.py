"""Witnesses of errors in bins and intervals: which levels share one, shifted bins as an integral, least costs."""

import math
from dataclasses import dataclass
from math import fsum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Ints
from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.sums import grouped, running
from onlinecal.core.validation import integer, number
from onlinecal.measures.witnesses.base import Bracket, Witness, between, vector


@dataclass(frozen=True, eq=False)
class Bins(Witness):
    """Which levels lie in which bin: the binned error, and the width of the bins, term by term.

    That each level lies in its bin is checked with the edges of `binned_ece`. By "quantile" an edge is the share
    j/m of the mass. Where masses are not whole numbers, rounding (1e-12) may decide on which side of it a level
    lies.

    Attributes
    ----------
    number : (k,) ints
        The bin of each level, from 0 to bins − 1.
    bins, strategy, measure :
        As of the measure, "binned_ece" or "binned_ece_width".
    """

    side = "both"
    about = ("binned_ece", "binned_ece_width")

    number: Ints
    bins: int
    strategy: Literal["width", "quantile"]
    measure: Literal["binned_ece", "binned_ece_width"]

    def bound(self, gamma: JointDistribution) -> float:
        m, by_width = integer("Bins", "bins", self.bins, 1, 2**53), self.strategy == "width"
        number = vector("Bins.number", self.number, gamma.levels)
        outside = _outside(gamma, number, m, by_width)
        if outside.any():
            i = int(np.argmax(outside))
            v = float(gamma.predictions[i])
            raise InvalidData(
                f"Bins: level {v!r} is not in bin {number[i]:g} of {m}; expected those of the measure"
            )
        _, first, group = np.unique(number, return_index=True, return_inverse=True)
        error = fsum(np.abs(grouped(gamma.residuals, group, len(first))))
        if self.measure == "binned_ece":
            return error
        widths = gamma.predictions[np.append(first[1:], gamma.levels) - 1] - gamma.predictions[first]
        return error + (1.0 / m if by_width else fsum(gamma.mass * widths[group]))

    def __str__(self) -> str:
        kind = "of equal width" if self.strategy == "width" else "of about equal mass"
        held = len(np.unique(self.number))
        return f"{self.bins} bins {kind}, {held} of which hold levels, and the residual in each of them"


def _outside(gamma: JointDistribution, number: Floats, m: int, by_width: bool) -> NDArray[np.bool_]:
    """Which levels lie in another bin; the last one holds its upper edge."""
    number = np.clip(number, -1.0, m)
    if by_width:
        place, low, high, room = gamma.predictions, number / m, (number + 1.0) / m, 0.0
    else:
        n, every = gamma.counts, 2.0 * gamma.weight
        place, low, high = (2.0 * (running(n) - n) + n) * m, every * number, every * (number + 1.0)
        # Whole numbers are compared exactly; other masses have been rounded.
        room = 0.0 if (n == np.rint(n)).all() and every * m < 2.0**53 else 1e-12 * every * m
    inside = (place >= low - room) & ((place < high + room) | (number == m - 1))
    return ~inside | (number < 0) | (number >= m) | (number % 1 != 0)


@dataclass(frozen=True)
class ShiftedBins(Witness):
    """Bins of a width ε at a random shift: the average of their error over all shifts, as an integral.

    A bin [x, x + ε) begins at every x once: RintCE(Γ, ε) = (1/ε) ∫ |Σ of r_i with x ≤ v_i < x + ε| dx.
    """

    side = "both"
    about = ("random_interval_ce",)

    epsilon: float

    def bound(self, gamma: JointDistribution) -> float:
        return _shifted(gamma, number("ShiftedBins", "epsilon", self.epsilon, 5e-324, 1e308))

    def __str__(self) -> str:
        return f"bins of width {self.epsilon:.6g}, averaged over all shifts"


@dataclass(frozen=True)
class BestWidth(Witness):
    """The width 2^−j of shifted bins at which a surrogate interval calibration error is attained; all are compared.

    Above, RintCE(Γ, 2^−j) + 2^−j; without an exponent the ECE, the limit of ever finer bins. Below, the least of these
    for j = 0, 1, … up to where RintCE alone, which grows with j, is as large.
    """

    side = "both"
    about = ("surrogate_interval_ce",)

    exponent: int | None

    def bound(self, gamma: JointDistribution) -> Bracket:
        upper = fsum(np.abs(gamma.residuals))
        if self.exponent is not None:
            width = 2.0 ** -integer("BestWidth", "exponent", self.exponent, 0, 1074)
            upper = _shifted(gamma, width) + width
        lower, width, nearest = math.inf, 1.0, np.diff(gamma.predictions).min(initial=1.0)
        while True:
            error = _shifted(gamma, width)
            # Finer bins err no less; and where no two levels share a bin, they err by the ECE.
            if error >= upper or width <= nearest:
                return between(min(lower, error), upper)
            lower = min(lower, error + width)
            width /= 2.0

    def __str__(self) -> str:
        if self.exponent is None:
            return "bins so fine that each holds one level"
        return f"bins of width 2^-{self.exponent}, averaged over all shifts"


def _shifted(gamma: JointDistribution, epsilon: float) -> float:
    """RintCE(Γ, ε): the bins that begin in (v_i − ε, v_i] hold the level i."""
    v, r = gamma.predictions, gamma.residuals
    # v − ε as a float and what is left of it, so that lengths between near ends keep their digits (Knuth's two-sum).
    first = v - epsilon
    back = first - v
    left = (v - (first - back)) - (epsilon + back)
    place, rest = np.concatenate((first, v)), np.concatenate((left, np.zeros(len(v))))
    order = np.lexsort((rest, place))
    lengths = np.minimum(
        np.diff(place[order]) + np.diff(rest[order]), epsilon
    )  # further apart only empty bins are
    heights = np.abs(running(np.concatenate((r, -r))[order])[:-1])
    return fsum(heights * (lengths / epsilon))


Width = Literal["mean", "max"]


@dataclass(frozen=True)
class IntervalPartition(Witness):
    """Closed intervals that attain an interval calibration error: ascending, disjoint, around every level of Γ.

    Proves the cost of groups of levels: a group goes from one lower end to the next, and is as wide as its levels are
    apart.
    """

    side = "upper"
    about = ("interval_ce", "interval_ce_bracket")

    intervals: tuple[tuple[float, float], ...]
    width: Width = "mean"

    def bound(self, gamma: JointDistribution) -> float:
        v, low = gamma.predictions, np.sort(vector("IntervalPartition", [low for low, _ in self.intervals]))
        place = np.searchsorted(low, v, side="right")
        _, first, group = np.unique(place, return_index=True, return_inverse=True)
        widths = v[np.append(first[1:], len(v)) - 1] - v[first]
        error = fsum(np.abs(grouped(gamma.residuals, group, len(first))))
        return error + (fsum(gamma.mass * widths[group]) if self.width == "mean" else float(widths.max()))

    def __str__(self) -> str:
        widest = max(b - a for a, b in self.intervals)
        shown = ", ".join(f"[{a:.4g}, {b:.4g}]" for a, b in self.intervals[:4])
        more = ", …" if len(self.intervals) > 4 else ""
        return f"{len(self.intervals)} intervals ({shown}{more}), the widest {widest:.4g}"


@dataclass(frozen=True, eq=False)
class LeastCosts(Witness):
    """A cost F_b for the levels up to b that no partition of them undercuts.

    Let G_b be the least of F_b and all G_a + |r_{a+1} + … + r_b| + (w_{a+1} + … + w_b)(v_b − v_{a+1}), a < b, with
    G_0 = 0. Then the intervals of any partition add up to G_k at least. This holds also by the largest width, which
    the mean is not above. It takes O(k²) at worst, about as long as the dynamic program. Rounding: 1e-15 for each
    level.
    """

    side = "lower"
    about = ("interval_ce", "interval_ce_bracket")

    costs: Floats

    def bound(self, gamma: JointDistribution) -> float:
        costs = vector("LeastCosts.costs", self.costs, gamma.levels)
        prefix, mass = np.append(0.0, running(gamma.residuals)), np.append(0.0, running(gamma.mass))
        return float(_least(costs, prefix, mass, np.array(gamma.predictions)))

    def __str__(self) -> str:
        return f"least costs of the levels up to each of the {len(self.costs)}, which no partition undercuts"


@kernel
def _least(costs, prefix, mass, v):
    """G_k; the pairs are left out that cannot be less than others before them."""
    k = len(v)
    least = np.zeros(k + 1)
    below = 0.0  # by how much G may be below |P|: no cost can, but numbers given may
    for b in range(1, k + 1):
        best = costs[b - 1]
        for a in range(b - 1, -1, -1):
            residual = abs(prefix[b] - prefix[a])
            wide = (mass[b] - mass[a]) * (v[b - 1] - v[a])
            best = min(best, least[a] + wide + residual)
            # For a' < a: G_a' + cost(a', b) ≥ G_a − cost(a', a) + cost(a', b). The residuals of these two differ by at
            # most `residual`, their widths by at least `wide`. Also G_a' + |P_b − P_a'| ≥ |P_b| − below.
            if least[a] + wide - residual >= best or wide + abs(prefix[b]) - below >= best:
                break
        least[b] = best
        below = max(below, abs(prefix[b]) - best)
    return least[k]
