"""Cells as they are planned and shown, and the rows of a game in a results file."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinecal.core.columns import Column, Held
from onlinecal.core.guarantee import Sight
from onlinecal.study.gammas import Gammas
from onlinecal.study.played import Batch, Floats, Joined, Origin, Played, Promise


class Incompatible(NamedTuple):
    """A forecaster and a nature that cannot play each other, or not up to the longest horizon, and why."""

    forecaster: str
    nature: str
    reason: str


class Planned(NamedTuple):
    """A cell that is to be shown: its key, labels, and attributes of `Played`; unfinished without all `columns`."""

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

    def done(self, held: Mapping[Held, int]) -> int:
        """In how many of its runs all of its columns are there."""
        return min(self.runs, min((held.get(column, 0) for column in self.columns), default=0))

    def result(
        self, totals: Mapping[Column, Floats], numbers: Batch, gammas: Gammas, origin: Origin | None = None
    ) -> Played:
        """The cell with its totals, and what else there is of its game."""
        names = {column.name: values for column, values in totals.items()}
        promises = tuple(promise for promise in self.promises if promise.measure in names)
        return Played(
            self.forecaster, self.against, self.horizon, numbers.rounds, names, tuple(totals), promises, self.recorded,
            numbers.seconds, numbers.loop, numbers.open, (self.nature, self.schedule), numbers.people, self.sight,
            self.steps, gammas, origin,
        )  # fmt: skip


#: the columns of the table of games behind its id
GAME = "key", "content", "times", "held", "seconds", "loop", "open", "accounts"


def game_row(key: str, content: str, numbers: Batch) -> tuple[Any, ...]:
    """The row of a game, with totals by `Held`."""
    held = json.dumps([[column.key, totals.shape[1]] for column, totals in numbers.totals.items()])
    times, opened = json.dumps(numbers.rounds.tolist()), json.dumps(numbers.open)
    return key, content, times, held, numbers.seconds, numbers.loop, opened, _packed(numbers.people)


def total_rows(game: int, numbers: Batch) -> Iterator[tuple[int, int, int, int, float]]:
    """Rows of the table of totals."""
    for place, totals in enumerate(numbers.totals.values()):
        for round, of_runs in zip(numbers.rounds.tolist(), totals.tolist(), strict=True):
            yield from ((game, place, round, run, total) for run, total in enumerate(of_runs))


def numbers_of(row: Sequence[Any], totals: Sequence[Any], columns: Mapping[str, Held]) -> Batch:
    """The numbers in a row of games and in its totals, in the order of columns, rounds and runs."""
    _, _, times, held, seconds, loop, opened, accounts = row
    rounds, at = np.array(json.loads(times), np.int64), 0
    table = np.fromiter((total for (total,) in totals), np.float64, len(totals))
    found = {}
    for key, runs in json.loads(held):
        found[columns[key]] = table[at : at + len(rounds) * runs].reshape(len(rounds), runs)
        at += len(rounds) * runs
    return Batch(0, rounds, found, loop, tuple(json.loads(opened)), seconds, _unpacked(accounts))


def _packed(people: Joined | None) -> bytes | None:
    """The accounts of decision makers, in NumPy's format."""
    if people is None:
        return None
    file = io.BytesIO()
    own: dict[str, Any] = {key: value for key, value in vars(people).items() if key != "entries"}
    np.savez_compressed(file, **own | people.entries)
    return file.getvalue()


def _unpacked(held: bytes | None) -> Joined | None:
    if held is None:
        return None
    with np.load(io.BytesIO(held)) as file:
        parts = dict(file)
    labels, tasks, responses = (tuple(parts.pop(name).tolist()) for name in ("labels", "tasks", "responses"))
    join, leave, cdl = (parts.pop(name) for name in ("join", "leave", "cdl"))
    return Joined(labels, tasks, responses, join, leave, parts, cdl)
