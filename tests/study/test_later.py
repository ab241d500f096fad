"""Later requests, when all has been played: computed from what is kept, or else played, and nothing else is."""

from dataclasses import replace

import pytest

import onlinecal as oc
from onlinecal.core.columns import ACCOUNT
from onlinecal.core.errors import InvalidData, StoreError
from onlinecal.decisions.people import People
from onlinecal.measures import MEASURES
from onlinecal.study import run
from onlinecal.study.again import measure_file_again
from onlinecal.study.panel import Panel
from onlinecal.study.status import Status
from onlinecal.study.store import Store
from tests.results import F, N, added, change, equal, played, read, refused, resumed, session, study

STREAMS = N.Streams((N.Drift(), N.Bernoulli(0.2)))
CHANGED = "as the scenario or what it names has changed"
NOT_KEPT = "since their level sets are not kept"


@oc.of_rounds()
def last(rounds):
    return float(rounds.outcomes[-1])


@pytest.fixture
def counted(monkeypatch):
    """The pieces that are played: (horizon, runs, measures) of each."""
    done, play = [], run.play_batch

    def count(cell, runs, *arguments, **options):
        done.append((cell.horizon, runs, cell.panel.names))
        return play(cell, runs, *arguments, **options)

    monkeypatch.setattr("onlinecal.study.executors.play_batch", count)
    return done


MEAN = {"forecasters": [F.EmpiricalMean()]}
MORE = {"measures": ["cdl", "ece", {"name": "binned_ece", "bins": 5}], "tasks": ["umbrella"]}
PEOPLE = People.of([{"task": "umbrella", "join": 3}], 1)
ALL = range(3)


@pytest.mark.parametrize(
    ("before", "after", "remarks", "pieces"),
    [
        ({"natures": (N.Drift(), N.Contrarian())}, MORE, [], []),
        ({"natures": (STREAMS,)}, MORE, [], []),
        ({}, {"measures": ["ece", "cdl"], "runs": 16}, [], [(t, range(3, 16), ["ece", "cdl"]) for t in (40, 80)] * 2),
        ({"people": PEOPLE, "runs": 4}, {"runs": 2}, [], []),
        ({}, {"horizons": (40, 60, 80)}, [], [(60, ALL, ["ece"])] * 2),
        # The runs that are there for that measure alone, and the further ones for all of them.
        ({}, {"measures": ["ece", last, "cdl"], "runs": 5},
         ["played again, since the rounds are read one by one (last): 4 finished cells"],
         [(t, *piece) for t in (40, 80) for piece in ((ALL, ["last"]), (range(3, 5), ["ece", "last", "cdl"]))] * 2),
        *(({**MEAN, "keep": keep}, {"measures": ["ece", "smooth_ce"], "tasks": ["umbrella"], "keep": 4096},
           [f"played again, {NOT_KEPT} (smooth_ce, umbrella): 2 finished cells"],
           [(t, ALL, ["smooth_ce", *(f"{entry}[umbrella]" for entry in ACCOUNT)]) for t in (40, 80)])
          for keep in ("none", 20)),
        ({}, {"people": PEOPLE}, [f"played again, {CHANGED} (decision_makers): 4 finished cells"],
         [(t, ALL, ["ece"]) for t in (40, 80)] * 2),
    ],
    ids=["computed", "of streams", "runs", "fewer runs", "horizons", "of rounds", "none kept", "some kept", "people"],
)  # fmt: skip
def test_only_what_is_missing_is_computed_or_played(tmp_path, counted, before, after, remarks, pieces):
    path, planned = tmp_path / "a.db", added(**{**before, **after})
    played(path, added(**before))
    counted.clear()
    assert resumed(path, planned)[0] == remarks
    assert counted == pieces
    assert played(path, planned, resume=True)[1:] == ([], set())
    with Store.open(path) as store:
        for key, runs in store.runs().items() if before.get("keep") != "none" else ():
            assert {run for group in store.gammas(key) for run in group.runs} == set(range(runs))


def test_of_runs_that_are_there_those_without_level_sets_are_played(tmp_path, counted):
    path = tmp_path / "a.db"
    played(path, added(**MEAN, runs=2, keep="all"))
    played(path, added(**MEAN, runs=3, keep="none"), resume=True)
    counted.clear()
    remarks, _ = resumed(path, added(["ece", "cdl"], **MEAN, runs=3))
    assert remarks == [f"played again, {NOT_KEPT} (cdl): 2 finished cells"]
    assert counted == [(t, range(2, 3), ["cdl"]) for t in (40, 80)]


def test_other_decision_makers_make_other_games(tmp_path):
    """To ask for some where there were none is no mistake: see above."""
    played(tmp_path / "a.db", added(people=PEOPLE))
    others = added(people=People.of([{"task": "umbrella", "join": 4}], 1))
    refused(tmp_path / "a.db", r"nothing that is in it fits .* \(decision_makers", others, resume=True)


def test_a_measure_that_was_taken_out_is_not_shown_and_stays(tmp_path, counted):
    path, both = tmp_path / "a.db", added(["ece", "cdl"], ["umbrella"], keep="none")
    played(path, both)
    kept, remarks, _ = played(path, added(["ece"], keep="none"), resume=True)
    assert kept.measures == ["ece"]
    assert remarks == [
        "not shown any more, as the scenario has these measures no longer (cdl, payoff[umbrella], "
        "external_regret[umbrella], and 2 more): 4 finished cells"
    ]
    counted.clear()
    assert resumed(path, both) == ([], set())
    assert counted == []


