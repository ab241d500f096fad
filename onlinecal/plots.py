"""Curves as figures: first what is drawn, as plain data, then the drawing."""

from __future__ import annotations

import contextlib
import io
import os
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter
from numpy.typing import NDArray

from onlinecal.errors import InvalidParameter
from onlinecal.growth import Growth, simultaneous
from onlinecal.growth.words import raised
from onlinecal.rates import best_known
from onlinecal.study.curves import Curve

Floats = NDArray[np.float64]

GREY = "#8C8C8C"
#: of what a nature forces, which is no best known rate
BLACK = "#000000"
#: told apart with every common colour blindness (Okabe and Ito 2008), without the yellow that paper swallows
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#4D4D4D", "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: of the axes, in inches
WIDTH = 3.4
BAND = (5.0, 95.0)
FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class Line:
    """One curve as it is drawn.

    Attributes
    ----------
    label : str
        Forecaster and exponent, where that is clear.
    style : int
        Which colour and marker.
    rounds, mean, low, high : (n,) arrays
        Where the mean is positive: a logarithmic axis has no zero.
    exponent : Growth or None
    fresh : bool
        Whether each T is a game of its own.
    """

    label: str
    style: int
    rounds: NDArray[np.int64]
    mean: Floats
    low: Floats
    high: Floats
    exponent: Growth | None
    fresh: bool


@dataclass(frozen=True)
class Bound:
    """A guarantee as it is drawn: a rate is anchored at the curve's first point."""

    label: str
    style: int | None
    rounds: Floats
    values: Floats
    exact: bool


@dataclass(frozen=True)
class Reference:
    """A best known rate of a measure as it is drawn: a slope, since it has no constant.

    Attributes
    ----------
    label : str
        Ω, O, or Θ where the two are one.
    rounds, values : (n,) arrays
        Starts at half the lowest curve at the first T that is drawn, where there is room.
    """

    label: str
    rounds: NDArray[np.int64]
    values: Floats


@dataclass
class Frame:
    """One pair of axes: a measure against one nature."""

    nature: str
    measure: str
    lines: list[Line] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)


def frames(curves: Sequence[Curve]) -> list[Frame]:
    """What `figure` draws, one frame for each nature and measure, in the order of the curves."""
    styles = {name: i for i, name in enumerate(dict.fromkeys(curve.forecaster for curve in curves))}
    result: dict[tuple[str, str], Frame] = {}
    for curve in curves:
        frame = result.setdefault((curve.nature, curve.measure), Frame(curve.nature, curve.measure))
        style = styles[curve.forecaster]
        mean = curve.mean
        shown = np.isfinite(mean) & (mean > 0)
        if not shown.any():
            frame.silent.append(curve.forecaster)
            continue
        exponent = curve.exponent(simultaneous(len(curves)))
        low, high = np.percentile(curve.totals[shown], BAND, axis=1)
        slope = f"  $T^{{{raised(exponent)}}}$" if exponent is not None and exponent.clear else ""
        frame.lines.append(
            Line(
                curve.forecaster + slope,
                style,
                curve.rounds[shown],
                mean[shown],
                low,
                high,
                exponent,
                curve.fresh,
            )
        )
        frame.bounds += _bounds(
            curve, style, float(curve.rounds[shown][0]), float(mean[shown][0]), frame.bounds
        )
    for frame in result.values():
        frame.references = _references(frame.measure, [line for line in frame.lines if line.fresh])
    return list(result.values())


def _references(measure: str, lines: Sequence[Line]) -> list[Reference]:
    """The best known rates beside the curves of fresh games; the prefixes of one game are not tuned to their T."""
    rounds = np.unique(np.concatenate([line.rounds for line in lines])) if lines else np.array([])
    if len(rounds) < 2:
        return []
    start = min(line.mean[0] for line in lines if line.rounds[0] == rounds[0]) / 2
    rates = best_known(measure)
    if len({rate.formula for rate in rates}) < len(rates):
        labels = [f"Θ({rates[0].formula})"]
    else:
        labels = [str(rate) for rate in rates]
    shapes = [rate.at(rounds) for rate in rates]
    return [
        Reference(label, rounds, start * shape / shape[0])
        for label, shape in zip(labels, shapes, strict=False)
    ]


