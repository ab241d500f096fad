"""Forecasters that mend a forecast that is given to them as context: recalibration of somebody's model on a stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onlinecal._compile import kernel
from onlinecal.arrays import Rows
from onlinecal.errors import InvalidParameter
from onlinecal.forecasters.base import Forecaster, Player, context
from onlinecal.law import Floats, Ints, Law
from onlinecal.round import Round, check_round, not_ours
from onlinecal.strategy import check_number
from onlinecal.streams import Stream

#: base forecasts of 0 and 1 have no logit; they are taken this far inside
EDGE = 1e-6


@dataclass(frozen=True)
class Calibeating(Forecaster):
    """Says the mean of the outcomes so far in the bin of the base forecast.

    Parameters
    ----------
    bins : int, default 20
        Equal-width bins [a, b) of the base forecast, the last one closed; 1 to 10^6. In a bin that is new it says the
        base forecast itself.

    Guarantee
    ---------
    For every sequence its Brier total is at most the base forecast's refinement (the Brier total that is left when each
    bin says its own mean in hindsight) plus `bins`·(1 + ln T): it beats the base by the base's calibration error.
    The bound depends on the base and so is not one of the table's.

    Information
    -----------
    Needs the context ``base``. Deterministic; does not need the horizon. O(1) time a round, 2·bins counters a run.

    Source
    ------
    Foster and Hart 2023, "Calibeating: beating forecasters at their own game", Theorem 3. Deviations: the first
    forecast in a bin, which the paper leaves open.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"base"})

    bins: int = 20

    def __post_init__(self) -> None:
        _check_bins(self.bins)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player with empty bins."""
        return _CalibeatingPlayer(runs, self.bins)


@dataclass(frozen=True)
class OnlinePlatt(Forecaster):
    r"""Online Platt scaling: p = sigmoid(a·logit(b) + c) of the base forecast b, by online Newton steps.

    θ = (a, c) starts at (1, 0). After y, with gradient g = (p − y)(logit b, 1): A ← A + g gᵀ, θ ← θ − A⁻¹g/γ,
    and then the point of the disc ‖θ‖ ≤ radius that is nearest in the norm of A.

    Parameters
    ----------
    rate : float, default 0.1
        γ, in [1e-3, 10].
    ridge : float, default 1.0
        A starts at ridge times the identity; in [1e-6, 1e6].
    radius : float, default 100.0
        In [1, 1e6].

    Guarantee
    ---------
    Logarithmic loss at most that of the best Platt scaling in hindsight plus O(log T), with constants that depend on
    the radius and the base's logits; not one of the table's. Calibration: none proved.

    Information
    -----------
    Needs the context ``base``, taken into [1e-6, 1 − 1e-6]. Deterministic; does not need the horizon. O(1)
    time a round.

    Source
    ------
    Gupta and Ramdas 2023, "Online Platt scaling with calibeating", Algorithm 1; Hazan, Agarwal and Kale 2007 (online
    Newton step). Deviations: default constants; the projection is solved to 1e-12.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"base"})

    rate: float = 0.1
    ridge: float = 1.0
    radius: float = 100.0

    def __post_init__(self) -> None:
        _check_platt(self)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player that says what it is told until it has learnt."""
        return _PlattPlayer(runs, self.rate, self.ridge, self.radius, 0)


@dataclass(frozen=True)
class TrackingPlatt(Forecaster):
    """Online Platt scaling, calibeaten: the mean of the outcomes so far in the bin of the scaled forecast.

    Parameters
    ----------
    rate, ridge, radius : float
        As for `OnlinePlatt`.
    bins : int, default 20
        As for `Calibeating`, of the scaled forecast.

    Guarantee
    ---------
    That of `Calibeating` with the scaled forecast as the base.

    Information
    -----------
    As `OnlinePlatt`, and 2·bins counters a run.

    Source
    ------
    Gupta and Ramdas 2023, "Online Platt scaling with calibeating", §3 (TOPS). Deviations: those of the two parts.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"base"})

    rate: float = 0.1
    ridge: float = 1.0
    radius: float = 100.0
    bins: int = 20

    def __post_init__(self) -> None:
        _check_platt(self)
        _check_bins(self.bins)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player with empty bins."""
        return _PlattPlayer(runs, self.rate, self.ridge, self.radius, self.bins)


def _check_bins(bins: Any) -> None:
    if not isinstance(bins, int) or isinstance(bins, bool) or not 1 <= bins <= 10**6:
        raise InvalidParameter(f"bins = {bins!r}; expected an integer from 1 to 10^6")


def _check_platt(spec: Any) -> None:
    check_number("rate", spec.rate, 1e-3, 10.0)
    check_number("ridge", spec.ridge, 1e-6, 1e6)
    check_number("radius", spec.radius, 1.0, 1e6)


class _Bins:
    """Means of the outcomes by bin of a forecast."""

    def __init__(self, runs: int, bins: int) -> None:
        self.edges = np.arange(1, bins) / bins
        self.counts = np.zeros((runs, bins), np.int64)
        self.ones = np.zeros((runs, bins), np.int64)

    def mean(self, forecast: Floats, out: Floats) -> None:
        _bin_means(self.edges, self.counts, self.ones, forecast, out)

    def learn(self, forecast: Floats, outcome: Ints) -> None:
        _bin_learn(self.edges, self.counts, self.ones, forecast, outcome)


class _CalibeatingPlayer:
    def __init__(self, runs: int, bins: int) -> None:
        self.law = Law(runs, 1)
        self.bins = _Bins(runs, bins)

    def forecast(self, round: Round) -> Law:
        self.bins.mean(context(round, "base", len(self.law.atoms)), self.law.atoms[:, 0])
        return self.law

    def update(self, round: Round) -> None:
        check_round(round, self.law)
        self.bins.learn(context(round, "base", len(self.law.atoms)), round.outcome)


class _PlattPlayer:
    """Online Platt scaling, with bins on its forecast where there are any."""

    def __init__(self, runs: int, rate: float, ridge: float, radius: float, bins: int) -> None:
        self.law = Law(runs, 1)
        self.theta = np.tile([1.0, 0.0], (runs, 1))
        #: the symmetric matrix A as (A_11, A_12, A_22)
        self.matrix = np.tile([ridge, 0.0, ridge], (runs, 1))
        self.rate, self.radius = rate, radius
        self.scaled = Rows((runs,))
        self.bins = _Bins(runs, bins) if bins else None

    def forecast(self, round: Round) -> Law:
        # The step is taken from where the forecast was made, however many others have been taken meanwhile.
        round.memo = scaled = self.scaled.fresh()
        _scale(context(round, "base", len(scaled)), self.theta, scaled)
        if self.bins is None:
            self.law.atoms[:, 0] = scaled
        else:
            self.bins.mean(scaled, self.law.atoms[:, 0])
        return self.law

    def update(self, round: Round) -> None:
        check_round(round, self.law)
        base, scaled = context(round, "base", len(self.theta)), round.memo
        if not isinstance(scaled, np.ndarray) or scaled.shape != base.shape:
            raise not_ours(round)
        _newton_step(self.theta, self.matrix, base, scaled, round.outcome, self.rate, self.radius)
        if self.bins is not None:
            self.bins.learn(scaled, round.outcome)


@kernel
def _bin_means(edges, counts, ones, forecast, out):
    for r in range(len(forecast)):
        i = np.searchsorted(edges, forecast[r], side="right")
        out[r] = ones[r, i] / counts[r, i] if counts[r, i] > 0 else forecast[r]


@kernel
def _bin_learn(edges, counts, ones, forecast, outcome):
    for r in range(len(forecast)):
        i = np.searchsorted(edges, forecast[r], side="right")
        counts[r, i] += 1
        ones[r, i] += outcome[r]


@kernel
def _logit(base):
    b = min(max(base, EDGE), 1.0 - EDGE)
    return math.log(b / (1.0 - b))


@kernel
def _scale(base, theta, scaled):
    for r in range(len(base)):
        x = _logit(base[r])
        z = theta[r, 0] * x + theta[r, 1]
        scaled[r] = 1.0 / (1.0 + math.exp(-z)) if z >= 0.0 else math.exp(z) / (1.0 + math.exp(z))


@kernel
def _newton_step(theta, matrix, base, scaled, outcome, rate, radius):
    for r in range(len(base)):
        error = scaled[r] - outcome[r]
        gx, gy = error * _logit(base[r]), error
        a, b, c = matrix[r, 0] + gx * gx, matrix[r, 1] + gx * gy, matrix[r, 2] + gy * gy
        matrix[r, 0], matrix[r, 1], matrix[r, 2] = a, b, c
        det = a * c - b * b
        x = theta[r, 0] - (c * gx - b * gy) / (det * rate)
        y = theta[r, 1] - (a * gy - b * gx) / (det * rate)
        if x * x + y * y > radius * radius:
            # The nearest point solves (A + λI)θ = Aθ' with ‖θ‖ = radius; the norm falls in λ, so bisect.
            u, v = a * x + b * y, b * x + c * y
            low, high = 0.0, 1.0
            while True:
                d = (a + high) * (c + high) - b * b
                x, y = ((c + high) * u - b * v) / d, ((a + high) * v - b * u) / d
                if x * x + y * y <= radius * radius:
                    break
                low, high = high, 2.0 * high
            while high - low > 1e-12 * high:
                middle = 0.5 * (low + high)
                d = (a + middle) * (c + middle) - b * b
                x, y = ((c + middle) * u - b * v) / d, ((a + middle) * v - b * u) / d
                if x * x + y * y > radius * radius:
                    low = middle
                else:
                    high = middle
        theta[r, 0], theta[r, 1] = x, y
