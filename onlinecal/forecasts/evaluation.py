"""All measures of one list of forecasts in a table, with how far chance alone explains them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution, needs_of
from onlinecal.core.validation import choice, integer, number, vector
from onlinecal.forecasts.intervals import OWN, Asked, Interval, Method, intervals
from onlinecal.forecasts.resampling import Resample
from onlinecal.forecasts.table import Evaluation, Row, Value
from onlinecal.measures import MEASURES
from onlinecal.measures.base import Measure, bracket_of_moved, ends, require_modulus
from onlinecal.study.panel import listed, measured, named_measure
from onlinecal.study.run import cores

Floats = NDArray[np.float64]

#: draws of either kind: each is kept, and a million tells a quantile to far more digits than an interval has
MOST = 1_000_000
#: the whole catalogue
EVERYTHING = tuple({"name": name, **record.example} for name, record in MEASURES.items())
#: a measure: its name in the table, as a function of Γ, its record, and its options
Named = tuple[str, Callable[[JointDistribution], Any], Measure, dict[str, Any]]

# Values that only rounding tells apart are as good as equal.
_TIE = 1e-12


def evaluate(
    p: ArrayLike | JointDistribution,
    y: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    measures: Iterable[Any] | None = None,
    bootstrap: int = 0,
    reference: int = 0,
    level: float = 0.95,
    method: Method = "bootstrap",
    seed: int = 0,
    moved: tuple[int, float] | None = None,
) -> Evaluation:
    """All measures of your own forecasts, in one table.

    With `bootstrap`, rows have intervals. Each holds the measure's value on the population with a probability of
    `level`; the population is the Γ from which the samples were drawn independently. For a seminorm of the residuals
    (ECE, binned ECE, RintCE, smCE, kCE, cutoff, step, weighted, low-degree, smECE at a fixed σ) the interval is value ±
    c. Here c is a quantile of the same seminorm of the *change* of the residuals. For other measures it follows from
    bounds of the change of Γ; `Row.interval_by` names the inequality. The law of the change is imitated twice, and c is
    the larger quantile. First: a normal law with the covariance of resampled masses, with two outcomes of either kind
    added. Second: outcomes drawn as the forecasts say. The second makes intervals of calibrated forecasts right for
    every number of samples. Elsewhere intervals are right for large n, and as a rule wide: noise in some levels adds to
    an error and in others takes off, while c adds all of it. With fewer draws than level/(1 − level), c is infinite.

    Brier score and log loss are means of losses. Their intervals are quantiles of the mean with random weights and one
    more sample of the largest loss, or of the least. For two losses they are those of Clopper and Pearson, valid for
    every n. With fewer draws than (1 + level)/(1 − level) an end is that of the range. In 110 cases of 10 to 1000
    samples, base rates 0.5 to 0.02, 95 % intervals held the value in 95.0 % or more of 400 simulations. The interval of
    the log loss is for a population with forecasts no nearer to 0 and 1 than those given; with a forecast of 0 or 1 it
    has no upper end.

    A measure that tells levels apart (ECE, CDL, V-CDL, CFDL) is noise on distinct predictions (Bairaktari et al. 2026,
    §1). There is no interval where more than 5 % of the weight is on levels (binned measures: bins) with fewer than 30
    samples. ECE of another order than 1 allows none of it. The table says so, and names another measure. Of `weights`,
    samples are counted as (Σ w)²/Σ w². A function of your own gets the hull of the basic and the percentile bootstrap
    interval, right only if it is smooth at the population's Γ. An infinite value has the measure's range for an
    interval; an infinite log loss is infinite for the population. Above 4096 levels changes are drawn on a grid of
    1/4095, and widened by 7 %.

    With `reference`, outcomes y° ~ Ber(p) are drawn at these very predictions. `if_calibrated` is the mean value of the
    measure then. `p_value` = (1 + draws with as large a value) / (1 + draws) tests calibration. `p_large_n` is its
    limit for cutoff and step calibration, by the law of Brownian motion. All take the samples as independent.

    Parameters
    ----------
    p : (n,) array_like or JointDistribution
        Predictions in [0, 1]; or Γ, without y.
    y : (n,) array_like
        Outcomes, each 0 or 1.
    weights : (n,) array_like, optional
        As in `JointDistribution.from_samples`. A sample is resampled together with its weight.
    measures : iterable, optional
        Names, tables of a name and options, or functions Γ ↦ float, as in a study. Default: the whole catalogue,
        `random_interval_ce` at ε = 0.1 and `smooth_ece_at` at σ = 0.1.
    bootstrap, reference : int, default 0
        Draws of either kind for intervals (200 and more for 95 %), and of calibrated outcomes; at most 10^6.
    level : float, default 0.95
        Of the intervals.
    method : {"bootstrap", "finite-sample"}, default "bootstrap"
        "finite-sample": intervals without draws that hold for every n and every Γ, by bounds of the mean change and
        McDiarmid's inequality; several times as wide. Measures without such a bound have no interval.
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

    Source
    ------
    Błasiok, Gopalan, Hu & Nakkiran 2023, §9 (bounds of the change); van der Vaart & Wellner 1996, §3.6 (bootstrap of
    suprema); Bröcker & Smith 2007 (reference); Arrieta-Ibarra et al. 2022 (its limit); Davison & Hinkley 1997, §5.2.

    Deviations
    ----------
    Bröcker & Smith also resample the predictions; here they stay. The constants of "finite-sample" are this
    package's. The bound of the lower distance is sharper than BGHN23 Lemma 9.11: its potentials vanish at an end of [0,
    1].

    Examples
    --------
    >>> result = evaluate([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1], measures=["ece", "cdl", "distance_upper"])
    >>> print(result)
    JointDistribution(2 levels in [0.2, 0.8], weight 4, base rate 0.75)
    measure         value  bounds for decision makers
    ece             0.25   swap regret of every task ≤ 2 ECE
    cdl             0.25   swap regret of every task
    distance_upper  0.25
    >>> result.table().loc["cdl", "value"].round(6)
    np.float64(0.25)
    """
    draws = (
        integer("evaluate", "bootstrap", bootstrap, 0, MOST),
        integer("evaluate", "reference", reference, 0, MOST),
    )
    seed = integer("evaluate", "seed", seed, 0)
    level = number("evaluate", "level", level, 0.0, 1.0)
    choice("evaluate", "method", method, ("bootstrap", "finite-sample"))
    if draws[0] and method == "finite-sample":
        raise InvalidParameter(
            f"evaluate: bootstrap = {bootstrap!r} with method = 'finite-sample', which draws nothing; expected one or "
            "the other"
        )
    asked = map(named_measure, EVERYTHING if measures is None else listed(measures))
    named = [(column.name, function, record, options) for column, function, record, options in asked]
    for name, _, record, _ in named:
        if needs_of(record.function) is not None:
            raise InvalidParameter(
                f"evaluate: {name!r} is a measure of rounds, their order, times and context, which a list of forecasts "
                "does not tell; expected measures of a JointDistribution"
            )
    for name in (names := [name for name, *_ in named]):
        if names.count(name) > 1:
            raise InvalidParameter(f"evaluate: {name!r} is asked for twice; expected each measure once")
    if isinstance(p, JointDistribution):
        if y is not None or weights is not None:
            raise InvalidParameter(
                "evaluate: y or weights beside a JointDistribution, which holds them already"
            )
        gamma, samples = p, None
    elif y is None:
        raise InvalidParameter("evaluate: y is missing; expected the outcomes of the predictions p")
    else:
        gamma = JointDistribution.from_samples(p, y, weights=weights)
        samples = None if weights is None else (vector("p", p), vector("y", y), vector("weights", weights))
    refused: tuple[str, ...] = ()
    if moved is not None:
        steps = integer("evaluate", "moved[0]", moved[0], 1)
        distance = number("evaluate", "moved[1]", moved[1], 0.0, 0.5 / steps * (1.0 + 1e-9))
        refused = tuple(one[0] for one in named if not _may_move(one))
        named = [one for one in named if one[0] not in refused]
    values = [_checked(name, function, gamma) for (name, function, *_) in named]
    made: list[Interval] | None = None
    calibrated = None
    if any(draws) or method == "finite-sample":
        resample = Resample(gamma, samples)
        if draws[0] or method == "finite-sample":
            made = _intervals(named, values, resample, draws[0], level, seed, method)
        # Of draws of calibrated outcomes only upper ends are read.
        tops = [
            (name, function if record.upper is None else partial(record.upper, **options))
            for name, function, record, options in named
        ]
        calibrated = _replicates(tops, resample.calibrated, draws[1], np.random.default_rng([seed, 1]))
    rows = []
    for i, (name, _, record, options) in enumerate(named):
        mean = share = None
        low, _ = ends(values[i])
        if calibrated is not None and draws[1]:
            upper = calibrated[:, i, 1]
            mean = float(upper.mean())
            share = (1 + int((upper >= low - _TIE).sum())) / (1 + draws[1])
        interval = Interval(None, "") if made is None else made[i]
        limit = None if share is None else p_large_n(record, low, resample)
        value = values[i]
        if moved is not None:
            value = bracket_of_moved(record, gamma, distance, options)
            interval = _wider(interval, record, 0.5 / steps, options)
        rows.append(Row(name, value, record, interval.ends, interval.how, mean, share, limit))
    return Evaluation(gamma, tuple(rows), _legend(made, level, draws[0], method), refused, moved)


# ---------------------------------------------------------------- inside


def _checked(name: str, function: Callable[[JointDistribution], Any], gamma: JointDistribution) -> Value:
    value = measured(name, function, gamma)
    if any(map(math.isnan, ends(value))):
        raise InvalidParameter(f"{name} is NaN; expected a measure that gives a number")
    return value


def _may_move(one: Named) -> bool:
    """Whether something is proved of a measure when predictions move."""
    _, _, record, options = one
    try:
        require_modulus(record, options, "moved predictions")
    except InvalidParameter:
        return False
    return True


def _wider(interval: Interval, record: Measure, moved: float, options: dict[str, Any]) -> Interval:
    """An interval for predictions as they were, from one for those on the grid."""
    if interval.ends is None or record.modulus is None:
        return interval
    by = record.modulus(moved, **options)
    low, high = interval.ends
    return Interval((max(low - by, record.least), min(high + by, record.largest)), interval.how)


def p_large_n(record: Measure, value: float, resample: Resample) -> float | None:
    """The p-value of calibration for large n, where it is in closed form."""
    if record.tail is None:
        return None
    v = resample.gamma.predictions
    scale = math.sqrt((sum(resample.squares) * v * (1.0 - v)).sum()) / resample.gamma.weight
    return record.tail(value / scale) if scale > 0.0 else float(value <= _TIE)


def _legend(made: list[Interval] | None, level: float, draws: int, method: Method) -> str:
    """The meaning of all intervals, in a sentence."""
    if made is None:
        return ""
    by = f"{draws} draws of either kind" if method == "bootstrap" else "valid for every number of samples"
    own = ", but for functions of your own" if any(one.how == OWN for one in made) else ""
    return f"intervals: {100.0 * level:.4g} % each, for the value on what the samples were drawn from ({by}){own}"


def _intervals(
    named: list[Named],
    values: list[Value],
    resample: Resample,
    draws: int,
    level: float,
    seed: int,
    method: Method,
) -> list[Interval]:
    """Of measures with a record by their `Sampling`, of others by the bootstrap of their values."""
    asked = {
        i: Asked(name, record, options, ends(value))
        for i, ((name, _, record, options), value) in enumerate(zip(named, values, strict=True))
        if record.sampling is not None
    }
    known = dict(
        zip(asked, intervals(list(asked.values()), resample, draws, level, seed, method), strict=True)
    )
    own = [i for i in range(len(named)) if i not in asked]
    if method == "finite-sample":
        return [known.get(i, Interval(None, f"none: {_UNKNOWN}")) for i in range(len(named))]
    functions = [named[i][:2] for i in own]
    resampled = _replicates(functions, resample.bootstrap, draws, np.random.default_rng([seed, 0]))
    for column, i in enumerate(own):
        hull = _hull(*ends(values[i]), resampled[:, column], level, named[i][2])
        known[i] = Interval(hull, OWN)
    return [known[i] for i in range(len(named))]


_UNKNOWN = "nothing is known of a function of your own"


def _hull(low: float, high: float, draws: Floats, level: float, record: Measure) -> tuple[float, float]:
    """The hull of the basic and the percentile interval; draws[:, 0] are lower ends, draws[:, 1] upper ends."""
    if math.isinf(low) or math.isinf(high):
        return record.least, record.largest
    tail = 0.5 * (1.0 - level)
    # Steps, not interpolation, which would make NaN of two infinite values.
    least = float(np.quantile(draws[:, 0], tail, method="inverted_cdf"))
    most = float(np.quantile(draws[:, 1], 1.0 - tail, method="inverted_cdf"))
    basic = 2.0 * low - most, 2.0 * high - least
    return max(min(basic[0], least), record.least), min(max(basic[1], most), record.largest)


def _replicates(
    functions: list[tuple[str, Callable[[JointDistribution], Any]]],
    draw: Callable[[np.random.Generator], JointDistribution],
    times: int,
    generator: np.random.Generator,
) -> Floats:
    """(times, measures, 2): lower and upper ends.

    The catalogue's measures are found by as many threads as there are cores; functions of your own by this one alone.
    """
    out = np.empty((times, len(functions), 2))
    if not functions:
        return out
    ours = [i for i, (_, function) in enumerate(functions) if _is_ours(function)]
    own = [i for i in range(len(functions)) if i not in ours]

    def fill(row: Floats, gamma: JointDistribution, which: list[int]) -> None:
        for i in which:
            row[i] = ends(_checked(*functions[i], gamma))

    # Threads of linear algebra would only be in the way. No more draws are in memory than three a thread.
    with ThreadPoolExecutor(cores()) as pool, threadpool_limits(1, user_api="blas"):
        for part in np.array_split(out, math.ceil(times / (3 * cores())) or 1):
            gammas = [draw(generator) for _ in part]
            found = [pool.submit(fill, row, gamma, ours) for row, gamma in zip(part, gammas, strict=True)]
            for row, gamma, future in zip(part, gammas, found, strict=True):
                fill(row, gamma, own)
                future.result()
    return out


def _is_ours(function: Any) -> bool:
    """Whether it is of the catalogue, with or without options."""
    while isinstance(function, partial):
        function = function.func
    function = getattr(function, "__self__", function)  # a bound method of a record
    function = getattr(function, "function", function)
    return str(getattr(function, "__module__", "")).startswith("onlinecal.")
