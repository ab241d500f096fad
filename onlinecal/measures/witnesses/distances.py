"""Witnesses of the distances from calibration and of the soft-binned decision loss."""

import math
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from onlinecal.core.arrays import Ints, cells
from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import FINEST, Floats, JointDistribution
from onlinecal.core.sums import grouped, products, running
from onlinecal.core.validation import integer
from onlinecal.core.words import number_of
from onlinecal.measures.witnesses.base import Bracket, Witness, between, hinges, vector


@dataclass(frozen=True, eq=False)
class Potentials(Witness):
    """Potentials a(u), b(u) of y = 1 and y = 0: they prove that no calibrated distribution is nearer to Γ.

    They are made 1-Lipschitz on the levels, and extended from them as low as that allows. They prove E[a(v) y +
    b(v) (1 − y)] − max over all u in [0, 1] of u a(u) + (1 − u) b(u). They are given at nodes, ascending values in
    [0, 1]; in between they are linear, beyond constant. No useful one leaves [−2, 2], to which others are cut.
    """

    side = "lower"
    about = ("distance_lower", "distance_upper")

    nodes: Floats
    ones: Floats
    zeros: Floats

    def bound(self, gamma: JointDistribution) -> float:
        v, nodes = gamma.predictions, _nodes(self.nodes)
        given = (vector("potentials", values, len(nodes)) for values in (self.ones, self.zeros))
        a, b = (lipschitz(v, np.interp(v, nodes, np.clip(values, -2.0, 2.0))) for values in given)
        gain = fsum(gamma.mass * (gamma.means * a + (1.0 - gamma.means) * b))
        return max(gain - max(_largest(v, a, b), 0.0), 0.0)

    def __str__(self) -> str:
        return f"potentials of outcomes 1 and 0 on {len(self.nodes)} values, which no calibrated distribution undercuts"


@dataclass(frozen=True, eq=False)
class CalibratedCoupling(Witness):
    """A calibrated distribution near Γ, and dual potentials that prove that none is much nearer.

    Above, the cost of moving the ones and zeros of Γ there, ∫ |C_1 − S_1| + |C_0 − S_0|. Before, the nodes are
    drawn towards 0 or 1 until the two mean outcomes agree. Below, as `Potentials`.

    Attributes
    ----------
    nodes, arriving : (m,) floats
        Ascending values u in [0, 1], and mass t(u), negative taken for 0 and of sum 1 when divided; a share u of it has
        y = 1, so that it is perfectly calibrated.
    ones, zeros : (m,) floats
        Potentials a(u), b(u) of y = 1 and y = 0.
    """

    side = "both"
    about = ("distance_lower",)

    nodes: Floats
    arriving: Floats
    ones: Floats
    zeros: Floats

    @property
    def potentials(self) -> Potentials:
        """The proof of the lower bound, alone."""
        return Potentials(self.nodes, self.ones, self.zeros)

    def bound(self, gamma: JointDistribution) -> Bracket:
        nodes = _nodes(self.nodes)
        arriving = np.maximum(vector("CalibratedCoupling.arriving", self.arriving, len(nodes)), 0.0)
        mass, ones, zeros = fsum(arriving), fsum(arriving * nodes), fsum(arriving * (1.0 - nodes))
        if not mass > 0.0:
            raise InvalidData("CalibratedCoupling: no mass arrives; expected a distribution")
        # Values are drawn towards the end that has too few outcomes, which changes the mean by what is missing.
        few_ones = fsum(gamma.mass * gamma.means) * mass
        few_zeros = fsum(gamma.mass * (1.0 - gamma.means)) * mass
        if zeros > few_zeros:
            nodes = 1.0 - (1.0 - nodes) * (few_zeros / zeros)
        elif ones > few_ones:
            nodes = nodes * (few_ones / ones)
        # No distance is above 1.
        upper = min(moving_cost(gamma, nodes, arriving / mass), 1.0)
        return between(self.potentials.bound(gamma), upper)

    def __str__(self) -> str:
        used = self.nodes[self.arriving > 1e-12]
        shown = ", ".join(f"{u:.4g}" for u in used[:6])
        more = ", …" if len(used) > 6 else ""
        moved = f"all forecasts moved to {len(used)} calibrated values ({shown}{more})"
        return f"{moved}, and potentials which none undercuts"


