"""The histories of a game: of all its rounds, or of the parts that are asked for, by stream and by time.

Rounds are told apart by the stream that they are of and by when their question was asked: the times at which somebody
joins or leaves cut the game into stretches. Each such part has a history of its own, and what is asked for is put
together from them, so that a round is counted once, whoever wants to know of it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.history import GridHistory, History, RealHistory, check_counts, check_memory
from onlinecal.rounds.law import Floats

Part = tuple[int, int]


def part_of(cuts: Sequence[float], time: float, stream: int = 0) -> Part:
    """Which part a question belongs to that is asked at this time: its stretch between the cuts, and its stream."""
    return bisect_right(cuts, time), stream


class Ledger:
    """The histories of one game.

    Parameters
    ----------
    runs, horizon : int
    grid : (points,) floats, optional
        Of the forecaster's laws.
    cuts : sequence of float
        Ascending times that end one stretch and begin the next.
    streams : int, default 1
        How many streams there are.
    """

    def __init__(
        self, runs: int, horizon: int, grid: Floats | None, cuts: Sequence[float] = (), streams: int = 1
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
        #: the last `running_counts`, and of how many rounds
        self._counted: tuple[int, tuple[NDArray[np.int64], NDArray[np.int64]]] | None = None
        # What grows doubles its room, and a stretch without a round has none.
        stretches = min(len(self.cuts) + 1, horizon)
        self._room = horizon if self._whole else max(4, min(horizon, 2 * horizon // (stretches * streams)))
        if grid is None:
            check_memory(runs, horizon if self._whole else max(2 * horizon, 4 * stretches))
        elif not self._whole:
            # Rounds and outcomes 1 of each part, and the same before each stretch.
            check_counts(runs, len(grid), stretches * 2 * (1 + min(streams, horizon)))

    def history(self, part: Part) -> History:
        """Where the rounds of a part are written down."""
        found = self._parts.get(part)
        if found is None:
            found = (
                RealHistory(self.runs, self._room) if self.grid is None else GridHistory(self.runs, self.grid)
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
        """Γ of each run over the resolved rounds of a stream that were asked in [since, until); None without any.

        `since` and `until` are among the `cuts`, or infinite.
        """
        if since == math.inf:
            return None
        if self._whole:
            whole = self._parts.get((0, 0))
            return None if whole is None or not whole.rounds else whole.gammas()
        chosen = [h for h in self._chosen(stream, since, until) if h.rounds]
        if not chosen:
            return None
        if len(chosen) == 1:
            return chosen[0].gammas()
        if self.grid is not None:
            counts, positives = self.counts(stream, since, until)
            return [
                JointDistribution.from_counts(self.grid, n, s) for n, s in zip(counts, positives, strict=True)
            ]
        pieces = [history.sorted_keys() for history in chosen if isinstance(history, RealHistory)]
        together = np.concatenate(pieces, axis=1)
        together.sort(axis=1, kind="stable")
        return [JointDistribution.from_sorted_keys(keys) for keys in together]

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
        rounds = self.rounds
        if self._counted is not None and self._counted[0] == rounds:
            return self._counted[1]
        shape = max(stretch for stretch, _ in self._parts) + 2, self.runs, len(self.grid)
        counts, positives = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for (stretch, _), history in self._parts.items():
            assert isinstance(history, GridHistory)
            counts[stretch + 1] += history.counts
            positives[stretch + 1] += history.positives
        np.cumsum(counts, axis=0, out=counts)
        np.cumsum(positives, axis=0, out=positives)
        self._counted = rounds, (counts, positives)
        return counts, positives

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
