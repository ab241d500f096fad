"""SQLite as results are kept in it: its tables, whole files, transactions that wait, errors that say what to do.

What was played is kept under what it depends on: a game under its players, horizon, checkpoints, seed, schedule and
decision makers; below it each column of totals under the measure or task that it is of. The plan says which of it is
shown, under which labels and in which order: forecasters that are the same share their numbers, and numbers that no
longer fit are not shown.

    meta(key, value)    name, title, scenario (the file's text), options (what was given in place of its keys), version,
                        people (labels of decision makers), incompatible (pairs that cannot be played, and why); plan,
                        JSON: cells (key of the game, labels of forecaster, nature and schedule, horizon, runs, whether
                        outcomes are recorded, what nature sees of forecasts, steps of the forecaster's grid, its panel,
                        its promises with their bounds), panels (keys of columns), promises; seal of all of these
    columns(key, name, column, content)   column: what the name stands for, as JSON; content: what its numbers depend on
                        beside the game, as JSON; key: the digest of both
    games(id, key, content, times, held, totals, seconds, loop, open, people, accounts, seal)   content: all that the
                        rounds depend on, as JSON, and key its digest; times: the checkpoints, a JSON list; held: a JSON
                        list of [column, runs]; totals: T·μ of these columns one after the other, each
                        (checkpoints, runs) numbers of 8 bytes, IEEE 754, the lowest byte first; open: questions without
                        an outcome at each checkpoint; people, accounts: decision makers who join and leave, and their
                        numbers (`study.entries`)
    gammas(game, run, packed, seal)   the level sets of a run at all checkpoints (`study.gammas`)
    failed(key, error, at)   games that could not be played, why, and when that was last tried

Seals are checksums. `onlinecal export` writes the totals as a table for other tools.
"""

from __future__ import annotations

import sqlite3
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from onlinecal.core.errors import StoreError

