"""Whole studies at their largest T: growth exponents, Pareto fronts, regrets of tasks; data, then drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FuncFormatter,
    LogFormatterSciNotation,
    MaxNLocator,
    NullFormatter,
    SymmetricalLogLocator,
)
from numpy.typing import NDArray

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import fixed
from onlinecal.growth import WIDE, simultaneous
from onlinecal.growth.rates import known_rates
from onlinecal.growth.words import BEYOND, NONE, literal
from onlinecal.report.curves import Study, left_out, runs_of, summary
from onlinecal.report.frames import counted
from onlinecal.report.panels import Panels, Picture, even, handles, head, joined, leftmost, pictured
from onlinecal.report.ranking import Front, fronts, remarks
from onlinecal.report.style import (
    GREY,
    contrast,
    letters,
    paper,
    plain,
    shortened,
    tick,
    typeset,
    wrapped,
)

Floats = NDArray[np.float64]
#: cells whose interval is wider than ± this are faded
FADED = 0.15
#: of the labels of forecasters and of natures that do not lean, in inches at most; and of a line of them
ROOM, LINE = 1.7, 0.125
#: letters of a label that may lean
LEANING = 24
_MARKS = {"above proven": " ▲", "above O": " ▲", "below Ω": " ▽"}


@dataclass(frozen=True)
class Heat:
    """A table of exponents: forecasters down, natures across."""

    column: Column
    forecasters: list[str]
    natures: list[str]
    #: mean exponents, and half of their intervals, all together with 95 %; NaN where they tell little
    values: Floats
    halves: Floats
    #: of the cells; ▲ and ▽ as in `Curve.against_rates`
    texts: list[list[str]]


def heats(study: Study, measures: Sequence[str]) -> list[Heat]:
    """The tables of `plot_exponents`."""
    result = []
    for measure in measures:
        values = np.full((len(study.forecasters), len(study.natures)), np.nan)
        halves = values.copy()
        texts = [[""] * len(study.natures) for _ in study.forecasters]
        curves = study.curves([measure])
        for curve in curves:
            growth = curve.exponent(simultaneous(len(curves)))
            i, j = study.forecasters.index(curve.forecaster), study.natures.index(curve.nature)
            if growth is None:
                texts[i][j] = "–"
                continue
            if growth.bent:
                values[i, j], texts[i][j] = growth.value, growth.bow.replace("…", "…\n")
            elif growth.clear:
                values[i, j], halves[i, j] = growth.value, (growth.upper - growth.lower) / 2
                texts[i][j] = f"{fixed(growth.value)}\n±{halves[i, j]:.2f}"
            else:
                texts[i][j] = "?"
            texts[i][j] += _MARKS.get(curve.against_rates(simultaneous(len(curves))), "")
        result.append(Heat(study.columns[measure], study.forecasters, study.natures, values, halves, texts))
    return result


@pictured
def plot_exponents(study: Study, measures: Sequence[str]) -> Picture:
    """The exponents of a study as coloured tables, one for each measure: forecasters down, natures across.

    A cell has the mean growth exponent over the T that were played and half of its interval; where the totals follow no
    power law, the slopes over the first and the last half of these T. ?: an interval wider than 1; –: no exponent.

    Parameters
    ----------
    study : Study
    measures : sequence of str
        At least one column.

    Returns
    -------
    (measures,) array of Axes
    """
    tables = heats(study, measures)
    if not tables:
        raise InvalidParameter("no measures to draw; expected at least one")

    def height(side: float, columns: int) -> float:
        return 0.1 + -(-len(tables) // columns) * _labels(tables[0], side)[-1]

    def build(fig: Figure, columns: int) -> Panels:
        grid = fig.subplots(-(-len(tables) // columns), columns, squeeze=False)
        for axis in grid.flat[len(tables) :]:
            axis.set_visible(False)
        panels: Panels = grid.flatten()[: len(tables)]
        return panels

    def fill(panels: Panels, side: float, new: bool) -> None:
        for axis, heat in zip(panels, tables, strict=True):
            image = _draw_heat(axis, heat, side if new else np.inf)
        if new:
            fig = panels[0].figure
            bar = fig.colorbar(image, ax=fig.axes, shrink=0.6)
            bar.set_label("mean growth exponent", fontsize=7.5)  # of one row it is an inch high

    return Picture(
        (len(tables),), "one for each measure", fill, _heat_caption(study, tables), height, most=2, build=build,
        wide=(1.6, 1.3 + 0.72 * len(study.natures)), gap=0.0, widest=60.0, free=np.inf,
    )  # fmt: skip


def _labels(heat: Heat, side: float = np.inf) -> tuple[list[str], list[str], bool, float]:
    """Labels beside and below a table with `side` inches across, whether these are upright, and the height of all."""
    room, cell = ROOM, 0.72
    if np.isfinite(side):
        room = min(ROOM, 0.3 * side)
        cell = max(LINE, (side - room - 0.7) / len(heat.natures))
    left = [wrapped(label, room, 7.5) for label in heat.forecasters]
    upright = max(map(len, heat.natures)) > LEANING
    # No more lines than there is room for above each other, with letters to spare, as words do not fill a line.
    most = int(cell / LINE) * (letters(ROOM, 7.5) - 4)
    below = [
        wrapped(shortened(label, most), ROOM, 7.5) if upright else literal(label) for label in heat.natures
    ]
    lines = 1 + max(label.count("\n") for label in left)
    return left, below, upright, (0.5 + ROOM if upright else 1.0) + len(left) * max(0.46, LINE * lines + 0.06)


def _draw_heat(axis: Any, heat: Heat, side: float = np.inf) -> Any:
    """One table; returns the image, for a bar of colours."""
    image = axis.imshow(heat.values, vmin=0.0, vmax=1.0, cmap="YlOrRd", aspect="auto")
    image.set_alpha(np.where(heat.halves > FADED, 0.35, 1.0))
    for (i, j), value in np.ndenumerate(heat.values):
        # A faded cell, and one without a value, have nearly the colour of the page.
        ink = paper(axis).ink
        if not np.isnan(value) and heat.halves[i, j] <= FADED:
            colour = image.cmap(image.norm(value))
            ink = max(("white", "black"), key=lambda ink: contrast(ink, colour))
        axis.text(j, i, heat.texts[i][j], ha="center", va="center", fontsize=6.5, color=ink)
    left, below, upright, _ = _labels(heat, side)
    turned: Any = {"rotation": 90, "ha": "center"} if upright else {"rotation": 30, "ha": "right"}
    axis.set_xticks(range(len(below)), below, fontsize=7.5, **turned)
    axis.set_yticks(range(len(left)), left, fontsize=7.5)
    rates = known_rates(heat.column)
    axis.set_title(
        literal(heat.column.name) + (f"   best known: {typeset(rates)}" if rates else ""), fontsize=9
    )
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)
    return image


def _heat_caption(study: Study, tables: Sequence[Heat]) -> str:
    curves = study.curves([heat.column.name for heat in tables])
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
        f"{text[0].upper()}{text[1:]}. Exponents are means over these T ± half of their intervals, which hold in each "
        f"table all together with 95 %; faded: wider than ±{FADED:g}; ?: wider than {WIDE:g}; –: {NONE}; a…b: no power "
        f"law, {BEYOND}, but these slopes over the first and the last half of the T; ▲: faster over these T than the "
        "proven bound or the best known rate, ▽: slower than the known rate against the worst nature, beyond doubt.",
        left_out(curves),
    )


#: totals that are positive and differ by a larger factor have a logarithmic axis
FACTOR = 50


@pictured
def plot_pareto(study: Study, measures: Sequence[str]) -> Picture:
    """The Pareto front of each nature: mean totals of the first measure across, of the second up.

    Parameters
    ----------
    study : Study
    measures : (str, str)
        Two columns.

    Returns
    -------
    (natures,) array of Axes
        Filled points are on the front, which a line joins; hollow ones are dominated in the means, and those with a
        cross beyond doubt. Infinite means are not drawn.
    """
    if isinstance(measures, str) or len(measures) != 2:
        raise InvalidParameter(f"pareto: measures = {measures!r}; expected two measures")
    first, second = measures
    drawn = fronts(study, first, second)

    def fill(panels: Panels, side: float, _: bool) -> None:
        for k, (axis, front) in enumerate(zip(panels, drawn, strict=True)):
            _draw_front(axis, front, study)
            across, up = (
                wrapped(f"{measure}, total ({'higher' if higher else 'lower'} is better)", side, 8)
                for measure, higher in zip(front.measures, front.higher, strict=True)
            )
            head(axis, f"{front.nature}, T = {front.horizon:,}", side, k, across, up, (9, 8))

    names = {who: study.places[who] for front in drawn for who in front.forecasters}
    return even(
        (len(drawn),), "one for each nature", fill, _front_caption(drawn), names,
        {"linestyle": "none", "markersize": 5}, most=3,
    )  # fmt: skip


def _front_caption(drawn: Sequence[Front]) -> str:
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


def _draw_front(axis: Axes, front: Front, study: Study) -> None:
    here = paper(axis)
    line = np.array([front.means[front.forecasters.index(who)] for who in front.front]).reshape(-1, 2)
    line = line[np.isfinite(line).all(axis=1)]
    # Beyond this line, in the worse direction of both measures, everything is dominated.
    axis.step(line[:, 0], line[:, 1], where="post", color=GREY, linewidth=1.0, zorder=1.0, label="_")
    for i, who in enumerate(front.forecasters):
        if not np.isfinite(front.means[i]).all():
            continue
        look = here.style(study.places[who])
        axis.plot(
            *front.means[i], color=look.colour, marker=look.marker, markersize=5.5, linestyle="none", zorder=2.1,
            markerfacecolor=look.colour if not front.dominated[:, i].any() else axis.get_facecolor(),
            label=literal(who),
        )  # fmt: skip
        if front.certain[:, i].any():
            axis.plot(*front.means[i], color=here.ink, marker="x", markersize=4.0, markeredgewidth=0.8,
                      linestyle="none", zorder=2.2, label="_")  # fmt: skip
    plain(axis)
    for k, which in enumerate((axis.xaxis, axis.yaxis)):
        if _logarithmic(front, k):
            (axis.set_xscale if k == 0 else axis.set_yscale)("log")
            which.set_major_formatter(LogFormatterSciNotation())
            which.set_minor_formatter(NullFormatter())
        else:
            which.set_major_locator(MaxNLocator(5 if k else 4))
            which.set_major_formatter(FuncFormatter(tick))


def _logarithmic(front: Front, which: int) -> bool:
    values = front.means[np.isfinite(front.means).all(axis=1), which]
    return bool(len(values) and values.min() > 0.0 and values.max() > FACTOR * values.min())


KINDS = ("external_regret", "action_swap_regret", "swap_regret")


class TaskPanel(NamedTuple):
    """One kind of regret of all tasks against one nature, at its largest T."""

    nature: str
    kind: str
    horizon: int
    tasks: tuple[str, ...]
    forecasters: tuple[str, ...]
    places: tuple[int, ...]
    #: (tasks, forecasters): mean over the runs, half-width of its 95 % interval; NaN where it was not played
    mean: Floats
    half: Floats
    #: mean CDL, which no swap regret of a best response exceeds in any run; NaN if not measured
    bound: Floats


def task_panels(study: Study) -> list[TaskPanel]:
    """For each nature the three regrets."""
    regrets = [c for c in study.columns.values() if c.of_task and c.measure in KINDS and not c.stream]
    if not regrets:
        raise InvalidParameter(
            "no task was played; expected a study with tasks, such as tasks = ['umbrella']"
        )
    named = {column: ", ".join(filter(None, (column.task, column.response))) for column in regrets}
    tasks = tuple(dict.fromkeys(named.values()))
    found = []
    for nature in study.natures:
        cells = [c for c in study.cells if c.nature == nature]
        horizon = max(c.horizon for c in cells)
        last = {c.forecaster: c.totals for c in cells if c.horizon == horizon}
        who = tuple(name for name in study.forecasters if name in last)
        places = tuple(study.places[name] for name in who)
        bound = np.array([summary(last[w]["cdl"][-1])[0] if "cdl" in last[w] else np.nan for w in who])
        for kind in KINDS:
            mean, half = np.full((2, len(tasks), len(who)), np.nan)
            for column, task in named.items():
                for j, name in enumerate(who):
                    if column.measure == kind and column.name in last[name]:
                        at = tasks.index(task), j
                        mean[at], half[at] = summary(last[name][column.name][-1])
            found.append(TaskPanel(nature, kind, horizon, tasks, who, places, mean, half, bound))
    return found


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
        Tasks down, regret across: a point for each forecaster, with the 95 % interval of its mean over runs.
    """
    drawn = task_panels(study)
    natures = len(drawn) // 3
    rows = len(drawn[0].tasks) * max(1.0, 0.45 * max(len(panel.forecasters) for panel in drawn))

    def height(side: float, columns: int) -> float:
        return 0.1 + natures * -(-3 // columns) * (0.95 + max(0.28 * rows, 0.8))

    def fill(panels: Panels, side: float, _: bool) -> None:
        for k, (axis, panel) in enumerate(zip(panels.flat, drawn, strict=True)):
            _draw_tasks(axis, panel, named=leftmost(axis, k % 3))
            text = f"{panel.kind.replace('_', ' ')} against {panel.nature}"
            head(axis, text, side, k % 3, "total regret", "", (9, 8))

    names = {who: study.places[who] for who in study.forecasters}
    return Picture(
        (natures, 3), "natures × 3", fill, _task_caption(study, drawn), height,
        lambda: handles(names, linestyle="none", markersize=5), wide=(11.0, 0.0), widest=60.0, shared=False,
    )  # fmt: skip


def _task_caption(study: Study, drawn: Sequence[TaskPanel]) -> str:
    last = {panel.nature: panel.horizon for panel in drawn}
    runs = runs_of(c for c in study.cells if c.horizon == last[c.nature])
    return joined(
        f"Totals at T = {' or '.join(f'{t:,}' for t in sorted({*last.values()}))}, the largest, of who acts on the "
        f"forecasts in each task; infinite means are not drawn. Point: mean of {counted(runs)}.",
        "Line through it: its 95 % interval by Student's t, each on its own." * (max(runs) > 1),
        "External regret: to the best fixed action, negative where trusting the forecasts was better; action swap "
        "regret: to the best action in place of each that was taken; swap regret: to the best action in place of that "
        "taken on each prediction.",
        "Tick in the colour of a forecaster: its mean CDL, which no swap regret of a best response to payoffs in "
        "[0, 1] exceeds." * any(np.isfinite(panel.bound).any() for panel in drawn),
        f"Where means differ by a factor of more than {FACTOR} the axis is logarithmic, and linear around 0.",
        "On recorded outcomes, which are the same in all runs, an interval is over the forecasters' randomness alone."
        * any(c.recorded for c in study.cells),
        left_out(study.curves()),
    )


def _draw_tasks(axis: Axes, panel: TaskPanel, *, named: bool) -> None:
    """A line of points for each task, those of forecasters one below the other."""
    here = paper(axis)
    tasks, many = panel.mean.shape
    lines = np.arange(tasks)
    # An infinite half-width is that of a single run.
    spread = np.where(np.isfinite(panel.half), panel.half, 0.0)
    if (panel.mean - spread < 0).any():
        axis.axvline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    for j, place in enumerate(panel.places):
        look = here.style(place)
        height = lines + 0.7 * ((j + 0.5) / many - 0.5)
        mean, half = np.where(np.isfinite(panel.mean[:, j]), panel.mean[:, j], np.nan), spread[:, j]
        axis.hlines(height, mean - half, mean + half, color=look.colour, linewidth=1.3, zorder=2.0)
        axis.plot(
            mean, height, color=look.colour, marker=look.marker, markersize=4.5, linestyle="none", zorder=2.1
        )
        if panel.kind == "swap_regret" and np.isfinite(panel.bound[j]):
            axis.vlines(
                np.full(tasks, panel.bound[j]), height - 0.3 / many, height + 0.3 / many, color=look.colour,
                linewidth=1.3, zorder=1.9,
            )  # fmt: skip
    plain(axis)
    axis.set_yticks(lines, [literal(task) for task in panel.tasks] if named else [""] * tasks, fontsize=8)
    axis.set_ylim(tasks - 0.45, -0.55)
    axis.grid(False, axis="y")
    for line in lines[1:] - 0.5:
        axis.axhline(line, color=here.grid, linewidth=0.6, zorder=0.5)
    if (least := _linear(panel)) is not None:
        axis.set_xscale("symlog", linthresh=least)
        axis.autoscale_view(scaley=False)  # the margins of the linear scale would be decades below 0
        axis.xaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=least))
        axis.xaxis.get_major_locator().set_params(numticks=4)  # type: ignore[call-arg]
    else:
        axis.xaxis.set_major_locator(MaxNLocator(4))
    axis.xaxis.set_major_formatter(FuncFormatter(tick))


def _linear(panel: TaskPanel) -> float | None:
    """Up to where a horizontal axis is linear that is logarithmic beyond; None of one that is linear."""
    sizes = np.abs(np.append(panel.mean.ravel(), panel.bound if panel.kind == "swap_regret" else []))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0.0)]
    if not len(sizes) or sizes.max() <= FACTOR * sizes.min():
        return None
    return float(10.0 ** np.floor(np.log10(max(sizes.min(), 1e-4 * sizes.max()))))
