"""Whole studies at their largest T: growth exponents, Pareto fronts, regrets of tasks; tables, then pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import counted, fixed
from onlinecal.growth import WIDE
from onlinecal.growth.rates import known_rates
from onlinecal.growth.words import NONE, literal
from onlinecal.report.frames import symbol
from onlinecal.report.panels import Picture, Place, joined, mark, pictured, stacked
from onlinecal.report.style import (
    GREY,
    contrast,
    least_power,
    letters,
    log_ticks,
    paper,
    tick,
    ticks,
    typeset,
    wrapped,
)
from onlinecal.study.compare import Contest, fronts, last_cells, remarks
from onlinecal.study.curves import Study, columns_of, left_out, runs_of, summary

#: half an interval from which on a cell is faded
FADED = 0.15
#: inches of labels of forecasters, and of natures that do not lean, at most; and of a line
ROOM, LINE = 1.7, 0.125
#: letters of a label that may lean
LEANING = 24
_MARKS = {"above proven": " ▲", "above O": " ▲", "below Ω": " ▽"}


def exponents_table(study: Study, measures: str | Sequence[str]) -> pd.DataFrame:
    """Mean exponents and half of their 95 % intervals, each by itself; NaN where they tell little.

    Each row has the text of its cell, with ▲ and ▽ as in `Curve.against_rates`.
    """
    parts = []
    for measure in measures:
        for curve in study.curves([measure]):
            growth = curve.exponent()
            value = half = np.nan
            if growth is None:
                text = "–"
            elif growth.clear:
                value, half = growth.value, (growth.upper - growth.lower) / 2
                text = f"{fixed(value)}\n±{half:.2f}"
            else:
                text = "?"
            if growth is not None:
                text += _MARKS.get(curve.against_rates(), "")
            parts.append({
                "measure": measure, "forecaster": curve.forecaster, "nature": curve.nature, "exponent": value,
                "half": half, "text": text,
            })  # fmt: skip
    return stacked(parts)


@pictured
def plot_exponents(study: Study, measures: Sequence[str] | None = None) -> Picture:
    """The exponents of a study as coloured tables, one for each measure: forecasters down, natures across.

    A cell has the mean growth exponent over the T that were played and half of its 95 % interval. ?: an interval wider
    than 1, which more horizons or runs narrow; –: no exponent.

    Parameters
    ----------
    study : Study
    measures : sequence of str, optional
        At least one column. Default: all measures.

    Returns
    -------
    (measures,) array of Axes
    """
    measures = [column.name for column in columns_of(study, measures)]
    who, whom = study.forecasters, study.natures

    def high(side: float, columns: int) -> float:
        return 0.1 + -(-len(measures) // columns) * _labels(who, whom, side)[-1]

    def after(axis: Axes, rows: pd.DataFrame, place: Place) -> None:
        draw_exponents(axis, rows, who, whom, side=place.side if place.new else np.inf)
        column = study.columns[rows["measure"].iloc[0]]
        rates = known_rates(column)
        known = f"   best known: {typeset(rates)}" if rates else ""
        axis.set_title(literal(symbol(column)) + known, fontsize=9)

    return Picture(
        table=exponents_table(study, measures), caption=_exponents_caption(study, measures), x="exponent", y="exponent",
        column="measure", after=after, words="one for each measure", bar="mean growth exponent", most=2, shared="",
        wide=(1.6, 1.3 + 0.72 * len(whom)), widest=60.0, high=high,
    )  # fmt: skip


def _labels(who: Sequence[str], whom: Sequence[str], side: float) -> tuple[list[str], list[str], bool, float]:
    """Labels beside and below a table with `side` inches across, whether these are upright, and the height of all."""
    room, cell = ROOM, 0.72
    if np.isfinite(side):
        room = min(ROOM, 0.3 * side)
        cell = max(LINE, (side - room) / len(whom))
    left = [wrapped(label, room, 7.5) for label in who]
    upright = max(map(len, whom)) > LEANING
    # No more lines than there is room for above each other. Letters are to spare, as words do not fill a line.
    most = int(cell / LINE) * (letters(ROOM, 7.5) - 4)
    below = [wrapped(_shortened(label, most), ROOM, 7.5) if upright else literal(label) for label in whom]
    lines = 1 + max(label.count("\n") for label in left)
    return left, below, upright, (0.5 + ROOM if upright else 1.0) + len(left) * max(0.46, LINE * lines + 0.06)


def _shortened(text: str, most: int) -> str:
    """A text without its middle where it is longer: labels often differ at the end."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - 1) // 2 :]}"


