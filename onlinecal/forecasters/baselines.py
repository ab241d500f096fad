"""Baselines and negative controls: what every other forecaster is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel
from onlinecal.expressions import grid_steps
from onlinecal.forecasters.base import Forecaster, ForecasterView, Ints, Law, Player, grid_of
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

    deterministic: ClassVar[bool | None] = True

    p: float = 0.5

    def __post_init__(self) -> None:
        check_probability("p", self.p)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player whose law never changes."""
        return _ConstantPlayer(Law(runs, 1, np.array([float(self.p)])))


@dataclass(frozen=True)
class LastOutcome(Forecaster):
    """Says that what happened last happens again: p_t = y_{t−1}, and 1/2 in the first round.

    Guarantee
    ---------
    None proved.

    Information
    -----------
    Deterministic, remembers one outcome, does not need the horizon.

    Source
    ------
    Folklore: persistence. Deviations: none.
    """

    deterministic: ClassVar[bool | None] = True

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player that remembers nothing yet."""
        law = Law(runs, 1, np.array([0.0, 0.5, 1.0]))
        law.atoms.fill(1)
        return _LastPlayer(law)


@dataclass
class _LastPlayer:
    law: Law

    def forecast(self, view: ForecasterView) -> Law:
        return self.law

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        np.multiply(outcome, 2, out=self.law.atoms[:, 0])


@dataclass(frozen=True)
class UniformRandom(Forecaster):
    """Says anything: every point of the grid 0, 1/m, …, 1 with the same probability.

    Parameters
    ----------
    m : int or str, default 10
        Steps of the grid, rounded up; a number or an expression in T.

    Guarantee
    ---------
    None proved: a negative control.

    Information
    -----------
    Randomised, no state.

    Source
    ------
    Folklore. Deviations: none.
    """

    deterministic: ClassVar[bool | None] = False

    m: int | str = 10

    def __post_init__(self) -> None:
        grid_steps("m", self.m, 1000)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player whose law never changes."""
        m = grid_steps("m", self.m, horizon)
        law = Law(runs, m + 1, grid_of(m))
        law.atoms[:] = np.arange(m + 1)
        return _ConstantPlayer(law)


@dataclass(frozen=True)
class Truthful(Forecaster):
    """Says nature's own q_t, where nature reveals it.

    Guarantee
    ---------
    None proved for a single sequence; in the limit it is calibrated by the law of large numbers.

    Information
    -----------
    Needs the context ``truth``. Deterministic, no state.

    Source
    ------
    Błasiok, Gopalan, Hu and Nakkiran 2023, §10: the family D_1. Deviations: none.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"truth"})
    deterministic: ClassVar[bool | None] = True

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player without state."""
        return _TemperedPlayer(Law(runs, 1), 1.0)


@dataclass(frozen=True)
class Tempered(Forecaster):
    """Says q^β/(q^β + (1 − q)^β) of nature's q_t, where nature reveals it.

    Parameters
    ----------
    beta : float, default 2.0
        β in [0, 1000]: above 1 too sure of itself, below 1 too timid, 1 truthful.

    Guarantee
    ---------
    None proved: miscalibrated on purpose, by an amount that is known.

    Information
    -----------
    Needs the context ``truth``. Deterministic, no state.

    Source
    ------
    Błasiok, Gopalan, Hu and Nakkiran 2023, §10: the family D_β. Deviations: none.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"truth"})
    deterministic: ClassVar[bool | None] = True

    beta: float = 2.0

    def __post_init__(self) -> None:
        check_number("beta", self.beta, 0.0, 1000.0)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player without state."""
        return _TemperedPlayer(Law(runs, 1), float(self.beta))


@dataclass
class _TemperedPlayer:
    law: Law
    beta: float

    def forecast(self, view: ForecasterView) -> Law:
        if self.beta == 1.0:
            self.law.atoms[:, 0] = view.context["truth"]
        else:
            _temper(view.context["truth"], self.beta, self.law.atoms)
        return self.law

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        """Learns nothing."""


@kernel
def _temper(q, beta, atoms):
    for r in range(len(q)):
        # The smaller of the two over the larger: no overflow, and 0 and 1 stay themselves.
        if q[r] <= 0.5:
            odds = (q[r] / (1.0 - q[r])) ** beta
            atoms[r, 0] = odds / (1.0 + odds)
        else:
            odds = ((1.0 - q[r]) / q[r]) ** beta
            atoms[r, 0] = 1.0 / (1.0 + odds)


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

    deterministic: ClassVar[bool | None] = True

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
