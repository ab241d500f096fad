"""The scaffold of all pictures: panels in given axes, or in a new figure with title, legend and caption."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution, check_gamma
from onlinecal.core.validation import integer
from onlinecal.forecasts.table import Evaluation
from onlinecal.growth.words import literal
from onlinecal.report.style import entry, inches, letters, page, paper, wrapped

Panels = NDArray[Any]
#: width of axes without a width of their own, in inches
WIDTH = 3.4
#: the narrowest and the lowest panel that can be read, in inches
NARROW, LOW = 2.2, 1.1
#: the height of a page of a paper, as a multiple of its width
PAGE = 1.35


@dataclass(frozen=True)
class Picture:
    """A picture without axes: its panels, their drawing and its caption."""

    #: of the array of axes
    shape: tuple[int, ...]
    #: the meaning of `shape`, for a message
    words: str
    #: draws, of the axes, their width in inches, and whether the figure is new
    fill: Callable[[Panels, float, bool], None]
    caption: str
    #: inches of a new figure, by the width of a panel and the number of columns
    height: Callable[[float, int], float]
    #: lines of the legend, made on the page of the figure
    legend: Callable[[], Sequence[Line2D]] = tuple
    #: inches of a new figure without a width: of all of it, and of each column
    wide: tuple[float, float] = (1.0, 4.1)
    #: inches between panels, the widest and the narrowest panel, and the most columns
    gap: float = 0.75
    widest: float = WIDTH
    narrow: float = NARROW
    most: int = 4
    #: width of a panel for `fill` and `height` in a figure without a width, where it is not what results
    free: float | None = None
    #: whether the panels of a row have their axis across in common
    shared: bool = True
    #: makes the axes, of a figure and the number of columns; default `_laid_out`
    build: Callable[[Figure, int], Panels] | None = None
    #: whether the only axes are returned, not an array
    single: bool = False

    def draw(self, ax: Any, title: str, dark: bool, width: Any, columns: int | None, caption: bool) -> Any:
        """Draws in these axes, or in a new figure; its label is the caption, for a file beside it."""
        if ax is not None:
            panels = _given_axes(ax, self.shape, self.words, title)
            self.fill(panels, WIDTH, False)
            return panels.flat[0] if self.single else panels
        asked = inches(width)
        every = min(self.shape[-1], self.most if columns is None else integer("plot", "columns", columns, 1))
        columns = every if asked is None else max(1, min(every, int(asked / self.narrow)))
        wide = asked or self.wide[0] + self.wide[1] * columns
        side = min(self.widest, wide / columns - self.gap)
        if asked is None and self.free is not None:
            side = self.free
        with page(dark):
            fig = Figure(figsize=(wide, self.height(side, columns)), layout="constrained", dpi=150)
            panels = (
                self.build(fig, columns) if self.build else _laid_out(fig, self.shape, columns, self.shared)
            )
            self.fill(panels, side, True)
            finish(fig, title, self.caption if caption else "", self.legend())
            fig.set_label(self.caption)
        return panels.flat[0] if self.single else panels

    def lines(self, columns: int) -> int:
        """Lines of panels in a figure."""
        return int(np.prod(self.shape[:-1])) * -(-self.shape[-1] // columns)


def pictured(make: Callable[..., Picture]) -> Any:
    """A function that draws the picture which `make` describes; its `caption` takes the arguments of `make`."""

    @functools.wraps(make)
    def plot(
        *args: Any, ax: Any = None, title: str = "", dark: bool = False, width: Any = None,
        columns: int | None = None, caption: bool = True, **options: Any,
    ) -> Any:  # fmt: skip
        return make(*args, **options).draw(ax, title, dark, width, columns, caption)

    look = list(inspect.signature(plot, follow_wrapped=False).parameters.values())[1:-1]
    own = inspect.signature(make)
    said: Any = plot
    said.__signature__ = own.replace(
        parameters=[*own.parameters.values(), *look], return_annotation=inspect.Signature.empty
    )
    said.caption = lambda *args, **options: make(*args, **options).caption
    return plot


def head(
    axis: Axes,
    text: str,
    side: float,
    place: int,
    across: str,
    up: str,
    sizes: tuple[float, float] = (10, 8.5),
) -> None:
    """Shows axes, with a heading in the size that fits their width, and names; upwards at the first of a line."""
    size = sizes[0] if side > 2.5 else sizes[1]
    axis.set_visible(True)
    axis.set_title(wrapped(text, side, size), fontsize=size)
    axis.set_xlabel(across, fontsize=8)
    if leftmost(axis, place):
        axis.set_ylabel(up, fontsize=8)


def leftmost(axis: Axes, place: int) -> bool:
    """Whether axes are the first of a line of the figure; of given ones, the first."""
    spec = axis.get_subplotspec()
    return place == 0 or (spec is not None and spec.is_first_col())


def _laid_out(fig: Figure, shape: tuple[int, ...], columns: int, shared: bool) -> Panels:
    """Hidden axes of this shape, in lines of `columns`; a row may take several lines."""
    rows, most = (1, *shape)[-2:]
    lines = -(-most // columns)
    grid = fig.add_gridspec(rows * lines, columns)
    panels = np.empty((rows, most), dtype=object)
    for i, j in np.ndindex(rows, most):
        first = panels[i, 0] if shared and len(shape) > 1 and j else None
        panels[i, j] = axis = fig.add_subplot(grid[i * lines + j // columns, j % columns], sharex=first)
        axis.set_visible(False)
    return panels.reshape(shape)


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


def finish(fig: Figure, title: str, caption: str, handles: Sequence[Line2D] = ()) -> None:
    """Adds title, caption and legend to a figure with a constrained layout, which becomes as much higher."""
    wide, high = map(float, fig.get_size_inches())
    size = 12.0 if wide > 5 else 9.5
    said = wrapped(title, wide, size) if title else ""
    if caption:
        explained = wrapped(caption, wide - 0.2, 7.5)
        fig.supxlabel(explained, fontsize=7.5, color=paper().faint)
        high += 0.1 + 1.25 * 7.5 / 72 * (explained.count("\n") + 1)
    top = 0.05 + (1.3 * size / 72 * (said.count("\n") + 1) + 0.04 if said else 0.0)
    if not handles:
        if said:
            fig.suptitle(said, fontsize=size)
        fig.set_figheight(high + top)
        return
    for handle in handles:
        handle.set_label(entry(str(handle.get_label()), letters(wide - 0.7, 8)))
    texts = [str(handle.get_label()).split("\n") for handle in handles]
    longest = max(len(line) for text in texts for line in text)
    columns = max(1, min(len(handles), int(wide * 72 / (0.56 * 8 * (longest + 8)))))
    each = -(-len(texts) // columns)
    lines = max(sum(map(len, texts[i : i + each])) for i in range(0, len(texts), each))
    # Matplotlib would put title and legend at the upper edge, one over the other.
    above = top + 0.1 + 0.165 * lines
    high += above
    fig.set_figheight(high)
    if said:
        fig.suptitle(said, fontsize=size, y=1.0 - 0.05 / high, va="top").set_in_layout(False)
    fig.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, 1.0 - top / high), ncols=columns, fontsize=8,
        frameon=False, handlelength=2.8, borderaxespad=0.0, borderpad=0.2,
    )  # fmt: skip
    engine = fig.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(rect=(0.0, 0.0, 1.0, 1.0 - above / high))


def handles(places: Mapping[str, int], *, colours: Sequence[str] | None = None, **look: Any) -> list[Line2D]:
    """Lines of a legend: name → place in the study, in the order of places, with other options of matplotlib."""
    found = []
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        style = paper().style(place)
        colour = style.colour if colours is None else colours[place % len(colours)]
        own = {"marker": style.marker, "linestyle": style.dashes, **look}
        found.append(Line2D([], [], color=colour, label=literal(name), **own))
    return found


def on_page(side: float, columns: int, rest: float, lines: int) -> float:
    """The height of a figure with `rest` inches beside its panels: at most a page, while panels can be read."""
    page = PAGE * columns * (side + 0.75)
    return rest + lines * max(min(0.85 * side, (page - rest) / lines), LOW)


def even(
    shape: tuple[int, ...],
    words: str,
    fill: Callable[[Panels, float, bool], None],
    caption: str,
    names: Mapping[str, int],
    look: Mapping[str, Any],
    most: int = 4,
) -> Picture:
    """A picture whose panels are all equally high, with a legend of these names."""

    def height(side: float, columns: int) -> float:
        lines = picture.lines(columns)
        return on_page(side, columns, 0.1 + 0.75 * lines, lines)

    picture = Picture(shape, words, fill, caption, height, lambda: handles(names, **look), most=most)
    return picture


def of_pairs(
    drawn: Mapping[tuple[str, str], Any],
    draw: Callable[[Axes, Any], None],
    labels: tuple[str, str],
    caption: str,
    names: Mapping[str, int],
    look: Mapping[str, Any],
) -> Picture:
    """Natures down and measures across: a panel for each (nature, measure) that is drawn."""
    natures, measures = (list(dict.fromkeys(pair[k] for pair in drawn)) for k in (0, 1))

    def fill(panels: Panels, side: float, _: bool) -> None:
        for (nature, measure), each in drawn.items():
            j = measures.index(measure)
            axis = panels[natures.index(nature), j]
            draw(axis, each)
            head(axis, f"{measure} against {nature}", side, j, *labels)

    return even((len(natures), len(measures)), "natures × measures", fill, caption, names, look)


def by_pair(curves: Sequence[Any]) -> dict[tuple[str, str], list[Any]]:
    """(nature, measure) → its curves."""
    found: dict[tuple[str, str], list[Any]] = {}
    for curve in curves:
        found.setdefault((curve.nature, curve.measure), []).append(curve)
    return found


def joined(*sentences: str) -> str:
    """A caption of those sentences that are not empty."""
    return " ".join(filter(None, sentences))


Floats = NDArray[np.float64]
#: Γ, or what `evaluate` made of it
Known = JointDistribution | Evaluation
#: or several by their headings; of samples a pair (p, y)
Gammas = Known | Mapping[str, Known | tuple[ArrayLike, ArrayLike]]
#: levels that are drawn one by one
MOST = 200
#: ends of axes, from 0, or to 1
NICE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def gammas_of(where: str, p: Gammas | ArrayLike, y: ArrayLike | None) -> dict[str, JointDistribution]:
    """Label → Γ, of samples, of a Γ, of an `Evaluation`, or of several by label."""
    if isinstance(p, Known | Mapping):
        if y is not None:
            raise InvalidParameter(
                f"{where}: y beside a JointDistribution, which holds outcomes; expected one of the two"
            )
        if isinstance(p, Mapping) and not p:
            raise InvalidParameter(f"{where}: nothing to draw; expected at least one JointDistribution")
        several = p if isinstance(p, Mapping) else {"": p}
        return {label: _gamma(where, one) for label, one in several.items()}
    if y is None:
        raise InvalidData(f"{where}: y is missing; expected the outcomes of the predictions p")
    return {"": JointDistribution.from_samples(p, y)}


def _gamma(where: str, one: Any) -> JointDistribution:
    if isinstance(one, Evaluation):
        return one.gamma
    if isinstance(one, tuple) and len(one) == 2:
        return JointDistribution.from_samples(*one)
    check_gamma(where, one)
    gamma: JointDistribution = one
    return gamma


def of_gammas(
    p: Any,
    drawn: Sequence[Any],
    draw: Callable[[Axes, Axes, Any, bool], None],
    headings: Sequence[str],
    caption: str,
    high: float,
    lower: float = 0.0,
    names: Mapping[str, int] = MappingProxyType({}),
    after: Callable[[Panels], None] = lambda _: None,
) -> Picture:
    """A panel for each of what is drawn of p, `high` inches for each of its width, and axes below each of them.

    `draw` takes the axes, those below, what is drawn of one, and whether the figure is new; `lower` is the height of
    axes below as a part of that of the panel, 0 for none. In given axes they hang below these.
    """
    shape, below = (len(drawn),), dict[Axes, Axes]()
    headings = [
        f"{getattr(one, 'label', '')}\n{text}".strip() for one, text in zip(drawn, headings, strict=True)
    ]

    def height(side: float, columns: int) -> float:
        heads = max(wrapped(heading, side, 9).count("\n") for heading in headings)
        each = side * high * (1.0 + lower) + 0.75 + 0.12 * bool(lower) + 0.16 * heads
        return -(-len(drawn) // columns) * each

    def build(fig: Figure, columns: int) -> Panels:
        grid = fig.add_gridspec(-(-len(drawn) // columns), columns)
        found = []
        for i in range(len(drawn)):
            place: Any = grid[divmod(i, columns)]
            if lower:
                pair = place.subgridspec(2, 1, height_ratios=[1.0, lower], hspace=0.0)
                found.append(fig.add_subplot(pair[0]))
                below[found[-1]] = fig.add_subplot(pair[1], sharex=found[-1])
            else:
                found.append(fig.add_subplot(place))
        return np.array(found, dtype=object)

    def fill(panels: Panels, side: float, new: bool) -> None:
        for axis, one, heading in zip(panels, drawn, headings, strict=True):
            if lower and not new:
                below[axis] = axis.inset_axes((0.0, -0.06 - lower, 1.0, lower), sharex=axis)
            draw(axis, below.get(axis, axis), one, new)
            axis.set_title(wrapped(heading, side, 9), fontsize=9)
        after(panels)

    return Picture(
        shape, "one for each", fill, caption, height, lambda: handles(names, markersize=4, linewidth=1.5),
        wide=(1.0, 3.9), gap=0.65, widest=60.0, most=3, build=build, single=not isinstance(p, Mapping),
    )  # fmt: skip


def spans(*values: Floats) -> list[tuple[float, float]]:
    """Limits of axes of probabilities: [0, 1], or as much of one end as rare or almost certain events need.

    >>> spans(np.array([0.001, 0.03]), np.array([0.0, 0.4])), spans(np.array([0.93]))
    ([(0.0, 0.05), (0.0, 0.5)], [(0.9, 1.0)])
    """
    found = []
    for some in values:
        low, high = float(some.min()), float(some.max())
        end = min([1.0, *(end for end in NICE if end >= min(high, 1.0 - low))])
        found.append((0.0, end) if high <= end else (1.0 - end, 1.0))
    return found
