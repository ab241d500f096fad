"""The memory that a run takes: batches are made so that it fits, and what cannot fit is refused."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.core.strategy import bytes_at
from onlinecal.engine.game import Game
from onlinecal.engine.keeping import Exact, OnGrid
from onlinecal.engine.memory import bytes_of_run
from onlinecal.forecasters import DefensiveForecasting, Delayed
from onlinecal.forecasters._laplace import TOLD, make_room
from onlinecal.natures import Bernoulli, Contrarian, Drift, Greedy, Streams


def test_a_strategy_of_others_takes_what_they_take():
    alone = bytes_at(DefensiveForecasting(), 1000, 1000)
    assert alone == 80_000
    assert bytes_at(Delayed(DefensiveForecasting()), 1000, 1000) == alone
    assert bytes_at(DefensiveForecasting("gaussian"), 10**6, 10**6) < 1000
    assert bytes_at(Streams((Drift(), Greedy())), 1000, 1000) >= 64_000


def test_what_is_kept_of_a_run():
    run = bytes_of_run(DefensiveForecasting(), Bernoulli(), 10**6, Exact().bytes_of_run(10**6))
    assert run == pytest.approx(88e6, rel=0.01)
    assert Exact().bytes_of_run(10**6) == 8e6
    assert OnGrid(1000).bytes_of_run(10**9) == OnGrid(1000).bytes_of_run(10**6) < 2**21


@pytest.mark.parametrize("room", ["ROOM", "free_memory"])
def test_batches_have_room_for_what_their_players_remember(monkeypatch, batches, room):
    """Three runs of 1000 rounds of 88 bytes fit into 300,000: the most that a batch has, or half of what is free. If
    there were the history alone, all runs would fit. A batch begins when the last has given its memory back, without a
    search for garbage.
    """
    options = {"nature": "drift", "horizon": 1000, "runs": 8, "seed": 2, "measures": "smooth_ce"}
    cells = oc.play("defensive_forecasting", **options).cells
    where = "onlinecal.study.run.ROOM" if room == "ROOM" else "onlinecal.engine.memory.free_memory"
    monkeypatch.setattr(where, 300_000 if room == "ROOM" else lambda: 600_000)
    gc.collect()
    gc.disable()
    try:
        assert cells == oc.play("defensive_forecasting", **options).cells
    finally:
        gc.enable()
    oc.play("empirical_mean", **options)
    assert batches[1:4] == [(2, 0), (3, 0), (3, 0)]  # of about the same size
    assert [size for size, _ in batches] == [8, 2, 3, 3, 8]


def test_players_that_do_not_fit_are_refused_by_name(monkeypatch):
    monkeypatch.setattr("onlinecal.engine.memory.free_memory", lambda: 7e4)
    with pytest.raises(
        InvalidParameter, match=r"one run of 1000 rounds.*'defensive_forecasting' \(O\(t\)\).*shorter"
    ) as e:
        oc.play("defensive_forecasting", "drift", horizon=1000, runs=2, measures="smooth_ce")
    assert "\n" not in str(e.value)
    oc.play("empirical_mean", "drift", horizon=1000, runs=2, measures="smooth_ce")


def test_where_memory_ends_no_player_is_named():
    """The forecaster gets no room for round 2049 and later ones. The next that asks gets none, whichever it is."""
    game = Game(DefensiveForecasting(), Contrarian(), horizon=4096, runs=range(3))

    def reserve(memory, rounds):
        if memory.ints[0, TOLD] + rounds > 2048:
            np.empty(2**55)
        make_room(memory, rounds)

    game.forecaster._reserve = reserve
    game.advance(1024)
    match = r"no memory left for round \d+ in 3 run\(s\): .*; expected fewer"
    for _ in range(2):
        with pytest.raises(InvalidForecast, match=match) as error:
            game.advance(4096)
        assert not any(who in str(error.value) for who in ("contrarian", "defensive"))
