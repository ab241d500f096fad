"""Players that are made of steps as parts of another: its own steps call theirs.

The state of a composition is, for each part, the run that the part's steps take. The part's own state is a row of its
own memory. Its room lies in the whole's room, and its law and its memo travel in the whole's memo. Rounds of parts may
be open as those of the whole are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onlinecal.core._compile import kernel, part_of_kernel
from onlinecal.core.arrays import address
from onlinecal.core.streams import Stream
from onlinecal.rounds.law import Unplayable
from onlinecal.rounds.steps import (
    ALONE,
    ATOMS,
    CONTEXT,
    FIELDS,
    MEMO,
    RAISED,
    SCRATCH,
    TIME,
    UNIFORM,
    VALUES,
    WEIGHTS,
    Memory,
    call_law,
    call_learn,
    context,
    ints,
    is_law,
    memo,
    shared_ints,
)
from onlinecal.rounds.words import floats_at, ints_at, run_of

#: the whole's shared numbers of a part: its two steps, the most atoms of its law, its grid. How many kinds of context
#: it takes, and where these are listed. Where its room and its memo begin.
LAW, LEARN, SIZE, GRID, POINTS, NEEDS, LISTED, ROOM_AT, MEMO_AT, PART = range(10)
#: of a copy, behind its two steps: how many kinds of context it takes, and where these are listed
TAKES, TAKEN_AT, COPY = range(2, 5)
#: the memo of a forecaster with copies begins with the copy that plays, and its number of the round
WHOSE, OWN, COPY_MEMO = range(3)


class Whole(Memory, ABC):
    """The memory of a player of parts that are made of steps: it knows where theirs is.

    The whole numbers of its state are the parts' runs. All runs share a row of numbers for each part, and then lists of
    kinds of context.
    """

    def __init__(
        self, players: Sequence[Any], width: int, listed: Sequence[Sequence[int]], **more: Any
    ) -> None:
        numbers = len(players) * width + sum(map(len, listed))
        super().__init__(ints=len(players) * FIELDS, shared_ints=np.zeros(numbers), **more)
        self.width, self.listed = width, [list(kinds) for kinds in listed]
        self.players = tuple(players)
        for player in players:
            player.memory.whole = self

    @property
    def in_python(self) -> bool:  # type: ignore[override]
        """Whether a part is an object in plain Python."""
        return any(player.memory.in_python for player in self.players)

    def spread(self, runs: range) -> None:
        """Makes a row for each of these runs, in the parts too."""
        super().spread(runs)
        for player in self.players:
            player.memory.spread(runs)

    @abstractmethod
    def described(self, k: int, listed: int) -> tuple[int, list[Any]]:
        """The most atoms of the law of part k, and its row. Its kinds of context are listed from that place on."""

    def link(self) -> None:
        """Writes down where the arrays of the parts are now."""
        at = len(self.players) * self.width
        rows = self.shared_ints[:at].reshape(-1, self.width)
        fields = self.ints.reshape(self.runs, len(self.players), FIELDS)
        for k, kinds in enumerate(self.listed):
            size, rows[k] = self.described(k, at)
            first, more = self.players[k].memory.fields().copy()
            first[[ATOMS + 1, VALUES + 1, WEIGHTS + 1]] = size
            fields[:, k] = first + np.arange(self.runs)[:, None] * more
            self.shared_ints[at : at + len(kinds)] = kinds
            at += len(kinds)


def places(lengths: Sequence[int], before: int, one_at_a_time: bool) -> tuple[list[int], int]:
    """Where the numbers of each part begin, behind `before` others, and where the last end; or all at one place."""
    if one_at_a_time:
        return [before] * len(lengths), before + max(lengths)
    ends: list[int] = np.cumsum([before, *lengths]).tolist()
    return ends[:-1], ends[-1]


class Parts(Whole):
    """The memory of a forecaster of parts that are forecasters made of steps.

    `needs` are the kinds of context of the whole in order; parts that play `one_at_a_time` share room and memo. The
    rest is as for `Memory`, of the whole itself: its room is the first of `scratch`.
    """

    def __init__(
        self,
        players: Sequence[Any],
        *,
        needs: Sequence[str] = (),
        one_at_a_time: bool = False,
        floats: Any = 0,
        shared: Any = (),
        scratch: int = 0,
        stream: Stream | None = None,
    ) -> None:
        rooms = [player.memory.context + len(player.memory.room) for player in players]
        memos = [1 + 3 * player.size + player.memory.memo for player in players]
        rooms, room = places(rooms, scratch, one_at_a_time)
        memos, memo = places(memos, 0, one_at_a_time)
        listed = [[needs.index(kind) for kind in player.needs] for player in players]
        super().__init__(
            players, PART, listed, floats=floats, shared=shared, scratch=room, stream=stream, context=len(needs),
            memo=memo,
        )  # fmt: skip
        self.rooms, self.memos = rooms, memos
        self.grids = [None if player.grid is None else np.array(player.grid) for player in players]

    def described(self, k: int, listed: int) -> tuple[int, list[Any]]:
        """As `Whole` says."""
        player, grid = self.players[k], self.grids[k]
        values = (0, 0) if grid is None else (address(grid), len(grid))
        steps = [step.address for step in player.steps]
        return player.size, [
            *steps, player.size, *values, len(player.needs), listed, self.rooms[k], self.memos[k],
        ]  # fmt: skip


class Copies(Whole):
    """The memory of a forecaster that shares its rounds out among copies of another, of which more can be begun.

    Copies have the `form` of one; names ↦ `begin` is one with a stream of these names. A round belongs to one of them,
    which states its law in the place of the whole's. The whole has `floats`, and `each` for each copy.
    """

    def __init__(
        self, form: Any, begin: Any, *, needs: Sequence[str], floats: int, each: int, shared: Any
    ) -> None:
        own = form.memory
        super().__init__(
            (), COPY, (), floats=floats, shared=shared, scratch=own.context + len(own.room), context=len(needs),
            memo=COPY_MEMO + own.memo,
        )  # fmt: skip
        self.begin, self.each, self.of_python = begin, each, own.in_python
        self.form, self.takes = _form(form), [needs.index(kind) for kind in form.needs]
        #: the numbers of the runs
        self.numbers = range(1)

    @property
    def in_python(self) -> bool:  # type: ignore[override]
        """Whether a copy has a part in plain Python; there need not be one yet."""
        return self.of_python

    def spread(self, runs: range) -> None:
        """Takes note of the runs, which the copies that begin later have too."""
        super().spread(runs)
        self.numbers = runs

    def add(self, *paths: Sequence[str]) -> None:
        """Begins a copy for each of these lists of names; `Unplayable` if one is of another form."""
        players = self.players + tuple(self.begin(*path) for path in paths)
        for player in players[len(self.players) :]:
            player.memory.spread(self.numbers)
            if _form(player) != self.form:
                what = "has copies of one forecaster on different grids"
                raise Unplayable(what, "the grid to depend on the horizon alone")
            player.memory.whole = self
        count, before = len(players), self.floats
        self.players, self.listed = players, [self.takes] * count
        self.ints = np.zeros((self.runs, count * FIELDS), np.int64)
        self.shared_ints = np.zeros(count * (COPY + len(self.takes)), np.int64)
        self.floats = np.zeros((self.runs, before.shape[1] + len(paths) * self.each))
        self.floats[:, : before.shape[1]] = before

    def described(self, k: int, listed: int) -> tuple[int, list[Any]]:
        """As `Whole` says."""
        player = self.players[k]
        return player.size, [*(step.address for step in player.steps), len(self.takes), listed]


def _form(player: Any) -> tuple[Any, ...]:
    """All that copies of one forecaster have in common."""
    memory, grid = player.memory, player.grid
    grid = None if grid is None else grid.tobytes()
    return player.size, player.needs, grid, memory.context, memory.memo, len(memory.room)


def prepare_parts(memory: Any, asked: int, open: int, streams: Mapping[int, int]) -> None:
    """Prepares all parts for some questions."""
    for player in memory.players:
        player.prepare(asked, open, streams)


def reserve_parts(memory: Any, rounds: int) -> None:
    """Makes room for more rounds in all parts."""
    for player in memory.players:
        player.reserve(rounds)


@part_of_kernel
def _part(run, k):
    """Part k of a run, as its steps take it."""
    row = shared_ints(run)[k * PART : (k + 1) * PART]
    room, own = run[SCRATCH] + 8 * row[ROOM_AT], run[MEMO] + 8 * row[MEMO_AT]
    fields, size = ints(run)[k * FIELDS : (k + 1) * FIELDS], row[SIZE]
    fields[CONTEXT], fields[SCRATCH] = room, room + 8 * fields[CONTEXT + 1]
    fields[ATOMS], fields[VALUES] = own + 8, own + 8 * (1 + size)
    fields[WEIGHTS], fields[MEMO] = own + 8 * (1 + 2 * size), own + 8 * (1 + 3 * size)
    fields[TIME] = run[TIME]
    part = run_of(fields)
    for i in range(row[NEEDS]):
        context(part)[i] = context(run)[shared_ints(run)[row[LISTED] + i]]
    return part


@part_of_kernel
def copy_of(run, k):
    """Copy k of a run, as its steps take it: its law is the whole's."""
    row, fields = shared_ints(run)[k * COPY : (k + 1) * COPY], ints(run)[k * FIELDS : (k + 1) * FIELDS]
    fields[CONTEXT], fields[SCRATCH] = run[SCRATCH], run[SCRATCH] + 8 * fields[CONTEXT + 1]
    fields[MEMO] = run[MEMO] + 8 * COPY_MEMO
    for place in (ATOMS, VALUES, WEIGHTS):
        fields[place], fields[place + 1] = run[place], run[place + 1]
    fields[ALONE], fields[UNIFORM], fields[TIME] = run[ALONE], run[UNIFORM], run[TIME]
    copy = run_of(fields)
    for i in range(row[TAKES]):
        context(copy)[i] = context(run)[shared_ints(run)[row[TAKEN_AT] + i]]
    return copy


