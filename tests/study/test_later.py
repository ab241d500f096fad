"""What is asked for when all has been played: computed from what is kept, or else played, and nothing else is."""

from dataclasses import replace

import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData, StoreError
from onlinecal.decision_makers.tenures import People
from onlinecal.measures import MEASURES
from onlinecal.study import Entry, plan
from onlinecal.study.again import measure_file_again
from onlinecal.study.panel import Panel
from onlinecal.study.status import Status
from onlinecal.study.store import Store
from tests.results import change, equal, played, read, session, study

F, N = oc.forecasters, oc.natures
STREAMS = N.Streams((N.Drift(), N.Bernoulli(0.2)))


def cells(
    measures=("ece",), tasks=(), runs=3, horizons=(40, 80), forecasters=None, natures=(N.Drift(),), **options
):
    return plan(
        [Entry.of(f) for f in forecasters or (F.ForecastHedging(), F.EmpiricalMean())],
        [Entry.of(n) for n in natures],
        horizons=horizons,
        runs=runs,
        seed=1,
        panel=Panel.of(measures, tasks, rounds=max(horizons)),
        **options,
    )


@pytest.fixture
def counted(monkeypatch):
    """What is played: (horizon, runs, measures) of each piece."""
    from onlinecal.study import run

    done, play = [], run.play_batch

    def count(cell, runs, *arguments, **options):
        done.append((cell.horizon, runs, cell.panel.names))
        return play(cell, runs, *arguments, **options)

    monkeypatch.setattr("onlinecal.study.executors.base.play_batch", count)
    return done


def resumed(path, planned):
    kept, remarks, _ = played(path, planned, resume=True)
    fresh = study(planned)
    assert equal(kept, fresh)
    for one, other in zip(kept.cells, fresh.cells, strict=True):
        assert all(one.totals[m].tobytes() == other.totals[m].tobytes() for m in one.totals)
    return remarks


def test_measures_and_tasks_that_are_added_are_computed(tmp_path, counted):
    for name, natures in (("a.db", (N.Drift(), N.Contrarian())), ("s.db", (STREAMS,))):
        path = tmp_path / name
        played(path, cells(natures=natures))
        counted.clear()
        more = cells(["cdl", "ece", {"name": "binned_ece", "bins": 5}], ["umbrella"], natures=natures)
        assert resumed(path, more) == []
        assert counted == []
        assert played(path, more, resume=True)[2] == set()
        assert counted == []


def test_further_runs_are_played_and_nothing_else(tmp_path, counted):
    path = tmp_path / "a.db"
    played(path, cells(runs=4))
    counted.clear()
    with session(path, cells(["ece", "cdl"], runs=16), resume=True) as opened:
        opened.play()
    assert [runs for _, runs, _ in counted] == [range(4, 16)] * 4
    assert equal(read(path), study(cells(["ece", "cdl"], runs=16)))
    with Store.open(path) as store:
        assert all([first for first, _ in store.gammas(key)] == [0, 4] for key in store.runs())
    counted.clear()
    with session(path, cells(["ece", "cdl"], runs=16, horizons=(40, 60, 80)), resume=True) as opened:
        opened.play()
    assert [(horizon, runs) for horizon, runs, _ in counted] == [(60, range(16))] * 2


def test_measures_of_rounds_are_played_and_said_by_name(tmp_path, counted):
    @oc.of_rounds()
    def last(rounds):
        return float(rounds.outcomes[-1])

    path = tmp_path / "a.db"
    played(path, cells())
    counted.clear()
    with session(path, cells(["ece", last, "cdl"], runs=5), resume=True) as opened:
        assert opened.remarks == [
            "played again for 'last', since the rounds are read one by one: 4 finished cells"
        ]
        opened.play()
    # The runs that are there for that measure alone, and the further ones for all of them.
    assert (
        counted
        == [
            (horizon, runs, names)
            for horizon in (40, 80)
            for _ in range(1)
            for runs, names in ((range(3), ["last"]), (range(3, 5), ["ece", "last", "cdl"]))
        ]
        * 2
    )
    assert equal(read(path), study(cells(["ece", last, "cdl"], runs=5)))


@pytest.mark.parametrize("keep", ["none", 20])
def test_what_is_not_kept_exactly_is_played_and_said_by_name(tmp_path, keep, counted):
    path = tmp_path / "a.db"
    planned = cells(keep=keep, forecasters=[F.EmpiricalMean()])
    played(path, planned)
    counted.clear()
    with session(
        path, cells(["ece", "smooth_ce"], ["umbrella"], forecasters=[F.EmpiricalMean()]), resume=True
    ) as opened:
        assert opened.remarks == [
            "played again for 'smooth_ce', 'umbrella', since their level sets are not kept exactly: 2 finished cells"
        ]
        opened.play()
    assert [names[0] for *_, names in counted] == ["smooth_ce"] * 2
    assert equal(
        read(path), study(cells(["ece", "smooth_ce"], ["umbrella"], forecasters=[F.EmpiricalMean()]))
    )


