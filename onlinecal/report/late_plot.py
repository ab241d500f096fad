"""Games with late outcomes: totals by schedule, and when questions are asked and known; tables, then pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from onlinecal.core.arrays import Bools, Floats, Ints
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter, in_one_line
from onlinecal.core.validation import count
from onlinecal.core.words import number_of
from onlinecal.growth.rates import KnownRate, best_known
from onlinecal.growth.words import literal
from onlinecal.report.curve_plot import edges, of_curves, of_runs
from onlinecal.report.frames import EMPTY, Part, curve_parts, games, symbol
from onlinecal.report.panels import Picture, Place, joined, mark, pictured, stacked
from onlinecal.report.style import GREY, paper
from onlinecal.study.curves import Curve, Study, columns_of, open_at_the_end, runs_of
from onlinecal.study.played import Played

if TYPE_CHECKING:
    from onlinecal.schedules import Schedule

#: the label of the line of a game in which every outcome is known before the next question
AT_ONCE = "no delay"
#: a shape of b·R(T/b): its place, T, and values
Shape = tuple[int, Floats, Floats]


def late_table(study: Study, measures: Sequence[str]) -> pd.DataFrame:
    """The table of `curves_table` by schedule, with the row, column and heading of each panel.

    A "rate" is b·R(T/b) for b = 1 + questions open, where R is the best known upper rate: that of b copies.
    """
    parts: list[Part] = []
    across, columns = _is_across(study), columns_of(study, measures)
    for nature in dict.fromkeys(c.schedule[0] for c in study.cells):
        for column in columns:
            cells = [c for c in study.cells if c.schedule[0] == nature and column.name in c.totals]
            for who in dict.fromkeys("" if across else c.forecaster for c in cells):
                mine = [c for c in cells if who in ("", c.forecaster)]
                rate = next((rate for rate in best_known(column) if rate.upper), None)
                curves, shapes = (_by_open if across else _by_schedule)(study, column, nature, mine, rate)
                own = curve_parts(curves, exponents=False, known=False)
                own += _anchored(own, shapes, rate)
                at = {"row": nature, "column": column.name, "heading": f"{symbol(column)}, {nature}"}
                if not across:
                    at = {
                        "row": f"{column.name}, {nature}", "column": who,
                        "heading": f"{symbol(column)} of {who}, {nature}",
                    }  # fmt: skip
                parts += [part | at for part in own]
    return stacked(parts)


def _is_across(study: Study) -> bool:
    return len({c.horizon for c in study.cells}) == 1 and len({c.schedule[1] for c in study.cells}) > 1


def _by_schedule(
    study: Study, column: Column, nature: str, cells: Sequence[Played], rate: KnownRate | None
) -> tuple[list[Curve], list[Shape]]:
    """One forecaster against one nature, a line for each schedule."""
    curves: list[Curve] = []
    shapes = []
    for schedule in dict.fromkeys(c.schedule for c in cells):
        mine = sorted((c for c in cells if c.schedule == schedule), key=lambda c: c.horizon)
        curve = study.curve(column.name, mine[0].forecaster, mine[0].nature)
        curves.append(
            replace(curve, forecaster=schedule[1] or AT_ONCE, nature=nature, promises=(), place=None)
        )
        if rate is not None and (same := _copies(mine)) is not None and len(curve.rounds) > 1:
            times = curve.rounds.astype(np.float64)
            shapes.append((len(curves) - 1, times, same * rate.at(times / same)))
    return curves, shapes


def _by_open(
    study: Study, column: Column, nature: str, cells: Sequence[Played], rate: KnownRate | None
) -> tuple[list[Curve], list[Shape]]:
    """All forecasters against one nature, by the questions that are open at the end."""
    curves = []
    for who in dict.fromkeys(c.forecaster for c in cells):
        mine = sorted((c for c in cells if c.forecaster == who), key=open_at_the_end)
        at = np.array([1 + open_at_the_end(c) for c in mine])
        totals = np.stack([c.totals[column.name][-1] for c in mine])
        curves.append(Curve(column, who, nature, at, totals, False, place=study.places[who]))
    ends = np.unique([1.0 + open_at_the_end(c) for c in cells])
    if rate is None or len(ends) < 2 or any(_copies([c]) is None for c in cells):
        return curves, []
    return curves, [(-1, ends, ends * rate.at(cells[0].horizon / ends))]


def _copies(cells: Sequence[Played]) -> int | None:
    """1 + the delay if it is constant, whole and shorter than all games, with a question every unit; else None."""
    from onlinecal.schedules import Constant, Schedule

    delay = open_at_the_end(cells[-1])
    constant = Schedule(delays=Constant(delay)).label
    return 1 + delay if all(c.schedule[1] == constant and c.horizon > delay for c in cells) else None


def _anchored(parts: Sequence[Part], shapes: Sequence[Shape], rate: KnownRate | None) -> list[Part]:
    """All with one constant: that with which the least of them begins where its line does. The first has the label."""
    means = [part for part in parts if part["mark"] == "mean"]
    # Of lines that are drawn only: one without a point has no place to begin at.
    shapes = [shape for shape in shapes if shape[0] in (-1, *(mean["place"] for mean in means))]
    if rate is None or not shapes or not means or means[0]["negative"]:
        return []
    label = "∝ √(bT)" if rate.formula == "√T" else f"∝ b·R(T/b), R = {rate.formula}"
    place, times, values = min(shapes, key=lambda shape: shape[2][0])
    constant = np.inf
    for mean in (mean for mean in means if place in (-1, mean["place"])):
        first = int(np.argmax(np.isfinite(mean["total"])))
        constant = min(constant, float(mean["total"][first]) / float(values[times == mean["T"][first]][0]))
    return [
        EMPTY | {
            "nature": means[0]["nature"], "measure": means[0]["measure"], "symbol": means[0]["symbol"],
            "negative": False, "mark": "rate", "forecaster": "", "place": place, "part": len(parts) + i, "T": times,
            "total": constant * values, "label": "" if i else literal(label),
        }
        for i, (place, times, values) in enumerate(shapes)
    ]  # fmt: skip


@pictured
def plot_delays(study: Study, measures: Sequence[str] | None = None) -> Picture:
    """Totals by schedule: a line for each delay against T, or, at a single T, against the questions open then.

    Parameters
    ----------
    study : Study
    measures : sequence of str, optional
        At least one column. Default: the first two measures.

    Returns
    -------
    (rows, columns) array of Axes
        With several horizons, or a single schedule, natures and measures down, forecasters across. Else natures down,
        measures across.
    """
    measures = [column.name for column in columns_of(study, measures, 2)]
    table, across, cells, names = late_table(study, measures), _is_across(study), study.cells, set(measures)
    open = max(open_at_the_end(c) for c in cells if names & set(c.totals))
    heads = {
        (row, column): head
        for row, column, head in table[["row", "column", "heading"]].itertuples(index=False)
    }
    means = table[table["mark"] == "mean"]
    panels = [tuple(dict.fromkeys(rows["forecaster"])) for _, rows in means.groupby(["row", "column"])]
    caption = joined(
        f"Games of T = {cells[0].horizon:,}, a point for each schedule." if across else games(study.curves(measures)),
        *of_runs(
            runs_of(cells), bool((means.groupby(["row", "column", "part"]).size() > 1).any()),
            ", given the times of the schedule, which all its runs share",
        ),
        "Totals are over the questions whose outcome is known; not in them are those that are open at the end, up to "
        f"{open:,} a game.",
        "Dotted: b·R(T/b), which is √(bT) for R = √T: with b = 1 + questions open and R the best known upper rate, "
        "what b copies would have, each with every b-th question; with one constant, by which they begin at the first "
        f"point of the {'lowest line' if across else 'line with the fewest open questions'}."
        * ("rate" in set(table["mark"])),
        *edges(table),
    )  # fmt: skip
    # Forecasters are told apart; schedules have an order, and so have their colours, seen on light and on dark pages.
    several = np.linspace(0.3, 0.88, max(int(table["place"].max()) + 1, 2))
    return of_curves(
        table, literal(caption), words="rows × columns", row="row", column="column",
        heading=lambda row, column: heads.get((row, column), ""),
        labels=("1 + questions open at the end" if across else "T", "total T·μ"),
        # The legend of the figure has the lines of all panels where these are the same.
        named=len(heads) == 1 or len(set(panels)) > 1, dotted="b·R(T/b)",
        colours=None if across else [to_hex(colormaps["viridis"](x)) for x in several],
    )  # fmt: skip


# ---------------------------------------------------------------- questions

#: questions of one picture, in which a bar can be told from the next
BARS = 200


@dataclass(frozen=True)
class Bars:
    """The first questions of a game, as they stand at `end`, when the next one would be asked."""

    schedule: Schedule
    horizon: int
    #: on the game's clock; an outcome that never becomes known is at infinity
    asked: Floats
    known: Floats
    end: float
    open: Bools

    def count(self) -> tuple[Floats, Ints]:
        """The times at which the number of open questions changes, and that number from then on."""
        done = self.known[~self.open]
        times = np.unique(np.concatenate([self.asked, done]))
        asked = np.searchsorted(self.asked, times, side="right")
        return times, asked - np.searchsorted(np.sort(done), times, side="right")


def question_bars(schedule: Schedule, horizon: int, seed: int = 0, first: int = BARS) -> Bars:
    """The times at which the `first` questions of a game, up to 200, are asked and their outcomes become known.

    A delay that depends on the outcome is the longer of the two.
    """
    from onlinecal.engine.horizon import check_horizon

    check_horizon(horizon)
    number = min(count("first", first, most=BARS), horizon)
    schedule.check_length(horizon)
    clock = schedule.clock(horizon, seed)
    asked, known = clock.span(1, number)
    if schedule.delays.by_outcome:
        known = known.max(axis=1)
    end = float(clock.times(number + 1)[0])
    open = known >= end
    if np.isinf(end):
        # The last question of a file: the game ends when all is known that ever will be.
        end = float(max(asked[-1], known[np.isfinite(known)].max(initial=-np.inf)))
        open = np.isinf(known)
    return Bars(schedule, horizon, asked, known, end, open)


def _question_parts(i: int, bars: Bars) -> Iterator[dict[str, Any]]:
    """Bars of questions that are "known" and "open", their ends, and the "count" of open questions."""
    numbers = np.arange(1, len(bars.asked) + 1)
    ends, never = np.where(bars.open, bars.end, bars.known), np.isinf(bars.known)
    own = {"schedule": i, "row": "questions", "many": len(numbers)}
    for kind, mine in (("open", bars.open), ("known", ~bars.open)):
        bar = own | {
            "question": numbers[mine],
            "left": bars.asked[mine],
            "right": ends[mine],
            "clock": ends[mine],
        }
        yield bar | {"mark": kind}
        at_once = mine & (bars.asked == ends)
        yield own | {"mark": f"{kind}, at once", "question": numbers[at_once], "clock": ends[at_once]}
    for kind, mine in (("later", bars.open & ~never), ("never", bars.open & never)):
        yield own | {"mark": kind, "question": numbers[mine], "clock": ends[mine]}
    times, open = bars.count()
    yield own | {
        "row": "open", "mark": "count", "clock": np.append(times, bars.end),
        "question": np.append(open, bars.open.sum()),
    }  # fmt: skip


def _ends(marker: str) -> list[Any]:
    size = lambda rows: float(np.clip(260.0 / rows["many"].iloc[0], 1.8, 4.0))  # noqa: E731
    return [mark("points", "ink", marker=marker, markersize=size, zorder=3.0)]


_COLOURS = {"open": GREY, "known": 0}
QUESTIONS = (
    {kind: [mark("levels", colour, linewidth=lambda rows: float(np.clip(170.0 / rows["many"].iloc[0], 0.9, 4.0)))]
     for kind, colour in _COLOURS.items()}
    | {f"{kind}, at once": [mark("points", colour, marker=".", markersize=3)] for kind, colour in _COLOURS.items()}
    | {"later": _ends(">"), "never": _ends("x"), "count": [mark("steps", "ink", linewidth=1.0)]}
)  # fmt: skip


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
    if not drawn or not isinstance(drawn, list | tuple) or not all(isinstance(bars, Bars) for bars in drawn):
        raise InvalidParameter(
            f"questions: drawn = {in_one_line(drawn)}; expected the bars of one schedule or more"
        )
    high = min(8.0, max(2.6, 0.055 * max(len(bars.asked) for bars in drawn)))
    heads = [
        f"{bars.schedule.label or 'a question a unit, no delay'}\n{int(bars.open.sum())} of {len(bars.asked)} open"
        for bars in drawn
    ]

    def after(axis: Axes, rows: pd.DataFrame, place: Place) -> None:
        bars = drawn[int(rows["schedule"].iloc[0])]
        axis.axvline(bars.end, color=paper(axis).ink, linewidth=0.8, linestyle=(0, (4, 3)))
        if rows["row"].iloc[0] == "open":
            axis.set_ylim(0, 1.1 * max(1.0, rows["question"].max()))
            axis.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=[1, 2, 5, 10]))
            axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
            axis.set_ylabel("open" if place.first else "", fontsize=8)
            return
        axis.set_xlim(min(0.0, float(bars.asked[0])) if bars.asked[0] <= bars.end / 2 else None, None)
        axis.set_ylim(len(bars.asked) + 0.8, 0.2)
        axis.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axis.set_xlabel("")
        if bars.open.any():
            ink = paper(axis).ink
            axis.plot([], [], color=GREY, linewidth=2, marker=">", markersize=3.5, markerfacecolor=ink,
                      markeredgecolor=ink, label="open")  # fmt: skip
            # Bars go down to the right: nothing is to the left of the last ones.
            axis.legend(fontsize=7, frameon=False, loc="lower left").set_in_layout(False)

    return Picture(
        table=stacked(part for i, bars in enumerate(drawn) for part in _question_parts(i, bars)),
        caption=_question_caption(drawn), x="clock", y="question", row="row",
        column="schedule", marks=QUESTIONS, after=after, labels=("clock", "question"), words="2 × schedules",
        heading=lambda row, schedule: heads[int(schedule)] if row == "questions" else "",
        wide=(1.0, 4.1 * (1.5 if len(drawn) == 1 else 1.0)), most=99, narrow=0.01, widest=60.0, shared="column",
        ratios=(high, 1.3), high=lambda *_: high + 1.9,
    )  # fmt: skip


def _question_caption(drawn: Sequence[Bars]) -> str:
    # Of several schedules each sort is said once.
    sorts = dict.fromkeys(
        (f"first {number_of(n, 'question')}" if bars.horizon > n else "all questions")
        + f" of a game of T = {bars.horizon:,}"
        for bars in drawn
        if (n := len(bars.asked))
    )
    first, by_outcome = "; ".join(sorts), [bars for bars in drawn if bars.schedule.delays.by_outcome]
    shared = "All runs share these times."
    if by_outcome:
        shared = "All runs share the times of questions; those by outcome depend on the run. "
        shared += "Here a bar ends at the later time."
    return (
        f"{first[0].upper()}{first[1:]}. A bar begins when its question is asked and ends when its outcome is known; "
        "one that ends at once is a point. The dashed line is when the next question would be asked; a game whose "
        "questions are all drawn ends with it. An arrow: open then, and in no total of these questions. A cross: the "
        f"outcome never becomes known. {shared}"
    )
