"""Confidence sequences: intervals for a running total that hold at all times together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: λ from 0.95 down by a factor √2, each with its weight; they sum to less than 1
_LAMBDAS = 0.95 * 2.0 ** (-0.5 * np.arange(40))
_WEIGHTS = 1.0 / ((np.arange(40) + 1.0) * (np.arange(40) + 2.0))
_LOG_WEIGHTS = np.log(_WEIGHTS)
#: ψ(λ) = −ln(1 − λ) − λ
_COSTS = -np.log1p(-_LAMBDAS) - _LAMBDAS


def half_width(squares: float, alpha: float, parts: int = 1) -> float:
    """How far a total of outcomes may be from the total of their probabilities, at any time, with probability 1 − α.

    For outcomes y in [0, 1] with means q given the past, and forecasts p made before them, let S = Σ (y − q) and V =
    Σ (y − p)². For every λ in [0, 1), exp(λS − ψ(λ)V) is a supermartingale, ψ(λ) = −ln(1 − λ) − λ, and so are its
    mixtures over λ; −S likewise. |S| exceeds the s with Σ_j w_j exp(λ_j s − ψ(λ_j) V) = 2/α at some time with
    probability at most α.

    Source: Howard, Ramdas, McAuliffe, Sekhon 2021, "Time-uniform, nonparametric, nonasymptotic confidence sequences",
    Theorem 4 (empirical Bernstein), after Fan, Grama, Liu 2015.

    Deviation: The mixture over λ is a sum of 40 terms, λ = 0.95·2^{−j/2} with weights 1/((j + 1)(j + 2)), in place of
    an integral.

    >>> round(half_width(250.0, 0.05) / 250.0**0.5, 2)          # of 1000 fair coins
    3.93
    """
    if parts > 1:
        return parts * half_width(squares / parts, alpha)
    goal = math.log(2.0 / alpha)
    fixed = _LOG_WEIGHTS - _COSTS * squares
    # Each term alone gives a bound, and the sum is convex and increasing in s: Newton's steps from the least of them
    # come down to the root.
    s = float(((goal - fixed) / _LAMBDAS).min())
    for _ in range(100):
        terms = fixed + _LAMBDAS * s
        top = float(terms.max())
        shares = np.exp(terms - top)
        value = top + math.log(float(shares.sum()))
        step = (value - goal) / float((shares @ _LAMBDAS) / shares.sum())
        s -= step
        if abs(step) <= 1e-12 * max(1.0, s):
            break
    return max(s, 0.0) * (1.0 + 1e-12)
