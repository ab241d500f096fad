"""The two dynamic programs behind the smooth calibration error, and the weights that they leave."""

import numpy as np

from onlinecal.core._compile import kernel


@kernel
def isotonic_dual(v, r):
    """smCE in the identity metric.

    The level set {g > s} of the optimal g starts at the last maximum of Σ_{j≥i} d_j sign(P_j − s), so only
    the queue Q_s of that walk (fed by d where P > s, drained where P < s) at its end is needed, for s between
    0 and P_k: smCE = Σ d_i |P_i| + ∫ (1 − Q_s) ds. Q is mass on the line: a heap with the largest P on top.
    """
    k = len(v)
    end = 0.0
    for i in range(k):
        end += r[i]
    sign = 1.0
    if end < 0.0:
        sign = -1.0
        end = -end
    at, mass, size = np.empty(k), np.empty(k), 0
    above = 0.0  # mass at or above P_k, which need not be told apart
    area, p = 0.0, 0.0
    for i in range(k - 1):
        p += r[i]
        d = v[i + 1] - v[i]
        area += d * abs(p)
        here = sign * p
        if here >= end:
            above += d  # 2 d come, and d of the same goes
            continue
        if above >= d:
            above -= d
            left = 0.0
        else:
            left = d - above
            above = 0.0
            while size > 0 and left > 0.0 and at[0] > here:
                if mass[0] > left:
                    mass[0] -= left
                    left = 0.0
                else:
                    left -= mass[0]
                    size -= 1
                    if size > 0:
                        _sink(at, mass, size, at[size], mass[size])
        if here > 0.0:
            if size > 0 and at[0] == here:
                mass[0] += 2.0 * d - left
            else:
                _rise(at, mass, size, here, 2.0 * d - left)
                size += 1
    rest = above * end
    for j in range(size):
        rest += mass[j] * at[j]
    return area + (end - rest)


@kernel
def isotonic_duals(v, rows):
    """`isotonic_dual` of each row of residuals."""
    out = np.empty(rows.shape[0])
    for b in range(rows.shape[0]):
        out[b] = isotonic_dual(v, rows[b])
    return out


@kernel
def _rise(at, mass, size, key, weight):
    """Put (key, weight) into the max-heap of `size` entries."""
    j = size
    while j > 0:
        up = (j - 1) >> 1
        if at[up] >= key:
            break
        at[j] = at[up]
        mass[j] = mass[up]
        j = up
    at[j] = key
    mass[j] = weight


@kernel
def _sink(at, mass, size, key, weight):
    """Put (key, weight) in place of the top of the max-heap of `size` entries."""
    j, child = 0, 1
    while child < size:
        if child + 1 < size and at[child + 1] > at[child]:
            child += 1
        if at[child] <= key:
            break
        at[j] = at[child]
        mass[j] = mass[child]
        j = child
        child = 2 * j + 1
    at[j] = key
    mass[j] = weight


@kernel
def chain_dual(distances, r):
    """smCE for any distances, and the interval [low_i, high_i] to which the way back clips the dual's g_i.

    H_i(g) = min over g_1 … g_i with g_i = g of the dual objective so far is convex; its break points have
    total mass 2, at first all at 0. Level i adds 2 d_i at P_i; |g_{i+1} − g_i| then takes d_i at each end.
    """
    k = len(r)
    low, high = np.zeros(k), np.zeros(k)
    at = np.zeros(k)  # node 0 is the start, node i the level i
    mass = np.zeros(k)
    mass[0] = 2.0
    down = np.zeros(k, np.int64)  # heaps of nodes, smallest and largest on top; exhausted nodes leave lazily
    up = np.zeros(k, np.int64)
    small, large = 1, 1
    p = 0.0
    right = 0.0  # H_i(g) = g + right for g above all break points
    for i in range(k - 1):
        p += r[i]
        d = min(distances[i], 2.0)
        at[i + 1] = p
        mass[i + 1] = 2.0 * d
        _push(down, at, small, i + 1, 1.0)
        _push(up, at, large, i + 1, -1.0)
        small += 1
        large += 1
        small, _ = _take(down, at, mass, small, d, 1.0)
        large, moment = _take(up, at, mass, large, d, -1.0)
        right += moment - d * p
        # Mass 2 is left, so neither end can have eaten through to the other's top.
        low[i] = at[down[0]]
        high[i] = at[up[0]]
    p += r[k - 1]
    value = right + p
    for j in range(k):
        if at[j] > p:
            value += mass[j] * (at[j] - p)
    return value, low, high


