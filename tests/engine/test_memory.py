"""The memory that a run takes: batches are made so that it fits, and what cannot fit is refused."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.core.strategy import bytes_at
from onlinecal.engine import history
from onlinecal.engine.game import Game
from onlinecal.engine.memory import bytes_of_run, check_history, check_players, parts_of
from onlinecal.forecasters import DefensiveForecasting, Delayed, EmpiricalMean, ForecastHedging
from onlinecal.natures import Bernoulli, Contrarian, Drift, Greedy, Streams

FREE = "onlinecal.engine.memory.free_memory"


@pytest.fixture
def batches(monkeypatch):
    """The runs of each game of a study, and how many forecasters of earlier games are there when it begins."""
    found, earlier = [], []

    class Watched(Game):
        def __init__(self, *args, **options):
            found.append((len(options["runs"]), sum(each() is not None for each in earlier)))
            super().__init__(*args, **options)
            earlier.append(weakref.ref(self.forecaster))

    monkeypatch.setattr("onlinecal.study.run.Game", Watched)
    return found


def test_bytes_of_strategies_and_runs():
    alone = bytes_at(DefensiveForecasting(), 1000, 1000)
    assert alone == bytes_at(Delayed(DefensiveForecasting()), 1000, 1000) == 96_000
    assert bytes_at(DefensiveForecasting("gaussian"), 10**6, 10**6) < 1000
    assert bytes_at(Streams((Drift(), Greedy())), 1000, 1000) >= 64_000
    run = bytes_of_run(DefensiveForecasting(), Bernoulli(), 10**6, None)
    assert run == pytest.approx(104e6, rel=0.01)
    assert bytes_of_run(ForecastHedging(1000), Bernoulli(), 10**9, 1001) < 2**21


@pytest.mark.parametrize(
    ("points", "parts", "classes", "needed"),
    [
        # Each forecast with its outcome, and the number of its part where there are several.
        (None, 1, 0, 100 * 8), (None, 2, 0, 100 * (8 + 4)), (None, 1, 3, 100 * (8 + 24)), (None, 9, 3, 100 * (32 + 4)),
        # Counts of both outcomes, or of each class, in each part and before each stretch but the first.
        (11, 1, 0, 2 * 8 * 11), (11, 3, 0, 2 * 8 * 11 * 5), (11, 3, 4, 4 * 8 * 11 * 5),
    ],
)  # fmt: skip
def test_bytes_of_a_history_are_refused_above_half_of_what_is_free(points, parts, classes, needed):
    assert history.bytes_of_run(points, 100, parts, classes) == needed
    check_history(3, 100, points, parts, 6.0 * needed, classes)
    with pytest.raises(InvalidParameter, match="expected fewer runs"):
        check_history(3, 100, points, parts, 6.0 * needed - 1.0, classes)


def test_what_players_remember_is_refused_above_what_is_free(monkeypatch):
    """Of both together; the one with the most of it is named."""
    players = DefensiveForecasting(), Greedy()
    needed = sum(bytes_at(player, 1000, 1000) for player in players)
    monkeypatch.setattr(FREE, lambda: needed)
    assert check_players(*players, 1000) == needed
    monkeypatch.setattr(FREE, lambda: needed - 1.0)
    with pytest.raises(InvalidParameter, match="most of it 'defensive_forecasting'"):
        check_players(*players, 1000)


@pytest.mark.parametrize(
    ("where", "room"), [("onlinecal.study.run.ROOM", 300_000), (FREE, lambda: 600_000)], ids=["most", "free"]
)
def test_batches_have_room_for_what_their_players_remember(monkeypatch, batches, where, room):
    """Two runs of 1000 rounds of 104 bytes fit into 300,000: the most that a batch has, or half of what is free. If
    there were the history alone, all runs would fit. A batch begins when the last has given its memory back, without a
    search for garbage.
    """
    options = {"nature": "drift", "horizon": 1000, "runs": 8, "seed": 2, "measures": "smooth_ce"}
    cells = oc.play("defensive_forecasting", **options).cells
    monkeypatch.setattr(where, room)
    gc.collect()
    gc.disable()
    try:
        assert cells == oc.play("defensive_forecasting", **options).cells
    finally:
        gc.enable()
    oc.play("empirical_mean", **options)
    assert batches[1:5] == [(2, 0)] * 4
    assert [size for size, _ in batches] == [8, 2, 2, 2, 2, 8]


def test_batches_have_room_for_the_forecasts_of_games_with_groups(monkeypatch, batches):
    """Also on a grid each forecast is kept: 12 bytes a round, of which two runs fit."""
    monkeypatch.setattr("onlinecal.study.run.ROOM", 160_000)
    options = {"horizon": 6000, "runs": 5, "measures": "ece"}
    oc.play("forecast_hedging", {"name": "grouped", "of": "drift", "groups": {"odd": 0.5}}, **options)
    oc.play("forecast_hedging", "drift", **options)
    assert sorted(size for size, _ in batches) == [1, 2, 2, 5]


def test_what_does_not_fit_is_refused_by_name_before_the_game(monkeypatch):
    """Half of what is free has room for the 8 bytes of each round of one run, and not of two."""
    monkeypatch.setattr(FREE, lambda: 7e4)
    options = {"nature": "drift", "horizon": 1000, "runs": 2, "measures": "smooth_ce"}
    said = r"^.*one run of 1000 rounds.*'defensive_forecasting' \(O\(t\)\).*shorter.*$"
    with pytest.raises(InvalidParameter, match=said):
        oc.play("defensive_forecasting", **options)
    oc.play("empirical_mean", **options)
    monkeypatch.setattr(FREE, lambda: 16_000.0)
    Game(EmpiricalMean(), Bernoulli(), horizon=1000, runs=range(1))
    Game(ForecastHedging(10), Bernoulli(), horizon=10**9, runs=range(2))
    for runs, horizon in ((2, 1000), (1, 1001)):
        said = rf"{runs} run\(s\) of {horizon} rounds without a grid need .*; expected fewer runs or rounds, `rounded`"
        with pytest.raises(InvalidParameter, match=said):
            Game(EmpiricalMean(), Bernoulli(), horizon=horizon, runs=range(runs))


def test_many_decision_makers_on_a_large_grid_get_smaller_batches_or_a_message(batches, monkeypatch):
    """Every stretch has counts of its own: 16 bytes a point, and as much for what was before it."""
    monkeypatch.setattr("onlinecal.study.run.ROOM", 2**24)
    monkeypatch.setattr(FREE, lambda: 2.0**27)
    who = [{"task": "umbrella", "join": 0.5 + i, "label": str(i)} for i in range(75)]

    def play(m):
        forecaster = ForecastHedging(m)
        return oc.play(forecaster, Drift(), horizon=100, runs=7, seed=1, measures="ece", decision_makers=who)

    with pytest.raises(InvalidParameter, match=r"76 tables of 100001 counts.* expected fewer"):
        play(10**5)
    batches.clear()
    small = play(1000)
    assert 1 < max(size for size, _ in batches) < 7
    assert max(size for size, _ in batches) * 32 * 75 * 1000 <= 2**24
    monkeypatch.undo()
    assert small.cells == play(1000).cells


def test_where_memory_ends_no_player_is_named(monkeypatch):
    """The forecaster gets no room for round 2049 and later ones. The next that asks gets none, whichever it is."""
    game = Game(DefensiveForecasting(), Contrarian(), horizon=4096, runs=range(3))
    grows = game.forecaster.grows
    game.forecaster.grows = lambda coming: grows(coming) if coming.asked <= 2048 else len(np.empty(2**55))
    game.advance(1024)
    match = r"no memory left for round \d+ in 3 run\(s\): .*; expected fewer"
    for _ in range(2):
        with pytest.raises(InvalidForecast, match=match) as error:
            game.advance(4096)
        assert not any(who in str(error.value) for who in ("contrarian", "defensive"))


def test_no_memory_for_the_rounds_is_said_too(monkeypatch):
    game = Game(EmpiricalMean(), Bernoulli(), horizon=9, runs=range(2))
    game.advance(4)
    monkeypatch.setattr(game.history, "reserve", lambda rounds: np.empty(2**58))
    with pytest.raises(
        InvalidForecast, match=r"no memory left for round 5 in 2 run\(s\): .*; expected fewer"
    ):
        game.advance(9)


def test_sets_of_groups_are_parts_of_the_rounds():
    """Each of four stretches of five streams has 2^3 sets of groups; 2^32 parts are too many to be told apart."""
    assert parts_of(3, 5, 100, 3) == 4 * 5 * 2**3
    with pytest.raises(
        InvalidParameter, match=f"of {2**32:,} parts, by stretches of time, streams and groups"
    ):
        check_history(1, 40_000, None, parts_of(2**15 - 1, 2, 40_000, 16), 1e12)
    check_history(1, 40_000, None, 2**31, 1e12)
    with pytest.raises(InvalidParameter, match="expected at most 2,147,483,648: fewer decision makers"):
        check_history(1, 40_000, None, 2**31 + 1, 1e12)
    # There are no more stretches than rounds.
    assert parts_of(100, 1, 7) == 7
