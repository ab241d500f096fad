"""Regret as a function of the kink of a task; its worst mixture of kinks, and its change on samples.

A task with payoffs in [0, 1] acts like a measure ν ≥ 0 of kinks t with ∫(1 − t) dν ≤ 1 and ∫ t dν ≤ 1. Its regret
is ∫ R dν for a density R. The dual of maximising over ν asks for the lowest line above R. So the worst regret is
twice the upper concave envelope of R at t = 1/2. At most two kinks carry the worst ν.

A regret is a supremum of means E[u(σ, y) − u(response to v, y)], hence sublinear in the masses of (v, y). With S(D)
the same supremum for a change D of the masses, the value rises by at most S(D). It falls by at most S(−D). For
kinks it is S(t) = Σ_{v ≤ t} (D_1 − t D)_+ + Σ_{v ≥ t} (t D − D_1)_+, where D = D_0 + D_1 is the change of a level's
mass.
"""

import math

import numpy as np
import scipy  # its parts are loaded when they are first used

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import cells
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.sums import add
from onlinecal.decisions.tasks import DecisionTask, QuadraticTask, Task, as_task
from onlinecal.measures.base import Change, Ends, Ints, Known, halving


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
def rising(t, first, n, q):
    """Σ_l n_l (q_l − t_c)_+, over the l with first[l] ≤ c, for each c; t ascends."""
    # The joint slope is a sum of whole numbers where n are counts, so that no large sums cancel.
    size = len(t)
    jump, slope = np.zeros(size), np.zeros(size)
    for i in range(len(n)):
        a = first[i]
        if a >= size or not q[i] > t[a]:
            continue
        jump[a] += n[i] * (q[i] - t[a])
        slope[a] += n[i]
        if q[i] <= t[size - 1]:
            end = a + np.searchsorted(t[a:], q[i])
            jump[end] += n[i] * (t[end] - q[i])
            slope[end] -= n[i]
    height, rest, rate = 0.0, 0.0, 0.0
    for c in range(size):
        if c > 0:
            height, rest = add(height, rest, -rate * (t[c] - t[c - 1]))
        height, rest = add(height, rest, jump[c])
        rate += slope[c]
        jump[c] = max(height + rest, 0.0)  # in its place, which saves an array
    return jump


@kernel
def falling(t, last, n, q):
    """Σ_l n_l (t_c − q_l)_+ over the l with last[l] ≥ c, for each c: `rising` in a mirror."""
    return rising(-t[::-1], len(t) - 1 - last[::-1], n[::-1].copy(), -q[::-1])[::-1]


@kernel
def density(v, n, q):
    """R at the level sets, which have all maxima as R is convex between them, weighted by n; whether R is not 0."""
    each = np.arange(len(v))
    if (q == v).all():
        return np.zeros(len(v)), False
    return rising(v, each, n, q) + falling(v, each, n, q), True


@kernel
def external_density(v, n, q):
    """max(R_ext, 0) at the level sets, weighted by n."""
    return _fixed(v, np.arange(len(v)), n * q, n)


@kernel
def at_half(v, r):
    """The points where the upper concave envelope of the (v_i, r_i), (0, 0) and (1, 0) touches above 1/2."""
    # Returns λ, t1, r1, t2, r2 with t1 ≤ 1/2 ≤ t2 and λ t1 + (1 − λ) t2 = 1/2; t1 = t2 = 1/2 for one touching point.
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


def refuses(*, task: Task | str = "quadratic") -> str:
    """Why nothing is known of the regret of a task."""
    known = isinstance(as_task("cfdl", task), DecisionTask | QuadraticTask)
    return "" if known else "nothing is known about this task"


def task_errors(change: Change, *, task: Task | str = "quadratic") -> Floats:
    """S of one task: at each level the best action for the changed masses, against those that respond to v."""
    task = as_task("cfdl", task)
    v = change.gamma.predictions
    if isinstance(task, QuadraticTask):
        errors = [_quadratic(sign * change.zeros, sign * change.ones, v) for sign in (1.0, -1.0)]
        return np.maximum(*errors)[:, None]
    assert isinstance(task, DecisionTask)
    _, payoffs, low, high = task.envelope
    first, last = np.searchsorted(high, v, side="left"), np.searchsorted(low, v, side="right")
    pays = [change.zeros * u0 + change.ones * u1 for u0, u1 in task.table]
    above, below = np.max(pays, axis=0), np.min(pays, axis=0)
    least, most = np.full_like(above, np.inf), np.full_like(above, -np.inf)
    for b, (u0, u1) in enumerate(payoffs):  # those tied at v
        pay = change.zeros * u0 + change.ones * u1
        tied = (first <= b) & (b <= last)
        np.minimum(least, pay, out=least, where=tied)
        np.maximum(most, pay, out=most, where=tied)
    return np.maximum((above - least).sum(axis=1), (most - below).sum(axis=1))[:, None]