def draw_exponents(
    axis: Any, rows: pd.DataFrame, who: Sequence[str], whom: Sequence[str], side: float = np.inf
) -> Any:
    """One table of exponents; returns the image."""
    cells = {name: rows.pivot(index="forecaster", columns="nature", values=name).reindex(index=who, columns=whom)
             for name in ("exponent", "half", "text")}  # fmt: skip
    values, halves = (cells[name].to_numpy(float) for name in ("exponent", "half"))
    image = axis.imshow(values, vmin=0.0, vmax=1.0, cmap="YlOrRd", aspect="auto")
    image.set_alpha(np.where(halves > FADED, 0.35, 1.0))
    for (i, j), text in np.ndenumerate(cells["text"].fillna("").to_numpy(object)):
        # A faded cell, and one without a value, have nearly the colour of the page.
        ink = paper(axis).ink
        if not np.isnan(values[i, j]) and not halves[i, j] > FADED:
            colour = image.cmap(image.norm(values[i, j]))
            ink = max(("white", "black"), key=lambda ink: contrast(ink, colour))
        axis.text(j, i, text, ha="center", va="center", fontsize=6.5, color=ink)
    left, below, upright, _ = _labels(who, whom, side)
    turned: Any = {"rotation": 90, "ha": "center"} if upright else {"rotation": 30, "ha": "right"}
    axis.set_xticks(range(len(below)), below, fontsize=7.5, **turned)
    axis.set_yticks(range(len(left)), left, fontsize=7.5)
    axis.grid(visible=False)
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)
    return image


def _exponents_caption(study: Study, measures: Sequence[str]) -> str:
    curves = study.curves(measures)
    kinds = {
        "fresh games": [c for c in curves if c.independent],
        "games of their own on one recorded stream": [c for c in curves if c.fresh and c.recorded],
        "prefixes of one game": [c for c in curves if not c.fresh],
    }
    played = []
    for kind, mine in kinds.items():
        if times := [t for c in mine for t in c.tail.rounds.tolist()]:
            span = f"{min(times):,} … {max(times):,}" if min(times) < max(times) else f"{min(times):,}"
            played.append(f"{kind}, T = {span}")
    text = "; ".join([*played, counted({c.totals.shape[1] for c in curves})])
    return joined(
        f"{text[0].upper()}{text[1:]}. Exponents are means over these T ± half of their own 95 % intervals; "
        f"faded: wider than ±{FADED:g}; ?: wider than {WIDE:g}: more horizons or runs are needed; –: {NONE}; ▲: "
        "faster over these T than the proven bound or the best known rate, ▽: slower than the known rate against the "
        "worst nature, beyond doubt.",
        left_out(curves),
    )


#: totals that are positive and differ by a larger factor have a logarithmic axis
FACTOR = 50


@pictured
def plot_pareto(study: Study, measures: Sequence[str] | None = None) -> Picture:
    """The Pareto front of each nature: mean totals of the first measure across, of the second up.

    Parameters
    ----------
    study : Study
    measures : (str, str), optional
        Two columns. Default: the first two measures.

    Returns
    -------
    (natures,) array of Axes
        Filled points are on the front, which a line joins. Hollow ones are dominated in the means, with a cross beyond
        doubt. Infinite means are not drawn.
    """
    if measures is None:
        measures = [column.name for column in columns_of(study, None, 2)]
    if isinstance(measures, str) or len(measures) != 2:
        raise InvalidParameter(f"pareto: measures = {measures!r}; expected two measures")
    drawn = fronts(study, measures[0], measures[1])
    table = fronts_table(study, drawn)
    heads = {front.nature: f"{front.nature}, T = {front.horizon:,}" for front in drawn}
    across, up = (
        f"{symbol(study.columns[name])}, total ({'lower' if sign > 0 else 'higher'} is better)"
        for name, sign in zip(drawn[0].measures, drawn[0].signs, strict=True)
    )

    def after(axis: Axes, rows: pd.DataFrame, place: Place) -> None:
        axis.set_xlabel(wrapped(across, place.side, 8), fontsize=8)
        if place.first:
            axis.set_ylabel(wrapped(up, place.side, 8), fontsize=8)
        points = rows[rows["mark"].isin(["best", "dominated"])]
        for k, (which, name, scale) in enumerate(
            ((axis.xaxis, "first", axis.set_xscale), (axis.yaxis, "second", axis.set_yscale))
        ):
            if len(points) and points[name].min() > 0.0 and points[name].max() > FACTOR * points[name].min():
                scale("log")
                log_ticks(which)
            else:
                ticks(which, most=5 if k else 4)

    return Picture(
        table=table, caption=_front_caption(drawn), x="first", y="second", column="nature", marks=FRONTS, after=after,
        heading=lambda _, nature: heads[nature], words="one for each nature", most=3,
        names={who: study.places[who] for front in drawn for who in front.forecasters},
        look={"linestyle": "none", "markersize": 5},
    )  # fmt: skip


