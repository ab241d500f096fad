"""Reliability diagrams of points, smoothed, and monotone: tables, then their picture."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.samples import with_ours
from onlinecal.core.validation import choice, integer, number
from onlinecal.logs.regression import decomposition, recalibration, smoothed
from onlinecal.logs.resampling import Resample
from onlinecal.measures.binned import bins_of_levels
from onlinecal.measures.smooth_ece import smooth_ece
from onlinecal.report.gammas import MOST, Drawn, Gammas, Rows, apart, gammas_of, of_gammas, spans, table_of
from onlinecal.report.style import GREY, look, ticks

Kind = Literal["points", "smooth", "corp"]
RELIABILITY: dict[str, str] = {
    "points": (
        "Point: mean prediction and mean outcome of a level of Γ, or a bin; area: its share of the weight, but where "
        "several forecasts share a panel. Diagonal: calibrated; the mean distance from it is the (binned) ECE. Bar: "
        "where a mean outcome lies with the stated probability, if predictions were fixed before and outcomes drawn as "
        "predicted. Below: weight, of many levels in bins of equal width."
    ),
    "smooth": (
        "Curve: mean outcome near each prediction, by a Gaussian as wide as SmoothECE, as thick as predictions are "
        "frequent. Diagonal: calibrated. Band: an approximate interval, point by point, for the same smoothed mean "
        "outcome of the population. Below: density, of several forecasts in a panel their histograms."
    ),
    "corp": (
        "Curve: the best recalibration that keeps the order of forecasts (CORP), level in the thick parts. Brier score "
        "= MCB − DSC + UNC: miscalibration, discrimination, uncertainty. Bands: where the curve lies, point by point "
        "(dark) and as a whole (light), if outcomes were drawn as predicted. Below: weight, of many levels "
        "in bins of equal width."
    ),
}

#: kind → the mark of what is drawn, above densities
MARKS = {"points": "point", "smooth": "smooth", "corp": "corp"}
#: bins in place of more than `MOST` levels, of points and of histograms
AUTOMATIC = 20
#: the area of the smallest points, as a share of the largest, and of the largest in square typographic points. The last
#: is that of each of several forecasts in one panel
_LEAST, _LARGEST, _MARK = 0.2, 64.0, 24.0
#: of axes, beyond the probabilities at either end: a point there is drawn whole
MARGIN = 0.04
#: rows in clusters up to which outcomes are drawn again
ROWS = 200_000
#: bins in one panel of several forecasts with more than `AUTOMATIC` levels
COMMON = 10


def weights_of(gamma: JointDistribution, bins: int | None = None) -> dict[str, Any]:
    """The share of each level; of more than `MOST` levels, or with `bins`, of each bin of equal width in [0, 1]."""
    if bins is None and gamma.levels <= MOST:
        return {"mark": "weight", "prediction": gamma.predictions, "share": gamma.mass}
    bins = bins or bins_for([gamma])
    shares = np.bincount(bins_of_levels(gamma, bins, "width")[0], gamma.mass, bins)
    edges = np.arange(bins + 1) / bins
    return {"mark": "histogram", "left": edges[:-1], "right": edges[1:], "share": shares}


def bins_for(several: Iterable[JointDistribution]) -> int:
    """Bins of [0, 1] of which there are `AUTOMATIC` between the limits of the axis."""
    ((low, high),) = spans(np.concatenate([gamma.predictions[[0, -1]] for gamma in several]))
    return round(AUTOMATIC / (high - low))


def points_of(
    gamma: JointDistribution, *, bins: int | None = None, strategy: str = "width", level: float = 0.95
) -> dict[str, Any]:
    """Mean outcomes of levels, or of bins of equal width or mass, with the ends of bins and of bands.

    There are no bands with level 0.
    """
    choice("reliability", "strategy", strategy, ("width", "quantile"))
    if bins is None and gamma.levels > MOST:
        bins, strategy = AUTOMATIC, "quantile"
    if bins is None:
        starts, strategy = np.arange(gamma.levels), "levels"
        left = right = predictions = gamma.predictions
        means, name = gamma.means, "ECE"
    else:
        bins = integer("reliability", "bins", bins, 1, 10_000)
        number, starts = bins_of_levels(gamma, bins, strategy)
        left, right = number[starts] / bins, (number[starts] + 1) / bins
        if strategy == "quantile":
            left = gamma.predictions[starts]
            right = gamma.predictions[np.append(starts[1:], gamma.levels) - 1]
        weights = np.add.reduceat(gamma.counts, starts)
        predictions = np.add.reduceat(gamma.counts * gamma.predictions, starts) / weights
        means = np.add.reduceat(gamma.positives, starts) / weights
        name = f"ECE of {bins} bins"
    counts = np.add.reduceat(gamma.counts, starts)
    lower, upper = expected(counts, predictions, level) if level else np.full((2, len(starts)), np.nan)
    return {
        "mark": "point", "prediction": predictions, "mean": means, "share": counts / gamma.weight, "left": left,
        "right": right, "lower": lower, "upper": upper, "level": level, "strategy": strategy, "name": name,
        "error": float(np.abs(np.add.reduceat(gamma.residuals, starts)).sum()),
    }  # fmt: skip


def unknown(gamma: JointDistribution, kind: str, resample: Resample | None) -> str:
    """Why there is no band; "" where there is one. Binomial quantiles are those of independent rows."""
    if resample is None:
        return (
            "" if (gamma.counts == np.rint(gamma.counts)).all() else "weights are not whole numbers of rounds"
        )
    if kind == "points":
        return "rows of a cluster may depend on each other" if resample.clusters else "rows have weights"
    if kind == "corp" and resample.clusters and resample.total > ROWS:
        return f"more than {ROWS:,} rows in clusters are not drawn again"
    return resample.too_few and "there are too few clusters"


def expected(counts: Floats, predictions: Floats, level: float) -> tuple[Floats, Floats]:
    """The ends of an interval that the mean of outcomes drawn as predicted leaves with 1 − level at most.

    Binomial quantiles; the sum of different predictions has lighter tails but near its mean (Hoeffding 1956, Thm 5).
    """
    from scipy.stats import binom

    tail = (1.0 - level) / 2
    mean = counts * predictions
    inside = (predictions > 0.0) & (predictions < 1.0)
    law = binom(counts, np.where(inside, predictions, 0.5))
    lower, upper = np.minimum(law.ppf(tail), np.floor(mean)), np.maximum(law.ppf(1.0 - tail), np.ceil(mean))
    # SciPy's quantile of probability 0 is −1.
    lower, upper = np.where(inside, np.maximum(lower, 0.0), mean), np.where(inside, upper, mean)
    return lower / counts, upper / counts


def smooth_of(
    gamma: JointDistribution, level: float, resample: Resample | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The mean outcome near each prediction, with a band, from the least to the greatest; and the density."""
    curve = smoothed(gamma, resample=resample)
    at = curve.at
    near = (at >= gamma.predictions[0] - at[1]) & (at <= gamma.predictions[-1] + at[1])
    lower, upper = curve.band(level) if level else np.full((2, len(at)), np.nan)
    return {
        "mark": "smooth", "prediction": at[near], "mean": curve.means[near], "share": curve.density[near],
        "lower": lower[near], "upper": upper[near], "level": level, "name": "smECE", "error": smooth_ece(gamma),
        "most": curve.density.max(),
    }, {"mark": "density", "prediction": at, "share": curve.density, "sigma": curve.sigma}  # fmt: skip


