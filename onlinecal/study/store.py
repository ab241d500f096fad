"""A results file: the plan and what was played, put away and found again; `schema` says what is in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from onlinecal.core.columns import Column, Held
from onlinecal.core.errors import StoreError
from onlinecal.core.guarantee import Sight
from onlinecal.study.database import FORMAT, Database, format_of
from onlinecal.study.entries import Numbers, Planned, joined, shown
from onlinecal.study.gammas import Gammas
from onlinecal.study.played import Floats, Played, Promise, Results
from onlinecal.study.schema import SCHEMA
from onlinecal.study.tables import CHANGED, Tables

#: the keys of meta that are of the plan
OF_PLAN = "seal", "steps"


class Store(Tables):
    """An open results file; a context manager.

    A transaction that fails leaves the file as it was, and raises StoreError where another program holds the file, or
    it is full, read-only or damaged.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
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
        with self._db.reading():
            return dict(self._db.run("SELECT key, value FROM meta"))

    def put_plan(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> None:
        """Puts a plan and what the file says of itself in place of those before; what was played stays."""
        panels: dict[tuple[Held, ...], int] = {}
        promises: dict[tuple[Any, ...], int] = {}
        cells, bounds = [], []
        for place, cell in enumerate(plan):
            panel = panels.setdefault(cell.columns, len(panels))
            cells.append((place, *cell[:6], int(cell.recorded), int(cell.sight), panel))
            for p in cell.promises:
                said = p.measure, p.text, p.formula, p.kind, p.against, int(p.upper)
                bounds.append((place, promises.setdefault(said, len(promises)), p.bound))
        said_of = [(i, *said) for said, i in promises.items()]
        keys = [(i, *(held.key for held in columns)) for columns, i in panels.items()]
        meta = {name: value for name, value in meta.items() if name not in OF_PLAN}
        if any(cell.steps is not None for cell in plan):
            meta["steps"] = json.dumps([cell.steps for cell in plan])
        meta["seal"] = _plan_seal(meta, cells, keys, said_of, bounds)
        with self._db.transaction():
            ids = self._put_columns(column for columns in panels for column in columns)
            of_panels = [
                (i, json.dumps([ids[column] for column in columns])) for columns, i in panels.items()
            ]
            for table, width, rows in (
                ("bounds", 3, bounds),
                ("guarantees", 7, said_of),
                ("plan", 10, cells),
                ("panels", 2, of_panels),
                ("meta", 2, meta.items()),
            ):
                self._db.run(f"DELETE FROM {table}")
                self._db.run_many(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", rows)

    def has_plan(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> bool:
        """Whether it is this one that is there, as it was put there."""
        try:
            same = self.plan() == list(plan)
        except StoreError:
            return False
        return same and {key: value for key, value in self.meta.items() if key not in OF_PLAN} == meta

    def plan(self) -> list[Planned]:
        """The cells that are to be shown, in their order."""
        with self._db.reading():
            if self._plan[0] != self._db.state:
                try:
                    self._plan = self._db.state, self._read_plan()
                except CHANGED:
                    raise StoreError(
                        f"{self.path}: something else has changed the plan; `onlinecal run SCENARIO --resume` "
                        "writes it anew"
                    ) from None
            return list(self._plan[1])

    def _read_plan(self) -> list[Planned]:
        names = "place, key, forecaster, nature, schedule, horizon, runs, recorded, sight, panel"
        cells = self._db.run(f"SELECT {names} FROM plan ORDER BY place").fetchall()
        said = self._db.run(
            "SELECT id, measure, text, formula, kind, against, upper FROM guarantees ORDER BY id"
        ).fetchall()
        bounds = self._db.run("SELECT place, guarantee, bound FROM bounds ORDER BY rowid").fetchall()
        columns, meta = self._columns(), self.meta
        panels = {
            i: tuple(columns[number] for number in json.loads(text))
            for i, text in self._db.run("SELECT id, columns FROM panels ORDER BY id")
        }
        keys = [(i, *(each.key for each in held)) for i, held in panels.items()]
        if _plan_seal(meta, cells, keys, said, bounds) != meta["seal"]:
            raise ValueError("another checksum")
        steps = json.loads(meta["steps"]) if "steps" in meta else [None] * len(cells)
        texts = {row[0]: row[1:] for row in said}
        found: dict[int, list[Promise]] = {}
        for place, guarantee, bound in bounds:
            text = texts[guarantee]
            found.setdefault(place, []).append(Promise(*(*text[:5], bool(text[5]), bound)))
        return [
            Planned(
                *(*row[1:7], bool(row[7]), Sight(row[8]), tuple(found.get(row[0], ())), panels[row[9]], m)
            )
            for row, m in zip(cells, steps, strict=True)
        ]

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
                            texts[text] = {columns[i]: n for i, n in json.loads(text) if isinstance(n, int)}
                        except CHANGED:
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
            numbers = Numbers("", played.rounds, kept, seconds, loop, played.open, people)
            self.insert(key, content, numbers, played.gammas.parts)

    def _check_certificates(self, old: Collection[Held], new: Collection[Held], played: Played) -> None:
        before, now = (sorted(str(h.column) for h in each if _certifies(h)) for each in (old, new))
        if before != now:
            raise StoreError(
                f"{self.path}: {played.forecaster!r} against {played.nature!r} gave the certificates "
                f"{', '.join(before) or 'none'} before, now {', '.join(now) or 'none'}; --overwrite starts anew"
            )

    def add_columns(self, key: str, columns: Mapping[Held, Floats], first: int = 0) -> None:
        """Puts further runs, from `first` on, of columns that were computed from Γ beside those of the same game."""
        with self._db.transaction():
            old = self.numbers(key)
            if old is None:
                raise self._meanwhile()
            self.put(key, old._replace(totals=self._both(old.totals, columns, first)))

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

    def forget(self, keys: Collection[str]) -> None:
        """Deletes the games of these keys, and all columns and parts that nothing refers to any more."""
        if not keys:
            return
        with self._db.transaction():
            each = [(key,) for key in keys]
            self._db.run_many("DELETE FROM gammas WHERE game IN (SELECT id FROM games WHERE key = ?)", each)
            self._db.run_many("DELETE FROM games WHERE key = ?", each)
            self._db.run_many("DELETE FROM failed WHERE key = ?", each)
            try:
                used = {i for (text,) in self._db.run("SELECT columns FROM panels") for i in json.loads(text)}
                parts = set()
                for held, content in self._db.run("SELECT held, content FROM games"):
                    used |= {number for number, _ in json.loads(held)}
                    parts |= {value["#"] for value in json.loads(content).values() if isinstance(value, dict)}
            except CHANGED:
                return  # the plan, which is written anew
            for table, wanted in (("columns", used), ("parts", parts)):
                gone = [row for row in self._db.run(f"SELECT id FROM {table}") if row[0] not in wanted]
                self._db.run_many(f"DELETE FROM {table} WHERE id = ?", gone)

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
                    self.put(key, numbers._replace(totals=left))

    # ---------------------------------------------------------------- failures

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
            labels = json.loads(meta.get("people", "[]"))
            wanted = {cell.key for cell in finished}
            numbers, contents = dict(self._all_numbers(wanted)), StoredContents(self.path, wanted)
            cells = tuple(self._cell(planned, numbers[planned.key], labels, contents) for planned in finished)
            return Results(cells, meta["name"], meta["title"])

    def _cell(
        self, planned: Planned, numbers: Numbers | None, labels: Sequence[str], contents: StoredContents
    ) -> Played:
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
            None if numbers.people is None else shown(numbers.people, planned.runs, labels),
            planned.sight,
            planned.steps,
            StoredGammas(self.path, planned),
            StoredOrigin(contents, planned.key, columns),
        )


def _certifies(held: Held) -> bool:
    return held.column.kind == "certificate"


def _plan_seal(meta: Mapping[str, str], *rows: Sequence[tuple[Any, ...]]) -> str:
    said = sorted((key, value) for key, value in meta.items() if key != "seal")
    return hashlib.sha256(repr((said, *rows)).encode()).hexdigest()


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


class StoredGammas(Gammas):
    """The level sets of a game in a results file, read when they are asked for."""

    def __init__(self, path: Path, planned: Planned) -> None:
        super().__init__()
        self.path, self.key, self.whose = path, planned.key, str(planned)

    @property
    def parts(self) -> tuple[tuple[int, bytes], ...]:
        """The first run of each, and what is packed."""
        with Store.open(self.path) as store:
            return tuple(store.gammas(self.key, self.whose))


class StoredContents:
    """The contents of cells in a results file, read for all of them when the first is asked for."""

    def __init__(self, path: Path, keys: Collection[str]) -> None:
        self.path, self._keys = path, keys

    @cached_property
    def found(self) -> dict[str, Any]:
        """Key → content; of those that are as they were put there."""
        with Store.open(self.path) as store:
            return store.contents(self._keys)


class StoredOrigin:
    """The origin of a cell in a results file, read when it is asked for; see `played.Origin`."""

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