def _quadratic(zeros: Floats, ones: Floats, v: Floats) -> Floats:
    """Σ max over a in [0, 1] of D_1 ((1 − v)² − (1 − a)²) + D_0 (v² − a²)."""
    mass = ones + zeros
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.where(mass > 0.0, np.clip(ones / mass, 0.0, 1.0), 0.0)
    gains = [ones * ((1.0 - v) ** 2 - (1.0 - a) ** 2) + zeros * (v**2 - a**2) for a in (0.0, 1.0, top)]
    return np.asarray(np.max(gains, axis=0).sum(axis=1))


def external_means(samples: float) -> Floats:
    """Each sum is at most the larger error of the two outcomes' prefixes (DKW: √(π/2n) on average); envelope: twice."""
    return np.array([4.0 * math.sqrt(0.5 * math.pi)])


#: S of all tasks is twice the concave envelope of S(t) at 1/2, of one kink the largest S(t)/max(t, 1 − t). Against
#: fixed actions S(t) is the larger of Σ_{v ≤ t} (D_1 − t D) and Σ_{v ≥ t} (t D − D_1)
SWAPS, ONE_KINK, FIXED = range(3)


def kink_errors(kind: int, change: Change) -> Floats:
    v = change.gamma.predictions
    # Between these S(t) is convex, and S(t)/max(t, 1 − t) is quasiconvex.
    t = np.unique(np.concatenate((v, [0.0, 0.5, 1.0])))
    place = np.searchsorted(t, v)
    mass = change.ones + change.zeros
    errors = [_worst(t, place, sign * change.ones, sign * mass, kind) for sign in (1.0, -1.0)]
    return np.maximum(*errors)[:, None]


@kernel
def _worst(t, place, ones, mass, kind):
    out = np.empty(ones.shape[0])
    for b in range(ones.shape[0]):
        if kind < FIXED:
            regret = _signed_rising(t, place, ones[b], mass[b]) + _signed_falling(t, place, ones[b], mass[b])
        else:
            regret = _fixed(t, place, ones[b], mass[b])
        if kind == ONE_KINK:
            best = 0.0
            for c in range(len(t)):
                best = max(best, regret[c] / max(t[c], 1.0 - t[c]))
            out[b] = best
        else:
            share, _, low, _, high = at_half(t, regret)
            out[b] = 2.0 * (share * low + (1.0 - share) * high)
    return out


@kernel
def _signed_rising(t, first, ones, mass):
    """Σ (D_1 − t_c D)_+ over the levels with first ≤ c; changes have either sign."""
    height, slope = np.zeros(len(t)), np.zeros(len(t))
    weight, mean = np.zeros(len(ones)), np.zeros(len(ones))
    for i in range(len(ones)):
        if first[i] >= len(t):
            continue
        if mass[i] == 0.0:
            height[first[i]] += max(ones[i], 0.0)
            continue
        if mass[i] < 0.0:
            # (D_1 − t D)_+ = (D_1 − t D) + (t D − D_1)_+, and the last is |D| (D_1/D − t)_+.
            height[first[i]] += ones[i]
            slope[first[i]] += mass[i]
        weight[i] = abs(mass[i])
        mean[i] = ones[i] / mass[i]
    return rising(t, first, weight, mean) + (np.cumsum(height) - np.cumsum(slope) * t)


@kernel
def _signed_falling(t, last, ones, mass):
    """Σ (t_c D − D_1)_+ over the levels with last ≥ c: `_signed_rising` in a mirror."""
    return _signed_rising(-t[::-1], len(t) - 1 - last[::-1], -ones[::-1], mass[::-1].copy())[::-1]


@kernel
def _fixed(t, place, ones, mass):
    """The larger of Σ_{v ≤ t} (D_1 − t D) and Σ_{v ≥ t} (t D − D_1), with or without the level at t, and 0."""
    after = _before(-t[::-1], len(t) - 1 - place, -ones, mass)[::-1]
    return np.maximum(_before(t, place, ones, mass), after)


