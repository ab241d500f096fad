"""Ends of intervals for suprema of means, by witnesses.

Such a measure is the largest mean gain g(v, y) of a task and its swaps, or of weights.

Below: let g be fixed before a sample is seen. Then its mean gain is at most the measure of the population. Samples go
into `BLOCKS` blocks at random, and clusters as a whole. For each block but the first, g is found on all blocks before
it. Two are tried: the best for mean outcomes by level, and for a line of log odds. It is whichever of both gained
more so far. The errors of the gains of different blocks are uncorrelated, though the g are not independent. Their sums
are a martingale, so one confidence limit holds for the mean of all gains.

Above: let g be the best of the population, which no sample changes. Its mean gain in the sample is at most the value
there. So the value falls short by no more than the error of one mean, which is normal for large n. Its standard
deviation is at most the largest of any g that may be the best. Swaps lead from v towards the level's mean outcome.
Intervals of Clopper and Pearson hold these means for all levels together. The square of a sum over a cluster of weight
W is at most W times the sum of its weighted squares. Neither end needs many samples of a level.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from onlinecal.core.arrays import Floats, Ints, cells
from onlinecal.core.joint import JointDistribution
from onlinecal.decisions.tasks import DecisionTask, Task, as_task
from onlinecal.measures._kinks import at_half
from onlinecal.measures.binned import ece
from onlinecal.measures.binned_orders import bins_of
from onlinecal.measures.decision import cdl, cfdl, v_cdl, worst_decision_task, worst_kink
from onlinecal.measures.smooth_ce import smooth_ce_witness
from onlinecal.measures.soft_binned import points, scdl_binned, worst_grid_threshold

#: of these the first is only learnt from, the others are learnt from and measured
BLOCKS = 8
BY = "lower end: gains of tasks, swaps or weights found on other samples"
ABOVE = "upper end: error of the mean gain of the population's best"
OPEN = "upper end open: "
# The share of an upper end's error that is left to the intervals of the levels.
_REGION = 0.2
# Outcomes of either kind that are added to variances, as in other intervals.
_ADDED = 2.0
# Samples by which weights of bins are drawn towards 0.
_DRAWN = 10.0
# The ridge on both numbers of a line of log odds, in samples. Then how near to 0 and 1 it sees forecasts.
_RIDGE, _NEAR = 0.2, 1e-6


class Block(NamedTuple):
    """Sums of weights, and of their squares, for either outcome at each level: (2, k).

    Of clusters there are weights by cluster as well, (clusters, 2 k); squares are then weights times their cluster's.
    """

    mass: Floats
    squares: Floats
    clusters: Any = None
    wider: float = 1.0  # what squares of totals of clusters are multiplied by

    def __add__(self, other: "Block") -> "Block":  # type: ignore[override]
        return Block(self.mass + other.mass, self.squares + other.squares)

    def measured(self, gains: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean gains of what is independent, samples of a cell or clusters, with their masses and squares."""
        if self.clusters is None:
            held = (self.mass > 0.0) & (self.squares > 0.0)
            return gains[held], self.mass[held], self.squares[held]
        mass = np.asarray(self.clusters.sum(axis=1)).ravel()
        held = mass > 0.0
        mass, total = mass[held], (self.clusters @ gains.ravel())[held]
        return total / mass, mass, self.wider * mass**2


class Past(NamedTuple):
    """Γ of the samples before, and the same with means drawn in; all levels v, and these means q.

    Where a level has no sample, q is v. `unit` is the mean weight of a sample, weighted by itself.
    """

    gamma: JointDistribution
    shrunk: JointDistribution
    v: Floats
    q: Floats
    unit: float


def past_of(v: Floats, block: Block) -> Past:
    """The past of these samples."""
    n = block.mass.sum(axis=0)
    held = n > 0.0
    gamma = JointDistribution.from_sorted_levels(v, n, np.minimum(block.mass[1], n))
    means = _drawn_in(gamma.means, gamma.predictions, gamma.counts, block.squares.sum(axis=0)[held])
    shrunk = JointDistribution.from_sorted_levels(
        gamma.predictions, gamma.counts, gamma.counts * means, means
    )
    q = v.copy()
    q[held] = means
    return Past(gamma, shrunk, v, q, float(block.squares.sum() / n.sum()))


