"""Colours on light and dark paper, widths, text that fits, and files of all pictures."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter, in_one_line
from onlinecal.core.writing import whole

Dashes = tuple[int, tuple[float, ...]]

#: The first seven are of Okabe and Ito (2008), for every common colour blindness, without yellow. Without green cones
#: the last two are told apart by their markers alone.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#4D4D4D", "#882255")
#: the same hues, as light as a dark page needs
BRIGHT = ("#4BA6E8", "#FF8A4C", "#2CC79B", "#EDA3CB", "#A3DAF9", "#FFC44D", "#BDBDBD", "#DB6A9D")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: of curves; bounds are dashed and rates dotted, both thinner
DASHES: tuple[Dashes, ...] = ((0, ()), (0, (7, 1.5, 1, 1.5)), (0, (7, 1.5, 1, 1.5, 1, 1.5)), (0, (12, 2)))
GREY = "#8C8C8C"
FORMATS = ("png", "svg", "pdf")
#: Text stays text in SVG and PDF (fonts of Type 42), and identifiers are the same for the same figure.
VECTOR: Any = {"svg.hashsalt": "onlinecal", "svg.fonttype": "none", "pdf.fonttype": 42}
_BARE: Any = {"Date": None, "Creator": None, "Format": None, "Type": None}
#: in inches: a column and a page of a paper
WIDTHS = {"column": 3.4, "page": 7.0}
#: of every picture
STYLE: Any = {
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6, "axes.axisbelow": True, "font.size": 8, "axes.titlesize": 9,
    "axes.titley": 1.0, "legend.frameon": False,
    "legend.fontsize": 7, "lines.linewidth": 1.4, "lines.markersize": 4,
    "axes.prop_cycle": cycler(color=COLOURS),
}  # fmt: skip


@contextlib.contextmanager
def page(dark: bool) -> Iterator[None]:
    """While it lasts new figures have our style, on matplotlib's dark background or as users have it set."""
    night = {"grid.color": "#444444", "axes.prop_cycle": cycler(color=BRIGHT)}
    with mpl.style.context(["dark_background"] * dark), mpl.rc_context(STYLE | (night if dark else {})):
        yield


def look(place: int) -> dict[str, Any]:
    """Colour, marker and dashes of the forecaster with this place in a study, on the page that is open.

    Of the first 64 no two have the same colour and marker. Of the first 32 no two the same marker and dashes.
    """
    colours = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    turn = place // len(MARKERS)
    return {
        "color": colours[place % len(colours)], "marker": MARKERS[(place + turn) % len(MARKERS)],
        "linestyle": DASHES[(turn + turn // len(MARKERS)) % len(DASHES)],
    }  # fmt: skip


def ink() -> str:
    """The colour of text on the page that is open."""
    return str(mpl.rcParams["text.color"])


def inches(width: Any) -> float | None:
    """The width of a new figure: ``"column"``, ``"page"`` or a number of inches; None for the default."""
    if width is None:
        return None
    with contextlib.suppress(TypeError, ValueError):
        found = float(WIDTHS.get(width, width))
        if 2.0 <= found <= 60.0:
            return found
    raise InvalidParameter(
        f"width = {width!r}; expected 'column' ({WIDTHS['column']} inches), 'page' ({WIDTHS['page']:g} inches) or "
        "a number of inches from 2 to 60"
    )


def typeset(formula: str) -> str:
    """Powers raised: ``T^(2/3)`` as matplotlib writes it."""
    return re.sub(r"(\w)\^(?:\(([^()]+)\)|([\w.]+))", r"$\\mathregular{\1^{\2\3}}$", formula)


def tick(value: float, _: object = None) -> str:
    """A number beside an axis."""
    whole = abs(value) < 1e15 and abs(value - round(value)) < 1e-9 * abs(value)
    return f"{value:,.0f}" if whole else f"{value:g}"


def decade(value: float, _: object = None) -> str:
    """A power of ten beside an axis, as text: a formula takes as long to parse as its axis to draw."""
    return (
        "10" + f"{np.log10(value):.0f}".translate(_RAISED) if value > 0.0 else ""
    )  # 0: less than any number


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def ticks(*axes: Any, most: int = 5, **options: Any) -> None:
    """Numbers beside axes: of linear ones at most as many, with options of matplotlib's locator."""
    for which in axes:
        if which.get_scale() != "log":
            which.set_major_locator(MaxNLocator(most, **options))
            which.set_major_formatter(FuncFormatter(tick))
            continue
        low, high = which.get_view_interval()
        # Less than a decade and a half would leave one label or none.
        narrow = high < 30.0 * low
        which.set_major_locator(
            LogLocator(base=10.0, subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=12)
        )
        which.set_major_formatter(FuncFormatter(tick if narrow else decade))
        which.set_minor_locator(
            NullLocator() if narrow else LogLocator(base=10.0, subs=(2.0, 5.0), numticks=12)
        )
        which.set_minor_formatter(NullFormatter())


def least_power(sizes: Any) -> float:
    """The power of ten at or below the least of positive sizes, of which an axis is linear around 0."""
    return float(10.0 ** np.floor(np.log10(max(sizes.min(), 1e-4 * sizes.max()))))


def thinned(x: Floats, y: Floats, pieces: int = 2000) -> tuple[Floats, Floats]:
    """A selection of at most 4 × `pieces` points that looks the same: of each piece the ends, least and largest y."""
    if len(x) <= 4 * pieces:
        return x, y
    edges = np.searchsorted(x, np.linspace(x[0], x[-1], pieces + 1)[1:-1])
    bounds = np.unique(np.concatenate(([0], edges, [len(x)])))
    keep = [
        (a, b - 1, a + int(np.argmin(y[a:b])), a + int(np.argmax(y[a:b])))
        for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]
    chosen = np.unique(keep)
    return x[chosen], y[chosen]


def written(fig: Figure, kind: str, dpi: float | None = None) -> bytes:
    """A figure in one of `FORMATS`; without date and random identifiers, the same for the same figure."""
    buffer = io.BytesIO()
    dated: dict[str, Any] = {"svg": _BARE, "pdf": {"CreationDate": None}}.get(kind, {})
    with mpl.rc_context(VECTOR | {"savefig.facecolor": "auto"}):
        fig.savefig(buffer, format=kind, metadata=dated, dpi=dpi or "figure")
    return buffer.getvalue()


def save(fig: Figure, path: Path | str, dpi: float | None = None) -> None:
    """Writes a figure as PNG, SVG or PDF, by the ending; the file is there whole or not at all.

    `dpi`: points an inch of a PNG; default those of the figure.
    """
    if not isinstance(fig, Figure):
        raise InvalidParameter(f"save: {in_one_line(fig)}; expected a figure, such as ax.figure")
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        kind = kind or "file without ending"
        raise InvalidParameter(f"{path}: cannot draw a {kind}; expected .png, .svg or .pdf")
    data = written(fig, kind, dpi)
    with whole(path) as new:
        new.write_bytes(data)
