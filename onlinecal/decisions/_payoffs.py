"""Tables of payoffs, which tasks of two outcomes and of classes have: what is allowed in them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from onlinecal.core.arrays import Floats, locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import Named, number


@dataclass(frozen=True)
class PayoffTable(Named):
    """The common part of tasks with finitely many actions, each of which has a row of payoffs."""

    name: str
    #: tuples, whatever is given
    payoffs: Sequence[Sequence[float]]
    #: no number depends on the names
    actions: Sequence[str] = field(default=(), metadata={"key": False})
    #: how many outcomes there are; None for as many as the rows have numbers
    outcomes: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "payoffs", _payoffs(self.name, self.payoffs, self.outcomes))
        object.__setattr__(self, "actions", _actions(self.name, self.actions, len(self.payoffs)))

    @cached_property
    def table(self) -> Floats:
        """The payoffs as a read-only array, a row for each action."""
        table: Floats = locked(np.array(self.payoffs, dtype=np.float64))
        return table


def check_name(name: Any) -> None:
    """Refuses what is no name of a task."""
    if not isinstance(name, str) or not name:
        raise InvalidParameter(f"task name = {name!r}; expected a non-empty string")


def _payoffs(task: str, payoffs: Any, outcomes: int | None) -> tuple[tuple[float, ...], ...]:
    where = f"task {task!r}"
    try:
        rows = [list(row) for row in payoffs]
    except TypeError:
        raise InvalidParameter(f"{where}: payoffs = {payoffs!r}; expected a row for each action") from None
    many = outcomes or (len(rows[0]) if rows else 0)
    if not rows or many < 2:
        expected = f"a row of {outcomes or 'K ≥ 2'} numbers for each action"
        raise InvalidParameter(f"{where}: payoffs = {payoffs!r}; expected {expected}")
    for a, row in enumerate(rows):
        if len(row) != many:
            raise InvalidParameter(f"{where}: payoffs[{a}] = {row!r}; expected {many} numbers")
        for y, u in enumerate(row):
            number(where, f"payoffs[{a}][{y}]", u, 0.0, 1.0)
    return tuple(tuple(float(u) + 0.0 for u in row) for row in rows)


def _actions(task: str, actions: Any, count: int) -> tuple[str, ...]:
    where = f"task {task!r}"
    if isinstance(actions, str) or not isinstance(actions, Iterable):
        raise InvalidParameter(f"{where}: actions = {actions!r}; expected a list of names")
    names = tuple(actions) or tuple(f"action {a}" for a in range(count))
    if len(names) != count:
        raise InvalidParameter(f"{where}: {len(names)} action names; expected {count}, one a row of payoffs")
    for a, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise InvalidParameter(f"{where}: actions[{a}] = {name!r}; expected a non-empty string")
        if name in names[:a]:
            raise InvalidParameter(f"{where}: actions[{a}] = {name!r} again; expected distinct names")
    return names
