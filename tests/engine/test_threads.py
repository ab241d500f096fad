"""Which threads play which runs, and how many rounds at a time."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.engine.game import SEGMENT, Game
from onlinecal.engine.kernels import NUMBER
from onlinecal.engine.loop import LANES, SHARES, Loop
from onlinecal.forecasters import Constant, DefensiveForecasting, ForecastHedging
from onlinecal.forecasters.base import Forecaster
from onlinecal.natures import Bernoulli, Contrarian, Greedy, KinkApproach, Mixture, SparseBias
from onlinecal.natures._levels import LEVELS, ROOM
from onlinecal.natures.base import Nature
from onlinecal.rounds.players import CompiledForecaster, CompiledNature
from onlinecal.rounds.steps import Memory, floats, hear, ints, law, law_atoms, law_weights, learn, move


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


@law
def next_point(run, number):
    law_atoms(run)[0], law_weights(run)[0] = (number - 1) % ints(run)[0], 1.0
    return 1


@learn
def nothing(run, number, size, drawn, outcome):
    return 0


@dataclass(frozen=True)
class Following(Forecaster):
    """The points of the grid, one after the other."""

    m: int
    deterministic = True

    def start(self, horizon, stream):
        memory = Memory(ints=[self.m + 1])
        return CompiledForecaster(next_point, nothing, memory, size=1, grid=np.linspace(0.0, 1.0, self.m + 1))


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
    stretches = {}
    play = Loop._play

    def noted(self, table, lane, runs):
        stretches.setdefault(table[NUMBER], []).append(runs)
        play(self, table, lane, runs)

    monkeypatch.setattr(Loop, "_play", noted)
    Game(forecaster, nature, horizon=4096, runs=range(64), threads=2).advance(4096)
    for shares in stretches.values():
        # Enough for both, whichever is faster; and of whole lanes.
        assert len(shares) >= 2 * SHARES
        assert all(len(share) % LANES == 0 for share in shares)
        assert sorted(run for share in shares for run in share) == list(range(64))
    stretches.clear()
    Game(forecaster, nature, horizon=4096, runs=range(64)).advance(4096)
    assert all(shares == [range(64)] for shares in stretches.values())


@pytest.mark.parametrize(("runs", "threads"), [(2, 2), (3, 2), (5, 2), (7, 3), (64, 3), (129, 2)])
def test_the_shares_are_all_runs_and_as_many_as_threads(runs, threads, monkeypatch):
    shares = []
    monkeypatch.setattr(Loop, "_play", lambda self, table, lane, share: shares.append(share))
    Game(Constant(), Bernoulli(), horizon=2**20, runs=range(runs), threads=threads).advance(2**20 // runs)
    assert threads <= len(shares)
    assert sorted(run for share in shares for run in share) == list(range(runs))


def played(game):
    """Γ of each run, to the bit."""
    return [
        [getattr(gamma, part).tobytes() for part in ("predictions", "counts", "positives")]
        for gamma in game.gammas()
    ]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "nature", [Greedy(), KinkApproach(), SparseBias(), Mixture((Greedy(), Bernoulli(), KinkApproach()))]
)
def test_a_grid_is_all_the_room_that_levels_need(nature):
    """Stretches are as long as without memory, and what is kept for resuming does not depend on their length."""
    kept = []
    for length in (128, 2**16):
        stretches = []
        game = Game(ForecastHedging(m=10), nature, horizon=2**16, runs=range(64), seed=1)
        while game.asked < 2**16:
            game.advance(min(game.asked + length, 2**16), stretches.append)
        kept.append(len(pickle.dumps(game)))
    assert stretches == [SEGMENT // 64] * 2
    assert abs(kept[0] - kept[1]) < 64


@pytest.mark.slow
def test_no_level_is_written_where_there_is_no_room(seed):
    """As many levels as the grid has points, which are entered in stretches of any length."""
    m = 700
    pair = Following(m), Mixture((Greedy(), KinkApproach(), SparseBias()))
    whole = Game(*pair, horizon=3000, runs=range(3), seed=seed)
    for _ in range(3000):
        whole.resolve(whole.ask())
    for length in (1, 7, 701, 3000):
        game = Game(*pair, horizon=3000, runs=range(3), seed=seed)
        while game.asked < 3000:
            game.advance(min(game.asked + length, 3000))
        assert game.compiled
        assert played(game) == played(whole)
        for player in game.nature.memory.players:
            memory = player.memory
            assert (memory.ints[:, LEVELS] == m + 1).all()
            assert (memory.ints[:, ROOM] > m + 1).all()


@pytest.mark.slow
def test_what_grows_with_the_rounds_has_room_for_each(seed):
    pair = ForecastHedging(m=10), Mixture((Greedy(), Remembering()))
    whole = Game(*pair, horizon=6000, runs=range(64), seed=seed)
    for _ in range(6000):
        whole.resolve(whole.ask())
    stretches = []
    game = Game(*pair, horizon=6000, runs=range(64), seed=seed)
    assert game.compiled
    game.advance(6000, stretches.append)
    assert max(stretches) < SEGMENT // 64
    assert played(game) == played(whole)


def test_a_state_grows_with_rounds_or_levels():
    with pytest.raises(InvalidParameter, match="grows_with = 'forecasts'; expected 'rounds' or 'levels'"):
        CompiledNature(ask, Memory(), grows_with="forecasts")
