"""The best swap of those that do not fall, of those that do not change fast, or of a list."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import vector
from onlinecal.decisions.regret import TIE

Swap = Callable[[Floats], ArrayLike] | ArrayLike


def best_payoff(
    gamma: JointDistribution, envelope: tuple[Ints, Floats, Floats, Floats], rate: float | None
) -> float:
    """The payoff of responding to the best κ(v), with |κ(u) − κ(v)| ≤ rate |u − v|, or (None) that does not fall."""
    _, payoffs, low, high = envelope
    if rate is None:  # in O(k A)
        return float(_ascending(gamma.mass, gamma.means, payoffs))
    steps = rate * np.diff(gamma.predictions) + TIE  # in O(k² A) at worst
    return float(_steady(steps, gamma.mass, gamma.means, payoffs, *_pieces(low, high)))


def nearer(gamma: JointDistribution, rate: float | None) -> float:
    """The gain of the best κ in the quadratic task: in O(k) of those that do not fall, or in O(k²)."""
    v, w, q = gamma.predictions, gamma.mass, gamma.means
    # Values in [0, 1] are nowhere further apart than 1.
    kappa = ascending(q, w) if rate is None else _nearest(np.minimum(rate * np.diff(v), 1.0), w, q)
    return float((w * (kappa - v) * (2.0 * q - v - kappa)).sum())


def ascending(x: Floats, weights: Floats) -> Floats:
    """The nearest values that do not fall: isotonic regression."""
    from scipy.optimize import isotonic_regression  # loading it takes 0.2 s

    return np.asarray(isotonic_regression(x, weights=weights).x)


def swapped(where: str, gamma: JointDistribution, swaps: Any) -> list[JointDistribution]:
    """Γ with predictions κ(v), for each κ of a list."""
    if callable(swaps) or not isinstance(swaps, Iterable):
        raise InvalidParameter(f"{where} = {swaps!r}; expected 'monotone', 'lipschitz' or a list")
    found = []
    for j, swap in enumerate(swaps):
        given, shape = swap(gamma.predictions) if callable(swap) else swap, (gamma.levels,)
        values = vector(f"{where}[{j}]", given, InvalidParameter)
        if values.shape != shape:
            raise InvalidParameter(f"{where}[{j}] has shape {values.shape}; expected {shape}")
        inside = (values >= 0.0) & (values <= 1.0)
        if not inside.all():
            i = int(np.argmin(inside))
            raise InvalidParameter(f"{where}[{j}][{i}] = {float(values[i])!r}; expected a number in [0, 1]")
        found.append(JointDistribution.from_counts(values, gamma.counts, gamma.positives))
    if not found:
        raise InvalidParameter(f"{where} is empty; expected at least one swap")
    return found


def _pieces(low: Floats, high: Floats) -> tuple[Floats, Ints, Ints]:
    """[0, 1] cut where the best responses change, and the first and the last of them in each piece."""
    edges = np.unique(np.clip(np.concatenate([[0.0, 1.0], low, high]), 0.0, 1.0))
    first = np.searchsorted(high, edges[:-1], side="right")
    last = np.searchsorted(low, edges[:-1], side="right")
    return edges, first, last


@kernel
def _ascending(w, q, payoffs):
    """Dynamic programming. The pay of the levels so far if the last of them takes action a or one before it."""
    actions = payoffs.shape[0]
    best = np.zeros(actions)
    for i in range(len(w)):
        before = -np.inf
        for a in range(actions):
            before = max(before, best[a])
            best[a] = before + w[i] * ((1.0 - q[i]) * payoffs[a, 0] + q[i] * payoffs[a, 1])
    return best.max()


@kernel
def _steady(steps, w, q, payoffs, cuts, first, last):
    """Dynamic programming. The pay of the levels so far if κ of the last is x: edges, and the values between them."""
    edges, values, n = np.array([0.0, 1.0]), np.zeros(1), 1
    pieces = len(first)
    for i in range(len(w)):
        if i > 0:
            edges, values, n = _reached(edges, values, n, steps[i - 1])
        new_edges, new_values = np.empty(n + pieces + 1), np.empty(n + pieces)
        new_edges[0] = 0.0
        count, here, piece, got = 0, 0, 0, -1
        paid = 0.0
        while here < n and piece < pieces:
            if got != piece:
                got, paid = piece, -np.inf
                for a in range(first[piece], last[piece] + 1):
                    paid = max(paid, (1.0 - q[i]) * payoffs[a, 0] + q[i] * payoffs[a, 1])
            end, cut = edges[here + 1], cuts[piece + 1]
            value = values[here] + w[i] * paid
            if count == 0 or value != new_values[count - 1]:
                new_values[count] = value
                count += 1
            new_edges[count] = min(end, cut)
            if end <= cut:
                here += 1
            if cut <= end:
                piece += 1
        edges, values, n = new_edges, new_values, count
    return values[:n].max()


@kernel
def _reached(edges, values, n, step):
    """The largest value within a step of each x. Every piece grows by it to both sides, and the highest are seen."""
    new_edges, new_values = np.empty(2 * n + 2), np.empty(2 * n + 1)
    queue = np.empty(n, np.int64)  # pieces in reach, each lower than the one before it
    front, back = 0, 0
    x, entered, count = 0.0, 0, 0
    new_edges[0] = 0.0
    while x < 1.0:
        while entered < n and edges[entered] - step <= x:
            while back > front and values[queue[back - 1]] <= values[entered]:
                back -= 1
            queue[back] = entered
            back += 1
            entered += 1
        while front < back - 1 and edges[queue[front] + 1] + step <= x:
            front += 1
        end = edges[queue[front] + 1] + step if queue[front] < n - 1 else 1.0
        if entered < n:
            end = min(end, edges[entered] - step)
        end = min(end, 1.0)
        value = values[queue[front]]
        if count == 0 or value != new_values[count - 1]:
            new_values[count] = value
            count += 1
        new_edges[count] = end
        x = end
    return new_edges, new_values, count


@kernel
def _nearest(steps, w, q):
    """Dynamic programming. The least loss of the levels so far if κ of the last is x, convex in x."""
    # Its derivative is linear between knots. A step to the next level moves the falling part to the left and the rising
    # one to the right.
    k = len(w)
    lowest = np.empty(k)
    at, slope = np.empty(2 * k + 1), np.empty(2 * k + 1)
    at[0], slope[0], knots = q[0], 0.0, 1
    steep = 2.0 * w[0]  # of the lines beyond the knots
    lowest[0] = q[0]
    for i in range(1, k):
        root = lowest[i - 1]
        left = 0
        while left < knots and slope[left] < 0.0:
            left += 1
        right = left
        while right < knots and slope[right] <= 0.0:
            right += 1
        # Two knots of slope 0 take the place of those that have it already, at most one.
        moved_at, moved = at[right:knots].copy() + steps[i - 1], slope[right:knots].copy()
        at[:left] -= steps[i - 1]
        at[left], slope[left] = root - steps[i - 1], 0.0
        at[left + 1], slope[left + 1] = root + steps[i - 1], 0.0
        knots = left + 2 + len(moved)
        at[left + 2 : knots], slope[left + 2 : knots] = moved_at, moved
        for j in range(knots):
            slope[j] += 2.0 * w[i] * (at[j] - q[i])
        steep += 2.0 * w[i]
        j = 0
        while j < knots and slope[j] < 0.0:
            j += 1
        if j == 0:
            lowest[i] = at[0] - slope[0] / steep
        elif j == knots:
            lowest[i] = at[knots - 1] - slope[knots - 1] / steep
        else:
            share = slope[j - 1] / (slope[j - 1] - slope[j])
            lowest[i] = at[j - 1] + share * (at[j] - at[j - 1])
    for i in range(k - 2, -1, -1):
        lowest[i] = min(max(lowest[i], lowest[i + 1] - steps[i]), lowest[i + 1] + steps[i])
    return lowest
