"""A cell in a results file: how it is planned, and the numbers that were played, with their checksum."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import Held
from onlinecal.core.guarantee import Sight
from onlinecal.study.played import Floats, Joined, Promise


class Planned(NamedTuple):
    """A cell that is to be shown: `Cell.key`, under which its numbers are kept, labels, and attributes of `Played`.

    Without all of its `columns` it is not finished.
    """

    key: str
    forecaster: str
    nature: str
    schedule: str
    horizon: int
    runs: int
    recorded: bool
    sight: Sight
    promises: tuple[Promise, ...] = ()
    columns: tuple[Held, ...] = ()
    steps: int | None = None

    @property
    def against(self) -> str:
        """Nature with the schedule."""
        return ", ".join(filter(None, (self.nature, self.schedule)))

    def __str__(self) -> str:
        return f"{self.forecaster!r} against {self.against!r} at T = {self.horizon}"

    def played(self, held: Mapping[Held, int]) -> int:
        """In how many of its runs all of its columns are there."""
        return min(self.runs, min((held.get(column, 0) for column in self.columns), default=0))


class Numbers(NamedTuple):
    """The numbers of a game: checkpoints, totals, (n, runs), of each column, open questions, accounts.

    A column that was asked for later may be there for fewer runs. `content` is the text in the table.
    """

    content: str
    rounds: NDArray[np.int64]
    totals: Mapping[Held, Floats]
    seconds: float
    loop: str
    open: tuple[int, ...]
    people: Joined | None

    def row(self, key: str, ids: Mapping[Held, int]) -> tuple[Any, ...]:
        """The row of the table, in the order of `GAME`."""
        held = [[ids[column], totals.shape[1]] for column, totals in self.totals.items()]
        blob = b"".join(totals.astype("<f8").tobytes() for totals in self.totals.values())
        times, open = json.dumps(self.rounds.tolist()), json.dumps(self.open)
        said = key, self.content, times, self.seconds, self.loop, open
        seal = _seal(said, self.people, {c: t.shape[1] for c, t in self.totals.items()}, blob)
        who = ("", b"") if self.people is None else packed(self.people)
        return key, self.content, times, json.dumps(held), blob, self.seconds, self.loop, open, *who, seal

    @classmethod
    def read(cls, row: Sequence[Any], columns: Mapping[int, Held]) -> Numbers | None:
        """The numbers in a row of the table; None where its checksum is another."""
        key, content, times, held, blob, seconds, loop, opened, people, accounts, seal = row
        try:
            rounds = np.array(json.loads(times), dtype=np.int64)
            runs = {columns[i]: n for i, n in json.loads(held)}
            who = unpacked(people, accounts) if people else None
            if _seal((key, content, times, seconds, loop, opened), who, runs, blob) != seal:
                return None
        except (TypeError, ValueError, OverflowError, KeyError, RecursionError, zlib.error):
            return None
        table, at, totals = np.frombuffer(blob, "<f8").astype(np.float64), 0, {}
        for column, n in runs.items():
            totals[column] = table[at : at + len(rounds) * n].reshape(len(rounds), n)
            at += len(rounds) * n
        return cls(content, rounds, totals, seconds, loop, tuple(json.loads(opened)), who)


#: the columns of the table, in its order
GAME = "key", "content", "times", "held", "totals", "seconds", "loop", "open", "people", "accounts", "seal"


def _seal(said: tuple[Any, ...], people: Joined | None, runs: Mapping[Held, int], blob: bytes) -> str:
    """The checksum of a game; of accounts that of their numbers, as not every zlib makes the same bytes."""
    held = [(column.key, n) for column, n in runs.items()]
    state = hashlib.sha256(repr((said, people and plain(people), held)).encode())
    state.update(blob)
    return state.hexdigest()[:32]


# ---------------------------------------------------------------- the accounts of decision makers


def plain(people: Joined) -> tuple[str, bytes]:
    """The attributes of decision makers as JSON, and all numbers, little-endian."""
    said = {
        "labels": people.labels,
        "tasks": people.tasks,
        "responses": people.responses,
        "join": people.join.tolist(),
        "leave": [None if math.isinf(time) else time for time in people.leave.tolist()],
        "entries": list(people.entries),
    }
    numbers = np.concatenate([*(entry.ravel() for entry in people.entries.values()), people.cdl.ravel()])
    return json.dumps(said), (numbers + 0.0).astype("<f8").tobytes()


def packed(people: Joined) -> tuple[str, bytes]:
    """The same for the file: the shape of the numbers, and the numbers compressed."""
    said, numbers = plain(people)
    return said, np.array(next(iter(people.entries.values())).shape, "<i8").tobytes() + zlib.compress(numbers)


def unpacked(said: str, held: bytes) -> Joined:
    """The accounts that were packed."""
    who = json.loads(said)
    n, k, runs = np.frombuffer(held[:24], "<i8").tolist()
    numbers = np.frombuffer(zlib.decompress(held[24:]), "<f8").astype(np.float64)
    entries, cdl = numbers[: len(numbers) - k * runs], numbers[len(numbers) - k * runs :]
    table = entries.reshape(len(who["entries"]), n, k, runs)
    return Joined(
        tuple(who["labels"]),
        tuple(who["tasks"]),
        tuple(who["responses"]),
        np.array(who["join"], np.float64),
        np.array([math.inf if time is None else time for time in who["leave"]], np.float64),
        dict(zip(who["entries"], table, strict=True)),
        cdl.reshape(k, runs),
    )


def joined(old: Joined | None, new: Joined | None, first: int) -> Joined | None:
    """The same decision makers in more runs, the new ones from `first` on; where both have a run the old one stays."""
    if old is None or new is None:
        return None
    again = old.cdl.shape[1] - first
    entries = {
        name: np.concatenate([old.entries[name], new.entries[name][:, :, again:]], axis=2)
        for name in new.entries
    }
    return replace(old, entries=entries, cdl=np.concatenate([old.cdl, new.cdl[:, again:]], axis=1))


def shown(people: Joined, runs: int, labels: Sequence[str]) -> Joined:
    """The accounts of the first runs, under these labels."""
    return replace(
        people,
        labels=tuple(labels),
        entries={name: entry[:, :, :runs] for name, entry in people.entries.items()},
        cdl=people.cdl[:, :runs],
    )
