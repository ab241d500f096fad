"""Forecasters that mend a forecast that is given to them as context: recalibration of somebody's model on a stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel
from onlinecal.errors import InvalidParameter
from onlinecal.forecasters.base import Floats, Forecaster, ForecasterView, Ints, Law, Player
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
    deterministic: ClassVar[bool | None] = True

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
    deterministic: ClassVar[bool | None] = True

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
    deterministic: ClassVar[bool | None] = True

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
        self.bin = np.zeros(runs, np.int64)

    def mean(self, forecast: Floats, out: Floats) -> None:
        _bin_means(self.edges, self.counts, self.ones, forecast, self.bin, out)

    def learn(self, outcome: Ints) -> None:
        _bin_learn(self.counts, self.ones, self.bin, outcome)


class _CalibeatingPlayer:
    def __init__(self, runs: int, bins: int) -> None:
        self.law = Law(runs, 1)
        self.bins = _Bins(runs, bins)

    def forecast(self, view: ForecasterView) -> Law:
        self.bins.mean(view.context["base"], self.law.atoms[:, 0])
        return self.law

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        self.bins.learn(outcome)


class _PlattPlayer:
    """Online Platt scaling, with bins on its forecast where there are any."""

    def __init__(self, runs: int, rate: float, ridge: float, radius: float, bins: int) -> None:
        self.law = Law(runs, 1)
        self.theta = np.tile([1.0, 0.0], (runs, 1))
        #: the symmetric matrix A as (A_11, A_12, A_22)
        self.matrix = np.tile([ridge, 0.0, ridge], (runs, 1))
        self.rate, self.radius = rate, radius
        self.logit = np.zeros(runs)
        self.scaled = np.zeros(runs)
        self.bins = _Bins(runs, bins) if bins else None

    def forecast(self, view: ForecasterView) -> Law:
        _scale(view.context["base"], self.theta, self.logit, self.scaled)
        if self.bins is None:
            self.law.atoms[:, 0] = self.scaled
        else:
            self.bins.mean(self.scaled, self.law.atoms[:, 0])
        return self.law

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        _newton_step(self.theta, self.matrix, self.logit, self.scaled, outcome, self.rate, self.radius)
        if self.bins is not None:
            self.bins.learn(outcome)


@kernel
def _bin_means(edges, counts, ones, forecast, chosen, out):
    for r in range(len(forecast)):
        i = np.searchsorted(edges, forecast[r], side="right")
        chosen[r] = i
        out[r] = ones[r, i] / counts[r, i] if counts[r, i] > 0 else forecast[r]


@kernel
def _bin_learn(counts, ones, chosen, outcome):
    for r in range(len(chosen)):
        counts[r, chosen[r]] += 1
        ones[r, chosen[r]] += outcome[r]


@kernel
def _scale(base, theta, logit, scaled):
    for r in range(len(base)):
        b = min(max(base[r], EDGE), 1.0 - EDGE)
        x = math.log(b / (1.0 - b))
        logit[r] = x
        z = theta[r, 0] * x + theta[r, 1]
        scaled[r] = 1.0 / (1.0 + math.exp(-z)) if z >= 0.0 else math.exp(z) / (1.0 + math.exp(z))


@kernel
def _newton_step(theta, matrix, logit, scaled, outcome, rate, radius):
    for r in range(len(logit)):
        error = scaled[r] - outcome[r]
        gx, gy = error * logit[r], error
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
