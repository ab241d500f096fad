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

from onlinecal.core.errors import StoreError
from onlinecal.core.joint import JointDistribution, levels_of_keys

Keys = NDArray[np.int64]

#: keys that are merged at a time, of all pieces; above every key
KEYS, END = 2**18, 2**63 - 1


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
    return JointDistribution.from_sorted_keys(pieces[0] if len(pieces) == 1 else _in_order(pieces))


def merged(pieces: Sequence[Keys]) -> JointDistribution:
    """The same, where no more than Γ is to be in memory."""
    done: list[list[Any]] = [[], [], []]
    share = max(1, KEYS // len(pieces))
    while pieces := [piece for piece in pieces if len(piece)]:
        # No piece has a key up to `last` behind its share.
        last = min((piece[share - 1] for piece in pieces if len(piece) > share), default=END)
        sizes = [np.searchsorted(piece[:share], last, side="right") for piece in pieces]
        levels = levels_of_keys(_in_order([piece[:size] for piece, size in zip(pieces, sizes, strict=True)]))
        if done[0] and done[0][-1][-1] == levels[0][0]:  # more rounds of the last level
            levels[1][0] += done[1][-1][-1]
            levels[2][0] += done[2][-1][-1]
            done = [[*parts[:-1], parts[-1][:-1]] for parts in done]
        for parts, more in zip(done, levels, strict=True):
            parts.append(more)
        pieces = [piece[size:] for piece, size in zip(pieces, sizes, strict=True)]
    # One after the other, so that not all are there twice.
    bits, counts, positives = (np.concatenate(done.pop(0)) for _ in range(3))
    return JointDistribution.from_sorted_levels(bits.view(np.float64), counts, positives)


def _in_order(pieces: Sequence[Keys]) -> Keys:
    together = np.concatenate(pieces)
    # The stable sort finds the ascending pieces and merges them.
    together.sort(kind="stable")
    return together
