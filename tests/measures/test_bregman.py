"""Bregman divergences: of log loss, of the Brier score, of kinks, and of a function that is given."""

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import bregman, brier, brier_decomposition, cfdl, log_loss
from tests.gammas_metric import ANY

G = JointDistribution


def entropy(q):
    return sum(-x * math.log(x) for x in (q, 1 - q) if x > 0)


@given(gamma=ANY)
def test_the_logarithm_is_log_loss_without_the_entropy_of_the_levels(gamma):
    left = float(gamma.mass @ [entropy(q) for q in gamma.means.tolist()])
    value, loss = bregman(gamma), log_loss(gamma)
    assert value == loss == math.inf or value + left == pytest.approx(loss, abs=1e-12)
    # Pinsker's inequality, of coins.
    assert value >= 2 * bregman(gamma, phi="quadratic") - 1e-14


@given(gamma=ANY)
def test_the_square_is_the_reliability_and_the_loss_of_the_quadratic_task(gamma):
    value = bregman(gamma, phi="quadratic")
    assert value == pytest.approx(brier_decomposition(gamma).reliability, abs=1e-15)
    assert value == pytest.approx(cfdl(gamma, task="quadratic"), abs=1e-12)
    assert value == pytest.approx(bregman(gamma, phi=(np.square, lambda x: 2 * x)), abs=1e-14)


@given(gamma=ANY)
def test_a_kink_is_the_loss_of_two_actions(gamma):
    """Theorem 4.10 of Gopalan and Hu: the V-shaped task is paid |x − ½| in expectation, up to what all get."""
    kink = bregman(gamma, phi=(lambda x: np.abs(x - 0.5), lambda x: np.sign(x - 0.5)))
    apart = np.abs(gamma.predictions - 0.5) > 1e-6
    if apart.all():
        # Both actions are paid between 0 and 1, so that the two slopes are apart by 2.
        assert cfdl(gamma, task="v_shaped") == pytest.approx(kink, abs=1e-12)


def test_small_gaps_keep_their_digits():
    for gap in (1e-3, 1e-6, 1e-9):
        gamma = G.from_levels([0.25], [1], [0.25 + gap])
        exact = gamma.means[0] - gamma.predictions[0]
        want = exact**2 / (2 * 0.25 * 0.75)
        assert bregman(gamma) == pytest.approx(want, rel=2 * gap + 1e-6)
    assert bregman(G.from_levels([1e-300], [1], [0.5])) == pytest.approx(-math.log(2) + 150 * math.log(10))
    assert bregman(G.from_levels([0.0, 1.0], [1, 1], [0.0, 1.0])) == 0.0
    assert bregman(G.from_levels([0.0], [1], [1e-9])) == math.inf
    assert bregman(G.from_levels([1.0], [1], [0.5])) == math.inf
    assert bregman(G.from_levels([0.5], [1], [1.0])) == pytest.approx(math.log(2))


ENDS = [0.0, 5e-324, 1e-310, 2.3e-308, 1e-160, 1e-16, 0.5, 1.0 - 2.0**-53, 1.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("q", ENDS)
@pytest.mark.parametrize("v", ENDS)
def test_the_ends_of_the_unit_interval(v, q):
    """KL divergence and log loss in 80 digits; infinite only where what happened was called impossible."""
    gamma = JointDistribution.from_levels([v], [1.0], [q])
    with localcontext(Context(prec=400, Emin=-(10**6), Emax=10**6)):
        a, b = Decimal(q), Decimal(v)
        pairs = [(a, b), (1 - a, 1 - b)]
        if any(mass and not said for mass, said in pairs):
            assert bregman(gamma) == log_loss(gamma) == math.inf
            return
        divergence = sum(mass * (mass / said).ln() for mass, said in pairs if mass)
        loss = -sum(mass * said.ln() for mass, said in pairs if mass)
    assert bregman(gamma) == pytest.approx(float(divergence), rel=1e-14, abs=1e-16)
    assert log_loss(gamma) == pytest.approx(float(loss), rel=1e-14, abs=5e-324)
    assert bregman(gamma, phi="quadratic") == pytest.approx((q - v) ** 2, rel=1e-15)
    assert brier(gamma) == pytest.approx((q - v) ** 2 + q * (1.0 - q), rel=1e-15)
