"""Γ that is kept: read back it is what was measured, to the last bit, and it takes little room."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.game import Game
from onlinecal.measures import MEASURES
from onlinecal.schedules import Constant, Schedule
from onlinecal.study import Entry, plan, play_cell
from onlinecal.study.gammas import Gammas, Packer, apart, check_keep, exact_runs, runs_of, unpacked
from onlinecal.study.panel import Panel
from tests.results import cells

F, N = oc.forecasters, oc.natures
PARTS = "predictions", "counts", "positives", "means"


def same(one, other):
    return all(getattr(one, part).tobytes() == getattr(other, part).tobytes() for part in PARTS)


def pack(packer, gammas, grid):
    """A checkpoint: Γ of each stream and run, nothing where no outcome is known."""
    packer.begin(len(gammas), grid)
    for stream, known in enumerate(gammas):
        for run, gamma in enumerate(known):
            packer.take(stream, run, gamma)
    packer.end()


def packed_and_known(forecaster, nature, times, runs=3, keep=4096, **options):
    """What is packed of a game, and at each checkpoint Γ of every stream and run."""
    game = Game(forecaster, nature, horizon=times[-1], runs=range(runs), seed=3, **options)
    packer, known = Packer(keep, runs), []
    for t in times:
        game.advance(t)
        known.append([game.known(stream) for stream in (None, *range(len(nature.streams)))])
        pack(packer, known[-1], None if game.ledger is None else game.ledger.grid)
    return packer.packed(), known


TWO = N.Streams((N.Drift(), N.Bernoulli(0.2)))
LATE = {"schedule": Schedule(delays=Constant(25))}


@pytest.mark.parametrize(
    ("forecaster", "nature", "options"),
    [
        (F.ForecastHedging(), N.Drift(), {}),
        (F.AlmostOneStepAhead(), N.Contrarian(), {}),
        (F.CDLMinimiser(), N.Greedy(), {}),
        (F.FosterVohra(), N.Bernoulli(), {}),
        (F.EmpiricalMean(), N.Drift(), {}),
        (F.DefensiveForecasting(), N.Bernoulli(), {}),
        (F.LastOutcome(), N.Drift(), {}),
        (F.ForecastHedging(), TWO, {}),
        (F.EmpiricalMean(), TWO, LATE),
        (F.ForecastHedging(), N.Drift(), LATE),
        (F.ForecastHedging(), N.Drift(), {"cuts": [10.0, 70.0]}),
        (F.EmpiricalMean(), N.Drift(), {"cuts": [10.0, 70.0]}),
    ],
    ids=str,
)
def test_what_comes_back_is_what_was_measured(forecaster, nature, options):
    times = [20, 50, 160]
    packed, known = packed_and_known(forecaster, nature, times, **options)
    back = list(unpacked(packed))
    assert runs_of(packed) == 3
    assert exact_runs(packed, 5) == [5, 6, 7]
    assert len(back) == len(times)
    for then, now in zip(known, back, strict=True):
        assert len(then) == len(now) == 1 + len(nature.streams)
        for gammas, kept in zip(then, now, strict=True):
            if not gammas:  # no outcome is known
                assert [each.gamma for each in kept] == [None] * 3
            for gamma, each in zip(gammas, kept, strict=bool(gammas)):
                assert same(gamma, each.gamma)
                assert each.moved is None


#: options of measures that have some that must be given, or that a large Γ would make slow
OPTIONS = {name: dict(record.example) for name, record in MEASURES.items()}


@pytest.mark.parametrize("forecaster", [F.ForecastHedging(), F.EmpiricalMean()], ids=str)
def test_every_measure_and_task_of_it_is_what_playing_gives(forecaster):
    """All that can be named, of a forecaster with a grid and of one without, over all rounds and of each stream."""
    measures = [{"name": name, **OPTIONS[name]} for name in MEASURES]
    tasks = ["umbrella", "quadratic", {"name": "umbrella", "response": {"name": "rounded", "m": 10}}]
    whole = Panel.of(measures, tasks, rounds=120)
    (cell,) = plan(
        [Entry.of(forecaster)], [Entry.of(TWO)], horizons=[120], runs=2, seed=2, panel=whole, per_decade=1
    )  # fmt: skip
    played = play_cell(cell)
    (less,) = plan(
        [Entry.of(forecaster)], [Entry.of(TWO)], horizons=[120], runs=2, seed=2, panel=Panel.of(["ece"]), per_decade=1
    )  # fmt: skip
    later = oc.Study((play_cell(less),)).measure_again(measures, tasks)
    assert set(later.measures) == {column.name for column in played.columns}
    for name, totals in later.cells[0].totals.items():
        assert totals.tobytes() == played.totals[name].tobytes(), name
    assert "scdl @ drift" in later.measures


def test_levels_of_a_grid_cost_at_most_eight_bytes():
    for horizon, runs in ((196, 16), (1000, 4), (8000, 16), (20_000, 1)):
        for times in ([horizon], [horizon // 8, horizon // 4, horizon]):
            packed, known = packed_and_known(F.ForecastHedging(), N.Drift(), times, runs)
            levels = sum(gamma.levels for then in known for gammas in then for gamma in gammas)
            assert len(packed) <= 8 * levels, (horizon, runs, times)


def test_a_grid_of_any_numbers_comes_back():
    rng = np.random.default_rng(1)
    for grid in (
        np.sort(rng.random(40)),
        np.array([0.0]),
        np.array([0.0, 5e-324, 1.0]),
        np.linspace(0, 1, 30),
    ):
        counts = rng.integers(0, 2**40, len(grid))
        counts[0] += 1
        gamma = JointDistribution.from_counts(grid, counts, counts // 2)
        packer = Packer(4096, 1)
        pack(packer, [[gamma]], grid)
        assert same(next(unpacked(packer.packed()))[0][0].gamma, gamma)


def test_counts_may_go_down_between_checkpoints():
    """Nothing is taken for granted of what is packed."""
    first = JointDistribution.from_counts([0.2, 0.5], [4, 2], [1, 2])
    for other in (
        JointDistribution.from_counts([0.2, 0.5], [3, 2], [1, 2]),
        JointDistribution.from_counts([0.2, 0.5], [4, 3], [0, 2]),
        JointDistribution.from_counts([0.2, 0.5], [5, 2], [3, 2]),
        JointDistribution.from_counts([0.5], [9], [3]),
        JointDistribution.from_counts([0.9], [9], [3]),
        first,
    ):
        for grid in (None, np.array([0.2, 0.5, 0.9])):
            packer = Packer("all", 1)
            for gamma in (first, other, first):
                pack(packer, [[gamma]], grid)
            back = [table[0][0].gamma for table in unpacked(packer.packed())]
            assert all(map(same, back, (first, other, first)))


# ---------------------------------------------------------------- what is not kept exactly


def test_above_so_many_levels_predictions_are_moved_and_it_is_said_how_far():
    times = [20, 400, 800]
    packed, known = packed_and_known(F.EmpiricalMean(), N.Drift(), times, keep=50)
    assert exact_runs(packed) == []
    for then, now in zip(known, unpacked(packed), strict=True):
        for gamma, kept in zip(then[0], now[0], strict=True):
            if gamma.levels <= 50:
                assert kept.moved is None
                assert same(kept.gamma, gamma)
            else:
                rounded, moved = gamma.round(49)
                assert kept.moved == pytest.approx(moved, rel=1e-12)
                assert kept.moved > 0.0
                assert all(
                    getattr(kept.gamma, part).tobytes() == getattr(rounded, part).tobytes()
                    for part in PARTS[:3]
                )
    assert known[0][0][0].levels <= 50 < known[1][0][0].levels
    packed, _ = packed_and_known(F.EmpiricalMean(), N.Drift(), times, keep="all")
    assert exact_runs(packed) == [0, 1, 2]
    assert packed_and_known(F.EmpiricalMean(), N.Drift(), times, keep="none")[0] == b""


def test_grids_are_exact_whatever_is_kept():
    packed, known = packed_and_known(F.ForecastHedging(m=30), N.Drift(), [500], keep=2)
    assert all(map(same, known[0][0], (kept.gamma for kept in next(unpacked(packed))[0])))


@pytest.mark.parametrize("keep", [1, 0, -1, 2.5, True, "some", None, "ALL", 2**41])
def test_what_says_nothing_is_refused(keep):
    with pytest.raises(
        InvalidParameter, match=r"keep = .*; expected 'all', 'none', or up to how many levels"
    ):
        check_keep(keep)
    with pytest.raises(InvalidParameter, match="keep = "):
        oc.play("constant", "drift", horizon=10, keep=keep)


# ---------------------------------------------------------------- found again


def test_gamma_of_a_study(tmp_path):
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
    with pytest.raises(InvalidParameter, match=r"round = 33; expected one of the checkpoints 10, 32, 100"):
        study.gamma(round=33)
    with pytest.raises(InvalidParameter, match=r"horizon = 99; expected one of 100"):
        study.gamma(horizon=99)
    with pytest.raises(oc.errors.UnknownName, match="stream"):
        study.gamma(stream="drft")


def test_gamma_that_is_not_kept_is_none_and_one_that_was_moved_is_told_apart():
    study = oc.play(
        "empirical_mean", "drift", horizon=200, runs=2, measures=["ece"], keep="none", per_decade=1
    )
    assert study.gamma() is None
    assert study.cells[0].kept(-1, 0) is None
    study = oc.play("empirical_mean", "drift", horizon=200, runs=2, measures=["ece"], keep=30, per_decade=1)
    assert study.gamma() is None
    kept = study.cells[0].kept(-1, 0)
    assert kept.gamma.levels <= 30
    assert kept.moved > 0
    assert study.gamma(round=10).levels <= 10


def test_batches_of_runs_are_one_after_the_other(monkeypatch):
    (cell,) = cells(horizons=[60, 90], runs=5, forecasters=[F.EmpiricalMean()], natures=[N.Drift()])[:1]
    whole = play_cell(cell)
    monkeypatch.setattr("onlinecal.study.run.BATCH", 2)
    apart = play_cell(cell)
    assert apart.gammas.covered == [(0, 2), (2, 4), (4, 5)]
    assert all(same(whole.gamma(-1, run), apart.gamma(-1, run)) for run in range(5))
    assert Gammas().of(0, 0) is None


def test_totals_do_not_depend_on_what_is_kept():
    study = [
        oc.play("empirical_mean", "drift", horizon=300, runs=2, measures=["ece", "cdl"], keep=keep)
        for keep in ("all", "none", 20)
    ]
    assert study[0].cells == study[1].cells == study[2].cells
    assert study[0].columns["ece"] == Column("measure", "ece")


@pytest.mark.parametrize("forecaster", [F.EmpiricalMean(), F.ForecastHedging()])
@pytest.mark.parametrize("nature", [N.Drift(), N.Streams((N.Drift(), N.Bernoulli(0.2)))])
def test_runs_in_several_parts_are_in_one_and_exactly_where_one_has_them_so(forecaster, nature):
    def part(first, last, keep):
        game = Game(forecaster, nature, horizon=60, runs=range(first, last), seed=3)
        streams = [None, *range(len(nature.streams))]
        packer = Packer(keep, last - first)
        for t in (10, 60):
            game.advance(t)
            packer.begin(len(streams), None if game.ledger is None else game.ledger.grid)
            for place, stream in enumerate(streams):
                for run, gamma in enumerate(game.each(stream)):
                    packer.take(place, run, gamma)
            packer.end()
        return first, packer.packed()

    whole = Gammas([part(0, 9, "all")])
    moved = Gammas([part(0, 9, 4)])
    grid = forecaster.deterministic is False
    for parts, exactly in (
        ([part(0, 4, "all"), part(4, 9, 4)], range(4)),
        ([part(0, 6, 4), part(2, 9, "all")], range(2, 9)),
        ([part(2, 9, 4), part(0, 4, "all"), part(5, 7, "all")], (0, 1, 2, 3, 5, 6)),
        ([part(0, 9, 4), part(0, 5, "all")], range(5)),
        ([part(0, 3, "all"), part(6, 9, "all"), part(1, 8, 4)], (0, 1, 2, 6, 7, 8)),
    ):
        found = apart(parts)
        runs = [run for first, packed in found for run in range(first, first + runs_of(packed))]
        assert runs == list(range(9))
        exact = {run for first, packed in found for run in exact_runs(packed, first)}
        assert exact == (set(range(9)) if grid else set(exactly))
        read = Gammas(found)
        for run in range(9):
            for checkpoint in (0, 1):
                for stream in (None, *range(len(nature.streams))):
                    kept = read.of(checkpoint, run, stream)
                    known = (whole if run in exact else moved).of(checkpoint, run, stream)
                    assert kept.moved == known.moved
                    assert same(kept.gamma, known.gamma)
        assert apart(found) == found
    single = [part(0, 4, 4), part(4, 9, "all")]
    assert apart(single[::-1]) == single
