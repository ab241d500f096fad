"""Open questions as pictures: the drawing of what `questions` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.report.plots import BLACK, COLOURS, GREY, WIDTH, given_axes, wrapped
from onlinecal.report.questions import Bars

ZERO, ONE, OPEN = COLOURS[0], COLOURS[5], GREY


def plot_questions(drawn: Sequence[Bars], *, axes: Any = None, title: str = "") -> NDArray[Any]:
    """A bar for each question, from when it is asked to when its outcome is known; below, how many are open.

    Parameters
    ----------
    drawn : sequence of Bars
        At least one; see `questions.question_bars`.
    axes : (2, schedules) array of matplotlib Axes, optional
        Where to draw: bars above, numbers of open questions below. Default: those of a new figure, which also gets the
        title and, below, what is drawn; to others' figures `caption` says that.
    title : str, optional
        Of a new figure.

    Returns
    -------
    (2, schedules) array of Axes

    Raises
    ------
    InvalidParameter
        Nothing to draw; axes of another shape; a title for axes that are given.
    """
    if not drawn:
        raise InvalidParameter("no questions to draw; expected at least one schedule")
    if axes is not None:
        panels = given_axes(axes, (2, len(drawn)), "2 × schedules", title)
    else:
        high = min(8.0, max(2.6, 0.055 * max(len(bars.asked) for bars in drawn)))
        fig = Figure(
            figsize=(1.0 + 4.1 * len(drawn) * (1.5 if len(drawn) == 1 else 1.0), high + 2.6),
            layout="constrained",
            dpi=150,
        )
        panels = fig.subplots(
            2, len(drawn), sharex="col", squeeze=False, gridspec_kw={"height_ratios": [high, 1.3]}
        )
    for column, bars in zip(panels.T, drawn, strict=True):
        _draw_bars(column[0], bars)
        _draw_count(column[1], bars)
    panels[0, 0].set_ylabel("question", fontsize=8)
    panels[1, 0].set_ylabel("open", fontsize=8)
    if axes is None:
        wide = fig.get_figwidth()
        if title:
            fig.suptitle(wrapped(title, wide, 12), fontsize=12)
        fig.supxlabel(wrapped(caption(drawn), wide, 7.5), fontsize=7.5, color="#444444")
    return panels


def caption(drawn: Sequence[Bars]) -> str:
    """What is drawn in `plot_questions`, for a figure of somebody's own."""
    part = drawn[0].horizon > len(drawn[0].asked)
    first = f"The first {len(drawn[0].asked):,} questions of a game of T = {drawn[0].horizon:,}" if part else (
        f"All questions of a game of T = {drawn[0].horizon:,}"
    )  # fmt: skip
    text = (
        f"{first}. A bar begins when its question is asked and ends when its outcome is known; one that ends at once "
        "is a point. The dashed line is when the next question would be asked"
    )
    text += "." if part else ", with which the game ends."
    if any(bars.open.any() for bars in drawn):
        text += " An arrow: open then, and in no total" + (" yet." if part else ".")
    if any(bars.never.any() for bars in drawn):
        text += " A cross: the outcome never becomes known."
    return text + " All runs share these times."


def _draw_bars(axis: Any, bars: Bars) -> None:
    numbers = np.arange(1, len(bars.asked) + 1)
    ends = np.where(bars.open, bars.end, bars.known)
    groups: list[tuple[NDArray[np.bool_], str]] = [(bars.open, OPEN)]
    if bars.outcomes is None:
        groups.append((~bars.open, ZERO))
    else:
        groups += [(~bars.open & (bars.outcomes == y), colour) for y, colour in ((0, ZERO), (1, ONE))]
    thick = float(np.clip(170.0 / len(numbers), 0.9, 4.0))
    for mine, colour in groups:
        axis.hlines(numbers[mine], bars.asked[mine], ends[mine], color=colour, linewidth=thick)
        at_once = mine & (bars.asked == ends)
        axis.plot(
            bars.asked[at_once], numbers[at_once], color=colour, marker=".", markersize=3, linestyle="none"
        )
    for mine, marker in ((bars.open & ~bars.never, ">"), (bars.open & bars.never, "x")):
        axis.plot(
            ends[mine], numbers[mine], color=BLACK, marker=marker, linestyle="none", zorder=3.0,
            markersize=float(np.clip(260.0 / len(numbers), 1.8, 4.0)),
        )  # fmt: skip
    axis.axvline(bars.end, color=BLACK, linewidth=0.8, linestyle=(0, (4, 3)))
    axis.set_xlim(min(0.0, float(bars.asked[0])) if bars.asked[0] <= bars.end / 2 else None, None)
    axis.set_ylim(len(numbers) + 0.8, 0.2)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    label = bars.schedule.label or "a question a unit, no delay"
    open = int(bars.open.sum())
    axis.set_title(f"{wrapped(label, WIDTH, 10)}\n{open} of {len(numbers)} open", fontsize=10)
    _plain(axis)
    entries = []
    if bars.outcomes is not None:
        entries += [
            Line2D([], [], color=c, linewidth=2, label=f"outcome {y}") for y, c in enumerate((ZERO, ONE))
        ]
    if open:
        entries.append(Line2D([], [], color=OPEN, linewidth=2, marker=">", markersize=3.5,
                              markerfacecolor=BLACK, markeredgecolor=BLACK, label="open"))  # fmt: skip
    if entries:
        # Bars go down to the right: nothing is to the left of the last ones.
        axis.legend(handles=entries, fontsize=7, frameon=False, loc="lower left").set_in_layout(False)


def _draw_count(axis: Any, bars: Bars) -> None:
    times, open = bars.count()
    last = int(bars.open.sum())
    axis.step(np.append(times, bars.end), np.append(open, last), where="post", color=BLACK, linewidth=1.0)
    axis.axvline(bars.end, color=BLACK, linewidth=0.8, linestyle=(0, (4, 3)))
    axis.set_ylim(0, 1.1 * max(1, int(open.max())))
    axis.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axis.set_xlabel("clock", fontsize=8)
    _plain(axis)


def _plain(axis: Any) -> None:
    axis.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
