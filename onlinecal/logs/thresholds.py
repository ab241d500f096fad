"""The worst threshold to act on: what is lost by it, and which predictions mislead."""

from dataclasses import dataclass

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import locked
from onlinecal.core.joint import JointDistribution, of_gamma

# The rounding of differences of sums up to 1: a smaller loss counts as none.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Threshold:
    """A threshold to act on, in a task of two actions with payoffs in [0, 1], and a threshold that gains more."""

    at: float  # t: the probability above which it pays to act. Nothing is lost where `loss` is 0
    acts_too_often: bool
    loss: float  # per decision, over all of them: the payoff with the better threshold less that with t
    lowest: float  # the predictions between the two thresholds, on which the actions differ
    highest: float
    bias: float  # their mean less the mean outcome; positive where they are too high
    share: float  # of the weight, how much is on them

    def __str__(self) -> str:
        if self.loss <= 0.0:
            return "no threshold loses: another one would never have been better"
        sign, wrong = ("≥", "high") if self.acts_too_often else (">", "low")
        span = (
            f"{self.lowest:.4g}" if self.lowest == self.highest else f"{self.lowest:.4g}–{self.highest:.4g}"
        )
        return (
            f"act when p {sign} {self.at:.4g}: you lose {self.loss:.3g} per decision; predictions of {span} "
            f"({self.share:.3g} of all) are too {wrong} by {abs(self.bias):.3g}"
        )

    @property
    def better(self) -> str:
        """The best rule in place of `at`, on these outcomes."""
        return f"p > {self.highest:.4g}" if self.acts_too_often else f"p ≥ {self.lowest:.4g}"


@of_gamma
def worst_threshold(gamma: JointDistribution) -> Threshold:
    """The threshold t that loses most against another one, of all tasks of two actions with payoffs in [0, 1].

    Acting where p ≥ t loses sup over s of E[(t − y) 1(t ≤ p ≤ s)]/max(t, 1 − t) if s would be better. Acting where
    p > t loses likewise below. All pairs of thresholds are compared. Unlike swap regret the loss can be estimated on
    distinct predictions. It is from 0 to twice `cutoff_ce`.

    Source: Rossellini et al. 2025 for decisions by thresholds and cutoff calibration; Hu & Wu 2024 for the payoffs.

    >>> print(worst_threshold(JointDistribution.from_samples([0.25, 0.75, 0.75, 0.75, 0.75], [0, 1, 0, 0, 1])))
    act when p ≥ 0.75: you lose 0.267 per decision; predictions of 0.75 (0.8 of all) are too high by 0.25
    """
    v, w, k = gamma.predictions, gamma.mass, gamma.levels
    scale, mass, ones = np.maximum(v, 1.0 - v), np.zeros(k + 1), np.zeros(k + 1)
    np.cumsum(w, out=mass[1:])
    np.cumsum(w * gamma.means, out=ones[1:])
    high, first, last = _worst(v, scale, mass, -ones)
    # Too low is too high of 1 − p and 1 − y, and their prefixes are suffixes. Arrays of the same kinds, so that there
    # is one compiled function.
    low, start, end = _worst(locked(-v[::-1]), scale[::-1].copy(), -mass[::-1], -ones[::-1])
    often = bool(high >= low)
    here = slice(first, last) if often else slice(k - end, k - start)
    at = float(v[here][0 if often else -1])
    share = float(w[here].sum())
    bias = -float(gamma.residuals[here].sum()) / share
    # The sums over the levels themselves, which are rounded less than differences of prefixes.
    loss = abs(float((w[here] * (at - gamma.means[here])).sum())) / max(at, 1.0 - at)
    loss = loss if max(high, low) > _ROUNDING and loss > _ROUNDING else 0.0
    return Threshold(at, often, loss, float(v[here][0]), float(v[here][-1]), bias, share)


@of_gamma
def threshold_regret(gamma: JointDistribution) -> float:
    """The loss of the worst threshold per decision, in [0, 1] (`worst_threshold`)."""
    return worst_threshold(gamma).loss


@kernel
def _worst(slope, scale, mass, other):
    """The largest (slope_i (mass_j − mass_i) + other_j − other_i)/scale_i over i < j, with i and j."""
    # Slopes and masses ascend, so that the best j of an i does not descend with i. It is searched between the best ones
    # of the nearest known indices on either side. A comparison that rounding turns costs the rounding, once for each of
    # log₂ k rounds.
    k = len(slope)
    best = np.empty(k, np.int64)
    step = 1
    while 2 * step <= k:
        step *= 2
    while step > 0:
        for i in range(step - 1, k, 2 * step):
            low = max(i + 1, best[i - step]) if i >= step else i + 1
            high = best[i + step] if i + step < k else k
            at, most = low, slope[i] * mass[low] + other[low]
            for j in range(low + 1, high + 1):
                value = slope[i] * mass[j] + other[j]
                if value > most:
                    at, most = j, value
            best[i] = at
        step //= 2
    largest, first, last = -np.inf, 0, 1
    for i in range(k):
        j = best[i]
        value = (slope[i] * (mass[j] - mass[i]) + (other[j] - other[i])) / scale[i]
        if value > largest:
            largest, first, last = value, i, j
    return largest, first, last
