"""Upper distance from calibration, the best grouping of levels; true distance, that of the rounds of a sequence."""

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.samples import Words, with_ours
from onlinecal.core.validation import count, number
from onlinecal.measures.base import Between, Bracket, Ints, Measure, row
from onlinecal.measures.distance_lower import distance_lower, distance_lower_witness, seconds_of_distance
from onlinecal.measures.interval import MOST, best_partition, group_starts, prefix_sums
from onlinecal.measures.witnesses.distances import LevelGroups, Potentials

# Blocks of the contiguous grouping where every end would be too many.
_BLOCKS = 1000


@of_gamma
def distance_upper(gamma: JointDistribution, *, max_levels: int = 12) -> Bracket:
    """Upper distance from calibration: the cheapest way to move whole levels so that all are calibrated.

    dCE_up(Γ) = min over partitions of the levels into groups, contiguous or not, of Σ_i w_i |v_i − mean of i's
    group|.

    Source: Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 5.2.

    Parameters
    ----------
    max_levels : int, default 12, 1 to 16
        Exact by enumeration (O(3^k)) up to this k, else a bracket. Then the lower end is that of `distance_lower`.
        The upper end is the best of three: intervals as of `interval_ce`, single levels (the ECE), groups of 1000
        blocks.

    Examples
    --------
    Lemma 4.5: a fair coin forecast as 0.4 or 0.6.

    >>> round(distance_upper(JointDistribution.from_levels([0.4, 0.6], [1, 1], [0.5, 0.5])).upper, 12)
    0.1
    """
    labels, exact = _grouping(gamma, max_levels)
    upper = LevelGroups(labels).bound(gamma)
    if exact:
        return Bracket(upper, upper)
    return Bracket(min(distance_lower(gamma).lower, upper), upper)


def distance_upper_witness(gamma: JointDistribution, *, max_levels: int = 12) -> LevelGroups:
    return LevelGroups(_grouping(gamma, max_levels)[0])


def distance_upper_counterpart(gamma: JointDistribution, *, max_levels: int = 12) -> Potentials:
    """Potentials that bound `distance_lower` below, and with it `distance_upper` (BGHN23, Theorem 5.5)."""
    count("max_levels", max_levels, most=16)
    return distance_lower_witness(gamma).potentials


def _grouping(gamma: JointDistribution, max_levels: int) -> tuple[Ints, bool]:
    """The best groups found, and whether they are the best of all."""
    most = count("max_levels", max_levels, most=16)  # 3^16 steps take a second
    if not gamma.residuals.any():
        return np.arange(gamma.levels), True
    if gamma.levels <= most:
        return _enumerate(gamma.predictions, gamma.mass, gamma.means), True
    k = gamma.levels
    cuts = np.unique(np.linspace(0, k, min(k, _BLOCKS) + 1).astype(np.int64))
    before = _contiguous(
        gamma.predictions,
        prefix_sums(gamma.mass),
        prefix_sums(gamma.mass * gamma.means),
        prefix_sums(gamma.mass * gamma.predictions),
        cuts,
    )
    found = [np.arange(k), _labels(k, cuts[group_starts(before)])]
    if _BLOCKS < k <= MOST["mean"]:
        found.append(_labels(k, best_partition(gamma, "mean", None)[1]))
    return min(found, key=lambda labels: LevelGroups(labels).bound(gamma)), False


def _labels(k: int, starts: Ints) -> Ints:
    return np.searchsorted(starts, np.arange(k), side="right") - 1


@kernel
def _contiguous(v, mass, ones, moved, cuts):
    """The start of the last group before each cut, for the best contiguous groups that end at cuts."""
    m = len(cuts) - 1
    cost, before = np.zeros(m + 1), np.zeros(m + 1, np.int64)
    for b in range(1, m + 1):
        best = np.inf
        end = cuts[b]
        for a in range(b - 1, -1, -1):
            start = cuts[a]
            # A group costs at least its residual.
            residual = (ones[end] - ones[start]) - (moved[end] - moved[start])
            if cost[a] + abs(residual) >= best:
                continue
            mean = (ones[end] - ones[start]) / (mass[end] - mass[start])
            low = start + np.searchsorted(v[start:end], mean, side="right")  # the first level above the mean
            below = mean * (mass[low] - mass[start]) - (moved[low] - moved[start])
            above = (moved[end] - moved[low]) - mean * (mass[end] - mass[low])
            if cost[a] + below + above < best:
                best = cost[a] + below + above
                before[b] = a
        cost[b] = best
    return before


