"""What is shown of a results file that something else has changed, and how it is mended."""

import sqlite3
import struct

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import StoreError
from tests.results import cells, change, equal, played, read, refused

NUMBERS = "something else has changed or deleted numbers of 'forecast hedging' against 'drift' at T = 50; "
PLAN = "something else has changed the plan; `onlinecal run SCENARIO --resume` writes it anew"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE games SET totals = 'a lot' WHERE id = 1", NUMBERS),
        ("UPDATE games SET totals = zeroblob(length(totals))", NUMBERS),
        ("UPDATE games SET totals = substr(totals, 1, length(totals) - 8)", NUMBERS),
        ("UPDATE games SET totals = totals || x'0000000000000000'", NUMBERS),
        ("UPDATE games SET totals = x''", NUMBERS),
        ("UPDATE games SET held = replace(held, ', 3]', ', 4]')", NUMBERS),
        (
            "UPDATE games SET held = replace(replace(replace(held, '[1,', '[x,'), '[2,', '[1,'), '[x,', '[2,')",
            NUMBERS,
        ),
        ("UPDATE games SET times = '[49]'", NUMBERS),
        ("DELETE FROM columns WHERE id = 2", PLAN),
        ("UPDATE columns SET name = 'x' || name", PLAN),
        ("""UPDATE columns SET "column" = '{"kind": "function"}' WHERE id = 2""", PLAN),
        (
            """UPDATE columns SET "column" = replace("column", ': "measure"', ': "function"') WHERE id = 1""",
            PLAN,
        ),
        ("UPDATE columns SET content = replace(content, '1', '2') WHERE id = 1", PLAN),
        ("UPDATE columns SET key = 'x' WHERE id = 1", PLAN),
        ("UPDATE games SET seconds = 'long'", NUMBERS),
        ("UPDATE games SET loop = 'event'", NUMBERS),
        ("UPDATE games SET content = '{'", NUMBERS),
        ("UPDATE games SET seal = ''", NUMBERS),
        ("UPDATE panels SET columns = replace(columns, '1, 2', '2, 1')", PLAN),
        ("UPDATE panels SET columns = '['", PLAN),
        ("DELETE FROM panels", PLAN),
        ("UPDATE plan SET forecaster = 'me' WHERE place = 2", PLAN),
        ("UPDATE plan SET horizon = 'far'", PLAN),
        ("UPDATE plan SET runs = 1", PLAN),
        ("UPDATE plan SET recorded = 1 - recorded WHERE place = 2", PLAN),
        ("UPDATE plan SET key = (SELECT key FROM plan WHERE place = 5) WHERE place = 4", PLAN),
        ("DELETE FROM plan WHERE place = 3", PLAN),
        ("DELETE FROM plan", PLAN),
        ("DELETE FROM guarantees WHERE measure = 'ece'", PLAN),
        ("UPDATE guarantees SET formula = '0'", PLAN),
        ("DELETE FROM bounds WHERE place = 0", PLAN),
        ("UPDATE bounds SET bound = 'high'", PLAN),
        ("DELETE FROM meta", PLAN),
        ("UPDATE meta SET value = '[' WHERE key = 'title'", PLAN),
    ],
)
def test_what_was_changed_by_hand_is_not_shown_and_mended_by_resume(results, whole, statement, said):
    change(results, statement)
    with pytest.raises(StoreError) as raised:
        read(results)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    kept, remarks, _ = played(results, cells(), resume=True)
    assert equal(kept, whole)
    # What a column is of, stands in the plan and in the seals of games.
    assert len(remarks) == 1 + (" columns " in statement and "panels" not in statement)
    assert equal(read(results), whole)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE games SET held = replace(held, ', 3]', ', 2]')",
        "UPDATE games SET held = replace(held, ', 3]', ', \"many\"]')",
        "UPDATE games SET held = '['",
        "UPDATE games SET key = 'x' || key WHERE id = 3",
        "DELETE FROM games WHERE id = 3",
    ],
)
def test_a_cell_of_which_nothing_is_known_is_one_that_was_not_played(results, whole, statement):
    change(results, statement)
    assert shown_as_put_there(read(results), whole) < 8
    assert equal(played(results, cells(), resume=True)[0], whole)


@pytest.mark.parametrize(
    "table", ["meta", "plan", "panels", "games", "guarantees", "bounds", "columns", "gammas"]
)
def test_a_table_that_is_missing_or_has_other_columns(results, whole, table):
    original = results.read_bytes()
    column = {
        "meta": "value",
        "plan": "key",
        "panels": "columns",
        "bounds": "bound",
        "guarantees": "text",
    }.get(table, "seal")
    column = "name" if table == "columns" else column
    for statement, said in (
        (f"DROP TABLE {table}", rf"it is damaged \(no such table: {table}\); --overwrite starts anew"),
        (
            f"ALTER TABLE {table} RENAME COLUMN {column} TO other",
            r"it is damaged \(no such column: .*\); --overwrite",
        ),
    ):
        results.write_bytes(original)
        change(results, statement)
        with pytest.raises(StoreError, match=said):
            read(results).cells[0].gamma(-1, 0)
        refused(
            results,
            rf"something else has (deleted|changed) its table {table}; --overwrite starts anew",
            resume=True,
        )
        assert equal(played(results, cells(), overwrite=True)[0], whole)