def _bounds(curve: Curve, style: int, first: float, start: float, there: Sequence[Bound]) -> list[Bound]:
    """The guarantees on a curve, each kind once; those of the nature only once in a frame."""
    found: dict[tuple[str, str, bool], list[tuple[int, float]]] = {}
    for horizon, p in curve.promises:
        found.setdefault((p.formula, p.kind, p.upper), []).append((horizon, p.bound))
    result = []
    for (formula, kind, upper), points in found.items():
        x = np.array([t for t, _ in points], dtype=np.float64)
        y = np.array([bound for _, bound in points])
        exact = kind != "rate"
        if not exact and len(x) < 2:
            continue  # a rate says nothing at a single time
        if not exact:
            y = y * (start / y[0])
        elif not curve.fresh:
            # The bound at the horizon holds at every time before it.
            x, y = np.array([first, x[-1]]), np.array([y[-1], y[-1]])
        relation = ("≤" if upper else "≥") if exact else "∝"
        label = f"{relation} {formula}"
        if all(label != bound.label for bound in there) or upper:
            result.append(Bound(label, style if upper else None, x, y, exact))
    return result


def figure(curves: Sequence[Curve], *, title: str = "") -> Figure:
    """Totals against T on logarithmic axes: natures down, measures across, a colour a forecaster.

    Parameters
    ----------
    curves : sequence of Curve
        At least one.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
        The line is the mean over runs; the band runs from the 5th to the 95th percentile of the runs; dashed lines
        are proven bounds, dotted ones proven rates drawn through the curve's first point, black ones of what the nature
        forces. Grey, labelled at its end,
        is how fast the total of the best forecaster is known to grow against the worst nature: a slope, drawn from
        half the lowest curve at the first T.
    """
    if not curves:
        raise InvalidParameter("no curves to draw; expected at least one")
    drawn = frames(curves)
    natures = list(dict.fromkeys(frame.nature for frame in drawn))
    measures = list(dict.fromkeys(frame.measure for frame in drawn))
    rows, columns = len(natures), len(measures)
    heads = [max(_heading(frame, WIDTH).count("\n") for frame in drawn if frame.nature == n) for n in natures]
    high = 1.1 + 3.2 * rows + 0.17 * sum(heads)
    fig = Figure(figsize=(1.0 + 4.1 * columns, high), layout="constrained", dpi=150)
    axes = fig.subplots(rows, columns, sharex="row", sharey="row", squeeze=False)
    used = {(frame.nature, frame.measure) for frame in drawn}
    for i, nature in enumerate(natures):
        for j, measure in enumerate(measures):
            if (nature, measure) not in used:
                axes[i, j].set_visible(False)
    for frame in drawn:
        i, j = natures.index(frame.nature), measures.index(frame.measure)
        _draw(axes[i, j], frame)
        axes[i, j].set_title(_heading(frame, WIDTH), fontsize=10)
        if j == 0:
            axes[i, j].set_ylabel("total $T\\cdot\\mu$")
    for i, nature in enumerate(natures):
        # The means and bounds set the scale; a band that reaches down to 0 would stretch it without end.
        shown = [frame for frame in drawn if frame.nature == nature]
        heights = [v for frame in shown for line in frame.lines for v in line.mean]
        heights += [v for frame in shown for bound in frame.bounds for v in bound.values]
        heights += [v for frame in shown for reference in frame.references for v in reference.values]
        if heights:
            axes[i, 0].set_ylim(min(heights) / 1.8, max(heights) * 1.8)
    runs = sorted({curve.totals.shape[1] for curve in curves})
    wide = fig.get_figwidth()
    if title:
        fig.suptitle(_wrapped(title, wide, 12), fontsize=12)
    caption = _caption(runs, curves, drawn)
    fig.supxlabel(_wrapped(caption, wide, 7.5), fontsize=7.5, color="#444444")
    return fig


def _heading(frame: Frame, inches: float) -> str:
    """What stands above the axes; the nature on lines of its own where the whole does not fit."""
    whole = f"{frame.measure} against {frame.nature}"
    if "\n" not in _wrapped(whole, inches, 10):
        return whole
    return _wrapped(f"{frame.measure} against", inches, 10) + "\n" + _wrapped(frame.nature, inches, 10)


def _wrapped(text: str, inches: float, size: float) -> str:
    """In lines that fit: a letter is little more than half as wide as it is high."""
    return textwrap.fill(text, int(inches * 72 / (0.56 * size)))


