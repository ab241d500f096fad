"""Intervals for what measures are of the population that samples were drawn from, and the draws that they are made of.

A measure's `Sampling` bounds how far its value may lie from the population's by seminorms L_j of D = Γ̂ − Γ. What is
missing is the law of the L_j(D). It is imitated by two kinds of draws, and each radius is the larger of the two
quantiles: of normal changes with the covariance of resampled masses, right for large n wherever the truth lies; and of
changes by outcomes drawn as the predictions say, right for every n if the forecasts are calibrated. Suprema
of means over tasks or weights have ends by their witnesses (`witnessed`). Where there are both, each way may fail in
half of the cases left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.progress import Progress
from onlinecal.forecasts.witnessed import (
    ABOVE,
    BLOCKS,
    BY,
    Block,
    Kind,
    blocks_of_counts,
    blocks_of_samples,
    kind_of,
    witnessed_ends,
)
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Between, Change, Ends, Known, Measure, Sampling, ends

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Draw = Callable[[int, np.random.Generator], tuple[Floats, Floats]]
Method = Literal["bootstrap", "finite-sample"]

#: samples that a level or a bin must hold to count as repeated
FEW = 30
#: samples that a float64 counts one by one
MOST_SAMPLES = 2**53
#: more levels than this are put into this number of groups of equal weight before changes are drawn
MOST_LEVELS = 4096
#: and changes are widened by this factor: a supremum over thresholds lacks √(2 ln(2M)/M) of it within M groups
WIDENED = 1.0 + (2.0 * np.log(2.0 * MOST_LEVELS) / MOST_LEVELS) ** 0.5
KINDS = ("resampled", "calibrated")
# Numbers drawn at once.
_AT_ONCE = 1 << 19
# Outcomes of either kind that are added before variances are taken, as Agresti and Coull do: without them samples that
# hold no outcome of a rare kind would seem to prove its absence.
_ADDED = 2.0

OWN = "bootstrap of a function of which nothing is known: right only if it is smooth at the population's Γ"
FINITE = "for every number of samples and every Γ: McDiarmid's inequality"

# ---------------------------------------------------------------- draws


def grouped(gamma: JointDistribution, most: int) -> tuple[JointDistribution, Ints]:
    """Γ on at most `most` groups of neighbouring levels of equal weight, each at its mean; the first level of each."""
    v, n = gamma.predictions, gamma.counts
    before = np.concatenate(([0.0], np.cumsum(n)[:-1])) / gamma.weight
    starts = np.flatnonzero(np.diff(np.floor(most * before), prepend=-1.0))
    counts, last = np.add.reduceat(n, starts), np.append(starts[1:], len(v)) - 1
    # Rounding must not take a mean out of its group.
    means = np.clip(np.add.reduceat(n * v, starts) / counts, v[starts], v[last])
    return JointDistribution.from_sorted_levels(
        means, counts, np.add.reduceat(gamma.positives, starts)
    ), starts


class Resample:
    """New Γ from the samples behind one, by drawing how often each cell occurs: nothing is sorted again.

    A cell is a level and an outcome; where samples have weights, it is a sample.
    """

    def __init__(self, gamma: JointDistribution, samples: tuple[Floats, Floats, Floats] | None) -> None:
        self.gamma, self.v = gamma, gamma.predictions
        self.weights: Floats | None = None
        if samples is None:
            counts, positives = gamma.counts, gamma.positives
            if gamma.weight > MOST_SAMPLES:
                raise InvalidParameter(
                    f"evaluate: Γ has weight {gamma.weight!r}, more than can be drawn again sample by sample; expected "
                    f"at most {MOST_SAMPLES}, or neither bootstrap nor reference"
                )
            if (counts != np.rint(counts)).any() or (positives != np.rint(positives)).any():
                raise InvalidParameter(
                    "evaluate: counts of Γ are not whole, so there are no samples to draw again; expected the samples "
                    "and weights themselves"
                )
            self.counts = counts.astype(np.int64)
            self.squares = counts - positives, positives
            cells = np.concatenate(self.squares)
            self.level, self.ones = (
                np.flatnonzero(cells) % gamma.levels,
                np.flatnonzero(cells) >= gamma.levels,
            )
            times = cells[cells > 0]
        else:
            p, y, w = (part[samples[2] > 0.0] for part in samples)
            self.level, self.ones, self.weights = np.searchsorted(self.v, p), y > 0.0, w
            times = np.ones(len(w))
            with np.errstate(over="ignore", invalid="ignore"):
                self.squares = self._sums(w**2 * ~self.ones), self._sums(w**2 * self.ones)
            if not 1e-290 < sum(part.sum() for part in self.squares) < np.inf:
                raise InvalidParameter(
                    f"evaluate: the largest weight is {float(w.max())!r}, of which floats hold no square; expected one "
                    "from 1e-140 to 1e140: multiply all by one number"
                )
        self.total = round(float(times.sum()))
        self.shares = times / self.total

    #: why nothing follows from so few clusters; "" of samples without clusters
    too_few = ""
    #: how many clusters there are; 0 where each sample is independent
    clusters = 0

    def mean_cells(self, zeros: Floats, ones: Floats) -> tuple[Floats, Floats, Floats]:
        """The loss, mass and sum of squared weights of each cell that holds samples."""
        mass = np.concatenate((self.gamma.counts - self.gamma.positives, self.gamma.positives))
        squares = np.concatenate(self.squares)
        held = (mass > 0.0) & (squares > 0.0)
        return np.concatenate((zeros, ones))[held], mass[held], squares[held]

    @property
    def samples(self) -> float:
        """How many samples of equal weights vary as much."""
        return float(self.gamma.weight**2 / (self.squares[0].sum() + self.squares[1].sum()))

    def samples_in(self, cells: Ints) -> tuple[Floats, Floats]:
        """The same for each cell of levels, and the share of the weight that it holds."""
        mass = np.bincount(cells, self.gamma.counts)
        squares = np.bincount(cells, self.squares[0] + self.squares[1])
        held = mass > 0.0
        return mass[held] ** 2 / squares[held], mass[held] / self.gamma.weight

    def samples_near(self, kernel: Floats | None, place: Ints, means: Floats) -> Floats:
        """The same near points: (points, places) weights of the places of levels, or each place by itself."""
        found: Any = [
            np.bincount(place, part) for part in (self.gamma.counts, self.squares[0] + self.squares[1])
        ]
        total, squares = found if kernel is None else (kernel @ found[0], kernel**2 @ found[1])
        return np.asarray(total**2 / squares)

    def bootstrap(self, generator: np.random.Generator) -> JointDistribution:
        """As many samples, drawn with replacement."""
        times = generator.multinomial(self.total, self.shares).astype(float)
        return self._gamma(times if self.weights is None else times * self.weights, self.ones)

    def calibrated(self, generator: np.random.Generator, chances: Floats | None = None) -> JointDistribution:
        """The same predictions, and each outcome 1 with the probability predicted, or with that of its level."""
        chances = self.v if chances is None else chances
        if self.weights is None:
            ones = generator.binomial(self.counts, chances).astype(np.float64)
            return JointDistribution.from_sorted_levels(self.v, self.gamma.counts, ones)
        return self._gamma(self.weights, generator.random(len(self.level)) < chances[self.level])

    def blocks(self, generator: np.random.Generator) -> Iterator[Block]:
        """The samples in blocks, each sample in any of them with the same chance."""
        if self.weights is None:
            return blocks_of_counts(self.squares, generator)
        block = generator.integers(0, BLOCKS, len(self.level))
        return blocks_of_samples(self.level, self.ones, self.weights, len(self.v), block)

    def changes(self, kind: str, times: int, generator: np.random.Generator) -> Iterator[Change]:
        """Changes of the masses of levels and outcomes by new samples, some at a time."""
        gamma, place, wider = self.gamma, np.arange(self.gamma.levels), 1.0
        if gamma.levels > MOST_LEVELS:
            gamma, starts = grouped(self.gamma, MOST_LEVELS)
            place = np.searchsorted(starts, place, side="right") - 1
            wider = WIDENED
        draw = self._normal(gamma, place) if kind == "resampled" else self._outcomes(gamma, place)
        rows = max(_AT_ONCE // max(gamma.levels, self.clusters), 1)
        for start in range(0, times, rows):
            zeros, ones = draw(min(rows, times - start), generator)
            yield Change(gamma, wider * zeros, wider * ones, self.samples, self.gamma, place)

    def _normal(self, gamma: JointDistribution, place: Ints) -> Draw:
        added = _ADDED * sum(part.sum() for part in self.squares) / self.total * gamma.mass
        mass = np.concatenate((gamma.mass * (1.0 - gamma.means), gamma.mass * gamma.means))
        scale = np.sqrt(np.concatenate([np.bincount(place, part) + added for part in self.squares]))
        scale /= self.gamma.weight

        def draw(rows: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
            both = generator.standard_normal((rows, len(scale)))
            both *= scale
            both -= both.sum(axis=1)[:, None] * mass
            return both[:, : gamma.levels], both[:, gamma.levels :]

        return draw

    def _outcomes(self, gamma: JointDistribution, place: Ints) -> Draw:
        v, weight = gamma.predictions, self.gamma.weight
        squares = np.bincount(place, self.squares[0] + self.squares[1])
        level = place[self.level]
        order = np.argsort(level, kind="stable")
        starts = np.searchsorted(level[order], np.arange(len(v)))

        def draw(rows: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
            if self.weights is None:
                counts = gamma.counts.astype(np.int64)
                ones = (generator.binomial(counts, v, (rows, len(v))) - gamma.counts * v) / weight
            elif len(order) <= MOST_LEVELS:
                w, p = self.weights[order], v[level[order]]
                drawn = w * ((generator.random((rows, len(w))) < p) - p)
                ones = np.add.reduceat(drawn, starts, axis=1) / weight
            else:
                ones = generator.standard_normal((rows, len(v))) * np.sqrt(squares * v * (1.0 - v)) / weight
            return -ones, ones

        return draw

    def _sums(self, part: Floats) -> Floats:
        return np.asarray(np.bincount(self.level, part, len(self.v)), dtype=np.float64)

    def _gamma(self, weights: Floats, ones: NDArray[np.bool_]) -> JointDistribution:
        # Both sums run in the same order, so that rounding cannot lift the second above the first.
        return JointDistribution.from_sorted_levels(self.v, self._sums(weights), self._sums(weights * ones))


# ---------------------------------------------------------------- intervals


@dataclass(frozen=True)
class Interval:
    """An interval, or the reason that it is missing."""

    ends: Ends | None
    how: str  # how it was made, or why it is missing


@dataclass(frozen=True)
class Asked:
    """A measure with its record, options and value."""

    record: Measure
    options: Mapping[str, Any]
    ends: Ends

    @property
    def parts(self) -> list[tuple[Sampling, Mapping[str, Any], str]]:
        """The samplings of its deviations, each with options and the name of the measure."""
        sampling = self.record.sampling
        if isinstance(sampling, Between):
            named = [(MEASURES[name].sampling, name) for name in (sampling.lower, sampling.upper)]
            return [(part, {}, name) for part, name in named if isinstance(part, Sampling)]
        return [] if sampling is None else [(sampling, self.options, self.record.name)]

    @property
    def kind(self) -> Kind | None:
        """How ends are found by witnesses; None where they are not."""
        return kind_of(self.record.name, self.options)


def order_statistic(values: Floats, level: float) -> float:
    """The ⌈(B + 1) level⌉-th smallest of B values, infinite if there are fewer.

    One more value that is exchangeable with them is no larger with a probability of at least `level`.
    """
    rank = math.ceil((len(values) + 1) * level - 1e-9)
    return math.inf if rank > len(values) else float(np.sort(values)[max(rank, 1) - 1])


def joint_radii(kinds: Sequence[Floats], level: float) -> Floats:
    """Radii c_j that all columns of draws (B, J) are below together, in a share `level` of each kind of draws.

    They are proportional to the means of the columns over all draws.
    """
    scale = np.concatenate(kinds).mean(axis=0)
    if not np.isfinite(scale).all():
        return np.full(len(scale), math.inf)
    safe = np.where(scale > 0.0, scale, 1.0)
    times = max(order_statistic((draws / safe).max(axis=1), level) for draws in kinds)
    return np.where(scale > 0.0, scale * times, 0.0) if times < math.inf else np.full(len(scale), math.inf)


def mean_interval(
    loss: Floats, mass: Floats, squares: Floats, within: Ends, times: int, level: float, seed: int
) -> Ends:
    """Quantiles of the mean loss with weights drawn from Dirichlet's law; each end fails in half of the cases left.

    One more sample has the least loss for the lower end, and the largest for the upper one. Of two losses these are the
    quantiles of Clopper and Pearson, and as n grows those of the normal law.
    """
    order = np.argsort(loss)
    mass, squares, loss = (part[order] for part in (mass, squares, loss))
    starts = np.arange(0, len(loss), -(-len(loss) // MOST_LEVELS))
    loss = np.add.reduceat(mass * loss, starts)
    mass, squares = np.add.reduceat(mass, starts), np.add.reduceat(squares, starts)
    loss, scale, shape = loss / mass, squares / mass, mass**2 / squares
    generator = np.random.default_rng([seed, 4])
    rows, low, high = max(_AT_ONCE // len(loss), 1), [], []
    for start in range(0, times, rows):
        size = min(rows, times - start)
        weights = generator.standard_gamma(shape, (size, len(loss))) * scale
        more = generator.standard_exponential(size) * scale.max()
        total, every = weights @ loss, weights.sum(axis=1) + more
        low.append((total + more * within[0]) / every)
        high.append((total + more * within[1]) / every)
    side = 0.5 * (1.0 + level)
    least, most = -order_statistic(-np.concatenate(low), side), order_statistic(np.concatenate(high), side)
    return max(least, within[0]), min(most, within[1])


def few_samples(asked: Asked, resample: Resample) -> str:
    """Why the value is noise: too much weight in cells with few samples; "" if it is not."""
    if resample.too_few:
        return resample.too_few
    for sampling, options, _ in asked.parts:
        if reason := sampling.refuses(**options):
            return f"none: {reason}"
        if sampling.cells is None:
            continue
        samples, mass = resample.samples_in(sampling.cells(resample.gamma, **options))
        few = float(mass[samples < FEW - 1e-9].sum())
        if few > sampling.share(**options) + 1e-12:
            of = "clusters" if resample.clusters else "samples"
            what = "levels" if len(samples) == resample.gamma.levels else "bins"
            return (
                f"none: {few:.0%} of the weight is on {what} with fewer than {FEW} {of}, where it cannot be "
                f"estimated; use {sampling.instead}"
            )
    return ""


def drawn_radii(
    wanted: Sequence[Asked], resample: Resample, times: int, level: float, seed: int
) -> list[list[Floats]]:
    """The radii of each part of each measure, by draws of both kinds. With witnesses they have half the error."""
    drawn: list[dict[str, list[list[Floats]]]] = [{} for _ in wanted]
    draws = (
        (kind, change)
        for number, kind in enumerate(KINDS)
        for change in resample.changes(kind, times, np.random.default_rng([seed, 2 + number]))
    )
    with Progress(len(KINDS) * times, unit="draws of intervals") as progress:
        for kind, change in draws:
            kept: dict[str, Floats] = {}  # what bounds several measures is found once
            for mine, asked in zip(drawn, wanted, strict=True):
                if kind == "resampled" or all(part.calibrated for part, _, _ in asked.parts):
                    columns = []
                    for sampling, options, name in asked.parts:
                        if not options and name not in kept:
                            kept[name] = sampling.deviations(change)
                        columns.append(sampling.deviations(change, **options) if options else kept[name])
                    mine.setdefault(kind, []).append(columns)
            progress.advance(len(change.residuals))
    radii = []
    for mine, asked in zip(drawn, wanted, strict=True):
        widths = [part.shape[1] for part in mine["resampled"][0]]
        kinds = [
            np.concatenate([np.concatenate(parts, axis=1) for parts in of_kind]) for of_kind in mine.values()
        ]
        within = level if resample.clusters or asked.kind is None else 0.5 * (1.0 + level)
        radii.append(np.split(joint_radii(kinds, within), np.cumsum(widths)[:-1]))
    return radii


def certain_radii(asked: Asked, samples: float, level: float) -> list[Floats] | None:
    """Radii that hold for every n and every Γ with a probability of `level`: E[L_j] and McDiarmid's inequality.

    None where no bound of E[L_j] is known. Bounds of several L_j share what may fail.
    """
    parts = asked.parts
    known = [None if part.means is None else part.means(samples, **options) for part, options, _ in parts]
    if any(mean is None for mean in known):
        return None
    means = [np.asarray(mean, dtype=np.float64) for mean in known]
    if level >= 1.0:
        return [np.full(len(mean), math.inf) for mean in means]
    fails = (1.0 - level) / sum(map(len, means))
    rest = math.sqrt(-math.log(fails) / (2.0 * samples))
    return [
        mean / math.sqrt(samples) + part.spread * rest
        for mean, (part, _, _) in zip(means, parts, strict=True)
    ]


def intervals(
    asked: Sequence[Asked], resample: Resample, times: int, level: float, seed: int, method: Method
) -> list[Interval]:
    """The interval of each measure that has a record of its own."""
    bootstrap, kept = method == "bootstrap", dict[str, Floats]()
    if not bootstrap and resample.weights is not None:
        raise InvalidParameter(
            "evaluate: method = 'finite-sample' with weights; expected samples without, or method = 'bootstrap'"
        )
    values = {one.record.name: one.ends for one in asked if not one.options}

    def known(name: str, both: Ends | None = None) -> Known:
        if both is None and name not in values:
            values[name] = ends(MEASURES[name].function(resample.gamma))
        return Known(resample.gamma, resample.samples, both or values[name], kept)

    found: dict[int, Interval] = {}
    for i, one in enumerate(asked):
        record, sampling = one.record, one.record.sampling
        if any(map(math.isinf, one.ends)):
            # Resamples of samples that hide what is finite hide it as well: of outcomes that are all equal, say.
            either = one.ends if record.lasting else (record.least, record.largest)
            what = "is so in the population" if record.lasting else "says nothing of the population"
            found[i] = Interval(either, f"what is infinite in a sample {what}")
        elif bootstrap and (reason := few_samples(one, resample)):
            found[i] = Interval(None, reason)
        elif bootstrap and isinstance(sampling, Sampling) and sampling.losses is not None:
            zeros, ones, most = sampling.losses(resample.gamma)
            cells = resample.mean_cells(zeros, ones)
            low, high = mean_interval(*cells, (0.0, most), times, level, seed)
            both = min(low, one.ends[0]), min(max(high, one.ends[1]), record.largest)
            found[i] = Interval(both, sampling.source)
    left = [i for i in range(len(asked)) if i not in found]
    radii: Sequence[list[Floats] | None]
    proved: dict[int, Ends] = {}
    if bootstrap:
        # Gains of clusters are not independent; there the draws alone give intervals.
        kinds = {i: kind for i in left if (kind := asked[i].kind) is not None and not resample.clusters}
        if kinds:
            blocks = resample.blocks(np.random.default_rng([seed, 6]))
            chosen = {i: asked[i].options for i in kinds}
            limit, squares = partial(mean_interval, times=times, seed=seed), np.stack(resample.squares)
            proved = witnessed_ends(kinds, chosen, resample.gamma, squares, blocks, level, limit)
        for i, (low, high) in proved.items():
            one, record = asked[i], asked[i].record
            proved[i] = low, high = min(low, one.ends[0]), max(high, one.ends[1])
            if kinds[i].alone:
                found[i] = Interval((max(low, record.least), min(high, record.largest)), f"{BY}; {ABOVE}")
        left = [i for i in left if i not in found]
        radii = drawn_radii([asked[i] for i in left], resample, times, level, seed) if left else []
    else:
        radii = [certain_radii(asked[i], resample.samples, level) for i in left]
    for i, parts in zip(left, radii, strict=True):
        one, record = asked[i], asked[i].record
        source: Any = record.sampling
        if parts is None:
            found[i] = Interval(
                None, "none: no bound with explicit constants is known; use method 'bootstrap'"
            )
            continue
        of_mean = getattr(source, "losses", None) is not None  # whose source is that of draws
        how = FINITE if of_mean else source.source + ("" if bootstrap else f"; {FINITE}")
        if any(not np.isfinite(part).all() for part in parts):
            found[i] = Interval((record.least, record.largest), how)
            continue
        if len(parts) == 1:
            sampling, options, name = one.parts[0]
            low, high = sampling.limits(known(name, one.ends), parts[0], **options)
        else:
            (low, _), (_, high) = (
                sampling.limits(known(name), part)
                for (sampling, _, name), part in zip(one.parts, parts, strict=True)
            )
            low, high = min(low, one.ends[0]), max(high, one.ends[1])
        if i in proved:
            how += f"; or, if nearer to the value, {BY}; {ABOVE}"
            low, high = max(low, proved[i][0]), min(high, proved[i][1])
        found[i] = Interval((max(low, record.least), min(high, record.largest)), how)
    return [found[i] for i in range(len(asked))]
