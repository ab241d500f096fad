"""The best known rates, and what a measured growth says beside them."""

import numpy as np
import pytest

from onlinecal.core.columns import Column
from onlinecal.growth.rates import KNOWN_RATES, best_known, known_rates
from onlinecal.measures import MEASURES
from onlinecal.report.curves import Curve
from onlinecal.study.played import Promise

T = np.array([100, 300, 1000, 3000, 10_000, 30_000])


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
        ("cdl", 0.65, None, ""),  # and here over the shorter half of these T
        ("cdl", 0.75, None, "above O"),
        ("brier", 1.0, None, ""),
        ("brier", 1.0, 0.9, "above proven"),
    ],
)
def test_what_a_fit_says_beside_what_is_known(measure, growth, proven, said):
    totals = (T**growth)[:, None] * [1.0, 1.0]
    promises = () if proven is None else tuple(
        (t, Promise(measure, "", "T^a", "expected", "all", True, t**proven)) for t in T.tolist()
    )  # fmt: skip
    assert Curve(Column("measure", measure), "a", "b", T, totals, True, promises).verdict() == said
    assert (
        Curve(Column("measure", measure), "a", "b", T, totals, False, promises).verdict() == ""
    )  # one game is tuned to its end only


def test_a_wide_interval_says_nothing():
    assert (
        Curve(Column("measure", "ece"), "a", "b", T, (T * np.exp(np.cos(T)))[:, None], True).verdict() == ""
    )
