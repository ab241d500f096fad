"""Pareto fronts drawn: two measures on the axes, a point for each forecaster, those on the front joined by steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from onlinecal.report.pareto import Front
from onlinecal.report.style import given_axes, wrapped


def plot_pareto(found: Sequence[Front], axes: Any = None, title: str = "") -> NDArray[Any]:
    """A picture for each nature: mean totals of the first measure across, of the second up.

    Filled points are on the front, which a line joins; crosses are dominated beyond doubt; hollow points are dominated
    in the means alone. Infinite totals are not drawn, and said so.

    Parameters
    ----------
    found : sequence of Front
    axes : Axes or sequence of them, optional
        One for each front. Default: those of a new figure.
    title : str, optional
        Above a new figure.

    Returns
    -------
    (n,) array of Axes
    """
    if axes is None:
        figure = Figure(figsize=(4.2 * len(found), 3.8), layout="constrained")
        drawn = figure.subplots(1, len(found), squeeze=False)[0]
        if title:
            figure.suptitle(title)
    else:
        drawn = given_axes(axes, (len(found),), "one for each nature", title)
    for ax, front in zip(drawn, found, strict=True):
        _draw(ax, front)
    return drawn


def _draw(ax: Any, front: Front) -> None:
    on = set(front.front)
    finite: NDArray[np.bool_] = np.asarray(np.isfinite(front.means).all(axis=1))
    for i, who in enumerate(front.forecasters):
        if not finite[i]:
            continue
        if who in on:
            style = {"marker": "o", "color": "C0"}
        elif front.certain[:, i].any():
            style = {"marker": "x", "color": "0.45"}
        else:
            style = {"marker": "o", "markerfacecolor": "none", "color": "0.45"}
        ax.plot(*front.means[i], linestyle="none", label=who, **style)
        ax.annotate(
            who.replace("$", r"\$"), front.means[i], xytext=(4, 4), textcoords="offset points", fontsize=7
        )
    line = np.array([front.means[front.forecasters.index(who)] for who in front.front])
    line = line[np.isfinite(line).all(axis=1)] if len(line) else line.reshape(0, 2)
    # Who is on the step has been beaten in one measure; below it, in the better direction, nobody is.
    ax.step(line[:, 0], line[:, 1], where="post", color="C0", alpha=0.4, linewidth=1.0, zorder=0)
    left_out = int((~finite).sum())
    lines = [wrapped(f"{front.nature}, T = {front.horizon:,}", 4.0, 10)]
    if left_out:
        lines.append(f"{left_out} with infinite totals not drawn")
    ax.set_title("\n".join(lines), fontsize=9)
    for set_label, measure, higher in zip(
        (ax.set_xlabel, ax.set_ylabel), front.measures, front.higher, strict=True
    ):
        set_label(f"{measure}, total ({'higher' if higher else 'lower'} is better)".replace("$", r"\$"))
