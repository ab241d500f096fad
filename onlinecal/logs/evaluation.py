"""All measures of one list of forecasts in a table, with how far chance alone explains them."""

import math
from collections import ChainMap
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core.classes import ClassDistribution
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.memory import cores
from onlinecal.core.progress import Progress
from onlinecal.core.samples import Words, plain, with_ours
from onlinecal.core.transcript import needs_of
from onlinecal.core.validation import check_same_rows, choice, integer, number, vector
from onlinecal.logs import auc, line
from onlinecal.logs.clusters import Clustered, labels_of
from onlinecal.logs.expected import with_halves
from onlinecal.logs.inference import p_large_n
from onlinecal.logs.intervals import OWN, Interval, Measurement, Method, intervals
from onlinecal.logs.reference import Reference
from onlinecal.logs.resampling import Resample, replicates, value_of
from onlinecal.logs.table import Evaluation, Row, Value
from onlinecal.logs.units import OfLogs
from onlinecal.measures import EVERYTHING, with_all
from onlinecal.measures.base import Measure, ends
from onlinecal.study.panel import KNOWN, each_measure, listed, named_measure

#: draws of either kind: each is kept, and a million tells a quantile to more digits than an interval has
MOST = 1_000_000
#: what a report shows unless others are asked for. First are distances, which always have intervals, then losses of
#: actions, errors that are often quoted, and scores.
DECIDING = ("smooth_ece", "smooth_ce", "cutoff_ce", "cdl", "ece", "binned_ece", "brier", "log_loss")
#: name → a measure that no game has
OF_LOGS: dict[str, Measure] = {measure.name: measure for measure in (*line.MEASURES, *auc.MEASURES)}
# Values that only rounding tells apart are as good as equal.
_TIE = 1e-12


