"""Rounding predictions to a grid: at random to both neighbours, keeping the mean, or down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import cell
from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import FINEST, Floats, JointDistribution
from onlinecal.core.validation import check_unit, count, integer, probability, vector
from onlinecal.measures.witnesses.base import Witness, whole
from onlinecal.measures.witnesses.grids import grid_bounds
from onlinecal.measures.witnesses.sums import means_rounded, times


@dataclass(frozen=True)
class SoftRounding(Witness):
    """Round the prediction at random to a neighbouring multiple of 1/m, keeping the mean; then best-respond.

    With the m at which `scdl` attains its minimum, the swap regret of this response is at most 4 SCDL, for every task
    with payoffs in [0, 1]; for every m it is at most 2 (SCDL_m + 1/m). As a witness of `scdl`, m must be a power of
    two: max(SCDL_m, 1/m) is an upper bound, and SCDL_m and SCDL_2m, 1/m and 2/m give a lower one.

    Attributes
    ----------
    bins : int or None
        m; None leaves predictions as they are (a perfectly calibrated Γ).

    Source
    ------
    Bairaktari, Hu, Nguyen & Ullman 2026, Definitions 4.1, 4.2, Theorem 4.2.

    Examples
    --------
    >>> SoftRounding(4).law(0.375), SoftRounding(4).draw([0.375, 0.5], seed=1)
    (((0.25, 0.5), (0.5, 0.5)), array([0.25, 0.5 ]))
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

    def draw(self, p: ArrayLike, *, seed: int) -> Floats:
        """Predictions rounded at random, each by itself; `rounded` is their expectation.

        With m points and n predictions, the swap regret of best responses to the draws is at most
        2 (SCDL_m + 1/m + √((m + 1)/n) + √(2 ln(1/δ)/n)), for all tasks with payoffs in [0, 1] at once, with probability
        1 − δ or more (Lemma 7.4 and Theorem 4.4, with our constants). Proof: mass and mass of ones at the m + 1 points
        have standard deviations whose sum is at most √((m + 1)/n), the loss at a threshold changes by no more than
        these do, and one draw changes it by 2/n at most (McDiarmid). CDL of what lies on the grid is at most 2 (SCDL_m
        + 1/m) (Lemma 4.3).
        """
        v = vector("p", p)
        if len(v):
            check_unit("p", v)
        chance = np.random.default_rng(count("seed", seed, 0)).random(len(v))
        return v + 0.0 if self.bins is None else np.asarray(_drawn(v, chance, self.bins))

    def rounded(self, gamma: JointDistribution) -> JointDistribution:
        """Γ of the rounded predictions, in expectation over the rounding."""
        if self.bins is None:
            return gamma
        index, n, s = points(gamma.predictions, gamma.counts, gamma.positives, self.bins, True)
        return JointDistribution.from_counts(index / self.bins, n, np.minimum(s, n))

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        calibrated = bool((gamma.means == gamma.predictions).all())
        if self.bins is None and not calibrated:
            raise InvalidData(f"{gamma!r} is not calibrated; expected a grid to round to")
        if calibrated:  # a mean that was rounded may be off what is predicted, and then a grid is the best
            return 0.0, 1.0 / FINEST if means_rounded(gamma) > 0.0 else 0.0
        return grid_bounds(gamma, whole("bins", self.bins, 1, FINEST))

    def __str__(self) -> str:
        if self.bins is None:
            return "best-respond to the prediction itself"
        return (
            f"round the prediction at random to a neighbouring multiple of 1/{self.bins}, then best-respond"
        )


def rounded_down(gamma: JointDistribution, m: int) -> JointDistribution:
    """Γ of the predictions rounded down to multiples of 1/m: the hard bins of `scdl_binned`."""
    index, n, s = points(gamma.predictions, gamma.counts, gamma.positives, m, False)
    return JointDistribution.from_counts(index / m, n, np.minimum(s, n))


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
def _drawn(v, chance, m):
    """Each v rounded up where its chance, uniform on [0, 1), is below the weight that goes up."""
    out = np.empty(v.shape[0])
    for i in range(v.shape[0]):
        j, up = _place(v[i], m)
        out[i] = (j + (chance[i] < up)) / m
    return out


@kernel
def points(v, n, s, m, soft):
    """The grid points that have weight after rounding: index, weight, weight of outcomes 1."""
    size = 2 * v.shape[0]
    index, weight, ones, used = np.empty(size, np.int64), np.empty(size), np.empty(size), 0
    for i in range(v.shape[0]):
        if soft:
            j, up = _place(v[i], m)
        else:
            j, up = cell(v[i], m), 0.0
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
