"""Results as an SQLite database: its tables, files that are whole, transactions that wait, errors that say what to do.

A game is kept under all that its rounds depend on: players, horizon, checkpoints, seed, schedule and decision makers.
Below it each column of totals is kept under its measure or task. The plan lists the cells that are shown, under
which labels and in which order.

`SCHEMA` says what is in the tables, also to those who open a file in a browser of databases.
"""

import os
import sqlite3
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from onlinecal.core.errors import StoreError
from onlinecal.core.writing import whole

#: "ocal": tells results files from other databases
APPLICATION = 0x6F63616C
#: of the schema; a change of the tables raises it
FORMAT = 11
SCHEMA = """
-- name, title, scenario (the file's text), options (in place of its keys), version, incompatible (pairs that cannot be
-- played, and why), people (labels of decision makers), command (the words of `onlinecal run`, without its files)
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE cells (  -- the plan: the cells that are shown, in their order
    place INTEGER PRIMARY KEY, key TEXT NOT NULL, forecaster TEXT NOT NULL, nature TEXT NOT NULL,
    schedule TEXT NOT NULL, horizon INTEGER NOT NULL, runs INTEGER NOT NULL, recorded INTEGER NOT NULL,
    sight INTEGER NOT NULL,
    promises TEXT NOT NULL,  -- JSON: a list of the fields of each `Promise`
    columns TEXT NOT NULL,   -- JSON: a list of their keys
    steps INTEGER);
CREATE TABLE columns (  -- of totals; the key is the digest of the rest
    key TEXT PRIMARY KEY, name TEXT NOT NULL,
    "column" TEXT NOT NULL,  -- JSON: the parts of the name
    content TEXT NOT NULL);  -- JSON: all that its numbers depend on beside the game
CREATE TABLE games (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL,  -- JSON: all that the rounds depend on; the key is its digest
    times TEXT NOT NULL,    -- JSON: the checkpoints
    held TEXT NOT NULL,     -- JSON: a list of [key of a column, runs]
    seconds REAL NOT NULL, loop TEXT NOT NULL,
    open TEXT NOT NULL,     -- JSON: questions without an outcome at each checkpoint
    accounts BLOB);         -- of decision makers that join and leave, as arrays of NumPy
CREATE TABLE totals (  -- T·μ; the column is a place in the list `held` of the game, from 0
    game INTEGER NOT NULL REFERENCES games, "column" INTEGER NOT NULL, round INTEGER NOT NULL, run INTEGER NOT NULL,
    total NOT NULL, PRIMARY KEY (game, "column", round, run)) WITHOUT ROWID;
CREATE TABLE gammas (  -- the level sets of runs from `first` on; each part has some checkpoints, as arrays of NumPy
    game INTEGER NOT NULL REFERENCES games, place INTEGER NOT NULL, part INTEGER NOT NULL, first INTEGER NOT NULL,
    whole BLOB NOT NULL, arrays BLOB NOT NULL, PRIMARY KEY (game, place, part));
-- games that could not be played, why, and when that was last tried
CREATE TABLE failed (key TEXT PRIMARY KEY, error TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
-- the totals of the cells of the plan, with their labels and the names of columns
CREATE VIEW results AS
    SELECT cells.forecaster, cells.nature, cells.schedule, cells.horizon, columns.name AS "column", round, run, total
    FROM cells JOIN games ON games.key = cells.key
        JOIN totals ON game = games.id AND run < cells.runs
        JOIN json_each(games.held) AS each ON each.key = totals."column"
        JOIN columns ON columns.key = json_extract(each.value, '$[0]')
    WHERE columns.key IN (SELECT value FROM json_each(cells.columns))
        OR json_extract(columns."column", '$.kind') = 'certificate';
"""
#: seconds to wait for another program that holds the file before a cell that has been played is given up
PATIENCE = 300.0


