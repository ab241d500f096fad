"""Tests of forecasts: of calibration in groups, of drift over time, of differences between scores."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are first used

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.joint import JointDistribution
from onlinecal.logs.clusters import Blocks, blocks_in_time, labels_of, lags_of
from onlinecal.logs.resampling import FEW, MOST_LEVELS, TIE, Resample, grouped, share_of
from onlinecal.measures import cutoff_ce
from onlinecal.measures.cutoff import cutoff_norm, range_exceeds

#: the most levels for which outcomes are drawn; beyond, the law for large n is used
DRAWN_LEVELS = 2000
#: draws, so that also with many groups a p-value can be small; the least of clusters with many rows
GROUP_DRAWS, FEW_DRAWS = 9999, 499
#: near rows, rows at most, and groups of similar forecasts of the test of dependence
NEAR, TESTED, SIMILAR = 10, 20_000, 20
#: draws of the test of drift, and stretches of time that it compares sums of
DRIFT_DRAWS, STRETCHES = 999, 200
# Outcomes of clusters that are drawn in all.
_DRAWN_ROWS = 5_000_000
# Outcomes of a level with at most this number of rows are drawn one by one, which is quicker.
_ROWS_OF_A_LEVEL = 4


def calibration_test(resample: Resample, seed: int) -> float | None:
    """A p-value of the hypothesis that forecasts are calibrated, by their cutoff calibration error."""
    # Outcomes are drawn at the same predictions `GROUP_DRAWS` times, which is right for every n. For more than
    # `DRAWN_LEVELS` levels, or with weights, it is the limit for large n. Where that is not `near_normal`, outcomes are
    # drawn at this number of groups of levels; with weights there is no p-value. Those of clusters are drawn by them,
    # down to `FEW_DRAWS` times.
    # Source: Arrieta-Ibarra et al. 2022 (ECCE-R, Kuiper); Bröcker & Smith 2007 for the draws.
    draws, gamma = GROUP_DRAWS, resample.gamma
    drawn, weighted = gamma, resample.weights is not None
    if resample.clusters:
        draws = min(max(_DRAWN_ROWS // len(resample.of), FEW_DRAWS), GROUP_DRAWS)
    elif weighted or gamma.levels > DRAWN_LEVELS:
        limit = p_large_n(range_exceeds, cutoff_ce(gamma), gamma, np.add(*resample.squares))
        if limit is not None or weighted:
            return limit
        drawn = grouped(gamma, DRAWN_LEVELS)[0]
    rows = None
    if drawn.weight <= min(_ROWS_OF_A_LEVEL * drawn.levels, MOST_LEVELS):
        p = np.repeat(drawn.predictions, np.rint(drawn.counts).astype(np.int64))
        rows = p, np.zeros(len(p)), np.ones(len(p))
    by = resample if resample.clusters else Resample(drawn, rows)
    changes = by.changes("calibrated", draws, np.random.default_rng([seed, 5]))
    norms = np.concatenate([cutoff_norm(one.gamma, one.residuals) for one in changes])
    return float(share_of(norms, cutoff_ce(drawn)))


def p_large_n(
    tail: Callable[[float], float], value: float, gamma: JointDistribution, squares: Floats
) -> float | None:
    """The p-value of calibration by the law for large n of a seminorm of the residuals; None where n is not large.

    `squares` are sums of squared weights at each level.
    """
    v = gamma.predictions
    power = float((squares * v * (1.0 - v)).sum())
    if power == 0.0:
        return float(value <= TIE)
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


def with_holm(found: Sequence[Any]) -> list[Any]:
    """Records with their `p_value` `adjusted` for the number of those that have one."""
    adjusted = iter(holm([each.p_value for each in found if each.p_value is not None]))
    return [each if each.p_value is None else replace(each, adjusted=next(adjusted)) for each in found]


@dataclass(frozen=True)
class Drift:
    """Whether the bias of forecasts changes over time, and whether errors near each other are alike."""

    statistic: float
    p_value: float  # how often it would be as large without a change: right for many rows or clusters
    correlation: float  # of outcome − prediction in neighbouring rows, or of sums of it in clusters
    correlation_p: float  # that errors of near rows or clusters, or of those equally far apart, are so alike


def drift_test(
    p: Floats, y: Floats, weights: Floats | None = None, clusters: Ints | None = None, seed: int = 0
) -> Drift:
    """Tests rows in their order, or clusters by their first rows, for dependence and for drift."""
    # The p-value of drift is the larger one of two: of the law of Kolmogorov, and of draws. In these errors are
    # multiplied by normal numbers, and added in at most `STRETCHES` stretches of time. They hold for errors that are
    # larger at some times than at others. Both are as much wider as sums of errors are that depend on those before.
    # Dependence is tested by products of errors, less their mean in groups of similar forecasts. So miscalibration and
    # forecasts in an order are no evidence. Of more than `TESTED` rows these are the first.
    # Source: Brown, Durbin & Evans 1975 (sums of residuals); Wu 1986 (normal multipliers); Newey & West 1987 (lags);
    # Box & Pierce 1970 (products at many lags).
    w = np.ones(len(p)) if weights is None else weights / weights.max()
    first = None if clusters is None else labels_of(clusters, len(p))
    total, even = w * (y - p), w
    if first is not None:
        total, even = np.bincount(first, total), np.bincount(first, even)
    even = even / even.sum()
    centred = total - even * total.sum()
    n, power = len(centred), float((centred**2).sum())
    if n < 2 or power <= 1e-24 * n:
        return Drift(0.0, 1.0, 0.0, 1.0)
    lags, place = lags_of(centred), np.arange(n) * min(n, STRETCHES) // n
    sums, square, even = (np.bincount(place, part) for part in (centred, centred**2, even))
    drawn = np.random.default_rng([seed, 8]).standard_normal((DRIFT_DRAWS, len(sums))) * np.sqrt(square)
    drawn -= drawn.sum(axis=1)[:, None] * even
    wider = math.sqrt(max(lags.wider, 1.0) * (1.0 + lags.lacking))
    most = np.abs(np.cumsum(wider * drawn, axis=1)).max(axis=1)
    statistic = float(np.abs(np.cumsum(centred)).max()) / math.sqrt(power)
    p_value = max(
        float(share_of(most, np.abs(np.cumsum(sums)).max())),
        float(scipy.special.kolmogorov(statistic / wider)),
    )
    dependence = _dependence(p[:TESTED], y[:TESTED], w[:TESTED], None if first is None else first[:TESTED])
    return Drift(statistic, p_value, lags.correlation, dependence)


def _dependence(p: Floats, y: Floats, w: Floats, clusters: Ints | None) -> float:
    """A p-value against errors alike in rows near each other, or equally far apart, of different clusters."""
    # Totals of clusters are tested, and rows that are farther apart than any two of a cluster: half for either.
    if not w.any():
        return 1.0
    gamma = JointDistribution.from_samples(p, y, weights=w)
    starts = gamma.predictions[grouped(gamma, SIMILAR)[1]]
    group = np.maximum(np.searchsorted(starts, p, side="right") - 1, 0)
    errors = w * ((y - p) - (np.bincount(group, w * (y - p)) / np.bincount(group, w))[group])
    if clusters is None:
        return _alike(errors, 0)
    rows = np.arange(len(p))
    last = np.zeros(clusters.max() + 1, dtype=np.int64)
    np.maximum.at(last, clusters, rows)
    extent = int((last[clusters] - rows).max())
    totals = np.bincount(clusters, errors).astype(np.float64)
    power = float((errors**2).sum())
    together = max(float((totals**2).sum()) / power, 1.0) if power > 0.0 else 1.0
    return min(2.0 * min(_alike(errors, extent, together), _alike(totals, 0)), 1.0)


def _alike(errors: Floats, after: int, together: float = 1.0) -> float:
    """The same by the products of errors more than `after` apart, which are about normal."""
    # The products of the next `NEAR` lags are added. So are those of 1, 4, 16, … lags beside each other, at most √n, at
    # all lags up to n/2. In a panel rows of one question come back after many others. Half of what may fail is for
    # either (Bonferroni). A variance is the larger one of two. That of equal errors holds for rare outcomes. The sum of
    # squared products holds for errors that are larger at some times than at others. Both are multiplied by the square
    # of `together`: how much larger variances of totals are in clusters.
    n, most = len(errors), len(errors) // 2
    power = float((errors**2).sum())
    if most <= after or power <= 1e-24 * n:
        return 1.0
    products, squares = (
        np.fft.irfft(np.abs(np.fft.rfft(part, 2 * n)) ** 2, 2 * n)[after + 1 : most + 1]
        for part in (errors, errors**2)
    )
    variances = np.maximum(squares, (power / n) ** 2 * (n - np.arange(after + 1, most + 1))) * together**2

    def largest(width: int, many: int) -> float:
        total, variance = (x[: many * width].reshape(many, width).sum(axis=1) for x in (products, variances))
        return float((total / np.sqrt(variance)).max())

    near = scipy.special.ndtr(-largest(min(NEAR, len(products)), 1))
    windows = {4**k: len(products) // 4**k for k in range(int(math.log(n, 16)) + 1)}
    far = max(largest(width, many) for width, many in windows.items() if many)
    return float(min(2.0 * min(near, sum(windows.values()) * scipy.special.ndtr(-far)), 1.0))


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
    if not near_normal(samples, rate * (1.0 - rate)):
        return None
    if error <= 1e-15:
        return float(abs(mean) <= 1e-15)
    t = mean / error
    mended = t + skewness * (t * t / 3.0 + skewness * t**3 / 27.0 + 1.0 / 6.0)
    return 2.0 * float(scipy.special.stdtr(samples - 1.0, -min(abs(t), abs(mended))))


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
            units, wider, few = blocks_in_time(centred, clusters) if in_time else Blocks(clusters)
            if units is not None:
                centred, weight = np.bincount(units, centred), np.bincount(units, share)
            samples, power = 1.0 / float((many * weight) @ weight), float((many * centred) @ centred)
            if samples < 1.0 + 1e-9:
                continue
            error = math.sqrt(wider * power * samples / (samples - 1.0))
            skewness = float((many * centred**3).sum()) / power**1.5 if power > 1e-100 else 0.0
            p_value = None if few else paired_p(mean, error, skewness, samples, float((many * share) @ y))
            blocks = 0 if units is clusters else len(centred)
            found.append(Difference(score, a, b, mean, error, p_value, blocks=blocks))
    return with_holm(found)


def scores(p: Floats, y: Floats) -> dict[str, Floats]:
    """Brier and log score of each forecast."""
    with np.errstate(divide="ignore"):
        return {"brier": (p - y) ** 2, "log": -np.log(np.where(y == 1.0, p, 1.0 - p))}
