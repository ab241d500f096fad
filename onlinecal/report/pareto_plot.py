"""Pareto fronts drawn: two measures on the axes, a point for each forecaster, those on the front joined by steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import number_of
from onlinecal.growth.words import literal
from onlinecal.report.curves import Study
from onlinecal.report.frames import counted
from onlinecal.report.pair_panels import panels
from onlinecal.report.pareto import Front, fronts
from onlinecal.report.ranking import COMMON_RUNS
from onlinecal.report.style import GREY, leftmost, paper, plain, tick, wrapped

#: totals that are positive and differ by a larger factor have a logarithmic axis
WIDE = 50


def plot_pareto(
    study: Study,
    measures: Sequence[str],
    *,
    axes: Any = None,
    title: str = "",
    dark: bool = False,
    width: Any = None,
) -> NDArray[Any]:
    """The Pareto front of each nature: mean totals of the first measure across, of the second up.

    Parameters
    ----------
    study : Study
    measures : (str, str)
        Two columns.
    axes : (natures,) array of matplotlib Axes, optional
        Where to draw. Default: those of a new figure, which also gets the title, a legend and, below, what is drawn; to
        others' figures `caption` says that.
    title : str, optional
        Of a new figure.
    dark, width
        As in `curve_plot.plot_curves`.

    Returns
    -------
    (natures,) array of Axes
        Filled points are on the front, which a line joins; hollow ones are dominated in the means, and those with a
        cross beyond doubt, as `pareto.fronts` says. Infinite means are not drawn. Where means are positive and differ
        by a factor of more than 50 the axis is logarithmic.

    Raises
    ------
    UnknownName
        A measure that was not played.
    InvalidParameter
        Not two measures, or no nature in which both were taken; another number of axes; a title for axes that are
        given; a width that cannot be.
    """
    drawn = _fronts(study, measures)
    names = {who: study.places[who] for front in drawn for who in front.forecasters}
    return panels(
        (len(drawn),), "one for each nature", lambda found, side: _fill(found, drawn, study, side), _caption(drawn),
        names, {"linestyle": "none", "markersize": 5}, axes=axes, title=title, dark=dark, width=width, most=3,
    )  # fmt: skip


def caption(study: Study, measures: Sequence[str]) -> str:
    """What is drawn in `plot_pareto`, for a figure of somebody's own."""
    return _caption(_fronts(study, measures))


def _fronts(study: Study, measures: Sequence[str]) -> list[Front]:
    if isinstance(measures, str) or len(measures) != 2:
        raise InvalidParameter(f"pareto: measures = {measures!r}; expected two measures")
    first, second = measures
    return fronts(study, first, second)


def _caption(drawn: Sequence[Front]) -> str:
    horizons = sorted({front.horizon for front in drawn})
    runs = {front.runs for front in drawn}
    parts = [
        f"Point: mean totals of {counted(runs)} at T = "
        f"{' or '.join(f'{t:,}' for t in horizons)}, the largest.",
        "Filled, joined by the line: on the Pareto front; no other forecaster has means that are no worse in both "
        "measures and better in one.",
    ]
    finite = [np.isfinite(front.means).all(axis=1) for front in drawn]
    beaten = [front.dominated.any(axis=0) & there for front, there in zip(drawn, finite, strict=True)]
    sure = [front.certain.any(axis=0) & there for front, there in zip(drawn, finite, strict=True)]
    if any(some.any() for some in beaten):
        parts.append("Hollow: another forecaster has.")
    if any(some.any() for some in sure):
        parts.append(
            "With a cross: another is better in both beyond doubt (Student's t on one difference a run, the larger "
            "p-value of both measures, Holm's procedure over all pairs and natures); all crosses hold together with "
            f"{100 * drawn[0].level:g} % if differences are normal."
        )
    if len(lost := sorted({int((~there).sum()) for there in finite})) > 1 or lost[-1]:
        parts.append("Not drawn: infinite means.")
    if any(_logarithmic(front, k) for front in drawn for k in range(2)):
        parts.append(f"Where positive means differ by a factor of more than {WIDE} the axis is logarithmic.")
    if any(front.fewer for front in drawn):
        parts.append(f"{COMMON_RUNS}.")
    if any(front.recorded for front in drawn):
        parts.append(
            "On recorded outcomes, which are the same in all runs, certainty is over the forecasters' randomness alone."
        )
    if most := max(front.open for front in drawn):
        parts.append(f"Open at the end, and in no total: up to {number_of(most, 'question')}.")
    return " ".join(parts)


def _fill(panels: NDArray[Any], drawn: Sequence[Front], study: Study, side: float) -> None:
    """Fronts into their axes."""
    size = 9 if side > 2.5 else 8
    for k, (axis, front) in enumerate(zip(panels, drawn, strict=True)):
        axis.set_visible(True)
        _draw(axis, front, study)
        axis.set_title(wrapped(f"{front.nature}, T = {front.horizon:,}", side, size), fontsize=size)
        ways = ["higher" if higher else "lower" for higher in front.higher]
        names = [
            wrapped(f"{measure}, total ({way} is better)", side, 8)
            for measure, way in zip(front.measures, ways, strict=True)
        ]
        axis.set_xlabel(names[0], fontsize=8)
        if leftmost(axis, k):
            axis.set_ylabel(names[1], fontsize=8)


def _draw(axis: Axes, front: Front, study: Study) -> None:
    """Points over the boundary of what they dominate."""
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
    return bool(len(values) and values.min() > 0.0 and values.max() > WIDE * values.min())
