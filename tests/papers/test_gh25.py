"""Gopalan and Hu 2025: tight examples of §4.6, and why ECE and CDL need a random forecaster and smCE does not."""

import numpy as np
import pytest
from hypothesis import given

import onlinecal as oc
from onlinecal.core.joint import JointDistribution
from onlinecal.engine.game import Game
from onlinecal.measures import cdl, cfdl, ece, smooth_ce
from tests.pages import DOCS
from tests.strategies import ANY


@pytest.mark.parametrize("epsilon", [0.4, 0.1, 1e-3, 1e-9])
def test_section_4_6_one_level(epsilon):
    """v = ½ and q = ½ + ε: CDL is twice the ECE, the most that Theorem 4.3 allows."""
    gamma = JointDistribution.from_levels([0.5], [1.0], [0.5 + epsilon])
    assert ece(gamma) == pytest.approx(epsilon, rel=1e-6)
    assert cdl(gamma) == pytest.approx(2 * epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.05, 0.01, 0.002])
def test_section_4_6_even_shift(epsilon):
    """v uniform on [⅓, ⅔], each ε too low: CDL is at most 3ε², near the least that Theorem 4.3 allows."""
    v = np.linspace(1 / 3, 2 / 3, 4001)
    gamma = JointDistribution.from_levels(v, np.full(len(v), 1 / len(v)), v + epsilon)
    assert ece(gamma) == pytest.approx(epsilon, rel=1e-9)
    apart = v[1] - v[0]  # a sum over levels in place of the integral
    assert epsilon**2 * (1 - 1e-9) <= cdl(gamma) <= 3 * epsilon * (epsilon + apart)


@given(gamma=ANY)
def test_theorem_4_3(gamma):
    assert (
        ece(gamma) ** 2
        <= cfdl(gamma, task="quadratic") + 1e-12
        <= cdl(gamma) + 2e-12
        <= 2 * ece(gamma) + 3e-12
    )


DETERMINISTIC = [
    oc.forecasters.AlmostOneStepAhead(),
    oc.forecasters.DefensiveForecasting(),
    oc.forecasters.EmpiricalMean(),
]


@pytest.mark.parametrize("forecaster", DETERMINISTIC, ids=lambda f: type(f).__name__)
def test_who_is_not_random_has_large_ece_and_cdl(forecaster):
    """§5: nature says 1 exactly if the forecast is below ½. All rounds of a forecast then have one outcome, at least ½
    away from it. The rule to act from ½ on loses in each; smCE may be small all the same.
    """
    horizon = 2000
    game = Game(forecaster, oc.natures.Contrarian(), horizon=horizon, runs=range(1))
    game.advance(horizon)
    (gamma,) = game.gammas()
    assert set(gamma.means) <= {0.0, 1.0}
    assert ece(gamma) >= 0.5
    assert cdl(gamma) == pytest.approx(1.0, abs=1e-12)
    if not isinstance(forecaster, oc.forecasters.EmpiricalMean):
        assert horizon * smooth_ce(gamma) <= 2 * (2 * np.sqrt(horizon) + 1)


def test_who_is_random_has_not():
    horizon = 2000
    game = Game(oc.forecasters.ForecastHedging(), oc.natures.Contrarian(), horizon=horizon, runs=range(4))
    game.advance(horizon)
    for gamma in game.gammas():
        assert ece(gamma) < 0.25
        assert cdl(gamma) < 0.5


def test_section_1_4_calibration_is_no_utility(seed):
    """A predictor that always says the mean is calibrated, and so is the truth: only losses tell them apart."""
    truth = np.sort(np.random.default_rng(seed).uniform(0.05, 0.95, 50))
    bayes = JointDistribution.from_levels(truth, np.full(50, 1 / 50), truth)
    mean = JointDistribution.from_levels([truth.mean()], [1.0], [truth.mean()])
    m = oc.measures
    for measure in (
        m.ece,
        m.smooth_ce,
        m.cutoff_ce,
        m.step_ce,
        m.cdl,
        m.v_cdl,
        m.scdl,
        m.smooth_ece,
        m.kernel_ce,
    ):
        assert measure(bayes) == pytest.approx(0.0, abs=1e-7)
        assert measure(mean) == pytest.approx(0.0, abs=1e-7)
    assert oc.measures.brier(mean) - oc.measures.brier(bayes) == pytest.approx(truth.var(), rel=1e-9)
    # The next one, a little off, is not calibrated in any of them.
    off = JointDistribution.from_levels([truth.mean() + 0.04], [1.0], [truth.mean()])
    assert min(measure(off) for measure in (m.ece, m.smooth_ce, m.cdl, m.scdl)) > 1e-3


def test_section_5_the_bound_of_the_cdl_minimiser_has_a_factor_ln_ln_more():
    """The survey has √T log T. The bound of ours over √T ln T grows, as ln ln T does, on the T that can be played."""
    (own,) = oc.forecasters.CDLMinimiser().guarantees
    times = np.array([1e6, 1e9, 1e12])
    over = np.array([own.bound(t) for t in times]) / (np.sqrt(times) * np.log(times))
    slower = np.log(np.log(times))
    assert (np.diff(over) > 0.4).all()
    assert over / slower == pytest.approx(np.full(3, 1.9), abs=0.1)
    # At the T of a search, the page of games says it.
    page = " ".join((DOCS / "games.md").read_text("utf-8").split())
    assert f"Proved is at most {round(own.bound(1e5)):,}, of order √T ln T ln ln T" in page