def test_another_keep_is_for_runs_that_are_still_to_be_played(tmp_path):
    path = tmp_path / "a.db"
    played(path, cells(keep="none"))
    assert played(path, cells(keep="all"), resume=True)[2] == set()
    assert read(path).cells[0].kept(-1, 0) is None
    played(path, cells(keep="all", runs=5), resume=True)
    found = read(path).cells[0]
    assert [found.kept(-1, run) is None for run in range(5)] == [True] * 3 + [False] * 2
    played(path, cells(keep="none", runs=5), resume=True)
    assert read(path).cells[0].gamma(-1, 4) is not None


def test_a_measure_that_was_taken_out_is_not_shown_and_stays(tmp_path, counted, monkeypatch):
    path, both = tmp_path / "a.db", cells(["ece", "cdl"], ["umbrella"], keep="none")
    played(path, both)
    kept, remarks, _ = played(path, cells(["ece"], keep="none"), resume=True)
    assert kept.measures == ["ece", "distance_certificate"][: len(kept.measures)]
    assert remarks == [
        "not shown any more, as the scenario has them no longer: 'cdl', 'payoff[umbrella]', "
        "'external_regret[umbrella]', and 2 more"
    ]
    counted.clear()
    assert resumed(path, both) == []
    assert counted == []


def test_a_version_that_changes_makes_one_column_anew(tmp_path, counted, monkeypatch):
    path = tmp_path / "a.db"
    played(path, cells(["ece", "cdl"]))

    def twice(gamma):
        return 2.0 * oc.measures.ece(gamma)

    twice.__name__ = "ece"
    record = replace(MEASURES["ece"], version=MEASURES["ece"].version + 1, function=twice)
    monkeypatch.setitem(MEASURES, "ece", record)
    before = {cell.key: cell for cell in cells()}
    counted.clear()
    with session(path, cells(["ece", "cdl"]), resume=True) as opened:
        assert opened.remarks == [
            "measured anew, as the scenario or what it names has changed (measure 'ece': version): 4 finished cells"
        ]
        opened.play()
    assert counted == []
    assert equal(read(path), study(cells(["ece", "cdl"])))
    with Store.open(path) as store:
        assert store.runs().keys() == before.keys()
        assert all(len({h.column.name for h in held}) == len(held) for held in store.held().values())


def test_decision_makers_that_are_added_are_played_and_said_by_name(tmp_path):
    path = tmp_path / "a.db"
    played(path, cells())
    people = People.of([{"task": "umbrella", "join": 3}], 1)
    kept, remarks, new = played(path, cells(people=people), resume=True)
    assert remarks == [
        "played anew, as the scenario or what it names has changed (decision_makers): 4 finished cells"
    ]
    assert len(new) == 4
    assert [cell.people for cell in kept.cells] == [cell.people for cell in study(cells(people=people)).cells]


def test_a_measure_that_fails_of_what_is_kept_fails_its_cells_and_the_others_are_played(tmp_path, counted):
    broken = [True]

    def fails(gamma):
        if broken[0] and gamma.weight == 80.0:
            raise broken[1]
        return gamma.weight

    path = tmp_path / "a.db"
    for error in (ValueError("boom"), SystemExit(3)):
        broken[:] = [True, error]
        played(path, cells(), overwrite=True)
        planned = cells(["ece", fails], horizons=(40, 80, 100))
        with session(path, planned, resume=True) as opened:
            found = opened.play()
        assert [cell.horizon for cell, _ in found] == [80, 80]
        assert all(
            f"measure 'fails' failed: {type(error).__name__}" in fault.text
            and f"after round 80 of '{cell.forecaster.label}' against 'drift', run 0" in fault.text
            for cell, fault in found
        )
        status = Status.of(path)
        assert (status.done, len(status.failed), status.left) == (4, 2, 0)
        # Without it, what was there is shown as before; with it mended, it is computed.
        assert equal(played(path, cells(), resume=True)[0], study(cells()))
        broken[0] = False
        counted.clear()
        assert equal(played(path, cells(["ece", fails]), resume=True)[0], study(cells(["ece", fails])))
        assert counted == []
        assert Status.of(path).failed == ()
        with Store.open(path) as store:
            assert store.failures() == {}


def test_players_certify_and_people_are_counted_in_all_runs_whatever_was_measured_before(tmp_path):
    @oc.of_rounds()
    def last(rounds):
        return float(rounds.outcomes[-1])

    for people in ([], [{"task": "umbrella", "join": 3}]):
        path = tmp_path / "a.db"
        options = {
            "forecasters": [F.AlmostOneStepAhead()],
            "people": People.of(people, 1),
            "keep": "none",
        }
        played(path, cells(runs=2, **options), overwrite=True)
        # All runs are played for another measure, of which two are there already, and then more of them.
        for runs in (4, 6):
            planned = cells([last], runs=runs, **options)
            kept = played(path, planned, resume=True)[0]
            assert "distance_certificate" in kept.measures
            assert equal(kept, study(planned))
            assert [cell.people for cell in kept.cells] == [cell.people for cell in study(planned).cells]


