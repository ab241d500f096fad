"""The level sets of a game at its checkpoints, packed: what is asked later is computed from them.

Between two checkpoints only the levels are written whose counts have changed: of a forecaster with a grid by their
place on it, of others by the bits of the prediction. Whole numbers are written in as few bytes as the largest of them
needs, all lowest bytes first, and compressed by zlib, a piece for each checkpoint. What comes back is the same to the
last bit.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import kernel
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import is_whole

Ints = NDArray[np.int64]
#: the first run of each part, and its packed level sets
Parts = Sequence[tuple[int, bytes]]
Keep = int | Literal["all", "none"]

#: a run's Γ is kept exactly while it has no more levels, unless something else is said
KEEP = 4096
#: the largest number of levels that can be said; "all" has no limit
MOST = 2**40
#: what the codes of levels are: there is no round, places on the grid, bits of predictions, i of i/(points − 1)
_NONE, _GRID, _BITS, _MOVED = range(4)
#: of zlib; more takes several times as long and saves a tenth
_LEVEL = 3
_HEAD = struct.Struct("<IIIQI")


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


# ---------------------------------------------------------------- packing


class Packer:
    """Packs the Γ of some runs, checkpoint by checkpoint.

    A Γ without a grid that has more than `keep` levels is moved to the points i/(keep − 1), and the mean distance is
    kept with it; where the game itself has moved predictions to the points i/m, these are kept.
    """

    def __init__(self, keep: Keep, runs: int, m: int | None = None) -> None:
        self.keep, self.runs = keep, runs
        self._points = m + 1 if m is not None else keep if isinstance(keep, int) else 0
        self._pieces: list[bytes] = []
        self._streams = 1
        #: what is new at this checkpoint, by stream and run
        self._entries: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._grid: NDArray[np.float64] | None = None
        #: by stream and run: codes, counts and positives of the checkpoint before, and what the codes are
        self._before: dict[tuple[int, int], _Levels] = {}

    def begin(self, streams: int, grid: NDArray[np.float64] | None) -> None:
        """Begins a checkpoint; the first of the streams is all rounds, `grid` that of the forecaster, if any."""
        self._streams = streams
        if grid is not None and self._grid is None:
            self._grid = np.unique(np.asarray(grid, dtype=np.float64) + 0.0)

    def take(self, stream: int, run: int, gamma: JointDistribution, moved: float | None = None) -> None:
        """Takes Γ of a run, and the mean distance that the game has moved its predictions, if it has."""
        if self.keep != "none":
            self._entries[stream, run] = self._changes((stream, run), gamma, moved)

    def end(self) -> None:
        """Packs the checkpoint; of runs that were not taken no outcome is known."""
        if self.keep == "none":
            return
        none = np.empty(0, np.int64)
        nothing = _NONE, 0, 0.0, none, none, none
        entries = [
            self._entries.get((stream, run), nothing)
            for stream in range(self._streams)
            for run in range(self.runs)
        ]
        self._entries = {}
        kinds = [kind | fresh << 2 for kind, fresh, *_ in entries]
        moved = [distance for kind, _, distance, *_ in entries if kind == _MOVED]
        codes, counts, positives = (
            np.concatenate([entry[i] for entry in entries]) if entries else np.empty(0, np.int64)
            for i in (3, 4, 5)
        )
        said = _ints(np.array([*kinds])) + _ints(np.array([len(entry[3]) for entry in entries]))
        said += np.array(moved, "<f8").tobytes() + _ints(codes) + _ints(counts) + _ints(positives)
        self._pieces.append(zlib.compress(said, _LEVEL))

    def _changes(self, place: tuple[int, int], gamma: JointDistribution, by: float | None) -> tuple[Any, ...]:
        """Kind and freshness of the codes, distance moved; new codes as differences, counts, positives."""
        before = self._before.get(place)
        kind, moved = _BITS, 0.0
        if self._grid is not None:
            kind = _GRID
            code = np.searchsorted(self._grid, gamma.predictions)
        elif by is not None:
            kind, moved = _MOVED, by
            code = np.rint(gamma.predictions * (self._points - 1)).astype(np.int64)
        elif isinstance(self.keep, int) and gamma.levels > self.keep:
            kind = _MOVED
            code, counts, positives, moved = _rounded(
                gamma.predictions, gamma.counts, gamma.positives, self.keep - 1
            )
        else:
            code = gamma.predictions.view(np.int64)
        if kind != _MOVED or by is not None:
            counts, positives = gamma.counts.astype(np.int64), gamma.positives.astype(np.int64)
        now = _Levels(kind, code, counts, positives)
        self._before[place] = now
        change = None if before is None or before.kind != kind else now.since(before)
        fresh = change is None
        change = change or now
        return kind, fresh, moved, np.diff(change.code, prepend=0), change.counts, change.positives

    def packed(self) -> bytes:
        """All of it; nothing where nothing is kept."""
        if not self._pieces:
            return b""
        grid = b"" if self._grid is None else zlib.compress(_grid_as_bytes(self._grid))
        head = _HEAD.pack(self.runs, self._streams, len(self._pieces), self._points, len(grid))
        sizes = np.array([len(piece) for piece in self._pieces], "<u4").tobytes()
        return head + sizes + grid + b"".join(self._pieces)


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


class _Levels(NamedTuple):
    """Level sets of one kind, by ascending codes."""

    kind: int
    code: Ints
    counts: Ints
    positives: Ints

    def since(self, before: _Levels) -> _Levels | None:
        """What has been added; None where something has been taken away."""
        at = np.searchsorted(self.code, before.code)
        if at.size and (at[-1] >= len(self.code) or (self.code[at] != before.code).any()):
            return None
        counts, positives = self.counts.copy(), self.positives.copy()
        counts[at] -= before.counts
        positives[at] -= before.positives
        if (positives < 0).any() or (counts < positives).any():
            return None
        new = counts > 0
        return _Levels(self.kind, self.code[new], counts[new], positives[new])

    def plus(self, more: _Levels) -> _Levels:
        """With what has been added since."""
        code, where = np.unique(np.concatenate([self.code, more.code]), return_inverse=True)
        counts, positives = np.zeros((2, len(code)), np.int64)
        np.add.at(counts, where, np.concatenate([self.counts, more.counts]))
        np.add.at(positives, where, np.concatenate([self.positives, more.positives]))
        return _Levels(self.kind, code, counts, positives)


def _ints(values: Ints) -> bytes:
    """Whole numbers ≥ 0: bytes of the largest, their number, and their bytes, all lowest ones first."""
    width = max(1, (int(values.max(initial=0)).bit_length() + 7) // 8)
    rows = np.ascontiguousarray(values, "<u8").view(np.uint8).reshape(-1, 8)
    return struct.pack("<BQ", width, len(values)) + rows[:, :width].T.tobytes()


def _grid_as_bytes(grid: NDArray[np.float64]) -> bytes:
    """Points as i/m, and by how many bits they differ from that; m = 0 where they are no such points."""
    bits: Ints = grid.view(np.int64)
    gap = float(np.diff(grid).min(initial=1.0))
    for m in (round(1.0 / gap), 2 * round(1.0 / gap)) if gap > 1e-9 else ():
        i = np.rint(grid * m)
        off = bits - (i / m).view(np.int64)
        if (abs(off) < 128).all():
            return (
                struct.pack("<Q", m)
                + _ints(np.rint(np.diff(i, prepend=0.0)).astype(np.int64))
                + _ints(off + 128)
            )
    return struct.pack("<Q", 0) + _ints(bits - np.append(np.int64(0), bits[:-1]))


# ---------------------------------------------------------------- reading


class _Reader:
    """Reads numbers that were packed, one after the other."""

    def __init__(self, held: bytes) -> None:
        self.held, self.at = held, 0

    def floats(self, count: int) -> NDArray[np.float64]:
        found = np.frombuffer(self.held, "<f8", count, self.at)
        self.at += 8 * count
        return found.astype(np.float64)

    def ints(self) -> Ints:
        width, count = struct.unpack_from("<BQ", self.held, self.at)
        at = self.at + 9
        self.at = at + width * count
        rows = np.zeros((count, 8), np.uint8)
        rows[:, :width] = np.frombuffer(self.held, np.uint8, width * count, at).reshape(width, count).T
        return rows.view("<u8").ravel().astype(np.int64)


def _grid_of(held: bytes) -> NDArray[np.float64]:
    (m,) = struct.unpack_from("<Q", held)
    reader = _Reader(held[8:])
    code = np.cumsum(reader.ints())
    if not m:
        return code.view(np.float64)
    return ((code / m).view(np.int64) + reader.ints() - 128).view(np.float64)


def runs_of(packed: bytes) -> int:
    """The number of runs of packed Γ."""
    return int(_HEAD.unpack_from(packed)[0])


def unpacked(packed: bytes) -> Iterator[list[list[Kept]]]:
    """What is kept of every run, at each checkpoint, of each stream, the first of which is all rounds."""
    runs, streams, count, points, size = _HEAD.unpack_from(packed)
    at = _HEAD.size
    sizes = np.frombuffer(packed, "<u4", count, at).tolist()
    at += 4 * count
    grid = _grid_of(zlib.decompress(packed[at : at + size])) if size else None
    at += size
    levels: list[_Levels | None] = [None] * (runs * streams)
    for length in sizes:
        reader = _Reader(zlib.decompress(packed[at : at + length]))
        at += length
        kinds, many = reader.ints().tolist(), reader.ints().tolist()
        moved = iter(reader.floats(sum(kind & 3 == _MOVED for kind in kinds)).tolist())
        code, counts, positives = reader.ints(), reader.ints(), reader.ints()
        found, first = [], 0
        for who, (kind, n) in enumerate(zip(kinds, many, strict=True)):
            part = slice(first, first + n)
            first += n
            if kind & 3 == _NONE:
                found.append(Kept(None))
                continue
            change = _Levels(kind & 3, np.cumsum(code[part]), counts[part], positives[part])
            before = None if kind >> 2 else levels[who]
            levels[who] = now = change if before is None else before.plus(change)
            found.append(Kept(_gamma(now, grid, points), next(moved) if now.kind == _MOVED else None))
        yield [found[i : i + runs] for i in range(0, len(found), runs)]


def _gamma(levels: _Levels, grid: NDArray[np.float64] | None, points: int) -> JointDistribution:
    if levels.kind == _GRID:
        assert grid is not None
        v = grid[levels.code]
    else:
        v = levels.code.view(np.float64) if levels.kind == _BITS else levels.code / (points - 1)
    return JointDistribution.from_counts(
        v, levels.counts.astype(np.float64), levels.positives.astype(np.float64)
    )


def exact_runs(packed: bytes, first: int = 0) -> list[int]:
    """The numbers of the runs of which every Γ is kept exactly; that of the first is `first`."""
    runs, streams, count, _, size = _HEAD.unpack_from(packed)
    sizes = np.frombuffer(packed, "<u4", count, _HEAD.size).tolist()
    at = _HEAD.size + 4 * count + size
    exact = np.ones(runs, bool)
    for length in sizes:
        # The kinds come first: no more than them is decompressed.
        kinds = zlib.decompressobj().decompress(packed[at : at + length], 9 + runs * streams)
        at += length
        exact &= (_Reader(kinds).ints().reshape(-1, runs) & 3 != _MOVED).all(axis=0)
    return (first + np.flatnonzero(exact)).tolist()


def apart(parts: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The same runs, each in one part only: where several have it, in the first that has it exactly, if any does.

    Parts without runs in common stay as they are.
    """
    parts = sorted(parts, key=lambda part: part[0])
    spans = [range(first, first + runs_of(packed)) for first, packed in parts]
    if all(one.stop <= other.start for one, other in pairwise(spans)):
        return parts
    taken: dict[int, int] = {}
    for place in reversed(range(len(parts))):
        taken |= dict.fromkeys(spans[place], place)
    for place in reversed(range(len(parts))):
        taken |= dict.fromkeys(exact_runs(parts[place][1], parts[place][0]), place)
    found = []
    # Neighbours of one part: their distance from the number in order is the same.
    for (place, _), group in groupby(
        enumerate(sorted(taken)), key=lambda each: (taken[each[1]], each[1] - each[0])
    ):
        runs = [run for _, run in group]
        first, packed = parts[place]
        found.append((runs[0], _cut(packed, range(runs[0] - first, runs[-1] + 1 - first))))
    return found


