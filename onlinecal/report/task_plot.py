"""The regrets of each decision task: first what is drawn, as plain data, then the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, SymmetricalLogLocator
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.growth.words import literal
from onlinecal.report.curves import Study, left_out, summary
from onlinecal.report.frames import counted
from onlinecal.report.style import (
    GREY,
    across,
    finish,
    given_axes,
    handles,
    inches,
    laid_out,
    leftmost,
    page,
    paper,
    plain,
    tick,
    wrapped,
)

Floats = NDArray[np.float64]

KINDS = ("external_regret", "action_swap_regret", "swap_regret")
#: regrets that differ by a larger factor have a logarithmic axis
WIDE = 50
#: of axes without a width of their own, in inches
WIDTH = 3.4


@dataclass(frozen=True, eq=False)
class TaskPanel:
    """One kind of regret of all tasks against one nature, at the largest T.

    Attributes
    ----------
    nature, kind : str
    horizon : int
        T: the same for all of them.
    tasks : tuple of str
        With their response where it is not the best one.
    forecasters : tuple of str
    places : tuple of int
        Of the forecasters in the study.
    mean, half : (tasks, forecasters) floats
        Mean total over the runs, and the half-width of its 95 % interval by Student's t: infinite of a single run. NaN
        where it was not played.
    bound : (forecasters,) floats
        Mean total of the CDL, which no swap regret of a best response exceeds in any run; NaN if it was not measured.
    """

    nature: str
    kind: str
    horizon: int
    tasks: tuple[str, ...]
    forecasters: tuple[str, ...]
    places: tuple[int, ...]
    mean: Floats
    half: Floats
    bound: Floats


def task_panels(study: Study) -> list[TaskPanel]:
    """What `plot_tasks` draws: for each nature the three regrets.

    Raises
    ------
    InvalidParameter
        Regrets of no task were played.
    """
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
        last = {c.forecaster: c for c in cells if c.horizon == horizon}
        who = tuple(name for name in study.forecasters if name in last)
        bound = np.array(
            [summary(last[w].totals["cdl"][-1])[0] if "cdl" in last[w].totals else np.nan for w in who]
        )
        for kind in KINDS:
            mean, half = np.full((2, len(tasks), len(who)), np.nan)
            for column, task in named.items():
                for j, name in enumerate(who):
                    if column.measure == kind and column.name in last[name].totals:
                        at = tasks.index(task), j
                        mean[at], half[at] = summary(last[name].totals[column.name][-1])
            places = tuple(study.places[name] for name in who)
            found.append(TaskPanel(nature, kind, horizon, tasks, who, places, mean, half, bound))
    return found


def plot_tasks(
    study: Study, *, axes: Any = None, title: str = "", dark: bool = False, width: Any = None
) -> NDArray[Any]:
    """The external, action swap and swap regret of every decision task at the largest T.

    Parameters
    ----------
    study : Study
        With tasks.
    axes : (natures, 3) array of matplotlib Axes, optional
        Where to draw. Default: those of a new figure, which also gets the title, a legend and, below, what is drawn; to
        others' figures `caption` says that.
    title : str, optional
        Of a new figure.
    dark, width
        As in `curve_plot.plot_curves`.

    Returns
    -------
    (natures, 3) array of Axes
        Tasks down, regret across: a point for each forecaster, with the 95 % interval of its mean over runs.

    Raises
    ------
    InvalidParameter
        No task was played; axes of another shape; a title for axes that are given; a width that cannot be.
    """
    drawn = task_panels(study)
    natures = list(dict.fromkeys(panel.nature for panel in drawn))
    table = [[panel for panel in drawn if panel.nature == nature] for nature in natures]
    if axes is not None:
        panels = given_axes(axes, (len(natures), 3), "natures × 3", title)
        _fill(panels, table, WIDTH)
        return panels
    asked = inches(width, 0.0) or None
    columns = across(3, asked)
    wide = asked or 11.0
    side = wide / columns - 0.75
    rows = len(drawn[0].tasks) * max(1.0, 0.45 * max(len(panel.forecasters) for panel in drawn))
    with page(dark):
        fig = Figure(
            figsize=(wide, 0.1 + len(natures) * -(-3 // columns) * (0.95 + max(0.28 * rows, 0.8))),
            layout="constrained",
            dpi=150,
        )
        panels = laid_out(fig, len(natures), 3, columns)
        _fill(panels, table, side)
        names = {who: study.places[who] for who in study.forecasters}
        finish(fig, title, _caption(study, drawn), handles(names, linestyle="none", markersize=5))
    return panels


def caption(study: Study) -> str:
    """What is drawn in `plot_tasks`, for a figure of somebody's own."""
    return _caption(study, task_panels(study))


