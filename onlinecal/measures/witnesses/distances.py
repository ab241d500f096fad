"""Witnesses of the distances from calibration: a coupling, potentials, and groups of levels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.words import number_of
from onlinecal.measures.witnesses.base import WRONG, Witness, integers, vector
from onlinecal.measures.witnesses.sums import SLACK, grouped, masses, running, total


@dataclass(frozen=True, eq=False)
class Potentials(Witness):
    """Potentials a(u), b(u) of y = 1 and y = 0: they prove that no calibrated distribution is nearer to Γ.

    Made 1-Lipschitz on the levels, and extended from them as low as that allows, they prove
    E[a(v) y + b(v) (1 − y)] − max over all u in [0, 1] of u a(u) + (1 − u) b(u).

    Attributes
    ----------
    nodes : (m,) floats
        Ascending values in [0, 1]; in between the potentials are linear, beyond constant.
    ones, zeros : (m,) floats
        a and b at the nodes.
    """

    side = "lower"

    nodes: Floats
    ones: Floats
    zeros: Floats

    @property
    def about(self) -> Mapping[str, Mapping[str, Any]]:
        return {"distance_lower": {}, "distance_upper": {}}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        return _dual(gamma, _nodes(self.nodes), self.ones, self.zeros), math.inf

    def __str__(self) -> str:
        return f"potentials of outcomes 1 and 0 on {len(self.nodes)} values, which no calibrated distribution undercuts"


@dataclass(frozen=True, eq=False)
class CalibratedCoupling(Witness):
    """A calibrated distribution near Γ, and dual potentials that prove that none is much nearer.

    Above, the cost of moving the ones and zeros of Γ there, ∫ |C_1 − S_1| + |C_0 − S_0|, after the nodes are drawn
    towards 0 or 1 by what rounding has left between the two mean outcomes. Below, as `Potentials`.

    Attributes
    ----------
    nodes : (m,) floats
        Ascending values u in [0, 1].
    arriving : (m,) floats
        Mass t(u) ≥ 0; a share u of it has y = 1, so that it is perfectly calibrated.
    ones, zeros : (m,) floats
        Potentials a(u), b(u) of y = 1 and y = 0.
    """

    side = "both"

    nodes: Floats
    arriving: Floats
    ones: Floats
    zeros: Floats

    @property
    def about(self) -> Mapping[str, Mapping[str, Any]]:
        return {"distance_lower": {}}

    @property
    def potentials(self) -> Potentials:
        """What proves the lower bound, alone."""
        return Potentials(self.nodes, self.ones, self.zeros)

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        nodes = _nodes(self.nodes)
        arriving = vector("arriving", self.arriving, len(nodes))
        if not (arriving >= 0.0).all():
            raise InvalidData("a mass that arrives is negative; expected a distribution")
        w = masses(gamma)
        one, zero = w * gamma.means, w * (1.0 - gamma.means)
        mass, ones, zeros = total(arriving), total(arriving * nodes), total(arriving * (1.0 - nodes))
        for what, have, want in (("mass", mass, 1.0), ("mean outcome", ones, total(one))):
            if not abs(have - want) <= WRONG:
                raise InvalidData(f"what arrives has {what} {have!r}; expected {want!r}")
        arriving = arriving / mass
        # Values are drawn towards the end that has too few outcomes, which changes the mean by what is missing.
        few_zeros, few_ones = total(zero) * mass, total(one) * mass
        if zeros > few_zeros:
            nodes = 1.0 - (1.0 - nodes) * (few_zeros / zeros)
        elif ones > few_ones:
            nodes = nodes * (few_ones / ones)
        cost = _moved(gamma.predictions, one, nodes, arriving * nodes)
        cost += _moved(gamma.predictions, zero, nodes, arriving * (1.0 - nodes))
        # No distance is above 1.
        return _dual(gamma, _nodes(self.nodes), self.ones, self.zeros), min(cost + 4.0 * SLACK, 1.0)

    def __str__(self) -> str:
        used = self.nodes[self.arriving > 1e-12]
        shown = ", ".join(f"{u:.4g}" for u in used[:6])
        more = ", …" if len(used) > 6 else ""
        moved = f"all forecasts moved to {len(used)} calibrated values ({shown}{more})"
        return f"{moved}, and potentials which none undercuts"


@dataclass(frozen=True, eq=False)
class LevelGroups(Witness):
    """A partition of the levels; each group is forecast by its mean outcome instead.

    These are the calibrated post-processings of Gopalan and Hu 2025, Definition 6.3: levels of which one value is made
    are a group, and the value is calibrated where it is their mean outcome. Every level in a group of its own is the
    recalibration of Definition 6.4, which moves predictions by the ECE.

    Attributes
    ----------
    labels : (k,) ints
        The group of each level.
    """

    side = "upper"

    labels: NDArray[np.int64]

    @property
    def about(self) -> Mapping[str, Mapping[str, Any]]:
        return {"distance_upper": {}}

    def values(self, gamma: JointDistribution) -> Floats:
        """The new value of each level: the mean outcome of its group."""
        labels = self._labels(gamma)
        w = masses(gamma)
        groups = labels.max() + 1
        means = grouped(w * gamma.means, labels, groups) / grouped(w, labels, groups)
        # A level on its own keeps its mean to the last digit, and where that is the forecast nothing moves.
        return np.where(_alone(labels), gamma.means, means[labels])

    def applied(self, gamma: JointDistribution) -> JointDistribution:
        """The joint distribution of the new predictions and the outcomes, which is calibrated."""
        values = self.values(gamma)
        order = np.argsort(values, kind="stable")
        v = values[order]
        return gamma.from_sorted_levels(v, gamma.counts[order], gamma.positives[order], v)

    def _labels(self, gamma: JointDistribution) -> NDArray[np.int64]:
        """The groups, numbered from 0."""
        given = integers("labels", self.labels)
        if len(given) != gamma.levels:
            raise InvalidData(f"groups of {len(given)} levels for Γ with {gamma.levels}; expected as many")
        return np.unique(given, return_inverse=True)[1]

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        labels = self._labels(gamma)
        w = masses(gamma)
        alone = _alone(labels)
        moved = w * np.abs(gamma.predictions - self.values(gamma))
        rounded = total(w[~alone]) if not alone.all() else 0.0
        cost = total(moved)
        return -math.inf, cost + SLACK * (cost + rounded)

    def __str__(self) -> str:
        levels, groups = len(self.labels), len(np.unique(self.labels))
        return f"{number_of(levels, 'level')} in {number_of(groups, 'group')}, each moved to its mean outcome"


def _alone(labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which levels are groups of their own."""
    return np.bincount(labels)[labels] == 1


