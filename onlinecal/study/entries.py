"""What a results file has of a cell: what is planned, and the numbers that were played, with their digest."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import Held
from onlinecal.core.sight import Sight
from onlinecal.study.packed import packed, plain, unpacked
from onlinecal.study.played import Floats, Joined, Promise


class Planned(NamedTuple):
    """A cell that is to be shown.

    Attributes
    ----------
    key : str
        `Cell.key`, under which its numbers are kept.
    forecaster, nature, schedule : str
        Labels.
    horizon, runs : int
    recorded : bool
    sight : Sight
        Both as in `Played`.
    promises : tuple of Promise
        The guarantees that apply to it.
    columns : tuple of Held
        Without all of them it is not finished.
    steps : int or None
        As in `Played`.
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


class Numbers(NamedTuple):
    """What was played of a game: its checkpoints, the totals of each column, (n, runs), the questions that were open at
    each checkpoint, and the accounts of decision makers who join and leave. A column that was asked for later may be
    there for fewer runs.

    `content` is the text in the table.
    """

    content: str
    rounds: NDArray[np.int64]
    totals: Mapping[Held, Floats]
    seconds: float
    loop: str
    open: tuple[int, ...]
    people: Joined | None

    def row(self, key: str, ids: Mapping[Held, int]) -> dict[str, Any]:
        """As it lies in the table."""
        who, accounts = ("", b"") if self.people is None else packed(self.people)
        held = [[ids[column], totals.shape[1]] for column, totals in self.totals.items()]
        blob = b"".join(totals.astype("<f8").tobytes() for totals in self.totals.values())
        times, open = json.dumps(self.rounds.tolist()), json.dumps(self.open)
        said = key, self.content, times, self.seconds, self.loop, open
        return {
            "key": key,
            "content": self.content,
            "times": times,
            "held": json.dumps(held),
            "totals": blob,
            "seconds": self.seconds,
            "loop": self.loop,
            "open": open,
            "people": who,
            "accounts": accounts,
            "seal": _seal(said, self.people, {c: t.shape[1] for c, t in self.totals.items()}, blob),
        }

    @classmethod
    def read(cls, row: Mapping[str, Any], columns: Mapping[int, Held]) -> Numbers | None:
        """From the row of the table; None for what is not as it was put there."""
        try:
            rounds = np.array(json.loads(row["times"]), dtype=np.int64)
            runs = {columns[i]: n for i, n in json.loads(row["held"])}
            blob = row["totals"]
            who = unpacked(row["people"], row["accounts"]) if row["people"] else None
            said = tuple(row[name] for name in ("key", "content", "times", "seconds", "loop", "open"))
            if _seal(said, who, runs, blob) != row["seal"]:
                return None
            table, at, totals = np.frombuffer(blob, "<f8").astype(np.float64), 0, {}
            for column, n in runs.items():
                totals[column] = table[at : at + len(rounds) * n].reshape(len(rounds), n)
                at += len(rounds) * n
            open = tuple(json.loads(row["open"]))
        except (TypeError, ValueError, OverflowError, KeyError, RecursionError, zlib.error):
            return None  # text, or nothing
        return cls(row["content"], rounds, totals, row["seconds"], row["loop"], open, who)


#: the columns of the table, in its order
GAME = "key", "content", "times", "held", "totals", "seconds", "loop", "open", "people", "accounts", "seal"


def _seal(said: tuple[Any, ...], people: Joined | None, runs: Mapping[Held, int], blob: bytes) -> str:
    """The digest of all that is told of a game; of accounts the numbers, as not every zlib makes the same bytes."""
    held = [(column.key, n) for column, n in runs.items()]
    state = hashlib.sha256(repr((said, people and plain(people), held)).encode())
    state.update(blob)
    return state.hexdigest()[:32]
