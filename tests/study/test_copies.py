"""Studies written into files, and several files as one."""

from dataclasses import replace

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, StoreError
from onlinecal.decision_makers.tenures import People
from onlinecal.study.copies import merge, save
from onlinecal.study.gammas import runs_of
from onlinecal.study.panel import Panel
from onlinecal.study.status import Status
from onlinecal.study.store import Store
from tests.results import cells, change, equal, played, read, session, study
from tests.study.test_gammas import same
from tests.study.test_later import cells as more_cells

F, N = oc.forecasters, oc.natures


# ---------------------------------------------------------------- load and save


def test_a_study_that_was_played_in_python_is_written_and_read(tmp_path):
    made = oc.play(
        [F.ForecastHedging(), F.EmpiricalMean()],
        [N.Drift(), N.Streams((N.Drift(), N.Bernoulli(0.2)))],
        horizon=[20, 30], runs=3, seed=1, measures=["ece", "distance_upper"], tasks=["umbrella"], delays=[0, 3],
        decision_makers=["umbrella", {"task": "random", "leave": 9}],
    )  # fmt: skip
    made.save(tmp_path / "a.db")
    found = oc.load(tmp_path / "a.db")
    assert found.cells == made.cells
    assert [cell.promises for cell in found.cells] == [cell.promises for cell in made.cells]
    for one, other in zip(found.cells, made.cells, strict=True):
        assert one.people == other.people
        assert one.seconds == other.seconds
        assert same(one.gamma(-1, 2), other.gamma(-1, 2))
    # What was read is written again, with its level sets, and measured again.
    found.measure_again(["cdl"]).save(str(tmp_path / "b.db"))
    unread = oc.load(tmp_path / "a.db")
    (tmp_path / "a.db").unlink()
    again = oc.load(str(tmp_path / "b.db"))
    assert again.cells == made.measure_again(["cdl"]).cells
    assert same(again.cells[0].gamma(-1, 2), made.cells[0].gamma(-1, 2))
    with pytest.raises(StoreError, match="no such results file"):
        unread.gamma("forecast hedging", "drift", 20)


def test_a_scenario_goes_on_with_what_was_saved(tmp_path, monkeypatch):
    planned = cells()
    made = oc.play(
        [F.ForecastHedging(), F.AlmostOneStepAhead()], [N.Drift(), N.Contrarian()], horizon=[50, 100], runs=3, seed=1,
        measures=["ece"],
    )  # fmt: skip
    made.save(tmp_path / "a.db")
    monkeypatch.setattr("onlinecal.study.executors.base.play_batch", lambda *_, **__: pytest.fail("played"))
    kept, remarks, new = played(tmp_path / "a.db", planned, resume=True)
    assert (remarks, new) == ([], set())
    assert equal(kept, study(planned))


def test_what_is_there_is_not_replaced_unless_asked(tmp_path, results, whole):
    made = oc.play("constant", "drift", horizon=20, runs=2, measures=["ece"])
    before = results.read_bytes()
    with pytest.raises(StoreError, match=r"exists; expected the name of a new file, or --overwrite"):
        made.save(results)
    other = tmp_path / "text.db"
    other.write_text("my diary " * 100)
    with pytest.raises(StoreError, match="is not a results file of onlinecal"):
        made.save(other, overwrite=True)
    assert results.read_bytes() == before
    made.save(results, overwrite=True)
    assert oc.load(results).cells == made.cells


def test_what_cannot_be_kept_is_refused(tmp_path):
    class Odd:
        def __init__(self):
            self.next = iter([0.5] * 100)

        def __deepcopy__(self, memo):
            return Odd()

        def __reduce_ex__(self, protocol):
            raise TypeError("no")

        def forecast(self):
            return 0.5

        def update(self, forecast, outcome): ...

    made = oc.play(Odd(), "drift", horizon=20, runs=2, measures=["ece"])
    with pytest.raises(
        InvalidParameter, match="'Odd' against 'drift': it cannot be told what these numbers depend on"
    ):
        made.save(tmp_path / "a.db")
    assert not (tmp_path / "a.db").exists()
    with pytest.raises(InvalidParameter, match="no cells"):
        save(oc.Study(()), tmp_path / "a.db")


