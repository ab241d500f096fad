"""Whole studies at their largest T: growth exponents, Pareto fronts, regrets of tasks; tables, then pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, Unpack

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import fixed
from onlinecal.growth.rates import known_rates
from onlinecal.growth.words import literal
from onlinecal.report.facets import Look, facets, need_study, stacked
from onlinecal.report.frames import at_the_end, facts, symbol
from onlinecal.report.style import GREY, ink, least_power, look, tick, ticks
from onlinecal.study.compare import fronts, last_cells
from onlinecal.study.curves import Study, columns_of, runs_of, summary

#: exponents from which white is read better than black on their colour
DARK = 0.735
_MARKS = {"above proven": " ▲", "above O": " ▲", "below Ω": " ▽"}
EXPONENTS = (
    "Mean growth exponent over these T ± half of its 95 % interval. ?: an interval wider than 1, which more horizons "
    "or runs narrow; –: no exponent. ▲: faster than proved or known to be possible; ▽: slower than known to be forced."
)


def exponents_table(study: Study, measures: str | Sequence[str] | None = None) -> pd.DataFrame:
    """Mean exponents and half of their 95 % intervals, with the text of a cell; NaN where they tell little."""
    parts = []
    for curve in need_study("exponents", study).curves([c.name for c in columns_of(study, measures)]):
        growth, value, half, text = curve.exponent(), np.nan, np.nan, "–"
        if growth is not None and growth.clear:
            value, half = growth.value, (growth.upper - growth.lower) / 2
            text = f"{fixed(value)} ± {half:.2f}"
        elif growth is not None:
            text = "?"
        text += _MARKS.get(curve.against_rates(), "") * (growth is not None)
        parts.append({
            "measure": curve.measure, "forecaster": curve.forecaster, "nature": curve.nature, "exponent": value,
            "half": half, "text": text,
        })  # fmt: skip
    return stacked(parts)


def plot_exponents(study: Study, measures: str | Sequence[str] | None = None, **look: Unpack[Look]) -> Figure:
    """The exponents of a study as coloured tables, one for each measure: forecasters down, natures across.

    Parameters
    ----------
    study : Study
    measures : str or sequence of str, optional
        At least one column. Default: all measures.
    **look
        See `Look`.
    """
    table = exponents_table(study, measures)
    heads = {}
    for measure in table["measure"].unique():
        column = study.columns[measure]
        rates = known_rates(column)
        heads[measure] = symbol(column) + f", best known {rates}" * bool(rates)
    table["heading"] = table["measure"].map(heads)
    who, whom = study.forecasters, study.natures

    # A cell has room for its number at the width of a page. Tables stand below each other where there are many natures.
    wide = 0.7 + 0.05 * min(26, max(map(len, who))) + max(0.86 * len(whom), 1.6)
    high = 0.7 + 0.28 * len(who) + max(len(name) for name in whom) * 0.045
    return facets(
        table, lambda axis, part: draw_exponents(axis, part, who, whom), EXPONENTS,
        column="measure", facts=facts(study.curves([*heads])),
        panel=(wide, high), share=False, most=max(1, int(9.0 / wide)), bar="mean growth exponent", **look,
    )  # fmt: skip


def draw_exponents(axis: Any, part: pd.DataFrame, who: Sequence[str], whom: Sequence[str]) -> None:
    """One table of exponents."""
    cells = {name: part.pivot(index="forecaster", columns="nature", values=name).reindex(index=who, columns=whom)
             for name in ("exponent", "text")}  # fmt: skip
    values = cells["exponent"].to_numpy(float)
    axis.imshow(values, vmin=0.0, vmax=1.0, cmap="YlOrRd", aspect="auto")
    for (i, j), text in np.ndenumerate(cells["text"].astype(object).fillna("").to_numpy()):
        dark = ink() if np.isnan(values[i, j]) else "white" if values[i, j] > DARK else "black"
        axis.text(j, i, text, ha="center", va="center", fontsize=7, color=dark)
    axis.set_xticks(range(len(whom)), [literal(_short(name, 30)) for name in whom], rotation=30, ha="right",
                    rotation_mode="anchor")  # fmt: skip
    axis.set_yticks(range(len(who)), [literal(textwrap.fill(_short(name, 60), 26)) for name in who])
    axis.set_facecolor(mpl.rcParams["grid.color"])
    axis.grid(visible=False)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


def _short(text: str, most: int) -> str:
    """A text without its middle where it is longer: labels often differ at the end."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - 1) // 2 :]}"


# ---------------------------------------------------------------- Pareto fronts

PARETO = (
    "Mean totals at the largest T. Filled, joined by the line: no other forecaster is as good in both measures and "
    "better in one. Hollow: another is. Cross: another is better in both beyond doubt; all crosses hold together with "
    "95 % (Holm). Infinite means are not drawn."
)


