"""The interval of the area under the ROC curve, by placements."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit

from onlinecal.core.joint import JointDistribution
from onlinecal.logs.resampling import Resample
from onlinecal.logs.units import Estimate, OfLogs, rows_of, without, without_ends
from onlinecal.measures.quoted import auc, placements

HOW = "Student's law of log odds, with the variance of placements (DeLong, DeLong & Clarke-Pearson 1988)"


def auc_of(gamma: JointDistribution, resample: Resample | None, level: float) -> Estimate:
    """AUC with an interval, of Γ and its samples."""
    # Rows of a cluster are added: Obuchowski 1997. On the scale of log odds: Qin & Hotilovac 2008. Student's law has a
    # degree of freedom less than there are samples of the rarer outcome.
    value = auc(gamma)
    if math.isnan(value):
        return without(
            value, f"all outcomes are {gamma.base_rate:.0f}, so that there is no pair of an event and none"
        )
    if resample is None:
        return without(value, "weights without their samples")
    if resample.too_few:
        return Estimate(value, None, resample.too_few)
    rows = rows_of(gamma, resample)
    times = rows.quantile(level)
    if times == math.inf:
        return without_ends(value, level)
    if value in (0.0, 1.0):
        return without(value, "a threshold separates the outcomes, so that placements do not vary")
    ones, zeros = (part[np.searchsorted(gamma.predictions, rows.v)] for part in placements(gamma))
    event = rows.y > 0.0
    total = float(gamma.positives.sum())
    part = np.where(event, rows.w * (ones - value) / total, rows.w * (zeros - value) / (gamma.weight - total))
    if rows.of is not None:
        variance = rows.squares(part)
    else:
        # Few events may all be at one forecast. So one is added, of which the placement varies as that of rows that
        # are events with the probability forecast.
        variance = 0.0
        for outcome, kind, place, chance in ((1.0, event, ones, rows.v), (0.0, ~event, zeros, 1.0 - rows.v)):
            many, w = rows.samples(outcome), rows.times * rows.w * chance
            seen = float(rows.times @ (part * kind) ** 2)
            said = float(w @ (place - (w @ place) / w.sum()) ** 2) / w.sum() if w.any() else 0.0
            variance += seen + said / many**2
    width = times * math.sqrt(variance) / (value * (1.0 - value))
    middle = float(logit(value))
    return Estimate(value, (float(expit(middle - width)), float(expit(middle + width))), HOW)


MEASURES = (
    OfLogs(auc, "AUC", "HMcN82; DDCP88", "O(k)", continuous="no", complete="no", sound="no", estimate=auc_of),
)
