"""A results file: the plan and what was played, put away and found again; `schema` says what is in it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from onlinecal.core.columns import Column, Held
from onlinecal.core.errors import StoreError
from onlinecal.study.database import FORMAT, Database, format_of
from onlinecal.study.entries import Numbers, Planned
from onlinecal.study.gammas import Gammas, apart
from onlinecal.study.packed import joined, shown
from onlinecal.study.played import Floats, Played, Results
from onlinecal.study.schema import SCHEMA
from onlinecal.study.tables import OF_PLAN, Tables


class Store:
    """An open results file; a context manager.

    Raises
    ------
    StoreError
        From every method, where the file is held by another program, full, read-only, damaged or not one of ours. A
        transaction that fails leaves the file as it was.
    """

    def __init__(self, database: Database) -> None:
        self.path = database.path
        self._db = database
        self._tables = Tables(database)

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, str], plan: Sequence[Planned]) -> Store:
        """A new file of which nothing has been played; see `Database.create`."""
        return cls(Database.create(path, SCHEMA, lambda database: cls(database).put_plan(meta, plan)))

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Store:
        """An existing file; see `Database.open`."""
        database = Database.open(path, write=write)
        try:
            store = cls(database)
            if write:
                store._tables.check(SCHEMA)
        except BaseException:
            database.close()
            raise
        return store

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    # ---------------------------------------------------------------- the plan

    @property
    def meta(self) -> dict[str, str]:
        """Name, title, text of the scenario and version."""
        with self._db.reading():
            return self._tables.meta()

    def put_plan(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> None:
        """Puts a plan in place of the one before; what was played stays.

        Parameters
        ----------
        meta : mapping
            What the file says of itself: name, title, scenario, version, and where there are some, as a JSON list, the
            labels of decision makers, under ``people``.
        plan : sequence of Planned
        """
        with self._db.transaction():
            self._tables.put_plan(meta, plan)

    def has_plan(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> bool:
        """Whether it is this one that is there, as it was put there."""
        with self._db.reading():
            try:
                same = self._tables.plan() == list(plan)
            except StoreError:  # something else has changed it
                return False
            there = self._tables.meta()
            return same and {key: value for key, value in there.items() if key not in OF_PLAN} == meta

    def plan(self) -> list[Planned]:
        """The cells that are to be shown, in their order."""
        with self._db.reading():
            return self._tables.plan()

    # ---------------------------------------------------------------- what was played

    def finished(self) -> list[Planned]:
        """The cells of the plan that have been played in all their runs, with all their columns."""
        with self._db.reading():
            return self._finished()

    def runs(self) -> dict[str, int]:
        """Of everything that was played, planned or not: key → how many runs."""
        return {key: max(held.values()) for key, held in self.held().items() if held}

    def held(self) -> dict[str, dict[Held, int]]:
        """Of everything that was played: key → column → how many runs."""
        with self._db.reading():
            return self._tables.held()

    def speeds(self) -> dict[str, float]:
        """Of everything that was played: key → seconds for a run-round."""
        with self._db.reading():
            return self._tables.speeds()

    def contents(self, keys: Collection[str]) -> dict[str, Any]:
        """What the rounds under these keys depend on; of those that can be told."""
        with self._db.reading():
            return self._tables.contents(keys)

    def damaged(self) -> set[str]:
        """Keys of what was changed or deleted by something else."""
        with self._db.reading():
            return {key for key, numbers in self._tables.numbers() if numbers is None}

    def numbers(self, key: str) -> Numbers | None:
        """What was played under a key; None for nothing, or what is not as it was put there."""
        with self._db.reading():
            return self._tables.numbers_of(key)

    def gammas(self, key: str, whose: str = "") -> list[tuple[int, bytes]]:
        """The first run and the packed level sets of each part that is as it was put there; each run is in one part.

        Where it is said whose they are, something that is not so is an error.
        """
        with self._db.reading():
            good, bad = self._tables.gammas(key)
        if bad and whose:
            raise StoreError(
                f"{self.path}: something else has changed the level sets of {whose}; a measure that is added to the "
                "scenario is played again with --resume, and they with it"
            )
        return apart(good)

    def add(
        self,
        key: str,
        content: Mapping[str, Any],
        columns: Mapping[Column, Held],
        played: Played,
        first: int = 0,
    ) -> None:
        """Puts played runs away, whole or not at all.

        Parameters
        ----------
        key, content
            `Cell.key` and `Cell.content`.
        columns : mapping
            `Cell.held`.
        played : Played
        first : int, default 0
            The number of the first of its runs; those before are there.

        Raises
        ------
        StoreError
            Another process has played the same runs meanwhile.
        """
        new = {columns.get(c) or Held.of(c, {}): played.totals[c.name] for c in played.columns}
        with self._db.transaction():
            self._add(key, content, new, played, first)

    def _add(
        self, key: str, content: Mapping[str, Any], new: Mapping[Held, Floats], played: Played, first: int
    ) -> None:
        old = self._tables.numbers_of(key)
        before = {} if old is None else old.totals
        if old is not None:
            self._check_certificates(before, new, played)
        # Runs that are played again, for other columns, are certified again: that goes on where it stopped.
        certified = {h: t for h, t in new.items() if _certifies(h)}
        again = max(0, min((t.shape[1] for h, t in before.items() if _certifies(h)), default=0) - first)
        kept = self._both(before, {h: t for h, t in new.items() if h not in certified}, first)
        kept = self._both(kept, {h: t[:, again:] for h, t in certified.items()}, first + again)
        seconds, loop, people = played.seconds, played.loop, played.people
        if old is not None:
            seconds += old.seconds
            loop = loop if loop == old.loop else "both"
            if old.people is not None and old.people.cdl.shape[1] < first:
                raise self._meanwhile()
            people = joined(old.people, people, first)
        text = self._tables.put_content(content)
        self._tables.put(key, Numbers(text, played.rounds, kept, seconds, loop, played.open, people))
        self._tables.put_gammas(key, played.gammas.parts)
        self._tables.succeed(key)

    def _check_certificates(self, old: Collection[Held], new: Collection[Held], played: Played) -> None:
        before, now = ([str(h.column) for h in each if _certifies(h)] for each in (old, new))
        if sorted(before) != sorted(now):
            raise StoreError(
                f"{self.path}: {played.forecaster!r} against {played.nature!r} gave the certificates "
                f"{', '.join(before) or 'none'} before, now {', '.join(now) or 'none'}; --overwrite starts anew"
            )

    def add_columns(self, key: str, columns: Mapping[Held, Floats], first: int = 0) -> None:
        """Puts further runs, from `first` on, of columns that were computed from Γ beside those of the same game."""
        with self._db.transaction():
            old = self._tables.numbers_of(key)
            if old is None:
                raise StoreError(f"{self.path}: something else has changed it meanwhile; go on with --resume")
            self._tables.put(key, old._replace(totals=self._both(old.totals, columns, first)))
            self._tables.succeed(key)

    def _both(self, old: Mapping[Held, Floats], new: Mapping[Held, Floats], first: int) -> dict[Held, Floats]:
        """The columns that are there, and further runs of some of them, or others."""
        kept = dict(old)
        for column, totals in new.items():
            there = kept[column].shape[1] if column in kept else 0
            if there != first:
                raise self._meanwhile()
            kept[column] = np.concatenate([kept[column], totals], axis=1) if there else totals
        return kept

    def _meanwhile(self) -> StoreError:
        return StoreError(
            f"{self.path}: another process has played the same cells meanwhile; go on with --resume"
        )

    def insert(
        self, key: str, content: Mapping[str, Any], numbers: Numbers, gammas: Sequence[tuple[int, bytes]]
    ) -> None:
        """Puts what another file has under a key in place of what is there."""
        with self._db.transaction():
            self._tables.put(key, numbers._replace(content=self._tables.put_content(content)))
            self._tables.put_gammas(key, gammas)

    def together(self) -> AbstractContextManager[None]:
        """What is put away within is in the file at its end, all of it or nothing: the disk is waited for once."""
        return self._db.transaction()

    def fail(self, key: str, error: str) -> None:
        """Writes down why a game could not be played; what of it was played before stays."""
        with self._db.transaction():
            self._tables.fail(key, error, f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S %z}")

    def failures(self) -> dict[str, tuple[str, str]]:
        """Of everything that could not be played: key → why, and when it was last tried."""
        with self._db.reading():
            return self._tables.failures()

    @contextmanager
    def at_once(
        self,
    ) -> Iterator[
        tuple[dict[str, str], list[Planned], dict[str, dict[Held, int]], dict[str, tuple[str, str]]]
    ]:
        """`meta`, `plan`, `held` and `failures`, which belong together, whatever is written meanwhile."""
        with self._db.reading():
            tables = self._tables
            yield tables.meta(), tables.plan(), tables.held(), tables.failures()

    def forget(self, keys: Collection[str]) -> None:
        """Deletes what was played under these keys."""
        with self._db.transaction():
            self._tables.forget(keys)

    def forget_replaced(self) -> None:
        """Deletes columns whose place others of the same name have taken, of other content, in all cells."""
        with self._db.transaction():
            wanted = {cell.key: cell.columns for cell in self._tables.plan()}
            held = self._tables.held()
            for key, columns in wanted.items():
                if held.get(key, {}).keys() <= set(columns):
                    continue
                names = {h.column.name for h in columns}
                gone = {
                    h
                    for h in held.get(key, {})
                    if h.column.name in names and h not in columns and not _certifies(h)
                }
                numbers = self._tables.numbers_of(key) if gone else None
                if numbers is not None:
                    left = {h: totals for h, totals in numbers.totals.items() if h not in gone}
                    self._tables.put(key, numbers._replace(totals=left))

    def results(self) -> Results:
        """All finished cells, in the order of the plan."""
        with self._db.reading():
            finished, meta = self._finished(), self._tables.meta()
            labels = json.loads(meta.get("people", "[]"))
            wanted = {cell.key for cell in finished}
            numbers, contents = dict(self._tables.numbers(wanted)), StoredContents(self.path, wanted)
            cells = tuple(self._cell(planned, numbers[planned.key], labels, contents) for planned in finished)
            return Results(cells, meta["name"], meta["title"])

    # ---------------------------------------------------------------- within a transaction

    def _finished(self) -> list[Planned]:
        held = self._tables.held()
        none: dict[Held, int] = {}
        return [
            cell
            for cell in self._tables.plan()
            if all(held.get(cell.key, none).get(column, 0) >= cell.runs for column in cell.columns)
        ]

    def _cell(
        self, planned: Planned, numbers: Numbers | None, labels: Sequence[str], contents: StoredContents
    ) -> Played:
        if numbers is None or (numbers.people is None) == bool(labels):
            raise StoreError(
                f"{self.path}: something else has changed or deleted numbers of {planned}; "
                "`onlinecal run SCENARIO --resume` plays them anew"
            )
        # In the order in which they were asked for, and after them what players certify.
        certified = (h for h, t in numbers.totals.items() if _certifies(h) and t.shape[1] >= planned.runs)
        columns = (*planned.columns, *certified)
        totals = {h.column.name: numbers.totals[h][:, : planned.runs] for h in columns}
        people = numbers.people
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
            None if people is None else shown(people, planned.runs, labels),
            planned.sight,
            planned.steps,
            StoredGammas(self.path, planned),
            StoredOrigin(contents, planned.key, columns),
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
        with Store.open(path):  # says so
            pass
    if not os.access(path, os.W_OK):
        raise StoreError(f"{path} is read-only; make it writable, or choose another file with --output")


class StoredGammas(Gammas):
    """The level sets of a game that lie in a results file, and are read when they are asked for."""

    def __init__(self, path: Path, planned: Planned) -> None:
        super().__init__()
        self.path, self.key, self.whose = path, planned.key, str(planned)

    @property
    def parts(self) -> tuple[tuple[int, bytes], ...]:
        """The first run of each, and what is packed."""
        with Store.open(self.path) as store:
            return tuple(store.gammas(self.key, self.whose))


class StoredContents:
    """What the rounds of some cells in a results file depend on, read for all of them when it is first asked for."""

    def __init__(self, path: Path, keys: Collection[str]) -> None:
        self.path, self._keys = path, keys

    @cached_property
    def found(self) -> dict[str, Any]:
        """Key → content; of those that can be told."""
        with Store.open(self.path) as store:
            return store.contents(self._keys)


class StoredOrigin:
    """What the numbers of a cell in a results file depend on, read when it is asked for; see `played.Origin`."""

    def __init__(self, contents: StoredContents, key: str, columns: Sequence[Held]) -> None:
        self.contents, self.key, self._held = contents, key, tuple(columns)

    @property
    def game(self) -> Mapping[str, Any]:
        """`Cell.content`."""
        if self.key not in self.contents.found:
            raise StoreError(
                f"{self.contents.path}: something else has changed it since it was read; read it again"
            )
        return self.contents.found[self.key]

    @property
    def columns(self) -> Mapping[Column, Held]:
        """`Cell.held`."""
        return {held.column: held for held in self._held}
