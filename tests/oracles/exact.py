"""Measures of a Γ of few levels without rounding: Γ is taken as the floats that it holds.

Rational numbers throughout; where a root, a logarithm or an exponential is needed, decimals of 80 digits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import wraps
from types import SimpleNamespace
from typing import Any

import numpy as np

from onlinecal.core.joint import JointDistribution
from tests.oracles.measures import partitions

Row = tuple[Fraction, Fraction, Fraction]  # v, w, q
HALF = Fraction(1, 2)


def decimals(function: Callable[..., Decimal]) -> Callable[..., Fraction]:
    """With 80 significant digits; the result as a rational number."""

    @wraps(function)
    def inner(*args: object, **options: object) -> Fraction:
        with localcontext(Context(prec=80, Emin=-(10**6), Emax=10**6)):
            return Fraction(function(*args, **options))

    return inner


def decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def of_counts(gamma: JointDistribution) -> Any:
    """Γ of which each mean is the quotient of its counts, which Γ itself holds as rounded."""
    pairs = zip(gamma.positives.tolist(), gamma.counts.tolist(), strict=True)
    means = [Fraction(s) / Fraction(n) for s, n in pairs]
    return SimpleNamespace(
        predictions=gamma.predictions,
        counts=gamma.counts,
        means=np.array(means, dtype=object),
        levels=gamma.levels,
    )


def rows(gamma: JointDistribution) -> list[Row]:
    every = sum(map(Fraction, gamma.counts.tolist()))
    columns = (gamma.predictions.tolist(), gamma.counts.tolist(), gamma.means.tolist())
    return [(Fraction(v), Fraction(n) / every, Fraction(q)) for v, n, q in zip(*columns, strict=True)]


def residuals(gamma: JointDistribution) -> list[Fraction]:
    return [w * (q - v) for v, w, q in rows(gamma)]


def prefix(gamma: JointDistribution) -> list[Fraction]:
    return list(itertools.accumulate(residuals(gamma), initial=Fraction(0)))


def ece(gamma: JointDistribution) -> Fraction:
    return sum(map(abs, residuals(gamma)), Fraction(0))


@decimals
def ece_of_order(gamma: JointDistribution, order: float) -> Decimal:
    if order == math.inf:
        return decimal(max(abs(q - v) for v, _, q in rows(gamma)))
    assert order == int(order)
    power = sum(w * abs(q - v) ** int(order) for v, w, q in rows(gamma))
    return decimal(power) ** (1 / Decimal(order)) if power else Decimal(0)


@decimals
def kernel_ce(gamma: JointDistribution, kernel: str, scale: float) -> Decimal:
    levels = [(decimal(v), decimal(r)) for (v, _, _), r in zip(rows(gamma), residuals(gamma), strict=True)]
    total = Decimal(0)
    for (u, r), (v, s) in itertools.product(levels, repeat=2):
        apart = abs(u - v) / Decimal(scale)
        total += r * s * (-apart if kernel == "laplace" else -apart * apart).exp()
    return max(total, Decimal(0)).sqrt()


@decimals
def smooth_ce_in_log_odds(gamma: JointDistribution) -> Decimal:
    levels = [decimal(v) for v, _, _ in rows(gamma)]
    apart = [
        Decimal(2) if u == 0 or v == 1 else (v * (1 - u) / (u * (1 - v))).ln()
        for u, v in itertools.pairwise(levels)
    ]
    return decimal(_cheapest_path(gamma, [Fraction(min(d, Decimal(2))) for d in apart]))


def binned_ece(gamma: JointDistribution, m: int, widths: bool) -> Fraction:
    bins: dict[int, Fraction] = {}
    for v, r in zip(gamma.predictions.tolist(), residuals(gamma), strict=True):
        j = max(j for j in range(m) if j / m <= v)
        bins[j] = bins.get(j, Fraction(0)) + r
    return sum(map(abs, bins.values()), Fraction(0)) + (Fraction(1, m) if widths else 0)


def cutoff_ce(gamma: JointDistribution) -> Fraction:
    return max(prefix(gamma)) - min(prefix(gamma))


def step_ce(gamma: JointDistribution) -> Fraction:
    return max(map(abs, prefix(gamma)))


def low_degree_ce(gamma: JointDistribution, degree: int) -> Fraction:
    parts = list(zip(rows(gamma), residuals(gamma), strict=True))
    return max(abs(sum(r * v**j for (v, _, _), r in parts)) for j in range(degree + 1))


def interval_ce(gamma: JointDistribution, width: str) -> Fraction:
    """Over all 2^(k − 1) partitions."""
    rs, levels = residuals(gamma), rows(gamma)
    best = Fraction(10)
    for ends in itertools.product((False, True), repeat=gamma.levels - 1):
        starts = [0, *(i + 1 for i, end in enumerate(ends) if end), gamma.levels]
        groups = list(itertools.pairwise(starts))
        error = sum((abs(sum(rs[a:b])) for a, b in groups), Fraction(0))
        wide = [levels[b - 1][0] - levels[a][0] for a, b in groups]
        mass = [sum(w for _, w, _ in levels[a:b]) for a, b in groups]
        added = sum(m * d for m, d in zip(mass, wide, strict=True)) if width == "mean" else max(wide)
        best = min(best, error + added)
    return best


def random_interval_ce(gamma: JointDistribution, epsilon: Fraction) -> Fraction:
    """Between the shifts at which some level changes bins."""
    levels = [v for v, _, _ in rows(gamma)]
    breaks = sorted({v % epsilon for v in levels} | {Fraction(0), epsilon})
    total = Fraction(0)
    for a, b in itertools.pairwise(breaks):
        bins: dict[int, Fraction] = {}
        for v, r in zip(levels, residuals(gamma), strict=True):
            number = (v - (a + b) / 2) // epsilon
            bins[number] = bins.get(number, Fraction(0)) + r
        total += (b - a) / epsilon * sum(map(abs, bins.values()))
    return total


def surrogate_interval_ce(gamma: JointDistribution, finest: int = 56) -> Fraction:
    """Over j ≤ finest, and the ECE as the limit; right where no two levels are within 2^−finest."""
    terms = (random_interval_ce(gamma, Fraction(1, 2**j)) + Fraction(1, 2**j) for j in range(finest + 1))
    return min(min(terms), ece(gamma))


def smooth_ce(gamma: JointDistribution) -> Fraction:
    return _cheapest_path(gamma, [b - a for (a, _, _), (b, _, _) in itertools.pairwise(rows(gamma))])


def _cheapest_path(gamma: JointDistribution, apart: list[Fraction]) -> Fraction:
    """The dual min Σ|g_i − g_{i−1}| + Σ d_i |P_i − g_i|, and its optimum has every g_i among 0, P_1, …, P_k."""
    sums = prefix(gamma)
    places = sorted(set(sums))
    cost = {g: abs(g) for g in places}
    for i in range(1, gamma.levels):
        here = {g: c + apart[i - 1] * abs(sums[i] - g) for g, c in cost.items()}
        cost = {g: min(c + abs(g - f) for f, c in here.items()) for g in places}
    return cost[sums[-1]]


def swap_density(gamma: JointDistribution, t: Fraction) -> Fraction:
    total = Fraction(0)
    for v, w, q in rows(gamma):
        if v <= t < q or q < t <= v:
            total += w * abs(q - t)
    return total


def external_density(gamma: JointDistribution, t: Fraction) -> Fraction:
    """The better of both fixed actions, levels at t answering as the decision maker comes to regret."""
    up = sum((w * (q - t) for v, w, q in rows(gamma) if v < t), Fraction(0))
    down = sum((w * (t - q) for v, w, q in rows(gamma) if v > t), Fraction(0))
    tied = [w * (q - t) for v, w, q in rows(gamma) if v == t]
    up += sum((max(g, Fraction(0)) for g in tied), Fraction(0))
    down += sum((max(-g, Fraction(0)) for g in tied), Fraction(0))
    return max(up, down, Fraction(0))


def points(gamma: JointDistribution) -> list[Fraction]:
    levels = rows(gamma)
    return sorted({Fraction(0), HALF, Fraction(1), *(v for v, _, _ in levels), *(q for _, _, q in levels)})


def _twice_envelope(points: list[tuple[Fraction, Fraction]]) -> Fraction:
    best = Fraction(0)
    for (s, a), (t, b) in itertools.product(points, repeat=2):
        if s <= HALF <= t:
            best = max(best, a if s == t else ((t - HALF) * a + (HALF - s) * b) / (t - s))
    return 2 * best


def cdl(gamma: JointDistribution) -> Fraction:
    return _twice_envelope([(t, swap_density(gamma, t)) for t in points(gamma)])


def v_cdl(gamma: JointDistribution) -> Fraction:
    return max(swap_density(gamma, t) / max(t, 1 - t) for t in points(gamma))


def u_calibration(gamma: JointDistribution) -> Fraction:
    return _twice_envelope([(t, external_density(gamma, t)) for t in points(gamma)])


def scdl_binned(gamma: JointDistribution, m: int) -> Fraction:
    """Every threshold where the loss can be largest: i = j or j + 1 of a point with mass, and 1 and m.

    A float that is j/m, rounded, is that point of the grid.
    """
    mass: dict[int, Fraction] = {}
    ones: dict[int, Fraction] = {}
    for v, w, q in rows(gamma):
        nearest = round(v * m)
        place = Fraction(nearest) if nearest / m == float(v) else v * m
        j = place // 1
        for point, share in ((j, 1 - (place - j)), (j + 1, place - j)):
            if share:
                mass[point] = mass.get(point, Fraction(0)) + w * share
                ones[point] = ones.get(point, Fraction(0)) + w * share * q
    best = Fraction(0)
    for i in {1, m, *mass, *(j + 1 for j in mass)}:
        if 1 <= i <= m:
            gains = (
                max(ones[j] - mass[j] * Fraction(i, m), 0)
                if j < i
                else max(mass[j] * Fraction(i - 1, m) - ones[j], 0)
                for j in mass
            )
            best = max(best, sum(gains, Fraction(0)))
    return best


def scdl(gamma: JointDistribution, finest: int = 50) -> Fraction:
    if all(v == q for v, _, q in rows(gamma)):
        return Fraction(0)
    return min(max(scdl_binned(gamma, 2**e), Fraction(1, 2**e)) for e in range(finest + 1))


def distance_upper(gamma: JointDistribution) -> Fraction:
    """Over all partitions of the levels."""
    levels, costs = rows(gamma), []
    for groups in partitions(range(gamma.levels)):
        cost = Fraction(0)
        for group in ([levels[i] for i in each] for each in groups):
            mean = sum(w * q for _, w, q in group) / sum(w for _, w, _ in group)
            cost += sum(w * abs(v - mean) for v, w, _ in group)
        costs.append(cost)
    return min(costs)