def _name(rows: pd.DataFrame) -> str:
    return literal(rows["forecaster"].iloc[0])


#: beyond the line, in the worse direction of both measures, everything is dominated
FRONTS = {
    "front": [mark("steps", GREY, linewidth=1.0, zorder=1.0)],
    "best": [mark("points", markersize=5.5, zorder=2.1, label=_name)],
    "dominated": [mark("points", markersize=5.5, zorder=2.1, label=_name, markerfacecolor="page")],
    "certain": [mark("points", "ink", marker="x", markersize=4.0, markeredgewidth=0.8, zorder=2.2)],
}


def fronts_table(study: Study, drawn: Sequence[Contest]) -> pd.DataFrame:
    """Finite mean totals of forecasters, "best" or "dominated", the latter also as "certain", and the "front"."""
    parts = []
    for front in drawn:
        means = np.where(np.isfinite(front.means).all(axis=1, keepdims=True), front.means, np.nan)
        line = means[[front.forecasters.index(who) for who in front.front]].reshape(-1, 2)
        line = line[np.isfinite(line).all(axis=1)]
        parts.append(
            {"nature": front.nature, "mark": "front", "first": line[:, 0], "second": line[:, 1], "place": -1}
        )
        for i in np.flatnonzero(np.isfinite(means[:, 0])).tolist():
            who, state = front.forecasters[i], "dominated" if front.dominated[:, i].any() else "best"
            point = {
                "forecaster": who, "place": study.places[who], "first": means[i, 0], "second": means[i, 1],
            }  # fmt: skip
            kinds = [state, *["certain"] * bool(front.certain[:, i].any())]
            parts += [{"nature": front.nature, "mark": kind} | point for kind in kinds]
    return stacked(parts)


def _front_caption(drawn: Sequence[Contest]) -> str:
    times = " or ".join(f"{t:,}" for t in sorted({front.horizon for front in drawn}))
    return joined(
        f"Point: mean totals of {counted({front.runs for front in drawn})} at T = {times}, the largest; infinite "
        "means are not drawn. Filled, joined by the line: on the Pareto front; no other forecaster has means that are "
        "no worse in both measures and better in one. Hollow: another has. With a cross: another is better in both "
        "beyond doubt (Student's t on one difference a run, the larger p-value of both measures, Holm's procedure over "
        f"all pairs and natures); all crosses hold together with {100 * drawn[0].level:g} % if differences are normal. "
        f"Where positive means differ by a factor of more than {FACTOR} the axis is logarithmic.",
        *(f"{said}." for said in remarks(drawn)),
    )


KINDS = ("external_regret", "action_swap_regret", "swap_regret")


def tasks_table(study: Study) -> pd.DataFrame:
    """Mean regrets of tasks at the largest T of each nature, with half of their 95 % intervals, and CDL ("bound").

    No swap regret of a best response exceeds the CDL in any run. Points of forecasters are one below the other.
    """
    regrets = [c for c in study.columns.values() if c.of_task and c.measure in KINDS and not c.stream]
    if not regrets:
        raise InvalidParameter(
            "no task was played; expected a study with tasks, such as tasks = ['umbrella']"
        )
    named = {column: ", ".join(filter(None, (column.task, column.response))) for column in regrets}
    tasks, parts = list(dict.fromkeys(named.values())), []
    for nature in study.natures:
        last = {c.forecaster: c for c in last_cells(study, nature, [])}
        who = [name for name in study.forecasters if name in last]
        for kind in KINDS:
            for j, name in enumerate(who):
                here = {
                    "nature": nature, "kind": kind, "horizon": last[name].horizon, "forecaster": name,
                    "place": study.places[name], "mark": "regret",
                    **dict.fromkeys(("total", "half", "left", "right", "lower", "upper"), np.nan),
                }  # fmt: skip
                totals = last[name].totals
                for column, task in named.items():
                    if column.measure != kind or column.name not in totals:
                        continue
                    line = tasks.index(task) + 0.7 * ((j + 0.5) / len(who) - 0.5)
                    mean, half = summary(totals[column.name][-1])
                    own = here | {"task": task, "line": line}
                    if np.isfinite(mean):
                        # An infinite half-width is that of a single run.
                        wide = half if np.isfinite(half) else 0.0
                        own |= {"total": mean, "half": half, "left": mean - wide, "right": mean + wide}
                    parts.append(own)
                    if kind == "swap_regret" and "cdl" in totals:
                        bound = summary(totals["cdl"][-1])[0]
                        if np.isfinite(bound):
                            parts.append(own | {
                                "mark": "bound", "total": bound, "lower": line - 0.3 / len(who),
                                "upper": line + 0.3 / len(who), "half": np.nan,
                            })  # fmt: skip
    return stacked(parts)