def test_level_sets_that_something_else_has_changed_are_not_used(tmp_path, counted):
    for statement in (
        "UPDATE gammas SET packed = zeroblob(length(packed))",
        "UPDATE gammas SET first = 1",
        "DELETE FROM gammas",
    ):
        path = tmp_path / "a.db"
        played(path, cells(), overwrite=True)
        whole = read(path)
        change(path, statement)
        assert equal(read(path), whole)
        if not statement.startswith("DELETE"):
            with pytest.raises(StoreError, match="something else has changed the level sets of"):
                read(path).gamma("forecast hedging", horizon=80)
        counted.clear()
        with session(path, cells(["ece", "cdl"]), resume=True) as opened:
            assert opened.remarks == [
                "played again for 'cdl', since their level sets are not kept exactly: 4 finished cells"
            ]
            opened.play()
        assert len(counted) == 4
        assert equal(read(path), study(cells(["ece", "cdl"])))
        assert read(path).gamma("forecast hedging", horizon=80) is not None


# ---------------------------------------------------------------- without a scenario


def test_measure_again_adds_columns_to_a_file(tmp_path, counted):
    path = tmp_path / "a.db"
    played(path, cells(natures=(STREAMS, N.Drift())))
    counted.clear()
    assert measure_file_again(path, Panel.of(["cdl"], ["umbrella"], rounds=80)) == (8, {})
    assert counted == []
    planned = cells(["ece", "cdl"], ["umbrella"], natures=(STREAMS, N.Drift()))
    whole = {(c.forecaster, c.nature, c.horizon): c for c in study(planned).cells}
    for cell in read(path).cells:
        other = whole[cell.forecaster, cell.nature, cell.horizon]
        assert set(cell.totals) == set(other.totals)
        assert all(cell.totals[name].tobytes() == other.totals[name].tobytes() for name in cell.totals)
    assert measure_file_again(path, Panel.of(["cdl"], ["umbrella"], rounds=80)) == (0, {})
    # A resume of the scenario that was played does not show them; they are there.
    remarks = played(path, cells(natures=(STREAMS, N.Drift())), resume=True)[1]
    assert len(remarks) == 1
    assert remarks[0].startswith("not shown any more, as the scenario has them no longer: 'cdl'")
    change(path, "DELETE FROM gammas")
    assert measure_file_again(path, Panel.of(["cdl"], rounds=80))[0] == 8
    assert "cdl" in read(path).measures


def test_of_moved_predictions_there_are_certified_brackets_or_nothing(tmp_path):
    path = tmp_path / "a.db"
    planned = cells(keep=25, forecasters=[F.EmpiricalMean()], natures=(STREAMS,))
    played(path, planned)
    count, reasons = measure_file_again(
        path, Panel.of(["smooth_ce", "kernel_ce", "cdl"], ["umbrella"], rounds=80)
    )
    assert count == 2
    assert {name for name, _ in reasons} == {"cdl", "umbrella"}
    assert all("nothing is proved" in why and len(where) == 2 for (_, why), where in reasons.items())
    exact = study(cells(["smooth_ce", "kernel_ce"], forecasters=[F.EmpiricalMean()], natures=(STREAMS,)))
    widths = []
    for cell, true in zip(read(path).cells, exact.cells, strict=True):
        assert "smooth_ce" not in cell.totals
        for name in ("smooth_ce", "kernel_ce", "smooth_ce @ drift"):
            bare, _, stream = name.partition(" @ ")
            lower, upper = (
                cell.totals[f"{bare}[{end}]" + (f" @ {stream}" if stream else "")]
                for end in ("lower", "upper")
            )
            assert (lower <= true.totals[name]).all()
            assert (true.totals[name] <= upper).all()
            if bare == "smooth_ce":
                widths.append((upper - lower).max())
    assert 0.0 < max(widths) < 80 * 0.05


def test_what_cannot_be_computed_of_any_cell_is_an_error():
    @oc.of_rounds()
    def last(rounds):
        return float(rounds.outcomes[-1])

    found = oc.play("constant", "drift", horizon=20, runs=2, measures=["ece"], keep="none")
    for what, why in (("cdl", "their level sets are not kept"), (last, "it reads the rounds one by one")):
        with pytest.raises(InvalidData, match=f"cannot be computed, since {why}"):
            found.measure_again([what])
    kept = oc.play("constant", "drift", horizon=20, runs=2, measures=["ece"])
    again = kept.measure_again("cdl", {"name": "v_shaped", "t": 0.3})
    assert again.measures[:2] == ["ece", "cdl"]
    assert "swap_regret[v_shaped]" in " ".join(again.measures) or len(again.measures) == 6
    assert kept.measures == ["ece"]
