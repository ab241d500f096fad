"""Keys of forecasts that do not fit into memory: sorted pieces in a file, merged when Γ is asked for.

A piece is ascending keys (`onlinecal.core.joint.encode`), in memory or in the file. Merging reads them from the file as
it goes and writes levels, so that Γ alone is in memory.
"""

from __future__ import annotations

import mmap
import tempfile
import weakref
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import address
from onlinecal.core.errors import StoreError
from onlinecal.core.joint import JointDistribution
from onlinecal.rounds.words import ints_at

Keys = NDArray[np.int64]

#: levels that are written at a time; above every key
LEVELS, END = 2**18, 2**63 - 1


class Spill:
    """A temporary file of whole numbers that grows at its end.

    It has no name while it is in use, so that it is gone whatever ends the process. Where the system needs a name
    (Windows), the file goes when it is closed.
    """

    def __init__(self, folder: str) -> None:
        self.folder, self._end = folder, 0
        self._file: IO[bytes] | None = None
        self._map: mmap.mmap | None = None

    def __reduce__(self) -> Any:
        # Another file, and empty: pieces in this one are pickled with their numbers.
        return Spill, (self.folder,)

    def write(self, rows: Keys) -> int:
        """Appends an array; where it begins, in bytes."""
        begin = self._end
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(  # noqa: SIM115
                    dir=self.folder, prefix="onlinecal-", buffering=0
                )
                weakref.finalize(self, self._file.close)
            data = np.ascontiguousarray(rows).data.cast("B")
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise StoreError(
                f"{self.folder}: a file of forecasts cannot be written after {begin / 2**30:.1f} GiB "
                f"({error.strerror}); expected room for 8 bytes a run-round, or history = "
                "{ name = 'exact', folder = … } on another disk, or an integer for counts on a grid"
            ) from error
        self._end, self._map = begin + rows.nbytes, None
        return begin

    def rows(self, begin: int, shape: tuple[int, int]) -> Keys:
        """The array that begins there, as it is in the file."""
        assert self._file is not None
        self._map = self._map or mmap.mmap(self._file.fileno(), self._end, access=mmap.ACCESS_READ)
        return np.frombuffer(self._map, np.int64, shape[0] * shape[1], begin).reshape(shape)


def gamma_of(pieces: Sequence[Keys]) -> JointDistribution:
    """Γ of ascending keys in memory, in several pieces, of which one at least has a key."""
    if len(pieces) == 1:
        return JointDistribution.from_sorted_keys(pieces[0])
    together = np.concatenate(pieces)
    # The stable sort finds the ascending pieces and merges them.
    together.sort(kind="stable")
    return JointDistribution.from_sorted_keys(together)


def merged(pieces: Sequence[Keys]) -> JointDistribution:
    """The same, where no more than Γ is to be in memory."""
    pieces = [piece for piece in pieces if len(piece)]
    found = np.array([[address(piece), len(piece), 0] for piece in pieces])
    heap = np.argsort([piece[0] for piece in pieces], kind="stable")
    heads = np.array([pieces[i][0] for i in heap] + [END, END])
    room = np.empty(LEVELS, np.int64), np.empty(LEVELS), np.empty(LEVELS)
    done: list[list[Any]] = [[], [], []]
    while heads[0] < END:
        size = _merge(found, heap, heads, *room)
        for parts, levels in zip(done, room, strict=True):
            parts.append(levels[:size].copy())
    # One after the other, so that not all are there twice.
    bits, counts, positives = (np.concatenate(done.pop(0)) for _ in range(3))
    return JointDistribution.from_sorted_levels(bits.view(np.float64), counts, positives)


@kernel
def _merge(pieces, heap, heads, bits, counts, positives):
    """Merges keys into levels until all are merged, or the levels are full; how many levels.

    The heap has the places of the pieces, one with the least key first. Beside them are their next keys, `END` after
    the last. A piece is its address, its length, and how many keys have been read.
    """
    k = 0
    while heads[0] < END:
        i = heap[0]
        keys, at = ints_at(pieces[i, 0], pieces[i, 1]), pieces[i, 2]
        # All keys of the first piece that are no larger than those of the others.
        bound = min(heads[1], heads[2])
        while at < len(keys) and keys[at] <= bound:
            key = keys[at]
            if k == 0 or bits[k - 1] != key >> 1:
                if k == len(bits):
                    pieces[i, 2], heads[0] = at, key
                    return k
                bits[k], counts[k], positives[k] = key >> 1, 0.0, 0.0
                k += 1
            counts[k - 1] += 1.0
            positives[k - 1] += key & 1
            at += 1
        pieces[i, 2], key, place = at, keys[at] if at < len(keys) else END, 0
        while True:
            child = 2 * place + 1
            if child + 1 < len(heap) and heads[child + 1] < heads[child]:
                child += 1
            if child >= len(heap) or heads[child] >= key:
                break
            heap[place], heads[place] = heap[child], heads[child]
            place = child
        heap[place], heads[place] = i, key
    return k
