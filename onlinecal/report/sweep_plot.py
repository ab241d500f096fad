"""Values of measures against a parameter, or against T: the drawing of what `sweeps` says is to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from onlinecal.growth.words import literal
from onlinecal.report.curves import Study
from onlinecal.report.frames import counted
from onlinecal.report.pair_panels import panels
from onlinecal.report.style import leftmost, paper, plain, tick, wrapped
from onlinecal.report.sweeps import TIME, Bars, SweepFrame, Swept, swept

Floats = NDArray[np.float64]

#: positive values of a parameter that differ by a larger factor have a logarithmic axis
WIDE = 10
#: of the width of the axes: how far lines are set apart
APART = 0.005
_MIDDLE = {
    "deviation": "mean of {}, and one standard deviation of the runs to either side",
    "quartiles": "median of {}, and their quartiles",
    "interval": "mean of {}, and its 95 % interval by Student's t, each by itself",
}


def plot_sweep(
    study: Study,
    measures: Sequence[str],
    against: str,
    *,
    bars: Bars = "deviation",
    axes: Any = None,
    title: str = "",
    dark: bool = False,
    width: Any = None,
) -> NDArray[Any]:
    """Values μ of measures at the end of games, against a parameter that the games differ in.

    Parameters
    ----------
    study : Study
    measures : sequence of str
        At least one column, a line each.
    against : str
        A parameter of forecasters or natures, ``"of.m"`` for the `m` of what stands under `of`; ``"T"`` for the number
        of rounds.
    bars : {"deviation", "quartiles", "interval"}, default "deviation"
        Points are means of the runs, bars one standard deviation of the runs to either side; medians and quartiles; or
        means and their 95 % intervals by Student's t.
    axes : (n,) array of matplotlib Axes, optional
        Where to draw: one for each combination of what else differs (see `sweeps.swept`). Default: those of a new
        figure, which also gets the title, a legend and, below, what is drawn; to others' figures `caption` says that.
    title : str, optional
        Of a new figure.
    dark, width
        As in `curve_plot.plot_curves`.

    Returns
    -------
    (n,) array of Axes
        Where the values of the parameter are positive and differ by a factor of more than 10, the axis across is
        logarithmic.

    Raises
    ------
    UnknownName, InvalidParameter
        A measure that was not played; a parameter that nobody has with a number as its value, or that forecasters and
        natures both have; other bars; another number of axes; a title for axes that are given; a width that cannot be.
    """
    drawn = swept(study, measures, against, bars)
    names = {column: i for i, column in enumerate(_names(drawn))}
    return panels(
        (len(drawn.frames),), "one for each combination", lambda found, side: _fill(found, drawn, names, side),
        _caption(drawn), names, {"markersize": 4, "linewidth": 1.2}, axes=axes, title=title, dark=dark, width=width,
        most=3,
    )  # fmt: skip


def caption(study: Study, measures: Sequence[str], against: str, *, bars: Bars = "deviation") -> str:
    """What is drawn in `plot_sweep`, for a figure of somebody's own."""
    return _caption(swept(study, measures, against, bars))


def _names(drawn: Swept) -> list[str]:
    return list(dict.fromkeys(line.column.name for frame in drawn.frames for line in frame.lines))


def _caption(drawn: Swept) -> str:
    runs = {int(n) for frame in drawn.frames for line in frame.lines for n in line.runs}
    what = "T, the number of rounds" if drawn.parameter == TIME else literal(drawn.parameter)
    parts = [
        f"Across: {what}. Up: the value μ of each measure at the end of the game, its total divided by T.",
        f"Points and bars: {_MIDDLE[drawn.bars].format(counted(runs))}.",
    ]
    if runs == {1}:
        parts[1] = "Points: of 1 run, which has no spread." if drawn.bars != "quartiles" else parts[1]
    if any(not np.isfinite(line.middle).all() for frame in drawn.frames for line in frame.lines):
        parts.append("Not drawn: infinite values.")
    if max(len(frame.lines) for frame in drawn.frames) > 1:
        parts.append("Lines are set a little apart across, so that bars can be told apart.")
    if drawn.left:
        several = len(drawn.left) > 1
        parts.append(
            literal(
                f"Not drawn, as {'they have' if several else 'it has'} no {drawn.parameter} that is a number: "
            )
            + f"{literal(', '.join(drawn.left))}."
        )
    return " ".join(parts)


def _fill(found: NDArray[Any], drawn: Swept, names: dict[str, int], side: float) -> None:
    size = 9 if side > 2.5 else 8
    for k, (axis, frame) in enumerate(zip(found, drawn.frames, strict=True)):
        axis.set_visible(True)
        _draw(axis, frame, names)
        axis.set_title(wrapped(frame.heading, side, size), fontsize=size)
        axis.set_xlabel(literal(drawn.parameter), fontsize=8)
        if leftmost(axis, k):
            axis.set_ylabel("value $\\mu$", fontsize=8)


def _draw(axis: Axes, frame: SweepFrame, names: dict[str, int]) -> None:
    every = np.concatenate([line.at for line in frame.lines])
    wide = bool(every.min() > 0.0 and every.max() > WIDE * every.min())
    for i, line in enumerate(frame.lines):
        look = paper(axis).style(names[line.column.name])
        there = np.isfinite(line.middle)
        at = _beside(line.at, every, wide, i - (len(frame.lines) - 1) / 2)
        x, y = at[there], line.middle[there]
        axis.plot(
            x, y, color=look.colour, marker=look.marker, linestyle=look.dashes, markersize=4, linewidth=1.2,
            label=literal(line.column.name), zorder=2.1,
        )  # fmt: skip
        sure = there & np.isfinite(line.lower)
        axis.vlines(
            at[sure], line.lower[sure], line.upper[sure], color=look.colour, linewidth=1.0, zorder=2.0,
            label="_",
        )  # fmt: skip
    plain(axis)
    if wide:
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(FuncFormatter(tick))
        axis.xaxis.set_minor_formatter(NullFormatter())
    else:
        axis.xaxis.set_major_locator(MaxNLocator(5))
        axis.xaxis.set_major_formatter(FuncFormatter(tick))
    axis.yaxis.set_major_locator(MaxNLocator(5))
    axis.yaxis.set_major_formatter(FuncFormatter(tick))
    if all(np.nanmin(line.middle) >= 0.0 for line in frame.lines if np.isfinite(line.middle).any()):
        axis.set_ylim(bottom=0.0)


def _beside(at: Floats, every: Floats, wide: bool, place: float) -> Floats:
    """Where the points of a line are drawn: beside those of the others."""
    if wide:
        return np.asarray(at * (every.max() / every.min()) ** (APART * place))
    return np.asarray(at + APART * place * (every.max() - every.min()))
