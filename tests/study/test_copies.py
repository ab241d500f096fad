"""Studies written into files, and several files as one."""

from dataclasses import replace

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter, StoreError
from onlinecal.decisions.people import People
from onlinecal.forecasters import ClassMean
from onlinecal.study.copies import merge
from onlinecal.study.gammas import whole_runs
from onlinecal.study.panel import Panel
from onlinecal.study.store import Store
from tests.results import F, N, added, cells, change, equal, played, read, resumed, study
from tests.study import test_classes as classes
from tests.study import test_groups as groups
from tests.study.test_files import index_that_says_something_else
from tests.study.test_gammas import same


class Odd:
    def __deepcopy__(self, memo):
        return Odd()

    def __reduce_ex__(self, protocol):
        raise TypeError("no")

    def forecast(self):
        return 0.5

    def update(self, forecast, outcome): ...


def test_a_study_that_was_played_in_python_is_written_read_and_gone_on_with(tmp_path, results):
    made = oc.play(
        [F.ForecastHedging(), F.EmpiricalMean()], [N.Drift(), N.Streams((N.Drift(), N.Bernoulli(0.2)))],
        horizon=20, runs=3, seed=1, measures=["ece", "distance_upper"], tasks=["umbrella"], delays=[0, 3],
        decision_makers=["umbrella", {"task": "random", "leave": 9}],
    )  # fmt: skip
    made.save(tmp_path / "b.db")
    found = oc.load(tmp_path / "b.db")
    assert equal(found, made)
    assert [cell.seconds for cell in found.cells] == [cell.seconds for cell in made.cells]
    # All that was read is written again, with its level sets, and measured again.
    found.measure_again(["cdl"]).save(str(tmp_path / "c.db"))
    again = oc.load(str(tmp_path / "c.db"))
    assert again.cells == made.measure_again(["cdl"]).cells
    for one, other in zip(again.cells, made.cells, strict=True):
        assert same(one.gamma(-1, 2), other.gamma(-1, 2))
    options = {"horizon": [50, 100], "runs": 3, "seed": 1, "measures": ["ece"]}
    whom = [N.Drift(), N.Contrarian()]
    oc.play([F.ForecastHedging(), F.AlmostOneStepAhead()], whom, **options).save(tmp_path / "d.db")
    assert resumed(tmp_path / "d.db", cells()) == ([], set())
    # What is there stays, and what cannot be kept is refused.
    before = results.read_bytes()
    odd = oc.play(Odd(), "drift", horizon=20, runs=2)
    for one, path, said in (
        (made, results, "exists; expected the name of a new file, or --overwrite"),
        (oc.Study(()), tmp_path / "e.db", "no cells"), (odd, tmp_path / "e.db", "'Odd' against 'drift'"),
    ):  # fmt: skip
        with pytest.raises((InvalidParameter, StoreError), match=said):
            one.save(path)
    assert not (tmp_path / "e.db").exists()
    assert results.read_bytes() == before
    made.save(results, overwrite=True)
    assert equal(oc.load(results), made)


@pytest.mark.parametrize(
    ("play", "options", "measures", "tasks"),
    [
        (groups.played, {"nature": groups.NATURES, "measures": groups.MEASURES, "tasks": ["umbrella"]},
         ["smooth_ce", "multi_linf"], ["three_action"]),
        (classes.played, {"forecaster": [ClassMean(), classes.Rounded], "measures": ["ece", classes.MEAN], "tasks": []},
         ["smooth_ce", classes.SURE], [classes.TASK]),
    ],
    ids=["groups", "classes"],
)  # fmt: skip
def test_studies_of_groups_and_of_classes_are_saved_measured_later_and_played_by_processes(
    tmp_path, play, options, measures, tasks
):
    more = {"measures": [*options["measures"], *measures], "tasks": [*options["tasks"], *tasks]}
    whole, path = play(**options | more), tmp_path / "a.db"
    play(**options).save(path)
    later = oc.load(path).measure_again(measures, tasks)
    for one, other in zip(whole.cells, later.cells, strict=True):
        assert one.totals.keys() == other.totals.keys()
        assert all(np.array_equal(one.totals[name], other.totals[name]) for name in one.totals)
        assert same(one.gamma(-1, 2), other.gamma(-1, 2), ("predictions", "counts"))
    more = {"runs": 5, "horizon": [40, 60]}  # more cells than processes, which play one after the other
    assert play(**options, **more, jobs=2).cells == play(**options, **more).cells


