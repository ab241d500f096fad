"""Binned error with random shifts, and the surrogate of interval calibration made of it."""

from __future__ import annotations

import math
import weakref

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import positive
from onlinecal.measures.base import Change, Ends, Ints, Known, Modulus, Sampling, halving, row, seminorm
from onlinecal.measures.witnesses.bins import BestWidth, ShiftedBins

# Steps of the grid to a width on which deviations of random bins are found: as many as keep it within so many points,
# but not fewer than 4, with which predictions move by 1/8 of the width at most, nor more than 32.
_POINTS, _FEWEST, _STEPS = 4096, 4, 32
# Up to so many levels they are found exactly.
_EXACT = 1024


@of_gamma
def random_interval_ce(gamma: JointDistribution, *, epsilon: float) -> float:
    """Binned error with bins of width ε, averaged over their shift.

    RintCE(Γ, ε) = E over r ~ U[0, ε) of Σ_j |Σ_{v_i ∈ [r + jε, r + (j+1)ε)} r_i|. As r grows, the bins change
    only where r passes some v_i mod ε, and then one level changes bins: the average is a finite sum, in O(k log k).

    Parameters
    ----------
    epsilon : float, > 0
        Bin width ε.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), §6.2, which samples r.

    Examples
    --------
    >>> round(random_interval_ce(JointDistribution.from_samples([0.4, 0.6], [1, 0]), epsilon=0.5), 12)
    0.24
    """
    return float(random_bin_norm(gamma, gamma.residuals[None, :], epsilon=epsilon)[0])


def random_bin_norm(gamma: JointDistribution, residuals: Floats, *, epsilon: float) -> Floats:
    """`random_interval_ce` as a seminorm of residuals (B, k) at the levels of Γ."""
    epsilon = positive("epsilon", epsilon, "a positive finite width")
    v = gamma.predictions
    if gamma.levels == 1 or epsilon <= float(np.diff(v).min()):
        return np.asarray(np.abs(residuals).sum(axis=1))  # no two levels ever share a bin
    return np.asarray(_averages(residuals, *_places(v, epsilon), epsilon))


# The last places for each width: outcomes are drawn hundreds of times for the same predictions, and sorting is slow.
_KEPT: dict[float, tuple[weakref.ref[Floats], tuple[Floats, Floats, Ints]]] = {}


def _places(v: Floats, epsilon: float) -> tuple[Floats, Floats, Ints]:
    """The number of each level's bin, where in it the level is, and the order of the latter."""
    of, places = _KEPT.get(epsilon, (None, None))
    if of is None or of() is not v or places is None:  # arrays of Γ are locked
        # fmod is exact, so v − fmod is a multiple of ε up to one rounding; a plain division could pass an integer.
        phase = np.fmod(v, epsilon)
        places = np.rint((v - phase) / epsilon), phase, np.argsort(phase, kind="stable")
        _KEPT[epsilon] = weakref.ref(v, lambda gone: _KEPT.pop(epsilon, None)), places
    return places


@of_gamma
def surrogate_interval_ce(gamma: JointDistribution) -> float:
    """Surrogate interval calibration error SintCE(Γ): random bins, at the best width 2^−j.

    SintCE(Γ) = inf over j ≥ 0 of RintCE(Γ, 2^−j) + 2^−j. Halving ε only splits bins: RintCE grows with j, and
    the search ends when it alone reaches the best sum; below the smallest gap it is the ECE. O(k log k) for each of at
    most log2(1/smallest gap) widths.

    Source
    ------
    Błasiok, Gopalan, Hu, Nakkiran (2023), §6.2, which samples.

    Examples
    --------
    >>> round(surrogate_interval_ce(JointDistribution.from_samples([0.4, 0.6], [1, 0])), 12)
    0.6
    """
    return _best_width(gamma)[0]


@of_gamma
def shifted_bins(gamma: JointDistribution, *, epsilon: float) -> ShiftedBins:
    """The bins of `random_interval_ce`."""
    epsilon = positive("epsilon", epsilon, "a positive finite width")
    return ShiftedBins(float(epsilon))


@of_gamma
def best_width(gamma: JointDistribution) -> BestWidth:
    """The width of bins at which `surrogate_interval_ce` is attained."""
    return BestWidth(_best_width(gamma)[1])


def _best_width(gamma: JointDistribution) -> tuple[float, int | None]:
    """The value, and the exponent of its width; None is the limit of ever finer bins."""
    best, exponent = float(np.abs(gamma.residuals).sum()), None
    gap = float(np.diff(gamma.predictions).min()) if gamma.levels > 1 else 1.0
    epsilon, j = 1.0, 0
    while epsilon > gap:
        binned = random_interval_ce(gamma, epsilon=epsilon)
        if binned >= best:
            break
        if binned + epsilon < best:
            best, exponent = binned + epsilon, j
        epsilon /= 2.0
        j += 1
    return best, exponent


