"""A results file among others: damage, other people's files, other writers, full disks, processes that are killed."""

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
import threading

import pytest

import onlinecal as oc
from onlinecal.core.content import digest
from onlinecal.core.errors import StoreError
from onlinecal.core.guarantee import Sight
from onlinecal.study import play_batch
from onlinecal.study.database import FORMAT, SCHEMA
from onlinecal.study.panel import Panel
from onlinecal.study.store import Store
from tests.results import F, N, cells, change, equal, played, read, refused, resumed, session, study

MODES = {}, {"resume": True}, {"overwrite": True}

# ---------------------------------------------------------------- damage


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM totals WHERE run = 2",
        "UPDATE totals SET total = 'one' WHERE run = 1",
        "UPDATE games SET held = '['",
        "DELETE FROM columns WHERE name = 'ece'",
        """UPDATE columns SET "column" = '[' WHERE name = 'ece'""",
        "UPDATE cells SET columns = '['",
        "UPDATE cells SET promises = '[[1]]'",
    ],
)
def test_rows_that_cannot_be_understood_are_named_and_replaced(results, whole, statement):
    change(results, statement)
    with pytest.raises(
        StoreError, match=r"a\.db: something else has changed it \(.*--overwrite` replaces it"
    ):
        read(results)
    assert equal(played(results, cells(), overwrite=True)[0], whole)


def shown_as_put_there(found, original):
    """How many cells are shown, each with the numbers that it had."""
    kept = {(c.forecaster, c.nature, c.horizon): c for c in original.cells}
    for cell in found.cells:
        of_old = kept.pop((cell.forecaster, cell.nature, cell.horizon))
        assert all((cell.totals[m] == of_old.totals[m]).all() for m in of_old.totals)
    return len(found.cells)


def schema_that_is_no_text(path):
    """SQLite quotes it in its message, which Python then cannot read."""
    return path.read_bytes().replace(b"CREATE TABLE games", b"CREATE TABLE\xf2games")


def index_that_says_something_else(path):
    with sqlite3.connect(path) as db:
        where = "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_games_1'"
        ((page,), (size,)) = (db.execute(what).fetchone() for what in (where, "PRAGMA page_size"))
    data = bytearray(path.read_bytes())
    first = data.index(cells()[0].key.encode(), (page - 1) * size, page * size)
    data[first : first + 4] = b"SWAP"
    return data


@pytest.mark.parametrize(
    "damaged",
    [schema_that_is_no_text, index_that_says_something_else,
     *(lambda path, size=size: path.read_bytes()[:size] for size in (72, 600, -4096))],
)  # fmt: skip
def test_a_damaged_database_is_refused_and_replaced(results, whole, damaged):
    results.write_bytes(damaged(results))
    with contextlib.suppress(StoreError):
        assert shown_as_put_there(read(results), whole) == 8
    refused(
        results,
        "it is damaged .* --overwrite` replaces it|it is not a results file .* or damaged",
        resume=True,
    )
    assert equal(played(results, cells(), overwrite=True)[0], whole)


@pytest.mark.parametrize(
    "shown", [{}, {"panel": Panel.of(["ece"])}, {"runs": 2}], ids=["all", "measures", "runs"]
)
def test_totals_are_read_by_sql(results, shown):
    """Those that are shown: of some measures, or of fewer runs than are there."""
    found, *_ = played(results, cells(**shown), resume=True)
    with sqlite3.connect(results) as db:
        what = 'forecaster, nature, horizon, "column", round, run, total'
        rows = db.execute(f"SELECT {what} FROM results ORDER BY 1, 2, 3, 4, 5, 6").fetchall()
    assert rows == sorted(
        (cell.forecaster, cell.nature, cell.horizon, name, round, run, total)
        for cell in found.cells
        for name, totals in cell.totals.items()
        for round, of_runs in zip(cell.rounds.tolist(), totals.tolist(), strict=True)
        for run, total in enumerate(of_runs)
    )