def test_a_version_that_changes_makes_one_column_anew(tmp_path, counted, monkeypatch):
    path = tmp_path / "a.db"
    before = played(path, added(["ece", "cdl"]))[0].cells

    def twice(gamma):
        return 2.0 * oc.measures.ece(gamma)

    twice.__name__ = "ece"
    record = replace(MEASURES["ece"], version=MEASURES["ece"].version + 1, function=twice, many=None)
    monkeypatch.setitem(MEASURES, "ece", record)
    counted.clear()
    for cell, again in zip(before, read(path).measure_again(["ece", "cdl"]).cells, strict=True):
        assert (again.totals["ece"] == 2.0 * cell.totals["ece"]).all()
        assert (again.totals["cdl"] == cell.totals["cdl"]).all()
    planned = added(["ece", "cdl"])
    said = f"measured again, {CHANGED} (ece): 4 finished cells"
    assert resumed(path, planned) == ([said], set())
    assert counted == []
    with Store.open(path) as store:
        assert store.runs().keys() == {cell.key for cell in planned}


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(3)], ids=str)
def test_a_measure_that_fails_of_what_is_kept_fails_its_cells_and_the_others_are_played(
    tmp_path, counted, error
):
    broken, calls = [True], []

    def fails(gamma):
        calls.append(gamma.weight)  # totals are kept under the content that it has when the study begins
        if broken[0] and gamma.weight == 80.0:
            raise error
        return gamma.weight

    path = tmp_path / "a.db"
    played(path, added())
    with session(path, added(["ece", fails], horizons=(40, 80, 100)), resume=True) as opened:
        found = opened.play()
    assert [cell.horizon for cell, _ in found] == [80, 80]
    for cell, fault in found:
        assert f"measure 'fails' failed: {type(error).__name__}" in str(fault)
        assert f"after round 80 of '{cell.forecaster.label}' against 'drift', run 0" in str(fault)
    status = Status.of(path)
    assert (status.done, len(status.failed), status.left) == (4, 2, 0)
    assert [next(each.lines()) for each in (status, replace(status, title=""))] == ["A test", "test"]
    # Without it, what was there is shown as before; with it mended, it is computed.
    resumed(path, added())
    broken[0] = False
    counted.clear()
    resumed(path, added(["ece", fails]))
    assert counted == []
    assert Status.of(path).failed == ()


@pytest.mark.parametrize(
    "statement",
    ["UPDATE gammas SET arrays = zeroblob(length(arrays))", "UPDATE gammas SET first = first + 9"],
)
def test_level_sets_that_something_else_has_changed_are_not_used(tmp_path, counted, statement):
    path, planned = tmp_path / "a.db", added(["ece", "cdl"])
    played(path, added())
    whole = read(path)
    change(path, statement)
    assert equal(read(path), whole)
    if "zeroblob" in statement:
        with pytest.raises(StoreError, match="something else has changed the level sets of"):
            read(path).gamma("forecast hedging", horizon=80)
    counted.clear()
    assert resumed(path, planned)[0] == [f"played again, {NOT_KEPT} (cdl): 4 finished cells"]
    assert len(counted) == 4
    assert read(path).gamma("forecast hedging", horizon=80) is not None


# ---------------------------------------------------------------- without a scenario


def test_measure_again_adds_columns_to_a_file(tmp_path, counted):
    path, panel = tmp_path / "a.db", Panel.of(["cdl"], ["umbrella"], rounds=80)
    played(path, added(natures=(STREAMS, N.Drift())))
    counted.clear()
    assert measure_file_again(path, panel) == (8, {})
    assert counted == []
    planned = added(["ece", "cdl"], ["umbrella"], natures=(STREAMS, N.Drift()))
    for cell, other in zip(read(path).cells, study(planned).cells, strict=True):
        assert (cell.forecaster, cell.nature, cell.horizon) == (other.forecaster, other.nature, other.horizon)
        assert {name: totals.tobytes() for name, totals in cell.totals.items()} == {
            name: totals.tobytes() for name, totals in other.totals.items()
        }
    assert measure_file_again(path, panel) == (0, {})
    # A resume of the scenario that was played does not show them; they are there.
    (remark,) = played(path, added(natures=(STREAMS, N.Drift())), resume=True)[1]
    assert remark.startswith("not shown any more, as the scenario has these measures no longer (cdl")
    change(path, "DELETE FROM gammas")
    assert measure_file_again(path, Panel.of(["cdl"], rounds=80))[0] == 8
    assert "cdl" in read(path).measures


def test_what_cannot_be_computed_of_any_cell_is_an_error():
    options = {"horizon": 20, "runs": 2, "measures": ["ece"]}
    found = oc.play("constant", "drift", **options, keep="none")
    for what, why in (("cdl", "their level sets are not kept"), (last, "the rounds are read one by one")):
        with pytest.raises(InvalidData, match=f"cannot be computed, since {why}"):
            found.measure_again([what])
    kept = oc.play("constant", "drift", **options)
    again = kept.measure_again("cdl", {"name": "v_shaped", "t": 0.3})
    assert (again.measures[:2], len(again.measures), kept.measures) == (["ece", "cdl"], 6, ["ece"])
    # Behind them is what players certify.
    certified = oc.play("almost_one_step_ahead", "drift", **options).measure_again("cdl")
    assert certified.measures == ["ece", "cdl", "distance_certificate"]
