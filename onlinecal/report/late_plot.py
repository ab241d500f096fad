"""Games with late outcomes: totals by schedule; the table, then its picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from onlinecal.core.arrays import Floats
from onlinecal.core.columns import Column
from onlinecal.core.words import counted
from onlinecal.growth.rates import KnownRate, best_known
from onlinecal.growth.words import literal
from onlinecal.report.curve_plot import of_curves
from onlinecal.report.facets import Look, need_study, stacked
from onlinecal.report.frames import EMPTY, Part, curve_parts, symbol
from onlinecal.study.curves import Curve, Study, columns_of, open_at_the_end, runs_of
from onlinecal.study.played import Played

DELAYS = (
    "Line: mean over runs; band: 5th to 95th percentile given the times of the schedule. Totals are over questions "
    "with a known outcome. Dotted: b·R(T/b), what b copies would have, each with every b-th question: b = 1 + "
    "questions open at the end, R the best known upper rate; all with one constant, which fits one first point."
)

#: the label of the line of a game in which every outcome is known before the next question
AT_ONCE = "no delay"
#: a shape of b·R(T/b): its place, T, and values
Shape = tuple[int, Floats, Floats]


def delays_table(study: Study, measures: str | Sequence[str] | None = None) -> pd.DataFrame:
    """The table of `curves_table` by schedule, with the row, column and heading of each panel.

    A "rate" is b·R(T/b) for b = 1 + questions open, where R is the best known upper rate: that of b copies.
    """
    parts: list[Part] = []
    across, columns = _is_across(need_study("delays", study)), columns_of(study, measures, 2)
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
            "nature": means[0]["nature"], "measure": means[0]["measure"],
            "negative": False, "mark": "rate", "forecaster": "", "place": place, "part": len(parts) + i, "T": times,
            "total": constant * values, "label": "" if i else literal(label),
        }
        for i, (place, times, values) in enumerate(shapes)
    ]  # fmt: skip


def plot_delays(study: Study, measures: str | Sequence[str] | None = None, **look: Unpack[Look]) -> Figure:
    """Totals by schedule: a line for each delay against T, or, at a single T, against the questions open then.

    With several horizons, or a single schedule, natures and measures are down, forecasters across. Else natures are
    down, measures across.

    Parameters
    ----------
    study : Study
    measures : str or sequence of str, optional
        At least one column. Default: the first two measures.
    **look
        See `Look`.
    """
    table, across, cells = delays_table(study, measures), _is_across(study), study.cells
    times = sorted({cell.horizon for cell in cells})
    span = f"T = {times[0]:,}" + f" … {times[-1]:,}" * (len(times) > 1)
    open = max(map(open_at_the_end, cells))
    # Forecasters are told apart; schedules have an order, and so have their colours, seen on light and on dark pages.
    several = np.linspace(0.3, 0.88, max(int(table["place"].max()) + 1, 2))
    return of_curves(
        table, DELAYS, row="row", column="column",
        facts=f"{counted(runs_of(cells))} · {span} · up to {open:,} questions open at the end",
        labels=("1 + questions open at the end" if across else "T", "total T·μ"), rate="b·R(T/b)",
        colours=None if across else [to_hex(colormaps["viridis"](x)) for x in several], **look,
    )  # fmt: skip
