"""Pictures of totals with a panel for each nature, and perhaps each measure: panels, their figure and its legend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from onlinecal.core.columns import Column
from onlinecal.report.style import (
    across,
    finish,
    given_axes,
    handles,
    inches,
    laid_out,
    leftmost,
    page,
    wrapped,
)

#: of axes without a width of their own, in inches
WIDTH = 3.4


class Pair(Protocol):
    """What is drawn of a measure against a nature."""

    @property
    def nature(self) -> str: ...

    @property
    def column(self) -> Column: ...


T = TypeVar("T", bound=Pair)


def panels(
    shape: tuple[int, ...],
    words: str,
    fill: Callable[[NDArray[Any], float], None],
    caption: str,
    names: Mapping[str, int],
    look: Mapping[str, Any],
    *,
    axes: Any,
    title: str,
    dark: bool,
    width: Any,
    most: int = 60,
) -> NDArray[Any]:
    """Panels in these axes, or in a new figure with title, legend and caption.

    Parameters
    ----------
    shape : tuple of int
        (rows, columns) or (columns,).
    words : str
        What the axes are that somebody gives.
    fill : callable
        (axes, width of each in inches) draws; in a new figure axes are hidden until it shows them.
    caption : str
    names, look : mapping
        Of the legend, as in `style.handles`.
    axes, title, dark, width
        As in `curve_plot.plot_curves`.
    most : int
        So many stand side by side.

    Returns
    -------
    array of Axes, of this shape
    """
    if axes is not None:
        found = given_axes(axes, shape, words, title)
        fill(found, WIDTH)
        return found
    asked = inches(width, 0.0) or None
    rows, every = (1, *shape)[-2:]
    columns = across(min(every, most), asked)
    wide = asked or 1.0 + 4.1 * columns
    side = min(WIDTH, wide / columns - 0.75) if asked else WIDTH
    high = max(0.85 * side, 1.6) + 0.75
    with page(dark):
        fig = Figure(figsize=(wide, 0.1 + rows * -(-every // columns) * high), layout="constrained", dpi=150)
        found = laid_out(fig, rows, every, columns, shared=len(shape) > 1).reshape(shape)
        for panel in found.flat:
            panel.set_visible(False)
        fill(found, side)
        finish(fig, title, caption, handles(names, **look))
    return found


def of_pairs(
    drawn: Sequence[T],
    draw: Callable[[Axes, T], None],
    across_: str,
    up: str,
    caption: str,
    names: Mapping[str, int],
    look: Mapping[str, Any],
    *,
    axes: Any,
    title: str,
    dark: bool,
    width: Any,
) -> NDArray[Any]:
    """Natures down and measures across: a panel for each pair that is drawn, named on both axes.

    Parameters
    ----------
    drawn : sequence
    draw : callable
        (axes, what is drawn in them).
    across_, up : str
        Names of the axes.
    caption, names, look, axes, title, dark, width
        As in `panels`.

    Returns
    -------
    (natures, measures) array of Axes
    """
    natures = list(dict.fromkeys(pair.nature for pair in drawn))
    measures = list(dict.fromkeys(pair.column.name for pair in drawn))

    def fill(found: NDArray[Any], side: float) -> None:
        size = 10 if side > 2.5 else 8.5
        for pair in drawn:
            j = measures.index(pair.column.name)
            axis = found[natures.index(pair.nature), j]
            axis.set_visible(True)
            draw(axis, pair)
            axis.set_title(wrapped(f"{pair.column.name} against {pair.nature}", side, size), fontsize=size)
            axis.set_xlabel(across_, fontsize=8)
            if leftmost(axis, j):
                axis.set_ylabel(up, fontsize=8)

    return panels(
        (len(natures), len(measures)), "natures × measures", fill, caption, names, look,
        axes=axes, title=title, dark=dark, width=width,
    )  # fmt: skip
