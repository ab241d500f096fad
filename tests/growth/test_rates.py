"""The best known rates, and what a measured growth says beside them."""

import math

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.forecasters import ForecastHedging
from onlinecal.growth.rates import KNOWN_RATES, best_known, known_rates
from onlinecal.measures import MEASURES
from onlinecal.natures import Bernoulli
from onlinecal.study import curves
from onlinecal.study.curves import Curve
from onlinecal.study.played import Promise


def test_a_fair_coin_forces_root_t_on_u_calibration(seed):
    """However points are chosen: it is at least the external regret of `v_shaped(½)`.

    That is max(ones, zeros) less the number of right guesses. Over R = 1000 runs the mean of the first is ½E|ones −
    zeros| ≥ 0.39√T above T/2. It is lower by s√T or more with probability at most exp(−2s²R), as a coin moves it by
    1/R. The mean of the second, a sum of fair coins, is T/2 up to s√T likewise. With s = 0.13, together below 5e-15.
    """
    horizon, runs = 400, 1000
    mean = sum(math.comb(horizon, k) * abs(2 * k - horizon) for k in range(horizon + 1)) / 2**horizon / 2
    assert mean >= 0.39 * math.sqrt(horizon)
    shares = {"u_calibration": 1, "cdl": 1, "cutoff_ce": 2, "step_ce": 4}
    study = oc.play(
        ForecastHedging(), Bernoulli(), horizon=[horizon], runs=runs, seed=seed, measures=[*shares]
    )
    least = (0.39 - 2 * 0.13) * math.sqrt(horizon)
    assert all(study.curve(name).mean[-1] >= least / share for name, share in shares.items())


T = np.array([100, 300, 1000, 3000, 10_000, 30_000])


@pytest.mark.parametrize(
    ("column", "rates"),
    [
        ("ece", "Ω(T^0.54389) … O(T^(2/3))"), ("step_ce", "Ω(√T) … O(√(T log T))"),
        ("swap_regret[quadratic]", "O(T^(1/3) log T)"), ("external_regret[quadratic]", "O(log T)"), ("brier", ""),
        # By relations: one bound from below and one from above.
        ("v_cdl", "Ω(√T) … O(√T log T)"), ("distance_lower", "Ω(T^(1/3)) … O(√T)"), ("scdl", "O(√T log T)"),
        # One weight function, or a few bins, is easier than what bounds it; a certificate is of one forecaster.
        *((name, "") for name in
          ("weighted_ce", "low_degree_ce", "binned_ece", "scdl_binned", "kernel_ce_certificate")),
        # Of a bracket.
        (Column("measure", "distance_upper", end="lower"), "O(T^(2/3))"),
        (Column("measure", "distance_upper", end="upper"), "Ω(T^(1/3))"),
        # Of K classes a nature may play two, but for kernels.
        (Column("class_measure", "ece"), "Ω(T^0.54389)"), (Column("class_measure", "kernel_ce"), ""),
    ],
)  # fmt: skip
def test_the_best_known_rates(column, rates):
    assert known_rates(column) == rates


def test_of_equal_rates_it_is_one_that_can_be_played_and_that_is_stated():
    lower, upper = best_known("ece")
    assert (upper.runs, upper.measure, str(upper)) == (True, "ece", "O(T^(2/3))")
    assert not any("; with" in rate.source for name in ("ece", "u_calibration") for rate in best_known(name))
    assert all("; with" in rate.source for rate in best_known("v_cdl"))
    assert (lower.runs, lower.upper) == (True, False)


def test_lower_rates_are_below_upper_ones():
    for measure in {*MEASURES, *(rate.measure for rate in KNOWN_RATES)}:
        if found := best_known(measure):
            assert (found[0].exponent, found[0].logs) <= (found[-1].exponent, found[-1].logs)
            assert [rate.upper for rate in found] in ([False], [True], [False, True])


@pytest.mark.parametrize("rate", KNOWN_RATES, ids=str)
def test_a_rate_grows_as_its_formula_says(rate):
    plain = rate.formula
    for sign, name in (
        ("−ε", ""), ("^", "**"), (" log T", "*log(T)"), ("√(", "sqrt("), ("log T", "log(T)"), ("√T", "sqrt(T)"),
    ):  # fmt: skip
        plain = plain.replace(sign, name)
    shape = eval(plain, {"sqrt": np.sqrt, "log": np.log, "T": T.astype(float)})
    assert rate.at(T) == pytest.approx(shape)
    assert rate.growth(100, 30_000) == pytest.approx(np.log(shape[-1] / shape[0]) / np.log(300))
    assert rate.at([1.0]) == 1.0


@pytest.mark.parametrize(
    ("measure", "growth", "proven", "said"),
    [
        ("ece", 0.7, None, "above O"), ("ece", 0.6, None, ""), ("ece", 0.5, None, "below Ω"),
        ("ece", 2 / 3, 2 / 3, ""),  # on the edge
        ("ece", 0.7, 0.65, "above proven"), ("ece", 0.6, 0.55, "above proven"), ("ece", 0.7, 0.8, "above O"),
        ("cdl", 0.55, None, ""),  # the logarithm allows it
        ("cdl", 0.65, None, ""),  # and here over the shorter half of these T
        ("cdl", 0.75, None, "above O"), ("brier", 1.0, None, ""), ("brier", 1.0, 0.9, "above proven"),
    ],
)  # fmt: skip
def test_what_a_fit_says_beside_what_is_known(measure, growth, proven, said):
    totals = (T**growth)[:, None] * [1.0, 1.0]
    promises = () if proven is None else tuple(
        (t, Promise(measure, "", "T^a", "expected", "all", True, t**proven)) for t in T.tolist()
    )  # fmt: skip
    column = Column("measure", measure)
    assert Curve(column, "a", "b", T, totals, True, promises).against_rates() == said
    # One game is tuned to its end only.
    assert Curve(column, "a", "b", T, totals, False, promises).against_rates() == ""
    wide = (T * np.exp(np.cos(T)))[:, None]
    assert Curve(Column("measure", "ece"), "a", "b", T, wide, True).against_rates() == ""


def test_three_questions_share_the_doubt_and_each_has_it_on_one_side(monkeypatch):
    levels, fitted = [], curves.trend

    def trend(*of, level):
        levels.append(level)
        return fitted(*of, level=level)

    monkeypatch.setattr(curves, "trend", trend)
    one = Curve(Column("measure", "ece"), "a", "b", T, (T**0.6)[:, None] * [1.0, 1.0], True)
    assert one.against_rates(0.9) == ""
    assert levels == pytest.approx([1.0 - 2 * 0.1 / 3] * 2)
