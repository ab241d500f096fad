"""Keys of forecasts that do not fit into memory: sorted pieces in a file without a name, merged when Γ is asked for.

A piece is ascending keys (`onlinecal.core.joint.encode`), in memory or in the file. Merging reads a block of each piece
at a time and writes levels, so that no more is in memory than these blocks and Γ itself.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.errors import StoreError
from onlinecal.core.joint import JointDistribution

Keys = NDArray[np.int64]

#: bytes that the blocks of all pieces take together, about; and the fewest and most keys of a block
BLOCKS, FEWEST, MOST = 2**26, 64, 2**16
#: levels that are written at a time
LEVELS = 2**18
#: why the kernel stopped
DONE, EMPTY, FULL = range(3)


class Spill:
    """A temporary file of whole numbers that grows at its end.

    It has no name while it is in use, so that it is gone whatever ends the process; where the system needs a name
    (Windows), the file goes when it is closed.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._file: IO[bytes] | None = None
        self._end = 0

    def __reduce__(self) -> Any:
        # Another file, and empty: who keeps pieces in this one takes them along.
        return Spill, (self.folder,)

    def write(self, rows: Keys) -> int:
        """Appends an array; where it begins, in bytes."""
        begin = self._end
        data = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(  # noqa: SIM115
                    dir=self.folder, prefix="onlinecal-", buffering=0
                )
                weakref.finalize(self, self._file.close)
            self._file.seek(begin)
            done = 0
            while done < len(data):
                done += self._file.write(data[done:].data)
        except OSError as error:
            raise StoreError(
                f"{self.folder}: a file of forecasts cannot be written after {begin / 2**30:.1f} GiB "
                f"({error.strerror}); expected room for 8 bytes a run-round, or history = "
                "{ name = 'exact', folder = … } on another disk, or an integer for counts on a grid"
            ) from error
        self._end += len(data)
        return begin

    def read(self, begin: int, out: Keys) -> None:
        """Fills an array with what is there from `begin` on."""
        assert self._file is not None
        data = out.view(np.uint8)
        try:
            self._file.seek(begin)
            done = 0
            while done < len(data):
                more = self._file.readinto(data[done:].data)  # type: ignore[attr-defined]
                if not more:
                    raise OSError(5, "it ends too soon")
                done += more
        except OSError as error:
            raise StoreError(
                f"{self.folder}: the file of forecasts cannot be read ({error.strerror}); expected a sound disk"
            ) from error


class Piece(NamedTuple):
    """Sorted keys of each run, in a file: where they begin, of how many runs, how many of each."""

    spill: Spill
    begin: int
    runs: int
    rounds: int

    def of(self, run: int) -> Stored:
        """Those of one run."""
        return Stored(self.spill, self.begin + 8 * self.rounds * run, self.rounds)

    def load(self) -> Keys:
        """All of them, (runs, rounds)."""
        keys = np.empty((self.runs, self.rounds), np.int64)
        self.spill.read(self.begin, keys.reshape(-1))
        return keys


class Stored(NamedTuple):
    """The sorted keys of one run in a file."""

    spill: Spill
    begin: int
    length: int

    def __len__(self) -> int:
        return self.length

    def block(self, first: int, out: Keys) -> None:
        """Keys from the number `first` on."""
        self.spill.read(self.begin + 8 * first, out)


def gamma_of(pieces: Sequence[Keys | Stored]) -> JointDistribution:
    """Γ of sorted pieces together, of which one at least has a key."""
    held = [piece for piece in pieces if isinstance(piece, np.ndarray)]
    if len(held) < len(pieces):
        return _merged(pieces)
    if len(held) == 1:
        return JointDistribution.from_sorted_keys(held[0])
    together = np.concatenate(held)
    # The stable sort finds the ascending pieces and merges them.
    together.sort(kind="stable")
    return JointDistribution.from_sorted_keys(together)


def _merged(pieces: Sequence[Keys | Stored]) -> JointDistribution:
    size = min(max(BLOCKS // (8 * len(pieces)), FEWEST), MOST)
    blocks = np.empty((len(pieces), size), np.int64)
    at, end = np.zeros((2, len(pieces)), np.int64)
    read = [0] * len(pieces)

    def refill(i: int) -> bool:
        """The next block of a piece; whether there is one."""
        piece, first = pieces[i], read[i]
        count = min(size, len(piece) - first)
        if isinstance(piece, np.ndarray):
            blocks[i, :count] = piece[first : first + count]
        elif count:
            piece.block(first, blocks[i, :count])
        at[i], end[i], read[i] = 0, count, first + count
        return count > 0

    there = sorted((i for i in range(len(pieces)) if refill(i)), key=lambda i: blocks[i, 0])
    heap, left = np.array(there, np.int64), len(there)
    heads = blocks[heap, 0]
    levels = np.empty(LEVELS, np.int64), np.empty(LEVELS), np.empty(LEVELS)
    done: list[tuple[Any, ...]] = []
    k = 0
    while True:
        why, k = _merge(blocks, at, end, heap, heads, left, *levels, k)
        if why == EMPTY:
            if not refill(heap[0]):
                left -= 1
                heap[0] = heap[left]
            if left:
                heads[0] = blocks[heap[0], at[heap[0]]]
        elif why in (FULL, DONE):
            done.append(tuple(each[:k].copy() for each in levels))
            k = 0
            if why == DONE:
                break
    # One after the other, so that not all are there twice.
    columns = []
    for i in range(3):
        columns.append(np.concatenate([part[i] for part in done]))
        done = [(*part[:i], None, *part[i + 1 :]) for part in done]
    bits, counts, positives = columns
    return JointDistribution.from_sorted_levels(bits.view(np.float64), counts, positives)


@kernel
def _merge(blocks, at, end, heap, heads, left, bits, counts, positives, k):
    """Merges keys into levels until there are none, or the first block of the heap is empty, or the levels are full.

    The heap has the numbers of the blocks, one with the least key first, and their next keys beside it; only the first
    may be out of place.
    """
    while left > 0:
        key, i, place = heads[0], heap[0], 0
        while True:
            child = 2 * place + 1
            if child >= left:
                break
            if child + 1 < left and heads[child + 1] < heads[child]:
                child += 1
            if heads[child] >= key:
                break
            heap[place], heads[place] = heap[child], heads[child]
            place = child
        heap[place], heads[place] = i, key
        i = heap[0]
        next, last = at[i], end[i]
        # All keys of the first block that are no larger than those of the others.
        bound = np.int64(2**63 - 1)
        for child in range(1, min(3, left)):
            bound = min(bound, heads[child])
        while next < last and blocks[i, next] <= bound:
            key = blocks[i, next]
            if k == 0 or bits[k - 1] != key >> 1:
                if k == len(bits):
                    at[i], heads[0] = next, key
                    return FULL, k
                bits[k], counts[k], positives[k] = key >> 1, 0.0, 0.0
                k += 1
            counts[k - 1] += 1.0
            positives[k - 1] += key & 1
            next += 1
        at[i] = next
        if next == last:
            return EMPTY, k
        heads[0] = blocks[i, next]
    return DONE, k
