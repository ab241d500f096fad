"""The accounts of decision makers in a results file: what was changed there is not shown, whoever compressed it."""

import json
import sqlite3
import zlib

import numpy as np
import pytest

from onlinecal.core.errors import StoreError
from onlinecal.decision_makers.tenures import People
from onlinecal.forecasters import EmpiricalMean
from onlinecal.natures import Drift
from onlinecal.study.entries import packed, unpacked
from onlinecal.study.panel import Panel
from onlinecal.study.plan import Entry, plan
from onlinecal.study.session import Session
from onlinecal.study.store import Store
from tests.results import read


@pytest.fixture
def file(tmp_path):
    people = People.of([{"task": "umbrella", "join": 3}, {"task": "random", "leave": 9}], 1)
    cells = plan(
        [Entry.of(EmpiricalMean())], [Entry.of(Drift())], horizons=[20], runs=2, seed=1, panel=Panel.of(["ece"]),
        people=people,
    )  # fmt: skip
    path = tmp_path / "a.db"
    meta = {"name": "a", "title": "", "scenario": ""}
    with Session.open(cells, meta, path) as session:
        session.play()
    return path


def held(path):
    with sqlite3.connect(path) as database:
        return database.execute("SELECT people, accounts FROM games").fetchone()


def put(path, **values):
    with sqlite3.connect(path) as database:
        for name, value in values.items():
            database.execute(f"UPDATE games SET {name} = ?", (value,))


def test_other_compression_is_the_same(file, monkeypatch):
    """Not every zlib makes the same bytes of the same numbers, neither that of who wrote the file nor of who reads."""
    whole, compress = read(file), zlib.compress
    monkeypatch.setattr(zlib, "compress", lambda numbers: compress(numbers, 0))
    assert read(file).cells == whole.cells
    monkeypatch.undo()
    said, numbers = held(file)
    other = numbers[:24] + zlib.compress(zlib.decompress(numbers[24:]), 0)
    assert other != numbers
    put(file, accounts=other)
    again = read(file)
    assert again.cells == whole.cells
    assert again.cells[0].people == whole.cells[0].people
    assert packed(unpacked(said, other))[0] == said


DEEP = "[" * 200_000


@pytest.mark.parametrize(
    "change",
    [
        lambda who, held: {"accounts": b""},
        lambda who, held: {"accounts": held[:24] + b"junk"},
        lambda who, held: {"accounts": np.array([10**15] * 3, "<i8").tobytes() + held[24:]},
        lambda who, held: {"accounts": held[:24] + zlib.compress(zlib.decompress(held[24:])[:-8] + bytes(8))},
        lambda who, held: {"accounts": "text"},
        lambda who, held: {"accounts": 5},
        lambda who, held: {"people": ""},
        lambda who, held: {"people": "[]"},
        lambda who, held: {"people": DEEP},
        lambda who, held: {"people": json.dumps({**who, "join": ["early", "late"]})},
        lambda who, held: {"people": json.dumps({**who, "entries": [[1]] * 5})},
        lambda who, held: {
            "people": json.dumps({**who, "entries": []}),
            "accounts": np.array([1, 2, 2], "<i8").tobytes() + zlib.compress(bytes(32)),
        },
        lambda who, held: {"open": DEEP},
    ],
)
def test_what_was_changed_is_not_shown(file, change):
    said, numbers = held(file)
    put(file, **change(json.loads(said), numbers))
    with pytest.raises(StoreError, match="something else has changed or deleted numbers"):
        read(file)
    with Store.open(file) as store:
        assert len(store.damaged()) == 1


def test_a_column_that_is_too_deep_is_none(file):
    with sqlite3.connect(file) as database:
        database.execute('UPDATE columns SET "column" = ?', (DEEP,))
    with pytest.raises(StoreError, match="something else has changed the plan"):
        read(file)
    with Store.open(file) as store:
        assert len(store.damaged()) == 1