@dataclass(frozen=True, eq=False)
class LevelGroups(Witness):
    """A partition of the levels, by the group of each; each group is forecast by its mean outcome instead.

    These are the calibrated post-processings of Gopalan and Hu 2025, Definition 6.3. Levels of which one value is
    made are a group. The value is calibrated where it is their mean outcome. Every level in a group of its own is
    the recalibration of Definition 6.4, which moves predictions by the ECE.
    """

    side = "upper"
    about = ("distance_upper",)

    labels: Ints

    def values(self, gamma: JointDistribution) -> Floats:
        """The new value of each level: the mean outcome of its group."""
        given, w = vector("LevelGroups.labels", self.labels, gamma.levels), gamma.mass
        _, group, size = np.unique(given, return_inverse=True, return_counts=True)
        means = grouped(w * gamma.means, group, len(size)) / grouped(w, group, len(size))
        # A level on its own keeps its mean to the last digit, and where that is the forecast nothing moves.
        return np.where(size[group] == 1, gamma.means, means[group])

    def applied(self, gamma: JointDistribution) -> JointDistribution:
        """The joint distribution of the new predictions and the outcomes, which is calibrated."""
        values = self.values(gamma)
        order = np.argsort(values, kind="stable")
        v = values[order]
        return gamma.from_sorted_levels(v, gamma.counts[order], gamma.positives[order], v)

    def bound(self, gamma: JointDistribution) -> float:
        return fsum(gamma.mass * np.abs(gamma.predictions - self.values(gamma)))

    def __str__(self) -> str:
        levels, groups = len(self.labels), len(np.unique(self.labels))
        return f"{number_of(levels, 'level')} in {number_of(groups, 'group')}, each moved to its mean outcome"


def _nodes(nodes: Any) -> Floats:
    u = vector("nodes", nodes)
    if not (len(u) and u[0] >= 0.0 and u[-1] <= 1.0 and (np.diff(u) > 0.0).all()):
        raise InvalidData("nodes are not ascending values in [0, 1]; expected a grid of predictions")
    return u


def moving_cost(gamma: JointDistribution, nodes: Floats, arriving: Floats) -> float:
    """∫ |C_1 − S_1| + |C_0 − S_0|: the cheapest transport of Γ's ones and zeros to `arriving`."""
    place = np.concatenate((gamma.predictions, nodes))
    order = np.argsort(place, kind="stable")
    ones = np.concatenate((gamma.mass * gamma.means, -arriving * nodes))[order]
    zeros = np.concatenate((gamma.mass * (1.0 - gamma.means), -arriving * (1.0 - nodes)))[order]
    return fsum((np.abs(running(ones)) + np.abs(running(zeros)))[:-1] * np.diff(place[order]))


def lipschitz(v: Floats, values: Floats) -> Floats:
    """The largest 1-Lipschitz function below the values, each within some units of |value| + 1."""
    left = np.minimum.accumulate(values - v) + v
    right = np.minimum.accumulate((values + v)[::-1])[::-1] - v
    return np.minimum(left, right)


def _largest(v: Floats, a: Floats, b: Floats) -> float:
    """max over u in [0, 1] of u a(u) + (1 − u) b(u), a and b extended from the levels as low as 1-Lipschitz can be."""
    # In a gap each first falls with slope 1 and then rises. Only where a falls while b rises can it be largest inside.
    # The ends of the line stand for levels: there the potentials are what the next level leaves.
    x = np.concatenate(([0.0], v, [1.0]))
    a = np.concatenate(([a[0] - v[0]], a, [a[-1] - (1.0 - v[-1])]))
    b = np.concatenate(([b[0] - v[0]], b, [b[-1] - (1.0 - v[-1])]))
    gap = np.diff(x)
    turn_a, turn_b = (np.clip(0.5 * (p[:-1] - p[1:] + gap), 0.0, gap) for p in (a, b))
    # Where a falls and b rises, with s from the left end: (x + s)(a − s) + (1 − x − s)(b' + s), b' = b_right − gap.
    start = b[1:] - gap
    top = np.clip(0.25 * (a[:-1] - x[:-1] - start + 1.0 - x[:-1]), turn_b, np.maximum(turn_a, turn_b))
    best = -math.inf
    for s in (np.zeros(len(gap)), turn_a, turn_b, top, gap):
        u = x[:-1] + s
        one = np.maximum(a[:-1] - s, a[1:] - (gap - s))
        zero = np.maximum(b[:-1] - s, b[1:] - (gap - s))
        best = max(best, float((u * one + (1.0 - u) * zero).max()))
    return best


