"""The worst threshold to act on: what is lost by it, and which predictions mislead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.joint import JointDistribution, of_gamma
from onlinecal.core.validation import integer

Floats = NDArray[np.float64]

#: thresholds that are tried, at most
TRIED = 1000
# Differences of sums up to 1 are rounded by so much: less is no loss.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Threshold:
    """Acting on a threshold, and what would have been better.

    The task has two actions with payoffs in [0, 1], of which acting is the better one where the probability is above
    `at`; those who act when the prediction says so would have gained by another threshold.

    Attributes
    ----------
    at : float
        t: the probability above which it pays to act. Nothing is lost where `loss` is 0.
    acts_too_often : bool
        Whether those who act at p ≥ t lose by predictions of at least t after which the event comes too rarely; else
        those who act at p > t by predictions of at most t after which it comes too often.
    loss : float
        Per decision, over all of them: the payoff with the better threshold less that with t.
    lowest, highest : float
        The predictions between the two thresholds, on which the actions differ.
    bias : float
        Their mean less the mean outcome; positive where they are too high.
    share : float
        Of the weight, how much is on them.
    tried, levels : int
        Thresholds that were tried, and levels of Γ: as many where all were.
    """

    at: float
    acts_too_often: bool
    loss: float
    lowest: float
    highest: float
    bias: float
    share: float
    tried: int
    levels: int

    def __str__(self) -> str:
        some = self.tried < self.levels
        if self.loss <= 0.0:
            which = f"threshold of {self.tried:,} that were tried" if some else "threshold"
            return f"no {which} loses: another one would never have been better"
        sign, better, wrong = (
            ("≥", f"p > {self.highest:.4g}", "high")
            if self.acts_too_often
            else (">", f"p ≥ {self.lowest:.4g}", "low")
        )
        span = (
            f"{self.lowest:.4g}" if self.lowest == self.highest else f"{self.lowest:.4g}–{self.highest:.4g}"
        )
        return (
            f"act when p {sign} {self.at:.4g}: you lose {self.loss:.3g} per decision; predictions of {span} "
            f"({self.share:.3g} of all) are too {wrong} by {abs(self.bias):.3g}; {better} would be better"
            + (
                f" (the worst of {self.tried:,} thresholds that were tried, of {self.levels:,})"
                if some
                else ""
            )
        )


@of_gamma
def worst_threshold(gamma: JointDistribution, *, most: int = TRIED) -> Threshold:
    """The threshold t that loses most against another one, of all tasks of two actions with payoffs in [0, 1].

    Those who act where p ≥ t lose sup over s of E[(t − y) 1(t ≤ p ≤ s)]/max(t, 1 − t) if s would be better, and those
    who act where p > t likewise below. Unlike swap regret it can be estimated on distinct predictions: it is no more
    than twice `cutoff_ce`, and no less than 0.

    Parameters
    ----------
    gamma : JointDistribution
    most : int, default 1000
        Of more levels only so many thresholds are tried, between groups of about equal numbers of levels.

    Returns
    -------
    Threshold
        In O(min(k, most)²); its loss is exact for its threshold.

    Raises
    ------
    InvalidParameter
        On `most` below 1.

    Source
    ------
    Rossellini et al. 2025 for decisions by thresholds and cutoff calibration; Hu & Wu 2024 for the payoffs.

    Examples
    --------
    >>> print(worst_threshold(JointDistribution.from_samples([0.25, 0.75, 0.75, 0.75, 0.75], [0, 1, 0, 0, 1])))
    act when p ≥ 0.75: you lose 0.267 per decision; predictions of 0.75 (0.8 of all) are too high by 0.25;
    p > 0.75 would be better
    """
    most = integer("worst_threshold", "most", most, 1)
    cuts = np.unique(np.linspace(0, gamma.levels, min(gamma.levels, most) + 1).astype(np.int64))
    v, w = gamma.predictions, gamma.mass
    prefix = np.zeros((2, gamma.levels + 1))
    np.cumsum(w, out=prefix[0, 1:])
    np.cumsum(w * gamma.means, out=prefix[1, 1:])
    loss, first, last, often = _worst(v, prefix[0], prefix[1], cuts, _ROUNDING)
    here = slice(first, last)
    share = float(w[here].sum())
    bias = -float(gamma.residuals[here].sum()) / share
    at = float(v[first] if often else v[last - 1])
    return Threshold(
        at,
        bool(often),
        float(loss),
        float(v[first]),
        float(v[last - 1]),
        bias,
        share,
        len(cuts) - 1,
        gamma.levels,
    )


@of_gamma
def threshold_regret(gamma: JointDistribution) -> float:
    """What the worst threshold loses per decision, in [0, 1] (`worst_threshold`)."""
    return worst_threshold(gamma).loss


@kernel
def _worst(v, mass, ones, cuts, least):
    """Loss, first and one past the last level that mislead, and whether by acting too often; no loss below `least`."""
    best = least
    first, last, often = 0, cuts[1], True
    for a in range(len(cuts) - 1):
        i = cuts[a]
        t = v[i]
        scale = max(t, 1.0 - t)
        for b in range(a + 1, len(cuts)):
            j = cuts[b]
            value = (t * (mass[j] - mass[i]) - (ones[j] - ones[i])) / scale
            if value > best:
                best, first, last, often = value, i, j, True
    for b in range(1, len(cuts)):
        j = cuts[b]
        t = v[j - 1]
        scale = max(t, 1.0 - t)
        for a in range(b):
            i = cuts[a]
            value = ((ones[j] - ones[i]) - t * (mass[j] - mass[i])) / scale
            if value > best:
                best, first, last, often = value, i, j, False
    return best if best > least else 0.0, first, last, often
