"""Regrets of kinks, and the witness of the smooth calibration error: tables, then pictures."""

from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator
from numpy.typing import ArrayLike

from onlinecal.core.joint import JointDistribution
from onlinecal.core.samples import with_ours
from onlinecal.core.validation import choice
from onlinecal.measures._kinks import upper_hull
from onlinecal.measures.decision import cdl, v_cdl, worst_decision_task, worst_kink
from onlinecal.measures.smooth_ce import smooth_ce, smooth_ce_witness
from onlinecal.measures.soft_binned import scdl, soft_rounding
from onlinecal.measures.witnesses.distances import threshold_losses
from onlinecal.measures.witnesses.tasks import WorstTask, kink_regrets
from onlinecal.report.facets import by_mark
from onlinecal.report.gammas import MOST, Drawn, Gammas, Rows, apart, gammas_of, of_gammas, table_of
from onlinecal.report.style import GREY, ink, look, thinned, ticks

Name = Literal["cdl", "v_cdl", "scdl"]
NAMES = {"cdl": "CDL", "v_cdl": "V-CDL", "scdl": "SCDL"}
Parts = dict[str, dict[str, Any]]


def regrets_of(gamma: JointDistribution, measure: Name = "cdl") -> tuple[float, WorstTask | None, Parts]:
    """The value of a measure, its worst task, and by mark the regrets of kinks, three at a jump.

    `R(t) = Σ w_i [ (q_i − t) 1(v_i ≤ t < q_i) + (t − q_i) 1(q_i < t ≤ v_i) ]`.
    """
    choice("regret", "measure", measure, tuple(NAMES))
    if measure == "scdl":
        m, parts = soft_rounding(gamma).bins, Parts(losses={"t": np.array([0.0, 1.0]), "regret": np.zeros(2)})
        if m is not None:
            threshold, losses = threshold_losses(gamma, m, True)
            middle, worst = (threshold - 0.5) / m, [int(np.argmax(losses))]
            parts = {
                "losses": {"t": middle, "regret": losses}, "worst": {"t": middle[worst], "regret": losses[worst]},
                "grid": {"t": 1.0, "regret": 1.0 / m},
            }  # fmt: skip
        return scdl(gamma), None, parts
    t, regret = kink_regrets(gamma, measure)
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
    half = {"half": {"t": 0.5, "regret": value / 2}} if measure == "cdl" and value else {}
    return value, task, {
        "regret": {"t": np.repeat(t, 3)[keep], "regret": np.maximum(three.ravel()[keep], 0.0)}, "above": above,
        "worst": {"t": own, "regret": regret[np.searchsorted(t, own)] if len(own) else own},
        **half,
    }  # fmt: skip


REGRET = (
    "R(t): swap regret a round of the task that tells apart probabilities below and above t. Dashed: the least "
    "concave curve above it, CDL/2 high at ½ (square), or V-CDL × max(t, 1 − t). Of SCDL: losses at thresholds of its"
    " grid, and a line at 1/m. Points: kinks of the worst task."
)


@with_ours
def regret_table(
    p: Gammas | ArrayLike, y: ArrayLike | None = None, *, measure: Name = "cdl", **rows: Unpack[Rows]
) -> pd.DataFrame:
    """Regrets of kinks, the curve "above" them and the "worst" task, by label; parameters as in `plot_regret`."""

    def make(_: Any, gamma: JointDistribution) -> tuple[str, list[dict[str, Any]]]:
        value, _, parts = regrets_of(gamma, measure)
        return f"{NAMES[measure]} = {value:.4g}", [{"mark": kind, **part} for kind, part in parts.items()]

    return table_of(gammas_of("regret", p, y, **rows), make)


@with_ours
def plot_regret(
    p: Gammas | ArrayLike, y: ArrayLike | None = None, *, measure: Name = "cdl", **look: Unpack[Drawn]
) -> Figure:
    """The regret R(t) of every kink t, and the worst decision task that is made of kinks.

    Parameters
    ----------
    p, y
        As in `reliability_plot.plot_reliability`.
    measure : {"cdl", "v_cdl", "scdl"}, default "cdl"
        The measure of which the worst task is marked: all, those with one kink, or thresholds of a grid.
    **look
        `weights` and labels as there; see `Look`.

    Examples
    --------
    >>> plot_regret([0.45] * 20, [0, 1] * 10).axes[0].get_title()
    'CDL = 0.09091'
    """
    rows, how = apart(look)
    return of_gammas(
        regret_table(p, y, measure=measure, **rows), _draw_regrets, REGRET, panel=(3.3, 2.6),
        labels=("threshold t", "regret R(t) for each round"), **how,
    )  # fmt: skip