def test_a_total_costs_at_most_40_bytes(tmp_path):
    """A row of a table that SQL reads, with labels, bounds, contents and checksums."""
    who, panel = [F.Constant(i / 40) for i in range(20)], Panel.of(["ece", "cdl", "brier"], ["umbrella"])
    planned = cells(range(10, 70, 10), 16, panel=panel, forecasters=who, natures=[N.Drift()], keep="none")
    found, *_ = played(tmp_path / "a.db", planned)
    totals = sum(totals.size for cell in found.cells for totals in cell.totals.values())
    assert totals == 20 * 6 * 16 * 7
    assert (tmp_path / "a.db").stat().st_size <= 40 * totals


# ---------------------------------------------------------------- other people's files


DIARY = b"my diary, of which there is no copy " * 20


def test_files_of_others_and_of_other_formats_are_left_alone(tmp_path, results, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("onlinecal.study.database.os.access", lambda *_: False)
        refused(results, r"a\.db is read-only; make it writable", overwrite=True)
    (tmp_path / "text.db").write_bytes(DIARY)
    (tmp_path / "folder.db").mkdir()
    change(tmp_path / "other.db", "CREATE TABLE diary (page TEXT)")
    change(results, "PRAGMA user_version = 99")
    none, later = "not a results file", f"has format 99, of a later onlinecal; this one reads {FORMAT}"
    for name, said in (("text.db", none), ("other.db", none), ("a.db", later)):
        for options in MODES:
            refused(tmp_path / name, said, **options)
        with pytest.raises(StoreError, match=said):
            Store.open(tmp_path / name).__enter__()
    change(results, f"PRAGMA user_version = {FORMAT - 1}")
    for options in MODES[:2]:
        refused(
            results, f"format {FORMAT - 1}, of an earlier onlinecal; .* play the scenario again", **options
        )
    with session(results, cells(), overwrite=True) as opened:
        assert opened.store.finished() == []
    for name, said in (
        ("text.db/a.db", "cannot be written"),
        ("x" * 300, "too long"),
        ("folder.db", "not a file"),
    ):
        with pytest.raises(StoreError, match=said):
            session(tmp_path / name, cells()).__enter__()
    for name, said in (("none.db", "no such results file"), (".", "not a file")):
        with pytest.raises(StoreError, match=said):
            Store.open(tmp_path / name).__enter__()


# ---------------------------------------------------------------- other writers


def killed(code):
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9


def test_the_second_writer_is_told_who_writes_and_a_lock_left_behind_does_no_harm(
    tmp_path, results, whole, monkeypatch
):
    monkeypatch.setattr("onlinecal.study.lock.PATIENCE", 0.05)
    (tmp_path / "link.db").symlink_to(results)
    with session(results, cells(), resume=True) as first:
        for name in ("a.db", "link.db"):
            for options in MODES:
                refused(tmp_path / name, f"being written by process {os.getpid()} on ", **options)
        assert equal(read(results), whole)
        first.play()
    killed(f"""
import os
from pathlib import Path
from onlinecal.study.lock import writing
with writing(Path({str(results)!r})):
    os.kill(os.getpid(), 9)
""")
    assert resumed(results, cells()) == ([], set())
    (tmp_path / ".a.db.lock").write_bytes(DIARY)
    refused(results, "its lock, .a.db.lock, says: file is not a database", resume=True)


def test_another_program_that_reads_is_waited_for_and_one_that_writes_is_named(results, monkeypatch):
    monkeypatch.setattr("onlinecal.study.database.PATIENCE", 0.1)
    other = sqlite3.connect(results, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    refused(results, "another program holds it, perhaps a database browser; close it", resume=True)
    other.rollback()
    monkeypatch.setattr("onlinecal.study.database.PATIENCE", 60.0)
    with session(results, cells(runs=4), resume=True) as opened:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM games").fetchone()
        timer = threading.Timer(0.5, other.rollback)
        timer.start()
        opened.play()
        timer.join()
        assert equal(oc.Study.of(opened.store), study(cells(runs=4)))
    other.close()


def test_runs_that_another_process_has_put_there_stay_and_none_is_left_out(results):
    """As where the lock of a process that writes was removed."""
    planned = cells(runs=5)
    with session(results, planned, resume=True) as opened:
        opened.play()
        late = play_batch(planned[0], range(3, 5))
        opened._put(planned[0], [late._replace(totals={c: 2 * t for c, t in late.totals.items()})])
        with pytest.raises(StoreError, match="runs 5 to 6 are not there; go on with --resume"):
            opened._put(planned[0], [late._replace(first=7)])
        with pytest.raises(StoreError, match="something else has deleted a game; go on with --resume"):
            opened.store.add_columns("not there", {})
    assert equal(read(results), study(planned))


def test_a_change_of_the_tables_raises_the_format(results):
    """The record of both, and of the mark by which a results file is told from other databases."""
    tables = " ".join(re.sub("--.*", "", SCHEMA).split())
    assert (FORMAT, digest(tables)[:8]) == (11, "da9dd340")
    assert results.read_bytes()[68:72] == b"ocal"
    assert [*map(int, Sight)] == [0, 1, 2, 3]  # as they stand in the tables


def test_a_file_that_is_moved_while_it_is_written_is_told(results):
    with session(results, cells(runs=4), resume=True) as opened:
        results.unlink()
        with pytest.raises(StoreError, match="it was moved or deleted while it was being written"):
            opened.play()


# ---------------------------------------------------------------- the disk


def test_a_full_disk_keeps_the_finished_cells(tmp_path):
    """SQLite's page limit stands for the disk: it fails in the same place with the same error."""
    path, planned = tmp_path / "a.db", cells(runs=40)
    with session(path, planned) as opened:
        run = opened.store.run
        run(f"PRAGMA max_page_count = {run('PRAGMA page_count')[0][0] + 8}")
        with pytest.raises(StoreError, match="disk is full; free some space and go on with --resume"):
            opened.play()
    kept = read(path)
    assert 0 < len(kept.cells) < len(planned)
    assert equal(kept, study(planned[: len(kept.cells)]))
    resumed(path, planned)


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("onlinecal.study.database._connect", sqlite3.OperationalError("full")),
        ("onlinecal.study.store.Store.put_plan", sqlite3.OperationalError("full")),
        ("onlinecal.core.writing.os.replace", OSError(28, "No space left on device")),
    ],
)
def test_what_is_to_be_overwritten_stays_until_the_new_one_is_whole(
    results, whole, where, error, monkeypatch
):
    def full(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(where, full)
        refused(results, "it is damaged .full.|cannot be written: No space left", overwrite=True)
    assert equal(read(results), whole)
    resumed(results, cells())


def left_in_the_middle(path):
    """Kills a process in the middle of a transaction, with its pages in the file already."""
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT i FROM n"
    killed(f"""
import os, sqlite3
db = sqlite3.connect({str(path)!r}, isolation_level=None)
for said in "PRAGMA cache_size = 1", "BEGIN IMMEDIATE", "UPDATE totals SET total = 0.0", "CREATE TABLE x AS {many}":
    db.execute(said)
os.kill(os.getpid(), 9)
""")
    assert path.with_name(path.name + "-journal").stat().st_size > 0


@pytest.mark.parametrize("how", ["read", "resume", "deleted", "damaged"])
def test_a_transaction_that_was_killed_is_taken_back(results, whole, how):
    left_in_the_middle(results)
    if how == "resume":
        assert resumed(results, cells())[1] == set()
    if how in ("read", "resume"):
        assert equal(read(results), whole)
    else:
        if how == "deleted":
            results.unlink()
        if how == "damaged":
            results.write_bytes(results.read_bytes()[:5000])
        # The journal is of the old file, and must not be taken for one of the new.
        short = cells(horizons=[30])
        assert equal(played(results, short, overwrite=how != "deleted")[0], study(short))
        assert not results.with_name(results.name + "-journal").exists()
