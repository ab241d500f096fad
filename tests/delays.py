"""Games in which outcomes are told late."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinecal.engine.game import Game
from onlinecal.schedules import Delays, Schedule


@dataclass(frozen=True)
class Listed(Delays):
    """These delays, one for each question."""

    delays: tuple[float, ...]

    def known(self, first, asked, uniforms):
        return asked + np.append(self.delays, 0.0)[first - 1 : first - 1 + len(asked)]


def play(forecaster, nature, delays, *, runs=1, seed=0):
    """A game of a question a unit and these delays, and the most questions that were open at once.

    The one that was being asked counts. The outcome of round t is told at the end of round t + delay.
    """
    delays, horizon = tuple(map(float, delays)), len(delays)
    schedule = Schedule(delays=Listed(delays))
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed, schedule=schedule)
    game.advance(horizon)
    asked = np.arange(1, horizon + 1)
    told = np.searchsorted(np.sort(asked + np.array(delays)), asked)
    return game, int((asked - told).max())
