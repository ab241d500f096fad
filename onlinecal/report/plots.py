"""Curves as pictures: the drawing of what `frames` says is to be drawn, in a new figure or in given axes."""

from __future__ import annotations

import contextlib
import io
import os
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.growth.words import literal
from onlinecal.report.curves import Curve, left_out
from onlinecal.report.frames import BAND, Frame, Reference, frames, games

Floats = NDArray[np.float64]

GREY = "#8C8C8C"
#: of what a nature forces, which is no best known rate
BLACK = "#000000"
#: told apart with every common colour blindness (Okabe and Ito 2008), without the yellow that paper does not keep
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#4D4D4D", "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: of the axes, in inches
WIDTH = 3.4
#: letters in a line of a legend: two columns are no wider than the axes with their labels
LEGEND = 30
FORMATS = ("png", "svg", "pdf")
#: in a label, and no `literal` dollar
_MATHEMATICS = r"(?<!\\)\$[^$]+(?<!\\)\$"


def plot_curve(curve: Curve, ax: Axes | None = None) -> Axes:
    """One curve, as `plot_curves` draws it, in these axes or a figure of its own (``ax.figure``)."""
    axes: Axes = plot_curves([curve], axes=ax)[0, 0]
    return axes


def plot_curves(curves: Sequence[Curve], *, axes: Any = None, title: str = "") -> NDArray[Any]:
    """Totals against T on logarithmic axes: natures down, measures across, a colour a forecaster.

    Where a mean total is negative the vertical axis is linear around 0. Means that have no place on an axis are words
    in the legend, and arrows at its upper edge where they are infinite, at its lower one where they are 0.

    Parameters
    ----------
    curves : sequence of Curve
        At least one.
    axes : (natures, measures) array of matplotlib Axes, optional
        Where to draw; a flat list if either is one, and the Axes themselves if both are. Default: those of a new
        figure, which also gets the title and, below, what the lines mean; to others' figures `caption` says that.
    title : str, optional
        Of a new figure.

    Returns
    -------
    (natures, measures) array of Axes
        Their figure is ``axes[0, 0].figure``. The line is the mean over runs; the band runs from the 5th to the 95th
        percentile of the runs; dashed lines are proven bounds, dotted ones proven rates drawn through the curve's first
        point, black ones of what the nature forces (a rate: through the lowest curve's first point). Grey, labelled at
        its end, is how fast the total of the best forecaster is known to grow against the worst nature: a slope, drawn
        from half the lowest curve at the first T. In a new figure axes are hidden where a measure was not taken.

    Raises
    ------
    InvalidParameter
        No curves; axes of another shape; a title for axes that are given.
    """
    if not curves:
        raise InvalidParameter("no curves to draw; expected at least one")
    drawn = frames(curves)
    natures = list(dict.fromkeys(frame.nature for frame in drawn))
    measures = list(dict.fromkeys(frame.measure for frame in drawn))
    fig = None if axes is not None else _new_figure(drawn, natures, measures)
    shape = len(natures), len(measures)
    panels = (
        given_axes(axes, shape, "natures × measures", title)
        if fig is None
        else fig.subplots(*shape, sharex="row", squeeze=False)
    )
    used = {(frame.nature, frame.measure) for frame in drawn}
    for i, nature in enumerate(natures):
        for j, measure in enumerate(measures):
            if fig is not None and (nature, measure) not in used:
                panels[i, j].set_visible(False)
    scales: dict[int, list[Any]] = {}
    for frame in drawn:
        i, j = natures.index(frame.nature), measures.index(frame.measure)
        if frame.lines and not frame.negative:
            # Totals of one nature are compared across measures; an axis with negative ones is of another kind.
            if fig is not None and i in scales:
                panels[i, j].sharey(scales[i][0])
            scales.setdefault(i, []).append(panels[i, j])
        draw_frame(panels[i, j], frame)
        panels[i, j].set_title(_heading(frame, WIDTH), fontsize=10)
        if j == 0:
            panels[i, j].set_ylabel("total $T\\cdot\\mu$")
    for i, nature in enumerate(natures):
        if i in scales:
            # In a new figure they share it.
            set_heights(
                [frame for frame in drawn if frame.nature == nature],
                scales[i][: 1 if fig is not None else None],
            )
    if fig is not None:
        wide = fig.get_figwidth()
        if title:
            fig.suptitle(wrapped(title, wide, 12), fontsize=12)
        fig.supxlabel(wrapped(_caption(curves, drawn), wide, 7.5), fontsize=7.5, color="#444444")
    return panels