def corp_of(gamma: JointDistribution, level: float, resample: Resample | None = None) -> dict[str, Any]:
    """The best monotone recalibration, its bands point by point and as a whole, and the parts of the Brier score."""
    curve, parts = recalibration(gamma, level=level, resample=resample), decomposition(gamma)
    return {
        "mark": "corp", "prediction": curve.predictions, "mean": curve.means, "lower": curve.lower,
        "upper": curve.upper, "lowest": curve.lowest, "highest": curve.highest, "level": level,
        "name": "Brier score", "error": parts.score, "mcb": parts[1], "dsc": parts[2], "unc": parts[3],
    }  # fmt: skip


@with_ours
def reliability_table(
    p: Gammas | ArrayLike,
    y: ArrayLike | None = None,
    *,
    kind: Kind = "points",
    bins: int | None = None,
    strategy: str = "width",
    band: float | None = 0.95,
    together: bool = False,
    **rows: Unpack[Rows],
) -> pd.DataFrame:
    """The points or curves of a reliability diagram and the density below; parameters as in `plot_reliability`."""
    choice("reliability", "kind", kind, ("points", "smooth", "corp"))
    several = gammas_of("reliability", p, y, **rows)
    level = number("reliability", "band", 0.0 if band is None else band, 0.0, 1.0)
    if bins is not None and kind != "points":
        raise InvalidParameter(f"reliability: bins = {bins!r} with kind = {kind!r}; expected kind = 'points'")
    places = {label: place if together else 0 for place, label in enumerate(several)}
    known = [gamma for gamma in several.values() if gamma is not None]
    common = bins_for(known) if together else None
    if together and bins is None and max(gamma.levels for gamma in known) > AUTOMATIC:
        bins, strategy = COMMON, "quantile"

    def make(label: Any, gamma: JointDistribution) -> tuple[str, list[dict[str, Any]]]:
        given = getattr(p[label] if isinstance(p, Mapping) else p, "resample", None)
        # A pandas Series has a method of this name.
        resample = given if isinstance(given, Resample) else None
        why = unknown(gamma, kind, resample)
        own, weights = 0.0 if why else level, weights_of(gamma, common)
        if kind == "smooth":
            drawn, density = smooth_of(gamma, own, resample)
            weights = weights if together else density
        elif kind == "corp":
            drawn = corp_of(gamma, own, resample)
        else:
            drawn = points_of(gamma, bins=bins, strategy=strategy, level=own)
        clusters = resample is not None and bool(resample.clusters)
        at = {"place": places[label], "why": why if level else "", "clusters": clusters}
        return f"{drawn['name']} = {drawn['error']:.4g}", [drawn | at, weights | at]

    return table_of(several, make)