@with_ours
def evaluate(
    p: ArrayLike | JointDistribution,
    y: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    measures: Iterable[Any] | None = None,
    bootstrap: int = 0,
    reference: int = 0,
    level: float = 0.95,
    method: Method = "bootstrap",
    seed: int = 0,
    fractional: bool = False,
    **words: Unpack[Words],
) -> Evaluation:
    """All measures of your own forecasts, in one table.

    With `bootstrap`, each row has an interval. It holds the measure's value on the population, from which samples were
    drawn independently, with a probability of `level`. With `reference`, outcomes drawn at these very predictions give
    p-values of calibration. With `clusters`, only samples of different clusters are independent. How all of them are
    made, and why some are missing, is in docs/intervals.md.

    Source: Błasiok, Gopalan, Hu & Nakkiran 2023, §9 (bounds of the change). van der Vaart & Wellner 1996, §3.6
    (bootstrap of suprema). Bröcker & Smith 2007 (reference); Arrieta-Ibarra et al. 2022 (its limit); Davison & Hinkley
    1997, §5.2.

    Parameters
    ----------
    p : (n,) array_like or JointDistribution
        Predictions in [0, 1]; or Γ, without y.
    y : (n,) array_like
        Outcomes, each 0 or 1, or labels.
    weights : (n,) array_like, optional
        As in `JointDistribution.from_samples`. A sample is resampled together with its weight.
    clusters : (n,) array_like, optional
        A label for each prediction, number or string. Default: each is a cluster of its own.
    measures : iterable, optional
        Names, tables of a name and options, or functions Γ ↦ float, as in a study. `OF_LOGS`, which are ``"auc"``
        and the three of `calibration_line`, have no p-values. Default: ``"all"``, the whole catalogue,
        `random_interval_ce` at ε = 0.1 and `smooth_ece_at` at σ = 0.1.
    bootstrap, reference : int, default 0
        Draws of either kind for intervals (200 and more for 95 %), and of calibrated outcomes; at most 10^6.
    level : float, default 0.95
        Of the intervals.
    method : {"bootstrap", "finite-sample"}, default "bootstrap"
        "finite-sample": intervals without draws that hold for every n and every Γ, by bounds of the mean change and
        McDiarmid's inequality. They are several times as wide. Measures without such a bound have no interval.
    seed : int, default 0
        Of all draws. All measures see the same draws; asking for fewer measures changes no number.
    fractional : bool, default False
        Whether outcomes q between 0 and 1, such as ties, are expected outcomes. A row counts as outcome 1 with weight q
        and as outcome 0 with weight 1 − q, in one cluster. The Brier score is then the expected one.
    **words
        `positive`, `negative`, `drop` and `above`, as in `JointDistribution.from_samples`.

    Returns
    -------
    Evaluation
        Values that are out of reach at this number of levels are certified brackets (`Measure.bind`).

    Examples
    --------
    >>> print(evaluate([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1], measures=["ece", "cdl", "distance_upper"]))
    JointDistribution(2 levels in [0.2, 0.8], weight 4, base rate 0.75)
    measure         value  bounds for decision makers
    ece             0.25   swap regret of every task ≤ 2 ECE
    cdl             0.25   swap regret of every task
    distance_upper  0.25
    """
    draws = integer("evaluate", "bootstrap", bootstrap, 0, MOST)
    times = integer("evaluate", "reference", reference, 0, MOST)
    sure = choice("evaluate", "method", method, ("bootstrap", "finite-sample")) == "finite-sample"
    if draws and sure:
        raise InvalidParameter(
            f"evaluate: bootstrap = {bootstrap!r} with method = 'finite-sample', which draws nothing; expected one or "
            "the other"
        )
    samples, given = None, dict[str, Any]()
    several = p.classes if isinstance(p, ClassDistribution) else (*getattr(p, "shape", ()), 0, 0)[1]
    if several > 2:
        raise InvalidData(
            f"evaluate: forecasts of {several} classes; expected one column, or oc.evaluate_classes"
        )
    if isinstance(p, JointDistribution):
        if words or y is not None or weights is not None or clusters is not None:
            raise InvalidParameter(
                "evaluate: y, weights or clusters beside a JointDistribution, which holds them"
            )
        gamma = p
    elif y is None:
        raise InvalidParameter("evaluate: y is missing; expected the outcomes of the predictions p")
    else:
        given = plain({"p": p, "y": y, "weights": weights, "clusters": clusters}, **words)
        given = with_halves(given) if fractional else given
        weights, clusters = given["weights"], given["clusters"]
        gamma = JointDistribution.from_samples(given["p"], given["y"], weights=weights)
        if weights is not None or clusters is not None:
            predictions = vector("p", given["p"])
            w = np.ones(len(predictions)) if weights is None else vector("weights", weights)
            samples = predictions, vector("y", given["y"]), w
            check_same_rows(given)
    labels = None if samples is None or clusters is None else labels_of(given["clusters"], len(samples[0]))
    if labels is not None and sure:
        raise InvalidParameter(
            "evaluate: method = 'finite-sample' with clusters; expected samples without, or method = 'bootstrap'"
        )
    resample: Resample | None = None
    if labels is not None and samples is not None:
        resample = Clustered(gamma, samples, labels)
    elif draws or times or sure or samples:
        resample = Resample(gamma, samples)
    return evaluated(gamma, resample, measures, draws, times, level, method, seed)


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
    specs = EVERYTHING if measures is None else with_all(listed(measures))
    known = ChainMap(OF_LOGS, *KNOWN.maps)
    for column, function, record, options in each_measure(partial(named_measure, known=known), specs):
        if needs_of(record.function) is not None:
            raise InvalidParameter(
                f"evaluate: {column.name!r} is a measure of rounds, their order, times and context, which a list of "
                "forecasts does not tell; expected measures of a JointDistribution"
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
            share = (1 + int((uppers[:, i] >= compared[i] - _TIE).sum())) / (1 + times)
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
