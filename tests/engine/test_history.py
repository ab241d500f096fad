"""What is kept of resolved rounds: Γ at every checkpoint, and how much memory that takes."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.game import Game
from onlinecal.engine.history import GridHistory, RealHistory
from onlinecal.engine.ledger import Ledger
from onlinecal.forecasters import (
    Constant,
    EmpiricalMean,
    Forecaster,
    ForecastHedging,
    Law,
)
from onlinecal.natures import Bernoulli
from tests.engine.test_game import same
from tests.rounds_by_hand import played


@given(st.data())
def test_the_history_of_reals_is_the_sorted_history_at_every_checkpoint(data):
    stops = sorted(data.draw(st.sets(st.integers(1, 200), min_size=1, max_size=8)))
    game = Game(_Recorder(), Bernoulli(0.4), horizon=200, runs=range(3))
    for stop in stops:
        game.advance(stop)
        p, y = (np.array(column) for column in zip(*game.forecaster.heard, strict=True))
        assert same(game.gammas(), [JointDistribution.from_samples(p[:, r], y[:, r]) for r in range(3)])


@dataclass(frozen=True)
class _Recorder(Forecaster):
    """Plays a walk over random reals with ties, and keeps what it hears."""

    def start(self, horizon, runs, stream):
        return _RecorderPlayer(Law(runs, 2), stream)


class _RecorderPlayer:
    def __init__(self, law, stream):
        self.law, self.stream, self.heard = law, stream, []

    def forecast(self, round):
        rng = np.random.default_rng(round.number)
        self.law.atoms[:] = rng.integers(0, 50, self.law.atoms.shape) / 49
        return self.law

    def update(self, round):
        self.heard.append((round.forecast, round.outcome))


def test_history_that_does_not_fit_is_refused_before_it_is_needed():
    game = Game(EmpiricalMean(), Bernoulli(), horizon=10**9, runs=range(10**5))
    with pytest.raises(InvalidParameter, match="GiB of history"):
        game.advance(1)


def test_gamma_needs_a_round():
    game = Game(Constant(), Bernoulli(), horizon=10, runs=range(1))
    with pytest.raises(InvalidParameter, match="no round"):
        game.gammas()
    with pytest.raises(InvalidParameter, match="beyond"):
        game.advance(11)


def test_history_memory():
    """8 bytes a run-round of kept history for reals; counts alone on a grid."""
    real = Game(EmpiricalMean(), Bernoulli(), horizon=1000, runs=range(4))
    real.advance(1000)
    assert real.history.keys.nbytes == 8 * 1000 * 4
    grid = Game(ForecastHedging(), Bernoulli(), horizon=10_000, runs=range(4))
    grid.advance(10_000)
    assert grid.history.counts.nbytes + grid.history.positives.nbytes == 16 * 23 * 4


GRID = np.array([0.0, 0.5, 1.0])


def test_a_grid_is_counted_and_reals_are_kept():
    assert isinstance(Ledger(2, 5, GRID).history((0, 0)), GridHistory)
    assert isinstance(Ledger(2, 5, None).history((0, 0)), RealHistory)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=30))
def test_counts_and_keys_say_the_same(rounds):
    """The same forecasts on a grid and without one, and the same as Γ of the samples."""
    kinds = GridHistory(1, GRID), RealHistory(1, 1)
    for index, outcome in rounds:
        on_grid, free = Law(1, 1, GRID), Law(1, 1)
        kinds[0].update(played(on_grid, index, outcome))
        kinds[1].update(played(free, GRID[index], outcome))
    expected = JointDistribution.from_samples(*zip(*((GRID[i], y) for i, y in rounds), strict=True))
    for kept in kinds:
        assert same(list(kept.each()), [expected])
