"""A results file: the plan and what was played, put away and found again; `database` says what is in it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from onlinecal.core.columns import Column, Held, read_column, written
from onlinecal.core.content import digest
from onlinecal.core.errors import StoreError
from onlinecal.core.guarantee import Sight
from onlinecal.study.database import FORMAT, SCHEMA, Database, format_of
from onlinecal.study.entries import Numbers, Planned, joined, seal
from onlinecal.study.gammas import Gammas, Packed, together
from onlinecal.study.played import Floats, Origin, Played, Promise, Results

#: the columns of games, but for the id
_GAME = "key", "content", "times", "held", "totals", "seconds", "loop", "open", "people", "accounts", "seal"
_ROW = f"SELECT {', '.join(_GAME)} FROM games"
#: the keys of meta that are of the plan
_OF_PLAN = "plan", "seal"
#: the errors of reading what something else has changed
_CHANGED = (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError)


class Store:
    """An open results file; a context manager.

    A transaction that fails leaves the file as it was, and raises StoreError where another program holds the file, or
    it is full, read-only or damaged.
    """

    def __init__(self, database: Database) -> None:
        self.path, self._db = database.path, database
        # Read several times: each with the state of the file in which it was read.
        self._plan: tuple[object, list[Planned]] = None, []
        self._held: tuple[object, dict[str, dict[Held, int]]] = None, {}

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, str], plan: Sequence[Planned]) -> Store:
        """A new file of which nothing has been played; see `Database.create`."""
        return cls(Database.create(path, SCHEMA, lambda database: cls(database).put_plan(meta, plan)))

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Store:
        """An existing file; see `Database.open`."""
        return cls(Database.open(path, write=write))

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def together(self) -> AbstractContextManager[None]:
        """Within it several changes are one transaction."""
        return self._db.transaction()

    def at_once(self) -> AbstractContextManager[None]:
        """Within it all that is read belongs together, whatever is written meanwhile."""
        return self._db.reading()

    # ---------------------------------------------------------------- the plan

    @property
    def meta(self) -> dict[str, str]:
        """Name, title, text of the scenario and version."""
        return {key: value for key, value in self._meta().items() if key not in _OF_PLAN}

    def _meta(self) -> dict[str, str]:
        with self._db.reading():
            return dict(self._db.run("SELECT key, value FROM meta"))

    def put_plan(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> None:
        """Puts a plan and what the file says of itself in place of those before; what was played stays."""
        panels: dict[tuple[Held, ...], int] = {}
        promises: dict[tuple[Any, ...], int] = {}
        cells = []
        for cell in plan:
            panel = panels.setdefault(cell.columns, len(panels))
            bounds = []
            for p in cell.promises:
                said = p.measure, p.text, p.formula, p.kind, p.against, p.upper
                bounds.append([promises.setdefault(said, len(promises)), p.bound])
            cells.append([*cell[:7], int(cell.sight), cell.steps, panel, bounds])
        keys = [[held.key for held in columns] for columns in panels]
        text = json.dumps({"cells": cells, "panels": keys, "promises": list(promises)})
        meta = {**{key: value for key, value in meta.items() if key not in _OF_PLAN}, "plan": text}
        meta["seal"] = seal(*sorted(meta.items()))
        with self._db.transaction():
            self._put_columns(column for columns in panels for column in columns)
            self._db.run("DELETE FROM meta")
            self._db.run_many("INSERT INTO meta VALUES (?, ?)", meta.items())

    def has_plan(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> bool:
        """Whether it is this one that is there, as it was put there."""
        try:
            return self.plan() == list(plan) and self.meta == meta
        except StoreError:
            return False

    def plan(self) -> list[Planned]:
        """The cells that are to be shown, in their order."""
        with self._db.reading():
            if self._plan[0] != self._db.state:
                try:
                    self._plan = self._db.state, self._read_plan()
                except _CHANGED:
                    raise StoreError(
                        f"{self.path}: something else has changed the plan; `onlinecal run SCENARIO --resume` "
                        "writes it anew"
                    ) from None
            return list(self._plan[1])

    def _read_plan(self) -> list[Planned]:
        columns, meta = self._columns(), self._meta()
        if seal(*sorted((key, value) for key, value in meta.items() if key != "seal")) != meta["seal"]:
            raise ValueError("another checksum")
        held = json.loads(meta["plan"])
        panels = [tuple(columns[key] for key in keys) for keys in held["panels"]]

        def promise(told: Any) -> Promise:
            return Promise(*(*held["promises"][told[0]], told[1]))

        return [
            Planned._make((*said, Sight(sight), tuple(map(promise, bounds)), panels[panel], steps))
            for *said, sight, steps, panel, bounds in held["cells"]
        ]

    # ---------------------------------------------------------------- columns and contents

    def _columns(self) -> dict[str, Held]:
        """Those that are as they were put there, by their keys."""
        rows = self._db.run('SELECT key, "column", content FROM columns')
        read = ((key, read_column(text), content) for key, text, content in rows)
        found = {key: Held(column, content) for key, column, content in read if column is not None}
        return {key: held for key, held in found.items() if isinstance(held.content, str) and held.key == key}

    def _put_columns(self, columns: Iterable[Held]) -> None:
        self._db.run_many(
            "INSERT OR REPLACE INTO columns VALUES (?, ?, ?, ?)",
            [(h.key, h.column.name, written(h.column), h.content) for h in columns],
        )

    def contents(self, keys: Collection[str]) -> dict[str, Any]:
        """Key → content of the rounds, of those of these keys that are as they were put there."""
        found: dict[str, Any] = {}
        with self._db.reading():
            for key, text in self._db.run("SELECT key, content FROM games"):
                try:
                    if key in keys and digest(content := json.loads(text)) == key:
                        found[key] = content
                except _CHANGED:
                    continue  # `damaged` has it
        return found

    # ---------------------------------------------------------------- games

    def finished(self) -> list[Planned]:
        """The cells of the plan that have been played in all their runs, with all their columns."""
        with self._db.reading():
            held, none = self.held(), dict[Held, int]()
            return [cell for cell in self.plan() if cell.played(held.get(cell.key, none)) >= cell.runs]

    def runs(self) -> dict[str, int]:
        """Of everything that was played, planned or not: key → how many runs."""
        return {key: max(held.values()) for key, held in self.held().items() if held}

    def held(self) -> dict[str, dict[Held, int]]:
        """Of everything that was played: key → column → how many runs."""
        with self._db.reading():
            if self._held[0] != self._db.state:
                columns = self._columns()
                texts: dict[Any, dict[Held, int]] = {}  # most games have the same
                found = {}
                for key, text in self._db.run("SELECT key, held FROM games"):
                    if text not in texts:
                        try:
                            texts[text] = {columns[of]: n for of, n in json.loads(text) if isinstance(n, int)}
                        except _CHANGED:
                            texts[text] = {}  # as if it were not played
                    found[key] = texts[text]
                self._held = self._db.state, found
            return dict(self._held[1])

    def speeds(self) -> dict[str, float]:
        """Of everything that was played: key → seconds for a run-round."""
        with self._db.reading():
            rows, runs = self._db.run("SELECT key, seconds, times FROM games").fetchall(), self.runs()
        return {
            key: seconds / (json.loads(times)[-1] * runs[key])
            for key, seconds, times in rows
            if key in runs and seconds > 0.0
        }

    def numbers(self, key: str) -> Numbers | None:
        """The numbers under a key; None for none, or others than were put there."""
        with self._db.reading():
            row = self._db.run(f"{_ROW} WHERE key = ?", (key,)).fetchone()
            return None if row is None else Numbers.read(row, self._columns())

    def _all_numbers(self, keys: Collection[str] | None = None) -> Iterator[tuple[str, Numbers | None]]:
        """The numbers of each game, or of these; None where they are others than were put there."""
        columns = self._columns()
        for row in self._db.run(_ROW):
            if keys is None or row[0] in keys:
                yield row[0], Numbers.read(row, columns)

    def damaged(self) -> set[str]:
        """Keys of games whose numbers are others than were put there."""
        with self._db.reading():
            return {key for key, numbers in self._all_numbers() if numbers is None}

    def _put(self, key: str, numbers: Numbers) -> None:
        """Puts the numbers of a game in place of those before; they can be played after all."""
        with self._db.transaction():
            self._put_columns(numbers.totals)
            changed = ", ".join(f"{name} = excluded.{name}" for name in _GAME[1:])
            self._db.run(
                f"INSERT INTO games ({', '.join(_GAME)}) VALUES ({', '.join('?' * len(_GAME))}) "
                f"ON CONFLICT (key) DO UPDATE SET {changed}",
                numbers.row(key),
            )
            self._db.run("DELETE FROM failed WHERE key = ?", (key,))

    def insert(self, key: str, content: Mapping[str, Any], numbers: Numbers, gammas: Packed) -> None:
        """Puts a game with its level sets in place of what is there; of a run they stay unless new ones are exact."""
        with self._db.transaction():
            self._put(key, numbers._replace(content=json.dumps(content, sort_keys=True)))
            self._db.run_many(
                "INSERT OR REPLACE INTO gammas SELECT id, ?, ?, ? FROM games WHERE key = ?",
                [
                    (r, p, seal(key, r, p), key)
                    for r, p in together(self.gammas(key), gammas).items()
                    if r in gammas
                ],
            )

    def add(
        self,
        key: str,
        content: Mapping[str, Any],
        columns: Mapping[Column, Held],
        played: Played,
        first: int = 0,
    ) -> None:
        """Puts played runs away, from the run `first` on, whole or not at all; see `Cell` for the others."""
        new = {columns.get(c) or Held.of(c, {}): played.totals[c.name] for c in played.columns}
        with self._db.transaction():
            old = self.numbers(key)
            seconds, loop, people = played.seconds, played.loop, played.people
            if old is not None:
                before, now = (
                    sorted(str(h.column) for h in each if _certifies(h)) for each in (old.totals, new)
                )
                if before != now:
                    raise StoreError(
                        f"{self.path}: {played.forecaster!r} against {played.nature!r} gave the certificates "
                        f"{', '.join(before) or 'none'} before, now {', '.join(now) or 'none'}; --overwrite starts anew"
                    )
                seconds += old.seconds
                loop = loop if loop == old.loop else "both"
                if old.people is not None and old.people.cdl.shape[1] < first:
                    raise self._meanwhile()
                people = joined(old.people, people, first)
            totals = self._both({} if old is None else old.totals, new, first)
            # In a world each run has its own; the most of any run counts.
            open = played.open if old is None else tuple(map(max, old.open, played.open))
            numbers = Numbers("", played.rounds, totals, seconds, loop, open, people)
            self.insert(key, content, numbers, played.gammas.runs)

    def add_columns(self, key: str, columns: Mapping[Held, Floats], first: int = 0) -> None:
        """Puts further runs, from `first` on, of columns that were computed from Γ beside those of the same game."""
        with self._db.transaction():
            old = self.numbers(key)
            if old is None:
                raise self._meanwhile()
            self._put(key, old._replace(totals=self._both(old.totals, columns, first)))

    def _both(self, old: Mapping[Held, Floats], new: Mapping[Held, Floats], first: int) -> dict[Held, Floats]:
        """The columns that are there, and further runs of some of them, or others."""
        kept = dict(old)
        for column, totals in new.items():
            there = kept[column].shape[1] if column in kept else 0
            # Runs that are played again, for other columns, are certified again: that goes on where it stopped.
            if there < first or (there > first and not _certifies(column)):
                raise self._meanwhile()
            kept[column] = (
                np.concatenate([kept[column], totals[:, there - first :]], axis=1) if there else totals
            )
        return kept

    def _meanwhile(self) -> StoreError:
        return StoreError(
            f"{self.path}: another process has played the same cells meanwhile; go on with --resume"
        )

    def forget(self, keys: Collection[str]) -> None:
        """Deletes the games of these keys, and all columns that nothing refers to any more."""
        if not keys:
            return
        with self._db.transaction():
            each = [(key,) for key in keys]
            self._db.run_many("DELETE FROM gammas WHERE game IN (SELECT id FROM games WHERE key = ?)", each)
            self._db.run_many("DELETE FROM games WHERE key = ?", each)
            self._db.run_many("DELETE FROM failed WHERE key = ?", each)
            try:
                wanted = {key for columns in json.loads(self._meta()["plan"])["panels"] for key in columns}
                for (held,) in self._db.run("SELECT DISTINCT held FROM games"):
                    wanted |= {key for key, _ in json.loads(held)}
            except _CHANGED:
                return  # the plan, which is written anew
            gone = [row for row in self._db.run("SELECT key FROM columns").fetchall() if row[0] not in wanted]
            self._db.run_many("DELETE FROM columns WHERE key = ?", gone)

    def forget_replaced(self) -> None:
        """Deletes columns whose place others of the same name have taken, of other content, in all cells."""
        with self._db.transaction():
            held = self.held()
            for key, columns in {cell.key: cell.columns for cell in self.plan()}.items():
                names = {h.column.name for h in columns}
                old = held.get(key, {}).keys() - set(columns)
                gone = {h for h in old if h.column.name in names and not _certifies(h)}
                numbers = self.numbers(key) if gone else None
                if numbers is not None:
                    left = {h: totals for h, totals in numbers.totals.items() if h not in gone}
                    self._put(key, numbers._replace(totals=left))

    # ---------------------------------------------------------------- level sets and failures

    def gammas(self, key: str, whose: str = "", run: int | None = None) -> dict[int, bytes]:
        """Run → packed level sets of a game; those with another checksum are an error if `whose` names the game."""
        with self._db.reading():
            rows = self._db.run(
                "SELECT run, packed, gammas.seal FROM gammas JOIN games ON games.id = game "
                "WHERE key = :key AND (:run IS NULL OR run = :run) ORDER BY run",
                {"key": key, "run": run},
            ).fetchall()
        good = {run: packed for run, packed, sealed in rows if seal(key, run, packed) == sealed}
        if whose and len(good) < len(rows):
            raise StoreError(
                f"{self.path}: something else has changed the level sets of {whose}; a measure that is added to the "
                "scenario is played again with --resume, and they with it"
            )
        return good

    def fail(self, key: str, error: str) -> None:
        """Writes down why a game could not be played; what of it was played before stays."""
        at = f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S %z}"
        with self._db.transaction():
            self._db.run("INSERT OR REPLACE INTO failed VALUES (?, ?, ?)", (key, error, at))

    def failures(self) -> dict[str, tuple[str, str]]:
        """Of everything that could not be played: key → why, and when it was last tried."""
        with self._db.reading():
            return {key: (error, at) for key, error, at in self._db.run("SELECT key, error, at FROM failed")}

    # ---------------------------------------------------------------- all of it

    def results(self) -> Results:
        """All finished cells, in the order of the plan."""
        with self._db.reading():
            finished, meta = self.finished(), self.meta
            labels = tuple(json.loads(meta.get("people", "[]")))
            wanted = {cell.key for cell in finished}
            numbers = dict(self._all_numbers(wanted))
            cells = tuple(self._cell(planned, numbers[planned.key], labels) for planned in finished)
            return Results(cells, meta["name"], meta["title"])

    def _cell(self, planned: Planned, numbers: Numbers | None, labels: tuple[str, ...]) -> Played:
        if numbers is None:
            raise StoreError(
                f"{self.path}: something else has changed or deleted numbers of {planned}; "
                "`onlinecal run SCENARIO --resume` plays them anew"
            )
        # In the order in which they were asked for, and after them what players certify.
        certified = (h for h, t in numbers.totals.items() if _certifies(h) and t.shape[1] >= planned.runs)
        columns = (*planned.columns, *certified)
        totals = {h.column.name: numbers.totals[h][:, : planned.runs] for h in columns}
        return Played(
            planned.forecaster,
            planned.against,
            planned.horizon,
            numbers.rounds,
            totals,
            tuple(h.column for h in columns),
            tuple(p for p in planned.promises if p.measure in totals),
            planned.recorded,
            numbers.seconds,
            numbers.loop,
            numbers.open,
            (planned.nature, planned.schedule),
            numbers.people and numbers.people.of_runs(planned.runs, labels),
            planned.sight,
            planned.steps,
            _StoredGammas(self.path, planned),
            Origin(numbers.content, {held.column: held for held in columns}),
        )


def _certifies(held: Held) -> bool:
    return held.column.kind == "certificate"


def check_replaceable(path: Path) -> None:
    """Refuses to replace what is not ours, what a later version has made, and what is protected."""
    if not path.is_file():
        raise StoreError(f"{path}: not a file")
    found = format_of(path)
    if found is None:
        raise StoreError(f"{path} is not a results file of onlinecal; --output chooses another file")
    if found > FORMAT:
        with Store.open(path):  # raises
            pass
    if not os.access(path, os.W_OK):
        raise StoreError(f"{path} is read-only; make it writable, or choose another file with --output")


class _StoredGammas(Gammas):
    """The level sets of a game in a results file, read when they are asked for."""

    def __init__(self, path: Path, planned: Planned) -> None:
        super().__init__()
        self.path, self.key, self.whose = path, planned.key, str(planned)

    @property
    def runs(self) -> Packed:
        """Packed level sets of each run."""
        return self._read(None)

    def one(self, run: int) -> bytes | None:
        """Packed level sets of a run."""
        return self._read(run).get(run)

    def _read(self, run: int | None) -> Packed:
        with Store.open(self.path) as store:
            return store.gammas(self.key, self.whose, run)
