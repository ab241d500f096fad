"""A results file among others: other people's files, other writers, full disks, processes that are killed."""

import os
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from onlinecal.core.errors import StoreError
from onlinecal.study import lock, play_cell
from onlinecal.study.database import FORMAT, Database, format_of
from onlinecal.study.lock import writing
from onlinecal.study.store import Store
from tests.results import cells, change, equal, played, read, refused, session, study

# ---------------------------------------------------------------- other people's files


def test_what_is_not_ours_is_left_alone(tmp_path):
    text, short, other, later = (tmp_path / name for name in ("text.db", "short.db", "other.db", "later.db"))
    text.write_text("my diary, of which there is no copy " * 20)
    short.write_text("x")
    change(other, "CREATE TABLE diary (page TEXT)")
    with session(later, cells()):
        pass
    change(later, "PRAGMA user_version = 99")
    for path in (text, short, other):
        for options in ({}, {"resume": True}, {"overwrite": True}):
            refused(path, "not a results file", **options)
        with pytest.raises(StoreError, match="not a results file"):
            Store.open(path)
    for options in ({}, {"resume": True}, {"overwrite": True}):
        refused(later, "has format 99, of a later onlinecal; this one reads format", **options)


def test_an_earlier_format_is_refused_and_may_be_replaced(results):
    old = FORMAT - 1
    change(results, f"PRAGMA user_version = {old}")
    for options in ({}, {"resume": True}):
        refused(
            results,
            f"has format {old}, of an earlier onlinecal; this one reads format {FORMAT}: play "
            "the scenario again, with",
            **options,
        )
    with pytest.raises(StoreError, match="of an earlier onlinecal"):
        Store.open(results)
    assert format_of(results) == old
    with session(results, cells(), overwrite=True) as opened:
        assert opened.finished == 0
    assert format_of(results) == FORMAT


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file cannot be written: (File exists|Not a directory)"):
        session(tmp_path / "file" / "a.db", cells())
    (tmp_path / "loop.db").symlink_to(tmp_path / "loop.db")
    with pytest.raises(StoreError, match="cannot be written"):
        session(tmp_path / "loop.db", cells())
    with pytest.raises(StoreError, match="cannot be written: File name too long"):
        session(tmp_path / ("x" * 300), cells())
    (tmp_path / "folder.db").mkdir()
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(StoreError, match=r"folder\.db: not a file"):
            session(tmp_path / "folder.db", cells(), **options)
    with pytest.raises(StoreError, match="no such results file; `onlinecal run SCENARIO` makes one"):
        Store.open(tmp_path / "none.db")
    with pytest.raises(StoreError, match="not a file"):
        Store.open(tmp_path)


# ---------------------------------------------------------------- other writers


def test_the_second_writer_is_told_who_writes(tmp_path, results, whole):
    with session(results, cells(), resume=True) as first:
        for options in ({}, {"resume": True}, {"overwrite": True}):
            refused(
                results,
                rf"being written by process {os.getpid()} on \S+ since 20\d\d-.*; wait for it",
                **options,
            )
        # By another name, too.
        (tmp_path / "link.db").symlink_to(results)
        refused(tmp_path / "link.db", f"being written by process {os.getpid()}", resume=True)
        assert equal(read(results), whole)
        first.play()
    assert equal(read(results), whole)
    assert sorted(file.name for file in results.parent.iterdir()) == [".a.db.lock", "a.db", "link.db"]


