"""The steps of a forecaster's grid: stated by it, kept with the plan, unknown in files of versions before."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.study import play_cell
from onlinecal.study.copies import merge
from onlinecal.study.database import FORMAT, format_of
from onlinecal.study.store import Store
from tests.results import F, N, cells, played, read

#: of `cells`: forecast hedging with T^(1/3) and almost one step ahead with √T, at T = 50 and 100
STEPS = {
    ("forecast hedging", 50, 4), ("forecast hedging", 100, 5),
    ("almost one step ahead", 50, 8), ("almost one step ahead", 100, 10),
}  # fmt: skip


@pytest.fixture
def file(tmp_path):
    played(tmp_path / "a.db", cells())
    return tmp_path / "a.db"


@pytest.fixture
def without(file):
    """The same file as a version made it that did not know the steps."""
    with Store.open(file, write=True) as store:
        store.put_plan(store.meta, [cell._replace(steps=None) for cell in store.plan()])
    return file


def steps(study):
    return {(cell.forecaster, cell.horizon, cell.steps) for cell in study.cells}


def test_they_are_what_the_forecaster_states_and_come_back(file, tmp_path):
    kept = read(file)
    assert steps(kept) == STEPS
    assert kept.cells == tuple(play_cell(cell) for cell in cells())
    assert kept.curve("ece", "forecast hedging", "drift").steps.tolist() == [4, 5]
    one_grid = kept.curve("ece", "forecast hedging", "drift", horizon=50)
    assert one_grid.steps is None
    free = played(tmp_path / "b.db", cells(forecasters=(F.EmpiricalMean(),)))[0]
    assert {m for *_, m in steps(free)} == {None}
    with Store.open(tmp_path / "b.db") as store:
        assert "steps" not in store.meta


def test_a_file_of_a_version_before_opens_without_them_and_gets_them_when_it_is_written(without):
    assert format_of(without) == FORMAT
    found = read(without)
    assert {m for *_, m in steps(found)} == {None}
    assert all(curve.steps is None and curve.parity() is None for curve in found.curves())
    again, remarks, new = played(without, cells(), resume=True)
    assert (steps(again), remarks, new) == (STEPS, [], set())


@pytest.mark.parametrize("order", [1, -1])
def test_merged_files_have_those_of_the_file_that_has_them(without, tmp_path, order):
    played(tmp_path / "b.db", cells())
    merge([tmp_path / f"{name}.db" for name in "ab"[::order]], tmp_path / "c.db")
    assert steps(read(tmp_path / "c.db")) == STEPS


@pytest.mark.parametrize("m", [0, 2.5, "8", True, np.nan, 10**7, [4]])
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
