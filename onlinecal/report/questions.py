"""When questions are asked and their outcomes become known: data, then drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.validation import count
from onlinecal.core.words import number_of
from onlinecal.engine.horizon import check_horizon
from onlinecal.report.panels import Panels, Picture, joined, pictured
from onlinecal.report.style import GREY, paper, plain, wrapped
from onlinecal.rounds.law import Floats
from onlinecal.schedules import Schedule

#: questions of one picture, in which a bar can be told from the next
MOST = 200


@dataclass(frozen=True)
class Bars:
    """The first questions of a game, as they stand at `end`, when the next one would be asked."""

    schedule: Schedule
    horizon: int
    #: on the game's clock; an outcome that never becomes known is at infinity
    asked: Floats
    known: Floats
    end: float
    open: NDArray[np.bool_]
    outcomes: NDArray[np.int64] | None

    @property
    def never(self) -> NDArray[np.bool_]:
        """Questions without an outcome, ever."""
        return np.isinf(self.known)

    def count(self) -> tuple[Floats, NDArray[np.int64]]:
        """When the number of open questions changes, and how many there are from then on."""
        done = self.known[~self.open]
        times = np.unique(np.concatenate([self.asked, done]))
        asked = np.searchsorted(self.asked, times, side="right")
        return times, asked - np.searchsorted(np.sort(done), times, side="right")


def question_bars(
    schedule: Schedule, horizon: int, seed: int = 0, outcomes: ArrayLike | None = None, first: int = MOST
) -> Bars:
    """The times at which the questions of a game are asked and their outcomes become known.

    Parameters
    ----------
    schedule : Schedule
    horizon, seed : int
        Of the game: its times depend on both.
    outcomes : (n,) ints, optional
        0 or 1, of one run, for as many questions as are drawn.
    first : int, default 200
        No more than so many questions; at most 200.
    """
    check_horizon(horizon)
    number = min(count("first", first, most=MOST), horizon)
    length = schedule.length
    if length is not None and horizon > length:
        raise InvalidParameter(
            f"horizon = {horizon}, but the schedule has {length} questions; expected at most {length}"
        )
    clock = schedule.clock(horizon, seed)
    asked, known = np.array([clock.times(n) for n in range(1, number + 1)]).T
    end = clock.times(number + 1)[0]
    if np.isinf(end):
        # The last question of a file: the game ends when all is known that ever will be.
        end = float(max(asked[-1], known[np.isfinite(known)].max(initial=-np.inf)))
        open = np.isinf(known)
    else:
        open = known >= end
    given = None
    if outcomes is not None:
        given = np.asarray(outcomes)
        if given.shape != (number,) or not np.isin(given, (0, 1)).all():
            raise InvalidData(
                f"outcomes of shape {given.shape}; expected {number} numbers 0 or 1, one for each question"
            )
        given = given.astype(np.int64)
    return Bars(schedule, horizon, asked, known, float(end), open, given)


@pictured
def plot_questions(drawn: Sequence[Bars]) -> Picture:
    """A bar for each question, from when it is asked to when its outcome is known; below, how many are open.

    Parameters
    ----------
    drawn : sequence of Bars
        At least one; see `questions.question_bars`.

    Returns
    -------
    (2, schedules) array of Axes
        Bars above, numbers of open questions below; all schedules stand side by side.
    """
    if not drawn:
        raise InvalidParameter("no questions to draw; expected at least one schedule")
    high = min(8.0, max(2.6, 0.055 * max(len(bars.asked) for bars in drawn)))

    def build(fig: Figure, columns: int) -> Panels:
        heights = {"height_ratios": [high, 1.3]}
        panels: Panels = fig.subplots(2, columns, sharex="col", squeeze=False, gridspec_kw=heights)
        return panels

    def fill(panels: Panels, side: float, _: bool) -> None:
        for column, bars in zip(panels.T, drawn, strict=True):
            _draw_bars(column[0], bars, side)
            _draw_count(column[1], bars)
        panels[0, 0].set_ylabel("question", fontsize=8)
        panels[1, 0].set_ylabel("open", fontsize=8)

    return Picture(
        (2, len(drawn)), "2 × schedules", fill, _caption(drawn), lambda *_: high + 1.9, build=build,
        wide=(1.0, 4.1 * (1.5 if len(drawn) == 1 else 1.0)), gap=0.7, widest=60.0, narrow=0.01,
    )  # fmt: skip


def _caption(drawn: Sequence[Bars]) -> str:
    part = {bars.horizon > len(bars.asked) for bars in drawn}
    shown = [
        f"first {number_of(len(b.asked), 'question')}" if b.horizon > len(b.asked) else "all questions"
        for b in drawn
    ]
    # Of several schedules each sort is said once.
    sorts = dict.fromkeys(
        f"{some} of a game of T = {b.horizon:,}" for some, b in zip(shown, drawn, strict=True)
    )
    first = "; ".join(sorts)
    ends = "; a game whose questions are all drawn ends with it" if len(part) > 1 else (
        "" if True in part else ", with which the game ends"
    )  # fmt: skip
    return joined(
        f"{first[0].upper()}{first[1:]}. A bar begins when its question is asked and ends when its outcome is known; "
        f"one that ends at once is a point. The dashed line is when the next question would be asked{ends}.",
        f"An arrow: open then, and in no total{' yet' * (True in part)}."
        * any((b.open & ~b.never).any() for b in drawn),
        "A cross: the outcome never becomes known." * any((b.open & b.never).any() for b in drawn),
        "All runs share these times.",
    )


def _draw_bars(axis: Axes, bars: Bars, side: float) -> None:
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


def _draw_count(axis: Axes, bars: Bars) -> None:
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
