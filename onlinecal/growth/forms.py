"""Curves that are no power laws: the exponents for which T^α log^β T and a + b T^α fit."""

from typing import NamedTuple

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.growth.contrasts import Fresh, beside, orthonormal

POWER = "T^α"
LOGARITHM = "T^α log^β T"
CONSTANT = "a + b T^α"
#: of log T, on either side: the logarithms in known rates lie well within
LOGS = 2.0
_STEP = 0.1


class Fit(NamedTuple):
    """A form that fits: ends of the asymptotic exponent, and the squares that it leaves."""

    lower: float
    upper: float
    squares: float


def with_logarithm(logarithms: Floats, data: Fresh, rate: float) -> Fit | None:
    """The α with which T^α log^β T fits within the noise of the runs; half the rate goes to β, cut to |β| ≤ 2."""
    x = logarithms - logarithms.mean()
    level = np.log(np.maximum(logarithms, 1.0))
    bend = beside(level, orthonormal(np.ones_like(x), x))
    basis = orthonormal(np.ones_like(x), x, bend)
    residual = beside(data.logs, basis)
    if data.misfit(basis, residual) < rate:
        return None
    bend, slope = bend / (bend @ bend), x / (x @ x)
    beta, half = float(bend @ data.logs), float(_half(data, bend, basis, None, rate / 2))
    lower, upper = max(beta - half, -LOGS), min(beta + half, LOGS)
    if lower > upper:
        return None
    share = float(slope @ level)
    alpha, half = float(slope @ data.logs), float(_half(data, slope, basis, None, rate / 2))
    return Fit(alpha - upper * share - half, alpha - lower * share + half, float(residual @ residual))


def with_constant(logarithms: Floats, data: Fresh, rate: float) -> Fit | None:
    """The asymptotic exponents of a + b T^α for the α with which it fits within the noise of the runs."""
    u = logarithms - logarithms.mean()
    steep = float(np.abs(np.diff(data.logs) / np.diff(u)).max())
    top = _STEP * np.ceil(min(max(2.0, steep + 1.0), 6.0) / _STEP)
    # No point of the grid is 0, where the form is a + b log T, its limit.
    grid = np.arange(-top - _STEP / 2, top + _STEP, _STEP)
    margin, score, squares = _tested(grid, u, data, rate)
    turns = np.flatnonzero((score[:-1] < 0.0) & (score[1:] >= 0.0) | (score[:-1] >= 0.0) & (score[1:] < 0.0))
    # Where the totals are exact, the one α that fits lies between points of the grid.
    roots = [_root(grid[i], grid[i + 1], u, data, rate) for i in turns if (margin[i : i + 2] > 0.0).all()]
    found = dict(zip(grid[margin <= 0.0].tolist(), squares[margin <= 0.0].tolist(), strict=True))
    found |= {alpha: left for alpha, excess, left in roots if excess <= 0.0}
    if not found:
        return None
    lower = _edge(min(found), min(found) - _STEP, u, data, rate)
    upper = _edge(max(found), max(found) + _STEP, u, data, rate)
    return Fit(max(lower, 0.0), max(upper, 0.0), min(found.values()))


def _tested(alphas: Floats, u: Floats, data: Fresh, rate: float) -> tuple[Floats, Floats, Floats]:
    """For each α the excess over its tests (≤ 0: it passes), score and rest of the logs; NaN unless a + b T^α > 0."""
    alpha = np.where(np.abs(alphas) < 1e-6, 1e-6, alphas)[:, None]
    power = np.expm1(alpha * u) / alpha
    a, b, curve = _fitted(power, data.logs)
    # With such coefficients it falls below 0 in the end.
    ends = np.where(alpha[:, 0] > 0.0, b > 0.0, a - b / alpha[:, 0] > 0.0)
    usable = np.isfinite(curve).all(axis=1) & ends
    curve = np.where(usable[:, None], curve, 1.0)
    residual = data.logs - data.logs.mean() - np.log(curve)
    basis = orthonormal(1.0 / curve, power / curve)
    across = beside((u * np.exp(alpha * u) - power) / alpha / curve, basis)
    size = np.sqrt((across**2).sum(axis=1, keepdims=True))
    across = across / np.where(size > 0.0, size, 1.0)
    score = (across * residual).sum(axis=1)
    whole = np.concatenate([basis, across[:, :, None]], axis=2)
    excess = np.abs(score) / _half(data, across, whole, residual, rate / 2) - 1.0
    excess = np.where(data.misfit(basis, residual) < rate, np.maximum(excess, 1.0), excess)
    left = np.where(usable, (residual**2).sum(axis=1), np.nan)
    return np.where(usable, excess, np.inf), np.where(usable, score * np.sign(b), np.nan), left


def _fitted(power: Floats, logs: Floats) -> tuple[Floats, Floats, Floats]:
    """For each row of powers a + b·power nearest in logs, by Gauss–Newton from the fit of relative errors."""
    target = logs - logs.mean()
    total = np.exp(target)
    # Where powers are all but constant, or leave every bound, there is no fit: NaN says so.
    with np.errstate(all="ignore"):
        a, b = _solved(1.0 / total, power / total, np.ones_like(power))
        curve = a[:, None] + b[:, None] * power
        curve[~(curve > 0.0).all(axis=1)] = np.nan
        for _ in range(40):
            da, db = _solved(1.0 / curve, power / curve, target - np.log(curve))
            step = (da[:, None] + db[:, None] * power) / curve
            size = np.minimum(1.0, 0.8 / np.maximum(-step.min(axis=1), 0.8))
            a, b = a + size * da, b + size * db
            curve = a[:, None] + b[:, None] * power
            if not np.nanmax(np.abs(step), initial=0.0) > 1e-13:
                break
    return a, b, curve


def _solved(first: Floats, second: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Least squares of rows on two columns."""
    aa, ab, bb = (first * first).sum(-1), (first * second).sum(-1), (second * second).sum(-1)
    at, bt = (first * target).sum(-1), (second * target).sum(-1)
    det = aa * bb - ab * ab
    return (bb * at - ab * bt) / det, (aa * bt - ab * at) / det


def _half(data: Fresh, weights: Floats, basis: Floats, residual: Floats | None, rate: float) -> Floats:
    """Half the width of the interval of a contrast."""
    from scipy.special import stdtrit

    variance, freedom = data.spread(weights, basis, residual)
    return np.asarray(stdtrit(freedom, 1.0 - rate / 2) * np.sqrt(variance))


def _root(lower: float, upper: float, u: Floats, data: Fresh, rate: float) -> tuple[float, float, float]:
    """The α between two where the score is 0, by how much it fails, and what it leaves."""
    for _ in range(10):
        points = np.linspace(lower, upper, 33)
        excess, score, squares = _tested(points, u, data, rate)
        best = int(np.nanargmin(np.abs(score)))
        if excess[best] <= 0.0:
            break
        lower, upper = points[max(best - 1, 0)], points[min(best + 1, 32)]
    return float(points[best]), float(excess[best]), float(squares[best])


def _edge(inside: float, outside: float, u: Floats, data: Fresh, rate: float) -> float:
    """The last α that passes, from one that does towards one that may not."""
    for _ in range(2):
        points = np.linspace(inside, outside, 33)
        passes = _tested(points, u, data, rate)[0] <= 0.0
        if passes.all():
            return outside
        last = max(int(np.argmin(passes)) - 1, 0)
        inside, outside = points[last], points[last + 1]
    return float(inside)
