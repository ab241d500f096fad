"""Copies of strategies with one mistake each, which state the guarantees of the original: `check` must say so.

They are plug-ins, ``tests.mutants:PlainBiases`` and so on, and play as the original does but for the mistake.
"""

from dataclasses import dataclass

import numpy as np

from onlinecal.forecasters import (
    CDLMinimiser,
    DefensiveForecasting,
    ForecastHedging,
    FosterVohra,
    PerturbedLeader,
)
from onlinecal.natures import EarlyStopping
from onlinecal.rounds.record import Round


@dataclass(frozen=True)
class PlainBiases(CDLMinimiser):
    """Hedges with the biases in place of the weights of AdaNormalHedge."""

    def start(self, horizon, runs, stream):
        return ForecastHedging(self.m).start(horizon, runs, stream)


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


@dataclass(frozen=True)
class EndlessCoins(EarlyStopping):
    """Never ends its coins."""

    def start(self, horizon, runs, stream):
        return _FairCoins()


class _FairCoins:
    def probability(self, round):
        return 0.5

    def update(self, round): ...


class _Changed:
    """Another player, with one method changed."""

    def __init__(self, player):
        self.player = player

    def forecast(self, round):
        return self.player.forecast(round)

    def update(self, round):
        self.player.update(round)


class _OneSided(_Changed):
    def forecast(self, round):
        law = self.player.forecast(round)
        law.weights[:] = [1.0, 0.0]
        return law


class _WrongSign(_Changed):
    def forecast(self, round):
        law = self.player.forecast(round)
        law.weights[:] = law.weights[:, ::-1].copy()
        return law


class _Coarse(_Changed):
    def forecast(self, round):
        law = self.player.forecast(round)
        np.round(law.atoms, 3, out=law.atoms)
        return law

    def certificates(self):
        return self.player.certificates()


class _Frozen(_Changed):
    def forecast(self, round):
        # The noise belongs to the number of the round.
        return self.player.forecast(Round(1, round.time))


MUTANTS = (PlainBiases, OneSidedPair, WrongSign, CoarseRoot, FrozenNoise, EndlessCoins)
