"""Distances from calibration: lower (an exact linear program on a line), upper and true (groupings)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal._compile import kernel
from onlinecal.errors import InvalidData, InvalidParameter
from onlinecal.joint import JointDistribution
from onlinecal.measures.base import Bracket, Measure
from onlinecal.measures.distance_program import (
    bracketed,
    dual_value,
    moving_cost,
    on_nodes,
)
from onlinecal.measures.interval import _best_partition, _integer, _prefix, _starts

Floats = NDArray[np.float64]

# Numbers of levels up to which the lower distance is closed to 1e-9, and beyond it to 1e-3.
_CLOSED = 500
# Blocks of the contiguous grouping where every end would be too many.
_BLOCKS = 1000


def distance_lower(gamma: JointDistribution, *, tolerance: float | None = None) -> Bracket:
    """Lower distance from calibration: the cheapest coupling of Γ with a perfectly calibrated distribution.

    dCE_low(Γ) = min over (u, v, y) with (v, y) ~ Γ and E[y | u] = u of E|u − v|. With t(u) ≥ 0 the mass that
    arrives at u and C_y(x) = Γ(v ≤ x, y), this is
    min over t of ∫ |C_1(x) − Σ_{u≤x} u t(u)| + |C_0(x) − Σ_{u≤x} (1−u) t(u)| dx,
    on finitely many u a linear program along a line. Its potentials a, b give the dual bound
    E[a(v) y + b(v)(1 − y)] − δ, δ = max over all u in [0, 1] of u a(u) + (1−u) b(u), in closed form between
    nodes; the maxima become new u.

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    tolerance : float, optional, > 0
        Width of the bracket wanted. Default: 1e-9 for k ≤ 500, else 1e-3.

    Returns
    -------
    Bracket
        Both ends certified: above by a coupling, below by a dual function (`distance_lower_witness` shows
        both). No wider than the tolerance, save where 20 refinements or 10 000 nodes do not reach it, or
        levels lie within 1e-9 of 0 or 1 (the solver drops coefficients below 1e-9: up to 2e-9 then). For
        k ≤ 500 all levels are nodes from the start; beyond, nodes are even at first, and the program sees
        each level split linearly onto its two neighbours. Some 20 ms at k = 60, 0.1 s at most k by default.

    Raises
    ------
    InvalidParameter
        On a tolerance that is not positive.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 5.3, linear programs (11) and (12).

    Deviations
    ----------
    The program is written with cumulative masses instead of couplings: O(nodes) variables instead of their
    square.

    Examples
    --------
    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> bracket = distance_lower(gamma)
    >>> round(bracket.lower, 8), bracket.width < 1e-9
    (0.1, True)
    """
    plan = distance_lower_witness(gamma, tolerance=tolerance)
    return plan.bracket(gamma)


@dataclass(frozen=True, eq=False)
class CalibratedCoupling:
    """A calibrated distribution near Γ, and dual potentials that prove that none is much nearer.

    Attributes
    ----------
    nodes : (m,) floats
        Values u from 0 to 1.
    arriving : (m,) floats
        Mass t(u) ≥ 0; a share u of it has y = 1, so that it is perfectly calibrated.
    ones, zeros : (m,) floats
        Potentials a(u), b(u) of y = 1 and y = 0, 1-Lipschitz.
    """

    nodes: Floats
    arriving: Floats
    ones: Floats
    zeros: Floats

    def value(self, gamma: JointDistribution) -> float:
        """E|u − v| of the best coupling of Γ with `arriving`: an upper bound, attained within the bracket.

        Raises
        ------
        InvalidData
            If `arriving` is negative somewhere, or does not have Γ's total mass and base rate (up to 1e-12).
        """
        if not (self.arriving >= 0.0).all():
            raise InvalidData("a mass that arrives is negative; expected a distribution")
        for what, have, want in (
            ("mass", float(self.arriving.sum()), 1.0),
            ("mean outcome", float(self.arriving @ self.nodes), float(gamma.mass @ gamma.means)),
        ):
            if not abs(have - want) <= 1e-12:
                raise InvalidData(f"what arrives has {what} {have!r}; expected {want!r}")
        return moving_cost(gamma, self.nodes, self.arriving)

    def lower(self, gamma: JointDistribution) -> float:
        """The dual bound, after making the potentials feasible; from the potentials alone."""
        return dual_value(gamma, self.nodes, self.ones, self.zeros)[0]

    def bracket(self, gamma: JointDistribution) -> Bracket:
        """[lower(gamma), value(gamma)]."""
        upper = self.value(gamma)
        return Bracket(min(self.lower(gamma), upper), upper)

    def __str__(self) -> str:
        used = self.nodes[self.arriving > 1e-12]
        shown = ", ".join(f"{u:.4g}" for u in used[:6])
        more = ", …" if len(used) > 6 else ""
        return f"all forecasts moved to {len(used)} calibrated values ({shown}{more})"


def distance_lower_witness(gamma: JointDistribution, *, tolerance: float | None = None) -> CalibratedCoupling:
    """The coupling and the dual potentials behind `distance_lower`.

    Parameters
    ----------
    gamma, tolerance
        As in `distance_lower`.

    Returns
    -------
    CalibratedCoupling
        Its `value(gamma)` is the upper end of the bracket, its `lower(gamma)` the lower end.

    Raises
    ------
    InvalidParameter
        As `distance_lower`.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), linear programs (11) and (12).

    Deviations
    ----------
    As `distance_lower`.

    Examples
    --------
    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    >>> print(distance_lower_witness(gamma))
    all forecasts moved to 1 calibrated values (0.5)
    """
    small = gamma.levels <= _CLOSED
    width = (1e-9 if small else 1e-3) if tolerance is None else tolerance
    if not (isinstance(width, (int, float, np.number)) and width > 0.0):
        raise InvalidParameter(f"tolerance = {tolerance!r}; expected a positive width")
    if not gamma.residuals.any():  # calibrated to the last digit: nothing moves
        nodes, arriving = on_nodes(gamma)
        return CalibratedCoupling(nodes, arriving, np.zeros(len(nodes)), np.zeros(len(nodes)))
    return CalibratedCoupling(*bracketed(gamma, float(width), every_level=small))


def distance_upper(gamma: JointDistribution, *, max_levels: int = 12) -> Bracket:
    """Upper distance from calibration: the cheapest way to move whole levels so that all are calibrated.

    dCE_up(Γ) = min over partitions of the levels into groups, each moved to its mean outcome, of
    Σ_i w_i |v_i − mean of i's group|. Groups need not be contiguous.

    Parameters
    ----------
    gamma : JointDistribution
        Γ with k levels.
    max_levels : int, default 12, 1 to 16
        Exact by enumeration (O(3^k)) up to this k, else a bracket.

    Returns
    -------
    Bracket
        Of width 0 for k ≤ max_levels. Otherwise below: the lower end of `distance_lower`; above: the best
        of the partition of `interval_ce`, the levels alone (the ECE), and contiguous groups that end at up
        to 1000 blocks.

    Raises
    ------
    InvalidParameter
        On max_levels out of range.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 5.2.

    Deviations
    ----------
    None.

    Examples
    --------
    Lemma 4.5: a fair coin forecast as 0.4 or 0.6.

    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_levels([0.4, 0.6], [1, 1], [0.5, 0.5])
    >>> round(distance_upper(gamma).upper, 12)
    0.1
    """
    labels, exact = _grouping(gamma, max_levels)
    upper = LevelGroups(labels).value(gamma)
    if exact:
        return Bracket(upper, upper)
    return Bracket(min(distance_lower(gamma).lower, upper), upper)


@dataclass(frozen=True, eq=False)
class LevelGroups:
    """A partition of the levels; each group is forecast by its mean outcome instead.

    Attributes
    ----------
    labels : (k,) ints
        The group of each level.
    """

    labels: NDArray[np.int64]

    def value(self, gamma: JointDistribution) -> float:
        """Σ w_i |v_i − mean outcome of i's group|.

        Raises
        ------
        InvalidData
            If Γ has another number of levels.
        """
        if len(self.labels) != gamma.levels:
            raise InvalidData(
                f"groups of {len(self.labels)} levels for Γ with {gamma.levels}; expected as many"
            )
        mass = np.bincount(self.labels, weights=gamma.mass)
        ones = np.bincount(self.labels, weights=gamma.mass * gamma.means)
        # A level on its own keeps its mean to the last digit, and where that is the forecast nothing moves.
        alone = np.bincount(self.labels)[self.labels] == 1
        means = np.where(alone, gamma.means, ones[self.labels] / mass[self.labels])
        return float(gamma.mass @ np.abs(gamma.predictions - means))

    def __str__(self) -> str:
        groups = len(np.unique(self.labels))
        return f"{len(self.labels)} levels in {groups} groups, each moved to its mean outcome"


def distance_upper_witness(gamma: JointDistribution, *, max_levels: int = 12) -> LevelGroups:
    """The groups of levels behind the upper end of `distance_upper`.

    Parameters
    ----------
    gamma, max_levels
        As in `distance_upper`.

    Returns
    -------
    LevelGroups
        Its `value(gamma)` is the upper end of the bracket.

    Raises
    ------
    InvalidParameter
        As `distance_upper`.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 5.2.

    Deviations
    ----------
    None.

    Examples
    --------
    >>> from onlinecal.joint import JointDistribution
    >>> gamma = JointDistribution.from_levels([0.4, 0.6], [1, 1], [0.5, 0.5])
    >>> print(distance_upper_witness(gamma))
    2 levels in 1 groups, each moved to its mean outcome
    """
    return LevelGroups(_grouping(gamma, max_levels)[0])


def true_distance(p: ArrayLike, y: ArrayLike, *, max_rounds: int = 12) -> Bracket:
    """Distance of a finished sequence from the nearest perfectly calibrated one, divided by its length.

    CalDist(p, y)/T = min over partitions of the rounds into groups, each forecast by its mean outcome, of
    (1/T) Σ_t |p_t − mean of t's group|.

    Parameters
    ----------
    p : (T,) array_like
        Predictions in [0, 1].
    y : (T,) array_like
        Outcomes 0 or 1.
    max_rounds : int, default 12, 1 to 16
        Exact by enumeration (O(3^T)) up to this T, else a bracket.

    Returns
    -------
    Bracket
        Of width 0 for T ≤ max_rounds; otherwise from `distance_lower` to `distance_upper`.

    Raises
    ------
    InvalidData
        On p or y out of range.
    InvalidParameter
        On max_rounds out of range.

    Source
    ------
    Qiao, Zheng (2024), CalDist; Błasiok, Gopalan, Hu, Nakkiran (2023), §4, for its place between the bounds.

    Deviations
    ----------
    Divided by T, as all measures here.

    Examples
    --------
    >>> round(true_distance([0.4, 0.6], [1, 0]).upper, 12)
    0.1
    """
    most = _enumerable("max_rounds", max_rounds)
    gamma = JointDistribution.from_samples(p, y)
    predictions, outcomes = np.asarray(p, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(predictions) <= most:
        share = np.full(len(predictions), 1.0 / len(predictions))
        value = float(_enumerate(predictions, share, outcomes)[0])
        return Bracket(value, value)
    lower, upper = distance_lower(gamma).lower, distance_upper(gamma).upper
    return Bracket(min(lower, upper), upper)


# ---------------------------------------------------------------- inside


def _enumerable(name: str, value: int) -> int:
    if _integer(name, value) > 16:
        raise InvalidParameter(f"{name} = {value!r}; expected at most 16, for 3^16 steps take a second")
    return int(value)


def _grouping(gamma: JointDistribution, max_levels: int) -> tuple[NDArray[np.int64], bool]:
    """The best groups found, and whether they are the best of all."""
    most = _enumerable("max_levels", max_levels)
    if not gamma.residuals.any():
        return np.arange(gamma.levels), True
    if gamma.levels <= most:
        return _enumerate(gamma.predictions, gamma.mass, gamma.means)[1], True
    k = gamma.levels
    cuts = np.unique(np.linspace(0, k, min(k, _BLOCKS) + 1).astype(np.int64))
    before = _contiguous(
        gamma.predictions,
        _prefix(gamma.mass),
        _prefix(gamma.mass * gamma.means),
        _prefix(gamma.mass * gamma.predictions),
        cuts,
    )
    found = [np.arange(k), _labels(k, cuts[_starts(before)])]
    if _BLOCKS < k <= 200_000:
        found.append(_labels(k, _best_partition(gamma, "mean", None)[1]))
    return min(found, key=lambda labels: LevelGroups(labels).value(gamma)), False


def _labels(k: int, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    steps = np.zeros(k, np.int64)
    steps[starts[1:]] = 1
    return np.cumsum(steps)


@kernel
def _contiguous(v, mass, ones, moved, cuts):
    """Where the last group before each cut starts, for the best contiguous groups that end at cuts."""
    m = len(cuts) - 1
    cost = np.zeros(m + 1)
    before = np.zeros(m + 1, np.int64)
    for b in range(1, m + 1):
        best = np.inf
        end = cuts[b]
        for a in range(b - 1, -1, -1):
            start = cuts[a]
            if cost[a] >= best:
                continue
            mean = (ones[end] - ones[start]) / (mass[end] - mass[start])
            low, high = start, end  # the first level of the group above the mean
            while low < high:
                middle = (low + high) >> 1
                if v[middle] > mean:
                    high = middle
                else:
                    low = middle + 1
            below = mean * (mass[low] - mass[start]) - (moved[low] - moved[start])
            above = (moved[end] - moved[low]) - mean * (mass[end] - mass[low])
            if cost[a] + below + above < best:
                best = cost[a] + below + above
                before[b] = a
        cost[b] = best
    return before


@kernel
def _enumerate(v, w, q):
    """Least cost of all partitions into groups, and the groups, over subsets of at most 16 items."""
    k = len(v)
    full = (1 << k) - 1
    single = np.zeros(full + 1)
    for s in range(1, full + 1):
        mass = 0.0
        ones = 0.0
        for i in range(k):
            if s >> i & 1:
                mass += w[i]
                ones += w[i] * q[i]
        mean = ones / mass
        for i in range(k):
            if s >> i & 1:
                single[s] += w[i] * abs(v[i] - mean)
    cost = np.zeros(full + 1)
    choice = np.zeros(full + 1, np.int64)
    for s in range(1, full + 1):
        # The group of the lowest item: that item and any subset of the others.
        lowest = s & -s
        rest = s ^ lowest
        part = rest
        best = np.inf
        while True:
            here = single[part | lowest] + cost[rest ^ part]
            if here < best:
                best = here
                choice[s] = part | lowest
            if part == 0:
                break
            part = (part - 1) & rest
        cost[s] = best
    labels = np.zeros(k, np.int64)
    left = full
    group = 0
    while left:
        for i in range(k):
            if choice[left] >> i & 1:
                labels[i] = group
        left ^= choice[left]
        group += 1
    return cost[full], labels


def _modulus(moved: float, *, tolerance: float | None = None) -> float:
    """By how much dCE_low changes at most when predictions move by `moved` on average: a triangle inequality."""
    return moved


MEASURES = (
    Measure(
        function=distance_lower,
        symbol="dCE_low",
        source="BGHN23 Def. 5.3",
        complexity="linear programs of O(k) variables, k ≤ 500; beyond, 1000 nodes",
        bracket=True,
        continuous="yes",
        complete="yes (c = 1)",
        sound="yes (s = 2)",
        decisions="",
        witness=distance_lower_witness,
        modulus=_modulus,
    ),
    Measure(
        function=distance_upper,
        symbol="dCE_up",
        source="BGHN23 Def. 5.2",
        complexity="O(3^k), k ≤ 12; beyond, a bracket",
        bracket=True,
        continuous="no",
        complete="yes (c = 1/2)",
        sound="yes (s = 1)",
        decisions="",
        witness=distance_upper_witness,
    ),
)
