"""The steps of a forecaster's grid: stated by it, kept with the plan, unknown in files of versions before."""

import json
import sqlite3

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, StoreError
from onlinecal.study import play_cell
from onlinecal.study.copies import merge
from onlinecal.study.database import FORMAT, format_of
from onlinecal.study.store import Store
from tests.results import F, N, cells, change, played, read

#: of `cells`, sorted: forecast hedging with T^(1/3) and almost one step ahead with √T, at T = 50 and 100
STEPS = [4, 4, 5, 5, 8, 8, 10, 10]


def without(path):
    """The same file as a version made it that did not know the steps."""
    with Store.open(path, write=True) as store:
        store.put_plan(store.meta, [cell._replace(steps=None) for cell in store.plan()])


def told(path):
    with sqlite3.connect(path) as db:
        found = db.execute("SELECT value FROM meta WHERE key = 'steps'").fetchall()
    db.close()
    return found


def test_they_are_what_the_forecaster_states_and_come_back(tmp_path):
    planned = cells()
    kept, _, _ = played(tmp_path / "a.db", planned)
    assert {(cell.forecaster, cell.horizon, cell.steps) for cell in kept.cells} == {
        ("forecast hedging", 50, 4), ("forecast hedging", 100, 5),
        ("almost one step ahead", 50, 8), ("almost one step ahead", 100, 10),
    }  # fmt: skip
    assert kept.cells == tuple(play_cell(cell) for cell in planned)
    assert kept.curve("ece", "forecast hedging", "drift").steps.tolist() == [4, 5]
    assert (
        kept.curve("ece", "forecast hedging", "drift", horizon=50).steps is None
    )  # one grid for all of its rounds
    ((text,),) = told(tmp_path / "a.db")
    assert json.loads(text) == [cell.steps for cell in kept.cells]


def test_a_file_of_a_version_before_opens_without_them_and_gets_them_when_it_is_written(tmp_path):
    path = tmp_path / "a.db"
    kept, _, _ = played(path, cells())
    without(path)
    assert (format_of(path), told(path)) == (FORMAT, [])
    found = read(path)
    assert {cell.steps for cell in found.cells} == {None}
    assert all(curve.steps is None and curve.parity() is None for curve in found.curves())
    again, remarks, new = played(path, cells(), resume=True)
    assert (again.cells, remarks, new) == (kept.cells, [], set())


def test_a_plan_that_is_there_is_known_by_its_steps_too(tmp_path):
    path = tmp_path / "a.db"
    played(path, cells())
    with Store.open(path, write=True) as store:
        meta = {key: value for key, value in store.meta.items() if key not in ("seal", "steps")}
        plan = store.plan()
        assert store.has_plan(meta, plan)
        assert not store.has_plan(meta, [plan[0]._replace(steps=7), *plan[1:]])
    without(path)
    with Store.open(path) as store:
        assert not store.has_plan(meta, plan)


@pytest.mark.parametrize("order", [1, -1])
def test_merged_files_have_those_of_the_file_that_has_them(tmp_path, order):
    for name in "ab":
        played(tmp_path / f"{name}.db", cells())
    without(tmp_path / "a.db")
    merge([tmp_path / f"{name}.db" for name in "ab"[::order]], tmp_path / "c.db")
    assert sorted(cell.steps for cell in read(tmp_path / "c.db").cells) == STEPS


def test_a_study_of_forecasters_without_a_grid_says_nothing(tmp_path):
    played(tmp_path / "a.db", cells(forecasters=(F.EmpiricalMean(),)))
    assert told(tmp_path / "a.db") == []


@pytest.mark.parametrize("text", ["[4]", "7", "soup", "[4, 5, 4, 5, 8, 10, 8, 11]"])
def test_what_something_else_has_changed_is_refused(tmp_path, text):
    played(tmp_path / "a.db", cells())
    change(tmp_path / "a.db", f"UPDATE meta SET value = '{text}' WHERE key = 'steps'")
    with pytest.raises(StoreError, match="something else has changed the plan"):
        read(tmp_path / "a.db")


@pytest.mark.parametrize("m", [0, -3, 2.5, "8", True, np.nan, 10**7, [4]])
def test_steps_that_are_none_are_refused(m):
    class Odd(F.EmpiricalMean):
        def steps_at(self, horizon):
            return m

    with pytest.raises(
        InvalidParameter, match=r"steps_at\(9\) = .*; expected None, or an integer from 1 to 10\^6"
    ):
        oc.play(Odd(), N.Drift(), horizon=9, runs=1, measures=["ece"])


def test_whole_numbers_of_numpy_are_steps():
    class Coarse(F.LastOutcome):
        def steps_at(self, horizon):
            return np.int32(2)

    (cell,) = oc.play(Coarse(), N.Drift(), horizon=9, runs=1, measures=["ece"]).cells
    assert (cell.steps, type(cell.steps)) == (2, int)
