"""Calibration as forecasts come in: data, then drawing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import integer, number, vector
from onlinecal.forecasts.evaluation import evaluate
from onlinecal.forecasts.table import Evaluation
from onlinecal.monitoring.sequences import RunningBias, running_bias
from onlinecal.report.panels import Picture, joined, of_gammas, pictured
from onlinecal.report.style import GREY, paper, plain, tick

Floats = NDArray[np.float64]

#: numbers of forecasts at which a measure is taken, and the least
TIMES, FIRST = 25, 20
#: draws for each interval
DRAWS = 200


class RunningMeasure(NamedTuple):
    """A measure of the forecasts up to each round, of all or of a window; `lower` to `upper` is its bracket."""

    name: str
    rounds: NDArray[np.int64]
    window: int | None
    lower: Floats
    upper: Floats
    #: (2, n), NaN where there is none, and why there is none anywhere
    interval: Floats
    why: str
    level: float


def running_measure(
    p: ArrayLike, y: ArrayLike, measure: Any, *, window: int | None = None, level: float = 0.95, seed: int = 0
) -> RunningMeasure:
    """`evaluate` of the first forecasts, or of those in each window."""
    JointDistribution.from_samples(p, y)  # checks them
    p, y = vector("p", p), vector("y", y)
    least = FIRST if window is None else integer("trajectory", "window", window, 2)
    if len(p) < least:
        raise InvalidData(f"trajectory: {len(p)} forecasts; expected {least} or more for a measure of them")
    last = np.unique(np.linspace(least, len(p), TIMES).round().astype(np.int64))
    rows: list[Any] = []
    for end in last.tolist():
        part = slice(0 if window is None else end - window, end)
        rows += evaluate(
            p[part], y[part], measures=[measure], bootstrap=DRAWS if level else 0, level=level, seed=seed
        ).rows
    interval = np.array([row.interval or (np.nan, np.nan) for row in rows]).T
    why = "" if np.isfinite(interval).any() or not level else rows[-1].interval_by.removeprefix("none: ")
    lower, upper = np.array([row.ends for row in rows]).T
    return RunningMeasure(rows[0].name, last, window, lower, upper, interval, why, level)


@pictured
def plot_trajectory(
    p: ArrayLike,
    y: ArrayLike | None = None,
    *,
    measure: Any = None,
    window: int | None = None,
    band: float | None = 0.95,
) -> Picture:
    """Calibration over time: the running total of outcome − prediction, or a measure of the forecasts so far.

    Parameters
    ----------
    p, y : (n,) array_like
        Predictions and outcomes (0 or 1) in the order in which they were made.
    measure : str, table or callable, optional
        One measure, as in `evaluate`. Default: the running total of y − p.
    window : int, optional
        A measure of so many last forecasts instead of all so far, by which drift is seen.
    band : float or None, default 0.95
        Of the total: it is left at any time with probability at most 1 − `band` if every outcome has the probability
        predicted (`forecasts.running.running_bias`). Of a measure: intervals, each by itself, as in `evaluate`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_trajectory([0.5] * 40, [0, 1] * 20)
    >>> ax.get_ylabel()
    'Σ (outcome − prediction)'
    """
    level = number("trajectory", "band", 0.0 if band is None else band, 0.0, 1.0)
    if isinstance(p, JointDistribution | Evaluation):
        raise InvalidData(
            "trajectory: a JointDistribution has no order in time; expected the predictions p and the outcomes y"
        )
    if y is None:
        raise InvalidData("trajectory: y is missing; expected the outcomes of the predictions p")
    drawn: Any
    if measure is None:
        drawn = running_bias(p, y, level=level)
        caption = joined(
            "Line: the total of outcome − prediction of the forecasts so far; it falls where they are too high.",
            f"Band: what the total leaves at any time with probability {1.0 - level:.2g} at most if every outcome has "
            "the probability predicted, whatever the predictions depend on." * bool(level),
            f"Mark: where it is first seen outside, by forecast {drawn.left:,}."
            if level and drawn.left
            else "",
        )
    else:
        drawn = running_measure(p, y, measure, window=window, level=level)
        whose = "all forecasts so far" if window is None else f"the last {window:,} forecasts"
        caption = joined(
            f"Line: {drawn.name} of {whose}; two lines are the ends of what is certain.",
            f"Band: {level:.0%} intervals, each by itself, for the same of what the forecasts were drawn from "
            "independently; where there is none, too few forecasts share a level."
            * bool(level and not drawn.why),
            f"No intervals: {drawn.why}." * bool(drawn.why),
        )
    return of_gammas(None, [drawn], lambda axis, _, one, __: _draw_trajectory(axis, one), [""], caption, 0.6)


def _draw_trajectory(axis: Axes, drawn: RunningBias | RunningMeasure) -> None:
    blue, red = paper(axis).colours[:2]
    across = "forecasts"
    if isinstance(drawn, RunningBias):
        axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
        if drawn.level:
            axis.fill_between(
                drawn.rounds, drawn.lower, drawn.upper, color=GREY, alpha=0.25, linewidth=0, zorder=1.0
            )
        axis.plot(drawn.rounds, drawn.total, color=blue, linewidth=1.3, zorder=2.0)
        if drawn.level and drawn.left is not None:
            at = int(np.searchsorted(drawn.rounds, drawn.left))
            axis.plot(drawn.rounds[at], drawn.total[at], color=red, marker="o", markersize=5.5, zorder=3.0)
        up = "Σ (outcome − prediction)"
    else:
        axis.fill_between(drawn.rounds, *drawn.interval, color=blue, alpha=0.2, linewidth=0)
        for values in (drawn.lower, drawn.upper)[: 1 + int((drawn.lower < drawn.upper).any())]:
            axis.plot(drawn.rounds, values, color=blue, marker="o", markersize=3, linewidth=1.3)
        if min(drawn.lower.min(), np.nanmin(np.append(drawn.interval, np.inf))) >= 0.0:
            axis.set_ylim(bottom=0.0)
        up, across = drawn.name, "forecasts" if drawn.window is None else "last forecast"
    axis.set_xlim(0, drawn.rounds[-1])
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axis.yaxis.set_major_locator(MaxNLocator(5))
    for which in (axis.xaxis, axis.yaxis):
        which.set_major_formatter(FuncFormatter(tick))
    plain(axis, across, up)
