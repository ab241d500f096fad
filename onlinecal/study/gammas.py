"""The level sets of each run at the checkpoints, packed: what is asked later is computed from them.

At a checkpoint the bits of predictions that are new are written, and what was added to all counts. Whole numbers have
the bytes that the largest of them needs, all lowest bytes first, compressed by zlib. What comes back is the same to
the last bit.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import is_whole

#: run → its packed level sets
Packed = Mapping[int, bytes]
Keep = int | Literal["all", "none"]

#: a run's Γ is kept exactly while it has no more levels, unless something else is said
KEEP = 4096
#: the largest number of levels that can be said; "all" has no limit
MOST = 2**40
#: of zlib: a higher level takes several times as long and saves a tenth. Each run of a batch has a window of 4096 bytes
#: and 48 kB of memory.
_ZLIB = 3, zlib.DEFLATED, 12, 6
#: of a Γ: the number of new predictions or −1 without a round, and the mean distance of moves, or NaN
_HEAD = struct.Struct("<id")
_NONE = _HEAD.pack(-1, np.nan)
#: of a run: whether every Γ is exact, and how many streams there are, the first of which is all rounds
_FIRST = struct.Struct("<?I")


class Kept(NamedTuple):
    """Γ of a run; None where no outcome is known. `moved` is the mean distance of its predictions; None: exact."""

    gamma: JointDistribution | None
    moved: float | None = None


def check_keep(keep: Any) -> Keep:
    """The `keep` of a plan, of Python; anything else is refused."""
    if isinstance(keep, str) and keep in ("all", "none"):
        return keep  # type: ignore[return-value]
    if is_whole(keep) and 2 <= keep <= MOST:
        return int(keep)
    raise InvalidParameter(
        f"keep = {keep!r}; expected 'all', 'none', or up to how many levels a Γ is kept exactly: an integer from 2 to "
        f"{MOST}"
    )


class _Levels(NamedTuple):
    """Level sets, those without rounds too: the bits of predictions, ascending, and counts and positives."""

    code: Ints = np.empty(0, np.int64)
    counts: Ints = np.empty((2, 0), np.int64)

    def among(self, code: Ints) -> Ints:
        """Counts and positives of these predictions, which have all of its own."""
        counts = np.zeros((2, len(code)), np.int64)
        counts[:, np.searchsorted(code, self.code)] = self.counts
        return counts


class Packer:
    """Packs the Γ of some runs, checkpoint by checkpoint; one of more than `keep` levels is moved to i/(keep − 1)."""

    def __init__(self, keep: Keep, runs: int, streams: int = 1) -> None:
        self._keep, self._streams = keep, streams
        #: whether the forecaster plays on no grid; all of one that does is kept exactly
        self.free = True
        self._zips = [zlib.compressobj(*_ZLIB) for _ in range(runs if keep != "none" else 0)]
        self._parts: list[list[bytes]] = [[] for _ in self._zips]
        self._exact = [True] * runs
        #: by stream and run: what is new at this checkpoint, and the level sets of the one before
        self._new: dict[tuple[int, int], bytes] = {}
        self._before: dict[tuple[int, int], _Levels] = {}

    def take(self, stream: int, run: int, gamma: JointDistribution, moved: float | None = None) -> None:
        """Takes Γ of a run, of all rounds (0) or a stream, and the mean distance that the game has moved it."""
        if self._keep == "none":
            return
        now = _Levels(gamma.predictions.view(np.int64), np.array([gamma.counts, gamma.positives], np.int64))
        if self.free and moved is None and isinstance(self._keep, int) and gamma.levels > self._keep:
            now, moved = _rounded(gamma.predictions, now.counts, self._keep - 1)
        before = self._before.get((stream, run), _Levels())
        known = np.searchsorted(now.code, before.code)
        if (now.code.take(known, mode="clip") != before.code).any():  # Γ is moved from here on
            code = np.union1d(before.code, now.code)
            known, now = np.searchsorted(code, before.code), _Levels(code, now.among(code))
        code, counts = self._before[stream, run] = now
        self._exact[run] &= moved is None
        if len(known) == len(code):  # as in most checkpoints
            steps, added = code[:0], counts - before.counts
        else:
            new, added = np.ones(len(code), bool), counts.copy()
            new[known] = False
            added[:, known] -= before.counts
            steps = np.diff(code[new], prepend=0)
        head = _HEAD.pack(len(steps), np.nan if moved is None else moved)
        self._new[stream, run] = head + b"".join(map(_ints, (steps, *added)))

    def end(self) -> None:
        """Packs the checkpoint; of runs that were not taken no outcome is known."""
        for run, (packing, parts) in enumerate(zip(self._zips, self._parts, strict=True)):
            new = [self._new.get((stream, run), _NONE) for stream in range(self._streams)]
            parts.append(packing.compress(b"".join(new)))
        self._new = {}

    def packed(self) -> list[bytes]:
        """The bytes of each run; no runs where nothing is kept."""
        each = zip(self._exact, self._parts, self._zips, strict=False)
        return [_FIRST.pack(exact, self._streams) + b"".join(parts) + z.flush() for exact, parts, z in each]


def _rounded(v: Floats, counts: Ints, m: int) -> tuple[_Levels, float]:
    """Levels moved to the nearest i/m, ties to the even i, and the mean distance moved."""
    i = np.rint(v * m)
    at, first = np.unique(i, return_index=True)
    moved = np.cumsum(counts[0] * abs(v - i / m))[-1] / counts[0].sum()
    return _Levels((at / m).view(np.int64), np.add.reduceat(counts, first, axis=1)), float(moved)


def _ints(values: Ints) -> bytes:
    """Whole numbers: bytes of the largest, and their bytes, all lowest ones first; negative ones have all eight."""
    width = (int(values.view(np.uint64).max(initial=1)).bit_length() + 7) // 8
    rows = np.ascontiguousarray(values, "<i8").view(np.uint8).reshape(-1, 8)
    return bytes([width]) + rows[:, :width].T.tobytes()


def unpacked(packed: bytes) -> Iterator[list[Kept]]:
    """Level sets of a run, at each checkpoint: of all rounds, and then of each stream."""
    _, streams = _FIRST.unpack_from(packed)
    held, at = zlib.decompress(packed[_FIRST.size :]), 0
    levels = [_Levels()] * streams

    def ints(count: int) -> Ints:
        nonlocal at
        width, first = held[at], at + 1
        at = first + width * count
        rows = np.zeros((count, 8), np.uint8)
        rows[:, :width] = np.frombuffer(held, np.uint8, width * count, first).reshape(width, count).T
        return rows.view("<i8").ravel().astype(np.int64)

    while at < len(held):
        found = []
        for stream in range(streams):
            count, moved = _HEAD.unpack_from(held, at)
            at += _HEAD.size
            if count < 0:
                found.append(Kept(None))
                continue
            before = levels[stream]
            code = np.union1d(before.code, np.cumsum(ints(count)))
            counts = before.among(code) + np.array([ints(len(code)), ints(len(code))])
            levels[stream] = _Levels(code, counts)
            there = counts[0] > 0
            numbers = counts[:, there].astype(np.float64)
            gamma = JointDistribution.from_counts(code[there].view(np.float64), *numbers)
            found.append(Kept(gamma, None if np.isnan(moved) else moved))
        yield found


def exact(packed: bytes) -> bool:
    """Whether every Γ of a run is kept exactly."""
    return bool(packed[0])


class Gammas:
    """The Γ of a cell, run by run: packed, or a function that reads them, of a run or (None) all."""

    def __init__(self, packed: Packed | Callable[[int | None], Packed] = MappingProxyType({})) -> None:
        self._packed = packed
        #: run, checkpoint and what was read last
        self._last: tuple[int, int, list[Kept]] = -1, -1, []

    @property
    def runs(self) -> Packed:
        """Packed level sets of each run."""
        return self._read(None)

    def _read(self, run: int | None) -> Packed:
        return self._packed(run) if callable(self._packed) else self._packed

    def of(self, checkpoint: int, run: int, stream: int | None = None) -> Kept | None:
        """Level sets of a run, over the rounds of a stream or (None) of all; None where nothing is."""
        if self._last[:2] != (run, checkpoint):
            packed = self._read(run).get(run)
            if packed is None:
                return None
            self._last = run, checkpoint, next(islice(unpacked(packed), checkpoint, None))
        return self._last[2][0 if stream is None else stream + 1]
