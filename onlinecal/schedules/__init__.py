"""Schedules: when questions are asked and when their outcomes become known."""

from collections.abc import Mapping
from typing import Any

from onlinecal.core.strategy import build, named_table, registry
from onlinecal.core.validation import is_number
from onlinecal.schedules.base import Arrivals, Clock, Constant, Delays, EveryUnit, Schedule
from onlinecal.schedules.kinds import Bursts, ByOutcome, Geometric, Pareto, Poisson, Recorded, Scheduled

ARRIVALS = registry((EveryUnit, Poisson, Bursts, Scheduled))
"""The arrival processes by name."""

DELAYS = registry((ByOutcome, Constant, Geometric, Pareto, Recorded))
"""The kinds of delay by name."""


def as_arrivals(spec: Any) -> Arrivals:
    """Arrivals from what stands in a scenario: a name, a table with a name and parameters, or the thing itself."""
    if isinstance(spec, Arrivals):
        return spec
    name, options = named_table("arrivals =", spec, "a name, or a table with a name")
    return build("arrival process", ARRIVALS, name, options)


def as_delays(spec: Any) -> Delays:
    """Delays from what stands in a scenario: as `as_arrivals`, or a number, which is a constant delay.

    >>> as_delays(10), as_delays("geometric")
    (Constant(delay=10), Geometric(mean=10.0))
    """
    if isinstance(spec, Delays):
        return spec
    if is_number(spec):
        return Constant(spec)
    name, options = named_table("delay =", spec, "a number, a name, or a table with a name")
    nested = {k: as_delays(v) if isinstance(v, Mapping) else v for k, v in options.items()}
    return build("delay", DELAYS, name, nested)


__all__ = [
    "ARRIVALS", "DELAYS", "Arrivals", "Bursts", "ByOutcome", "Clock", "Constant", "Delays", "EveryUnit", "Geometric",
    "Pareto", "Poisson", "Recorded", "Schedule", "Scheduled", "as_arrivals", "as_delays",
]  # fmt: skip
