"""The tables of a results file, row by row; `store` says what happens together, and `schema` what they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from onlinecal.core.columns import Held, read_column, written
from onlinecal.core.content import digest
from onlinecal.core.errors import StoreError
from onlinecal.core.sight import Sight
from onlinecal.study.database import Database
from onlinecal.study.entries import GAME, Numbers, Planned
from onlinecal.study.gammas import apart
from onlinecal.study.played import Promise

#: what of meta is of the plan
OF_PLAN = "seal", "steps"
_ROW = f"SELECT {', '.join(GAME)} FROM games"


class Tables:
    """Reads and writes the tables, within a transaction that somebody else has begun."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self.path = database.path
        # What is asked for several times, and the state of the file in which it was read.
        self._plan: tuple[object, list[Planned]] = None, []
        self._held: tuple[object, dict[str, dict[Held, int]]] = None, {}

    def check(self, schema: str) -> None:
        """Refuses to write into tables that something else has made or changed: others hold what they are to hold."""
        with self._db.reading():
            there = dict(self._db.run("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        for statement in schema.split(";\n"):
            if statement.strip().startswith("CREATE TABLE"):
                name = statement.split()[2]
                if name not in there or there[name] != statement.strip():
                    said = "changed" if name in there else "deleted"
                    raise StoreError(
                        f"{self.path}: something else has {said} its table {name}; --overwrite starts anew"
                    )

    # ---------------------------------------------------------------- the plan

    def meta(self) -> dict[str, str]:
        """What the file says of itself."""
        return dict(self._db.run("SELECT key, value FROM meta"))

    def put_plan(self, meta: Mapping[str, str], plan: Sequence[Planned]) -> None:
        """Puts a plan in place of the one before."""
        ids = self.put_columns(column for cell in plan for column in cell.columns)
        panels: dict[tuple[Held, ...], int] = {}
        promises: dict[tuple[Any, ...], int] = {}
        cells, bounds = [], []
        for place, cell in enumerate(plan):
            panel = panels.setdefault(cell.columns, len(panels))
            cells.append((place, *cell[:6], int(cell.recorded), int(cell.sight), panel))
            for p in cell.promises:
                said = p.measure, p.text, p.formula, p.kind, p.against, int(p.upper)
                bounds.append((place, promises.setdefault(said, len(promises)), p.bound))
        of_panels = [(i, json.dumps([ids[column] for column in columns])) for columns, i in panels.items()]
        said_of = [(i, *said) for said, i in promises.items()]
        keys = [(i, *(held.key for held in columns)) for columns, i in panels.items()]
        for table in ("meta", "bounds", "guarantees", "plan", "panels"):
            self._db.run(f"DELETE FROM {table}")
        self._insert("plan", 10, cells)
        self._insert("panels", 2, of_panels)
        self._insert("guarantees", 7, said_of)
        self._insert("bounds", 3, bounds)
        meta = {name: value for name, value in meta.items() if name not in OF_PLAN}
        if any(cell.steps is not None for cell in plan):
            meta["steps"] = json.dumps([cell.steps for cell in plan])
        seal = {"seal": plan_seal(meta, cells, keys, said_of, bounds)}
        self._insert("meta", 2, (meta | seal).items())

    def plan(self) -> list[Planned]:
        """The cells that are to be shown, in their order."""
        if self._plan[0] != self._db.state:
            self._plan = self._db.state, self._read_plan()
        return list(self._plan[1])

    def _read_plan(self) -> list[Planned]:
        names = "place, key, forecaster, nature, schedule, horizon, runs, recorded, sight, panel"
        cells = self._db.run(f"SELECT {names} FROM plan ORDER BY place").fetchall()
        said = self._db.run(
            "SELECT id, measure, text, formula, kind, against, upper FROM guarantees ORDER BY id"
        ).fetchall()
        bounds = self._db.run("SELECT place, guarantee, bound FROM bounds ORDER BY rowid").fetchall()
        columns, meta = self.columns(), self.meta()
        changed = StoreError(
            f"{self.path}: something else has changed the plan; `onlinecal run SCENARIO --resume` writes it anew"
        )
        try:
            panels = {
                i: tuple(columns[number] for number in json.loads(text))
                for i, text in self._db.run("SELECT id, columns FROM panels ORDER BY id")
            }
            keys = [(i, *(each.key for each in held)) for i, held in panels.items()]
            if plan_seal(meta, cells, keys, said, bounds) != meta.get("seal"):
                raise changed
            steps = json.loads(meta["steps"]) if "steps" in meta else [None] * len(cells)
        except (TypeError, ValueError, KeyError, RecursionError):
            raise changed from None
        texts = {i: rest for i, *rest in said}
        found: dict[int, list[Promise]] = {}
        for place, guarantee, bound in bounds:
            measure, said_of, formula, kind, against, upper = texts[guarantee]
            found.setdefault(place, []).append(
                Promise(measure, said_of, formula, kind, against, bool(upper), bound)
            )
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
                panels[panel],
                m,
            )
            for (place, key, who, whom, schedule, horizon, runs, recorded, sight, panel), m in zip(
                cells, steps, strict=True
            )
        ]

    # ---------------------------------------------------------------- columns and contents

    def columns(self) -> dict[int, Held]:
        """Those that are as they were written down."""
        found = {}
        for number, key, name, text, content in self._db.run(
            'SELECT id, key, name, "column", content FROM columns'
        ):
            column = read_column(text)
            if column is not None and isinstance(content, str) and column.name == name:
                held = Held(column, content)
                if held.key == key:
                    found[number] = held
        return found

    def put_columns(self, columns: Collection[Held] | Iterator[Held]) -> dict[Held, int]:
        """Writes down those that are not there; what number each has."""
        there = {held: number for number, held in self.columns().items()}
        new = [held for held in dict.fromkeys(columns) if held not in there]
        self._db.run_many(
            'INSERT INTO columns (key, name, "column", content) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET '
            'name = excluded.name, "column" = excluded."column", content = excluded.content',
            [(held.key, held.column.name, written(held.column), held.content) for held in new],
        )
        return {held: number for number, held in self.columns().items()} if new else there

    def put_content(self, content: Mapping[str, Any]) -> str:
        """Writes down what is no single number or text of a content; the text in which it is referred to."""
        short: dict[str, Any] = {}
        for name, value in content.items():
            short[name] = value
            if isinstance(value, dict | list):
                text = json.dumps(value, sort_keys=True)
                mark = digest(text)
                self._db.run(
                    "INSERT INTO parts (digest, text) VALUES (?, ?) ON CONFLICT (digest) DO UPDATE SET text = "
                    "excluded.text",
                    (mark, text),
                )
                (number,) = self._db.run("SELECT id FROM parts WHERE digest = ?", (mark,)).fetchone()
                short[name] = {"#": number}
        return json.dumps(short, sort_keys=True)

    def contents(self, keys: Collection[str]) -> dict[str, Any]:
        """What the rounds under these keys depend on; of those that can be told."""
        found: dict[str, Any] = {}
        texts = dict(self._db.run("SELECT id, text FROM parts")) if keys else {}
        parts: dict[Any, Any] = {}  # most games have some in common
        for key, text in self._db.run("SELECT key, content FROM games") if keys else ():
            if key in keys:
                try:
                    content = json.loads(text)
                    for name, value in content.items():
                        if isinstance(value, dict):
                            number = value["#"]
                            if number not in parts:
                                parts[number] = json.loads(texts[number])
                            content[name] = parts[number]
                    if digest(content) == key:
                        found[key] = content
                except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
                    continue  # something else has changed it
        return found

    # ---------------------------------------------------------------- games

    def held(self) -> dict[str, dict[Held, int]]:
        """Of everything that was played: key → column → how many runs."""
        if self._held[0] != self._db.state:
            self._held = self._db.state, self._read_held()
        return dict(self._held[1])

    def _read_held(self) -> dict[str, dict[Held, int]]:
        columns = self.columns()
        texts: dict[Any, dict[Held, int]] = {}  # most games have the same
        found = {}
        for key, text in self._db.run("SELECT key, held FROM games"):
            if text not in texts:
                try:
                    texts[text] = {columns[i]: n for i, n in json.loads(text) if isinstance(n, int)}
                except (TypeError, ValueError, KeyError, RecursionError):
                    texts[text] = {}
            found[key] = texts[text]
        return found

    def numbers(self, keys: Collection[str] | None = None) -> Iterator[tuple[str, Numbers | None]]:
        """What was played under these keys, or all; None for what is not as it was put there."""
        columns = self.columns()
        for row in self._db.run(_ROW):
            if keys is None or row[0] in keys:
                yield row[0], Numbers.read(dict(zip(GAME, row, strict=True)), columns)

    def numbers_of(self, key: str) -> Numbers | None:
        """What was played under a key; None for nothing, or what is not as it was put there."""
        row = self._db.run(f"{_ROW} WHERE key = ?", (key,)).fetchone()
        return None if row is None else Numbers.read(dict(zip(GAME, row, strict=True)), self.columns())

    def put(self, key: str, numbers: Numbers) -> None:
        """Puts the numbers of a game in place of those before."""
        row = numbers.row(key, self.put_columns(numbers.totals))
        changed = ", ".join(f"{name} = excluded.{name}" for name in GAME[1:])
        self._db.run(
            f"INSERT INTO games ({', '.join(GAME)}) VALUES ({', '.join('?' * len(GAME))}) "
            f"ON CONFLICT (key) DO UPDATE SET {changed}",
            tuple(row[name] for name in GAME),
        )

    def forget(self, keys: Collection[str]) -> None:
        """Deletes what was played under these keys, and what nothing refers to any more."""
        if not keys:
            return
        for key in keys:
            self._db.run("DELETE FROM gammas WHERE game IN (SELECT id FROM games WHERE key = ?)", (key,))
            self._db.run("DELETE FROM games WHERE key = ?", (key,))
            self._db.run("DELETE FROM failed WHERE key = ?", (key,))
        self.sweep()

    def sweep(self) -> None:
        """Deletes columns and parts of contents to which nothing refers any more; while some of that cannot be read,
        none.
        """
        try:
            wanted = {
                number
                for (text,) in self._db.run("SELECT columns FROM panels")
                for number in json.loads(text)
            }
            used = set()
            for held, content in self._db.run("SELECT held, content FROM games"):
                wanted |= {number for number, _ in json.loads(held)}
                used |= {value["#"] for value in json.loads(content).values() if isinstance(value, dict)}
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
            return
        for table, there in (("columns", wanted), ("parts", used)):
            gone = [row for row in self._db.run(f"SELECT id FROM {table}") if row[0] not in there]
            self._db.run_many(f"DELETE FROM {table} WHERE id = ?", gone)

    def speeds(self) -> dict[str, float]:
        """Of everything that was played: key → seconds for a run-round."""
        held, found = self.held(), {}
        for key, seconds, times in self._db.run("SELECT key, seconds, times FROM games"):
            runs = max(held[key].values(), default=0)
            try:
                rounds = int(json.loads(times)[-1])
            except (TypeError, ValueError, IndexError, KeyError, RecursionError):
                continue  # something else has changed it
            if isinstance(seconds, float) and seconds > 0.0 and runs and rounds > 0:
                found[key] = seconds / (rounds * runs)
        return found

    # ---------------------------------------------------------------- failures

    def fail(self, key: str, error: str, at: str) -> None:
        """Writes down why a game could not be played; what of it was played before stays."""
        self._db.run("INSERT OR REPLACE INTO failed VALUES (?, ?, ?)", (key, error, at))

    def succeed(self, key: str) -> None:
        """It could be played after all."""
        self._db.run("DELETE FROM failed WHERE key = ?", (key,))

    def failures(self) -> dict[str, tuple[str, str]]:
        """Key → why it could not be played, and when that was last tried."""
        return {key: (error, at) for key, error, at in self._db.run("SELECT key, error, at FROM failed")}

    # ---------------------------------------------------------------- level sets

    def gammas(self, key: str) -> tuple[list[tuple[int, bytes]], list[int]]:
        """The first run and what is packed of each part that is as it was put there, and the rows of the others."""
        good, bad = [], []
        for row, first, packed, seal in self._db.run(
            "SELECT gammas.rowid, first, packed, gammas.seal FROM gammas JOIN games ON games.id = game WHERE key = ? "
            "ORDER BY first",
            (key,),
        ):
            if seal == seal_of_gammas(key, first, packed):
                good.append((first, packed))
            else:
                bad.append(row)
        return good, bad

    def put_gammas(self, key: str, parts: Sequence[tuple[int, bytes]]) -> None:
        """Adds those runs of which nothing is kept, or not exactly and here it is, in place of what something else has
        changed.
        """
        there, bad = self.gammas(key)
        self._db.run_many("DELETE FROM gammas WHERE rowid = ?", [(row,) for row in bad])
        wanted = apart([*there, *parts])
        game = "game IN (SELECT id FROM games WHERE key = ?)"
        gone = [(key, first) for first, packed in there if (first, packed) not in wanted]
        self._db.run_many(f"DELETE FROM gammas WHERE {game} AND first = ?", gone)
        for first, packed in wanted:
            if (first, packed) not in there:
                self._db.run(
                    "INSERT INTO gammas SELECT id, ?, ?, ? FROM games WHERE key = ?",
                    (first, packed, seal_of_gammas(key, first, packed), key),
                )

    def _insert(self, table: str, width: int, rows: Any) -> None:
        self._db.run_many(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", rows)


def seal_of_gammas(key: str, first: Any, packed: Any) -> str:
    """The digest of a part of the level sets."""
    state = hashlib.sha256(repr((key, first)).encode())
    state.update(packed if isinstance(packed, bytes) else repr(packed).encode(errors="replace"))
    return state.hexdigest()[:32]


def plan_seal(meta: Mapping[str, str], *rows: Sequence[tuple[Any, ...]]) -> str:
    """The digest of a plan, in the rows of its tables."""
    said = sorted((key, value) for key, value in meta.items() if key != "seal")
    return hashlib.sha256(repr((said, *rows)).encode()).hexdigest()