@pytest.mark.parametrize(
    ("table", "changed"),
    [
        ("games", "totals = NULL"),
        ("games", "held = NULL WHERE id = 1"),
        ("games", "totals = 'text'"),
        ("games", "held = x'00ff'"),
        ("games", "content = NULL"),
        ("games", "key = NULL WHERE id = 1"),
        ("plan", "runs = NULL"),
        ("plan", "key = NULL"),
        ("plan", "recorded = NULL"),
        ("bounds", "bound = NULL"),
        ("guarantees", "upper = NULL"),
        ("panels", "columns = NULL"),
        ("columns", "name = NULL WHERE id = 1"),
        ("columns", "content = x'fffe' WHERE id = 1"),
        ("meta", "value = NULL"),
        ("meta", "value = x'fffe'"),
    ],
)
def test_nulls_and_bytes_in_tables_that_take_anything(results, whole, table, changed):
    change(
        results,
        f"CREATE TABLE loose AS SELECT * FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE loose RENAME TO {table}",
        f"UPDATE {table} SET {changed}",
    )
    assert shown_as_put_there(told(results), whole) < 8
    refused(results, f"something else has changed its table {table}; --overwrite starts anew", resume=True)
    assert equal(played(results, cells(), overwrite=True)[0], whole)


@pytest.mark.parametrize("size", [10, 71, 72, 100, 600, 4096, 20000, -4096])
def test_a_file_that_was_cut_short(results, whole, size):
    results.write_bytes(results.read_bytes()[:size])
    with pytest.raises(StoreError, match=r"damaged|not a results file|something else has changed"):
        read(results)
    refused(results, r"damaged|not a results file", resume=True)
    if size in (10, 71):
        refused(results, "is not a results file of onlinecal", overwrite=True)
    else:
        assert equal(played(results, cells(), overwrite=True)[0], whole)


def shown_as_put_there(found, original):
    """How many cells are shown, each with the numbers that it had."""
    kept = {(c.forecaster, c.nature, c.horizon): c for c in original.cells}
    for cell in found.cells:
        of_old = kept.pop((cell.forecaster, cell.nature, cell.horizon))
        assert all((cell.totals[m] == of_old.totals[m]).all() for m in of_old.totals)
    return len(found.cells)


def told(path):
    """What is shown of a file; nothing where it says in one line why not."""
    try:
        return read(path)
    except StoreError as error:
        lines = str(error).splitlines()
    assert len(lines) == 1
    return oc.Study(())


def test_a_schema_that_is_no_text_any_more(results, whole):
    """SQLite quotes it in its message, which Python then cannot read."""
    original = results.read_bytes()
    assert original.count(b"CREATE TABLE games") == 1
    results.write_bytes(original.replace(b"CREATE TABLE games", b"CREATE TABLE\xf2games"))
    with pytest.raises(StoreError, match=r"it is damaged .*; --overwrite starts anew"):
        read(results)
    refused(results, r"it is damaged .*; --overwrite starts anew", resume=True)
    assert equal(played(results, cells(), overwrite=True)[0], whole)


def test_an_index_that_says_something_else(results, whole):
    with sqlite3.connect(results) as db:
        where = "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_games_1'"
        ((page,), (size,)) = (db.execute(what).fetchone() for what in (where, "PRAGMA page_size"))
    data = bytearray(results.read_bytes())
    key = cells()[0].key.encode()
    first = data.index(key, (page - 1) * size, page * size)
    data[first : first + 4] = b"SWAP"
    results.write_bytes(data)
    refused(results, r"it is damaged .*; --overwrite starts anew", resume=True)
    assert equal(played(results, cells(), overwrite=True)[0], whole)


def test_noise_in_a_file_is_never_shown(results, whole, seed):
    """Whatever bytes are changed: the numbers that were put there, or one line that says that they are not."""
    rng = np.random.default_rng(seed)
    original = results.read_bytes()

    def shown(first, noise):
        data = bytearray(original)
        data[first : first + len(noise)] = noise[: len(data) - first]
        results.write_bytes(data)
        for path in results.parent.glob("a.db-*"):
            path.unlink()
        return shown_as_put_there(told(results), whole)

    for _ in range(60):
        shown(int(rng.integers(0, len(original))), rng.bytes(int(rng.choice([1, 16, 4096]))))
    # Both ends are reached: bytes that SQLite reserves and nobody reads, and those of a number.
    assert shown(72, b"\xff" * 20) == 8
    number = struct.pack("<d", whole.cells[0].totals["ece"][0, 0])
    assert number in original
    assert shown(original.index(number), b"\x3f") == 0
