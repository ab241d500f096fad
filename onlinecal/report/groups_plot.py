"""Errors of groups by their sizes, at the largest T: the table, then its picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from onlinecal.core.columns import ALL, ROUNDS, Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.growth.words import literal
from onlinecal.report.facets import Look, facets, need_study, stacked
from onlinecal.report.frames import at_the_end, symbol
from onlinecal.report.style import GREY, look, ticks
from onlinecal.study.compare import last_cells
from onlinecal.study.curves import Study, columns_of, runs_of

GROUPS = (
    "Point: a group at the largest T, with the error per round of the group, mean over runs, and its mean number of "
    "rounds. Dashed: one over the root of the number of rounds. Groups without rounds, and errors of 0, are not drawn."
)
#: points with names in one panel; in points the height of a name, the width of a letter, and the space before
NAMED, LINE, LETTER, SPACE = 40, 8.5, 3.4, 5.0


def groups_table(study: Study, measures: str | Sequence[str] | None = None) -> pd.DataFrame:
    """The mean error per round and the mean number of rounds of each group; NaN of one without rounds.

    Runs in which a group has no rounds are left out of its means.
    """
    of_groups = _columns(need_study("groups", study), measures)
    parts: list[dict[str, Any]] = []
    for nature in study.natures:
        for column in of_groups:
            for cell in last_cells(study, nature, [column.name]):
                for name in [ALL, *cell.groups] if cell.groups else []:
                    label = "" if name == ALL else name
                    total = cell.totals[replace(column, stream=label).name][-1]
                    size = np.full(cell.runs, float(cell.rounds[-1] - (cell.open[-1] if cell.open else 0)))
                    if label:
                        size = cell.totals[Column("measure", ROUNDS, stream=label).name][-1]
                    there = size > 0
                    parts.append({
                        "nature": nature, "measure": column.name, "T": cell.horizon, "runs": cell.runs,
                        "forecaster": cell.forecaster, "place": study.places[cell.forecaster], "group": name,
                        "rounds": size[there].mean() if there.any() else 0.0,
                        "error": (total[there] / size[there]).mean() if there.any() else np.nan,
                        "heading": f"{symbol(column)} of each group against {nature}",
                    })  # fmt: skip
    return stacked(parts)


def _columns(study: Study, measures: str | Sequence[str] | None) -> list[Column]:
    """The measures asked for, or the first, that have a column of each group."""
    groups = {name for cell in study.cells for name in cell.groups}
    if not groups:
        raise InvalidParameter("groups: no nature of this study has groups; expected one, such as grouped")
    known = {replace(column, stream="") for column in study.columns.values() if column.stream in groups}
    asked = [column for column in columns_of(study, measures) if column in known]
    if not asked:
        names = ", ".join(sorted({column.name for column in known if column.measure != ROUNDS}))
        raise InvalidParameter(f"groups: measures = {measures!r} have no column of each; expected {names}")
    return asked[: None if measures else 1]


def plot_groups(study: Study, measures: str | Sequence[str] | None = None, **look: Unpack[Look]) -> Figure:
    """The error per round of each group against its number of rounds at the largest T: natures down, measures across.

    Parameters
    ----------
    study : Study
        With a nature that has groups.
    measures : str or sequence of str, optional
        At least one column that each group has. Default: the first measure.
    **look
        See `Look`.
    """
    table = groups_table(study, measures)

    def legend() -> list[Line2D]:
        return [
            Line2D([], [], label="one over the root of the rounds", color=GREY, linestyle="--", linewidth=1.0)
        ]

    return facets(
        table, draw_groups, GROUPS, row="nature", column="measure",
        labels=("rounds of the group", "error per round of the group"),
        facts=at_the_end(runs_of(study.cells), table["T"]),
        names="forecaster", style={"linestyle": "none"}, legend=legend, panel=(4.2, 3.0), **look,
    )  # fmt: skip


def draw_groups(axis: Any, part: pd.DataFrame) -> None:
    """The groups of one panel, named where they are few."""
    there, sizes = part[part["error"] > 0], part["rounds"][part["rounds"] > 0]
    least, most = (sizes.min() / 1.5, sizes.max() * 2.0) if len(sizes) else (1.0, 2.0)
    x = np.geomspace(least, most, 50)
    heights = [*there["error"], least**-0.5, most**-0.5]
    axis.set(xscale="log", yscale="log", xlim=(least, most), ylim=(min(heights) / 1.5, max(heights) * 1.5))
    axis.plot(x, x**-0.5, color=GREY, linestyle="--", linewidth=1.0, zorder=1.0)
    for place, mine in there.groupby("place"):
        axis.plot(mine["rounds"], mine["error"], **look(int(place)) | {"linestyle": "none", "zorder": 2.1})
    if len(there) <= NAMED:
        _name(axis, there)
    ticks(axis.xaxis, axis.yaxis)


def _name(axis: Any, there: pd.DataFrame) -> None:
    """The names of the groups beside their points, one above another where they would meet."""
    # The axes are logarithmic: what a point of the page is on them.
    inch = axis.figure.dpi / 72.0
    size = axis.get_window_extent()
    wide, high = (
        inch * np.log(limits[1] / limits[0]) / length
        for limits, length in ((axis.get_xlim(), size.width), (axis.get_ylim(), size.height))
    )
    placed: list[tuple[float, float, float]] = []
    named = there.sort_values("error")[["group", "place", "rounds", "error"]]
    for name, place, x, above in named.itertuples(index=False):
        left = np.log(x) + SPACE * wide
        right = left + LETTER * len(name) * wide
        for low, end, at in sorted(placed, key=lambda other: other[2]):
            if left < end and low < right and abs(np.log(above / at)) < LINE * high:
                above = at * np.exp(LINE * high)
        placed.append((left, right, above))
        axis.annotate(literal(name), (x, above), (SPACE, 0), textcoords="offset points", fontsize=7, va="center",
                      color=look(int(place))["color"])  # fmt: skip