@part_of_kernel
def state_copy(run, k, number):
    """Has copy k state the law of its round of this number; how many atoms it has."""
    memo(run)[WHOSE], memo(run)[OWN] = k, number
    return call_law(shared_ints(run)[k * COPY + LAW], (copy_of(run, k), number))


@part_of_kernel
def tell_copy(run, size, drawn, outcome):
    """Tells the copy that plays the round; the code of its step."""
    k, number = int(memo(run)[WHOSE]), int(memo(run)[OWN])
    return call_learn(shared_ints(run)[k * COPY + LEARN], (copy_of(run, k), number, size, drawn, outcome))


@part_of_kernel
def part_law(run, k):
    """The values and weights of the law that part k stated in the round of the memo."""
    row = shared_ints(run)[k * PART : (k + 1) * PART]
    own, most = run[MEMO] + 8 * row[MEMO_AT], row[SIZE]
    size = ints_at(own, 1)[0]
    return floats_at(own + 8 * (1 + most), size), floats_at(own + 8 * (1 + 2 * most), size)


@part_of_kernel
def state_part(run, k, number):
    """Has part k state its law. How many atoms it has: 0 or `RAISED` if it stated none, below 0 if it is no law."""
    row, part = shared_ints(run)[k * PART : (k + 1) * PART], _part(run, k)
    size = call_law(row[LAW], (part, number))
    if not 1 <= size <= row[SIZE]:
        return size if size == RAISED else 0
    ints_at(run[MEMO] + 8 * row[MEMO_AT], 1)[0] = size
    return size if is_law(part, size, floats_at(row[GRID], row[POINTS])) else -size


@part_of_kernel
def tell_part(run, k, number, drawn, outcome):
    """Tells part k the round, and which atom of its own law was drawn; the code of its step."""
    row, size = shared_ints(run)[k * PART : (k + 1) * PART], len(part_law(run, k)[0])
    if not 0 <= drawn < size:
        return -1
    return call_learn(row[LEARN], (_part(run, k), number, size, drawn, outcome))


@kernel
def first_above(values, x):
    """The place of the first of some ascending numbers that is above x; their number where none is."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low
