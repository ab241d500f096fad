"""Recalibrating forecasters by name, made fit for a stream of unknown length; batch methods that are fitted again."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from onlinecal.core.errors import InvalidParameter, meant
from onlinecal.core.specification import allow, number, word
from onlinecal.core.strategy import named_table, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import count
from onlinecal.engine.seats import Round
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
from onlinecal.recalibration.maps import FITS, RecalibrationMap


@dataclass(frozen=True)
class Refitted(Forecaster):
    """A batch method of recalibration, fitted again to all known outcomes whenever they have grown by a factor.

    Until there are two outcomes of different kinds it says the base forecast itself. Where base forecasts give all
    outcomes a probability below 5 %, it is fitted to them. Targets and imagined outcomes keep it from 0 and 1.

    Guarantee: None proved.

    Information: Needs the context ``base``. Keeps all rounds; time of a fit of n a round divided by n·(growth − 1).

    Source: Zadrozny and Elkan 2002; Platt 1999; Błasiok and Nakkiran 2024. Deviations: the imagined outcome of isotonic
    regression.

    Parameters
    ----------
    of : {"isotonic", "platt", "smooth", "venn_abers"}
        "isotonic": isotonic regression of the outcomes and of one more. One half of that is a 1 at the forecast 0, the
        other a 0 at the forecast 1: no value is 0 or 1. "platt": Platt scaling, a logistic regression of Platt's
        targets on the log odds of the base forecast, without a penalty. Forecasts are taken into [1e-6, 1 − 1e-6].
        "smooth": that of Błasiok and Nakkiran 2024, Theorem 20, with its random shift in expectation: the mean of κ(p)
        (`SmoothRecalibration.mean`). "venn_abers": the merged probability of both isotonic regressions
        (`onlinecal.fit_recalibration`).
    growth : float, default 1.1
        In [1.0001, 2]. A fit has at least this multiple of the known outcomes of the fit before, and at least one more.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"base"})
    deterministic: ClassVar[bool | None] = True
    needs_horizon: ClassVar[bool | None] = False
    safe_under_delay: ClassVar[bool | None] = True
    memory: ClassVar[str | None] = "O(T)"
    version: ClassVar[int] = 6  # outcomes of one kind that the base forecast makes unlikely are fitted

    allowed = allow(of=word(*FITS), growth=number(1.0001, 2.0))

    of: Literal["isotonic", "platt", "smooth", "venn_abers"]
    growth: float = 1.1

    def start(self, horizon: int, stream: Stream) -> "_Refitted":
        """Starts a player that says what it is told until it has learnt."""
        return _Refitted(self)


class _Refitted:
    """One run: the base forecasts and outcomes that are known, and the map that was fitted last."""

    def __init__(self, spec: Refitted) -> None:
        self.spec, self.next = spec, 2
        self.base: list[float] = []
        self.outcomes: list[float] = []
        self.map: RecalibrationMap | None = None

    def forecast(self, round: Round) -> float:
        base = round.context["base"]
        return base if self.map is None else float(self.map(np.array([base]))[0])

    def update(self, forecast: float, outcome: int, round: Round) -> None:
        self.base.append(round.context["base"])
        self.outcomes.append(float(outcome))
        known = len(self.base)
        if known >= self.next:
            self.next = max(known + 1, math.ceil(known * self.spec.growth))
            p, y = np.array(self.base), np.array(self.outcomes)
            if y.min() != y.max() or np.abs(1.0 - y - p).prod() < UNLIKELY:
                self.map = FITS[self.spec.of](p, y, np.ones(known))


#: outcomes of one kind alone refute base forecasts that give them less
UNLIKELY = 0.05
#: the default method; `docs/recalibrate.md` states its proved bounds
DEFAULT = "aggregated"
#: the ridge of both scalings: with that of the source, 1, a few rows move slope and shift anywhere
RIDGE = 100.0
#: short names beside those of the forecasters
METHODS: Mapping[str, Forecaster] = {
    "aggregated": ExpertAggregation((Unchanged(), Calibeating(), OnlinePlatt(rate=1.0), OnlinePlatt())),
    "calibeating": Calibeating(),
    "platt": OnlinePlatt(ridge=RIDGE),
    "tracking": TrackingPlatt(ridge=RIDGE),
    "isotonic_refitted": Refitted("isotonic"),
    "platt_refitted": Refitted("platt"),
    "smooth_refitted": Refitted("smooth"),
    "venn_abers_refitted": Refitted("venn_abers"),
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
        raise InvalidParameter(f"forecaster {name} needs {', '.join(missing)}, which forecasts do not tell")
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
    expected = "a name, a table of a name and parameters, or a Forecaster"
    name, options = named_table("forecaster =", forecaster, expected)
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
