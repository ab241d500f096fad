"""Local slopes of totals: first what is drawn, as plain data, then the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import number_of
from onlinecal.growth import Growth, check_level, simultaneous
from onlinecal.growth.contrasts import Fresh, Path
from onlinecal.growth.rates import best_known
from onlinecal.report.curves import Curve, left_out
from onlinecal.report.frames import counted, games, places
from onlinecal.report.pair_panels import of_pairs
from onlinecal.report.style import GREY, paper, plain, tick, typeset

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Slopes:
    """The local slopes of one curve.

    Attributes
    ----------
    forecaster : str
    style : int
        Its place in the study.
    first, last : (n,) ints
        Neighbouring T.
    value : (n,) floats
        log(mean total at `last` / mean total at `first`) / log(last / first); NaN where a mean is infinite or not
        positive.
    lower, upper : (n,) floats
        An interval for the same of expected totals; NaN where nothing is known of how far runs differ.
    fitted : Growth or None
        The mean exponent, its interval together with those of all curves that are drawn.
    span : (int, int)
        The T over which that is fitted.
    """

    forecaster: str
    style: int
    first: Ints
    last: Ints
    value: Floats
    lower: Floats
    upper: Floats
    fitted: Growth | None
    span: tuple[int, int]


@dataclass(frozen=True, eq=False)
class SlopeFrame:
    """One pair of axes: a measure against one nature.

    Attributes
    ----------
    nature : str
    column : Column
    lines : list of Slopes
    rates : list of (str, (n,) ints, (n − 1,) floats)
        Best known rates, where games are tuned to their T and every outcome is known at once: label, T, and the slope
        of the rate between neighbouring ones, logarithms included.
    """

    nature: str
    column: Column
    lines: list[Slopes]
    rates: list[tuple[str, Ints, Floats]]


def local_slopes(curve: Curve, level: float = LEVEL) -> tuple[Floats, Floats, Floats]:
    """Slopes of log(mean total) in log T between neighbouring T, with an interval for each.

    The interval is for the slope of the expected totals: the jackknife's variance over the runs, and Student's t. Of
    games of their own the two variances add, with Welch's degrees of freedom; along one game runs are compared with
    themselves. It is approximate, as the logarithm of a mean is not normal; it holds 93 % or more of what it should
    hold 95 % of for 8 runs or more whose totals have a coefficient of variation up to 1/2 (seen in tests).

    Parameters
    ----------
    curve : Curve
        With n T.
    level : float, default 0.95
        Of each interval by itself.

    Returns
    -------
    value, lower, upper : (n − 1,) floats
        NaN where a mean is infinite or not positive. Ends are NaN also of a single run, and of games on one recorded
        stream, whose outcomes are the same in all runs.
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


def slope_frames(curves: Sequence[Curve]) -> list[SlopeFrame]:
    """What `plot_slopes` draws, one frame for each nature and measure.

    Raises
    ------
    InvalidParameter
        No curves, or none with two T.
    """
    usable = [curve for curve in curves if len(curve.rounds) > 1]
    if not usable:
        raise InvalidParameter("no curve with two T or more; expected several horizons or checkpoints")
    styles = places(curves)
    together = simultaneous(len(usable), LEVEL)
    found: dict[tuple[str, Column], list[Curve]] = {}
    for curve in usable:
        found.setdefault((curve.nature, curve.column), []).append(curve)
    result = []
    for (nature, column), mine in found.items():
        lines = []
        for curve in mine:
            tail = curve.tail.rounds
            lines.append(
                Slopes(
                    curve.forecaster, styles[curve.forecaster], curve.rounds[:-1], curve.rounds[1:],
                    *local_slopes(curve), curve.exponent(together), (int(tail[0]), int(tail[-1])),
                )
            )  # fmt: skip
        tuned = [curve.rounds for curve in mine if curve.fresh and curve.open is None]
        rates: list[tuple[str, Ints, Floats]] = []
        if tuned:
            times = np.unique(np.concatenate(tuned))
            for rate in best_known(column):
                slopes = np.diff(np.log(rate.at(times))) / np.diff(np.log(times))
                rates.append((str(rate), times, slopes))
        result.append(SlopeFrame(nature, column, lines, rates))
    return result


