"""Natures that replay what really happened."""

import hashlib
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.files import Table, located, times
from onlinecal.core.members import members_of
from onlinecal.core.specification import allow, list_of, number, optional
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, note, shared
from onlinecal.natures.base import Nature


@dataclass(frozen=True)
class Replay(Nature):
    """The outcomes of a CSV or Parquet file, row by row; all runs see the same.

    Information: Sees nothing; can play as many rounds as the file has rows. Reveals the context ``base`` if that column
    is named. Deterministic: runs differ only by the forecaster's draws, and games of several horizons share their first
    rows (`recorded`).

    Parameters
    ----------
    file : str
        A Parquet file (``*.parquet``, ``*.pq``), or a CSV file with a header and comma, semicolon, tab or bar. It may
        be compressed. ``package:NAME/PATH`` is a file of the Python package NAME.
    outcome : str, default "outcome"
        The column of outcomes.
    above : float, optional
        If given, the outcome is 1 where the column exceeds this number, in [−1e308, 1e308]. Without it the column
        must hold 0 and 1, or true and false.
    base : str, optional
        A column of forecasts in [0, 1], for forecasters that improve on them.
    time : str, optional
        A column of numbers or dates that must not descend, kept as `times`, dates as days since 1970.
    groups : sequence of str, optional
        Columns of groups, which it reveals. One of 0 and 1, or true and false, is a group. One of up to 16 texts or
        whole numbers is a group for each value, ``season: winter``. A row without a value is in none; a warning counts
        them.
    """

    recorded = True
    allowed = allow(above=optional(number(-1e308, 1e308)))
    needs_horizon, safe_under_delay, memory = False, True, "O(1)"

    file: str = field(metadata={"key": False})  # the digest of what it holds tells more than where it lies
    outcome: str = "outcome"
    above: float | None = None
    base: str | None = None
    time: str | None = None
    groups: Any = field(default=(), metadata={"key": "unless default"})
    outcomes: Floats = field(init=False, repr=False, compare=False)
    #: the columns `base` and `time`, None where they are not named
    forecasts: Floats | None = field(init=False, repr=False, compare=False)
    times: Floats | None = field(init=False, repr=False, compare=False)
    #: group → 1 for its rows and 0 for others
    members: dict[str, Floats] = field(init=False, repr=False, compare=False, metadata={"key": False})
    #: digest of the columns: the same file name with other contents is another nature
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("file", "outcome", "base", "time"):
            value = getattr(self, name)
            if not isinstance(value, str) and (value is not None or name in ("file", "outcome")):
                raise InvalidParameter(f"{name} = {value!r}; expected text")
        super().__post_init__()
        list_of("groups", self.groups, "columns", least=0)
        table = Table(located(self.file))
        columns = (
            _outcomes(table, self.outcome, self.above),
            None if self.base is None else _forecasts(table, self.base),
            None if self.time is None else times(table, self.time),
        )
        found = members_of(table, self.groups)
        members = {name: inside.astype(np.float64) for name, inside in found.groups.items()}
        if missing := sum(int(lacks.sum()) for lacks in found.missing.values()):
            warnings.warn(
                f"{missing} missing values of groups: these rows are in no group of their column",
                stacklevel=2,
            )
        if "base" in members:
            raise InvalidParameter(
                "groups: a group 'base', which is the context of forecasts; expected another name"
            )
        object.__setattr__(self, "members", members)
        digest = hashlib.sha256()
        for name, inside in members.items():
            inside.flags.writeable = False
            digest.update(name.encode() + inside.tobytes())
        for name, column in zip(("outcomes", "forecasts", "times"), columns, strict=True):
            if column is not None:
                column.flags.writeable = False
                digest.update(column.tobytes())
            object.__setattr__(self, name, column)
        object.__setattr__(self, "fingerprint", digest.hexdigest()[:16])

    @property
    def reveals(self) -> frozenset[str]:  # type: ignore[override]  # read only, as all do
        return frozenset(self.members) | ({"base"} if self.base is not None else set())

    @property
    def group_names(self) -> tuple[str, ...]:
        return tuple(self.members)

    @property
    def length(self) -> int:
        return len(self.outcomes)

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        shown = self.members if self.forecasts is None else {"base": self.forecasts, **self.members}
        if not shown:
            return steps.Nature(play_row, shared=self.outcomes)
        return steps.Nature(
            play_row, shared=np.concatenate([self.outcomes, *shown.values()]), reveal=reveal_row,
            reveals=dict(enumerate(shown)), note=len(shown),
        )  # fmt: skip


def play_row(run: Run, size: int, forecast: float, number: int) -> float:
    """Shared are the outcomes, and behind them as many numbers of each kind of context."""
    return shared(run)[number - 1]


def reveal_row(run: Run, number: int) -> int:
    given, noted = shared(run), note(run)
    rows = len(given) // (1 + len(noted))
    for k in range(len(noted)):
        noted[k] = given[(1 + k) * rows + number - 1]
    return 0


def _outcomes(table: Table, column: str, above: float | None) -> Floats:
    values = table.numbers(column)
    if above is not None:
        return (values > above).astype(np.float64)
    hint = "expected 0 or 1 (the parameter `above` turns a measured quantity into outcomes)"
    table.refuse(column, values, (values == 0.0) | (values == 1.0), hint)
    return values + 0.0


def _forecasts(table: Table, column: str) -> Floats:
    values = table.numbers(column)
    table.refuse(column, values, (values >= 0.0) & (values <= 1.0), "expected a forecast in [0, 1]")
    return values + 0.0
