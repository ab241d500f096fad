"""The data of a figure of curves: lines, bounds, best known rates, and points that have no place on the axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import Column
from onlinecal.growth import Growth, simultaneous
from onlinecal.growth.rates import best_known
from onlinecal.growth.words import literal, raised
from onlinecal.measures import MEASURES
from onlinecal.report.curves import Curve

Floats = NDArray[np.float64]

#: percentiles of the runs
BAND = (5.0, 95.0)


@dataclass(frozen=True)
class Line:
    """A curve as it is drawn; NaN where a mean has no place on the axis."""

    forecaster: str
    #: exponent where that is clear, and where points are missing and why; as matplotlib reads it
    notes: str
    #: the forecaster's place in the study
    style: int
    rounds: NDArray[np.int64]
    mean: Floats
    lower: Floats
    upper: Floats
    exponent: Growth | None
    fresh: bool
    late: bool = False

    @property
    def label(self) -> str:
        """Forecaster and notes, as matplotlib reads them."""
        between = "  " if self.notes.startswith("$") else "; " if self.notes else ""
        return literal(self.forecaster) + between + self.notes

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Whether each point is drawn."""
        return np.isfinite(self.mean)


@dataclass(frozen=True)
class Bound:
    """A guarantee or a best known rate as it is drawn, exact or as a slope; style None of what is no forecaster's."""

    label: str
    style: int | None
    rounds: Floats
    values: Floats
    exact: bool
    against: str = ""


@dataclass
class Frame:
    """One pair of axes: a measure against one nature."""

    nature: str
    column: Column
    negative: bool = False
    lines: list[Line] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    references: list[Bound] = field(default_factory=list)
    #: points beyond an edge of the axes: style, T, and whether the edge is the upper one
    marks: list[tuple[int, NDArray[np.int64], bool]] = field(default_factory=list)
    #: curves without a point: style, and the reason
    absent: list[tuple[int, str]] = field(default_factory=list)

    @property
    def measure(self) -> str:
        """The name of the column."""
        return self.column.name

    @property
    def symbol(self) -> str:
        """The symbol of a measure of the catalogue without options, such as smCE; the name of any other column."""
        plain = self.column.name == self.column.measure and self.measure in MEASURES
        return MEASURES[self.measure].symbol.partition(",")[0].removesuffix("_p") if plain else self.measure


def divided(frame: Frame, power: float) -> Frame:
    """The same with everything divided by T^power: what grows so fast is level."""

    def by(some: Any, *names: str) -> list[Any]:
        scales = [(one, one.rounds.astype(np.float64) ** power) for one in some]
        return [replace(one, **{name: getattr(one, name) / scale for name in names}) for one, scale in scales]

    return replace(
        frame, lines=by(frame.lines, "mean", "lower", "upper"), bounds=by(frame.bounds, "values"),
        references=by(frame.references, "values"),
    )  # fmt: skip


def frames(curves: Sequence[Curve], *, exponents: bool = True) -> list[Frame]:
    """The data of `plot_curves`: a frame for each nature and measure, in the order of the curves."""
    styles, level = places(curves), simultaneous(len(curves)) if exponents else None
    result: dict[tuple[str, Column], Frame] = {}
    for curve in curves:
        frame = result.setdefault((curve.nature, curve.column), Frame(curve.nature, curve.column))
        frame.negative |= bool(((curve.mean < 0) & np.isfinite(curve.mean)).any())
    for curve in curves:
        _add(result[curve.nature, curve.column], curve, styles[curve.forecaster], level)
    for frame in result.values():
        frame.bounds = [_below_all(bound, frame.lines) for bound in frame.bounds]
        if not frame.negative:
            tuned = [line for line in frame.lines if line.fresh and not line.late]
            frame.references = _references(frame.column, tuned)
    return list(result.values())


def forecasters(drawn: Iterable[Frame]) -> dict[str, int]:
    """The forecasters that have a line: name → style."""
    return {line.forecaster: line.style for frame in drawn for line in frame.lines}


