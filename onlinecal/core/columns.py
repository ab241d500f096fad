"""Columns of totals as data: a measure, a task, a certificate. Names are made from them and never read back."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from onlinecal.core.content import content, digest
from onlinecal.core.errors import UnknownName, meant
from onlinecal.core.validation import is_number, is_whole

Kind = Literal[
    "measure", "function", "certificate", "decision_task", "quadratic_task", "other_task",
    "class_measure", "class_function", "class_task",
]  # fmt: skip
End = Literal["", "lower", "upper"]

#: what is tracked of a task
ACCOUNT = ("payoff", "external_regret", "action_swap_regret", "swap_regret")
#: of a task in a game with groups: the largest swap regret of a group
GROUP_REGRET = "group_swap_regret"
#: of each group: its number of rounds
ROUNDS = "rounds"
#: the group of everything, which nobody declares, and how many others there may be
ALL, MOST_GROUPS = "all", 16


@dataclass(frozen=True, eq=False)
class Column:
    """A column of totals, of a measure, a function of Γ, a certificate of a player, or a task.

    `options` are those that were set, `response` is "" for the best one, and `end` is an end of a bracket. A
    ``"decision_task"`` has finitely many actions with payoffs in [0, 1]; an ``"other_task"`` is a class of a user.
    Those of games of K classes are ``"class_measure"``, ``"class_function"`` and ``"class_task"``.

    >>> Column("measure", "binned_ece", (("bins", 15),)).name
    'binned_ece(bins=15)'
    >>> Column("decision_task", "swap_regret", task="umbrella", response="rounded(m=10)").name
    'swap_regret[umbrella, rounded(m=10)]'
    >>> Column("measure", "distance_lower", end="upper").name
    'distance_lower[upper]'
    >>> Column("measure", "ece", stream="rain").name
    'ece @ rain'
    >>> Column("class_measure", "ece", laws=True).name
    'ece of laws'

    `stream` is the stream or the group of the rounds that it is of; "" for all of them. With `laws` it is of the Γ in
    which each round counts with its whole law.
    """

    kind: Kind
    measure: str
    options: tuple[tuple[str, Any], ...] = ()
    task: str = ""
    response: str = ""
    end: End = ""
    stream: str = ""
    laws: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple((key, _plain(value)) for key, value in self.options))

    @cached_property
    def _said(self) -> tuple[Any, ...]:
        # As texts, in which 1, 1.0 and True differ, and NaN is itself.
        of = self.task, self.response, self.end, self.stream, self.laws
        return self.kind, self.measure, repr(self.options), *of

    def __eq__(self, other: object) -> bool:
        """Whether it is the same column; options of other types are others."""
        return self._said == other._said if isinstance(other, Column) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._said)

    @property
    def of_task(self) -> bool:
        """Whether it is from the account of a task."""
        return self.kind.endswith("_task")

    @property
    def of_classes(self) -> bool:
        """Whether it is of Γ of K classes."""
        return self.kind.startswith("class_")

    @cached_property
    def name(self) -> str:
        """The name in tables, plots and files."""
        options = ", ".join(f"{key}={_text(value)}" for key, value in self.options)
        of = ", ".join(filter(None, (self.task, self.response)))
        name = f"{self.measure}{options and f'({options})'}{of and f'[{of}]'}{self.end and f'[{self.end}]'}"
        name += " of laws" if self.laws else ""
        return f"{name} @ {self.stream}" if self.stream else name

    @property
    def whole(self) -> str:
        """The name of the measure, of which a bracket has two columns."""
        return replace(self, end="").name if self.end else self.name

    @cached_property
    def quantity(self) -> str:
        """Its name in `onlinecal.core.guarantee`, of a bracket that of what lies in it; "" if they have none."""
        if self.stream or self.laws:
            return ""
        if self.kind in ("measure", "class_measure", "certificate"):
            return Column(self.kind, self.measure, self.options).name
        known = "decision_task", "quadratic_task", "class_task"
        if self.response or self.measure == "payoff" or self.kind not in known:
            return ""
        own = f"{self.measure}[quadratic]"
        return own if self.kind == "quadratic_task" and own in (QUADRATIC, SQUARED_LOSS) else self.measure

    def __str__(self) -> str:
        return self.name

    def as_json(self) -> dict[str, Any]:
        """The attributes that are set, for a file."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {key: value for key, value in values.items() if value}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Column":
        """The column of `as_json`, however that was written down."""
        options = tuple((key, value) for key, value in values.get("options", ()))
        return cls(**{**values, "options": options})


#: the swap regret of the quadratic task, which is a quantity of its own: it is the squared calibration error
QUADRATIC = "swap_regret[quadratic]"
#: its external regret, another quantity: the Brier score less that of the best constant
SQUARED_LOSS = "external_regret[quadratic]"


def named(columns: Iterable[Column]) -> dict[str, Column]:
    """Name → column."""
    return {column.name: column for column in columns}


def labels_of(columns: Iterable[Column]) -> tuple[list[str], list[str]]:
    """The labels of the streams, and of the groups, of these columns."""
    there = list(columns)
    groups = [c.stream for c in there if c.kind == "measure" and c.measure == ROUNDS and c.stream]
    labels = dict.fromkeys(c.stream for c in there if c.stream)
    return [label for label in labels if label not in groups], groups


def asked_for(name: str, columns: Mapping[str, Column]) -> list[Column]:
    """The column of this name, or the lower and upper one of a bracket asked for by its own."""
    known: dict[str, list[Column]] = {}
    for column in columns.values():
        known.setdefault(column.whole, []).append(column)
    with suppress(UnknownName):
        return [columns[meant("measure", name, columns)]]
    return known[meant("measure", name, known)]


@dataclass(frozen=True)
class Held:
    """A column with all that its numbers depend on beside the game."""

    column: Column
    content: str

    @classmethod
    def of(cls, column: Column, content: Any) -> "Held":
        """A column with its content as data."""
        return cls(column, json.dumps(content, sort_keys=True))

    @cached_property
    def key(self) -> str:
        """The digest of column and content."""
        return digest([written(self.column), self.content])


def written(column: Column) -> str:
    """A column as it is written down."""
    return json.dumps(column.as_json(), sort_keys=True)


def read_column(text: Any) -> Column | None:
    """A column that was written down; None for any other text."""
    try:
        return Column.from_json(json.loads(text))
    except (TypeError, ValueError, AttributeError, RecursionError):
        return None


#: the longest array that stands in a name number by number
SHORT = 20


def _plain(value: Any) -> Any:
    """A value that can be compared and written into a file. Other objects become their text, or the digest of their
    content.
    """
    array = isinstance(value, np.ndarray)
    if array and value.size <= SHORT:
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if value is None or isinstance(value, bool | str):
        return value
    if is_whole(value):
        return int(value)
    if is_number(value):
        return float(value)
    text = str(value)
    if array or hex(id(value))[2:] in text or len(text) > 200:
        return f"{getattr(value, '__name__', type(value).__name__)} {digest(content(value))[:8]}"
    return text


def _text(value: Any) -> str:
    return f"[{', '.join(map(repr, value))}]" if isinstance(value, tuple) else str(value)