#: "ocal": tells our files from other databases
APPLICATION = 0x6F63616C
#: of the schema; a change of the tables raises it
FORMAT = 7
#: statements that make the tables; a change raises `FORMAT`
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE columns (key TEXT PRIMARY KEY, name TEXT NOT NULL, "column" TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE games (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL, times TEXT NOT NULL, held TEXT NOT NULL,
    totals BLOB NOT NULL, seconds REAL NOT NULL, loop TEXT NOT NULL, open TEXT NOT NULL, people TEXT NOT NULL,
    accounts BLOB NOT NULL, seal TEXT NOT NULL);
CREATE TABLE gammas (
    game INTEGER NOT NULL REFERENCES games, run INTEGER NOT NULL, packed BLOB NOT NULL, seal TEXT NOT NULL,
    PRIMARY KEY (game, run));
CREATE TABLE failed (key TEXT PRIMARY KEY, error TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
"""
#: seconds to wait for another program that holds the file before a cell that has been played is given up
PATIENCE = 300.0


class Database:
    """A results file as a database. Nothing is written but in a `transaction`, nothing read but in one or in `reading`.

    Every method raises StoreError where another program holds the file, or it is full, read-only or damaged.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.run = connection.execute
        self.run_many = connection.executemany
        self._connection = connection
        self._taken_back = 0

    @classmethod
    def create(cls, path: Path, schema: str, fill: Callable[[Database], None]) -> Database:
        """A new file with these tables and all that `fill` puts into them, in place of what lies at `path` before.

        That stays until the new file is whole. Only for the holder of the lock (`study.lock.writing`).
        """
        path = path.resolve()
        new = path.with_name(f".{path.name}.new")
        try:
            _remove(new)
            with _explained(path), closing(_connect(new, create=True)) as connection:
                connection.executescript(
                    f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; BEGIN; {schema} COMMIT;"
                )
                fill(cls(path, connection))
            if path.exists():
                with _explained(path):
                    _settle(path)
            # A journal that a killed process left behind would be taken for one of the new file, and change it.
            _remove(*(path.with_name(path.name + end) for end in ("-journal", "-wal", "-shm")))
            new.replace(path)
        except OSError as error:
            raise StoreError(f"{path} cannot be made: {error.strerror or error}") from None
        finally:
            with suppress(OSError):
                _remove(new, new.with_name(new.name + "-journal"))
        return cls.open(path, write=True)

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Database:
        """An existing file of ours; to `write` in it, only for the holder of the lock."""
        if not path.is_file():
            hint = "" if path.exists() else "; `onlinecal run SCENARIO` makes one"
            raise StoreError(f"{path}: {'not a file' if path.exists() else 'no such results file'}{hint}")
        if (size := path.stat().st_size) < 512:  # the least that a database has; SQLite would make one of it
            raise StoreError(
                f"{path} is {'cut short' if size else 'empty'}, and not a results file of onlinecal"
            )
        with _explained(path):
            connection = _connect(path.resolve())
            try:
                application, version = (
                    connection.execute(f"PRAGMA {name}").fetchone()[0]
                    for name in ("application_id", "user_version")
                )
                if application != APPLICATION:
                    raise StoreError(f"{path} is a database, but not a results file of onlinecal")
                if version != FORMAT:
                    raise StoreError(f"{path} {_other_format(version)}")
                database = cls(path, connection)
                if write:
                    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
                    if found != "ok":
                        raise StoreError(f"{path}: {_DAMAGED.format(error=found.splitlines()[-1])}")
                    # Readers are kept out while a cell is committed, not while it is written.
                    connection.execute("PRAGMA cache_spill = OFF")
                    # A file that cannot be written is refused now, not after the first cell.
                    with database.transaction(patience=5.0):
                        pass
                else:
                    connection.execute("PRAGMA query_only = ON")
            except BaseException:
                connection.close()
                raise
        return database

    def close(self) -> None:
        """Closes the file; all that is not committed is gone."""
        self._connection.close()

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
                    self._taken_back += 1
                    self._connection.rollback()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads one state of the file, whatever is written meanwhile; a part of a transaction around it."""
        if self._connection.in_transaction:
            yield
            return
        with _explained(self.path):
            self.run("BEGIN")
            try:
                self._insist("SELECT 1 FROM sqlite_master", 30.0)  # none can read while a writer commits
                yield
            finally:
                self._connection.rollback()

    @property
    def state(self) -> tuple[int, int, int]:
        """Another value after any write, by this connection or another."""
        (others,) = self.run("PRAGMA data_version").fetchone()
        return others, self._connection.total_changes, self._taken_back

    def _insist(self, statement: str, patience: float | None) -> None:
        """Waits for other programs, in small steps, so that an interrupt is heard."""
        until = time.monotonic() + (PATIENCE if patience is None else patience)
        while True:
            try:
                self.run(statement)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise


def format_of(path: Path) -> int | None:
    """The format of a results file of ours, even a damaged one; None for any other file."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(head) < 72 or not head.startswith(b"SQLite format 3\0"):
        return None
    version, application = struct.unpack(">60xI4xI", head)
    return version if application == APPLICATION else None


def _other_format(version: int) -> str:
    if version > FORMAT:
        return f"has format {version}, of a later onlinecal; this one reads format {FORMAT}"
    return (
        f"has format {version}, of an earlier onlinecal; this one reads format {FORMAT}: play the "
        "scenario again, with --overwrite or into another file with --output"
    )


def _connect(path: Path, *, create: bool = False) -> sqlite3.Connection:
    # Not "ro", even to read: where a process was killed in the middle of a transaction, that is first taken back.
    mode = "rwc" if create else "rw"
    connection = sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=5.0, isolation_level=None)
    # Damaged text is read, and found by its checksum.
    connection.text_factory = lambda text: text.decode(errors="replace")
    return connection


def _settle(path: Path) -> None:
    """Takes back a transaction that a killed process has left; refuses a file that another program writes."""
    try:
        with closing(_connect(path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
    except UnicodeDecodeError:
        pass  # damaged, and SQLite's message with it
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise


def _remove(*files: Path) -> None:
    for file in files:
        file.unlink(missing_ok=True)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """SQLite's errors as ours."""
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


_DAMAGED = "it is damaged ({error}); `onlinecal run SCENARIO --overwrite` starts anew"
#: the meaning of SQLite's primary codes for a user
_REASONS = {
    sqlite3.SQLITE_BUSY: "another program holds it, perhaps a database browser; close it there and go on with --resume",
    sqlite3.SQLITE_FULL: "the disk is full; free some space and go on with --resume (finished cells are kept)",
    sqlite3.SQLITE_IOERR: "it cannot be read or written ({error}), perhaps for a full disk or a drive that is gone; "
    "mend that and go on with --resume (finished cells are kept)",
    sqlite3.SQLITE_READONLY: "it is read-only, or its folder is; make them writable, or choose another --output",
    sqlite3.SQLITE_CANTOPEN: "it, or a file beside it, cannot be opened; see who may read and write in its folder",
    sqlite3.SQLITE_PERM: "it may not be opened; see who may read and write it",
    sqlite3.SQLITE_NOTADB: "it is not a results file of onlinecal, or damaged",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
}
