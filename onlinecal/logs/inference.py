"""Tests of forecasts: of calibration in groups, of drift over time, of differences between scores."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.joint import JointDistribution
from onlinecal.logs.clusters import Clustered, blocks_in_time, labels_of
from onlinecal.logs.resampling import FEW, grouped
from onlinecal.measures import cutoff_ce
from onlinecal.measures.cutoff import cutoff_norm, range_exceeds

#: the most levels for which outcomes are drawn; beyond, the law for large n is used
DRAWN_LEVELS = 2000
#: draws, so that also with many groups a p-value can be small; the least of clusters with many rows
GROUP_DRAWS, FEW_DRAWS = 9999, 499
#: rows apart, rows at most, groups of similar forecasts, and permutations of the test of dependence
LAGS, TESTED, SIMILAR, PERMUTED = 10, 20_000, 20, 199
#: draws of the test of drift, and stretches of time that it compares sums of
DRIFT_DRAWS, STRETCHES = 999, 200
# Outcomes of clusters that are drawn in all.
_DRAWN_ROWS = 5_000_000
# Numbers drawn at once.
_AT_ONCE = 1 << 20
# Outcomes of a level with at most this number of rows are drawn one by one, which is quicker.
_ROWS_OF_A_LEVEL = 4
# Values that only rounding tells apart are as good as equal.
_TIE = 1e-12


def calibration_test(
    gamma: JointDistribution, seed: int, squares: Floats | None = None, resample: Clustered | None = None
) -> float | None:
    """A p-value of the hypothesis that forecasts are calibrated, by their cutoff calibration error."""
    # Outcomes are drawn at the same predictions `GROUP_DRAWS` times, which is right for every n. For more than
    # `DRAWN_LEVELS` levels, or with weights, it is the limit for large n. Where that is not `near_normal`, outcomes are
    # drawn at this number of groups of levels; with weights there is no p-value. With `resample`, of clusters, outcomes
    # are drawn by its copula, down to `FEW_DRAWS` times.
    # Source: Arrieta-Ibarra et al. 2022 (ECCE-R, Kuiper); Bröcker & Smith 2007 for the draws.
    if resample is not None:
        value, draws = cutoff_ce(gamma), min(max(_DRAWN_ROWS // len(resample.of), FEW_DRAWS), GROUP_DRAWS)
        residuals = resample.residuals(draws, np.random.default_rng([seed, 5]))
        as_large = sum(int((cutoff_norm(gamma, each) >= value - _TIE).sum()) for each in residuals)
        return (1 + as_large) / (1 + draws)
    if squares is not None or gamma.levels > DRAWN_LEVELS:
        limit = p_large_n(
            range_exceeds, cutoff_ce(gamma), gamma, gamma.counts if squares is None else squares
        )
        if limit is not None or squares is not None:
            return limit
        gamma = grouped(gamma, DRAWN_LEVELS)[0]
    value, v = cutoff_ce(gamma), gamma.predictions
    generator = np.random.default_rng([seed, 5])
    counts = np.rint(gamma.counts).astype(np.int64)
    by_rows = gamma.weight <= _ROWS_OF_A_LEVEL * gamma.levels
    p, ends = (np.repeat(v, counts), np.cumsum(counts) - 1) if by_rows else (v, counts)
    as_large, rows = 0, max(_AT_ONCE // len(p), 1)
    for start in range(0, GROUP_DRAWS, rows):
        draws = min(rows, GROUP_DRAWS - start)
        if by_rows:
            sums = np.cumsum((generator.random((draws, len(p))) < p) - p, axis=1)[:, ends] / gamma.weight
        else:
            drawn = generator.binomial(counts, v, (draws, len(v)))
            sums = np.cumsum((drawn - counts * v) / gamma.weight, axis=1)
        spread = np.maximum(sums.max(axis=1), 0.0) - np.minimum(sums.min(axis=1), 0.0)
        as_large += int((spread >= value - _TIE).sum())
    return (1 + as_large) / (1 + GROUP_DRAWS)


def p_large_n(
    tail: Callable[[float], float], value: float, gamma: JointDistribution, squares: Floats
) -> float | None:
    """The p-value of calibration by the law for large n of a seminorm of the residuals; None where n is not large.

    `squares` are sums of squared weights at each level.
    """
    v = gamma.predictions
    power = float((squares * v * (1.0 - v)).sum())
    if power == 0.0:
        return float(value <= _TIE)
    samples = gamma.weight**2 / float(squares.sum())
    enough = near_normal(samples, power / float(squares.sum()))
    return tail(value / (math.sqrt(power) / gamma.weight)) if enough else None


def near_normal(samples: float, variance: float) -> bool:
    """Whether sums of errors are about normal: not of few samples, nor of rare outcomes, by their mean variance."""
    # Source: Cochran 1977, §2.15 (samples for a skewness); Kish 1965 (weights).
    return samples >= FEW - 1e-6 and samples * variance >= FEW * (1.0 - 4.0 * variance)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values for as many tests at once: the probability of any false rejection stays below the level.

    Source: Holm 1979.

    >>> holm([0.01, 0.04, 0.03, 0.7])
    [0.04, 0.09, 0.09, 0.7]
    >>> holm([0.6, 0.7])
    [1.0, 1.0]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        least = max(least, min((len(p_values) - rank) * p_values[i], 1.0))
        adjusted[i] = least
    return adjusted


@dataclass(frozen=True)
class Drift:
    """Whether the bias of forecasts changes over time."""

    statistic: float
    p_value: float  # how often it would be as large without a change: right for many rows or clusters
    correlation: float  # of outcome − prediction in neighbouring rows, or of sums of it in clusters
    correlation_p: float  # two-sided, by its being normal for independent rows or clusters


def drift_test(
    p: Floats, y: Floats, weights: Floats | None = None, clusters: Ints | None = None, seed: int = 0
) -> Drift:
    """Tests the residuals of rows in order of time, or their sums in clusters, for a change of their mean."""
    # By draws: residuals are multiplied by normal numbers, and added in at most `STRETCHES` stretches of time. The
    # variance of the correlation is the larger one of two: 1/n, and that seen of products of neighbours. The first
    # holds for rare outcomes. The second holds for errors that are larger at some times than at others, as the draws
    # do. Clusters are in the order of their first rows. A positive correlation makes the draws larger.
    # Source: Brown, Durbin & Evans 1975 (sums of residuals); Wu 1986 and White 1980 (variances that differ); Newey &
    # West 1987 (neighbours).
    w = np.ones(len(p)) if weights is None else weights / weights.max()
    errors = w * (y - p)
    if clusters is not None:
        first = labels_of(clusters, len(p))
        errors, w = np.bincount(first, errors), np.bincount(first, w)
    even = w / w.sum()
    centred = errors - even * errors.sum()
    n, power = len(centred), float((centred**2).sum())
    if n < 2 or power <= 1e-24 * n:
        return Drift(0.0, 1.0, 0.0, 1.0)
    place = np.arange(n) * min(n, STRETCHES) // n
    total, square, even = (np.bincount(place, part) for part in (centred, centred**2, even))
    drawn = np.random.default_rng([seed, 8]).standard_normal((DRIFT_DRAWS, len(total))) * np.sqrt(square)
    drawn -= drawn.sum(axis=1)[:, None] * even
    products = centred[1:] * centred[:-1]
    together = float(products.sum())
    drawn *= math.sqrt(1.0 + max(together / power, 0.0))
    as_large = np.abs(np.cumsum(drawn, axis=1)).max(axis=1) >= np.abs(np.cumsum(total)).max() - _TIE
    variance = max(power * power / n, float(products @ products))
    return Drift(
        float(np.abs(np.cumsum(centred)).max()) / math.sqrt(power),
        (1 + int(as_large.sum())) / (1 + DRIFT_DRAWS),
        together / power,
        math.erfc(abs(together) / math.sqrt(2.0 * variance)),
    )


def dependence_test(p: Floats, y: Floats, seed: int) -> float:
    """A p-value of the hypothesis that rows are independent in their order, against errors alike in near rows."""
    # The products of errors of rows up to `LAGS` apart are added. Errors are permuted among rows of similar forecasts,
    # from which their mean is taken. So miscalibration and forecasts in an order are no evidence. Of more than `TESTED`
    # rows these are the first.
    # Source: Wald & Wolfowitz 1943.
    p, y = p[:TESTED], y[:TESTED]
    _, starts = grouped(JointDistribution.from_samples(p, y), SIMILAR)
    group = np.searchsorted(np.unique(p)[starts], p, side="right") - 1
    errors = y - p
    errors -= (np.bincount(group, errors) / np.bincount(group))[group]
    order, lags = np.argsort(group, kind="stable"), min(LAGS, len(p) - 1)

    def total(e: Floats) -> float:
        before = np.cumsum(np.concatenate((np.zeros(lags + 1), e)))[:-1]
        return float(e @ (before[lags:] - before[:-lags])) if lags else 0.0

    seen, as_large, generator = total(errors), 0, np.random.default_rng([seed, 7])
    for _ in range(PERMUTED):
        drawn = np.empty(len(p))
        drawn[order] = errors[np.argsort(group + generator.random(len(p)))]
        as_large += total(drawn) >= seen - _TIE
    return (1 + as_large) / (1 + PERMUTED)


@dataclass(frozen=True)
class Difference:
    """The mean difference of a score between two columns of forecasts of the same rows."""

    score: str  # "brier" or "log"
    first: str
    second: str
    mean: float  # mean difference, and its standard error
    error: float
    p_value: float | None  # two-sided, that the expected difference is 0 (`paired_p`)
    adjusted: float | None = None  # the same for all pairs and scores at once (Holm)
    blocks: int = 0  # blocks of times that are taken as independent; 0 where rows or clusters are


def paired_p(mean: float, error: float, skewness: float, samples: float, rate: float) -> float | None:
    """The two-sided p-value of a mean difference by Student's law; None where outcomes are not `near_normal`."""
    # It is the larger one of two: of t, and of t without what the skewness of the mean does to it.
    # Source: Student 1908; Hall 1992 (skewness).
    from scipy.special import stdtr

    if not near_normal(samples, rate * (1.0 - rate)):
        return None
    if error <= 1e-15:
        return float(abs(mean) <= 1e-15)
    t = mean / error
    mended = t + skewness * (t * t / 3.0 + skewness * t**3 / 27.0 + 1.0 / 6.0)
    return 2.0 * float(stdtr(samples - 1.0, -min(abs(t), abs(mended))))