def _enumerate(v: Floats, w: Floats, q: Floats) -> Ints:
    """The groups of the cheapest of all partitions of at most 16 items."""
    inside = np.arange(1, 1 << len(v))[:, None] >> np.arange(len(v)) & 1
    mass = inside * w
    means = (mass @ q) / mass.sum(axis=1)
    costs = (mass * np.abs(v - means[:, None])).sum(axis=1)
    return np.asarray(_cheapest_groups(np.append(0.0, costs), len(v)))


@kernel
def _cheapest_groups(single, k):
    """The groups, by the cost of each as a number with the bits of its items."""
    full = len(single) - 1
    cost, choice = np.zeros(full + 1), np.zeros(full + 1, np.int64)
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
    return labels


#: the largest finite order: beyond, powers of small distances are too small for floats
LARGEST_ORDER = 20.0
#: the most rounds of which the true distance is found
LONGEST = 400


@with_ours
def true_distance(
    p: ArrayLike,
    y: ArrayLike,
    *,
    order: float = 1.0,
    max_rounds: int = 200,
    weights: ArrayLike | None = None,
    **words: Unpack[Words],
) -> Bracket:
    """Distance of a finished sequence from the nearest perfectly calibrated one, divided by its length.

    Each group of a partition of the rounds is forecast by its mean outcome. CalDist(p, y)/T = min over partitions
    of (1/T) Σ_t |p_t − mean of t's group|; of order r, the root ((1/T) Σ_t |p_t − mean of t's group|^r)^{1/r}.

    Take partitions with given numbers of ones and zeros in each group. The cheapest matches the ones, in the order
    of predictions, to the groups in the order of means. Zeros likewise, since the cost is convex in the difference.
    So a program over how many ones and zeros have been used finds the minimum over all partitions.

    Source: Qiao, Zheng (2024), CalDist. Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 4.1 with the metrics ℓ_r and
    the uniform distribution on the rounds. §4 and §5 for its place between the bounds. Deviations: Predictors of the
    definition are functions of the round, so that outcomes of one round are certain. Of a predictor on points with
    given probabilities it is the distance of the draws.

    Parameters
    ----------
    p, y : (T,) array_like
        Predictions in [0, 1] and outcomes 0 or 1.
    order : float, default 1
        r of the ℓ_r distance between predictors, 1 to 20, or ∞.
    max_rounds : int, default 200, 1 to 400
        Exact up to this T, else a bracket. With a ones and b zeros O(a²b²) steps and O(ab(a + b)) memory: a second and
        130 MB at T = 400.
    weights, **words
        How often each round counts, and labels, as in `JointDistribution.from_samples`.

    Returns
    -------
    Bracket
        Of width 0 for T ≤ max_rounds. Otherwise from `distance_lower`, which is below the distance of every order,
        to the distance of the groups of `distance_upper`.

    Examples
    --------
    >>> round(true_distance([0.4, 0.6], [1, 0]).upper, 12)
    0.1
    """
    most = count("max_rounds", max_rounds, 1, LONGEST)
    order = number("true_distance", "order", order, 1.0)
    return _distance(JointDistribution.from_samples(p, y, weights=weights, **words), order, most)


def _distance(gamma: JointDistribution, order: float, most: int) -> Bracket:
    if LARGEST_ORDER < order < math.inf:
        raise InvalidParameter(f"true_distance: order = {order!r}; expected 1 to 20, or inf")
    sides = gamma.positives, gamma.counts - gamma.positives
    if any((side != np.rint(side)).any() for side in sides):
        raise InvalidParameter(
            f"true_distance of {gamma!r} with weights that are no whole numbers; expected rounds without weights"
        )
    if gamma.weight <= most:
        ones, zeros = (np.repeat(gamma.predictions, side.astype(np.int64)) for side in sides)
        least = _cheapest(ones, zeros, order)
        value = least if order == math.inf else float(least / gamma.weight) ** (1.0 / order)
        return Bracket(value, value)
    lower = distance_lower(gamma).lower
    apart = np.abs(gamma.predictions - distance_upper_witness(gamma).values(gamma))
    upper = float(apart.max()) if order == math.inf else float(gamma.mass @ apart**order) ** (1.0 / order)
    return Bracket(min(lower, upper), upper)


