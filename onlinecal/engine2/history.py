"""Keeps the resolved rounds: counts on a grid, or every forecast. Both give Γ, of all rounds or of parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution, encode

NO_GRID = np.zeros(0)
NO_COUNTS = np.zeros((1, 0, 0, 2), np.int64)
#: which parts are meant: a part ↦ whether it is
Chosen = Callable[[int], bool]


def history_of(runs: int, grid: Floats | None, horizon: int, several: bool) -> Counted | Each:
    """A history of these runs; `several`: rounds are told apart by their part."""
    return Each(runs, horizon, several) if grid is None else Counted(runs, grid, several)


class Counted:
    """Rounds by point and outcome, (runs, 1, points, 2) for each part: memory does not grow with time."""

    def __init__(self, runs: int, grid: Floats, several: bool) -> None:
        self.runs, self.grid, self.several = runs, np.array(grid, np.float64), several
        #: that of all parts too, since there may be thousands of them, which take long to sum
        self.whole = np.zeros((runs, 1, len(self.grid), 2), np.int64)
        self.parts: dict[int, Any] = {} if several else {0: self.whole}
        self._points = {value: i for i, value in enumerate(self.grid.tolist())}
        #: the last `before_stretches`, how many stretches are in it, and the first part that has changed since
        self._before, self._stretches, self._changed = np.zeros((2, 0, 0, 0), np.int64), 0, 0

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_before": np.zeros((2, 0, 0, 0), np.int64), "_stretches": 0, "_changed": 0}

    def of(self, part: int) -> Any:
        """The counts of a part, to be changed."""
        self._changed = min(self._changed, part)
        if part not in self.parts:
            self.parts[part] = np.zeros((self.runs, 1, len(self.grid), 2), np.int64)
        return self.parts[part]

    def lend(self, names: Sequence[int], rounds: int) -> tuple[Any, ...]:
        """The arrays that the loop writes into, for rounds of these parts."""
        shape = self.runs, len(names), len(self.grid), 2
        counts = np.zeros(shape, np.int64) if self.several else self.of(names[0])
        return (
            self.grid, counts, np.zeros((1, 0)), np.zeros((1, 0), np.int32), np.zeros(0, np.int64),
        )  # fmt: skip

    def take(self, names: Sequence[int], lent: tuple[Any, ...]) -> None:
        """Takes back what the loop has written."""
        if self.several:
            self.whole += lent[1].sum(axis=1, keepdims=True)
            for i, name in enumerate(names):
                self.of(name)[:, 0] += lent[1][:, i]

    def add(self, run: int, part: int, forecast: float, outcome: int) -> bool:
        """Adds one round; False if the forecast is not on the grid."""
        at = self._points.get(forecast)
        if at is None:
            return False
        self.of(part)[run, 0, at, outcome] += 1
        if self.several:
            self.whole[run, 0, at, outcome] += 1
        return True

    def before_stretches(self, streams: int, most: int) -> tuple[Any, Any]:
        """Rounds and outcomes 1 before each stretch, (stretches + 1, runs, points) each.

        The stretches are those up to the last that has a round, of `most`; after it, nothing has been counted. Those
        before the first that has changed are not added again.
        """
        size = max(self.parts, default=-1) // streams + 1
        first = min(self._changed // streams, self._stretches, size)
        if self._before.shape[1] == 0:
            # Zeros that are not touched take no memory.
            self._before = np.zeros((2, most + 1, self.runs, len(self.grid)), np.int64)
        new = self._before[:, first + 1 : size + 1]
        new[...] = 0
        for part, counts in self.parts.items():
            if part // streams >= first:
                new[0, part // streams - first] += counts[:, 0].sum(axis=2)
                new[1, part // streams - first] += counts[:, 0, :, 1]
        # `cumsum` along an axis in the middle reads the array in jumps, and takes twenty times as long.
        for stretch in range(first, size):
            self._before[:, stretch + 1] += self._before[:, stretch]
        self._stretches, self._changed = size, size * streams
        return self._before[0, : size + 1], self._before[1, : size + 1]

    def extend(self, run: int, said: list[float], came: list[int]) -> None:
        """Adds several rounds of the only part."""
        for forecast, outcome in zip(said, came, strict=True):
            if not self.add(run, 0, forecast, outcome):
                raise ValueError(f"{forecast!r} is not on the grid")

    def rounds(self, run: int) -> int:
        """The number of rounds of a run."""
        return int(self.whole[run].sum())

    def gamma(self, run: int, chosen: Chosen | None = None) -> JointDistribution | None:
        """Γ of a run, of all parts or those that are chosen; None without a round."""
        counts = self.whole[run, 0]
        if chosen is not None:
            counts = sum(part[run, 0] for name, part in self.parts.items() if chosen(name))
        if not np.any(counts):
            return None
        return JointDistribution.from_counts(
            self.grid, counts.sum(axis=1, dtype=np.float64), counts[:, 1].astype(np.float64)
        )


class Each:
    """Every forecast with its outcome as one key (`joint.encode`), and its part where there are several.

    What was there at the last Γ is in order: of each part, and by value in it. The next Γ sorts what came since.
    """

    #: the share of the free memory that a game takes at most
    MOST = 0.5

    def __init__(self, runs: int, horizon: int, several: bool) -> None:
        self.runs, self.several = runs, several
        need, there = runs * horizon * (12 if several else 8), free_memory()
        if need > self.MOST * there:
            raise InvalidParameter(
                f"{runs} run(s) of {horizon} rounds without a grid need {need / 2**30:.1f} GiB for their forecasts; "
                f"there are {there / 2**30:.1f}; expected fewer runs or rounds, `rounded`, or a forecaster with a grid"
            )
        #: rounds of each run, and of these those that are in order
        self.filled, self.ordered = np.zeros(runs, np.int64), np.zeros(runs, np.int64)
        self.keys, self.owner = np.empty((runs, 0), np.int64), np.empty((runs, 0), np.int32)
        self._before = self.filled

    def reserve(self, rounds: int) -> None:
        """Makes room for more rounds: at least twice as much as before."""
        need, have = int(self.filled.max()) + rounds, self.keys.shape[1]
        if need > have:
            room = max(need, 2 * have)
            self.keys = wider(self.keys, room)
            self.owner = wider(self.owner, room) if self.several else self.owner

    def lend(self, names: Sequence[int], rounds: int) -> tuple[Any, ...]:
        """The arrays that the loop writes into, for rounds of these parts."""
        self.reserve(rounds)
        self._before = self.filled.copy()
        return NO_GRID, NO_COUNTS, self.keys.view(np.float64), self.owner, self.filled

    def take(self, names: Sequence[int], lent: tuple[Any, ...]) -> None:
        """Takes back what the loop has written; it numbers parts by their place in `names`."""
        if self.several:
            for row, first, last in zip(self.owner, self._before, self.filled, strict=True):
                # One part is not told apart by the loop, and 0 is its number there.
                row[first:last] = np.array(names, np.int32)[row[first:last]] if len(names) > 1 else names[0]

    def add(self, run: int, part: int, forecast: float, outcome: int) -> bool:
        """Adds one round."""
        if self.filled[run] == self.keys.shape[1]:
            self.reserve(1)
        at = self.filled[run]
        if self.several:
            self.owner[run, at] = part
        self.keys[run, at] = encode(np.array([forecast]), np.array([outcome]))[0]
        self.filled[run] = at + 1
        return True

    def extend(self, run: int, said: list[float], came: list[int]) -> None:
        """Adds several rounds of the only part."""
        at = int(self.filled[run])
        self.reserve(max(0, at + len(said) - self.keys.shape[1]))
        self.keys[run, at : at + len(said)] = encode(np.array(said), np.array(came))
        self.filled[run] += len(said)

    def rounds(self, run: int) -> int:
        """The number of rounds of a run."""
        return int(self.filled[run])

    def gamma(self, run: int, chosen: Chosen | None = None) -> JointDistribution | None:
        """Γ of a run, of all parts or those that are chosen; None without a round."""
        keys, owner = self._in_order(run)
        if self.several and len(keys):
            names, first = np.unique(owner, return_index=True)
            pieces = np.split(keys, first[1:])
            taken = [
                keys for name, keys in zip(names.tolist(), pieces, strict=True) if not chosen or chosen(name)
            ]
            keys = np.concatenate([keys[:0], *taken])
            # The stable sort finds the ascending pieces and merges them.
            keys.sort(kind="stable")
        return JointDistribution.from_sorted_keys(keys) if len(keys) else None

    def _in_order(self, run: int) -> tuple[Any, Any]:
        """The keys of a run and their parts, in order."""
        before, now = self.ordered[run], self.filled[run]
        keys, owner = self.keys[run, :now], self.owner[run, :now]
        if self.several and before < now:
            order = np.lexsort((keys, owner))
            keys[:], owner[:] = keys[order], owner[order]
        elif before < now:
            keys[before:].sort()
            keys.sort(kind="stable")
        self.ordered[run] = now
        return keys, owner


def free_memory() -> int:
    """The bytes of memory that nothing uses."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def wider(rows: Any, room: int) -> Any:
    """The same rows with more room."""
    more = np.zeros((len(rows), room, *rows.shape[2:]), rows.dtype)
    more[:, : rows.shape[1]] = rows
    return more
