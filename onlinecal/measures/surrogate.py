"""Binned error with random shifts, and the surrogate of interval calibration made of it."""

import math
from collections.abc import Sequence

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import locked
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import positive
from onlinecal.measures.base import Change, Ends, Known, Sampling, halving, row, seminorm
from onlinecal.measures.witnesses.bins import BestWidth, ShiftedBins

# Deviations of random bins are found on a grid. Its steps to a width keep it within `_POINTS` points, but are 4 to
# 32. With 4, predictions move by 1/8 of the width at most.
_POINTS, _FEWEST, _STEPS = 4096, 4, 32
# Up to this number of levels they are found exactly.
_EXACT = 1024


@of_gamma
def random_interval_ce(gamma: JointDistribution, *, epsilon: float) -> float:
    """Binned error with bins of width ε, averaged over their shift.

    RintCE(Γ, ε) = E over r ~ U[0, ε) of Σ_j |Σ_{v_i ∈ [r + jε, r + (j+1)ε)} r_i|. A bin begins at each x once, so that
    this is (1/ε) ∫ |Σ_{v_i ∈ [x, x + ε)} r_i| dx. The sum changes where a level enters or leaves: O(k).

    Source: Błasiok, Gopalan, Hu, Nakkiran (2023), §6.2, which samples r.

    Parameters
    ----------
    epsilon : float, > 0
        Bin width ε.

    Examples
    --------
    >>> round(random_interval_ce(JointDistribution.from_samples([0.4, 0.6], [1, 0]), epsilon=0.5), 12)
    0.24
    """
    return float(random_bin_norm(gamma, gamma.residuals[None, :], epsilon=epsilon)[0])


def random_bin_norm(gamma: JointDistribution, residuals: Floats, *, epsilon: float) -> Floats:
    """`random_interval_ce` as a seminorm of residuals (B, k) at the levels of Γ."""
    return _by_width(gamma, residuals, [positive("epsilon", epsilon, "a positive finite width")])[:, 0]


def _by_width(gamma: JointDistribution, residuals: Floats, widths: Sequence[float] | Floats) -> Floats:
    """`random_interval_ce` of each row of residuals (B, k) at each width, (B, widths)."""
    apart = float(np.diff(gamma.predictions).min()) if gamma.levels > 1 else math.inf
    wide, size = np.flatnonzero(np.array(widths) > apart), len(residuals)
    # where no levels share a bin
    found = np.repeat(np.abs(residuals).sum(axis=1)[:, None], len(widths), axis=1)
    row, epsilon = np.repeat(np.arange(size), len(wide)), np.tile(np.array(widths)[wide], size)
    levels = np.append(gamma.predictions, np.inf)
    found[:, wide] = _averages(levels, locked(residuals), row, epsilon).reshape(size, len(wide))
    return found


@kernel
def _averages(v, rows, row, epsilon):
    """(1/ε) ∫ |Σ of the r_i with x ≤ v_i < x + ε| dx for each number of a row r and its ε; the levels v end in ∞."""
    k = len(v) - 1
    out, prefix = np.empty(len(row)), np.zeros((len(rows), k + 1))
    for i in range(len(rows)):
        prefix[i, 1:] = np.cumsum(rows[i])
    for i in range(len(row)):
        p, wide = prefix[row[i]], epsilon[i]
        # The window [x, x + ε) has the levels leave … enter − 1. It moves to where the next one enters or leaves.
        # `left` is the way of x to the next that leaves: of differences of near levels, which hardly round.
        leave, enter, left, integral = 0, 1, wide, 0.0
        for _ in range(2 * k - 1):
            here = v[leave]
            apart = v[enter] - here
            sooner = min(apart - wide, 0.0)
            integral += abs(p[enter] - p[leave]) * (left + sooner)
            if apart < wide:
                enter += 1
            else:
                leave += 1
            left = v[leave] - here - sooner
        out[i] = integral / wide
    return out


@of_gamma
def surrogate_interval_ce(gamma: JointDistribution) -> float:
    """Surrogate interval calibration error SintCE(Γ): random bins, at the best width 2^−j.

    SintCE(Γ) = inf over j ≥ 0 of RintCE(Γ, 2^−j) + 2^−j. Halving ε only splits bins, so that RintCE grows with j; below
    the smallest gap it is the ECE. Widths between two that are known are left out where neither this nor 2^−j lets them
    be better. O(k) for each of at most log2(1/smallest gap) widths.

    Source: Błasiok, Gopalan, Hu, Nakkiran (2023), §6.2, which samples.

    Examples
    --------
    >>> round(surrogate_interval_ce(JointDistribution.from_samples([0.4, 0.6], [1, 0])), 12)
    0.6
    """
    return _best_width(gamma)[0]


