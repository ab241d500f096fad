"""The results file: what is kept, under what, and what is played anew."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidForecast, InvalidParameter, StoreError
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.sight import Sight
from onlinecal.decisions import base as decisions
from onlinecal.engine import game
from onlinecal.natures.base import as_nature
from onlinecal.study import play_batch, play_cell
from onlinecal.study.panel import Panel
from onlinecal.study.store import Store
from tests.results import cells, equal, played, read, session, study

F, N = oc.forecasters, oc.natures


def interrupt_after(monkeypatch, count):
    done = []

    def stop(cell, *args, **kwargs):
        if len(done) == count:
            raise KeyboardInterrupt
        done.append(cell)
        return play_batch(cell, *args, **kwargs)

    monkeypatch.setattr("onlinecal.study.executors.base.play_batch", stop)


# ---------------------------------------------------------------- keeping and going on


def test_what_is_stored_comes_back(tmp_path):
    path, planned = tmp_path / "r" / "a.db", cells()
    kept, remarks, _ = played(path, planned)
    assert equal(kept, study(planned))
    assert equal(read(path), kept)
    assert remarks == []
    with Store.open(path) as store:
        assert store.meta["title"] == "A test"
        assert [cell.forecaster for cell in store.plan()][::2] == [
            "forecast hedging",
            "almost one step ahead",
        ] * 2
        contents = store.contents([planned[0].key])
    assert contents == {planned[0].key: planned[0].content}
    assert contents[planned[0].key]["forecaster"]["class"] == "ForecastHedging"
    assert sorted(file.name for file in path.parent.iterdir()) == [".a.db.lock", "a.db"]


class Coin:
    def probability(self):
        return 0.5


def test_which_loop_played_is_kept_and_changes_nothing(tmp_path, monkeypatch):
    several = as_nature(Coin)  # which has no steps
    path = tmp_path / "a.db"
    planned = cells(horizons=(50,), runs=2, forecasters=[F.ForecastHedging()], natures=(N.Drift(), several))
    assert [play_cell(cell).loop for cell in planned] == ["compiled", "python"]
    kept, _, _ = played(path, planned)
    assert [cell.loop for cell in kept.cells] == ["compiled", "python"]
    # Runs that are added by the other loop; the file says so, and the numbers are those of one alone.
    monkeypatch.setattr("onlinecal.engine.game.made_of_steps", lambda player: False)
    more = cells(horizons=(50,), runs=3, forecasters=[F.ForecastHedging()], natures=(N.Drift(), several))
    both, _, _ = played(path, more, resume=True)
    monkeypatch.undo()
    assert [cell.loop for cell in both.cells] == ["both", "python"]
    alone = study(more)
    assert [cell.loop for cell in alone.cells] == ["compiled", "python"]
    assert both.cells == alone.cells


def test_recorded_outcomes_are_marked_in_the_file_and_in_what_is_made_of_them(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("outcome\n" + "1\n0\n1\n" * 100)
    replay = N.Replay(str(file))
    assert not N.Drift().recorded
    assert replay.recorded
    assert N.Switch(N.Drift(), replay, 50).recorded
    assert N.Mixture((N.Drift(), replay)).recorded
    assert not N.Mixture((N.Drift(), N.Bernoulli())).recorded
    planned = cells(horizons=[100, 200], forecasters=[F.Constant()], natures=[replay, N.Drift()])
    assert equal(played(tmp_path / "a.db", planned)[0], study(planned))
    found = read(tmp_path / "a.db")
    assert [cell.recorded for cell in found.cells] == [True, True, False, False]
    curves = {curve.nature: curve for curve in found.curves(["ece"])}
    assert [(c.fresh, c.recorded) for c in curves.values()] == [(True, True), (True, False)]
    alone = found.curve("ece", nature="drift", horizon=200)
    assert (alone.fresh, alone.recorded) == (False, False)


def test_every_number_comes_back(results, whole):
    values = [0.0, -0.0, 0.1, 5e-324, 1.7e308, -1.7e308, np.inf, -np.inf, 2.0**53 + 1, -(2.0**63)]
    planned = cells(runs=len(values))[0]
    odd = replace(
        play_cell(planned),
        totals={"ece": np.array([values]), "é × [1]": np.array([values[::-1]])},
        columns=(Column("measure", "ece"), Column("function", "é × [1]")),
    )
    with Store.open(results, write=True) as store:
        store.forget([planned.key])
        store.add(planned.key, {}, planned.held, odd)
        named = {held.column.name: held for held in store.held()[planned.key]}
        store.put_plan(
            store.meta,
            [p._replace(columns=tuple(named.values())) for p in store.plan() if p.key == planned.key],
        )
        assert store.damaged() == set()
    back = read(results).cells[0]
    assert back.totals.keys() == odd.totals.keys()
    assert all((back.totals[name] == odd.totals[name][:, :3]).all() for name in odd.totals)


def test_an_unfinished_file_goes_on_to_the_same_end(tmp_path, monkeypatch, whole):
    planned, path = cells(), tmp_path / "part.db"
    interrupt_after(monkeypatch, 5)
    with session(path, planned) as opened:
        with pytest.raises(KeyboardInterrupt):
            opened.play()
        assert opened.finished == 5
    monkeypatch.undo()
    assert len(read(path).cells) == 5
    assert len(played(path, list(reversed(planned)), resume=True)[2]) == 3
    kept, remarks, new = played(path, planned, resume=True)
    assert equal(kept, whole)
    assert (remarks, new) == ([], set())


def test_an_existing_file_is_neither_lost_nor_mixed(results):
    before = results.read_bytes()
    with pytest.raises(StoreError, match="exists; --resume goes on with it"):
        session(results, cells())
    with pytest.raises(
        StoreError, match=r"nothing that is in it fits the scenario any more \(seed\); --overwrite"
    ):
        session(results, cells(seed=2), resume=True)
    with pytest.raises(StoreError, match=r"--resume keeps .* --overwrite destroys"):
        session(results, cells(), resume=True, overwrite=True)
    assert results.read_bytes() == before
    with session(results, cells(seed=2), overwrite=True) as opened:
        assert opened.finished == 0
    assert read(results).cells == ()


@pytest.mark.parametrize("name", ["none.db", "empty.db"])
@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}])
def test_no_file_and_an_empty_one_are_begun(tmp_path, name, options):
    path = tmp_path / name
    if name == "empty.db":
        path.touch()
        with pytest.raises(StoreError, match="is empty, and not a results file"):
            Store.open(path)
    planned = cells(horizons=[10], runs=1)
    assert equal(played(path, planned, **options)[0], study(planned))


# ---------------------------------------------------------------- the same under two labels


def test_the_same_forecaster_under_two_labels_is_played_once_and_shown_twice(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    planned = cells(
        forecasters=[(F.Constant(0.5), "half"), (F.Constant(0.5), "also half"), (F.Constant(0.4), "less")]
    )
    interrupt_after(monkeypatch, 1)
    with session(path, planned) as opened, pytest.raises(KeyboardInterrupt):
        opened.play()
    monkeypatch.undo()
    assert [c.forecaster for c in read(path).cells] == ["half", "also half"]
    kept, _, new = played(path, planned, resume=True)
    assert len(new) == 7
    assert len({cell.key for cell in planned}) == 8
    assert equal(kept, study(planned))
    assert kept.forecasters == ["half", "also half", "less"]
    one, other = (kept.curve("ece", label, "drift").totals for label in ("half", "also half"))
    assert (one == other).all()
    table = kept.table()
    assert len(table[table.measure == "ece"]) == 12 * 3
    with Store.open(path) as store:
        assert len(store.runs()) == 8


def half(p):
    class Half:
        def forecast(self):
            return p

        def update(self, forecast, outcome): ...

    return Half


def test_labels_and_order_are_the_plans(results, whole):
    planned = cells(forecasters=[(F.AlmostOneStepAhead(), "steps"), (F.ForecastHedging(), "hedging")])
    kept, remarks, new = played(results, planned, resume=True)
    assert (remarks, new) == ([], set())
    assert equal(kept, study(planned))
    # Two that exchange their labels exchange their curves.
    swapped = cells(forecasters=[(F.AlmostOneStepAhead(), "hedging"), (F.ForecastHedging(), "steps")])
    kept, remarks, new = played(results, swapped, resume=True)
    assert (remarks, new) == ([], set())
    assert equal(kept, study(swapped))


def test_columns_are_shown_in_the_order_of_the_plan(results):
    other = Panel.of([{"name": "binned_ece", "bins": 4}, "ece"], ["umbrella"])
    kept, _, new = played(results, cells(panel=other), resume=True)
    assert new == set()
    assert kept.measures[:2] == ["binned_ece(bins=4)", "ece"]
    assert equal(kept, study(cells(panel=other)))


# ---------------------------------------------------------------- what no longer fits


def test_keys_know_everything_that_changes_the_numbers(monkeypatch):
    def only(**changed):
        options = {"horizons": [100], "forecasters": [F.Constant()], "natures": [N.Drift()]} | changed
        cell = cells(**options)[0]
        return cell.key, *(held.key for held in cell.held.values())

    base = only()
    four = {"name": "binned_ece", "bins": 4}
    tasks = [{"name": "umbrella", "cost": 0.4}], [oc.tasks.DecisionTask("umbrella", [[1, 0]])]
    tasks += ([{"name": "umbrella", "response": "noisy"}],)
    others = [
        only(horizons=[101]),
        only(horizons=[100, 200]),
        only(seed=2),
        only(forecasters=[F.Constant(0.4)]),
        only(natures=[N.Drift(0.1)]),
        only(panel=Panel.of(["ece"])),
        only(panel=Panel.of(["ece", {"name": "binned_ece", "bins": 5}], ["umbrella"])),
        *(only(panel=Panel.of(["ece", four], task)) for task in tasks),
    ]
    assert len({base, *others}) == 1 + len(others)
    # What is measured is not in the key of the game.
    assert [other[0] == base[0] for other in others] == [False] * 5 + [True] * 5
    assert only(forecasters=[(F.Constant(), "mine")]) == base
    assert only(runs=4) == base
    for where, name in (
        (sys.modules["onlinecal.study.plan"], "VERSION"),
        (F.Constant, "version"),
        (N.Drift, "version"),
        (decisions.DecisionTask, "version"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, 2)
            assert only(panel=Panel.of(["ece", four], ["umbrella"])) != base
    with monkeypatch.context() as patch:
        patch.setitem(oc.measures.MEASURES, "ece", replace(oc.measures.MEASURES["ece"], version=2))
        assert only(panel=Panel.of(["ece", four], ["umbrella"])) != base


def test_only_what_changed_is_played_anew_and_it_is_said(results, monkeypatch):
    monkeypatch.setattr(F.AlmostOneStepAhead, "version", 2, raising=False)
    kept, remarks, new = played(results, cells(), resume=True)
    assert len(new) == 4
    assert remarks == [
        "played anew, as the scenario or what it names has changed (forecaster 'almost one step ahead': version): 4 "
        "finished cells"
    ]
    assert equal(kept, study(cells()))
    with Store.open(results) as store:
        assert store.runs().keys() == {cell.key for cell in cells()}


def test_stale_cells_are_not_shown_and_come_back_with_what_they_were_played_from(results, monkeypatch, whole):
    with monkeypatch.context() as patch:
        patch.setattr(F.AlmostOneStepAhead, "version", 2, raising=False)
        interrupt_after(patch, 1)
        with session(results, cells(), resume=True) as opened, pytest.raises(KeyboardInterrupt):
            opened.play()
        shown = read(results)
        assert len(shown.cells) == 5
        new = {cell.key for cell in cells()}
    # The change is undone before all has been played: nothing was lost, and what was new in between is not shown.
    kept, remarks, again = played(results, cells(), resume=True)
    assert again == set()
    assert equal(kept, whole)
    assert remarks[0].endswith(": 1 finished cell")
    with Store.open(results) as store:
        assert store.runs().keys().isdisjoint(new - {cell.key for cell in cells()})


def test_an_edited_task_or_measure_is_measured_anew_and_nothing_is_played(tmp_path, monkeypatch):
    def panel(bias, pay):
        def measure(gamma):
            return bias

        return Panel.of([measure, "ece"], [oc.tasks.DecisionTask("mine", [[1.0, 0.0], [0.2, pay]])])

    path, before = tmp_path / "a.db", cells(panel=panel(0.25, 0.9), horizons=[20])
    played(path, before)
    interrupt_after(monkeypatch, 0)  # whoever plays, is stopped
    for edited, why in (
        (panel(0.5, 0.9), "measure 'measure': closure"),
        (panel(0.5, 0.8), "task 'mine': payoffs"),
    ):
        planned = cells(panel=edited, horizons=[20])
        kept, remarks, new = played(path, planned, resume=True)
        assert new == set()
        assert remarks == [
            f"measured anew, as the scenario or what it names has changed ({why}): 4 finished cells"
        ]
        assert [a.totals["measure"][-1].tolist() for a in kept.cells] == [[10.0] * 3] * 4
        with Store.open(path) as store:  # what they take the place of is gone
            held = [[h for h in each if h.column.kind != "certificate"] for each in store.held().values()]
            assert list(map(len, held)) == [6] * 4
    monkeypatch.undo()
    assert equal(kept, study(planned))


def test_cells_that_left_the_scenario_are_not_shown(results):
    kept, remarks, new = played(results, cells(forecasters=[F.ForecastHedging()]), resume=True)
    assert new == set()
    assert remarks == ["not shown any more, as the scenario has them no longer: 4 finished cells"]
    assert equal(kept, study(cells(forecasters=[F.ForecastHedging()])))


def test_what_is_there_under_another_label_is_not_said_to_be_played(results):
    """A label goes over to a forecaster that has been played under another."""
    steps = F.AlmostOneStepAhead()
    planned = cells(forecasters=[(steps, "forecast hedging"), (steps, "almost one step ahead")])
    kept, remarks, new = played(results, planned, resume=True)
    assert new == set()
    assert remarks == ["not shown any more, as the scenario has them no longer: 4 finished cells"]
    assert equal(kept, study(planned))


def test_more_forecasters_horizons_and_runs_are_played_and_nothing_else(results):
    grown = cells(
        forecasters=[F.Constant(), F.ForecastHedging(), F.AlmostOneStepAhead()],
        horizons=[50, 75, 100],
        runs=5,
    )
    with session(results, grown, resume=True) as opened:
        rounds = []
        before = opened._store.runs()
        opened.play()
        rounds = {key: runs - before.get(key, 0) for key, runs in opened._store.runs().items()}
        kept = oc.Study.of(opened.results())
    assert equal(kept, study(grown))
    assert sorted(rounds.values()) == [2] * 8 + [5] * 10
    # Fewer are the first of them.
    kept, _, new = played(results, cells(), resume=True)
    assert new == set()
    assert equal(kept, study(cells()))


def test_cells_without_all_their_runs_are_not_finished(results, monkeypatch):
    interrupt_after(monkeypatch, 3)
    with session(results, cells(runs=5), resume=True) as opened, pytest.raises(KeyboardInterrupt):
        opened.play()
    assert [cell.totals["ece"].shape[1] for cell in read(results).cells] == [5, 5, 5]
    monkeypatch.undo()
    assert equal(played(results, cells(runs=5), resume=True)[0], study(cells(runs=5)))


def test_bounds_are_those_of_now(results, monkeypatch):
    """A guarantee is corrected without a change of numbers: no old bound stands beside them."""
    before = F.ForecastHedging.guarantees.fget

    def corrected(self):
        return tuple(replace(g, formula="3√(mT)", bound=lambda t: 3.0 * t) for g in before(self))

    monkeypatch.setattr(F.ForecastHedging, "guarantees", property(corrected))
    kept, _, new = played(results, cells(), resume=True)
    assert new == set()
    assert kept.cells[0].promises[0].bound == 150.0
    assert equal(kept, study(cells()))


# ---------------------------------------------------------------- what players certify


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ece", [0.0, 0.0, 0.0], "certifies 'ece', which is what the measure is called"),
        (
            "mine",
            [0.0, 0.0],
            "certifies mine = .*; expected 3 numbers, one for each run, at each of 1 checkpoints",
        ),
        ("mine", [0.0, np.nan, 0.0], "certifies mine = "),
        ("mine", ["a", "b", "c"], "certifies mine = "),
        ("mine", 1.0, "certifies mine = "),
    ],
)
def test_certificates_are_a_column_of_their_own(name, value, said, monkeypatch):
    (cell,) = cells(horizons=[20, 30], forecasters=[F.Constant()], natures=[N.Drift()])[:1]
    monkeypatch.setattr(game.Game, "certificates", lambda self: {name: value})
    with pytest.raises(InvalidForecast, match=said):
        play_cell(cell)


def test_a_bound_that_is_no_number_is_refused_before_the_game(tmp_path, monkeypatch):
    nan = Guarantee("ece", "x", lambda t: float("nan"), "rate", Sight.DRAW, "nowhere")
    monkeypatch.setattr(F.Constant, "guarantees", (nan,))
    with pytest.raises(InvalidParameter, match="is NaN at T = 50"):
        session(tmp_path / "a.db", cells(forecasters=[F.Constant()]))
