"""Witnesses by weights of levels: of ECE, smooth, cutoff and step calibration, and moments of the residual."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core import validation
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import Floats, JointDistribution
from onlinecal.core.sums import running
from onlinecal.core.validation import choice, integer, number
from onlinecal.core.words import number_of
from onlinecal.measures.witnesses.base import WRONG, About, Bracket, Witness, between, same_levels, vector

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

    predictions: Floats
    weights: Floats
    order: float = 1.0

    @property
    def about(self) -> About:
        return {"ece": {"order": self.order}}

    def bound(self, gamma: JointDistribution) -> Bracket:
        same_levels("ErrorWeights.predictions", self.predictions, gamma)
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

    Let |ω_{i+1} − ω_i| exceed d(v_i, v_{i+1}) by E in sum over the levels. Taking that away changes no weight by
    more than E. So (Σ r_i ω_i − E Σ |r_i|) / (max |ω_i| + E) is proved.

    Attributes
    ----------
    predictions, weights : (k,) floats
        v_i and ω_i.
    metric, slope :
        d(u, v) = L |h(u) − h(v)|, h as in `smooth_ce`; L is 1 for `smooth_ce`, 2 for `earthmover_distance`.
    """

    side = "lower"

    predictions: Floats
    weights: Floats
    metric: Metric = "identity"
    slope: int = 1

    @property
    def about(self) -> About:
        known = _about(self.metric, self.slope)
        both: dict[str, Mapping[str, Any]] = {"interval_ce": {}, "interval_ce_bracket": {}}
        return known | both if known == {"smooth_ce": {"metric": "identity"}} else known

    def bound(self, gamma: JointDistribution) -> float:
        same_levels("LipschitzWeights.predictions", self.predictions, gamma)
        omega = vector("LipschitzWeights.weights", self.weights, gamma.levels)
        largest = float(np.abs(omega).max())
        if largest > 1.0 + WRONG:
            raise InvalidData(f"LipschitzWeights: the largest |weight| is {largest!r}; expected at most 1")
        excess = np.maximum(np.abs(np.diff(omega)) - _apart(gamma, self.metric, self.slope), 0.0)
        if excess.max(initial=0.0) > WRONG:
            i = int(np.argmax(excess))
            raise InvalidData(
                f"LipschitzWeights: weights[{i}] and weights[{i + 1}] differ by {excess[i]:g} more than v; "
                "expected at most as much"
            )
        r, broken = gamma.residuals, fsum(excess)
        return (fsum(r * omega) - broken * fsum(np.abs(r))) / max(1.0, largest + broken)

    def __str__(self) -> str:
        low, high = int(np.argmin(self.weights)), int(np.argmax(self.weights))
        return (
            f"weights on {len(self.weights)} levels, {self.slope}-Lipschitz in the {_named(self.metric)} metric, from "
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
    metric, slope :
        As in `LipschitzWeights`.
    """

    side = "upper"

    left: Floats
    metric: Metric = "identity"
    slope: int = 1

    @property
    def about(self) -> About:
        return _about(self.metric, self.slope)

    def bound(self, gamma: JointDistribution) -> float:
        left = vector("CancelledResiduals.left", self.left, gamma.levels - 1)
        prefix = running(gamma.residuals)
        kept = fsum(np.abs(np.diff(left, prepend=0.0, append=prefix[-1])))
        return kept + fsum(np.abs(prefix[:-1] - left) * _apart(gamma, self.metric, self.slope))

    def __str__(self) -> str:
        left = np.concatenate(([0.0], self.left))
        stay = float(np.abs(np.diff(left)).sum())
        return (
            "residuals of neighbouring levels cancelled against each other, at the price of their distance in the "
            f"{_named(self.metric)} metric; up to the last level {stay:.4g} is left uncancelled"
        )


def _about(metric: Metric, slope: int) -> dict[str, Mapping[str, Any]]:
    """The measures that Lipschitz weights bound; refuses other metrics and slopes."""
    metric = _metric(metric)
    if slope == 1:
        return {"smooth_ce": {"metric": metric}}
    if slope == 2 and metric == "identity":
        return {"earthmover_distance": {}}
    raise InvalidData(f"slope = {slope!r}; expected 1, or 2 in the identity metric")


def _apart(gamma: JointDistribution, metric: Metric, slope: int) -> Floats:
    """By how much neighbouring weights may differ."""
    _about(metric, slope)
    return slope * distances(gamma, metric)


def _metric(metric: Any) -> Metric:
    """A metric, or an error: neither tuples nor arrays, which compare with words in ways of their own."""
    if not callable(metric) and not (isinstance(metric, str) and metric in METRICS):
        raise InvalidParameter(f"metric = {metric!r}; expected 'identity', 'logit' or an increasing function")
    return metric


def _named(metric: Metric) -> str:
    return metric if isinstance(metric, str) else "given"


def distances(gamma: JointDistribution, metric: Metric) -> Floats:
    """d(v_i, v_{i+1}); infinite ones, where h is infinite at an end, are cut to 2, which leaves weights as free."""
    apart = steps_of(metric, gamma.predictions)
    return apart if isinstance(metric, str) and metric == "identity" else np.minimum(apart, _FAR)


def steps_of(metric: Metric, v: Floats) -> Floats:
    """h(v_{i+1}) − h(v_i) of ascending predictions; only at an end may h be infinite."""
    if callable(_metric(metric)):
        return _steps_given(metric, v)
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
    """An interval of predictions, and the sign of the outcomes' excess over the predictions in it.

    It proves sign × E[(y − v) 1(lower ≤ v ≤ upper)] below: of the cutoff calibration error, and from lower = 0 on of
    the step calibration error. Both ends belong to it; lower > upper is the empty interval.
    """

    side = "lower"

    lower: float
    upper: float
    sign: int

    @property
    def about(self) -> About:
        step = ("step_ce",) if self.lower == 0.0 or self.lower > self.upper else ()
        return {name: {} for name in ("cutoff_ce", *step)}

    def bound(self, gamma: JointDistribution) -> float:
        if self.sign not in (1, -1):
            raise InvalidData(f"Interval: sign = {self.sign!r}; expected 1 or -1")
        v = gamma.predictions
        return self.sign * fsum(gamma.residuals[(v >= self.lower) & (v <= self.upper)])

    def __str__(self) -> str:
        if self.lower > self.upper:
            return "the empty interval: no interval of predictions is biased"
        verb = "exceed" if self.sign > 0 else "fall short of"
        return f"outcomes {verb} predictions on [{self.lower:.6g}, {self.upper:.6g}]"


EMPTY = Interval(1.0, 0.0, 1)


@dataclass(frozen=True)
class PrefixSums(Witness):
    """A least and a greatest sum of residuals from the lowest prediction up to any threshold: P_j = r_1 + … + r_j.

    lower ≤ P_j ≤ upper for every j, P_0 = 0 included. The bias of an interval is the difference of two such sums,
    hence at most upper − lower. That below a threshold is one of them.
    """

    side = "upper"

    lower: float
    upper: float
    measure: Literal["cutoff_ce", "step_ce"]

    @property
    def about(self) -> About:
        return {choice("", "measure", self.measure, ("cutoff_ce", "step_ce")): {}}

    def bound(self, gamma: JointDistribution) -> float:
        lower, upper = (
            number("PrefixSums", name, getattr(self, name), -10.0, 10.0) for name in ("lower", "upper")
        )
        prefix = running(gamma.residuals)
        low, high = min(float(prefix.min()), 0.0), max(float(prefix.max()), 0.0)
        if max(lower - low, high - upper) > WRONG:
            raise InvalidData(
                f"PrefixSums: residuals sum to something from {low!r} to {high!r}; "
                f"expected all within [{lower!r}, {upper!r}]"
            )
        low, high = min(low, lower), max(high, upper)
        return max(-low, high) if "step_ce" in self.about else high - low

    def __str__(self) -> str:
        so = (
            "none is larger"
            if self.measure == "step_ce"
            else "an interval has the difference of two such sums"
        )
        return (
            f"up to every threshold, residuals sum to something in [{self.lower:.6g}, {self.upper:.6g}]; {so}"
        )


@dataclass(frozen=True)
class Moment(Witness):
    """The largest moment E[(y − v) v^order] of the residual; those of orders 0 to `degree` are all compared."""

    side = "both"

    order: int
    degree: int

    @property
    def about(self) -> About:
        return {"low_degree_ce": {"degree": self.degree}}

    def bound(self, gamma: JointDistribution) -> Bracket:
        degree = integer("Moment", "degree", self.degree, 0, 1000)
        order = integer("Moment", "order", self.order, 0, degree)
        moments = [abs(fsum(gamma.residuals * gamma.predictions**j)) for j in range(degree + 1)]
        return Bracket(moments[order], max(moments))

    def __str__(self) -> str:
        return f"the moment of order {self.order} of the residual, E[(y − v) v^{self.order}]"