def _caption(runs: list[int], curves: Sequence[Curve], drawn: Sequence[Frame]) -> str:
    several = "–".join(map(str, runs[:: max(len(runs) - 1, 1)]))
    times = "T: a fresh game each." if any(curve.fresh for curve in curves) else "T: rounds of one game."
    if any(curve.fresh and curve.recorded for curve in curves):
        times = "T: a game each, fresh but for the outcomes of a recorded stream."
    parts = [
        f"{times} Line: mean of {several} run{'s' if runs[-1] > 1 else ''}. Exponent: mean growth over "
        "these T, where that is clear; a…b: no power law, but these slopes over their first and last half."
    ]
    if runs[-1] > 1:
        parts.insert(1, f"Band: {BAND[0]:.0f}th to {BAND[1]:.0f}th percentile of the runs.")
    bounds = [bound for frame in drawn for bound in frame.bounds]
    if any(bound.exact for bound in bounds):
        parts.append("Dashed: proven bound.")
    if any(not bound.exact for bound in bounds):
        parts.append("Dotted: proven rate, drawn through the first point.")
    if any(bound.style is None for bound in bounds):
        parts.append("Black: what the nature forces.")
    if any(frame.references for frame in drawn):
        parts.append(
            "Grey: best known rates against the worst nature, slopes without a constant, drawn from half the lowest "
            "curve at the first T."
        )
    silent = sorted({f"{name} ({frame.measure})" for frame in drawn for name in frame.silent})
    if silent:
        parts.append(f"Always 0, not drawn: {', '.join(silent)}.")
    return " ".join(parts)


def _draw(axis: Any, frame: Frame) -> None:
    _draw_references(axis, frame.references)
    for line in frame.lines:
        colour = COLOURS[line.style % len(COLOURS)]
        marker = MARKERS[line.style % len(MARKERS)] if len(line.rounds) <= 20 else None
        axis.fill_between(line.rounds, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
        axis.plot(
            line.rounds,
            line.mean,
            color=colour,
            marker=marker,
            markersize=3.5,
            linewidth=1.5,
            label=line.label,
        )
    for bound in frame.bounds:
        colour = BLACK if bound.style is None else COLOURS[bound.style % len(COLOURS)]
        dashes = (0, (5, 2)) if bound.exact else (0, (1, 1.5))
        axis.plot(
            bound.rounds,
            bound.values,
            color=colour,
            linestyle=dashes,
            linewidth=1.0,
            label=typeset(bound.label),
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    for which, low, high in ((axis.xaxis, *axis.get_xlim()), (axis.yaxis, *axis.get_ylim())):
        # Less than a decade and a half would leave one label or none.
        narrow = high / low < 30
        which.set_major_locator(
            LogLocator(base=10.0, subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=12)
        )
        which.set_major_formatter(FuncFormatter(_tick) if narrow else LogFormatterSciNotation())
        which.set_minor_formatter(NullFormatter())
    axis.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8, labelleft=True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    if frame.lines or frame.bounds:
        # Below the axes, where no curve is.
        axis.legend(
            fontsize=7,
            frameon=False,
            loc="upper left",
            bbox_to_anchor=(-0.02, -0.1),
            ncols=2,
            handlelength=2.2,
            columnspacing=1.2,
            borderaxespad=0.2,
        )


def _draw_references(axis: Any, references: Sequence[Reference]) -> None:
    """Behind the curves, labelled to the right of the axes: the lower one from below, so that they never meet."""
    if len(references) == 2:
        low, high = references
        axis.fill_between(
            low.rounds, low.values, high.values, color=GREY, alpha=0.15, linewidth=0, zorder=0.9
        )
    sides = ["top", "bottom"] if len(references) == 2 else ["center"]
    for reference, side in zip(references, sides, strict=False):
        axis.plot(reference.rounds, reference.values, color=GREY, linewidth=0.8, zorder=1.0)
        axis.annotate(
            typeset(reference.label),
            (reference.rounds[-1], reference.values[-1]),
            (8, 0),
            textcoords="offset points",
            va=side,
            fontsize=7,
            color="#5A5A5A",
        )


def typeset(formula: str) -> str:
    """Powers raised: ``T^(2/3)`` as matplotlib writes it."""
    return re.sub(r"(\w)\^(?:\(([^()]+)\)|([\w.]+))", r"$\\mathregular{\1^{\2\3}}$", formula)


def _tick(value: float, _: object) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def save(fig: Figure, path: Path) -> None:
    """Writes a figure as PNG, SVG or PDF, by the ending; the file is there whole or not at all.

    Raises
    ------
    InvalidParameter
        Another ending, or a place that cannot be written.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InvalidParameter(
            f"{path}: cannot draw a {kind or 'file without ending'}; expected .png, .svg or .pdf"
        )
    import matplotlib as mpl

    buffer = io.BytesIO()
    # Without date and random identifiers the same curves give the same file.
    dated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    with mpl.rc_context({"svg.hashsalt": "onlinecal"}):
        fig.savefig(buffer, format=kind, metadata=dated)
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(buffer.getvalue())
        os.replace(partial, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise InvalidParameter(f"{path} cannot be written: {error.strerror or error}") from None
