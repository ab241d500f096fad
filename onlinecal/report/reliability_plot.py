"""Reliability diagrams of points, smoothed, and monotone: data, then drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import choice, integer, number
from onlinecal.forecasts.regression import (
    DRAWS,
    LEAST,
    MOST_LEVELS,
    Decomposition,
    Recalibration,
    Smoothed,
    decomposition,
    recalibration,
    smoothed,
)
from onlinecal.measures.binned import bins_witness
from onlinecal.measures.smooth_ece import smooth_ece
from onlinecal.report.panels import (
    MOST,
    Gammas,
    Panels,
    Picture,
    gammas_of,
    joined,
    of_gammas,
    pictured,
    spans,
)
from onlinecal.report.style import GREY, paper, plain, tick

Floats = NDArray[np.float64]
Kind = Literal["points", "smooth", "corp"]

#: bins in place of more than `MOST` levels
AUTOMATIC = 20
#: points of more weight than this share of the largest are as large as their weight says; the area of the largest, in
#: square typographic points, of which the others are then at least 3.5 wide
_LEAST, _LARGEST = 0.2, 64.0
#: of axes, beyond the probabilities at either end: a point there is drawn whole
MARGIN = 0.04
#: width of the Gaussian by which more of them are smoothed
SIGMA = 0.01


class Density(NamedTuple):
    """The share of each level, or, with σ > 0, the density of predictions smoothed by a Gaussian."""

    at: Floats
    heights: Floats
    sigma: float


def density_of(gamma: JointDistribution) -> Density:
    """Levels one by one, or, of more than `MOST` of them, their density: bars would show a pattern of their own."""
    if gamma.levels <= MOST:
        return Density(gamma.predictions, gamma.mass, 0.0)
    found = smoothed(gamma, sigma=SIGMA)
    return Density(found.at, found.density, SIGMA)


def of_densities(drawn: Sequence[Density]) -> str:
    """The sentence of a caption on them."""
    widths = sorted({one.sigma for one in drawn if one.sigma})
    parts = ["the share of the weight at each level"] * any(not one.sigma for one in drawn)
    if widths:
        parts.append(f"the density of predictions (Gaussian, σ = {' or '.join(f'{w:.3g}' for w in widths)})")
    return f"Below: {' or '.join(parts)}."


def draw_density(axis: Axes, one: Density) -> None:
    """Draws a density below a diagram with the same predictions across."""
    if one.sigma:
        axis.fill_between(one.at, one.heights, color=GREY, linewidth=0)
    else:
        # Typographic points between two levels.
        room = 160.0 / max(np.diff(one.at, prepend=-1.0).min() ** -1.0, 1.0)
        axis.vlines(one.at, 0.0, one.heights, color=GREY, linewidth=float(np.clip(0.6 * room, 0.6, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    axis.set_ylim(0.0, 1.1 * float(one.heights.max()))
    axis.yaxis.set_major_locator(MaxNLocator(2))
    plain(axis, "prediction", "density" if one.sigma else "weight")


class Reliability(NamedTuple):
    """Points of a diagram: of levels, or of bins of equal width or mass (`strategy`), `asked` of them."""

    label: str
    levels: int
    strategy: str
    asked: int
    #: edges of bins of equal width, else the least and the greatest prediction
    left: Floats
    right: Floats
    predictions: Floats
    means: Floats
    #: share of the weight
    mass: Floats
    #: Σ mass |mean − prediction|
    error: float
    #: of the band, 0 without one, and its ends
    level: float
    lower: Floats
    upper: Floats
    density: Density
    #: whether counts are whole, without which there is no band
    whole: bool


class SmoothDiagram(NamedTuple):
    """The mean outcome near each prediction, with a band."""

    label: str
    error: float
    curve: Smoothed
    level: float
    lower: Floats
    upper: Floats
    density: Density
    whole: bool
    #: where the curve is drawn: between the least and the greatest prediction, and two points at least
    near: NDArray[np.bool_]


class CorpDiagram(NamedTuple):
    """The best monotone recalibration, and the parts of the Brier score."""

    label: str
    parts: Decomposition
    curve: Recalibration
    level: float
    density: Density
    whole: bool


def reliability_frame(
    gamma: JointDistribution,
    *,
    label: str = "",
    bins: int | None = None,
    strategy: str = "width",
    level: float = 0.95,
) -> Reliability:
    """The points of Γ."""
    choice("reliability", "strategy", strategy, ("width", "quantile"))
    if bins is None and gamma.levels > MOST:
        bins, strategy = AUTOMATIC, "quantile"
    if bins is None:
        starts, strategy = np.arange(gamma.levels), "levels"
        left = right = gamma.predictions
    else:
        bins = integer("reliability", "bins", bins, 1, 10_000)
        found = bins_witness(gamma, bins=bins, strategy=cast(Any, strategy))
        starts = found.starts
        if strategy == "width":
            left, right = found.numbers / bins, (found.numbers + 1) / bins
        else:
            left = gamma.predictions[starts]
            right = gamma.predictions[np.append(starts[1:], gamma.levels) - 1]
    counts = np.add.reduceat(gamma.counts, starts)
    if strategy == "levels":
        predictions, means = gamma.predictions, gamma.means
    else:
        predictions = np.add.reduceat(gamma.counts * gamma.predictions, starts) / counts
        means = np.add.reduceat(gamma.positives, starts) / counts
    error = float(np.abs(np.add.reduceat(gamma.residuals, starts)).sum())
    level = level if (whole := _whole(gamma)) else 0.0
    lower, upper = expected(counts, predictions, level) if level else np.full((2, len(starts)), np.nan)
    return Reliability(
        label, gamma.levels, strategy, bins or 0, left, right, predictions, means, counts / gamma.weight, error,
        level, lower, upper, density_of(gamma), whole,
    )  # fmt: skip


def _whole(gamma: JointDistribution) -> bool:
    return bool((gamma.counts == np.rint(gamma.counts)).all())


def expected(counts: Floats, predictions: Floats, level: float) -> tuple[Floats, Floats]:
    """The ends of an interval that the mean of outcomes drawn as predicted leaves with 1 − level at most.

    Quantiles of the binomial law with the mean prediction as its parameter, (1 − level)/2 on either side. Of equal
    predictions that is exact. Of different ones the tails of the sum are lighter than those of the binomial law
    outside of a unit around its mean, so that the interval, which holds that unit, holds at least as much (Hoeffding
    1956, Theorem 5).
    """
    from scipy.special import bdtrik, betainc

    tail = (1.0 - level) / 2
    mean = counts * predictions
    inside = (predictions > 0.0) & (predictions < 1.0)
    n, v = counts, np.where(inside, predictions, 0.5)

    def quantile(share: float) -> Floats:
        """The least number of ones up to which the binomial law has this share."""
        guess = np.ceil(np.clip(np.nan_to_num(bdtrik(share, n, v)), 0.0, n))
        # The real number that solves the equation may be rounded past a whole one.
        fewer = np.maximum(guess - 1.0, 0.0)
        return np.asarray(
            np.where((guess > 0.0) & (betainc(n - fewer, fewer + 1.0, 1.0 - v) >= share), fewer, guess)
        )

    lower = np.minimum(quantile(tail), np.floor(mean))
    upper = np.maximum(quantile(1.0 - tail), np.ceil(mean))
    lower, upper = np.where(inside, lower, mean), np.where(inside, upper, mean)
    return lower / counts, upper / counts


def smooth_diagram(gamma: JointDistribution, label: str, level: float) -> SmoothDiagram:
    """The diagram of Γ by kernel regression."""
    curve = smoothed(gamma)
    level = level if (whole := _whole(gamma)) else 0.0
    at = curve.at
    lower, upper = curve.band(level) if level else np.full((2, len(at)), np.nan)
    near = (at >= gamma.predictions[0] - at[1]) & (at <= gamma.predictions[-1] + at[1])
    density = Density(at, curve.density, curve.sigma)
    return SmoothDiagram(label, smooth_ece(gamma), curve, level, lower, upper, density, whole, near)


def corp_diagram(gamma: JointDistribution, label: str, level: float) -> CorpDiagram:
    """The diagram of Γ by isotonic regression."""
    whole, curve = _whole(gamma), recalibration(gamma, level=level)
    return CorpDiagram(label, decomposition(gamma), curve, level if whole else 0.0, density_of(gamma), whole)


@pictured
def plot_reliability(
    p: Gammas | ArrayLike,
    y: ArrayLike | None = None,
    *,
    kind: Kind = "points",
    bins: int | None = None,
    strategy: str = "width",
    band: float | None = 0.95,
) -> Picture:
    """Mean outcomes against predictions, with how often each is predicted below.

    Parameters
    ----------
    p, y : (n,) array_like
        Predictions, then outcomes; or, as p alone, a `JointDistribution`, an `Evaluation`, or a mapping of labels to
        these or to pairs (p, y), with a panel for each. Predictions come first, other than in scikit-learn's
        `CalibrationDisplay.from_predictions`.
    kind : {"points", "smooth", "corp"}, default "points"
        A point for each level or bin; the mean outcome near each prediction, smoothed at the scale of SmoothECE; or the
        best monotone recalibration, with the three parts of the Brier score.
    bins : int, optional
        Of points, so many bins in place of the levels. Default: levels; of more than 200, 20 bins of equal mass.
    strategy : {"width", "quantile"}, default "width"
        Bins [j/m, (j+1)/m), the last one closed; or of about equal mass, as in `measures.binned_ece`.
    band : float or None, default 0.95
        The probability with which each mean outcome lies in its band, if predictions were fixed before and outcomes
        are drawn as they say; None for no band, as of a game, in which predictions depend on outcomes. Of "smooth" an
        interval for the mean outcome near each prediction.

    Returns
    -------
    Axes, or (n,) array of Axes
        An array where a mapping is given.

    Examples
    --------
    >>> ax = plot_reliability([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1])
    >>> ax.get_title()
    'ECE = 0.25'
    """
    choice("reliability", "kind", kind, ("points", "smooth", "corp"))
    several = gammas_of("reliability", p, y).items()
    level = number("reliability", "band", 0.0 if band is None else band, 0.0, 1.0)
    if bins is not None and kind != "points":
        raise InvalidParameter(f"reliability: bins = {bins!r} with kind = {kind!r}; expected kind = 'points'")
    drawn: list[Any]
    draw: Callable[[Axes, Any], None]
    if kind == "points":
        drawn = [
            reliability_frame(gamma, label=label, bins=bins, strategy=strategy, level=level)
            for label, gamma in several
        ]
        said, draw = _of_points(drawn), _draw_points
        values = [(f"ECE of {one.asked} bins" if one.asked else "ECE", one.error) for one in drawn]
    elif kind == "smooth":
        drawn = [smooth_diagram(gamma, label, level) for label, gamma in several]
        said, draw = _of_smooth(drawn), _draw_smooth
        values = [("smECE", one.error) for one in drawn]
    else:
        drawn = [corp_diagram(gamma, label, level) for label, gamma in several]
        said, draw = _of_corp(drawn), _draw_corp
        values = [("Brier score", one.parts.score) for one in drawn]

    def with_density(axis: Axes, below: Axes, one: Any, _: bool) -> None:
        draw(axis, one)
        draw_density(below, one.density)

    def compared(panels: Panels) -> None:
        for name in ("xlim", "ylim"):
            limits = np.array([getattr(axis, f"get_{name}")() for axis in panels])
            for axis in panels:
                axis.set(**{name: (limits.min(), limits.max())})

    caption = joined(said, of_densities([one.density for one in drawn]))
    headings = [f"{name} = {value:.4g}" for name, value in values]
    return of_gammas(p, drawn, with_density, headings, caption, 1.0, 0.2, after=compared)


def _of_points(drawn: Sequence[Reliability]) -> str:
    kinds = {frame.strategy for frame in drawn}
    what = (
        "a level of Γ" if kinds == {"levels"} else "a level of Γ or a bin" if "levels" in kinds else "a bin"
    )
    level = max(frame.level for frame in drawn)
    return joined(
        f"Each point is {what}: across, its mean prediction; up, the mean outcome of its rounds. Its area is its share "
        f"of the weight, or {_LEAST:.0%} of the largest where that is more.",
        "Horizontal lines: bins [a, b), the last one closed." * ("width" in kinds),
        "Horizontal lines: from the least to the greatest prediction of a bin; bins have as equal weights as levels "
        "that are not divided allow." * ("quantile" in kinds),
        f"Diagonal: calibrated predictions; the mean distance from it, by weight, is the "
        f"{'ECE' if kinds == {'levels'} else 'binned ECE, of levels the ECE'}.",
        f"Grey bars: where each mean outcome lies with probability {level:.0%} or more, point by point, if all "
        "predictions were fixed before and every outcome were drawn with the probability predicted, independently "
        "(binomial quantiles, exact of a level; of a bin, at its mean prediction, they hold at least as much)."
        * (level > 0.0),
        _without(drawn, "points"),
    )  # fmt: skip


def _of_smooth(drawn: Sequence[SmoothDiagram]) -> str:
    level = max(one.level for one in drawn)
    return joined(
        f"Curve: the mean outcome near each prediction, by a Gaussian whose width σ is SmoothECE, or {LEAST:g} if that "
        "is more, and which is reflected at 0 and 1; it is as thick as predictions are frequent there. Diagonal: "
        "calibrated predictions.",
        f"Band: an approximate {level:.0%} interval, point by point, for the same smoothed mean outcome of what the "
        "samples were drawn from (Clopper and Pearson, for as many samples as there effectively are near by). "
        "The whole curve leaves it more often, and it is no interval for the mean outcome before smoothing."
        * (level > 0.0),
        _without(drawn, "curve"),
    )  # fmt: skip


def _of_corp(drawn: Sequence[CorpDiagram]) -> str:
    level = max(one.level for one in drawn)
    return joined(
        "Curve: the best recalibration that keeps the order of the forecasts, by isotonic regression (CORP), level in "
        f"the thick parts; of more than {MOST_LEVELS} levels, of predictions rounded to multiples of 1/{MOST_LEVELS}. "
        "Diagonal: calibrated predictions. Brier score = MCB − DSC + UNC: what this recalibration would gain, what it "
        "is better than the base rate, and the score of the base rate.",
        f"Bands: where the curve lies with probability {level:.0%} or more, the darker one point by point, the lighter "
        "one as a whole, if all predictions were fixed before and every outcome were drawn with the probability "
        f"predicted, independently ({DRAWS} such draws, and as many again for the lighter one)."
        * (level > 0.0),
        _without(drawn, "curve"),
    )  # fmt: skip


def _without(drawn: Sequence[Any], what: str) -> str:
    """The sentence on missing bands."""
    if all(one.level for one in drawn):
        return ""
    why = "" if all(one.whole for one in drawn) else ", for weights are not whole numbers of rounds"
    return f"Not shown: how far chance alone would move the {what}{why}."


def _frame_of(axis: Axes, predictions: Floats, means: Floats) -> None:
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


def _draw_points(axis: Axes, frame: Reliability) -> None:
    root = axis.get_figure(root=True)
    points = 200.0 if root is None else 72.0 * axis.get_window_extent().width / root.dpi
    room = points / max(len(frame.predictions), 10)  # for each point, in typographic ones
    if frame.level:
        axis.vlines(
            frame.predictions, frame.lower, frame.upper, color=GREY, alpha=0.35, zorder=1.1,
            linewidth=float(np.clip(0.5 * room, 1.0, 7.0)),
        )  # fmt: skip
    blue = paper(axis).colours[0]
    axis.vlines(frame.predictions, frame.predictions, frame.means, color=blue, linewidth=0.7, zorder=1.9)
    if frame.strategy != "levels":
        axis.hlines(frame.means, frame.left, frame.right, color=blue, linewidth=1.2, zorder=2.0)
    # The smallest above the others.
    last = np.argsort(-frame.mass, kind="stable")
    area = _LARGEST * np.maximum(frame.mass / frame.mass.max(), _LEAST)
    axis.scatter(
        frame.predictions[last], frame.means[last], s=area[last], color=blue, edgecolor=axis.get_facecolor(),
        linewidth=0.5, zorder=2.1,
    )  # fmt: skip
    _frame_of(axis, np.concatenate((frame.left, frame.right)), frame.means)


def _draw_smooth(axis: Axes, one: SmoothDiagram) -> None:
    blue, curve, near = paper(axis).colours[0], one.curve, one.near
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
    _frame_of(axis, curve.at[near], curve.means[near])


def _draw_corp(axis: Axes, one: CorpDiagram) -> None:
    here, curve = paper(axis), one.curve
    v, q = curve.predictions, curve.means
    for low, high in ((curve.lowest, curve.highest), (curve.lower, curve.upper)) if one.level else ():
        axis.fill_between(v, low, high, color=GREY, alpha=0.2, linewidth=0, zorder=1.1)
        axis.vlines(v[: len(v) == 1], low[0], high[0], color=GREY, alpha=0.2, linewidth=5.0, zorder=1.1)
    blue = here.colours[0]
    axis.plot(v, q, color=blue, linewidth=0.8, zorder=2.0)
    # Blocks that were pooled, from the first of their levels to the last.
    starts = np.flatnonzero(np.diff(q, prepend=-1.0))
    last = np.append(starts[1:], len(q)) - 1
    axis.hlines(q[starts], v[starts], v[last], color=blue, linewidth=2.4, zorder=2.1)
    few = float(np.clip(60.0 / len(v), 1.5, 4.0)) if len(v) <= 50 else 0.0
    axis.plot(v, q, color=blue, marker="o", markersize=few, linestyle="none", zorder=2.2)
    _, mcb, dsc, unc = one.parts
    axis.annotate(f"MCB = {mcb:.4f}\nDSC = {dsc:.4f}\nUNC = {unc:.4f}", (0.03, 0.97), xycoords="axes fraction",
                  va="top", fontsize=7.5, color=here.ink,
                  bbox={"facecolor": axis.get_facecolor(), "edgecolor": "none", "alpha": 0.7, "pad": 1.5})  # fmt: skip
    _frame_of(axis, v, q)
