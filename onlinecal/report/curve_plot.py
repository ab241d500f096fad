"""Curves of totals against T: the picture of `curves_table`, also for late outcomes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import offset_copy

from onlinecal.core.validation import number
from onlinecal.core.words import counted
from onlinecal.growth import WIDE
from onlinecal.growth.words import UNCLEAR, literal
from onlinecal.report.frames import BAND, curves_table, games, headings
from onlinecal.report.panels import Panels, Picture, Place, names_of, pictured
from onlinecal.report.style import GREY, Dashes, entry, least_power, letters, log_ticks, paper, tick, typeset
from onlinecal.study.curves import Curve, left_out

#: the most markers of a curve: enough to tell it apart in grey
MARKED = 12
#: lines of proven bounds and of proven rates
LINES: Mapping[str, Dashes] = {"bound": (0, (5, 2)), "rate": (0, (1, 1.5))}
#: marks in the order in which they are drawn, above the best known rates
ORDER = ("mean", "bound", "rate", "up", "down", "absent")
#: inches of an exponent in a legend, and of an interval
EXPONENT, INTERVAL = 0.63, 1.3
#: more curves in a panel have names at their ends, or the numbers of a legend; inches of each
MANY, ROW = 12, 0.115


@pictured
def plot_curves(curves: Sequence[Curve], *, power: float = 0.0) -> Picture:
    """Totals against T on logarithmic axes: natures down, measures across, a colour, marker and dashes a forecaster.

    Lines are means over runs, bands their 5th to 95th percentile. Dashed are proven bounds, dotted
    proven rates; those of the nature have the colour of the text. Grey are the best known rates. Where a mean is
    negative the vertical axis is linear around 0. Means without a place are words in the legend, and arrows.

    Parameters
    ----------
    curves : sequence of Curve
        At least one.
    power : float, default 0
        Everything is divided by T^power, from −4 to 4: 2/3 shows whether an ECE grows faster than the best known upper
        rate.

    Returns
    -------
    (natures, measures) array of Axes
        Axes of a new figure are hidden where a measure was not taken.
    """
    power = number("curves", "power", power, -4.0, 4.0)
    table = curves_table(curves)
    said = sentences(curves, table)
    if power:
        ends = ["total", "lower", "upper"]
        table[ends] = table[ends].div(table["T"] ** power, axis=0)
        said.append(
            f"Totals, bounds and rates are divided by T^{power:.3g}; exponents are those of the totals."
        )
    by = f" / $T^{{{power:.3g}}}$" if power else ""
    return of_curves(
        table, " ".join(said), words="natures × measures", row="nature", column="measure", heading=headings(curves),
        labels=("T", f"total T·μ{by}"), named=len(table.groupby(["nature", "measure"])) == 1,
    )  # fmt: skip


def of_curves(
    table: pd.DataFrame, caption: str, *, named: bool, dotted: str = "proven rate", **options: Any
) -> Picture:
    """A picture of such a table; with `named` each panel has a legend of names, else the figure.

    Panels without negative totals have the same limits. `dotted` says what dotted lines are.
    """
    colours = options.get("colours")

    def more() -> list[Line2D]:
        ink, there = paper().ink, set(table["mark"])
        words = {"bound": "proven bound", "rate": dotted}
        found = [
            Line2D([], [], color=ink, linewidth=1.0, linestyle=dashes, label=words[kind])
            for kind, dashes in LINES.items() if kind in there
        ]  # fmt: skip
        if "known" in there:
            found.append(Line2D([], [], color=GREY, alpha=0.4, linewidth=7, label="best known rates"))
        return found

    def after(axis: Axes, rows: pd.DataFrame, place: Place) -> None:
        draw_curves(axis, rows, colours, side=place.side, named=named or not place.new)

    def together(panels: Panels) -> None:
        drawn = [axis for axis in panels.flat if any(len(line.get_xdata()) for line in axis.lines)]
        _same_limits([axis for axis in drawn if axis.get_yscale() == "log"], table)

    drawn = table[table["mark"] == "mean"]
    most = int(drawn.groupby(["nature", "measure"])["part"].nunique().max()) if len(drawn) else 0
    places = {} if named else names_of(drawn)
    if most > MANY:
        places = {f"{place + 1}  {name}": place for name, place in places.items()}
        options |= {"low": ROW * most, "wide": (2.8, 4.1) if named else (1.0, 4.7)}
    return Picture(
        table=table, caption=caption, x="T", y="total", after=after, together=together,
        beside=lambda rows, side: 0.15 * _legend(rows, side, named=named)[1], names=places,
        look={"markersize": 4, "linewidth": 1.5}, more=tuple if named else more, **options,
    )  # fmt: skip


def _same_limits(panels: Sequence[Axes], table: pd.DataFrame) -> None:
    """The same limits for all, from means and bounds: a band that reaches down to 0 would stretch them without end."""
    own = table[(table["negative"] == 0) & np.isfinite(table["total"])]
    if own.empty:
        return
    heights, times = own["total"], own["T"]
    least, most = float(times.min()), float(times.max())
    for axis in panels:
        axis.set_ylim(heights.min() / 1.8, heights.max() * 1.8)
        if least < most:
            axis.set_xlim(least * (least / most) ** 0.05, most * (most / least) ** 0.05)
        log_ticks(axis.xaxis, axis.yaxis)


def sentences(curves: Sequence[Curve], table: pd.DataFrame | None = None) -> list[str]:
    """The caption of curves, a sentence for each thing."""
    table = curves_table(curves) if table is None else table
    kinds, several = set(table["mark"]), table["measure"].nunique() > 1
    wide, one = (
        table["label"].str.contains(UNCLEAR, regex=False),
        "the last two decades of the rounds of one game",
    )
    told = table[wide | table["exponent"].notna()]
    which = "these T" if not told["cut"].any() else one if told["cut"].all() else f"these T, or {one}"
    proved: dict[str, dict[str, None]] = {}
    bounds = table[table["mark"].isin(LINES)]
    for of, against, label in bounds[["symbol", "against", "label"]].itertuples(index=False):
        if against:
            proved.setdefault(against, {})[f"{of} " * several + label] = None
    found = [
        games(curves),
        *of_runs({curve.totals.shape[1] for curve in curves}, any(len(curve.rounds) > 1 for curve in curves)),
        f"Exponent: mean growth over {which}." * len(told[:1]),
        f"T^?: its interval, beside it, is wider than {WIDE:g}; more horizons or runs narrow it."
        * bool(wide.any()),
        left_out(curves),
        "Dashed: proven bound." * ("bound" in kinds),
        "Dotted: proven rate, drawn through the first point of its curve, or of the lowest curve where the nature "
        "forces it." * ("rate" in kinds),
        *(f"Proved against {against}: {'; '.join(labels)}." for against, labels in proved.items()),
        "In the colour of the text: what the nature forces." * bool((bounds["place"] < 0).any()),
        "Grey: best known rates against the worst nature, slopes without a constant, drawn from half the lowest curve "
        "at the first T." * ("known" in kinds),
        *edges(table),
    ]
    return [each for each in found if each]


def of_runs(runs: set[int], joined: bool, given: str = "") -> list[str]:
    """Sentences of a caption on lines, or points, and bands."""
    band = f"Band: {BAND[0]:.0f}th to {BAND[1]:.0f}th percentile of the runs{given}."
    return [
        f"{'Line' if joined else 'Point'}: mean of {counted(runs)}.",
        *[band] * (joined and max(runs) > 1),
    ]


def edges(table: pd.DataFrame) -> list[str]:
    """Sentences of a caption on arrows at the edges, and on axes with negative totals."""
    kinds = set(table["mark"])
    return [
        *["Arrow at the upper edge: infinite."] * ("up" in kinds),
        *["Arrow at the lower edge: 0."] * ("down" in kinds),
        *["Where totals are negative the vertical axis is linear around 0, between its innermost marks."]
        * bool(table["negative"].any()),
    ]


def draw_curves(
    axis: Any, rows: pd.DataFrame, colours: Sequence[str] | None, *, side: float, named: bool
) -> None:
    """Curves in their axes, with their legend below."""
    here, entries = paper(axis), []
    across, _ = _legend(rows, side, named=named)
    width = letters(side / _legend(rows, side, named=True)[0], 7) - 6
    axis.set_xscale("log")
    means = rows[rows["mark"] == "mean"]
    if negative := bool(rows["negative"].any()):
        sizes = means["total"].abs()
        axis.set_yscale("symlog", linthresh=least_power(sizes[sizes > 0]))
        axis.axhline(0.0, color=GREY, linewidth=0.8, zorder=0.8)
    else:
        axis.set_yscale("log")
    known = [each for _, each in rows[rows["mark"] == "known"].groupby("part")]
    many = means["part"].nunique() > MANY
    _draw_known(axis, known, labelled=not many)
    arrows, ends = 0, [(rate, typeset(rate["label"].iloc[0]), here.faint, "None") for rate in known]
    lines = [(kind, line) for kind in ORDER for _, line in rows[rows["mark"] == kind].groupby("part")]
    for kind, line in lines:
        place, x, y = int(line["place"].iloc[0]), line["T"].to_numpy(), line["total"].to_numpy()
        style, said = here.style(max(place, 0)), line["label"].iloc[0]
        colour = style.colour if colours is None else colours[place % len(colours)]
        look: dict[str, Any] = {"color": colour, "marker": style.marker, "linestyle": style.dashes}
        if kind == "mean":
            label = label_of(line.iloc[0], named=named)
            if many:
                number = "" if named else f"{place + 1}  "
                ends.append((line, number + " ".join(label.split("\n")), colour, style.marker))
                label = ""
            axis.fill_between(x, line["lower"], line["upper"], color=colour, alpha=0.18, linewidth=0)
            entries += axis.plot(x, y, **look, markersize=3.5, markevery=max(1, -(-len(x) // MARKED)), linewidth=1.5,
                                 label=entry(label, width) if label else "_")  # fmt: skip
            # A point between two gaps is no line, and may have no marker.
            gap = np.concatenate([[True], np.isnan(y), [True]])
            lonely = ~gap[1:-1] & gap[:-2] & gap[2:]
            if lonely.any() and len(x) > MARKED:
                axis.plot(x[lonely], y[lonely], color=colour, marker=".", linestyle="none")
        elif kind in LINES:
            single = len(x) == 1
            if place < 0:
                look = {"color": here.ink}
            # At its end a bound has the marker of its curve, hollow, for a print in grey. A single point is no line.
            look |= {"linestyle": LINES[kind]} | ({"marker": "_"} if single else {})
            drawn = axis.plot(x, y, **look, linewidth=1.0, markevery=[len(x) - 1], markersize=12 if single else 4,
                              fillstyle="full" if single else "none", label=typeset(entry(said, width)))  # fmt: skip
            entries += drawn * named
        elif kind in ("up", "down"):
            # Within the axes and one above the other, so that arrows of several curves are told apart.
            height = 0.97 - 0.045 * arrows if kind == "up" else 0.03 + 0.045 * arrows
            arrows += 1
            axis.plot(x, np.full(len(x), height), color=colour, linestyle="none", markersize=6,
                      marker=CARETUPBASE if kind == "up" else CARETDOWNBASE,
                      transform=axis.get_xaxis_transform())  # fmt: skip
        else:
            entries += axis.plot(
                [], [], **look | {"linestyle": "none"}, markersize=3.5, label=entry(said, width)
            )
    if many:
        _label_ends(axis, ends)
    log_ticks(axis.xaxis, *[axis.yaxis] * (not negative))
    if negative:
        axis.yaxis.set_major_formatter(FuncFormatter(tick))
    axis.tick_params(labelleft=True)
    shown = [line for line in entries if not str(line.get_label()).startswith("_")]
    if shown:
        # Below the axes, where no curve is, and below the name of the horizontal one.
        below = offset_copy(axis.transAxes, axis.get_figure(root=True), y=-27.0, units="points")
        axis.legend(
            handles=shown, fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(-0.02, 0.0),
            bbox_transform=below, ncols=across, handlelength=2.2 if named else 1.6, columnspacing=1.2 if named else 0.7,
            borderaxespad=0.2, labelspacing=0.35, handletextpad=0.8 if named else 0.4,
        )  # fmt: skip


def label_of(row: Any, *, named: bool = True) -> str:
    """The entry of a curve in a legend, as matplotlib reads it: with its name, or exponent and notes alone."""
    notes = row["label"]
    between = "  " if notes.startswith("$") else "; " if notes else ""
    return literal(row["forecaster"]) + between + notes if named else notes


def _legend(rows: pd.DataFrame, side: float, *, named: bool) -> tuple[int, int]:
    """The numbers of columns and of lines of the legend of a panel; without names it has no bounds.

    As many columns as fit of exponents or intervals alone, else two if there is room for them.
    """
    every = rows.drop_duplicates("part")
    means = every[every["mark"] == "mean"]
    labels = [label_of(row, named=named) for _, row in means.iterrows()] if len(means) <= MANY else []
    labels += [*every["label"][(every["mark"] == "absent") | (named & every["mark"].isin(LINES))]]
    labels = [label for label in labels if label]
    exponents = all(re.fullmatch(r"\$T\^\{[\d.…?-]+\}\$(\xa0\[.+\])?", label) for label in labels)
    each = INTERVAL if any(UNCLEAR in label for label in labels) else EXPONENT
    columns = max(1, int(side / each)) if exponents else 1 if side < 2.0 else 2
    width = letters(side / columns, 7) - 6
    lines = [entry(label, width).count("\n") + 1 for label in labels]
    deep = max(-(-len(lines) // columns), 1)
    return columns, max((sum(lines[i : i + deep]) for i in range(0, len(lines), deep)), default=0)


def _label_ends(axis: Axes, lines: Sequence[tuple[pd.DataFrame, str, str, str]]) -> None:
    """Labels to the right of the axes, in the order of the ends and evenly apart, with lines to them."""
    ends = [(line[np.isfinite(line["total"])], *look) for line, *look in lines]
    shown = sorted((*end[["total", "T"]].iloc[-1], *look) for end, *look in ends if len(end))
    for i, (total, at, text, colour, marker) in enumerate(shown):
        height, look = (i + 0.5) / len(shown), {"arrowstyle": "-", "color": colour, "linewidth": 0.7}
        axis.annotate("", (at, total), (1.1, height), textcoords=axis.transAxes, annotation_clip=False,
                      arrowprops=look | {"shrinkA": 0.0, "shrinkB": 0.0})  # fmt: skip
        axis.plot(1.1, height, color=colour, marker=marker, markersize=3.5, transform=axis.transAxes,
                  clip_on=False)  # fmt: skip
        axis.text(1.12, height, text, va="center_baseline", fontsize=6.5, transform=axis.transAxes)


def _draw_known(axis: Any, rates: Sequence[pd.DataFrame], *, labelled: bool) -> None:
    """Behind the curves, labelled to the right of the axes: the lower one from below, so that they never meet."""
    if len(rates) == 2:
        low, high = rates
        axis.fill_between(
            low["T"], low["total"], high["total"], color=GREY, alpha=0.15, linewidth=0, zorder=0.9
        )
    for rate, side in zip(rates, ["top", "bottom"] if len(rates) == 2 else ["center"], strict=False):
        axis.plot(rate["T"], rate["total"], color=GREY, linewidth=0.8, zorder=1.0)
        if not labelled:
            continue
        axis.annotate(
            typeset(rate["label"].iloc[0]), (rate["T"].iloc[-1], rate["total"].iloc[-1]), (8, 0),
            textcoords="offset points", va=side, fontsize=7, color=paper(axis).faint,
        )  # fmt: skip
