"""The record of resolved rounds. Counts on a grid, or forecasts: exact in memory or in a file, or moved to a grid."""

import copy
import errno
import os
import pickle
from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter, StoreError
from onlinecal.core.joint import JointDistribution, encode
from onlinecal.engine import spill
from onlinecal.engine.history import Counts, Sorted
from onlinecal.engine.keeping import Exact, OnGrid
from onlinecal.engine.ledger import Ledger
from onlinecal.engine.spill import Spill, merged
from onlinecal.forecasters import DefensiveForecasting, ForecastHedging
from onlinecal.natures import Bernoulli, Drift, Streams
from onlinecal.schedules import Constant, Schedule
from tests.engine.games import game_of, played, same

PAIR = DefensiveForecasting(), Drift()


@pytest.fixture
def little(monkeypatch):
    """So little memory that forecasts go into a file, in small pieces."""
    monkeypatch.setattr("onlinecal.engine.keeping.free_memory", lambda: 40.0)
    monkeypatch.setattr("onlinecal.engine.keeping.FEWEST", 16)
    monkeypatch.setattr("onlinecal.engine.ledger.FEWEST", 16)
    monkeypatch.setattr("onlinecal.engine.spill.KEYS", 5)


def spilled(game):
    return any(history.pieces for history in game.ledger._parts.values())


def seen(game, stops, streams=(None,)):
    """Γ of all runs and streams at each stop."""
    gammas = []
    for stop in stops:
        game.advance(stop)
        gammas += [gamma for stream in streams for gamma in game.known(stream)]
    return gammas


def stored(file, keys):
    return file.rows(file.write(keys), (1, len(keys)))[0]


samples = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1)), max_size=30)


@given(st.lists(samples, min_size=1, max_size=9).filter(any), st.integers(1, 7), st.data())
def test_merging_gives_the_levels_of_all(samples, size, data):
    file, pieces = Spill("."), []
    for rows in samples:
        p, y = np.array(rows, float).reshape(-1, 2).T
        keys = np.sort(encode(p / 9, y))
        pieces.append(stored(file, keys) if len(keys) and data.draw(st.booleans()) else keys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "KEYS", size)
        found = merged(pieces)
    p, y = np.array([row for rows in samples for row in rows], float).T
    assert same([found], [JointDistribution.from_samples(p / 9, y)])


def test_a_level_with_very_many_rounds_takes_no_room(little):
    keys, file = np.sort(encode(np.full(1000, 0.25), (np.arange(1000) % 4 == 0).astype(float))), Spill(".")
    found = merged([stored(file, keys) for _ in range(40)])
    assert same([found], [JointDistribution.from_counts([0.25], [40_000], [10_000])])


def test_exact_in_a_file_is_exact_in_memory(little, monkeypatch, tmp_path):
    """Whatever the checkpoints and batches, also of a game that was copied or stored."""
    stops, options = [1, 7, 16, 17, 40, 200, 333, 500], {"horizon": 500, "seed": 3}
    small = game_of(*PAIR, history={"name": "exact", "folder": str(tmp_path)}, **options)
    found = seen(small, stops[:5])
    assert spilled(small)
    others = copy.deepcopy(small), pickle.loads(pickle.dumps(small))
    found += seen(small, stops[5:])
    assert list(tmp_path.iterdir()) == []  # a file without a name
    for other in (*others, game_of(*PAIR, **options)):
        assert same(seen(other, [500]), found[-2:])
    assert same(seen(game_of(*PAIR, runs=range(1, 2), **options), stops), found[1::2])
    monkeypatch.undo()
    large = game_of(*PAIR, **options)
    assert same(seen(large, stops), found)
    assert not spilled(large)


def test_with_delays_streams_and_parts(little, monkeypatch):
    def play(history="exact"):
        game = game_of(
            PAIR[0], Streams((Drift(), Bernoulli(0.2))), 300, schedule=Schedule(delays=Constant(7)), cuts=[50.0, 120.5],
            history=history,
        )  # fmt: skip
        found = seen(game, [60, 300], (None, 0, 1))
        return game, found + game.ledger.gammas(None, 50.0, 120.5), game.ledger.moved(0, 50.0, 120.5)

    game, found, _ = play()
    assert spilled(game)
    monkeypatch.undo()
    other, large, moved = play()
    assert not spilled(other)
    assert same(found, large)
    assert moved is None
    # Counted on a grid, it is that Γ after it was moved.
    _, counted, moved = play(20)
    assert_moved(counted, [gamma.round(20)[0] for gamma in found])
    for run, exact in enumerate(other.ledger.gammas(0, 50.0, 120.5)):
        assert moved[run] == pytest.approx(exact.round(20)[1], rel=1e-11)


def assert_moved(counted, rounded):
    """The same levels and counts; means come from sums of whole numbers."""
    for mine, theirs in zip(counted, rounded, strict=True):
        for part in ("predictions", "counts", "positives"):
            assert (getattr(mine, part) == getattr(theirs, part)).all()