class Database:
    """A results file as a database, in the state when it was opened; any fault of it raises StoreError."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection

    @classmethod
    def create(cls, path: Path, fill: Callable[[Self], None]) -> None:
        """Makes a file by `fill` that takes the place of `path` when whole; for the holder of the lock."""
        path = path.resolve()
        _check_replaceable(path)
        with whole(path) as new, _explained(path):
            with closing(_connect(new)) as connection:
                connection.executescript(
                    f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; "
                    f"PRAGMA journal_mode = MEMORY; BEGIN; {SCHEMA} COMMIT;"
                )
                database = cls(path, connection)
                with database.transaction():
                    fill(database)
            # A journal that a killed process left behind would be taken for one of the new file, and change it.
            for end in ("-journal", "-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)

    @classmethod
    @contextmanager
    def open(cls, path: Path, *, write: bool = False) -> Iterator[Self]:
        """An existing results file; to `write` in it, only for the holder of the lock."""
        if not path.is_file():
            if path.exists():
                raise StoreError(f"{path}: not a file")
            near = Path("results", f"{path.stem}.db")
            hint = f"did you mean {near}?" if near.is_file() else "`onlinecal run SCENARIO` makes one"
            raise StoreError(f"{path}: no such results file; {hint}")
        with _explained(path):
            connection = _connect(path.resolve())
        with closing(connection):
            database = cls(path, connection)
            with _explained(path):
                database._begin(write)
            yield database

    def _begin(self, write: bool) -> None:
        ((application,),), ((version,),) = map(self.run, ("PRAGMA application_id", "PRAGMA user_version"))
        if application != APPLICATION:
            raise StoreError(f"{self.path} is empty or another database, not a results file of onlinecal")
        if version != FORMAT:
            raise _of_another_version(self.path, version)
        if not write:
            self.run("BEGIN")
            self._insist("SELECT 1 FROM sqlite_master", 30.0)  # none can read while a writer commits
            return
        self.check()
        # Readers are kept out while a cell is committed, not while it is written.
        self.run("PRAGMA cache_spill = OFF")
        # A file that cannot be written is refused now, not after the first cell; SQLite itself waits for five seconds.
        with self.transaction(patience=0.0):
            pass

    def check(self) -> None:
        """Refuses a damaged database, such as one with an index that differs from its table."""
        ((found,),) = self.run("PRAGMA integrity_check(1)")
        if found != "ok":
            raise StoreError(f"{self.path}: {_DAMAGED.format(error=found.splitlines()[-1])}")

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement returns."""
        with _explained(self.path):
            return self._connection.execute(statement, values).fetchall()

    def run_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Runs a statement with each of these rows."""
        with _explained(self.path):
            self._connection.executemany(statement, rows)

    @contextmanager
    def transaction(self, patience: float | None = None) -> Iterator[None]:
        """Writes all of it, or nothing; one within another is a part of it."""
        if self._connection.in_transaction:
            yield
            return
        with _explained(self.path):
            self._insist("BEGIN IMMEDIATE", patience)
            try:
                yield
                self._insist("COMMIT", patience)
            finally:
                if self._connection.in_transaction:
                    self._connection.rollback()

    def _insist(self, statement: str, patience: float | None) -> None:
        """Waits for other programs, in small steps, so that an interrupt is heard."""
        until = time.monotonic() + (PATIENCE if patience is None else patience)
        while True:
            try:
                self._connection.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise


def _check_replaceable(path: Path) -> None:
    """Refuses to replace a file that is not empty, and no results file or one of a later version."""
    if not path.exists() or not path.stat().st_size:
        return
    if not os.access(path, os.R_OK | os.W_OK):
        raise StoreError(f"{path} is read-only; make it writable, or choose another file with --output")
    with path.open("rb") as file:  # not by SQLite, since the rest of it may be damaged
        head = file.read(72).ljust(72)
    version, application = struct.unpack(">60xI4xI", head)
    if application != APPLICATION or not head.startswith(b"SQLite format 3\0"):
        raise StoreError(f"{path} is not a results file of onlinecal; --output chooses another file")
    if version > FORMAT:
        raise _of_another_version(path, version)


def _of_another_version(path: Path, version: int) -> StoreError:
    age, then = "an earlier", ": play the scenario again, with --overwrite or into another file with --output"
    if version > FORMAT:
        age, then = "a later", ""
    return StoreError(f"{path} has format {version}, of {age} onlinecal; this one reads {FORMAT}{then}")


def _connect(path: Path) -> sqlite3.Connection:
    # Not "ro", even to read: a transaction of a killed process is first taken back.
    connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=5.0, isolation_level=None)
    # Damaged text is read, so that an error of ours tells of it.
    connection.text_factory = lambda text: text.decode(errors="replace")
    return connection


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raises SQLite's errors as StoreError."""
    try:
        yield
    except UnicodeDecodeError:  # SQLite's message, which quotes damaged text
        raise StoreError(f"{path}: {_DAMAGED.format(error='it holds bytes in place of text')}") from None
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code == sqlite3.SQLITE_READONLY_DBMOVED:
            reason = "it was moved or deleted while it was being written"
        else:
            reason = _REASONS.get(code & 0xFF, _DAMAGED).format(error=error)
        raise StoreError(f"{path}: {reason}") from None


_DAMAGED = "it is damaged ({error}); `onlinecal run SCENARIO --overwrite` replaces it"
#: the meaning of SQLite's primary codes for a user
_REASONS = {
    sqlite3.SQLITE_BUSY: "another program holds it, perhaps a database browser; close it there and go on with --resume",
    sqlite3.SQLITE_FULL: "the disk is full; free some space and go on with --resume (finished cells are kept)",
    sqlite3.SQLITE_IOERR: "it cannot be read or written ({error}), perhaps for a full disk or a drive that is gone; "
    "mend that and go on with --resume (finished cells are kept)",
    sqlite3.SQLITE_READONLY: "it is read-only, or its folder is; make them writable, or choose another --output",
    sqlite3.SQLITE_CANTOPEN: "it, or a file beside it, cannot be opened; see who may read and write in its folder",
    sqlite3.SQLITE_PERM: "it may not be opened; see who may read and write it",
    sqlite3.SQLITE_NOTADB: "it is not a results file of onlinecal, or damaged; `onlinecal run SCENARIO` makes one, and "
    "`onlinecal measure` reads forecasts",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
}
