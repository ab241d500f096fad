"""Confidence sequences: the inequality that they stand on, the root that they are, and how often they hold."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from onlinecal.monitoring.sequences import _COSTS, _LAMBDAS, _WEIGHTS, half_width


def test_each_term_is_a_supermartingale():
    # E exp(±λ(y − q) − ψ(λ)(y − p)²) ≤ 1, on a grid of λ of the mixture, p and q.
    q, p = np.meshgrid(np.linspace(0, 1, 101), np.linspace(0, 1, 101))
    for lam, cost in zip(_LAMBDAS, _COSTS, strict=True):
        for sign in (1.0, -1.0):
            zero = (1 - q) * np.exp(-sign * lam * q - cost * p**2)
            one = q * np.exp(sign * lam * (1 - q) - cost * (1 - p) ** 2)
            assert (zero + one).max() <= 1.0 + 1e-14
    assert _WEIGHTS.sum() < 1.0


def test_half_the_cost_is_too_little():
    # The control of the test above.
    q, p = np.meshgrid(np.linspace(0, 1, 101), np.linspace(0, 1, 101))
    zero = (1 - q) * np.exp(-0.5 * q - 0.5 * _COSTS[2] * p**2)
    one = q * np.exp(0.5 * (1 - q) - 0.5 * _COSTS[2] * (1 - p) ** 2)
    assert _LAMBDAS[2] < 0.5
    assert (zero + one).max() > 1.0


@pytest.mark.parametrize("squares", [0.0, 1e-12, 0.3, 7.0, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-9])
def test_it_is_the_root(squares, alpha):
    s = half_width(squares, alpha)
    terms = np.log(_WEIGHTS) + _LAMBDAS * s - _COSTS * squares
    value = np.logaddexp.reduce(terms)
    assert value == pytest.approx(math.log(2 / alpha), abs=1e-8)
    assert half_width(4.0 * squares, alpha, 4) == pytest.approx(4.0 * s)


def test_it_holds_at_all_times(seed):
    # 2000 streams, biased: misses are at most 5 % in expectation. False failures: 1e-7.
    rng = np.random.default_rng(seed)
    streams, rounds, alpha = 2000, 600, 0.05
    q = rng.random((streams, rounds))
    p = np.clip(q + rng.normal(0.0, 0.3, q.shape), 0.0, 1.0)
    y = rng.random(q.shape) < q
    squares = np.cumsum((y - p) ** 2, axis=1)
    grid = np.linspace(0.0, squares.max(), 400)
    # Between points of the grid a chord is below the curve, which is concave: no wider than it.
    width = np.interp(squares, grid, [half_width(v, alpha) for v in grid])
    missed = (np.abs(np.cumsum(y - q, axis=1)) > width).any(axis=1).sum()
    assert missed <= binom.isf(1e-7, streams, alpha)
