"""The matrix game of one state: the forecaster's points against two outcomes.

With a_i and b_i the values after y = 0 and y = 1 at point i, the forecaster's best law mixes at most two points, on
either side of a = b, and the value is max over q of min_i (1 − q) a_i + q b_i. The kernel walks from one pair of lines
to the next until no line is below their crossing; it returns the cost of a law, and from q its gap to the value.
"""

from __future__ import annotations

from onlinecal.core._compile import part_of_kernel


@part_of_kernel
def against_law(a, b):
    """The best law: its cost, the gap to the value, two points, the share of the first, nature's q."""
    n = len(a)
    i = j = 0
    for k in range(1, n):
        if a[k] < a[i] or (a[k] == a[i] and b[k] < b[i]):
            i = k
        if b[k] < b[j] or (b[k] == b[j] and a[k] < a[j]):
            j = k
    if b[i] <= a[i]:
        return a[i], 0.0, i, i, 1.0, 0.0
    if a[j] <= b[j]:
        return b[j], 0.0, j, j, 1.0, 1.0
    # Line i rises in q, line j falls.
    for _ in range(n + 2):
        rise, fall = b[i] - a[i], a[j] - b[j]
        q = (a[j] - a[i]) / (rise + fall)
        low, k = a[i] + q * rise, i
        for other in range(n):
            value = a[other] + q * (b[other] - a[other])
            if value < low:
                low, k = value, other
        if k in (i, j):
            break
        if b[k] > a[k]:
            i = k
        elif b[k] < a[k]:
            j = k
        else:
            i = j = k
            break
    if i == j:
        return a[i], 0.0, i, i, 1.0, q
    share = fall / (rise + fall)
    cost = max(share * a[i] + (1.0 - share) * a[j], share * b[i] + (1.0 - share) * b[j])
    return cost, max(cost - low, 0.0), i, j, share, q


@part_of_kernel
def against_draw(a, b):
    """The same where nature sees what is drawn: the best point."""
    i = 0
    for k in range(1, len(a)):
        if max(a[k], b[k]) < max(a[i], b[i]):
            i = k
    return max(a[i], b[i]), 0.0, i, i, 1.0, 1.0 if b[i] > a[i] else 0.0
