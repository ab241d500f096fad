"""All measures of one list of forecasts in a table, with how far chance alone explains them."""

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.memory import cores
from onlinecal.core.progress import Progress
from onlinecal.core.transcript import needs_of
from onlinecal.core.validation import choice, integer, number, vector
from onlinecal.forecasts.clusters import labels_of, resample_of
from onlinecal.forecasts.inference import p_large_n
from onlinecal.forecasts.intervals import OWN, Asked, Interval, Method, intervals
from onlinecal.forecasts.reference import Reference
from onlinecal.forecasts.resampling import Resample
from onlinecal.forecasts.table import Evaluation, Row, Value
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Measure, bracket_of_moved, ends, require_modulus
from onlinecal.study.panel import listed, measured, named_measure

Function = Callable[[JointDistribution], Any]
#: a measure: its name in the table, as a function of Γ, its record, and its options
Named = tuple[str, Function, Measure, dict[str, Any]]

#: draws of either kind: each is kept, and a million tells a quantile to more digits than an interval has
MOST = 1_000_000
#: the whole catalogue
EVERYTHING = tuple({"name": name, **record.example} for name, record in MEASURES.items())
#: what a report shows unless others are asked for: losses of actions, distances, then what is often quoted
DECIDING = ("cdl", "cutoff_ce", "smooth_ce", "smooth_ece", "ece", "binned_ece", "brier", "log_loss")
# Values that only rounding tells apart are as good as equal.
_TIE = 1e-12


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
    moved: tuple[int, float] | None = None,
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
        Outcomes, each 0 or 1.
    weights : (n,) array_like, optional
        As in `JointDistribution.from_samples`. A sample is resampled together with its weight.
    clusters : (n,) array_like, optional
        A label for each prediction, number or string. Default: each is a cluster of its own.
    measures : iterable, optional
        Names, tables of a name and options, or functions Γ ↦ float, as in a study. Default: the whole catalogue,
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
    moved : (int, float), optional
        m and δ, where predictions of the Γ given were moved to the nearest i/m, by δ on average, as by its `round`.
        Values are then brackets for the predictions as they were, by each measure's modulus. Measures without a modulus
        are named in `Evaluation.refused`. Outcomes of the reference are drawn at the moved predictions.

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
    seed = integer("evaluate", "seed", seed, 0)
    level = number("evaluate", "level", level, 0.0, 1.0)
    sure = choice("evaluate", "method", method, ("bootstrap", "finite-sample")) == "finite-sample"
    if draws and sure:
        raise InvalidParameter(
            f"evaluate: bootstrap = {bootstrap!r} with method = 'finite-sample', which draws nothing; expected one or "
            "the other"
        )
    named: list[Named] = []
    for spec in EVERYTHING if measures is None else listed(measures):
        column, function, record, options = named_measure(spec)
        if needs_of(record.function) is not None:
            raise InvalidParameter(
                f"evaluate: {column.name!r} is a measure of rounds, their order, times and context, which a list of "
                "forecasts does not tell; expected measures of a JointDistribution"
            )
        if column.name in [name for name, *_ in named]:
            raise InvalidParameter(f"evaluate: {column.name!r} is asked for twice; expected each once")
        named.append((column.name, function, record, options))
    samples = None
    if isinstance(p, JointDistribution):
        if y is not None or weights is not None or clusters is not None:
            raise InvalidParameter(
                "evaluate: y, weights or clusters beside a JointDistribution, which holds them"
            )
        gamma = p
    elif y is None:
        raise InvalidParameter("evaluate: y is missing; expected the outcomes of the predictions p")
    else:
        gamma = JointDistribution.from_samples(p, y, weights=weights)
        if weights is not None or clusters is not None:
            predictions = vector("p", p)
            w = np.ones(len(predictions)) if weights is None else vector("weights", weights)
            samples = predictions, vector("y", y), w
    labels = None if samples is None or clusters is None else labels_of(clusters, len(samples[0]))
    if labels is not None and sure:
        raise InvalidParameter(
            "evaluate: method = 'finite-sample' with clusters; expected samples without, or method = 'bootstrap'"
        )
    refused: tuple[str, ...] = ()
    if moved is not None:
        steps = integer("evaluate", "moved[0]", moved[0], 1)
        distance = number("evaluate", "moved[1]", moved[1], 0.0, 0.5 / steps * (1.0 + 1e-9))
        refused = tuple(one[0] for one in named if not _may_move(one))
        named = [one for one in named if one[0] not in refused]
    values = []
    with Progress(len(named), unit="measures", ticks=True) as progress:
        for name, function, *_ in named:
            progress.describe(name)
            values.append(_checked(name, function, gamma))
            progress.advance(1)
    made: list[Interval] | None = None
    resample = resample_of(gamma, samples, labels) if draws or times or sure or samples else None
    if resample is not None and (draws or times or sure):
        times = 0 if resample.too_few else times
        if draws or sure:
            made = _intervals(named, values, resample, draws, level, seed, method)
        # Of draws of calibrated outcomes only upper ends are read.
        tops = [
            (name, function if record.upper is None else partial(record.upper, **options))
            for name, function, record, options in named
        ]
        against = Reference(resample)
        compared = values
        if times and against.grouped:
            compared = [_checked(name, function, against.gamma) for (name, function, *_) in named]
        uppers = replicates(tops, against.draw, times, np.random.default_rng([seed, 1]))[..., 1]
    rows = []
    for i, (name, _, record, options) in enumerate(named):
        mean = share = limit = None
        value, low, interval = values[i], ends(values[i])[0], Interval(None, "") if made is None else made[i]
        if times:
            # Values at groups of levels are near those at all levels only where the measure has a modulus.
            mean = None if against.grouped and not _may_move(named[i]) else float(uppers[:, i].mean())
            share = (1 + int((uppers[:, i] >= ends(compared[i])[0] - _TIE).sum())) / (1 + times)
            if record.tail is not None and not against.resample.clusters:
                limit = p_large_n(record.tail, low, gamma, np.add(*against.resample.squares))
        if moved is not None:
            value = bracket_of_moved(record, gamma, distance, options)
            if interval.ends is not None and record.modulus is not None:
                by, (least, most) = record.modulus(0.5 / steps, **options), interval.ends
                both = max(least - by, record.least), min(most + by, record.largest)
                interval = Interval(both, interval.how)
        rows.append(Row(name, value, record, interval.ends, interval.how, mean, share, limit))
    legend = ""
    if made is not None:
        made_by = "valid for every number of samples" if sure else f"{draws} draws of either kind"
        own = ", but for functions of your own" if any(one.how == OWN for one in made) else ""
        for_ = "for the value on what the samples were drawn from"
        legend = f"intervals: {100.0 * level:.4g} % each, {for_} ({made_by}){own}"
    grouped = (against.gamma.levels, against.moved) if times and against.grouped else None
    return Evaluation(
        gamma, tuple(rows), legend, refused, moved, grouped, None if samples is None else resample
    )


