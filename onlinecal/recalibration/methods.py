"""Recalibrating forecasters by name, made fit for a stream of unknown length; batch methods that are fitted again."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter, meant
from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import check_number, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import count
from onlinecal.forecasters import (
    FORECASTERS,
    Calibeating,
    Doubling,
    ExpertAggregation,
    Forecaster,
    OnlinePlatt,
    Separate,
    TrackingPlatt,
    Unchanged,
)
from onlinecal.naming import strategy_of
from onlinecal.recalibration.smoothing import smooth_recalibration
from onlinecal.rounds.plain import Round

Floats = NDArray[np.float64]
#: forecasts ↦ recalibrated ones
Map = Callable[[Floats], Any]


@dataclass(frozen=True)
class Refitted(Forecaster):
    """A batch method of recalibration, fitted again to all known outcomes whenever they have grown by a factor.

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


def _isotonic(p: Floats, y: Floats) -> Map:
    from sklearn.isotonic import IsotonicRegression

    weights = np.concatenate([np.ones(len(p)), [0.5, 0.5]])
    fitted = IsotonicRegression().fit(np.append(p, [0.0, 1.0]), np.append(y, [1.0, 0.0]), weights)
    points = np.asarray(fitted.X_thresholds_, np.float64)
    return partial(np.interp, xp=points, fp=np.asarray(fitted.y_thresholds_, np.float64))


def _platt(p: Floats, y: Floats) -> Map:
    from sklearn.linear_model import LogisticRegression

    # Of each outcome in two shares, since scikit-learn takes no targets between 0 and 1.
    odds, kinds, shares = np.tile(_log_odds(p), 2)[:, None], np.repeat([1.0, 0.0], len(p)), _targets(y)
    fitted = LogisticRegression(C=np.inf, max_iter=1000).fit(odds, kinds, np.append(shares, 1.0 - shares))
    return partial(_sigmoid, slope=float(fitted.coef_[0, 0]), shift=float(fitted.intercept_[0]))


def _sigmoid(base: Floats, slope: float, shift: float) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-(slope * _log_odds(base) + shift))))


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
    "isotonic": _isotonic, "sigmoid": _platt, "smooth": _smooth,
}  # fmt: skip

#: the default method; `docs/forecasts.md` states its proved bounds
DEFAULT = "aggregated"
#: short names beside those of the forecasters
METHODS: Mapping[str, Forecaster] = {
    "aggregated": ExpertAggregation((Unchanged(), Calibeating(), OnlinePlatt(rate=1.0), OnlinePlatt())),
    "calibeating": Calibeating(),
    "platt": OnlinePlatt(),
    "tracking": TrackingPlatt(),
    "isotonic_refitted": Refitted("isotonic"),
    "platt_refitted": Refitted("sigmoid"),
    "smooth_refitted": Refitted("smooth"),
}


def method(
    forecaster: str | Mapping[str, Any] | Forecaster, *, bins: int | None = None, horizon: int | None = None
) -> Forecaster:
    """A forecaster that recalibrates."""
    found = _named(forecaster)
    if bins is not None:
        count("bins", bins, most=10**4)
    name = repr(strategy_name(found))
    if missing := sorted(found.needs - {"base", "stream"}):
        raise InvalidParameter(
            f"forecaster {name} needs {', '.join(missing)}, which forecasts of somebody do not tell"
        )
    if isinstance(found, Refitted) and found.of != "smooth" and importlib.util.find_spec("sklearn") is None:
        raise InvalidParameter(
            f"{found.of!r} is fitted by scikit-learn, which is not installed; install it (pip install scikit-learn)"
        )
    if bins is None and not found.needs:
        # It would forget the base forecast: that is no recalibration.
        raise InvalidParameter(
            f"forecaster {name} does not look at the base forecast; expected `bins`, which gives each bin of the base "
            "forecast a copy of its own"
        )
    if bins is None and "stream" in found.needs:
        raise InvalidParameter(f"forecaster {name} needs streams; expected `bins`")
    if horizon is None and found.needs_horizon is True:
        found = Doubling(found)
    return found if bins is None else Separate(found)


def _named(forecaster: Any) -> Forecaster:
    if isinstance(forecaster, Forecaster):
        return forecaster
    table = {"name": forecaster} if isinstance(forecaster, str) else forecaster
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        raise InvalidParameter(
            f"forecaster = {forecaster!r}; expected a name, a table of a name and parameters, or a Forecaster"
        )
    options, name = {key: value for key, value in table.items() if key != "name"}, table["name"]
    if ":" not in name:
        name = meant("forecaster", name, {**METHODS, **FORECASTERS})
    if name in METHODS and not options:
        return METHODS[name]
    if name in METHODS and name not in FORECASTERS:
        raise InvalidParameter(
            f"{name!r} takes no parameters here; expected the forecaster {strategy_name(METHODS[name])!r}"
        )
    found: Forecaster = strategy_of("forecaster", name, options)
    return found
