"""Studies of very many cells: what is done once for each player, measure or file is not done for each cell.

What `--resume` takes is bounded in calls and not in seconds, which depend on the machine. On one of 2 cores a study of
10,000 finished cells is opened, found to be finished and shown in 3 s of processor time, of which 1 s are imports.
"""

import sys

import pytest

from onlinecal.core.errors import StoreError
from onlinecal.schedules.base import Clock
from onlinecal.study import panel as panels
from onlinecal.study.database import Database
from onlinecal.study.panel import Panel
from onlinecal.study.promises import promises
from onlinecal.study.store import Store
from tests.results import F, N, cells, change, played, read, session

plans = sys.modules["onlinecal.study.plan"]
#: so many forecasters, and so many natures
MANY = 8


@pytest.fixture(scope="module")
def planned():
    return many()


def many():
    forecasters = [F.ForecastHedging(m) for m in range(2, MANY + 2)]
    return cells(
        (4,), runs=1, forecasters=forecasters, natures=[N.Bernoulli(i / 100) for i in range(1, MANY + 1)]
    )


@pytest.fixture(scope="module")
def finished(planned, tmp_path_factory):
    path = tmp_path_factory.mktemp("finished") / "r.db"
    played(path, planned)
    return path.read_bytes()


@pytest.fixture
def path(finished, tmp_path):
    """A results file in which all of it has been played."""
    (tmp_path / "r.db").write_bytes(finished)
    return tmp_path / "r.db"


def counted(monkeypatch, owner, name):
    """The calls of a function that is left as it is."""
    function, calls = getattr(owner, name), []
    monkeypatch.setattr(owner, name, lambda *a, **k: calls.append(a) or function(*a, **k))
    return calls


def test_bounds_are_found_once_for_each_player_and_column(monkeypatch):
    asked = []
    guarantees = F.ForecastHedging.guarantees.fget
    monkeypatch.setattr(
        F.ForecastHedging, "guarantees", property(lambda self: asked.append(self) or guarantees(self))
    )
    followed = counted(monkeypatch, plans, "following")
    fresh = many()
    found = [promises(cell) for cell in fresh]
    assert len(asked) == MANY
    stated = sum(len(cell.forecaster.guarantees) for cell in fresh[:MANY]) + sum(
        len(cell.nature.guarantees) for cell in fresh[::MANY]
    )
    assert len(followed) <= stated * len(fresh[0].panel.columns) < len(fresh) * len(fresh[0].panel.columns)
    assert any(found)
    # Each is that of its pair, whichever was asked for before.
    assert found == [promises(many()[i]) for i in range(len(fresh))]
    assert len(set(found)) > 1


def test_a_finished_study_is_resumed_without_a_look_at_each_cell_alone(planned, finished, path, monkeypatch):
    plans = counted(monkeypatch, Store, "_read_plan")
    statements = []
    opened = Database.open

    def traced(*a, **k):
        database = opened(*a, **k)
        database._connection.set_trace_callback(statements.append)
        return database

    monkeypatch.setattr(Database, "open", traced)
    with session(path, planned, resume=True) as resumed:
        assert resumed.play() == []
        assert len(resumed.results().cells) == len(planned)
    assert path.read_bytes() == finished
    assert len(plans) == 1
    assert sum(statement.startswith("SELECT") for statement in statements) < 60 < len(planned)


def test_nothing_is_measured_or_drawn_to_see_that_a_study_can_be_played(planned, monkeypatch):
    """Machine code for that takes longer to load than a finished study of some thousand cells to read."""
    monkeypatch.setattr(panels, "measured", lambda *_: pytest.fail("a measure of the catalogue was tried"))
    monkeypatch.setattr(
        Clock, "check", lambda *_: pytest.fail("a clock that is always the same was looked at")
    )
    assert Panel.of(["ece", "cdl"], ["umbrella"]).names[0] == "ece"
    many()


def test_what_was_read_is_read_anew_after_a_change(planned, path):
    with Store.open(path) as store:
        plan, held = store.plan(), store.held()
        plan.clear()  # what was handed out is nobody else's
        held.clear()
        assert len(store.plan()) == len(store.held()) == len(planned)
        change(path, "DELETE FROM games WHERE id = (SELECT min(id) FROM games)")
        assert len(store.held()) == len(planned) - 1
        assert len(store.finished()) == len(planned) - 1


def _half_done(store, key):
    with store.together():
        store.forget([key])
        assert key not in store.held()
        raise StoreError("something of ours")


def test_what_was_taken_back_is_not_taken_for_what_is_there(planned, path):
    with Store.open(path, write=True) as store:
        with pytest.raises(StoreError, match="something of ours"):
            _half_done(store, next(iter(planned)).key)
        assert len(store.held()) == len(planned)


def test_what_cells_depend_on_is_read_once_for_all_of_them(planned, path, monkeypatch):
    study = read(path)
    opened = counted(monkeypatch, Store, "open")
    assert [cell.origin.game for cell in study.cells] == [cell.content for cell in planned]
    assert len(opened) == 1
