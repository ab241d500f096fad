"""The scaffold of all pictures: a table, marks that draw its rows, and panels in axes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter, in_one_line
from onlinecal.core.progress import in_notebook
from onlinecal.core.progress import show as show_figure
from onlinecal.core.transcript import Transcript
from onlinecal.core.validation import integer
from onlinecal.growth.words import literal
from onlinecal.report.style import entry, inches, letters, page, paper, plain, wrapped
from onlinecal.study.curves import Curve, Study

Panels = NDArray[Any]
#: width of axes without a width of their own, in inches
WIDTH = 3.4
#: the narrowest and the lowest panel that can be read, in inches
NARROW, LOW = 2.2, 1.1
#: the height of a page of a paper, as a multiple of its width
PAGE = 1.35
#: inches of a bar of colours
BAR = 0.8
#: inches around each panel and all that is written beside it
GAP = 0.055


class Mark(NamedTuple):
    """An artist: its kind, colour, and options of matplotlib, each a value or a function of the rows."""

    kind: str
    colour: Any
    look: Mapping[str, Any]


#: value of the column "mark" of a table → the artists that draw its rows
Marks = Mapping[str, Sequence[Mark]]


def mark(kind: str, colour: Any = None, **look: Any) -> Mark:
    """A mark; by default its colour is that of the place of the rows (see `Paper.named`)."""
    return Mark(kind, colour, look)


class Place(NamedTuple):
    """A panel: its width in inches, whether its figure is new, whether it begins a line, and the axes below it."""

    side: float
    new: bool
    first: bool
    below: Any


def stacked(parts: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The table of some parts: column → one value or an array. A missing value is NaN, or an empty text."""
    parts = [{name: np.asarray(value) for name, value in part.items()} for part in parts]
    lengths = [max((len(value) for value in part.values() if value.ndim), default=1) for part in parts]
    found = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        text = any(name in part and part[name].dtype.kind in "UO" for part in parts)
        kind, missing = (object, np.asarray("")) if text else (None, np.asarray(np.nan))
        found[name] = np.concatenate([
            np.broadcast_to(part.get(name, missing).astype(kind), n)
            for part, n in zip(parts, lengths, strict=True)
        ])  # fmt: skip
    return pd.DataFrame(found)


