"""Curves as pictures: the drawing of what `frames` says is to be drawn, in a new figure or in given axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import offset_copy
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import number
from onlinecal.growth.words import BEYOND, literal
from onlinecal.report.curves import Curve, left_out
from onlinecal.report.frames import (
    BAND,
    Frame,
    Reference,
    counted,
    divided,
    forecasters,
    frames,
    games,
    parities,
)
from onlinecal.report.style import (
    GREY,
    Paper,
    across,
    entry,
    finish,
    given_axes,
    handles,
    inches,
    laid_out,
    leftmost,
    letters,
    log_ticks,
    page,
    paper,
    plain,
    tick,
    typeset,
    wrapped,
)

Floats = NDArray[np.float64]

#: of axes without a width of their own, in inches
WIDTH = 3.4
#: so many markers a curve at most: enough to tell it apart in grey
MARKED = 12
#: what a curve looks like
Looks = Sequence[str] | None


def plot_curve(curve: Curve, ax: Axes | None = None) -> Axes:
    """One curve, as `plot_curves` draws it, in these axes or a figure of its own (``ax.figure``)."""
    axes: Axes = plot_curves([curve], axes=ax)[0, 0]
    return axes


def plot_curves(
    curves: Sequence[Curve],
    *,
    power: float = 0.0,
    axes: Any = None,
    title: str = "",
    dark: bool = False,
    width: Any = None,
) -> NDArray[Any]:
    """Totals against T on logarithmic axes: natures down, measures across, a colour, marker and dashes a forecaster.

    Where a mean total is negative the vertical axis is linear around 0. Means that have no place on an axis are words
    in the legend, and arrows at its upper edge where they are infinite, at its lower one where they are 0.

    Parameters
    ----------
    curves : sequence of Curve
        At least one.
    power : float, default 0
        Everything is divided by T^power, so that what grows like that is level: 2/3 shows whether an ECE grows faster
        than the best known upper rate. From −4 to 4.
    axes : (natures, measures) array of matplotlib Axes, optional
        Where to draw; a flat list if either is one, and the Axes themselves if both are. Default: those of a new
        figure, which also gets the title and, below, what the lines mean; to others' figures `caption` says that.
    title : str, optional
        Of a new figure.
    dark : bool, default False
        Whether a new figure is for a dark page.
    width : "column", "page" or float, optional
        Of a new figure, in inches: 3.4 and 7 by those words. Where the measures do not fit beside each other, a nature
        has several rows. Default: 4.1 inches a measure.

    Returns
    -------
    (natures, measures) array of Axes
        Their figure is ``axes[0, 0].figure``. The line is the mean over runs; the band runs from the 5th to the 95th
        percentile of the runs; dashed lines are proven bounds, dotted ones proven rates drawn through the curve's first
        point, those in the colour of the text of what the nature forces (a rate: through the lowest curve's first
        point). Grey, labelled at its end, is how fast the total of the best forecaster is known to grow against the
        worst nature: a slope, drawn from half the lowest curve at the first T. In a new figure with several axes one
        legend above says what curves look like, and axes are hidden where a measure was not taken.

    Raises
    ------
    InvalidParameter
        No curves; axes of another shape; a title for axes that are given.
    """
    if not curves:
        raise InvalidParameter("no curves to draw; expected at least one")
    power = number("curves", "power", power, -4.0, 4.0)
    drawn = [divided(frame, power) for frame in frames(curves)]
    natures = list(dict.fromkeys(frame.nature for frame in drawn))
    measures = list(dict.fromkeys(frame.measure for frame in drawn))
    found = {(frame.nature, frame.measure): frame for frame in drawn}
    table = [[found.get((nature, measure)) for measure in measures] for nature in natures]
    if axes is not None:
        panels = given_axes(axes, (len(natures), len(measures)), "natures × measures", title)
        _fill(panels, table, WIDTH, named=True, power=power)
        return panels
    with page(dark):
        panels, side = new_panels(table, width)
        alone = len(drawn) == 1
        _fill(panels, table, side, named=alone, power=power)
        looks = [] if alone else handles(forecasters(drawn), markersize=4, linewidth=1.5)
        finish(panels[0, 0].get_figure(root=True), title, _caption(curves, drawn, power), looks)
    return panels


def new_panels(table: Sequence[Sequence[Frame | None]], width: Any) -> tuple[NDArray[Any], float]:
    """The axes of a new figure with room for frames, their headings and legends, and how wide each is in inches.

    A row of the table takes as many rows of the figure as it needs.
    """
    most = len(table[0])
    asked = inches(width, 0.0) or None
    columns = across(most, asked)
    wide = asked or 1.0 + 4.1 * most
    side = min(wide / columns - 0.75, WIDTH) if asked else WIDTH
    lines = [
        [frame for frame in row[i : i + columns] if frame] for row in table for i in range(0, most, columns)
    ]
    high = 0.1 + sum(_height(row, side, alone=len(table) == most == 1) for row in lines)
    fig = Figure(figsize=(wide, high), layout="constrained", dpi=150)
    panels = laid_out(fig, len(table), most, columns, shared=True)
    for row, there in zip(panels, table, strict=True):
        for axis, frame in zip(row, there, strict=True):
            axis.set_visible(frame is not None)
    return panels, side


def _height(row: Sequence[Frame], side: float, *, alone: bool) -> float:
    """What the panels of a row need, in inches."""
    head = max((_heading(frame, side).count("\n") for frame in row), default=0)
    below = max((legend_rows(frame, side, named=alone) for frame in row), default=0)
    return max(0.85 * side, 1.6) + 0.6 + 0.17 * head + 0.15 * below


def _fill(
    panels: NDArray[Any],
    table: Sequence[Sequence[Frame | None]],
    side: float,
    *,
    named: bool,
    power: float,
) -> None:
    """Frames into their axes; those of a row that are positive have the same limits upwards."""
    for row, frames_ in zip(panels, table, strict=True):
        shared = []
        for j, (axis, frame) in enumerate(zip(row, frames_, strict=True)):
            if frame is None:
                continue
            draw_frame(axis, frame, side=side, named=named)
            axis.set_title(_heading(frame, side), fontsize=10 if side > 2.5 else 8.5)
            axis.set_xlabel("T", fontsize=8)
            if leftmost(axis, j):
                by = f" / $T^{{{power:.3g}}}$" if power else ""
                axis.set_ylabel(f"total $T\\cdot\\mu${by}", fontsize=8)
            # Totals of one nature are compared across measures; an axis with negative ones is of another kind.
            if frame.lines and not frame.negative:
                shared.append((axis, frame))
        set_heights([frame for _, frame in shared], [axis for axis, _ in shared])


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


def caption(curves: Sequence[Curve], *, power: float = 0.0) -> str:
    """What the lines in `plot_curves` of these curves mean, for a figure of somebody's own."""
    return _caption(curves, frames(curves), power)


