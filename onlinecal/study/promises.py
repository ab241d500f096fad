"""What is proved of a cell: the guarantees of both players, what follows from them, and the tightest of these; and on
which grid the forecaster plays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter, shown
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.relations import following, tightest_of
from onlinecal.core.validation import is_whole
from onlinecal.schedules.base import load
from onlinecal.study.lineup import Entry
from onlinecal.study.plan import Cell
from onlinecal.study.played import Promise

_Found = TypeVar("_Found")

#: of how many questions the answers are kept
MOST = 2**16

# Cells are many and players few: each player is asked once for all its opponents, and what follows from a guarantee is
# found once for each column. With what is found stands whom it is of, so that nothing else has the same identity.
_FOUND: dict[tuple[Any, ...], tuple[object, Any]] = {}


def promises(cell: Cell) -> tuple[Promise, ...]:
    """The tightest of the guarantees of both players, and of what follows from them, on what a cell may measure.

    Raises
    ------
    InvalidParameter
        A bound that is not a number.
    """
    forecaster, nature = cell.forecaster, cell.nature
    stated = [
        guarantee
        for player in (forecaster, nature)
        for guarantee in _once(player, _stated)
        if guarantee.binds(forecaster.strategy, nature.strategy)
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
    return _once(cell.forecaster, _steps, cell.horizon)


def _steps(entry: Entry, horizon: int) -> int | None:
    m = entry.strategy.steps_at(horizon)
    if m is not None and not (is_whole(m) and 1 <= m <= 10**6):
        raise InvalidParameter(
            f"forecaster {entry.label!r}: steps_at({horizon}) = {shown(m)}; expected None, or an integer from 1 to 10^6"
        )
    return None if m is None else int(m)


def _stated(entry: Entry) -> tuple[Guarantee, ...]:
    return tuple(entry.strategy.guarantees)


def _bounds(guarantees: Iterable[Guarantee], column: Column) -> list[Guarantee]:
    """As `following`, of guarantees that will be asked for again."""
    own_first = sorted(guarantees, key=lambda g: g.column != column)
    return [found for guarantee in own_first for found in _once(guarantee, _follows, column)]


def _follows(guarantee: Guarantee, column: Column) -> list[Guarantee]:
    return following([guarantee], column)


def _once(whom: Any, find: Callable[..., _Found], *asked: Hashable) -> _Found:
    """What `find(whom, *asked)` returns, which is kept."""
    key = id(whom), find, *asked
    if key not in _FOUND:
        # Players that a plan has made anew are others: of very many, all is forgotten from time to time.
        if len(_FOUND) >= MOST:
            _FOUND.clear()
        _FOUND[key] = whom, find(whom, *asked)
    found: _Found = _FOUND[key][1]
    return found


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
