"""Single runs, and local slopes, of curves: data, then drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import choice
from onlinecal.core.words import number_of
from onlinecal.growth import Growth, check_level, simultaneous
from onlinecal.growth.contrasts import Fresh, Path
from onlinecal.growth.rates import best_known
from onlinecal.report.curves import Curve, left_out
from onlinecal.report.frames import counted, games, places
from onlinecal.report.panels import Picture, by_pair, joined, of_pairs, pictured
from onlinecal.report.style import GREY, paper, plain, tick, typeset

Floats = NDArray[np.float64]
Scale = Literal["log", "linear"]

LEVEL = 0.95


class RunLines(NamedTuple):
    """The runs of one forecaster; NaN where a total has no place on the axis, of which there are `left`."""

    forecaster: str
    style: int
    rounds: NDArray[np.int64]
    totals: Floats
    mean: Floats
    #: whether a run is one game, whose totals are a line; those of games at several T are points
    joined: bool
    left: int


class RunFrame(NamedTuple):
    """A measure against one nature; logarithmic upwards only where all totals allow it."""

    scale: Scale
    lines: list[RunLines]


def run_frames(curves: Sequence[Curve], *, scale: Scale = "log") -> dict[tuple[str, str], RunFrame]:
    """The data of `plot_runs`, by nature and measure."""
    choice("runs", "scale", scale, ("log", "linear"))
    if not curves:
        raise InvalidParameter("no curves to draw; expected at least one")
    styles, result = places(curves), {}
    for pair, mine in by_pair(curves).items():
        finite = np.concatenate([curve.totals[np.isfinite(curve.totals)] for curve in mine])
        own: Scale = "log" if scale == "log" and (finite >= 0).all() and (finite > 0).any() else "linear"

        def shown(values: Floats, own: Scale = own) -> Floats:
            return np.where(np.isfinite(values) & ((values > 0) | (own == "linear")), values, np.nan)

        lines = []
        for c in mine:
            totals, joined = shown(c.totals), not c.fresh and len(c.rounds) > 1
            left = int(np.isnan(totals).sum())
            lines.append(
                RunLines(c.forecaster, styles[c.forecaster], c.rounds, totals, shown(c.mean), joined, left)
            )
        result[pair] = RunFrame(own, lines)
    return result


@pictured
def plot_runs(curves: Sequence[Curve], *, scale: Scale = "log") -> Picture:
    """The totals of every single run against T, thin, and their mean.

    Parameters
    ----------
    curves : sequence of Curve
        At least one.
    scale : {"log", "linear"}, default "log"
        Of both axes; where totals are negative the vertical one is linear.

    Returns
    -------
    (natures, measures) array of Axes
        Thin lines are runs of one game; where each T is a game of its own, a run at each T is a point.
    """
    drawn = run_frames(curves, scale=scale)
    lines = [line for frame in drawn.values() for line in frame.lines]
    left = sum(line.left for line in lines)
    caption = joined(
        games(curves),
        "Thin lines: single runs; small points: single runs, which at different T are different games. Thick line or "
        f"large points: mean of {counted({line.totals.shape[1] for line in lines})}.",
        "The vertical axis is linear where totals are negative, or none is positive and finite."
        * (scale == "log" and any(frame.scale == "linear" for frame in drawn.values())),
        f"Not drawn, as they are infinite, or 0 on a logarithmic axis: {number_of(left, 'total')} of single runs."
        * (left > 0),
        left_out(curves),
    )

    def draw(axis: Axes, frame: RunFrame) -> None:
        axis.set_xscale(scale)
        _draw_runs(axis, frame)

    return of_pairs(
        drawn, draw, ("T", "total $T\\cdot\\mu$"), caption,
        {line.forecaster: line.style for line in lines}, {"markersize": 4, "linewidth": 2.0},
    )  # fmt: skip


def _draw_runs(axis: Axes, frame: RunFrame) -> None:
    here = paper(axis)
    axis.set_yscale(frame.scale)
    if frame.scale == "linear":
        axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=0.8)
    for line in frame.lines:
        look = here.style(line.style)
        alpha = float(np.clip(4.0 / line.totals.shape[1], 0.12, 0.6))
        thin: dict[str, Any] = {"linewidth": 0.6, "alpha": alpha} if line.joined else {
            "marker": ".", "markersize": 3.5, "markeredgewidth": 0, "linestyle": "none", "alpha": min(1.0, 2 * alpha)
        }  # fmt: skip
        axis.plot(line.rounds, line.totals, color=look.colour, zorder=1.5, **thin)
        axis.plot(
            line.rounds, line.mean, color=look.colour, marker=look.marker, linestyle=look.dashes, markersize=4,
            markevery=max(1, -(-len(line.rounds) // 12)), linewidth=2.0, zorder=2.0,
            markeredgecolor=axis.get_facecolor(), markeredgewidth=0.4,
        )  # fmt: skip
    plain(axis)
    for which in (axis.xaxis, axis.yaxis):
        if which.get_scale() == "linear":
            which.set_major_formatter(FuncFormatter(tick))


# ---------------------------------------------------------------- local slopes


class Slopes(NamedTuple):
    """The local slopes of a curve between neighbouring T, with an interval for each; NaN where unknown."""

    forecaster: str
    style: int
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    value: Floats
    lower: Floats
    upper: Floats
    #: the mean exponent, and the T over which it is fitted
    fitted: Growth | None
    span: tuple[int, int]


class SlopeFrame(NamedTuple):
    """A measure against one nature, with the slopes of best known rates: label, T, slope between neighbours."""

    lines: list[Slopes]
    rates: list[tuple[str, NDArray[np.int64], Floats]]


def local_slopes(curve: Curve, level: float = LEVEL) -> tuple[Floats, Floats, Floats]:
    """Slopes of log(mean total) in log T between neighbouring T, and the ends of an interval for each.

    The interval is for the slope of the expected totals: the jackknife's variance over the runs, and Student's t. Of
    games of their own the two variances add, with Welch's degrees of freedom; along one game runs are compared with
    themselves. It is approximate, as the logarithm of a mean is not normal: it holds 93 % or more of what it should
    hold 95 % of, for 8 runs or more with a coefficient of variation up to 1/2 (by tests).
    """
    from scipy.special import stdtrit

    check_level(level)
    steps = len(curve.rounds) - 1
    value, lower, upper = np.full((3, steps), np.nan)
    logarithms, mean = np.log(curve.rounds.astype(np.float64)), curve.mean
    for i in range(steps):
        pair = slice(i, i + 2)
        if not (np.isfinite(mean[pair]) & (mean[pair] > 0.0)).all():
            continue
        data = Fresh(curve.totals[pair]) if curve.fresh else Path(logarithms[pair], curve.totals[pair])
        weights = np.array([-1.0, 1.0]) / float(logarithms[i + 1] - logarithms[i])
        value[i] = weights @ data.logs
        variance, freedom = data.spread(weights, np.eye(2))
        if np.isfinite(variance) and not curve.recorded:
            half = float(stdtrit(freedom, (1.0 + level) / 2) * np.sqrt(variance))
            lower[i], upper[i] = value[i] - half, value[i] + half
    return value, lower, upper


def slope_frames(curves: Sequence[Curve]) -> dict[tuple[str, str], SlopeFrame]:
    """The data of `plot_slopes`, by nature and measure."""
    usable = [curve for curve in curves if len(curve.rounds) > 1]
    if not usable:
        raise InvalidParameter("no curve with two T or more; expected several horizons or checkpoints")
    styles, together, result = places(curves), simultaneous(len(usable), LEVEL), {}
    for pair, mine in by_pair(usable).items():
        lines = [
            Slopes(
                c.forecaster, styles[c.forecaster], c.rounds[:-1], c.rounds[1:], *local_slopes(c),
                c.exponent(together), (int(c.tail.rounds[0]), int(c.tail.rounds[-1])),
            )
            for c in mine
        ]  # fmt: skip
        tuned = [curve.rounds for curve in mine if curve.fresh and curve.open is None]
        times = np.unique(np.concatenate(tuned)) if tuned else np.array([], np.int64)
        rates = [
            (str(rate), times, np.diff(np.log(rate.at(times))) / np.diff(np.log(times)))
            for rate in (best_known(mine[0].column) if tuned else ())
        ]
        result[pair] = SlopeFrame(lines, rates)
    return result


@pictured
def plot_slopes(curves: Sequence[Curve]) -> Picture:
    """Slopes of totals between neighbouring T, beside the exponent fitted to all and the best known rates.

    Parameters
    ----------
    curves : sequence of Curve
        At least one with two T.

    Returns
    -------
    (natures, measures) array of Axes
    """
    drawn = slope_frames(curves)
    lines = [line for frame in drawn.values() for line in frame.lines]
    # The same limits in all panels, so that slopes can be compared; few steep ones do not make the others flat.
    values = np.concatenate([line.value for line in lines] + [np.array([0.0, 1.0])])
    values = values[np.isfinite(values)]
    low, high = max(float(values.min()) - 0.15, -2.0), min(float(values.max()) + 0.15, 3.0)

    def draw(axis: Axes, frame: SlopeFrame) -> None:
        _draw_slopes(axis, frame)
        axis.set_ylim(low, high)

    return of_pairs(
        drawn, draw, ("T", "local slope"), _slope_caption(curves, drawn, low, high),
        {line.forecaster: line.style for line in lines}, {"linestyle": "-", "markersize": 4.5, "linewidth": 1.2},
    )  # fmt: skip


def _slope_caption(
    curves: Sequence[Curve], drawn: dict[tuple[str, str], SlopeFrame], low: float, high: float
) -> str:
    lines = [line for frame in drawn.values() for line in frame.lines]
    beyond = sum(int(((line.value < low) | (line.value > high)).sum()) for line in lines)
    return joined(
        games(curves),
        "Each point, with the horizontal line through it: the slope of log total in log T between two neighbouring T, "
        f"from means of {counted({curve.totals.shape[1] for curve in curves})}; none where one of the two is infinite "
        f"or not positive. Vertical line: an approximate {LEVEL:.0%} interval, each on its own, for that slope of the "
        "expected totals, from what differs between the runs; it may go beyond the edges. It is missing of a single "
        "run, of games on one recorded stream, and where a mean is not positive without one of its runs.",
        f"Beyond the edges: {number_of(beyond, 'point')}." * (beyond > 0),
        "Level line and band: the mean growth exponent over the T that it spans, with an interval, where that is "
        f"clear; these intervals hold all together with {LEVEL:.0%}.",
        "Grey: the slopes of the best known rates against the worst nature, logarithms included."
        * any(frame.rates for frame in drawn.values()),
        left_out(curves),
    )


def _draw_slopes(axis: Axes, frame: SlopeFrame) -> None:
    here = paper(axis)
    axis.set_xscale("log")
    for k, (label, times, slopes) in enumerate(frame.rates):
        middle = np.sqrt(times[:-1].astype(np.float64) * times[1:])
        axis.plot(np.r_[times[0], middle, times[-1]], np.r_[slopes[0], slopes, slopes[-1]], color=GREY,
                  linewidth=0.9, zorder=1.0)  # fmt: skip
        low = len(frame.rates) > 1 and k == 0
        axis.annotate(typeset(label), (times[-1], slopes[-1]), (6, 0), textcoords="offset points",
                      va="top" if low else "bottom" if len(frame.rates) > 1 else "center", fontsize=7,
                      color=here.faint)  # fmt: skip
    many = len(frame.lines)
    for k, line in enumerate(frame.lines):
        look = here.style(line.style)
        if line.fitted is not None and line.fitted.clear:
            axis.fill_between(
                line.span, line.fitted.lower, line.fitted.upper, color=look.colour, alpha=0.15, linewidth=0
            )
            axis.hlines(
                line.fitted.value, *line.span, color=look.colour, linewidth=0.9, alpha=0.8, zorder=1.5
            )
        # At the geometric mean of the two T, forecasters a little beside each other.
        share = 0.5 + 0.3 * ((k + 0.5) / many - 0.5)
        at = line.first ** (1.0 - share) * line.last**share
        axis.hlines(line.value, line.first, line.last, color=look.colour, linewidth=0.9, zorder=2.0)
        axis.vlines(at, line.lower, line.upper, color=look.colour, linewidth=1.1, zorder=2.0)
        axis.plot(
            at,
            line.value,
            color=look.colour,
            marker=look.marker,
            markersize=4.5,
            linestyle="none",
            zorder=2.1,
        )
    plain(axis)
    left, right = axis.get_xlim()
    if right / left < 30:
        axis.xaxis.set_major_locator(LogLocator(base=10.0, subs=(1.0, 2.0, 5.0), numticks=12))
        axis.xaxis.set_major_formatter(FuncFormatter(tick))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_formatter(FuncFormatter(tick))
