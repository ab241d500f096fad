"""Forecast hedging beside the best forecaster on its grid: whether it pays a constant more."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onlinecal.report.games import Exploited, Games

#: the first T of what is said of best grids, and of growth
FIRST, GROWING = 8, 32
#: what a doubling adds, up to which the next one is not compared with it: 0 but for rounding
TINY = 1e-9


def hedging_section(found: Games) -> list[str]:
    """Whether forecast hedging pays a constant more than the best, as Markdown."""
    grids = sorted(found.hedged)
    if not grids:
        return []
    beyond = {
        m: {t: value - found.value(m, t) for t, value in _paid(each).items()}
        for m, each in found.hedged.items()
    }
    times = sorted({t for each in beyond.values() for t in each})
    lines = [
        "## Is forecast hedging within a constant of the best?",
        "",
        "By how much the worst case of forecast hedging, T·ECE in expectation, is more than V_T(m), and (in brackets)",
        "how many times V_T(m) it is. Last: hedging on its best grid and the best forecaster on its own, of these.",
        "",
        "| T | " + " | ".join(f"m = {m}" for m in grids) + " | best grids |",
        "|---:|" + "---:|" * (len(grids) + 1),
    ]
    for t in times:
        cells = [
            f"{beyond[m][t]:.3f} ({1.0 + beyond[m][t] / found.value(m, t):.3f})" if t in beyond[m] else "–"
            for m in grids
        ]
        lines.append(f"| {t} | " + " | ".join([*cells, _of_best_grids(found, t)]) + " |")
    return [*lines, "", _words(found, beyond), ""]


def hedging_on_best_grids(found: Games, horizon: int) -> tuple[float, float]:
    """What hedging pays on its best grid, and the least value of these grids; NaN unless all of them are known."""
    paid = [_paid(each).get(horizon, math.nan) for each in found.hedged.values()]
    values = [found.value(m, horizon) for m in found.hedged]
    return (math.nan, math.nan) if any(map(math.isnan, [*paid, *values])) else (min(paid), min(values))


def doublings(beyond: Mapping[int, float]) -> dict[int, float]:
    """T → by how much the difference at T is more than that at T/2, for the T of which both are known."""
    return {t: beyond[t] - beyond[t // 2] for t in sorted(beyond) if t % 2 == 0 and t // 2 in beyond}


def _paid(each: Exploited) -> dict[int, float]:
    return dict(zip(each.times, each.values, strict=True))


def _of_best_grids(found: Games, horizon: int) -> str:
    paid, value = hedging_on_best_grids(found, horizon)
    return "–" if math.isnan(paid) else f"{paid - value:.3f} ({paid / value:.3f})"


def _words(found: Games, beyond: Mapping[int, Mapping[int, float]]) -> str:
    """What the table says."""
    grown = {m: doublings(each) for m, each in beyond.items()}
    ends = [
        f"{each[max(each)]:.3f} (m = {m}, to T = {max(each)})" for m, each in sorted(grown.items()) if each
    ]
    words = [f"The last doubling of T adds to the difference {', '.join(ends)}."] if ends else []
    times = [
        each[t] / each[t // 2]
        for each in grown.values()
        for t in each
        if t >= GROWING and each.get(t // 2, 0.0) > TINY
    ]
    if times:
        words.append(
            f"From T = {GROWING} on, a doubling adds {_span(times, '.2f')} times as much as the one "
            "before it; to ln T it would add as much, to √T 1.41 times as much."
        )
    known = {t: hedging_on_best_grids(found, t) for t in {t for each in beyond.values() for t in each}}
    both = {t: paid / value for t, (paid, value) in known.items() if t >= FIRST and not math.isnan(paid)}
    if both:
        words.append(
            f"On its best grid hedging pays {_span(both.values(), '.2f')} times what the best "
            f"forecaster pays on its own, for T = {_span(both, 'd')}."
        )
    return " ".join(words)


def _span(numbers: Collection[float], digits: str) -> str:
    """The least to the largest, or one number where they are written alike."""
    low, high = (format(end(numbers), digits) for end in (min, max))
    return low if low == high else f"{low} to {high}"
