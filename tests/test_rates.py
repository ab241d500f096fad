"""Exponents: recovered where they are known, with intervals that cover."""

import numpy as np
import pytest

from onlinecal.errors import InvalidParameter
from onlinecal.rates import fit_exponent

T = np.array([100, 300, 1000, 3000, 10_000, 30_000])


@pytest.mark.parametrize("alpha", [0.0, 0.5, 2 / 3, 1.0])
def test_a_power_law_is_found(alpha):
    fit = fit_exponent(T, (3.0 * T**alpha)[:, None])
    assert fit.value == pytest.approx(alpha, abs=1e-12)
    assert fit.constant == pytest.approx(3.0)
    assert fit.low <= alpha + 1e-9
    assert fit.high >= alpha - 1e-9
    assert fit.points == len(T)


def test_intervals_cover(seed):
    """95 % intervals of 400 noisy power laws.

    Fewer than 340 of 400 cover with probability below 1e-13 if each covers with 95 %; they are a little wider, since
    the larger of two standard errors is taken. A half-width that were half as long would cover 67 % and fail.
    """
    rng = np.random.default_rng(seed)
    covered = 0
    for _ in range(400):
        totals = T[:, None] ** 0.5 * rng.gamma(4.0, 0.25, (len(T), 16))
        fit = fit_exponent(T, totals)
        covered += fit.low <= 0.5 <= fit.high
    assert covered >= 340


def test_a_bend_widens_the_interval():
    straight = fit_exponent(T, (T**0.5)[:, None])
    bent = fit_exponent(T, (T**0.5 * np.exp(0.1 * np.cos(T)))[:, None])
    assert bent.high - bent.low > 100 * (straight.high - straight.low)


def test_correlated_prefixes_do_not_shrink_the_interval(seed):
    """Runs that differ by a slope of their own: residuals of the mean are small, the jackknife sees the spread."""
    rng = np.random.default_rng(seed)
    slopes = 0.5 + 0.1 * rng.standard_normal(16)
    fit = fit_exponent(T, T[:, None] ** slopes)
    assert fit.high - fit.low > 0.02


@pytest.mark.parametrize(
    "totals",
    [np.zeros((6, 2)), np.full((6, 2), np.inf), -np.ones((6, 2)), np.vstack([np.ones((5, 1)), [[0.0]]])],
)
def test_no_exponent_where_there_is_none(totals):
    assert fit_exponent(T, totals) is None
    assert fit_exponent(T[:2], np.ones((2, 3))) is None


def test_one_run_carrying_the_mean_gives_no_certainty():
    totals = np.zeros((6, 3))
    totals[:, 0] = T
    assert fit_exponent(T, totals).high == float("inf")


def test_bad_input():
    with pytest.raises(InvalidParameter, match=r"expected \(n,\) and \(n, runs\)"):
        fit_exponent(T, T)
    with pytest.raises(InvalidParameter, match="not positive"):
        fit_exponent([0, 1, 2], np.ones((3, 1)))