def places(curves: Sequence[Curve]) -> dict[str, int]:
    """Forecaster → how its curves look: its place in the study, whatever else is drawn."""
    found: dict[str, int] = {}
    for curve in curves:
        if curve.forecaster not in found:
            at = 0 if curve.place is None else curve.place
            taken = set(found.values())
            while at in taken:
                at += 1
            found[curve.forecaster] = at
    return found


def _add(frame: Frame, curve: Curve, style: int, level: float | None) -> None:
    """Adds a curve to its frame: as a line, and in words the points that have no place."""
    mean = curve.mean
    shown = np.isfinite(mean) & (frame.negative | (mean > 0))
    reasons = _missing(curve, shown)
    if not shown.any():
        frame.absent.append((style, f"{literal(curve.forecaster)}: {reasons}"))
        return
    exponent = None if level is None else curve.exponent(level)
    slope = f"$T^{{{raised(exponent)}}}$" if exponent is not None and exponent.clear else ""
    band = np.full((2, len(mean)), np.nan)
    band[:, shown] = np.percentile(curve.totals[shown], BAND, axis=1)
    notes = "; ".join(filter(None, (slope, reasons)))
    frame.lines.append(
        Line(curve.forecaster, notes, style, curve.rounds, np.where(shown, mean, np.nan), band[0], band[1], exponent,
             curve.fresh, curve.open is not None)
    )  # fmt: skip
    for beyond, up in ((mean == np.inf, True), (~shown & (mean == 0), False)):
        if beyond.any():
            frame.marks.append((style, curve.rounds[beyond], up))
    first = int(np.argmax(shown))
    frame.bounds += _bounds(curve, style, float(curve.rounds[first]), float(mean[first]), frame.bounds)


def _below_all(bound: Bound, lines: Sequence[Line]) -> Bound:
    """A rate that a nature forces, moved to the lowest curve at its first T: it is about all of them."""
    if bound.exact or bound.style is not None:
        return bound
    starts = [float(line.mean[line.rounds == bound.rounds[0]].min(initial=np.inf)) for line in lines]
    lowest = min((start for start in starts if np.isfinite(start)), default=float(bound.values[0]))
    return replace(bound, values=bound.values * (lowest / bound.values[0]))


def _missing(curve: Curve, shown: NDArray[np.bool_]) -> str:
    """The means that have no place on the axis, and why, in words; empty if all have."""
    mean, runs = curve.mean, curve.totals.shape[1]
    parts = []
    if (zero := ~shown & (mean == 0)).any():
        parts.append("0 in every run" if not curve.totals.any() else f"0 {_when(curve.rounds, zero)}")
    for infinite, words in (
        (mean == np.inf, "infinite"),
        (mean == -np.inf, "minus infinite"),
        (np.isnan(mean), "infinite both ways, without a mean,"),
    ):
        if infinite.any():
            counts = (~np.isfinite(curve.totals[infinite])).sum(axis=1).tolist()
            whom = "" if min(counts) == runs else f", in {ends(counts)} of {runs:,} runs"
            parts.append(f"{words} {_when(curve.rounds, infinite)}{whom}")
    return "; ".join(parts)


def _when(rounds: NDArray[np.int64], mask: NDArray[np.bool_]) -> str:
    """Which T a mask holds: ``from T = 300 on``."""
    where = np.flatnonzero(mask)
    first, last = f"{rounds[where[0]]:,}", f"{rounds[where[-1]]:,}"
    if len(where) == len(rounds):
        return "at every T"
    if len(where) == 1:
        return f"at T = {first}"
    if where[-1] - where[0] + 1 == len(where):
        if where[-1] == len(rounds) - 1:
            return f"from T = {first} on"
        return f"up to T = {last}" if where[0] == 0 else f"from T = {first} to {last}"
    return f"at {len(where)} T from {first} to {last}"


