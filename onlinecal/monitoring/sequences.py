"""Intervals for running totals that hold at all times together: of forecasts as they are, or if they are calibrated."""

import math
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.joint import samples
from onlinecal.core.samples import Words
from onlinecal.core.validation import integer, number

#: λ from 0.95 down by a factor √2, each with its weight; they sum to less than 1
_LAMBDAS = 0.95 * 2.0 ** (-0.5 * np.arange(40))
_WEIGHTS = 1.0 / ((np.arange(40) + 1.0) * (np.arange(40) + 2.0))
#: ψ(λ) = −ln(1 − λ) − λ
_COSTS = -np.log1p(-_LAMBDAS) - _LAMBDAS
#: how many stakes of either sign are mixed
_STAKES = 16


def half_width(squares: float, alpha: float, parts: int = 1) -> float:
    """How far a total of outcomes may be from that of their probabilities, at all times, with probability 1 − α."""
    if parts > 1:
        return parts * half_width(squares / parts, alpha)
    goal = math.log(2.0 / alpha)
    fixed = np.log(_WEIGHTS) - _COSTS * squares
    # Each term alone gives a bound. The sum is convex and increasing in s: Newton's steps from the least bound come
    # down to the root.
    s = float(((goal - fixed) / _LAMBDAS).min())
    for _ in range(100):
        terms = fixed + _LAMBDAS * s
        top = float(terms.max())
        shares = np.exp(terms - top)
        value = top + math.log(float(shares.sum()))
        step = (value - goal) / float((shares @ _LAMBDAS) / shares.sum())
        s -= step
        if abs(step) <= 1e-12 * max(1.0, s):
            break
    return max(s, 0.0) * (1.0 + 1e-12)


@dataclass(frozen=True, eq=False)
class RunningBias:
    """Σ (y − p) of the first forecasts."""

    rounds: Ints  # how many forecasts; ascending
    total: Floats
    # between what the total stays at all times at once if every outcome has the probability predicted
    lower: Floats
    upper: Floats
    level: float  # with at least this probability

    @property
    def left(self) -> int | None:
        outside = (self.total < self.lower) | (self.total > self.upper)
        return int(self.rounds[np.argmax(outside)]) if outside.any() else None


def running_bias(
    p: ArrayLike, y: ArrayLike, *, level: float = 0.95, points: int = 500, **words: Unpack[Words]
) -> RunningBias:
    """The running total of y − p, with a band that it leaves at any time with probability at most 1 − level.

    >>> found = running_bias([0.5] * 100, [1] * 100)
    >>> float(found.total[-1]), found.left
    (50.0, 10)
    """
    level = number("running_bias", "level", level, 0.0, 1.0)
    points = integer("running_bias", "points", points, 2, 100_000)
    p, y = samples(p, y, **words)
    rounds = np.unique(np.linspace(1, len(p), min(len(p), points)).round().astype(np.int64))
    total = np.cumsum(y - p)[rounds - 1]
    # Stakes that are good for some ten outcomes up to all of them, whatever the predictions are.
    stakes = np.geomspace(2.0 / math.sqrt(len(p) + 1.0), 2.0, _STAKES)
    most = math.log(2.0 / max(1.0 - level, 1e-300))
    ends = []
    for sign in (1.0, -1.0):
        # Of the total, each stake's cumulant; of sign −1 that of p − y.
        cost = np.empty((len(rounds), _STAKES))
        for j, stake in enumerate(sign * stakes):
            cost[:, j] = np.cumsum(np.log1p(p * np.expm1(stake)) - stake * p)[rounds - 1]
        ends.append(sign * _boundary(stakes, cost, most))
    # No outcomes that are possible take the total beyond this.
    upper = np.minimum(ends[0], np.cumsum(np.where(p > 0.0, 1.0 - p, 0.0))[rounds - 1])
    lower = np.maximum(ends[1], -np.cumsum(np.where(p < 1.0, p, 0.0))[rounds - 1])
    return RunningBias(rounds, total, lower, upper, level)


def _boundary(stakes: Floats, cost: Floats, most: float) -> Floats:
    """The total at which the logarithm of the mean of exp(λ total − cost) is `most`, for each row."""
    # One stake alone needs this much, or less than that where others help.
    high = ((most + math.log(len(stakes)) + cost) / stakes).min(axis=1)
    low = ((most + cost) / stakes).min(axis=1)
    for _ in range(50):
        middle = 0.5 * (low + high)
        power = middle[:, None] * stakes - cost
        top = power.max(axis=1)
        value = top + np.log(np.exp(power - top[:, None]).mean(axis=1))
        low, high = np.where(value < most, middle, low), np.where(value < most, high, middle)
    return np.asarray(high)