def _caption(study: Study, drawn: Sequence[TaskPanel]) -> str:
    last = {panel.nature: panel.horizon for panel in drawn}
    runs = {next(iter(c.totals.values())).shape[1] for c in study.cells if c.horizon == last[c.nature]}
    horizons = sorted({*last.values()})
    parts = [
        f"Totals at T = {' or '.join(f'{t:,}' for t in horizons)}, the largest, of who acts on the forecasts in each "
        f"task. Point: mean of {counted(runs)}."
    ]
    if max(runs) > 1:
        parts.append("Line through it: its 95 % interval by Student's t, each on its own.")
    parts.append(
        "External regret: to the best fixed action; action swap regret: to the best action in place of each that was "
        "taken; swap regret: to the best action in place of that taken on each prediction."
    )
    if any(np.isfinite(panel.bound).any() for panel in drawn):
        parts.append(
            "Tick in the colour of a forecaster: its mean CDL, which no swap regret of a best response to payoffs in "
            "[0, 1] exceeds."
        )
    if any((panel.mean < 0).any() for panel in drawn if panel.kind == "external_regret"):
        parts.append(
            "External regret may be negative: trusting the forecasts was better than every fixed action."
        )
    if any(_linear(panel) is not None for panel in drawn):
        parts.append(
            f"Where means differ by a factor of more than {WIDE} the axis is logarithmic, and linear around 0 between "
            "its innermost marks."
        )
    if any(np.isinf(panel.mean).any() for panel in drawn):
        parts.append("Not drawn: infinite means.")
    if any(c.recorded for c in study.cells):
        parts.append(
            "On recorded outcomes, which are the same in all runs, an interval is over the forecasters' randomness "
            "alone."
        )
    return " ".join(filter(None, [*parts, left_out(study.curves())]))


def _fill(panels: NDArray[Any], table: Sequence[Sequence[TaskPanel]], side: float) -> None:
    """Panels into their axes; names of tasks stand at the first of a line."""
    for row, there in zip(panels, table, strict=True):
        for j, (axis, panel) in enumerate(zip(row, there, strict=True)):
            _draw(axis, panel, named=leftmost(axis, j))
            size = 9 if side > 2.5 else 8
            words = panel.kind.replace("_", " ")
            axis.set_title(wrapped(f"{words} against {panel.nature}", side, size), fontsize=size)


def _draw(axis: Axes, panel: TaskPanel, *, named: bool) -> None:
    """A line of points for each task, those of forecasters one below the other."""
    here = paper(axis)
    tasks, many = panel.mean.shape
    lines = np.arange(tasks)
    if (panel.mean < 0).any() or (panel.mean - np.where(np.isfinite(panel.half), panel.half, 0.0) < 0).any():
        axis.axvline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    for j, place in enumerate(panel.places):
        look = here.style(place)
        height = lines + 0.7 * ((j + 0.5) / many - 0.5)
        mean = np.where(np.isfinite(panel.mean[:, j]), panel.mean[:, j], np.nan)
        half = np.where(np.isfinite(panel.half[:, j]), panel.half[:, j], 0.0)
        axis.hlines(height, mean - half, mean + half, color=look.colour, linewidth=1.3, zorder=2.0)
        axis.plot(
            mean, height, color=look.colour, marker=look.marker, markersize=4.5, linestyle="none", zorder=2.1
        )
        if panel.kind == "swap_regret" and np.isfinite(panel.bound[j]):
            axis.vlines(
                np.full(tasks, panel.bound[j]), height - 0.3 / many, height + 0.3 / many, color=look.colour,
                linewidth=1.3, zorder=1.9,
            )  # fmt: skip
    plain(axis, "total regret")
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
