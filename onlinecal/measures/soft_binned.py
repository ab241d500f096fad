"""Soft-binned calibration decision loss; and rounding to a grid, the response with a regret that it bounds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import cell
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import FINEST, Floats, JointDistribution, of_gamma
from onlinecal.core.sums import times
from onlinecal.core.validation import check_unit, count, integer, probability, vector
from onlinecal.measures._kinks import (
    falling,
    grid_cells,
    grid_errors,
    grid_errors_at,
    grid_means,
    grids_errors,
    grids_limits,
    grids_means,
    middle,
    rising,
)
from onlinecal.measures.base import Bracket, Ends, Known, Sampling, halving, row
from onlinecal.measures.decision import cdl
from onlinecal.measures.witnesses.base import Witness
from onlinecal.measures.witnesses.distances import GridThreshold, grid_bounds, threshold_losses


@dataclass(frozen=True)
class SoftRounding(Witness):
    """Round the prediction at random to a neighbouring multiple of 1/m, keeping the mean; then best-respond.

    With the m of `scdl`, a power of two, the swap regret is at most 4 SCDL for payoffs in [0, 1]. With every m it is at
    most 2 (SCDL_m + 1/m) (Bairaktari et al. 2026, Theorem 4.2).
    """

    side = "both"
    about = ("scdl",)

    #: m; None leaves predictions as they are (a perfectly calibrated Γ)
    bins: int | None

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

        Swap regrets with payoffs in [0, 1] are at most 2 (SCDL_m + 1/m + √((m + 1)/n) + √(2 ln(1/δ)/n)) with
        probability 1 − δ. Masses at the points deviate by √((m + 1)/n) in sum. One draw of n changes the loss at a
        threshold by 2/n (McDiarmid).
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

    def bound(self, gamma: JointDistribution) -> float | Bracket:
        if (gamma.means == gamma.predictions).all():
            return 0.0
        if self.bins is None:
            raise InvalidData(f"SoftRounding: {gamma!r} is not calibrated; expected a grid to round to")
        return grid_bounds(gamma, integer("", "bins", self.bins, 1, FINEST))

    def __str__(self) -> str:
        if self.bins is None:
            return "best-respond to the prediction itself"
        return f"round at random to a neighbouring multiple of 1/{self.bins}, then best-respond"


def rounded_down(gamma: JointDistribution, m: int) -> JointDistribution:
    """Γ of the predictions rounded down to multiples of 1/m: the hard bins of `scdl_binned`."""
    index, n, s = points(gamma.predictions, gamma.counts, gamma.positives, m, False)
    return JointDistribution.from_counts(index / m, n, np.minimum(s, n))


@kernel
def _place(v, m):
    """j with j ≤ v m < j + 1 (j = m at v = 1), and v m − j; a float that is j/m rounded is that point of the grid."""
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
    index, weight, ones, used = np.empty(size, np.int64), np.zeros(size), np.zeros(size), 0
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
        weight[low] += n[i] * (1.0 - up)
        ones[low] += s[i] * (1.0 - up)
        if up > 0.0:
            high = low + 1
            if high == used:
                used += 1
                index[high] = j + 1
            weight[high] += n[i] * up
            ones[high] += s[i] * up
    keep = 0
    for c in range(used):
        if weight[c] > 0.0:
            index[keep], weight[keep], ones[keep] = index[c], weight[c], ones[c]
            keep += 1
    return index[:keep], weight[:keep], ones[:keep]


@of_gamma
def scdl_binned(gamma: JointDistribution, *, m: int = 16, soft: bool = True) -> float:
    """Soft-binned decision loss on the grid of multiples of 1/m.

    With W_j and Q_j the mass and the mean outcome at j/m after random rounding (weights (1 − m|v − j/m|)_+),
    SCDL_m = max over 1 ≤ i ≤ m of Σ_{j≤i−1} W_j (Q_j − i/m)_+ + Σ_{j≥i} W_j ((i−1)/m − Q_j)_+.
    Soft: SCDL_m ≤ SCDL_2m ≤ cdl. Exactly 0 where every level has q_i = v_i.

    Source: Bairaktari, Hu, Nguyen & Ullman 2026, Definitions 1.1, 3.1.

    Parameters
    ----------
    m : int, default 16
        From 1 to 2⁵⁰.
    soft : bool, default True
        False rounds down instead: hard bins [j/m, (j+1)/m), the paper's contrast.

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
def soft_binned_loss(
    gamma: JointDistribution, *, m: int = 16, threshold: int | None = None, soft: bool = True
) -> float:
    """Soft-binned decision loss at one threshold i of the grid of multiples of 1/m.

    Σ_{j≤i−1} W_j (Q_j − i/m)_+ + Σ_{j≥i} W_j ((i−1)/m − Q_j)_+, with W_j and Q_j as in `scdl_binned`, the largest
    of these. It is the loss of a decision maker with an action that changes between (i − 1)/m and i/m. O(k).

    Source: Bairaktari, Hu, Nguyen & Ullman 2026, Definition 3.1.

    Parameters
    ----------
    m : int, default 16
        From 1 to 2⁵⁰.
    threshold : int, optional
        i, from 1 to m. Default: the middle one, `(m + 1) // 2`.
    soft : bool, default True
        As in `scdl_binned`.

    Examples
    --------
    >>> gamma = JointDistribution.from_levels([0.25, 0.75], [0.5, 0.5], [0.0, 1.0])
    >>> [soft_binned_loss(gamma, m=16, threshold=i) for i in (1, 4, 5, 16)]
    [0.0, 0.09375, 0.0, 0.0]
    """
    m = _grid("soft_binned_loss", m, soft)
    i = integer("soft_binned_loss", "threshold", middle(m) if threshold is None else threshold, 1, m)
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


