"""The table of curves: means and bands, bounds, best known rates, and arrows in place of points beyond the axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from onlinecal.core.columns import Column
from onlinecal.core.words import counted, fixed
from onlinecal.growth import Growth
from onlinecal.growth.rates import best_known
from onlinecal.growth.words import literal
from onlinecal.measures import MEASURES
from onlinecal.report.facets import stacked
from onlinecal.study.curves import Curve

Part = dict[str, Any]

#: percentiles of the runs
BAND = (5.0, 95.0)
#: the values of a row by default
EMPTY: Part = {
    "T": np.nan,
    "total": np.nan,
    "lower": np.nan,
    "upper": np.nan,
    "label": "",
    "exponent": np.nan,
}


def by_pair(curves: Sequence[Curve]) -> Iterable[list[Curve]]:
    """The curves of each nature and measure."""
    found: dict[tuple[str, str], list[Curve]] = {}
    for curve in curves:
        found.setdefault((curve.nature, curve.measure), []).append(curve)
    return found.values()


def facts(curves: Sequence[Curve]) -> str:
    """Runs and T of curves, and what is left out, for the line of a title."""
    times = [t for curve in curves for t in (curve.rounds[0], curve.rounds[-1])]
    low, high, fresh = min(times), max(times), any(curve.fresh for curve in curves)
    of = "" if fresh or low == high else " of one game"
    open = max((int(curve.open[-1]) for curve in curves if curve.open is not None), default=0)
    return " · ".join([
        counted({curve.totals.shape[1] for curve in curves}),
        f"T = {low:,}" + f" … {high:,}" * bool(low < high) + of,
        *["recorded outcomes, the same in all runs"] * all(curve.recorded for curve in curves),
        *[f"without up to {open:,} open questions"] * bool(open),
    ])  # fmt: skip


def at_the_end(runs: Collection[int], times: Iterable[int]) -> str:
    """Runs, and the largest T of each nature, for the line of a title."""
    return f"{counted(runs)} · T = {' or '.join(f'{t:,}' for t in sorted({*times}))}"


def symbol(column: Column) -> str:
    """The symbol of a measure of the catalogue without options, such as smCE; the name of any other column."""
    plain = column.name == column.measure and column.name in MEASURES
    return MEASURES[column.name].symbol.partition(",")[0].removesuffix("_p") if plain else column.name


def panel_of(curve: Curve) -> Part:
    """The nature and the measure of the panel of a curve, and its heading."""
    heading = f"{symbol(curve.column)} against {curve.nature}"
    return {"nature": curve.nature, "measure": curve.measure, "heading": heading}


def curves_table(curves: Sequence[Curve]) -> pd.DataFrame:
    """A row for each point: "mean" with its band, "bound", or of slopes "rate" or best "known" rate.

    Means without a place are "up" (infinite) and "down" (0 on a logarithmic axis), curves without a point "absent".
    """
    return stacked(curve_parts(curves))


def curve_parts(curves: Sequence[Curve], *, exponents: bool = True, known: bool = True) -> list[Part]:
    """The parts of that table, with exponents and best known rates or without."""
    styles, parts = places(curves), list[Part]()
    for mine in by_pair(curves):
        negative = any(((c.mean < 0) & np.isfinite(c.mean)).any() for c in mine)
        here: list[Part] = [
            {"forecaster": c.forecaster, "place": styles[c.forecaster]} | part
            for c in mine
            for part in _curve(c, exponents, negative=negative)
        ]
        means = [part for part in here if part["mark"] == "mean"]
        if known and not negative:
            tuned = {c.forecaster for c in mine if c.fresh and c.open is None}
            here += _known(mine[0].column, [part for part in means if part["forecaster"] in tuned])
        frame = EMPTY | panel_of(mine[0]) | {"negative": negative}
        seen = set()
        for part in here:
            # A rate that a nature forces is drawn once, for all of its forecasters.
            if part["place"] >= 0 or part["label"] not in seen:
                parts.append(frame | {"part": len(parts)} | _lowest(part, means))
            seen.add(part.get("label"))
    return parts


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


def _curve(curve: Curve, exponents: bool, *, negative: bool) -> Iterator[Part]:
    """The mean and what belongs to it; arrows where it is infinite or, on a logarithmic axis, 0."""
    mean = curve.mean
    shown = np.isfinite(mean) & (negative | (mean > 0))
    if not shown.any():
        yield {"mark": "absent", "label": f"{literal(curve.forecaster)}: infinite, or 0"}
        return
    growth = curve.exponent() if exponents else None
    band = np.full((2, len(mean)), np.nan)
    band[:, shown] = np.percentile(curve.totals[shown], BAND, axis=1)
    yield {
        "mark": "mean", "T": curve.rounds, "total": np.where(shown, mean, np.nan), "lower": band[0], "upper": band[1],
        "label": "" if growth is None else power(growth),
        "exponent": growth.value if growth is not None and growth.clear else np.nan,
    }  # fmt: skip
    for kind, beyond in (("up", mean == np.inf), ("down", ~shown & (mean == 0))):
        if beyond.any():
            yield {"mark": kind, "T": curve.rounds[beyond]}
    first = int(np.argmax(shown))
    yield from _bounds(curve, float(curve.rounds[first]), float(mean[first]))


def _lowest(part: Part, means: Sequence[Part]) -> Part:
    """A rate that a nature forces, moved to the lowest curve at its first T: it is about all of them."""
    if part["mark"] != "rate" or part["place"] >= 0:
        return part
    starts = [float(mean["total"][mean["T"] == part["T"][0]].min(initial=np.inf)) for mean in means]
    lowest = min((start for start in starts if np.isfinite(start)), default=part["total"][0])
    return part | {"total": part["total"] * (lowest / part["total"][0])}


def power(growth: Growth) -> str:
    """T to its exponent; the interval on the same line where that is too wide."""
    if growth.clear:
        return f"T^{fixed(growth.value)}"
    return f"T^? {growth.interval}".replace(" ", "\N{NO-BREAK SPACE}")


def _known(column: Column, means: Sequence[Part]) -> list[Part]:
    """The best known rates beside games tuned to their T, as slopes; the prefixes of one game are not."""
    if not means:
        return []
    t, total = (np.concatenate([mean[name] for mean in means]) for name in ("T", "total"))
    rounds = np.unique(t[np.isfinite(total)])
    if len(rounds) < 2:
        return []
    start = np.nanmin(total[t == rounds[0]]) / 2
    rates = best_known(column)
    both = len({rate.formula for rate in rates}) < len(rates)
    shapes = {f"Θ({rate.formula})" if both else str(rate): rate.at(rounds) for rate in rates}
    return [
        {"mark": "known", "place": -1, "T": rounds, "total": start * shape / shape[0], "label": label}
        for label, shape in shapes.items()
    ]


def _bounds(curve: Curve, first: float, start: float) -> Iterator[Part]:
    """The guarantees on a curve, each kind once."""
    found: dict[tuple[str, str, bool, str], list[tuple[int, float]]] = {}
    for horizon, p in curve.promises:
        found.setdefault((p.formula, p.kind, p.upper, p.against), []).append((horizon, p.bound))
    for (formula, kind, upper, against), points in found.items():
        x, y = np.array(points, dtype=np.float64).T
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
        # The label of what a nature forces names the forecasters; a forecaster's own bound has the colour of its curve.
        label = f"{mean}{relation} {formula}" + ("" if upper else f" ({against})")
        yield {"mark": "bound" if exact else "rate", "T": x, "total": y, "label": label} | (
            {} if upper else {"forecaster": "", "place": -1}
        )
