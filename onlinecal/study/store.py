"""The results file: one SQLite database a study, written by one process, a cell a transaction.

Tables for people with other tools::

    meta(key, value)        name, title, scenario (the file's text), version, cells (how many are planned)
    cells(id, key, place, forecaster, nature, horizon, runs, recorded, seconds)
    measures(id, name)
    totals(cell, measure, round, run, total)            T·μ
    promises(cell, measure, text, formula, kind, against, upper, bound)
    curves                  a view with names: forecaster, nature, horizon, measure, round, run, total
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np

from onlinecal.errors import StoreError
from onlinecal.study.curves import Played, Promise, Study

#: "ocal": tells our files from other databases
APPLICATION = 0x6F63616C
#: of the schema; a change of the tables raises it
FORMAT = 2

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE cells (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, place INTEGER NOT NULL, forecaster TEXT NOT NULL,
    nature TEXT NOT NULL, horizon INTEGER NOT NULL, runs INTEGER NOT NULL, recorded INTEGER NOT NULL, seconds
    REAL NOT NULL);
CREATE TABLE measures (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE totals (
    cell INTEGER NOT NULL REFERENCES cells, measure INTEGER NOT NULL REFERENCES measures, round INTEGER NOT
    NULL, run INTEGER NOT NULL, total REAL NOT NULL, PRIMARY KEY (cell, measure, round, run)) WITHOUT ROWID;
CREATE TABLE promises (
    cell INTEGER NOT NULL REFERENCES cells, measure TEXT NOT NULL, text TEXT NOT NULL, formula TEXT NOT NULL,
    kind TEXT NOT NULL, against TEXT NOT NULL, upper INTEGER NOT NULL, bound REAL NOT NULL);
CREATE VIEW curves AS
    SELECT c.forecaster, c.nature, c.horizon, m.name AS measure, t.round, t.run, t.total
    FROM totals t JOIN cells c ON c.id = t.cell JOIN measures m ON m.id = t.measure;
"""


