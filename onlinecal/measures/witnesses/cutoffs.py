"""Witnesses of cutoff and step calibration and of the moments: one interval, all prefix sums, one moment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import JointDistribution
from onlinecal.measures.witnesses.base import WRONG, Witness, number, whole, word
from onlinecal.measures.witnesses.sums import SLACK, UNIT, residuals, running, total


@dataclass(frozen=True)
class Interval(Witness):
    """An interval of predictions, and the sign of the outcomes' excess over the predictions in it.

    It proves sign × E[(y − v) 1(lower ≤ v ≤ upper)] below: of the cutoff calibration error, and from lower = 0 on of
    the step calibration error.

    Attributes
    ----------
    lower, upper : float
        Both ends belong to it. lower > upper is the empty interval.
    sign : {1, -1}
        1 where outcomes exceed predictions.
    """

    side = "lower"

    lower: float
    upper: float
    sign: int

    @property
    def about(self) -> Mapping[str, Mapping[str, Any]]:
        step = ("step_ce",) if self.lower == 0.0 or self.lower > self.upper else ()
        return {name: {} for name in ("cutoff_ce", *step)}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        if self.sign not in (1, -1):
            raise InvalidData(f"sign = {self.sign!r}; expected 1 or -1")
        v = gamma.predictions
        r = residuals(gamma)[(v >= self.lower) & (v <= self.upper)]
        return self.sign * total(r) - SLACK * total(np.abs(r)), math.inf

    def __str__(self) -> str:
        if self.lower > self.upper:
            return "the empty interval: no interval of predictions is biased"
        verb = "exceed" if self.sign > 0 else "fall short of"
        return f"outcomes {verb} predictions on [{self.lower:.6g}, {self.upper:.6g}]"


EMPTY = Interval(1.0, 0.0, 1)


@dataclass(frozen=True)
class PrefixSums(Witness):
    """A least and a greatest sum of residuals from the lowest prediction up to any threshold: P_j = r_1 + … + r_j.

    The bias of an interval is the difference of two such sums, hence at most upper − lower; that below a threshold is
    one of them.

    Attributes
    ----------
    lower, upper : float
        lower ≤ P_j ≤ upper for every j, P_0 = 0 included.
    measure : {"cutoff_ce", "step_ce"}
        Whether intervals or thresholds are bounded.
    """

    side = "upper"

    lower: float
    upper: float
    measure: Literal["cutoff_ce", "step_ce"]

    @property
    def about(self) -> Mapping[str, Mapping[str, Any]]:
        return {word("measure", self.measure, ("cutoff_ce", "step_ce")): {}}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        lower, upper = number("lower", self.lower), number("upper", self.upper)
        r = residuals(gamma)
        prefix = running(r)
        outside = max(lower - min(float(prefix.min()), 0.0), max(float(prefix.max()), 0.0) - upper, 0.0)
        if outside > WRONG:
            raise InvalidData(
                f"a sum of residuals is {outside!r} outside of [{lower!r}, {upper!r}]; expected none"
            )
        outside += SLACK * total(np.abs(r))
        thresholds = word("measure", self.measure, ("cutoff_ce", "step_ce")) == "step_ce"
        return -math.inf, max(-lower, upper) + outside if thresholds else upper - lower + 2.0 * outside

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
    """The largest moment E[(y − v) v^j] of the residual, among those of orders 0 to `degree`, which are all compared.

    Attributes
    ----------
    order : int
        j of the largest moment.
    degree : int
        The largest j that counts.
    """

    side = "both"

    order: int
    degree: int

    @property
    def about(self) -> Mapping[str, Mapping[str, Any]]:
        return {"low_degree_ce": {"degree": self.degree}}

    def _prove(self, gamma: JointDistribution) -> tuple[float, float]:
        degree = whole("degree", self.degree, 0, 1000)
        order = whole("order", self.order, 0, degree)
        r = residuals(gamma)
        slack = (SLACK + degree * UNIT) * total(np.abs(r))
        lower, upper, power = 0.0, 0.0, np.ones(gamma.levels)
        for j in range(degree + 1):
            moment = abs(total(r * power))
            upper = max(upper, moment)
            if j == order:
                lower = moment
            power = power * gamma.predictions
        return lower - slack, upper + slack

    def __str__(self) -> str:
        return f"the moment of order {self.order} of the residual, E[(y − v) v^{self.order}]"
