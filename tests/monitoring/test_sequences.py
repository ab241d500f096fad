"""Intervals for all times: the inequalities that they stand on, the roots that they are, and how often they hold."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from onlinecal.core.errors import InvalidParameter
from onlinecal.monitoring.sequences import _COSTS, _LAMBDAS, _STAKES, _WEIGHTS, half_width, running_bias


@pytest.mark.parametrize("cost", [1.0, 0.5], ids=["", "control"])
def test_each_term_is_a_supermartingale(cost):
    """E exp(±λ(y − q) − ψ(λ)(y − p)²) ≤ 1, on a grid of λ of the mixture, p and q; of half the cost it is not."""
    q, p = np.meshgrid(np.linspace(0, 1, 101), np.linspace(0, 1, 101))
    most = []
    for lam, full in zip(_LAMBDAS, _COSTS, strict=True):
        for sign in (1.0, -1.0):
            zero = (1 - q) * np.exp(-sign * lam * q - cost * full * p**2)
            most.append((zero + q * np.exp(sign * lam * (1 - q) - cost * full * (1 - p) ** 2)).max())
    assert (max(most) <= 1.0 + 1e-14) == (cost == 1.0)
    assert _WEIGHTS.sum() < 1.0


@pytest.mark.parametrize("squares", [0.0, 1e-12, 0.3, 1e3, 1e12])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-9])
def test_it_is_the_root(squares, alpha):
    s = half_width(squares, alpha)
    value = np.logaddexp.reduce(np.log(_WEIGHTS) + _LAMBDAS * s - _COSTS * squares)
    assert 0.0 <= value - math.log(2 / alpha) < 1e-8  # rounded up
    assert half_width(4.0 * squares, alpha, 4) == pytest.approx(4.0 * s)


def test_it_holds_at_all_times(seed):
    """2000 streams, biased: misses are at most 5 % in expectation. False failures: 1e-7."""
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


# ---------------------------------------------------------------- the running bias of calibrated forecasts


@pytest.mark.parametrize("kind", ["even", "rare", "certain"])
def test_the_band_ends_where_a_mixture_of_martingales_reaches_its_bound(kind):
    """By the definition: the mean over the stakes of Π exp(λ (y − p)) / E exp(λ (y − p))."""
    rng = np.random.default_rng(1)
    u = rng.random(300)
    p = {"even": u, "rare": u / 50, "certain": (u < 0.5) * 1.0}[kind]
    y = (rng.random(300) < p).astype(int)
    found = running_bias(p, y, level=0.9, points=7)
    assert found.rounds[[0, -1]].tolist() == [1, 300]
    stakes = np.geomspace(2 / 301**0.5, 2.0, _STAKES)
    for sign, ends in ((1, found.upper), (-1, found.lower)):
        for n, end, total in zip(found.rounds, ends, found.total, strict=True):
            assert total == pytest.approx((y - p)[:n].sum())
            expected = [np.prod((1 - p[:n]) * np.exp(-sign * x * p[:n]) + p[:n] * np.exp(sign * x * (1 - p[:n])))
                        for x in stakes]  # fmt: skip
            value = np.mean(np.exp(stakes * sign * end) / expected)
            # The total can be no larger.
            most = ((1 - p[:n]) * (p[:n] > 0)).sum() if sign > 0 else (p[:n] * (p[:n] < 1)).sum()
            assert value == pytest.approx(20.0, rel=1e-6) or sign * end == pytest.approx(most)
    assert running_bias(p, y, points=2).rounds.tolist() == [1, 300]
    assert running_bias(p, y, points=100_000).rounds.tolist() == list(range(1, 301))
    assert len(running_bias(np.full(1000, 0.5), np.ones(1000)).rounds) == 500
    for wrong in ({"points": 1}, {"points": 100_001}, {"level": -0.01}, {"level": 1.01}):
        with pytest.raises(InvalidParameter):
            running_bias(p, y, **wrong)
    sure = running_bias([0, 1, 1, 0], [0, 1, 1, 0])
    assert sure.total.tolist() == sure.lower.tolist() == sure.upper.tolist() == [0.0] * 4
    assert (sure.left, running_bias([0, 1, 1, 0], [0, 1, 0, 0]).left) == (None, 3)
    # What is possible leaves no band that holds with certainty; else either side is left.
    for level, left in ((1.0, None), (0.95, 10)):
        for outcome in (0, 1):
            assert running_bias([0.5] * 100, [outcome] * 100, level=level).left == left


@pytest.mark.parametrize(
    ("start", "step", "runs", "shift", "leaves"),
    [(0.3, 0.4, 200, 0.0, False), (0.02, 0.03, 200, 0.0, False), (0.3, 0.4, 40, 0.2, True)],
    ids=["even", "rare", "control"],
)
def test_calibrated_forecasts_leave_their_band_as_seldom_as_it_says(start, step, runs, shift, leaves, seed):
    """Predictions depend on the outcome before. Of calibrated ones 20 % leave at most, at any of the times.

    More than 35 % of 200 runs has probability exp(−2·200·0.15²) = 2e-4 by Hoeffding's inequality, and 5 standard errors
    in truth. The control: outcomes are more frequent by 0.2.
    """
    rng, left, n = np.random.default_rng([seed, 5]), 0, 400 if shift else 150
    for _ in range(runs):
        p, y, last, u = np.empty(n), np.empty(n), 0.0, rng.random(n)
        for i in range(n):
            p[i] = start + step * last
            y[i] = last = float(u[i] < p[i] + shift)
        left += running_bias(p, y, level=0.8, points=n).left is not None
    assert left > 0.5 * runs if leaves else left <= 0.35 * runs
