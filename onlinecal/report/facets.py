"""The scaffold of all pictures: a panel for each row and column of a table, one legend, one caption."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from onlinecal.core.errors import InvalidParameter, in_one_line
from onlinecal.core.validation import integer
from onlinecal.growth.words import literal
from onlinecal.report.style import GREY, inches, ink, look, page, written
from onlinecal.study.curves import Curve, Study

#: the narrowest panel that can be read, in inches
NARROW = 2.0
#: letters of a caption and of a heading in an inch
SMALL, LARGE = 16.0, 14.0
#: of a bar of colours beside a single column of panels, in inches; headings of several have the space between them
BAR = 0.6


class Look(TypedDict, total=False):
    """How a picture looks.

    A new figure has a `title` and a `width` ("column", "page" or inches), and may be for a `dark` page. It has at most
    `columns` of panels, and maybe its `caption`. `ax`: axes in which the only panel is drawn instead.
    """

    ax: Axes | None
    title: str
    dark: bool
    width: str | float | None
    columns: int | None
    caption: bool


class Picture(Figure):
    """A figure that shows itself in a notebook."""

    def _repr_png_(self) -> bytes:
        return written(self, "png")


def facets(
    table: pd.DataFrame,
    draw: Callable[..., None],
    words: str,
    *,
    row: str = "",
    column: str = "",
    labels: tuple[str, str] = ("", ""),
    facts: str = "",
    names: str = "",
    style: dict[str, Any] | None = None,
    legend: Callable[[], Sequence[Line2D]] = tuple,
    panel: tuple[float, float] = (3.3, 2.5),
    share: Any = "row",
    most: int = 3,
    bar: str = "",
    lower: float = 0.0,
    **given: Unpack[Look],
) -> Figure:
    """A panel for each value of the columns `row` and `column` of a table, drawn by `draw(axes, part)`.

    It is headed by the column "heading" of its part, or else by the value of `column`.
    `words` are its caption, and the label of the figure. `facts` stand in the title line. `panel` is in inches, `bar`
    is the text of a bar of colours. The legend has a line for each of the column `names`, by its "place", with these
    options of matplotlib. What `legend` makes on the page of the figure follows. With axes below each panel, of
    `lower` of its height, it is `draw(axes, part, below)`.
    """
    rows, columns = ([*table[name].unique()] if name else [""] for name in (row, column))
    parts = {
        (a, b): table[
            (table[row].eq(a) if row else np.True_) & (table[column].eq(b) if column else pd.Series(True, table.index))
        ]
        for a in rows for b in columns
    }  # fmt: skip
    ax, wide, title = given.get("ax"), inches(given.get("width")), given.get("title", "")
    with page(given.get("dark", False)):
        if ax is not None:
            if not isinstance(ax, Axes):
                raise InvalidParameter(f"ax = {in_one_line(ax)}; expected matplotlib Axes")
            if len(parts) > 1:
                raise InvalidParameter(
                    f"ax for {len(parts)} panels; expected a picture of one panel, or no ax"
                )
            below = [ax.inset_axes((0.0, -0.08 - lower, 1.0, lower), sharex=ax)] if lower else []
            _panel([ax, *below], *next(iter(parts.items())), draw, labels, 3.3)
            return ax.get_figure(root=True) or Picture()
        asked = given.get("columns")
        across = min(len(columns), most if asked is None else integer("plot", "columns", asked, 1))
        across = across if wide is None else max(1, min(across, int(wide / NARROW)))
        lines = -(-len(columns) // across)
        if len(rows) == 1:
            across = -(-len(columns) // lines)  # four panels are two lines of two
        wide = wide or 0.4 + max(across * panel[0], 4.2)
        said = wrapped(words, SMALL * wide) if given.get("caption", True) else ""
        high = len(rows) * lines * panel[1] * min(1.0, wide / across / panel[0] + 0.2)
        high += 0.3 + 0.12 * (said.count("\n") + 1)
        fig = Picture((wide, high), layout="constrained", dpi=150)
        several = 2 if lower else 1
        axes = fig.subplots(
            len(rows) * lines * several, across, squeeze=False, sharex=share, sharey=share == "row" and "row",
            height_ratios=[1.0, lower][:several] * (len(rows) * lines),
        )  # fmt: skip
        for line, place in np.ndindex(len(rows) * lines, across):
            panel_axes = [*axes[line * several : (line + 1) * several, place]]
            at = line % lines * across + place
            if at >= len(columns):
                for axis in panel_axes:
                    axis.remove()
                continue
            if lower:
                panel_axes[1].sharex(panel_axes[0])
            key = rows[line // lines], columns[at]
            own = labels[0], "" if place and share == "row" else labels[1]
            _panel(panel_axes, key, parts[key], draw, own, wide / across - BAR * bool(bar and across == 1))
        image = next((image for axis in fig.axes for image in axis.images), None)
        if bar and image is not None:
            fig.colorbar(image, ax=fig.axes, shrink=min(0.8, 2.5 / high), aspect=15).set_label(bar)
        handles = [*_lines_of(table, names, style or {}), *legend()]
        _legend(fig, handles, literal(wrapped(" · ".join(filter(None, (title, facts))), LARGE * wide)))
        for above in fig.legends:
            fig.set_figheight(fig.get_figheight() + above.get_window_extent().height / fig.dpi)
        if said:
            fig.supxlabel(literal(said), fontsize=7, color=ink(), alpha=0.75)
        fig.set_label(words)
    return fig


def _panel(
    axes: list[Any],
    key: tuple[Any, Any],
    part: pd.DataFrame,
    draw: Any,
    labels: tuple[str, str],
    wide: float,
) -> None:
    axis, *below = axes
    axis.set(xlabel=labels[0], ylabel=labels[1])
    heading = part["heading"].iloc[0] if "heading" in part and len(part) else str(key[1])
    axis.set_title(literal(wrapped(heading, LARGE * (wide - 0.5))))
    axis.tick_params(labelbottom=not below)
    why = "not played" if part.empty else "Γ is not kept" if "missing" in set(part.get("mark", ())) else ""
    if not why:
        draw(axis, part, *below)
        return
    axis.text(0.5, 0.5, why, ha="center", color=GREY, transform=axis.transAxes)
    axis.set(xticks=(), yticks=())
    for each in below:
        each.set_axis_off()


def wrapped(text: str, letters: float) -> str:
    """The text in lines of that many letters; "T = 100" and "16 runs" stay whole."""
    whole = re.sub(r" (?==)|(?<==) |(?<=\d) (?=runs?\b)", "\N{NO-BREAK SPACE}", text)
    lines = (textwrap.fill(line, max(16, int(letters))) for line in whole.split("\n"))
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def _legend(fig: Figure, handles: Sequence[Line2D], title: str) -> None:
    """The title and a legend below it, in as many columns as fit."""
    for handle in handles:
        handle.set_label(wrapped(str(handle.get_label()), 8 * fig.get_figwidth()))
    if not handles and title:
        fig.suptitle(title, fontsize=10)
    for columns in range(min(len(handles), 6), 0, -1):
        legend = fig.legend(
            handles=handles,
            loc="outside upper center",
            ncols=columns,
            title=title,
            title_fontsize=10,
            fontsize=8,
        )
        legend.get_title().set_multialignment("center")
        if legend.get_window_extent().width <= fig.bbox.width or columns == 1:
            return
        legend.remove()


def _lines_of(table: pd.DataFrame, names: str, line: dict[str, Any]) -> list[Line2D]:
    """A line for each name in this column, in the order of their places."""
    if not names:
        return []
    found = table.loc[table[names].ne(""), [names, "place"]].drop_duplicates().sort_values("place")
    return [
        Line2D([], [], label=name_of(name), **(look(int(place)) | line))
        for name, place in found.itertuples(index=False)
    ]


def name_of(name: str) -> str:
    """A label as a legend shows it: matplotlib leaves out those that begin with an underscore."""
    return f"\u200a{literal(name)}" if name.startswith("_") else literal(name)


def stacked(parts: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The table of some parts: column → one value or an array. A missing value is NaN, or an empty text."""
    frames = [
        pd.DataFrame(
            part if any(np.ndim(value) for value in part.values()) else {k: [v] for k, v in part.items()}
        )
        for part in parts
    ]
    table = pd.concat([frame for frame in frames if len(frame)] or frames, ignore_index=True)
    texts = [name for name in table if pd.api.types.is_string_dtype(table[name].dropna())]
    return table.fillna(dict.fromkeys(texts, ""))


def by_mark(part: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each mark."""
    return {str(kind): mine for kind, mine in part.groupby("mark", sort=False)}


def need_study(where: str, study: Any) -> Study:
    """Refuses what is no study."""
    if not isinstance(study, Study):
        raise InvalidParameter(f"{where}: study = {in_one_line(study)}; expected a Study")
    return study


def need_curves(where: str, curves: Any) -> Sequence[Curve]:
    """Refuses what are no curves."""
    if not isinstance(curves, list | tuple) or not all(isinstance(curve, Curve) for curve in curves):
        raise InvalidParameter(
            f"{where}: curves = {in_one_line(curves)}; expected curves, such as study.curves(['ece'])"
        )
    if not curves:
        raise InvalidParameter("no curves to draw; expected at least one")
    return curves
