"""The regret of every kink: first what is drawn, as plain data, then the drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import choice
from onlinecal.measures._kinks import upper_hull
from onlinecal.measures.decision import cdl, v_cdl, worst_decision_task, worst_kink
from onlinecal.measures.soft_binned import scdl, soft_rounding
from onlinecal.measures.witnesses.grids import threshold_losses
from onlinecal.measures.witnesses.tasks import WorstTask, kink_regrets
from onlinecal.report.gamma_panels import Gammas, gammas_of, panels
from onlinecal.report.style import GREY, paper, plain, thinned

Floats = NDArray[np.float64]
Name = Literal["cdl", "v_cdl", "scdl"]
NAMES = ("cdl", "v_cdl", "scdl")


@dataclass(frozen=True, eq=False)
class RegretDensity:
    """The regret R(t) of a kink at each t, and what a measure makes of it.

    Attributes
    ----------
    label : str
        Whose Γ it is; "" if that need not be said.
    measure : {"cdl", "v_cdl", "scdl"}
    value : float
        Of the measure.
    kinks, regrets : (n,) floats
        R(t), a curve of straight lines; where it jumps t stands there up to three times: with the limit from the left,
        R itself and the limit from the right. For "scdl" the loss of the grid's threshold i, at its middle
        (i − 1/2)/m, where it can be largest.
    above_kinks, above : (m,) floats
        The lowest curve above R that the measure is read from. For "cdl" the concave envelope, whose height at 1/2 is
        half the value; for "v_cdl" value × max(t, 1 − t); for "scdl" nothing.
    worst : WorstTask or None
        The task that attains the value; None for "scdl".
    at, height : (w,) floats
        The kinks of the worst task and R there; for "scdl" the middle of the worst threshold and its loss.
    grid : int
        m for "scdl", the grid that attains the minimum; 0 of calibrated Γ, and for the others.
    """

    label: str
    measure: Name
    value: float
    kinks: Floats
    regrets: Floats
    above_kinks: Floats
    above: Floats
    worst: WorstTask | None
    at: Floats
    height: Floats
    grid: int

    @property
    def heading(self) -> str:
        """What stands above it."""
        name = {"cdl": "CDL", "v_cdl": "V-CDL", "scdl": "SCDL"}[self.measure]
        return f"{self.label}\n{name} = {self.value:.4g}".strip()


def regret_density(gamma: JointDistribution, measure: Name = "cdl", *, label: str = "") -> RegretDensity:
    """What `plot_regret` draws of Γ.

    R(t) = Σ w_i [ (q_i − t) 1(v_i ≤ t < q_i) + (t − q_i) 1(q_i < t ≤ v_i) ]: it jumps up to its value where t reaches a
    v_i below q_i, and down from it where t leaves a v_i above q_i.

    Parameters
    ----------
    gamma : JointDistribution
    measure : {"cdl", "v_cdl", "scdl"}, default "cdl"
    label : str, optional
    """
    choice("regret", "measure", measure, NAMES)
    if measure == "scdl":
        return _soft(gamma, label)
    t, regret, _ = kink_regrets(gamma, measure)
    r = gamma.residuals
    before, after = np.zeros(len(t)), np.zeros(len(t))
    at = np.searchsorted(t, gamma.predictions)
    before[at], after[at] = np.maximum(r, 0.0), np.maximum(-r, 0.0)
    three = np.stack((regret - before, regret, regret - after), axis=1)
    keep = np.stack((before > 0.0, np.ones(len(t), bool), after > 0.0), axis=1)
    kinks, regrets = np.repeat(t, 3)[keep.ravel()], np.maximum(three.ravel()[keep.ravel()], 0.0)
    if measure == "cdl":
        value, worst = cdl(gamma), worst_decision_task(gamma)
        corners = upper_hull(t, regret)
        above_kinks, above = t[corners], regret[corners]
    else:
        value, worst = v_cdl(gamma), worst_kink(gamma)
        above_kinks = np.array([0.0, 0.5, 1.0])
        above = value * np.maximum(above_kinks, 1.0 - above_kinks)
    own = np.array(worst.kinks, dtype=np.float64)
    height = regret[np.searchsorted(t, own)] if len(own) else own
    return RegretDensity(label, measure, value, kinks, regrets, above_kinks, above, worst, own, height, 0)


def _soft(gamma: JointDistribution, label: str) -> RegretDensity:
    value, m = scdl(gamma), soft_rounding(gamma).bins
    none = np.zeros(0)
    if m is None:
        return RegretDensity(label, "scdl", value, none, none, none, none, None, none, none, 0)
    threshold, losses = threshold_losses(gamma, m, True)
    at = (threshold - 0.5) / m
    worst = int(np.argmax(losses))
    return RegretDensity(label, "scdl", value, at, losses, none, none, None, at[[worst]], losses[[worst]], m)


def plot_regret(
    p: Gammas | ArrayLike,
    y: ArrayLike | None = None,
    *,
    measure: Name = "cdl",
    axes: Any = None,
    title: str = "",
    dark: bool = False,
    width: Any = None,
) -> Any:
    """The regret R(t) of every kink t, and the worst decision task that is made of kinks.

    Parameters
    ----------
    p : (n,) array_like, JointDistribution, or mapping of labels to JointDistribution
        Predictions, with outcomes y; or Γ; or several, a panel for each.
    y : (n,) array_like
        Outcomes, each 0 or 1.
    measure : {"cdl", "v_cdl", "scdl"}, default "cdl"
        Whose worst task is marked: of all tasks, of those with one kink, or of the thresholds of the grid to which SCDL
        rounds.
    axes, title, dark, width
        As in `reliability_plot.plot_reliability`.

    Returns
    -------
    Axes, or (n,) array of Axes
        An array where a mapping is given.

    Raises
    ------
    InvalidData, InvalidParameter
        Samples that are no forecasts and outcomes; another measure; axes or a width that cannot be.

    Examples
    --------
    >>> ax = plot_regret([0.45] * 20, [0, 1] * 10)
    >>> ax.get_title()
    'CDL = 0.09091'
    """
    drawn = _densities(p, y, measure)
    found = panels(
        drawn, _draw, [one.heading for one in drawn], _caption(drawn),
        axes=axes, title=title, dark=dark, width=width, high=0.72,
    )  # fmt: skip
    return found if isinstance(p, Mapping) else found[0]


def caption(p: Gammas | ArrayLike, y: ArrayLike | None = None, *, measure: Name = "cdl") -> str:
    """What is drawn in `plot_regret`, for a figure of somebody's own."""
    return _caption(_densities(p, y, measure))