def test_a_file_without_a_finished_cell_is_no_study(tmp_path):
    with session(tmp_path / "a.db", cells()):
        pass
    with pytest.raises(StoreError, match="has no finished cells yet"):
        oc.load(tmp_path / "a.db")


# ---------------------------------------------------------------- merge


def files(folder, *plans):
    paths = []
    for i, planned in enumerate(plans):
        paths.append(folder / f"{'abc'[i]}.db")
        played(paths[-1], planned)
    return paths


def test_two_halves_are_the_whole(tmp_path, whole):
    paths = files(
        tmp_path, cells(forecasters=[F.ForecastHedging()]), cells(forecasters=[F.AlmostOneStepAhead()])
    )
    assert merge(paths, tmp_path / "m.db") == []
    found = read(tmp_path / "m.db")
    order = {(c.forecaster, c.nature, c.horizon): c for c in found.cells}
    assert [c.forecaster for c in found.cells] == ["forecast hedging"] * 4 + ["almost one step ahead"] * 4
    assert equal(
        replace(found, cells=tuple(order[c.forecaster, c.nature, c.horizon] for c in whole.cells)), whole
    )
    assert all(
        same(c.gamma(-1, 2), w.gamma(-1, 2)) for c, w in zip(found.cells[:1], whole.cells[:1], strict=True)
    )
    kept, remarks, new = played(tmp_path / "m.db", cells(), resume=True)
    assert (remarks, new) == ([], set())
    assert equal(kept, whole)


def test_more_runs_continue_fewer(tmp_path):
    paths = files(tmp_path, cells(runs=2), cells(runs=5), cells(runs=4, horizons=(50, 70)))
    merge(paths, tmp_path / "m.db")
    found = read(tmp_path / "m.db")
    assert len(found.cells) == 12
    assert equal(replace(found, cells=tuple(c for c in found.cells if c.horizon != 70)), study(cells(runs=5)))
    assert found.cells[0].gamma(-1, 4) is not None
    assert [c.totals["ece"].shape[1] for c in found.cells if c.horizon == 70] == [4] * 4


def test_columns_are_put_together_and_what_is_not_in_all_runs_is_said(tmp_path):
    paths = files(tmp_path, more_cells(["ece"], runs=2), more_cells(["cdl", "ece"], runs=3))
    assert merge(paths, tmp_path / "m.db") == []
    assert equal(read(tmp_path / "m.db"), study(more_cells(["ece", "cdl"], runs=3)))
    remarks = merge(paths[::-1], tmp_path / "n.db")
    assert remarks == []
    paths = files(tmp_path / "o", more_cells(["ece"], runs=3), more_cells(["cdl"], runs=2))
    remarks = merge(paths, tmp_path / "o.db")
    assert (
        remarks[0] == "'forecast hedging' against 'drift' at T = 40: not shown, since not in all 3 runs: cdl"
    )
    assert equal(read(tmp_path / "o.db"), study(more_cells(["ece"], runs=3)))
    # They are there, and what is missing is computed.
    kept, _, new = played(tmp_path / "o.db", more_cells(["ece", "cdl"], runs=3), resume=True)
    assert new == set()
    assert equal(kept, study(more_cells(["ece", "cdl"], runs=3)))


@pytest.mark.parametrize("order", [1, -1])
def test_of_level_sets_that_both_have_the_exact_ones_are_kept_and_each_run_once(tmp_path, order):
    def of(measures, runs, keep):
        return more_cells(measures, runs=runs, keep=keep, forecasters=[F.EmpiricalMean()])

    moved, exact = files(tmp_path, of(["ece"], 8, 4), of(["ece", "smooth_ce"], 4, "all"))
    played(exact, of(["ece"], 12, "all"), resume=True)
    path = tmp_path / "m.db"
    merge([moved, exact][::order], path)
    with Store.open(path) as store:
        for key in store.runs():
            runs = [
                run for first, packed in store.gammas(key) for run in range(first, first + runs_of(packed))
            ]
            assert runs == list(range(12))
    planned = of(["ece", "smooth_ce"], 12, "all")
    kept, remarks, _ = played(path, planned, resume=True)
    assert remarks == []  # nothing of it is played again
    assert equal(kept, study(planned))


