"""Kernels of forecasters on the grid 1/m in the simplex: the rank of a point, and rounding to it."""

from __future__ import annotations

import math

from onlinecal.engine.steps import kernel


@kernel
def choose(n, k):
    """The number of k-subsets of n things."""
    found = 1
    for i in range(1, k + 1):
        found = found * (n - k + i) // i
    return found


@kernel
def rank_of(parts):
    """The place of a point in `core.simplex.simplex_grid`, given its K whole numbers of steps."""
    rank, left, classes = 0, 0, len(parts)
    for n in parts:
        left += int(n)
    for j in range(classes - 1):
        # Points with the same first parts, and a smaller one here.
        free = classes - 1 - j
        rank += choose(left + free, free)
        left -= int(parts[j])
        rank -= choose(left + free, free)
    return rank


@kernel
def round_whole(counts, m, parts):
    """Writes the parts of the grid 1/m that are nearest to whole counts over their sum.

    Rounds down, and gives the steps that are left to the largest remainders, of equal ones to the first.
    """
    total, left = 0, m
    for n in counts:
        total += int(n)
    for k in range(len(counts)):
        parts[k] = int(counts[k]) * m // total
        left -= int(parts[k])
    for _ in range(left):
        best, most = 0, -1
        for k in range(len(counts)):
            # One that has got a step has a remainder below 0.
            over = int(counts[k]) * m - int(parts[k]) * total
            if over > most:
                best, most = k, over
        parts[best] += 1


@kernel
def round_shares(shares, m, parts):
    """The same of numbers ≥ 0 over their sum; all classes are alike where that is 0."""
    total, left = 0.0, m
    for share in shares:
        total += share
    if total == 0.0:
        shares[:], total = 1.0, float(len(shares))
    for k in range(len(shares)):
        # What is whole up to rounding is taken as whole: 3 · (1/3) is one step.
        parts[k] = math.floor(shares[k] / total * m + 1e-9)
        left -= int(parts[k])
    for _ in range(left):
        best, most = 0, -2.0
        for k in range(len(shares)):
            over = shares[k] / total * m - parts[k]
            if over > most + 1e-9:
                best, most = k, over
        parts[best] += 1
