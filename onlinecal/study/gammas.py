"""The level sets of each run at the checkpoints, packed: what is asked later is computed from them.

At a checkpoint the levels with new counts are written. On an even grid a level is its place, else the bits of the
prediction. Whole numbers have the bytes that the largest of them needs, all lowest bytes first, compressed by
zlib. What comes back is the same to the last bit.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import Ints
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
#: of a Γ: the number of changed levels or −1 without a round, m of the grid or 0, whether all levels are written. Then
#: the mean distance that predictions were moved, or NaN.
_HEAD = struct.Struct("<iq?d")
_NONE = _HEAD.pack(-1, 0, True, np.nan)
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
    """Level sets on the points i/m, or of any numbers where m is 0, by ascending codes."""

    m: int
    code: Ints
    counts: Ints
    positives: Ints

    def since(self, before: "_Levels | None") -> "_Levels | None":
        """Levels that have been added; None where others have changed."""
        if before is None or before.m != self.m:
            return None
        at = np.searchsorted(self.code, before.code)
        if at.size and (at[-1] >= len(self.code) or (self.code[at] != before.code).any()):
            return None
        counts, positives = self.counts.copy(), self.positives.copy()
        counts[at] -= before.counts
        positives[at] -= before.positives
        if (positives < 0).any() or (counts < positives).any():
            return None
        new = counts > 0
        return _Levels(self.m, self.code[new], counts[new], positives[new])

    def plus(self, more: "_Levels") -> "_Levels":
        """With what has been added since."""
        code, where = np.unique(np.concatenate([self.code, more.code]), return_inverse=True)
        counts, positives = np.zeros((2, len(code)), np.int64)
        np.add.at(counts, where, np.concatenate([self.counts, more.counts]))
        np.add.at(positives, where, np.concatenate([self.positives, more.positives]))
        return _Levels(self.m, code, counts, positives)


class Packer:
    """Packs the Γ of some runs, checkpoint by checkpoint; one of more than `keep` levels is moved to i/(keep − 1)."""

    def __init__(self, keep: Keep, runs: int, streams: int = 1, m: int | None = None) -> None:
        self._keep, self._streams, self._m = keep, streams, m
        self._zips = [zlib.compressobj(*_ZLIB) for _ in range(runs if keep != "none" else 0)]
        self._parts: list[list[bytes]] = [[] for _ in self._zips]
        self._exact = [True] * runs
        self._free = True
        self._points: tuple[int, ...] = ()
        #: by stream and run: what is new at this checkpoint, and the level sets of the one before
        self._new: dict[tuple[int, int], bytes] = {}
        self._before: dict[tuple[int, int], _Levels] = {}

    def begin(self, grid: NDArray[np.float64] | None) -> None:
        """Begins a checkpoint; `grid` is that of the forecaster, if any."""
        if grid is not None and self._free:
            self._free, gap = False, float(np.diff(np.unique(grid)).min(initial=1.0))
            self._points = (round(1.0 / gap), 2 * round(1.0 / gap)) if gap > 1e-9 else ()

    def take(self, stream: int, run: int, gamma: JointDistribution, moved: float | None = None) -> None:
        """Takes Γ of a run, of all rounds (0) or a stream, and the mean distance that the game has moved it."""
        if self._keep == "none":
            return
        counts, positives = gamma.counts, gamma.positives
        if self._free and moved is None and isinstance(self._keep, int) and gamma.levels > self._keep:
            m = self._keep - 1
            i, counts, positives, moved = _rounded(gamma.predictions, counts, positives, m)
            code = (i << 8) + 128
        else:
            m, code = _coded(gamma.predictions, self._points if moved is None else (self._m or 0,))
        now = _Levels(m, code, counts.astype(np.int64), positives.astype(np.int64))
        change = now.since(self._before.get((stream, run)))
        self._before[stream, run] = now
        self._exact[run] &= moved is None
        new = change or now
        head = _HEAD.pack(len(new.code), m, change is None, np.nan if moved is None else moved)
        numbers = _ints(np.diff(new.code, prepend=0)) + _ints(new.counts) + _ints(new.positives)
        self._new[stream, run] = head + numbers

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


@kernel
def _rounded(v, n, s, m):
    """Levels moved to the nearest i/m, ties to the even i: i, counts, positives, and the mean distance moved."""
    code, counts, positives = (
        np.empty(len(v), np.int64),
        np.zeros(len(v), np.int64),
        np.zeros(len(v), np.int64),
    )
    k = 0
    moved = 0.0
    total = 0.0
    for i in range(len(v)):
        at = np.int64(np.rint(v[i] * m))
        if k == 0 or code[k - 1] != at:
            code[k] = at
            k += 1
        counts[k - 1] += np.int64(n[i])
        positives[k - 1] += np.int64(s[i])
        moved += n[i] * abs(v[i] - at / m)
        total += n[i]
    return code[:k].copy(), counts[:k].copy(), positives[:k].copy(), moved / total


def _coded(v: NDArray[np.float64], points: tuple[int, ...]) -> tuple[int, Ints]:
    """m, and i with how many bits each number is off i/m, of the first m that all are near; else 0, and all bits."""
    bits: Ints = v.view(np.int64)
    for m in points:
        i = np.rint(v * m)
        off = bits - (i / m).view(np.int64)
        if (abs(off) < 128).all():
            return m, (i.astype(np.int64) << 8) + off + 128
    return 0, bits


def _ints(values: Ints) -> bytes:
    """Whole numbers ≥ 0: bytes of the largest, and their bytes, all lowest ones first."""
    width = max(1, (int(values.max(initial=0)).bit_length() + 7) // 8)
    rows = np.ascontiguousarray(values, "<u8").view(np.uint8).reshape(-1, 8)
    return bytes([width]) + rows[:, :width].T.tobytes()


def unpacked(packed: bytes) -> Iterator[list[Kept]]:
    """Level sets of a run, at each checkpoint: of all rounds, and then of each stream."""
    _, streams = _FIRST.unpack_from(packed)
    held, at = zlib.decompress(packed[_FIRST.size :]), 0
    levels: list[_Levels | None] = [None] * streams

    def ints(count: int) -> Ints:
        nonlocal at
        width, first = held[at], at + 1
        at = first + width * count
        rows = np.zeros((count, 8), np.uint8)
        rows[:, :width] = np.frombuffer(held, np.uint8, width * count, first).reshape(width, count).T
        return rows.view("<u8").ravel().astype(np.int64)

    while at < len(held):
        found = []
        for stream in range(streams):
            count, m, fresh, moved = _HEAD.unpack_from(held, at)
            at += _HEAD.size
            if count < 0:
                found.append(Kept(None))
                continue
            change, before = _Levels(m, np.cumsum(ints(count)), ints(count), ints(count)), levels[stream]
            levels[stream] = now = change if fresh or before is None else before.plus(change)
            counts, positives = now.counts.astype(np.float64), now.positives.astype(np.float64)
            bits = now.code if m == 0 else ((now.code >> 8) / m).view(np.int64) + (now.code & 255) - 128
            gamma = JointDistribution.from_counts(bits.view(np.float64), counts, positives)
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
