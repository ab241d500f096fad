"""Witnesses of errors in bins and intervals: which levels share one, shifted bins as an integral, least costs."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.validation import choice, integer
from onlinecal.measures.witnesses.base import (
    SLACK,
    UNIT,
    WRONG,
    About,
    Ints,
    Witness,
    add,
    grouped,
    integers,
    masses,
    number,
    residuals,
    running,
    total,
    vector,
)


@dataclass(frozen=True, eq=False)
class Bins(Witness):
    """Which levels lie in which bin: the binned error, and the width of the bins, term by term.

    That each level lies in its bin is checked with the edges of `binned_ece`. By "quantile" an edge is the share
    j/m of the mass. Where masses are not whole numbers, rounding (1e-12) may decide on which side of it a level
    lies.

    Attributes
    ----------
    numbers, starts : (b,) ints
        The bins that hold a level, ascending, from 0 to bins − 1. `starts` has the first level in each of them.
    bins, strategy, measure :
        As of the measure, "binned_ece" or "binned_ece_width".
    """

    side = "both"

    numbers: Ints
    starts: Ints
    bins: int
    strategy: Literal["width", "quantile"]
    measure: Literal["binned_ece", "binned_ece_width"]

    @property
    def about(self) -> About:
        name = choice("", "measure", self.measure, ("binned_ece", "binned_ece_width"))
        return {name: {"bins": self.bins, "strategy": self.strategy}}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        m = integer("", "bins", self.bins, 1, 2**53)
        numbers = integers("numbers", self.numbers)
        starts = integers("starts", self.starts, len(numbers))
        k = gamma.levels
        if not (len(starts) and starts[0] == 0 and (np.diff(starts) > 0).all() and starts[-1] < k):
            raise InvalidData(f"starts do not divide {k} levels; expected 0 first, then ascending below {k}")
        if not ((np.diff(numbers) > 0).all() and numbers[0] >= 0 and numbers[-1] < m):
            raise InvalidData(f"numbers are not those of bins; expected ascending ones from 0 to {m - 1}")
        by_width = self.strategy == "width"
        group = np.repeat(np.arange(len(starts)), np.diff(starts, append=k))
        outside = (_outside_width if by_width else _outside_mass)(gamma, numbers[group], m)
        if outside.any():
            i = int(np.argmax(outside))
            v, bin_ = float(gamma.predictions[i]), int(numbers[group[i]])
            raise InvalidData(f"level {v!r} is not in bin {bin_} of {m}; expected the bins of the measure")
        w, r = masses(gamma), residuals(gamma)
        value = total(np.abs(grouped(r, group, len(starts))))
        size = total(np.abs(r))
        if self.measure == "binned_ece_width":
            ends = np.append(starts[1:], k) - 1
            widths = gamma.predictions[ends] - gamma.predictions[starts]
            average = 1.0 / m if by_width else total(w * widths[group])
            value += average
            size += average + (1.0 if by_width else 0.0)  # edges of equal bins are rounded
        return value - SLACK * size, value + SLACK * size

    def __str__(self) -> str:
        kind = "of equal width" if self.strategy == "width" else "of about equal mass"
        return f"{self.bins} bins {kind}, {len(self.numbers)} of which hold levels, and the residual in each of them"


def _outside_width(gamma: JointDistribution, number: Ints, m: int) -> NDArray[np.bool_]:
    v = gamma.predictions
    return ~((v >= number / m) & ((v < (number + 1) / m) | (number == m - 1)))


def _outside_mass(gamma: JointDistribution, number: Ints, m: int) -> NDArray[np.bool_]:
    n, every = gamma.counts, gamma.weight
    middle = (2.0 * (running(n) - n) + n) * m
    # Whole numbers are compared exactly; other masses have been rounded.
    exact = bool((n == np.rint(n)).all()) and 2.0 * every * m < 2.0**53
    room = 0.0 if exact else 1e-12 * 2.0 * every * m
    low, high = 2.0 * every * number, 2.0 * every * (number + 1.0)
    return ~((middle >= low - room) & ((middle < high + room) | (number == m - 1)))


@dataclass(frozen=True)
class ShiftedBins(Witness):
    """Bins of a width ε at a random shift: the average of their error over all shifts, as an integral.

    A bin [x, x + ε) begins at every x once: RintCE(Γ, ε) = (1/ε) ∫ |Σ of r_i with x ≤ v_i < x + ε| dx.
    """

    side = "both"

    epsilon: float

    @property
    def about(self) -> About:
        return {"random_interval_ce": {"epsilon": self.epsilon}}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        return _shifted(gamma, residuals(gamma), number("epsilon", self.epsilon, 5e-324))

    def __str__(self) -> str:
        return f"bins of width {self.epsilon:.6g}, averaged over all shifts"


@dataclass(frozen=True)
class BestWidth(Witness):
    """The width 2^−j of shifted bins at which a surrogate interval calibration error is attained; all are compared.

    Above, RintCE(Γ, 2^−j) + 2^−j; without an exponent the ECE, the limit of ever finer bins. Below, the least of these
    for j = 0, 1, … up to where RintCE alone, which grows with j, is as large.
    """

    side = "both"

    exponent: int | None

    about: ClassVar[About] = {"surrogate_interval_ce": {}}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        r = residuals(gamma)
        size = total(np.abs(r))
        upper = size * (1.0 + SLACK)
        if self.exponent is not None:
            width = 2.0 ** -integer("", "exponent", self.exponent, 0, 1074)
            upper = _shifted(gamma, r, width)[1] + width
        lower, width, nearest = math.inf, 1.0, _nearest(gamma)
        while True:
            least = _shifted(gamma, r, width)[0]
            # Finer bins err no less; and where no two levels share a bin, they err by the ECE.
            if least >= upper or width <= nearest:
                return min(lower, max(least, 0.0)), upper
            lower = min(lower, least + width)
            width /= 2.0

    def __str__(self) -> str:
        if self.exponent is None:
            return "bins so fine that each holds one level"
        return f"bins of width 2^-{self.exponent}, averaged over all shifts"


def _nearest(gamma: JointDistribution) -> float:
    """The least distance of two levels, on the safe side of rounding."""
    return float(np.diff(gamma.predictions).min()) * (1.0 - SLACK) if gamma.levels > 1 else math.inf


def _shifted(gamma: JointDistribution, r: Floats, epsilon: float) -> tuple[float, float]:
    """Lower and upper bound of RintCE(Γ, ε)."""
    size = total(np.abs(r))
    if epsilon <= _nearest(gamma):
        return size * (1.0 - SLACK), size * (1.0 + SLACK)
    integral, error = _sliding(gamma.predictions, np.concatenate((np.zeros(1), running(r))), epsilon)
    slack = error + SLACK * (integral + size)
    # The bias and the ECE are bounds too. They are closer where bins are so narrow that lengths are mostly
    # rounding.
    bias = abs(total(r)) - SLACK * size
    return max(integral - slack, bias), min(integral + slack, size * (1.0 + SLACK))


@kernel
def _sliding(v, prefix, epsilon):
    """(1/ε) ∫ |sum of the window [x, x + ε)| dx and a bound of its rounding: near levels differ exactly."""
    k = v.shape[0]
    largest = 0.0
    for i in range(k + 1):
        largest = max(largest, abs(prefix[i]))
    leave, enter = 0, 0
    came, last = True, 0  # the last event: whether a level came, and which
    area, rest, error = 0.0, 0.0, 0.0
    while leave < k:
        comes = enter < k and (enter == leave or v[enter] - v[leave] < epsilon)
        now = enter if comes else leave
        if enter > leave:
            height = abs(prefix[enter] - prefix[leave])
            if comes == came:
                length = v[now] - v[last]
            elif came:
                length = epsilon - (v[last] - v[now])
            else:
                length = (v[now] - v[last]) - epsilon
            length = max(length, 0.0)
            area, rest = add(area, rest, height * (length / epsilon))
            error += 4.0 * UNIT * (height + 2.0 * largest * (length / epsilon))
        came, last = comes, now
        if comes:
            enter += 1
        else:
            leave += 1
    return area + rest, error


Width = Literal["mean", "max"]


@dataclass(frozen=True)
class IntervalPartition(Witness):
    """Closed intervals that attain an interval calibration error: ascending, disjoint, around every level of Γ."""

    side = "upper"

    intervals: tuple[tuple[float, float], ...]
    width: Width = "mean"

    @property
    def about(self) -> About:
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

    If F_b ≤ F_a + |r_{a+1} + … + r_b| + (w_{a+1} + … + w_b)(v_b − v_{a+1}) for all a < b, F_0 = 0, then the
    intervals of any partition add up to F_k at least. This holds also by the largest width, which the mean is not
    above. By how much this fails at b is taken from F_b and all later ones. The check looks at pairs in O(k²) at
    worst. It stops for b where those before follow from the checked ones, and takes about as long as the dynamic
    program.
    """

    side = "lower"

    costs: Floats

    about: ClassVar[About] = {"interval_ce": {}, "interval_ce_bracket": {}}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        costs = np.concatenate((np.zeros(1), vector("costs", self.costs, gamma.levels)))
        start = np.zeros(1)
        prefix = np.concatenate((start, running(residuals(gamma))))
        mass = np.concatenate((start, running(masses(gamma))))
        undercut, where = _undercut(costs, prefix, mass, gamma.predictions)
        if undercut > WRONG * max(1.0, costs[-1]):
            raise InvalidData(f"costs[{where - 1}] is above that of a partition; expected lower ones")
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
            # For a' < a, with the inequality for a' and a known: F_a' + cost(a', b) ≥ F_a − cost(a', a) + cost(a',
            # b). The residuals of these two differ by at most `residual`, their widths by at least `wide`. Also
            # F_a' + |P_b − P_a'| ≥ |P_b| − below.
            if costs[a] + wide - residual >= costs[b] or wide + abs(prefix[b]) - below >= costs[b]:
                break
        undercut += most
        if most > worst:
            worst, where = most, b
    return undercut, where
