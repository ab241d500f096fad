"""Mean outcomes at predictions: monotone (CORP) with its band and the parts of scores, and by a kernel."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.joint import Floats, JointDistribution, of_gamma
from onlinecal.core.validation import choice, integer, number
from onlinecal.decisions.swaps import ascending
from onlinecal.logs.resampling import Resample
from onlinecal.logs.witnessed import clopper_pearson
from onlinecal.measures.scores import brier, log_loss
from onlinecal.measures.smooth_ece import smooth_ece

_SCORES = {"brier": brier, "log": log_loss}
#: with which a 95 % band leaves out the 10 least and the 10 largest values
DRAWS = 399
#: levels above which predictions are moved to multiples of 1/1000
MOST_LEVELS = 1000
#: a smaller σ is drawn as this
LEAST = 0.002


class Decomposition(NamedTuple):
    """Three parts of a proper score: score = miscalibration − discrimination + uncertainty."""

    score: float
    # MCB ≥ 0: by how much the best monotone recalibration would lower the score; infinite where the log score is
    miscalibration: float
    # DSC ≥ 0: by how much the recalibrated forecasts are better than the base rate alone
    discrimination: float
    uncertainty: float  # UNC: the score of the base rate


@of_gamma
def isotonic(gamma: JointDistribution) -> Floats:
    """The best recalibration that keeps the order of the forecasts: isotonic regression of the outcomes.

    Of all nondecreasing functions of the prediction it has the least score, for every proper score at once.

    Source: Dimitriadis, Gneiting, Jordan 2021 (CORP): pool adjacent violators; Ayer et al. 1955.

    Parameters
    ----------
    gamma : JointDistribution

    Returns
    -------
    (levels,) floats
        For each level of `gamma.predictions`, the frequency of the event in its block of levels.
    """
    # A mean of frequencies can leave [0, 1], by a rounding error.
    return np.clip(ascending(gamma.means, gamma.counts), 0.0, 1.0)


@of_gamma
def decomposition(gamma: JointDistribution, score: Literal["brier", "log"] = "brier") -> Decomposition:
    """A proper score in three parts, by the best monotone recalibration.

    Source: Dimitriadis, Gneiting, Jordan 2021. On few samples the regression also removes noise. The miscalibration is
    too large by about that of a calibrated forecast.

    Parameters
    ----------
    gamma : JointDistribution
    score : "brier" or "log", default "brier"

    Examples
    --------
    >>> decomposition(JointDistribution.from_samples([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 1]))
    Decomposition(score=0.0625, miscalibration=0.0625, discrimination=0.25, uncertainty=0.25)
    """
    of = _SCORES[choice("decomposition", "score", score, tuple(_SCORES))]
    found = of(gamma)
    best, base = (
        of(JointDistribution.from_sorted_levels(said, gamma.counts, gamma.positives))
        for said in (isotonic(gamma), np.full(gamma.levels, gamma.base_rate))
    )
    # Rounding aside, neither difference is negative.
    return Decomposition(found, max(found - best, 0.0), max(base - best, 0.0), base)


@dataclass(frozen=True, eq=False)
class Recalibration:
    """The recalibrated probability of each prediction."""

    predictions: Floats  # the levels, or what they are rounded to, and `isotonic` of them
    means: Floats
    # between what `means` lies at each of them if forecasts are calibrated; NaN without a band
    lower: Floats
    upper: Floats
    # between what all of `means` lie at once
    lowest: Floats
    highest: Floats
    rounded: bool  # whether predictions are rounded to multiples of 1/1000


@of_gamma
def recalibration(
    gamma: JointDistribution,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
    resample: Resample | None = None,
) -> Recalibration:
    """Isotonic regression of the outcomes, with bands for calibrated forecasts (docs/intervals.md)."""
    level = number("recalibration", "level", level, 0.0, 1.0)
    draws = integer("recalibration", "draws", draws, 1, 100_000)
    generator = np.random.default_rng(integer("recalibration", "seed", seed, 0))
    counts, v = gamma.counts, gamma.predictions
    rounded = gamma.levels > MOST_LEVELS
    own = gamma.round(MOST_LEVELS)[0] if rounded else gamma
    means = isotonic(own)
    unknown = (counts != np.rint(counts)).any() if resample is None else bool(resample.too_few)
    if not level or unknown:
        none = np.full(own.levels, np.nan)
        return Recalibration(own.predictions, means, none, none, none, none, rounded)
    place = np.searchsorted(own.predictions, np.rint(v * MOST_LEVELS) / MOST_LEVELS if rounded else v)
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    out = int(np.floor((draws + 1) * 0.5 * (1.0 - level) + 1e-9))
    if not out:
        ends = np.zeros(own.levels), np.ones(own.levels)
        return Recalibration(own.predictions, means, *ends, *ends, rounded)
    single = bool((counts == 1.0).all())

    def curve() -> Floats:
        drawn: Any
        if resample is not None:
            drawn = resample.calibrated(generator).positives
        elif single:  # a comparison is several times as fast
            drawn = generator.random(len(v)) < v
        else:
            drawn = generator.binomial(counts.astype(np.int64), v)
        # Sums of weights may be rounded up.
        ones = np.minimum(np.add.reduceat(drawn.astype(np.float64), starts), own.counts)
        return isotonic(JointDistribution.from_sorted_levels(own.predictions, own.counts, ones))

    found = np.array([curve() for _ in range(draws)])
    found.partition((out - 1, draws // 2, draws - out), axis=0)
    lower, middle, upper = found[out - 1], found[draws // 2], found[draws - out]
    # Where all draws are equal a share of one outcome is a scale.
    down, up = middle - lower + 0.5 / own.weight, upper - middle + 0.5 / own.weight
    deviations = []
    for _ in range(draws):
        moved = curve() - middle
        deviations.append(float(np.maximum(moved / up, -moved / down).max()))
    times = sorted(deviations)[int(np.ceil(level * (draws + 1) - 1e-9)) - 1]
    # The curve ascends, so that it stays above the largest of the lower ends so far.
    lowest = np.maximum.accumulate(np.clip(np.minimum(middle - times * down, lower), 0.0, 1.0))
    highest = np.minimum.accumulate(np.clip(np.maximum(middle + times * up, upper), 0.0, 1.0)[::-1])[::-1]
    return Recalibration(own.predictions, means, lower, upper, lowest, highest, rounded)


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The mean outcome near each prediction."""

    sigma: float  # the width of the Gaussian
    at: Floats  # from 0 to 1
    means: Floats  # Σ n_i q_i K(t, v_i) / Σ n_i K(t, v_i)
    density: Floats  # of predictions: Σ w_i K(t, v_i), with integral 1
    # how many samples of equal weight would have as much to say: (Σ n_i K)² / Σ n_i K²; 0 of too few clusters
    samples: Floats

    def band(self, level: float) -> tuple[Floats, Floats]:
        """Clopper and Pearson's interval of the mean outcome near each prediction; approximate, as weights differ."""
        return clopper_pearson(self.means, self.samples, 0.5 * (1.0 - level))