def true_distance_of_gamma(gamma: JointDistribution, *, order: float = 1.0) -> float:
    """True distance from calibration of a sequence of at most 400 rounds: `true_distance` of the rounds of Γ.

    It does not depend on the order of the rounds, so that Γ with its numbers of rounds is enough.

    Parameters
    ----------
    order : float, default 1
        As in `true_distance`.
    """
    if gamma.weight > LONGEST:
        raise InvalidParameter(
            f"true_distance of {gamma.weight:,.0f} rounds; expected at most {LONGEST}, as it takes a time like T⁴"
        )
    return _distance(gamma, number("true_distance", "order", order, 1.0), LONGEST).upper


true_distance_of_gamma.__name__ = "true_distance"


@kernel
def _cheapest(ones, zeros, order):
    """Σ |p − mean of p's group|^order, or the largest |p − mean|, least over all partitions into groups."""
    # `ones` and `zeros` are sorted. What remains to be settled is how many of each the groups take one after another.
    of_ones, of_zeros = _moved(ones, len(zeros), order, True), _moved(zeros, len(ones), order, False)
    least = np.full((len(ones) + 1, len(zeros) + 1), np.inf)
    least[0, 0] = 0.0
    for a in range(len(ones) + 1):
        for b in range(len(zeros) + 1):
            best = least[a, b]
            for i in range(a + 1):
                before, first, second = least[a - i], of_ones[a, i], of_zeros[b, i]
                for j in range(b + 1):
                    if order == np.inf:
                        cost = max(before[b - j], max(first[j], second[j]))
                    else:
                        cost = before[b - j] + first[j] + second[j]
                    best = min(best, cost)
            least[a, b] = best
    return least[len(ones), len(zeros)]


@kernel
def _moved(own, others, order, positive):
    """[end, i, j]: the cost of the last of `end` rounds in a group of i ones and j zeros, without a common divisor."""
    # No term is ever subtracted, so that small costs keep their digits. A window of length n is the end of one block of
    # n and the beginning of the next.
    n = len(own)
    most_ones, most_zeros = (n, others) if positive else (others, n)
    cost = np.full((n + 1, most_ones + 1, most_zeros + 1), np.inf)
    ends, begins, move = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n)
    for i in range(most_ones + 1):
        for j in range(most_zeros + 1):
            if math.gcd(i, j) != 1:
                continue
            mean, length = i / (i + j), i if positive else j
            if length == 0:
                cost[:, i, j] = 0.0
                continue
            for t in range(n):
                apart = abs(own[t] - mean)
                move[t] = apart if order == 1.0 or order == np.inf else apart**order
            # Up to t in the block of t − 1, and from t in the block of t.
            for t in range(1, n + 1):
                ends[t] = _with(0.0 if (t - 1) % length == 0 else ends[t - 1], move[t - 1], order)
            begins[n] = 0.0
            for t in range(n - 1, -1, -1):
                begins[t] = _with(0.0 if (t + 1) % length == 0 else begins[t + 1], move[t], order)
            for t in range(length, n + 1):
                first = t - length
                cost[t, i, j] = ends[t] if first % length == 0 else _with(begins[first], ends[t], order)
    return cost


@kernel
def _with(x, y, order):
    return max(x, y) if order == np.inf else x + y


MEASURES = (
    row(
        distance_upper,
        "dCE_up | BGHN23 Def. 5.2 | O(3^k), k ≤ 12; beyond, a bracket | no | yes (c = 1/2) | yes (s = 1)",
        bracket=True,
        seconds=seconds_of_distance,
        witness=distance_upper_witness,
        counterpart=distance_upper_counterpart,
        upper=lambda gamma, max_levels=12: distance_upper_witness(gamma, max_levels=max_levels).bound(gamma),
        sampling=Between(
            "distance_lower", "surrogate_interval_ce", "dCE_low ≤ dCE_up ≤ intCE ≤ SintCE: BGHN23 §6"
        ),
    ),
)

#: what is a measure of short games only
OF_SHORT_GAMES = (
    Measure(
        true_distance_of_gamma,
        "dCE",
        "BGHN23 Def. 4.1",
        "O(T⁴), T ≤ 400",
        most_rounds=LONGEST,
        seconds=lambda levels, rounds: 1.5 * (rounds / LONGEST) ** 4,
    ),
)
