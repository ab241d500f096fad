"""The potentials of the proofs of grid forecasters, as functions of Γ: see `guarantee.Potential`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.expressions import grid_steps
from onlinecal.core.guarantee import Potential

Floats = NDArray[np.float64]
#: largest exponent of `normal_hedge`; its exponential is a finite number
CAP = 500.0


def hedging(steps: int | str) -> Potential:
    """Ψ of `ForecastHedging`: energies of edges, and biases by which the outcomes' squared errors become variances."""

    def of(gamma: Any, horizon: int) -> float:
        m = grid_steps("m", steps, horizon)
        bias, c = _biases(gamma, m)[0], hedging_scale(horizon, m)
        energy = np.maximum(bias[:-1], 0.0) ** 2 + np.maximum(-bias[1:], 0.0) ** 2
        # √(Φ + c²) − c, without the difference of two numbers that are nearly equal.
        gained = energy / (np.sqrt(energy + c * c) + c)
        return float(gained.sum() - ((1.0 - 2.0 * np.arange(m + 1) / m) * bias).sum() / (2.0 * c))

    def growth(gamma: Any, v: float, horizon: int) -> float:
        m = grid_steps("m", steps, horizon)
        return math.sqrt(2.0) / (4.0 * m) + v * (1.0 - v) / (2.0 * hedging_scale(horizon, m))

    return Potential(of, growth)


def hedging_scale(horizon: float, m: int) -> float:
    """The c of the proof of `ForecastHedging` at which its bound is least."""
    return math.sqrt(0.5) * (1.0 + math.sqrt(1.0 + horizon * (m + 2.0) / (2.0 * m * (m + 1.0))))


def neighbours(steps: int | str) -> Potential:
    """Σ max(R_ij, 0)² over the regrets against the two neighbours, R_ij = (±2E_i − n_i/m)/m."""

    def of(gamma: Any, horizon: int) -> float:
        m = grid_steps("m", steps, horizon)
        bias, rounds = _biases(gamma, m)
        up, down = (2.0 * bias - rounds / m) / m, (-2.0 * bias - rounds / m) / m
        return float((np.maximum(up[:-1], 0.0) ** 2).sum() + (np.maximum(down[1:], 0.0) ** 2).sum())

    def growth(gamma: Any, v: float, horizon: int) -> float:
        return 8.0 / grid_steps("m", steps, horizon) ** 2

    return Potential(of, growth)


def normal_hedge(steps: int | str) -> Potential:
    """Σ_i Ψ_i with Ψ_i = exp(E_i²/(3n_i)), the potential of AdaNormalHedge; 1 for a point without rounds."""

    def of(gamma: Any, horizon: int) -> float:
        bias, rounds = _biases(gamma, grid_steps("m", steps, horizon))
        # Beyond the cap all potentials are alike.
        return float(np.exp(np.minimum(bias**2 / (3.0 * np.maximum(rounds, 1.0)), CAP)).sum())

    def growth(gamma: Any, v: float, horizon: int) -> float:
        m = grid_steps("m", steps, horizon)
        return normal_hedge_growth(int(_biases(gamma, m)[1][round(v * m)]), m)

    return Potential(of, growth)


def normal_hedge_growth(n: int, m: int) -> float:
    """δ_n: what a play of a point with n rounds may add to Σ Ψ_i, apart from the part that the law makes vanish.

    (1/(3n)) max_L e^L (1 − L + ρ√L) with ρ = √(3n)/m, and e^{1/3} − 1 for n = 0. The maximum is at the positive root
    x = √L of x³ − ρx² − ρ/2. Proved for ρ² ≤ 8.
    """
    if n == 0:
        return math.exp(1.0 / 3.0) - 1.0
    rho = math.sqrt(3.0 * n) / m
    if rho * rho > 8.0:
        return math.inf
    x = float(np.roots([1.0, -rho, 0.0, -0.5 * rho]).real.max())
    return math.exp(x * x) * (1.0 - x * x + rho * x) / (3.0 * n)


def thresholds(steps: int | str) -> Potential:
    """ln Σ_k cosh(ηP_k) with P_k = E_0 + … + E_k, of exponential weights over signed thresholds."""

    def of(gamma: Any, horizon: int) -> float:
        m = grid_steps("m", steps, horizon)
        exponents = thresholds_rate(horizon, m) * np.abs(np.cumsum(_biases(gamma, m)[0]))
        largest = exponents.max()
        return float(
            largest + np.log(0.5 * (np.exp(exponents - largest) + np.exp(-exponents - largest)).sum())
        )

    def growth(gamma: Any, v: float, horizon: int) -> float:
        m = grid_steps("m", steps, horizon)
        rate = thresholds_rate(horizon, m)
        coarse = max(1.0, 2.0 * math.sinh(0.5 * rate / m))
        return math.log(math.exp(rate * rate / 8.0) + coarse * math.expm1(rate) / (4.0 * m))

    return Potential(of, growth)


def shaken_mean(steps: int | str, rate: float) -> Potential:
    """The squared loss of `ThresholdHedging`, and for each threshold v the (2/m) ln(1 + e^{ηG})/η that it may gain.

    G is ones − vt after t rounds, and η the rate of the next one, `rate`/√(t + 1); v is the middle of a cell.
    """

    def of(gamma: Any, horizon: int) -> float:
        m = grid_steps("m", steps, horizon)
        gains = gamma.positives.sum() - (np.arange(m) + 0.5) / m * gamma.counts.sum()
        eta = rate / math.sqrt(gamma.counts.sum() + 1.0)
        # Less the loss of never acting, as that of the best constant is taken from both.
        loss = gamma.predictions * (gamma.predictions * gamma.counts - 2.0 * gamma.positives)
        return float(loss.sum() + 2.0 / m * np.logaddexp(0.0, eta * gains).sum() / eta)

    def growth(gamma: Any, v: float, horizon: int) -> float:
        m, t = grid_steps("m", steps, horizon), gamma.counts.sum() + 1.0
        here, there = math.sqrt(t) / rate, math.sqrt(t + 1.0) / rate
        drift = math.pi**2 / 3.0 * (there**2 - here**2) / t + 2.0 * math.log(2.0) / m * (there - here)
        return 0.25 * (1.0 / t + 0.25 / (m * here)) + drift

    return Potential(of, growth, linear=True)


def thresholds_rate(horizon: float, m: int) -> float:
    """The η = √(8 ln(2m + 2)/T) of `StepCEMinimiser`."""
    return math.sqrt(8.0 * math.log(2.0 * m + 2.0) / horizon)


def _biases(gamma: Any, m: int) -> tuple[Floats, Floats]:
    """E_i and n_i of all grid points."""
    bias, rounds = np.zeros(m + 1), np.zeros(m + 1)
    at = np.rint(gamma.predictions * m).astype(np.int64)
    bias[at] = gamma.positives - gamma.counts * gamma.predictions
    rounds[at] = gamma.counts
    return bias, rounds
