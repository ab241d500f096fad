"""Intervals for what measures are of the population that samples were drawn from.

A measure's `Sampling` bounds how far its value may lie from the population's by seminorms L_j of D = Γ̂ − Γ. What is
missing is the law of the L_j(D). It is imitated by two kinds of draws, and each radius is the larger of the two
quantiles: of normal changes with the covariance of resampled masses, right for large n wherever the truth lies; and of
changes by outcomes drawn as the predictions say, right for every n if the forecasts are calibrated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.forecasts.resampling import MOST_LEVELS, Resample
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Between, Change, Ends, Known, Measure, Sampling, ends

Floats = NDArray[np.float64]
Method = Literal["bootstrap", "finite-sample"]

#: samples that a level or a bin must hold to count as repeated
FEW = 30

# Numbers drawn at once.
_AT_ONCE = 1 << 19

#: kinds of draws
KINDS = ("resampled", "calibrated")

OWN = "bootstrap of a function of which nothing is known: right only if it is smooth at the population's Γ"
UNBOUNDED = "none: no bound with explicit constants is known; use method 'bootstrap'"
FINITE = "for every number of samples and every Γ: McDiarmid's inequality"


@dataclass(frozen=True)
class Interval:
    """An interval, or the reason that it is missing."""

    ends: Ends | None
    how: str  # how it was made, or why it is missing


@dataclass(frozen=True)
class Asked:
    """A measure with its record, options and value."""

    name: str
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


def _of_scores(sampling: Sampling, resample: Resample, times: int, level: float, seed: int) -> Ends:
    """The same for a measure that is a mean of losses."""
    assert sampling.losses is not None
    gamma = resample.gamma
    zeros, ones, most = sampling.losses(gamma)
    mass = np.concatenate((gamma.counts - gamma.positives, gamma.positives))
    squares, loss = np.concatenate(resample.squares), np.concatenate((zeros, ones))
    held = (mass > 0.0) & (squares > 0.0)
    return mean_interval(loss[held], mass[held], squares[held], (0.0, most), times, level, seed)


def few_samples(asked: Asked, resample: Resample) -> str:
    """Why the value is noise: too much weight in cells with few samples; "" if it is not."""
    for sampling, options, _ in asked.parts:
        if reason := sampling.refuses(**options):
            return f"none: {reason}"
        if sampling.cells is None:
            continue
        samples, mass = resample.samples_in(sampling.cells(resample.gamma, **options))
        few = float(mass[samples < FEW - 1e-9].sum())
        if few > sampling.share(**options) + 1e-12:
            what = "levels" if len(samples) == resample.gamma.levels else "bins"
            return (
                f"none: {few:.0%} of the weight is on {what} with fewer than {FEW} samples, where it cannot be "
                f"estimated; use {sampling.instead}"
            )
    return ""


def drawn_radii(
    wanted: Sequence[Asked], resample: Resample, times: int, level: float, seed: int
) -> list[list[Floats]]:
    """The radii of each part of each measure, by draws of both kinds."""
    drawn: dict[tuple[int, str], list[list[Floats]]] = {}
    for number, kind in enumerate(KINDS):
        for change in resample.changes(kind, times, np.random.default_rng([seed, 2 + number])):
            kept: dict[str, Floats] = {}
            for i, asked in enumerate(wanted):
                if kind == "resampled" or all(part.calibrated for part, _, _ in asked.parts):
                    drawn.setdefault((i, kind), []).append(_deviations(asked, change, kept))
    radii = []
    for i in range(len(wanted)):
        widths = [part.shape[1] for part in drawn[i, "resampled"][0]]
        kinds = [
            np.concatenate([np.concatenate(parts, axis=1) for parts in drawn[i, kind]])
            for kind in KINDS
            if (i, kind) in drawn
        ]
        radii.append(np.split(joint_radii(kinds, level), np.cumsum(widths)[:-1]))
    return radii


def _deviations(asked: Asked, change: Change, kept: dict[str, Floats]) -> list[Floats]:
    columns = []
    for sampling, options, name in asked.parts:
        if options:
            columns.append(sampling.deviations(change, **options))
            continue
        if name not in kept:  # what bounds several measures is found once
            kept[name] = sampling.deviations(change)
        columns.append(kept[name])
    return columns


def certain_radii(asked: Asked, samples: float, level: float) -> list[Floats] | None:
    """Radii that hold for every n and every Γ with a probability of `level`: E[L_j] and McDiarmid's inequality.

    None where no bound of E[L_j] is known. Bounds of several L_j share what may fail.
    """
    means = []
    for sampling, options, _ in asked.parts:
        mean = None if sampling.means is None else sampling.means(samples, **options)
        if mean is None:
            return None
        means.append(np.asarray(mean, dtype=np.float64))
    if level >= 1.0:
        return [np.full(len(mean), math.inf) for mean in means]
    fails = (1.0 - level) / sum(map(len, means))
    rest = math.sqrt(-math.log(fails) / (2.0 * samples))
    return [
        mean / math.sqrt(samples) + sampling.spread * rest
        for mean, (sampling, _, _) in zip(means, asked.parts, strict=True)
    ]


def limits(
    asked: Asked, known: Callable[[Ends], Known], radii: list[Floats], value_of: Callable[[str], Ends]
) -> Ends:
    """The interval that follows from radii, cut to the range of the measure."""
    record, parts = asked.record, asked.parts
    if any(not np.isfinite(part).all() for part in radii):
        return record.least, record.largest
    if len(parts) == 1:
        sampling, options, _ = parts[0]
        low, high = sampling.limits(known(asked.ends), radii[0], **options)
    else:
        both = [
            sampling.limits(known(value_of(name)), part)
            for (sampling, _, name), part in zip(parts, radii, strict=True)
        ]
        low, high = min(both[0][0], asked.ends[0]), max(both[1][1], asked.ends[1])
    return max(low, record.least), min(high, record.largest)


def intervals(
    asked: Sequence[Asked], resample: Resample, times: int, level: float, seed: int, method: Method
) -> list[Interval]:
    """The interval of each measure that has a record of its own."""
    found: dict[int, Interval] = {}
    wanted = []
    for i, one in enumerate(asked):
        if any(map(math.isinf, one.ends)):
            # Resamples of samples that hide what is finite hide it as well: of outcomes that are all equal, say.
            record = one.record
            either = one.ends if record.lasting else (record.least, record.largest)
            found[i] = Interval(either, "what is infinite in a sample " + _INFINITE[record.lasting])
        elif method == "bootstrap":
            sampling = one.record.sampling
            if reason := few_samples(one, resample):
                found[i] = Interval(None, reason)
            elif isinstance(sampling, Sampling) and sampling.losses is not None:
                low, high = _of_scores(sampling, resample, times, level, seed)
                both = min(low, one.ends[0]), min(max(high, one.ends[1]), one.record.largest)
                found[i] = Interval(both, sampling.source)
            else:
                wanted.append(i)
    values = {one.record.name: one.ends for one in asked if not one.options}

    def value_of(name: str) -> Ends:
        if name not in values:
            value = MEASURES[name].function(resample.gamma)
            values[name] = ends(value)
        return values[name]

    kept: dict[str, Floats] = {}

    def known(both: Ends) -> Known:
        return Known(resample.gamma, resample.samples, both, kept)

    radii: dict[int, list[Floats] | None]
    if method == "bootstrap":
        drawn = drawn_radii([asked[i] for i in wanted], resample, times, level, seed) if wanted else []
        radii = dict(zip(wanted, drawn, strict=True))
    elif resample.weights is not None:
        raise InvalidParameter(
            "evaluate: method = 'finite-sample' with weights; expected samples without, or method = 'bootstrap'"
        )
    else:
        radii = {
            i: certain_radii(one, resample.samples, level) for i, one in enumerate(asked) if i not in found
        }
    for i, parts in radii.items():
        one, source = asked[i], asked[i].record.sampling
        if parts is None or source is None:
            found[i] = Interval(None, UNBOUNDED)
            continue
        of_mean = isinstance(source, Sampling) and source.losses is not None  # whose source is that of draws
        how = FINITE if of_mean else source.source + (f"; {FINITE}" if method == "finite-sample" else "")
        found[i] = Interval(limits(one, known, parts, value_of), how)
    return [found[i] for i in range(len(asked))]


_INFINITE = {True: "is so in the population", False: "says nothing of the population"}
