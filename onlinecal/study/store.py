"""A results file: the plan and what was played, put away and found again; `schema` says what is in it."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from onlinecal.core.columns import Column
from onlinecal.core.errors import StoreError
from onlinecal.core.sight import Sight
from onlinecal.study.database import Database
from onlinecal.study.entries import Numbers, Planned, read_column, written
from onlinecal.study.packed import joined, packed, shown, unpacked
from onlinecal.study.played import Played, Promise, Results
from onlinecal.study.schema import SCHEMA


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

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, str], plan: Sequence[Planned]) -> Store:
        """A new file of which nothing has been played; see `Database.create`."""
        return cls(Database.create(path, SCHEMA, lambda database: cls(database).put_plan(meta, plan)))

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Store:
        """An existing file; see `Database.open`."""
        store = cls(Database.open(path, write=write))
        if write:
            try:
                store._check_tables()
            except BaseException:
                store._db.close()
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
        """Name, title, text of the scenario, version, the order of the columns, pairs that cannot be played."""
        with self._db.reading():
            return self._meta()

    def put_plan(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> None:
        """Puts a plan in place of the one before; what was played stays.

        Parameters
        ----------
        meta : mapping
            What the file says of itself: name, title, scenario, version, and as JSON lists the columns and, where there
            are some, the labels of decision makers, under ``people``.
        plan : sequence of Planned
        """
        cells = [(place, *cell[:-3], int(cell.recorded), int(cell.sight)) for place, cell in enumerate(plan)]
        promises = [
            (place, p.measure, p.text, p.formula, p.kind, p.against, int(p.upper), p.bound)
            for place, cell in enumerate(plan)
            for p in cell.promises
        ]
        with self._db.transaction():
            for table in ("meta", "promises", "plan"):
                self._db.run(f"DELETE FROM {table}")
            self._db.run_many("INSERT INTO plan VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", cells)
            self._db.run_many("INSERT INTO promises VALUES (?, ?, ?, ?, ?, ?, ?, ?)", promises)
            seal = {"seal": _seal(meta, cells, promises)}
            self._db.run_many("INSERT INTO meta VALUES (?, ?)", (dict(meta) | seal).items())

    def plan(self) -> list[Planned]:
        """The cells that are to be shown, in their order."""
        with self._db.reading():
            return self._plan()

    # ---------------------------------------------------------------- what was played

    def finished(self) -> list[Planned]:
        """The cells of the plan that have been played in all their runs."""
        with self._db.reading():
            return self._finished()

    def runs(self) -> dict[str, int]:
        """Of everything that was played, planned or not: key → how many runs."""
        with self._db.reading():
            return self._runs()

    def speeds(self) -> dict[str, float]:
        """Of everything that was played: key → seconds for a run-round."""
        with self._db.reading():
            rows = self._db.run("SELECT key, seconds, horizon, runs FROM played").fetchall()
        return {key: seconds / (horizon * runs) for key, seconds, horizon, runs in rows if seconds > 0.0}

    def contents(self, keys: Collection[str]) -> dict[str, Any]:
        """What the numbers under these keys depend on."""
        with self._db.reading():
            rows = self._db.run("SELECT key, content FROM played").fetchall()
        return {key: json.loads(text) for key, text in rows if key in keys}

    def damaged(self) -> set[str]:
        """Keys of what was changed or deleted by something else."""
        with self._db.reading():
            keys = [key for (key,) in self._db.run("SELECT key FROM played")]
            columns = self._columns()
            return {key for key in keys if self._numbers(key, columns) is None}

    def add(self, key: str, content: str, played: Played, first: int = 0) -> None:
        """Puts played runs away, whole or not at all.

        Parameters
        ----------
        key, content : str
            Of the cell; the content as JSON.
        played : Played
        first : int, default 0
            The number of the first of its runs; those before are there.
        """
        totals = {column: played.totals[column.name] for column in played.columns}
        new = Numbers(content, played.rounds, totals, played.seconds, played.loop, played.open, played.people)
        with self._db.transaction():
            old = self._numbers(key, self._columns())
            if first != (0 if old is None else old.runs):
                raise StoreError(
                    f"{self.path}: another process has played the same cells meanwhile; go on with --resume"
                )
            all_of_it = new
            if old is not None:
                if old.totals.keys() != new.totals.keys():
                    raise StoreError(
                        f"{self.path}: {played.forecaster!r} against {played.nature!r} gave the columns "
                        f"{', '.join(map(str, old.totals))} before, now {', '.join(map(str, new.totals))}; "
                        "--overwrite starts anew"
                    )
                both = {c: np.concatenate([old.totals[c], new.totals[c]], axis=1) for c in new.totals}
                seconds = old.seconds + new.seconds
                loop = new.loop if new.loop == old.loop else "both"
                people = joined(old.people, new.people)
                all_of_it = Numbers(content, new.rounds, both, seconds, loop, new.open, people)
            who, accounts = ("", b"") if all_of_it.people is None else packed(all_of_it.people)
            row = {
                "key": key,
                "content": content,
                "horizon": played.horizon,
                "runs": all_of_it.runs,
                "seconds": all_of_it.seconds,
                "loop": all_of_it.loop,
                "open": json.dumps(all_of_it.open),
                "people": who,
                "accounts": accounts,
                "seal": all_of_it.seal(key),
            }
            changed = ", ".join(
                f"{name} = excluded.{name}" for name in ("runs", "seconds", "loop", "accounts", "seal")
            )
            self._db.run(
                f"INSERT INTO played ({', '.join(row)}) VALUES ({', '.join('?' * len(row))}) "
                f"ON CONFLICT (key) DO UPDATE SET {changed}",
                tuple(row.values()),
            )
            number = self._db.run("SELECT id FROM played WHERE key = ?", (key,)).fetchone()[0]
            self._db.run_many(
                'INSERT INTO measures (name, "column") VALUES (?, ?) '
                'ON CONFLICT ("column") DO UPDATE SET name = excluded.name',
                [(column.name, written(column)) for column in new.totals],
            )
            self._db.run("DELETE FROM failed WHERE key = ?", (key,))
            ids = {column: i for i, column in self._columns().items()}
            self._db.run_many(
                "INSERT INTO totals VALUES (?, ?, ?, ?, ?)",
                (
                    (number, ids[column], t, first + run, total)
                    for column, totals in new.totals.items()
                    for t, row in zip(new.rounds.tolist(), totals.tolist(), strict=True)
                    for run, total in enumerate(row)
                ),
            )

    def together(self) -> AbstractContextManager[None]:
        """What is put away within is in the file at its end, all of it or nothing: the disk is waited for once."""
        return self._db.transaction()

    def fail(self, key: str, error: str) -> None:
        """Writes down why a cell could not be played; what of it was played before stays."""
        now = f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S %z}"
        with self._db.transaction():
            self._db.run("INSERT OR REPLACE INTO failed VALUES (?, ?, ?)", (key, error, now))

    def failures(self) -> dict[str, tuple[str, str]]:
        """Of everything that could not be played: key → why, and when it was last tried."""
        with self._db.reading():
            return self._failures()

    @contextmanager
    def at_once(
        self,
    ) -> Iterator[tuple[dict[str, str], list[Planned], dict[str, int], dict[str, tuple[str, str]]]]:
        """`meta`, `plan`, `runs` and `failures`, which belong together, whatever is written meanwhile."""
        with self._db.reading():
            yield self._meta(), self._plan(), self._runs(), self._failures()

    def forget(self, keys: Collection[str]) -> None:
        """Deletes what was played under these keys."""
        with self._db.transaction():
            for key in keys:
                self._db.run(
                    "DELETE FROM totals WHERE played IN (SELECT id FROM played WHERE key = ?)", (key,)
                )
                self._db.run("DELETE FROM played WHERE key = ?", (key,))
                self._db.run("DELETE FROM failed WHERE key = ?", (key,))

    def results(self) -> Results:
        """All finished cells, in the order of the plan."""
        with self._db.reading():
            finished, meta, columns = self._finished(), self._meta(), self._columns()
            order = [*map(Column.from_json, json.loads(meta["columns"]))]
            labels = json.loads(meta.get("people", "[]"))
            cells = tuple(self._cell(planned, order, columns, labels) for planned in finished)
            return Results(cells, meta["name"], meta["title"])

    def _check_tables(self) -> None:
        """Refuses to write into tables that something else has made or changed: others hold what they are to hold."""
        with self._db.reading():
            there = dict(self._db.run("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        for statement in SCHEMA.split(";\n"):
            if statement.strip().startswith("CREATE TABLE"):
                name = statement.split()[2]
                if name not in there or there[name] != statement.strip():
                    said = "changed" if name in there else "deleted"
                    raise StoreError(
                        f"{self.path}: something else has {said} its table {name}; --overwrite starts anew"
                    )

    # ---------------------------------------------------------------- within a transaction

    def _meta(self) -> dict[str, str]:
        return dict(self._db.run("SELECT key, value FROM meta"))

    def _plan(self) -> list[Planned]:
        cells = self._db.run(
            "SELECT place, key, forecaster, nature, schedule, horizon, runs, recorded, sight FROM plan ORDER BY place"
        ).fetchall()
        promises = self._db.run(
            "SELECT place, measure, text, formula, kind, against, upper, bound FROM promises ORDER BY place, rowid"
        ).fetchall()
        meta = self._meta()
        if _seal(meta, cells, promises) != meta.get("seal"):
            raise StoreError(
                f"{self.path}: something else has changed the plan; `onlinecal run SCENARIO --resume` writes it anew"
            )
        found: dict[int, list[Promise]] = {}
        for place, measure, text, formula, kind, against, upper, bound in promises:
            promise = Promise(measure, text, formula, kind, against, bool(upper), bound)
            found.setdefault(place, []).append(promise)
        return [
            Planned(
                key,
                who,
                whom,
                schedule,
                horizon,
                runs,
                bool(recorded),
                Sight(sight),
                tuple(found.get(place, ())),
            )
            for place, key, who, whom, schedule, horizon, runs, recorded, sight in cells
        ]

    def _finished(self) -> list[Planned]:
        runs = self._runs()
        return [cell for cell in self._plan() if runs.get(cell.key, 0) >= cell.runs]

    def _runs(self) -> dict[str, int]:
        rows = self._db.run("SELECT key, runs FROM played")
        return {key: runs for key, runs in rows if isinstance(runs, int)}

    def _failures(self) -> dict[str, tuple[str, str]]:
        return {key: (error, at) for key, error, at in self._db.run("SELECT key, error, at FROM failed")}

    def _columns(self) -> dict[int, Column]:
        """Those that are as they were written down."""
        found = {}
        for number, name, text in self._db.run('SELECT id, name, "column" FROM measures'):
            column = read_column(text)
            if column is not None and column.name == name:
                found[number] = column
        return found

    def _numbers(self, key: str, columns: Mapping[int, Column]) -> Numbers | None:
        """What was played under a key; None for nothing, or what is not as it was put there."""
        row = self._db.run(
            "SELECT id, content, runs, seconds, loop, open, people, accounts, seal FROM played WHERE key = ?",
            (key,),
        ).fetchone()
        if row is None:
            return None
        number, content, runs, seconds, loop, open, people, accounts, seal = row
        groups = self._db.run(
            "SELECT measure, round, count(*), count(DISTINCT run), min(run), max(run) FROM totals WHERE played = ? "
            "GROUP BY measure, round ORDER BY measure, round",
            (number,),
        ).fetchall()
        measures, rounds = (list(dict.fromkeys(group[i] for group in groups)) for i in (0, 1))
        whole = (
            [(m, t, runs, runs, 0, runs - 1) for m in measures for t in rounds]
            if isinstance(runs, int)
            else None
        )
        if not groups or groups != whole or not columns.keys() >= set(measures):
            return None
        rows = self._db.run(
            "SELECT total FROM totals WHERE played = ? ORDER BY measure, round, run", (number,)
        )
        try:
            table = np.array(rows.fetchall(), dtype=np.float64).reshape(len(measures), len(rounds), runs)
            kept = {columns[m]: totals for m, totals in zip(measures, table, strict=True)}
            who = unpacked(people, accounts) if people else None
            numbers = Numbers(
                content, np.array(rounds, dtype=np.int64), kept, seconds, loop, tuple(json.loads(open)), who
            )
        except (TypeError, ValueError, OverflowError, KeyError, RecursionError, zlib.error):
            return None  # text, or nothing
        return numbers if numbers.seal(key) == seal else None

    def _cell(
        self, planned: Planned, order: Sequence[Column], columns: Mapping[int, Column], labels: Sequence[str]
    ) -> Played:
        numbers = self._numbers(planned.key, columns)
        if numbers is None:
            raise StoreError(
                f"{self.path}: something else has changed or deleted numbers of {planned}; "
                "`onlinecal run SCENARIO --resume` plays them anew"
            )
        # In the order in which they were asked for, and after them what players certify.
        chosen = tuple(c for c in dict.fromkeys((*order, *numbers.totals)) if c in numbers.totals)
        totals = {c.name: numbers.totals[c][:, : planned.runs] for c in chosen}
        people = numbers.people
        return Played(
            planned.forecaster,
            planned.against,
            planned.horizon,
            numbers.rounds,
            totals,
            chosen,
            tuple(p for p in planned.promises if p.measure in totals),
            planned.recorded,
            numbers.seconds,
            numbers.loop,
            numbers.open,
            (planned.nature, planned.schedule),
            None if people is None else shown(people, planned.runs, labels),
            planned.sight,
        )


def _seal(meta: Mapping[str, str], *rows: Sequence[tuple[Any, ...]]) -> str:
    said = sorted((key, value) for key, value in meta.items() if key != "seal")
    return hashlib.sha256(repr((said, *rows)).encode()).hexdigest()
