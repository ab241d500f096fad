"""Intervals for a measure of the population, and the draws for them.

A measure's `Sampling` bounds the distance of its value from the population's by seminorms L_j of D = Γ̂ − Γ. The law of
the L_j(D) is imitated by two kinds of draws. Each radius is the larger of the two quantiles. Normal changes with
the covariance of resampled masses are right for large n wherever the truth lies. Changes by outcomes drawn as the
predictions say are right for every n if the forecasts are calibrated. Suprema of means over tasks or weights have ends
by their witnesses (`witnessed`). Where there are both, each way may fail in half of the cases left.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.progress import Progress
from onlinecal.logs.resampling import AT_ONCE, FEW, MOST_LEVELS, Function, Resample, replicates
from onlinecal.logs.witnessed import ABOVE, BY, OPEN, Kind, kind_of, witnessed_ends
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Between, Ends, Known, Measure, Sampling, ends

Method = Literal["bootstrap", "finite-sample"]

KINDS = ("resampled", "calibrated")
OWN = "bootstrap of a function of which nothing is known: right only if it is smooth at the population's Γ"
FINITE = "for every number of samples and every Γ: McDiarmid's inequality"


@dataclass(frozen=True)
class Interval:
    """An interval, or the reason that it is missing."""

    ends: Ends | None
    how: str  # how it was made, or why it is missing


@dataclass(frozen=True)
class Measurement:
    """A measure: its name in the table, as a function of Γ, its record and options, and its value."""

    name: str
    function: Function
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
    """The ⌈(B + 1) level⌉-th smallest of B values, or infinity: one more is no larger with probability `level`."""
    rank = math.ceil((len(values) + 1) * level - 1e-9)
    return math.inf if rank > len(values) else float(np.sort(values)[max(rank, 1) - 1])


def joint_radii(kinds: Sequence[Floats], level: float) -> Floats:
    """Radii in proportion to the columns' means; a share `level` of each kind of draws (B, J) is below all of them."""
    scale = np.concatenate(kinds).mean(axis=0)
    if not np.isfinite(scale).all():
        return np.full(len(scale), math.inf)
    safe = np.where(scale > 0.0, scale, 1.0)
    times = max(order_statistic((draws / safe).max(axis=1), level) for draws in kinds)
    return scale * times if times < math.inf else np.full(len(scale), math.inf)


