"""The regrets of each decision task: data, then drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, SymmetricalLogLocator
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.growth.words import literal
from onlinecal.report.curves import Study, left_out, runs_of, summary
from onlinecal.report.frames import counted
from onlinecal.report.panels import Panels, Picture, handles, head, joined, leftmost, pictured
from onlinecal.report.style import GREY, paper, plain, tick

Floats = NDArray[np.float64]

KINDS = ("external_regret", "action_swap_regret", "swap_regret")
#: regrets that differ by a larger factor have a logarithmic axis
WIDE = 50


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
            _draw(axis, panel, named=leftmost(axis, k % 3))
            text = f"{panel.kind.replace('_', ' ')} against {panel.nature}"
            head(axis, text, side, k % 3, "total regret", "", (9, 8))

    names = {who: study.places[who] for who in study.forecasters}
    return Picture(
        (natures, 3), "natures × 3", fill, _caption(study, drawn), height,
        lambda: handles(names, linestyle="none", markersize=5), wide=(11.0, 0.0), widest=60.0, shared=False,
    )  # fmt: skip


def _caption(study: Study, drawn: Sequence[TaskPanel]) -> str:
    last = {panel.nature: panel.horizon for panel in drawn}
    runs = runs_of(c for c in study.cells if c.horizon == last[c.nature])
    return joined(
        f"Totals at T = {' or '.join(f'{t:,}' for t in sorted({*last.values()}))}, the largest, of who acts on the "
        f"forecasts in each task. Point: mean of {counted(runs)}.",
        "Line through it: its 95 % interval by Student's t, each on its own." * (max(runs) > 1),
        "External regret: to the best fixed action; action swap regret: to the best action in place of each that was "
        "taken; swap regret: to the best action in place of that taken on each prediction.",
        "Tick in the colour of a forecaster: its mean CDL, which no swap regret of a best response to payoffs in "
        "[0, 1] exceeds." * any(np.isfinite(panel.bound).any() for panel in drawn),
        "External regret may be negative: trusting the forecasts was better than every fixed action."
        * any((panel.mean < 0).any() for panel in drawn if panel.kind == "external_regret"),
        f"Where means differ by a factor of more than {WIDE} the axis is logarithmic, and linear around 0 between its "
        "innermost marks." * any(_linear(panel) is not None for panel in drawn),
        "Not drawn: infinite means." * any(np.isinf(panel.mean).any() for panel in drawn),
        "On recorded outcomes, which are the same in all runs, an interval is over the forecasters' randomness alone."
        * any(c.recorded for c in study.cells),
        left_out(study.curves()),
    )


def _draw(axis: Axes, panel: TaskPanel, *, named: bool) -> None:
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
    if not len(sizes) or sizes.max() <= WIDE * sizes.min():
        return None
    return float(10.0 ** np.floor(np.log10(max(sizes.min(), 1e-4 * sizes.max()))))
