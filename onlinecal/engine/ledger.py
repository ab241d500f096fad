"""The histories of a game, by stream and by time.

Rounds are told apart by their stream and by the time of their question. The times at which decision makers join or
leave cut the game into stretches. Each part, a stretch and a stream, has a history of its own. Γ of several parts is
put together from theirs, so that a round is counted once.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.levels import LevelSets
from onlinecal.engine.history import Counts, History, Sorted, of_counts, together
from onlinecal.engine.keeping import FEWEST, Exact, Keeping, OnGrid
from onlinecal.engine.memory import check_counts
from onlinecal.engine.spill import Spill

#: stretch and stream
Part = tuple[int, int]


class Ledger:
    """The histories of one game: of forecasts on a grid, or (None) as `keeping` says.

    Γ is of the time from `since` up to, not including, `until`; these are among the `cuts`, or infinite.
    """

    def __init__(
        self,
        runs: int,
        horizon: int,
        grid: Floats | None,
        cuts: Sequence[float] = (),
        streams: int = 1,
        keeping: Keeping = Exact(),
    ) -> None:
        self.runs, self.grid, self.cuts, self.streams = runs, grid, tuple(cuts), streams
        self._whole = not cuts and streams == 1
        self._parts: dict[Part, History] = {}
        #: the last `running_counts`, and the rounds of each stretch that are in them
        self._before: NDArray[np.int64] | None = None
        self._counted = np.zeros(0, np.int64)
        stretches = min(len(self.cuts) + 1, horizon)
        #: the grid of the counts, to which forecasts may be moved; None where keys are sorted
        self._points, self._moved = grid, grid is None and isinstance(keeping, OnGrid)
        if grid is not None:
            if not self._whole:
                # Rounds and outcomes 1 of each part, and the same before each stretch.
                check_counts(runs, len(grid), stretches * 2 * (1 + min(streams, horizon)))
        elif isinstance(keeping, OnGrid):
            self._points = np.arange(keeping.m + 1) / keeping.m
            check_counts(runs, keeping.m + 1, 2 * stretches * min(streams, horizon))
        else:
            parts = 1 if self._whole else stretches * streams
            # A history that grows doubles its room, and a stretch without a round has no history.
            room = horizon if self._whole else max(4, min(horizon, 2 * horizon // parts))
            most = keeping.most(runs, horizon if self._whole else max(2 * horizon, 4 * stretches))
            spill = None if most is None else Spill(keeping.place)
            self._sorted = room, None if most is None else max(FEWEST, most // parts), spill

    def history(self, part: Part) -> History:
        """The record of the rounds of a part."""
        found = self._parts.get(part)
        if found is None:
            points = self._points
            found = (
                Sorted(self.runs, *self._sorted) if points is None else Counts(self.runs, points, self._moved)
            )
            self._parts[part] = found
        return found

    @property
    def rounds(self) -> int:
        """How many have been resolved."""
        return sum(history.rounds for history in self._parts.values())

    def gammas(
        self, stream: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> list[JointDistribution] | None:
        """Γ of each run over the resolved rounds of a stream that were asked in [since, until); None without any."""
        each = list(self.each(stream, since, until))
        return [gamma for sets in each for gamma in sets] or None

    def each(
        self, stream: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> Iterator[LevelSets]:
        """The level sets of `gammas`, of some runs at a time: no others are in memory. No round may come between."""
        chosen = self._filled(stream, since, until)
        if len(chosen) == 1:
            return chosen[0].each()
        if not chosen:
            return iter(())
        if self._points is None:
            return together([history for history in chosen if isinstance(history, Sorted)])
        return of_counts(self._points, *self.counts(stream, since, until))

    def moved(
        self, stream: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> Floats | None:
        """The mean distance that forecasts of each run were moved, (runs,), rounded up; None if Γ is exact or empty."""
        chosen = [h for h in self._filled(stream, since, until) if isinstance(h, Counts)]
        if not self._moved or not chosen:
            return None
        total = np.sum([history.distances for history in chosen], axis=0)
        return np.asarray(np.minimum(total * (1.0 + 1e-12) / sum(history.rounds for history in chosen), 1.0))

    def counts(
        self, stream: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> tuple[Any, Any]:
        """Rounds and outcomes 1 of each run at each point of the grid, (runs, points) each."""
        if self.grid is not None and stream is None and len(self._parts) > 16:
            before = self.running_counts()
            first, last = (min(at, len(before[0]) - 1) for at in self.stretches(since, until))
            return before[0][last] - before[0][first], before[1][last] - before[1][first]
        chosen = [h for h in self._filled(stream, since, until) if isinstance(h, Counts)]
        return sum(h.counts for h in chosen), sum(h.positives for h in chosen)

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
                if stretch >= first and isinstance(history, Counts):
                    new[0, stretch - first] += history.counts
                    new[1, stretch - first] += history.positives
            # `cumsum` along an axis in the middle reads the array in jumps, and takes twenty times as long.
            for stretch in range(first, size):
                self._before[:, stretch + 1] += self._before[:, stretch]
            self._counted = rounds
        return self._before[0, : size + 1], self._before[1, : size + 1]

    def stretches(self, since: float, until: float) -> tuple[int, int]:
        """Which stretches are from one time to another: from the first up to, not including, the last."""
        end = len(self.cuts) + 1
        known = {-math.inf: 0, math.inf: end}
        first, last = (known[at] if at in known else self._after(at) for at in (since, until))
        return first, last

    def _after(self, cut: float) -> int:
        at = bisect_right(self.cuts, cut)
        if at == 0 or self.cuts[at - 1] != cut:
            raise InvalidParameter(f"time {cut!r}: nothing begins or ends there; expected one of the cuts")
        return at

    def _filled(self, stream: int | None, since: float, until: float) -> list[History]:
        """The parts of `gammas` that have rounds, in order."""
        first, last = self.stretches(since, until)
        return [
            history
            for (stretch, own), history in sorted(self._parts.items())
            if history.rounds and first <= stretch < last and stream in (None, own)
        ]
