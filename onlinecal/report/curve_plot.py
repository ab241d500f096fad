"""Curves of totals against T, and of late outcomes: the drawing of `frames` and `late_frames`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import offset_copy

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import number
from onlinecal.growth.words import BEYOND, literal
from onlinecal.report.curves import Curve, left_out
from onlinecal.report.frames import (
    BAND,
    Bound,
    Frame,
    counted,
    divided,
    forecasters,
    frames,
    games,
    parities,
)
from onlinecal.report.panels import Panels, Picture, handles, leftmost, on_page, pictured
from onlinecal.report.style import (
    GREY,
    Dashes,
    Paper,
    entry,
    letters,
    log_ticks,
    paper,
    plain,
    tick,
    typeset,
    wrapped,
)

#: the most markers of a curve: enough to tell it apart in grey
MARKED = 12
#: of proven bounds and of proven rates
DASHED: Dashes = (0, (5, 2))
DOTTED: Dashes = (0, (1, 1.5))
#: inches of an exponent in a legend
EXPONENT = 0.63
#: colours in place of those of forecasters
Looks = Sequence[str] | None
#: a frame with its row, column and heading
Placed = tuple[Frame, str, str, str]


def plot_curve(curve: Curve, ax: Axes | None = None) -> Axes:
    """One curve, as `plot_curves` draws it, in these axes or a figure of its own (``ax.figure``)."""
    axes: Axes = plot_curves([curve], ax=ax)[0, 0]
    return axes


@pictured
def plot_curves(curves: Sequence[Curve], *, power: float = 0.0) -> Picture:
    """Totals against T on logarithmic axes: natures down, measures across, a colour, marker and dashes a forecaster.

    Lines are means over runs, bands their 5th to 95th percentile; dashed are proven bounds, dotted proven rates, in the
    colour of the text those of the nature, and grey the best known rates against the worst nature. Where a mean is
    negative the vertical axis is linear around 0. Means without a place are words in the legend, and arrows.

    Parameters
    ----------
    curves : sequence of Curve
        At least one.
    power : float, default 0
        Everything is divided by T^power, from −4 to 4: 2/3 shows whether an ECE grows faster than the best known upper
        rate.

    Returns
    -------
    (natures, measures) array of Axes
        Axes of a new figure are hidden where a measure was not taken.
    """
    if not curves:
        raise InvalidParameter("no curves to draw; expected at least one")
    power = number("curves", "power", power, -4.0, 4.0)
    every = [divided(frame, power) for frame in frames(curves)]
    by = f" / $T^{{{power:.3g}}}$" if power else ""
    alone = len(every) == 1
    parts = sentences(curves, every)
    if power:
        parts.append(
            f"Totals, bounds and rates are divided by T^{power:.3g}; exponents are those of the totals."
        )
    return of_frames(
        [(frame, frame.nature, frame.measure, "") for frame in every], " ".join(parts), "natures × measures",
        ("T", f"total $T\\cdot\\mu${by}"), named=alone, names={} if alone else forecasters(every),
    )  # fmt: skip


def of_frames(
    drawn: Sequence[Placed],
    caption: str,
    words: str,
    names_of_axes: tuple[str, str],
    *,
    named: bool,
    names: dict[str, int],
    colours: Callable[[Frame], Looks] = lambda _: None,
    dotted: str = "proven rate",
) -> Picture:
    """Frames in rows and columns; the positive ones have the same limits. `dotted` says what dotted lines are."""
    rows = list(dict.fromkeys(row for _, row, _, _ in drawn))
    columns = list(dict.fromkeys(column for _, _, column, _ in drawn))
    found = {(row, column): (frame, heading) for frame, row, column, heading in drawn}
    table = [[found.get((row, column)) for column in columns] for row in rows]
    alone = len(rows) == len(columns) == 1

    def height(side: float, across: int) -> float:
        rest, lines = 0.1, 0
        for row in table:
            for i in range(0, len(columns), across):
                there = [each for each in row[i : i + across] if each]
                heads = max((_heading(frame, side).count("\n") for frame, _ in there), default=0)
                below = max((legend_rows(frame, side, named=alone) for frame, _ in there), default=0)
                rest, lines = rest + 0.6 + 0.17 * heads + 0.15 * below, lines + 1
        return on_page(side, across, rest, lines)

    def fill(panels: Panels, side: float, new: bool) -> None:
        shared = []
        for axes, row in zip(panels, table, strict=True):
            for j, (axis, each) in enumerate(zip(axes, row, strict=True)):
                if each is None:
                    continue
                frame, heading = each
                draw_frame(axis, frame, colours(frame), side=side, named=named or not new)
                axis.set_visible(True)
                size = _size(side)
                said = wrapped(heading, side, size) if heading else _heading(frame, side)
                axis.set_title(said, fontsize=size)
                axis.set_xlabel(names_of_axes[0], fontsize=8)
                if leftmost(axis, j):
                    axis.set_ylabel(names_of_axes[1], fontsize=8)
                if frame.lines and not frame.negative:
                    shared.append((axis, frame))
        if shared:
            _set_limits(shared)

    return Picture(
        (len(rows), len(columns)), words, fill, caption, height,
        lambda: [
            *handles(names, colours=colours(drawn[0][0]), markersize=4, linewidth=1.5),
            *([] if alone else _kinds([frame for frame, *_ in drawn], dotted)),
        ],
    )  # fmt: skip


def _kinds(drawn: Sequence[Frame], dotted: str) -> list[Line2D]:
    """Lines of a legend for bounds, rates and best known rates."""
    ink, exact = paper().ink, {bound.exact for frame in drawn for bound in frame.bounds}
    found = [Line2D([], [], color=ink, linewidth=1.0, linestyle=DASHED, label="proven bound")] * (
        True in exact
    )
    found += [Line2D([], [], color=ink, linewidth=1.0, linestyle=DOTTED, label=dotted)] * (False in exact)
    if any(frame.references for frame in drawn):
        found.append(Line2D([], [], color=GREY, alpha=0.4, linewidth=7, label="best known rates"))
    return found


def _size(side: float) -> float:
    return 10 if side > 2.5 else 8.5


def _set_limits(shared: Sequence[tuple[Axes, Frame]]) -> None:
    """The same limits for all, from means and bounds: a band that reaches down to 0 would stretch them without end."""
    lines = [line for _, frame in shared for line in frame.lines if line.shown.any()]
    bounds = [each for _, frame in shared for each in (*frame.bounds, *frame.references)]
    heights = np.concatenate([*(line.mean[line.shown] for line in lines), *(each.values for each in bounds)])
    times = np.concatenate([*(line.rounds for line in lines), *(each.rounds for each in bounds)])
    least, most = float(times.min()), float(times.max())
    for axis, _ in shared:
        axis.set_ylim(heights.min() / 1.8, heights.max() * 1.8)
        if least < most:
            axis.set_xlim(least * (least / most) ** 0.05, most * (most / least) ** 0.05)
        for which, low, high in ((axis.xaxis, *axis.get_xlim()), (axis.yaxis, *axis.get_ylim())):
            log_ticks(which, high / low)


def _heading(frame: Frame, side: float) -> str:
    """The symbol and the nature, which has lines of its own where the whole does not fit."""
    whole, size = f"{frame.symbol} against {frame.nature}", _size(side)
    if "\n" not in wrapped(whole, side, size):
        return literal(whole)
    return wrapped(f"{frame.symbol} against", side, size) + "\n" + wrapped(frame.nature, side, size)


def sentences(curves: Sequence[Curve], drawn: Sequence[Frame] | None = None) -> list[str]:
    """The caption of curves, a sentence for each thing."""
    drawn = frames(curves) if drawn is None else drawn
    growths = [
        line.exponent for frame in drawn for line in frame.lines if line.exponent and line.exponent.clear
    ]
    cut, one = {growth.cut for growth in growths}, "the last two decades of the rounds of one game"
    which = "these T" if cut == {False} else one if cut == {True} else f"these T, or {one}"
    bounds, several = (
        [b for frame in drawn for b in frame.bounds],
        len({frame.measure for frame in drawn}) > 1,
    )
    proved: dict[str, dict[str, None]] = {}
    for frame in drawn:
        for bound in frame.bounds:
            if bound.against:
                of = f"{frame.symbol} " * several
                proved.setdefault(bound.against, {})[of + bound.label] = None
    found = [
        games(curves),
        *of_runs({curve.totals.shape[1] for curve in curves}, any(len(curve.rounds) > 1 for curve in curves)),
        f"Exponent: mean growth over {which}, where that is clear." * bool(growths),
        f"a…b: no power law, {BEYOND}, but these slopes over their first and last half."
        * any(g.bent for g in growths),
        parities(curves),
        left_out(curves),
        "Dashed: proven bound." * any(bound.exact for bound in bounds),
        "Dotted: proven rate, drawn through the first point of its curve; of what the nature forces, of the lowest."
        * any(not bound.exact for bound in bounds),
        *(f"Proved against {against}: {'; '.join(labels)}." for against, labels in proved.items()),
        "In the colour of the text: what the nature forces." * any(b.style is None for b in bounds),
        "Grey: best known rates against the worst nature, slopes without a constant, drawn from half the lowest curve "
        "at the first T." * any(frame.references for frame in drawn),
        *edges(drawn),
    ]
    return [each for each in found if each]


def of_runs(runs: set[int], joined: bool, given: str = "") -> list[str]:
    """Sentences of a caption on lines, or points, and bands."""
    band = f"Band: {BAND[0]:.0f}th to {BAND[1]:.0f}th percentile of the runs{given}."
    return [
        f"{'Line' if joined else 'Point'}: mean of {counted(runs)}.",
        *[band] * (joined and max(runs) > 1),
    ]


def edges(drawn: Sequence[Frame]) -> list[str]:
    """Sentences of a caption on arrows at the edges, and on axes with negative totals."""
    ups = {up for frame in drawn for *_, up in frame.marks}
    return [
        *["Arrow at the upper edge: infinite."] * (True in ups),
        *["Arrow at the lower edge: 0."] * (False in ups),
        *["Where totals are negative the vertical axis is linear around 0, between its innermost marks."]
        * any(frame.negative for frame in drawn),
    ]


def draw_frame(axis: Any, frame: Frame, colours: Looks = None, *, side: float, named: bool) -> None:
    """One frame in its axes, with its legend below; the heading and the limits are the caller's."""
    here = paper(axis)
    axis.set_xscale("log")
    if frame.negative:
        axis.set_yscale("symlog", linthresh=_linear(frame))
        axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=0.8)
    else:
        axis.set_yscale("log")
    _draw_references(axis, frame.references, here)
    across = _columns(frame, side, named)
    width, bounds = letters(side / _columns(frame, side, True), 7) - 6, []
    for line in frame.lines:
        look = _look(here, line.style, colours)
        axis.fill_between(line.rounds, line.lower, line.upper, color=look["color"], alpha=0.18, linewidth=0)
        label = line.label if named else line.notes
        axis.plot(
            line.rounds, line.mean, **look, markersize=3.5, markevery=max(1, -(-len(line.rounds) // MARKED)),
            linewidth=1.5, label=entry(label, width) if label else "_",
        )  # fmt: skip
        # A point between two gaps is no line, and may have no marker.
        gap = np.concatenate([[True], ~line.shown, [True]])
        lonely = line.shown & gap[:-2] & gap[2:]
        if lonely.any() and len(line.rounds) > MARKED:
            axis.plot(
                line.rounds[lonely], line.mean[lonely], color=look["color"], marker=".", linestyle="none"
            )
    for bound in frame.bounds:
        dashes = DASHED if bound.exact else DOTTED
        single = len(bound.rounds) == 1
        look = {} if bound.style is None else _look(here, bound.style, colours)
        # A single point is no line. At its end a bound has the marker of its curve, hollow, for a print in grey.
        bounds += axis.plot(
            bound.rounds, bound.values, color=look.get("color", here.ink), linestyle=dashes, linewidth=1.0,
            marker="_" if single else look.get("marker"), markevery=[len(bound.rounds) - 1],
            markersize=12 if single else 4, fillstyle="full" if single else "none",
            label=typeset(entry(bound.label, width)),
        )  # fmt: skip
    for k, (style, rounds, up) in enumerate(frame.marks):
        # Within the axes and one above the other, so that arrows of several curves are told apart.
        height = 0.97 - 0.045 * k if up else 0.03 + 0.045 * k
        axis.plot(
            rounds, np.full(len(rounds), height), color=_look(here, style, colours)["color"],
            linestyle="none", marker=CARETUPBASE if up else CARETDOWNBASE, markersize=6,
            transform=axis.get_xaxis_transform(),
        )  # fmt: skip
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
    shown = [
        each for each in zip(*axis.get_legend_handles_labels(), strict=True) if named or each[0] not in bounds
    ]
    if shown:
        # Below the axes, where no curve is, and below the name of the horizontal one.
        below = offset_copy(axis.transAxes, axis.get_figure(root=True), y=-27.0, units="points")
        axis.legend(
            *zip(*shown, strict=True), fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(-0.02, 0.0),
            bbox_transform=below, ncols=across, handlelength=2.2 if named else 1.6, columnspacing=1.2 if named else 0.7,
            borderaxespad=0.2, labelspacing=0.35, handletextpad=0.8 if named else 0.4,
        )  # fmt: skip


def _look(here: Paper, style: int, colours: Looks) -> dict[str, Any]:
    """Colour, marker and dashes of a curve, as matplotlib's options."""
    look = here.style(style)
    colour = look.colour if colours is None else colours[style % len(colours)]
    return {"color": colour, "marker": look.marker, "linestyle": look.dashes}


def _named(frame: Frame, named: bool) -> list[str]:
    """Labels of the legend of a frame; the legend of a figure and its caption say what the bounds are."""
    labels = [line.label if named else line.notes for line in frame.lines]
    labels += [bound.label for bound in frame.bounds if named] + [words for _, words in frame.absent]
    return list(filter(None, labels))


def _columns(frame: Frame, side: float, named: bool) -> int:
    """The number of columns of a legend: as many as fit of exponents alone, else two if there is room for them."""
    if all(re.fullmatch(r"\$T\^\{[\d.…-]+\}\$", label) for label in _named(frame, named)):
        return max(1, int(side / EXPONENT))
    return 1 if side < 2.0 else 2


def legend_rows(frame: Frame, side: float, *, named: bool) -> int:
    """The number of lines of text in the legend of a frame."""
    columns = _columns(frame, side, named)
    width = letters(side / columns, 7) - 6
    lines = [entry(label, width).count("\n") + 1 for label in _named(frame, named)]
    each = -(-len(lines) // columns)
    return max((sum(lines[i : i + each]) for i in range(0, len(lines), max(each, 1))), default=0)


def _draw_references(axis: Any, references: Sequence[Bound], here: Paper) -> None:
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
            typeset(reference.label), (reference.rounds[-1], reference.values[-1]), (8, 0),
            textcoords="offset points", va=side, fontsize=7, color=here.faint,
        )  # fmt: skip


def _linear(frame: Frame) -> float:
    """Up to where an axis with negative totals is linear: the power of ten at or below the least that is not 0."""
    sizes = np.abs(np.concatenate([line.mean[line.shown] for line in frame.lines]))
    least = max(sizes[sizes > 0].min(), 1e-4 * sizes.max())
    return float(10.0 ** np.floor(np.log10(least)))
