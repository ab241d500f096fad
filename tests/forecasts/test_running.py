"""The running total of the bias and its band for all times."""

import numpy as np
import pytest

from onlinecal.forecasts.running import _STAKES, running_bias


def test_the_total_is_the_sum_so_far():
    rng = np.random.default_rng(0)
    p, y = rng.random(700), rng.integers(0, 2, 700)
    found = running_bias(p, y, points=40)
    assert len(found.rounds) == 40
    assert found.rounds[0] == 1
    assert found.rounds[-1] == 700
    for n, total in zip(found.rounds, found.total, strict=True):
        assert total == pytest.approx((y - p)[:n].sum())


@pytest.mark.parametrize("kind", ["even", "rare", "certain"])
def test_the_band_ends_where_a_mixture_of_martingales_reaches_its_bound(kind):
    """By the definition: the mean over the stakes of Π exp(λ (y − p)) / E exp(λ (y − p))."""
    rng = np.random.default_rng(1)
    p = {"even": rng.random(300), "rare": rng.random(300) / 50, "certain": rng.integers(0, 2, 300) * 1.0}[
        kind
    ]
    found = running_bias(p, (rng.random(300) < p).astype(int), level=0.9, points=7)
    stakes = np.geomspace(2 / 301**0.5, 2.0, _STAKES)
    for sign, ends in ((1, found.upper), (-1, found.lower)):
        for n, end in zip(found.rounds, ends, strict=True):
            expected = [np.prod((1 - p[:n]) * np.exp(-sign * x * p[:n]) + p[:n] * np.exp(sign * x * (1 - p[:n])))
                        for x in stakes]  # fmt: skip
            value = np.mean(np.exp(stakes * sign * end) / expected)
            # The total can be no larger.
            most = ((1 - p[:n]) * (p[:n] > 0)).sum() if sign > 0 else (p[:n] * (p[:n] < 1)).sum()
            assert value == pytest.approx(20.0, rel=1e-6) or sign * end == pytest.approx(most)


def test_certain_predictions_that_come_true_stay_at_zero():
    found = running_bias([0, 1, 1, 0], [0, 1, 1, 0])
    assert found.total.tolist() == found.lower.tolist() == found.upper.tolist() == [0.0] * 4
    assert found.left is None
    assert running_bias([0, 1, 1, 0], [0, 1, 0, 0]).left == 3


def leaves(forecast, runs, seed, shift=0.0, n=150):
    """The share of runs in which the total leaves its band, where predictions depend on the outcomes before."""
    rng = np.random.default_rng([seed, 5])
    left = 0
    for _ in range(runs):
        p, y, last = np.empty(n), np.empty(n), 0.0
        u = rng.random(n)
        for i in range(n):
            p[i] = forecast(last, i)
            y[i] = last = float(u[i] < p[i] + shift)
        left += running_bias(p, y, level=0.8, points=n).left is not None
    return left / runs


@pytest.mark.parametrize(
    "forecast", [lambda last, i: 0.3 + 0.4 * last, lambda last, i: 0.02 + 0.03 * last], ids=["even", "rare"]
)
def test_calibrated_forecasts_leave_their_band_as_seldom_as_it_says(forecast, seed):
    """20 % at most at any of 150 times; more than 32 % of 300 runs has probability exp(−2·300·0.12²) = 2e-4 by
    Hoeffding's inequality, and 5 standard errors in truth."""
    assert leaves(forecast, 300, seed) <= 0.32


def test_others_leave_it(seed):
    """The control: outcomes are more frequent by 0.2."""
    assert leaves(lambda last, i: 0.3 + 0.4 * last, 40, seed, shift=0.2, n=400) > 0.5
