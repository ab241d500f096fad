"""The results file: what is kept, under what, and what is played again."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import Column, Held
from onlinecal.core.errors import StoreError
from onlinecal.core.guarantee import Guarantee, Sight
from onlinecal.decisions import tasks as decisions
from onlinecal.decisions.people import People
from onlinecal.engine import game
from onlinecal.schedules import Constant, Schedule
from onlinecal.study import play_batch
from onlinecal.study.outlook import outlook
from onlinecal.study.panel import Panel
from onlinecal.study.status import Status
from onlinecal.study.store import Store
from tests.results import F, N, cells, equal, played, read, refused, resumed, session, study

CHANGED = "as the scenario or what it names has changed"
LEFT = "not shown any more, as the scenario has them no longer: 4 finished cells"


def interrupted(path, planned, monkeypatch, count, **options):
    """Plays `count` cells."""
    done = []

    def stop(cell, *args, **kwargs):
        if len(done) == count:
            raise KeyboardInterrupt
        done.append(cell)
        return play_batch(cell, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr("onlinecal.study.executors.play_batch", stop)
        with session(path, planned, **options) as opened, pytest.raises(KeyboardInterrupt):
            opened.play()


# ---------------------------------------------------------------- keeping and going on


def test_what_is_stored_comes_back(tmp_path):
    path, planned = tmp_path / "r" / "a.db", cells()
    kept, remarks, _ = played(path, planned)
    assert equal(kept, study(planned))
    assert equal(read(path), kept)
    assert remarks == []
    with Store.open(path) as store:
        assert store.meta["title"] == "A test"
        assert store.content(planned[0].key) == planned[0].content
    assert [cell.origin.game for cell in read(path).cells] == [cell.content for cell in planned]
    assert planned[0].content["forecaster"]["class"] == "ForecastHedging"
    assert sorted(file.name for file in path.parent.iterdir()) == [".a.db.lock", "a.db"]


def test_every_number_comes_back(results):
    values = [0.0, -0.0, 0.1, 5e-324, 1.7e308, -1.7e308, np.inf, -np.inf, 2.0**53 + 1, -(2.0**63)]
    planned = cells(runs=len(values))[0]
    held = [Held.of(Column("measure", "ece"), {}), Held.of(Column("function", "é × [1]"), {})]
    totals = {held[0]: np.array([values]), held[1]: np.array([values[::-1]])}
    odd = play_batch(planned, range(len(values)))._replace(totals=totals)
    with Store.open(results, write=True) as store:
        store.forget([planned.key])
        store.add(planned.key, {}, odd)
        (own,) = [p for p in store.plan() if p.key == planned.key]
        store.put_plan(store.meta, [own._replace(runs=10, columns=tuple(store.held()[planned.key]))])
    back = read(results).cells[0].totals
    assert {name: found.tobytes() for name, found in back.items()} == {
        h.column.name: found.tobytes() for h, found in totals.items()
    }


def test_an_existing_file_is_neither_lost_nor_mixed(results):
    for planned, options, said in (
        (cells(), {}, "exists; --resume goes on with it"),
        (cells(seed=2), {"resume": True}, r"that is in it fits the scenario any more \(seed\); --over"),
        (cells(), {"resume": True, "overwrite": True}, r"--resume keeps .* --overwrite destroys"),
    ):
        refused(results, said, planned, **options)
    with session(results, cells(seed=2), overwrite=True) as opened:
        assert opened.store.finished() == []
    assert read(results).cells == ()
    with pytest.raises(
        StoreError, match="no finished cells yet; go on with: onlinecal run SCENARIO --output"
    ):
        oc.load(results)


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}])
def test_no_file_and_an_empty_one_are_begun(tmp_path, options):
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreError, match="is empty or another database, not a results file"):
        Store.open(tmp_path / "empty.db").__enter__()
    planned = cells(horizons=[10], runs=1)
    for name in ("none.db", "empty.db"):
        assert equal(played(tmp_path / name, planned, **options)[0], study(planned))


# ---------------------------------------------------------------- labels and order


def test_the_same_forecaster_under_two_labels_is_played_once_and_shown_twice(tmp_path, monkeypatch):
    path, half = tmp_path / "a.db", F.Constant(0.5)
    planned = cells(forecasters=[(half, "half"), (half, "also half"), (F.Constant(0.4), "less")])
    interrupted(path, planned, monkeypatch, 1)
    assert [c.forecaster for c in read(path).cells] == ["half", "also half"]
    with Store.open(path) as store:
        left = outlook(planned, store.runs()).run_rounds
    assert left == Status.of(path).run_rounds_left == (2 * 2 * (50 + 100) - 50) * 3
    assert len(resumed(path, planned)[1]) == 7
    assert len({cell.key for cell in planned}) == 8
    kept = read(path)
    one, other = (kept.curve("ece", label, "drift").totals for label in ("half", "also half"))
    assert (one == other).all()


def test_labels_order_and_columns_are_the_plans(results):
    hedging, steps, original = F.ForecastHedging(), F.AlmostOneStepAhead(), results.read_bytes()
    for planned, said in (
        (cells(forecasters=[(steps, "steps"), (hedging, "hedging")]), []),
        # Two that exchange their labels exchange their curves.
        (cells(forecasters=[(steps, "forecast hedging"), (hedging, "almost one step ahead")]), []),
        (cells(panel=Panel.of([{"name": "binned_ece", "bins": 4}, "ece"], ["umbrella"])), []),
        # A label goes over to a forecaster that has been played under another: nothing is played.
        (cells(forecasters=[(steps, "forecast hedging"), (steps, "almost one step ahead")]), [LEFT]),
        (cells(forecasters=[hedging]), [LEFT]),
    ):
        results.write_bytes(original)
        assert resumed(results, planned) == (said, set())


# ---------------------------------------------------------------- what no longer fits


def test_keys_know_everything_that_changes_the_numbers(monkeypatch):
    def only(**changed):
        options = {"horizons": [100], "forecasters": [F.Constant()], "natures": [N.Drift()]} | changed
        cell = cells(**options)[0]
        return cell.key, *(held.key for held in cell.held.values())

    base, four = only(), {"name": "binned_ece", "bins": 4}
    tasks = {"name": "umbrella", "cost": 0.4}, oc.tasks.DecisionTask("umbrella", [[1, 0]])
    tasks = *tasks, {"name": "umbrella", "response": "noisy"}
    others = [
        only(horizons=[101]), only(horizons=[100, 200]), only(seed=2), only(forecasters=[F.Constant(0.4)]),
        only(natures=[N.Drift(0.1)]), only(panel=Panel.of(["ece"])),
        only(panel=Panel.of(["ece", {"name": "binned_ece", "bins": 5}], ["umbrella"])),
        *(only(panel=Panel.of(["ece", four], [task])) for task in tasks),
        *(only(schedules=[late]) for late in (Schedule(delays=Constant(2)), Schedule(delays=Constant(3)))),
        *(only(people=People.of([{"task": "umbrella", "join": join}], 1)) for join in (50, 51)),
    ]  # fmt: skip
    assert len({base, *others}) == 1 + len(others)
    # The key of the game does not hold what is measured.
    assert [other[0] == base[0] for other in others] == [False] * 5 + [True] * 5 + [False] * 4
    assert only(forecasters=[(F.Constant(), "mine")]) == base
    assert only(runs=4) == base
    world = only(natures=[oc.worlds.Queue()])
    monkeypatch.setattr(sys.modules["onlinecal.study.planning"], "WORLDS_VERSION", 99)
    assert only(natures=[oc.worlds.Queue()])[0] != world[0]
    assert only() == base
    ece = replace(oc.measures.MEASURES["ece"], version=2)
    for change in (
        lambda patch: patch.setattr(sys.modules["onlinecal.study.planning"], "VERSION", 2),
        lambda patch: patch.setattr(F.Constant, "version", 2),
        lambda patch: patch.setattr(N.Drift, "version", 2),
        lambda patch: patch.setattr(decisions.DecisionTask, "version", 2),
        lambda patch: patch.setitem(oc.measures.MEASURES, "ece", ece),
    ):
        with monkeypatch.context() as patch:
            change(patch)
            assert only(panel=Panel.of(["ece", four], ["umbrella"])) != base


def test_only_what_changed_is_played_anew_and_comes_back_when_that_is_undone(results, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(F.AlmostOneStepAhead, "version", 2, raising=False)
        interrupted(results, cells(), monkeypatch, 1, resume=True)
        assert len(read(results).cells) == 5
        new = {cell.key for cell in cells()}
    # The change is undone before all has been played. Nothing was lost, and what was new in between is not shown.
    (said, *_), again = resumed(results, cells())
    assert (said.endswith(": 1 finished cell"), again) == (True, set())
    with Store.open(results) as store:
        assert store.runs().keys().isdisjoint(new - {cell.key for cell in cells()})
    monkeypatch.setattr(F.AlmostOneStepAhead, "version", 2, raising=False)
    (said,), new = resumed(results, cells())
    assert said == f"played again, {CHANGED} (forecaster: version): 4 finished cells"
    assert len(new) == 4
    with Store.open(results) as store:
        assert store.runs().keys() == {cell.key for cell in cells()}


class Broken:
    def forecast(self):
        raise ValueError("boom")

    def update(self, forecast, outcome): ...


def test_what_no_longer_fits_stays_while_something_fails(results):
    with session(
        results, cells(forecasters=[F.ForecastHedging(), F.as_forecaster(Broken)]), resume=True
    ) as opened:
        assert len(opened.play()) == 4
    assert resumed(results, cells()) == ([], set())


# ---------------------------------------------------------------- what players say of themselves


def test_recorded_outcomes_the_steps_of_grids_and_loops_are_in_the_file(tmp_path, monkeypatch):
    file = tmp_path / "rows.csv"
    file.write_text("outcome\n" + "1\n0\n1\n" * 100)
    replay = N.Replay(str(file))
    natures = [N.Drift(), replay, N.Switch(N.Drift(), replay, 50)]
    who = [F.ForecastHedging(), F.EmpiricalMean()]
    first, *_ = played(tmp_path / "a.db", cells(forecasters=who[:1], natures=natures))
    assert {cell.loop for cell in first.cells} == {"compiled"}

    class InPython(game.Game):
        def __init__(self, *players, **options):
            super().__init__(*players, **options)
            self.in_python, self.compiled = True, False

    monkeypatch.setattr("onlinecal.study.run.Game", InPython)
    found, *_ = played(tmp_path / "a.db", cells(runs=4, forecasters=who, natures=natures), resume=True)
    loops = {"forecast hedging": "both", "empirical mean": "python"}
    assert all(cell.loop == loops[cell.forecaster] for cell in found.cells)
    assert [c.recorded for c in found.cells if c.horizon == 50] == [False, False, *[True] * 4]
    assert {(c.forecaster, c.horizon, c.steps) for c in found.cells} == {
        ("forecast hedging", 50, 4), ("forecast hedging", 100, 6), ("empirical mean", 50, None),
        ("empirical mean", 100, None),
    }  # fmt: skip
    both, alone = (found.curve("ece", "forecast hedging", "drift", horizon=t) for t in (None, 100))
    assert (both.fresh, both.recorded, alone.fresh) == (True, False, False)
    assert found.curve("ece", "forecast hedging", found.natures[1]).recorded


def test_certificates_steps_and_bounds_that_are_none_are_refused(monkeypatch):
    nan = Guarantee("ece", "x", lambda t: float("nan"), "rate", Sight.DRAW, "nowhere")
    for owner, name, new, said in (
        *((game.Game, "certificates", lambda self, v=v: v, "certifies ") for v in (
            {"ece": [0.0] * 3}, {"mine": [0.0, 0.0]}, {"mine": [0.0, np.nan, 0.0]}, {"mine": ["a", "b", "c"]},
        )),
        *((F.Constant, "steps_at", lambda self, horizon, m=m: m, "steps_at") for m in (0, 2.5, True, 10**7, [4])),
        (F.Constant, "guarantees", (nan,), "is NaN at T = 50"),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, new)
            with pytest.raises(oc.OnlinecalError, match=said):
                oc.play(F.Constant(), N.Drift(), horizon=[50], runs=3)