def _references(column: Column, lines: Sequence[Line]) -> list[Bound]:
    """The best known rates beside games tuned to their T, as slopes; the prefixes of one game are not."""
    rounds = np.unique(np.concatenate([line.rounds[line.shown] for line in lines])) if lines else np.array([])
    if len(rounds) < 2:
        return []
    start = min(line.mean[(line.rounds == rounds[0]) & line.shown].min(initial=np.inf) for line in lines) / 2
    rates = best_known(column)
    both = len({rate.formula for rate in rates}) < len(rates)
    shapes = {f"Θ({rate.formula})" if both else str(rate): rate.at(rounds) for rate in rates}
    return [Bound(label, None, rounds, start * shape / shape[0], False) for label, shape in shapes.items()]


def _bounds(curve: Curve, style: int, first: float, start: float, there: Sequence[Bound]) -> list[Bound]:
    """The guarantees on a curve, each kind once; those of the nature only once in a frame."""
    found: dict[tuple[str, str, bool, str], list[tuple[int, float]]] = {}
    for horizon, p in curve.promises:
        found.setdefault((p.formula, p.kind, p.upper, p.against), []).append((horizon, p.bound))
    result = []
    for (formula, kind, upper, against), points in found.items():
        x = np.array([t for t, _ in points], dtype=np.float64)
        y = np.array([bound for _, bound in points])
        exact = kind != "rate"
        anchor = y[x == first]
        if not exact and (len(x) < 2 or start <= 0.0 or len(anchor) == 0):
            continue  # a rate says nothing at a single time, and has no place beside a negative curve
        if not exact:
            y = y * (start / anchor[0])
        elif not curve.fresh and upper:
            # The bound at the horizon holds at every time before it; one from below only at its own.
            x = np.unique([first, x[-1]])
            y = np.full(len(x), y[-1])
        relation = ("≤" if upper else "≥") if exact else "∝"
        mean = "mean " if kind == "expected" else ""
        formula, against = literal(formula), literal(against)
        # What a nature forces says whom it is forced on; a forecaster's own bound has the colour of its curve.
        label = f"{mean}{relation} {formula}" + ("" if upper else f" ({against})")
        if all(label != bound.label for bound in there) or upper:
            result.append(Bound(label, style if upper else None, x, y, exact, against if upper else ""))
    return result


def parities(curves: Sequence[Curve]) -> str:
    """A sentence on the curves that are jagged since the steps of a grid are now even, now odd; "" without one."""
    level, pairs = simultaneous(len(curves)), dict[str, dict[str, list[str]]]()
    for curve in curves:
        if (factor := curve.parity(level)) is not None:
            sides = pairs.setdefault(f"{curve.forecaster} against {curve.nature}", {})
            sides.setdefault("lower" if factor < 1.0 else "higher", []).append(curve.measure)
    said = []
    for pair, sides in pairs.items():
        how = " and ".join(f"{side} in {', '.join(measures)}" for side, measures in sides.items())
        said.append(f"{pair} (at even m {how})")
    first = "Jagged as the m steps of the grid are even, with a point at ½, or odd, without one: "
    return f"{first}{'; '.join(said)}." if said else ""


def ends(values: Collection[int]) -> str:
    """The least and the largest of some numbers: ``4–16``, or ``4`` where that is all."""
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def counted(runs: Collection[int]) -> str:
    """The number of runs: ``1 run``, or ``4–16 runs``."""
    words = ends(runs)
    return f"{words} run{'' if words == '1' else 's'}"


def games(curves: Sequence[Curve]) -> str:
    """The meaning of T; where curves differ in that, with their natures, or pairs within a nature."""
    kinds: dict[str, list[Curve]] = {}
    for curve in curves:
        own = "a game each, on the same recorded rounds" if curve.recorded else "a fresh game each"
        alone = "the end of one game" if len(curve.rounds) == 1 else "rounds of one game"
        kinds.setdefault(own if curve.fresh else alone, []).append(curve)
    parts = []
    for kind, mine in kinds.items():
        others = {c.nature for each, some in kinds.items() if each != kind for c in some}
        names = (f"{c.forecaster} against {c.nature}" if c.nature in others else c.nature for c in mine)
        parts.append(f"{kind} ({', '.join(dict.fromkeys(names))})" if len(kinds) > 1 else kind)
    return f"T: {'; '.join(parts)}."
