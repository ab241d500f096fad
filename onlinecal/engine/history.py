"""Keeps the resolved rounds: counts on a grid, or every forecast. Both give Γ, of all rounds or of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.classes import ClassDistribution
from onlinecal.core.joint import JointDistribution, encode
from onlinecal.core.levels import LevelSets

NO_GRID = np.zeros(0)
NO_COUNTS = np.zeros((1, 0, 0, 2), np.int64)
NO_LAWS = np.zeros((0, 0))
#: which parts are meant: a part ↦ whether it is
Chosen = Callable[[int], bool]
#: points or rounds of several runs from which level sets are made at a time. Beyond, each run is alone.
AT_ONCE = 2**18
#: the parts that the numbers of `Each` can tell apart
MOST_PARTS = 2**31


def history_of(
    runs: int, player: Any, horizon: int, several: bool, groups: int = 0, classes: int = 0, laws: bool = False
) -> Any:
    """A history of these runs of a forecaster; `several`: rounds are told apart by their part.

    The number of a part ends with a bit for each group. A run meets few of the 2^groups: counts have no table for them.
    """
    grid = getattr(player, "grid", None)
    if classes:
        return EachClasses(runs, classes) if grid is None else CountedClasses(runs, player, several, laws)
    if grid is None or groups:
        return Each(runs, horizon, several or groups > 0, groups)
    return Counted(runs, grid, several)


def bytes_of_run(points: int | None, horizon: int, parts: int, classes: int = 0) -> float:
    """The bytes that the history of a run takes at most, on a grid of some points or none."""
    # A forecast with its outcome, and its part. Or counts of the outcomes in each part, and before each stretch.
    if points is None:
        return horizon * (8.0 * (classes + 1) + (0.0 if parts == 1 else 4.0))
    return 8.0 * (classes or 2) * points * (2 * parts - 1)


class Counted:
    """Rounds by point and outcome, (runs, 1, points, outcomes) for each part: memory does not grow with time."""

    def __init__(self, runs: int, grid: Floats, several: bool, outcomes: int = 2) -> None:
        self.runs, self.grid, self.several, self.outcomes = (
            runs,
            np.array(grid, np.float64),
            several,
            outcomes,
        )
        #: that of all parts too, since there may be thousands of them, which take long to sum
        self.whole = np.zeros((runs, 1, len(self.grid), outcomes), np.int64)
        self.parts: dict[int, Any] = {} if several else {0: self.whole}
        #: the last `before_stretches`, how many stretches are in it, and the first part that has changed since
        self._before, self._stretches, self._changed = np.zeros((2, 0, 0, 0), np.int64), 0, 0

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_before": np.zeros((2, 0, 0, 0), np.int64), "_stretches": 0, "_changed": 0}

    def of(self, part: int) -> Any:
        """The counts of a part, to be changed."""
        self._changed = min(self._changed, part)
        if part not in self.parts:
            self.parts[part] = np.zeros_like(self.whole)
        return self.parts[part]

    def lend(self, names: Sequence[int], rounds: int) -> tuple[Any, ...]:
        """The arrays that the loop writes into, for rounds of these parts."""
        shape = self.runs, len(names), len(self.grid), self.outcomes
        counts = np.zeros(shape, np.int64) if self.several else self.of(names[0])
        return (
            self.grid, counts, np.zeros((1, 0)), np.zeros((1, 0), np.int32), np.zeros(0, np.int64), NO_LAWS,
        )  # fmt: skip

    def take(self, names: Sequence[int], lent: tuple[Any, ...]) -> None:
        """Takes back what the loop has written."""
        if self.several:
            self.whole += lent[1].sum(axis=1, keepdims=True)
            for i, name in enumerate(names):
                self.of(name)[:, 0] += lent[1][:, i]

    def add(self, run: int, part: int, forecast: Any, outcome: int) -> bool:
        """Adds one round; False if the forecast is not on the grid."""
        at = self.place_of(run, forecast)
        if at is None:
            return False
        self.of(part)[run, 0, at, outcome] += 1
        if self.several:
            self.whole[run, 0, at, outcome] += 1
        return True

    def place_of(self, run: int, forecast: Any) -> int | None:
        """The place of a forecast on the grid; None where it is not there."""
        return self._places.get(forecast)

    @cached_property
    def _places(self) -> dict[float, int]:
        return {value: place for place, value in enumerate(self.grid.tolist())}

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
                (rounds, ones), zeros = new[:, part // streams - first], counts[:, 0, :, 0]
                ones += counts[:, 0, :, 1]
                rounds += zeros  # `sum` along an axis of two takes three times as long
                rounds += counts[:, 0, :, 1]
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
        counts = self.counts(run, chosen)
        if not np.any(counts):
            return None
        return JointDistribution.from_counts(
            self.grid, counts.sum(axis=1, dtype=np.float64), counts[:, 1].astype(np.float64)
        )

    def counts(self, run: int, chosen: Chosen | None) -> Any:
        """The counts of a run, of all parts or those that are chosen."""
        if chosen is None:
            return self.whole[run, 0]
        return sum(part[run, 0] for name, part in self.parts.items() if chosen(name))

    def levels(self, chosen: Chosen | None = None) -> Iterator[tuple[int, LevelSets]]:
        """As `Each.levels`."""
        ascends = bool((np.diff(self.grid) > 0.0).all())
        parts = [self.whole]
        if chosen is not None:
            parts = [part for name, part in self.parts.items() if chosen(name)]
        rows = max(1, AT_ONCE // len(self.grid))
        for first in range(0, self.runs if parts else 0, rows):
            counts: Any = sum(part[first : first + rows, 0] for part in parts)
            n, ones = counts.sum(axis=2), np.ascontiguousarray(counts[:, :, 1])
            if ascends and n.any(axis=1).all():
                yield first, LevelSets.of_counts(self.grid, n, ones)
            else:
                yield from _alone(self, range(first, first + len(n)), chosen)


class CountedClasses(Counted):
    """The same of K classes: the grid are the places of a player's table of points in the simplex.

    With `laws` each round counts at every point with its probability, too, (runs, points · K).
    """

    def __init__(self, runs: int, player: Any, several: bool, laws: bool = False) -> None:
        points, classes = player.table.shape
        super().__init__(runs, np.arange(float(points)), several, classes)
        self.player, self.laws = player, np.zeros((runs, points * classes)) if laws else NO_LAWS

    def __getstate__(self) -> dict[str, Any]:
        # The game that holds both puts the player back.
        return super().__getstate__() | {"player": None}

    def lend(self, names: Sequence[int], rounds: int) -> tuple[Any, ...]:
        """The arrays that the loop writes into, for rounds of these parts."""
        return *super().lend(names, rounds)[:-1], self.laws

    def place_of(self, run: int, forecast: Any) -> int | None:
        return self.player.places_of(run).get(forecast)

    def add_law(self, run: int, law: Iterable[tuple[Any, float]], outcome: int) -> None:
        """Adds one round at every point of its law."""
        places = self.player.places_of(run)
        for point, weight in law:
            self.laws[run, self.outcomes * places[point] + outcome] += weight

    def gamma(self, run: int, chosen: Chosen | None = None) -> Any:
        """Γ of a run, of all parts or those that are chosen; None without a round."""
        return self._of_counts(run, self.counts(run, chosen))

    def gamma_of_laws(self, run: int) -> Any:
        """Γ of a run in which each round counts at every point of its law; None without a round."""
        return self._of_counts(run, self.laws[run].reshape(-1, self.outcomes))

    def _of_counts(self, run: int, counts: Any) -> Any:
        if not np.any(counts):
            return None
        said = counts.any(axis=1)
        return ClassDistribution.from_counts(self.player.table_of(run)[said], counts[said].astype(np.float64))

    def levels(self, chosen: Chosen | None = None) -> Iterator[tuple[int, LevelSets]]:
        """The place of each run that has a round, and the level sets of its `gamma`."""
        return _alone(self, range(self.runs), chosen)


class EachClasses:
    """Every forecast of K classes, its outcome and its part, of forecasters without a table; and their laws."""

    grid = None

    def __init__(self, runs: int, classes: int) -> None:
        self.classes = classes
        #: part, forecast and outcome of each round
        self.kept: list[list[tuple[int, tuple[float, ...], int]]] = [[] for _ in range(runs)]
        #: point ↦ by how much each class came
        self.laws: list[dict[tuple[float, ...], Floats]] = [{} for _ in range(runs)]

    def add(self, run: int, part: int, forecast: tuple[float, ...], outcome: int) -> bool:
        """Adds one round."""
        self.kept[run].append((part, forecast, outcome))
        return True

    def add_law(self, run: int, law: Iterable[tuple[Any, float]], outcome: int) -> None:
        """Adds one round at every point of its law."""
        for point, weight in law:
            self.laws[run].setdefault(point, np.zeros(self.classes))[outcome] += weight

    def rounds(self, run: int) -> int:
        """The number of rounds of a run."""
        return len(self.kept[run])

    def gamma(self, run: int, chosen: Chosen | None = None) -> Any:
        """Γ of a run, of all parts or those that are chosen; None without a round."""
        rows = [(said, came) for part, said, came in self.kept[run] if chosen is None or chosen(part)]
        return ClassDistribution.from_samples(*zip(*rows, strict=True)) if rows else None

    def gamma_of_laws(self, run: int) -> Any:
        """Γ of a run in which each round counts at every point of its law; None without a round."""
        laws = self.laws[run]
        return ClassDistribution.from_counts([*laws], [*laws.values()]) if laws else None

    def levels(self, chosen: Chosen | None = None) -> Iterator[tuple[int, LevelSets]]:
        """The place of each run that has a round, and the level sets of its `gamma`."""
        return _alone(self, range(len(self.kept)), chosen)


class Each:
    """Every forecast with its outcome as one key (`joint.encode`), and its part where there are several.

    Keys of the last Γ are in order: by part, and by value in each part. The next Γ sorts the keys that came since.
    """

    grid = None

    def __init__(self, runs: int, horizon: int, several: bool, groups: int = 0) -> None:
        self.runs, self.horizon, self.several, self.groups = runs, horizon, several, groups
        #: rounds of each run, and of these those that are in order
        self.filled, self.ordered = np.zeros(runs, np.int64), np.zeros(runs, np.int64)
        self.keys, self.owner = np.empty((runs, 0), np.int64), np.empty((runs, 0), np.int32)
        self._before = self.filled

    def reserve(self, rounds: int) -> None:
        """Makes room for more rounds: at least twice as much as before, and no more than the game has."""
        need, have = int(self.filled.max()) + rounds, self.keys.shape[1]
        if need > have:
            room = max(need, min(2 * have, self.horizon))
            self.keys = wider(self.keys, room)
            self.owner = wider(self.owner, room) if self.several else self.owner

    def lend(self, names: Sequence[int], rounds: int) -> tuple[Any, ...]:
        """The arrays that the loop writes into, for rounds of these parts."""
        self.reserve(rounds)
        self._before = self.filled.copy()
        return NO_GRID, NO_COUNTS, self.keys.view(np.float64), self.owner, self.filled, NO_LAWS

    def take(self, names: Sequence[int], lent: tuple[Any, ...]) -> None:
        """Takes back what the loop has written; it numbers parts by their place in `names`."""
        if self.several:
            for row, first, last in zip(self.owner, self._before, self.filled, strict=True):
                # One part is not told apart by the loop, and 0 is its number there; behind it are the bits of groups.
                part, bits = row[first:last] >> self.groups, row[first:last] & (1 << self.groups) - 1
                row[first:last] = np.array(names, np.int32)[part] << self.groups | bits

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
        self.reserve(at + len(said) - int(self.filled.max()))
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

    def levels(self, chosen: Chosen | None = None) -> Iterator[tuple[int, LevelSets]]:
        """The first of several runs, and the level sets of their `gamma`. Runs without a round are left out.

        No others are in memory. No round may come in between.
        """
        rounds = int(self.filled[0])
        if self.several or not 0 < rounds <= AT_ONCE // 2 or (self.filled != rounds).any():
            yield from _alone(self, range(self.runs), chosen)
            return
        for first in range(0, self.runs, AT_ONCE // rounds):
            last = min(self.runs, first + AT_ONCE // rounds)
            yield first, LevelSets.of_keys(np.array([self._in_order(run)[0] for run in range(first, last)]))

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


def _alone(
    history: Counted | Each | EachClasses, runs: range, chosen: Chosen | None
) -> Iterator[tuple[int, LevelSets]]:
    """The level sets of each run that has a round."""
    for run in runs:
        if (gamma := history.gamma(run, chosen)) is not None:
            yield run, LevelSets.of([gamma])


def wider(rows: Any, room: int) -> Any:
    """The same rows with more room."""
    more = np.zeros((len(rows), room, *rows.shape[2:]), rows.dtype)
    more[:, : rows.shape[1]] = rows
    return more
