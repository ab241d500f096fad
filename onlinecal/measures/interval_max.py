"""The best partition into intervals by the greatest width: one pass for a width, and a search over widths.

Levels 1 … k have prefix sums P_0 = 0, …, P_k of their residuals. A group a+1 … b costs |P_b − P_a| and is as wide as
its levels are apart. H(W) is the least cost of groups of which none is wider than W; wanted is the least H(W) + W.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Members of a set that one word of it stands for; a double still holds such a word exactly.
_SHIFT = 5


def least_max_width(
    prefix: Floats, low: Floats, high: Floats, most: float = math.inf
) -> tuple[float, float, Ints]:
    """min over W of H(W) + W, searched until it is found or H was evaluated `most` times: bounds, and a partition.

    H falls as W grows. So W in an interval (left, right) cannot give less than H(right) + left, nor can any
    W ≥ best − H(right) give less than the best value so far. The interval with the lowest bound is halved; where the
    groups found for a W are all narrower, those widths from their greatest up to W are done with. Where the lower half
    held no width, the upper half is left from its greatest one. When no bound is below the best value, that is the
    least. `low` and `high` are where each level, or block of levels, begins and ends. The partition is where the group
    that ends at b begins, for each b.
    """
    program = _Program(prefix, low, high)
    least, widest = float((high - low).max()), float(high[-1] - low[0])
    error, used, groups = program.narrow(least)
    best = error + used
    error, used, before = program.narrow(widest)
    if error + used < best:
        best, groups = error + used, before
    parts = [(error + least, least, used, error, False)]
    while parts and parts[0][0] < best and program.evaluations < most:
        _, left, right, error, bare = heapq.heappop(parts)
        end = min(float(np.nextafter(right, 0.0)), best - error)
        if end <= left:
            continue
        middle = end if bare else 0.5 * (left + end)
        if not left < middle < end:
            middle = end
        here, used, before = program.narrow(middle)
        if here + used < best:
            best, groups = here + used, before
        if used > left:
            heapq.heappush(parts, (here + left, left, used, here, False))
        if middle < end:
            heapq.heappush(parts, (error + middle, middle, right, error, used <= left))
    return min(parts[0][0], best) if parts else best, best, groups


class _Program:
    """H(W) for one Γ and many W."""

    def __init__(self, prefix: Floats, low: Floats, high: Floats) -> None:
        values, rank = np.unique(prefix, return_inverse=True)
        self.sums = prefix, rank.astype(np.int64), low, high
        # A word for every 32 ranks, one for every 32 words, and so on up to a single one.
        starts, size = [0], len(values)
        while (size := (size + 31) >> _SHIFT) > 1:
            starts.append(starts[-1] + size)
        self.starts = np.array(starts)
        self.evaluations = 0

    def narrow(self, widest: float) -> tuple[float, float, Ints]:
        """H(widest), the greatest width used, and where the group that ends at b begins."""
        self.evaluations += 1
        error, used, before = _narrow(*self.sums, widest, self.starts)
        return float(error), float(used), before


@kernel
def _narrow(prefix, rank, low, high, widest, starts):
    """Least cost of groups of which none is wider than `widest`, in O(k log k).

    cost[b] = min of cost[a] + |P_b − P_a| over the a from which a group to b is not too wide. These a are a window.
    (1) For a < a' in it, cost[a'] ≤ cost[a] + |P_a' − P_a|: the group from a to a' is not too wide either.
    (2) If cost[a] ≥ cost[a'] + |P_a' − P_a|, then for every b to come a' is as good as a, and it stays in the window
    for longer: a can be dropped. For those kept, (1) and (2) say |cost[a'] − cost[a]| ≤ |P_a' − P_a|. So for a P_b the
    best of those with P_a ≤ P_b is the one with the greatest P_a, and likewise above: two candidates, found in a set
    of ranks.
    """
    k = len(low)
    members = np.zeros(starts[-1] + 1, np.int64)
    owner = np.full(k + 1, -1, np.int64)  # the a kept at a rank
    cost, before = np.zeros(k + 1), np.zeros(k + 1, np.int64)
    _put(members, starts, rank[0])
    owner[rank[0]] = 0
    first = 0
    for b in range(1, k + 1):
        while high[b - 1] - low[first] > widest:
            if owner[rank[first]] == first:
                _drop(members, starts, rank[first])
                owner[rank[first]] = -1
            first += 1
        r = rank[b]
        if owner[r] >= 0:
            before[b] = owner[r]
            cost[b] = cost[owner[r]]
            owner[r] = b
            continue
        below, above = _below(members, starts, r), _above(members, starts, r)
        best = np.inf
        if below >= 0:
            before[b] = owner[below]
            best = cost[owner[below]] + (prefix[b] - prefix[owner[below]])
        if above >= 0:
            here = cost[owner[above]] + (prefix[owner[above]] - prefix[b])
            if here < best:
                before[b] = owner[above]
                best = here
        cost[b] = best
        while below >= 0 and cost[owner[below]] >= best + (prefix[b] - prefix[owner[below]]):
            _drop(members, starts, below)
            owner[below] = -1
            below = _below(members, starts, r)
        while above >= 0 and cost[owner[above]] >= best + (prefix[owner[above]] - prefix[b]):
            _drop(members, starts, above)
            owner[above] = -1
            above = _above(members, starts, r)
        _put(members, starts, r)
        owner[r] = b
    used = 0.0
    b = k
    while b > 0:
        used = max(used, high[b - 1] - low[before[b]])
        b = before[b]
    return cost[k], used, before


@kernel
def _put(members, starts, rank):
    for start in starts:
        members[start + (rank >> _SHIFT)] |= 1 << (rank & 31)
        rank >>= _SHIFT


@kernel
def _drop(members, starts, rank):
    for start in starts:
        word = start + (rank >> _SHIFT)
        members[word] &= ~(1 << (rank & 31))
        if members[word] != 0:
            return
        rank >>= _SHIFT


@kernel
def _below(members, starts, rank):
    """The greatest member below this rank, or −1."""
    for depth in range(len(starts)):
        word = members[starts[depth] + (rank >> _SHIFT)] & ((1 << (rank & 31)) - 1)
        rank >>= _SHIFT
        if word != 0:
            rank = (rank << _SHIFT) + _top(word)
            for level in range(depth - 1, -1, -1):
                rank = (rank << _SHIFT) + _top(members[starts[level] + rank])
            return rank
    return -1


@kernel
def _above(members, starts, rank):
    """The least member above this rank, or −1."""
    for depth in range(len(starts)):
        word = members[starts[depth] + (rank >> _SHIFT)] & ~((2 << (rank & 31)) - 1)
        rank >>= _SHIFT
        if word != 0:
            rank = (rank << _SHIFT) + _top(word & -word)
            for level in range(depth - 1, -1, -1):
                word = members[starts[level] + rank]
                rank = (rank << _SHIFT) + _top(word & -word)
            return rank
    return -1


@kernel
def _top(word):
    """The place of the highest bit."""
    return math.frexp(float(word))[1] - 1
