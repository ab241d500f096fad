"""Copies of forecasters with one mistake each, which state the guarantees of the original: `check` must say so.

They are plug-ins, ``tests.mutants:PlainBiases`` and so on, and play as the original does but for the mistake.
"""

from dataclasses import dataclass

import numpy as np

from onlinecal.expressions import grid_steps
from onlinecal.forecasters import (
    CDLMinimiser,
    DefensiveForecasting,
    ForecastHedging,
    FosterVohra,
    PerturbedLeader,
)
from onlinecal.forecasters.hedging import _HedgingPlayer


@dataclass(frozen=True)
class PlainBiases(CDLMinimiser):
    """Hedges with the biases in place of the weights of AdaNormalHedge."""

    def start(self, horizon, runs, stream):
        return _HedgingPlayer(runs, grid_steps("m", self.m, horizon), anytime=False)


@dataclass(frozen=True)
class OneSidedPair(ForecastHedging):
    """Always plays the lower point of the pair."""

    def start(self, horizon, runs, stream):
        return _OneSided(super().start(horizon, runs, stream))


@dataclass(frozen=True)
class WrongSign(FosterVohra):
    """Its flow between two points has the wrong sign: each gets the probability of the other."""

    def start(self, horizon, runs, stream):
        return _WrongSign(super().start(horizon, runs, stream))


@dataclass(frozen=True)
class CoarseRoot(DefensiveForecasting):
    """Plays its root to three digits."""

    def start(self, horizon, runs, stream):
        return _Coarse(super().start(horizon, runs, stream))


@dataclass(frozen=True)
class FrozenNoise(PerturbedLeader):
    """Has the same noise in every round."""

    def start(self, horizon, runs, stream):
        return _Frozen(super().start(horizon, runs, stream))


class _Changed:
    """Another player, with one method changed."""

    def __init__(self, player):
        self.player = player

    def forecast(self, view):
        return self.player.forecast(view)

    def update(self, forecast, outcome):
        self.player.update(forecast, outcome)

    def certificates(self):
        certify = getattr(self.player, "certificates", None)
        return {} if certify is None else certify()


class _OneSided(_Changed):
    def forecast(self, view):
        law = self.player.forecast(view)
        law.weights[:] = [1.0, 0.0]
        return law


class _WrongSign(_Changed):
    def forecast(self, view):
        law = self.player.forecast(view)
        law.weights[:] = law.weights[:, ::-1].copy()
        return law


class _Coarse(_Changed):
    def forecast(self, view):
        law = self.player.forecast(view)
        np.round(law.atoms, 3, out=law.atoms)
        return law


class _Frozen(_Changed):
    def update(self, forecast, outcome):
        self.player.update(forecast, outcome)
        self.player.row = 0


MUTANTS = (PlainBiases, OneSidedPair, WrongSign, CoarseRoot, FrozenNoise)
