"""Calibration as forecasts come in: tables, then their picture."""

from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution, samples
from onlinecal.core.samples import with_ours
from onlinecal.core.validation import integer, number
from onlinecal.logs.evaluation import evaluate
from onlinecal.logs.table import Evaluation
from onlinecal.monitoring.sequences import running_bias
from onlinecal.report.facets import facets, stacked
from onlinecal.report.gammas import Drawn, Rows, apart
from onlinecal.report.style import GREY, look, ticks

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


TOTAL = (
    "Line: the total of outcome − prediction of the forecasts so far; it falls where they are too high. Band: what the "
    "total leaves at any time with no more than the stated probability if every outcome has the probability predicted, "
    "whatever the predictions depend on. Point: where it is first seen outside."
)
MEASURE = (
    "Line: the measure of all forecasts so far, or of the last ones; two lines are the ends of what is certain. Band: "
    "intervals, each by itself, for the same of what the forecasts were drawn from independently; none, or up to the "
    "largest value, where too few forecasts share a level."
)


@with_ours
def trajectory_table(
    p: ArrayLike,
    y: ArrayLike | None = None,
    *,
    measure: Any = None,
    window: int | None = None,
    band: float | None = 0.95,
    **rows: Unpack[Rows],
) -> pd.DataFrame:
    """The running total with its bound, or a measure with its intervals; parameters as in `plot_trajectory`."""
    level = number("trajectory", "band", 0.0 if band is None else band, 0.0, 1.0)
    if isinstance(p, JointDistribution | Evaluation):
        raise InvalidData(
            "trajectory: a JointDistribution has no order in time; expected the predictions p and the outcomes y"
        )
    if y is None:
        raise InvalidData("trajectory: y is missing; expected the outcomes of the predictions p")
    if rows.get("weights") is not None:
        raise InvalidParameter("trajectory: weights of forecasts that come one by one; expected none")
    p, y = samples(p, y, **rows)
    if measure is not None:
        up, found, why = running_measure(p, y, measure, window=window, level=level)
        parts = [{"mark": "interval", **found}, {"mark": "low", "value": found["low"], **found}]
        if (found["low"] < found["high"]).any():
            parts.append({"mark": "high", "value": found["high"], **found})
        return stacked(part | {"name": up, "why": why} for part in parts)
    drawn = running_bias(p, y, level=level)
    parts = [{"mark": "bias", "forecasts": drawn.rounds, "value": drawn.total}]
    if level:
        parts.append({"mark": "bound", "forecasts": drawn.rounds, "lower": drawn.lower, "upper": drawn.upper})
    if level and drawn.left is not None:
        at = int(np.searchsorted(drawn.rounds, drawn.left))
        parts.append({"mark": "left", "forecasts": drawn.rounds[at], "value": drawn.total[at]})
    return stacked(part | {"name": "Σ (outcome − prediction)", "why": ""} for part in parts)


@with_ours
def plot_trajectory(
    p: ArrayLike,
    y: ArrayLike | None = None,
    *,
    measure: Any = None,
    window: int | None = None,
    band: float | None = 0.95,
    **look: Unpack[Drawn],
) -> Figure:
    """Calibration over time: the running total of outcome − prediction, or a measure of the forecasts so far.

    Parameters
    ----------
    p, y : (n,) array_like
        Predictions and outcomes (0 or 1, or labels) in the order in which they were made.
    measure : str, table or callable, optional
        One measure, as in `evaluate`. Default: the running total of y − p.
    window : int, optional
        A measure of this number of last forecasts instead of all so far, by which drift is seen.
    band : float or None, default 0.95
        Of the total: left at any time with probability at most 1 − `band`, if outcomes have the probability predicted.
        Of a measure: intervals, each by itself, as in `evaluate`.
    **look
        `positive`, `negative`, `drop`: as in `JointDistribution.from_samples`. And see `Look`.

    Examples
    --------
    >>> plot_trajectory([0.5] * 40, [0, 1] * 20).axes[0].get_ylabel()
    'Σ (outcome − prediction)'
    """
    rows, how = apart(look)
    table = trajectory_table(p, y, measure=measure, window=window, band=band, **rows)
    left, why = table["forecasts"][table["mark"] == "left"], table["why"].iloc[0]
    facts = [
        f"band of {band:.0%}" if band and not why else "", f"no intervals: {why}" if why else "",
        *(f"seen outside by forecast {at:,.0f}" for at in left),
    ]  # fmt: skip
    across = "forecasts" if window is None else f"last forecast of {window:,}"
    return facets(
        table, _draw_trajectory, TOTAL if measure is None else MEASURE, panel=(3.8, 2.6),
        labels=(across, table["name"].iloc[0]), facts=" · ".join(filter(None, facts)), **how,
    )  # fmt: skip


def _draw_trajectory(axis: Any, rows: pd.DataFrame) -> None:
    blue, point = look(0)["color"], look(1)["color"]
    for kind, mine in rows.groupby("mark"):
        if kind in ("bound", "interval"):
            colour, alpha = (GREY, 0.25) if kind == "bound" else (blue, 0.2)
            axis.fill_between(
                mine["forecasts"], mine["lower"], mine["upper"], color=colour, alpha=alpha, linewidth=0
            )
        elif kind == "left":
            axis.plot(mine["forecasts"], mine["value"], "o", color=point, markersize=5.5, zorder=3.0)
        else:
            marker = "" if kind == "bias" else "o"
            axis.plot(mine["forecasts"], mine["value"], marker=marker, color=blue, markersize=3)
    if "bias" in set(rows["mark"]):
        axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    elif rows[["low", "lower"]].min().min() >= 0.0:
        axis.set_ylim(bottom=0.0)
    axis.set_xlim(0, rows["forecasts"].max())
    ticks(axis.xaxis, integer=True)
    ticks(axis.yaxis)
