"""Regret as a function of the kink of a task, and the worst mixture of kinks.

A task with payoffs in [0, 1] acts like a measure ν ≥ 0 of kinks t with ∫(1 − t) dν ≤ 1 and ∫ t dν ≤ 1, and
its regret is ∫ R dν for a density R. The dual of maximising over ν asks for the lowest line above R, so the
worst regret is twice the upper concave envelope of R at t = 1/2, and at most two kinks carry the worst ν.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.joint import JointDistribution
from onlinecal.measures.witnesses.sums import add
from onlinecal.measures.witnesses.tasks import RegretBound, WorstTask, kink_regrets


def worst_task(
    touch: tuple[float, float, float, float, float], regret: Literal["swap", "external"]
) -> WorstTask:
    """The task at which the envelope touches R; `touch` is returned by `at_half`."""
    share, t1, r1, t2, r2 = touch
    if max(r1, r2) <= 0.0:
        return WorstTask((), ((1.0, 0.0),), regret)
    if t1 == t2:
        return WorstTask((t1,), ((1.0, 0.0), (0.0, 1.0)), regret)
    middle = (max(0.0, 1.0 - 2.0 * share * t1), min(1.0, 2.0 * share * (1.0 - t1)))
    kinks, payoffs = [t1, t2], [(1.0, 0.0), middle, (0.0, 1.0)]
    # Where the envelope rests on 0 or 1 without regret, no action is needed beyond.
    if t2 == 1.0 and r2 <= 0.0:
        kinks, payoffs = kinks[:1], payoffs[:2]
    elif t1 == 0.0 and r1 <= 0.0:
        kinks, payoffs = kinks[1:], payoffs[1:]
    return WorstTask(tuple(kinks), tuple(payoffs), regret)


def regret_bound(
    gamma: JointDistribution, *, measure: Literal["cdl", "v_cdl", "u_calibration"] = "cdl"
) -> RegretBound:
    """The lowest curve above the regret of every kink: no task regrets more than it allows.

    For `cdl` and `u_calibration` it is the line of the concave envelope at t = 1/2, for `v_cdl` a multiple of
    max(t, 1 − t).
    """
    t, regret, _ = kink_regrets(gamma, measure)
    if measure == "v_cdl":
        return RegretBound(float((regret / np.maximum(t, 1.0 - t)).max()) / 2.0, 0.0, measure)
    slope = float(_slope_at_half(t, regret))
    return RegretBound(float((regret - slope * (t - 0.5)).max()), slope, measure)


@kernel
def upper_hull(t, y):
    """The corners of the upper concave envelope of the points (t_i, y_i), t ascending; both ends are corners."""
    hull, top = np.empty(t.shape[0], np.int64), -1
    for i in range(t.shape[0]):
        while top > 0:
            a, b = hull[top - 1], hull[top]
            if (y[b] - y[a]) * (t[i] - t[a]) > (y[i] - y[a]) * (t[b] - t[a]):
                break
            top -= 1
        top += 1
        hull[top] = i
    return hull[: top + 1]


@kernel
def _slope_at_half(t, y):
    """Slope of the upper concave envelope of the points just above 1/2, or below it where 1/2 is a corner."""
    hull = upper_hull(t, y)
    b = 1
    while t[hull[b]] < 0.5:
        b += 1
    return (y[hull[b]] - y[hull[b - 1]]) / (t[hull[b]] - t[hull[b - 1]])


@kernel
def rising(t, first, n, q, out):
    """Add Σ_l n_l (q_l − t_c)_+, over the l with first[l] ≤ c, to out[c]; t ascends."""
    _lines(t, first, n, q, out, 1)


@kernel
def falling(t, last, n, q, out):
    """Add Σ_l n_l (t_c − q_l)_+ over the l with last[l] ≥ c to out[c]: `rising` in a mirror."""
    _lines(t, last, n, q, out, -1)


@kernel
def _lines(t, end, n, q, out, way):
    """Add the lines that begin at a point, each at its own where `end` is empty, and go on that way, 1 or −1.

    A term is a line from its first point to where t reaches q. Lines are followed by their joint slope, a sum of whole
    numbers where n are counts, so that no large sums cancel.
    """
    # Point c of the way is `start + way·c`, and there `way` times what is there: the same digits in a mirror.
    size, levels = t.shape[0], n.shape[0]
    start = 0 if way > 0 else size - 1
    # Of lines that each begin at a point of their own, beginnings need no memory, and ends only where there are any.
    own = len(end) < levels
    jump, slope = np.zeros(0 if own else size), np.zeros(0 if own else size)
    for i in range(levels):
        at = i if way > 0 else levels - 1 - i
        a, goal, count = (i if own else way * (end[at] - start)), way * q[at], n[at]
        if a >= size or not goal > way * t[start + way * a]:
            continue
        begin, last = way * t[start + way * a], way * t[start + way * (size - 1)]
        if not own:
            jump[a] += count * (goal - begin)
            slope[a] += count
        if last < goal:
            continue
        if len(jump) < size:
            jump, slope = np.zeros(size), np.zeros(size)
        # The first point at or above q: a guess as if points were evenly spaced, then steps that double.
        low, high = a, size - 1
        guess = a + np.int64((goal - begin) / (last - begin) * (high - a))
        step = 1
        if way * t[start + way * guess] < goal:
            low = guess
            while low + step < high and way * t[start + way * (low + step)] < goal:
                low += step
                step *= 2
            if low + step < high:
                high = low + step
        else:
            high = guess
            while high - step > low and way * t[start + way * (high - step)] >= goal:
                high -= step
                step *= 2
            if high - step > low:
                low = high - step
        while high - low > 1:
            middle = (low + high) // 2
            if way * t[start + way * middle] < goal:
                low = middle
            else:
                high = middle
        jump[high] += count * (way * t[start + way * high] - goal)
        slope[high] -= count
    height, rest, rate = 0.0, 0.0, 0.0
    for c in range(size):
        at = start + way * c
        if c > 0:
            height, rest = add(height, rest, -rate * (way * t[at] - way * t[at - way]))
        rise, steeper = 0.0, 0.0
        if len(jump) == size:
            rise, steeper = jump[c], slope[c]
        if own and way * q[at] > way * t[at]:
            rise += n[at] * (way * q[at] - way * t[at])
            steeper += n[at]
        height, rest = add(height, rest, rise)
        rate += steeper
        if height + rest > 0.0:
            out[at] += height + rest


@kernel
def density(v, n, q):
    """R at the level sets, weighted by n; second, whether any level is miscalibrated.

    All maxima are there: between two levels R is convex, since a level's part meets 0 at q_i without a jump.
    """
    out, here, wrong = np.zeros(v.shape[0]), np.empty(0, np.int64), False
    for i in range(v.shape[0]):
        wrong |= q[i] != v[i]
    if wrong:
        rising(v, here, n, q, out)
        falling(v, here, n, q, out)
    return out, wrong


@kernel
def external_density(v, n, q):
    """max(R_ext, 0) at the level sets, weighted by n.

    With G(t) = Σ n (q − t) over v ≤ t and H(t) = Σ n (t − q) over v ≥ t, the regret for a fixed action is the larger of
    the two. A level at t may be left out of either, to the decision maker's harm; but G without it is the line from the
    level before, below 0 at t = 1, so the envelope stays the same (for H, the line from the level after, and t = 0).
    """
    k = v.shape[0]
    out = np.zeros(k)
    total, rest, count = 0.0, 0.0, 0.0
    for i in range(k):
        if i > 0:
            total, rest = add(total, rest, -count * (v[i] - v[i - 1]))
        total, rest = add(total, rest, n[i] * (q[i] - v[i]))
        count += n[i]
        out[i] = max(out[i], total + rest)
    total, rest, count = 0.0, 0.0, 0.0
    for i in range(k - 1, -1, -1):
        if i < k - 1:
            total, rest = add(total, rest, -count * (v[i + 1] - v[i]))
        total, rest = add(total, rest, n[i] * (v[i] - q[i]))
        count += n[i]
        out[i] = max(out[i], total + rest)
    return out


@kernel
def at_half(v, r):
    """The points where the upper concave envelope of the (v_i, r_i), (0, 0) and (1, 0) touches above 1/2.

    Returns λ, t1, r1, t2, r2 with t1 ≤ 1/2 ≤ t2 and λ t1 + (1 − λ) t2 = 1/2; t1 = t2 = 1/2 for one touching point.
    """
    k = v.shape[0]
    t, h, top = np.empty(k + 2), np.empty(k + 2), 0
    t[0] = 0.0
    h[0] = r[0] if v[0] == 0.0 else 0.0
    for i in range(k + 1):
        x = v[i] if i < k else 1.0
        y = r[i] if i < k else 0.0
        if x == 0.0 or (i == k and v[k - 1] == 1.0):
            continue  # the level at an end stands for the end
        while top > 0 and (h[top] - h[top - 1]) * (x - t[top - 1]) <= (y - h[top - 1]) * (
            t[top] - t[top - 1]
        ):
            top -= 1
        top += 1
        t[top] = x
        h[top] = y
    b = 0
    while t[b] < 0.5:
        b += 1
    if t[b] == 0.5:
        return 1.0, 0.5, h[b], 0.5, h[b]
    share = (t[b] - 0.5) / (t[b] - t[b - 1])
    return share, t[b - 1], h[b - 1], t[b], h[b]