def _drawn_in(q: Floats, v: Floats, n: Floats, squares: Floats) -> Floats:
    """Means drawn towards v, d = q − v by τ²/(τ² + s²): s² their variance if calibrated, τ² the mean of d² less s²."""
    noise = v * (1.0 - v) * squares / np.maximum(n**2, np.finfo(np.float64).tiny)
    true = max(float(n @ ((q - v) ** 2 - noise)), 0.0) / float(n.sum())
    with np.errstate(invalid="ignore"):
        share = np.where(noise > 0.0, true / (true + noise), 1.0)
    return np.clip(v + share * (q - v), 0.0, 1.0)


def fitted(past: Past, block: Block) -> Past:
    """The past with the means of a line a + b logit v of log odds, drawn towards a = 0 and b = 1.

    Forecasts of 0 and 1 keep their means.
    """
    x = np.stack((np.ones(len(past.v)), special.logit(np.clip(past.v, _NEAR, 1.0 - _NEAR))))
    n, ones = block.mass.sum(axis=0) / past.unit, block.mass[1] / past.unit
    start = np.array([0.0, 1.0])
    line = start
    for _ in range(25):
        q = special.expit(line @ x)
        slope = x @ (ones - n * q) - _RIDGE * (line - start)
        step = np.linalg.solve((x * (n * q * (1.0 - q))) @ x.T + _RIDGE * np.eye(2), slope)
        line = line + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-8:
            break
    q = np.where((past.v <= 0.0) | (past.v >= 1.0), past.q, special.expit(line @ x))
    held = block.mass.sum(axis=0) > 0.0
    counts = past.gamma.counts
    gamma = JointDistribution.from_sorted_levels(past.gamma.predictions, counts, counts * q[held], q[held])
    return Past(gamma, gamma, past.v, q, past.unit)


#: gains (2, k) for either outcome at each level, and the most that they prove
Found = tuple[Floats, float]
# Grids that `scdl` is bounded on.
_GRIDS = tuple(2**i for i in range(11))


def _swaps(past: Past, task: Task) -> Found:
    """Of the best actions for the means q, against those that respond to v. Of those tied it is the worst for q."""
    v, q = past.v, past.q
    if not isinstance(task, DecisionTask):  # the quadratic one, whose actions are all numbers
        return np.stack((v**2 - q**2, (1.0 - v) ** 2 - (1.0 - q) ** 2)), math.inf
    _, table, low, high = task.envelope
    pays = np.multiply.outer(1.0 - q, table[:, 0]) + np.multiply.outer(q, table[:, 1])
    first, last = np.searchsorted(high, v, side="left"), np.searchsorted(low, v, side="right")
    action = np.arange(len(table))
    tied = (first[:, None] <= action) & (action <= last[:, None])
    here = np.where(tied, pays, np.inf).argmin(axis=1)
    return (table[pays.argmax(axis=1)] - table[here]).T * (q != v), math.inf


def _of_task(past: Past, *, task: Task | str = "quadratic") -> Found:
    return _swaps(past, as_task("cfdl", task))


def _of_tasks(past: Past) -> Found:
    return _swaps(past, worst_decision_task(past.shrunk).task)


def _of_kinks(past: Past) -> Found:
    return _swaps(past, worst_kink(past.shrunk).task)


def _of_grid(past: Past, *, m: int = 16, soft: bool = True) -> Found:
    """At the worst threshold i, of the points j with Q_j on its other side."""
    j, rounded = _rounded(past, m, soft)
    i = worst_grid_threshold(rounded, m=m).threshold
    low = cells(past.v, m)
    up = np.clip(past.v * m - low, 0.0, 1.0) if soft else np.zeros(len(low))
    q, at = rounded.means, np.where(j < i, i / m, (i - 1) / m)
    sign = np.where(j < i, np.where(q > at, 1.0, 0.0), np.where(q < at, -1.0, 0.0))
    gain = np.append(sign * (np.array([[0.0], [1.0]]) - at), np.zeros((2, 1)), axis=1)
    places = [np.searchsorted(j, part) for part in (low, low + 1)]
    there = [np.where(np.append(j, -1)[place] == low + k, place, len(j)) for k, place in enumerate(places)]
    return (1.0 - up) * gain[:, there[0]] + up * gain[:, there[1]], math.inf


def _rounded(past: Past, m: int, soft: bool) -> tuple[Ints, JointDistribution]:
    """The points of the grid that have samples, and Γ there, its means drawn in."""
    j, n, s = points(past.gamma.predictions, past.gamma.counts, past.gamma.positives, m, soft)
    means = _drawn_in(np.minimum(s / n, 1.0), j / m, n, past.unit * n)
    return j, JointDistribution.from_sorted_levels(j / m, n, n * means, means)


