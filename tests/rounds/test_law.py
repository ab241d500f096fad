"""Laws that players change: seen as they are, or stopped."""

from dataclasses import dataclass

import numpy as np
import pytest

from onlinecal.core.errors import InvalidForecast
from onlinecal.engine.game import Game
from onlinecal.forecasters import Forecaster, Law
from onlinecal.natures import Bernoulli, Contrarian, Greedy
from onlinecal.rounds.law import Unplayable
from onlinecal.rounds.record import Recorder
from tests.rounds.test_record import totals
from tests.rounds_by_hand import asked


@dataclass(frozen=True)
class Rebinds(Forecaster):
    """Moves from 0.2 to 0.8 and back, in new arrays or in place."""

    rebinds: bool = True

    def start(self, horizon, runs, stream):
        return _RebindsPlayer(runs, self.rebinds)


class _RebindsPlayer:
    def __init__(self, runs, rebinds):
        self.law, self.rebinds = Law(runs, 2), rebinds
        self.law.atoms[:] = [0.2, 0.8]

    def forecast(self, round):
        weights = np.empty_like(self.law.weights)
        weights[:] = [1.0, 0.0] if round.number % 2 else [0.0, 1.0]
        if self.rebinds:
            self.law.weights = weights
            self.law.atoms = self.law.atoms.copy()
        else:
            self.law.weights[...] = weights
        return self.law

    def update(self, round): ...


@pytest.mark.parametrize("nature", [Contrarian(), Greedy()])
def test_a_law_whose_arrays_are_exchanged_is_seen_as_it_is(nature):
    assert totals(Rebinds(), nature) == totals(Rebinds(False), nature)
    if isinstance(nature, Contrarian):
        assert totals(Rebinds(), nature) == [0.8 * 2000] * 8


@pytest.mark.parametrize(
    "spoil",
    [
        lambda law: setattr(law, "weights", np.ones((4, 2)) / 2),
        lambda law: setattr(law, "weights", law.weights.astype(np.float32)),
        lambda law: setattr(law, "weights", law.weights.tolist()),
        lambda law: setattr(law, "atoms", np.zeros((8, 2), np.int64)),
        lambda law: setattr(law, "atoms", np.zeros((8, 0))),
        lambda law: setattr(law, "grid", np.array([0.0, 1.0])),
        lambda law: setattr(law.weights, "shape", (16, 1)),
        lambda law: setattr(law.atoms, "shape", (2, 8)),
        lambda law: (setattr(law.atoms, "shape", (16, 1)), setattr(law.weights, "shape", (16, 1))),
    ],
)
def test_a_law_that_loses_its_form_is_stopped(spoil):
    class Spoils(Rebinds):
        def start(self, horizon, runs, stream):
            player = _RebindsPlayer(runs, False)
            forecast = player.forecast

            def spoiling(round):
                law = forecast(round)
                if round.number == 3:
                    spoil(law)
                return law

            player.forecast = spoiling
            return player

    with pytest.raises(
        InvalidForecast, match=r"forecaster 'spoils' (returned|changed) .*in round 3; expected"
    ):
        totals(Spoils(), Bernoulli())


def test_a_grid_is_the_engines_own():
    values = np.array([0.25, 0.75])

    class Moves(Forecaster):
        def start(self, horizon, runs, stream):
            law = Law(runs, 1, values)

            class Player:
                def forecast(self, round):
                    values[:] = round.number / 10
                    return law

                def update(self, round): ...

            return Player()

    game = Game(Moves(), Bernoulli(), horizon=5, runs=range(2))
    game.advance(5)
    assert game.gammas()[0].predictions.tolist() == [0.25]
    for bad in (np.array([0.5, 1.5]), np.array([np.nan]), np.zeros((2, 2)), np.array([])):
        law = Law(2, 1, np.zeros(1))
        law.grid = bad
        with pytest.raises(Unplayable, match="grid"):
            Recorder(2).record(asked(), law)