@pytest.mark.parametrize("order", [1, -1])
def test_the_status_of_one_game_under_two_labels_is_that_of_each(tmp_path, order):
    def of(label, measure, runs):
        return cells(
            horizons=(50,),
            runs=runs,
            panel=Panel.of([measure]),
            forecasters=[(F.EmpiricalMean(), label)],
            natures=[N.Drift()],
        )

    paths = [tmp_path / "a.db", tmp_path / "b.db"]
    played(paths[0], of("x", "ece", 2))
    with session(paths[1], of("y", "cdl", 5)):
        pass  # of which nothing is played
    merge(paths[::order], tmp_path / "m.db")
    status = Status.of(tmp_path / "m.db")
    assert (status.cells, status.done, status.left) == (2, 1, 1)
    assert status.run_rounds_left == 5 * 50
    assert len(read(tmp_path / "m.db").cells) == 1


def contradicting(path):
    """Another file with the same keys and other numbers, sealed as its own."""
    with Store.open(path, write=True) as store:
        key = store.plan()[0].key
        numbers = store.numbers(key)
        totals = {
            h: t + (h.column.name == "ece") * np.array([0.0, 1.0, 0.0]) for h, t in numbers.totals.items()
        }
        store.insert(key, store.contents([key])[key], numbers._replace(totals=totals), [])


def test_contradictions_are_refused_by_name(tmp_path):
    a, b = files(tmp_path, cells(), cells())
    contradicting(b)
    said = r"'forecast hedging' against 'drift' at T = 50: .*a\.db and .*b\.db contradict each other in ece of run 1"
    with pytest.raises(StoreError, match=said):
        merge([a, b], tmp_path / "m.db")
    assert not (tmp_path / "m.db").exists()
    # Other games under the same labels, and other measures under the same name.
    (c,) = files(tmp_path / "c", cells(seed=2))
    with pytest.raises(
        StoreError, match=r"T = 50 is another game in .*a\.db than in a file before it \(seed\)"
    ):
        merge([a, c], tmp_path / "m.db")

    def bias(value):
        def measure(gamma):
            return value

        return [measure]

    d, e = files(tmp_path / "d", more_cells(bias(1.0)), more_cells(bias(2.0)))
    with pytest.raises(StoreError, match=r"measure is something else in .*b\.db than in a file before it"):
        merge([d, e], tmp_path / "m.db")
    f, g = files(
        tmp_path / "f",
        more_cells(people=People.of([{"task": "umbrella"}], 1)),
        more_cells(people=People.of([{"task": "umbrella", "label": "me"}], 1)),
    )
    with pytest.raises(StoreError, match="its decision makers have other labels"):
        merge([f, g], tmp_path / "m.db")


def test_what_is_no_input_or_output_is_refused(tmp_path, results):
    a, b = files(tmp_path / "x", cells(), cells(runs=4))
    for out, said in (
        (a, "is one of the files that are merged"),
        (results, "exists; expected the name of a new file"),
    ):
        before = out.read_bytes()
        with pytest.raises(StoreError, match=said):
            merge([a, b], out)
        assert out.read_bytes() == before
    with pytest.raises(StoreError, match="is one of the files that are merged"):
        merge([a, b], b, overwrite=True)
    with pytest.raises(StoreError, match="expected at least two"):
        merge([a], tmp_path / "m.db")
    with pytest.raises(StoreError, match="no such results file"):
        merge([a, tmp_path / "none.db"], tmp_path / "m.db")
    change(b, "UPDATE games SET totals = zeroblob(length(totals)) WHERE id = 1")
    with pytest.raises(StoreError, match=r"b\.db: something else has changed numbers of 1 cells"):
        merge([a, b], tmp_path / "m.db")
    merge([a, a.with_name("a.db")], results, overwrite=True)
    assert equal(read(results), read(a))


def test_a_file_of_another_version_and_of_another_scenario_are_said(tmp_path):
    a, b = files(tmp_path, cells(runs=2), cells(runs=3))
    with Store.open(b, write=True) as store:
        store.put_plan(store.meta | {"version": "0.0.9", "scenario": "other"}, store.plan())
    assert merge([a, b], tmp_path / "m.db") == [
        f"{b} was made by onlinecal 0.0.9, {a} by {oc.__version__}",
        f"{b} has another scenario; that of {a} is kept",
    ]
