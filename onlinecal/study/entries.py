"""What a results file has of a cell: what is planned, and the numbers that were played, with their digest."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.sight import Sight
from onlinecal.study.packed import plain
from onlinecal.study.played import Floats, Joined, Promise


class Planned(NamedTuple):
    """A cell that is to be shown.

    Attributes
    ----------
    key : str
        `Cell.key`, under which its numbers are kept.
    forecaster, nature, schedule : str
        Labels.
    horizon, runs : int
    recorded : bool
    sight : Sight
        Both as in `Played`.
    promises : tuple of Promise
        The guarantees that apply to it.
    """

    key: str
    forecaster: str
    nature: str
    schedule: str
    horizon: int
    runs: int
    recorded: bool
    sight: Sight
    promises: tuple[Promise, ...] = ()

    @property
    def against(self) -> str:
        """Nature with the schedule."""
        return ", ".join(filter(None, (self.nature, self.schedule)))

    def __str__(self) -> str:
        return f"{self.forecaster!r} against {self.against!r} at T = {self.horizon}"


class Numbers(NamedTuple):
    """What was played of a cell: its checkpoints, the totals of each column, (n, runs), the questions that were open at
    each checkpoint, and the accounts of decision makers who join and leave.
    """

    content: str
    rounds: NDArray[np.int64]
    totals: dict[Column, Floats]
    seconds: float
    loop: str
    open: tuple[int, ...]
    people: Joined | None

    @property
    def runs(self) -> int:
        """How many."""
        return next(iter(self.totals.values())).shape[1]

    def seal(self, key: str) -> str:
        """The digest of all of it."""
        people = self.people and plain(self.people)
        state = hashlib.sha256(repr((key, self.content, self.seconds, self.loop, self.open, people)).encode())
        for column, totals in sorted((written(column), totals) for column, totals in self.totals.items()):
            state.update(repr((column, totals.shape)).encode())
            state.update(self.rounds.astype("<i8").tobytes())
            state.update((totals + 0.0).astype("<f8").tobytes())  # SQLite does not know -0.0
        return state.hexdigest()


def written(column: Column) -> str:
    """A column as it is written down."""
    return json.dumps(column.as_json(), sort_keys=True)


def read_column(text: Any) -> Column | None:
    """A column that was written down; None for what is none."""
    try:
        return Column.from_json(json.loads(text))
    except (TypeError, ValueError, AttributeError, RecursionError, InvalidParameter):
        return None
