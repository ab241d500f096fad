"""Single runs: first what is drawn, as plain data, then the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import choice
from onlinecal.report.curves import Curve, left_out
from onlinecal.report.frames import counted, games, places
from onlinecal.report.pair_panels import of_pairs
from onlinecal.report.style import GREY, paper, plain, tick

Floats = NDArray[np.float64]
Scale = Literal["log", "linear"]


@dataclass(frozen=True, eq=False)
class RunLines:
    """The runs of one forecaster in one pair of axes.

    Attributes
    ----------
    forecaster : str
    style : int
        Its place in the study.
    rounds : (n,) ints
    totals : (n, runs) floats
        NaN where a total has no place on the axis: infinite, or, on a logarithmic axis, not positive.
    mean : (n,) floats
        Over all runs; NaN where it has no place.
    joined : bool
        Whether a run is one game, whose totals at several T are a line; of a game for each T, or at a single T, they
        are points.
    left : int
        How many totals have no place.
    """

    forecaster: str
    style: int
    rounds: NDArray[np.int64]
    totals: Floats
    mean: Floats
    joined: bool
    left: int


@dataclass(frozen=True, eq=False)
class RunFrame:
    """One pair of axes: a measure against one nature.

    Attributes
    ----------
    nature : str
    column : Column
    scale : {"log", "linear"}
        Of the vertical axis: logarithmic only where every mean that is drawn is positive.
    lines : list of RunLines
    """

    nature: str
    column: Column
    scale: Scale
    lines: list[RunLines]


def run_frames(curves: Sequence[Curve], *, scale: Scale = "log") -> list[RunFrame]:
    """What `plot_runs` draws, one frame for each nature and measure.

    Raises
    ------
    InvalidParameter
        No curves; another scale.
    """
    choice("runs", "scale", scale, ("log", "linear"))
    if not curves:
        raise InvalidParameter("no curves to draw; expected at least one")
    styles = places(curves)
    found: dict[tuple[str, Column], list[Curve]] = {}
    for curve in curves:
        found.setdefault((curve.nature, curve.column), []).append(curve)
    result = []
    for (nature, column), mine in found.items():
        finite = [curve.totals[np.isfinite(curve.totals)] for curve in mine]
        positive = all((values >= 0).all() for values in finite) and any(
            (values > 0).any() for values in finite
        )
        own: Scale = "log" if scale == "log" and positive else "linear"
        lines = []
        for curve in mine:
            good = np.isfinite(curve.totals) & ((curve.totals > 0) | (own == "linear"))
            mean = np.where(
                np.isfinite(curve.mean) & ((curve.mean > 0) | (own == "linear")), curve.mean, np.nan
            )
            totals = np.where(good, curve.totals, np.nan)
            lines.append(
                RunLines(
                    curve.forecaster, styles[curve.forecaster], curve.rounds, totals, mean,
                    not curve.fresh and len(curve.rounds) > 1,
                    int((~good).sum()),
                )
            )  # fmt: skip
        result.append(RunFrame(nature, column, own, lines))
    return result


def plot_runs(
    curves: Sequence[Curve],
    *,
    scale: Scale = "log",
    axes: Any = None,
    title: str = "",
    dark: bool = False,
    width: Any = None,
) -> NDArray[Any]:
    """The totals of every single run against T, thin, and their mean.

    Parameters
    ----------
    curves : sequence of Curve
        At least one.
    scale : {"log", "linear"}, default "log"
        Of both axes; where totals are negative the vertical one is linear.
    axes : (natures, measures) array of matplotlib Axes, optional
        Where to draw. Default: those of a new figure, which also gets the title, a legend and, below, what is drawn; to
        others' figures `caption` says that.
    title : str, optional
        Of a new figure.
    dark, width
        As in `curve_plot.plot_curves`.

    Returns
    -------
    (natures, measures) array of Axes
        Thin lines are runs of one game; where each T is a game of its own, a run at each T is a point. In a new figure
        axes are hidden where a measure was not taken.

    Raises
    ------
    InvalidParameter
        No curves; another scale; axes of another shape; a title for axes that are given; a width that cannot be.
    """
    drawn = run_frames(curves, scale=scale)
    names = {line.forecaster: line.style for frame in drawn for line in frame.lines}

    def draw(axis: Axes, frame: RunFrame) -> None:
        axis.set_xscale(scale)
        _draw(axis, frame)

    return of_pairs(
        drawn, draw, "T", "total $T\\cdot\\mu$", _caption(curves, drawn), names, {"markersize": 4, "linewidth": 2.0},
        axes=axes, title=title, dark=dark, width=width,
    )  # fmt: skip


def caption(curves: Sequence[Curve], *, scale: Scale = "log") -> str:
    """What is drawn in `plot_runs` of these curves, for a figure of somebody's own."""
    return _caption(curves, run_frames(curves, scale=scale))


def _caption(curves: Sequence[Curve], drawn: Sequence[RunFrame]) -> str:
    lines = [line for frame in drawn for line in frame.lines]
    runs = {line.totals.shape[1] for line in lines}
    parts = [games(curves)]
    if any(line.joined for line in lines):
        parts.append("Thin lines: single runs.")
    if any(not line.joined for line in lines):
        fresh = any(curve.fresh for curve in curves)
        parts.append(
            f"Small points: single runs{', which at different T are different games' if fresh else ''}."
        )
    several = any(len(curve.rounds) > 1 for curve in curves)
    parts.append(f"{'Thick line' if several else 'Large point'}: mean of {counted(runs)}.")
    if {frame.scale for frame in drawn} == {"log", "linear"}:
        parts.append("The vertical axis is linear where totals are negative, or none is positive and finite.")
    if left := sum(line.left for line in lines):
        which = "totals of single runs that are" if left > 1 else "total of a single run that is"
        parts.append(f"Not drawn: {left:,} {which} infinite, or 0 on a logarithmic axis.")
    return " ".join(filter(None, [*parts, left_out(curves)]))


def _draw(axis: Axes, frame: RunFrame) -> None:
    """Runs behind their means."""
    here = paper(axis)
    axis.set_yscale(frame.scale)
    if frame.scale == "linear":
        axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=0.8)
    for line in frame.lines:
        look = here.style(line.style)
        many = line.totals.shape[1]
        alpha = float(np.clip(4.0 / many, 0.12, 0.6))
        if line.joined:
            axis.plot(line.rounds, line.totals, color=look.colour, linewidth=0.6, alpha=alpha, zorder=1.5)
        else:
            axis.plot(line.rounds, line.totals, color=look.colour, marker=".", markersize=3.5, markeredgewidth=0,
                      linestyle="none", alpha=min(1.0, 2 * alpha), zorder=1.5)  # fmt: skip
        axis.plot(
            line.rounds, line.mean, color=look.colour, marker=look.marker, linestyle=look.dashes, markersize=4,
            markevery=max(1, -(-len(line.rounds) // 12)), linewidth=2.0, zorder=2.0,
            markeredgecolor=axis.get_facecolor(), markeredgewidth=0.4,
        )  # fmt: skip
    plain(axis)
    for which in (axis.xaxis, axis.yaxis):
        if which.get_scale() == "linear":
            which.set_major_formatter(FuncFormatter(tick))