@kernel
def chain_duals(distances, rows):
    """The value of `chain_dual` for each row of residuals."""
    out = np.empty(rows.shape[0])
    for b in range(rows.shape[0]):
        out[b] = chain_dual(distances, rows[b])[0]
    return out


@kernel
def _push(heap, at, size, node, sign):
    key = sign * at[node]
    j = size
    while j > 0:
        parent = (j - 1) >> 1
        if sign * at[heap[parent]] <= key:
            break
        heap[j] = heap[parent]
        j = parent
    heap[j] = node


@kernel
def _take(heap, at, mass, size, amount, sign):
    """Take `amount` of mass from the top; returns the size left and Σ of mass times position taken.

    The last node stays even where rounding exhausts it, so that the top is always defined.
    """
    moment = 0.0
    while size > 1 and mass[heap[0]] <= amount:
        node = heap[0]
        amount -= mass[node]
        moment += mass[node] * at[node]
        mass[node] = 0.0
        size -= 1
        last = heap[size]
        key = sign * at[last]
        j, child = 0, 1
        while child < size:
            if child + 1 < size and sign * at[heap[child + 1]] < sign * at[heap[child]]:
                child += 1
            if sign * at[heap[child]] >= key:
                break
            heap[j] = heap[child]
            j = child
            child = 2 * j + 1
        heap[j] = last
    node = heap[0]
    moment += amount * at[node]
    mass[node] = max(mass[node] - amount, 0.0)
    return size, moment


@kernel
def dual_path(r, low, high):
    """The dual's g_1, …, g_k on the way back from g_k = P_k."""
    k = len(r)
    p = 0.0
    for i in range(k):
        p += r[i]
    g = np.empty(k)
    g[k - 1] = p
    for i in range(k - 2, -1, -1):
        g[i] = min(max(g[i + 1], low[i]), high[i])
    return g


@kernel
def lipschitz_weights(distances, r, low, high):
    """The weights that complementary slackness leaves: forward the reachable intervals, back a choice."""
    k = len(r)
    prefix, p = np.empty(k), 0.0
    for i in range(k):
        p += r[i]
        prefix[i] = p
    g = dual_path(r, low, high)
    least, most = np.empty(k), np.empty(k)
    a, b = -1.0, 1.0
    before = 0.0
    for i in range(k):
        if i > 0:
            d = min(distances[i - 1], 2.0)
            if prefix[i - 1] > g[i - 1]:
                a, b = a - d, b - d
            elif prefix[i - 1] < g[i - 1]:
                a, b = a + d, b + d
            else:
                a, b = a - d, b + d
            a, b = min(max(a, -1.0), 1.0), min(max(b, -1.0), 1.0)
        if g[i] > before:
            a, b = 1.0, 1.0
        elif g[i] < before:
            a, b = -1.0, -1.0
        before = g[i]
        least[i], most[i] = a, b
    weights = np.empty(k)
    weights[k - 1] = least[k - 1] if p < 0.0 else most[k - 1]
    for i in range(k - 2, -1, -1):
        # Into the interval as far as the Lipschitz constraint lets: rounding may cost digits of the value,
        # never feasibility.
        d = min(distances[i], 2.0)
        after = weights[i + 1]
        if prefix[i] > g[i]:
            w = after + d
        elif prefix[i] < g[i]:
            w = after - d
        else:
            w = min(max(after, least[i]), most[i])
            w = min(max(w, after - d), after + d)
        weights[i] = min(max(w, -1.0), 1.0)
    return weights