def _cut(packed: bytes, own: range) -> bytes:
    """Packs some of its runs, counted from 0, again."""
    runs, streams, count, points, size = _HEAD.unpack_from(packed)
    if own == range(runs):
        return packed
    at = _HEAD.size + 4 * count
    grid = _grid_of(zlib.decompress(packed[at : at + size])) if size else None
    packer = Packer("all", len(own), points - 1 if points else None)
    for table in unpacked(packed):
        packer.begin(streams, grid)
        for stream, there in enumerate(table):
            for run in own:
                kept = there[run]
                if kept.gamma is not None:
                    packer.take(stream, run - own[0], kept.gamma, kept.moved)
        packer.end()
    return packer.packed()


class Gammas:
    """The Γ of a cell: parts of consecutive runs, each packed."""

    def __init__(self, parts: Sequence[tuple[int, bytes]] = ()) -> None:
        self._parts = tuple(parts)
        #: first run, checkpoint and table that were read last
        self._last: tuple[int, int, list[list[Kept]]] = 0, -1, [[]]

    @property
    def parts(self) -> tuple[tuple[int, bytes], ...]:
        """The first run of each, and what is packed."""
        return self._parts

    @property
    def covered(self) -> list[tuple[int, int]]:
        """Which runs there are: first and last + 1 of each part."""
        return [(first, first + runs_of(packed)) for first, packed in self.parts]

    def of(self, checkpoint: int, run: int, stream: int | None = None) -> Kept | None:
        """What is kept of a run, over the rounds of a stream or (None) of all; None where nothing is."""
        first, at, table = self._last
        if at != checkpoint or not first <= run < first + len(table[0]):
            found = [(i, packed) for i, packed in self.parts if i <= run < i + runs_of(packed)]
            if not found:
                return None
            first, packed = found[0]
            table = next(islice(unpacked(packed), checkpoint, None))
            self._last = first, checkpoint, table
        return table[0 if stream is None else stream + 1][run - first]
