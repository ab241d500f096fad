"""What is proved of a cell: the guarantees of both players, what follows from them, and the tightest of these; and on
which grid the forecaster plays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter, shown
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.relations import following, tightest_of
from onlinecal.core.validation import is_whole
from onlinecal.schedules.base import load
from onlinecal.study.lineup import KEPT, Entry
from onlinecal.study.plan import Cell
from onlinecal.study.played import Promise

# Cells are many and players few: each player is asked once for all its opponents, and what follows from a guarantee is
# found once for each column. With what is found stands what it is of, so that nothing else has the same identity.
_STATED: dict[int, tuple[Entry, tuple[Guarantee, ...]]] = {}
_FOLLOWS: dict[int, tuple[Guarantee, dict[Column, list[Guarantee]]]] = {}
_STEPS: dict[tuple[int, int], tuple[Entry, int | None]] = {}


def promises(cell: Cell) -> tuple[Promise, ...]:
    """The tightest of the guarantees of both players, and of what follows from them, on what a cell may measure.

    Raises
    ------
    InvalidParameter
        A bound that is not a number.
    """
    forecaster, nature = cell.forecaster, cell.nature
    stated = [
        g for g in (*_stated(forecaster), *_stated(nature)) if g.binds(forecaster.strategy, nature.strategy)
    ]
    for guarantee in stated:
        if math.isnan(guarantee.bound(cell.horizon)):
            raise InvalidParameter(
                f"the bound of '{guarantee}' is NaN at T = {cell.horizon}; expected a number"
            )
    bounds = _bounds if cell.schedule.immediate else following
    if not cell.schedule.immediate:
        stated = _under_delay(stated, cell)
    # Certificates are no columns of the panel; their bounds are stated.
    certified = (g.column for g in stated if g.column.kind == "certificate")
    return tuple(
        Promise(g.measure, str(g), g.formula, g.kind, g.whom, g.upper, float(g.bound(cell.horizon)))
        for column in dict.fromkeys([*cell.panel.columns, *certified])
        for g in tightest_of(bounds(stated, column), cell.horizon)
    )


def steps(cell: Cell) -> int | None:
    """The m of the grid on which the forecaster plays, as it says itself; it may be anybody's class.

    Raises
    ------
    InvalidParameter
        What it says is no number of steps.
    """
    entry, horizon = cell.forecaster, cell.horizon
    if (id(entry), horizon) not in _STEPS:
        m = entry.strategy.steps_at(horizon)
        if m is not None and not (is_whole(m) and 1 <= m <= 10**6):
            raise InvalidParameter(
                f"forecaster {entry.label!r}: steps_at({horizon}) = {shown(m)}; expected None, or an integer from 1 to "
                "10^6"
            )
        _make_room(_STEPS)
        _STEPS[id(entry), horizon] = entry, None if m is None else int(m)
    return _STEPS[id(entry), horizon][1]


def _stated(entry: Entry) -> tuple[Guarantee, ...]:
    """The guarantees of a player."""
    if id(entry) not in _STATED:
        _make_room(_STATED)
        _STATED[id(entry)] = entry, tuple(entry.strategy.guarantees)
    return _STATED[id(entry)][1]


def _bounds(guarantees: Iterable[Guarantee], column: Column) -> list[Guarantee]:
    """As `following`, of guarantees that will be asked for again."""
    found = []
    for guarantee in sorted(guarantees, key=lambda g: g.column != column):
        if id(guarantee) not in _FOLLOWS:
            _make_room(_FOLLOWS)
            _FOLLOWS[id(guarantee)] = guarantee, {}
        known = _FOLLOWS[id(guarantee)][1]
        if column not in known:
            known[column] = following([guarantee], column)
        found += known[column]
    return found


def _make_room(kept: dict[Any, Any]) -> None:
    """Players that a plan has made anew are others: of very many, all that is found is forgotten from time to time."""
    if len(kept) >= 2 * KEPT:
        kept.clear()


def _under_delay(stated: Sequence[Guarantee], cell: Cell) -> list[Guarantee]:
    """What guarantees say where outcomes become known late; most say nothing."""
    if not any(g.delayed for g in stated):
        return []
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