@dataclass(frozen=True)
class GridThreshold(Witness):
    """The threshold i of a grid of multiples of 1/m at which a binned decision loss is attained; all are compared.

    Actions change between (i − 1)/m and i/m; `soft` is whether predictions are rounded at random to both neighbours.
    """

    side = "both"
    about = ("scdl_binned",)

    threshold: int
    m: int
    soft: bool

    def bound(self, gamma: JointDistribution) -> Bracket:
        m = integer("GridThreshold", "m", self.m, 1, FINEST)
        i = integer("GridThreshold", "threshold", self.threshold, 1, m)
        at, losses = threshold_losses(gamma, m, bool(self.soft), i)
        return Bracket(float(losses[np.searchsorted(at, i)]), float(losses.max()))

    def __str__(self) -> str:
        how = "at random to a neighbouring multiple" if self.soft else "down to a multiple"
        return (
            f"predictions rounded {how} of 1/{self.m}; who acts one way up to {(self.threshold - 1) / self.m:.6g} and "
            f"another from {self.threshold / self.m:.6g} on loses most"
        )


def grid_bounds(gamma: JointDistribution, m: int) -> Bracket:
    """Bounds of the minimum of max(SCDL_m, 1/m) over all powers of two, from m and 2m.

    SCDL_m ≤ SCDL_2m, and coarser grids have 1/m' ≥ 2/m. Grids beyond 2⁵⁰ are not computed, but count below.
    """
    if m & (m - 1):
        raise InvalidData(f"a grid of 1/{m}; expected a power of two up to 2^50")
    here = float(threshold_losses(gamma, m, True)[1].max())
    lower, upper = min(here, 2.0 / m) if m > 1 else here, max(here, 1.0 / m)
    if lower < upper and m < FINEST:
        finer = float(threshold_losses(gamma, 2 * m, True)[1].max())
        lower = max(lower, min(finer, 1.0 / m))
    return between(lower, upper)


def threshold_losses(gamma: JointDistribution, m: int, soft: bool, also: int = 1) -> tuple[Ints, Floats]:
    """Thresholds i, `also` among them, where the loss can be largest (j and j + 1 of points with mass), and the losses.

    The loss at i is Σ_{j<i} (S_j − W_j i/m)_+ + Σ_{j≥i} (W_j (i − 1)/m − S_j)_+, with W_j and S_j the mass and the mass
    of ones at j/m.
    """
    down, up = _rounded(gamma.predictions, m, soft)
    point, place = np.unique(np.concatenate((down, down + 1)), return_inverse=True)
    part = np.concatenate((gamma.mass * (1.0 - up), gamma.mass * up))
    mass, ones = (grouped(x, place, len(point)) for x in (part, part * np.tile(gamma.means, 2)))
    some = mass > 0.0
    point, mass, ones = point[some], mass[some], ones[some]
    mean = np.minimum(ones / mass, 1.0)
    at = np.unique(np.concatenate((point, point + 1, [also])))
    at = at[(at >= 1) & (at <= m)]
    if (gamma.means == gamma.predictions).all():
        return at, np.zeros(len(at))
    # Lines of points below i begin with i = j + 1, those of points from i on, in the mirror, with i = j.
    rising = hinges(at / m, np.searchsorted(at, point + 1), mass, mean)
    last = np.searchsorted(at, point, side="right") - 1
    falling = hinges(-((at[::-1] - 1) / m), len(at) - 1 - last, mass, -mean)[::-1]
    return at, rising + falling


def _rounded(v: Floats, m: int, soft: bool) -> tuple[Ints, Floats]:
    """The point j of the grid below each v, and the share of it that is rounded up to j + 1."""
    if not soft:
        return cells(v, m), np.zeros(len(v))
    product, lost = products(v, float(m))  # a share is small beside v m, and not to be lost
    nearest, point = np.rint(product), np.floor(product)
    point -= (product - point) + lost < 0.0
    share = np.clip((product - point) + lost, 0.0, 1.0)
    here = nearest / m == v  # a float that is j/m, rounded, is that point of the grid
    return np.where(here, nearest, point).astype(np.int64), np.where(here, 0.0, share)
