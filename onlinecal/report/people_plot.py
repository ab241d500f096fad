"""Decision makers who join and leave, as pictures: the drawing of what `people_rows` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from onlinecal.core.words import number_of
from onlinecal.growth.words import literal
from onlinecal.report.curves import Study
from onlinecal.report.frames import counted, ends
from onlinecal.report.people_rows import SHARES, PeopleRow, people_rows
from onlinecal.report.style import (
    GREY,
    finish,
    given_axes,
    inches,
    laid_out,
    log_ticks,
    page,
    paper,
    plain,
    wrapped,
)

#: of axes without a width of their own, in inches
WIDTH = 3.4
#: of swap regret; what is smaller stands on the lower edge
DECADES = 4


def plot_people(
    study: Study, *, axes: Any = None, title: str = "", dark: bool = False, width: Any = None
) -> NDArray[Any]:
    """The swap regret of each decision maker: as it grows, beside its CDL, and for each question of its tenure.

    Parameters
    ----------
    study : Study
        With decision makers.
    axes : (pairs, 3) array of matplotlib Axes, optional
        Where to draw, a row for each forecaster and nature. Default: those of a new figure, which also gets the title
        and, below, what is drawn; to others' figures `caption` says that.
    title : str, optional
        Of a new figure.
    dark, width
        As in `curve_plot.plot_curves`.

    Returns
    -------
    (pairs, 3) array of Axes
        Left, thin, the swap regret of each against T, thick the median and dashed the 10th and 90th percentile of those
        with a known outcome. Middle, swap regret against CDL at the end. Right, the share of decision makers with at
        most so much swap regret, and CDL, for each question. Everything is a mean over the runs.

    Raises
    ------
    InvalidParameter
        Nobody joins and leaves; axes of another shape; a title for axes that are given.
    """
    drawn = people_rows(study)
    if axes is not None:
        panels = given_axes(axes, (len(drawn), 3), "pairs × 3", title)
        _fill(panels, drawn, WIDTH)
        return panels
    asked = inches(width, 0.0) or None
    # They hold more words than others.
    columns = 3 if asked is None else max(1, min(3, int(asked / 3.2)))
    wide = asked or 13.3
    side = min(WIDTH, wide / columns - 0.75)
    heads = sum(_heading(people, drawn, side).count("\n") for people in drawn)
    high = 0.1 + (0.85 * side + 0.45) * len(drawn) * -(-3 // columns) + 0.17 * heads
    with page(dark):
        fig = Figure(figsize=(wide, high), layout="constrained", dpi=150)
        panels = laid_out(fig, len(drawn), 3, columns)
        _fill(panels, drawn, side)
        finish(fig, title, _caption(drawn))
    return panels


def _fill(panels: NDArray[Any], drawn: Sequence[PeopleRow], side: float) -> None:
    """Each pair into its three axes."""
    across, up = _spans(drawn)
    most = max((float(np.nanmax(np.append(c.cdl_rate, c.rate), initial=0.0)) for c in drawn), default=0.0)
    for row, people in zip(panels, drawn, strict=True):
        _draw_growth(row[0], people)
        row[0].set_title(_heading(people, drawn, side), fontsize=10)
        _draw_bound(row[1], people, across, up)
        _draw_shares(row[2], people, most or 1.0)


def caption(study: Study) -> str:
    """What is drawn in `plot_people`, for a figure of somebody's own."""
    return _caption(people_rows(study))


def _heading(people: PeopleRow, drawn: Sequence[PeopleRow], side: float) -> str:
    """Who against whom; the schedule only where it is not that of all."""
    nature = people.schedule[0] if _schedule(drawn) else people.nature
    return wrapped(f"{people.forecaster} against {nature}", side, 10)


def _schedule(drawn: Sequence[PeopleRow]) -> str:
    """The schedule of all, "" if there are several or nothing is to be said of it."""
    schedules = {people.schedule[1] for people in drawn}
    return schedules.pop() if len(schedules) == 1 else ""