def sentences(curves: Sequence[Curve]) -> list[str]:
    """What `caption` says, one thing each."""
    return _sentences(curves, frames(curves))


def _heading(frame: Frame, side: float) -> str:
    """What stands above the axes; the nature on lines of its own where the whole does not fit."""
    whole = f"{frame.measure} against {frame.nature}"
    size = 10 if side > 2.5 else 8.5
    if "\n" not in wrapped(whole, side, size):
        return literal(whole)
    return wrapped(f"{frame.measure} against", side, size) + "\n" + wrapped(frame.nature, side, size)


def _caption(curves: Sequence[Curve], drawn: Sequence[Frame], power: float) -> str:
    parts = _sentences(curves, drawn)
    if power:
        parts.append(
            f"Totals, bounds and rates are divided by T^{power:.3g}; exponents are those of the totals."
        )
    return " ".join(parts)


def _sentences(curves: Sequence[Curve], drawn: Sequence[Frame]) -> list[str]:
    runs = {curve.totals.shape[1] for curve in curves}
    joined = any(len(curve.rounds) > 1 for curve in curves)
    parts = [games(curves), f"{'Line' if joined else 'Point'}: mean of {counted(runs)}."]
    growths = [
        line.exponent for frame in drawn for line in frame.lines if line.exponent and line.exponent.clear
    ]
    if growths:
        cut = {growth.cut for growth in growths}
        one = "the last two decades of the rounds of one game"
        which = "these T" if cut == {False} else one if cut == {True} else f"these T, or {one}"
        parts.append(f"Exponent: mean growth over {which}, where that is clear.")
    if any(growth.bent for growth in growths):
        parts.append(f"a…b: no power law, {BEYOND}, but these slopes over their first and last half.")
    if joined and max(runs) > 1:
        parts.insert(2, f"Band: {BAND[0]:.0f}th to {BAND[1]:.0f}th percentile of the runs.")
    parts += [said for said in (parities(curves), left_out(curves)) if said]
    bounds = [bound for frame in drawn for bound in frame.bounds]
    if any(bound.exact for bound in bounds):
        parts.append("Dashed: proven bound.")
    if rates := [bound for bound in bounds if not bound.exact]:
        own = any(bound.style is not None for bound in rates)
        parts.append(f"Dotted: proven rate{', drawn through the first point of its curve' if own else ''}.")
    whom: dict[str, list[str]] = {}
    for bound in bounds:
        if bound.against:
            whom.setdefault(bound.against, []).append(bound.label)
    parts += [
        f"Proved against {against}: {'; '.join(dict.fromkeys(labels))}." for against, labels in whom.items()
    ]
    if any(bound.style is None for bound in bounds):
        forced = " (a rate: from the lowest curve)" if any(
            bound.style is None and not bound.exact for bound in bounds
        ) else ""  # fmt: skip
        parts.append(f"In the colour of the text: what the nature forces{forced}.")
    if any(frame.references for frame in drawn):
        parts.append(
            "Grey: best known rates against the worst nature, slopes without a constant, drawn from half the lowest "
            "curve at the first T."
        )
    return [*parts, *edges(drawn)]