def set_heights(drawn: Sequence[Frame], panels: Sequence[Any]) -> None:
    """Limits of logarithmic axes: from means and bounds, for a band that reaches down to 0 would stretch them without
    end.
    """
    shown = [frame for frame in drawn if not frame.negative]
    heights = [v for frame in shown for line in frame.lines for v in line.mean[line.shown]]
    heights += [v for frame in shown for bound in frame.bounds for v in bound.values]
    heights += [v for frame in shown for reference in frame.references for v in reference.values]
    if heights:
        for panel in panels:
            panel.set_ylim(min(heights) / 1.8, max(heights) * 1.8)


def caption(curves: Sequence[Curve]) -> str:
    """What the lines in `plot_curves` of these curves mean, for a figure of somebody's own."""
    return _caption(curves, frames(curves))


def _new_figure(drawn: Sequence[Frame], natures: list[str], measures: list[str]) -> Figure:
    """A figure with room for its panels, their headings and legends."""
    heads = [max(_heading(frame, WIDTH).count("\n") for frame in drawn if frame.nature == n) for n in natures]
    legends = [max(legend_rows(frame) for frame in drawn if frame.nature == n) for n in natures]
    high = 1.1 + 3.2 * len(natures) + 0.17 * sum(heads) + 0.13 * sum(max(0, n - 3) for n in legends)
    return Figure(figsize=(1.0 + 4.1 * len(measures), high), layout="constrained", dpi=150)


def given_axes(axes: Any, shape: tuple[int, ...], words: str, title: str) -> NDArray[Any]:
    """Axes that somebody gave, as an array of this shape, which are so many of what the words say."""
    array = np.array(axes, dtype=object)
    size = int(np.prod(shape))
    # A flat list says which is which only if there is a single row or column.
    fits = array.shape == shape or (array.ndim < 2 and array.size == size == max(shape))
    if not fits or not all(isinstance(each, Axes) for each in array.flat):
        what = f"of shape {array.shape}" if array.ndim else f"{axes!r}"
        raise InvalidParameter(
            f"axes {what}; expected {' × '.join(map(str, shape))} matplotlib Axes, {words}"
        )
    if title:
        raise InvalidParameter(f"title = {title!r} with axes; expected it to be set on their figure")
    return array.reshape(shape)


def _heading(frame: Frame, inches: float) -> str:
    """What stands above the axes; the nature on lines of its own where the whole does not fit."""
    whole = f"{frame.measure} against {frame.nature}"
    if "\n" not in wrapped(whole, inches, 10):
        return literal(whole)
    return wrapped(f"{frame.measure} against", inches, 10) + "\n" + wrapped(frame.nature, inches, 10)


def wrapped(text: str, inches: float, size: float) -> str:
    """Somebody's text in lines that fit: a letter is little more than half as wide as it is high."""
    return literal(textwrap.fill(text, int(inches * 72 / (0.56 * size))))