def _nodes(nodes: Any) -> Floats:
    u = vector("nodes", nodes)
    if not (len(u) and u[0] >= 0.0 and u[-1] <= 1.0 and (np.diff(u) > 0.0).all()):
        raise InvalidData("nodes are not ascending values in [0, 1]; expected a grid of predictions")
    return u


def _moved(v: Floats, leave: Floats, u: Floats, arrive: Floats) -> float:
    """∫ |mass that has left − mass that has arrived| over [0, 1]."""
    place = np.concatenate((v, u))
    order = np.argsort(place, kind="stable")
    height = np.abs(running(np.concatenate((leave, -arrive))[order])[:-1])
    return float(total(height * np.diff(place[order])))


def _dual(gamma: JointDistribution, nodes: Floats, ones: Any, zeros: Any) -> float:
    """The lower bound that the potentials prove."""
    v = gamma.predictions
    a, b = (
        lipschitz(v, np.interp(v, nodes, vector(what, values, len(nodes))))
        for what, values in (("ones", ones), ("zeros", zeros))
    )
    w = masses(gamma)
    gain = total(w * gamma.means * a) + total(w * (1.0 - gamma.means) * b)
    size = 1.0 + float(np.abs(a).max()) + float(np.abs(b).max())
    return float(gain - max(_largest(v, a, b), 0.0) - 4.0 * SLACK * size)


def lipschitz(v: Floats, values: Floats) -> Floats:
    """The largest 1-Lipschitz function below the values, each within some units of |value| + 1."""
    left = np.minimum.accumulate(values - v) + v
    right = np.minimum.accumulate((values + v)[::-1])[::-1] - v
    return np.minimum(left, right)


def _largest(v: Floats, a: Floats, b: Floats) -> float:
    """max over u in [0, 1] of u a(u) + (1 − u) b(u), a and b extended from the levels as low as 1-Lipschitz can be.

    In the gap from one level to the next each first falls with slope 1 and then rises. Between the two turns and the
    ends of the gap this is a quadratic; where both rise or both fall it is linear or convex, and where a rises while b
    falls convex, so that only where a falls while b rises it can be largest inside.
    """
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