@kernel
def _average_over_shifts(prefix, number, phase, order, epsilon):
    """∫ of Σ |bin residual| over the shift, divided by ε.

    Levels of one bin number (at shift 0) form a run; as the shift passes their phases the run's cut moves up
    through it. What lies above the cut is the bin itself, what lies below belongs to the bin before.
    """
    k = len(number)
    run, start, runs = np.empty(k, np.int64), np.empty(k + 1, np.int64), 0
    for i in range(k):
        if i == 0 or number[i] != number[i - 1]:
            start[runs] = i
            runs += 1
        run[i] = runs - 1
    start[runs] = k
    cut = start[:runs].copy()
    total = 0.0
    for t in range(runs):
        total += abs(prefix[start[t + 1]] - prefix[start[t]])
    integral, here = 0.0, 0.0
    for i in order:
        integral += total * (phase[i] - here)
        here = phase[i]
        t = run[i]
        # Neighbouring bins share a cut that may have moved; other bins end where the run does.
        up = start[t + 1]
        if t + 1 < runs and number[start[t + 1]] == number[start[t]] + 1.0:
            up = cut[t + 1]
        down = start[t]
        if t > 0 and number[start[t - 1]] == number[start[t]] - 1.0:
            down = cut[t - 1]
        old = cut[t]
        new = old + 1
        total += abs(prefix[up] - prefix[new]) - abs(prefix[up] - prefix[old])
        total += abs(prefix[new] - prefix[down]) - abs(prefix[old] - prefix[down])
        cut[t] = new
    integral += total * (epsilon - here)
    return integral / epsilon


def _width_errors(change: Change) -> Floats:
    """RintCE of the changed residuals at the widths 1/m; of many levels by sums over all windows of a grid."""
    columns = []
    for m in halving(change.samples):
        if change.gamma.levels <= _EXACT:
            columns.append(random_bin_norm(change.gamma, change.residuals, epsilon=1.0 / int(m)))
            continue
        shifts = min(max(_POINTS // int(m), _FEWEST), _STEPS)
        steps = int(m) * shifts
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
        values = np.array([random_interval_ce(known.gamma, epsilon=1.0 / m) for m in widths])
        known.kept["random_interval_ce"] = values
    upper = float((values + radii + 1.0 / widths).min())
    sums = np.minimum.accumulate(np.append(np.inf, values - radii + 1.0 / widths))
    lower = float(np.minimum(sums[:-1], values - radii).max())
    return min(lower, known.ends[0]), max(upper, known.ends[1])


@kernel
def _averages(rows, number, phase, order, epsilon):
    """`_average_over_shifts` of each row of residuals."""
    out, prefix = np.empty(rows.shape[0]), np.zeros(rows.shape[1] + 1)
    for b in range(rows.shape[0]):
        prefix[1:] = np.cumsum(rows[b])
        out[b] = _average_over_shifts(prefix, number, phase, order, epsilon)
    return out


MEASURES = (
    row(
        random_interval_ce,
        "RintCE_ε | BGHN23 Def. 6.5 | O(k log k) | yes | yes | no, for one ε",
        witness=shifted_bins,
        example={"epsilon": 0.1},
        # Residuals change by as much; and the edges of the bins come between v and v' for a share of at most |v − v'|/ε
        # of the shifts, whereupon a residual of at most 1 leaves one bin for another.
        sampling=seminorm(
            random_bin_norm,
            cells=lambda gamma, epsilon: np.unique(
                np.floor(gamma.predictions / epsilon), return_inverse=True
            )[1],
            instead="random_interval_ce with a larger ε, or smooth_ce",
            # By Cauchy–Schwarz, of so many bins.
            means=lambda samples, epsilon: np.array([math.sqrt(math.ceil(1.0 / epsilon) + 1.0)]),
        ),
        modulus=Modulus(
            "δ + 2δ/ε",
            "an edge comes between v and v' for |v − v'|/ε of the shifts",
            lambda moved, epsilon: moved + 2.0 * moved / epsilon,
        ),
    ),
    row(
        surrogate_interval_ce,
        "SintCE | BGHN23 Def. 6.10 | O(k log k) a width | 1/2-Hölder | yes (c = 1/2) | yes (s = 1)",
        witness=best_width,
        # With s = √δ: a best width of s or more is kept, for at most δ + 2s; a narrower one gives way to the multiple
        # in [s, 2s), which does not raise RintCE, for at most 2s more.
        sampling=Sampling(
            _width_errors,
            "RintCE(2^−j) is a seminorm that grows with j (BGHN23 §6.2)",
            limits=_width_limits,
            means=lambda samples: np.sqrt(halving(samples) + 1.0),
        ),
        modulus=Modulus(
            "δ + 4√δ",
            "that of random_interval_ce, at widths from √δ on",
            lambda moved: moved + 4.0 * math.sqrt(moved),
        ),
    ),
)
