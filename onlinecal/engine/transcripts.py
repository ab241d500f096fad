"""Writes down the rounds of a game as sequences, where a measure asks for them."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import numpy as np

from onlinecal.core.arrays import locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_name
from onlinecal.core.transcript import Transcript


class Transcripts:
    """The resolved rounds of a game."""

    def __init__(self, runs: int, kinds: Iterable[str]) -> None:
        self.runs, self.kinds, self.rounds = runs, sorted(kinds), 0
        self._columns: dict[str, Any] = {}

    def extend(self, told: tuple[Any, ...], drawn: Any) -> None:
        """Adds rounds in order: those of `Events.told`, and forecasts, outcomes and context, (runs, rounds, …)."""
        rows = dict(zip(("numbers", "asked", "known", "streams"), told, strict=True))
        for i, name in enumerate(("forecasts", "outcomes", *(f"context {kind}" for kind in self.kinds))):
            whole = name in ("outcomes", "context stream")
            rows[name] = drawn[:, :, i].T.astype(np.int64 if whole else np.float64)
        before, self.rounds = self.rounds, self.rounds + len(rows["numbers"])
        for name, values in rows.items():
            column = self._columns.get(name, values[:0])
            if self.rounds > len(column):
                room = max(2 * len(column), self.rounds)
                larger = np.empty((room, *values.shape[1:]), values.dtype)
                larger[:before] = column[:before]
                column = self._columns[name] = larger
            column[before : self.rounds] = values

    def of(self, run: int, stream: int | None = None) -> Transcript | None:
        """The rounds of one run, of one stream or of all; None without any."""
        held = {name: column[: self.rounds] for name, column in self._columns.items()}
        mine = slice(None) if stream is None or not held else held["streams"] == stream
        held = {name: column[mine] for name, column in held.items()}
        if not held or not len(held["numbers"]):
            return None
        shown = {
            n: locked((c[:, run] if c.ndim > 1 else c).copy()) for n, c in held.items() if n != "streams"
        }
        context = {kind: shown.pop(f"context {kind}") for kind in self.kinds}
        return Transcript(**shown, context=MappingProxyType(context))


def check_kept(kinds: Iterable[str], nature: Any) -> frozenset[str]:
    """Refuses kinds of context that nature does not reveal."""
    wanted = frozenset(kinds)
    missing = sorted(wanted - nature.reveals)
    if missing:
        raise InvalidParameter(
            f"{', '.join(missing)} is to be kept with the rounds; nature {strategy_name(nature)!r} does not reveal it; "
            f"expected of {sorted(nature.reveals)}"
        )
    return wanted
