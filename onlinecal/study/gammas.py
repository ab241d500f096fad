"""The level sets of each run at the checkpoints, as compressed arrays: what is asked later is computed from them."""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.classes import ClassDistribution
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.levels import LevelSets
from onlinecal.core.simplex import level_of_rows
from onlinecal.core.validation import is_whole

Keep = int | Literal["all", "none"]

#: a run's Γ is kept while it has no more levels, unless something else is said
KEEP = 4096
#: the largest number of levels that can be said; "all" has no limit
MOST = 2**40
#: bytes of all runs that are kept before they are compressed
HELD = 2**25


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


class Group(NamedTuple):
    """Γ of the runs from `first` on, which were played together.

    `whole` has a byte for each run, 1 where every Γ is kept. Each of `files` has some checkpoints, in NumPy's format.
    In it are `sizes` (checkpoints, streams, runs), −1 where a Γ is not kept, and all levels one behind the other.
    """

    first: int
    whole: bytes
    files: tuple[bytes, ...]

    @property
    def runs(self) -> range:
        """Their numbers."""
        return range(self.first, self.first + len(self.whole))

    def sound(self) -> bool:
        """Whether the files are those that were written, by their own checksums."""
        try:  # garbled bytes raise any of these, by the field in which they are
            return all(zipfile.ZipFile(io.BytesIO(file)).testzip() is None for file in self.files)
        except (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError, RuntimeError):
            return False


def joined(groups: Iterable[Group]) -> tuple[Group, ...]:
    """Those of the groups that have a Γ, or all Γ of a run, which none before has."""
    found, there, whole = [], set[int](), set[int]()
    for group in groups:
        runs, own = set(group.runs), whole_runs([group])
        if runs - there or own - whole:
            found.append(group)
            there |= runs
            whole |= own
    return tuple(found)


def whole_runs(groups: Iterable[Group]) -> set[int]:
    """The runs of which every Γ is kept."""
    return {run for group in groups for run, whole in zip(group.runs, group.whole, strict=True) if whole}


class Packer:
    """Packs the Γ of some runs, checkpoint by checkpoint; one of more than `keep` levels is not kept."""

    def __init__(self, keep: Keep, runs: int, streams: int = 1) -> None:
        self._keep, self._shape = keep, (streams, runs)
        #: whether the forecaster plays on no grid; all of one that does is kept
        self.free = True
        self._whole, self._files = np.ones(runs, bool), list[bytes]()
        self._sizes, self._levels = list[Ints](), list[list[Any]]()
        self._begin()

    def _begin(self) -> None:
        """Begins a checkpoint; of runs that are not taken no outcome is known."""
        self._sizes.append(np.zeros(self._shape, np.int64))
        self._new: list[tuple[int, int, Any]] = []

    def take(self, stream: int, first: int, sets: LevelSets) -> None:
        """Takes Γ of runs from `first` on, of all rounds (0) or a stream."""
        if self._keep == "none":
            return
        sizes, last = np.diff(sets.starts), first + len(sets)
        levels = sets.predictions, *(_small(counts.astype(np.int64)) for counts in sets.tallies)
        large = sizes > (self._keep if self.free and isinstance(self._keep, int) else np.inf)
        if large.any():
            self._whole[first:last] &= ~large
            kept = np.repeat(~large, sizes)
            levels = tuple(part[kept] for part in levels)
        self._sizes[-1][stream, first:last] = np.where(large, -1, sizes)
        self._new.append((stream, first, levels))

    def end(self) -> None:
        """Ends the checkpoint."""
        self._levels += [levels for *_, levels in sorted(self._new, key=lambda new: new[:2])]
        self._begin()
        if sum(part.nbytes for levels in self._levels for part in levels) > HELD:
            self._compress()

    def _compress(self) -> None:
        if len(self._sizes) == 1:
            return
        nothing = [np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)]
        predictions, *tallies = (
            np.concatenate(parts) for parts in zip(*(self._levels or [nothing]), strict=True)
        )
        points, places = _different(predictions)
        levels = np.array([np.diff(places, prepend=0), *tallies], np.int64)
        file = io.BytesIO()
        # Few arrays, each of which takes a while.
        np.savez_compressed(
            file, sizes=_small(np.array(self._sizes[:-1])), points=points, levels=_small(levels)
        )
        self._files.append(file.getvalue())
        self._sizes, self._levels = self._sizes[-1:], []

    def packed(self, first: int) -> tuple[Group, ...]:
        """All of it, of runs from `first` on; nothing where nothing is kept."""
        if self._keep == "none":
            return ()
        self._compress()
        return (Group(first, self._whole.astype(np.uint8).tobytes(), tuple(self._files)),)


def _different(predictions: Floats) -> tuple[Floats, Ints]:
    """The different ones, numbers or rows, and the place of each among them."""
    if predictions.ndim == 1:
        return np.unique(predictions, return_inverse=True)
    places = level_of_rows(predictions)
    points = np.empty((places.max() + 1, predictions.shape[1]))
    points[places] = predictions
    return points, places


def _small(values: Ints) -> Ints:
    """The same whole numbers in as few bytes as the least and the largest need."""
    if not values.size:
        return values
    return values.astype(np.promote_types(*map(np.min_scalar_type, (values.min(), values.max()))))


class _Levels(NamedTuple):
    """A file that has been read; `starts` of each Γ among the levels, in the order of `sizes`."""

    sizes: Ints
    starts: Ints
    predictions: Floats
    #: rounds and outcomes 1, or the rounds of each of K classes
    tallies: list[Floats]


@lru_cache(8)
def _read(file: bytes) -> _Levels:
    with np.load(io.BytesIO(file)) as held:
        sizes, (steps, *tallies) = held["sizes"].astype(np.int64), held["levels"]
        starts = np.concatenate([[0], np.cumsum(np.maximum(sizes, 0))])
        predictions = held["points"][np.cumsum(steps, dtype=np.int64)]
        return _Levels(sizes, starts, predictions, [counts.astype(float) for counts in tallies])


class Gammas:
    """The Γ of a cell, run by run: groups, or a function that reads them."""

    def __init__(self, groups: tuple[Group, ...] | Callable[[], tuple[Group, ...]] = ()) -> None:
        self._groups = groups

    @property
    def groups(self) -> tuple[Group, ...]:
        """All that is kept, read when it is first asked for."""
        if callable(self._groups):
            self._groups = self._groups()
        return self._groups

    @property
    def parts(self) -> int:
        """How many streams and groups have a Γ of their own; 0 where none is kept."""
        return _read(self.groups[0].files[0]).sizes.shape[1] - 1 if self.groups else 0

    def of(self, checkpoint: int, run: int, stream: int | None = None) -> Any:
        """Γ of a run, of K classes too, over the rounds of a stream or (None) of all; None where none is."""
        there = [group for group in self.groups if run in group.runs]
        if not there:
            return None
        group = next((group for group in there if group.whole[run - group.first]), there[0])
        for file in group.files:
            held = _read(file)
            if checkpoint < len(held.sizes):
                where = checkpoint, 0 if stream is None else stream + 1, run - group.first
                if held.sizes[where] <= 0:
                    return None
                place = int(np.ravel_multi_index(where, held.sizes.shape))
                own = slice(held.starts[place], held.starts[place + 1])
                points, tallies = held.predictions[own], [counts[own] for counts in held.tallies]
                if points.ndim == 2:
                    return ClassDistribution.from_counts(points, np.transpose(tallies))
                return JointDistribution.from_counts(points, *tallies)
            checkpoint -= len(held.sizes)
        return None
