"""Logistic recalibration: calibration in the large, and the intercept and slope of log odds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.samples import Words, plain, with_ours
from onlinecal.core.validation import check_same_rows, number
from onlinecal.core.words import number_of
from onlinecal.logs.clusters import Samples
from onlinecal.logs.resampling import Resample
from onlinecal.logs.units import Estimate, OfLogs, Rows, rows_of, without, without_ends

#: steps of Newton's method, and the change of a coefficient at which it ends
STEPS, NEAR = 100, 1e-10
#: the least ridge of a step; and the least share of the curvature that all samples but one have
LEAST, REST = 1e-15, 1e-9
#: log odds that differ by less than this share of them, or of 1, are equal but for rounding
APART = 1e-6
HOW = "Student's law with the larger error of two: of the jackknife over rows or clusters, and of the model"


class CalibrationLine(NamedTuple):
    """Logistic recalibration in three numbers, each with an interval."""

    in_the_large: Estimate  # a in logit P(y = 1) = a + logit p; 0 if calibrated, positive where p is too low
    intercept: Estimate  # a in logit P(y = 1) = a + b logit p; 0 if calibrated
    slope: Estimate  # b; 1 if calibrated, below 1 where forecasts are too extreme

    def __str__(self) -> str:
        return "\n".join(f"{name.replace('_', ' ')}: {_said(one)}" for name, one in self._asdict().items())


@with_ours
def calibration_line(
    p: ArrayLike | JointDistribution,
    y: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    **words: Unpack[Words],
) -> CalibrationLine:
    """Calibration in the large, intercept and slope, by maximum likelihood, with intervals.

    The model is logit P(y = 1) = a + b logit p. Calibration in the large is a with b = 1; intercept and slope are a and
    b together. Forecasts of exactly 0 or 1 have no log odds. Those that were right say nothing of a and b,
    and are left out. Where one was wrong no line has a likelihood above 0, and there is no number. Nor is there one
    where all outcomes are equal. Intercept and slope also need forecasts that differ, and outcomes that no threshold
    separates.

    An interval is value ± t · error. The error is the larger of two: by the one-step jackknife of
    rows or clusters, and by the model. The rarer outcome
    has one sample more than Student's t has degrees of freedom.

    Source: Cox 1958; Miller, Hui & Tierney 1991; Van Calster et al. 2016 (names). Bell & McCaffrey 2002 (jackknife of
    clusters).

    Parameters
    ----------
    p : (n,) array_like or JointDistribution
        Predictions in [0, 1]; or Γ, without y.
    y : (n,) array_like
        Outcomes, each 0 or 1, or labels.
    weights, clusters : (n,) array_like, optional
        As in `evaluate`.
    level : float, default 0.95
        Of the intervals.
    **words
        `positive`, `negative`, `drop` and `above`, as in `JointDistribution.from_samples`.

    Returns
    -------
    CalibrationLine
        Three numbers. Each has `value`, `interval` and `how`: the rule, or the reason why it is missing.

    Examples
    --------
    >>> print(calibration_line([0.1, 0.1, 0.1, 0.6, 0.6, 0.6], [0, 0, 1, 0, 1, 1]))
    in the large: 0.8959 [-4.668, 6.46]
    intercept: 0.4772 [-5.717, 6.672]
    slope: 0.5326 [-3.388, 4.453]
    """
    level = number("calibration_line", "level", level, 0.0, 1.0)
    if isinstance(p, JointDistribution):
        if words or y is not None or weights is not None or clusters is not None:
            raise InvalidParameter(
                "calibration_line: y, weights or clusters beside a JointDistribution; expected none"
            )
        whole = (p.counts == np.rint(p.counts)).all() and (p.positives == np.rint(p.positives)).all()
        return line_of(p, Resample(p, None) if whole else None, level)
    if y is None:
        raise InvalidParameter("calibration_line: y is missing; expected the outcomes of the predictions p")
    given = plain({"p": p, "y": y, "weights": weights, "clusters": clusters}, **words)
    weights, clusters = given["weights"], given["clusters"]
    gamma = JointDistribution.from_samples(given["p"], given["y"], weights=weights)
    check_same_rows(given)
    rows = Samples.given("calibration_line", given["p"], given["y"], weights, clusters)
    return line_of(gamma, rows.resample(gamma), level)


def line_of(gamma: JointDistribution, resample: Resample | None, level: float) -> CalibrationLine:
    """The same of Γ and its samples; without samples there are no intervals."""
    rows, why = rows_of(gamma, resample), ""
    certain = (rows.v == 0.0) | (rows.v == 1.0)
    wrong = certain & (rows.v != rows.y)
    if wrong.any():
        count = round(float(rows.times[wrong].sum()))
        why = (
            f"{number_of(count, 'wrong forecast')} of exactly 0 or 1, so that every line has the likelihood 0; clipped "
            "ones have a number, which depends on where they are clipped"
        )
    elif rows.y.min() == rows.y.max():
        why = f"all outcomes are {rows.y[0]:.0f}, and no finite number has the largest likelihood"
    of = None if rows.of is None else rows.of[~certain]
    v, y, w, times = (part[~certain] for part in rows[:4])
    some = Rows(v, y, w, times, of)
    if not why and (not len(some.v) or some.y.min() == some.y.max()):
        why = "without the forecasts of exactly 0 and 1 all outcomes are equal"
    if why:
        return CalibrationLine(*[without(math.nan, why)] * 3)
    x, one = logit(some.v), np.ones((len(some.v), 1))
    large = _estimates(some, one, x, np.zeros(1), resample, level)[0]
    zeros, ones = x[some.y == 0.0], x[some.y == 1.0]
    if np.ptp(x) <= APART * max(1.0, float(np.abs(x).max())):
        why = "all forecasts are as good as equal, so that every slope fits as well"
    elif zeros.max() <= ones.min() or ones.max() <= zeros.min():
        why = "a threshold separates the outcomes, so that no finite slope has the largest likelihood"
    if why:
        return CalibrationLine(large, *[without(math.nan, why)] * 2)
    columns = np.stack((one[:, 0], x), axis=1)
    intercept, slope = _estimates(some, columns, np.zeros(len(x)), np.array([0.0, 1.0]), resample, level)
    if certain.any() and slope.value <= 0.0:
        why = "the slope of the other forecasts is not positive, which contradicts those of exactly 0 and 1"
        return CalibrationLine(large, *[without(math.nan, why)] * 2)
    return CalibrationLine(large, intercept, slope)


def _estimates(
    rows: Rows, x: Floats, offset: Floats, start: Floats, resample: Resample | None, level: float
) -> list[Estimate]:
    """The coefficients of the columns of x with their intervals."""
    found, mean = _fitted(rows, x, offset, start)
    if resample is None:
        return [without(value, "weights without their samples") for value in found.tolist()]
    if resample.too_few:
        return [Estimate(value, None, resample.too_few) for value in found.tolist()]
    times = rows.quantile(level)
    if times == math.inf:
        return [without_ends(value, level) for value in found.tolist()]
    error = _errors(rows, x, mean)
    if not np.isfinite(error).all():
        return [without(value, "without one of the samples nothing tells it") for value in found.tolist()]
    ends = zip(
        found.tolist(), (found - times * error).tolist(), (found + times * error).tolist(), strict=True
    )
    return [Estimate(value, (low, high), HOW) for value, low, high in ends]


def _fitted(rows: Rows, x: Floats, offset: Floats, start: Floats) -> tuple[Floats, Floats]:
    """The coefficients of the largest likelihood, which exists, by Newton's method; and the fitted chances."""
    weight = rows.w * rows.times / float(rows.w @ rows.times)
    size = np.abs(x).max(axis=0)
    x, beta = x / size, start * size

    def loss(beta: Floats) -> float:
        odds = x @ beta + offset
        return float(weight @ (np.logaddexp(0.0, odds) - rows.y * odds))

    # Where forecasts are sure and wrong there is a slope and hardly any curvature. So steps are drawn in (Levenberg
    # 1944, Marquardt 1963), by more until the loss falls.
    ridge, now = 1e-3, loss(beta)
    for _ in range(STEPS):
        mean = expit(x @ beta + offset)
        curve = x.T @ (x * (weight * mean * (1.0 - mean))[:, None])
        step = np.linalg.solve(curve + ridge * np.eye(len(beta)), x.T @ (weight * (rows.y - mean)))
        then = loss(beta + step)
        if then <= now + 1e-12 * abs(now):
            beta, now, ridge = beta + step, then, max(0.1 * ridge, LEAST)
        else:
            ridge *= 10.0
        if np.abs(step).max() <= NEAR * (1.0 + np.abs(beta).max()):
            break
    return beta / size, expit(x @ beta + offset)


