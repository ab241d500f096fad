"""Forecasts without a grid: exact in memory or in a file, with the same Γ; or counted on a grid, with the distance."""

from __future__ import annotations

import copy
import errno
import os
import pickle
from itertools import pairwise
from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter, StoreError
from onlinecal.core.joint import JointDistribution, encode
from onlinecal.engine import spill
from onlinecal.engine.game import Game
from onlinecal.engine.history import MovedHistory, RealHistory
from onlinecal.engine.keeping import Exact, OnGrid, as_history
from onlinecal.engine.ledger import Ledger
from onlinecal.engine.spill import Spill, gamma_of
from onlinecal.forecasters import DefensiveForecasting, EmpiricalMean, ForecastHedging, Law
from onlinecal.natures import Bernoulli, Drift, Streams
from onlinecal.schedules import Constant, Schedule
from tests.engine.test_game import same
from tests.rounds_by_hand import played


@pytest.fixture
def little(monkeypatch):
    """So little memory that forecasts go into a file, in small pieces and blocks."""
    monkeypatch.setattr("onlinecal.engine.keeping.free_memory", lambda: 40.0)
    monkeypatch.setattr("onlinecal.engine.keeping.FEWEST", 16)
    monkeypatch.setattr("onlinecal.engine.ledger.FEWEST", 16)
    for name, value in (("BLOCKS", 1), ("FEWEST", 3), ("LEVELS", 5)):
        monkeypatch.setattr(f"onlinecal.engine.spill.{name}", value)


def stretches(game):
    return game.ledger._parts.values()


def spilled(game):
    return any(history.pieces for history in stretches(game))


def seen(game, stops, streams=(None,)):
    """Γ of all runs and streams at each stop."""
    gammas = []
    for stop in stops:
        game.advance(stop)
        gammas += [gamma for stream in streams for gamma in game.known(stream)]
    return gammas


# ---------------------------------------------------------------- the file


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1)), max_size=30), min_size=1, max_size=9),
    st.data(),
)
def test_merging_gives_the_levels_of_all(samples, data):
    if not any(samples):
        return
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FEWEST", "LEVELS"):
            patch.setattr(spill, name, data.draw(st.integers(1, 7)))
        patch.setattr(spill, "BLOCKS", 1)
        file, pieces = Spill("."), []
        for rows in samples:
            p, y = (
                (np.array(column, float) for column in zip(*rows, strict=True)) if rows else np.empty((2, 0))
            )
            keys = np.sort(encode(p / 9, y))
            stored = data.draw(st.booleans()) or not pieces
            pieces.append(spill.Piece(file, file.write(keys), 1, len(keys)).of(0) if stored else keys)
        merged = gamma_of(pieces)
    every = [row for rows in samples for row in rows]
    p, y = (np.array(column, float) for column in zip(*every, strict=True))
    assert same([merged], [JointDistribution.from_samples(p / 9, y)])


def test_a_level_with_very_many_rounds_takes_no_room(little):
    keys = np.sort(encode(np.full(1000, 0.25), (np.arange(1000) % 4 == 0).astype(float)))
    file = Spill(".")
    pieces = [spill.Piece(file, file.write(keys), 1, 1000).of(0) for _ in range(40)]
    assert same([gamma_of(pieces)], [JointDistribution.from_counts([0.25], [40_000], [10_000])])


@pytest.mark.parametrize("loop", ["event", "compiled"])
def test_exact_in_a_file_is_exact_in_memory(loop, little, monkeypatch, tmp_path):
    stops, options = [1, 7, 16, 17, 40, 200, 333, 500], {"horizon": 500, "seed": 3, "loop": loop}
    small = Game(
        DefensiveForecasting(),
        Drift(),
        runs=range(3),
        history={"name": "exact", "folder": str(tmp_path)},
        **options,
    )
    found = seen(small, stops)
    assert spilled(small)
    assert len(stretches(small)) == 1
    assert list(tmp_path.iterdir()) == []  # a file without a name
    # Other checkpoints, other batches, the other loop.
    once = Game(DefensiveForecasting(), Drift(), runs=range(3), **options)
    assert same(seen(once, [500]), found[-3:])
    alone = Game(DefensiveForecasting(), Drift(), runs=range(1, 2), **options)
    assert same(seen(alone, stops), found[1::3])
    monkeypatch.undo()
    large = Game(DefensiveForecasting(), Drift(), runs=range(3), **options)
    assert same(seen(large, stops), found)
    assert not spilled(large)


