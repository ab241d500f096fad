"""Γ that is kept: read back it is what was measured, to the last bit, and it takes little room."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.levels import LevelSets
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
        (F.CDLMinimiser(), N.Greedy(), {}), (F.FosterVohra(), N.Bernoulli(), {}), (F.EmpiricalMean(), N.Drift(), CUTS),
        (F.DefensiveForecasting(), N.Bernoulli(), {}), (F.LastOutcome(), N.Drift(), {}), (F.ForecastHedging(), TWO, {}),
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
    for who, horizon, runs in (
        (F.ForecastHedging(), 8000, 16),
        (F.EmpiricalMean(), 2000, 16),
        (F.CDLMinimiser(), 500, 4),
    ):
        for times in ([horizon], [horizon // 8, horizon // 4, horizon]):
            kept, known = packed_and_known(who, N.Drift(), times, runs)
            levels = sum(gamma.levels for then in known for gammas in then for gamma in gammas)
            size = sum(len(file) for group in kept.groups for file in group.files)
            assert size <= 8 * levels + runs * len(times) + 1000, (who, horizon, runs, times)


def test_a_grid_of_any_numbers_comes_back():
    rng = np.random.default_rng(1)
    for grid in (np.sort(rng.random(40)), np.zeros(1), np.array([0.0, 5e-324, 1.0]), np.linspace(0, 1, 30)):
        counts = rng.integers(0, 2**40, len(grid))
        counts[0] += 1
        gamma = JointDistribution.from_counts(grid, counts, counts // 2)
        assert same(packed([[[gamma]]], grid).of(0, 0), gamma)


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


def test_of_two_groups_that_have_a_run_the_whole_one_counts():
    known = packed_and_known(F.EmpiricalMean(), N.Drift(), [20, 400])[1]
    some, whole = packed(known, None, keep=10).groups, packed(known, None).groups
    assert joined(some + whole) == some + whole
    assert joined(whole + some + whole) == whole
    assert same(Gammas(some + whole).of(1, 2), known[1][0][2])
    assert Gammas(some).of(1, 2) is None
    assert not Group(0, b"\1", (whole[0].files[0][:-9],)).sound()


# ---------------------------------------------------------------- found again


def test_gamma_of_a_study(monkeypatch):
    study = oc.play("forecast_hedging", TWO, horizon=100, runs=3, seed=5, measures=["ece"], per_decade=2)
    game = Game(F.ForecastHedging(), TWO, horizon=100, runs=range(3), seed=5)
    game.advance(32)
    played = study.cells[0]
    assert same(played.gamma(1, 2), game.gammas()[2])
    assert same(study.gamma(round=32, run=2), game.gammas()[2])
    assert same(study.gamma(round=32, run=2, stream="drift"), game.gammas(0)[2])
    game.advance(100)
    assert same(played.gamma(-1, 0, 1), game.gammas(1)[0])
    assert same(study.gamma("forecast hedging", study.natures[0], 100, run=1), game.gammas()[1])
    for arguments, said in (
        ((3, 0), "checkpoint = 3; expected an integer from -3 to 2"),
        ((0, 3), "run = 3; expected an integer from 0 to 2"),
        ((0, 0, 2), "stream = 2; expected an integer from 0 to 1"),
        ((0, 1.5), "run = 1.5"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            played.gamma(*arguments)
    for options, said in (
        ({"round": 33}, r"round = 33; expected one of the checkpoints 10, 32, 100"),
        ({"horizon": 99}, r"horizon = 99; expected one of 100"),
        ({"stream": "drft"}, "stream"),
    ):
        with pytest.raises(oc.OnlinecalError, match=said):
            study.gamma(**options)
    # However runs are cut into batches.
    monkeypatch.setattr("onlinecal.study.run.BATCH", 2)
    apart = oc.play("forecast_hedging", TWO, horizon=100, runs=3, seed=5, measures=["ece"], per_decade=2)
    assert [group.runs for group in apart.cells[0].gammas.groups] == [range(1), range(1, 3)]
    for i, run, stream in np.ndindex(3, 3, 2):
        assert same(apart.cells[0].gamma(i, run, stream), played.gamma(i, run, stream))


def test_gamma_that_is_not_kept_is_none_and_totals_are_the_same():
    options = {"horizon": 200, "runs": 2, "measures": ["ece", "cdl"], "per_decade": 1}
    all_of, none, some = (
        oc.play("empirical_mean", "drift", **options, keep=keep) for keep in ("all", "none", 30)
    )
    assert none.gamma() is some.gamma() is None
    assert some.gamma(round=10).levels <= 10
    assert all_of.cells == none.cells == some.cells
