"""The lock of a results file: one process writes at a time, and a killed one leaves no lock.

The lock is SQLite's own, on a small database beside the results, ``.NAME.lock``. The operating system takes it from a
process that ends, in whatever way. Readers of the results never meet it. The file stays, since another process may have
just opened it.
"""

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from onlinecal.core.errors import StoreError

#: seconds to wait for the lock
PATIENCE = 1.0


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Holds the lock of these results; their folder is made. A second writer is told which process holds it."""
    if os.path.isdir(path):  # of any name
        raise StoreError(f"{path}: not a file")
    try:
        path = path.resolve()
        file = path.with_name(f".{path.name}.lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        file.open("ab").close()
    # A RuntimeError is a link that leads to itself, a ValueError a name that no file can have.
    except (OSError, RuntimeError, ValueError) as error:
        raise StoreError(f"{path.parent} cannot be written: {getattr(error, 'strerror', error)}") from None
    name = f"process {os.getpid()} on {socket.gethostname()} since {datetime.now().astimezone():%Y-%m-%d %H:%M:%S %z}"
    with closing(sqlite3.connect(file, timeout=PATIENCE, isolation_level=None)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("CREATE TABLE IF NOT EXISTS writer (name TEXT)")
            db.execute("DELETE FROM writer")
            db.execute("INSERT INTO writer VALUES (?)", (name,))
            # Others read only what is committed. A process that comes between this line and the next has the lock.
            db.execute("COMMIT")
            db.execute("BEGIN IMMEDIATE")
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where a damaged file is quoted
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                raise StoreError(f"{path} cannot be written: its lock, {file.name}, says: {error}") from None
            raise StoreError(
                f"{path} is being written by {writer(path) or 'another process'}; wait for it to finish, or choose "
                "another file"
            ) from None
        yield


def writer(path: Path) -> str:
    """The process that writes these results now, with its machine and since when; "" for none."""
    path = path.resolve()
    address = f"{path.with_name(f'.{path.name}.lock').as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=0.0, isolation_level=None)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                    return str(db.execute("SELECT name FROM writer").fetchone()[0])
    except (sqlite3.Error, TypeError, UnicodeDecodeError):  # there is no lock, or none with a name
        pass
    return ""
