"""Which threads play which runs, and room for what is remembered."""

import pickle

import pytest

from onlinecal.core.guarantee import Sight
from onlinecal.engine import game as module
from onlinecal.engine import loop, steps
from onlinecal.engine.steps import state
from onlinecal.forecasters import Constant, ForecastHedging, UniformRandom
from onlinecal.natures import Greedy, KinkApproach, Mixture, SparseBias
from onlinecal.natures._levels import MANY
from onlinecal.natures.base import Nature
from tests.engine.games import game_of, played, same


def ask(run, size, forecast, number):
    mine = state(run)
    return 0.5 if number == 1 else mine[int(mine[0])]


def remember(run, place, forecast, outcome, number):
    mine = state(run)
    mine[0] += 1
    mine[int(mine[0])] = forecast
    return 0


class Remembering(Nature):
    """q_t = p_{t−1}, from a list of all forecasts."""

    sight = Sight.HISTORY

    def start(self, horizon, stream):
        return steps.Nature(
            ask, [0.0], sight=self.sight, hear=remember, grows=lambda coming: 1 + coming.asked
        )


MIXED = Mixture((Greedy(), KinkApproach(), SparseBias()))


@pytest.mark.parametrize(("runs", "threads"), [(64, 1), (2, 2), (7, 3), (129, 2)])
def test_all_threads_play_runs_of_their_own(runs, threads, monkeypatch):
    shares, play_runs = [], loop.play_runs
    monkeypatch.setattr(module, "THREAD", 1)
    monkeypatch.setattr(
        loop, "play_runs", lambda: lambda *given: shares.append(range(*given[-2:])) or play_runs()(*given)
    )
    played(horizon=200, runs=range(runs), threads=threads)
    assert len(shares) == threads
    assert sorted(run for share in shares for run in share) == list(range(runs))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_short_game_needs_no_thread(monkeypatch):
    monkeypatch.setattr(module, "ThreadPoolExecutor", None)
    played(Constant(), horizon=100, runs=range(64), threads=8)


def test_a_grid_is_all_the_room_that_levels_need():
    """The size of a pickle depends neither on the length of the game nor on that of its stretches."""
    kept = []
    for length, horizon in ((128, 2**12), (2**12, 2**12), (2**14, 2**14)):
        game = game_of(ForecastHedging(m=10), MIXED, horizon, range(4), seed=1)
        for until in range(length, horizon + 1, length):
            game.advance(until)
        kept.append(len(pickle.dumps(game)))
    assert max(kept) - min(kept) < 64


def by_hand(*pair, rounds, **options):
    game = game_of(*pair, rounds, **options)
    for _ in range(rounds):
        game.resolve(game.ask())
    return game.gammas()


def test_no_level_is_written_where_there_is_no_room(seed):
    """As many levels as the grid has points, which are entered in stretches of any length.

    That one of them is not drawn in one of the runs has a probability below 2·31·(30/31)^1000 < 1e-12.
    """
    m, options = 30, {"runs": range(2), "seed": seed}
    pair = UniformRandom(m), MIXED
    whole = by_hand(*pair, rounds=1000, **options)
    for length in (1, 7, 101, 1000):
        game = game_of(*pair, 1000, **options)
        for until in (*range(length, 1000, length), 1000):
            game.advance(until)
        assert game.compiled
        assert same(game.gammas(), whole)
        for player in game.nature.parts:
            assert (player.state[:, MANY] == m + 1).all()


def test_what_grows_with_the_rounds_has_room_for_each(seed):
    pair = ForecastHedging(m=10), Mixture((Greedy(), Remembering()))
    game = game_of(*pair, 3000, range(8), seed=seed)
    for until in (1, 700, 3000):
        game.advance(until)
    assert game.compiled
    assert same(game.gammas()[:2], by_hand(*pair, rounds=3000, runs=range(2), seed=seed))
