"""A proper score in three parts, by the best monotone recalibration (CORP)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import choice
from onlinecal.measures.scores import brier, log_loss

Floats = NDArray[np.float64]
Score = Literal["brier", "log"]

_SCORES = {"brier": brier, "log": log_loss}


class Decomposition(NamedTuple):
    """Three parts of a proper score: score = miscalibration − discrimination + uncertainty.

    Attributes
    ----------
    score : float
    miscalibration : float
        MCB ≥ 0: by how much the best monotone recalibration would lower the score; infinite where the log score is.
    discrimination : float
        DSC ≥ 0: by how much the recalibrated forecasts are better than the base rate alone.
    uncertainty : float
        UNC: the score of the base rate.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@of_gamma
def isotonic(gamma: JointDistribution) -> Floats:
    """The best recalibration that keeps the order of the forecasts: isotonic regression of the outcomes.

    Of all nondecreasing functions of the prediction it has the least score, for every proper score at once.

    Parameters
    ----------
    gamma : JointDistribution

    Returns
    -------
    (levels,) floats
        For each level of `gamma.predictions`, the frequency of the event in its block of levels.

    Source
    ------
    Dimitriadis, Gneiting, Jordan 2021 (CORP): pool adjacent violators; Ayer et al. 1955.
    """
    from scipy.optimize import isotonic_regression

    # A mean of frequencies can leave [0, 1], by a rounding error.
    return np.clip(isotonic_regression(gamma.means, weights=gamma.counts).x, 0.0, 1.0)


@of_gamma
def decomposition(gamma: JointDistribution, score: Score = "brier") -> Decomposition:
    """A proper score in three parts, by the best monotone recalibration.

    Parameters
    ----------
    gamma : JointDistribution
    score : "brier" or "log", default "brier"

    Source
    ------
    Dimitriadis, Gneiting, Jordan 2021. On few samples the regression also removes noise, so that the
    miscalibration is too large by about as much as a calibrated forecast would have.

    Examples
    --------
    >>> decomposition(JointDistribution.from_samples([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 1]))
    Decomposition(score=0.0625, miscalibration=0.0625, discrimination=0.25, uncertainty=0.25)
    """
    of = _SCORES[choice("decomposition", "score", score, tuple(_SCORES))]
    best = of(_stating(gamma, isotonic(gamma)))
    base = of(_stating(gamma, np.full(gamma.levels, gamma.base_rate)))
    found = of(gamma)
    # Rounding aside, neither difference is negative.
    return Decomposition(found, max(found - best, 0.0), max(base - best, 0.0), base)


def _stating(gamma: JointDistribution, predictions: Floats) -> JointDistribution:
    """The same outcomes, with another prediction at each level."""
    return JointDistribution.from_counts(predictions, gamma.counts, gamma.positives)
