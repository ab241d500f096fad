"""The best known rates, and what a measured growth says beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import QUADRATIC, SQUARED_LOSS, Column
from onlinecal.forecasters import Forecaster, ForecastHedging
from onlinecal.growth.rates import KNOWN_RATES, best_known, known_rates
from onlinecal.measures import MEASURES
from onlinecal.natures import Bernoulli
from onlinecal.study.curves import Curve
from onlinecal.study.played import Promise

# -------------------------------------------------------------------- what a fair coin forces, and what it does not


@dataclass(frozen=True)
class Sides(Forecaster):
    """½ ± T^−power, on the side that repairs its total bias: it chooses its points to meet a fair coin."""

    power: float = 0.4
    deterministic = True

    def start(self, horizon, stream):
        return SidesPlayer(horizon**-self.power)


class SidesPlayer:
    def __init__(self, apart):
        self.apart, self.total = apart, 0.0

    def forecast(self):
        return 0.5 + math.copysign(self.apart, self.total) if self.total else 0.5

    def update(self, forecast, outcome):
        self.total += outcome - forecast


def test_a_fair_coin_forces_no_root_of_t_on_the_kernel_error(seed):
    """Exponent 0.403 ± 0.014 over seeds 0–11, so 0.48 is 5.5 standard deviations away; that of U-calibration 0.598."""
    horizons, measures = [1000, 4000, 16_000, 64_000], ["kernel_ce", "u_calibration"]
    study = oc.play(Sides(), Bernoulli(), horizon=horizons, runs=32, seed=seed, measures=measures)
    assert study.exponent("kernel_ce").value < 0.48 < 0.5 < study.exponent("u_calibration").value


@pytest.mark.parametrize(
    "forecaster", [oc.forecasters.Constant(), ForecastHedging(), Sides(), Sides(0.5)], ids=str
)
def test_a_fair_coin_forces_root_t_on_u_calibration(forecaster, seed):
    """However points are chosen: U-calibration is at least the external regret of `v_shaped(½)`.

    That is max(ones, zeros) less the number of right guesses. Over R = 1000 runs the mean of the first is ½E|ones −
    zeros| ≥ 0.39√T above T/2. It is lower by s√T or more with probability at most exp(−2s²R), as a coin moves it by
    1/R. The mean of the second, a sum of fair coins, is T/2 up to s√T likewise. With s = 0.13, together below 5e-15.
    """
    horizon, runs = 400, 1000
    mean = sum(math.comb(horizon, k) * abs(2 * k - horizon) for k in range(horizon + 1)) / 2**horizon / 2
    assert mean >= 0.39 * math.sqrt(horizon)
    study = oc.play(forecaster, Bernoulli(), horizon=horizon, runs=runs, seed=seed, per_decade=1,
                    measures=["u_calibration", "cdl", "cutoff_ce", "step_ce"])  # fmt: skip
    least = (0.39 - 2 * 0.13) * math.sqrt(horizon)
    for measure, share in (("u_calibration", 1), ("cdl", 1), ("cutoff_ce", 2), ("step_ce", 4)):
        assert study.curve(measure).mean[-1] >= least / share


T = np.array([100, 300, 1000, 3000, 10_000, 30_000])


def test_the_best_known_rates():
    assert known_rates("ece") == "Ω(T^0.54389) … O(T^(2/3))"
    assert known_rates("step_ce") == "Ω(√T) … O(√(T log T))"
    assert known_rates("swap_regret[quadratic]") == "O(T^(1/3) log T)"
    assert known_rates("brier") == ""
    for measure in {rate.measure for rate in KNOWN_RATES}:
        lower, upper = best_known(measure)[0], best_known(measure)[-1]
        assert (lower.exponent, lower.logs) <= (upper.exponent, upper.logs)
        assert measure in MEASURES or measure in ("distance_certificate", QUADRATIC, SQUARED_LOSS)


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
