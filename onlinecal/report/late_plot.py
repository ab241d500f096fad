"""What late outcomes cost, as pictures: the drawing of what `late_frames` says is to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from onlinecal.growth.words import literal
from onlinecal.report.curve_plot import WIDTH, draw_frame, edges, new_panels, set_heights
from onlinecal.report.curves import Study
from onlinecal.report.frames import BAND, counted, forecasters, games
from onlinecal.report.late_frames import LateFrame, late_frames
from onlinecal.report.style import finish, given_axes, handles, leftmost, page, paper, wrapped


def plot_delays(
    study: Study,
    measures: Sequence[str],
    *,
    axes: Any = None,
    title: str = "",
    dark: bool = False,
    width: Any = None,
) -> NDArray[Any]:
    """Totals by schedule: a line for each delay against T, or, at a single T, against the questions open then.

    Parameters
    ----------
    study : Study
    measures : sequence of str
        At least one column.
    axes : (rows, columns) array of matplotlib Axes, optional
        Where to draw. With several horizons, or a single schedule, there is a row for each nature without its schedule
        and measure, and a column for each forecaster; else a row for each nature and a column for each measure.
        Default: those of a new figure, which also gets the title and, below, what the lines mean; to others' figures
        `caption` says that.
    title : str, optional
        Of a new figure.
    dark, width
        As in `curve_plot.plot_curves`.

    Returns
    -------
    (rows, columns) array of Axes
        `late_frames.late_frames` says what is drawn. Those of one row have the same limits upwards; in a new figure
        axes are hidden where nothing was played.

    Raises
    ------
    UnknownName, InvalidParameter
        A measure that was not played, no measures; axes of another shape; a title for axes that are given.
    """
    drawn = late_frames(study, measures)
    rows = list(dict.fromkeys(each.row for each in drawn))
    columns = list(dict.fromkeys(each.column for each in drawn))
    if axes is not None:
        panels = given_axes(axes, (len(rows), len(columns)), "rows × columns", title)
        _fill(panels, drawn, rows, columns, WIDTH, named=True)
        return panels
    found = {(each.row, each.column): each.frame for each in drawn}
    with page(dark):
        panels, side = new_panels([[found.get((row, column)) for column in columns] for row in rows], width)
        # Curves of one name look the same in all panels if there are as many in each.
        alone = len(drawn) == 1 or len({tuple(_names(each)) for each in drawn}) > 1
        _fill(panels, drawn, rows, columns, side, named=alone)
        names = {} if alone else forecasters(each.frame for each in drawn)
        looks = handles(names, colours=_colours(drawn[0]), markersize=4, linewidth=1.5)
        finish(panels[0, 0].get_figure(root=True), title, _caption(study, drawn, measures), looks)
    return panels


def _names(each: LateFrame) -> list[str]:
    return [line.forecaster for line in each.frame.lines]


def _fill(
    panels: NDArray[Any],
    drawn: Sequence[LateFrame],
    rows: list[str],
    columns: list[str],
    side: float,
    *,
    named: bool,
) -> None:
    """Frames into their axes; those of a row that are positive have the same limits upwards."""
    for i, row in enumerate(rows):
        mine = [each for each in drawn if each.row == row]
        for each in mine:
            j = columns.index(each.column)
            panel = panels[i, j]
            draw_frame(panel, each.frame, _colours(each), side=side, named=named)
            size = 10 if side > 2.5 else 8.5
            panel.set_title(wrapped(each.heading, side, size), fontsize=size)
            panel.set_xlabel("1 + questions open at the end" if each.across else "T", fontsize=8)
            if leftmost(panel, j):
                panel.set_ylabel("total $T\\cdot\\mu$", fontsize=8)
        positive = [each for each in mine if not each.frame.negative and each.frame.lines]
        set_heights(
            [each.frame for each in positive], [panels[i, columns.index(each.column)] for each in positive]
        )


def caption(study: Study, measures: Sequence[str]) -> str:
    """What the lines in `plot_delays` of these measures mean, for a figure of somebody's own."""
    return _caption(study, late_frames(study, measures), measures)


def _colours(each: LateFrame) -> Sequence[str] | None:
    """Forecasters are told apart; schedules have an order, and so do their colours."""
    if each.across:
        return None
    several = len(each.frame.lines) + len(each.frame.absent)
    span = (0.35, 1.0) if paper().dark else (0.0, 0.88)
    return [to_hex(colormaps["viridis"](x)) for x in np.linspace(*span, max(several, 2))]


def _caption(study: Study, drawn: Sequence[LateFrame], measures: Sequence[str]) -> str:
    cells = study.cells
    runs = {next(iter(c.totals.values())).shape[1] for c in cells}
    if drawn[0].across:
        parts = [f"Games of T = {cells[0].horizon:,}, a point for each schedule."]
    else:
        parts = [games(study.curves(measures))]
    joined = any(len(line.rounds) > 1 for each in drawn for line in each.frame.lines)
    parts.append(f"{'Line' if joined else 'Point'}: mean of {counted(runs)}.")
    if joined and max(runs) > 1:
        parts.append(
            f"Band: {BAND[0]:.0f}th to {BAND[1]:.0f}th percentile of the runs, given the times of questions and "
            "outcomes, which all runs share."
        )
    open = [n for each in drawn for n in each.open]
    if any(open):
        parts.append(
            "Totals are over the questions whose outcome is known; not in them are those that are open at the end, up "
            f"to {max(open):,} a game."
        )
    if any(each.frame.bounds for each in drawn):
        where = "of the line with the fewest open questions" if not drawn[0].across else "of the lowest line"
        parts.append(
            "Dotted: b·R(T/b), which is √(bT) for R = √T: with b = 1 + questions open and R the best known upper rate, "
            "what b copies would have, each with every b-th question; with one constant, by which they begin at the "
            f"first point {where}."
        )
    return literal(" ".join([*parts, *edges([each.frame for each in drawn])]))
