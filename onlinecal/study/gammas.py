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
from itertools import pairwise
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
    """What is kept of the rounds of a run.

    Attributes
    ----------
    gamma : JointDistribution or None
        None where no outcome is known.
    moved : float, optional
        By how much its predictions have been moved on average; None where it is exact.
    """

    gamma: JointDistribution | None
    moved: float | None = None


def check_keep(keep: Any) -> Keep:
    """Refuses what does not say which Γ are kept."""
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

    Parameters
    ----------
    keep : int, "all" or "none"
        A Γ without a grid that has more levels than this is moved to the points i/(keep − 1), and the mean distance
        that it was moved is kept with it.
    runs : int
    m : int, optional
        Where the game itself has moved all predictions that are on no grid to the points i/m; these are kept, however
        many levels there are.
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
        """The next checkpoint, of so many streams, the first of which is all of them.

        `grid` is that of the forecaster, in which case all predictions are on it.
        """
        self._streams = streams
        if grid is not None and self._grid is None:
            self._grid = np.unique(np.asarray(grid, dtype=np.float64) + 0.0)

    def take(self, stream: int, run: int, gamma: JointDistribution, moved: float | None = None) -> None:
        """Γ of a run, and by how much the game has moved its predictions on average, if it has."""
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

    def _changes(self, whose: tuple[int, int], gamma: JointDistribution, by: float | None) -> tuple[Any, ...]:
        """What the codes are, whether they begin anew, the distance moved, and codes, counts, positives that are new.

        Codes are differences, each from the one before it.
        """
        before = self._before.get(whose)
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
        self._before[whose] = now
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
    """Level sets by ascending codes, of one kind."""

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
    """Whole numbers ≥ 0: how wide the largest is, how many there are, and their bytes, the lowest ones first."""
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
    """Reads what `_ints` and others have written, one after the other."""

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
    """Of how many runs the packed Γ are."""
    return int(_HEAD.unpack_from(packed)[0])


def unpacked(packed: bytes) -> Iterator[list[list[Kept]]]:
    """Of each checkpoint, of each stream (the first is all of them), what is kept of every run."""
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

    Parts without runs in common stay as they are; of others the runs that are taken are packed anew.
    """
    parts = sorted(parts, key=lambda part: part[0])
    spans = [range(first, first + runs_of(packed)) for first, packed in parts]
    if all(one.stop <= other.start for one, other in pairwise(spans)):
        return parts
    exact = [set(exact_runs(packed, first)) for first, packed in parts]
    whose: dict[int, int] = {}
    for place, span in enumerate(spans):
        for run in span:
            before = whose.setdefault(run, place)
            if run in exact[place] and run not in exact[before]:
                whose[run] = place
    found = []
    begin = 0
    runs = sorted(whose)
    for i, run in enumerate(runs, 1):
        if i == len(runs) or runs[i] != run + 1 or whose[runs[i]] != whose[run]:
            first, packed = parts[whose[run]]
            found.append((runs[begin], _cut(packed, range(runs[begin] - first, run + 1 - first))))
            begin = i
    return found


def _cut(packed: bytes, own: range) -> bytes:
    """Of these of its runs, counted from 0."""
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
    """The Γ of a cell: parts of consecutive runs, each packed.

    Parameters
    ----------
    parts : sequence of (int, bytes)
        The first run of each, and what is packed.
    """

    def __init__(self, parts: Sequence[tuple[int, bytes]] = ()) -> None:
        self._parts = tuple(parts)
        #: the part and the checkpoint that were read last
        self._last: tuple[int, int, list[list[Kept]]] | None = None

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
        place = 0 if stream is None else stream + 1
        if self._last is not None and self._last[1] == checkpoint:
            first, _, table = self._last
            if first <= run < first + len(table[0]):
                return table[place][run - first]
        for first, packed in self.parts:
            if first <= run < first + runs_of(packed):
                for at, table in enumerate(unpacked(packed)):
                    if at == checkpoint:
                        self._last = first, checkpoint, table
                        return table[place][run - first]
        return None
