"""Writes down the rounds of a game as sequences, where a measure asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats, locked
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_name
from onlinecal.core.transcript import Transcript
from onlinecal.engine.history import wider
from onlinecal.engine.loop import LOGGED

#: the first numbers of a row, which has the context behind; the loop writes the first `FROM_LOOP`
NUMBER, FORECAST, OUTCOME, ASKED, KNOWN, STREAM = range(LOGGED)
FROM_LOOP = 3


class Transcripts:
    """The resolved rounds of a game, of each run in the order in which their outcomes became known."""

    def __init__(self, runs: int, kinds: Iterable[str]) -> None:
        self.kinds = sorted(kinds)
        self.filled = np.zeros(runs, np.int64)
        self.rows = np.zeros((runs, 0, LOGGED + len(self.kinds)))
        self._before = self.filled
        #: of each question that the loop has asked, by number − 1: when, when its outcomes become known, its stream
        self.questions = np.zeros((0, 4))

    def lend(self, first: int, asked: Floats, known: Floats, streams: Any, rounds: int) -> tuple[Any, Any]:
        """The arrays that the loop writes into, for these new questions and this many outcomes."""
        last = first - 1 + len(asked)
        if last > len(self.questions):
            more = np.zeros((max(last, 2 * len(self.questions)), 4))
            more[: len(self.questions)] = self.questions
            self.questions = more
        new = self.questions[first - 1 : last]
        new[:, 0], new[:, 1:3], new[:, 3] = asked, known.reshape(len(asked), -1), streams
        self._reserve(rounds)
        self._before = self.filled.copy()
        return self.rows, self.filled

    def take(self) -> None:
        """Adds times and streams to what the loop has written."""
        for rows, first, last in zip(self.rows, self._before, self.filled, strict=True):
            new = rows[first:last]
            number, outcome = (new[:, place].astype(np.int64) for place in (NUMBER, OUTCOME))
            new[:, ASKED], new[:, STREAM] = self.questions[number - 1, 0], self.questions[number - 1, 3]
            new[:, KNOWN] = self.questions[number - 1, 1 + outcome]

    def add(self, run: int, row: Sequence[float]) -> None:
        """Adds one round."""
        if self.filled[run] == self.rows.shape[1]:
            self._reserve(1)
        self.rows[run, self.filled[run]] = row
        self.filled[run] += 1

    def _reserve(self, rounds: int) -> None:
        need, have = int(self.filled.max()) + rounds, self.rows.shape[1]
        if need > have:
            self.rows = wider(self.rows, max(need, 2 * have))

    def of(self, run: int, stream: int | None = None, group: str = "") -> Transcript | None:
        """The rounds of one run, of one stream, of one group that is kept, or of all; None without any."""
        rows = self.rows[run, : self.filled[run]]
        if stream is not None:
            rows = rows[rows[:, STREAM] == stream]
        if group:
            rows = rows[rows[:, LOGGED + self.kinds.index(group)] == 1.0]
        if not len(rows):
            return None

        def column(place: int, kind: Any = np.float64) -> Any:
            return locked(rows[:, place].astype(kind))

        context = {
            kind: column(LOGGED + i, np.int64 if kind == "stream" else np.float64)
            for i, kind in enumerate(self.kinds)
        }
        return Transcript(
            forecasts=column(FORECAST), outcomes=column(OUTCOME, np.int64), numbers=column(NUMBER, np.int64),
            asked=column(ASKED), known=column(KNOWN), context=MappingProxyType(context),
        )  # fmt: skip


def transcripts_of(runs: int, kinds: Iterable[str] | None, nature: Any) -> Transcripts | None:
    """What writes rounds down with these kinds of context, and with the groups of nature; None for None."""
    return None if kinds is None else Transcripts(runs, check_kept(kinds, nature) | {*nature.group_names})


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
