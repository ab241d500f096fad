"""A results file among others: damage, other people's files, other writers, full disks, processes that are killed."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading

import pytest

import onlinecal as oc
from onlinecal.core.errors import StoreError
from onlinecal.study import play_batch
from onlinecal.study.database import FORMAT, Database
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


def test_a_game_that_is_gone_is_played_again(results, whole):
    change(results, "DELETE FROM games WHERE id = 3")
    assert shown_as_put_there(read(results), whole) == 7
    resumed(results, cells())


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


def test_accounts_that_were_changed_are_not_shown(tmp_path):
    path, people = tmp_path / "a.db", [{"task": "umbrella", "join": 3}]
    oc.play("empirical_mean", "drift", horizon=20, runs=2, decision_makers=people, measures=["ece"]).save(
        path
    )
    for new in ("x''", "'junk'", "substr(accounts, 1, 200) || x'00' || substr(accounts, 202)"):
        change(path, f"UPDATE games SET accounts = {new}")
        with pytest.raises(StoreError, match="something else has changed it"):
            read(path)


@pytest.mark.parametrize("panel", [None, Panel.of(["ece"])], ids=["", "with measures taken out"])
def test_totals_are_read_by_sql(results, whole, panel):
    found = played(results, cells(panel=panel), resume=True)[0] if panel else whole
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


# ---------------------------------------------------------------- other people's files


DIARY = b"my diary, of which there is no copy " * 20


def test_files_of_others_and_of_other_formats_are_left_alone(tmp_path, results):
    (tmp_path / "text.db").write_bytes(DIARY)
    (tmp_path / "short.db").write_text("x")
    change(tmp_path / "other.db", "CREATE TABLE diary (page TEXT)")
    change(results, "PRAGMA user_version = 99")
    none, later = "not a results file", f"has format 99, of a later onlinecal; this one reads {FORMAT}"
    for name, said in (("text.db", none), ("short.db", none), ("other.db", none), ("a.db", later)):
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
    with sqlite3.connect(results) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (FORMAT,)


def test_places_that_cannot_be_written_or_read(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop.db").symlink_to(tmp_path / "loop.db")
    (tmp_path / "folder.db").mkdir()
    for name, said in (
        ("file/a.db", r"file cannot be written: (File exists|Not a directory)"), ("loop.db", "cannot be written"),
        ("x" * 300, "cannot be written: File name too long"), ("folder.db", r"folder\.db: not a file"),
    ):  # fmt: skip
        for options in MODES:
            with pytest.raises(StoreError, match=said):
                session(tmp_path / name, cells(), **options).__enter__()
    for name, said in (
        ("none.db", "no such results file; `onlinecal run SCENARIO` makes one"),
        (".", "not a file"),
    ):
        with pytest.raises(StoreError, match=said):
            Store.open(tmp_path / name).__enter__()


# ---------------------------------------------------------------- other writers


def test_the_second_writer_is_told_who_writes(tmp_path, results, whole):
    with session(results, cells(), resume=True) as first:
        said = rf"being written by process {os.getpid()} on \S+ since 20\d\d-.*; wait for it"
        for options in MODES:
            refused(results, said, **options)
        # By another name, too.
        (tmp_path / "link.db").symlink_to(results)
        refused(tmp_path / "link.db", f"being written by process {os.getpid()}", resume=True)
        assert equal(read(results), whole)
        first.play()
    assert equal(read(results), whole)
    assert sorted(file.name for file in results.parent.iterdir()) == [".a.db.lock", "a.db", "link.db"]


def killed(code):
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9


def test_a_lock_that_a_killed_process_left_behind_does_no_harm(tmp_path):
    killed(f"""
import os
from pathlib import Path
from onlinecal.study.lock import writing
with writing(Path({str(tmp_path / "a.db")!r})):
    os.kill(os.getpid(), 9)
""")
    assert [file.name for file in tmp_path.iterdir()] == [".a.db.lock"]
    with session(tmp_path / "a.db", cells()):
        pass
    (tmp_path / ".a.db.lock").write_bytes(DIARY)
    refused(
        tmp_path / "a.db",
        "cannot be written: its lock, .a.db.lock, says: file is not a database",
        resume=True,
    )


def test_runs_that_another_process_has_put_there_stay_and_none_is_left_out(results):
    """As where the lock of a process that writes was removed."""
    planned = cells(runs=5)
    with session(results, planned, resume=True) as opened:
        opened.play()
        late = play_batch(planned[0], range(3, 5))
        opened._put(planned[0], [late._replace(totals={c: 2 * t for c, t in late.totals.items()})])
        with pytest.raises(StoreError, match="runs 5 to 6 are not there; go on with --resume"):
            opened._put(planned[0], [late._replace(first=7)])
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
    refused(results, "another program holds it, perhaps a database browser; close it", resume=True)
    other.rollback()
    # One that only reads holds up the end of a transaction. What was played is there once it has read.
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
        assert equal(oc.Study.of(opened.store), study(cells(runs=4)))
    other.close()


def test_a_change_that_fails_is_taken_back_and_readers_see_none_of_it(results, whole):
    with Store.open(results, write=True) as store:
        with contextlib.suppress(ValueError), store.transaction():
            store.forget([cells()[0].key])
            assert (len(store.held()), equal(read(results), whole)) == (7, True)
            raise ValueError
        assert len(store.held()) == len(read(results).cells) == 8


# ---------------------------------------------------------------- many cells


def test_a_finished_study_is_resumed_without_a_look_at_each_cell_alone(tmp_path, monkeypatch):
    """In statements, not in seconds, which depend on the machine: each game is read twice, to check and to show."""
    who, whom = [F.ForecastHedging(m) for m in range(2, 10)], [N.Bernoulli(i / 100) for i in range(1, 9)]
    planned, path = cells((4,), 1, forecasters=who, natures=whom), tmp_path / "r.db"
    played(path, planned)
    finished, statements, opened = path.read_bytes(), [], Store.open

    @contextlib.contextmanager
    def traced(*a, **k):
        with opened(*a, **k) as store:
            store._connection.set_trace_callback(statements.append)
            yield store

    monkeypatch.setattr(Store, "open", traced)
    with session(path, planned, resume=True) as resumed:
        assert resumed.play() == []
        assert len(resumed.store.cells()) == len(planned)
    assert path.read_bytes() == finished
    assert sum(statement.startswith("SELECT") for statement in statements) < 2 * len(planned) + 40


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
