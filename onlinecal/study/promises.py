"""Bounds that are proved of a cell: the tightest of both players' guarantees; and the grid on which it is played."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Guarantee, following, tightest_of
from onlinecal.core.validation import is_whole
from onlinecal.schedules.base import load
from onlinecal.study.planning import Cell
from onlinecal.study.played import Promise


def promises(cell: Cell) -> tuple[Promise, ...]:
    """The tightest of the guarantees of both players, and of what follows from them, on what a cell may measure."""
    players = cell.forecaster, cell.nature
    strategies = [entry.strategy for entry in players]
    stated = [(entry, g) for entry in players for g in entry.guarantees if g.binds(*strategies)]
    for _, guarantee in stated:
        if math.isnan(guarantee.bound(cell.horizon)):
            raise InvalidParameter(f"the bound '{guarantee}' is NaN at T = {cell.horizon}; expected a number")
    own = [g for _, g in stated]
    late = None if cell.immediate else _under_delay(own, cell)
    found = []
    # Certificates are no columns of the panel; their bounds are stated.
    certified = [g.column for g in (own if late is None else late) if g.column.kind == "certificate"]
    for column in dict.fromkeys([*cell.columns, *certified]):
        first = sorted(stated, key=lambda each: each[1].column != column)
        bounds = (
            following(late, column)
            if late is not None
            else [bound for entry, g in first for bound in entry.following(g, column)]
        )
        found += [
            Promise(g.measure, str(g), g.formula, g.kind, g.whom, g.upper, float(g.bound(cell.horizon)))
            for g in tightest_of(bounds, cell.horizon)
        ]
    return tuple(found)


def steps(cell: Cell) -> int | None:
    """The m of the grid on which the forecaster plays, as it states it itself."""
    m = cell.forecaster.strategy.steps_at(cell.horizon)
    if m is not None and not (is_whole(m) and 1 <= m <= 10**6):
        raise InvalidParameter(
            f"forecaster {cell.forecaster.label!r}: steps_at({cell.horizon}) = {m!r}; expected None, or an "
            "integer from 1 to 10^6"
        )
    return None if m is None else int(m)


def _under_delay(stated: Sequence[Guarantee], cell: Cell) -> list[Guarantee]:
    """The guarantees that still hold where outcomes become known late; most do not."""
    if not any(g.delayed for g in stated):
        return []
    if cell.in_world:
        most = cell.nature.strategy.open_at_once
        if most is None:
            return []
        resolved = max(0, cell.horizon - most)
    else:
        most, resolved = load(cell.schedule, cell.horizon, cell.seed)

    def bound(delayed: Callable[[float, int], float], upper: bool, horizon: float) -> float:
        return delayed(horizon if upper else resolved, most)

    return [
        replace(
            g,
            formula=f"{g.formula}, {most} open at once" if g.upper else f"{g.formula} of known outcomes",
            bound=partial(bound, g.delayed, g.upper),
            anytime=False,
            slack=None,
            potential=None,
        )
        for g in stated
        if g.delayed is not None
    ]
