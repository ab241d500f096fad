"""What is kept of the resolved rounds: counts on a grid, or every forecast; both give Γ, of all rounds or of parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution

NO_GRID = np.zeros(0)
NO_COUNTS = np.zeros((1, 0, 0, 2), np.int64)
#: which parts are meant: a part ↦ whether it is
Chosen = Callable[[int], bool]


def history_of(runs: int, grid: Floats | None, horizon: int, several: bool) -> Counted | Each:
    """A history of these runs; `several`: rounds are told apart by their part."""
    return Each(runs, horizon, several) if grid is None else Counted(runs, grid)


class Counted:
    """Rounds by point and outcome, (runs, 1, points, 2) for each part: memory does not grow with time."""

    def __init__(self, runs: int, grid: Floats) -> None:
        self.runs, self.grid, self.parts = runs, np.array(grid, np.float64), dict[int, Any]()
        self._points = {value: i for i, value in enumerate(self.grid.tolist())}

    def of(self, part: int) -> Any:
        """The counts of a part."""
        if part not in self.parts:
            self.parts[part] = np.zeros((self.runs, 1, len(self.grid), 2), np.int64)
        return self.parts[part]

    def lend(self, names: Sequence[int], rounds: int) -> tuple[Any, ...]:
        """What the loop writes into, for rounds of these parts."""
        several = len(names) > 1
        counts = (
            np.zeros((self.runs, len(names), len(self.grid), 2), np.int64) if several else self.of(names[0])
        )
        return (
            self.grid, counts, np.zeros((1, 0)), np.zeros((1, 0), np.int8), np.zeros((1, 0), np.int32),
            np.zeros(0, np.int64),
        )  # fmt: skip

    def take(self, names: Sequence[int], lent: tuple[Any, ...]) -> None:
        """Takes back what the loop has written."""
        if len(names) > 1:
            for i, name in enumerate(names):
                self.of(name)[:, 0] += lent[1][:, i]

    def add(self, run: int, part: int, forecast: float, outcome: int) -> bool:
        """Adds one round; False if the forecast is not on the grid."""
        at = self._points.get(forecast)
        if at is None:
            return False
        self.of(part)[run, 0, at, outcome] += 1
        return True

    def extend(self, run: int, said: list[float], came: list[int]) -> None:
        """Adds several rounds of the only part."""
        for forecast, outcome in zip(said, came, strict=True):
            if not self.add(run, 0, forecast, outcome):
                raise ValueError(f"{forecast!r} is not on the grid")

    def rounds(self, run: int) -> int:
        """The number of rounds of a run."""
        return sum(int(part[run].sum()) for part in self.parts.values())

    def gamma(self, run: int, chosen: Chosen | None = None) -> JointDistribution | None:
        """Γ of a run, of all parts or those that are chosen; None without a round."""
        counts = sum(part[run, 0] for name, part in self.parts.items() if chosen is None or chosen(name))
        if not np.any(counts):
            return None
        return JointDistribution.from_counts(
            self.grid, counts.sum(axis=1, dtype=np.float64), counts[:, 1].astype(np.float64)
        )


class Each:
    """Every forecast with its outcome, and its part where there are several: 9 or 13 bytes a round."""

    #: the share of the free memory that a game takes at most
    MOST = 0.5

    def __init__(self, runs: int, horizon: int, several: bool) -> None:
        self.runs, self.several = runs, several
        need, there = runs * horizon * (13 if several else 9), free_memory()
        if need > self.MOST * there:
            raise InvalidParameter(
                f"{runs} run(s) of {horizon} rounds without a grid need {need / 2**30:.1f} GiB for their forecasts; there "
                f"are {there / 2**30:.1f}; expected fewer runs or rounds, `rounded`, or a forecaster with a grid"
            )
        self.filled = np.zeros(runs, np.int64)
        self.said, self.came = np.empty((runs, 0)), np.empty((runs, 0), np.int8)
        self.owner = np.empty((runs, 0), np.int32)
        self._before = self.filled

    def reserve(self, rounds: int) -> None:
        """Makes room for more rounds: at least twice as much as before."""
        need, have = int(self.filled.max()) + rounds, self.said.shape[1]
        if need > have:
            room = max(need, 2 * have)
            self.said, self.came = wider(self.said, room), wider(self.came, room)
            self.owner = wider(self.owner, room) if self.several else self.owner

    def lend(self, names: Sequence[int], rounds: int) -> tuple[Any, ...]:
        """What the loop writes into, for rounds of these parts."""
        self.reserve(rounds)
        self._before = self.filled.copy()
        return NO_GRID, NO_COUNTS, self.said, self.came, self.owner, self.filled

    def take(self, names: Sequence[int], lent: tuple[Any, ...]) -> None:
        """Takes back what the loop has written; it numbers parts by their place in `names`."""
        if self.several:
            for row, first, last in zip(self.owner, self._before, self.filled, strict=True):
                # One part is not told apart by the loop, and 0 is its number there.
                row[first:last] = np.array(names, np.int32)[row[first:last]] if len(names) > 1 else names[0]

    def add(self, run: int, part: int, forecast: float, outcome: int) -> bool:
        """Adds one round."""
        if self.filled[run] == self.said.shape[1]:
            self.reserve(1)
        at = self.filled[run]
        self.said[run, at], self.came[run, at] = forecast, outcome
        if self.several:
            self.owner[run, at] = part
        self.filled[run] = at + 1
        return True

    def extend(self, run: int, said: list[float], came: list[int]) -> None:
        """Adds several rounds of the only part."""
        at = int(self.filled[run])
        self.reserve(max(0, at + len(said) - self.said.shape[1]))
        self.said[run, at : at + len(said)], self.came[run, at : at + len(said)] = said, came
        self.filled[run] += len(said)

    def rounds(self, run: int) -> int:
        """The number of rounds of a run."""
        return int(self.filled[run])

    def gamma(self, run: int, chosen: Chosen | None = None) -> JointDistribution | None:
        """Γ of a run, of all parts or those that are chosen; None without a round."""
        p, y = (rows[run, : self.filled[run]] for rows in (self.said, self.came))
        if chosen is not None and self.several:
            own, names = np.unique(self.owner[run, : len(p)], return_inverse=True)
            keep = np.array([chosen(name) for name in own.tolist()], bool)[names]
            p, y = p[keep], y[keep]
        return JointDistribution.from_samples(p, y) if len(p) else None


def free_memory() -> int:
    """The bytes of memory that nothing uses."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def wider(rows: Any, room: int) -> Any:
    """The same rows with more room."""
    more = np.zeros((len(rows), room, *rows.shape[2:]), rows.dtype)
    more[:, : rows.shape[1]] = rows
    return more