# ---------------------------------------------------------------- merge


def files(folder, *plans):
    paths = []
    for i, planned in enumerate(plans):
        paths.append(folder / f"{'abc'[i]}.db")
        played(paths[-1], planned)
    return paths


def test_two_halves_are_the_whole(tmp_path, whole):
    paths = files(
        tmp_path, *(cells(forecasters=[who()]) for who in (F.ForecastHedging, F.AlmostOneStepAhead))
    )
    assert merge(paths, tmp_path / "m.db") == []
    found = read(tmp_path / "m.db")
    assert equal(
        found, replace(whole, cells=sorted(whole.cells, key=lambda c: c.forecaster != "forecast hedging"))
    )
    assert same(found.cells[0].gamma(-1, 2), whole.cells[0].gamma(-1, 2))
    assert resumed(tmp_path / "m.db", cells()) == ([], set())


def test_more_runs_continue_fewer(tmp_path):
    paths = files(tmp_path, cells(runs=2), cells(runs=5), cells(runs=4, horizons=(50, 70)))
    merge(paths, tmp_path / "m.db")
    found = read(tmp_path / "m.db")
    # It took as long as in the file in which it took longest.
    seconds = max(read(path).cells[0].seconds for path in paths)
    assert found.cells[0].seconds == pytest.approx(seconds)
    assert len(found.cells) == 12
    assert equal(replace(found, cells=tuple(c for c in found.cells if c.horizon != 70)), study(cells(runs=5)))
    assert found.cells[0].gamma(-1, 4) is not None
    assert [c.totals["ece"].shape[1] for c in found.cells if c.horizon == 70] == [4] * 4


def test_open_questions_of_a_world_are_those_of_the_runs_that_a_file_has(tmp_path):
    """They are no contradiction between a file of few runs and one of more."""
    few, many = (
        cells([40], n, panel=Panel.of("ece"), forecasters=[F.Constant()], natures=[oc.worlds.Queue()])
        for n in (2, 4)
    )
    assert study(few).cells[0].open != study(many).cells[0].open
    assert merge(files(tmp_path, few, many), tmp_path / "m.db") == []
    assert read(tmp_path / "m.db").cells[0].open == study(many).cells[0].open


def test_columns_are_put_together_and_what_is_not_in_all_runs_is_said(tmp_path):
    paths = files(tmp_path, added(["ece"], runs=2), added(["cdl", "ece"], runs=3))
    assert merge(paths, tmp_path / "m.db") == merge(paths[::-1], tmp_path / "n.db") == []
    assert equal(read(tmp_path / "m.db"), study(added(["ece", "cdl"], runs=3)))
    said, *_ = merge(files(tmp_path / "o", added(["ece"], runs=3), added(["cdl"], runs=2)), tmp_path / "o.db")
    assert said == "'forecast hedging' against 'drift' at T = 40: not shown, since not in all 3 runs: cdl"
    assert equal(read(tmp_path / "o.db"), study(added(["ece"], runs=3)))
    change(tmp_path / "a.db", "UPDATE meta SET value = '0.1' WHERE key = 'version'")
    said, *_ = merge(paths, tmp_path / "p.db")
    assert said == f"{paths[1]} is of onlinecal {oc.__version__}, {paths[0]} of 0.1"
    # They are there, and what is missing is computed.
    assert resumed(tmp_path / "o.db", added(["ece", "cdl"], runs=3))[1] == set()


