"""Recalibration that is fitted anew to all that is known, from time to time: what is usually done in one batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import check_number
from onlinecal.core.streams import Stream
from onlinecal.forecasters.base import Forecaster
from onlinecal.recalibration.smoothing import smooth_recalibration
from onlinecal.rounds.plain import Round

Floats = NDArray[np.float64]
#: forecasts ↦ recalibrated ones
Map = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Refitted(Forecaster):
    """A batch method of recalibration, fitted anew to all known outcomes whenever there are so many times more of them.

    Until there are two outcomes of different kinds it says the base forecast itself.

    Parameters
    ----------
    of : {"isotonic", "sigmoid", "smooth"}
        "isotonic": isotonic regression (scikit-learn's `IsotonicRegression`) of the outcomes and of one more, of which
        one half is a 1 at the forecast 0 and the other a 0 at the forecast 1: no value is 0 or 1. "sigmoid": Platt
        scaling, a logistic regression on the log odds of the base forecast without a penalty (scikit-learn's
        `LogisticRegression`), of forecasts taken into [1e-6, 1 − 1e-6]. "smooth": that of Błasiok and
        Nakkiran 2024, Theorem 20, with its random shift in expectation: the mean of κ(p) (`SmoothRecalibration.mean`).
    growth : float, default 1.1
        In [1.0001, 2]: it is fitted when there are as many times more known outcomes than at the last fit, and at least
        one.

    Guarantee
    ---------
    None proved.

    Information
    -----------
    Needs the context ``base``. Keeps all rounds; time of a fit of n a round divided by n·(growth − 1).

    Source
    ------
    Zadrozny and Elkan 2002; Platt 1999; Błasiok and Nakkiran 2024. Deviations: the imagined
    outcome of isotonic regression.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"base"})
    deterministic: ClassVar[bool | None] = True
    needs_horizon: ClassVar[bool | None] = False
    safe_under_delay: ClassVar[bool | None] = True
    memory: ClassVar[str | None] = "O(T)"
    version: ClassVar[int] = 2

    of: Literal["isotonic", "sigmoid", "smooth"]
    growth: float = 1.1

    def __post_init__(self) -> None:
        if self.of not in _FITS:
            raise InvalidParameter(f"of = {self.of!r}; expected one of {', '.join(map(repr, _FITS))}")
        check_number("growth", self.growth, 1.0001, 2.0)

    def start(self, horizon: int, stream: Stream) -> _Refitted:
        """Starts a player that says what it is told until it has learnt."""
        return _Refitted(self)


class _Refitted:
    """One run: the base forecasts and outcomes that are known, and the map that was fitted last."""

    def __init__(self, spec: Refitted) -> None:
        self.spec, self.next = spec, 2
        self.base: list[float] = []
        self.outcomes: list[float] = []
        self.map: Map | None = None

    def forecast(self, round: Round) -> float:
        base = round.context["base"]
        value = base if self.map is None else float(self.map(np.array([base]))[0])
        return min(max(value, 0.0), 1.0)

    def update(self, forecast: float, outcome: int, round: Round) -> None:
        self.base.append(round.context["base"])
        self.outcomes.append(float(outcome))
        known = len(self.base)
        if known >= self.next:
            self.next = max(known + 1, math.ceil(known * self.spec.growth))
            if min(self.outcomes) != max(self.outcomes):
                self.map = _FITS[self.spec.of](np.array(self.base), np.array(self.outcomes))


@dataclass(frozen=True, eq=False)
class _Line:
    """Linear between points, and constant outside of them."""

    points: Floats
    values: Floats

    def __call__(self, base: Floats) -> Floats:
        return np.asarray(np.interp(base, self.points, self.values))


@dataclass(frozen=True)
class _Sigmoid:
    """A logistic function of the log odds."""

    slope: float
    shift: float

    def __call__(self, base: Floats) -> Floats:
        return np.asarray(1.0 / (1.0 + np.exp(-(self.slope * _log_odds(base) + self.shift))))


def _isotonic(p: Floats, y: Floats) -> Map:
    from sklearn.isotonic import IsotonicRegression

    weights = np.concatenate([np.ones(len(p)), [0.5, 0.5]])
    fitted = IsotonicRegression().fit(np.append(p, [0.0, 1.0]), np.append(y, [1.0, 0.0]), weights)
    return _Line(np.asarray(fitted.X_thresholds_, np.float64), np.asarray(fitted.y_thresholds_, np.float64))


def _platt(p: Floats, y: Floats) -> Map:
    from sklearn.linear_model import LogisticRegression

    # Of each outcome in two shares, since scikit-learn takes no targets between 0 and 1.
    odds, kinds, shares = np.tile(_log_odds(p), 2)[:, None], np.repeat([1.0, 0.0], len(p)), _targets(y)
    fitted = LogisticRegression(C=np.inf, max_iter=1000).fit(odds, kinds, np.append(shares, 1.0 - shares))
    return _Sigmoid(float(fitted.coef_[0, 0]), float(fitted.intercept_[0]))


def _targets(y: Floats) -> Floats:
    """Platt's targets in the place of outcomes, of which none is 0 or 1: (n₁ + 1)/(n₁ + 2) for 1, 1/(n₀ + 2) for 0."""
    ones = float(y.sum())
    return np.where(y == 1.0, (ones + 1.0) / (ones + 2.0), 1.0 / (len(y) - ones + 2.0))


def _log_odds(p: Floats) -> Floats:
    inner = np.clip(p, 1e-6, 1.0 - 1e-6)
    return np.asarray(np.log(inner) - np.log1p(-inner))


def _smooth(p: Floats, y: Floats) -> Map:
    return smooth_recalibration(JointDistribution.from_counts(p, np.ones(len(p)), _targets(y))).mean


_FITS: dict[str, Callable[[Floats, Floats], Map]] = {
    "isotonic": _isotonic,
    "sigmoid": _platt,
    "smooth": _smooth,
}
