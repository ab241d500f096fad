"""Interval calibration straight from its definitions: all partitions, exact shifts in rational numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from onlinecal.core.joint import JointDistribution


def interval_ce(gamma: JointDistribution, width: str = "mean") -> float:
    """The least over all 2^(k−1) partitions of the levels into runs."""
    k = gamma.levels
    v, w, r = (x.tolist() for x in (gamma.predictions, gamma.mass, gamma.residuals))
    best = math.inf
    for inner in itertools.product((False, True), repeat=k - 1):
        ends = [0, *(i + 1 for i in range(k - 1) if inner[i]), k]
        groups = [range(a, b) for a, b in itertools.pairwise(ends)]
        binned = sum(abs(math.fsum(r[i] for i in g)) for g in groups)
        widths = [v[g[-1]] - v[g[0]] for g in groups]
        if width == "mean":
            added = sum(math.fsum(w[i] for i in g) * d for g, d in zip(groups, widths, strict=True))
        else:
            added = max(widths)
        best = min(best, binned + added)
    return best


def random_interval_ce(gamma: JointDistribution, epsilon: float) -> float:
    """The mean over r, with the bins of each r found in rational arithmetic between the breaks v_i mod ε."""
    e = Fraction(epsilon)
    v = [Fraction(float(x)) for x in gamma.predictions]
    breaks = sorted({x % e for x in v} | {Fraction(0), e})
    total = 0.0
    for a, b in itertools.pairwise(breaks):
        shift = (a + b) / 2
        bins: dict[int, float] = {}
        for x, r in zip(v, gamma.residuals.tolist(), strict=True):
            number = math.floor((x - shift) / e)
            bins[number] = bins.get(number, 0.0) + r
        total += float((b - a) / e) * sum(abs(s) for s in bins.values())
    return total


def surrogate_interval_ce(gamma: JointDistribution, finest: int = 40) -> float:
    """inf over j ≤ finest, and the ECE as the limit."""
    terms = [random_interval_ce(gamma, 2.0**-j) + 2.0**-j for j in range(finest + 1)]
    return min(*terms, math.fsum(abs(r) for r in gamma.residuals.tolist()))
