"""Records of resolved rounds: sufficient statistics that give Γ of each run at a checkpoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.spill import Keys, Piece, Spill, Stored, gamma_of
from onlinecal.rounds.law import Floats


class History(Protocol):
    """An observer of resolved rounds, for R runs."""

    #: how many it has
    rounds: int
    #: where the keys of the next round are written
    filled: int

    @property
    def room(self) -> int:
        """How many it has room for, 0 where it needs none; its arrays are others when it changes."""

    def reserve(self, rounds: int) -> None:
        """Makes room for so many more rounds."""

    def played(self, rounds: int) -> None:
        """Takes note that so many rounds have been written into its arrays by the compiled loop."""

    def each(self) -> Iterator[JointDistribution]:
        """Γ of each run over the rounds so far, made one after the other; no round may come in between."""


class GridHistory:
    """Counts of rounds and of outcomes 1 by grid index: memory does not grow with time."""

    filled = 0  # there are no keys

    def __init__(self, runs: int, grid: Floats) -> None:
        self.grid = grid
        self.counts = np.zeros((runs, len(grid)), np.int64)
        self.positives = np.zeros((runs, len(grid)), np.int64)
        self.rounds = 0

    @property
    def room(self) -> int:
        """None is needed."""
        return 0

    def reserve(self, rounds: int) -> None:
        """Counts need none."""

    def played(self, rounds: int) -> None:
        """The counts hold so many more rounds."""
        self.rounds += rounds

    def each(self) -> Iterator[JointDistribution]:
        """Γ of each run, from its counts."""
        return of_counts(self.grid, self.counts, self.positives)


class _Keyed(ABC):
    """Keys of all runs, (runs, room), of which so many are filled."""

    keys: Keys
    rounds: int
    filled: int

    @property
    def room(self) -> int:
        """How many keys of a run there is room for in memory."""
        return self.keys.shape[1]

    def played(self, rounds: int) -> None:
        """There are so many more keys."""
        self.rounds += rounds
        self.filled += rounds

    @abstractmethod
    def reserve(self, rounds: int) -> None:
        """Makes room for so many more keys."""


class RealHistory(_Keyed):
    """Every forecast with its outcome in 8 bytes, sorted piece by piece.

    Up to the last checkpoint the keys in memory are sorted; a checkpoint sorts only what has come since and merges the
    two. When there are as many as there may be, they are sorted into a piece of a file.
    """

    def __init__(self, runs: int, room: int, most: int | None = None, spill: Spill | None = None) -> None:
        self.keys = np.empty((runs, room if most is None else min(room, most)), np.int64)
        self.most, self.spill = most, spill
        self.pieces: list[Piece | Keys] = []
        self.rounds = self.filled = 0
        self.sorted = 0

    def __getstate__(self) -> dict[str, Any]:
        # A file without a name cannot be found again: what is in it goes with the pickle.
        loaded = [piece.load() if isinstance(piece, Piece) else piece for piece in self.pieces]
        return self.__dict__ | {"pieces": loaded}

    def reserve(self, rounds: int) -> None:
        """Makes room, at least twice as much as there was where it is not enough, or in the file."""
        if self.filled + rounds <= self.room:
            return
        if self.most is not None and self.filled and self.filled + rounds > self.most:
            assert self.spill is not None
            begin = self.spill.write(self.sorted_keys())
            self.pieces.append(Piece(self.spill, begin, len(self.keys), self.filled))
            self.filled = self.sorted = 0
        need = self.filled + rounds
        if need > self.room:
            twice = 2 * self.room if self.most is None else min(2 * self.room, self.most)
            keys = np.empty((len(self.keys), max(twice, need)), np.int64)
            keys[:, : self.filled] = self.keys[:, : self.filled]
            self.keys = keys

    def each(self) -> Iterator[JointDistribution]:
        """Γ of each run, from its sorted keys."""
        for run in range(len(self.keys)):
            yield gamma_of(self.sorted_pieces(run))

    def sorted_pieces(self, run: int) -> list[Keys | Stored]:
        """All keys of a run, in pieces that are in order; they stay so only until the next round."""
        parts = [p.of(run) if isinstance(p, Piece) else p[run] for p in self.pieces]
        return [*parts, self.sorted_keys()[run]] if self.filled else parts

    def sorted_keys(self) -> Keys:
        """The keys in memory in order, (runs, filled); they stay so only until the next round."""
        if self.filled > self.sorted:
            for keys in self.keys:
                keys[self.sorted : self.filled].sort()
                # The stable sort finds the two ascending pieces and merges them.
                keys[: self.filled].sort(kind="stable")
            self.sorted = self.filled
        return self.keys[:, : self.filled]


class MovedHistory(_Keyed):
    """Counts on a grid of forecasts that were moved to it, and how far: memory does not grow with time.

    Keys wait in a small buffer until many are counted at a time.
    """

    def __init__(self, runs: int, m: int) -> None:
        self.grid = np.arange(m + 1) / m
        self._counts, self._positives = np.zeros((2, runs, m + 1), np.int64)
        #: sum of the distances of each run, and what additions have lost of it
        self._distances = np.zeros((runs, 2))
        self.keys = np.empty((runs, 64), np.int64)
        self.rounds = self.filled = 0

    def __getstate__(self) -> dict[str, Any]:
        # The buffer is as large as what was played at a time.
        self._count()
        return self.__dict__ | {"keys": self.keys[:, :64].copy()}

    def reserve(self, rounds: int) -> None:
        """Counts what is in the buffer where it has no room."""
        if self.filled + rounds > self.room:
            self._count()
            if rounds > self.room:
                self.keys = np.empty((len(self.keys), rounds), np.int64)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rounds at each point, (runs, m + 1)."""
        self._count()
        return self._counts

    @property
    def positives(self) -> NDArray[np.int64]:
        """Outcomes 1 at each point, (runs, m + 1)."""
        self._count()
        return self._positives

    @property
    def distances(self) -> Floats:
        """The sum of all distances of each run, (runs,): never less than it is, and at most 1e-12 of it more."""
        self._count()
        return np.asarray(self._distances.sum(axis=1) * (1.0 + 1e-12))

    def each(self) -> Iterator[JointDistribution]:
        """Γ of each run after its forecasts were moved."""
        return of_counts(self.grid, self.counts, self.positives)

    def _count(self) -> None:
        if self.filled:
            bits, m = self.keys.view(np.float64), len(self.grid) - 1
            _move(self.keys, bits, self.filled, m, self._counts, self._positives, self._distances)
            self.filled = 0


def of_counts(grid: Floats, counts: NDArray[Any], positives: NDArray[Any]) -> Iterator[JointDistribution]:
    """Γ of each run from its counts on a grid, (runs, points)."""
    for n, s in zip(counts, positives, strict=True):
        yield JointDistribution.from_counts(grid, n.astype(np.float64), s.astype(np.float64))


@kernel
def _move(keys, values, filled, m, counts, positives, distances):
    """Counts keys at the nearest points of the grid. The keys are used up: `values` are the same bits as numbers."""
    for r in range(len(keys)):
        total, lost = distances[r, 0], distances[r, 1]
        for t in range(filled):
            outcome = keys[r, t] & 1
            keys[r, t] >>= 1
            v = values[r, t]
            i = int(np.rint(v * m))
            counts[r, i] += 1
            positives[r, i] += outcome
            # Neumaier's sum: what an addition loses is kept.
            moved = abs(v - i / m)
            after = total + moved
            lost += (total - after) + moved if total >= moved else (moved - after) + total
            total = after
        distances[r, 0], distances[r, 1] = total, lost
