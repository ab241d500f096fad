"""Soft-binned calibration decision loss, and the response to a forecast whose regret it bounds."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import FINEST, JointDistribution, of_gamma
from onlinecal.core.validation import integer
from onlinecal.measures._kinks import falling, rising
from onlinecal.measures.base import Measure, Modulus, Sampling
from onlinecal.measures.decision import cdl
from onlinecal.measures.decision_sampling import (
    grid_cells,
    grid_errors,
    grid_errors_at,
    grid_means,
    grids_errors,
    grids_limits,
    grids_means,
)
from onlinecal.measures.rounding import SoftRounding, points
from onlinecal.measures.sampling import Ends, Known, halving
from onlinecal.measures.witnesses.grids import GridThreshold, threshold_losses


@of_gamma
def scdl_binned(gamma: JointDistribution, *, m: int = 16, soft: bool = True) -> float:
    """Soft-binned decision loss on the grid of multiples of 1/m.

    With W_j and Q_j the mass and the mean outcome at j/m after random rounding (weights (1 − m|v − j/m|)_+),
    SCDL_m = max over 1 ≤ i ≤ m of Σ_{j≤i−1} W_j (Q_j − i/m)_+ + Σ_{j≥i} W_j ((i−1)/m − Q_j)_+.

    Parameters
    ----------
    m : int, default 16
        From 1 to 2⁵⁰.
    soft : bool, default True
        False rounds down instead: hard bins [j/m, (j+1)/m), the paper's contrast.

    Returns
    -------
    float
        In [0, 1]; soft: SCDL_m ≤ SCDL_2m ≤ cdl. Exactly 0 where every level has q_i = v_i.

    Source
    ------
    Bairaktari, Hu, Nguyen & Ullman 2026, Definitions 1.1, 3.1.

    Examples
    --------
    >>> gamma = JointDistribution.from_samples([0.499, 0.501], [0, 1])
    >>> round(scdl_binned(gamma, m=2), 6), scdl_binned(gamma, m=2, soft=False), round(scdl_binned(gamma, m=1024), 4)
    (0.0, 0.0, 0.2485)
    """
    m = _grid("scdl_binned", m, soft)
    if (gamma.means == gamma.predictions).all():
        return 0.0
    return _scdl_m(gamma.predictions, gamma.counts, gamma.positives, m, bool(soft)) / gamma.weight


@of_gamma
def soft_binned_loss(gamma: JointDistribution, *, m: int, threshold: int, soft: bool = True) -> float:
    """Soft-binned decision loss at one threshold of the grid of multiples of 1/m.

    Σ_{j≤i−1} W_j (Q_j − i/m)_+ + Σ_{j≥i} W_j ((i−1)/m − Q_j)_+, with W_j and Q_j as in `scdl_binned`, which is the
    largest of these: the loss of a decision maker whose action changes between (i − 1)/m and i/m.

    Parameters
    ----------
    m : int
        From 1 to 2⁵⁰.
    threshold : int
        i, from 1 to m.
    soft : bool, default True
        As in `scdl_binned`.

    Returns
    -------
    float
        In [0, scdl_binned]. O(k).

    Source
    ------
    Bairaktari, Hu, Nguyen & Ullman 2026, Definition 3.1.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.25, 0.75], [0.5, 0.5], [0.0, 1.0])
    >>> [soft_binned_loss(gamma, m=16, threshold=i) for i in (1, 4, 5, 16)]
    [0.0, 0.09375, 0.0, 0.0]
    """
    m = _grid("soft_binned_loss", m, soft)
    i = integer("soft_binned_loss", "threshold", threshold, 1, m)
    if (gamma.means == gamma.predictions).all():
        return 0.0
    j, n, s = points(gamma.predictions, gamma.counts, gamma.positives, m, bool(soft))
    lost = np.where(j < i, s - n * (i / m), n * ((i - 1) / m) - s)
    return float(np.maximum(lost, 0.0).sum()) / gamma.weight


def _grid(where: str, m: Any, soft: Any) -> int:
    """m, after both options were checked."""
    if not isinstance(soft, bool | np.bool_):
        raise InvalidParameter(f"{where}: soft = {soft!r}; expected True or False")
    return integer(where, "m", m, 1, FINEST)


@of_gamma
def worst_grid_threshold(gamma: JointDistribution, *, m: int = 16, soft: bool = True) -> GridThreshold:
    """The threshold of the grid at which `scdl_binned` is attained."""
    scdl_binned(gamma, m=m, soft=soft)  # checks the options
    at, losses = threshold_losses(gamma, m, soft)
    return GridThreshold(int(at[int(np.argmax(losses))]), int(m), soft)


@of_gamma
def scdl(gamma: JointDistribution) -> float:
    """Soft-binned calibration decision loss.

    min over m = 1, 2, 4, … of max(SCDL_m, 1/m): the grid is as fine as the error allows. SCDL_m rises and 1/m
    falls, so the search ends at the first m with SCDL_m ≥ 1/m. As SCDL_m ≤ CDL ≤ 2 ECE, it begins late.

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

    Examples
    --------
    >>> print(soft_rounding(JointDistribution.from_levels([0.25, 0.75], [0.5, 0.5], [0.0, 1.0])))
    round the prediction at random to a neighbouring multiple of 1/16, then best-respond
    """
    _, m = _scdl(gamma)
    return SoftRounding(m)


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


def _modulus(where: str, moved: float, *, m: int = 16, threshold: int = 1, soft: bool = True) -> float:
    if not soft:
        raise InvalidParameter(f"{where}: moved predictions with soft = False; expected soft bins")
    return min(2.0 * m * moved, 2.0)


@kernel
def _scdl_m(v, n, s, m, soft):
    """SCDL_m, weighted by n.

    As a function of i the sum is convex between two grid points with mass, so the maximum is at i = j or j +
    1 for one of them.
    """
    index, weight, ones = points(v, n, s, m, soft)
    size = index.shape[0]
    mean, i = np.empty(size), np.empty(2 * size, np.int64)
    here = np.empty(size, np.int64)  # where i = j, and where i = j + 1, among the candidates
    after, used = np.empty(size, np.int64), 0
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
    total, t = np.zeros(used), np.empty(used)
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
            partial(_modulus, "scdl_binned"),
        ),
        continuous="yes",
        complete="yes",
        sound="no",
        decisions="swap regret ≤ 2 (SCDL_m + 1/m) after rounding to 1/m, every task",
    ),
    Measure(
        function=soft_binned_loss,
        symbol="FDL_{m,i}",
        source="BHNU26 Def. 3.1",
        complexity="O(k)",
        example={"m": 3, "threshold": 2},
        sampling=Sampling(
            grid_errors_at,
            "a sum of suprema of means (BHNU26 Lemma 7.2)",
            cells=lambda gamma, **options: grid_cells(gamma, m=options["m"]),
            instead="soft_binned_loss with a smaller m, or scdl",
            means=lambda samples, **options: grid_means(samples, m=options["m"]),
        ),
        modulus=Modulus(
            "min(2mδ, 2)", "that of scdl_binned, at each threshold", partial(_modulus, "soft_binned_loss")
        ),
        continuous="yes",
        complete="yes",
        sound="no",
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