def skewness_of(cubes: float, squares: float) -> float:
    """The skewness of a sum of terms that are independent, by sums of their powers."""
    return cubes / squares**1.5 if squares > 1e-100 else 0.0


def score_differences(
    forecasts: Mapping[str, Floats],
    y: Floats,
    weights: Floats | None = None,
    clusters: Ints | None = None,
    in_time: bool = False,
    counts: Floats | None = None,
) -> list[Difference]:
    """Paired tests of all pairs of columns, by Brier score and log score. With `in_time` rows are in order."""
    # With `counts`, of rows without weights and clusters, each is there so often.
    # Totals of clusters are independent, or those of blocks of times, where differences near each other are alike.
    # Source: Liang & Zeger 1986 (clusters); Diebold & Mariano 1995; Lahiri 1999 (what blocks lack); Holm 1979.
    found = list[Difference]()
    many: Any = 1.0 if counts is None else counts
    n = len(y) if counts is None else counts.sum()
    share = np.full(len(y), 1.0 / n) if weights is None else weights / weights.sum()
    of = {name: scores(p, y) for name, p in forecasts.items()}
    for a, b in combinations(forecasts, 2):
        for score in ("brier", "log"):
            first, second = of[a][score], of[b][score]
            if not (np.isfinite(first).all() and np.isfinite(second).all()):
                continue
            difference = first - second
            mean = float((many * share) @ difference)
            centred, weight = share * (difference - mean), share
            units, lacking = blocks_in_time(centred, clusters) if in_time else (clusters, 0.0)
            if units is not None:
                centred, weight = np.bincount(units, centred), np.bincount(units, share)
            samples, power = 1.0 / float((many * weight) @ weight), float((many * centred) @ centred)
            if samples < 1.0 + 1e-9:
                continue
            error = math.sqrt((1.0 + lacking) * power * samples / (samples - 1.0))
            skewness = skewness_of(float((many * centred**3).sum()), power)
            p_value = paired_p(mean, error, skewness, samples, float((many * share) @ y))
            blocks = 0 if units is clusters else len(centred)
            found.append(Difference(score, a, b, mean, error, p_value, blocks=blocks))
    adjusted = iter(holm([each.p_value for each in found if each.p_value is not None]))
    return [each if each.p_value is None else replace(each, adjusted=next(adjusted)) for each in found]


def scores(p: Floats, y: Floats) -> dict[str, Floats]:
    """Brier and log score of each forecast."""
    with np.errstate(divide="ignore"):
        return {"brier": (p - y) ** 2, "log": -np.log(np.where(y == 1.0, p, 1.0 - p))}