def test_a_lock_that_a_killed_process_left_behind_does_no_harm(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from onlinecal.study.lock import writing\n"
        "with writing(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, tmp_path / "a.db"])
    assert killed.returncode == -9
    assert [file.name for file in tmp_path.iterdir()] == [".a.db.lock"]
    with session(tmp_path / "a.db", cells()):
        pass
    (tmp_path / ".a.db.lock").write_text("not a database, but somebody's text " * 20)
    refused(
        tmp_path / "a.db",
        "cannot be written: its lock, .a.db.lock, says: file is not a database",
        resume=True,
    )


def test_many_threads_hold_the_lock_one_after_the_other(tmp_path, monkeypatch):
    """In one process, too, where the operating system would not keep two apart."""
    monkeypatch.setattr(lock, "PATIENCE", 0.05)
    inside, most, times, faults = 0, 0, 0, []

    def enter():
        nonlocal inside, most, times
        for _ in range(40):
            try:
                with writing(tmp_path / "a.db"):
                    inside += 1
                    most, times = max(most, inside), times + 1
                    inside -= 1
            except StoreError as error:
                faults.append(str(error))

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert times > 0
    assert times + len(faults) == 160
    assert all("is being written by" in fault for fault in faults), set(faults)


def test_runs_that_another_process_has_put_there_are_not_put_there_again(results):
    """As where somebody removes the lock of a process that writes."""
    planned = cells(runs=5)
    late = play_cell(replace(planned[0], first=3))
    with session(results, planned, resume=True) as opened:
        opened.play()
        with pytest.raises(
            StoreError, match="another process has played the same cells meanwhile; go on with"
        ):
            opened._store.add(planned[0].key, planned[0].content, planned[0].held, late, 3)
    assert equal(read(results), study(planned))


def test_a_database_browser_is_waited_for_then_named(results, monkeypatch):
    connect = sqlite3.connect
    monkeypatch.setattr(
        "onlinecal.study.database.sqlite3.connect", lambda *a, **k: connect(*a, **(k | {"timeout": 0.05}))
    )
    other = connect(results, isolation_level=None, check_same_thread=False)
    monkeypatch.setattr("onlinecal.study.database.PATIENCE", 0.1)
    insist = Database._insist
    monkeypatch.setattr(Database, "_insist", lambda self, statement, _: insist(self, statement, 0.1))
    other.execute("BEGIN IMMEDIATE")
    for options in ({"resume": True}, {"overwrite": True}):
        refused(results, "another program holds it, perhaps a database browser; close it", **options)
    other.rollback()
    # One that only reads holds up the end of a transaction, and what was played is there once it has read.
    with session(results, cells(runs=4), resume=True) as opened:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM games").fetchone()
        with pytest.raises(StoreError, match="another program holds it"):
            opened.play()
        monkeypatch.setattr(Database, "_insist", insist)
        monkeypatch.setattr("onlinecal.study.database.PATIENCE", 60.0)
        timer = threading.Timer(0.5, other.rollback)
        timer.start()
        opened.play()
        timer.join()
        assert equal(opened.results(), study(cells(runs=4)))
    other.close()


def test_whoever_reads_while_a_cell_is_written_reads_what_was_there(results, whole, monkeypatch):
    add, seen = Store.add, []

    def looked_at(self, *args):
        with self._db.transaction():
            self._db.run("DELETE FROM games")
            seen.append(equal(read(results), whole) and len(seen) == 0)
            self._db._connection.rollback()
            self._db.run("BEGIN IMMEDIATE")
        add(self, *args)

    monkeypatch.setattr(Store, "add", looked_at)
    with session(results, cells(horizons=[50, 75, 100]), resume=True) as opened:
        opened._store.put_plan(opened._store.meta, [p for p in opened._store.plan() if p.horizon != 75])
        opened.play()
    assert seen[0]


# ---------------------------------------------------------------- the disk


def limited(opened, pages):
    run = opened._store._db.run
    run(f"PRAGMA max_page_count = {run('PRAGMA page_count').fetchone()[0] + pages}")


def test_a_full_disk_keeps_the_finished_cells(tmp_path):
    """SQLite's page limit stands for the disk: it fails in the same place with the same error."""
    path, planned = tmp_path / "a.db", cells(runs=40)
    opened = session(path, planned)
    limited(opened, 5)
    with opened, pytest.raises(StoreError, match="disk is full; free some space and go on with --resume"):
        opened.play()
    kept = read(path)
    assert 0 < len(kept.cells) < len(planned)
    assert equal(kept, study(planned[: len(kept.cells)]))
    assert equal(played(path, planned, resume=True)[0], study(planned))


@pytest.mark.parametrize("where", ["schema", "plan", "replace"])
def test_what_is_to_be_overwritten_stays_until_the_new_file_is_whole(results, whole, where, monkeypatch):
    def full(*_, **__):
        raise (
            OSError(28, "No space left on device") if where == "replace" else sqlite3.OperationalError("full")
        )

    target = {
        "schema": "onlinecal.study.database._connect",
        "plan": "onlinecal.study.store.Store.put_plan",
        "replace": "pathlib.Path.replace",
    }[where]
    with monkeypatch.context() as patch:
        patch.setattr(target, full)
        refused(results, "it is damaged .full.|cannot be made: No space left", overwrite=True)
    assert equal(read(results), whole)
    assert equal(played(results, cells(), resume=True)[0], whole)


def left_in_the_middle(path):
    """A process is killed in the middle of a transaction whose pages are in the file already."""
    code = (
        "import os, sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "db.execute('PRAGMA cache_size = 1')\n"
        "db.execute('BEGIN IMMEDIATE')\n"
        "db.execute('UPDATE games SET totals = zeroblob(length(totals))')\n"
        "db.execute('CREATE TABLE filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)"
        " SELECT i FROM n')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, path]).returncode == -9
    assert path.with_name(path.name + "-journal").stat().st_size > 0


@pytest.mark.parametrize("how", ["read", "resume", "overwrite", "deleted", "damaged"])
def test_a_transaction_that_was_killed_is_taken_back(results, whole, how):
    left_in_the_middle(results)
    if how == "read":
        assert equal(read(results), whole)
    elif how == "resume":
        assert played(results, cells(), resume=True)[2] == set()
        assert equal(read(results), whole)
    else:
        if how == "deleted":
            results.unlink()
        if how == "damaged":
            results.write_bytes(results.read_bytes()[:5000])
        # The journal is of the old file, and must not be taken for one of the new.
        assert equal(
            played(results, cells(horizons=[30]), overwrite=how != "deleted")[0], study(cells(horizons=[30]))
        )
        assert not results.with_name(results.name + "-journal").exists()