def worst_grid_threshold(gamma: JointDistribution, *, m: int = 16, soft: bool = True) -> GridThreshold:
    scdl_binned(gamma, m=m, soft=soft)  # checks the options
    at, losses = threshold_losses(gamma, m, soft)
    return GridThreshold(int(at[int(np.argmax(losses))]), int(m), soft)


@of_gamma
def scdl(gamma: JointDistribution) -> float:
    """Soft-binned calibration decision loss.

    min over m = 1, 2, 4, …, 2⁵⁰ of max(SCDL_m, 1/m): the grid is as fine as the error allows. SCDL_m rises and 1/m
    falls, so the search ends at the first m with SCDL_m ≥ 1/m. As SCDL_m ≤ CDL ≤ 2 ECE, it begins late. Exactly 0
    where every level has q_i = v_i. Elsewhere it is 2⁻⁵⁰ or more, although finer grids might give less: there the
    witness proves the upper end alone. `soft_rounding` is the response with a swap regret of at most 4 times this,
    for every task.

    Source: Bairaktari, Hu, Nguyen & Ullman 2026, Definition 1.1, Lemma 3.3.

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

    Source: Bairaktari, Hu, Nguyen & Ullman 2026, Theorem 4.2.
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


@kernel
def _scdl_m(v, n, s, m, soft):
    """SCDL_m, weighted by n: the sum is convex in i between two points with mass, so that i is j or j + 1 of one."""
    index, weight, ones = points(v, n, s, m, soft)
    mean, each = np.minimum(ones / weight, 1.0), np.arange(len(index))
    at = rising(index / m, each + 1, weight, mean) + falling((index - 1) / m, each, weight, mean)
    after = rising((index + 1) / m, each, weight, mean) + falling(index / m, each - 1, weight, mean)
    most = 0.0
    for c in range(len(index)):
        if index[c] >= 1:
            most = max(most, at[c])
        if index[c] < m:
            most = max(most, after[c])
    return most


def _limits(known: Known, radii: Any) -> Ends:
    values = [scdl_binned(known.gamma, m=int(m)) for m in halving(known.samples)]
    return grids_limits(known, radii, np.array(values))


MEASURES = (
    row(
        scdl_binned,
        "SCDL_m | BHNU26 Def. 1.1 | O(k + p log p), p ≤ min(2k, m + 1) | yes | yes | no",
        witness=worst_grid_threshold,
        sampling=Sampling(
            grid_errors,
            "a supremum of means (BHNU26 Lemma 7.2)",
            cells=grid_cells,
            instead="scdl_binned with a smaller m, or scdl",
            means=grid_means,
        ),
        decisions="swap regret ≤ 2 (SCDL_m + 1/m) after rounding to 1/m, every task",
    ),
    row(
        soft_binned_loss,
        "FDL_{m,i} | BHNU26 Def. 3.1 | O(k) | yes | yes | no",
        sampling=Sampling(
            grid_errors_at,
            "a sum of suprema of means (BHNU26 Lemma 7.2)",
            cells=grid_cells,
            instead="soft_binned_loss with a smaller m, or scdl",
            means=grid_means,
        ),
    ),
    row(
        scdl,
        "SCDL | BHNU26 Def. 1.1 | O(k log(1/SCDL)) | 1/2-Hölder | yes | yes",
        decisions="swap regret ≤ 4 SCDL after soft rounding, every task",
        witness=soft_rounding,
        sampling=Sampling(
            grids_errors,
            "SCDL_m is a supremum of means that grows with m (BHNU26 Lemma 3.3, Theorem 7.1)",
            limits=_limits,
            means=grids_means,
        ),
    ),
)
