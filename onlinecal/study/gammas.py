"""The level sets of each run at the checkpoints, packed: what is asked later is computed from them.

At a checkpoint the bits of predictions that are new are written, and what was added to all counts. Whole numbers have
the bytes that the largest of them needs, all lowest bytes first, compressed by zlib. What comes back is the same to
the last bit.
"""

import itertools
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.levels import LevelSets
from onlinecal.core.validation import is_whole

#: run → its packed level sets
Packed = Mapping[int, bytes]
Keep = int | Literal["all", "none"]

#: a run's Γ is kept while it has no more levels, unless something else is said
KEEP = 4096
#: the largest number of levels that can be said; "all" has no limit
MOST = 2**40
#: bytes of all runs that are kept before they are compressed: a call for each run has its price
HELD = 2**22
#: of zlib: a higher level takes several times as long and saves a tenth. Each run of a batch has a window of 4096 bytes
#: and 48 kB of memory.
_ZLIB = 3, zlib.DEFLATED, 12, 6
#: of a Γ: the number of new predictions or −1 where none is kept, and a NaN. Files of before have the mean distance
#: there that predictions were moved, which is no Γ that was measured.
_HEAD = struct.Struct("<id")
_NONE = _HEAD.pack(-1, np.nan)
_NAN = int(np.array(np.nan).view(np.int64))
#: of a run: whether every Γ is kept, and how many streams there are, the first of which is all rounds
_FIRST = struct.Struct("<?I")