@of_gamma
def smoothed(
    gamma: JointDistribution,
    *,
    sigma: float | None = None,
    points: int = 1001,
    resample: Resample | None = None,
) -> Smoothed:
    """Kernel regression of outcomes on predictions with a Gaussian that is reflected at 0 and 1.

    With a `resample` the band counts its samples, of weights or clusters.

    Source: Błasiok, Nakkiran 2024, §1.1 and §4 (Nadaraya 1964, Watson 1964); the band: Korn, Graubard 1998.

    Deviation: The band is an interval for a number of samples, where the paper resamples.
    """
    points = integer("smoothed", "points", points, 2, 100_000)
    width = max(smooth_ece(gamma), LEAST) if sigma is None else number("smoothed", "sigma", sigma, LEAST, 1.0)
    v, counts, positives = gamma.predictions, gamma.counts, gamma.positives
    if gamma.levels > MOST_LEVELS:
        v, counts, positives = _spread(gamma)
    at = np.linspace(0.0, 1.0, points)
    # The images of a level under reflections at 0 and 1, as far as Gaussians reach.
    shifts = 2.0 * np.arange(-4, 5) if width > 0.1 else np.array([-2.0, 0.0, 2.0])
    near = ((at[:, None] - v) / width) ** 2
    least = near.min(axis=1, keepdims=True)
    kernel = np.zeros_like(near)
    for shift in shifts:
        for image in (v + shift, shift - v):
            kernel += np.exp(0.5 * (least - ((at[:, None] - image) / width) ** 2))
    total = kernel @ counts
    means = np.clip(kernel @ positives / total, 0.0, 1.0)
    density = total * np.exp(-0.5 * least[:, 0]) / (gamma.weight * width * np.sqrt(2.0 * np.pi))
    if resample is None:
        samples = total**2 / (kernel**2 @ counts)
    elif resample.too_few:
        samples = np.zeros(points)
    else:
        near_v = np.arange(gamma.levels) if v is gamma.predictions else _nearest(v, gamma.predictions)
        samples = resample.samples_near(kernel, near_v, means)
    return Smoothed(width, at, means, density, samples)


def _nearest(points: Floats, v: Floats) -> NDArray[np.int64]:
    return np.searchsorted(0.5 * (points[1:] + points[:-1]), v)


def _spread(gamma: JointDistribution) -> tuple[Floats, ...]:
    """Levels, counts and positives on multiples of 1/1000: each level on the two beside it, with its own mean."""
    place = gamma.predictions * MOST_LEVELS
    left = np.minimum(place.astype(np.int64), MOST_LEVELS - 1)
    share = place - left
    both, points = np.concatenate((left, left + 1)), np.arange(MOST_LEVELS + 1) / MOST_LEVELS
    counts, positives = (
        np.bincount(both, np.concatenate((part * (1.0 - share), part * share)), len(points)).astype(float)
        for part in (gamma.counts, gamma.positives)
    )
    there = counts > 0.0
    return points[there], counts[there], positives[there]