def _spans(drawn: Sequence[PeopleRow]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Limits of the logarithmic axes of CDL and of swap regret; of the latter the upper `DECADES`."""
    bounds, regrets = (
        np.concatenate([getattr(c, name)[c.seen > 0] for c in drawn]) for name in ("cdl", "last")
    )
    bounds, regrets = bounds[bounds > 0], regrets[regrets > 0]
    if not len(bounds) and not len(regrets):
        return (0.1, 10.0), (0.1, 10.0)
    most = 1.6 * float(max(bounds.max(initial=0.0), regrets.max(initial=0.0)))
    least = max(float(regrets.min(initial=most)) / 1.6, most * 10.0**-DECADES)
    return (float(bounds.min(initial=most)) / 1.6, most), (least, most)


def _draw_growth(axis: Any, people: PeopleRow) -> None:
    here = paper(axis)
    for k, best in enumerate(people.best):
        axis.plot(
            people.rounds,
            people.regret[:, k],
            color=here.colours[0 if best else 1],
            alpha=0.22,
            linewidth=0.6,
        )
    low, middle, high = people.quantiles
    axis.plot(people.rounds, middle, color=here.ink, linewidth=2.0, label="median")
    for values, label in ((low, f"{SHARES[0]:.0f}th and {SHARES[2]:.0f}th percentile"), (high, "")):
        axis.plot(people.rounds, values, color=here.ink, linewidth=1.0, linestyle=(0, (5, 2)), label=label)
    if people.worst is not None:
        _name(
            axis,
            literal(people.labels[people.worst]),
            float(people.rounds[-1]),
            float(people.last[people.worst]),
        )
    top = float(np.nanmax(people.regret, initial=0.0))
    axis.set_ylim(0.0, 1.08 * top if top > 0 else 1.0)
    axis.set_xlim(0.0, float(people.rounds[-1]) * 1.01)
    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    plain(axis, "T", "swap regret, total")
    axis.legend(fontsize=7, frameon=False, loc="upper left")


def _name(axis: Any, text: str, x: float, y: float) -> None:
    """A name at the right edge, written to the left of its point."""
    axis.annotate(text, (x, y), (-3, 2), textcoords="offset points", ha="right", va="bottom", fontsize=7)


def _draw_bound(axis: Any, people: PeopleRow, across: tuple[float, float], up: tuple[float, float]) -> None:
    here = paper(axis)
    axis.set_xscale("log")
    axis.set_yscale("log")
    for best, colour, words in (
        (True, here.colours[0], "best response"),
        (False, here.colours[1], "another response"),
    ):
        mine = (people.best == best) & (people.seen > 0)
        if mine.any():
            axis.plot(
                np.maximum(people.cdl[mine], across[0]),
                np.maximum(people.last[mine], up[0]),
                color=colour,
                marker="o" if best else "s",
                markerfacecolor=colour if best else "none",
                markersize=3.5,
                linestyle="none",
                alpha=0.6 if best else 1.0,
                clip_on=False,
                label=f"{words} ({int(mine.sum())})",
            )
    axis.plot(across, across, color=GREY, linewidth=1.0, label="swap regret = CDL", zorder=1.0)
    axis.set_xlim(*across)
    axis.set_ylim(*up)
    for which, (low, high) in ((axis.xaxis, across), (axis.yaxis, up)):
        log_ticks(which, high / low)
    if people.worst is not None:
        at = people.worst
        x, y = max(float(people.cdl[at]), across[0]), max(float(people.last[at]), up[0])
        _name(axis, literal(people.labels[at]), x, y)
    axis.set_title(f"at T = {people.horizon:,}", fontsize=10)
    plain(axis, "CDL of the questions of its tenure, total", "swap regret, total")
    # The diagonal may pass below it.
    axis.legend(
        fontsize=7, loc="upper left", facecolor=axis.get_facecolor(), edgecolor="none", framealpha=0.8
    )


def _draw_shares(axis: Any, people: PeopleRow, most: float) -> None:
    here = paper(axis)
    for values, colour, words in ((people.cdl_rate, GREY, "CDL"), (people.rate, here.ink, "swap regret")):
        there = np.sort(values[np.isfinite(values)])
        if len(there):
            share = np.arange(len(there) + 1) / len(there)
            x = np.concatenate([[0.0], there, [1.04 * most]])
            axis.step(x, np.append(share, 1.0), where="post", color=colour, linewidth=1.5, label=words)
    axis.set_ylim(0.0, 1.02)
    axis.set_xlim(0.0, 1.04 * most)
    at = people.worst_rate
    if at is not None:
        axis.annotate(
            f"{literal(people.labels[at])}: {people.rate[at]:.3g}\nin {number_of(int(people.seen[at]), 'question')}",
            (float(people.rate[at]), 1.0),
            (0, -34),
            textcoords="offset points",
            ha="right" if people.rate[at] > 0.5 * most else "left",
            va="top",
            fontsize=7,
            bbox={"facecolor": axis.get_facecolor(), "edgecolor": "none", "alpha": 0.8, "pad": 1.0},
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6},
        )
    many = len(people.labels) - people.unseen
    axis.set_title(number_of(many, "decision maker"), fontsize=10)
    plain(axis, "for each question with a known outcome", "share of decision makers\nwith at most this")
    if people.unseen < len(people.labels):
        axis.legend(fontsize=7, frameon=False, loc="lower right")


def _caption(drawn: Sequence[PeopleRow]) -> str:
    runs = {c.runs for c in drawn}
    opens = {c.open for c in drawn}
    schedule, (across, up) = _schedule(drawn), _spans(drawn)
    parts = [f"Schedule: {schedule}."] if schedule else []
    parts += [
        f"Means of {counted(runs)}{', which share the times of questions, outcomes and tenures' * (max(runs) > 1)}.",
        "A decision maker acts on the questions that are asked while it is there; its totals are over those whose "
        "outcome is known.",
    ]
    if any(opens):
        what = "question that is" if opens == {1} else "questions that are"
        parts.append(f"Not in them: {ends(opens)} {what} open at the end.")
    parts.append(
        "Against T: thin, one decision maker each; percentiles of those with a known outcome, who change as people "
        "join; the vertical scale is each row's own."
    )
    parts.append("No best response has more swap regret than the CDL of its questions (grey diagonal)")
    if not all(c.best.all() for c in drawn):
        parts[-1] += "; another response may"
    parts[-1] += "."
    unseen = {c.unseen for c in drawn}
    if any(unseen):
        parts.append(f"Not drawn: {ends(unseen)} without a question whose outcome is known.")
    if any((((c.last < up[0]) | (c.cdl < across[0])) & (c.seen > 0)).any() for c in drawn):
        parts.append("Against the CDL, who has less than an axis shows stands on its edge.")
    return literal(" ".join(parts))
