"""Bounds on expected totals beside the means of games, for the tests of those who state them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinecal.engine.game import Game


def measured(forecaster, nature, measure, horizon, seed, runs=16):
    """T·μ of each run."""
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed)
    game.advance(horizon)
    return horizon * np.array([measure(gamma) for gamma in game.gammas()])


@dataclass(frozen=True)
class Games:
    """Games of this horizon in so many runs; a bound may fail by chance with probability `rate`."""

    horizon: int
    runs: int
    rate: float

    def mean_total(self, forecaster, nature, seed, measure):
        """The mean over the runs of T·μ."""
        return float(measured(forecaster, nature, measure, self.horizon, seed, self.runs).mean())

    def allowed(self, forecaster, which=0):
        """One of its bounds and what chance may add to it with probability `rate`."""
        guarantee = forecaster.guarantees[which]
        return guarantee.bound(self.horizon) + guarantee.slack(self.horizon, self.runs, self.rate)
