"""Γ that is measured and kept: runs that are read together, level sets that are read back, to the last bit."""

import itertools

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.levels import LevelSets
from onlinecal.engine import history
from onlinecal.engine.game import Game
from onlinecal.measures import MEASURES
from onlinecal.schedules import Constant, Schedule
from onlinecal.study import Entry, plan, play_cell
from onlinecal.study import gammas as gammas_module
from onlinecal.study.gammas import Gammas, Group, Packer, joined, whole_runs
from onlinecal.study.panel import Panel

F, N = oc.forecasters, oc.natures
PARTS = "predictions", "counts", "positives", "means"
TWO = N.Streams((N.Drift(), N.Bernoulli(0.2)))


def same(one, other, parts=PARTS):
    return all(getattr(one, part).tobytes() == getattr(other, part).tobytes() for part in parts)


def packed(checkpoints, grid, keep="all"):
    """All that is kept of Γ of each stream and run at each checkpoint, nothing where no outcome is known."""
    packer = Packer(keep, max(map(len, checkpoints[-1])), len(checkpoints[0]))
    for gammas in checkpoints:
        packer.free = grid is None
        for stream, known in enumerate(gammas):
            if known:
                packer.take(stream, 0, LevelSets.of(known))
        packer.end()
    return Gammas(packer.packed(0))


def packed_and_known(forecaster, nature, times, runs=3, keep=4096, **options):
    """All that is kept of a game, and at each checkpoint Γ of every stream and run."""
    game, known = Game(forecaster, nature, horizon=times[-1], runs=range(runs), seed=3, **options), []
    for t in times:
        game.advance(t)
        known.append([game.known(stream) for stream in (None, *range(len(nature.streams)))])
    return packed(known, game.history.grid, keep), known


LATE = {"schedule": Schedule(delays=Constant(25))}
CUTS = {"cuts": [10.0, 70.0]}


