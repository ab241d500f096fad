"""Recalibrating forecasters by name, made fit for a stream of unknown length."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.core.strategy import strategy_name
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
from onlinecal.recalibration.refitted import Refitted

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
#: kinds of context that a base forecast gives
GIVEN = frozenset({"base", "stream"})


def method(
    forecaster: str | Mapping[str, Any] | Forecaster, *, bins: int | None = None, horizon: int | None = None
) -> Forecaster:
    """A forecaster that recalibrates."""
    found = _named(forecaster)
    if bins is not None:
        count("bins", bins, most=10**4)
    missing = sorted(found.needs - GIVEN)
    if missing:
        raise InvalidParameter(
            f"forecaster {strategy_name(found)!r} needs {', '.join(missing)}, which forecasts of somebody do not tell"
        )
    if isinstance(found, Refitted) and found.of != "smooth" and importlib.util.find_spec("sklearn") is None:
        raise InvalidParameter(
            f"{found.of!r} is fitted by scikit-learn, which is not installed; install it (pip install scikit-learn)"
        )
    if bins is None and "base" not in found.needs and "stream" not in found.needs:
        # It would forget the base forecast: that is no recalibration.
        raise InvalidParameter(
            f"forecaster {strategy_name(found)!r} does not look at the base forecast; expected `bins`, which gives "
            "each bin of the base forecast a copy of its own"
        )
    if bins is None and "stream" in found.needs:
        raise InvalidParameter(f"forecaster {strategy_name(found)!r} needs streams; expected `bins`")
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
    options = {key: value for key, value in table.items() if key != "name"}
    name = table["name"]
    if name in METHODS and not options:
        return METHODS[name]
    if name in METHODS and name not in FORECASTERS:
        raise InvalidParameter(
            f"{name!r} takes no parameters here; expected the forecaster {strategy_name(METHODS[name])!r}"
        )
    if name not in FORECASTERS and ":" not in name:
        raise UnknownName.of("forecaster", name, {*METHODS, *FORECASTERS})
    found: Forecaster = strategy_of("forecaster", name, options)
    return found