def _of_grids(past: Past) -> Found:
    """On one grid: SCDL_m grows with m, and coarser ones have 1/m twice as large or more."""
    bound = {m: min(scdl_binned(_rounded(past, m, True)[1], m=m), 2.0 / m) for m in _GRIDS}
    best = max(bound, key=bound.__getitem__)
    return _of_grid(past, m=best)[0], 2.0 / best


def _of_levels(past: Past) -> Found:
    return np.sign(past.q - past.v) * (np.array([[0.0], [1.0]]) - past.v), math.inf


def _of_bins(past: Past, *, number: Ints, mass: Floats, order: float) -> Found:
    """Weights by the sum of residuals in a bin: its sign. For order 2 they have its size, and the norm 1.

    `number` has the bin of each level, `mass` that of all samples in each bin.
    """
    held = np.searchsorted(past.v, past.gamma.predictions)
    sums: Floats = np.bincount(number[held], past.gamma.residuals, len(mass)).astype(np.float64)
    if order == 1.0:
        weight = np.sign(sums)
    else:  # bins with few samples are drawn towards 0
        weight = sums / (mass + _DRAWN * past.unit / past.gamma.weight)
        weight /= math.sqrt(mass @ weight**2) or 1.0
    return weight[number] * (np.array([[0.0], [1.0]]) - past.v), math.inf


def _of_weights(past: Past, **_: Any) -> Found:
    """By smCE ≤ intCE: its weights, which stay Lipschitz on the lines between levels that had samples."""
    found = smooth_ce_witness(past.gamma)
    weights = np.interp(past.v, found.predictions, found.weights)
    return weights * (np.array([[0.0], [1.0]]) - past.v), math.inf


def clopper_pearson(means: Floats, samples: Floats | float, tail: float) -> tuple[Floats, Floats]:
    """Ends of intervals for probabilities, by mean outcomes of a number of samples that need not be whole."""
    ones = samples * means
    with np.errstate(invalid="ignore"):
        lower = np.where(ones > 0.0, special.betaincinv(ones, samples - ones + 1.0, tail), 0.0)
        upper = np.where(ones < samples, special.betaincinv(ones + 1.0, samples - ones, 1.0 - tail), 1.0)
    return lower, upper


def _held(gamma: JointDistribution, squares: Floats, fails: float) -> tuple[Floats, Floats]:
    """Intervals that hold the means of all levels."""
    low, high = clopper_pearson(gamma.means, gamma.counts**2 / squares, 0.5 * fails / gamma.levels)
    return np.minimum(low, gamma.means), np.maximum(high, gamma.means)


def _times(fails: float) -> float:
    return float(special.ndtri(1.0 - fails))


def _variances(gamma: JointDistribution, squares: Floats) -> Floats:
    """The share of each level in the variance of a mean gain that is ±(y − v)."""
    v, of_one = gamma.predictions, squares.sum() ** 2 / gamma.weight**4
    square = np.stack((v**2, (1.0 - v) ** 2))
    return np.asarray(((squares / gamma.weight**2 + _ADDED * of_one * gamma.mass) * square).sum(axis=0))


def _of_signs(gamma: JointDistribution, squares: Floats) -> float:
    return math.sqrt(float(_variances(gamma, squares).sum()))


def _above_levels(gamma: JointDistribution, squares: Floats, fails: float) -> float:
    return ece(gamma) + _times(fails) * _of_signs(gamma, squares)


def _above_bins(
    gamma: JointDistribution, squares: Floats, fails: float, *, number: Ints, mass: Floats, order: float
) -> float:
    sums = np.bincount(number, gamma.residuals)
    if order == 1.0:
        return float(np.abs(sums).sum()) + _times(fails) * _of_signs(gamma, squares)
    # Of weights of norm 1 the deviation is at most that of all weight on one bin.
    variance = np.bincount(number, _variances(gamma, squares)) / mass
    return math.sqrt(float((sums**2 / mass).sum())) + _times(fails) * math.sqrt(variance.max())


def _covered(first: Ints, last: Ints, part: Floats, size: int) -> Floats:
    """At each of `size` places the sum of the parts that begin there or before and end behind."""
    return np.cumsum(np.bincount(first, part, size + 1) - np.bincount(last, part, size + 1))[:size]


