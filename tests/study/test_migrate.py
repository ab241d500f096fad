"""Results files of format 5: they are read as they are, and made ones of this format by who writes.

``data/format5.db`` was made by the last version of that format from ``data/format5.toml``.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.content import digest
from onlinecal.core.errors import StoreError
from onlinecal.scenario import load
from onlinecal.study.database import BEFORE, FORMAT, format_of
from onlinecal.study.later import measure_file_again
from onlinecal.study.migrate import _seal
from onlinecal.study.panel import Panel
from onlinecal.study.session import Session
from onlinecal.study.store import Store
from tests.results import change, equal, read

HERE = Path(__file__).parent / "data"
#: The file was made on one machine; on another, solvers and mathematical libraries may differ in the last digits.
ELSEWHERE = 1e-9


@pytest.fixture
def old(tmp_path):
    shutil.copy(HERE / "format5.db", tmp_path / "a.db")
    return tmp_path / "a.db"


def rows(path):
    """(forecaster, nature, column, round, run) → total, by SQL, as format 5 has them."""
    db = sqlite3.connect(path)
    found = db.execute("SELECT forecaster, nature, measure, round, run, total FROM curves").fetchall()
    db.close()
    return {tuple(row[:5]): row[5] for row in found}


def opened(path, **options):
    """A session of the scenario that was played, whatever versions its parts have now."""
    loaded = load(HERE / "format5.toml")
    return Session.open(loaded.cells, loaded.meta, path, resume=True, **options)


def of_then(monkeypatch):
    """Sets all versions to those that the file was made by, so that the test outlives a change of numbers."""
    from onlinecal.measures import MEASURES

    with sqlite3.connect(HERE / "format5.db") as db:
        contents = [json.loads(text) for (text,) in db.execute("SELECT content FROM played")]

    def walk(value):
        if isinstance(value, dict):
            if "measure" in value and "version" in value:
                record = MEASURES[value["measure"]]
                monkeypatch.setitem(
                    MEASURES,
                    value["measure"],
                    replace(record, version=value["version"]),
                )
            if "class" in value and "version" in value:
                for home in (oc.forecasters, oc.natures, oc.tasks, oc.responses, oc.schedules):
                    if hasattr(home, value["class"]):
                        monkeypatch.setattr(getattr(home, value["class"]), "version", value["version"])
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(contents)
    monkeypatch.setattr(sys.modules["onlinecal.study.plan"], "VERSION", contents[0]["engine"])
    monkeypatch.setattr("onlinecal.__version__", "0.1.0")


def test_it_is_read_without_being_written(old):
    before, numbers = old.read_bytes(), rows(old)
    old.chmod(0o444)
    study = oc.load(old)
    assert len(study.cells) == 8
    found = {
        (cell.forecaster, cell.nature, name, int(t), run): float(total)
        for cell in study.cells
        for name, totals in cell.totals.items()
        for t, row in zip(cell.rounds, totals, strict=True)
        for run, total in enumerate(row)
    }
    assert found == numbers
    assert study.title == "Of format 5"
    assert [cell.people.labels for cell in study.cells] == [("umbrella", "random")] * 8
    assert all(cell.promises for cell in study.cells if not cell.schedule[1])
    assert study.gamma("steps", "drift") is None
    assert old.read_bytes() == before
    assert format_of(old) == BEFORE
    assert [file.name for file in old.parent.iterdir()] == ["a.db"]


def test_to_resume_it_plays_nothing_and_makes_it_one_of_this_format(old, monkeypatch):
    of_then(monkeypatch)
    monkeypatch.setattr("onlinecal.study.executors.serial.play_batch", lambda *_, **__: pytest.fail("played"))
    before = read(old)
    with opened(old) as session:
        assert session.remarks == []
        session.play()
        assert equal(session.results(), before)
        assert [cell.people for cell in session.results().cells] == [cell.people for cell in before.cells]
    assert format_of(old) == FORMAT
    assert equal(read(old), before)
    with Store.open(old) as store:
        assert store.damaged() == set()
        assert len(store.contents(store.runs().keys())) == 8


def test_what_is_added_to_it_is_played(old, monkeypatch):
    of_then(monkeypatch)
    loaded = load(HERE / "format5.toml")
    assert measure_file_again(old, Panel.of(["cdl"]))[0] == 0
    more = [replace(cell, runs=3) for cell in loaded.cells]
    with Session.open(more, loaded.meta, old, resume=True) as session:
        session.play()
    found = read(old)
    assert all(totals.shape[1] == 3 for cell in found.cells for totals in cell.totals.values())
    assert found.gamma("steps", "drift", run=2) is not None
    assert found.gamma("steps", "drift", run=1) is None


def test_what_does_not_fit_leaves_it_as_it_is(old, monkeypatch):
    before = old.read_bytes()
    loaded = load(HERE / "format5.toml")
    other = [replace(cell, seed=9) for cell in loaded.cells]
    with pytest.raises(StoreError, match="nothing that is in it fits"):
        Session.open(other, loaded.meta, old, resume=True)
    with pytest.raises(StoreError, match="exists; --resume goes on with it"):
        Session.open(other, loaded.meta, old)
    assert old.read_bytes() == before


def test_cells_of_one_game_that_were_measured_differently_are_one_game(old):
    """Format 5 kept what no longer fitted until all had been played."""
    db = sqlite3.connect(old)
    _, text, *rest = db.execute(
        "SELECT key, content, horizon, loop, open FROM played WHERE id = 1"
    ).fetchone()
    horizon, loop, still = rest
    content = json.loads(text)
    content["measures"] = {"cdl": {"bracket": False, "options": {}, "what": {"measure": "cdl", "version": 7}}}
    content["tasks"] = {}
    other, column = digest(content), Column("measure", "cdl")
    times, totals = np.array(content["times"]), np.arange(6.0).reshape(3, 2)
    seal = _seal(
        other, json.dumps(content), times, {column: totals}, 0.5, loop, tuple(json.loads(still)), None
    )
    db.execute(
        "INSERT INTO played VALUES (99, ?, ?, ?, 2, 0.5, ?, ?, '', x'', ?)",
        (other, json.dumps(content), horizon, loop, still, seal),
    )
    db.execute("INSERT INTO measures VALUES (99, 'cdl', ?)", (json.dumps(column.as_json()),))
    db.executemany(
        "INSERT INTO totals VALUES (99, 99, ?, ?, ?)",
        [(int(t), run, totals[i, run]) for i, t in enumerate(times) for run in range(2)],
    )
    db.commit()
    db.close()
    with Store.open(old) as store:
        assert len(store.runs()) == 8
        game = digest({name: value for name, value in content.items() if name not in ("measures", "tasks")})
        (held,) = [held for held in store.held()[game] if held.column == column]
        assert json.loads(held.content)["what"] == {"measure": "cdl", "version": 7}
        numbers = store.numbers(game)
        assert np.array_equal(numbers.totals[held], totals)
        assert len(numbers.totals) == 9
        assert numbers.people is not None
    assert len(oc.load(old).cells) == 8


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE totals SET total = total + 1 WHERE played = 1 AND run = 1",
            "numbers of 'forecast hedging' against 'drift",
        ),
        ("DELETE FROM totals WHERE played = 1", "numbers of 'forecast hedging' against 'drift"),
        ("UPDATE totals SET total = 'x' WHERE played = 1", "numbers of"),
        ("UPDATE played SET content = '{' WHERE id = 1", "numbers of"),
        ("UPDATE played SET content = replace(content, '40', '41') WHERE id = 1", "numbers of"),
        ("UPDATE played SET accounts = x'00' WHERE id = 1", "numbers of"),
        ("UPDATE played SET seal = '' WHERE id = 1", "numbers of"),
        ("UPDATE played SET seal = ''", "numbers of"),
        ("DELETE FROM measures WHERE id = 2", "numbers of"),
        ("UPDATE plan SET forecaster = 'me' WHERE place = 2", "the plan"),
        ("UPDATE plan SET horizon = 'far'", "the plan"),
        ("UPDATE promises SET bound = 'high'", "the plan"),
        ("UPDATE meta SET value = '[' WHERE key = 'columns'", "the plan"),
    ],
)
def test_damage_in_it_is_found_and_mended(old, statement, said, monkeypatch):
    of_then(monkeypatch)
    whole = read(old)
    change(old, statement)
    with pytest.raises(StoreError, match=f"something else has changed .*{said}") as raised:
        read(old)
    assert "\n" not in str(raised.value)
    if "seal = ''" in statement and "id" not in statement:
        return  # then nothing fits, as in this format
    with opened(old) as session:
        # Where the content cannot be told, nor can what it was: it is not there.
        assert len(session.remarks) == ("content" not in statement)
        session.play()
        assert equal(session.results(), whole, rel=ELSEWHERE)


@pytest.mark.parametrize("table", ["meta", "plan", "played", "measures", "totals", "promises"])
def test_tables_that_are_missing(old, table):
    change(old, "DROP VIEW curves", f"DROP TABLE {table}")
    before = old.read_bytes()
    for reading in (read, opened):
        with pytest.raises(
            StoreError, match=rf"it is damaged \(no such table: {table}\); --overwrite starts anew"
        ):
            reading(old)
    assert old.read_bytes() == before


@pytest.mark.parametrize("where", ["put", "put_plan", "run"])
def test_a_process_that_is_killed_leaves_it_whole(old, where):
    """In the middle of making it one of this format, with pages in the file already, and before the end."""
    before = read(old)
    code = (
        "import os, sys; from pathlib import Path; from onlinecal.study import store, tables, database\n"
        "def killed(*_, **__): os.kill(os.getpid(), 9)\n"
        "connect = database._connect\n"
        "def small(*a, **k):\n"
        "    found = connect(*a, **k); found.execute('PRAGMA cache_size = 1'); return found\n"
        "database._connect = small\n"
        "insist = database.Database._insist\n"
        "def end(self, statement, patience):\n"
        "    if statement == 'COMMIT' and self.run('PRAGMA user_version').fetchone()[0] == 6:\n"
        "        self.run('PRAGMA cache_spill = 1')\n"
        "        self.run('CREATE TABLE filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT "
        "20000) SELECT i FROM n')\n"
        "        killed()\n"
        "    insist(self, statement, patience)\n"
        "if sys.argv[2] == 'run': database.Database._insist = end\n"
        "else: setattr(tables.Tables, sys.argv[2], killed)\n"
        "store.Store.open(Path(sys.argv[1]), write=True)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, old, where], env=os.environ).returncode == -9
    if where == "run":
        assert old.with_name("a.db-journal").stat().st_size > 0
    assert equal(read(old), before)
    assert format_of(old) == BEFORE


def test_what_is_full_leaves_it_whole(old, monkeypatch):
    before = read(old)
    from onlinecal.study import tables

    put = tables.Tables.put

    def full(self, key, numbers):
        self._db.run(f"PRAGMA max_page_count = {self._db.run('PRAGMA page_count').fetchone()[0]}")
        self._db.run("CREATE TABLE filler AS SELECT zeroblob(10000000)")
        put(self, key, numbers)

    monkeypatch.setattr(tables.Tables, "put", full)
    with pytest.raises(StoreError, match="disk is full"):
        Store.open(old, write=True)
    monkeypatch.undo()
    assert equal(read(old), before)
    assert format_of(old) == BEFORE


def test_its_numbers_are_those_of_today(old, monkeypatch):
    """As long as no version has been raised; then only those that have not."""
    loaded = load(HERE / "format5.toml")
    with Store.open(old) as store:
        there = store.held()
    same = [cell for cell in loaded.cells if cell.key in there]
    before = {(c.forecaster, c.nature): c for c in read(old).cells}
    for cell in same[:2]:
        from onlinecal.study import play_cell

        now, then = play_cell(cell), before[cell.forecaster.label, cell.nature_label]
        for column, held in cell.held.items():
            if held in there[cell.key]:
                assert now.totals[column.name] == pytest.approx(then.totals[column.name], rel=ELSEWHERE)
