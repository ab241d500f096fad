"""Totals against T, single runs, and local slopes: tables of curves, then pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
from matplotlib.collections import FillBetweenPolyCollection, LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import offset_copy

from onlinecal.core.arrays import Floats
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import choice, number
from onlinecal.growth import slope
from onlinecal.growth.rates import best_known
from onlinecal.report.facets import Look, facets, name_of, need_curves, stacked, wrapped
from onlinecal.report.frames import EMPTY, Part, by_pair, curve_parts, facts, panel_of, places
from onlinecal.report.style import GREY, ink, least_power, look, tick, ticks, typeset
from onlinecal.study.curves import Curve

#: markers of a curve, at most; curves with names below a panel, at most
MARKED, MANY = 12, 12
#: lines of proven bounds and of proven rates
BOUND: Any = {"linewidth": 1.0, "linestyle": (0, (5, 2))}
RATE: Any = {"linewidth": 1.0, "linestyle": (0, (1, 1.5))}
#: the error of each group, beside that of the worst
GROUP: Any = {"linewidth": 0.6, "alpha": 0.7}
WORST = "multi_ece"
#: what a nature forces: below the curves and wider than they are, so that it hides none
FORCED: Any = {"color": GREY, "alpha": 0.35, "linewidth": 6.0, "solid_capstyle": "butt"}
CURVES = (
    "Line: mean over runs; band: 5th to 95th percentile. T to a power: mean growth exponent over these T; T^?, with "
    "its 95 % interval, where wide: more T or runs narrow it. Bounds are proved for each forecaster; rates begin at a "
    "first point. Best known rates are slopes against the worst nature. Arrows: infinite, or 0."
)


def plot_curves(
    curves: Sequence[Curve], *, groups: Sequence[Curve] = (), power: float = 0.0, **look: Unpack[Look]
) -> Figure:
    """Totals against T on logarithmic axes: natures down, measures across, a colour, marker and dashes a forecaster.

    Where a mean is negative the vertical axis is linear around 0. Means that are infinite or 0 are arrows.

    Parameters
    ----------
    curves : sequence of Curve
        At least one.
    groups : sequence of Curve, optional
        Of an error of each group, such as ``ece @ odd``: thin lines in the panels of `multi_ece`.
    power : float, default 0
        Everything is divided by T^power, from −4 to 4: 2/3 shows whether an ECE grows faster than the best known upper
        rate.
    **look
        See `Look`.
    """
    parts = curve_parts(need_curves("curves", curves))
    table = stacked([*parts, *_of_groups(curves, groups, len(parts))])
    power = number("curves", "power", power, -4.0, 4.0)
    if power:
        ends = ["total", "lower", "upper"]
        table[ends] = table[ends].div(table["T"] ** power, axis=0)
    return of_curves(
        table, CURVES, row="nature", column="measure", facts=facts(curves),
        labels=("T", "total T·μ" + f" / $T^{{{power:.3g}}}$" * bool(power)), **look,
    )  # fmt: skip


def _of_groups(curves: Sequence[Curve], groups: Sequence[Curve], parts: int) -> Iterator[Part]:
    """The means of groups, in the panels of the worst one."""
    panels, styles = {curve.nature for curve in curves if curve.measure == WORST}, places([*curves, *groups])
    for i, curve in enumerate(curve for curve in groups if curve.nature in panels):
        yield EMPTY | panel_of(replace(curve, column=Column("measure", WORST))) | {
            "mark": "group", "part": parts + i, "forecaster": curve.forecaster, "place": styles[curve.forecaster],
            "negative": False, "T": curve.rounds, "total": np.where(curve.mean > 0, curve.mean, np.nan),
        }  # fmt: skip


def of_curves(table: pd.DataFrame, words: str, *, rate: str = "proven rate", **options: Any) -> Figure:
    """A picture of such a table; `rate` says what dotted lines are, `colours` are by place."""
    colours = options.pop("colours", None)
    panel = [options["row"], options["column"]]
    entries = table[table["mark"].isin(["mean", "absent"])].drop_duplicates([*panel, "forecaster"])
    most, alone = int(entries.groupby(panel).size().max()), table.groupby(panel).ngroups == 1
    there = {(kind, place < 0) for kind, place in zip(table["mark"], table["place"], strict=True)}

    def legend() -> list[Line2D]:
        kinds = {
            ("bound", False): ("proven upper bound", {"color": ink()} | BOUND),
            ("bound", True): ("proven lower bound", FORCED),
            ("rate", False): (rate, {"color": ink()} | RATE),
            ("rate", True): (f"{rate}, forced" if ("rate", False) in there else rate, {"color": GREY} | RATE),
            ("group", False): ("each group", {"color": ink()} | GROUP),
            ("known", True): ("best known rates", {"color": GREY, "alpha": 0.4, "linewidth": 0.8}),
        }
        return [Line2D([], [], label=label, **how) for kind, (label, how) in kinds.items() if kind in there]

    # A legend takes a line for a name, or some for each that is wide. A single panel has the bounds in it.
    letters = entries["forecaster"].str.len() + entries["label"].str.len()
    lines = np.ceil(letters / 40).groupby([entries[name] for name in panel]).sum().max()
    deep = 0.0 if most > MANY else 0.15 * lines * (2 if alone else 1)
    return facets(
        table, lambda axis, part: draw_curves(axis, part, colours, most <= MANY), words,
        names="forecaster" if most > MANY else "", legend=legend,
        panel=(4.2 if alone else 3.3, 2.5 + deep), share=False if table["negative"].any() else "row",
        **options,
    )  # fmt: skip


def draw_curves(axis: Any, part: pd.DataFrame, colours: Sequence[str] | None, named: bool) -> None:
    """Curves in their axes, `named` by a legend below; bounds are named where the axes are alone."""
    means = part[part["mark"] == "mean"]
    negative, alone = bool(part["negative"].any()), len(axis.figure.axes) == 1
    axis.set(xscale="log", yscale="log")
    if negative:
        sizes = means["total"].abs()
        axis.set_yscale("symlog", linthresh=least_power(sizes[sizes > 0]))
        axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=0.8)
    _draw_known(axis, [line for _, line in part[part["mark"] == "known"].groupby("part")])
    # Of small letters, beside the sample of a line.
    letters = 19.0 * axis.get_window_extent().width / axis.figure.dpi - 8.0
    entries, arrows = [], 0
    for _, line in part[part["mark"] != "known"].groupby("part"):
        kind, place = line["mark"].iloc[0], int(line["place"].iloc[0])
        own = look(max(place, 0)) | ({} if colours is None else {"color": colours[place % len(colours)]})
        x, y, label = line["T"].to_numpy(), line["total"].to_numpy(), line["label"].iloc[0]
        if kind == "mean":
            said = wrapped(f"{name_of(line['forecaster'].iloc[0])}  {label}".rstrip(), letters)
            # A band that reaches down to 0 would stretch logarithmic axes without end.
            band = FillBetweenPolyCollection(
                "x", x, line["lower"], line["upper"], color=own["color"], alpha=0.18, lw=0
            )
            axis.add_collection(band, autolim=False)
            entries += axis.plot(x, y, markevery=max(1, -(-len(x) // MARKED)), label=said, **own)
        elif kind in ("bound", "rate"):
            how = {"color": own["color"]} | (BOUND if kind == "bound" else RATE)
            if place < 0:
                how = FORCED if kind == "bound" else {"color": GREY} | RATE
            marker = {"marker": "_", "markersize": 12} if len(x) == 1 else {}
            drawn = axis.plot(
                x,
                y,
                zorder=1.5 if place < 0 else 1.9,
                label=typeset(wrapped(label, letters)),
                **how,
                **marker,
            )
            entries += drawn * alone
        elif kind == "group":
            axis.plot(x, y, color=own["color"], zorder=1.8, **GROUP)
        elif kind in ("up", "down"):
            up = kind == "up"
            height, arrows = (0.97 - 0.045 * arrows if up else 0.03 + 0.045 * arrows), arrows + 1
            axis.plot(x, np.full(len(x), height), color=own["color"], linestyle="none", markersize=6,
                      marker=CARETUPBASE if up else CARETDOWNBASE, transform=axis.get_xaxis_transform())  # fmt: skip
        else:
            entries += axis.plot([], [], label=wrapped(label, letters), **own | {"linestyle": "none"})
    ticks(axis.xaxis, *[axis.yaxis] * (not negative))
    if negative:
        axis.yaxis.set_major_formatter(FuncFormatter(tick))
    if named and entries:
        below = offset_copy(axis.transAxes, axis.get_figure(root=True), y=-26.0, units="points")
        axis.legend(handles=entries, loc="upper left", bbox_to_anchor=(-0.02, 0.0), bbox_transform=below,
                    handlelength=2.0, columnspacing=1.0, borderaxespad=0.2)  # fmt: skip


def _draw_known(axis: Any, rates: Sequence[pd.DataFrame]) -> None:
    """Behind the curves, named beside the axes: the lower one from below, so that names never meet."""
    if len(rates) == 2:
        low, high = rates
        axis.fill_between(
            low["T"], low["total"], high["total"], color=GREY, alpha=0.15, linewidth=0, zorder=0.9
        )
    for rate, side in zip(rates, ["top", "bottom"] if len(rates) == 2 else ["center"], strict=False):
        axis.plot(rate["T"], rate["total"], color=GREY, linewidth=0.8, zorder=1.0)
        axis.annotate(typeset(rate["label"].iloc[0]), (rate["T"].iloc[-1], rate["total"].iloc[-1]), (6, 0), fontsize=7,
                      textcoords="offset points", va=side, color=GREY)  # fmt: skip


# ---------------------------------------------------------------- single runs

RUNS = (
    "Thin lines: single runs of one game. Small points: single runs, which at different T are different games. Thick "
    "line with large points: mean over the runs. What is infinite, or 0 on a logarithmic axis, is not drawn."
)


def runs_table(curves: Sequence[Curve], *, scale: Literal["log", "linear"] = "log") -> pd.DataFrame:
    """Totals of single runs and their mean; NaN where one has no place on the axis of this scale.

    A "run" is one game, and a line; of games at several T each total is a "point".
    """
    choice("runs", "scale", scale, ("log", "linear"))
    styles, parts = places(need_curves("runs", curves)), list[Mapping[str, Any]]()
    for mine in by_pair(curves):
        finite = np.concatenate([curve.totals[np.isfinite(curve.totals)] for curve in mine])
        own = "log" if scale == "log" and (finite >= 0).all() and (finite > 0).any() else "linear"
        for c in mine:
            (steps, runs), line = c.totals.shape, not c.fresh and len(c.rounds) > 1
            each = panel_of(c) | {
                "forecaster": c.forecaster, "place": styles[c.forecaster], "scale": own, "runs": runs,
            }  # fmt: skip
            run = np.repeat(np.arange(runs), steps)
            for kind, at, values, which in (
                (
                    "run" if line else "point",
                    np.tile(c.rounds, runs),
                    c.totals.T.ravel(),
                    run if line else -1,
                ),
                ("mean", c.rounds, c.mean, -1),
            ):
                there = np.isfinite(values) & ((values > 0) | (own == "linear"))
                parts.append(
                    each | {"mark": kind, "run": which, "T": at, "total": np.where(there, values, np.nan)}
                )
    return stacked(parts)


def plot_runs(
    curves: Sequence[Curve], *, scale: Literal["log", "linear"] = "log", **look: Unpack[Look]
) -> Figure:
    """The totals of every single run against T, thin, and their mean: natures down, measures across.

    Parameters
    ----------
    curves : sequence of Curve
        At least one.
    scale : {"log", "linear"}, default "log"
        Of both axes; where totals are negative the vertical one is linear.
    **look
        See `Look`.
    """
    table = runs_table(curves, scale=scale)
    return facets(
        table, lambda axis, part: _draw_runs(axis, part, scale), RUNS, row="nature", column="measure",
        facts=facts(curves), labels=("T", "total T·μ"),
        names="forecaster", share="row" if table["scale"].nunique() == 1 else False, **look,
    )  # fmt: skip


def _draw_runs(axis: Any, part: pd.DataFrame, scale: str) -> None:
    own = part["scale"].iloc[0]
    axis.set(xscale=scale, yscale=own)
    if own == "linear":
        axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=0.8)
    faint = float(np.clip(4.0 / part["runs"].iloc[0], 0.15, 0.6))
    for (place, kind), mine in part.groupby(["place", "mark"]):
        style = look(place)
        if kind == "mean":
            axis.plot(mine["T"], mine["total"], linewidth=2.0, markeredgecolor=axis.get_facecolor(), zorder=2.1,
                      markeredgewidth=0.4, markevery=max(1, -(-len(mine) // MARKED)), **style)  # fmt: skip
        elif kind == "run":
            lines = mine.pivot(index="T", columns="run", values="total")
            axis.plot(lines.index, lines, color=style["color"], linewidth=0.6, alpha=faint, zorder=1.5)
        else:
            axis.plot(mine["T"], mine["total"], ".", color=style["color"], markersize=4, markeredgewidth=0,
                      alpha=min(1.0, 2 * faint), zorder=1.5)  # fmt: skip
    ticks(axis.xaxis, axis.yaxis)


# ---------------------------------------------------------------- local slopes

SLOPES = (
    "Point, with the level line through it: slope of log mean total in log T between two neighbouring T; vertical "
    "line: its 95 % interval, each on its own. Long level line and band: mean growth exponent and its 95 % interval. "
    "Grey: slopes of the best known rates against the worst nature."
)


def local_slopes(curve: Curve) -> tuple[Floats, Floats, Floats]:
    """Slopes of log(mean total) in log T between neighbouring T, and the ends of 95 % intervals; NaN for none.

    By the jackknife's variance over the runs: 93 % or more for 95 %, of 8 runs with a coefficient of variation ≤ 1/2.
    """
    pairs = [slice(i, i + 2) for i in range(len(curve.rounds) - 1)]
    found = [slope(curve.rounds[pair], curve.totals[pair], fresh=curve.fresh) for pair in pairs]
    value, lower, upper = np.reshape(found, (-1, 3)).T
    known = np.isfinite(upper) & (not curve.recorded)
    return value, np.where(known, lower, np.nan), np.where(known, upper, np.nan)


def slopes_table(curves: Sequence[Curve]) -> pd.DataFrame:
    """Slopes between the T at `left` and `right`, exponents that are clear ("fitted"), and slopes of known rates."""
    usable = [curve for curve in need_curves("slopes", curves) if len(curve.rounds) > 1]
    if not usable:
        raise InvalidParameter("no curve with two T or more; expected several horizons or checkpoints")
    styles, parts = places(curves), list[dict[str, Any]]()
    for mine in by_pair(usable):
        frame = panel_of(mine[0])
        tuned = [curve.rounds for curve in mine if curve.fresh and curve.open is None]
        t = np.unique(np.concatenate(tuned)).astype(np.float64) if tuned else np.zeros(0)
        for k, rate in enumerate(best_known(mine[0].column) if len(t) > 1 else ()):
            slopes = np.diff(np.log(rate.at(t))) / np.diff(np.log(t))
            parts.append(frame | {
                "mark": "rate", "label": str(rate), "place": k, "T": np.r_[t[0], np.sqrt(t[:-1] * t[1:]), t[-1]],
                "slope": np.r_[slopes[0], slopes, slopes[-1]],
            })  # fmt: skip
        for k, c in enumerate(mine):
            own = frame | {"forecaster": c.forecaster, "place": styles[c.forecaster]}
            found = c.exponent()
            if found is not None and found.clear:
                span = np.array([c.tail.rounds[0], c.tail.rounds[-1]])
                ends = {"lower": found.lower, "upper": found.upper}
                parts.append(own | {"mark": "fitted", "T": span, "slope": found.value} | ends)
            # At the geometric mean of the two T, forecasters a little beside each other.
            share = 0.5 + 0.3 * ((k + 0.5) / len(mine) - 0.5)
            value, lower, upper = local_slopes(c)
            left, right = c.rounds[:-1].astype(np.float64), c.rounds[1:].astype(np.float64)
            parts.append(own | {
                "mark": "slope", "T": left ** (1.0 - share) * right**share, "slope": value, "lower": lower,
                "upper": upper, "left": left, "right": right,
            })  # fmt: skip
    return stacked(parts)


def plot_slopes(curves: Sequence[Curve], **look: Unpack[Look]) -> Figure:
    """Slopes of totals between neighbouring T, beside the exponent fitted to all and the best known rates.

    Parameters
    ----------
    curves : sequence of Curve
        At least one with two T.
    **look
        See `Look`.
    """
    return facets(
        slopes_table(curves), _draw_slopes, SLOPES, row="nature", column="measure",
        facts=facts(curves), labels=("T", "local slope"),
        names="forecaster", style={"linestyle": "-"}, **look,
    )  # fmt: skip


def _draw_slopes(axis: Any, part: pd.DataFrame) -> None:
    axis.set_xscale("log")
    rates = [mine for _, mine in part[part["mark"] == "rate"].groupby("place")]
    for k, mine in enumerate(rates):
        end = mine.iloc[-1]
        axis.plot(mine["T"], mine["slope"], color=GREY, linewidth=0.9, zorder=1.0)
        side = "center" if len(rates) == 1 else "bottom" if k else "top"
        axis.annotate(typeset(end["label"]), (end["T"], end["slope"]), (6, 0), textcoords="offset points", va=side,
                      fontsize=7, color=GREY)  # fmt: skip
    for (kind, place), mine in part[part["mark"] != "rate"].groupby(["mark", "place"]):
        style = look(place)
        colour = style["color"]
        if kind == "fitted":
            axis.fill_between(mine["T"], mine["lower"], mine["upper"], color=colour, alpha=0.15, linewidth=0)
            axis.plot(mine["T"], mine["slope"], color=colour, linewidth=0.9, alpha=0.8, zorder=1.5)
            continue
        axis.hlines(mine["slope"], mine["left"], mine["right"], color=colour, linewidth=0.9, zorder=2.0)
        axis.plot(mine["T"], mine["slope"], **style | {"linestyle": "none"}, zorder=2.1)
        # Intervals of few runs do not make the slopes flat: limits are those of the slopes.
        bars = [
            [(t, low), (t, high)] for t, low, high in mine[["T", "lower", "upper"]].itertuples(index=False)
        ]
        axis.add_collection(LineCollection(bars, colors=colour, linewidths=1.1, zorder=2.0), autolim=False)
    ticks(axis.xaxis)