def _densities(p: Gammas | ArrayLike, y: ArrayLike | None, measure: Name) -> list[RegretDensity]:
    return [regret_density(gamma, measure, label=label) for label, gamma in gammas_of("regret", p, y).items()]


def _caption(drawn: Sequence[RegretDensity]) -> str:
    measure = drawn[0].measure
    if measure == "scdl":
        grids = sorted({one.grid for one in drawn if one.grid})
        parts = []
        if grids:
            sizes = " and ".join(f"1/{m}" for m in grids)
            parts = [
                f"Predictions are rounded at random to a neighbouring multiple of {sizes}, the grid that attains SCDL. "
                "Across: the middle of each threshold (i − 1)/m to i/m of this grid; up: what is lost there, where it "
                "can be largest. SCDL is the larger of the largest of them (marked) and 1/m."
            ]
    else:
        parts = [
            "Line: R(t), the swap regret for each round of the task that tells apart probabilities below and above t, "
            "with payoffs that differ by t if y = 0 and by 1 − t if y = 1. Vertical parts are jumps, at predictions."
        ]
        if measure == "cdl":
            parts.append(
                "Dashed: the least concave curve above R. CDL is twice its height at t = 1/2 (square)."
            )
        else:
            parts.append(
                "Dashed: V-CDL × max(t, 1 − t), the lowest such curve above R: payoffs in [0, 1] allow no more than "
                "R(t)/max(t, 1 − t)."
            )
        if any(len(one.at) for one in drawn):
            parts.append("Points: the kinks of the worst task.")
    for one in drawn:
        if not one.value:
            parts.append(f"{one.label + ': ' if one.label else ''}Calibrated: no task regrets anything.")
        elif one.worst is not None:
            parts.append(f"{one.label + ': ' if one.label else ''}Worst {one.worst}.")
    return " ".join(parts)


def _draw(axis: Axes, _: Axes | None, one: RegretDensity) -> None:
    """R, what lies above it, and the worst task."""
    colours = paper(axis)
    red, blue = colours.colours[1], colours.colours[0]
    if one.measure == "scdl":
        few = len(one.kinks) <= 100
        axis.plot(
            one.kinks,
            one.regrets,
            color=blue,
            linewidth=1.2,
            marker="." if few else None,
            markersize=4,
            zorder=2.0,
        )
        if one.grid:
            axis.axhline(1.0 / one.grid, color=GREY, linewidth=0.8)
            axis.annotate(f"1/{one.grid}", (1.0, 1.0 / one.grid), (-2, 2), textcoords="offset points",
                          ha="right", fontsize=7, color=colours.faint)  # fmt: skip
    else:
        x, heights = thinned(one.kinks, one.regrets)
        axis.fill_between(x, heights, color=blue, alpha=0.15, linewidth=0)
        axis.plot(x, heights, color=blue, linewidth=1.2, zorder=2.0, solid_joinstyle="round")
        axis.plot(
            one.above_kinks, one.above, color=colours.ink, linewidth=1.0, linestyle=(0, (5, 2)), zorder=2.1
        )
        if one.measure == "cdl" and one.value:
            axis.vlines(0.5, 0.0, one.value / 2, color=GREY, linewidth=0.8, zorder=1.0)
            axis.plot(0.5, one.value / 2, color=colours.ink, marker="s", markersize=4.5, zorder=3.0)
    axis.plot(
        one.at, one.height, color=red, marker="o", markersize=5.5, linestyle="none", zorder=3.1, clip_on=False
    )
    if one.worst is not None and one.value:
        for t, height in zip(one.at, one.height, strict=True):
            low = t < 0.5 or (t == 0.5 and len(one.at) == 1)
            axis.annotate(f"t = {t:.4g}", (t, height), (-3 if low else 3, 5), textcoords="offset points",
                          ha="right" if low else "left", va="bottom", fontsize=7, color=red)  # fmt: skip
    axis.set_xlim(0.0, 1.0)
    top = max([float(values.max()) for values in (one.regrets, one.above) if len(values)], default=0.0)
    axis.set_ylim(0.0, 1.22 * top if top > 0.0 else 1.0)
    plain(axis, "threshold t", "regret R(t) for each round")
