"""Results files of the format before: what is in them, put into tables of this format.

Format 5 had a row for each total, and kept a cell under its game and its columns together. It kept no level sets.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import Column, Held, read_column, written
from onlinecal.core.content import digest
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.sight import Sight
from onlinecal.study.database import FORMAT, Database
from onlinecal.study.entries import Numbers, Planned
from onlinecal.study.packed import plain, unpacked
from onlinecal.study.played import Floats, Joined, Promise
from onlinecal.study.schema import SCHEMA
from onlinecal.study.tables import Tables, plan_seal

_OLD = "meta", "plan", "played", "measures", "totals", "promises"


class _Cell(NamedTuple):
    """What was played of a cell: its key in this format, its content in the old one (empty where that cannot be told),
    and whether the numbers are as they were put there.
    """

    key: str
    content: Mapping[str, Any]
    numbers: Numbers
    good: bool

    @property
    def game(self) -> Mapping[str, Any]:
        """The content without what is measured."""
        return _game(self.content)


def migrate(database: Database, *, write: bool) -> Database:
    """The same results in this format.

    Parameters
    ----------
    database : Database
        Of format 5.
    write : bool
        Whether the file is changed, in one transaction. Otherwise it is read only: the tables are made in memory, and
        the file is closed.

    Raises
    ------
    StoreError
        As `Database` does; the file is as it was.
    """
    if write:
        with database.transaction():
            _fill(database, *_read(database))
            database.run(f"PRAGMA user_version = {FORMAT}")
        database.format = FORMAT
        return database
    with database.reading():
        found = _read(database)
    memory = Database(database.path, sqlite3.connect(":memory:", isolation_level=None), FORMAT)
    with memory.transaction():
        _fill(memory, *found)
    database.close()
    return memory


def _fill(database: Database, meta: dict[str, str], plan: list[Planned] | None, cells: list[_Cell]) -> None:
    """Makes the tables of this format, in place of those before."""
    database.run("DROP VIEW IF EXISTS curves")
    for name in _OLD:
        database.run(f"DROP TABLE IF EXISTS {name}")
    for statement in SCHEMA.split(";\n"):
        if statement.strip():
            database.run(statement.strip())
    tables = Tables(database)
    tables.put_plan(meta, plan or [])
    if plan is None:
        database.run("UPDATE meta SET value = '' WHERE key = 'seal'")
    for cell in cells:
        # Cells of one game that were measured differently are one now.
        there = tables.numbers_of(cell.key)
        new = cell.numbers._replace(content=tables.put_content(cell.game))
        if there is not None and cell.good:
            new = new._replace(totals={**there.totals, **new.totals}, people=new.people or there.people)
        if there is None or cell.good:
            tables.put(cell.key, new)
            if not cell.good:
                database.run("UPDATE games SET seal = '' WHERE key = ?", (cell.key,))


def _read(database: Database) -> tuple[dict[str, str], list[Planned] | None, list[_Cell]]:
    """What the file says of itself, its plan (None where something else has changed it), and what was played."""
    meta = dict(database.run("SELECT key, value FROM meta"))
    rows = database.run(
        "SELECT place, key, forecaster, nature, schedule, horizon, runs, recorded, sight FROM plan ORDER BY place"
    ).fetchall()
    promises = database.run(
        "SELECT place, measure, text, formula, kind, against, upper, bound FROM promises ORDER BY place, rowid"
    ).fetchall()
    names = {}
    for number, name, text in database.run('SELECT id, name, "column" FROM measures'):
        column = read_column(text)
        if column is not None and column.name == name:
            names[number] = column
    try:
        order = tuple(Column.from_json(each) for each in json.loads(meta["columns"]))
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError, InvalidParameter):
        order = ()
    cells = dict(_cells(database, names, order))
    kept = {key: value for key, value in meta.items() if key not in ("columns", "seal")}
    if plan_seal(meta, rows, promises) != meta.get("seal"):
        return kept, None, list(cells.values())
    shared = next((cells[row[1]].content for row in rows if row[1] in cells), {})
    return kept, [_planned(row, promises, order, cells, shared) for row in rows], list(cells.values())


def _planned(
    row: tuple[Any, ...],
    promises: list[tuple[Any, ...]],
    order: tuple[Column, ...],
    cells: Mapping[str, _Cell],
    shared: Mapping[str, Any],
) -> Planned:
    """A cell of the plan; of one that has not been played nothing but its old key is known."""
    place, key, *labels, recorded, sight = row
    own = tuple(
        Promise(measure, text, formula, kind, against, bool(upper), bound)
        for at, measure, text, formula, kind, against, upper, bound in promises
        if at == place
    )
    cell = cells.get(key)
    columns = _all_rounds(order, shared)
    if cell is not None:
        key = cell.key
        at = {held.column: held for held in cell.numbers.totals}
        columns = tuple(at[column] for column in order if column in at)
    who, whom, schedule, horizon, runs = labels
    return Planned(key, who, whom, schedule, horizon, runs, bool(recorded), Sight(sight), own, columns)


def _cells(
    database: Database, names: Mapping[int, Column], order: tuple[Column, ...]
) -> Iterator[tuple[str, _Cell]]:
    """Everything that was played, by its old key."""
    rows = database.run(
        "SELECT id, key, content, runs, seconds, loop, open, people, accounts, seal FROM played"
    ).fetchall()
    for number, key, text, runs, *rest in rows:
        try:
            content = json.loads(text)
            content = content if digest(content) == key else {}
        except (TypeError, ValueError, RecursionError):
            content = {}
        numbers = _numbers(database, number, key, text, content, runs, rest, names) if content else None
        if numbers is not None:
            yield key, _Cell(digest(_game(content)), content, numbers, True)
        elif isinstance(runs, int):
            none = np.empty((0, runs))
            held = dict.fromkeys(_all_rounds(order, content), none)
            lost = Numbers("", np.empty(0, np.int64), held, 0.0, "", (), None)
            yield key, _Cell(digest(_game(content)) if content else key, content, lost, False)


def _numbers(
    database: Database,
    number: int,
    key: str,
    text: str,
    content: Mapping[str, Any],
    runs: Any,
    rest: list[Any],
    names: Mapping[int, Column],
) -> Numbers | None:
    """The numbers of a cell; None where they are not as they were put there."""
    seconds, loop, open, people, accounts, seal = rest
    rows = database.run(
        "SELECT measure, round, run, total FROM totals WHERE played = ? ORDER BY measure, round, run",
        (number,),
    ).fetchall()
    measures, rounds = (list(dict.fromkeys(row[i] for row in rows)) for i in (0, 1))
    try:
        if [row[:3] for row in rows] != [(m, t, r) for m in measures for t in rounds for r in range(runs)]:
            return None
        table = np.array([row[3] for row in rows], np.float64).reshape(len(measures), len(rounds), runs)
        totals = {names[m]: each for m, each in zip(measures, table, strict=True)}
        who = unpacked(people, accounts) if people else None
        times, still = np.array(rounds, np.int64), tuple(json.loads(open))
        if not rows or _seal(key, text, times, totals, seconds, loop, still, who) != seal:
            return None
        held = {_held(column, content): each for column, each in totals.items()}
        return Numbers("", times, held, seconds, loop, still, who)
    except (TypeError, ValueError, OverflowError, KeyError, RecursionError, zlib.error):
        return None  # text, or nothing


def _game(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in ("measures", "tasks")}


def _all_rounds(order: tuple[Column, ...], content: Mapping[str, Any]) -> tuple[Held, ...]:
    """The columns that every cell has, not of streams."""
    return tuple(_held(column, content) for column in order if not column.stream)


def _held(column: Column, content: Mapping[str, Any]) -> Held:
    """A column with its part of the old content; with none where that is not known."""
    if column.kind == "certificate":
        return Held.of(column, {})
    if column.of_task:
        name = ", ".join(filter(None, (column.task, column.response)))
        return Held.of(column, content.get("tasks", {}).get(name))
    return Held.of(column, content.get("measures", {}).get(replace(column, end="", stream="").name))


def _seal(
    key: str,
    content: str,
    rounds: NDArray[np.int64],
    totals: Mapping[Column, Floats],
    seconds: float,
    loop: str,
    open: tuple[int, ...],
    who: Joined | None,
) -> str:
    """The digest of a cell in format 5."""
    state = hashlib.sha256(repr((key, content, seconds, loop, open, who and plain(who))).encode())
    for column, each in sorted((written(column), each) for column, each in totals.items()):
        state.update(repr((column, each.shape)).encode())
        state.update(rounds.astype("<i8").tobytes())
        state.update((each + 0.0).astype("<f8").tobytes())
    return state.hexdigest()
