"""The histories of a game: of all its rounds, or of the parts that are asked for, by stream and by time.

Rounds are told apart by the stream that they are of and by when their question was asked: the times at which somebody
joins or leaves cut the game into stretches. Each such part has a history of its own, and what is asked for is put
together from them, so that a round is counted once, whoever wants to know of it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.history import GridHistory, History, MovedHistory, RealHistory, of_counts
from onlinecal.engine.keeping import FEWEST, Exact, Keeping, OnGrid
from onlinecal.engine.memory import check_counts
from onlinecal.engine.spill import Spill, gamma_of
from onlinecal.rounds.law import Floats

Part = tuple[int, int]


class Ledger:
    """The histories of one game."""

    def __init__(
        self,
        runs: int,
        horizon: int,
        grid: Floats | None,
        cuts: Sequence[float] = (),
        streams: int = 1,
        keeping: Keeping = Exact(),
    ) -> None:
        self.runs, self.horizon, self.grid, self.cuts, self.streams = (
            runs,
            horizon,
            grid,
            tuple(cuts),
            streams,
        )
        self._whole = not cuts and streams == 1
        self._parts: dict[Part, History] = {}
        #: the last `running_counts`, and the rounds of each stretch that are in them
        self._before: NDArray[np.int64] | None = None
        self._counted = np.zeros(0, np.int64)
        # What grows doubles its room, and a stretch without a round has none.
        stretches = min(len(self.cuts) + 1, horizon)
        self._room = horizon if self._whole else max(4, min(horizon, 2 * horizon // (stretches * streams)))
        self._keeping: Keeping | None = keeping if grid is None else None
        self._most: int | None = None
        self._spill: Spill | None = None
        if isinstance(self._keeping, Exact):
            self._most = self._keeping.most(runs, horizon if self._whole else max(2 * horizon, 4 * stretches))
            if self._most is not None:
                self._most = max(FEWEST, self._most // (1 if self._whole else stretches * streams))
                self._spill = Spill(self._keeping.place)
        elif grid is None:
            assert isinstance(self._keeping, OnGrid)
            check_counts(runs, self._keeping.m + 1, 2 * stretches * min(streams, horizon))
        elif not self._whole:
            # Rounds and outcomes 1 of each part, and the same before each stretch.
            check_counts(runs, len(grid), stretches * 2 * (1 + min(streams, horizon)))

    def history(self, part: Part) -> History:
        """Where the rounds of a part are written down."""
        found = self._parts.get(part)
        if found is None:
            found = self._parts[part] = self._new()
        return found

    def _new(self) -> History:
        if self.grid is not None:
            return GridHistory(self.runs, self.grid)
        if isinstance(self._keeping, OnGrid):
            return MovedHistory(self.runs, self._keeping.m)
        return RealHistory(self.runs, self._room, self._most, self._spill)

    @property
    def rounds(self) -> int:
        """How many have been resolved."""
        return sum(history.rounds for history in self._parts.values())

    def gammas(
        self, stream: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> list[JointDistribution] | None:
        """Γ of each run over the resolved rounds of a stream that were asked in [since, until); None without any.

        `since` and `until` are among the `cuts`, or infinite.
        """
        each = self.each(stream, since, until)
        return None if each is None else list(each)

    def each(
        self, stream: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> Iterator[JointDistribution] | None:
        """As `gammas`, made one after the other, so that one at a time is in memory; no round may come in between."""
        chosen = self._filled(stream, since, until)
        if not chosen:
            return None
        if len(chosen) == 1:
            return chosen[0].each()
        if self.grid is not None:
            return of_counts(self.grid, *self.counts(stream, since, until))
        if isinstance(self._keeping, OnGrid):
            moved = [history for history in chosen if isinstance(history, MovedHistory)]
            tables = (sum(h.counts for h in moved), sum(h.positives for h in moved))
            return of_counts(moved[0].grid, *map(np.asarray, tables))
        return self._together([history for history in chosen if isinstance(history, RealHistory)])

    def _together(self, chosen: Sequence[RealHistory]) -> Iterator[JointDistribution]:
        for run in range(self.runs):
            yield gamma_of([piece for history in chosen for piece in history.sorted_pieces(run)])

    def moved(
        self, stream: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> Floats | None:
        """The mean distance that the forecasts of each run were moved, (runs,); None where Γ is exact, or is none.

        Rounded up.
        """
        if not isinstance(self._keeping, OnGrid):
            return None
        chosen = [h for h in self._filled(stream, since, until) if isinstance(h, MovedHistory)]
        if not chosen:
            return None
        total = np.sum([history.distances for history in chosen], axis=0)
        return np.asarray(np.minimum(total * (1.0 + 1e-12) / sum(history.rounds for history in chosen), 1.0))

    def _filled(self, stream: int | None, since: float, until: float) -> list[History]:
        """The parts of `gammas` that have rounds."""
        if since == math.inf:
            return []
        chosen = list(self._parts.values()) if self._whole else self._chosen(stream, since, until)
        return [history for history in chosen if history.rounds]

    def counts(
        self, stream: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> tuple[Floats, Floats]:
        """Rounds and outcomes 1 of each run at each point of the grid, (runs, points) each, as floats."""
        assert self.grid is not None
        if stream is None and len(self._parts) > 16:
            before = self.running_counts()
            first, last = (min(at, len(before[0]) - 1) for at in self.stretches(since, until))
            return tuple((each[last] - each[first]).astype(np.float64) for each in before)
        shape = self.runs, len(self.grid)
        counts, positives = np.zeros(shape), np.zeros(shape)
        for history in self._chosen(stream, since, until):
            assert isinstance(history, GridHistory)
            counts += history.counts
            positives += history.positives
        return counts, positives

    def running_counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of all streams, rounds and outcomes 1 before each stretch, (stretches + 1, runs, points) each.

        The stretches are those up to the last that has a round; after it, nothing has been counted.
        """
        assert self.grid is not None
        rounds = np.zeros(max(stretch for stretch, _ in self._parts) + 1, np.int64)
        for (stretch, _), history in self._parts.items():
            rounds[stretch] += history.rounds
        if self._before is None:
            # Zeros that are not touched take no memory.
            self._before = np.zeros((2, len(self.cuts) + 2, self.runs, len(self.grid)), np.int64)
        known = self._counted[: len(rounds)]
        changed = np.flatnonzero(known != rounds[: len(known)])
        # Stretches before the first in which a round was added are as they were.
        first, size = int(changed[0]) if len(changed) else len(known), len(rounds)
        if first < size:
            new = self._before[:, first + 1 : size + 1]
            new[...] = 0
            for (stretch, _), history in self._parts.items():
                if stretch >= first:
                    assert isinstance(history, GridHistory)
                    new[0, stretch - first] += history.counts
                    new[1, stretch - first] += history.positives
            new[:, 0] += self._before[:, first]
            np.cumsum(new, axis=1, out=new)
            self._counted = rounds
        return self._before[0, : size + 1], self._before[1, : size + 1]

    def stretches(self, since: float, until: float) -> tuple[int, int]:
        """Which stretches are from one time to another: from the first up to, not including, the last."""
        end = len(self.cuts) + 1
        first = {-math.inf: 0, math.inf: end}.get(since)
        return self._after(since) if first is None else first, end if until == math.inf else self._after(
            until
        )

    def _after(self, cut: float) -> int:
        at = bisect_right(self.cuts, cut)
        if at == 0 or self.cuts[at - 1] != cut:
            raise InvalidParameter(f"time {cut!r}: nothing begins or ends there; expected one of the cuts")
        return at

    def _chosen(self, stream: int | None, since: float, until: float) -> list[History]:
        first, last = self.stretches(since, until)
        return [
            history
            for (stretch, own), history in sorted(self._parts.items())
            if first <= stretch < last and stream in (None, own)
        ]
