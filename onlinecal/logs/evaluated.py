"""The rows of a table of measures, with intervals and p-values by a way to draw samples again."""

import math
from collections import ChainMap
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.memory import cores
from onlinecal.core.progress import Progress
from onlinecal.core.transcript import needs_of
from onlinecal.core.validation import integer, number
from onlinecal.logs import auc, line
from onlinecal.logs.inference import p_large_n
from onlinecal.logs.intervals import OWN, Interval, Measurement, Method, intervals
from onlinecal.logs.reference import Reference
from onlinecal.logs.resampling import Resample, replicates, share_of, value_of
from onlinecal.logs.table import Evaluation, Row, Value
from onlinecal.logs.units import OfLogs
from onlinecal.measures import EVERYTHING, with_all
from onlinecal.measures.base import Measure, ends
from onlinecal.measures.groups import is_of_groups
from onlinecal.study.asked import KNOWN, as_list, each_measure, named_measure

#: name → a measure that no game has
OF_LOGS: dict[str, Measure] = {measure.name: measure for measure in (*line.MEASURES, *auc.MEASURES)}


def evaluated(
    gamma: JointDistribution,
    resample: Resample | None,
    measures: Iterable[Any] | None,
    draws: int,
    times: int,
    level: float,
    method: Method,
    seed: int,
) -> Evaluation:
    """The table of measures, with intervals and p-values by this way to draw samples again."""
    seed = integer("evaluate", "seed", seed, 0)
    level = number("evaluate", "level", level, 0.0, 1.0)
    sure = method == "finite-sample"
    asked = list[Measurement]()
    specs = EVERYTHING if measures is None else with_all(as_list(measures))
    known = ChainMap(OF_LOGS, *KNOWN.maps)
    for column, function, record, options in each_measure(partial(named_measure, known=known), specs):
        if needs_of(record.function) is not None:
            raise InvalidParameter(
                f"evaluate: {column.name!r} is a measure of rounds, their order, times and context, which a list of "
                "forecasts does not tell; expected measures of a JointDistribution"
            )
        if is_of_groups(record.function):
            raise InvalidParameter(
                f"evaluate: {column.name!r} is a measure of all groups at once, which the result has beside these "
                "where groups are given; expected measures of a JointDistribution"
            )
        if column.name in [one.name for one in asked]:
            raise InvalidParameter(f"evaluate: {column.name!r} is asked for twice; expected each once")
        asked.append(Measurement(column.name, function, record, options, (math.nan, math.nan)))
    order, alone = [one.name for one in asked], [one for one in asked if isinstance(one.record, OfLogs)]
    asked = [one for one in asked if not isinstance(one.record, OfLogs)]
    values = list[Value]()
    with Progress(len(asked), unit="measures", ticks=True) as progress:
        for one in asked:
            progress.describe(one.name)
            values.append(value_of(one.name, one.function, gamma))
            progress.advance(1)
    asked = [replace(one, ends=ends(value)) for one, value in zip(asked, values, strict=True)]
    made: list[Interval] | None = None
    if resample is not None and (draws or times or sure):
        times = 0 if resample.too_few else times
        if draws or sure:
            made = intervals(asked, resample, draws, level, seed, method)
        # Of draws of calibrated outcomes only upper ends are read.
        tops = [
            (one.name, one.function if one.record.upper is None else partial(one.record.upper, **one.options))
            for one in asked
        ]
        against = Reference(resample)
        compared = [one.ends[0] for one in asked]
        if times and against.grouped:
            compared = [ends(value_of(one.name, one.function, against.gamma))[0] for one in asked]
        # Functions of your own need not be safe in several threads.
        threads = 1 if any(one.record.sampling is None for one in asked) else cores()
        uppers = replicates(tops, against.draw, times, np.random.default_rng([seed, 1]), threads)[..., 1]
    rows = []
    for i, one in enumerate(asked):
        mean = share = limit = None
        record, value, interval = one.record, values[i], Interval(None, "") if made is None else made[i]
        if times:
            # Values at groups of levels are near those at all levels only where the measure is continuous.
            mean = None if against.grouped and record.continuous == "no" else float(uppers[:, i].mean())
            share = float(share_of(uppers[:, i], compared[i]))
            if record.tail is not None and not against.resample.clusters:
                limit = p_large_n(record.tail, one.ends[0], gamma, np.add(*against.resample.squares))
        rows.append(Row(one.name, value, record, interval.ends, interval.how, mean, share, limit))
    for one in alone:
        assert isinstance(one.record, OfLogs)
        found = one.record.estimate(gamma, resample, level)
        rows.append(Row(one.name, found.value, one.record, found.interval if draws else None, found.how))
    rows.sort(key=lambda row: order.index(row.name))
    legend = ""
    if made is not None:
        made_by = "valid for every number of samples" if sure else f"{draws} draws of either kind"
        own = ", but for functions of your own" if any(one.how == OWN for one in made) else ""
        for_ = "for the population value"
        legend = f"intervals: {100.0 * level:.4g} % each, {for_} ({made_by}){own}"
    grouped = (against.gamma.levels, against.moved) if times and against.grouped else None
    weighted = resample if resample is not None and resample.weights is not None else None
    return Evaluation(gamma, tuple(rows), legend, grouped, weighted)