def test_with_delays_streams_and_parts(little, monkeypatch):
    nature = Streams((Drift(), Bernoulli(0.2)))

    def play(history="exact"):
        game = Game(
            DefensiveForecasting(), nature, horizon=300, runs=range(2), schedule=Schedule(delays=Constant(7)),
            cuts=[50.0, 120.5], history=history,
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
    rounded = [gamma.round(20) for gamma in found]
    assert_moved(counted, [gamma for gamma, _ in rounded])
    for run, exact in enumerate(other.ledger.gammas(0, 50.0, 120.5)):
        assert moved[run] == pytest.approx(exact.round(20)[1], rel=1e-11)


def assert_moved(counted, rounded):
    """The same levels and counts; means come from sums of whole numbers."""
    for mine, theirs in zip(counted, rounded, strict=True):
        for part in ("predictions", "counts", "positives"):
            assert (getattr(mine, part) == getattr(theirs, part)).all()


def test_a_game_with_a_file_can_be_copied_and_pickled(little):
    game = Game(EmpiricalMean(), Bernoulli(), horizon=300, runs=range(2))
    seen(game, [60, 130, 200])
    assert spilled(game)
    others = copy.deepcopy(game), pickle.loads(pickle.dumps(game))
    game.advance(300)
    for other in others:
        other.advance(300)
        assert same(other.gammas(), game.gammas())


def test_a_full_disk_is_said_in_one_line(little, tmp_path, monkeypatch):
    class Full:
        def seek(self, at):
            pass

        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def close(self):
            pass

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **options: Full())
    game = Game(EmpiricalMean(), Bernoulli(), horizon=300, runs=range(2), history=Exact(str(tmp_path)))
    game.advance(100)
    with pytest.raises(StoreError, match=r"No space left on device.*expected room") as error:
        game.advance(300)
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_what_fits_nowhere_is_refused_before_it_is_needed(monkeypatch):
    game = Game(EmpiricalMean(), Bernoulli(), horizon=10**9, runs=range(10**5))
    with pytest.raises(InvalidParameter, match=r"745058.1 GiB of history.*expected.*history = 10000"):
        game.advance(1)
    monkeypatch.setattr("onlinecal.engine.memory.free_memory", lambda: 1000.0)
    with pytest.raises(InvalidParameter, match=r"2 runs with 2 tables of 1001 counts"):
        Ledger(2, 10, None, keeping=OnGrid(1000))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("exactly", "history = 'exactly'"),
        (1.5, "history = 1.5"),
        (None, "history = None"),
        (True, "history = True"),
        ({"name": "exact", "file": "x"}, "history ="),
        ({"folder": "."}, "history ="),
        ({"name": "exact", "folder": "nowhere/at/all"}, "is no folder"),
        ({"name": "exact", "share": 0}, "share"),
        (0, "m = 0"),
        (10**8, "m = 100000000"),
    ],
)
def test_what_is_no_history_is_refused(spec, message):
    with pytest.raises(InvalidParameter, match=message):
        as_history(spec)
    with pytest.raises(InvalidParameter, match=message):
        Game(EmpiricalMean(), Bernoulli(), horizon=10, runs=range(1), history=spec)


# ---------------------------------------------------------------- counts on a grid


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=200), st.integers(1, 50))
def test_counts_and_distance_are_those_of_rounding(rounds, m):
    history = MovedHistory(1, m)
    for p, y in rounds:
        history.update(played(Law(1, 1), p, y))
    p, y = (np.array(column, float) for column in zip(*rounds, strict=True))
    rounded, _ = JointDistribution.from_samples(p, y).round(m)
    assert_moved(history.each(), [rounded])
    exact = fsum(abs(np.rint(p * m) / m - p))
    assert exact <= history.distances[0] <= exact * (1 + 2e-12)


@pytest.mark.parametrize("m", [1, 7, 1000])
def test_both_loops_count_the_same_bytes(m):
    found = []
    for loop, runs in (("event", range(3)), ("compiled", range(3)), ("compiled", range(1, 2))):
        game = Game(DefensiveForecasting(), Drift(), horizon=3000, runs=runs, history=m, loop=loop)
        found.append([])
        for stop in (5, 64, 65, 1000, 3000):
            game.advance(stop)
            found[-1] += [(g, moved) for g, moved in zip(game.known(), game.moved(), strict=True)]
    event, compiled, alone = found
    for one, other in ((event, compiled), (event[1::3], alone)):
        assert same([g for g, _ in one], [g for g, _ in other])
        assert [moved for _, moved in one] == [moved for _, moved in other]


def test_the_sum_of_distances_loses_nothing():
    """In steps that a plain sum would lose: 1/2 once, then 10^-17 many times."""
    history = MovedHistory(1, 1)
    for p in [0.5] + [1e-17] * 1000:
        history.update(played(Law(1, 1), p, 0))
    assert history.distances[0] == pytest.approx(0.5 + 1e-14, abs=0, rel=2e-12)
    assert history._distances.sum() == 0.5 + 1e-14


def test_a_grid_forecaster_is_counted_exactly_and_nothing_is_moved():
    games = [Game(ForecastHedging(), Drift(), horizon=100, runs=range(2), history=h) for h in ("exact", 3)]
    for game in games:
        game.advance(100)
        assert game.moved() is None
    assert same(games[0].gammas(), games[1].gammas())


def test_memory_on_a_grid_does_not_grow_with_rounds():
    def held(rounds):
        game = Game(EmpiricalMean(), Bernoulli(), horizon=rounds, runs=range(2), history=100, loop="event")
        game.advance(rounds)
        return len(pickle.dumps(game.ledger))

    assert abs(held(200) - held(20_000)) < 20


def test_a_spilled_history_keeps_no_more_than_it_may(little):
    history = RealHistory(2, 1000, most=16, spill=Spill("."))
    for t in range(200):
        history.update(played(Law(2, 1), np.array([t / 200, 0.5]), [1, 0]))
        assert history.room <= 16
    assert history.rounds == 200
    assert all(a.rounds == b.rounds for a, b in pairwise(history.pieces))