def edges(drawn: Sequence[Frame]) -> list[str]:
    """What a caption says of arrows at the edges, and of axes with negative totals."""
    parts = []
    ups = {mark.up for frame in drawn for mark in frame.marks}
    if True in ups:
        parts.append("Arrow at the upper edge: infinite.")
    if False in ups:
        parts.append("Arrow at the lower edge: 0.")
    if any(frame.negative for frame in drawn):
        parts.append(
            "Where totals are negative the vertical axis is linear around 0, between its innermost marks."
        )
    return parts


def draw_frame(
    axis: Any, frame: Frame, colours: Looks = None, *, side: float = WIDTH, named: bool = True
) -> None:
    """One frame in its axes, with its legend below; the heading and the limits are the caller's.

    Parameters
    ----------
    axis : Axes
    frame : Frame
    colours : sequence of str, optional
        In place of those of forecasters.
    side : float
        How wide it is, in inches.
    named : bool, default True
        Whether the legend names the curves; else it has only what is to be said of each of them here.
    """
    here = paper(axis)
    axis.set_xscale("log")
    if frame.negative:
        axis.set_yscale("symlog", linthresh=_linear(frame))
        axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=0.8)
    else:
        axis.set_yscale("log")
    _draw_references(axis, frame.references, here)
    width = letters(side / _columns(side), 7) - 6
    for line in frame.lines:
        look = _look(here, line.style, colours)
        axis.fill_between(line.rounds, line.lower, line.upper, color=look["color"], alpha=0.18, linewidth=0)
        label = line.label if named else line.notes
        axis.plot(
            line.rounds,
            line.mean,
            **look,
            markersize=3.5,
            markevery=max(1, -(-len(line.rounds) // MARKED)),
            linewidth=1.5,
            label=entry(label, width) if label else "_",
        )
        # A point between two gaps is no line, and may have no marker.
        gap = np.concatenate([[True], ~line.shown, [True]])
        lonely = line.shown & gap[:-2] & gap[2:]
        if lonely.any() and len(line.rounds) > MARKED:
            axis.plot(
                line.rounds[lonely], line.mean[lonely], color=look["color"], marker=".", linestyle="none"
            )
    for bound in frame.bounds:
        dashes = (0, (5, 2)) if bound.exact else (0, (1, 1.5))
        single = len(bound.rounds) == 1
        look = {} if bound.style is None else _look(here, bound.style, colours)
        axis.plot(
            bound.rounds,
            bound.values,
            color=look.get("color", here.ink),
            linestyle=dashes,
            linewidth=1.0,
            # A single point is no line. At its end a bound has the marker of its curve, hollow: of whom it is, in grey.
            marker="_" if single else look.get("marker"),
            markevery=[len(bound.rounds) - 1],
            markersize=12 if single else 4,
            fillstyle="full" if single else "none",
            label=typeset(entry(bound.label, width)),
        )
    for k, mark in enumerate(frame.marks):
        # Within the axes and one above the other, so that arrows of several curves are told apart.
        height = 0.97 - 0.045 * k if mark.up else 0.03 + 0.045 * k
        axis.plot(
            mark.rounds,
            np.full(len(mark.rounds), height),
            color=_look(here, mark.style, colours)["color"],
            linestyle="none",
            marker=CARETUPBASE if mark.up else CARETDOWNBASE,
            markersize=6,
            transform=axis.get_xaxis_transform(),
        )
    for style, words in frame.absent:
        look = _look(here, style, colours) | {"linestyle": "none"}
        axis.plot([], [], **look, markersize=3.5, label=entry(words, width))
    plain(axis)
    for which, low, high in ((axis.xaxis, *axis.get_xlim()), (axis.yaxis, *axis.get_ylim())):
        if which is axis.yaxis and frame.negative:
            which.set_major_formatter(FuncFormatter(tick))
            continue
        log_ticks(which, high / low)
    axis.tick_params(labelleft=True)
    _draw_legend(axis, _columns(side))


def _draw_legend(axis: Any, columns: int) -> None:
    """Below the axes, where no curve is, and below the name of the horizontal one."""
    if not axis.get_legend_handles_labels()[0]:
        return
    axis.legend(
        fontsize=7,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(-0.02, 0.0),
        bbox_transform=offset_copy(axis.transAxes, axis.get_figure(root=True), y=-27.0, units="points"),
        ncols=columns,
        handlelength=2.2,
        columnspacing=1.2,
        borderaxespad=0.2,
        labelspacing=0.35,
    )


def _look(here: Paper, style: int, colours: Looks) -> dict[str, Any]:
    """What tells a curve apart, as matplotlib's options."""
    look = here.style(style)
    colour = look.colour if colours is None else colours[style % len(colours)]
    return {"color": colour, "marker": look.marker, "linestyle": look.dashes}


def _columns(side: float) -> int:
    """How many entries of a legend stand side by side."""
    return 1 if side < 2.0 else 2


def legend_rows(frame: Frame, side: float, *, named: bool) -> int:
    """How many lines of text the legend of a frame needs."""
    columns = _columns(side)
    labels = [line.label if named else line.notes for line in frame.lines]
    labels += [bound.label for bound in frame.bounds] + [words for _, words in frame.absent]
    width = letters(side / columns, 7) - 6
    lines = [entry(label, width).count("\n") + 1 for label in labels if label]
    each = -(-len(lines) // columns)
    return max((sum(lines[i : i + each]) for i in range(0, len(lines), max(each, 1))), default=0)


def _draw_references(axis: Any, references: Sequence[Reference], here: Paper) -> None:
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
            color=here.faint,
        )


def _linear(frame: Frame) -> float:
    """Up to where an axis with negative totals is linear: the power of ten at or below the least that is not 0."""
    sizes = np.abs(np.concatenate([line.mean[line.shown] for line in frame.lines]))
    least = max(sizes[sizes > 0].min(), 1e-4 * sizes.max())
    return float(10.0 ** np.floor(np.log10(least)))
