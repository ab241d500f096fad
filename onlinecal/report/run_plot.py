"""Single runs, and local slopes, of curves: tables, then pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import choice
from onlinecal.core.words import counted, number_of
from onlinecal.growth import check_level, slope
from onlinecal.growth.rates import best_known
from onlinecal.report.frames import games, headings, places
from onlinecal.report.panels import Picture, by_pair, joined, mark, names_of, pictured, stacked
from onlinecal.report.style import GREY, log_ticks, paper, tick, typeset
from onlinecal.study.curves import Curve, left_out

Scale = Literal["log", "linear"]

LEVEL = 0.95


def runs_table(curves: Sequence[Curve], *, scale: Scale = "log") -> pd.DataFrame:
    """Totals of single runs and their mean; NaN where one has no place on the axis of this scale.

    A "run" is one game, and a line; of games at several T each total is a "point".
    """
    choice("runs", "scale", scale, ("log", "linear"))
    styles, parts = places(curves), []
    for (nature, measure), mine in by_pair(curves).items():
        finite = np.concatenate([curve.totals[np.isfinite(curve.totals)] for curve in mine])
        own = "log" if scale == "log" and (finite >= 0).all() and (finite > 0).any() else "linear"
        for c in mine:
            (steps, runs), line = c.totals.shape, not c.fresh and len(c.rounds) > 1
            every = {
                "nature": nature, "measure": measure, "forecaster": c.forecaster, "place": styles[c.forecaster],
                "scale": own, "runs": runs,
            }  # fmt: skip
            part = np.repeat(np.arange(runs), steps) if line else -1
            for kind, at, values, which in (
                ("run" if line else "point", np.tile(c.rounds, runs), c.totals.T.ravel(), part),
                ("mean", c.rounds, c.mean, -1),
            ):
                there = np.isfinite(values) & ((values > 0) | (own == "linear"))
                parts.append(
                    every | {"mark": kind, "part": which, "T": at, "total": np.where(there, values, np.nan)}
                )
    return stacked(parts)


def _faint(rows: pd.DataFrame) -> float:
    return float(np.clip(4.0 / rows["runs"].iloc[0], 0.12, 0.6))


RUNS = {
    "run": [mark("line", marker="", linestyle="-", linewidth=0.6, zorder=1.5, alpha=_faint)],
    "point": [mark("points", marker=".", markersize=3.5, markeredgewidth=0, zorder=1.5,
                   alpha=lambda rows: min(1.0, 2 * _faint(rows)))],
    "mean": [mark("line", linewidth=2.0, markersize=4, zorder=2.0, markeredgecolor="page", markeredgewidth=0.4,
                  markevery=lambda rows: max(1, -(-len(rows) // 12)))],
}  # fmt: skip


@pictured
def plot_runs(curves: Sequence[Curve], *, scale: Scale = "log") -> Picture:
    """The totals of every single run against T, thin, and their mean.

    Parameters
    ----------
    curves : sequence of Curve
        At least one.
    scale : {"log", "linear"}, default "log"
        Of both axes; where totals are negative the vertical one is linear.

    Returns
    -------
    (natures, measures) array of Axes
        Thin lines are runs of one game. Of games at several T a run is a point at each.
    """
    table = runs_table(curves, scale=scale)
    left = int(table["total"][table["mark"] != "mean"].isna().sum())
    caption = joined(
        games(curves),
        "Thin lines: single runs; small points: single runs, which at different T are different games. Thick line or "
        f"large points: mean of {counted({int(runs) for runs in table['runs']})}.",
        "The vertical axis is linear where totals are negative, or none is positive and finite."
        * (scale == "log" and "linear" in set(table["scale"])),
        f"Not drawn, as they are infinite, or 0 on a logarithmic axis: {number_of(left, 'total')} of single runs."
        * (left > 0),
        left_out(curves),
    )

    def scaled(axis: Axes, rows: pd.DataFrame, _: Any) -> None:
        own = rows["scale"].iloc[0]
        axis.set_xscale(scale)
        axis.set_yscale(own)
        if own == "linear":
            axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=0.8)
        for which, kind in ((axis.xaxis, scale), (axis.yaxis, own)):
            if kind == "linear":
                which.set_major_formatter(FuncFormatter(tick))
            else:
                log_ticks(which)

    return Picture(
        table=table, caption=caption, x="T", y="total", row="nature", column="measure", marks=RUNS, after=scaled,
        heading=headings(curves), labels=("T", "total T·μ"), words="natures × measures",
        names=names_of(table), look={"markersize": 4, "linewidth": 2.0},
    )  # fmt: skip


# ---------------------------------------------------------------- local slopes


def local_slopes(curve: Curve, level: float = LEVEL) -> tuple[Floats, Floats, Floats]:
    """Slopes of log(mean total) in log T between neighbouring T, and the ends of an interval for each; NaN for none.

    By the jackknife's variance over the runs: 93 % or more for 95 %, of 8 runs with a coefficient of variation ≤ 1/2.
    """
    check_level(level)
    pairs = [slice(i, i + 2) for i in range(len(curve.rounds) - 1)]
    found = [slope(curve.rounds[pair], curve.totals[pair], fresh=curve.fresh, level=level) for pair in pairs]
    value, lower, upper = np.reshape(found, (-1, 3)).T
    known = np.isfinite(upper) & (not curve.recorded)
    return value, np.where(known, lower, np.nan), np.where(known, upper, np.nan)


def slopes_table(curves: Sequence[Curve]) -> pd.DataFrame:
    """Slopes between the T at `left` and `right`, exponents that are clear ("fitted"), and slopes of known rates."""
    usable = [curve for curve in curves if len(curve.rounds) > 1]
    if not usable:
        raise InvalidParameter("no curve with two T or more; expected several horizons or checkpoints")
    styles, parts = places(curves), list[dict[str, Any]]()
    for (nature, measure), mine in by_pair(usable).items():
        frame = {"nature": nature, "measure": measure}
        tuned = [curve.rounds for curve in mine if curve.fresh and curve.open is None]
        t = np.unique(np.concatenate(tuned)).astype(np.float64) if tuned else np.zeros(0)
        for k, rate in enumerate(best_known(mine[0].column) if len(t) > 1 else ()):
            slopes = np.diff(np.log(rate.at(t))) / np.diff(np.log(t))
            parts.append(frame | {
                "mark": "rate", "label": str(rate), "part": k, "T": np.r_[t[0], np.sqrt(t[:-1] * t[1:]), t[-1]],
                "slope": np.r_[slopes[0], slopes, slopes[-1]],
            })  # fmt: skip
        for k, c in enumerate(mine):
            own = frame | {"forecaster": c.forecaster, "place": styles[c.forecaster], "part": 0}
            found = c.exponent(LEVEL)
            if found is not None and found.clear:
                span = np.array([c.tail.rounds[0], c.tail.rounds[-1]])
                ends = {"lower": found.lower, "upper": found.upper}
                parts.append(own | {"mark": "fitted", "T": span, "slope": found.value} | ends)
            # At the geometric mean of the two T, forecasters a little beside each other.
            share = 0.5 + 0.3 * ((k + 0.5) / len(mine) - 0.5)
            value, lower, upper = local_slopes(c)
            left, right = c.rounds[:-1].astype(np.float64), c.rounds[1:].astype(np.float64)
            parts.append(own | {
                "mark": "slope", "T": left ** (1.0 - share) * right**share, "slope": value, "lower": lower,
                "upper": upper, "left": left, "right": right,
            })  # fmt: skip
    return stacked(parts)


SLOPES = {
    "rate": [mark("line", GREY, linewidth=0.9, zorder=1.0)],
    "fitted": [mark("band", alpha=0.15),
               mark("line", marker="", linestyle="-", linewidth=0.9, alpha=0.8, zorder=1.5)],
    "slope": [mark("levels", linewidth=0.9, zorder=2.0), mark("bars", linewidth=1.1, zorder=2.0),
              mark("points", markersize=4.5, zorder=2.1)],
}  # fmt: skip


@pictured
def plot_slopes(curves: Sequence[Curve]) -> Picture:
    """Slopes of totals between neighbouring T, beside the exponent fitted to all and the best known rates.

    Parameters
    ----------
    curves : sequence of Curve
        At least one with two T.

    Returns
    -------
    (natures, measures) array of Axes
    """
    table = slopes_table(curves)
    value, rates = table["slope"][table["mark"] == "slope"].to_numpy(), table[table["mark"] == "rate"]
    # The same limits in all panels, so that slopes can be compared. Few steep ones do not make the others flat.
    low = max(float(np.nanmin(np.append(value, 0.0))) - 0.15, -2.0)
    high = min(float(np.nanmax(np.append(value, 1.0))) + 0.15, 3.0)
    beyond = int(((value < low) | (value > high)).sum())
    caption = joined(
        games(curves),
        "Each point, with the horizontal line through it: the slope of log total in log T between two neighbouring T, "
        f"from means of {counted({curve.totals.shape[1] for curve in curves})}; none where one of the two is infinite "
        f"or not positive. Vertical line: an approximate {LEVEL:.0%} interval, each on its own, for that slope of the "
        "expected totals, from what differs between the runs; it may go beyond the edges. It is missing of a single "
        "run, of games on one recorded stream, and where a mean is not positive without one of its runs.",
        f"Beyond the edges: {number_of(beyond, 'point')}." * (beyond > 0),
        f"Level line and band: the mean growth exponent over the T that it spans, with its {LEVEL:.0%} interval, where "
        "that is clear.",
        "Grey: the slopes of the best known rates against the worst nature, logarithms included."
        * len(rates[:1]),
        left_out(curves),
    )

    def scaled(axis: Axes, rows: pd.DataFrame, _: Any) -> None:
        axis.set_xscale("log")
        axis.set_ylim(low, high)
        log_ticks(axis.xaxis)
        axis.yaxis.set_major_formatter(FuncFormatter(tick))
        last = rows[rows["mark"] == "rate"].groupby("part").last()
        for at, rate in last.iterrows():
            side = "center" if len(last) == 1 else "top" if at == 0 else "bottom"
            axis.annotate(typeset(rate["label"]), (rate["T"], rate["slope"]), (6, 0), textcoords="offset points",
                          va=side, fontsize=7, color=paper(axis).faint)  # fmt: skip

    return Picture(
        table=table, caption=caption, x="T", y="slope", row="nature", column="measure", marks=SLOPES, after=scaled,
        heading=headings(curves), labels=("T", "local slope"), words="natures × measures", names=names_of(table),
        look={"linestyle": "-", "markersize": 4.5, "linewidth": 1.2},
    )  # fmt: skip