def _kinks(gamma: JointDistribution, squares: Floats, fails: float) -> tuple[Floats, Floats, float]:
    """Kinks t, the standard deviation of the mean gain of each, and the largest of all tasks.

    Kinks of worst tasks are at levels, or at 1/2. A level gains (y − t) or its negative where t lies between v and q.
    """
    v, each = gamma.predictions, squares.sum(axis=0)
    low, high = _held(gamma, each, _REGION * fails)
    t = np.union1d(v, [0.5])
    at = np.searchsorted(t, v)
    first = np.minimum(np.searchsorted(t, low, side="right"), at)
    last = np.maximum(np.searchsorted(t, high, side="left"), at + 1)
    weight, least, most = (_covered(first, last, x, len(t)) for x in (each, each * low, each * high))
    square = t**2 * weight + (1.0 - 2.0 * t) * np.where(t < 0.5, most, least)
    return t, np.sqrt(np.maximum(square, 0.0)) / gamma.weight, math.sqrt(each.sum()) / gamma.weight


def _above_tasks(gamma: JointDistribution, squares: Floats, fails: float) -> float:
    """A task is a mixture of kinks, and so is the bound of its deviation. It is at most twice the envelope at 1/2."""
    t, of_kinks, largest = _kinks(gamma, squares, fails)
    share, _, low, _, high = at_half(t, of_kinks)
    deviation = min(2.0 * (share * low + (1.0 - share) * high), largest)
    return cdl(gamma) + _times((1.0 - _REGION) * fails) * deviation


def _above_kinks(gamma: JointDistribution, squares: Floats, fails: float) -> float:
    t, of_kinks, largest = _kinks(gamma, squares, fails)
    deviation = min(float((of_kinks / np.maximum(t, 1.0 - t)).max()), largest)
    return v_cdl(gamma) + _times((1.0 - _REGION) * fails) * deviation


def _above_task(
    gamma: JointDistribution, squares: Floats, fails: float, *, task: Task | str = "quadratic"
) -> float:
    """The actions of a swap are best for some mean of the level's interval, or for v."""
    task, v, each = as_task("cfdl", task), gamma.predictions, squares.sum(axis=0)
    low, high = _held(gamma, each, _REGION * fails)
    if isinstance(task, DecisionTask):
        _, table, begin, end = task.envelope
        places = (low, v), (v, high)
        # Of actions in order, payoffs fall for y = 0 and rise for y = 1.
        changes = [
            table[np.searchsorted(begin, up, side="right")] - table[np.searchsorted(end, down, side="left")]
            for down, up in ((np.minimum(*pair), np.maximum(*pair)) for pair in places)
        ]
    else:
        changes = [np.stack((q**2 - v**2, (1.0 - v) ** 2 - (1.0 - q) ** 2), axis=1) for q in (low, high)]
    square = np.max(
        [(1.0 - q) * change[:, 0] ** 2 + q * change[:, 1] ** 2 for change in changes for q in (low, high)],
        axis=0,
    )
    deviation = math.sqrt(float(each @ square)) / gamma.weight
    return cfdl(gamma, task=task) + _times((1.0 - _REGION) * fails) * deviation


def _grid_deviation(gamma: JointDistribution, squares: Floats, fails: float, m: int, soft: bool) -> float:
    """The largest standard deviation of a mean gain at a threshold, by the points that may lie beyond it."""
    # A sample between two points is taken as drawn to one of them, which varies more.
    v, each = gamma.predictions, squares.sum(axis=0)
    j, part, _ = points(v, each, each * gamma.means, m, soft)
    same, n, s = points(v, gamma.counts, gamma.positives, m, soft)
    assert len(same) == len(j)
    on_grid = JointDistribution.from_sorted_levels(j / m, n, np.minimum(s, n))
    low, high = _held(on_grid, part, fails)
    # Upwards go points j < i with Q > i/m. Downwards go points j ≥ i with Q < (i − 1)/m.
    i = np.unique(np.clip(np.concatenate((j, j + 1, [1, m])), 1, m))
    square = np.zeros(len(i))
    for t, first, last in (
        (i / m, np.searchsorted(i, j + 1), np.searchsorted(i, high * m, side="left")),
        ((i - 1) / m, np.searchsorted(i, low * m + 1.0, side="right"), np.searchsorted(i, j, side="right")),
    ):
        some = first < last
        weight, least, most = (
            _covered(first[some], last[some], x[some], len(i)) for x in (part, part * low, part * high)
        )
        square += t**2 * weight + (1.0 - 2.0 * t) * np.where(t < 0.5, most, least)
    return math.sqrt(max(float(square.max()), 0.0)) / gamma.weight


def _above_grid(
    gamma: JointDistribution, squares: Floats, fails: float, *, m: int = 16, soft: bool = True
) -> float:
    deviation = _grid_deviation(gamma, squares, _REGION * fails, m, soft)
    return scdl_binned(gamma, m=m, soft=soft) + _times((1.0 - _REGION) * fails) * deviation