def _errors(rows: Rows, x: Floats, mean: Floats) -> Floats:
    """The standard error of each coefficient: the larger of jackknife and model; infinite if one unit tells all."""
    many, w = x.shape[1], rows.w
    variance = mean * (1.0 - mean)
    outer: Any = x[:, :, None] * x[:, None, :]
    curve = np.tensordot(rows.times * w * variance, outer, 1)
    if not np.linalg.det(curve) > 0.0:
        return np.full(many, np.inf)
    inverse = np.linalg.inv(curve)
    model = inverse @ np.tensordot(rows.times * w**2 * variance, outer, 1) @ inverse
    curves: Any
    scores, curves = x * (w * (rows.y - mean))[:, None], outer * (w * variance)[:, None, None]
    times = rows.times
    if rows.of is not None:
        of = np.unique(rows.of, return_inverse=True)[1]
        scores = np.stack([np.bincount(of, scores[:, i]) for i in range(many)], axis=1)
        flat = curves.reshape(len(of), -1)
        curves = np.stack([np.bincount(of, part) for part in flat.T], axis=1).reshape(-1, many, many)
        times = np.ones(len(scores))
    if not (np.linalg.det(curve - curves) > REST * np.linalg.det(curve)).all():
        return np.full(many, np.inf)
    # One step of Newton's method without the unit.
    moved = np.linalg.solve(curve - curves, scores[:, :, None])[:, :, 0]
    units = float(times.sum())
    jackknife = (units - 1.0) / units * (times @ moved**2)
    return np.asarray(np.sqrt(np.maximum(jackknife, np.diag(model))))


