"""Pareto fronts drawn: two measures on the axes, a point for each forecaster, those on the front joined by steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, MaxNLocator, NullFormatter

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import number_of
from onlinecal.growth.words import literal
from onlinecal.report.curves import Study
from onlinecal.report.frames import counted
from onlinecal.report.panels import Panels, Picture, even, head, joined, pictured
from onlinecal.report.ranking import COMMON_RUNS, Front, fronts
from onlinecal.report.style import GREY, paper, plain, tick, wrapped

#: totals that are positive and differ by a larger factor have a logarithmic axis
WIDE = 50


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
            _draw(axis, front, study)
            across, up = (
                wrapped(f"{measure}, total ({'higher' if higher else 'lower'} is better)", side, 8)
                for measure, higher in zip(front.measures, front.higher, strict=True)
            )
            head(axis, f"{front.nature}, T = {front.horizon:,}", side, k, across, up, (9, 8))

    names = {who: study.places[who] for front in drawn for who in front.forecasters}
    return even(
        (len(drawn),), "one for each nature", fill, _caption(drawn), names,
        {"linestyle": "none", "markersize": 5}, most=3,
    )  # fmt: skip


def _caption(drawn: Sequence[Front]) -> str:
    horizons = sorted({front.horizon for front in drawn})
    finite = [np.isfinite(front.means).all(axis=1) for front in drawn]
    beaten, sure = (
        any(
            (getattr(front, name).any(axis=0) & there).any()
            for front, there in zip(drawn, finite, strict=True)
        )
        for name in ("dominated", "certain")
    )
    open = max(front.open for front in drawn)
    return joined(
        f"Point: mean totals of {counted({front.runs for front in drawn})} at T = "
        f"{' or '.join(f'{t:,}' for t in horizons)}, the largest.",
        "Filled, joined by the line: on the Pareto front; no other forecaster has means that are no worse in both "
        "measures and better in one.",
        "Hollow: another forecaster has." * beaten,
        "With a cross: another is better in both beyond doubt (Student's t on one difference a run, the larger p-value "
        "of both measures, Holm's procedure over all pairs and natures); all crosses hold together with "
        f"{100 * drawn[0].level:g} % if differences are normal." * sure,
        "Not drawn: infinite means." * any(not there.all() for there in finite),
        f"Where positive means differ by a factor of more than {WIDE} the axis is logarithmic."
        * any(_logarithmic(front, k) for front in drawn for k in range(2)),
        f"{COMMON_RUNS}." * any(front.fewer for front in drawn),
        "On recorded outcomes, which are the same in all runs, certainty is over the forecasters' randomness alone."
        * any(front.recorded for front in drawn),
        f"Open at the end, and in no total: up to {number_of(open, 'question')}." * (open > 0),
    )


def _draw(axis: Axes, front: Front, study: Study) -> None:
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
