"""Reliability diagrams as curves, smoothed and monotone: first what is drawn, as plain data, then the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from onlinecal.core.joint import JointDistribution
from onlinecal.forecasts.consistency import DRAWS, MOST_LEVELS, Recalibration, recalibration
from onlinecal.forecasts.decomposition import Decomposition, decomposition
from onlinecal.forecasts.regression import LEAST, Smoothed, smoothed
from onlinecal.measures.smooth_ece import smooth_ece
from onlinecal.report.density import Density, density_of, draw_density, spans, words
from onlinecal.report.style import GREY, paper, plain, tick

Floats = NDArray[np.float64]

#: of axes, beyond the probabilities at either end: a point there is drawn whole
MARGIN = 0.04


@dataclass(frozen=True, eq=False)
class SmoothDiagram:
    """A smoothed reliability diagram as it is drawn.

    Attributes
    ----------
    label : str
        Whose Γ it is; "" if that need not be said.
    error : float
        SmoothECE.
    curve : Smoothed
        The mean outcome near each prediction.
    level : float
        Of the band; 0 without one.
    lower, upper : (n,) floats
        Its ends; NaN without one.
    density : Density
    whole : bool
        Whether counts are whole numbers of rounds, without which there is no band.
    ends : (float, float)
        The least and the greatest prediction.
    """

    label: str
    error: float
    curve: Smoothed
    level: float
    lower: Floats
    upper: Floats
    density: Density
    whole: bool
    ends: tuple[float, float]

    @property
    def near(self) -> NDArray[np.bool_]:
        """Where the curve is drawn: between the least and the greatest prediction, and two points at least."""
        at = self.curve.at
        step = at[1]
        return np.asarray((at >= self.ends[0] - step) & (at <= self.ends[1] + step))

    @property
    def heading(self) -> str:
        """What stands above it."""
        return f"{self.label}\nsmECE = {self.error:.4g}".strip()


@dataclass(frozen=True, eq=False)
class CorpDiagram:
    """A CORP reliability diagram as it is drawn.

    Attributes
    ----------
    label : str
        Whose Γ it is; "" if that need not be said.
    parts : Decomposition
        Of the Brier score.
    curve : Recalibration
    level : float
        Of the band; 0 without one.
    density : Density
    whole : bool
        Whether counts are whole numbers of rounds, without which there is no band.
    """

    label: str
    parts: Decomposition
    curve: Recalibration
    level: float
    density: Density
    whole: bool

    @property
    def heading(self) -> str:
        """What stands above it."""
        return f"{self.label}\nBrier score = {self.parts.score:.4g}".strip()

    @property
    def said(self) -> str:
        """What stands in it."""
        _, mcb, dsc, unc = self.parts
        return f"MCB = {mcb:.4f}\nDSC = {dsc:.4f}\nUNC = {unc:.4f}"


def smooth_diagram(gamma: JointDistribution, label: str, level: float) -> SmoothDiagram:
    """What is drawn of Γ by kernel regression."""
    curve = smoothed(gamma)
    whole = bool((gamma.counts == np.rint(gamma.counts)).all())
    lower = upper = np.full(len(curve.at), np.nan)
    if level and whole:
        lower, upper = curve.band(level)
    density = Density(curve.at, curve.density, curve.sigma)
    ends = float(gamma.predictions[0]), float(gamma.predictions[-1])
    return SmoothDiagram(
        label, smooth_ece(gamma), curve, level if whole else 0.0, lower, upper, density, whole, ends
    )


def corp_diagram(gamma: JointDistribution, label: str, level: float) -> CorpDiagram:
    """What is drawn of Γ by isotonic regression."""
    whole = bool((gamma.counts == np.rint(gamma.counts)).all())
    curve = recalibration(gamma, level=level)
    return CorpDiagram(label, decomposition(gamma), curve, level if whole else 0.0, density_of(gamma), whole)


def smooth_caption(drawn: Sequence[SmoothDiagram]) -> str:
    """What is drawn by `draw_smooth`."""
    parts = [
        "Curve: the mean outcome near each prediction, by a Gaussian whose width σ is SmoothECE and which is reflected "
        "at 0 and 1; it is as thick as predictions are frequent there.",
        "Diagonal: calibrated predictions.",
    ]
    if any(one.curve.sigma > one.error for one in drawn):
        parts.append(f"Where SmoothECE is less than {LEAST:g} σ is {LEAST:g}.")
    if any(one.level for one in drawn):
        level = max(one.level for one in drawn)
        parts.append(
            f"Band: an approximate {level:.0%} interval, point by point, for the same smoothed mean outcome of what "
            "the samples were drawn from (Clopper and Pearson, for as many samples as there effectively are near by)."
        )
    parts += _without([one.level for one in drawn], [one.whole for one in drawn])
    return " ".join([*parts, words([one.density for one in drawn])])


def corp_caption(drawn: Sequence[CorpDiagram]) -> str:
    """What is drawn by `draw_corp`."""
    parts = [
        "Curve: the best recalibration that keeps the order of the forecasts, by isotonic regression (CORP), level in "
        "the thick parts.",
        "Diagonal: calibrated predictions.",
        "Brier score = MCB − DSC + UNC: what this recalibration would gain, what it is better than the base rate, and "
        "the score of the base rate.",
    ]
    if any(one.level for one in drawn):
        level = max(one.level for one in drawn)
        parts.append(
            f"Band: where the curve lies with probability {level:.0%} or more, point by point, if all predictions were "
            "fixed before and every outcome were drawn with the probability predicted, independently "
            f"({DRAWS} such draws)."
        )
    if any(one.curve.rounded for one in drawn):
        parts.append(f"For the curve predictions are rounded to multiples of 1/{MOST_LEVELS}.")
    parts += _without([one.level for one in drawn], [one.whole for one in drawn])
    return " ".join([*parts, words([one.density for one in drawn])])


def _without(levels: Sequence[float], whole: Sequence[bool]) -> list[str]:
    """What is said where there is no band."""
    if all(levels):
        return []
    why = "" if all(whole) else ", for weights are not whole numbers of rounds"
    return [f"Not shown: how far chance alone would move the curve{why}."]


def frame_of(axis: Axes, predictions: Floats, means: Floats) -> None:
    """Axes of probabilities with their diagonal."""
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=1.0, zorder=1.0)
    across, up = spans(predictions, means)
    # The diagonal goes from corner to corner unless that hides what is drawn.
    up = min(up[0], across[0]), max(up[1], across[1])
    for (low, high), limit in ((across, axis.set_xlim), (up, axis.set_ylim)):
        limit(low - MARGIN * (high - low), high + MARGIN * (high - low))
    for which in (axis.xaxis, axis.yaxis):
        which.set_major_locator(MaxNLocator(5))
        which.set_major_formatter(FuncFormatter(tick))
    plain(axis, "", "mean outcome")
    axis.tick_params(labelbottom=False)


def draw_smooth(axis: Axes, below: Axes | None, one: SmoothDiagram) -> None:
    """The curve over its band, and the density of predictions below."""
    assert below is not None
    blue = paper(axis).colours[0]
    curve, near = one.curve, one.near
    if one.level:
        axis.fill_between(
            curve.at[near], one.lower[near], one.upper[near], color=blue, alpha=0.18, linewidth=0, zorder=1.1
        )
    points = np.stack((curve.at, curve.means), axis=1)[near]
    middle = 0.5 * (curve.density[1:] + curve.density[:-1])[near[1:] & near[:-1]]
    axis.add_collection(
        LineCollection(
            list(np.stack((points[:-1], points[1:]), axis=1)),
            linewidths=0.5 + 2.5 * middle / curve.density.max(), colors=blue, capstyle="round", zorder=2.0,
        ),
        autolim=False,
    )  # fmt: skip
    frame_of(axis, curve.at[near], curve.means[near])
    draw_density(below, one.density)


def draw_corp(axis: Axes, below: Axes | None, one: CorpDiagram) -> None:
    """The curve over its band with the three parts of the score, and the density of predictions below."""
    assert below is not None
    here = paper(axis)
    curve = one.curve
    v, q = curve.predictions, curve.means
    if one.level:
        axis.fill_between(v, curve.lower, curve.upper, color=GREY, alpha=0.3, linewidth=0, zorder=1.1)
        if len(v) == 1:
            axis.vlines(v, curve.lower, curve.upper, color=GREY, alpha=0.3, linewidth=5.0, zorder=1.1)
    blue = here.colours[0]
    axis.plot(v, q, color=blue, linewidth=0.8, zorder=2.0)
    # Blocks that were pooled, from the first of their levels to the last.
    starts = np.flatnonzero(np.diff(q, prepend=-1.0))
    ends = np.append(starts[1:], len(q)) - 1
    axis.hlines(q[starts], v[starts], v[ends], color=blue, linewidth=2.4, zorder=2.1)
    few = float(np.clip(60.0 / len(v), 1.5, 4.0))
    axis.plot(
        v, q, color=blue, marker="o", markersize=few if len(v) <= 50 else 0.0, linestyle="none", zorder=2.2
    )
    axis.annotate(one.said, (0.03, 0.97), xycoords="axes fraction", va="top", fontsize=7.5, color=here.ink,
                  bbox={"facecolor": axis.get_facecolor(), "edgecolor": "none", "alpha": 0.7, "pad": 1.5})  # fmt: skip
    frame_of(axis, v, q)
    draw_density(below, one.density)
