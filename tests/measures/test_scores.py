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
from tests.truthfulness import expected_of_truth, lie, rounded_ece, value

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


def test_small_gaps_keep_their_digits():
    for gap in (1e-3, 1e-6, 1e-9):
        gamma = G.from_levels([0.25], [1], [0.25 + gap])
        exact = gamma.means[0] - gamma.predictions[0]
        assert bregman(gamma) == pytest.approx(exact**2 / (2 * 0.25 * 0.75), rel=2 * gap + 1e-6)


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

REWARD = ("ece", "smooth_ce", "step_ce", "v_cdl", "cdl")


@pytest.mark.parametrize("name", [*REWARD, "atb"])
def test_the_truth_pays_the_root(name):
    """And the lie is calibrated. E|N − n/2| of n = T/2 coins is √(n/2π) for large n; the worst task pays twice that."""
    assert value(name, lie(64)) == value(name, lie(256)) == 0.0
    small, large = (expected_of_truth(name, rounds) for rounds in (64, 1024))
    if name == "atb":  # E (N − n/2)² = n/4, twice where the edge is below or above ½, over T = 2n
        assert small == pytest.approx(1 / 8, rel=1e-9) == large
        return
    times = 2.0 if name.endswith("cdl") else 1.0
    assert large / small == pytest.approx(4.0, rel=0.02)
    assert large == pytest.approx(times * np.sqrt(512 / (2 * np.pi)), rel=0.01)


@pytest.mark.parametrize("name", ["subsampled_smooth_ce", "subsampled_step_ce"])
def test_the_lie_gains_nothing_in_a_random_half(name):
    for rounds in (64, 256):
        truth, same = expected_of_truth(name, rounds), value(name, lie(rounds))
        # Both are E|X| of a sum of variance T/16; they differ by what its law is not normal.
        assert truth == pytest.approx(same, rel=2 / rounds)
        assert same == pytest.approx(np.sqrt(rounds / (8 * np.pi)), rel=1 / rounds)


def test_ece_rewards_rounding_of_independent_events():
    for rounds in (64, 512):
        p = (np.arange(rounds) + 0.5) / rounds
        truth = float((2 * p * (1 - p)).sum())
        assert rounded_ece(rounds, rounds) == pytest.approx(truth)
        assert truth == pytest.approx(rounds / 3, rel=0.01)
    # T^{1/3} cells of T^{2/3} rounds, each with a bias of some T^{1/3}: eight times the rounds, four times the total.
    totals = [rounded_ece(rounds, round(rounds ** (1 / 3))) for rounds in (64, 512, 4096)]
    assert totals[0] < 64 / 6
    assert totals[1] / totals[0] == pytest.approx(4.0, rel=0.05)
    assert totals[2] / totals[1] == pytest.approx(4.0, rel=0.05)
