"""The best monotone recalibration of forecasts as a curve, and how far from the diagonal chance alone takes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import integer, number
from onlinecal.forecasts.decomposition import isotonic

Floats = NDArray[np.float64]

#: with which a 95 % band leaves out the 10 least and the 10 largest values
DRAWS = 399
#: levels above which predictions are rounded to as many steps
MOST_LEVELS = 1000


@dataclass(frozen=True, eq=False)
class Recalibration:
    """The recalibrated probability of each prediction."""

    predictions: Floats  # the levels, or what they are rounded to, and `isotonic` of them
    means: Floats
    # between what `means` lies at each of them if forecasts are calibrated; NaN without a band
    lower: Floats
    upper: Floats
    rounded: bool  # whether predictions are rounded to multiples of 1/1000


@of_gamma
def recalibration(
    gamma: JointDistribution, *, level: float = 0.95, draws: int = DRAWS, seed: int = 0
) -> Recalibration:
    """Isotonic regression of the outcomes, with the band in which it lies for calibrated forecasts.

    For the band outcomes are drawn, each 1 with the probability forecast, and recalibrated in the same way; at
    each level it leaves out equally many of the least and of the largest values.

    Source: Dimitriadis, Gneiting, Jordan 2021 (CORP): consistency bands; Bröcker, Smith 2007.

    Deviation: Predictions stay as they are. More than 1000 levels are rounded first, of the samples and of the draws.

    >>> found = recalibration(JointDistribution.from_counts([0.1, 0.9], [100, 100], [10, 90]))
    >>> bool((found.lower < found.means).all() and (found.means < found.upper).all())
    True
    """
    level = number("recalibration", "level", level, 0.0, 1.0)
    draws = integer("recalibration", "draws", draws, 1, 100_000)
    generator = np.random.default_rng(integer("recalibration", "seed", seed, 0))
    counts, v = gamma.counts, gamma.predictions
    whole = bool((counts == np.rint(counts)).all())
    rounded = gamma.levels > MOST_LEVELS
    own = gamma.round(MOST_LEVELS)[0] if rounded else gamma
    means = isotonic(own)
    if not level or not whole:
        none = np.full(own.levels, np.nan)
        return Recalibration(own.predictions, means, none, none, rounded)
    place = np.searchsorted(own.predictions, np.rint(v * MOST_LEVELS) / MOST_LEVELS if rounded else v)
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    out = int(np.floor((draws + 1) * 0.5 * (1.0 - level) + 1e-9))
    found, single = np.empty((draws if out else 0, own.levels)), bool((counts == 1.0).all())
    for row in found:
        # Of one outcome each a comparison is several times as fast.
        drawn = generator.random(len(v)) < v if single else generator.binomial(counts.astype(np.int64), v)
        ones = np.add.reduceat(drawn.astype(np.float64), starts)
        row[:] = isotonic(JointDistribution.from_counts(own.predictions, own.counts, ones))
    if not out:
        return Recalibration(own.predictions, means, np.zeros(own.levels), np.ones(own.levels), rounded)
    found.partition((out - 1, draws - out), axis=0)
    return Recalibration(own.predictions, means, found[out - 1], found[draws - out], rounded)