@with_ours
def plot_reliability(
    p: Gammas | ArrayLike,
    y: ArrayLike | None = None,
    *,
    kind: Kind = "points",
    bins: int | None = None,
    strategy: str = "width",
    band: float | None = 0.95,
    together: bool = False,
    **look: Unpack[Drawn],
) -> Figure:
    """Mean outcomes against predictions; below them a histogram of the predictions, of few levels the weight of each.

    Parameters
    ----------
    p, y : (n,) array_like
        Predictions, then outcomes. Or as p alone a `JointDistribution` or an `Evaluation`. Or, with a panel for each, a
        mapping of labels to these, to (p, y), or to p beside a common y. Predictions come first, other than
        in `from_predictions`.
    kind : {"points", "smooth", "corp"}, default "points"
        A point for each level or bin. Or the mean outcome near each prediction, at the scale of SmoothECE. Or the best
        monotone recalibration, with the three parts of the Brier score.
    bins : int, optional
        Of points, the number of bins in place of the levels. Default: levels; of more than 200, 20 bins of equal mass.
        Of several forecasts in one panel, of which one has more than 20 levels, 10 bins of equal mass for all.
    strategy : {"width", "quantile"}, default "width"
        Bins [j/m, (j+1)/m), the last one closed; or of about equal mass, as in `measures.binned_ece`.
    band : float or None, default 0.95
        The probability with which each mean outcome lies in its band, if outcomes are drawn as predicted. None for no
        band, as of a game, in which predictions depend on outcomes. Of "smooth" an
        interval for the mean outcome near each prediction. Of an `Evaluation` of clusters or weights bands are by them,
        and points have none.
    together : bool, default False
        Of a mapping, one panel for all of them, a colour and marker each.
    **look
        `weights`, `positive`, `negative`, `drop`: as in `JointDistribution.from_samples`. And see `Look`.

    Examples
    --------
    >>> plot_reliability([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1]).axes[0].get_title()
    'ECE = 0.25'
    """
    together = together and isinstance(p, Mapping)
    rows, how = apart(look)
    table = reliability_table(
        p, y, kind=kind, bins=bins, strategy=strategy, band=band, together=together, **rows
    )
    drawn = table[table["mark"] == MARKS[kind]]
    by = ", by clusters of rows" * bool(drawn["clusters"].any())
    facts = [f"bands of {level:.0%}{by}" for level in sorted({*drawn["level"]} - {0.0})]
    facts += [f"no band, for {why}" for why in sorted({*drawn["why"]} - {""})]
    columns = ["left", "right"] if kind == "points" else ["prediction"]
    across, up = spans(drawn[columns].to_numpy(), drawn["mean"].to_numpy())
    # The diagonal goes from corner to corner unless that hides what is drawn; limits are those of all panels.
    limits = across, (min(up[0], across[0]), max(up[1], across[1]))

    options: dict[str, Any] = {
        "labels": ("", "mean outcome"), "panel": (3.3, 4.3), "facts": " · ".join(facts), "lower": 0.25,
    }  # fmt: skip
    if together:
        # Room for a strip of each.
        options["lower"] = max(0.25, 0.1 * drawn["place"].nunique())
        names = table["heading"].str.replace("\n", ": ")
        table = table.assign(who=names, label="", heading="")[table["mark"] != "missing"]
        options["names"] = "who"
    return of_gammas(
        table, lambda axis, part, below: _draw(axis, part, below, limits, kind, together), RELIABILITY[kind],
        **options | how,
    )  # fmt: skip


