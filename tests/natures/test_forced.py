"""Errors that natures force: bounds with their proofs, tables of levels, figures where there is no bound."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.guarantee import Forecasters
from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import strategy_key
from onlinecal.measures import MEASURES, cdl, cutoff_ce, ece, smooth_ce, u_calibration
from onlinecal.natures.adaptive import _coins, _fall
from onlinecal.natures.adversarial import always_wrong
from tests.by_hand import measured
from tests.engine.games import played
from tests.mutants import FrozenNoise
from tests.natures.quarters import Quarters

#: what early stopping forces in games of 100, 2000, 10⁴ and 10⁶ rounds
FORCED = [0.0, 1.5761153065529554, 3.500464511473243, 20.271706680863748]

# ---------------------------------------------------------------- early stopping


@dataclass(frozen=True)
class Balancing(f.Forecaster):
    """Keeps the coins of early stopping going: beside 1/2, and the farther the nearer the bias is to where they end."""

    bias: float

    def start(self, horizon, stream):
        return _Balancing(0.5 * math.pi / (self.bias + 1.0))


class _Balancing:
    def __init__(self, beta):
        self.total, self.beta = 0.0, beta

    def forecast(self):
        away = 0.25 * self.beta * math.tan(min(max(self.beta * self.total, -1.57), 1.57))
        return 0.5 + min(max(away, -0.5), 0.5)

    def update(self, forecast, outcome):
        self.total += outcome - forecast


def ends(forecaster, bias, horizon, runs, seed):
    """Whether the coins of each run have ended, and the total of its measures."""
    game = played(forecaster, n.EarlyStopping(bias), horizon, runs=range(runs), seed=seed)
    totals = [[horizon * measure(gamma) for gamma in game.gammas()] for measure in (smooth_ce, cutoff_ce)]
    return game.nature.state[:, 0] != 0.5, np.array(totals)


def drift(b, delta, beta):
    """The mean of ln cos βb after a round with a coin, less what it was."""
    ends = [np.log(np.cos(beta * (b - delta + side))) for side in (0.5, -0.5)]
    return (ends[0] + ends[1]) / 2 - np.log(np.cos(beta * b))


@pytest.mark.parametrize("bias", [0.4, 1.0, 3.0, 10.0, 40.0])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_the_step_of_the_proof_of_early_stopping(bias, share):
    beta = share * 0.5 * np.pi / (bias + 1.0)
    c = _fall(bias, beta)
    b, delta = np.meshgrid(np.linspace(-bias, bias, 201), np.linspace(-0.5, 0.5, 401))
    assert (drift(b, delta, beta) <= 2.0 * delta**2 - c + 1e-12).all()
    # And c is not far from the largest number of which that is true, but near the ends of the cosine.
    if share < 0.9:
        assert (drift(b, delta, beta) > 2.0 * delta**2 - 1.5 * c).any()


@pytest.mark.parametrize("bias", [1.5, 5.0])
def test_coins_of_early_stopping_end_against_who_keeps_them_going(bias, seed):
    runs, horizon = 64, math.ceil(1.5 * _coins(bias))
    ended, totals = ends(Balancing(bias), bias, horizon, runs, seed)
    assert (totals[:, ended] >= bias - 1e-9).all()
    # At most 2/3 go on in the mean; of 64 runs more than 2/3 + 0.41 do with probability exp(−2·64·0.41²) < 1e-9.
    assert (~ended).mean() <= 2 / 3 + 0.41


@pytest.mark.parametrize("horizon", [2000, 8000])
@pytest.mark.parametrize(
    "forecaster", [f.DefensiveForecasting(), Balancing(5.0), Quarters()], ids=strategy_key
)
def test_early_stopping_forces_its_bound(forecaster, horizon, seed):
    """Fails by chance with probability 1e-9; for others see tests/forecasters/test_guarantees.py."""
    own = n.EarlyStopping()
    found = ends(forecaster, own.bias, horizon, 64, seed)[1]
    for guarantee, totals in zip(own.guarantees, found, strict=True):
        bound = guarantee.bound(horizon)
        assert bound > 0.12 * horizon ** (1 / 3)
        assert totals.mean() >= bound - guarantee.slack(horizon, 64, 1e-9)


@pytest.mark.parametrize(
    ("bias", "ones", "value"),
    [
        (2.0, (20, 20), 5.0), (2.0, (20, 26), 6.5), (2.0, (14, 20), 6.5), (2.0, (20, 30), 10.0), (2.0, (10, 20), 10.0),
        (7.0, (20, 26), 7.0),
    ],
)  # fmt: skip
def test_the_potential_of_early_stopping_by_hand(bias, ones, value):
    """Of forty rounds each at 1/4 and 3/4: what ends the coins, the total bias, or the weighted one and half of it."""
    gamma = JointDistribution.from_counts([0.25, 0.75], [40, 40], ones)
    for guarantee in n.EarlyStopping(bias).guarantees:
        assert guarantee.potential.of(gamma, 100) == value


def test_early_stopping_forces_no_more_than_two_and_a_half_times_its_bound(seed):
    """The control: K29* pays twice the bound, with a standard deviation of a tenth, 40 standard errors below this."""
    own, horizon = n.EarlyStopping(), 8000
    totals = ends(f.DefensiveForecasting(), own.bias, horizon, 64, seed)[1][0]
    assert totals.mean() < 2.5 * own.guarantees[0].bound(horizon)
    for guarantee in own.guarantees:
        found = [guarantee.bound(t) for t in (100, 2000, 10**4, 10**6)]
        assert found == pytest.approx(FORCED, rel=1e-12)
        assert guarantee.slack(10**4, 8, 1e-9) == pytest.approx(6.129745588392859, rel=1e-12)
    assert n.EarlyStopping("T^(1/3)").guarantees[0].bound(10**6) == 0.0  # a bias that is not reached for sure


# ---------------------------------------------------------------- always wrong


def test_what_is_always_wrong_is_forced_to_the_digit():
    """Contrarian against 0.3 and 0.5: the shares of T are the least that are possible, or T itself."""
    assert n.Greedy("kink").guarantees == n.Greedy(cells=3).guarantees == ()
    assert [each.bound(50) for each in n.Contrarian().guarantees] == [25, 50, 25, 12.5]
    for p, quadratic in ((0.5, 0.25), (0.3, 0.49)):
        game = played(oc.forecasters.Constant(p), n.Contrarian(), 50, runs=range(1))
        (gamma,) = game.gammas()
        found = {"ece": ece(gamma), "v_cdl": MEASURES["v_cdl"].function(gamma),
                 "u_calibration": MEASURES["u_calibration"].function(gamma),
                 "swap_regret[quadratic]": MEASURES["cfdl"].function(gamma)}  # fmt: skip
        assert found["swap_regret[quadratic]"] == pytest.approx(quadratic)
        for guarantee in always_wrong(Forecasters.EVERY, "here", told_late=True):
            assert 50 * found[guarantee.measure] >= guarantee.bound(50) - 1e-9
        assert found["v_cdl"] == pytest.approx(1.0)


# ---------------------------------------------------------------- figures


def by_logs(horizon):
    return math.sqrt(horizon) * math.log(horizon)


#: nature, forecaster, measure, unit of the total, tolerance, and shares of the unit by horizon. Over 16 runs standard
#: errors were at most a fifth of the tolerance. Plain biases keep the bound of hedging against what hurts the others.
FIGURES = [
    (n.HalfCrossing(), FrozenNoise(), u_calibration, math.sqrt, 1.0, {625: 1.3, 2500: 1.9, 10**4: 3.0}),
    (n.HalfCrossing(), f.PerturbedLeader(), u_calibration, math.sqrt, 0.7, dict.fromkeys((625, 2500, 10**4), 1.05)),
    (n.HalfCrossing(), f.EmpiricalMean(), u_calibration, float, 0.01, {2000: 0.5}),
    (n.KinkApproach(), f.CDLMinimiser(), cdl, by_logs, 0.065, {10**3: 0.31, 10**4: 0.36, 10**5: 0.40, 10**6: 0.47}),
    (n.KinkApproach(), f.ForecastHedging("T^(1/2)"), cdl, by_logs, 0.06, dict.fromkeys((10**3, 10**4, 10**5), 0.14)),
    (n.LogisticPolicy(), f.CDLMinimiser(), cdl, by_logs, 0.1, {10**3: 0.31, 10**4: 0.31, 10**5: 0.23}),
    (n.SparseBias(), f.ForecastHedging("T^(1/2)"), cdl, math.sqrt, 0.35, {10**3: 1.5, 10**4: 2.1, 10**5: 3.5}),
    (n.SparseBias(), f.CDLMinimiser(), cdl, math.sqrt, 0.35, {10**3: 1.8, 10**4: 1.4, 10**5: 1.4, 10**6: 1.5}),
    (n.SparseBias(), f.ForecastHedging(), cdl, lambda t: t ** (2 / 3), 0.035, {10**3: 0.32, 10**4: 0.25, 10**5: 0.23}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("nature", "forecaster", "measure", "unit", "tolerance", "shares"), FIGURES)
def test_the_figures_of_the_docstrings(nature, forecaster, measure, unit, tolerance, shares, seed, full):
    for horizon, share in shares.items():
        if full or horizon < 10**5:
            found = measured(forecaster, nature, measure, horizon, seed).mean() / unit(horizon)
            assert found == pytest.approx(share, abs=tolerance)