def _said(one: Estimate) -> str:
    if math.isnan(one.value):
        return one.how
    return f"{one.value:.4g}" + (
        f" [{one.interval[0]:.4g}, {one.interval[1]:.4g}]" if one.interval else f", {one.how}"
    )


def _row(name: str, symbol: str, words: str) -> OfLogs:
    place = CalibrationLine._fields.index(name.removeprefix("calibration_"))

    def function(gamma: JointDistribution) -> float:
        return line_of(gamma, None, 0.95)[place].value

    def estimate(gamma: JointDistribution, resample: Resample | None, level: float) -> Estimate:
        return line_of(gamma, resample, level)[place]

    function.__name__, function.__doc__ = name, words
    return OfLogs(
        function, symbol, "Cox58; MHT91", "O(k) a step", continuous="no", complete="no", sound="no",
        least=-math.inf, largest=math.inf, estimate=estimate,
    )  # fmt: skip


MEASURES = (
    _row("calibration_in_the_large", "a, b = 1", "The a of logit P(y = 1) = a + logit p; 0 if calibrated."),
    _row("calibration_intercept", "a", "The a of logit P(y = 1) = a + b logit p; 0 if calibrated."),
    _row("calibration_slope", "b", "The b of logit P(y = 1) = a + b logit p; 1 if calibrated."),
)
