"""Witnesses by weights of levels: of ECE, smooth, cutoff and step calibration, and moments of the residual."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import fsum
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core import validation
from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.sums import running
from onlinecal.core.validation import integer, number
from onlinecal.core.words import number_of
from onlinecal.measures.witnesses.base import Bracket, Witness, between, vector

Metric = Literal["identity", "logit"] | Callable[[Floats], ArrayLike]
METRICS = ("identity", "logit")

# Weights stay in [−1, 1], so levels that are 2 or more apart do not constrain each other.
_FAR = 2.0

# Smaller masses are near what floats hold with fewer digits, or not at all.
_TINY = 1e-290


@dataclass(frozen=True, eq=False)
class ErrorWeights(Witness):
    """Weights ω_i of the levels that attain the expected calibration error of an order.

    Below, Hölder: Σ r_i ω_i / ‖ω‖ with (Σ w_i |ω_i|^p')^(1/p'), 1/p + 1/p' = 1, for the norm (p = 1: the largest
    |ω_i|). Above, the definition. For p = ∞ masses do not count: a mean of errors is no more than the largest. Masses
    below 1e-290, which are not normal numbers or nearly so, count as 0 below and as 1e-290 above.

    Attributes
    ----------
    predictions, weights : (k,) floats
        v_i and ω_i; for order 1 the sign of each residual.
    """

    side = "both"
    about = ("ece",)

    predictions: Floats
    weights: Floats
    order: float = 1.0

    def bound(self, gamma: JointDistribution) -> Bracket:
        omega = vector("ErrorWeights.weights", self.weights, gamma.levels)
        p = number("ErrorWeights", "order", self.order, 1.0)
        errors = gamma.means - gamma.predictions
        w = gamma.mass if p < math.inf else np.ones(gamma.levels)
        used, lower = np.maximum(w, _TINY), 0.0
        if omega.any():
            omega = omega / np.abs(omega).max()
            dual = math.inf if p == 1.0 else 1.0 if p == math.inf else p / (p - 1.0)
            lower = fsum(np.where(w < _TINY, 0.0, w) * errors * omega) / _norm(used, omega, dual)
        return between(lower, _norm(used, errors, p))

    def __str__(self) -> str:
        over, under = int((self.weights > 0.0).sum()), int((self.weights < 0.0).sum())
        text = f"outcomes exceed predictions at {number_of(over, 'level')}, fall short of them at {under}"
        if self.order != 1.0:
            i = int(np.argmax(np.abs(self.weights)))
            text += f"; the largest weight is at v = {self.predictions[i]:.6g}"
        return text


def _norm(w: Floats, x: Floats, p: float) -> float:
    """(Σ w_i |x_i|^p)^(1/p), scaled by the largest |x_i|: a high power of a small one would vanish."""
    size = np.abs(x)
    largest = float(size.max())
    if p == math.inf or largest == 0.0:
        return largest
    return largest * fsum(w * (size / largest) ** p) ** (1.0 / p)


@dataclass(frozen=True, eq=False)
class LipschitzWeights(Witness):
    """Weights ω_i that attain a smooth calibration error: Σ r_i ω_i for |ω_i| ≤ 1 that are Lipschitz in v.

    Others are cut to [−1, 1] and lowered to where they are. They bound interval calibration below, too.

    Attributes
    ----------
    predictions, weights : (k,) floats
        v_i and ω_i.
    metric :
        h as in `smooth_ce`: neighbouring weights differ by at most h(v_{i+1}) − h(v_i).
    measure : {"smooth_ce", "earthmover_distance", "interval_ce_bracket"}
        For the second they may differ by 2 (v_{i+1} − v_i).
    """

    side = "lower"
    about = ("smooth_ce", "earthmover_distance", "interval_ce_bracket")

    predictions: Floats
    weights: Floats
    metric: Metric = "identity"
    measure: str = "smooth_ce"

    def bound(self, gamma: JointDistribution) -> float:
        omega = np.clip(vector("LipschitzWeights.weights", self.weights, gamma.levels), -1.0, 1.0)
        return fsum(gamma.residuals * lowered(omega, apart_of(gamma, self.metric, self.measure)))

    def __str__(self) -> str:
        low, high = int(np.argmin(self.weights)), int(np.argmax(self.weights))
        slope = 2 if self.measure == "earthmover_distance" else 1
        return (
            f"weights on {len(self.weights)} levels, {slope}-Lipschitz in the {_named(self.metric)} metric, from "
            f"{self.weights[low]:+.4g} at v = {self.predictions[low]:.4g} to {self.weights[high]:+.4g} "
            f"at v = {self.predictions[high]:.4g}"
        )


@dataclass(frozen=True, eq=False)
class CancelledResiduals(Witness):
    """Residuals carried to other levels, where they cancel, at the price of the distance: they bound every weight.

    With P_i = r_1 + … + r_i and any g_1, …, g_{k−1}, carrying P_i − g_i from level i to i + 1 leaves the residuals
    g_i − g_{i−1} (g_0 = 0, g_k = P_k). A weight ω with |ω_i| ≤ 1 sees at most Σ |g_i − g_{i−1}| of these. A
    residual that is carried changes for it by at most the distance: Σ |P_i − g_i| d(v_i, v_{i+1}).

    Attributes
    ----------
    left : (k − 1,) floats
        g_i, the residuals left at the levels up to i, in sum.
    metric, measure :
        As in `LipschitzWeights`.
    """

    side = "upper"
    about = ("smooth_ce", "earthmover_distance")

    left: Floats
    metric: Metric = "identity"
    measure: str = "smooth_ce"

    def bound(self, gamma: JointDistribution) -> float:
        left = vector("CancelledResiduals.left", self.left, gamma.levels - 1)
        prefix = running(gamma.residuals)
        kept = fsum(np.abs(np.diff(left, prepend=0.0, append=prefix[-1])))
        return kept + fsum(np.abs(prefix[:-1] - left) * apart_of(gamma, self.metric, self.measure))

    def __str__(self) -> str:
        left = np.concatenate(([0.0], self.left))
        stay = float(np.abs(np.diff(left)).sum())
        return (
            "residuals of neighbouring levels cancelled against each other, at the price of their distance in the "
            f"{_named(self.metric)} metric; up to the last level {stay:.4g} is left uncancelled"
        )


def apart_of(gamma: JointDistribution, metric: Metric, measure: str = "smooth_ce") -> Floats:
    """By how much neighbouring weights may differ."""
    if measure == "smooth_ce":
        return distances(gamma, metric)
    return (2.0 if measure == "earthmover_distance" else 1.0) * np.diff(gamma.predictions)


@kernel
def lowered(values, apart):
    """The largest function below the values that changes by at most `apart` from each level to the next."""
    out = values.copy()
    for i in range(1, len(out)):
        out[i] = min(out[i], out[i - 1] + apart[i - 1])
    for i in range(len(out) - 2, -1, -1):
        out[i] = min(out[i], out[i + 1] + apart[i])
    return out


def _named(metric: Metric) -> str:
    return metric if isinstance(metric, str) else "given"


def distances(gamma: JointDistribution, metric: Metric) -> Floats:
    """d(v_i, v_{i+1}); infinite ones, where h is infinite at an end, are cut to 2, which leaves weights as free."""
    return np.minimum(steps_of(metric, gamma.predictions), _FAR)


def steps_of(metric: Metric, v: Floats) -> Floats:
    """h(v_{i+1}) − h(v_i) of ascending predictions; only at an end may h be infinite."""
    if callable(metric):
        return _steps_given(metric, v)
    if not isinstance(metric, str) or metric not in METRICS:  # arrays compare with words in ways of their own
        raise InvalidParameter(f"metric = {metric!r}; expected 'identity', 'logit' or an increasing function")
    if metric == "identity":
        return np.diff(v)
    # log1p of (odds ratio − 1) keeps digits that logit v_{i+1} − logit v_i cancels between neighbours.
    # A level below 1e-300 may overflow the quotient: then the distance is far above 2 all the same.
    with np.errstate(divide="ignore", over="ignore"):
        return np.log1p(np.diff(v) / (v[:-1] * (1.0 - v[1:])))


def _steps_given(metric: Any, v: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        h = validation.vector("metric(v)", metric(v), InvalidParameter)
    if h.shape != v.shape:
        raise InvalidParameter(f"metric(v) has shape {h.shape}; expected a number per prediction, {v.shape}")
    with np.errstate(invalid="ignore"):
        steps = np.diff(h)
    # Neighbouring floats may have the same h, or change places where h is rounded, as by `np.cbrt`.
    rises = (steps >= 0.0) | ((steps < 0.0) & np.isclose(h[1:], h[:-1], 1e-15, 0.0))
    if np.isnan(h).any() or not rises.all():
        at = float(v[int(np.argmin(rises)) if len(steps) else 0])
        raise InvalidParameter(f"metric(v) does not increase at v = {at!r}; expected an increasing function")
    return np.maximum(steps, 0.0)


@dataclass(frozen=True)
class Interval(Witness):
    """The interval of predictions with the largest bias, for step calibration from 0 on; all are compared.

    With the sums P_j = r_1 + … + r_j, P_0 = 0, the bias of an interval is a difference of two of them. That up to a
    threshold is one of them.

    Attributes
    ----------
    lower, upper : float
        Both ends belong to it; lower > upper is the empty interval.
    sign : {1, -1}
        Whether outcomes exceed predictions in it, or fall short of them.
    measure : {"cutoff_ce", "step_ce"}
    """

    side = "both"
    about = ("cutoff_ce", "step_ce")

    lower: float
    upper: float
    sign: int
    measure: str

    def bound(self, gamma: JointDistribution) -> Bracket:
        v, prefix, step = gamma.predictions, running(gamma.residuals), self.measure == "step_ce"
        low, high = min(float(prefix.min()), 0.0), max(float(prefix.max()), 0.0)
        first, last = (
            number("Interval", name, getattr(self, name), -math.inf) for name in ("lower", "upper")
        )
        inside = (v <= last) & (step or v >= first)
        return between(abs(fsum(gamma.residuals[inside])), max(-low, high) if step else high - low)

    def __str__(self) -> str:
        if self.lower > self.upper:
            return "the empty interval: none is biased"
        verb = "exceed" if self.sign > 0 else "fall short of"
        return f"outcomes {verb} predictions on [{self.lower:.6g}, {self.upper:.6g}]; none has a larger bias"


@dataclass(frozen=True)
class Moment(Witness):
    """The largest moment E[(y − v) v^order] of the residual; those of orders 0 to `degree` are all compared."""

    side = "both"
    about = ("low_degree_ce",)

    order: int
    degree: int

    def bound(self, gamma: JointDistribution) -> Bracket:
        degree = integer("Moment", "degree", self.degree, 0, 1000)
        order = integer("Moment", "order", self.order, 0, degree)
        moments = [abs(fsum(gamma.residuals * gamma.predictions**j)) for j in range(degree + 1)]
        return Bracket(moments[order], max(moments))

    def __str__(self) -> str:
        return f"the moment of order {self.order} of the residual, E[(y − v) v^{self.order}]"
