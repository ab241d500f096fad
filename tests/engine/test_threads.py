"""Which threads play which runs, and how many rounds at a time."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from onlinecal.core.guarantee import Sight
from onlinecal.engine.game import SEGMENT
from onlinecal.engine.kernels import NUMBER
from onlinecal.engine.loop import LANES, SHARES, Loop
from onlinecal.forecasters import Constant, DefensiveForecasting, ForecastHedging, UniformRandom
from onlinecal.natures import Bernoulli, Contrarian, Greedy, KinkApproach, Mixture, SparseBias
from onlinecal.natures._levels import LEVELS, ROOM
from onlinecal.natures.base import Nature
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.steps import Memory, floats, hear, ints, move
from tests.engine.games import game_of, played, same


@move
def ask(run, number, size, forecast):
    return 0.5 if number == 1 else floats(run)[ints(run)[0] - 1]


@hear
def remember(run, number, size, forecast, outcome):
    state = ints(run)
    floats(run)[state[0]] = forecast
    state[0] += 1
    return 0


def lengthen(memory, rounds):
    had = memory.floats
    need = int(memory.ints[0, 0]) + rounds
    if need > had.shape[1]:
        memory.floats = np.zeros((memory.runs, need))
        memory.floats[:, : had.shape[1]] = had


@dataclass(frozen=True)
class Remembering(Nature):
    """q_t = p_{t−1}, from a list of all forecasts."""

    sight = Sight.HISTORY

    def start(self, horizon, stream):
        memory = Memory(ints=[0], floats=1)
        return CompiledNature(ask, memory, sight=self.sight, hear=remember, reserve=lengthen)


@pytest.mark.parametrize(
    ("forecaster", "nature"),
    [
        (ForecastHedging(), Contrarian()),
        (ForecastHedging(), Greedy()),  # remembers levels
        (DefensiveForecasting(), Bernoulli()),  # remembers forecasts
    ],
)
def test_all_threads_play(forecaster, nature, monkeypatch):
    stretches, play = {}, Loop._play

    def noted(self, table, lane, runs):
        stretches.setdefault(table[NUMBER], []).append(runs)
        play(self, table, lane, runs)

    monkeypatch.setattr(Loop, "_play", noted)
    played(forecaster, nature, 4096, runs=range(64), threads=2)
    for shares in stretches.values():
        # Enough for both, whichever is faster; and of whole lanes.
        assert len(shares) >= 2 * SHARES
        assert all(len(share) % LANES == 0 for share in shares)
        assert sorted(run for share in shares for run in share) == list(range(64))
    stretches.clear()
    played(forecaster, nature, 4096, runs=range(64))
    assert all(shares == [range(64)] for shares in stretches.values())


@pytest.mark.parametrize(("runs", "threads"), [(2, 2), (3, 2), (5, 2), (7, 3), (64, 3), (129, 2)])
def test_the_shares_are_all_runs_and_as_many_as_threads(runs, threads, monkeypatch):
    shares = []
    monkeypatch.setattr(Loop, "_play", lambda self, table, lane, share: shares.append(share))
    game_of(Constant(), horizon=2**20, runs=range(runs), threads=threads).advance(2**20 // runs)
    assert threads <= len(shares)
    assert sorted(run for share in shares for run in share) == list(range(runs))


@pytest.mark.parametrize(
    "nature", [Greedy(), KinkApproach(), SparseBias(), Mixture((Greedy(), Bernoulli(), KinkApproach()))]
)
def test_a_grid_is_all_the_room_that_levels_need(nature):
    """Stretches are as long as without memory, and the size of a pickle does not depend on their length."""
    kept = []
    for length in (128, 2**16):
        stretches, game = [], game_of(ForecastHedging(m=10), nature, 2**16, range(64), seed=1)
        for until in range(length, 2**16 + 1, length):
            game.advance(until, stretches.append)
        kept.append(len(pickle.dumps(game)))
    assert stretches == [SEGMENT // 64] * 2
    assert abs(kept[0] - kept[1]) < 64


def by_hand(*pair, rounds, **options):
    game = game_of(*pair, rounds, **options)
    for _ in range(rounds):
        game.resolve(game.ask())
    return game.gammas()


def test_no_level_is_written_where_there_is_no_room(seed):
    """As many levels as the grid has points, which are entered in stretches of any length.

    That one of them is not drawn in one of the runs has a probability below 3·101·(100/101)^3000 < 1e-10.
    """
    m, options = 100, {"runs": range(3), "seed": seed}
    pair = UniformRandom(m), Mixture((Greedy(), KinkApproach(), SparseBias()))
    whole = by_hand(*pair, rounds=3000, **options)
    for length in (1, 7, 101, 3000):
        game = game_of(*pair, 3000, **options)
        for until in (*range(length, 3000, length), 3000):
            game.advance(until)
        assert game.compiled
        assert same(game.gammas(), whole)
        for memory in (player.memory for player in game.nature.memory.players):
            assert (memory.ints[:, LEVELS] == m + 1).all()
            assert (memory.ints[:, ROOM] > m + 1).all()


def test_what_grows_with_the_rounds_has_room_for_each(seed):
    pair, stretches = (ForecastHedging(m=10), Mixture((Greedy(), Remembering()))), []
    game = game_of(*pair, 6000, range(64), seed=seed)
    game.advance(6000, stretches.append)
    assert game.compiled
    assert max(stretches) < SEGMENT // 64
    assert same(game.gammas()[:2], by_hand(*pair, rounds=6000, runs=range(2), seed=seed))
