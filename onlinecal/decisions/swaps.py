"""The gain of the best swap that rises with the prediction, or that does not change fast."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.validation import number, vector
from onlinecal.decisions.base import TIE, DecisionTask, QuadraticTask, Task

Swap = Callable[[Floats], ArrayLike] | ArrayLike


def regret(
    gamma: JointDistribution,
    task: Task,
    swaps: Literal["monotone", "lipschitz"] | Iterable[Swap],
    lipschitz: float,
) -> float:
    """See `onlinecal.decisions.tasks.restricted_swap_regret`."""
    where = "restricted_swap_regret"
    account = task.account(gamma)
    if not isinstance(swaps, str):
        best = max(task.account(moved).payoff for moved in _swapped(f"{where}: swaps", gamma, swaps))
        return min(best - account.payoff, account.swap)
    if swaps not in ("monotone", "lipschitz"):
        raise InvalidParameter(f"{where}: swaps = {swaps!r}; expected 'monotone', 'lipschitz' or a list")
    free, rate = swaps == "monotone", number(where, "lipschitz", lipschitz, 0.0)
    if not free and rate == 0.0:
        return account.external  # every κ is constant, and so is its response, on a kink too
    if isinstance(task, DecisionTask):
        _, payoffs, low, high = task.envelope
        w, q = gamma.mass, gamma.means
        if free:  # in O(k A)
            gain = float(_ascending(w, q, payoffs)) - account.payoff
        else:  # in O(k² A) at worst
            steps = rate * np.diff(gamma.predictions) + TIE
            gain = float(_steady(steps, w, q, payoffs, *_pieces(low, high))) - account.payoff
    elif isinstance(task, QuadraticTask):
        v, w, q = gamma.predictions, gamma.mass, gamma.means
        # In O(k), or in O(k²); values in [0, 1] are nowhere further apart than 1.
        kappa = ascending(q, w) if free else _nearest(np.minimum(rate * np.diff(v), 1.0), w, q)
        gain = float((w * (kappa - v) * (2.0 * q - v - kappa)).sum())
    else:
        raise InvalidParameter(
            f"{where}: swaps = {swaps!r} with task {task.name!r}; expected a table of payoffs or the quadratic task, "
            "or a list of swaps"
        )
    if free or rate >= 1.0:
        gain = max(gain, 0.0)  # κ(v) = v
    return min(gain, account.swap)


def ascending(x: Floats, weights: Floats) -> Floats:
    """Isotonic regression by pooling, summed in SciPy's order: importing `scipy.optimize` takes 0.2 s."""
    mean, mass, first = np.empty(len(x)), np.empty(len(x)), np.empty(len(x), dtype=np.int64)
    blocks = _pool(x, weights, mean, mass, first)
    return np.repeat(mean[:blocks], np.diff(first[:blocks], append=len(x)))


@kernel
def _pool(x, weights, mean, mass, first):
    """Fills in the mean, the weight and the first index of each block; returns the number of blocks."""
    blocks = i = 0
    while i < len(x):
        level, held, begin = x[i], weights[i], i
        if blocks > 0 and mean[blocks - 1] >= level:
            blocks -= 1
            total = mass[blocks] * mean[blocks] + held * level
            held, begin = held + mass[blocks], first[blocks]
            level = total / held
            while i + 1 < len(x) and level >= x[i + 1]:
                i += 1
                total += weights[i] * x[i]
                held += weights[i]
                level = total / held
            while blocks > 0 and mean[blocks - 1] >= level:
                blocks -= 1
                total += mass[blocks] * mean[blocks]
                held, begin = held + mass[blocks], first[blocks]
                level = total / held
        mean[blocks], mass[blocks], first[blocks] = level, held, begin
        blocks += 1
        i += 1
    return blocks


def _swapped(where: str, gamma: JointDistribution, swaps: Any) -> list[JointDistribution]:
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


def _pieces(low: Floats, high: Floats) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
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