def test_a_full_disk_is_said_in_one_line(little, tmp_path, monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def close(self):
            pass

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **options: Full())
    game = game_of(horizon=300, history=Exact(str(tmp_path)))
    game.advance(100)
    with pytest.raises(StoreError, match=rf"{tmp_path}.*No space left on device.*expected room") as error:
        game.advance(300)
    assert "\n" not in str(error.value)


def test_what_fits_nowhere_is_refused_before_it_is_needed(monkeypatch):
    with pytest.raises(InvalidParameter, match=r"745058.1 GiB of history.*expected.*history = 10000"):
        game_of(horizon=10**9, runs=range(10**5))
    monkeypatch.setattr("onlinecal.engine.memory.free_memory", lambda: 1000.0)
    with pytest.raises(InvalidParameter, match=r"2 runs with 2 tables of 1001 counts"):
        Ledger(2, 10, None, keeping=OnGrid(1000))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        *((spec, f"history = {spec!r}") for spec in ("exactly", 1.5, None, True)),
        *((spec, "history =") for spec in ({"name": "exact", "file": "x"}, {"folder": "."})),
        ({"name": "exact", "folder": "nowhere/at/all"}, "is no folder"),
        ({"name": "exact", "share": 0}, "share"),
        (0, "m = 0"),
        (10**8, "m = 100000000"),
    ],
)
def test_what_is_no_history_is_refused(spec, message):
    with pytest.raises(InvalidParameter, match=message):
        game_of(history=spec)


def counted(m, p, y):
    history = Counts(1, np.arange(m + 1) / m, moved=True)
    history.add(p, np.array(y, np.int64))
    return history


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=200), st.integers(1, 50))
def test_counts_and_distance_are_those_of_rounding(rounds, m):
    p, y = np.array(rounds, float).T
    history = counted(m, p, y)
    assert_moved(history.each(), [JointDistribution.from_samples(p, y).round(m)[0]])
    exact = fsum(abs(np.rint(p * m) / m - p))
    assert exact <= history.distances[0] <= exact * (1 + 2e-12)


@given(st.sets(st.integers(1, 200), min_size=1, max_size=8))
def test_gamma_at_every_checkpoint_is_that_of_the_rounds_so_far(stops):
    """On a grid, exact, and moved to one, in whatever batch."""
    for forecaster, history in (
        (ForecastHedging(7), "exact"),
        *((PAIR[0], kept) for kept in ("exact", 7, 1000)),
    ):
        game = game_of(forecaster, Drift(), 200, history=history, keeps=())
        alone = game_of(forecaster, Drift(), 200, runs=range(1, 2), history=history)
        for stop in sorted(stops):
            game.advance(stop), alone.advance(stop)
            rounds = game.transcripts.of(1)
            expected = JointDistribution.from_samples(rounds.forecasts, rounds.outcomes)
            if history != "exact":
                expected, moved = expected.round(history)
                assert alone.moved()[0] == game.moved()[1] == pytest.approx(moved, rel=1e-11)
            else:
                assert game.moved() is None
            assert same(game.gammas()[1:], alone.gammas())
            assert_moved(game.gammas()[1:], [expected])


def test_the_sum_of_distances_loses_nothing():
    """In steps that a plain sum would lose: 1/2 once, then 10^-17 many times."""
    history = counted(1, [0.5] + [1e-17] * 1000, [0] * 1001)
    assert history.distances[0] == pytest.approx(0.5 + 1e-14, abs=0, rel=2e-12)
    assert history.sums.sum() == 0.5 + 1e-14


def test_memory_of_a_history():
    """8 bytes a run-round for reals, or as many as a spilled one may keep; on a grid counts alone."""
    assert played(horizon=1000, runs=range(4)).ledger.history((0, 0)).keys.nbytes == 8 * 1000 * 4
    grid = played(ForecastHedging(22), horizon=10_000, runs=range(4), history=3)
    assert grid.moved() is None
    history = grid.ledger.history((0, 0))
    assert history.counts.nbytes + history.positives.nbytes == 16 * 23 * 4
    sizes = [len(pickle.dumps(played(horizon=rounds, history=100).ledger)) for rounds in (200, 20_000)]
    assert abs(sizes[0] - sizes[1]) < 20
    # Of many stretches, each with one round, it is no larger than of one.
    game = played(*PAIR, 500, runs=range(40), cuts=np.arange(0.5, 500.0).tolist())
    assert sum(history.keys.nbytes for history in game.ledger._parts.values()) <= 4 * 8 * 500 * 40


def test_a_spilled_history_keeps_no_more_than_it_may():
    history, p, y = Sorted(1, 1000, most=16, spill=Spill(".")), np.arange(200) / 200, np.arange(200) % 2
    for t in range(200):
        history.add(p[t : t + 1], y[t : t + 1])
        assert history.keys.shape[1] <= 16
    assert [rounds for _, rounds in history.pieces] == [16] * 12
    assert same(history.each(), [JointDistribution.from_samples(p, y.astype(float))])
