"""Writes down the rounds of a game as sequences, where a measure asks for them."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import numpy as np

from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import Transcript
from onlinecal.core.strategy import strategy_name


class Transcripts:
    """An observer of resolved rounds that keeps all of them."""

    def __init__(self, runs: int, kinds: Iterable[str]) -> None:
        self.runs, self.kinds, self.rounds = runs, sorted(kinds), 0
        self._columns: dict[str, Any] = {}

    def extend(self, told: tuple[Any, ...], drawn: Any) -> None:
        """Adds rounds in order: those of `Events.told`, and forecasts, outcomes and context, (runs, rounds, …)."""
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
            **{
                f"context {kind}": drawn[:, :, 2 + i].T.astype(np.int64 if kind == "stream" else np.float64)
                for i, kind in enumerate(self.kinds)
            },
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