@pytest.mark.parametrize("order", [1, -1])
def test_of_level_sets_that_both_have_the_exact_ones_are_kept(tmp_path, order):
    def of(measures, runs, keep):
        return added(measures, runs=runs, keep=keep, forecasters=[F.EmpiricalMean()])

    moved, whole = files(tmp_path, of(["ece"], 8, 4), of(["ece", "smooth_ce"], 4, "all"))
    played(whole, of(["ece"], 12, "all"), resume=True)
    merge([moved, whole][::order], tmp_path / "m.db")
    with Store.open(tmp_path / "m.db") as store:
        assert all(whole_runs(store.gammas(key)) == set(range(12)) for key in store.runs())
    # Nothing of it is played again.
    assert resumed(tmp_path / "m.db", of(["ece", "smooth_ce"], 12, "all"))[0] == []


def others(part, run=1):
    """Entries of accounts or totals, of which the first is another in one run."""
    own = np.arange(next(iter(part.values())).shape[-1]) == run
    return {name: values + own * (at == 0) for at, (name, values) in enumerate(part.items())}


@pytest.mark.parametrize(
    ("where", "change"),
    [
        ("ece of run 1", lambda game: game._replace(totals=others(game.totals))),
        ("ece of run 0", lambda game: game._replace(totals=others(game.totals, 0))),
        ("their checkpoints", lambda game: game._replace(rounds=game.rounds + 1)),
        ("open questions", lambda game: game._replace(open=(3,))),
        ("the accounts of decision makers",
         lambda game: game._replace(people=replace(game.people, entries=others(game.people.entries)))),
    ],
)  # fmt: skip
def test_contradictions_are_refused(tmp_path, where, change):
    """The other file has the same keys and other numbers, sealed as its own."""
    planned = added(people=People.of([{"task": "umbrella"}], 1))
    a, b = files(tmp_path, planned, planned)
    with Store.open(b, write=True) as store:
        key = store.plan()[0].key
        content, numbers = store.content(key), store.numbers(key)
        store.forget([key])
        store.add(key, content, change(numbers))
    with pytest.raises(StoreError, match=rf"at T = 40: .*a\.db and .*b\.db contradict each other in {where}"):
        merge([a, b], tmp_path / "m.db")
    assert not (tmp_path / "m.db").exists()


def test_what_is_no_input_or_output_is_refused(tmp_path, results):
    (a,) = files(tmp_path / "x", cells())
    (c,) = files(tmp_path / "c", cells(seed=2))
    d, e = files(tmp_path / "d", *(added([lambda gamma, value=value: value]) for value in (1.0, 2.0)))
    people = {"task": "umbrella"}, {"task": "umbrella", "label": "me"}
    f, g = files(tmp_path / "f", *(added(people=People.of([one], 1)) for one in people))
    (h,) = files(tmp_path / "h", cells(runs=4))
    new, before = tmp_path / "m.db", {path: path.read_bytes() for path in (a, h, results)}
    for sources, out, options, said in (
        ([a, c], new, {}, r"another game .*\(seed\)"), ([d, e], new, {}, "<lambda> is something else"),
        ([f, g], new, {}, "other labels"), ([a, h], a, {}, "one of the files that are merged"),
        ([a, h], results, {}, "exists"), ([a, h], h, {"overwrite": True}, "one of the files that are merged"),
        ([a], new, {}, "expected at least two"), ([a, tmp_path / "none.db"], new, {}, "no such results file"),
    ):  # fmt: skip
        with pytest.raises(StoreError, match=said):
            merge(sources, out, **options)
        assert not new.exists()
    assert {path: path.read_bytes() for path in before} == before
    a.write_bytes(index_that_says_something_else(a))
    with pytest.raises(StoreError, match=r"a\.db: it is damaged \(.*index"):
        merge([a, h], new)