def _draw_regrets(axis: Any, rows: pd.DataFrame) -> None:
    marks = by_mark(rows)
    if "regret" in marks:
        x, heights = thinned(marks["regret"]["t"].to_numpy(), marks["regret"]["regret"].to_numpy())
        axis.fill_between(x, heights, color=look(0)["color"], alpha=0.15, linewidth=0)
        axis.plot(x, heights, color=look(0)["color"], linewidth=1.2, zorder=2.0, solid_joinstyle="round")
    if "losses" in marks:
        marker = "." if len(marks["losses"]) <= 100 else ""
        axis.plot(
            marks["losses"]["t"],
            marks["losses"]["regret"],
            marker=marker,
            color=look(0)["color"],
            linewidth=1.2,
        )
    for height in marks["grid"]["regret"] if "grid" in marks else ():
        axis.axhline(height, color=GREY, linewidth=0.8)
        axis.annotate(
            f"1/{1 / height:.0f}", (1.0, height), (-2, 2), textcoords="offset points", ha="right", fontsize=7
        )
    top = float(rows.loc[rows["mark"] != "grid", "regret"].max())
    if "above" in marks:
        above = marks["above"]
        axis.plot(above["t"], above["regret"], color=ink(), linewidth=1.0, linestyle=(0, (5, 2)), zorder=2.1)
    for height in marks["half"]["regret"] if "half" in marks else ():
        axis.vlines(0.5, 0.0, height, color=GREY, linewidth=0.8, zorder=1.0)
        axis.plot(0.5, height, color=ink(), marker="s", markersize=4.5, zorder=3.0)
    worst = marks.get("worst", rows.iloc[:0])
    axis.plot(
        worst["t"], worst["regret"], "o", color=look(1)["color"], markersize=5.5, zorder=3.1, clip_on=False
    )
    for t, height in zip(worst["t"], worst["regret"], strict=True) if "above" in marks else ():
        low = 0.2 < t < 0.5 or (t == 0.5 and len(worst) == 1)
        axis.annotate(f"t = {t:.4g}", (t, height), (-3 if low else 3, 5), textcoords="offset points", fontsize=7,
                      ha="right" if low else "left", va="bottom", color=look(1)["color"])  # fmt: skip
    axis.set(xlim=(0.0, 1.0), ylim=(0.0, 1.22 * top if top > 0.0 else 1.0))
    ticks(axis.xaxis, axis.yaxis)


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


WITNESS = (
    "Above: a function ω that attains the smooth calibration error, among those within [−1, 1] that change by no more"
    " than predictions do; points: levels of Γ. Below: residuals, weight × (mean outcome − prediction), of more than "
    "200 levels in 200 parts of [0, 1]. smCE is the sum of residual × ω."
)


@with_ours
def witness_table(p: Gammas | ArrayLike, y: ArrayLike | None = None, **rows: Unpack[Rows]) -> pd.DataFrame:
    """The witness of the smooth calibration error, levels and residuals, by label."""

    def make(_: Any, gamma: JointDistribution) -> tuple[str, list[dict[str, Any]]]:
        value, parts = witness_of(gamma)
        return f"smCE = {value:.4g}", [{"mark": kind, **part} for kind, part in parts.items()]

    return table_of(gammas_of("witness", p, y, **rows), make)


@with_ours
def plot_witness(p: Gammas | ArrayLike, y: ArrayLike | None = None, **look: Unpack[Drawn]) -> Figure:
    """The 1-Lipschitz function ω that attains the smooth calibration error, and the residuals that it weighs.

    Parameters
    ----------
    p, y
        As in `reliability_plot.plot_reliability`.
    **look
        `weights` and labels as there; see `Look`.

    Examples
    --------
    >>> plot_witness([0.4, 0.6], [1, 0]).axes[0].get_title()
    'smCE = 0.06'
    """
    rows, how = apart(look)
    return of_gammas(
        witness_table(p, y, **rows),
        _draw_witness,
        WITNESS,
        labels=("", "ω"),
        panel=(3.3, 3.2),
        lower=0.6,
        **how,
    )


def _draw_witness(axis: Any, rows: pd.DataFrame, below: Any) -> None:
    marks = by_mark(rows)
    omega = marks["witness"]
    axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    axis.plot(*thinned(omega["v"].to_numpy(), omega["y"].to_numpy()), color=ink(), linewidth=1.4, zorder=2.0)
    if "levels" in marks:
        size = float(np.clip(100.0 / len(marks["levels"]), 2.0, 4.0))
        axis.plot(
            marks["levels"]["v"], marks["levels"]["y"], "o", color=ink(), markersize=size, clip_on=False
        )
    axis.set(xlim=(0.0, 1.0), ylim=(-1.08, 1.08))
    axis.yaxis.set_major_locator(FixedLocator([-1.0, -0.5, 0.0, 0.5, 1.0]))
    below.set(xlabel="prediction v", ylabel="residual")
    below.axhline(0.0, color=GREY, linewidth=0.8, zorder=1.0)
    residuals = [marks[kind] for kind in ("up", "down") if kind in marks]
    many = sum(map(len, residuals))
    for mine in residuals:
        colour = look(0 if (mine["y"] > 0).all() else 1)["color"]
        below.vlines(mine["v"], 0.0, mine["y"], color=colour, linewidth=2.0 if many <= 60 else 1.0)
    top = 1.1 * max((float(mine["y"].abs().max()) for mine in residuals), default=0.0)
    below.set_ylim(-(top or 1.0), top or 1.0)
    ticks(below.yaxis, most=3)