def show(axis: Axes, rows: pd.DataFrame, marks: Marks, x: str, y: str, series: str) -> None:
    """Draws rows, those of the same mark, series and part together."""
    if not marks:
        return
    here, rows = paper(axis), rows[rows["mark"].isin(marks)]
    by = [name for name in ("mark", series, "part") if name in rows]
    for key, mine in rows.groupby(by, sort=False, dropna=False):
        place = mine["place"].iloc[0] if "place" in mine else np.nan
        style = here.style(int(place)) if place >= 0 else None
        at, up = mine[x].to_numpy(), mine[y].to_numpy()
        for kind, colour, look in marks[key[0]]:
            own: dict[str, Any] = {}
            if style is not None and kind in ("line", "points"):
                own = {"marker": style.marker} | ({"linestyle": style.dashes} if kind == "line" else {})
            own |= {name: value(mine) if callable(value) else value for name, value in look.items()}
            own |= {name: here.named(value) for name, value in own.items() if name.endswith("color")}
            own["color"] = style.colour if colour is None and style is not None else here.named(colour)
            if kind == "line":
                axis.plot(at, up, **own)
            elif kind == "points":
                axis.plot(at, up, linestyle="none", **own)
            elif kind == "steps":
                axis.step(at, up, where="post", **own)
            elif kind == "band":
                axis.fill_between(at, mine["lower"], mine["upper"], linewidth=0, **own)
            elif kind == "bars":
                axis.vlines(at, mine["lower"], mine["upper"], **own)
            else:
                axis.hlines(up, mine["left"], mine["right"], **own)


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A table, and how a picture is made of it."""

    table: pd.DataFrame
    caption: str
    #: the columns of the table across and up, and of the line or colour that a row belongs to
    x: str = "x"
    y: str = "y"
    series: str = "forecaster"
    #: the columns that say in which panel a row is drawn; without `row` the panels are one row
    row: str = ""
    column: str = ""
    marks: Marks = field(default_factory=dict)
    #: draws what marks do not, and sets scales and limits, panel by panel; then for all panels
    after: Callable[[Axes, pd.DataFrame, Place], None] | None = None
    together: Callable[[Panels], None] | None = None
    #: heading of a panel, by row and column
    heading: Callable[[str, str], str] = lambda row, column: column
    #: names of the axes
    labels: tuple[str, str] = ("", "")
    #: the meaning of the shape of the axes, for a message; whether the only axes are returned, not an array
    words: str = "one for each"
    single: bool = False
    #: of the legend: name → place, options of its lines, its colours by place, and more lines, made on its page
    names: Mapping[str, int] = field(default_factory=dict)
    look: Mapping[str, Any] = field(default_factory=dict)
    colours: Sequence[str] | None = None
    more: Callable[[], Sequence[Line2D]] = tuple
    #: height of a panel by its width, of axes below it by its height; heights of rows, by each other
    aspect: float = 0.85
    lower: float = 0.0
    ratios: Sequence[float] = ()
    #: inches beside a panel, by its rows and width, and the height of all in place of what results
    beside: Callable[[pd.DataFrame, float], float] = lambda rows, side: 0.0
    high: Callable[[float, int], float] | None = None
    #: inches of a new figure without a width: of all of it, and of each column
    wide: tuple[float, float] = (1.0, 4.1)
    #: the widest, narrowest and lowest panel in inches, and the most columns
    widest: float = WIDTH
    narrow: float = NARROW
    low: float = LOW
    most: int = 4
    #: which panels have their axis across in common: those of a "row", of a "column", or none
    shared: str = "row"
    #: text of a bar of colours
    bar: str = ""

    @functools.cached_property
    def keys(self) -> NDArray[Any]:
        """(rows, columns, 2) names of panels."""
        rows, columns = (
            list(dict.fromkeys(self.table[name])) if name else [""] for name in (self.row, self.column)
        )
        return np.array([[(row, column) for column in columns] for row in rows], dtype=object)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the axes."""
        rows, columns, _ = self.keys.shape
        return (rows, columns) if self.row and self.column else (max(rows, columns),)

    def rows(self, row: str, column: str) -> pd.DataFrame:
        """The part of the table that a panel shows."""
        names = ((self.row, row), (self.column, column))
        inside = np.logical_and.reduce([np.ones(len(self.table), bool)] + [
            (self.table[name] == value).to_numpy() for name, value in names if name
        ])  # fmt: skip
        return self.table[inside]

    def draw(self, ax: Any, title: str, dark: bool, width: Any, columns: int | None, caption: bool) -> Any:
        """Draws in these axes, or in a new figure; its label is the caption, for a file beside it."""
        if ax is not None:
            panels = _given_axes(ax, self.shape, self.words, title)
            self._fill(panels, WIDTH, {}, new=False)
            return panels.flat[0] if self.single else panels
        asked, each = inches(width), self.keys.shape[1]
        every = min(each, self.most if columns is None else integer("plot", "columns", columns, 1))
        columns = every if asked is None else max(1, min(every, int(asked / self.narrow)))
        wide = asked or self.wide[0] + self.wide[1] * columns
        side = min(self.widest, wide / columns - 0.75)
        with page(dark):
            fig = Figure(figsize=(wide - BAR * bool(self.bar), self._height(side, columns)), dpi=150)
            fig.set_layout_engine("none")  # `finish` lays it out
            panels, below = self._laid_out(fig, columns)
            self._fill(panels, side, below, new=True)
            lines = [*handles(self.names, colours=self.colours, **self.look), *self.more()]
            finish(fig, title, self.caption if caption else "", lines, self.bar)
            fig.set_label(self.caption)
        return panels.flat[0] if self.single else panels

    def _height(self, side: float, columns: int) -> float:
        """Inches of a new figure: at most a page, while panels can be read."""
        if self.high is not None:
            return self.high(side, columns)
        rest, lines = 0.1, 0
        for row in self.keys:
            for i in range(0, len(row), columns):
                there = [(self.heading(*key), self.rows(*key)) for key in row[i : i + columns]]
                heads = max(wrapped(heading, side, _size(side)).count("\n") for heading, _ in there)
                more = max(self.beside(rows, side) for _, rows in there)
                rest, lines = rest + 0.6 + 0.12 * bool(self.lower) + 0.17 * heads + more, lines + 1
        most = (PAGE * columns * (side + 0.75) - rest) / lines
        return rest + lines * max(min(self.aspect * (1.0 + self.lower) * side, most), self.low)

    def _laid_out(self, fig: Figure, columns: int) -> tuple[Panels, dict[Axes, Axes]]:
        """Hidden axes, in lines of `columns`; a row may take several lines. And those below each of them."""
        rows, most, _ = self.keys.shape
        lines, below = -(-most // columns), dict[Axes, Axes]()
        ratios = np.repeat(self.ratios, lines) if self.ratios else None
        grid = fig.add_gridspec(rows * lines, columns, height_ratios=ratios)
        panels: Any = np.empty((rows, most), dtype=object)
        for i, j in np.ndindex(rows, most):
            first = {"row": panels[i, 0] if j and self.row else None, "column": panels[0, j]}.get(self.shared)
            place: Any = grid[i * lines + j // columns, j % columns]
            if self.lower:
                pair = place.subgridspec(2, 1, height_ratios=[1.0, self.lower])
                panels[i, j] = fig.add_subplot(pair[0])
                below[panels[i, j]] = fig.add_subplot(pair[1], sharex=panels[i, j])
            else:
                panels[i, j] = fig.add_subplot(place, sharex=first)
            panels[i, j].set_visible(False)
        return panels.reshape(self.shape), below

    def _fill(self, panels: Panels, side: float, below: dict[Axes, Axes], *, new: bool) -> None:
        columns = self.keys.shape[1]
        for i, (axis, key) in enumerate(zip(panels.flat, self.keys.reshape(-1, 2), strict=True)):
            rows, spec = self.rows(*key), axis.get_subplotspec()
            if rows.empty:
                continue
            if self.lower and not new:
                below[axis] = axis.inset_axes((0.0, -0.06 - self.lower, 1.0, self.lower), sharex=axis)
            first, size = i % columns == 0 or (spec is not None and spec.is_first_col()), _size(side)
            show(axis, rows, self.marks, self.x, self.y, self.series)
            plain(axis, "" if self.lower else self.labels[0], self.labels[1] if first else "")
            # A title with a height is not moved: that would measure all ticks.
            axis.set_title(wrapped(self.heading(*key), side, size), fontsize=size, y=1.0)
            if self.after is not None:
                self.after(axis, rows, Place(side, new, first, below.get(axis, axis)))
            axis.set_visible(True)
        if self.together is not None:
            self.together(panels)


def _size(side: float) -> float:
    """Of headings, by the width of a panel."""
    return 10 if side > 2.5 else 8.5


#: annotation of a first argument → its type, and an example of what is expected
_FIRST: dict[Any, tuple[Any, str]] = {
    "Study": (Study, "a Study"), "Sequence[Curve]": (Sequence, "curves, such as study.curves(['ece'])"),
    "Transcript": (Transcript, "rounds, such as worlds.observe(...)"),
}  # fmt: skip


def pictured(function: Callable[..., Picture]) -> Any:
    """A function that draws the picture of `function`, and shows a new figure in a notebook.

    `picture`, `table` and `caption` of the result take the arguments of `function`.
    """
    own = inspect.signature(function)
    first = next(iter(own.parameters.values()))
    kind: Any
    kind, expected = _FIRST.get(first.annotation, (object, ""))

    @functools.wraps(function)
    def make(*args: Any, **options: Any) -> Picture:
        given: Any = args[0] if args else options.get(first.name)
        of_curves = kind is Sequence and isinstance(given, Sequence)
        if not isinstance(given, kind) or (of_curves and not all(isinstance(c, Curve) for c in given)):
            name = function.__name__.removeprefix("plot_")
            raise InvalidParameter(f"{name}: {first.name} = {in_one_line(given)}; expected {expected}")
        if of_curves and not given:
            raise InvalidParameter("no curves to draw; expected at least one")
        return function(*args, **options)

    @functools.wraps(function)
    def plot(
        *args: Any, ax: Any = None, title: str = "", dark: bool = False, width: Any = None,
        columns: int | None = None, caption: bool = True, **options: Any,
    ) -> Any:  # fmt: skip
        axes = make(*args, **options).draw(ax, title, dark, width, columns, caption)
        if ax is None and in_notebook():
            show_figure(np.ravel(axes)[0].figure)
        return axes

    look = list(inspect.signature(plot, follow_wrapped=False).parameters.values())[1:-1]
    said: Any = plot
    said.__signature__ = own.replace(
        parameters=[*own.parameters.values(), *look], return_annotation=inspect.Signature.empty
    )
    said.picture = make
    said.table = lambda *args, **options: make(*args, **options).table
    said.caption = lambda *args, **options: make(*args, **options).caption
    return plot


def _given_axes(axes: Any, shape: tuple[int, ...], words: str, title: str) -> Panels:
    array = np.array(axes, dtype=object)
    size = int(np.prod(shape))
    # In a flat list the order is plain only of a single row or column.
    fits = array.shape == shape or (array.ndim < 2 and array.size == size == max(shape))
    if not fits or not all(isinstance(each, Axes) for each in array.flat):
        found = f"of shape {array.shape}" if array.ndim else f"{axes!r}"
        raise InvalidParameter(f"ax {found}; expected {' × '.join(map(str, shape))} matplotlib Axes, {words}")
    if title:
        raise InvalidParameter(f"title = {title!r} with ax; expected it to be set on their figure")
    return array.reshape(shape)


def finish(fig: Figure, title: str, caption: str, handles: Sequence[Line2D] = (), bar: str = "") -> None:
    """Makes a figure larger by title, legend, caption and bar of colours, and lays its panels out in between."""
    wide, high = map(float, fig.get_size_inches())
    beside = BAR * bool(bar)
    size = 12.0 if wide + beside > 5 else 9.5
    said, explained = wrapped(title, wide + beside, size), wrapped(caption, wide + beside - 0.2, 7.5)
    top = 0.05 + (1.3 * size / 72 * (said.count("\n") + 1) + 0.04 if said else 0.0)
    bottom = 0.1 + 1.25 * 7.5 / 72 * (explained.count("\n") + 1) if caption else 0.0
    above = top
    if handles:
        for handle in handles:
            handle.set_label(entry(str(handle.get_label()), letters(wide + beside - 0.7, 8)))
        texts = [str(handle.get_label()).split("\n") for handle in handles]
        longest = max(len(line) for text in texts for line in text)
        columns = max(1, min(len(handles), int((wide + beside) * 72 / (0.56 * 8 * (longest + 8)))))
        each = -(-len(texts) // columns)
        lines = max(sum(map(len, texts[i : i + each])) for i in range(0, len(texts), each))
        above += 0.1 + 0.165 * lines
    across, up = round(wide + beside, 9), bottom + high + above
    fig.set_size_inches(across, up)
    # Once: as the engine of the figure it would measure panels whenever that is drawn.
    ConstrainedLayoutEngine(
        h_pad=GAP, w_pad=GAP, hspace=0.0, wspace=0.0, rect=(0.0, bottom / up, wide / across, high / up)
    ).execute(fig)
    if said:
        fig.suptitle(said, fontsize=size, y=1.0 - 0.05 / up, va="top")
    if caption:
        fig.supxlabel(explained, fontsize=7.5, color=paper().faint, y=0.05 / up)
    if handles:
        fig.legend(
            handles=handles, loc="upper center", bbox_to_anchor=(0.5, 1.0 - top / up), ncols=columns, fontsize=8,
            frameon=False, handlelength=2.8, borderaxespad=0.0, borderpad=0.2,
        )  # fmt: skip
    images = [image for axis in fig.axes for image in axis.images]
    if bar and images:
        place = fig.add_axes((1.0 - 0.8 * beside / across, 0.3, 0.14 / across, 0.4))
        fig.colorbar(images[0], cax=place).set_label(bar, fontsize=7.5)
        place.tick_params(labelsize=8)


def handles(places: Mapping[str, int], *, colours: Sequence[str] | None = None, **look: Any) -> list[Line2D]:
    """Lines of a legend: name → place in the study, in the order of places, with other options of matplotlib."""
    found = []
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        style = paper().style(place)
        colour = style.colour if colours is None else colours[place % len(colours)]
        own = {"marker": style.marker, "linestyle": style.dashes, **look}
        found.append(Line2D([], [], color=colour, label=literal(name), **own))
    return found


def names_of(table: pd.DataFrame, series: str = "forecaster") -> dict[str, int]:
    """The lines of a legend: name → place."""
    return {name: int(at) for name, at in zip(table[series], table["place"], strict=True) if at >= 0}


def by_pair(curves: Sequence[Any]) -> dict[tuple[str, str], list[Any]]:
    """(nature, measure) → its curves."""
    found: dict[tuple[str, str], list[Any]] = {}
    for curve in curves:
        found.setdefault((curve.nature, curve.measure), []).append(curve)
    return found


def joined(*sentences: str) -> str:
    """A caption of those sentences that are not empty."""
    return " ".join(filter(None, sentences))
