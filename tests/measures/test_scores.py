"""Proper scores and Bregman divergences: sums over samples, identities, digits at the ends; truth and lies."""

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.measures import bregman, brier, brier_decomposition, cfdl, log_loss, nce
from tests.strategies import ANY
from tests.truthfulness import expected_of_truth, lie, value

G = JointDistribution
values = st.integers(0, 20).map(lambda i: i / 20) | st.floats(0, 1, allow_subnormal=False)


def loss(v, y):
    chance = v if y else 1 - v
    return -math.log(chance) if chance > 0 else math.inf


@given(st.lists(st.tuples(values, st.integers(0, 1)), min_size=1, max_size=30))
def test_scores_are_averages_over_samples(rows):
    gamma, n = G.from_samples(*zip(*rows, strict=True)), len(rows)
    assert brier(gamma) == pytest.approx(sum((y - v) ** 2 for v, y in rows) / n, abs=1e-14)
    assert log_loss(gamma) == pytest.approx(sum(loss(v, y) for v, y in rows) / n, rel=1e-12, abs=1e-14)
    b = sum(y for _, y in rows) / n
    base = sum(loss(b, y) for _, y in rows) / n
    expected = log_loss(gamma) / base if base > 0 else 0.0 if log_loss(gamma) == 0.0 else math.inf
    assert nce(gamma) == pytest.approx(expected, rel=1e-12)


@given(ANY)
def test_identities(gamma):
    """Of Murphy; of the square and a kink with tasks; of the logarithm with log loss; and Pinsker's inequality."""
    parts, score, square = brier_decomposition(gamma), brier(gamma), bregman(gamma, phi="quadratic")
    assert parts.reliability - parts.resolution + parts.uncertainty == pytest.approx(score, abs=1e-14)
    assert min(parts) >= 0.0
    account = tasks.quadratic().account(gamma)
    assert account.swap == pytest.approx(parts.reliability, abs=1e-12) == pytest.approx(square, abs=1e-12)
    assert account.external == pytest.approx(parts.reliability - parts.resolution, abs=1e-14)
    assert account.payoff == pytest.approx(1 - score, abs=1e-14)
    assert square == pytest.approx(bregman(gamma, phi=(np.square, lambda x: 2 * x)), abs=1e-14)
    if np.abs(gamma.predictions - 0.5).min() > 1e-6:
        # Theorem 4.10 of Gopalan and Hu: the V-shaped task is paid |x − ½| in expectation, up to what all get.
        kink = bregman(gamma, phi=(lambda x: np.abs(x - 0.5), lambda x: np.sign(x - 0.5)))
        assert cfdl(gamma, task="v_shaped") == pytest.approx(kink, abs=1e-12)
    divergence, whole = bregman(gamma), log_loss(gamma)
    left = sum(
        w * x * loss(x, 1) for w, q in zip(gamma.mass, gamma.means, strict=True) for x in (q, 1 - q) if x
    )
    assert divergence == whole == math.inf or divergence + left == pytest.approx(whole, abs=1e-12)
    assert divergence >= 2 * square - 1e-14


ENDS = [0.0, 5e-324, 1e-310, 2.3e-308, 1e-160, 1e-16, 0.5, 1.0 - 2.0**-53, 1.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("q", ENDS)
@pytest.mark.parametrize("v", ENDS)
def test_the_ends_of_the_unit_interval(v, q):
    """KL divergence and log loss in 400 digits; infinite only where what happened was called impossible."""
    gamma = G.from_levels([v], [1.0], [q])
    with localcontext(Context(prec=400, Emin=-(10**6), Emax=10**6)):
        a, b = Decimal(q), Decimal(v)
        pairs = [(a, b), (1 - a, 1 - b)]
        if any(mass and not said for mass, said in pairs):
            assert bregman(gamma) == log_loss(gamma) == math.inf
            return
        divergence = sum(mass * (mass / said).ln() for mass, said in pairs if mass)
        nats = -sum(mass * said.ln() for mass, said in pairs if mass)
    assert bregman(gamma) == pytest.approx(float(divergence), rel=1e-14, abs=1e-16)
    assert log_loss(gamma) == pytest.approx(float(nats), rel=1e-14, abs=5e-324)
    assert bregman(gamma, phi="quadratic") == pytest.approx((q - v) ** 2, rel=1e-15)
    assert brier(gamma) == pytest.approx((q - v) ** 2 + q * (1.0 - q), rel=1e-15)


# ---------------------------------------------------------------- docs/measures.md: what a lie gains, in expectation


@pytest.mark.parametrize(
    "name", ["ece", "smooth_ce", "cdl", "atb", "subsampled_smooth_ce", "subsampled_step_ce"]
)
def test_who_gains_by_the_lie(name):
    """It is calibrated. E|N − n/2| of n = T/2 coins is √(n/2π) for large n; the worst task pays twice that."""
    small, large = (expected_of_truth(name, rounds) for rounds in (64, 256))
    if name == "atb":  # E (N − n/2)² = n/4, twice where the edge is below or above ½, over T = 2n
        assert small == pytest.approx(1 / 8, rel=1e-9) == large
    elif name.startswith("subsampled"):  # in a random half it gains nothing: E|X| of a sum of variance T/16
        assert value(name, lie(256)) == pytest.approx(np.sqrt(256 / (8 * np.pi)), rel=1 / 256)
        assert large == pytest.approx(value(name, lie(256)), rel=2 / 256)
    else:
        assert value(name, lie(64)) == value(name, lie(256)) == 0.0
        assert large / small == pytest.approx(2.0, rel=0.02)
        assert large == pytest.approx((1 + (name == "cdl")) * np.sqrt(128 / (2 * np.pi)), rel=0.01)
