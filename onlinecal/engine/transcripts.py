"""Writes down the rounds of a game as sequences, where a measure asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_name
from onlinecal.core.transcript import Transcript
from onlinecal.rounds.record import Round


class Transcripts:
    """An observer of resolved rounds that keeps all of them.

    Parameters
    ----------
    runs : int
    kinds : iterable of str
        Of context, to be kept with the rounds.

    Information
    -----------
    At least 40 bytes a run-round, and the context; what grows doubles its room.
    """

    def __init__(self, runs: int, kinds: Iterable[str]) -> None:
        self.runs, self.kinds, self.rounds = runs, sorted(kinds), 0
        self._columns: dict[str, Any] = {}

    def update(self, round: Round, stream: int, context: Mapping[str, Any]) -> None:
        """Adds a round whose outcome is known."""
        row = {
            "forecasts": round.forecast,
            "outcomes": round.outcome,
            "numbers": np.int64(round.number),
            "asked": np.float64(round.time),
            "known": np.float64(round.resolved),
            "streams": np.int64(stream),
            **{f"context {kind}": context[kind] for kind in self.kinds},
        }
        for name, values in row.items():
            column = self._columns.get(name)
            kind = values.dtype if column is None else column.dtype
            if kind != values.dtype:
                kind = np.result_type(kind, values.dtype)  # context may be of other numbers than before
            if column is None or self.rounds == len(column) or kind != column.dtype:
                room = 64 if column is None else len(column) * (1 + (self.rounds == len(column)))
                larger = np.empty((room, *values.shape), kind)
                if column is not None:
                    larger[: self.rounds] = column[: self.rounds]
                column = self._columns[name] = larger
            column[self.rounds] = values
        self.rounds += 1

    def extend(self, told: tuple[Any, ...], drawn: Any) -> None:
        """Adds rounds in their order: what `Events.told` says, and forecasts with outcomes, (runs, rounds, 2)."""
        numbers, asked, known, streams = told
        if not len(numbers):
            return
        rows = {
            "forecasts": drawn[:, :, 0].T,
            "outcomes": drawn[:, :, 1].T.astype(np.int64),
            "numbers": numbers,
            "asked": asked,
            "known": known,
            "streams": streams,
        }
        for name, values in rows.items():
            column = self._columns.get(name, values[:0])
            if self.rounds + len(values) > len(column):
                larger = np.empty(
                    (max(2 * len(column), self.rounds + len(values)), *values.shape[1:]), values.dtype
                )
                larger[: self.rounds] = column[: self.rounds]
                column = self._columns[name] = larger
            column[self.rounds : self.rounds + len(values)] = values
        self.rounds += len(numbers)

    def of(self, run: int, stream: int | None = None) -> Transcript | None:
        """The rounds of one run, of one stream or of all; None where there is none."""
        if not self.rounds:
            return None
        held = {name: column[: self.rounds] for name, column in self._columns.items()}
        if stream is not None:
            mine = held["streams"] == stream
            held = {name: column[mine] for name, column in held.items()}
        if not len(held["numbers"]):
            return None
        own = ("forecasts", "outcomes", *(f"context {kind}" for kind in self.kinds))
        shown = {n: locked((held[n][:, run] if n in own else held[n]).copy()) for n in held if n != "streams"}
        context = {kind: shown.pop(f"context {kind}") for kind in self.kinds}
        return Transcript(**shown, context=MappingProxyType(context))


def check_kept(kinds: Iterable[str], nature: Any) -> frozenset[str]:
    """Refuses kinds of context that nature does not reveal."""
    wanted = frozenset(kinds)
    missing = sorted(wanted - nature.reveals)
    if missing:
        raise InvalidParameter(
            f"{', '.join(missing)} is to be kept with the rounds; nature {strategy_name(nature)!r} does not reveal it"
        )
    return wanted