class Store:
    """An open results file; a context manager.

    Raises
    ------
    StoreError
        From every method, where the file is locked, full, damaged or not one of ours. A transaction that fails
        leaves the file as it was.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._db = connection

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, str]) -> Store:
        """A new, empty file; its folder is made. The path must be free."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(exist_ok=False)
        except OSError as error:
            raise StoreError(f"{path} cannot be made: {error.strerror or error}") from None
        try:
            with _explained(path):
                db = sqlite3.connect(path, timeout=5.0)
                try:
                    db.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
                    with db:
                        db.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
                except BaseException:
                    db.close()
                    raise
        except StoreError:
            path.unlink(missing_ok=True)
            raise
        return cls(path, db)

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Store:
        """An existing file of ours."""
        if not path.is_file():
            hint = "" if path.exists() else "; `onlinecal run SCENARIO` makes one"
            raise StoreError(f"{path}: {'not a file' if path.exists() else 'no such results file'}{hint}")
        with _explained(path):
            mode = "rw" if write else "ro"
            db = sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True, timeout=5.0)
            try:
                application = db.execute("PRAGMA application_id").fetchone()[0]
                version = db.execute("PRAGMA user_version").fetchone()[0]
                if application != APPLICATION:
                    raise StoreError(f"{path} is a database, but not a results file of onlinecal")
                if version != FORMAT:
                    raise StoreError(f"{path} has format {version}; this onlinecal reads format {FORMAT}")
                if write:
                    # Find out now, not after the first cell, whether somebody else is writing.
                    db.execute("BEGIN IMMEDIATE")
                    db.rollback()
            except BaseException:
                db.close()
                raise
        return cls(path, db)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    @property
    def meta(self) -> dict[str, str]:
        """Name, title, text of the scenario, version."""
        with _explained(self.path):
            return dict(self._db.execute("SELECT key, value FROM meta"))

    @property
    def planned(self) -> int | None:
        """How many cells there are to be; None in a file that does not say."""
        cells = self.meta.get("cells", "")
        return int(cells) if cells.isdecimal() else None

    def adopt(self, meta: Mapping[str, str], places: Mapping[str, tuple[int, str, str]]) -> None:
        """Takes over the text, labels and order of an edited scenario for the cells that it still has.

        Parameters
        ----------
        meta : mapping
            As for `create`.
        places : mapping
            Key of a cell → its place in the plan, forecaster label, nature label.
        """
        with _explained(self.path), self._db:
            self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta.items())
            self._db.executemany(
                "UPDATE cells SET place = ?, forecaster = ?, nature = ? WHERE key = ?",
                ((*place, key) for key, place in places.items()),
            )

    def keys(self) -> set[str]:
        """Keys of the cells that are finished."""
        with _explained(self.path):
            return {key for (key,) in self._db.execute("SELECT key FROM cells")}

    def add(self, key: str, place: int, played: Played) -> None:
        """Puts a finished cell away, whole or not at all.

        Parameters
        ----------
        key : str
            `Cell.key`.
        place : int
            Its number in the plan: results do not depend on the order in which cells were finished.
        played : Played
        """
        runs = next(iter(played.totals.values())).shape[1]
        cell = (
            key,
            place,
            played.forecaster,
            played.nature,
            played.horizon,
            runs,
            played.recorded,
            played.seconds,
        )
        with _explained(self.path), self._db:
            number = self._db.execute(
                "INSERT INTO cells (key, place, forecaster, nature, horizon, runs, recorded, seconds) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                cell,
            ).lastrowid
            self._db.executemany(
                "INSERT OR IGNORE INTO measures (name) VALUES (?)", [(name,) for name in played.totals]
            )
            measures = dict(self._db.execute("SELECT name, id FROM measures"))
            self._db.executemany(
                "INSERT INTO totals VALUES (?, ?, ?, ?, ?)",
                (
                    (number, measures[measure], t, run, total)
                    for measure, totals in played.totals.items()
                    for t, row in zip(played.rounds.tolist(), totals.tolist(), strict=True)
                    for run, total in enumerate(row)
                ),
            )
            self._db.executemany(
                "INSERT INTO promises VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (number, p.measure, p.text, p.formula, p.kind, p.against, p.upper, p.bound)
                    for p in played.promises
                ),
            )

    def study(self) -> Study:
        """All finished cells, in the order of the plan."""
        with _explained(self.path):
            cells = self._db.execute(
                "SELECT id, forecaster, nature, horizon, runs, recorded, seconds FROM cells ORDER BY place, id"
            ).fetchall()
            meta = self.meta
            played = tuple(self._played(*cell) for cell in cells)
            return Study(played, meta.get("name", self.path.stem), meta.get("title", ""))

    def _played(
        self,
        cell: int,
        forecaster: str,
        nature: str,
        horizon: int,
        runs: int,
        recorded: int,
        seconds: float,
    ) -> Played:
        values = self._db.execute(
            "SELECT m.name, t.round, t.total FROM totals t JOIN measures m ON m.id = t.measure WHERE t.cell = ? "
            "ORDER BY t.measure, t.round, t.run",
            (cell,),
        ).fetchall()
        totals: dict[str, list[float]] = {}
        rounds: dict[int, None] = {}
        for measure, t, total in values:
            totals.setdefault(measure, []).append(total)
            rounds[t] = None
        promises = self._db.execute(
            "SELECT measure, text, formula, kind, against, upper, bound FROM promises WHERE cell = ?", (cell,)
        ).fetchall()
        return Played(
            forecaster,
            nature,
            horizon,
            np.array(sorted(rounds)),
            {name: np.array(row).reshape(len(rounds), runs) for name, row in totals.items()},
            tuple(Promise(m, t, f, k, a, bool(u), b) for m, t, f, k, a, u, b in promises),
            bool(recorded),
            seconds,
        )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text:
            reason = "it is locked by another process; wait for that to finish, or choose another file with --output"
        elif "full" in text or "disk I/O" in text:
            reason = "the disk is full; free some space and go on with --resume (finished cells are kept)"
        elif "not a database" in text or "malformed" in text:
            reason = "it is not a results file of onlinecal, or damaged"
        else:
            reason = text
        raise StoreError(f"{path}: {reason}") from None
