"""Bounds on expected totals beside the means of games, for the tests of those who state them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinecal.engine.game import Game


@dataclass(frozen=True)
class Games:
    """Games of this horizon in so many runs; a bound may fail by chance with probability `rate`."""

    horizon: int
    runs: int
    rate: float

    def mean_total(self, forecaster, nature, seed, measure):
        """The mean over the runs of T·μ."""
        game = Game(forecaster, nature, horizon=self.horizon, runs=range(self.runs), seed=seed)
        game.advance(self.horizon)
        return self.horizon * float(np.mean([measure(gamma) for gamma in game.gammas()]))

    def allowed(self, forecaster, which=0):
        """One of its bounds and what chance may add to it with probability `rate`."""
        guarantee = forecaster.guarantees[which]
        return guarantee.bound(self.horizon) + guarantee.slack(self.horizon, self.runs, self.rate)
