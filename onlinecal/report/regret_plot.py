"""Regrets of kinks, and the witness of the smooth calibration error: tables, then pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator
from numpy.typing import ArrayLike

from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import choice
from onlinecal.measures._kinks import upper_hull
from onlinecal.measures.decision import cdl, v_cdl, worst_decision_task, worst_kink
from onlinecal.measures.smooth_ce import smooth_ce, smooth_ce_witness
from onlinecal.measures.soft_binned import scdl, soft_rounding
from onlinecal.measures.witnesses.distances import threshold_losses
from onlinecal.measures.witnesses.tasks import WorstTask, kink_regrets
from onlinecal.report.gammas import MOST, Gammas, gammas_of, of_gammas
from onlinecal.report.panels import Picture, Place, mark, pictured
from onlinecal.report.style import GREY, paper, plain, thinned

Name = Literal["cdl", "v_cdl", "scdl"]
NAMES = {"cdl": "CDL", "v_cdl": "V-CDL", "scdl": "SCDL"}
Parts = dict[str, dict[str, Any]]


def regrets_of(gamma: JointDistribution, measure: Name = "cdl") -> tuple[float, WorstTask | None, Parts]:
    """The value of a measure, its worst task, and by mark the regrets of kinks, three at a jump.

    `R(t) = Σ w_i [ (q_i − t) 1(v_i ≤ t < q_i) + (t − q_i) 1(q_i < t ≤ v_i) ]`.
    """
    choice("regret", "measure", measure, tuple(NAMES))
    if measure == "scdl":
        m, parts = soft_rounding(gamma).bins, Parts()
        if m is not None:
            threshold, losses = threshold_losses(gamma, m, True)
            middle, worst = (threshold - 0.5) / m, [int(np.argmax(losses))]
            parts = {
                "losses": {"t": middle, "regret": losses}, "worst": {"t": middle[worst], "regret": losses[worst]},
                "grid": {"t": 1.0, "regret": 1.0 / m},
            }  # fmt: skip
        return scdl(gamma), None, parts
    t, regret, _ = kink_regrets(gamma, measure)
    r = gamma.residuals
    before, after = np.zeros(len(t)), np.zeros(len(t))
    at = np.searchsorted(t, gamma.predictions)
    before[at], after[at] = np.maximum(r, 0.0), np.maximum(-r, 0.0)
    three = np.stack((regret - before, regret, regret - after), axis=1)
    keep = np.stack((before > 0.0, np.ones(len(t), bool), after > 0.0), axis=1).ravel()
    if measure == "cdl":
        value, task = cdl(gamma), worst_decision_task(gamma)
        corners = upper_hull(t, regret)
        above = {"t": t[corners], "regret": regret[corners]}
    else:
        value, task = v_cdl(gamma), worst_kink(gamma)
        ends = np.array([0.0, 0.5, 1.0])
        above = {"t": ends, "regret": value * np.maximum(ends, 1.0 - ends)}
    own = np.array(task.kinks, dtype=np.float64)
    return value, task, {
        "regret": {"t": np.repeat(t, 3)[keep], "regret": np.maximum(three.ravel()[keep], 0.0)}, "above": above,
        "worst": {"t": own, "regret": regret[np.searchsorted(t, own)] if len(own) else own},
    }  # fmt: skip


REGRETS = {
    "above": [mark("line", "ink", linewidth=1.0, linestyle=(0, (5, 2)), zorder=2.1)],
    "losses": [mark("line", 0, linewidth=1.2, markersize=4, zorder=2.0,
                    marker=lambda rows: "." if len(rows) <= 100 else "")],
    "worst": [mark("points", 1, marker="o", markersize=5.5, zorder=3.1, clip_on=False)],
}  # fmt: skip


@pictured
def plot_regret(p: Gammas | ArrayLike, y: ArrayLike | None = None, *, measure: Name = "cdl") -> Picture:
    """The regret R(t) of every kink t, and the worst decision task that is made of kinks.

    Parameters
    ----------
    p, y
        As in `reliability_plot.plot_reliability`.
    measure : {"cdl", "v_cdl", "scdl"}, default "cdl"
        The measure of which the worst task is marked: all, those with one kink, or thresholds of a grid.

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
    found = {label: regrets_of(gamma, measure) for label, gamma in gammas_of("regret", p, y).items()}

    def after(axis: Axes, rows: pd.DataFrame, place: Place) -> None:
        value, task, _ = found[rows["label"].iloc[0]]
        _draw_regrets(axis, rows, value if measure == "cdl" else 0.0, named=task is not None and value > 0.0)

    parts: Any = {
        label: [
            {"mark": "", "t": 0.0, "regret": 0.0},
            *({"mark": kind} | part for kind, part in some.items()),
        ]
        for label, (_, _, some) in found.items()
    }
    return of_gammas(
        p, parts, [f"{NAMES[measure]} = {value:.4g}" for value, *_ in found.values()], _regret_caption(found, measure),
        x="t", y="regret", marks=REGRETS, after=after, labels=("threshold t", "regret R(t) for each round"),
        aspect=0.72,
    )  # fmt: skip


