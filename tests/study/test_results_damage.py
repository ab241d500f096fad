"""Results files that are damaged: what has another checksum is not shown, and is mended by --resume or --overwrite."""

import sqlite3
import struct
import zlib

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
        ("UPDATE games SET totals = zeroblob(length(totals))", NUMBERS),
        ("UPDATE games SET totals = substr(totals, 1, length(totals) - 8)", NUMBERS),
        ("UPDATE games SET held = replace(held, ', 3]', ', 4]')", NUMBERS),
        ("UPDATE games SET times = '[49]'", NUMBERS),
        ("UPDATE games SET content = '{'", NUMBERS),
        ("UPDATE columns SET content = replace(content, '1', '2') WHERE id = 1", PLAN),
        ("DELETE FROM columns WHERE id = 2", PLAN),
        ("UPDATE panels SET columns = '['", PLAN),
        ("UPDATE plan SET forecaster = 'me' WHERE place = 2", PLAN),
        ("DELETE FROM plan WHERE place = 3", PLAN),
        ("UPDATE guarantees SET formula = '0'", PLAN),
        ("DELETE FROM bounds WHERE place = 0", PLAN),
        ("UPDATE meta SET value = '[' WHERE key = 'title'", PLAN),
    ],
)
def test_changed_rows_are_not_shown_and_mended_by_resume(results, whole, statement, said):
    change(results, statement)
    with pytest.raises(StoreError) as raised:
        read(results)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    kept, remarks, _ = played(results, cells(), resume=True)
    assert equal(kept, whole)
    # What a column is of, stands in the plan and in the checksums of games.
    assert len(remarks) == 1 + (" columns " in statement and "panels" not in statement)
    assert equal(read(results), whole)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE games SET held = '['",
        "UPDATE games SET key = 'x' || key WHERE id = 3",
        "DELETE FROM games WHERE id = 3",
    ],
)
def test_a_cell_of_which_nothing_is_known_is_one_that_was_not_played(results, whole, statement):
    change(results, statement)
    assert shown_as_put_there(read(results), whole) < 8
    assert equal(played(results, cells(), resume=True)[0], whole)


@pytest.mark.parametrize("size", [10, 72, 600, 20000, -4096])
def test_a_file_that_was_cut_short(results, whole, size):
    results.write_bytes(results.read_bytes()[:size])
    with pytest.raises(StoreError, match=r"damaged|not a results file|something else has changed"):
        read(results)
    refused(results, r"damaged|not a results file", resume=True)
    if size == 10:
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
    """The study that is shown of a file; an empty one where a line says why not."""
    try:
        return read(path)
    except StoreError as error:
        said = str(error)
    assert "\n" not in said
    return oc.Study(())


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


@pytest.mark.parametrize("damaged", [schema_that_is_no_text, index_that_says_something_else])
def test_a_damaged_database_is_refused_and_replaced(results, whole, damaged):
    results.write_bytes(damaged(results))
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

    for _ in range(40):
        shown(int(rng.integers(0, len(original))), rng.bytes(int(rng.choice([1, 16, 4096]))))
    # Both ends are reached: bytes that SQLite reserves and nobody reads, and those of a number.
    assert shown(72, b"\xff" * 20) == 8
    number = struct.pack("<d", whole.cells[0].totals["ece"][0, 0])
    assert number in original
    assert shown(original.index(number), b"\x3f") == 0


# ---------------------------------------------------------------- the accounts of decision makers


@pytest.fixture
def people(tmp_path):
    made = oc.play(
        "empirical_mean", "drift", horizon=20, runs=2, measures=["ece"],
        decision_makers=[{"task": "umbrella", "join": 3}, {"task": "random", "leave": 9}],
    )  # fmt: skip
    made.save(tmp_path / "a.db")
    return tmp_path / "a.db"


def with_accounts(path, change):
    with sqlite3.connect(path) as db:
        (held,) = db.execute("SELECT accounts FROM games").fetchone()
        db.execute("UPDATE games SET accounts = ?", (change(held),))


def test_accounts_in_another_compression_are_the_same(people):
    """Not every zlib makes the same bytes of the same numbers."""
    whole = read(people)
    with_accounts(people, lambda held: held[:24] + zlib.compress(zlib.decompress(held[24:]), 0))
    assert read(people).cells == whole.cells


@pytest.mark.parametrize(
    "change",
    [
        lambda held: b"",
        lambda held: held[:24] + b"junk",
        lambda held: np.array([10**15] * 3, "<i8").tobytes() + held[24:],
        lambda held: held[:24] + zlib.compress(zlib.decompress(held[24:])[:-8] + bytes(8)),
    ],
)
def test_accounts_that_were_changed_are_not_shown(people, change):
    with_accounts(people, change)
    with pytest.raises(StoreError, match="something else has changed or deleted numbers"):
        read(people)
