"""Games with late outcomes: totals by schedule, and when questions are asked and known; data, then drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.validation import count
from onlinecal.core.words import number_of
from onlinecal.engine.horizon import check_horizon
from onlinecal.growth.rates import KnownRate, best_known
from onlinecal.growth.words import literal
from onlinecal.report.curve_plot import Looks, edges, of_frames, of_runs
from onlinecal.report.curves import Curve, Study, columns_of, open_at_the_end, runs_of
from onlinecal.report.frames import Bound, Frame, forecasters, frames, games
from onlinecal.report.panels import Panels, Picture, joined, pictured
from onlinecal.report.style import GREY, paper, plain, wrapped
from onlinecal.schedules import Constant, Schedule
from onlinecal.study.played import Played

Floats = NDArray[np.float64]
#: what the line of a game is called in which every outcome is known before the next question
AT_ONCE = "no delay"


@dataclass(frozen=True)
class LateFrame:
    """A frame in its row and column; `open` has the questions open at the end, by schedule."""

    row: str
    column: str
    heading: str
    frame: Frame
    open: tuple[int, ...]
    across: bool


def late_frames(study: Study, measures: Sequence[str]) -> list[LateFrame]:
    """The data of `plot_delays`: against T with several horizons or a single schedule, else across schedules.

    Dotted is b·R(T/b) for b = 1 + questions open, where R is the best known upper rate. b copies of a forecaster with
    rate R would have it, each in the game of its own questions. All dotted lines share one constant. By it the line of
    the fewest open questions begins at the measured one, or, across schedules, at the lowest. It is drawn only for
    constant delays with a question every unit.
    """
    columns = columns_of(study, measures)
    across = len({c.horizon for c in study.cells}) == 1 and len({c.schedule[1] for c in study.cells}) > 1
    natures = list(dict.fromkeys(c.schedule[0] for c in study.cells))
    found = []
    for nature in natures:
        for column in columns:
            cells = [c for c in study.cells if c.schedule[0] == nature and column.name in c.totals]
            if not cells:
                continue
            if across:
                found.append(_across(study, column, nature, cells))
            else:
                found += [
                    _against_time(study, column, nature, who, [c for c in cells if c.forecaster == who])
                    for who in dict.fromkeys(c.forecaster for c in cells)
                ]
    return found


def _against_time(study: Study, column: Column, nature: str, who: str, cells: Sequence[Played]) -> LateFrame:
    """One forecaster against one nature, a line for each schedule."""
    schedules = list(dict.fromkeys(c.schedule for c in cells))
    heading = f"{column.name} of {who}, {nature}"
    curves, bounds, open = [], [], []
    rate = _rate(column)
    for schedule in schedules:
        mine = sorted((c for c in cells if c.schedule == schedule), key=lambda c: c.horizon)
        open.append(open_at_the_end(mine[-1]))
        curve = study.curve(column.name, who, mine[0].nature)
        curves.append(
            replace(curve, forecaster=schedule[1] or AT_ONCE, nature=heading, promises=(), place=None)
        )
        if rate is not None and (same := _copies(mine)) is not None and len(curve.rounds) > 1:
            times = curve.rounds.astype(np.float64)
            bounds.append(Bound("", len(curves) - 1, times, same * rate.at(times / same), False))
    (frame,) = frames(curves, exponents=False)
    frame.references = []
    frame.bounds = _anchored(frame, bounds, rate)
    return LateFrame(f"{column.name}, {nature}", who, heading, frame, tuple(open), False)


def _across(study: Study, column: Column, nature: str, cells: Sequence[Played]) -> LateFrame:
    """All forecasters against one nature, by the questions that are open at the end."""
    curves = []
    ends = sorted({1 + open_at_the_end(c) for c in cells})
    for who in dict.fromkeys(c.forecaster for c in cells):
        mine = sorted((c for c in cells if c.forecaster == who), key=open_at_the_end)
        at = np.array([1 + open_at_the_end(c) for c in mine])
        totals = np.stack([c.totals[column.name][-1] for c in mine])
        curves.append(Curve(column, who, nature, at, totals, False, place=study.places[who]))
    (frame,) = frames(curves, exponents=False)
    rate = _rate(column)
    frame.references = []
    if rate is not None and len(ends) > 1 and all(_copies([c]) is not None for c in cells):
        at = np.array(ends, dtype=np.float64)
        horizon = np.full(len(at), float(cells[0].horizon))
        bound = Bound("", None, at, at * rate.at(horizon / at), False)
        frame.bounds = _anchored(frame, [bound], rate)
    open = tuple(end - 1 for end in ends)
    return LateFrame(nature, column.name, f"{column.name}, {nature}", frame, open, True)


def _rate(column: Column) -> KnownRate | None:
    """The best known upper rate that some forecaster of this package attains, or None."""
    return next((rate for rate in best_known(column) if rate.upper), None)


def _copies(cells: Sequence[Played]) -> int | None:
    """1 + the delay if it is constant, whole and shorter than all games, with a question every unit; else None."""
    delay = open_at_the_end(cells[-1])
    constant = Schedule(delays=Constant(delay)).label
    return 1 + delay if all(c.schedule[1] == constant and c.horizon > delay for c in cells) else None


def _anchored(frame: Frame, bounds: Sequence[Bound], rate: KnownRate | None) -> list[Bound]:
    """All with one constant: that with which the least of them begins where its line does. The first has the label."""
    if rate is None or not bounds or frame.negative or not frame.lines:
        return []
    label = "∝ √(bT)" if rate.formula == "√T" else f"∝ b·R(T/b), R = {rate.formula}"
    # Of lines that are drawn only: one without a point has no place to begin at.
    there = {line.style for line in frame.lines}
    bounds = [bound for bound in bounds if bound.style is None or bound.style in there]
    if not bounds:
        return []
    least = min(bounds, key=lambda bound: bound.values[0])
    constant = np.inf
    for line in (line for line in frame.lines if least.style in (None, line.style)):
        first = line.rounds[line.shown][0]
        start = float(line.mean[line.shown][0]) / float(least.values[least.rounds == first][0])
        constant = min(constant, start)
    return [
        replace(bound, values=constant * bound.values, label=literal(label) if i == 0 else "")
        for i, bound in enumerate(bounds)
    ]


#: questions of one picture, in which a bar can be told from the next
BARS = 200


@pictured
def plot_delays(study: Study, measures: Sequence[str]) -> Picture:
    """Totals by schedule: a line for each delay against T, or, at a single T, against the questions open then.

    Parameters
    ----------
    study : Study
    measures : sequence of str
        At least one column.

    Returns
    -------
    (rows, columns) array of Axes
        With several horizons, or a single schedule, a row for each nature and measure and a column for each forecaster;
        else a row for each nature and a column for each measure. Those of one row have the same limits upwards.
    """
    drawn = late_frames(study, measures)
    cells, across = study.cells, drawn[0].across
    # Curves of one name look the same in all panels if there are as many in each.
    alone = (
        len(drawn) == 1 or len({tuple(line.forecaster for line in each.frame.lines) for each in drawn}) > 1
    )
    lines = any(len(line.rounds) > 1 for each in drawn for line in each.frame.lines)
    open = max(n for each in drawn for n in each.open)
    caption = joined(
        f"Games of T = {cells[0].horizon:,}, a point for each schedule." if across else games(study.curves(measures)),
        *of_runs(
            runs_of(cells), lines, ", given the times of questions and outcomes, which all runs of a schedule share"
        ),
        "Totals are over the questions whose outcome is known; not in them are those that are open at the end, up to "
        f"{open:,} a game.",
        "Dotted: b·R(T/b), which is √(bT) for R = √T: with b = 1 + questions open and R the best known upper rate, "
        "what b copies would have, each with every b-th question; with one constant, by which they begin at the first "
        f"point of the {'lowest line' if across else 'line with the fewest open questions'}."
        * any(each.frame.bounds for each in drawn),
        *edges([each.frame for each in drawn]),
    )  # fmt: skip
    # Forecasters are told apart; schedules have an order, and so have their colours.
    return of_frames(
        [(each.frame, each.row, each.column, each.heading) for each in drawn], literal(caption), "rows × columns",
        ("1 + questions open at the end" if across else "T", "total $T\\cdot\\mu$"),
        named=alone, names={} if alone else forecasters(each.frame for each in drawn),
        colours=(lambda frame: None) if across else _ordered, dotted="b·R(T/b)",
    )  # fmt: skip


def _ordered(frame: Frame) -> Looks:
    """Colours of schedules, from short to long delays, that can be seen on light and on dark pages."""
    several = len(frame.lines) + len(frame.absent)
    return [to_hex(colormaps["viridis"](x)) for x in np.linspace(0.3, 0.88, max(several, 2))]


# ---------------------------------------------------------------- questions


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
    schedule: Schedule, horizon: int, seed: int = 0, outcomes: ArrayLike | None = None, first: int = BARS
) -> Bars:
    """The times at which the questions of a game are asked and their outcomes become known.

    Parameters
    ----------
    schedule : Schedule
    horizon, seed : int
        Of the game: its times depend on both.
    outcomes : (n,) ints, optional
        0 or 1, of one run, for as many questions as are drawn. Without them, a delay that depends on the outcome is
        the longer of the two.
    first : int, default 200
        The most questions that are drawn, up to 200.
    """
    check_horizon(horizon)
    number = min(count("first", first, most=BARS), horizon)
    if schedule.length is not None and horizon > schedule.length:
        length = schedule.length
        raise InvalidParameter(
            f"horizon = {horizon}, but the schedule has {length} questions; expected at most {length}"
        )
    clock = schedule.clock(horizon, seed)
    given = None if outcomes is None else np.asarray(outcomes)
    if given is not None and (given.shape != (number,) or not np.isin(given, (0, 1)).all()):
        raise InvalidData(
            f"outcomes of shape {given.shape}; expected {number} numbers 0 or 1, one for each question"
        )
    asked, known = clock.span(1, number)
    if schedule.delays.by_outcome:
        known = known.max(axis=1) if given is None else known[np.arange(number), given.astype(np.int64)]
    end = float(clock.times(number + 1)[0])
    open = known >= end
    if np.isinf(end):
        # The last question of a file: the game ends when all is known that ever will be.
        end = float(max(asked[-1], known[np.isfinite(known)].max(initial=-np.inf)))
        open = np.isinf(known)
    return Bars(schedule, horizon, asked, known, end, open, given)


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
        (2, len(drawn)), "2 × schedules", fill, _question_caption(drawn), lambda *_: high + 1.9, build=build,
        wide=(1.0, 4.1 * (1.5 if len(drawn) == 1 else 1.0)), gap=0.7, widest=60.0, narrow=0.01,
    )  # fmt: skip


def _question_caption(drawn: Sequence[Bars]) -> str:
    # Of several schedules each sort is said once.
    sorts = dict.fromkeys(
        (f"first {number_of(n, 'question')}" if bars.horizon > n else "all questions")
        + f" of a game of T = {bars.horizon:,}"
        for bars in drawn
        if (n := len(bars.asked))
    )
    first = "; ".join(sorts)
    return (
        f"{first[0].upper()}{first[1:]}. A bar begins when its question is asked and ends when its outcome is known; "
        "one that ends at once is a point. The dashed line is when the next question would be asked; a game whose "
        "questions are all drawn ends with it. An arrow: open then, and in no total of these questions. A cross: the "
        "outcome never becomes known. " + _shared(drawn)
    )


def _shared(drawn: Sequence[Bars]) -> str:
    """The part of the bars that is the same in all runs."""
    by_outcome = [bars for bars in drawn if bars.schedule.delays.by_outcome]
    if not by_outcome:
        return "All runs share these times."
    unknown = any(bars.outcomes is None for bars in by_outcome)
    longer = " Here a bar ends at the later time." if unknown else ""
    return f"All runs share the times of questions; those by outcome depend on the run.{longer}"


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