def _regret_caption(found: Mapping[str, tuple[float, WorstTask | None, Parts]], measure: Name) -> str:
    if measure == "scdl":
        text = (
            "Predictions are rounded at random to a neighbouring multiple of 1/m, on the grid that attains SCDL (line "
            "at 1/m). Horizontal axis: the middle of each threshold (i − 1)/m to i/m of this grid; vertical axis: what "
            "is lost there, where it can be largest. SCDL is the larger of the largest of them (point) and 1/m."
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
    for label, (value, task, _) in found.items():
        name = f"{label}: " if label else ""
        if not value:
            text += f" {name}Calibrated: no task regrets anything."
        elif task is not None:
            text += f" {name}Worst {task}."
    return text


def _draw_regrets(axis: Axes, rows: pd.DataFrame, value: float, *, named: bool) -> None:
    here, worst, grid = paper(axis), rows[rows["mark"] == "worst"], rows[rows["mark"] == "grid"]
    regret = rows[rows["mark"] == "regret"]
    if len(regret):
        x, heights = thinned(regret["t"].to_numpy(), regret["regret"].to_numpy())
        axis.fill_between(x, heights, color=here.colours[0], alpha=0.15, linewidth=0)
        axis.plot(x, heights, color=here.colours[0], linewidth=1.2, zorder=2.0, solid_joinstyle="round")
    for height in grid["regret"]:
        axis.axhline(height, color=GREY, linewidth=0.8)
        axis.annotate(f"1/{1 / height:.0f}", (1.0, height), (-2, 2), textcoords="offset points", ha="right",
                      fontsize=7, color=here.faint)  # fmt: skip
    if value:
        axis.vlines(0.5, 0.0, value / 2, color=GREY, linewidth=0.8, zorder=1.0)
        axis.plot(0.5, value / 2, color=here.ink, marker="s", markersize=4.5, zorder=3.0)
    for t, height in zip(worst["t"], worst["regret"], strict=True) if named else ():
        low = t < 0.5 or (t == 0.5 and len(worst) == 1)
        axis.annotate(f"t = {t:.4g}", (t, height), (-3 if low else 3, 5), textcoords="offset points",
                      ha="right" if low else "left", va="bottom", fontsize=7, color=here.colours[1])  # fmt: skip
    axis.set_xlim(0.0, 1.0)
    top = float(rows["regret"][rows["mark"] != "grid"].max())
    axis.set_ylim(0.0, 1.22 * top if top > 0.0 else 1.0)


# ---------------------------------------------------------------- the witness


def witness_of(gamma: JointDistribution) -> tuple[float, Parts]:
    """The smooth calibration error, its "witness" ω from 0 to 1, "levels", and the residuals "up" and "down".

    Of more than `MOST` levels residuals are sums over `MOST` parts of [0, 1], and there are no levels.
    """
    v, weights = gamma.predictions, smooth_ce_witness(gamma).weights
    at, residuals = v, gamma.residuals
    parts = {
        "witness": {"v": np.r_[0.0, v, 1.0], "y": np.r_[weights[:1], weights, weights[-1:]]},
        "levels": {"v": v, "y": weights},
    }
    if gamma.levels > MOST:
        part = np.minimum((v * MOST).astype(np.int64), MOST - 1)
        residuals = np.bincount(part, residuals, MOST).astype(np.float64)
        at = (np.arange(MOST) + 0.5) / MOST
        del parts["levels"]
    for kind, mine in (("up", residuals > 0.0), ("down", residuals < 0.0)):
        parts[kind] = {"v": at[mine], "y": residuals[mine]}
    return smooth_ce(gamma), parts


WITNESSES = {"levels": [mark("points", "ink", marker="o", zorder=2.1, clip_on=False,
                             markersize=lambda rows: float(np.clip(100.0 / len(rows), 2.0, 4.0)))]}  # fmt: skip


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
    found = {label: witness_of(gamma) for label, gamma in gammas_of("witness", p, y).items()}
    caption = (
        "Above: a function ω of the prediction v that attains the smooth calibration error, among all that stay in "
        "[−1, 1] and change by no more than v does; others may attain it, too. Points: the levels of Γ. Below: "
        "residuals, the weight of a level × (mean outcome − v), blue above 0 and orange below; of more than "
        f"{MOST} levels they are summed over {MOST} parts of [0, 1]. smCE is the sum of residual × ω over the levels."
    )
    parts = {
        label: [{"mark": kind} | part for kind, part in some.items()] for label, (_, some) in found.items()
    }
    return of_gammas(
        p, parts, [f"smCE = {value:.4g}" for value, _ in found.values()], caption, x="v", y="y", marks=WITNESSES,
        after=_draw_witness, labels=("", "ω"), aspect=0.6, lower=0.6,
    )  # fmt: skip


def _draw_witness(axis: Axes, rows: pd.DataFrame, place: Place) -> None:
    here, below = paper(axis), place.below
    omega, residuals = (rows[rows["mark"].isin(kinds)] for kinds in (["witness"], ["up", "down"]))
    axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    axis.plot(
        *thinned(omega["v"].to_numpy(), omega["y"].to_numpy()), color=here.ink, linewidth=1.4, zorder=2.0
    )
    axis.set_xlim(0.0, 1.0)
    axis.set_ylim(-1.08, 1.08)
    axis.yaxis.set_major_locator(FixedLocator([-1.0, -0.5, 0.0, 0.5, 1.0]))
    axis.tick_params(labelbottom=False)
    below.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    for kind, colour in zip(("up", "down"), here.colours, strict=False):
        mine = residuals[residuals["mark"] == kind]
        below.vlines(mine["v"], 0.0, mine["y"], color=colour, linewidth=2.0 if len(residuals) <= 60 else 1.0)
    top = 1.1 * float(residuals["y"].abs().max()) if len(residuals) else 0.0
    below.set_ylim(-(top or 1.0), top or 1.0)
    plain(below, "prediction v", "residual")