def plot_slopes(
    curves: Sequence[Curve], *, axes: Any = None, title: str = "", dark: bool = False, width: Any = None
) -> NDArray[Any]:
    """How fast totals grow between neighbouring T, beside the exponent that is fitted to all and the best known rates.

    Parameters
    ----------
    curves : sequence of Curve
        At least one with two T.
    axes : (natures, measures) array of matplotlib Axes, optional
        Where to draw. Default: those of a new figure, which also gets the title, a legend and, below, what is drawn; to
        others' figures `caption` says that.
    title : str, optional
        Of a new figure.
    dark, width
        As in `curve_plot.plot_curves`.

    Returns
    -------
    (natures, measures) array of Axes
        In a new figure axes are hidden where a measure was not taken.

    Raises
    ------
    InvalidParameter
        No curves with two T; axes of another shape; a title for axes that are given; a width that cannot be.
    """
    drawn = slope_frames(curves)
    names = {line.forecaster: line.style for frame in drawn for line in frame.lines}
    limits = _limits(drawn)

    def draw(axis: Axes, frame: SlopeFrame) -> None:
        _draw(axis, frame)
        axis.set_ylim(*limits)

    return of_pairs(
        drawn, draw, "T", "local slope", _caption(curves, drawn), names,
        {"linestyle": "-", "markersize": 4.5, "linewidth": 1.2}, axes=axes, title=title, dark=dark, width=width,
    )  # fmt: skip


def _limits(drawn: Sequence[SlopeFrame]) -> tuple[float, float]:
    """Upwards, the same of all, so that slopes can be compared; a few steep ones do not make the others flat."""
    values = np.concatenate([line.value for frame in drawn for line in frame.lines] + [np.array([0.0, 1.0])])
    values = values[np.isfinite(values)]
    return max(float(values.min()) - 0.15, -2.0), min(float(values.max()) + 0.15, 3.0)


def caption(curves: Sequence[Curve]) -> str:
    """What is drawn in `plot_slopes` of these curves, for a figure of somebody's own."""
    return _caption(curves, slope_frames(curves))


def _caption(curves: Sequence[Curve], drawn: Sequence[SlopeFrame]) -> str:
    lines = [line for frame in drawn for line in frame.lines]
    runs = {curve.totals.shape[1] for curve in curves}
    parts = [
        games(curves),
        "Each point, with the horizontal line through it: the slope of log total in log T between two neighbouring T, "
        f"from means of {counted(runs)}.",
    ]
    if any(np.isfinite(line.lower).any() for line in lines):
        parts.append(
            f"Vertical line: an approximate {LEVEL:.0%} interval, each on its own, for that slope of the expected "
            "totals, from what differs between the runs; it may go beyond the edges."
        )
    if any((np.isnan(line.lower) & np.isfinite(line.value)).any() for line in lines):
        parts.append(
            "No interval: of a single run, of games on one recorded stream, or where a mean is not positive without "
            "one of its runs."
        )
    if any(np.isnan(line.value).any() for line in lines):
        parts.append("No point: where one of the two means is infinite or not positive.")
    low, high = _limits(drawn)
    if beyond := sum(int(((line.value < low) | (line.value > high)).sum()) for line in lines):
        parts.append(f"Beyond the edges: {number_of(beyond, 'point')}.")
    if any(line.fitted is not None and line.fitted.clear for line in lines):
        parts.append(
            "Level line and band: the mean growth exponent over the T that it spans, with an interval; these intervals "
            f"hold all together with {LEVEL:.0%}."
        )
    if any(frame.rates for frame in drawn):
        parts.append(
            "Grey: the slopes of the best known rates against the worst nature, logarithms included."
        )
    return " ".join(filter(None, [*parts, left_out(curves)]))


def _draw(axis: Axes, frame: SlopeFrame) -> None:
    """Slopes over rates and fitted exponents."""
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
        colour = here.style(line.style).colour
        if line.fitted is not None and line.fitted.clear:
            axis.fill_between(
                line.span, line.fitted.lower, line.fitted.upper, color=colour, alpha=0.15, linewidth=0
            )
            axis.hlines(line.fitted.value, *line.span, color=colour, linewidth=0.9, alpha=0.8, zorder=1.5)
        # At the geometric mean of the two T, forecasters a little beside each other.
        share = 0.5 + 0.3 * ((k + 0.5) / many - 0.5)
        at = line.first ** (1.0 - share) * line.last**share
        axis.hlines(line.value, line.first, line.last, color=colour, linewidth=0.9, zorder=2.0)
        axis.vlines(at, line.lower, line.upper, color=colour, linewidth=1.1, zorder=2.0)
        axis.plot(at, line.value, color=colour, marker=here.style(line.style).marker, markersize=4.5,
                  linestyle="none", zorder=2.1)  # fmt: skip
    plain(axis)
    left, right = axis.get_xlim()
    if right / left < 30:
        axis.xaxis.set_major_locator(LogLocator(base=10.0, subs=(1.0, 2.0, 5.0), numticks=12))
        axis.xaxis.set_major_formatter(FuncFormatter(tick))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_formatter(FuncFormatter(tick))