def from_predictions(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 5,
    strategy: str = "uniform",
    name: str = "",
    **look: Any,
) -> Figure:
    """The reliability curve of `plot_reliability` with the arguments of scikit-learn's `CalibrationDisplay`.

    Parameters
    ----------
    y_true, y_prob : (n,) array_like
        Outcomes, and then predictions.
    n_bins : int, default 5
    strategy : {"uniform", "quantile"}, default "uniform"
    name : str, optional
        The heading.
    **look
        `pos_label`, `sample_weight`, `ax`, and what else `plot_reliability` takes.

    Returns
    -------
    Figure
        With the axes that are drawn in.

    Examples
    --------
    >>> from_predictions(["no", "yes", "yes", "yes"], [0.2, 0.2, 0.8, 0.8], pos_label="yes").axes[0].get_title()
    'ECE of 5 bins = 0.25'
    """
    named: Any = {name: y_prob}
    return plot_reliability(named, y_true, bins=n_bins, strategy=strategy, **look)


def _draw(axis: Any, part: pd.DataFrame, below: Any, limits: Any, kind: Kind, together: bool) -> None:
    for place, mine in part[part["mark"] == MARKS[kind]].groupby("place"):
        _DRAWN[kind](axis, mine, look(int(place)), together)
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=1.0, zorder=1.0)
    for (low, high), limit in zip(limits, (axis.set_xlim, axis.set_ylim), strict=True):
        limit(low - MARGIN * (high - low), high + MARGIN * (high - low))
    ticks(axis.xaxis, axis.yaxis)
    _draw_weights(below, part[part["mark"] != MARKS[kind]], together)


def _draw_weights(below: Any, rows: pd.DataFrame, together: bool) -> None:
    """Draws weights, a histogram or a density below a diagram with the same predictions across."""
    kind, most = rows["mark"].iloc[0], float(rows["share"].max())
    below.set(xlabel="prediction", ylabel="density" if kind == "density" else "weight")
    if together:
        _draw_strips(below, rows, most)
        return
    # One forecast has a panel of its own.
    share = rows["share"].to_numpy()
    if kind == "histogram":
        below.stairs(share, np.append(rows["left"], 1.0), color=GREY, fill=True)
    elif kind == "density":
        below.fill_between(rows["prediction"], share, color=GREY, linewidth=0)
    else:
        # Narrower where levels are near each other.
        at = rows["prediction"].to_numpy()
        wide = float(np.clip(96.0 * np.diff(at, prepend=-1.0).min(), 0.6, 5.0))
        below.vlines(at, 0.0, share, color=GREY, linewidth=wide)
    if kind != "density":
        below.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    below.set_ylim(0.0, 1.1 * most)
    below.yaxis.set_major_locator(MaxNLocator(2))


def _draw_strips(below: Any, rows: pd.DataFrame, most: float) -> None:
    """Draws histograms of the same scale above each other, the first on top."""
    places = sorted(rows["place"].unique())
    marked = max((x for x in MaxNLocator(2).tick_values(0.0, most) if x <= most), default=most)
    feet = {place: 1.15 * most * (len(places) - 1 - i) for i, place in enumerate(places)}
    for place, mine in rows.groupby("place"):
        edges, foot = np.append(mine["left"], 1.0), feet[place]
        below.stairs(
            mine["share"] + foot, edges, baseline=foot, color=look(int(place))["color"], fill=True, alpha=0.8
        )
        below.axhline(foot, color=GREY, linewidth=0.6)
    below.set_yticks([foot + marked for foot in feet.values()], [f"{100 * marked:.3g}%"] * len(feet))
    below.set_ylim(0.0, 1.15 * most * len(places))