@pytest.mark.parametrize(
    ("forecaster", "nature", "options"),
    [
        (F.ForecastHedging(), N.Drift(), CUTS), (F.AlmostOneStepAhead(), N.Contrarian(), {}),
        (F.EmpiricalMean(), N.Drift(), CUTS), (F.LastOutcome(), N.Drift(), {}), (F.ForecastHedging(), TWO, {}),
        (F.EmpiricalMean(), TWO, LATE), (F.ForecastHedging(), N.Drift(), LATE),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("held", [gammas_module.HELD, 0], ids=["one file", "several files"])
def test_what_comes_back_is_what_was_measured(forecaster, nature, options, held, monkeypatch):
    monkeypatch.setattr(gammas_module, "HELD", held)
    kept, known = packed_and_known(forecaster, nature, [20, 50, 160], **options)
    assert [len(group.files) > 1 for group in kept.groups] == [held == 0]
    assert whole_runs(kept.groups) == set(range(3))
    for i, then in enumerate(known):
        for stream, gammas in enumerate(then):
            for run in range(3):
                found = kept.of(i, run, stream - 1 if stream else None)
                assert same(gammas[run], found) if gammas else found is None


@pytest.mark.parametrize("forecaster", [F.ForecastHedging(), F.EmpiricalMean()], ids=str)
def test_every_measure_and_task_of_it_is_what_playing_gives(forecaster):
    """All that can be named, of a forecaster with a grid and one without, over all rounds and each stream."""
    measures = [{"name": name, **record.example} for name, record in MEASURES.items()]
    tasks = ["umbrella", "quadratic", {"name": "umbrella", "response": {"name": "rounded", "m": 10}}]

    def cell(panel):
        options = {"horizons": [30], "runs": 1, "seed": 2, "per_decade": 1}
        return play_cell(plan([Entry.of(forecaster)], [Entry.of(TWO)], panel=panel, **options)[0])

    whole = cell(Panel.of(measures, tasks, rounds=30))
    later = oc.Study((cell(Panel.of(["ece"])),)).measure_again(measures, tasks)
    assert set(later.measures) == {column.name for column in whole.columns}
    for name, totals in later.cells[0].totals.items():
        assert totals.tobytes() == whole.totals[name].tobytes(), name
    assert "scdl @ drift" in later.measures


def test_levels_take_little_room():
    """At most eight bytes each, beside a kilobyte, and a byte of each run at each checkpoint."""
    for who, horizon, runs in ((F.ForecastHedging(), 8000, 16), (F.EmpiricalMean(), 2000, 16)):
        for times in ([horizon], [horizon // 8, horizon // 4, horizon]):
            kept, known = packed_and_known(who, N.Drift(), times, runs)
            levels = sum(gamma.levels for then in known for gammas in then for gamma in gammas)
            size = sum(len(file) for group in kept.groups for file in group.files)
            assert size <= 8 * levels + runs * len(times) + 1000, (who, horizon, runs, times)


# ---------------------------------------------------------------- what is not kept


def test_gamma_of_more_levels_than_are_kept():
    """Runs have different numbers of levels: each is kept while it has no more."""
    times = [20, 400, 800]
    known = packed_and_known(F.EmpiricalMean(), N.Drift(), times)[1]
    most = known[1][0][0].levels
    assert len({gamma.levels for gamma in known[1][0]}) > 1
    some, known = packed_and_known(F.EmpiricalMean(), N.Drift(), times, keep=most)
    assert whole_runs(some.groups) == set()
    for run in range(3):
        for i, (then,) in enumerate(known):
            gamma, found = then[run], some.of(i, run)
            assert found is None if gamma.levels > most else same(found, gamma)
    every = packed_and_known(F.EmpiricalMean(), N.Drift(), times, keep="all")[0]
    assert whole_runs(every.groups) == {0, 1, 2}
    assert packed_and_known(F.EmpiricalMean(), N.Drift(), times, keep="none")[0].groups == ()
    # Grids are kept whatever is said.
    held, known = packed_and_known(F.ForecastHedging(m=30), N.Drift(), [500], keep=2)
    assert all(same(known[0][0][run], held.of(0, run)) for run in range(3))


def test_of_several_groups_those_with_something_new_are_kept():
    """A run that is new, whole or not, or one that is whole for the first time."""
    groups = new, _, part, whole, _ = [
        Group(first, bytes(which), ())
        for first, which in ((0, [0, 1]), (1, [1]), (2, [0]), (0, [1, 1]), (1, [1, 0]))
    ]
    assert joined(groups) == (new, part, whole)


# ---------------------------------------------------------------- found again


def test_gamma_of_a_study(monkeypatch):
    options = {"horizon": 100, "runs": 3, "seed": 5, "measures": ["ece"], "per_decade": 2}
    study = oc.play("forecast_hedging", TWO, **options)
    game = Game(F.ForecastHedging(), TWO, horizon=100, runs=range(3), seed=5)
    game.advance(32)
    played, alone = study.cells[0], oc.play("constant", "drift", horizon=9, runs=1)
    assert same(study.gamma(round=32, run=2), game.gammas()[2])
    assert same(study.gamma(round=32, run=2, group="all"), game.gammas()[2])
    assert same(study.gamma(round=32, run=2, stream="drift"), game.gammas(0)[2])
    game.advance(100)
    assert same(played.gamma(-1, 0, 1), game.gammas(1)[0])
    assert same(study.gamma("forecast hedging", study.natures[0], 100, run=1), game.gammas()[1])
    for ask, asked, said in (
        (played.gamma, {"checkpoint": 3, "run": 0}, "checkpoint = 3"),
        (played.gamma, {"checkpoint": -4, "run": 0}, "checkpoint = -4"),
        (played.gamma, {"checkpoint": 0, "run": 3}, "run = 3"),
        (played.gamma, {"checkpoint": 0, "run": 0, "stream": 2}, "stream = 2"),
        (alone.cells[0].gamma, {"checkpoint": 0, "run": 0, "stream": 0}, "expected none, as nature has no streams"),
        (study.gamma, {"round": 33}, "10, 32, 100"), (study.gamma, {"horizon": 99}, "one of 100"),
        (study.gamma, {"stream": "drft"}, "stream"),
        (study.gamma, {"stream": "drift", "group": "all"}, "expected one of them"),
    ):  # fmt: skip
        with pytest.raises(oc.OnlinecalError, match=said):
            ask(**asked)
    # However runs are cut into batches.
    monkeypatch.setattr("onlinecal.study.run.BATCH", 2)
    apart = oc.play("forecast_hedging", TWO, **options)
    assert [group.runs for group in apart.cells[0].gammas.groups] == [range(1), range(1, 3)]
    for i, run, stream in np.ndindex(3, 3, 2):
        assert same(apart.cells[0].gamma(i, run, stream), played.gamma(i, run, stream))


# ---------------------------------------------------------------- read together

#: several measures with a form for many Γ; a task; and measures without one
PANELS = [["ece", "brier", "smooth_ce", "cdl"], ["log_loss", "step_ce", {"name": "ece", "order": 2.0}, "nce"]]


@pytest.mark.parametrize("measures", PANELS)
@pytest.mark.parametrize("forecaster", [F.ForecastHedging(), F.EmpiricalMean()], ids=str)
def test_totals_are_those_of_each_gamma(forecaster, measures, seed):
    """In a study that reads all runs together, and of several streams of which some have no round yet."""
    tasks = ["umbrella", "quadratic", {"name": "umbrella", "response": {"name": "rounded", "m": 4}}]
    options = {"horizon": 60, "runs": 7, "seed": seed, "measures": measures, "tasks": tasks}
    played = oc.play(forecaster, TWO, **options).cells[0]
    panel = Panel.of(measures, tasks)
    assert any(asked.many is not None for asked in panel.asked if asked.record)

    def alone(gamma):
        return [gamma.weight * value for asked in panel.asked for value in asked.read(gamma)]

    for i, run in itertools.product(range(len(played.rounds)), range(7)):
        each = [played.gamma(i, run, stream) for stream in (None, 0, 1)]
        empty = [0.0] * len(panel.columns)
        expected = [total for gamma in each for total in (empty if gamma is None else alone(gamma))]
        found = [totals[i, run] for totals in played.totals.values()]
        assert np.array(found).tobytes() == np.array(expected, float)[: len(found)].tobytes()


@pytest.mark.parametrize("forecaster", [F.ForecastHedging(), F.EmpiricalMean()], ids=str)
@pytest.mark.parametrize(("at_once", "held", "keep"), [(40, 1, "all"), (500, 300, 30), (1, 2**22, 30)])
def test_what_is_kept_is_the_same_in_parts_of_any_size(forecaster, at_once, held, keep, monkeypatch, seed):
    """Parts of the runs get smaller as a history grows; bytes are compressed as they come, or in the end."""
    options = {"horizon": 300, "runs": 4, "measures": ["ece", "cdl"], "keep": keep, "seed": seed}
    whole = oc.play(forecaster, TWO, **options).cells[0]
    monkeypatch.setattr(history, "AT_ONCE", at_once)
    monkeypatch.setattr(gammas_module, "HELD", held)
    parts = oc.play(forecaster, TWO, **options).cells[0]
    assert parts == whole == oc.play(forecaster, TWO, **options | {"keep": "none"}).cells[0]
    for i, run, stream in itertools.product(range(len(whole.rounds)), range(4), (None, 0, 1)):
        one, other = whole.gamma(i, run, stream), parts.gamma(i, run, stream)
        assert same(one, other) if one else other is None
