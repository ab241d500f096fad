"""Exponents: recovered where they are known, with intervals that cover."""

import numpy as np
import pytest

from onlinecal.errors import InvalidParameter
from onlinecal.measures import MEASURES
from onlinecal.rates import KNOWN_RATES, best_known, fit_exponent, known_rates
from onlinecal.study.curves import Curve, Promise

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


def test_the_best_known_rates():
    assert known_rates("ece") == "Ω(T^0.54389) … O(T^(2/3))"
    assert known_rates("step_ce") == "Ω(√T) … O(√(T log T))"  # proved, though nobody here plays it
    assert known_rates("swap_regret[quadratic]") == "O(T^(1/3) log T)"
    assert known_rates("brier") == ""
    for measure in {rate.measure for rate in KNOWN_RATES}:
        lower, upper = best_known(measure)[0], best_known(measure)[-1]
        assert (lower.exponent, lower.logs) <= (upper.exponent, upper.logs)
        assert measure in MEASURES or measure in ("distance_certificate", "swap_regret[quadratic]")


@pytest.mark.parametrize("rate", KNOWN_RATES, ids=str)
def test_a_rate_grows_as_its_formula_says(rate):
    plain = (
        rate.formula.replace("−ε", "")
        .replace("^", "**")
        .replace(" log T", "*np.log(T)")
        .replace("√(", "np.sqrt(")
    )
    shape = eval(plain.replace("√T", "np.sqrt(T)"), {"np": np, "T": T.astype(float)})
    assert rate.at(T) == pytest.approx(shape)
    assert rate.growth(100, 30_000) == pytest.approx(np.log(shape[-1] / shape[0]) / np.log(300))
    assert rate.at([1.0]) == 1.0


@pytest.mark.parametrize(
    ("measure", "growth", "proven", "said"),
    [
        ("ece", 0.7, None, "above O"),
        ("ece", 0.6, None, ""),
        ("ece", 2 / 3, 2 / 3, ""),  # on the edge
        ("ece", 0.5, None, "below Ω"),
        ("ece", 0.7, 0.65, "above proven"),
        ("ece", 0.6, 0.55, "above proven"),
        ("ece", 0.7, 0.8, "above O"),
        ("cdl", 0.55, None, ""),  # the logarithm allows it
        ("cdl", 0.65, None, "above O"),
        ("brier", 1.0, None, ""),
        ("brier", 1.0, 0.9, "above proven"),
    ],
)
def test_what_a_fit_says_beside_what_is_known(measure, growth, proven, said):
    totals = (T**growth)[:, None] * [1.0, 1.0]
    promises = () if proven is None else tuple(
        (t, Promise(measure, "", "T^a", "expected", "all", True, t**proven)) for t in T.tolist()
    )  # fmt: skip
    assert Curve(measure, "a", "b", T, totals, True, promises).verdict() == said
    assert (
        Curve(measure, "a", "b", T, totals, False, promises).verdict() == ""
    )  # one game is tuned to its end only


def test_a_wide_interval_says_nothing():
    assert Curve("ece", "a", "b", T, (T * np.exp(np.cos(T)))[:, None], True).verdict() == ""


def test_bad_input():
    with pytest.raises(InvalidParameter, match=r"expected \(n,\) and \(n, runs\)"):
        fit_exponent(T, T)
    with pytest.raises(InvalidParameter, match="not positive"):
        fit_exponent([0, 1, 2], np.ones((3, 1)))
