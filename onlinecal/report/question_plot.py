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
from onlinecal.core.words import number_of
from onlinecal.report.questions import Bars
from onlinecal.report.style import GREY, finish, given_axes, inches, page, paper, plain, wrapped

#: of axes without a width of their own, in inches
WIDTH = 3.4


def plot_questions(
    drawn: Sequence[Bars], *, axes: Any = None, title: str = "", dark: bool = False, width: Any = None
) -> NDArray[Any]:
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
    dark, width
        As in `curve_plot.plot_curves`; all schedules stand side by side.

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
        _fill(panels, drawn, WIDTH)
        return panels
    high = min(8.0, max(2.6, 0.055 * max(len(bars.asked) for bars in drawn)))
    wide = inches(width, 1.0 + 4.1 * len(drawn) * (1.5 if len(drawn) == 1 else 1.0))
    with page(dark):
        fig = Figure(figsize=(wide, high + 1.9), layout="constrained", dpi=150)
        panels = fig.subplots(
            2, len(drawn), sharex="col", squeeze=False, gridspec_kw={"height_ratios": [high, 1.3]}
        )
        _fill(panels, drawn, wide / len(drawn) - 0.7)
        finish(fig, title, caption(drawn))
    return panels


def _fill(panels: NDArray[Any], drawn: Sequence[Bars], side: float) -> None:
    """Each schedule into its two axes."""
    for column, bars in zip(panels.T, drawn, strict=True):
        _draw_bars(column[0], bars, side)
        _draw_count(column[1], bars)
    panels[0, 0].set_ylabel("question", fontsize=8)
    panels[1, 0].set_ylabel("open", fontsize=8)


def caption(drawn: Sequence[Bars]) -> str:
    """What is drawn in `plot_questions`, for a figure of somebody's own."""
    # Of several schedules each sort is said once.
    games = dict.fromkeys(
        (f"first {number_of(len(bars.asked), 'question')}" if _partial(bars) else "all questions")
        + f" of a game of T = {bars.horizon:,}"
        for bars in drawn
    )
    first = "; ".join(games)
    part = {_partial(bars) for bars in drawn}
    text = (
        f"{first[0].upper()}{first[1:]}. A bar begins when its question is asked and ends when its outcome is known; "
        "one that ends at once is a point. The dashed line is when the next question would be asked"
    )
    if len(part) > 1:
        text += "; a game whose questions are all drawn ends with it."
    else:
        text += "." if True in part else ", with which the game ends."
    if any((bars.open & ~bars.never).any() for bars in drawn):
        text += " An arrow: open then, and in no total" + (" yet." if True in part else ".")
    if any((bars.open & bars.never).any() for bars in drawn):
        text += " A cross: the outcome never becomes known."
    return text + " All runs share these times."


def _partial(bars: Bars) -> bool:
    """Whether the game goes on after the questions that are drawn."""
    return bars.horizon > len(bars.asked)


def _draw_bars(axis: Any, bars: Bars, side: float) -> None:
    here = paper(axis)
    zero, one = here.colours[0], here.colours[5]
    numbers = np.arange(1, len(bars.asked) + 1)
    ends = np.where(bars.open, bars.end, bars.known)
    groups: list[tuple[NDArray[np.bool_], str]] = [(bars.open, GREY)]
    if bars.outcomes is None:
        groups.append((~bars.open, zero))
    else:
        groups += [(~bars.open & (bars.outcomes == y), colour) for y, colour in ((0, zero), (1, one))]
    thick = float(np.clip(170.0 / len(numbers), 0.9, 4.0))
    for mine, colour in groups:
        axis.hlines(numbers[mine], bars.asked[mine], ends[mine], color=colour, linewidth=thick)
        at_once = mine & (bars.asked == ends)
        axis.plot(
            bars.asked[at_once], numbers[at_once], color=colour, marker=".", markersize=3, linestyle="none"
        )
    for mine, marker in ((bars.open & ~bars.never, ">"), (bars.open & bars.never, "x")):
        axis.plot(
            ends[mine], numbers[mine], color=here.ink, marker=marker, linestyle="none", zorder=3.0,
            markersize=float(np.clip(260.0 / len(numbers), 1.8, 4.0)),
        )  # fmt: skip
    axis.axvline(bars.end, color=here.ink, linewidth=0.8, linestyle=(0, (4, 3)))
    axis.set_xlim(min(0.0, float(bars.asked[0])) if bars.asked[0] <= bars.end / 2 else None, None)
    axis.set_ylim(len(numbers) + 0.8, 0.2)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    label = bars.schedule.label or "a question a unit, no delay"
    open = int(bars.open.sum())
    axis.set_title(f"{wrapped(label, side, 10)}\n{open} of {len(numbers)} open", fontsize=10)
    plain(axis)
    entries = []
    if bars.outcomes is not None:
        entries += [
            Line2D([], [], color=c, linewidth=2, label=f"outcome {y}") for y, c in enumerate((zero, one))
        ]
    if open:
        entries.append(Line2D([], [], color=GREY, linewidth=2, marker=">", markersize=3.5,
                              markerfacecolor=here.ink, markeredgecolor=here.ink, label="open"))  # fmt: skip
    if entries:
        # Bars go down to the right: nothing is to the left of the last ones.
        axis.legend(handles=entries, fontsize=7, frameon=False, loc="lower left").set_in_layout(False)


def _draw_count(axis: Any, bars: Bars) -> None:
    ink = paper(axis).ink
    times, open = bars.count()
    last = int(bars.open.sum())
    axis.step(np.append(times, bars.end), np.append(open, last), where="post", color=ink, linewidth=1.0)
    axis.axvline(bars.end, color=ink, linewidth=0.8, linestyle=(0, (4, 3)))
    axis.set_ylim(0, 1.1 * max(1, int(open.max())))
    axis.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axis.set_xlabel("clock", fontsize=8)
    plain(axis)
