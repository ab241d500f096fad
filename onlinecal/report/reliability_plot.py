"""Reliability diagrams: first what is drawn, as plain data, then the drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import choice, integer, number
from onlinecal.measures.binned import bins_witness
from onlinecal.report.density import MOST, Density, density_of, draw_density, words
from onlinecal.report.frames import ends
from onlinecal.report.gamma_panels import Gammas, gammas_of, panels
from onlinecal.report.reliability_curves import (
    corp_caption,
    corp_diagram,
    draw_corp,
    draw_smooth,
    frame_of,
    smooth_caption,
    smooth_diagram,
)
from onlinecal.report.style import GREY, paper

Floats = NDArray[np.float64]
Kind = Literal["points", "smooth", "corp"]

#: bins that take their place
AUTOMATIC = 20
#: points of more weight than this share of the largest are as large as their weight says; the area of the largest, in
#: square typographic points, of which the others are then at least 3.5 wide
_LEAST, _LARGEST = 0.2, 64.0


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram as it is drawn.

    Attributes
    ----------
    label : str
        Whose Γ it is; "" if that need not be said.
    levels : int
        Of Γ.
    weight : float
        Of Γ.
    strategy : {"levels", "width", "quantile"}
        What a point is: a level, or a bin of equal width or of about equal mass.
    asked : int
        How many bins; 0 for levels.
    left, right : (n,) floats
        The interval of predictions of each point: of bins of equal width their edges [left, right), the last one
        closed; else the least and the greatest prediction.
    predictions, means : (n,) floats
        Mean prediction and mean outcome of each point.
    mass : (n,) floats
        Its share of the weight.
    error : float
        Σ mass |mean − prediction|: ECE of levels, binned ECE of bins.
    level : float
        Of the band; 0 without one.
    lower, upper : (n,) floats
        Where the mean outcome lies with at least this probability, if predictions are calibrated; NaN without a band.
    density : Density
    whole : bool
        Whether counts are whole numbers of rounds, without which there is no band.
    """

    label: str
    levels: int
    weight: float
    strategy: str
    asked: int
    left: Floats
    right: Floats
    predictions: Floats
    means: Floats
    mass: Floats
    error: float
    level: float
    lower: Floats
    upper: Floats
    density: Density
    whole: bool

    @property
    def heading(self) -> str:
        """What stands above it."""
        error = "ECE" if self.strategy == "levels" else f"ECE of {self.asked} bins"
        return f"{self.label}\n{error} = {self.error:.4g}".strip()


def reliability_frame(
    gamma: JointDistribution,
    *,
    label: str = "",
    bins: int | None = None,
    strategy: str = "width",
    band: float | None = 0.95,
) -> Reliability:
    """What `plot_reliability` draws of Γ.

    Parameters
    ----------
    gamma : JointDistribution
    label : str, optional
    bins, strategy, band
        As in `plot_reliability`.
    """
    level = number("reliability", "band", 0.0 if band is None else band, 0.0, 1.0)
    choice("reliability", "strategy", strategy, ("width", "quantile"))
    if bins is None and gamma.levels > MOST:
        bins, strategy = AUTOMATIC, "quantile"
    if bins is None:
        starts, strategy = np.arange(gamma.levels), "levels"
        left = right = gamma.predictions
    else:
        bins = integer("reliability", "bins", bins, 1, 10_000)
        found = bins_witness(gamma, bins=bins, strategy=strategy)  # type: ignore[arg-type]
        starts = found.starts
        if strategy == "width":
            left, right = found.numbers / bins, (found.numbers + 1) / bins
        else:
            left = gamma.predictions[starts]
            right = gamma.predictions[np.append(starts[1:], gamma.levels) - 1]
    counts = np.add.reduceat(gamma.counts, starts)
    mass = counts / gamma.weight
    if strategy == "levels":
        predictions, means = gamma.predictions, gamma.means
        error = float(np.abs(gamma.residuals).sum())
    else:
        predictions = np.add.reduceat(gamma.counts * gamma.predictions, starts) / counts
        means = np.add.reduceat(gamma.positives, starts) / counts
        error = float(np.abs(np.add.reduceat(gamma.residuals, starts)).sum())
    whole = bool((gamma.counts == np.rint(gamma.counts)).all())
    lower = upper = np.full(len(starts), np.nan)
    if level and whole:
        lower, upper = expected(counts, predictions, level)
    return Reliability(
        label, gamma.levels, gamma.weight, strategy, bins or 0, left, right, predictions, means, mass, error,
        level if whole else 0.0, lower, upper, density_of(gamma), whole,
    )  # fmt: skip