def _above_grids(gamma: JointDistribution, squares: Floats, fails: float) -> float:
    """The best of the grids up to 1/(2√n); each has its share of the error."""
    tried = [m for m in _GRIDS if m <= max(2.0 * gamma.weight / math.sqrt(float(squares.sum())), 1.0)]
    each = fails / len(tried)
    return min(max(_above_grid(gamma, squares, each, m=m), 1.0 / m) for m in tried)


class Kind(NamedTuple):
    """How ends are found: `find(past, **options)`, `above(gamma, squares, fails, **options)`.

    `alone` says that others are never nearer to the value. Where they may be, the upper end is that of ECE.
    `often` says that these ends are also for cells with many samples.
    """

    find: Callable[..., Found]
    above: Callable[..., float]
    alone: bool = True
    often: bool = True


KINDS_OF: Mapping[str, Kind] = {
    "cfdl": Kind(_of_task, _above_task),
    "v_cdl": Kind(_of_kinks, _above_kinks),
    "cdl": Kind(_of_tasks, _above_tasks),
    "ece": Kind(_of_levels, _above_levels, False),
    "binned_ece": Kind(_of_bins, _above_bins, False, False),
    "binned_ce": Kind(_of_bins, _above_bins, False, False),
    "interval_ce": Kind(_of_weights, _above_levels, False),
    "interval_ce_bracket": Kind(_of_weights, _above_levels, False),
    "scdl_binned": Kind(_of_grid, _above_grid),
    "scdl": Kind(_of_grids, _above_grids),
}


def kind_of(
    name: str, options: Mapping[str, Any], gamma: JointDistribution
) -> tuple[Kind, Mapping[str, Any]] | None:
    """How ends of a measure with these options are found, and options for it; None without witnesses."""
    kind, of_bins = KINDS_OF.get(name), name in ("binned_ece", "binned_ce")
    order, by = options.get("order", 2.0 if name == "binned_ce" else 1.0), options.get("strategy", "width")
    if kind is None or order not in ((1.0, 2.0) if of_bins else (1.0,)) or by == "sweep":
        return None
    if of_bins:
        # Also those of quantiles are the bins of all samples: no outcome has made them.
        mass, _, starts = bins_of(gamma, options.get("bins"), by)
        number = np.searchsorted(starts, np.arange(gamma.levels), side="right") - 1
        return kind, {"number": number, "mass": mass, "order": order}
    return kind, options


#: `limit(losses, mass, squares, within, level=…)`: the ends of an interval of their mean; both fail alike
Limit = Callable[..., tuple[float, float]]


def witnessed_ends(
    kinds: Mapping[int, tuple[Kind, Mapping[str, Any], bool]],
    gamma: JointDistribution,
    squares: Floats,
    blocks: Iterable[Block],
    level: float,
    limit: Limit,
) -> dict[int, tuple[float, float]]:
    """The ends of each measure. Each fails in half of the cases left, which are half of all unless they are alone."""
    # Gains by witnesses from the blocks before: of what is independent, with mass and squares.
    parts: dict[int, list[tuple[Floats, Floats, Floats]]] = {i: [] for i in kinds}
    least, largest, most = (
        dict.fromkeys(kinds, 0.0),
        dict.fromkeys(kinds, 0.0),
        dict.fromkeys(kinds, math.inf),
    )
    gained = {i: np.zeros(2) for i in kinds}  # so far, by levels and by the line
    before: Block | None = None
    for block in blocks:
        if before is not None and before.mass.any() and block.mass.any():
            past = past_of(gamma.predictions, before)
            pasts = past, fitted(past, before)
            for i, (kind, options, _) in kinds.items():
                either = [kind.find(each, **options) for each in pasts]
                gains, proved = either[int(gained[i][1] >= gained[i][0])]
                gained[i] += [float((each * block.mass).sum()) for each, _ in either]
                parts[i].append(block.measured(gains))
                least[i], largest[i] = min(least[i], float(gains.min())), max(largest[i], float(gains.max()))
                most[i] = min(most[i], proved)
        before = block if before is None else before + block
    found = {}
    for i, (kind, options, alone) in kinds.items():
        within, low = level if alone else 0.5 * (1.0 + level), 0.0
        if least[i] < largest[i]:
            gains, mass, power = (np.concatenate(part) for part in zip(*parts[i], strict=True))
            low = min(limit(gains, mass, power, (least[i], largest[i]), level=within)[0], most[i])
        mine = {} if kind.above is _above_levels else options
        found[i] = low, kind.above(gamma, squares, 0.5 * (1.0 - within), **mine)
    return found