def check_keep(keep: Any) -> Keep:
    """The `keep` of a plan, of Python; anything else is refused."""
    if isinstance(keep, str) and keep in ("all", "none"):
        return keep  # type: ignore[return-value]
    if is_whole(keep) and 2 <= keep <= MOST:
        return int(keep)
    raise InvalidParameter(
        f"keep = {keep!r}; expected 'all', 'none', or up to how many levels a Γ is kept: an integer from 2 to "
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


class _Runs(NamedTuple):
    """Level sets of several runs: codes, counts and positives (levels, 2), and where each run begins."""

    code: Ints
    counts: Ints
    starts: Ints

    def of(self, first: int, last: int) -> "_Runs":
        """Those of some runs."""
        starts = self.starts[first : last + 1]
        own = slice(starts[0], starts[-1])
        return _Runs(self.code[own], self.counts[own], starts - starts[0])


_NOTHING = np.empty(0, np.int64), np.empty((0, 2), np.int64)


class Packer:
    """Packs the Γ of some runs, checkpoint by checkpoint; one of more than `keep` levels is not kept."""

    def __init__(self, keep: Keep, runs: int, streams: int = 1) -> None:
        self._keep, self._streams = keep, streams
        #: whether the forecaster plays on no grid; all of one that does is kept
        self.free = True
        self._runs = range(runs if keep != "none" else 0)
        self._whole = np.ones(runs, bool)
        #: by stream, of some runs from a first one on: their bytes at this checkpoint, and their level sets
        self._new: list[list[tuple[int, list[bytes], _Runs]]] = [[] for _ in range(streams)]
        #: by stream, the level sets of all runs at the checkpoint before
        self._before = [_Runs(*_NOTHING, np.zeros(runs + 1, np.int64))] * streams
        #: the bytes of checkpoints that are not compressed yet, their number, and of runs what compresses them, and has
        self._held: list[list[bytes]] = []
        self._size = 0
        self._zips: list[tuple[Any, list[bytes]]] = []

    def take(self, stream: int, first: int, sets: LevelSets) -> None:
        """Takes Γ of runs from `first` on, of all rounds (0) or a stream."""
        if self._keep == "none":
            return
        counts = np.empty((len(sets.counts), 2), np.int64)
        counts[:, 0], counts[:, 1] = sets.counts, sets.positives
        now, last = _Runs(sets.predictions.view(np.int64), counts, sets.starts), first + len(sets)
        large = np.diff(now.starts) > (self._keep if self.free and isinstance(self._keep, int) else np.inf)
        self._whole[first:last] &= ~large
        if not large.any():
            self._pack(stream, first, now)
        else:
            for run in np.flatnonzero(~large).tolist():
                self._pack(stream, first + run, now.of(run, run + 1))

    def _pack(self, stream: int, first: int, now: _Runs) -> None:
        before = self._before[stream].of(first, first + len(now.starts) - 1)
        packed, ends, *after = _differences(tuple(now), tuple(before))
        held, places = packed.tobytes(), itertools.pairwise([0, *ends.tolist()])
        self._new[stream].append((first, [held[i:j] for i, j in places], _Runs(*after)))

    def end(self) -> None:
        """Ends the checkpoint; of runs that were not taken nothing is kept."""
        for stream, some in enumerate(self._new):
            each = [_NONE] * len(self._runs)
            for first, new, _ in some:
                each[first : first + len(new)] = new
            if len(some) == 1 and len(some[0][1]) == len(self._runs):
                each, self._before[stream] = some[0][1:]
            elif some:
                self._before[stream] = _together(len(self._runs), {first: after for first, _, after in some})
            self._held.append(each)
            self._size += sum(map(len, each))
            some.clear()
        if self._size > HELD:
            self._compress()

    def _compress(self) -> None:
        if not self._zips:
            self._zips = [(zlib.compressobj(*_ZLIB), []) for _ in self._runs]
        for i, (packing, parts) in enumerate(self._zips):
            parts.append(packing.compress(b"".join(new[i] for new in self._held)))
        self._held, self._size = [], 0

    def packed(self) -> list[bytes]:
        """The bytes of each run; no runs where nothing is kept."""
        first = [_FIRST.pack(whole, self._streams) for whole in self._whole.tolist()]
        self._compress()
        each = zip(first, self._zips, strict=False)
        return [head + b"".join(parts) + packing.flush() for head, (packing, parts) in each]


def _together(runs: int, parts: Mapping[int, _Runs]) -> _Runs:
    """All runs of parts, each from a first one on, in order; no level sets of those in no part."""
    sizes = np.zeros(runs + 1, np.int64)
    for first, part in parts.items():
        sizes[first + 1 : first + len(part.starts)] = np.diff(part.starts)
    code, counts = (np.concatenate(each) for each in zip(*(part[:2] for part in parts.values()), strict=True))
    return _Runs(code, counts, np.cumsum(sizes))


@kernel
def _differences(now, before):
    """The bytes of several runs, where those of each end, and all their level sets: what is new since `before`."""
    (code, counts, starts), (old, olds, begins) = now, before
    size, runs = len(code) + len(old), len(starts) - 1
    out, ends, at = np.empty(24 * size + 15 * runs, np.uint8), np.empty(runs, np.int64), 0
    firsts, codes, kept = (
        np.zeros(runs + 1, np.int64),
        np.empty(size, np.int64),
        np.empty((size, 2), np.int64),
    )
    steps, added, k = np.empty(size, np.int64), np.empty((2, size), np.int64), 0
    for run in range(runs):
        i, j, first, new, last = starts[run], begins[run], k, 0, 0
        while i < starts[run + 1] or j < begins[run + 1]:
            mine = j == begins[run + 1] or (i < starts[run + 1] and code[i] <= old[j])
            both = mine and j < begins[run + 1] and code[i] == old[j]
            codes[k] = code[i] if mine else old[j]
            for part in range(2):
                kept[k, part] = counts[i, part] if mine else 0
                added[part, k] = kept[k, part] - (olds[j, part] if both or not mine else 0)
            if mine and not both:
                steps[new] = code[i] - last
                last = code[i]
                new += 1
            i += mine
            j += both or not mine
            k += 1
        firsts[run + 1] = k
        at = _put(_put(at, out, new, 4), out, _NAN, 8)
        at = _put_all(at, out, steps[:new])
        for part in range(2):
            at = _put_all(at, out, added[part, first:k])
        ends[run] = at
    return out[:at], ends, codes[:k].copy(), kept[:k].copy(), firsts


@kernel
def _put(at, out, value, width):
    """Writes a whole number, lowest byte first; the next place."""
    for byte in range(width):
        out[at + byte] = (value >> 8 * byte) & 255
    return at + width


@kernel
def _put_all(at, out, values):
    """Writes whole numbers: bytes of the largest, and their bytes, all lowest first; negative ones have all eight."""
    width = 1
    for value in values:
        if value < 0:
            width = 8
        while width < 8 and value >> 8 * width > 0:
            width += 1
    out[at] = width
    at += 1
    for byte in range(width):
        for value in values:
            out[at] = (value >> 8 * byte) & 255
            at += 1
    return at


def unpacked(packed: bytes) -> Iterator[list[JointDistribution | None]]:
    """Γ of a run at each checkpoint: of all rounds, and then of each stream. None where no outcome is known or kept."""
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
        found: list[JointDistribution | None] = []
        for stream in range(streams):
            count, moved = _HEAD.unpack_from(held, at)
            at += _HEAD.size
            if count < 0:
                found.append(None)
                continue
            before = levels[stream]
            code = np.union1d(before.code, np.cumsum(ints(count)))
            counts = before.among(code) + np.array([ints(len(code)), ints(len(code))])
            levels[stream] = _Levels(code, counts)
            there = counts[0] > 0
            numbers = counts[:, there].astype(np.float64)
            gamma = JointDistribution.from_counts(code[there].view(np.float64), *numbers)
            found.append(gamma if np.isnan(moved) else None)
        yield found


def whole(packed: bytes) -> bool:
    """Whether every Γ of a run is kept."""
    return bool(packed[0])


class Gammas:
    """The Γ of a cell, run by run: packed, or a function that reads them, of a run or (None) all."""

    def __init__(self, packed: Packed | Callable[[int | None], Packed] = MappingProxyType({})) -> None:
        self._packed = packed
        #: run, checkpoint and what was read last
        self._last: tuple[int, int, list[JointDistribution | None]] = -1, -1, []

    @property
    def runs(self) -> Packed:
        """Packed level sets of each run."""
        return self._read(None)

    def _read(self, run: int | None) -> Packed:
        return self._packed(run) if callable(self._packed) else self._packed

    def of(self, checkpoint: int, run: int, stream: int | None = None) -> JointDistribution | None:
        """Γ of a run, over the rounds of a stream or (None) of all; None where none is."""
        if self._last[:2] != (run, checkpoint):
            packed = self._read(run).get(run)
            if packed is None:
                return None
            self._last = run, checkpoint, next(islice(unpacked(packed), checkpoint, None))
        return self._last[2][0 if stream is None else stream + 1]
