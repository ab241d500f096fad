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

    A column that was asked for later may be there for fewer runs. `content` is `Cell.content` as JSON.
    """

    content: str
    rounds: NDArray[np.int64]
    totals: Mapping[Held, Floats]
    seconds: float
    loop: str
    open: tuple[int, ...]
    people: Joined | None

    def row(self, key: str) -> tuple[Any, ...]:
        """The row of the table of games."""
        held = json.dumps([[column.key, totals.shape[1]] for column, totals in self.totals.items()])
        blob = b"".join(totals.astype("<f8").tobytes() for totals in self.totals.values())
        times, people = json.dumps(self.rounds.tolist()), _packed(self.people)
        row = key, self.content, times, held, blob, self.seconds, self.loop, json.dumps(self.open), *people
        return *row, seal(*row)

    @classmethod
    def read(cls, row: Sequence[Any], columns: Mapping[str, Held]) -> Numbers | None:
        """The numbers in a row of the table; None where its checksum is another, or a column is not there."""
        *said, found = row
        if seal(*said) != found:
            return None
        _, content, times, held, blob, seconds, loop, opened, people, accounts = said
        rounds = np.array(json.loads(times), dtype=np.int64)
        table, at, totals = np.frombuffer(blob, "<f8").astype(np.float64), 0, {}
        for key, n in json.loads(held):
            if key not in columns:
                return None
            totals[columns[key]] = table[at : at + len(rounds) * n].reshape(len(rounds), n)
            at += len(rounds) * n
        who = _unpacked(people, accounts) if people else None
        return cls(content, rounds, totals, seconds, loop, tuple(json.loads(opened)), who)


def seal(*said: Any) -> str:
    """The checksum of a row."""
    state = hashlib.sha256(
        repr([each for each in said if not isinstance(each, bytes)]).encode(errors="replace")
    )
    for each in said:
        if isinstance(each, bytes):
            state.update(each)
    return state.hexdigest()[:32]


# ---------------------------------------------------------------- the accounts of decision makers


def _packed(people: Joined | None) -> tuple[str, bytes]:
    """The attributes of decision makers as JSON, and all numbers, little-endian and compressed."""
    if people is None:
        return "", b""
    entries = np.array(list(people.entries.values()))
    said = {name: getattr(people, name) for name in ("labels", "tasks", "responses")} | {
        "join": people.join.tolist(),
        "leave": [None if math.isinf(time) else time for time in people.leave.tolist()],
        "entries": list(people.entries),
        "shape": entries.shape,
    }
    numbers = np.concatenate([entries.ravel(), people.cdl.ravel()]) + 0.0
    return json.dumps(said), zlib.compress(numbers.astype("<f8").tobytes())


def _unpacked(said: str, held: bytes) -> Joined:
    who = json.loads(said)
    numbers = np.frombuffer(zlib.decompress(held), "<f8").astype(np.float64)
    size = math.prod(who["shape"])
    return Joined(
        tuple(who["labels"]),
        tuple(who["tasks"]),
        tuple(who["responses"]),
        np.array(who["join"], np.float64),
        np.array([math.inf if time is None else time for time in who["leave"]], np.float64),
        dict(zip(who["entries"], numbers[:size].reshape(who["shape"]), strict=True)),
        numbers[size:].reshape(who["shape"][2:]),
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
