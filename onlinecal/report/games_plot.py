"""Pictures of solved games: values, the optimal law, and exploitability."""

from __future__ import annotations

import math
import re

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from onlinecal.core.words import at_least
from onlinecal.exact.game import solve
from onlinecal.report.games import Games
from onlinecal.report.panels import finish
from onlinecal.report.style import COLOURS, DASHES, GREY, MARKERS, plain

#: rounds of the game of which laws are drawn
LAWS = 60


def value_caption(found: Games) -> str:
    """The caption of `plot_values`."""
    bands = ""
    if found.brackets:
        within = at_least(
            max(float((each.uppers - each.lowers).max()) for each in found.brackets.values()), 2
        )
        grids = " and ".join(f"m = {m}" for m in sorted(found.brackets))
        bands = f"Longer games of {grids} are bracketed, within {within}: thin lines, the upper and the lower end. "
    return (
        f"Exact value V_T(m) of total ECE on 0, 1/m, …, 1 against T, for m = {min(found.solved)} to "
        f"{max(found.solved)}. {bands}Black: the least of them up to T = {found.common()}, as far as all are solved. "
        "Dotted: the slopes of the best known bounds for T → ∞, T^0.54 and T^(2/3); they have no constants."
    )


def plot_values(found: Games) -> Figure:
    """Values against T for each grid, with their lower envelope."""
    fig, axis = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    handles = []
    for k, m in enumerate(sorted(found.solved)):
        values = found.values(m)
        handles += axis.loglog(
            np.arange(1, len(values) + 1), values, color=COLOURS[k % len(COLOURS)], linestyle=DASHES[k // len(COLOURS)],
            marker=MARKERS[k % len(MARKERS)], markevery=(k / 40.0, 0.12), markersize=4, linewidth=1.2, label=f"m = {m}",
        )  # fmt: skip
        if m in found.brackets:
            beyond = np.arange(len(values), found.brackets[m].horizon + 1)
            for ends in np.array([found.bounds(m, int(t)) for t in beyond]).T:
                axis.loglog(beyond, ends, color=handles[-1].get_color(), linewidth=0.7)
    last = found.common()
    least = [found.best(t) for t in range(1, last + 1)]
    handles += axis.loglog(range(1, last + 1), least, color="black", linewidth=2.6, alpha=0.55, label="least")
    for power in (0.54389, 2.0 / 3.0):
        ends = np.array([last, found.longest()], float)
        slope = axis.loglog(
            ends, least[-1] * (ends / last) ** power, color=GREY, linestyle=":", linewidth=1.4
        )
    slope[0].set_label("T^0.54, T^(2/3)")
    plain(axis, "T", "V_T(m), expected total ECE")
    finish(fig, "Exact values of the calibration game", "", handles + slope)
    return fig


LAW_CAPTION = (
    f"m = 2, a game of {LAWS} rounds: the probability with which the optimal law forecasts 0, 1/2 and 1, by the bias "
    "E of the forecast 1/2 (what happened minus what was forecast, summed) and by the rounds that are left. White: "
    f"states that {LAWS} rounds do not lead to. The biases of 0 and 1 never shrink, and do not matter. Where "
    "1/2 has come out as 1 too often (E > 0), nothing is on 0, and where it has too seldom, nothing is on 1."
)


def law_grid(horizon: int = LAWS) -> np.ndarray:
    """Weights of 0, 1/2 and 1, (3, rounds left, biases from −T/2 to T/2 in halves); NaN where no game comes."""
    solution = solve(2, horizon, keep=True)
    weights = np.full((3, horizon, 2 * horizon + 1), np.nan)
    for left in range(1, horizon + 1):
        for bias in range(left - horizon, horizon - left + 1):
            here = solution.at([0, bias, 0], left)
            weights[:, left - 1, bias + horizon] = 0.0
            for p, w in zip(here.forecasts, here.weights, strict=True):
                weights[round(2 * p), left - 1, bias + horizon] += w
    return weights


def plot_law() -> Figure:
    """The optimal law on three points as a function of the bias and of the rounds left."""
    weights = law_grid()
    fig, axes = plt.subplots(1, 3, figsize=(7.0, 3.0), sharey=True, layout="constrained")
    span = LAWS / 2.0
    for axis, grid, point in zip(axes, weights, ("0", "1/2", "1"), strict=True):
        image = axis.imshow(
            grid, origin="lower", aspect="auto", cmap="viridis", vmin=0.0, vmax=1.0, interpolation="nearest",
            extent=(-span - 0.25, span + 0.25, 0.5, LAWS + 0.5),
        )  # fmt: skip
        axis.set_title(f"forecast {point}", fontsize=9)
        plain(axis, "bias E of 1/2", "rounds left" if point == "0" else "")
        axis.set_xlim(-span / 2, span / 2)
    fig.colorbar(image, ax=axes, label="probability").ax.tick_params(labelsize=8)
    finish(fig, "How the best forecaster plays on 0, 1/2, 1", "")
    return fig


EXPLOIT_CAPTION = (
    "Expected total ECE against the worst nature for each forecaster, exactly, against T; black: V_T(m), of the best "
    "forecaster on the same grid. The distance between the two is the exploitability."
)


def plot_exploited(found: Games) -> Figure:
    """The payments of forecasters to their worst natures, a panel for each grid."""
    grids = sorted(found.exploited)
    fig, axes = plt.subplots(
        1, len(grids), figsize=(3.5 * len(grids), 3.4), squeeze=False, layout="constrained"
    )
    names: dict[str, Line2D] = {}
    for axis, m in zip(axes.flat, grids, strict=True):
        mine = found.exploited[m]
        times = range(1, max(t for paid in mine.values() for t in paid) + 1)
        (line,) = axis.plot(times, [found.value(m, t) for t in times], color="black", linewidth=2.2)
        names.setdefault("minimax", line)
        for k, (label, paid) in enumerate(mine.items()):
            (line,) = axis.plot(
                *zip(*paid.items(), strict=True),
                color=COLOURS[k],
                marker=MARKERS[k],
                markersize=4,
                linewidth=1.2,
            )
            # Without the grid, which stands above the panel.
            names.setdefault(re.sub(r" \(m=\d+\)|, m=\d+|m=\d+, ", "", label), line)
        axis.set_title(f"m = {m}", fontsize=9)
        axis.set_ylim(0.0, math.ceil(max(v for paid in mine.values() for v in paid.values())))
        plain(axis, "T", "expected total ECE")
    for name, line in names.items():
        line.set_label(name)
    finish(fig, "What the worst nature takes", "", list(names.values()))
    return fig
