"""How long a game is, when it is looked at, and times on its clock."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import integer, is_number
from onlinecal.engine.law import brief

#: the longest game: level counts and the clock stay exact far beyond, patience does not
LONGEST = 10**9


def check_horizon(horizon: Any) -> None:
    """Refuses a horizon that is not an integer from 1 to 10^9."""
    integer("", "horizon", horizon, 1, LONGEST)


def check_runs(runs: Any) -> None:
    """Refuses anything but a range of runs, and an empty one."""
    if not isinstance(runs, range) or not runs:
        raise InvalidParameter(
            f"runs = {brief(runs)}; expected a range: the numbers of the runs to be played, at least one"
        )


def check_time(time: Any, least: float = -math.inf) -> float:
    """Refuses anything but a time on a clock, and one before `least`."""
    if not is_number(time) or not math.isfinite(time) or time < least:
        after = "" if least == -math.inf else f", {least} or later"
        raise InvalidParameter(f"time = {time!r}; expected a finite number{after}")
    return float(time)


def checkpoints(horizon: int, per_decade: int = 8) -> list[int]:
    """Geometric times from 10 up to and including the horizon: `per_decade` for each factor of ten.

    >>> checkpoints(1000, per_decade=2)
    [10, 32, 100, 316, 1000]
    """
    check_horizon(horizon)
    steps = int(np.floor(per_decade * np.log10(max(horizon, 10) / 10) + 1e-9))
    times = {round(10 * 10 ** (i / per_decade)) for i in range(steps + 1)}
    return sorted({t for t in times if t < horizon} | {int(horizon)})