def _draw_points(axis: Any, rows: pd.DataFrame, style: dict[str, Any], together: bool) -> None:
    at, means, share = (rows[name].to_numpy() for name in ("prediction", "mean", "share"))
    wide = 1.5 if together else float(np.clip(90.0 / len(rows), 1.0, 7.0))
    if rows["level"].any():
        axis.vlines(
            at, rows["lower"], rows["upper"], color=style["color"] if together else GREY, linewidth=wide,
            alpha=0.5 if together else 0.35, zorder=1.1,
        )  # fmt: skip
    if together:
        axis.plot(at, means, color=style["color"], linestyle=style["linestyle"], linewidth=1.0, zorder=2.0)
    else:
        axis.vlines(at, at, means, color=style["color"], linewidth=0.7, zorder=1.9)
    if rows["strategy"].iloc[0] != "levels" and not together:
        axis.hlines(means, rows["left"], rows["right"], color=style["color"], linewidth=1.2, zorder=2.0)
    # The smallest above the others.
    last = np.argsort(-share, kind="stable")
    area = np.full(len(at), _MARK) if together else _LARGEST * np.maximum(share / share.max(), _LEAST)
    axis.scatter(
        at[last], means[last], s=area[last], color=style["color"],
        marker=style["marker"] if together else "o", edgecolor=axis.get_facecolor(), linewidth=0.5, zorder=2.1,
    )  # fmt: skip


def _draw_smooth(axis: Any, rows: pd.DataFrame, style: dict[str, Any], together: bool) -> None:
    at, means, density = (rows[name].to_numpy() for name in ("prediction", "mean", "share"))
    if rows["level"].any():
        axis.fill_between(
            at, rows["lower"], rows["upper"], color=style["color"], alpha=0.18, linewidth=0, zorder=1.1
        )
    points = np.stack((at, means), axis=1)
    axis.add_collection(
        LineCollection(
            list(np.stack((points[:-1], points[1:]), axis=1)),
            linewidths=0.5 + 2.5 * 0.5 * (density[1:] + density[:-1]) / rows["most"].iloc[0], colors=style["color"],
            capstyle="round", zorder=2.0,
        ),
        autolim=False,
    )  # fmt: skip
    if together:
        axis.plot(
            at,
            means,
            color=style["color"],
            marker=style["marker"],
            markevery=0.1,
            markersize=4,
            linestyle="none",
        )


def _draw_corp(axis: Any, rows: pd.DataFrame, style: dict[str, Any], together: bool) -> None:
    v, q = rows["prediction"].to_numpy(), rows["mean"].to_numpy()
    colour = style["color"] if together else GREY
    for lower, upper in (("lowest", "highest"), ("lower", "upper")) if rows["level"].any() else ():
        low, high = rows[lower].to_numpy(), rows[upper].to_numpy()
        alpha = 0.1 if together else 0.2
        axis.fill_between(v, low, high, color=colour, alpha=alpha, linewidth=0, zorder=1.1)
        axis.vlines(v[: len(v) == 1], low[0], high[0], color=colour, alpha=alpha, linewidth=5.0, zorder=1.1)
    axis.plot(v, q, color=style["color"], linewidth=0.8, zorder=2.0)
    # Blocks that were pooled, from the first of their levels to the last.
    starts = np.flatnonzero(np.diff(q, prepend=-1.0))
    last = np.append(starts[1:], len(q)) - 1
    axis.hlines(q[starts], v[starts], v[last], color=style["color"], linewidth=2.4, zorder=2.1)
    axis.plot(
        v, q, color=style["color"], marker=style["marker"] if together else "o", linestyle="none", zorder=2.2,
        markersize=4 if together else min(4.0, 60.0 / len(v)), markevery=0.1 if together else 1,
    )  # fmt: skip
    if not together:
        one = rows.iloc[0]
        axis.annotate(
            f"MCB = {one['mcb']:.4f}\nDSC = {one['dsc']:.4f}\nUNC = {one['unc']:.4f}", (0.03, 0.97),
            xycoords="axes fraction", va="top", fontsize=7.5,
            bbox={"facecolor": axis.get_facecolor(), "edgecolor": "none", "alpha": 0.7, "pad": 1.5},
        )  # fmt: skip


_DRAWN = {"points": _draw_points, "smooth": _draw_smooth, "corp": _draw_corp}