TASKS = {
    "regret": [mark("levels", linewidth=1.3, zorder=2.0), mark("points", markersize=4.5, zorder=2.1)],
    "bound": [mark("bars", linewidth=1.3, zorder=1.9)],
}


@pictured
def plot_tasks(study: Study) -> Picture:
    """The external, action swap and swap regret of every decision task at the largest T.

    Parameters
    ----------
    study : Study
        With tasks.

    Returns
    -------
    (natures, 3) array of Axes
        Tasks down, regret across. A point for each forecaster, with the 95 % interval of its mean.
    """
    table = tasks_table(study)
    tasks = list(dict.fromkeys(table["task"]))
    rows = len(tasks) * max(1.0, 0.45 * len(study.forecasters))
    return Picture(
        table=table, caption=_task_caption(study, table), x="total", y="line", row="nature", column="kind",
        marks=TASKS, after=lambda axis, rows, place: scale_tasks(axis, rows, tasks, named=place.first),
        heading=lambda nature, kind: f"{kind.replace('_', ' ')} against {nature}", labels=("total regret", ""),
        words="natures × 3", names={who: study.places[who] for who in study.forecasters},
        look={"linestyle": "none", "markersize": 5}, wide=(0.5, 3.5), widest=60.0, shared="",
        high=lambda side, columns: 0.1 + len(study.natures) * -(-3 // columns) * (0.95 + max(0.28 * rows, 0.8)),
    )  # fmt: skip


def _task_caption(study: Study, table: pd.DataFrame) -> str:
    last = dict(zip(table["nature"], table["horizon"].astype(int), strict=True))
    runs = runs_of(c for c in study.cells if c.horizon == last[c.nature])
    return joined(
        f"Totals at T = {' or '.join(f'{t:,}' for t in sorted({*last.values()}))}, the largest, of a decision maker "
        f"that acts on the forecasts in each task; infinite means are not drawn. Point: mean of {counted(runs)}.",
        "Line through it: its 95 % interval by Student's t, each on its own." * (max(runs) > 1),
        "External regret: to the best fixed action, negative where trusting the forecasts was better; action swap "
        "regret: to the best action in place of each that was taken; swap regret: to the best action in place of that "
        "taken on each prediction.",
        "Tick in the colour of a forecaster: its mean CDL, which no swap regret of a best response to payoffs in "
        "[0, 1] exceeds." * ("bound" in set(table["mark"])),
        f"Where means differ by a factor of more than {FACTOR} the axis is logarithmic, and linear around 0.",
        "On recorded outcomes, which are the same in all runs, an interval is over the forecasters' randomness alone."
        * any(c.recorded for c in study.cells),
        left_out(study.curves()),
    )


def scale_tasks(axis: Axes, rows: pd.DataFrame, tasks: Sequence[str], *, named: bool) -> None:
    """Scales of a panel with a line for each task."""
    lines = np.arange(len(tasks))
    if (rows["left"] < 0).any():
        axis.axvline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    axis.set_yticks(lines, [literal(task) if named else "" for task in tasks], fontsize=8)
    axis.set_ylim(len(tasks) - 0.45, -0.55)
    axis.grid(visible=False, axis="y")
    for line in lines[1:] - 0.5:
        axis.axhline(line, color=paper(axis).grid, linewidth=0.6, zorder=0.5)
    sizes = rows["total"].abs()
    sizes = sizes[sizes > 0.0]
    if len(sizes) and sizes.max() > FACTOR * sizes.min():
        least = least_power(sizes)
        axis.set_xscale("symlog", linthresh=least)
        axis.autoscale_view(scaley=False)  # the margins of the linear scale would be decades below 0
        axis.xaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=least))
        axis.xaxis.get_major_locator().set_params(numticks=4)  # type: ignore[call-arg]
        axis.xaxis.set_major_formatter(FuncFormatter(tick))
    else:
        ticks(axis.xaxis, most=4)