def mean_interval(
    loss: Floats, mass: Floats, squares: Floats, within: Ends, times: int, level: float, seed: int
) -> Ends:
    """Quantiles of the mean loss with weights drawn from Dirichlet's law; each end fails in half of the cases left.

    One more sample has the least loss for the lower end, and the largest for the upper one. It weighs Σ w²/Σ w, the
    mean weight that a unit of weight is part of. Of two losses these are the quantiles of Clopper and Pearson, and as n
    grows those of the normal law.
    """
    order = np.argsort(loss)
    mass, squares, loss = (part[order] for part in (mass, squares, loss))
    starts = np.arange(0, len(loss), -(-len(loss) // MOST_LEVELS))
    loss = np.add.reduceat(mass * loss, starts)
    mass, squares = np.add.reduceat(mass, starts), np.add.reduceat(squares, starts)
    loss, scale, shape = loss / mass, squares / mass, mass**2 / squares
    one = squares.sum() / mass.sum()
    generator = np.random.default_rng([seed, 4])
    rows, low, high = max(AT_ONCE // len(loss), 1), [], []
    for start in range(0, times, rows):
        size = min(rows, times - start)
        weights = generator.standard_gamma(shape, (size, len(loss))) * scale
        more = generator.standard_exponential(size) * one
        total, every = weights @ loss, weights.sum(axis=1) + more
        low.append((total + more * within[0]) / every)
        high.append((total + more * within[1]) / every)
    side = 0.5 * (1.0 + level)
    least, most = -order_statistic(-np.concatenate(low), side), order_statistic(np.concatenate(high), side)
    return max(least, within[0]), min(most, within[1])


def refused(asked: Measurement, resample: Resample) -> str:
    """Why a measure with these options, or with so few clusters, has no interval; "" if it may have one."""
    if resample.too_few:
        return resample.too_few
    reasons = (sampling.refuses(**options) for sampling, options, _ in asked.parts)
    return next((f"none: {reason}" for reason in reasons if reason), "")


def few_samples(asked: Measurement, resample: Resample) -> tuple[str, str]:
    """Why draws tell nothing, as too many cells have few samples, or why an upper end is open; or ""."""
    of = "clusters" if resample.clusters else "samples"
    for sampling, options, _ in asked.parts:
        if sampling.cells is None:
            continue
        samples, mass = resample.samples_in(sampling.cells(resample.gamma, **options))
        few = float(mass[samples < FEW - 1e-9].sum())
        if few > sampling.share(**options) + 1e-12:
            what = "levels" if len(samples) == resample.gamma.levels else "bins"
            why = (
                f"none: {few:.0%} of the weight is on {what} with fewer than {FEW} {of}, where it cannot be "
                f"estimated; use {sampling.instead}"
            )
            single = float(mass[samples < 1.5].sum())
            return why, f"{single:.0%} of the weight is on {what} with a single {of[:-1]}" * (single > 0.5)
    return "", ""


def drawn_radii(
    wanted: Sequence[Measurement],
    shared: Sequence[bool],
    resample: Resample,
    times: int,
    level: float,
    seed: int,
) -> list[list[Floats]]:
    """The radii of each part of each measure, by draws of both kinds. Where error is shared, for half of it."""
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
    for mine, halved in zip(drawn, shared, strict=True):
        widths = [part.shape[1] for part in mine["resampled"][0]]
        kinds = [
            np.concatenate([np.concatenate(parts, axis=1) for parts in of_kind]) for of_kind in mine.values()
        ]
        within = 0.5 * (1.0 + level) if halved else level
        radii.append(np.split(joint_radii(kinds, within), np.cumsum(widths)[:-1]))
    return radii


def certain_radii(asked: Measurement, samples: float, level: float) -> list[Floats] | None:
    """Radii right for every n and Γ with probability `level`, by E[L_j] and McDiarmid; None without a bound."""
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


def own_intervals(
    asked: Sequence[Measurement], resample: Resample, times: int, level: float, seed: int
) -> list[Interval]:
    """The hull of two bootstrap intervals of the values of functions that nothing is known of."""
    if resample.too_few:
        return [Interval(None, resample.too_few)] * len(asked)
    functions, tail = [(one.name, one.function) for one in asked], 0.5 * (1.0 - level)
    drawn = replicates(functions, resample.bootstrap, times, np.random.default_rng([seed, 0]))
    found = []
    for one, values in zip(asked, np.moveaxis(drawn, 1, 0), strict=True):
        (low, high), record = one.ends, one.record
        both = record.least, record.largest
        if not math.isinf(low) and not math.isinf(high):
            # Steps, not interpolation, which would make NaN of two infinite values.
            least = float(np.quantile(values[:, 0], tail, method="inverted_cdf"))
            most = float(np.quantile(values[:, 1], 1.0 - tail, method="inverted_cdf"))
            both = (
                max(min(2.0 * low - most, least), record.least),
                min(max(2.0 * high - least, most), record.largest),
            )
        found.append(Interval(both, OWN))
    return found


def intervals(
    asked: Sequence[Measurement], resample: Resample, times: int, level: float, seed: int, method: Method
) -> list[Interval]:
    """The interval of each measure, by its `Sampling` where it has one."""
    bootstrap, kept, number = method == "bootstrap", dict[str, Floats](), len(asked)
    binned = [i for i, one in enumerate(asked) if one.record.name == "binned_ece"] if bootstrap else []
    if binned:
        record = MEASURES["ece"]
        value = ends(record.function(resample.gamma))
        asked = [*asked, Measurement("ece", record.function, record, {}, value)]
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
    # Kinds of ends by witnesses with their options, and whether they are the only ones.
    kinds: dict[int, tuple[Kind, Mapping[str, Any], bool]] = {}
    opened: dict[int, str] = {}
    own = [i for i, one in enumerate(asked) if one.record.sampling is None]
    if own and bootstrap:
        mine = own_intervals([asked[i] for i in own], resample, times, level, seed)
        found.update(zip(own, mine, strict=True))
    for i, one in enumerate(asked):
        record, sampling = one.record, one.record.sampling
        if sampling is None:
            found.setdefault(i, Interval(None, "none: nothing is known of a function of your own"))
        elif any(map(math.isinf, one.ends)):
            # Resamples of samples that hide what is finite hide it as well: of outcomes that are all equal, say.
            either = one.ends if record.lasting else (record.least, record.largest)
            what = "is so in the population" if record.lasting else "says nothing of the population"
            found[i] = Interval(either, f"what is infinite in a sample {what}")
        elif bootstrap and (reason := refused(one, resample)):
            found[i] = Interval(None, reason)
        elif bootstrap and isinstance(sampling, Sampling) and sampling.losses is not None:
            zeros, ones, most = sampling.losses(resample.gamma)
            low, high = mean_interval(*resample.mean_cells(zeros, ones, most), times, level, seed)
            both = min(low, one.ends[0]), min(max(high, one.ends[1]), record.largest)
            found[i] = Interval(both, sampling.source)
        elif bootstrap:
            few, opened[i] = few_samples(one, resample)
            known_kind = kind_of(record.name, one.options, resample.gamma)
            if known_kind is None and few:
                found[i] = Interval(None, few)
            elif known_kind is not None and (few or known_kind[0].often):
                # Draws of clusters know how far rows of one are alike, and may be nearer.
                kinds[i] = *known_kind, bool(few) or (known_kind[0].alone and not resample.clusters)
    left = [i for i in range(len(asked)) if i not in found]
    radii: Sequence[list[Floats] | None]
    proved: dict[int, Ends] = {}
    if bootstrap:
        if kinds:
            blocks = resample.blocks(np.random.default_rng([seed, 6]))
            limit = partial(mean_interval, times=times, seed=seed)
            proved = witnessed_ends(kinds, resample.gamma, resample.powers, blocks, level, limit)
        for i, (low, high) in proved.items():
            proved[i] = min(low, asked[i].ends[0]), max(high, asked[i].ends[1])
            if kinds[i][2]:
                above = f"{OPEN}{opened[i]}" if opened[i] else ABOVE
                both = proved[i][0], math.inf if opened[i] else proved[i][1]
                found[i] = _within(both, asked[i].record, f"{BY}; {above}")
        left = [i for i in left if i not in found]
        drawn = [asked[i] for i in left]
        radii = drawn_radii(drawn, [i in proved for i in left], resample, times, level, seed) if left else []
    else:
        radii = [certain_radii(asked[i], resample.samples, level) for i in left]
    for i, parts in zip(left, radii, strict=True):
        one, record = asked[i], asked[i].record
        source: Any = record.sampling
        if parts is None:
            found[i] = Interval(None, "none: no bound with constants is known; use method 'bootstrap'")
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
        found[i] = _within((low, high), record, how)
    for i in binned:
        of_bins, of_ece = found[i].ends, found[number].ends
        if of_bins is not None and of_ece is not None:
            # ECE is never less, and neither is its lower end.
            found[i] = Interval((min(of_bins[0], of_ece[0]), of_bins[1]), found[i].how)
    return [found[i] for i in range(number)]


def _within(both: Ends, record: Measure, how: str) -> Interval:
    return Interval((max(both[0], record.least), min(both[1], record.largest)), how)
