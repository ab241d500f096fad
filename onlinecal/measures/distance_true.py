"""True distance from calibration: the best grouping of the rounds of a sequence."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import count, number
from onlinecal.measures.base import Bracket
from onlinecal.measures.distance_lower import distance_lower
from onlinecal.measures.distance_upper import distance_upper_witness

#: the largest finite order: beyond, powers of small distances are too small for floats
LARGEST_ORDER = 20.0


def true_distance(p: ArrayLike, y: ArrayLike, *, order: float = 1.0, max_rounds: int = 200) -> Bracket:
    """Distance of a finished sequence from the nearest perfectly calibrated one, divided by its length.

    CalDist(p, y)/T = min over partitions of the rounds into groups, each forecast by its mean outcome, of
    (1/T) Σ_t |p_t − mean of t's group|; of order r, the root ((1/T) Σ_t |p_t − mean of t's group|^r)^{1/r}.

    Among partitions with given numbers of ones and zeros in each group, the cheapest matches the ones in the order of
    their predictions to the groups in the order of their means, and the zeros likewise, since the cost is convex in the
    difference. So a program over how many ones and zeros have been used finds the minimum over all partitions.

    Parameters
    ----------
    p, y : (T,) array_like
        Predictions in [0, 1] and outcomes 0 or 1.
    order : float, default 1
        r of the ℓ_r distance between predictors, 1 to 20, or ∞.
    max_rounds : int, default 200, 1 to 400
        Exact up to this T, else a bracket. With a ones and b zeros O(a²b²) steps and O(ab(a + b)) memory: a second and
        130 MB at T = 400.

    Returns
    -------
    Bracket
        Of width 0 for T ≤ max_rounds; otherwise from `distance_lower`, which is below the distance of every order, to
        the distance of the groups of `distance_upper`.

    Source
    ------
    Qiao, Zheng (2024), CalDist; Błasiok, Gopalan, Hu, Nakkiran (2023), Definition 4.1 with the metrics ℓ_r and the
    uniform distribution on the rounds; §4 and §5 for its place between the bounds.

    Deviations
    ----------
    Divided by T, as all measures here. Predictors of the definition are functions of the round, so that outcomes of
    one round are certain: of a predictor on points with given probabilities it is the distance of what was drawn.

    Examples
    --------
    >>> round(true_distance([0.4, 0.6], [1, 0]).upper, 12)
    0.1
    """
    most = count("max_rounds", max_rounds, 1, 400)
    order = number("true_distance", "order", order, 1.0)
    if LARGEST_ORDER < order < math.inf:
        raise InvalidParameter(f"true_distance: order = {order!r}; expected 1 to 20, or inf")
    gamma = JointDistribution.from_samples(p, y)
    predictions, outcomes = np.asarray(p, dtype=np.float64), np.asarray(y, dtype=np.float64)
    rounds = len(predictions)
    if rounds <= most:
        ones, zeros = (np.sort(predictions[outcomes == side]) for side in (1.0, 0.0))
        least = _cheapest(ones, zeros, order)
        value = least if order == math.inf else float(least / rounds) ** (1.0 / order)
        return Bracket(value, value)
    lower = distance_lower(gamma).lower
    apart = np.abs(gamma.predictions - distance_upper_witness(gamma).values(gamma))
    upper = float(apart.max()) if order == math.inf else float(gamma.mass @ apart**order) ** (1.0 / order)
    return Bracket(min(lower, upper), upper)


@kernel
def _cheapest(ones, zeros, order):
    """Σ |p − mean of p's group|^order, or the largest |p − mean|, least over all partitions into groups.

    `ones` and `zeros` are sorted. What remains to be settled is how many of each the groups take one after another.
    """
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
    """[end, i, j]: the cost of the last of so many of these rounds in a group of i ones and j zeros; infinite for none.

    Numbers with a common divisor are left out: that many groups of one mean cost the same. No term is ever subtracted,
    so that small costs keep their digits: a window of length n is the end of one block of n and the beginning of the
    next.
    """
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
    """The cost of both."""
    return max(x, y) if order == np.inf else x + y