def expected(counts: Floats, predictions: Floats, level: float) -> tuple[Floats, Floats]:
    """Where the mean of so many outcomes lies with at least this probability, each 1 with the probability predicted.

    Quantiles of the binomial law with the mean prediction as its parameter, (1 − level)/2 on either side. Of equal
    predictions that is exact. Of different ones the tails of the sum are lighter than those of the binomial law
    outside of a unit around its mean, so that the interval, which holds that unit, holds at least as much (Hoeffding
    1956, Theorem 5).

    Parameters
    ----------
    counts, predictions : (n,) floats
        How many, and their mean prediction.
    level : float

    Returns
    -------
    lower, upper : (n,) floats
        Mean outcomes.

    Examples
    --------
    >>> lower, upper = expected(np.array([100.0]), np.array([0.5]), 0.95)
    >>> lower, upper
    (array([0.4]), array([0.6]))
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


def plot_reliability(
    p: Gammas | ArrayLike,
    y: ArrayLike | None = None,
    *,
    kind: Kind = "points",
    bins: int | None = None,
    strategy: str = "width",
    band: float | None = 0.95,
    axes: Any = None,
    title: str = "",
    dark: bool = False,
    width: Any = None,
) -> Any:
    """Mean outcomes against predictions, with how often each is predicted below.

    Parameters
    ----------
    p : (n,) array_like, JointDistribution, Evaluation, or mapping of labels to these or to pairs (p, y)
        Predictions, with outcomes y; or Γ; or several, a panel for each. Predictions come first, other than in
        scikit-learn's `CalibrationDisplay.from_predictions`.
    y : (n,) array_like
        Outcomes, each 0 or 1.
    kind : {"points", "smooth", "corp"}, default "points"
        A point for each level or bin; the mean outcome near each prediction, smoothed at the scale of SmoothECE
        (`forecasts.regression.smoothed`); or the best monotone recalibration, with the three parts of the Brier score
        (`forecasts.consistency.recalibration`).
    bins : int, optional
        Of points, so many bins in place of the levels. Default: levels; of more than 200, 20 bins of equal mass.
    strategy : {"width", "quantile"}, default "width"
        Bins [j/m, (j+1)/m), the last one closed; or of about equal mass, as in `measures.binned_ece`.
    band : float or None, default 0.95
        Where so much of the probability of each mean outcome lies if predictions were fixed before and outcomes are
        drawn as they say (see `expected`, and `recalibration` of "corp"); None for no band, as of a game, in which
        predictions depend on outcomes. Of "smooth" an interval for the mean outcome near each prediction.
    axes : matplotlib Axes, or a sequence of as many as there are Γ, optional
        Where to draw. Default: those of a new figure, which also gets the title and, below, what is drawn; to others'
        figures `caption` says that.
    title : str, optional
        Of a new figure.
    dark : bool, default False
        Whether a new figure is for a dark page.
    width : "column", "page" or float, optional
        Of a new figure, in inches: 3.4 and 7 by those words.

    Returns
    -------
    Axes, or (n,) array of Axes
        An array where a mapping is given. The density of predictions has axes of its own below.

    Raises
    ------
    InvalidData, InvalidParameter
        Samples that are no forecasts and outcomes; bins, a band, axes or a width that cannot be.

    Examples
    --------
    >>> ax = plot_reliability([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1])
    >>> ax.get_title()
    'ECE = 0.25'
    """
    drawn, said, draw = _of_kind(p, y, kind, bins, strategy, band)
    found = panels(
        drawn, draw, [frame.heading for frame in drawn], said,
        axes=axes, title=title, dark=dark, width=width, high=1.0, lower=0.2,
    )  # fmt: skip
    # Panels are compared: each shows what any of them needs.
    for name in ("xlim", "ylim"):
        ends = np.array([getattr(axis, f"get_{name}")() for axis in found])
        for axis in found:
            axis.set(**{name: (ends.min(), ends.max())})
    return found if isinstance(p, Mapping) else found[0]


def caption(
    p: Gammas | ArrayLike,
    y: ArrayLike | None = None,
    *,
    kind: Kind = "points",
    bins: int | None = None,
    strategy: str = "width",
    band: float | None = 0.95,
) -> str:
    """What is drawn in `plot_reliability`, for a figure of somebody's own."""
    return _of_kind(p, y, kind, bins, strategy, band)[1]