@kernel
def _before(t, place, ones, mass):
    """The first of the two sums at each t."""
    size = len(t)
    out, one, every = np.zeros(size), np.zeros(size), np.zeros(size)
    for i in range(len(ones)):
        one[place[i]] += ones[i]
        every[place[i]] += mass[i]
    total, rest, weight = 0.0, 0.0, 0.0
    for c in range(size):
        if c > 0:
            total, rest = add(total, rest, -weight * (t[c] - t[c - 1]))
        without = total + rest
        total, rest = add(total, rest, one[c] - t[c] * every[c])
        weight += every[c]
        out[c] = max(0.0, without, total + rest)
    return out


def grid_errors(change: Change, *, m: int = 16, soft: bool = True) -> Floats:
    """S of `scdl_binned`: the largest Σ_{j < i} (D_1j − D_j i/m)_+ + Σ_{j ≥ i} (D_j (i−1)/m − D_1j)_+."""
    points, ones, mass = _changes_on_grid(change, m, soft)
    # The sum is convex in i between two points.
    i = np.unique(np.clip(np.concatenate((points, points + 1.0, [1.0, m])), 1.0, m))
    after, until = np.searchsorted(i, points + 1.0), np.searchsorted(i, points, side="right") - 1
    errors = [_grid_worst(i, float(m), after, until, sign * ones, sign * mass) for sign in (1.0, -1.0)]
    return np.maximum(*errors)[:, None]


def middle(m: int) -> int:
    """The threshold of `soft_binned_loss` where none is given."""
    return (m + 1) // 2


def grid_errors_at(change: Change, *, m: int = 16, threshold: int | None = None, soft: bool = True) -> Floats:
    """S of `soft_binned_loss`: the sum at one i."""
    threshold = middle(m) if threshold is None else threshold
    points, ones, mass = _changes_on_grid(change, m, soft)
    lost = np.where(points < threshold, ones - mass * (threshold / m), mass * ((threshold - 1.0) / m) - ones)
    return np.maximum(np.maximum(lost, 0.0).sum(axis=1), np.maximum(-lost, 0.0).sum(axis=1))[:, None]


def _changes_on_grid(change: Change, m: int, soft: bool) -> tuple[Floats, Floats, Floats]:
    """The points of the grid that have a part, and the changes of ones and of all mass there."""
    v = change.gamma.predictions
    low = cells(v, m)
    up = np.clip(v * m - low, 0.0, 1.0) if soft else np.zeros(len(v))
    points, place = np.unique(np.append(low, np.minimum(low + 1, m)), return_inverse=True)
    level = np.tile(np.arange(len(v)), 2)
    shares = scipy.sparse.csr_array((np.append(1.0 - up, up), (level, place)), shape=(len(v), len(points)))
    return points, change.ones @ shares, (change.ones + change.zeros) @ shares


@kernel
def _grid_worst(i, m, after, until, ones, mass):
    out = np.empty(ones.shape[0])
    for b in range(ones.shape[0]):
        total = _signed_rising(i / m, after, ones[b], mass[b])
        # Points below all i have until = −1, and in the mirror begin behind all.
        total += _signed_falling((i - 1.0) / m, until, ones[b], mass[b])
        out[b] = max(total.max(), 0.0)
    return out


def grid_cells(gamma: JointDistribution, *, m: int = 16, **options: object) -> Ints:
    """Levels between the same two points count together."""
    return np.unique(cells(gamma.predictions, m), return_inverse=True)[1]


def grid_means(samples: float, *, m: int = 16, **options: object) -> Floats:
    """By Cauchy–Schwarz over the points of both outcomes: their variances add to at most 1."""
    return np.array([math.sqrt(2.0 * (m + 1.0))])


def grids_errors(change: Change) -> Floats:
    return np.concatenate([grid_errors(change, m=int(m)) for m in halving(change.samples)], axis=1)


def grids_means(samples: float) -> Floats:
    return np.sqrt(2.0 * (halving(samples) + 1.0))


def grids_limits(known: Known, radii: Floats, values: Floats) -> Ends:
    """The best m of those tried from above; from below also all finer ones, for SCDL_m grows with m."""
    width = 1.0 / halving(known.samples)
    upper = float(np.maximum(values + radii, width).min())
    best = np.minimum.accumulate(np.append(np.inf, np.maximum(values - radii, width)))
    # The value may be 0 of a calibrated Γ, and where nothing shows that Γ is not calibrated.
    lower = float(np.minimum(best[:-1], values - radii).max())
    return min(lower, known.ends[0]), max(upper, known.ends[1])
