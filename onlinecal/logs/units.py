"""Measures of logs alone: they may have no value, and have intervals by sums over independent units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.joint import JointDistribution
from onlinecal.logs.resampling import Resample
from onlinecal.measures.base import Ends, Measure


class Estimate(NamedTuple):
    """A number with its interval, or the reason why it is missing."""

    value: float  # NaN where it does not exist
    interval: Ends | None
    how: str  # how the interval is made; or "none: " and why


@dataclass(frozen=True)
class OfLogs(Measure):
    """A measure that no game has: of (Γ, its samples, level) an `Estimate`."""

    estimate: Callable[[JointDistribution, Resample | None, float], Estimate] = lambda *_: without(
        math.nan, ""
    )


class Rows(NamedTuple):
    """Rows with their outcomes, how often each is there, and the unit that it is in."""

    v: Floats  # forecasts
    y: Floats  # outcomes, 0 or 1
    w: Floats  # weights
    times: Floats  # how many equal rows there are, each a unit of its own; 1 of weighted rows and of clusters
    of: Ints | None  # the cluster of each, where rows of one depend on each other

    def squares(self, part: Floats) -> float:
        """The sum over units of the squares of sums of a part of each row, by n/(n − 1) of n units."""
        sums = part if self.of is None else np.bincount(self.of, part)
        times = self.times if self.of is None else np.ones(len(sums))
        units = float(times.sum())
        return float(times @ sums**2) * units / max(units - 1.0, 1.0)

    def samples(self, outcome: float) -> float:
        """How many units of equal weight tell as much of the rows with this outcome."""
        w = self.w * (self.y == outcome)
        sums, times = (w, self.times) if self.of is None else (np.bincount(self.of, w), 1.0)
        squares = float((times * sums**2).sum())
        return float((times * sums).sum()) ** 2 / squares if squares else 0.0

    def quantile(self, level: float) -> float:
        """Student's quantile of an interval, by the samples of the rarer outcome.

        It is infinite where that is one sample, and at level 1.
        """
        free = min(self.samples(0.0), self.samples(1.0)) - 1.0
        return float(stdtrit(free, 0.5 * (1.0 + level))) if free > 1e-9 else math.inf


def rows_of(gamma: JointDistribution, resample: Resample | None) -> Rows:
    """The rows behind Γ; without weights and clusters, those of each level and outcome together."""
    if resample is None or resample.weights is None:
        y = np.repeat([0.0, 1.0], gamma.levels)
        times = np.concatenate((gamma.counts - gamma.positives, gamma.positives))
        held = times > 0.0
        v = np.tile(gamma.predictions, 2)
        return Rows(v[held], y[held], np.ones(held.sum()), times[held], None)
    of = resample.of if resample.clusters else None
    w = resample.weights
    return Rows(resample.v[resample.level], resample.ones.astype(np.float64), w, np.ones(len(w)), of)


def without_ends(value: float, level: float) -> Estimate:
    """A number without an interval, as the quantile is infinite, and why."""
    why = "there is one sample of an outcome" if level < 1.0 else "of level 1 it holds all numbers"
    return without(value, why)


def without(value: float, why: str) -> Estimate:
    """A number, or NaN, without an interval."""
    return Estimate(value, None, f"none: {why}")