def _caption(curves: Sequence[Curve], drawn: Sequence[Frame]) -> str:
    runs, times = sorted({curve.totals.shape[1] for curve in curves}), games(curves)
    several = "–".join(map(str, runs[:: max(len(runs) - 1, 1)]))
    parts = [
        f"{times} Line: mean of {several} run{'s' if runs[-1] > 1 else ''}. Exponent: mean growth over "
        "these T, where that is clear; a…b: no power law, but these slopes over their first and last half."
    ]
    if runs[-1] > 1:
        parts.insert(1, f"Band: {BAND[0]:.0f}th to {BAND[1]:.0f}th percentile of the runs.")
    parts += [left_out(curves)] if left_out(curves) else []
    bounds = [bound for frame in drawn for bound in frame.bounds]
    if any(bound.exact for bound in bounds):
        parts.append("Dashed: proven bound.")
    if any(not bound.exact for bound in bounds):
        parts.append("Dotted: proven rate, drawn through the first point of its curve; black, of the lowest.")
    if any(bound.style is None for bound in bounds):
        parts.append("Black: what the nature forces.")
    if any(frame.references for frame in drawn):
        parts.append(
            "Grey: best known rates against the worst nature, slopes without a constant, drawn from half the lowest "
            "curve at the first T."
        )
    ups = {mark.up for frame in drawn for mark in frame.marks}
    if True in ups:
        parts.append("Arrow at the upper edge: infinite.")
    if False in ups:
        parts.append("Arrow at the lower edge: 0.")
    if any(frame.negative for frame in drawn):
        parts.append(
            "Where totals are negative the vertical axis is linear around 0, between its innermost marks."
        )
    return " ".join(parts)


def draw_frame(axis: Any, frame: Frame, colours: Sequence[str] = COLOURS) -> None:
    """One frame in its axes, with its legend below; the heading and the limits are the caller's."""
    axis.set_xscale("log")
    if frame.negative:
        axis.set_yscale("symlog", linthresh=_linear(frame))
        axis.axhline(0.0, color="#bbbbbb", linewidth=0.8, zorder=0.8)
    else:
        axis.set_yscale("log")
    _draw_references(axis, frame.references)
    for line in frame.lines:
        colour = colours[line.style % len(colours)]
        marker = MARKERS[line.style % len(MARKERS)] if len(line.rounds) <= 20 else None
        axis.fill_between(line.rounds, line.lower, line.upper, color=colour, alpha=0.18, linewidth=0)
        axis.plot(
            line.rounds,
            line.mean,
            color=colour,
            marker=marker,
            markersize=3.5,
            linewidth=1.5,
            label=_entry(line.label),
        )
        if marker is None:
            # A point between two gaps is no line.
            gap = np.concatenate([[True], ~line.shown, [True]])
            lonely = line.shown & gap[:-2] & gap[2:]
            axis.plot(line.rounds[lonely], line.mean[lonely], color=colour, marker=".", linestyle="none")
    for bound in frame.bounds:
        colour = BLACK if bound.style is None else colours[bound.style % len(colours)]
        dashes = (0, (5, 2)) if bound.exact else (0, (1, 1.5))
        axis.plot(
            bound.rounds,
            bound.values,
            color=colour,
            linestyle=dashes,
            linewidth=1.0,
            # A single point is no line.
            marker=None if len(bound.rounds) > 1 else "_",
            markersize=12,
            label=typeset(_entry(bound.label)),
        )
    for k, mark in enumerate(frame.marks):
        # Within the axes and one above the other, so that arrows of several curves are told apart.
        height = 0.97 - 0.045 * k if mark.up else 0.03 + 0.045 * k
        axis.plot(
            mark.rounds,
            np.full(len(mark.rounds), height),
            color=colours[mark.style % len(colours)],
            linestyle="none",
            marker=CARETUPBASE if mark.up else CARETDOWNBASE,
            markersize=6,
            transform=axis.get_xaxis_transform(),
        )
    for style, words in frame.absent:
        axis.plot(
            [],
            [],
            color=colours[style % len(colours)],
            linestyle="none",
            marker=MARKERS[style % len(MARKERS)],
            markersize=3.5,
            label=_entry(words),
        )
    for which, low, high in ((axis.xaxis, *axis.get_xlim()), (axis.yaxis, *axis.get_ylim())):
        if which is axis.yaxis and frame.negative:
            which.set_major_formatter(FuncFormatter(_tick))
            continue
        # Less than a decade and a half would leave one label or none.
        narrow = high / low < 30
        which.set_major_locator(
            LogLocator(base=10.0, subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=12)
        )
        which.set_major_formatter(FuncFormatter(_tick) if narrow else LogFormatterSciNotation())
        which.set_minor_formatter(NullFormatter())
    axis.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8, labelleft=True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    if frame.lines or frame.bounds or frame.absent:
        # Below the axes, where no curve is.
        axis.legend(
            fontsize=7,
            frameon=False,
            loc="upper left",
            bbox_to_anchor=(-0.02, -0.1),
            ncols=2,
            handlelength=2.2,
            columnspacing=1.2,
            borderaxespad=0.2,
        )


