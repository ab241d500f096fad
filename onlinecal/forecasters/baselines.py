"""Baselines and negative controls: what every other forecaster is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel
from onlinecal.forecasters.base import Forecaster, ForecasterView, Ints, Law, Player
from onlinecal.strategy import check_number, check_probability
from onlinecal.streams import Stream


@dataclass(frozen=True)
class Constant(Forecaster):
    """Says the same probability in every round.

    Parameters
    ----------
    p : float, default 0.5
        The forecast, in [0, 1].

    Guarantee
    ---------
    None proved.

    Information
    -----------
    Deterministic, no state, does not need the horizon.

    Source
    ------
    Folklore. Deviations: none.
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        check_probability("p", self.p)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player whose law never changes."""
        return _ConstantPlayer(Law(runs, 1, np.array([float(self.p)])))


@dataclass
class _ConstantPlayer:
    law: Law

    def forecast(self, view: ForecasterView) -> Law:
        return self.law

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        """Learns nothing."""


@dataclass(frozen=True)
class EmpiricalMean(Forecaster):
    """Says the mean of the outcomes so far: p_t = (ones + a) / (t − 1 + 2a).

    Parameters
    ----------
    prior : float, default 1.0
        a ≥ 0, the pseudo-count of each outcome: 1 is Laplace's rule of succession, 1/2 the Krichevsky–Trofimov
        estimator. With 0 the first forecast is 1/2.

    Guarantee
    ---------
    None proved against adversaries.

    Information
    -----------
    Deterministic, two counters a run, does not need the horizon.

    Source
    ------
    Laplace 1814; Krichevsky and Trofimov 1981. Deviations: none.
    """

    prior: float = 1.0

    def __post_init__(self) -> None:
        check_number("prior", self.prior, 0.0, 1e6)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player with its two counters at the prior."""
        return _MeanPlayer(runs, float(self.prior))


class _MeanPlayer:
    def __init__(self, runs: int, prior: float) -> None:
        self.law = Law(runs, 1)
        self.law.atoms.fill(0.5)
        self.ones = np.full(runs, prior)
        self.rounds = 2.0 * prior

    def forecast(self, view: ForecasterView) -> Law:
        return self.law

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        self.rounds += 1.0
        _mean(self.ones, outcome, self.rounds, self.law.atoms)


@kernel
def _mean(ones, outcome, rounds, atoms):
    for r in range(len(ones)):
        ones[r] += outcome[r]
        atoms[r, 0] = ones[r] / rounds
