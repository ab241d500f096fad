"""Records of resolved rounds: sufficient statistics that give Γ of each run at a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.core.arrays import Floats
from onlinecal.core.joint import JointDistribution, encode
from onlinecal.core.levels import LevelSets
from onlinecal.engine.spill import Keys, Spill, gamma_of, merged

#: points or rounds of several runs from which level sets are made at a time. Beyond, each run is alone.
AT_ONCE = 2**18


class Counts:
    """Rounds and outcomes 1 at each point of a grid, (runs, points): memory does not grow with time.

    Forecasts are on the grid; or (`moved`) they are moved to its nearest point, and the distances are summed.
    """

    filled = 0  # there are no keys

    def __init__(self, runs: int, grid: Floats, moved: bool = False) -> None:
        self.grid, self.moved, self.rounds = grid, moved, 0
        self.counts, self.positives = np.zeros((2, runs, len(grid)), np.int64)
        #: the sum of the distances of each run, and what additions have lost of it
        self.sums = np.zeros((runs * moved, 2))

    def reserve(self, rounds: int) -> None:
        """Makes room for more rounds: counts need none."""

    def played(self, rounds: int) -> None:
        """Takes note that the compiled loop has counted more rounds."""
        self.rounds += rounds

    def add(self, said: Any, outcomes: NDArray[np.int64]) -> None:
        """Adds rounds of the only run: places on the grid, or forecasts that are moved, and outcomes."""
        if self.moved:
            _add_moved(np.asarray(said, np.float64), outcomes, self.counts, self.positives, self.sums)
        else:
            places = np.asarray(said, np.int64)
            np.add.at(self.counts[0], places, 1)
            np.add.at(self.positives[0], places, outcomes)
        self.played(len(said))

    @property
    def distances(self) -> Floats:
        """The sum of all distances of each run, (runs,), rounded up by at most 1e-12 of it."""
        return np.asarray(self.sums.sum(axis=1) * (1.0 + 1e-12))

    def each(self) -> Iterator[LevelSets]:
        """The level sets of the runs, of some at a time."""
        return of_counts(self.grid, self.counts, self.positives)


class Sorted:
    """Every forecast with its outcome in 8 bytes, (runs, room), sorted piece by piece.

    Up to the last checkpoint the keys in memory are sorted. A checkpoint sorts the later ones and merges the two.
    When there are as many as there may be (`most`), they are sorted into a piece of a file.
    """

    def __init__(self, runs: int, room: int, most: int | None = None, spill: Spill | None = None) -> None:
        self.keys: Keys = np.empty((runs, room if most is None else min(room, most)), np.int64)
        self.most, self.spill = most, spill
        #: where each piece begins in the file, and its rounds; or its keys, of a game that was pickled
        self.pieces: list[tuple[int, int] | Keys] = []
        self.rounds = self.filled = self.sorted = 0

    def __getstate__(self) -> dict[str, Any]:
        # A file without a name cannot be found again: its keys go with the pickle.
        return self.__dict__ | {"pieces": [np.array(self._piece(piece)) for piece in self.pieces]}

    def _piece(self, piece: Any) -> Keys:
        if isinstance(piece, np.ndarray):
            return piece
        assert self.spill is not None
        return self.spill.rows(piece[0], (len(self.keys), piece[1]))

    def reserve(self, rounds: int) -> None:
        """Makes room for more rounds: at least twice as much as before, or in the file."""
        need, room = self.filled + rounds, self.keys.shape[1]
        if need <= room:
            return
        if self.most is not None and self.filled and need > self.most:
            assert self.spill is not None
            self.pieces.append((self.spill.write(self.in_order()), self.filled))
            self.filled, self.sorted, need = 0, 0, rounds
        if need > room:
            twice = 2 * room if self.most is None else min(2 * room, self.most)
            keys = np.empty((len(self.keys), max(twice, need)), np.int64)
            keys[:, : self.filled] = self.keys[:, : self.filled]
            self.keys = keys

    def played(self, rounds: int) -> None:
        """Takes note that the compiled loop has written more keys."""
        self.rounds += rounds
        self.filled += rounds

    def add(self, said: Any, outcomes: NDArray[np.int64]) -> None:
        """Adds rounds of the only run: forecasts and outcomes."""
        self.reserve(len(said))
        p, y = (np.asarray(each, np.float64) for each in (said, outcomes))
        self.keys[0, self.filled : self.filled + len(said)] = encode(p, y)
        self.played(len(said))

    def each(self) -> Iterator[LevelSets]:
        """The level sets of the runs, of some at a time; no round may come in between."""
        return together([self])

    def sorted_pieces(self, run: int) -> list[Keys]:
        """All keys of a run, in pieces that are in order; they stay so only until the next round."""
        parts = [self._piece(piece)[run] for piece in self.pieces]
        return [*parts, self.in_order()[run]] if self.filled else parts

    def in_order(self) -> Keys:
        """The keys in memory in order, (runs, filled)."""
        if self.filled > self.sorted:
            for keys in self.keys:
                keys[self.sorted : self.filled].sort()
                # The stable sort finds the two ascending pieces and merges them.
                keys[: self.filled].sort(kind="stable")
            self.sorted = self.filled
        return self.keys[:, : self.filled]


History = Counts | Sorted


def together(histories: list[Sorted]) -> Iterator[LevelSets]:
    """The level sets of the runs over the keys of some histories."""
    runs = range(len(histories[0].keys))
    pieces = any(history.pieces for history in histories)
    if len(histories) == 1 and not pieces and histories[0].filled <= AT_ONCE // 2:
        keys, rows = histories[0].in_order(), AT_ONCE // histories[0].filled
        for run in runs[::rows]:
            yield LevelSets.of_keys(keys[run : run + rows])
        return
    of = merged if pieces else gamma_of
    for run in runs:
        yield LevelSets.of([of([piece for history in histories for piece in history.sorted_pieces(run)])])


def of_counts(grid: Floats, counts: NDArray[Any], positives: NDArray[Any]) -> Iterator[LevelSets]:
    """The level sets of the runs from their counts on a grid, (runs, points)."""
    rows = max(1, AT_ONCE // len(grid))
    ascends = bool(grid[0] >= 0.0 and grid[-1] <= 1.0 and (grid[1:] > grid[:-1]).all())
    for run in range(0, len(counts), rows):
        n, s = counts[run : run + rows], positives[run : run + rows]
        if ascends:
            yield LevelSets.of_counts(grid, n, s)
        else:
            each = (part.astype(np.float64) for part in (n, s))
            yield LevelSets.of([JointDistribution.from_counts(grid, *one) for one in zip(*each, strict=True)])


@part_of_kernel
def move_to(value, outcome, counts, positives, sums):
    """Counts a forecast at the nearest point of a grid, and adds the distance by Neumaier's sum."""
    m = len(counts) - 1
    i = np.int64(np.rint(value * m))
    counts[i] += 1
    positives[i] += outcome
    moved, total = abs(value - i / m), sums[0]
    after = total + moved
    sums[1] += (total - after) + moved if total >= moved else (moved - after) + total
    sums[0] = after


@kernel
def _add_moved(values, outcomes, counts, positives, sums):
    for t in range(len(values)):
        move_to(values[t], outcomes[t], counts[0], positives[0], sums[0])