def pareto_table(study: Study, measures: Sequence[str] | None = None) -> pd.DataFrame:
    """Mean totals of forecasters in two measures, NaN where one is infinite, and whether another one dominates.

    Attributes of the table: both "measures", and their "signs", −1 where the higher total is the better one.
    """
    need_study("pareto", study)
    if measures is None:
        measures = [column.name for column in columns_of(study, None, 2)]
    if isinstance(measures, str) or len(measures) != 2:
        raise InvalidParameter(f"pareto: measures = {measures!r}; expected two measures")
    found, parts = fronts(study, measures[0], measures[1]), list[dict[str, Any]]()
    for front in found:
        # Where one of both is infinite there is no point.
        finite = np.isfinite(front.means).all(axis=1, keepdims=True)
        means = np.where(finite, front.means, np.nan)
        parts += [
            {
                "nature": front.nature, "T": front.horizon, "runs": front.runs, "forecaster": who,
                "place": study.places[who], "first": means[i, 0], "second": means[i, 1],
                "dominated": bool(front.dominated[:, i].any()), "certain": bool(front.certain[:, i].any()),
            }
            for i, who in enumerate(front.forecasters)
        ]  # fmt: skip
    table = stacked(parts)
    table.attrs |= {"measures": found[0].measures, "signs": found[0].signs}
    return table


def plot_pareto(study: Study, measures: Sequence[str] | None = None, **look: Unpack[Look]) -> Figure:
    """The Pareto front of each nature: mean totals of the first measure across, of the second up.

    Parameters
    ----------
    study : Study
    measures : (str, str), optional
        Two columns. Default: the first two measures.
    **look
        See `Look`.
    """
    table = pareto_table(study, measures)
    labels = [
        f"{symbol(study.columns[name])}, total ({'lower' if sign > 0 else 'higher'} is better)"
        for name, sign in zip(table.attrs["measures"], table.attrs["signs"], strict=True)
    ]
    scales = ["log" if table[name].min() > 0 else "linear" for name in ("first", "second")]

    return facets(
        table, lambda axis, part: draw_front(axis, part, scales), PARETO,
        column="nature", labels=(labels[0], labels[1]), share=False,
        facts=at_the_end({*table["runs"]}, table["T"]),
        names="forecaster", style={"linestyle": "none"}, **look,
    )  # fmt: skip


def draw_front(axis: Any, part: pd.DataFrame, scales: Sequence[str]) -> None:
    """Points, and the line beyond which everything is dominated."""
    axis.set(xscale=scales[0], yscale=scales[1])
    best = part[~part["dominated"]].dropna(subset=["first"]).sort_values(["first", "second"])
    falling = len(best) < 2 or best["second"].iloc[0] >= best["second"].iloc[-1]
    axis.step(
        best["first"],
        best["second"],
        where="post" if falling else "pre",
        color=GREY,
        linewidth=1.0,
        zorder=1.0,
    )
    for place, x, y, worse, sure in part[["place", "first", "second", "dominated", "certain"]].itertuples(
        index=False
    ):
        own = look(int(place)) | {"linestyle": "none"}
        axis.plot(
            x, y, markersize=6.5, zorder=2.1, markerfacecolor=axis.get_facecolor() if worse else None, **own
        )
        if sure:
            axis.plot(x, y, marker="x", color=ink(), markersize=4, markeredgewidth=0.8, zorder=2.2)
    axis.margins(0.12)
    ticks(axis.xaxis, axis.yaxis)


# ---------------------------------------------------------------- regrets of tasks

KINDS = ("external_regret", "action_swap_regret", "swap_regret")
#: totals that differ by a larger factor have a logarithmic axis
FACTOR = 50
TASKS = (
    "Total regrets at the largest T of a decision maker that acts on the forecasts. Point and line: mean over runs and "
    "its 95 % interval. External: to the best fixed action, negative where trust was better; swap: to the best action "
    "for each action, or each prediction. Upright line: the CDL, above every swap regret of a best response."
)


