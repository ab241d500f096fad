"""Soft-binned calibration decision loss, and the response to a forecast that it vouches for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import FINEST, JointDistribution, of_gamma
from onlinecal.core.validation import integer, probability
from onlinecal.measures._kinks import falling, rising
from onlinecal.measures.base import Measure, Modulus, Sampling
from onlinecal.measures.decision import cdl
from onlinecal.measures.decision_sampling import (
    grid_cells,
    grid_errors,
    grid_means,
    grids_errors,
    grids_limits,
    grids_means,
)
from onlinecal.measures.sampling import Ends, Known, halving
from onlinecal.measures.witnesses.base import Witness, whole
from onlinecal.measures.witnesses.grids import GridThreshold, grid_bounds, threshold_losses
from onlinecal.measures.witnesses.sums import times


@dataclass(frozen=True)
class SoftRounding(Witness):
    """Round the prediction at random to a neighbouring multiple of 1/m, keeping the mean; then best-respond.

    With the m at which `scdl` attains its minimum, the swap regret of this response is at most 4 SCDL, for
    every task with payoffs in [0, 1]; for every m it is at most 2 (SCDL_m + 1/m). As a witness of `scdl`, m must be a
    power of two: max(SCDL_m, 1/m) is an upper bound, and SCDL_m and SCDL_2m, 1/m and 2/m give a lower one.

    Attributes
    ----------
    bins : int or None
        m; None leaves predictions as they are (a perfectly calibrated Γ).

    Source
    ------
    Bairaktari, Hu, Nguyen & Ullman 2026, Definitions 4.1, 4.2, Theorem 4.2.

    Deviations
    ----------
    none

    Examples
    --------
    >>> SoftRounding(4).law(0.375)
    ((0.25, 0.5), (0.5, 0.5))
    """

    side = "both"

    bins: int | None

    @property
    def about(self) -> Mapping[str, Mapping[str, Any]]:
        return {"scdl": {}}

    def __post_init__(self) -> None:
        if self.bins is not None:
            integer("SoftRounding", "bins", self.bins, 1, FINEST)

    def law(self, v: float) -> tuple[tuple[float, float], ...]:
        """The rounded predictions and their probabilities, given v."""
        v = probability("v", v)
        if self.bins is None:
            return ((v, 1.0),)
        j, up = _place(v, self.bins)
        both = ((j / self.bins, 1.0 - up), ((j + 1) / self.bins, up))
        return tuple((x, p) for x, p in both if p > 0.0)

    def rounded(self, gamma: JointDistribution) -> JointDistribution:
        """Γ of the rounded predictions, in expectation over the rounding."""
        if self.bins is None:
            return gamma
        index, n, s = _points(gamma.predictions, gamma.counts, gamma.positives, self.bins, True)
        return JointDistribution.from_counts(index / self.bins, n, np.minimum(s, n))

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        calibrated = bool((gamma.means == gamma.predictions).all())
        if self.bins is None and not calibrated:
            raise InvalidData(f"{gamma!r} is not calibrated; expected a grid to round to")
        if calibrated:
            return 0.0, 0.0
        return grid_bounds(gamma, whole("bins", self.bins, 1, FINEST))

    def __str__(self) -> str:
        if self.bins is None:
            return "best-respond to the prediction itself"
        return (
            f"round the prediction at random to a neighbouring multiple of 1/{self.bins}, then best-respond"
        )


@of_gamma
def scdl_binned(gamma: JointDistribution, *, m: int = 16, soft: bool = True) -> float:
    """Soft-binned decision loss on the grid of multiples of 1/m.

    With W_j and Q_j the mass and the mean outcome at j/m after random rounding (weights (1 − m|v − j/m|)_+),
    SCDL_m = max over 1 ≤ i ≤ m of Σ_{j≤i−1} W_j (Q_j − i/m)_+ + Σ_{j≥i} W_j ((i−1)/m − Q_j)_+.

    Parameters
    ----------
    gamma : JointDistribution
    m : int, default 16
        From 1 to 2⁵⁰.
    soft : bool, default True
        False rounds down instead (hard bins, [j/m, (j+1)/m)).

    Returns
    -------
    float
        In [0, 1]; soft: SCDL_m ≤ SCDL_2m ≤ cdl. Exactly 0 where every level has q_i = v_i.

    Raises
    ------
    InvalidParameter
        On m that is not such an integer, or soft that is not a boolean.

    Source
    ------
    Bairaktari, Hu, Nguyen & Ullman 2026, Definitions 1.1, 3.1.

    Deviations
    ----------
    none; hard bins are the paper's contrast (its discretisation of binned ECE).

    Examples
    --------
    >>> gamma = JointDistribution.from_samples([0.499, 0.501], [0, 1])
    >>> round(scdl_binned(gamma, m=2), 6), scdl_binned(gamma, m=2, soft=False)
    (0.0, 0.0)
    >>> round(scdl_binned(gamma, m=1024), 4)
    0.2485
    """
    m = integer("scdl_binned", "m", m, 1, FINEST)
    if not isinstance(soft, bool | np.bool_):
        raise InvalidParameter(f"scdl_binned: soft = {soft!r}; expected True or False")
    if (gamma.means == gamma.predictions).all():
        return 0.0
    return _scdl_m(gamma.predictions, gamma.counts, gamma.positives, m, bool(soft)) / gamma.weight


@of_gamma
def worst_grid_threshold(gamma: JointDistribution, *, m: int = 16, soft: bool = True) -> GridThreshold:
    """The threshold of the grid at which `scdl_binned` is attained.

    Parameters
    ----------
    gamma, m, soft
        As in `scdl_binned`.

    Raises
    ------
    InvalidParameter
        As `scdl_binned`.

    Source
    ------
    Bairaktari, Hu, Nguyen & Ullman 2026, Definition 1.1.

    Deviations
    ----------
    none

    Examples
    --------
    >>> print(worst_grid_threshold(JointDistribution.from_samples([0.25, 0.75], [1, 0]), m=4))
    predictions rounded at random to a neighbouring multiple of 1/4; who acts one way up to 0.25 and another from 0.5 on
    loses most
    """
    scdl_binned(gamma, m=m, soft=soft)  # checks the options
    at, losses = threshold_losses(gamma, m, soft)
    return GridThreshold(int(at[int(np.argmax(losses))]), int(m), soft)


@of_gamma
def scdl(gamma: JointDistribution) -> float:
    """Soft-binned calibration decision loss.

    min over m = 1, 2, 4, … of max(SCDL_m, 1/m): the grid is as fine as the error allows. SCDL_m rises and 1/m
    falls, so the search ends at the first m with SCDL_m ≥ 1/m. As SCDL_m ≤ CDL ≤ 2 ECE, it begins late.

    Parameters
    ----------
    gamma : JointDistribution

    Returns
    -------
    float
        In [0, 1]; exactly 0 where every level has q_i = v_i, otherwise at least 2⁻⁵⁰. `soft_rounding` is the
        response whose swap regret is at most 4 times this, for every task.

    Source
    ------
    Bairaktari, Hu, Nguyen & Ullman 2026, Definition 1.1, Lemma 3.3.

    Deviations
    ----------
    Grids finer than 2⁻⁵⁰ are not looked at.

    Examples
    --------
    >>> scdl(JointDistribution.from_levels([0.25, 0.75], [0.5, 0.5], [0.0, 1.0]))
    0.09375
    """
    value, _ = _scdl(gamma)
    return value


@of_gamma
def soft_rounding(gamma: JointDistribution) -> SoftRounding:
    """The response that `scdl` vouches for: rounding to the grid that attains its minimum.

    Source
    ------
    Bairaktari, Hu, Nguyen & Ullman 2026, Theorem 4.2.

    Deviations
    ----------
    none

    Examples
    --------
    >>> print(soft_rounding(JointDistribution.from_levels([0.25, 0.75], [0.5, 0.5], [0.0, 1.0])))
    round the prediction at random to a neighbouring multiple of 1/16, then best-respond
    """
    _, m = _scdl(gamma)
    return SoftRounding(m)


def rounded_down(gamma: JointDistribution, m: int) -> JointDistribution:
    """Γ of the predictions rounded down to multiples of 1/m: the hard bins of `scdl_binned`."""
    index, n, s = _points(gamma.predictions, gamma.counts, gamma.positives, m, False)
    return JointDistribution.from_counts(index / m, n, np.minimum(s, n))


def _scdl(gamma: JointDistribution) -> tuple[float, int | None]:
    """The value and the least m that attains it."""
    if (gamma.means == gamma.predictions).all():
        return 0.0, None
    # SCDL_m ≤ CDL ≤ 2 ECE < 1/m: no such m ends the search. The factor stands for rounding in ECE.
    bound = 2.0 * float(np.abs(gamma.residuals).sum()) * (1.0 + 1e-9)
    m = 1
    while 1.0 / m > bound and m < FINEST:
        m *= 2
    v, n, s = gamma.predictions, gamma.counts, gamma.positives
    tried = 0
    while True:
        if tried == 6:
            # Fine grids are slow, and all of these were too coarse: CDL is a closer bound than 2 ECE.
            bound = cdl(gamma) * (1.0 + 1e-9)
            while 1.0 / m > bound and m < FINEST:
                m *= 2
        tried += 1
        value = _scdl_m(v, n, s, m, True) / gamma.weight
        if value >= 1.0 / m:
            coarser = 2.0 / m
            return (coarser, m // 2) if m > 1 and coarser <= value else (min(value, 1.0), m)
        if m >= FINEST:
            return 1.0 / m, m
        m *= 2


@kernel
def _place(v, m):
    """j with j ≤ v m < j + 1 of the exact product (v = 1: j = m), and the weight that goes up to j + 1, v m − j.

    A float v that is the quotient j/m, rounded, is that point of the grid.
    """
    product, lost = times(v, float(m))
    nearest = round(product)
    if nearest / m == v:
        return int(nearest), 0.0
    j = int(product)
    if j > 0 and (product - j) + lost < 0.0:  # the product was rounded up to a grid point
        j -= 1
    return j, min(max((product - j) + lost, 0.0), 1.0)


@kernel
def _bin(v, m):
    """The number j of the hard bin [j/m, (j+1)/m) of v (v = 1: j = m), with edges as rounded to floats."""
    j = min(int(v * m), m)
    while j < m and v >= (j + 1) / m:
        j += 1
    while v < j / m:
        j -= 1
    return j


def _binned_modulus(moved: float, *, m: int = 16, soft: bool = True) -> float:
    m = integer("scdl_binned", "m", m, 1, FINEST)
    if not soft:
        raise InvalidParameter(
            "scdl_binned: moved predictions with soft = False; expected soft bins, for rounding down jumps"
        )
    return min(2.0 * m * moved, 2.0)


@kernel
def _points(v, n, s, m, soft):
    """The grid points that have weight after rounding: index, weight, weight of outcomes 1."""
    size = 2 * v.shape[0]
    index = np.empty(size, np.int64)
    weight = np.empty(size)
    ones = np.empty(size)
    used = 0
    for i in range(v.shape[0]):
        if soft:
            j, up = _place(v[i], m)
        else:
            j, up = _bin(v[i], m), 0.0
        # Levels ascend, so a point is at most one behind the last.
        if used > 1 and index[used - 2] == j:
            low = used - 2
        elif used > 0 and index[used - 1] == j:
            low = used - 1
        else:
            low = used
            used += 1
            index[low] = j
            weight[low] = 0.0
            ones[low] = 0.0
        weight[low] += n[i] * (1.0 - up)
        ones[low] += s[i] * (1.0 - up)
        if up > 0.0:
            high = low + 1
            if high == used:
                used += 1
                index[high] = j + 1
                weight[high] = 0.0
                ones[high] = 0.0
            weight[high] += n[i] * up
            ones[high] += s[i] * up
    keep = 0
    for c in range(used):
        if weight[c] > 0.0:
            index[keep] = index[c]
            weight[keep] = weight[c]
            ones[keep] = ones[c]
            keep += 1
    return index[:keep], weight[:keep], ones[:keep]


@kernel
def _scdl_m(v, n, s, m, soft):
    """SCDL_m, weighted by n.

    As a function of i the sum is convex between two grid points with mass, so the maximum is at i = j or j +
    1 for one of them.
    """
    index, weight, ones = _points(v, n, s, m, soft)
    size = index.shape[0]
    mean = np.empty(size)
    i = np.empty(2 * size, np.int64)
    here = np.empty(size, np.int64)  # where i = j, and where i = j + 1, among the candidates
    after = np.empty(size, np.int64)
    used = 0
    for c in range(size):
        mean[c] = min(ones[c] / weight[c], 1.0)
        if used > 0 and i[used - 1] == index[c]:
            here[c] = used - 1
        elif index[c] >= 1:
            i[used] = index[c]
            here[c] = used
            used += 1
        else:
            here[c] = -1
        after[c] = used
        if index[c] < m:
            i[used] = index[c] + 1
            used += 1
    if used == 0:
        return 0.0
    total = np.zeros(used)
    t = np.empty(used)
    for c in range(used):
        t[c] = i[c] / m
    rising(t, after, weight, mean, total)
    for c in range(used):
        t[c] = (i[c] - 1) / m
    falling(t, here, weight, mean, total)
    return total.max()


def _limits(known: Known, radii: Any) -> Ends:
    values = [scdl_binned(known.gamma, m=int(m)) for m in halving(known.samples)]
    return grids_limits(known, radii, np.array(values))


MEASURES = (
    Measure(
        function=scdl_binned,
        symbol="SCDL_m",
        source="BHNU26 Def. 1.1",
        complexity="O(k + p log p), p ≤ min(2k, m + 1)",
        witness=worst_grid_threshold,
        sampling=Sampling(
            grid_errors,
            "a supremum of means (BHNU26 Lemma 7.2)",
            cells=grid_cells,
            instead="scdl_binned with a smaller m, or scdl",
            means=grid_means,
        ),
        # Masses and ones at the points of the grid change by at most 2m E|v − v'| in all, and thresholds are in [0, 1].
        modulus=Modulus(
            "min(2mδ, 2)",
            "the weights of soft rounding are m-Lipschitz at two points at a time",
            _binned_modulus,
        ),
        continuous="yes",
        complete="yes",
        sound="no",
        decisions="swap regret ≤ 2 (SCDL_m + 1/m) after rounding to 1/m, every task",
    ),
    Measure(
        function=scdl,
        symbol="SCDL",
        source="BHNU26 Def. 1.1",
        complexity="O(k log(1/SCDL))",
        continuous="1/2-Hölder",
        complete="yes",
        sound="yes",
        decisions="swap regret ≤ 4 SCDL after soft rounding, every task",
        witness=soft_rounding,
        sampling=Sampling(
            grids_errors,
            "SCDL_m is a supremum of means that grows with m (BHNU26 Lemma 3.3, Theorem 7.1)",
            limits=_limits,
            means=grids_means,
        ),
        # With s = √δ: a best 1/m of s or more is kept, for at most 2δ/s; a finer grid gives way to one with 1/m in
        # [s, 2s), which does not raise SCDL_m, for at most 2s.
        modulus=Modulus(
            "2√δ",
            "BHNU26 Theorem 5.1; that of scdl_binned, at 1/m from √δ on",
            lambda moved: 2.0 * math.sqrt(moved),
        ),
    ),
)
