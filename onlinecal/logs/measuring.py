"""The report of a log of forecasts: its columns, by group and over time, and side by side."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from onlinecal.core.columns import ALL
from onlinecal.core.joint import JointDistribution
from onlinecal.core.memory import cores
from onlinecal.core.validation import integer
from onlinecal.logs.auc import auc_of
from onlinecal.logs.cautions import (
    cautions,
    depend,
    duplicates,
    order_caution,
    tiny_groups,
    unresolved_caution,
)
from onlinecal.logs.clusters import Blocks, Clustered, Samples, blocks_in_time
from onlinecal.logs.columns import Asked
from onlinecal.logs.evaluated import evaluated
from onlinecal.logs.evaluation import DECIDING
from onlinecal.logs.groups import groups_of
from onlinecal.logs.inference import (
    Difference,
    Drift,
    calibration_test,
    drift_test,
    score_differences,
    with_holm,
)
from onlinecal.logs.line import CalibrationLine, line_of
from onlinecal.logs.reading import Log
from onlinecal.logs.reference import Reference
from onlinecal.logs.regression import Decomposition, decomposition
from onlinecal.logs.resampling import Resample, replicates, share_of
from onlinecal.logs.table import Evaluation
from onlinecal.logs.thresholds import Threshold, threshold_regret, worst_threshold
from onlinecal.logs.units import Estimate
from onlinecal.logs.witnessed import clopper_pearson
from onlinecal.measures import brier
from onlinecal.measures.decision import worst_decision_task

#: stretches of time in the table over time
BLOCKS = 8


@dataclass(frozen=True)
class Settings:
    """Settings of a report."""

    draws: int = 200  # of either kind for intervals, and for p-values; 0 for neither
    level: float = 0.95
    seed: int = 0
    measures: tuple[Any, ...] = DECIDING


@dataclass(frozen=True)
class Part:
    """Some of the rows: a group, or a stretch of time."""

    name: str
    rows: int
    forecast: float  # the mean
    event: float  # the share of outcomes 1
    error: float  # standard error of event − forecast, if outcomes are drawn as forecast
    # of the expected event − forecast, given the forecasts: all of a table together; None of too few clusters
    interval: tuple[float, float] | None
    brier: float
    # of calibration, by the cutoff calibration error; None of too few clusters, and with weights of rare outcomes
    p_value: float | None
    adjusted: float | None  # the same for all parts at once (Holm)


@dataclass(frozen=True)
class Measured:
    """One column of forecasts."""

    name: str
    gamma: JointDistribution
    evaluation: Evaluation
    brier: Decomposition
    log: Decomposition
    line: CalibrationLine
    auc: Estimate
    threshold: Threshold
    # what it would lose on average if forecasts were calibrated
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
    #: whether rows seem to depend on each other, and are taken as independent
    depends: bool


@dataclass(frozen=True)
class Report:
    """A log of forecasts."""

    source: str
    outcome: str
    rows: int
    columns: list[Measured]
    differences: list[Difference]  # of the scores of all pairs of columns
    by: str  # the columns of groups and of times, "" for none
    time: str
    said: list[str]  # what was guessed, left out or sorted
    cautions: list[str]  # about the rows
    settings: Settings
    cluster: str = ""  # the column by which rows are clusters, "" for none
    classes: bool = False  # whether each column is of another event
    asked: Asked = field(default_factory=Asked)  # how the file was read
    pairs: tuple[tuple[str, str], ...] = ()  # columns of forecasts and of their outcomes, where these differ


def measure_log(log: Log, settings: Settings, more_columns: bool = False) -> Report:
    """The report of a log."""
    groups = log.groups or {}
    columns = [measured(log, name, settings) for name in log.forecasts]
    if log.weights is None and log.counts is None and log.unresolved:
        for one in columns:
            one.cautions.extend(unresolved_caution(one.gamma, log.unresolved[one.name]))
    # Clusters of a column of their own are in no order of time.
    in_time = log.times is not None and log.cluster in ("", log.time)
    differences = score_differences(
        log.forecasts, log.outcomes, log.weights, log.clusters, in_time, log.counts
    )
    # Copies within a cluster are no new evidence.
    copies = log.duplicates if log.cluster in ("", log.time) else 0
    said = duplicates(copies, log.rows, more_columns, [column.gamma for column in columns])
    said += tiny_groups({name: log.rows_of(rows) for name, rows in groups.items()})
    return Report(
        log.source, log.outcome, log.rows, columns, differences, log.by, log.time, list(log.said), said,
        settings, log.cluster,
    )  # fmt: skip


def measured(log: Log, name: str, settings: Settings) -> Measured:
    """The measures, groups, scores and cautions of a column of forecasts."""
    integer("measure", "draws", settings.draws, 0, 100_000)
    p, y, w, clusters = log.forecasts[name], log.outcomes, log.weights, log.clusters
    drift, units = None, Blocks(clusters)
    if log.times is not None:
        if log.cluster in ("", log.time):
            # Errors near each other may be alike: blocks of times are clusters then.
            units = blocks_in_time((y - p) * (1.0 if w is None else w), clusters)
        drift = drift_test(p, y, w, clusters, settings.seed)
    samples = Samples(p, y, w, log.counts, units)
    gamma = samples.gamma
    resample = samples.resample(gamma)
    evaluation = evaluated(
        gamma, resample, settings.measures, settings.draws, settings.draws, settings.level, "bootstrap",
        settings.seed,
    )  # fmt: skip
    if log.members is not None:
        many = {ALL: log.rows} | {group: log.rows_of(rows) for group, rows in log.members.items()}
        evaluation = replace(
            evaluation,
            groups=groups_of(
                samples, resample, log.members, many, settings.draws, settings.draws, settings.level, settings.seed,
            ),
        )  # fmt: skip
    by_chance, share = _by_chance(resample, settings)

    def told(p_value: float | None) -> bool:
        """Whether chance alone is excluded at the level of the settings."""
        return p_value is not None and p_value <= 1.0 - settings.level

    # The worst of all tasks is noise where CDL has no end but that of its range.
    cdl = any(
        row.name == "cdl" and row.interval is not None and row.interval[0] > 0.0 and told(row.p_value)
        for row in evaluation.rows
    )
    equal = rows = None
    if w is not None and not log.halves:
        equal, rows = Resample(gamma, (p, y, w)).samples, int(np.count_nonzero(w))
    blocked = resample.clusters if units.labels is not clusters else 0
    depends = drift is not None and not blocked and depend(drift)
    said = cautions(
        gamma, drift, equal, rows, clusters=resample.samples if resample.clusters else None, blocks=blocked,
        too_few=resample.too_few.removeprefix("none: "),
    )  # fmt: skip
    if log.times is None and clusters is None and log.counts is None:
        test = drift_test(p, y, w)
        said, depends = said + order_caution(test), depend(test, in_order=True)
    return Measured(
        name, gamma, evaluation, decomposition(gamma), decomposition(gamma, "log"),
        line_of(gamma, resample, settings.level), auc_of(gamma, resample, settings.level), worst_threshold(gamma),
        by_chance, share, told(share), " ".join(str(worst_decision_task(gamma)).split()) if cdl else "",
        said, _parts(log, log.groups or {}, samples, settings),
        _parts(log, {} if log.times is None else _blocks(log), samples, settings), drift, depends,
    )  # fmt: skip


def _by_chance(resample: Resample, settings: Settings) -> tuple[float | None, float | None]:
    """The mean loss by the worst threshold of calibrated forecasts, and how often it is as large as here."""
    if not settings.draws or resample.too_few:
        return None, None
    against = Reference(resample)
    generator, loss = np.random.default_rng([settings.seed, 4]), threshold_regret(against.gamma)
    regret = [("threshold regret", threshold_regret)]
    drawn = replicates(regret, against.draw, settings.draws, generator, cores())[:, 0, 0]
    return float(drawn.mean()), float(share_of(drawn, loss))


def _parts(log: Log, groups: Mapping[str, Any], samples: Samples, settings: Settings) -> list[Part]:
    """The report of each group of rows that have weight, corrected for their number."""
    # Intervals are those of Clopper and Pearson for the mean probability of events, less the mean forecast. Their level
    # is 1 − (1 − level)/k of k parts (Bonferroni). They hold for every number of rows, also of different probabilities
    # (Hoeffding 1956, Theorem 5). With weights or clusters they count samples, and hold for many of them.
    found, there = list[Part](), {name: rows for name, rows in groups.items() if samples.mass[rows].any()}
    for name, rows in there.items():
        some = samples.of(rows)
        gamma = some.gamma
        resample, v = some.resample(gamma), gamma.predictions
        power = float((np.add(*resample.squares) * v * (1.0 - v)).sum())
        error = resample.error if isinstance(resample, Clustered) else math.sqrt(power) / gamma.weight
        forecast, interval, p = float(gamma.mass @ v), None, None
        if not resample.too_few:
            p, count = calibration_test(resample, settings.seed), resample.samples
            if resample.clusters:
                whole = np.zeros(gamma.levels, dtype=np.int64)
                count = float(resample.samples_near(None, whole, np.array([gamma.base_rate]))[0])
            level = 1.0 - (1.0 - settings.level) / len(there)
            low, high = clopper_pearson(np.array([gamma.base_rate]), count, 0.5 * (1.0 - level))
            interval = float(low[0]) - forecast, float(high[0]) - forecast
        found.append(
            Part(name, log.rows_of(rows), forecast, gamma.base_rate, error, interval, brier(gamma), p, p)
        )
    return with_holm(found)


def _blocks(log: Log) -> dict[str, Any]:
    """Stretches of time with about equal numbers of rows, none of which parts rows of one time."""
    times: Any = log.times
    words: Any = log.time_words
    wanted = np.linspace(0, log.rows, min(BLOCKS, log.rows) + 1).astype(np.int64)[1:-1]
    before, after = (np.searchsorted(times, times[wanted], side) for side in ("left", "right"))
    nearest = np.where(wanted - before <= after - wanted, before, after)
    starts = np.unique(np.concatenate(([0], nearest, [log.rows]))).tolist()
    blocks = {}
    for first, last in pairwise(starts):
        ends = dict.fromkeys((words(first), words(last - 1)))
        blocks[" to ".join(ends)] = np.arange(first, last)
    return blocks
