"""Copies of strategies with one mistake each, which state the guarantees of the original: `check` must say so.

They are plug-ins, ``tests.mutants:PlainBiases`` and so on, and play as the original does but for the mistake.
"""

from dataclasses import dataclass

import numpy as np

from onlinecal import forecasters as f
from onlinecal.engine.steps import SAY, Nature, compiled, law
from onlinecal.natures import EarlyStopping


def rule_of(spec):
    """The step that states the laws of a forecaster, for others to call."""
    return spec.start(100, None).say


_hedge, _neighbours = rule_of(f.ForecastHedging()), rule_of(f.FosterVohra())
_root, _perturb = rule_of(f.DefensiveForecasting()), rule_of(f.PerturbedLeader())


class Changed:
    """A forecaster with another step that states its laws."""

    rule = None

    def start(self, horizon, stream):
        player = super().start(horizon, stream)
        player.say, player.draw, player.side = compiled(SAY, type(self).rule), None, None
        return player


@dataclass(frozen=True)
class PlainBiases(f.CDLMinimiser):
    """Hedges with the biases in place of the weights of AdaNormalHedge."""

    def start(self, horizon, stream):
        return f.ForecastHedging(self.m).start(horizon, stream)


def _one_sided(run, number):
    size, (_, weights) = _hedge(run, number), law(run)
    weights[0], weights[1] = 1.0, 0.0
    return size


@dataclass(frozen=True)
class OneSidedPair(Changed, f.ForecastHedging):
    """Always plays the lower point of the pair."""

    rule = _one_sided


def _reversed(run, number):
    size, (_, weights) = _neighbours(run, number), law(run)
    weights[:size] = weights[:size][::-1].copy()
    return size


@dataclass(frozen=True)
class WrongSign(Changed, f.FosterVohra):
    """Its flow between two points has the wrong sign: each gets the probability of the other."""

    rule = _reversed


def _coarse(run, number):
    size, (values, _) = _root(run, number), law(run)
    values[0] = np.rint(1000.0 * values[0]) / 1000.0
    return size


@dataclass(frozen=True)
class CoarseRoot(Changed, f.DefensiveForecasting):
    """Plays its root to three digits."""

    rule = _coarse


def _frozen(run, number):
    return _perturb(run, 1)  # the noise belongs to the number of the round


@dataclass(frozen=True)
class FrozenNoise(Changed, f.PerturbedLeader):
    """Has the same noise in every round."""

    rule = _frozen


def _fair(run, size, forecast, number):
    return 0.5


@dataclass(frozen=True)
class EndlessCoins(EarlyStopping):
    """Never ends its coins."""

    def start(self, horizon, stream):
        return Nature(_fair)


MUTANTS = (PlainBiases, OneSidedPair, WrongSign, CoarseRoot, FrozenNoise, EndlessCoins)