def _entry(label: str) -> str:
    """A label in lines that fit a column of the legend; a raised exponent is short, and "T = 300" stays together."""
    powers = re.findall(_MATHEMATICS, label)
    short = re.sub(_MATHEMATICS, "\0\0\0\0", label).replace("T = ", "T\u00a0=\u00a0")
    filled = textwrap.fill(short, LEGEND, break_long_words=False, break_on_hyphens=False)
    for power in powers:
        filled = filled.replace("\0\0\0\0", power, 1)
    # Matplotlib leaves out of legends what begins with an underscore; a hair space shows nothing.
    return f"\u200a{filled}" if filled.startswith("_") else filled


def legend_rows(frame: Frame) -> int:
    """How many lines of text the legend needs in two columns."""
    labels = [line.label for line in frame.lines] + [bound.label for bound in frame.bounds]
    labels += [words for _, words in frame.absent]
    lines = [_entry(label).count("\n") + 1 for label in labels]
    half = (len(lines) + 1) // 2
    return max(sum(lines[:half]), sum(lines[half:]))


def _draw_references(axis: Any, references: Sequence[Reference]) -> None:
    """Behind the curves, labelled to the right of the axes: the lower one from below, so that they never meet."""
    if len(references) == 2:
        low, high = references
        axis.fill_between(
            low.rounds, low.values, high.values, color=GREY, alpha=0.15, linewidth=0, zorder=0.9
        )
    sides = ["top", "bottom"] if len(references) == 2 else ["center"]
    for reference, side in zip(references, sides, strict=False):
        axis.plot(reference.rounds, reference.values, color=GREY, linewidth=0.8, zorder=1.0)
        axis.annotate(
            typeset(reference.label),
            (reference.rounds[-1], reference.values[-1]),
            (8, 0),
            textcoords="offset points",
            va=side,
            fontsize=7,
            color="#5A5A5A",
        )


def _linear(frame: Frame) -> float:
    """Up to where an axis with negative totals is linear: the power of ten at or below the least that is not 0."""
    sizes = np.abs(np.concatenate([line.mean[line.shown] for line in frame.lines]))
    least = max(sizes[sizes > 0].min(), 1e-4 * sizes.max())
    return float(10.0 ** np.floor(np.log10(least)))


def typeset(formula: str) -> str:
    """Powers raised: ``T^(2/3)`` as matplotlib writes it."""
    return re.sub(r"(\w)\^(?:\(([^()]+)\)|([\w.]+))", r"$\\mathregular{\1^{\2\3}}$", formula)


def _tick(value: float, _: object) -> str:
    return f"{value:,.0f}" if 1 <= abs(value) < 1e15 else f"{value:g}"


def save(fig: Figure, path: Path) -> None:
    """Writes a figure as PNG, SVG or PDF, by the ending; the file is there whole or not at all.

    Raises
    ------
    InvalidParameter
        Another ending, or a place that cannot be written.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InvalidParameter(
            f"{path}: cannot draw a {kind or 'file without ending'}; expected .png, .svg or .pdf"
        )
    import matplotlib as mpl

    buffer = io.BytesIO()
    # Without date and random identifiers the same curves give the same file.
    dated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    with mpl.rc_context({"svg.hashsalt": "onlinecal"}):
        fig.savefig(buffer, format=kind, metadata=dated)
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(buffer.getvalue())
        os.replace(partial, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise InvalidParameter(f"{path} cannot be written: {error.strerror or error}") from None
