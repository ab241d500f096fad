"""The data of the cost of late outcomes: totals by the schedules that they were played with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import Column
from onlinecal.growth.rates import KnownRate, best_known
from onlinecal.growth.words import literal
from onlinecal.report.curves import Curve, Study, columns_of, open_at_the_end
from onlinecal.report.frames import Bound, Frame, frames
from onlinecal.schedules import Constant, Schedule
from onlinecal.study.played import Played

Floats = NDArray[np.float64]

#: what the line of a game is called in which every outcome is known before the next question
AT_ONCE = "no delay"


@dataclass(frozen=True)
class LateFrame:
    """A frame in its row and column; `open` has the questions open at the end, by schedule."""

    row: str
    column: str
    heading: str
    frame: Frame
    open: tuple[int, ...]
    across: bool


def late_frames(study: Study, measures: Sequence[str]) -> list[LateFrame]:
    """The data of `plot_delays`: against T with several horizons or a single schedule, else across schedules.

    Dotted is b·R(T/b) for b = 1 + questions open, where R is the best known upper rate: what b copies of a forecaster
    that attains it would have, each in the game of its own questions. All have one constant, by which that of the
    fewest open questions begins where its line does, or, across schedules, where the lowest line does. There is one
    only for constant delays with a question every unit.
    """
    columns = columns_of(study, measures)
    across = len({c.horizon for c in study.cells}) == 1 and len({c.schedule[1] for c in study.cells}) > 1
    natures = list(dict.fromkeys(c.schedule[0] for c in study.cells))
    found = []
    for nature in natures:
        for column in columns:
            cells = [c for c in study.cells if c.schedule[0] == nature and column.name in c.totals]
            if not cells:
                continue
            if across:
                found.append(_across(study, column, nature, cells))
            else:
                found += [
                    _against_time(study, column, nature, who, [c for c in cells if c.forecaster == who])
                    for who in dict.fromkeys(c.forecaster for c in cells)
                ]
    return found


def _against_time(study: Study, column: Column, nature: str, who: str, cells: Sequence[Played]) -> LateFrame:
    """One forecaster against one nature, a line for each schedule."""
    schedules = list(dict.fromkeys(c.schedule for c in cells))
    heading = f"{column.name} of {who}, {nature}"
    curves, bounds, open = [], [], []
    rate = _rate(column)
    for schedule in schedules:
        mine = sorted((c for c in cells if c.schedule == schedule), key=lambda c: c.horizon)
        open.append(open_at_the_end(mine[-1]))
        curve = study.curve(column.name, who, mine[0].nature)
        curves.append(
            replace(curve, forecaster=schedule[1] or AT_ONCE, nature=heading, promises=(), place=None)
        )
        if rate is not None and (same := _copies(mine)) is not None and len(curve.rounds) > 1:
            times = curve.rounds.astype(np.float64)
            bounds.append(Bound("", len(curves) - 1, times, same * rate.at(times / same), False))
    (frame,) = frames(curves, exponents=False)
    frame.references = []
    frame.bounds = _anchored(frame, bounds, rate)
    return LateFrame(f"{column.name}, {nature}", who, heading, frame, tuple(open), False)


def _across(study: Study, column: Column, nature: str, cells: Sequence[Played]) -> LateFrame:
    """All forecasters against one nature, by the questions that are open at the end."""
    curves = []
    ends = sorted({1 + open_at_the_end(c) for c in cells})
    for who in dict.fromkeys(c.forecaster for c in cells):
        mine = sorted((c for c in cells if c.forecaster == who), key=open_at_the_end)
        at = np.array([1 + open_at_the_end(c) for c in mine])
        totals = np.stack([c.totals[column.name][-1] for c in mine])
        curves.append(Curve(column, who, nature, at, totals, False, place=study.places[who]))
    (frame,) = frames(curves, exponents=False)
    rate = _rate(column)
    frame.references = []
    if rate is not None and len(ends) > 1 and all(_copies([c]) is not None for c in cells):
        at = np.array(ends, dtype=np.float64)
        horizon = np.full(len(at), float(cells[0].horizon))
        bound = Bound("", None, at, at * rate.at(horizon / at), False)
        frame.bounds = _anchored(frame, [bound], rate)
    open = tuple(end - 1 for end in ends)
    return LateFrame(nature, column.name, f"{column.name}, {nature}", frame, open, True)


def _rate(column: Column) -> KnownRate | None:
    """The best known upper rate that some forecaster of this package attains, or None."""
    return next((rate for rate in best_known(column) if rate.upper), None)


def _copies(cells: Sequence[Played]) -> int | None:
    """1 + the delay if it is constant, whole and shorter than all games, with a question every unit; else None."""
    delay = open_at_the_end(cells[-1])
    constant = Schedule(delays=Constant(delay)).label
    return 1 + delay if all(c.schedule[1] == constant and c.horizon > delay for c in cells) else None


def _anchored(frame: Frame, bounds: Sequence[Bound], rate: KnownRate | None) -> list[Bound]:
    """All with one constant: that with which the least of them begins where its line does. The first has the label."""
    if rate is None or not bounds or frame.negative or not frame.lines:
        return []
    label = "∝ √(bT)" if rate.formula == "√T" else f"∝ b·R(T/b), R = {rate.formula}"
    # Of lines that are drawn only: one without a point has no place to begin at.
    there = {line.style for line in frame.lines}
    bounds = [bound for bound in bounds if bound.style is None or bound.style in there]
    if not bounds:
        return []
    least = min(bounds, key=lambda bound: bound.values[0])
    constant = np.inf
    for line in (line for line in frame.lines if least.style in (None, line.style)):
        first = line.rounds[line.shown][0]
        start = float(line.mean[line.shown][0]) / float(least.values[least.rounds == first][0])
        constant = min(constant, start)
    return [
        replace(bound, values=constant * bound.values, label=literal(label) if i == 0 else "")
        for i, bound in enumerate(bounds)
    ]
