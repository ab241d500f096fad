"""Regrets of kinks, and the witness of the smooth calibration error: data, then drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import choice
from onlinecal.measures._kinks import upper_hull
from onlinecal.measures.decision import cdl, v_cdl, worst_decision_task, worst_kink
from onlinecal.measures.smooth_ce import smooth_ce, smooth_ce_witness
from onlinecal.measures.soft_binned import scdl, soft_rounding
from onlinecal.measures.witnesses.distances import threshold_losses
from onlinecal.measures.witnesses.tasks import WorstTask, kink_regrets
from onlinecal.report.panels import MOST, Gammas, Picture, gammas_of, of_gammas, pictured
from onlinecal.report.style import GREY, paper, plain, thinned

Floats = NDArray[np.float64]
Name = Literal["cdl", "v_cdl", "scdl"]
NAMES = {"cdl": "CDL", "v_cdl": "V-CDL", "scdl": "SCDL"}


class RegretDensity(NamedTuple):
    """The regret R(t) of a kink at each t, and the value of a measure of it."""

    label: str
    measure: Name
    value: float
    #: where R jumps t stands up to three times; of "scdl" the middles of the grid's thresholds, and their losses
    kinks: Floats
    regrets: Floats
    #: the lowest curve above R from which the measure is read
    above_kinks: Floats
    above: Floats
    #: the task that attains the value, its kinks and R there; of "scdl" the worst threshold
    worst: WorstTask | None
    at: Floats
    height: Floats
    #: m of "scdl"; 0 of calibrated Γ, and for the others
    grid: int


def regret_density(gamma: JointDistribution, measure: Name = "cdl", *, label: str = "") -> RegretDensity:
    """The regrets of Γ.

    R(t) = Σ w_i [ (q_i − t) 1(v_i ≤ t < q_i) + (t − q_i) 1(q_i < t ≤ v_i) ]: it jumps up to its value where t reaches a
    v_i below q_i, and down from it where t leaves a v_i above q_i.
    """
    choice("regret", "measure", measure, tuple(NAMES))
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


@pictured
def plot_regret(p: Gammas | ArrayLike, y: ArrayLike | None = None, *, measure: Name = "cdl") -> Picture:
    """The regret R(t) of every kink t, and the worst decision task that is made of kinks.

    Parameters
    ----------
    p, y
        As in `reliability_plot.plot_reliability`.
    measure : {"cdl", "v_cdl", "scdl"}, default "cdl"
        The measure with the marked worst task: of all tasks, of those with one kink, or of the thresholds of the grid
        to which SCDL rounds.

    Returns
    -------
    Axes, or (n,) array of Axes
        An array where a mapping is given.

    Examples
    --------
    >>> ax = plot_regret([0.45] * 20, [0, 1] * 10)
    >>> ax.get_title()
    'CDL = 0.09091'
    """
    several = gammas_of("regret", p, y)
    drawn = [regret_density(gamma, measure, label=label) for label, gamma in several.items()]
    return of_gammas(
        p, drawn, lambda axis, _, one, __: _draw_regret(axis, one),
        [f"{NAMES[measure]} = {one.value:.4g}" for one in drawn], _regret_caption(drawn, measure), 0.72,
    )  # fmt: skip


def _regret_caption(drawn: Sequence[RegretDensity], measure: Name) -> str:
    if measure == "scdl":
        text = (
            "Predictions are rounded at random to a neighbouring multiple of 1/m, on the grid that attains SCDL (line "
            "at 1/m). Across: the middle of each threshold (i − 1)/m to i/m of this grid; up: what is lost there, "
            "where it can be largest. SCDL is the larger of the largest of them (point) and 1/m."
        )
    else:
        above = (
            "the least concave curve above R. CDL is twice its height at t = 1/2 (square)"
            if measure == "cdl"
            else "V-CDL × max(t, 1 − t), the lowest such curve above R: payoffs in [0, 1] allow no more than "
            "R(t)/max(t, 1 − t)"
        )
        text = (
            "Line: R(t), the swap regret for each round of the task that tells apart probabilities below and above t, "
            "with payoffs that differ by t if y = 0 and by 1 − t if y = 1. Vertical parts are jumps, at predictions. "
            f"Dashed: {above}. Points: the kinks of the worst task."
        )
    for one in drawn:
        name = f"{one.label}: " if one.label else ""
        if not one.value:
            text += f" {name}Calibrated: no task regrets anything."
        elif one.worst is not None:
            text += f" {name}Worst {one.worst}."
    return text


def _draw_regret(axis: Axes, one: RegretDensity) -> None:
    here = paper(axis)
    blue, red = here.colours[:2]
    if one.measure == "scdl":
        few = "." if len(one.kinks) <= 100 else None
        axis.plot(one.kinks, one.regrets, color=blue, linewidth=1.2, marker=few, markersize=4, zorder=2.0)
        if one.grid:
            axis.axhline(1.0 / one.grid, color=GREY, linewidth=0.8)
            axis.annotate(f"1/{one.grid}", (1.0, 1.0 / one.grid), (-2, 2), textcoords="offset points",
                          ha="right", fontsize=7, color=here.faint)  # fmt: skip
    else:
        x, heights = thinned(one.kinks, one.regrets)
        axis.fill_between(x, heights, color=blue, alpha=0.15, linewidth=0)
        axis.plot(x, heights, color=blue, linewidth=1.2, zorder=2.0, solid_joinstyle="round")
        axis.plot(
            one.above_kinks, one.above, color=here.ink, linewidth=1.0, linestyle=(0, (5, 2)), zorder=2.1
        )
        if one.measure == "cdl" and one.value:
            axis.vlines(0.5, 0.0, one.value / 2, color=GREY, linewidth=0.8, zorder=1.0)
            axis.plot(0.5, one.value / 2, color=here.ink, marker="s", markersize=4.5, zorder=3.0)
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


# ---------------------------------------------------------------- the witness


class SmoothWitness(NamedTuple):
    """A function ω that attains the smooth calibration error, with its weights at the predictions."""

    label: str
    value: float
    predictions: Floats
    weights: Floats
    #: residuals at the levels, or, where `summed`, their sums over `MOST` parts of [0, 1]
    at: Floats
    residuals: Floats
    summed: bool


def smooth_witness(gamma: JointDistribution, *, label: str = "") -> SmoothWitness:
    """The witness of Γ, and the residuals that it weighs."""
    v, weights, summed = gamma.predictions, smooth_ce_witness(gamma).weights, gamma.levels > MOST
    at, residuals = v, gamma.residuals
    if summed:
        part = np.minimum((v * MOST).astype(np.int64), MOST - 1)
        residuals = np.bincount(part, residuals, MOST).astype(np.float64)
        at = (np.arange(MOST) + 0.5) / MOST
    return SmoothWitness(label, smooth_ce(gamma), v, weights, at, residuals, summed)


@pictured
def plot_witness(p: Gammas | ArrayLike, y: ArrayLike | None = None) -> Picture:
    """The 1-Lipschitz function ω that attains the smooth calibration error, and the residuals that it weighs.

    Parameters
    ----------
    p, y
        As in `reliability_plot.plot_reliability`.

    Returns
    -------
    Axes, or (n,) array of Axes
        An array where a mapping is given. The residuals have axes of their own below.

    Examples
    --------
    >>> plot_witness([0.4, 0.6], [1, 0]).get_title()
    'smCE = 0.06'
    """
    drawn = [smooth_witness(gamma, label=label) for label, gamma in gammas_of("witness", p, y).items()]
    caption = (
        "Above: a function ω of the prediction v that attains the smooth calibration error, among all that stay in "
        "[−1, 1] and change by no more than v does; others may attain it, too. Points: the levels of Γ. Below: "
        "residuals, the weight of a level × (mean outcome − v), blue above 0 and orange below; of more than "
        f"{MOST} levels they are summed over {MOST} parts of [0, 1]. smCE is the sum of residual × ω over the levels."
    )
    return of_gammas(p, drawn, _draw_witness, [f"smCE = {one.value:.4g}" for one in drawn], caption, 0.6, 0.6)


def _draw_witness(axis: Axes, below: Axes, one: SmoothWitness, _: bool) -> None:
    here = paper(axis)
    v = np.concatenate(([0.0], one.predictions, [1.0]))
    omega = np.concatenate((one.weights[:1], one.weights, one.weights[-1:]))
    axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    axis.plot(*thinned(v, omega), color=here.ink, linewidth=1.4, zorder=2.0)
    if not one.summed:
        axis.plot(
            one.predictions, one.weights, color=here.ink, marker="o", linestyle="none", zorder=2.1, clip_on=False,
            markersize=float(np.clip(100.0 / len(one.at), 2.0, 4.0)),
        )  # fmt: skip
    axis.set_xlim(0.0, 1.0)
    axis.set_ylim(-1.08, 1.08)
    axis.yaxis.set_major_locator(FixedLocator([-1.0, -0.5, 0.0, 0.5, 1.0]))
    plain(axis, "", "ω")
    axis.tick_params(labelbottom=False)
    below.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    wide = 2.0 if not one.summed and len(one.at) <= 60 else 1.0
    for mine, colour in zip((one.residuals > 0.0, one.residuals < 0.0), here.colours, strict=False):
        below.vlines(one.at[mine], 0.0, one.residuals[mine], color=colour, linewidth=wide)
    top = 1.1 * float(np.abs(one.residuals).max()) or 1.0
    below.set_ylim(-top, top)
    plain(below, "prediction v", "residual")