def _checked(name: str, function: Function, gamma: JointDistribution) -> Value:
    value = measured(name, function, gamma)
    if any(map(math.isnan, ends(value))):
        raise InvalidParameter(f"{name} is NaN; expected a measure that gives a number")
    return value


def _may_move(one: Named) -> bool:
    """Whether something is proved of a measure when predictions move."""
    try:
        require_modulus(one[2], one[3], "moved predictions")
    except InvalidParameter:
        return False
    return True


def _intervals(
    named: list[Named],
    values: list[Value],
    resample: Resample,
    draws: int,
    level: float,
    seed: int,
    method: Method,
) -> list[Interval]:
    """Of measures with a record by their `Sampling`, of others the hull of two bootstrap intervals of their values."""
    ours = [i for i, one in enumerate(named) if one[2].sampling is not None]
    asked = [Asked(named[i][2], named[i][3], ends(values[i])) for i in ours]
    found = dict(zip(ours, intervals(asked, resample, draws, level, seed, method), strict=True))
    own, tail = [i for i in range(len(named)) if i not in found], 0.5 * (1.0 - level)
    if method == "bootstrap":
        functions, generator = [named[i][:2] for i in own], np.random.default_rng([seed, 0])
        drawn = replicates(functions, resample.bootstrap, draws, generator)
    for column, i in enumerate(own):
        record, (low, high) = named[i][2], ends(values[i])
        if method == "finite-sample":
            found[i] = Interval(None, "none: nothing is known of a function of your own")
            continue
        if resample.too_few:
            found[i] = Interval(None, resample.too_few)
            continue
        both = record.least, record.largest
        if not math.isinf(low) and not math.isinf(high):
            # Steps, not interpolation, which would make NaN of two infinite values.
            least = float(np.quantile(drawn[:, column, 0], tail, method="inverted_cdf"))
            most = float(np.quantile(drawn[:, column, 1], 1.0 - tail, method="inverted_cdf"))
            both = (
                max(min(2.0 * low - most, least), record.least),
                min(max(2.0 * high - least, most), record.largest),
            )
        found[i] = Interval(both, OWN)
    return [found[i] for i in range(len(named))]


def replicates(
    functions: Sequence[tuple[str, Function]],
    draw: Callable[[np.random.Generator], JointDistribution],
    times: int,
    generator: np.random.Generator,
) -> Floats:
    """(times, measures, 2): lower and upper ends."""
    # Progress is shown after two seconds.
    # The catalogue's measures are found by as many threads as there are cores; functions of your own by this one alone.
    out = np.empty((times, len(functions), 2))
    if not functions:
        return out
    ours = [i for i, (_, function) in enumerate(functions) if _is_ours(function)]
    own = [i for i in range(len(functions)) if i not in ours]

    def fill(row: Floats, gamma: JointDistribution, which: list[int]) -> None:
        for i in which:
            row[i] = ends(_checked(*functions[i], gamma))

    # Threads of linear algebra would only be in the way. No more draws are in memory than three a thread.
    with (
        ThreadPoolExecutor(cores()) as pool,
        threadpool_limits(1, user_api="blas"),
        Progress(times, unit="draws", ticks=True) as progress,
    ):
        for part in np.array_split(out, math.ceil(times / (3 * cores())) or 1):
            gammas = [draw(generator) for _ in part]
            found = [pool.submit(fill, row, gamma, ours) for row, gamma in zip(part, gammas, strict=True)]
            for row, gamma, future in zip(part, gammas, found, strict=True):
                fill(row, gamma, own)
                future.result()
                progress.advance(1)
    return out


def _is_ours(function: Any) -> bool:
    """Whether it is of the catalogue, with or without options."""
    while isinstance(function, partial):
        function = function.func
    function = getattr(function, "__self__", function)  # a bound method of a record
    function = getattr(function, "function", function)
    return str(getattr(function, "__module__", "")).startswith("onlinecal.")
