"""Calibration as forecasts come in: tables, then their picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from onlinecal.core.errors import InvalidData
from onlinecal.core.joint import JointDistribution, samples
from onlinecal.core.validation import integer, number
from onlinecal.forecasts.evaluation import evaluate
from onlinecal.forecasts.table import Evaluation
from onlinecal.monitoring.sequences import running_bias
from onlinecal.report.gammas import of_gammas
from onlinecal.report.panels import Picture, Place, joined, mark, pictured
from onlinecal.report.style import GREY, ticks

#: numbers of forecasts at which a measure is taken, and the least
TIMES, FIRST = 25, 20
#: draws for each interval
DRAWS = 200


def running_measure(
    p: ArrayLike, y: ArrayLike, measure: Any, *, window: int | None = None, level: float = 0.95, seed: int = 0
) -> tuple[str, dict[str, Any], str]:
    """The name of a measure, its values for the first forecasts or each window, and why it has no intervals.

    `low` to `high` is its bracket, `lower` to `upper` the interval of `evaluate`, or NaN.
    """
    p, y = samples(p, y)
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
    low, high = np.array([row.ends for row in rows]).T
    found = {"forecasts": last, "low": low, "high": high, "lower": interval[0], "upper": interval[1]}
    return rows[0].name, found, why


_STEP = mark("line", 0, marker="o", markersize=3, linewidth=1.3)
TRAJECTORIES = {
    "bound": [mark("band", GREY, alpha=0.25, zorder=1.0)],
    "bias": [mark("line", 0, linewidth=1.3, zorder=2.0)],
    "left": [mark("points", 1, marker="o", markersize=5.5, zorder=3.0)],
    "interval": [mark("band", 0, alpha=0.2)],
    "low": [_STEP],
    "high": [_STEP],
}


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
        A measure of this number of last forecasts instead of all so far, by which drift is seen.
    band : float or None, default 0.95
        Of the total: left at any time with probability at most 1 − `band`, if outcomes have the probability predicted.
        Of a measure: intervals, each by itself, as in `evaluate`.

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
    across, up = "forecasts", "Σ (outcome − prediction)"
    if measure is None:
        drawn = running_bias(p, y, level=level)
        parts = [{"mark": "bias", "forecasts": drawn.rounds, "value": drawn.total}]
        if level:
            ends = {"lower": drawn.lower, "upper": drawn.upper}
            parts.append({"mark": "bound", "forecasts": drawn.rounds, **ends})
        if level and drawn.left is not None:
            at = int(np.searchsorted(drawn.rounds, drawn.left))
            parts.append({"mark": "left", "forecasts": drawn.rounds[at], "value": drawn.total[at]})
        caption = joined(
            "Line: the total of outcome − prediction of the forecasts so far; it falls where they are too high.",
            f"Band: what the total leaves at any time with probability {1.0 - level:.2g} at most if every outcome has "
            "the probability predicted, whatever the predictions depend on." * bool(level),
            f"Mark: where it is first seen outside, by forecast {drawn.left:,}."
            if level and drawn.left
            else "",
        )
    else:
        up, found, why = running_measure(p, y, measure, window=window, level=level)
        whose = "all forecasts so far" if window is None else f"the last {window:,} forecasts"
        across = across if window is None else "last forecast"
        parts = [{"mark": "interval", **found}, {"mark": "low", "value": found["low"], **found}]
        if (found["low"] < found["high"]).any():
            parts.append({"mark": "high", "value": found["high"], **found})
        caption = joined(
            f"Line: {up} of {whose}; two lines are the ends of what is certain.",
            f"Band: {level:.0%} intervals, each by itself, for the same of what the forecasts were drawn from "
            "independently; where there is none, too few forecasts share a level." * bool(level and not why),
            f"No intervals: {why}." * bool(why),
        )

    def after(axis: Axes, rows: pd.DataFrame, _: Place) -> None:
        if measure is None:
            axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
        elif min(rows["low"].min(), np.nanmin(np.append(rows["lower"], np.inf))) >= 0.0:
            axis.set_ylim(bottom=0.0)
        axis.set_xlim(0, rows["forecasts"].max())
        ticks(axis.xaxis, integer=True)
        ticks(axis.yaxis)

    return of_gammas(
        None, {"": parts}, [""], caption, x="forecasts", y="value", marks=TRAJECTORIES, after=after,
        labels=(across, up), aspect=0.6,
    )  # fmt: skip