def _of_kind(
    p: Gammas | ArrayLike,
    y: ArrayLike | None,
    kind: Kind,
    bins: int | None,
    strategy: str,
    band: float | None,
) -> tuple[list[Any], str, Callable[[Axes, Axes | None, Any], None]]:
    """What is drawn, its caption, and what draws it."""
    choice("reliability", "kind", kind, ("points", "smooth", "corp"))
    several = gammas_of("reliability", p, y)
    if kind == "points":
        points = [
            reliability_frame(gamma, label=label, bins=bins, strategy=strategy, band=band)
            for label, gamma in several.items()
        ]
        return points, _caption(points), _draw
    if bins is not None:
        raise InvalidParameter(f"reliability: bins = {bins!r} with kind = {kind!r}; expected kind = 'points'")
    level = number("reliability", "band", 0.0 if band is None else band, 0.0, 1.0)
    if kind == "smooth":
        smooth = [smooth_diagram(gamma, label, level) for label, gamma in several.items()]
        return smooth, smooth_caption(smooth), draw_smooth
    corp = [corp_diagram(gamma, label, level) for label, gamma in several.items()]
    return corp, corp_caption(corp), draw_corp


def _caption(drawn: Sequence[Reliability]) -> str:
    kinds = {frame.strategy for frame in drawn}
    point = (
        "a level of Γ" if kinds == {"levels"} else "a bin" if "levels" not in kinds else "a level or a bin"
    )
    which = "its prediction" if kinds == {"levels"} else "its mean prediction"
    few = any((frame.mass < _LEAST * frame.mass.max()).any() for frame in drawn)
    larger = (
        f"; below {_LEAST:.0%} of the largest weight it is drawn as if it were {_LEAST:.0%}" if few else ""
    )
    parts = [
        f"Each point is {point}: across, {which}; up, the mean outcome of its rounds. Its area is its share of the "
        f"weight{larger}."
    ]
    if "width" in kinds:
        parts.append("Horizontal lines: bins [a, b), the last one closed.")
    if "quantile" in kinds:
        parts.append(
            "Horizontal lines: from the least to the greatest prediction of a bin; bins have as equal weights as "
            "levels that are not divided allow."
        )
    if many := [frame.levels for frame in drawn if frame.strategy != "levels"]:
        levels = "level itself is" if set(many) == {1} else "levels themselves are"
        parts.append(f"The {ends(many)} {levels} not drawn.")
    parts.append(
        "Diagonal: calibrated predictions; the mean distance from it, by weight, is "
        f"{'the ECE' if kinds == {'levels'} else 'the binned ECE' if 'levels' not in kinds else 'the (binned) ECE'}."
    )
    if any(frame.level for frame in drawn):
        level = max(frame.level for frame in drawn)
        how = "exact binomial quantiles"
        if kinds != {"levels"}:
            how = "binomial quantiles, of a bin at its mean prediction, which hold at least as much"
        parts.append(
            f"Grey bars: where each mean outcome lies with probability {level:.0%} or more, point by point, if all "
            "predictions were fixed before and every outcome were drawn with the probability predicted, independently "
            f"({how}). A point may then lie outside with probability {1.0 - level:.2g} at most."
        )
    if any(not frame.level for frame in drawn):
        why = "" if all(frame.whole for frame in drawn) else ", for weights are not whole numbers of rounds"
        parts.append(f"Not shown: how far chance alone would move the points{why}.")
    parts.append(words([frame.density for frame in drawn]))
    return " ".join(parts)


def _draw(axis: Axes, density: Axes | None, frame: Reliability) -> None:
    """The diagram, and the density of predictions below it."""
    assert density is not None
    colours = paper(axis)
    root = axis.get_figure(root=True)
    points = 200.0 if root is None else 72.0 * axis.get_window_extent().width / root.dpi
    room = points / max(len(frame.predictions), 10)  # for each point, in typographic ones
    if frame.level:
        axis.vlines(
            frame.predictions, frame.lower, frame.upper, color=GREY, alpha=0.35, zorder=1.1,
            linewidth=float(np.clip(0.5 * room, 1.0, 7.0)),
        )  # fmt: skip
    blue = colours.colours[0]
    axis.vlines(frame.predictions, frame.predictions, frame.means, color=blue, linewidth=0.7, zorder=1.9)
    if frame.strategy != "levels":
        axis.hlines(frame.means, frame.left, frame.right, color=blue, linewidth=1.2, zorder=2.0)
    # As large as their weight, but for those too small to be seen; the smallest above the others.
    last = np.argsort(-frame.mass, kind="stable")
    area = _LARGEST * np.maximum(frame.mass / frame.mass.max(), _LEAST)
    axis.scatter(
        frame.predictions[last], frame.means[last], s=area[last], color=blue, edgecolor=axis.get_facecolor(),
        linewidth=0.5, zorder=2.1,
    )  # fmt: skip
    frame_of(axis, np.concatenate((frame.left, frame.right)), frame.means)
    draw_density(density, frame.density)
