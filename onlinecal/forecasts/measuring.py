"""All that can be said of a log of forecasts: for each column, by group and over time, and of columns side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import integer
from onlinecal.forecasts.cautions import cautions, duplicates, tiny_groups
from onlinecal.forecasts.decomposition import Decomposition, decomposition
from onlinecal.forecasts.evaluation import EVERYTHING, evaluate, p_large_n
from onlinecal.forecasts.inference import (
    Difference,
    Drift,
    calibration_test,
    drift_test,
    holm,
    score_differences,
)
from onlinecal.forecasts.reading import Log
from onlinecal.forecasts.resampling import Resample
from onlinecal.forecasts.table import Evaluation
from onlinecal.forecasts.thresholds import Threshold, threshold_regret, worst_threshold
from onlinecal.measures import brier
from onlinecal.measures.decision import worst_decision_task
from onlinecal.study.panel import named_measure

Floats = NDArray[np.float64]

#: distinct predictions up to which measures are of them all; of more, of a grid of `GRID` steps
DISTINCT = 30_000
GRID = 4096
#: groups, at most
GROUPS = 1000
#: stretches of time in the table over time
BLOCKS = 8


@dataclass(frozen=True)
class Settings:
    """Settings of a report."""

    draws: int = 200  # of either kind for intervals, and for p-values; 0 for neither
    level: float = 0.95
    seed: int = 0
    measures: tuple[Any, ...] | None = None
    # of more than `distinct` predictions, measures are those of a grid of `grid` steps, as brackets
    distinct: int = DISTINCT
    grid: int = GRID


@dataclass(frozen=True)
class Part:
    """Some of the rows: a group, or a stretch of time."""

    name: str
    rows: int
    forecast: float  # the mean
    event: float  # the share of outcomes 1
    error: float  # standard error of event − forecast, if outcomes are drawn as forecast
    brier: float
    p_value: float  # of calibration, by the cutoff calibration error
    adjusted: float  # the same for all parts at once (Holm)


@dataclass(frozen=True)
class Measured:
    """One column of forecasts."""

    name: str
    # of the predictions as they are written; of a file that was read in parts, where they are too many, on a grid
    gamma: JointDistribution
    evaluation: Evaluation
    brier: Decomposition
    log: Decomposition
    threshold: Threshold
    # what it would lose on average if forecasts were calibrated; of forecasts on a grid, the worst of its thresholds
    by_chance: float | None
    # how often as much, then: a p-value of calibration, for all pairs of thresholds at once
    threshold_p: float | None
    # whether `threshold_p` is at most 1 − level: calibrated forecasts lead to advice with this probability at most
    advises: bool
    worst_task: str  # the worst of all decision tasks, where the p-value of its regret is as small; else ""
    cautions: list[str]
    groups: list[Part]
    blocks: list[Part]
    drift: Drift | None


@dataclass(frozen=True)
class Report:
    """A log of forecasts."""

    source: str
    outcome: str
    rows: int
    columns: list[Measured]
    differences: list[Difference]  # of the scores of all pairs of columns
    lags: int  # up to which distance, in rows, their errors are taken to depend on each other
    by: str  # the columns of groups and of times, "" for none
    time: str
    said: list[str]  # what was guessed, left out or sorted
    cautions: list[str]  # about the rows
    settings: Settings


def measure_log(log: Log, settings: Settings | None = None, more_columns: bool = False) -> Report:
    """The report of a log."""
    settings = _checked(settings or Settings())
    groups: Mapping[str, Any] = log.groups or {}
    few_groups(log.source, log.by, len(groups))
    columns = [_column(log, name, settings) for name in log.forecasts]
    lags = 0 if log.times is None else math.floor(math.cbrt(log.rows))
    said = duplicates(log.duplicates, log.rows, more_columns, [column.gamma for column in columns])
    said += tiny_groups({name: len(rows) for name, rows in groups.items()})
    return Report(
        log.source, log.outcome, log.rows, columns,
        score_differences(log.forecasts, log.outcomes, log.weights, lags), lags,
        log.by, log.time, list(log.said), said, settings,
    )  # fmt: skip


def few_groups(source: str, by: str, many: int) -> None:
    """Refuses too many groups."""
    if many > GROUPS:
        raise InvalidData(f"{source}: {by!r} has {many} different values; expected at most {GROUPS} groups")


def measure_gamma(
    name: str,
    gamma: JointDistribution,
    moved: float | None,
    settings: Settings,
    groups: list[Part],
    chances: Floats | None = None,
) -> Measured:
    """The same of a column of which only Γ is known."""
    settings = _checked(settings)
    steps = None if moved is None else (settings.grid, moved)
    return _measured(name, _Given(gamma), steps, settings, None, groups, [], chances)


# ---------------------------------------------------------------- one column


class _Given(NamedTuple):
    """Γ, and where samples have weights, the samples themselves: predictions, outcomes, weights."""

    gamma: JointDistribution
    samples: tuple[Floats, Floats, Floats] | None = None

    def on_grid(self, steps: int) -> tuple[_Given, float]:
        """With every prediction moved to the nearest i/steps, and how far on average."""
        gamma, distance = self.gamma.round(steps)
        if self.samples is None:
            return _Given(gamma), distance
        p, y, w = self.samples
        return _Given(gamma, (np.rint(p * steps) / steps, y, w)), distance

    def evaluate(self, settings: Settings, measures: Any, **options: Any) -> Evaluation:
        """The table of some measures, with intervals."""
        given: dict[str, Any] = {"p": self.gamma}
        if self.samples is not None:
            given = dict(zip(("p", "y", "weights"), self.samples, strict=True))
        # Threads of linear algebra wait for each other longer than they work here.
        with threadpool_limits(1, user_api="blas"):
            return evaluate(
                **given,
                measures=measures,
                bootstrap=settings.draws,
                level=settings.level,
                seed=settings.seed,
                **options,
            )

    def resample(self) -> Resample:
        """Draws from it."""
        return Resample(self.gamma, self.samples)


def _checked(settings: Settings) -> Settings:
    integer("measure", "draws", settings.draws, 0, 100_000)
    integer("measure", "grid", settings.grid, 1, 2**20)
    integer("measure", "distinct", settings.distinct, 1)
    return settings


def _column(log: Log, name: str, settings: Settings) -> Measured:
    p, y, w = log.forecasts[name], log.outcomes, log.weights
    given = _Given(JointDistribution.from_samples(p, y, weights=w), None if w is None else (p, y, w))
    drift = None if log.times is None else drift_test(p, y, w)
    groups = _parts(log, name, log.groups or {}, settings.seed)
    blocks = [] if log.times is None else _parts(log, name, _blocks(log), settings.seed)
    return _measured(name, given, None, settings, drift, groups, blocks)


def _measured(
    name: str,
    given: _Given,
    steps: tuple[int, float] | None,
    settings: Settings,
    drift: Drift | None,
    groups: list[Part],
    blocks: list[Part],
    chances: Floats | None = None,
) -> Measured:
    """Of predictions as they are given, or on a grid already if there are `steps` of how they came to it."""
    gamma, shown = given.gamma, given
    if steps is None and gamma.levels > settings.distinct:
        shown, distance = given.on_grid(settings.grid)
        steps = (settings.grid, distance)
        v, n = gamma.predictions, gamma.counts
        chances = JointDistribution.from_sorted_levels(v, n, n * v).round(settings.grid)[0].means
    evaluation = shown.evaluate(settings, settings.measures, reference=settings.draws, moved=steps)
    if evaluation.refused and shown is not given:
        evaluation = _completed(evaluation, given, settings)
    resample = shown.resample()
    by_chance, share = _chance(resample, chances, settings)
    # The worst of all tasks is noise where CDL is.
    told = {row.name for row in evaluation.rows if row.interval is not None and _told(row.p_value, settings)}
    task = " ".join(str(worst_decision_task(gamma)).split()) if "cdl" in told else ""
    samples = rows = None
    if given.samples is not None:
        samples, rows = resample.samples, int(np.count_nonzero(given.samples[2]))
    return Measured(
        name, gamma, evaluation, decomposition(gamma), decomposition(gamma, "log"), worst_threshold(gamma), by_chance,
        share, _told(share, settings), task, cautions(gamma, drift, samples, rows), groups, blocks, drift,
    )  # fmt: skip


def _completed(evaluation: Evaluation, given: _Given, settings: Settings) -> Evaluation:
    """With those measures of which nothing is known on a grid, of all predictions; no outcomes are drawn for them."""
    asked = settings.measures or EVERYTHING
    order = [named_measure(spec)[0].name for spec in asked]
    left = [spec for spec, name in zip(asked, order, strict=True) if name in evaluation.refused]
    resample = given.resample()
    rows = [
        replace(row, p_large_n=p_large_n(row.measure, row.ends[0], resample) if settings.draws else None)
        for row in given.evaluate(settings, left).rows
    ]
    together = sorted([*evaluation.rows, *rows], key=lambda row: order.index(row.name))
    return replace(evaluation, rows=tuple(together), refused=())


def _told(p_value: float | None, settings: Settings) -> bool:
    """Whether chance alone is excluded at the level of the settings."""
    return p_value is not None and p_value <= 1.0 - settings.level


def _chance(
    resample: Resample, chances: Floats | None, settings: Settings
) -> tuple[float | None, float | None]:
    """The mean loss of the worst threshold where outcomes are drawn as forecast, and how often it is as large as here.

    On a grid outcomes are drawn by the mean forecast of each level: their number is a little more spread than that of
    single forecasts (Hoeffding 1956).
    """
    if settings.draws == 0:
        return None, None
    generator, loss = np.random.default_rng([settings.seed, 4]), threshold_regret(resample.gamma)
    drawn = np.array(
        [threshold_regret(resample.calibrated(generator, chances)) for _ in range(settings.draws)]
    )
    return float(drawn.mean()), (1 + int((drawn >= loss - 1e-12).sum())) / (1 + settings.draws)


# ---------------------------------------------------------------- parts of the rows


def part_of(name: str, rows: int, gamma: JointDistribution, seed: int, squares: Floats | None = None) -> Part:
    """Some of the rows, not yet corrected for their number."""
    v = gamma.predictions
    power = float(((gamma.counts if squares is None else squares) * v * (1.0 - v)).sum())
    p_value = calibration_test(gamma, seed, squares)
    return Part(
        name, rows, float(gamma.mass @ v), gamma.base_rate, math.sqrt(power) / gamma.weight, brier(gamma), p_value,
        p_value,
    )  # fmt: skip


def with_holm(parts: Sequence[Part]) -> list[Part]:
    """The parts, corrected for their number."""
    adjusted = holm([part.p_value for part in parts])
    return [replace(part, adjusted=p) for part, p in zip(parts, adjusted, strict=True)]


def _parts(log: Log, name: str, groups: Mapping[str, Any], seed: int) -> list[Part]:
    found = []
    for label, rows in groups.items():
        p, y = log.forecasts[name][rows], log.outcomes[rows]
        if log.weights is None:
            found.append(part_of(label, len(p), JointDistribution.from_samples(p, y), seed))
            continue
        w = log.weights[rows]
        if not w.sum() > 0.0:
            continue
        gamma = JointDistribution.from_samples(p, y, weights=w)
        counts = w > 0.0
        squares = np.bincount(np.searchsorted(gamma.predictions, p[counts]), w[counts] ** 2, gamma.levels)
        found.append(part_of(label, len(p), gamma, seed, squares.astype(np.float64)))
    return with_holm(found)


def _blocks(log: Log) -> dict[str, Any]:
    """Stretches of time with about equal numbers of rows, none of which parts rows of one time."""
    assert log.times is not None
    assert log.time_words is not None
    times = log.times
    wanted = np.linspace(0, log.rows, min(BLOCKS, log.rows) + 1).astype(np.int64)[1:-1]
    before, after = (np.searchsorted(times, times[wanted], side) for side in ("left", "right"))
    nearest = np.where(wanted - before <= after - wanted, before, after)
    starts = np.unique(np.concatenate(([0], nearest, [log.rows])))
    blocks = {}
    for first, last in pairwise(starts):
        one, other = log.time_words(int(first)), log.time_words(int(last) - 1)
        blocks[one if one == other else f"{one} to {other}"] = np.arange(first, last)
    return blocks