def shifted_bins(gamma: JointDistribution, *, epsilon: float) -> ShiftedBins:
    epsilon = positive("epsilon", epsilon, "a positive finite width")
    return ShiftedBins(float(epsilon))


def best_width(gamma: JointDistribution) -> BestWidth:
    return BestWidth(_best_width(gamma)[1])


def _best_width(gamma: JointDistribution) -> tuple[float, int | None]:
    """The value, and the exponent of its width; None is the limit of ever finer bins."""
    residuals = gamma.residuals[None, :]
    best, exponent = float(np.abs(residuals).sum()), None
    gap = float(np.diff(gamma.predictions).min()) if gamma.levels > 1 else 1.0
    left, known = set(range(math.ceil(-math.log2(gap)))), {-1: 0.0}
    near = round(math.log2(gamma.levels) / 3.0)  # of the best width of independent samples, about
    while left := {j for j in left if known[max(i for i in known if i < j)] + 2.0**-j < best}:
        tried = sorted(left, key=lambda j: abs(j - near))[:4]
        left -= set(tried)
        found = _by_width(gamma, residuals, [2.0**-j for j in tried])[0]
        known |= dict(zip(tried, map(float, found), strict=True))
        for j in tried:
            if known[j] + 2.0**-j < best:
                best, exponent, near = known[j] + 2.0**-j, j, j
    return best, exponent


def _width_errors(change: Change) -> Floats:
    """RintCE of the changed residuals at the widths 1/m; of many levels by sums over all windows of a grid."""
    numbers = halving(change.samples)
    if change.gamma.levels <= _EXACT:
        return _by_width(change.gamma, change.residuals, 1.0 / numbers)
    columns = []
    for m in map(int, numbers):
        shifts = min(max(_POINTS // m, _FEWEST), _STEPS)
        steps = m * shifts
        place = np.minimum((change.gamma.predictions * steps).astype(np.int64), steps - 1)
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        sums = np.zeros((len(change.residuals), steps + 2 * shifts))
        sums[:, place[starts] + shifts] = np.add.reduceat(change.residuals, starts, axis=1)
        prefix = np.cumsum(sums, axis=1)
        columns.append(np.abs(prefix[:, shifts:] - prefix[:, :-shifts]).sum(axis=1) / shifts)
    return np.stack(columns, axis=1)


def _width_limits(known: Known, radii: Floats) -> Ends:
    """The best width of those tried from above; from below also all finer ones, for RintCE grows with m."""
    widths = halving(known.samples)
    if (values := known.kept.get("random_interval_ce")) is None:
        values = _by_width(known.gamma, known.gamma.residuals[None, :], 1.0 / widths)[0]
        known.kept["random_interval_ce"] = values
    upper = float((values + radii + 1.0 / widths).min())
    sums = np.minimum.accumulate(np.append(np.inf, values - radii + 1.0 / widths))
    lower = float(np.minimum(sums[:-1], values - radii).max())
    return min(lower, known.ends[0]), max(upper, known.ends[1])


MEASURES = (
    row(
        random_interval_ce,
        "RintCE_ε | BGHN23 Def. 6.5 | O(k) | yes | yes | no, for one ε",
        witness=shifted_bins,
        example={"epsilon": 0.1},
        # Residuals change by as much. Edges of bins come between v and v' for a share of at most |v − v'|/ε of the
        # shifts. Then a residual of at most 1 leaves one bin for another.
        sampling=seminorm(
            random_bin_norm,
            cells=lambda gamma, epsilon: np.unique(
                np.floor(gamma.predictions / epsilon), return_inverse=True
            )[1],
            instead="random_interval_ce with a larger ε, or smooth_ce",
            # By Cauchy–Schwarz, with this number of bins.
            means=lambda samples, epsilon: np.array([math.sqrt(math.ceil(1.0 / epsilon) + 1.0)]),
        ),
    ),
    row(
        surrogate_interval_ce,
        "SintCE | BGHN23 Def. 6.10 | O(k) a width | 1/2-Hölder | yes (c = 1/2) | yes (s = 1)",
        witness=best_width,
        # With s = √δ: a best width of s or more is kept, for at most δ + 2s. A narrower one gives way to the
        # multiple in [s, 2s), which does not raise RintCE, for at most 2s more.
        sampling=Sampling(
            _width_errors,
            "RintCE(2^−j) is a seminorm that grows with j (BGHN23 §6.2)",
            limits=_width_limits,
            means=lambda samples: np.sqrt(halving(samples) + 1.0),
        ),
    ),
)