def tasks_table(study: Study) -> pd.DataFrame:
    """Mean regrets of tasks at the largest T of each nature, with their 95 % intervals, and CDL ("bound").

    No swap regret of a best response exceeds the CDL in any run. Points of forecasters are one below the other.
    """
    columns = [c for c in need_study("tasks", study).columns.values() if c.of_task and c.measure in KINDS]
    regrets = [c for c in columns if not c.stream]
    if not regrets:
        raise InvalidParameter(
            "no task was played; expected a study with tasks, such as tasks = ['umbrella']"
        )
    named = {column: ", ".join(filter(None, (column.task, column.response))) for column in regrets}
    tasks, parts = list(dict.fromkeys(named.values())), list[dict[str, Any]]()
    for nature in study.natures:
        last = {c.forecaster: c for c in last_cells(study, nature, [])}
        who = [name for name in study.forecasters if name in last]
        for kind, (j, name) in ((kind, each) for kind in KINDS for each in enumerate(who)):
            totals = last[name].totals
            for column, task in named.items():
                if column.measure != kind or column.name not in totals:
                    continue
                line = tasks.index(task) + 0.7 * ((j + 0.5) / len(who) - 0.5)
                mean, half = summary(totals[column.name][-1])
                wide = half if np.isfinite(half) else 0.0  # of a single run it is infinite
                own = {
                    "nature": nature, "kind": kind, "heading": f"{kind.replace('_', ' ')} against {nature}",
                    "horizon": last[name].horizon, "forecaster": name, "place": study.places[name], "task": task,
                    "line": line, "mark": "regret", "total": np.nan,
                }  # fmt: skip
                if np.isfinite(mean):
                    # A swap regret is never negative, nor is what it is expected to be.
                    least = -np.inf if kind == "external_regret" else min(0.0, mean)
                    own |= {
                        "total": mean,
                        "half": half,
                        "left": max(mean - wide, least),
                        "right": mean + wide,
                    }
                parts.append(own)
                if kind == "swap_regret" and "cdl" in totals:
                    bound = summary(totals["cdl"][-1])[0]
                    if np.isfinite(bound):
                        parts.append(own | {
                            "mark": "bound", "total": bound, "lower": line - 0.3 / len(who), "half": np.nan,
                            "upper": line + 0.3 / len(who), "left": np.nan, "right": np.nan,
                        })  # fmt: skip
    return stacked(parts)


def plot_tasks(study: Study, **look: Unpack[Look]) -> Figure:
    """The external, action swap and swap regret of every decision task at the largest T: natures down.

    Parameters
    ----------
    study : Study
        With tasks.
    **look
        See `Look`.
    """
    table = tasks_table(study)
    tasks = list(dict.fromkeys(table["task"]))
    last = dict(zip(table["nature"], table["horizon"].astype(int), strict=True))
    runs = runs_of(c for c in study.cells if c.horizon == last[c.nature])

    return facets(
        table, lambda axis, part: draw_tasks(axis, part, tasks), TASKS,
        row="nature", column="kind", share=False, labels=("total regret", ""),
        facts=at_the_end(runs, last.values()),
        names="forecaster", style={"linestyle": "none"}, legend=lambda: [
            Line2D([], [], color=ink(), marker="|", markersize=8, linestyle="none", label="CDL")
        ] * bool((table["mark"] == "bound").any()),
        panel=(3.3, 0.9 + max(0.9, 0.16 * len(tasks) * max(2, table["forecaster"].nunique()))), **look,
    )  # fmt: skip


def draw_tasks(axis: Any, part: pd.DataFrame, tasks: Sequence[str]) -> None:
    """A panel with a line for each task."""
    for place, mine in part.groupby("place"):
        own = look(int(place)) | {"linestyle": "none"}
        regret, bound = mine[mine["mark"] == "regret"], mine[mine["mark"] == "bound"]
        axis.hlines(
            regret["line"], regret["left"], regret["right"], color=own["color"], linewidth=1.3, zorder=2.0
        )
        axis.plot(regret["total"], regret["line"], zorder=2.1, **own)
        if len(bound):
            axis.vlines(
                bound["total"], bound["lower"], bound["upper"], color=own["color"], linewidth=1.3, zorder=1.9
            )
    if (part["left"] < 0).any():
        axis.axvline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    axis.set_yticks(range(len(tasks)), [literal(textwrap.fill(task, 24)) for task in tasks])
    axis.set_ylim(len(tasks) - 0.45, -0.55)
    axis.grid(visible=False, axis="y")
    for line in np.arange(1, len(tasks)) - 0.5:
        axis.axhline(line, color=GREY, alpha=0.4, linewidth=0.6, zorder=0.5)
    sizes = part["total"].abs()
    sizes = sizes[sizes > 0.0]
    if not len(sizes):
        axis.set_xlim(-1.0, 1.0)
    elif sizes.max() > FACTOR * sizes.min():
        least = least_power(sizes)
        axis.set_xscale("symlog", linthresh=least)
        axis.autoscale_view(scaley=False)  # the margins of the linear scale would be decades below 0
        axis.xaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=least))
        axis.xaxis.get_major_locator().set_params(numticks=4)
        axis.xaxis.set_major_formatter(FuncFormatter(tick))
        return
    ticks(axis.xaxis, most=4)
