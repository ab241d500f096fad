"""Lower ends of intervals for suprema of means, by witnesses.

Such a measure is a supremum, over tasks and swaps or over weights, of a mean gain E[g(v, y)]: for any g that is fixed
before a sample is seen, the mean gain of that sample is at most the measure of the population. Samples go into
`BLOCKS` blocks at random. For each block but the first, g is the best of the samples in all blocks before it. What the
gains of one block are off their mean is then uncorrelated with what others are off theirs, though the g are not
independent: sums are a martingale. So one confidence limit holds for the mean of all gains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.arrays import cells
from onlinecal.core.joint import JointDistribution
from onlinecal.decisions.base import DecisionTask
from onlinecal.decisions.tasks import Task, as_task
from onlinecal.measures.decision import worst_decision_task, worst_kink
from onlinecal.measures.smooth_ce import smooth_ce_witness
from onlinecal.measures.soft_binned import points, scdl_binned, worst_grid_threshold

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: of these the first is only learnt from, the others are learnt from and measured
BLOCKS = 8
BY = "the lower end, where it is larger so, by gains of tasks, swaps or weights found on other samples"


class Block(NamedTuple):
    """Sums of weights, and of their squares, for either outcome at each level: (2, k)."""

    mass: Floats
    squares: Floats

    def __add__(self, other: Block) -> Block:  # type: ignore[override]
        return Block(self.mass + other.mass, self.squares + other.squares)


class Past(NamedTuple):
    """What is known of the samples before: Γ, and the level means q at all levels v, v where there is no sample.

    Means are drawn towards the predictions by what is noise in them: d = q − v by τ²/(τ² + s²), with s² the variance of
    a calibrated level's mean, and τ² the mean square of d less that of s.
    """

    gamma: JointDistribution
    v: Floats
    q: Floats


def past_of(v: Floats, block: Block) -> Past:
    """The past of these samples."""
    n = block.mass.sum(axis=0)
    held = n > 0.0
    weight, at = n[held], v[held]
    off = block.mass[1, held] / weight - at
    noise = at * (1.0 - at) * block.squares.sum(axis=0)[held] / weight**2
    true = max(float(weight @ (off**2 - noise)), 0.0) / float(weight.sum())
    with np.errstate(invalid="ignore"):
        share = np.where(noise > 0.0, true / (true + noise), 1.0)
    q = v.copy()
    q[held] = np.clip(at + share * off, 0.0, 1.0)
    return Past(JointDistribution.from_sorted_levels(at, weight, weight * q[held], q[held]), v, q)


# ---------------------------------------------------------------- gains

#: gains (2, k) for either outcome at each level, and the most that they prove
Found = tuple[Floats, float]
# Grids that `scdl` is bounded on.
_GRIDS = tuple(2**i for i in range(11))


def _swaps(past: Past, task: Task) -> Found:
    """Of the best actions for the means q, against those that respond to v: of those tied, the worst for q."""
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
    return _swaps(past, worst_decision_task(past.gamma).task)


def _of_kinks(past: Past) -> Found:
    return _swaps(past, worst_kink(past.gamma).task)


def _of_grid(past: Past, *, m: int = 16, soft: bool = True) -> Found:
    """At the worst threshold i, of the points j with Q_j on its other side."""
    i = worst_grid_threshold(past.gamma, m=m, soft=soft).threshold
    low = cells(past.v, m)
    up = np.clip(past.v * m - low, 0.0, 1.0) if soft else np.zeros(len(low))
    j, n, s = points(past.gamma.predictions, past.gamma.counts, past.gamma.positives, m, soft)
    q, at = s / n, np.where(j < i, i / m, (i - 1) / m)
    sign = np.where(j < i, np.where(q > at, 1.0, 0.0), np.where(q < at, -1.0, 0.0))
    gain = np.append(sign * (np.array([[0.0], [1.0]]) - at), np.zeros((2, 1)), axis=1)
    places = [np.searchsorted(j, part) for part in (low, low + 1)]
    there = [np.where(np.append(j, -1)[place] == low + k, place, len(j)) for k, place in enumerate(places)]
    return (1.0 - up) * gain[:, there[0]] + up * gain[:, there[1]], math.inf


def _of_grids(past: Past) -> Found:
    """On one grid: SCDL_m grows with m, and coarser ones have 1/m twice as large or more."""
    bound = {m: min(scdl_binned(past.gamma, m=m), 2.0 / m) for m in _GRIDS}
    best = max(bound, key=bound.__getitem__)
    return _of_grid(past, m=best)[0], 2.0 / best


def _of_levels(past: Past) -> Found:
    return np.sign(past.q - past.v) * (np.array([[0.0], [1.0]]) - past.v), math.inf


def _of_weights(past: Past, **options: Any) -> Found:
    """By smCE ≤ intCE: its weights, which stay Lipschitz on the lines between levels that had samples."""
    found = smooth_ce_witness(past.gamma)
    weights = np.interp(past.v, found.predictions, found.weights)
    return weights * (np.array([[0.0], [1.0]]) - past.v), math.inf


FINDERS: Mapping[str, Callable[..., Found]] = {
    "cfdl": _of_task,
    "v_cdl": _of_kinks,
    "cdl": _of_tasks,
    "scdl_binned": _of_grid,
    "scdl": _of_grids,
    "ece": _of_levels,
    "interval_ce": _of_weights,
    "interval_ce_bracket": _of_weights,
}


def finder(name: str, options: Mapping[str, Any]) -> Callable[[Past], Found] | None:
    """What finds witnesses of a measure with these options; None where there is no lower end by them."""
    if name == "ece":
        return _of_levels if options.get("order", 1.0) == 1.0 else None
    found = FINDERS.get(name)
    return None if found is None else lambda past: found(past, **options)


# ---------------------------------------------------------------- blocks


def blocks_of_counts(counts: tuple[Floats, Floats], generator: np.random.Generator) -> Iterator[Block]:
    """Blocks of samples without weights, each sample in any of them with the same chance, by counts of cells."""
    left = np.stack(counts).astype(np.int64)
    for more in range(BLOCKS, 0, -1):
        drawn = generator.binomial(left, 1.0 / more)
        left -= drawn
        yield Block(drawn.astype(np.float64), drawn.astype(np.float64))


def blocks_of_samples(
    level: Ints, ones: NDArray[np.bool_], weights: Floats, levels: int, block: Ints
) -> Iterator[Block]:
    """Blocks of samples with weights, by the number of the block of each."""
    cell = level + levels * ones
    for b in range(BLOCKS):
        mine = block == b
        sums = [np.bincount(cell[mine], w[mine], 2 * levels) for w in (weights, weights**2)]
        yield Block(*(part.reshape(2, levels) for part in sums))


# ---------------------------------------------------------------- lower ends


class Gains:
    """Gains of samples by witnesses from the blocks before theirs: each cell's gain, mass and squares."""

    def __init__(self) -> None:
        self.parts: list[tuple[Floats, Floats, Floats]] = []
        self.within, self.most = (0.0, 0.0), math.inf

    def add(self, gains: Floats, most: float, block: Block) -> None:
        held = block.mass > 0.0
        self.parts.append((gains[held], block.mass[held], block.squares[held]))
        self.within = min(self.within[0], float(gains.min())), max(self.within[1], float(gains.max()))
        self.most = min(self.most, most)

    def lower(self, limit: Callable[[Floats, Floats, Floats, tuple[float, float]], float]) -> float:
        """A lower limit of the measure, by `limit(loss, mass, squares, within)` of a mean."""
        if self.within == (0.0, 0.0):
            return 0.0
        gains, mass, squares = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        return min(limit(gains, mass, squares, self.within), self.most)


def gains(v: Floats, blocks: Iterable[Block], finders: Mapping[int, Callable[[Past], Found]]) -> dict[int, Gains]:
    """The gains of each measure's witnesses."""
    found: dict[int, Gains] = {i: Gains() for i in finders}
    before: Block | None = None
    for block in blocks:
        if before is not None and before.mass.any() and block.mass.any():
            past = past_of(v, before)
            for i, find in finders.items():
                found[i].add(*find(past), block)
        before = block if before is None else before + block
    return found
