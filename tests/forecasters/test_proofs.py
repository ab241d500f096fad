"""Potentials of proofs: each is its formula. From any state it grows no more than stated, whatever the outcome."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.checks.guarantees import step
from onlinecal.core.joint import JointDistribution
from onlinecal.forecasters import CDLMinimiser, ForecastHedging, FosterVohra, StepCEMinimiser
from onlinecal.forecasters.hedging import growth_of_play, short_sinh
from onlinecal.measures import step_ce
from tests.by_hand import Driven
from tests.oracles.forecasters import StepCE

ROUNDING = 1e-9


def best_c(m, horizon):
    return (1 + math.sqrt(1 + horizon * (m + 2) / (2 * m * (m + 1)))) / math.sqrt(2)


def rate_of(m, horizon):
    return math.sqrt(8 * math.log(2 * m + 2) / horizon)


def energy(m, horizon, bias, counts, ones):
    """Σ(√(Φ + c²) − c) over the edges, less Σ(1 − 2i/m) E_i/(2c)."""
    c, squares = best_c(m, horizon), np.maximum(bias[:-1], 0) ** 2 + np.maximum(-bias[1:], 0) ** 2
    return np.sum(np.sqrt(squares + c * c) - c) - (1 - 2 * np.arange(m + 1) / m) @ bias / (2 * c)


def squares(m, horizon, bias, counts, ones):
    """Σ max(R, 0)² over the Brier regrets against the next points."""
    loss = np.array([ones * (j / m - 1) ** 2 + (counts - ones) * (j / m) ** 2 for j in range(m + 1)]).T
    regret = np.diag(loss)[:, None] - loss
    return sum(max(0.0, regret[i, j]) ** 2 for i in range(m + 1) for j in (i - 1, i + 1) if 0 <= j <= m)


def powers(m, horizon, bias, counts, ones):
    return np.exp(bias**2 / (3 * np.maximum(counts, 1))).sum()


def log_cosh(m, horizon, bias, counts, ones):
    exponents = rate_of(m, horizon) * np.cumsum(bias)
    return np.logaddexp.reduce(np.concatenate([exponents, -exponents])) - math.log(2)


def grown_thresholds(m, horizon, v, n):
    rate = rate_of(m, horizon)
    coarse = max(1.0, 2 * math.sinh(rate / (2 * m)))
    return math.log(math.exp(rate**2 / 8) + coarse * math.expm1(rate) / (4 * m))


#: forecaster → its potential by m, T and of each point E_i, n_i and ones; and its growth by m, T, v and n
PROVED = {
    ForecastHedging: (
        energy,
        lambda m, horizon, v, n: math.sqrt(2) / (4 * m) + v * (1 - v) / (2 * best_c(m, horizon)),
    ),
    FosterVohra: (squares, lambda m, horizon, v, n: 8 / m**2),
    CDLMinimiser: (powers, lambda m, horizon, v, n: growth_of_play(n, m)),
    StepCEMinimiser: (log_cosh, grown_thresholds),
}

ROUNDS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=80)


@pytest.mark.parametrize("cls", PROVED)
@given(st.integers(1, 12), st.integers(1, 10_000), ROUNDS)
def test_each_potential_is_its_formula_and_grows_as_stated(cls, m, horizon, rounds):
    """After rounds in which any point was played with any outcome, whatever the law said."""
    player, counts, ones = Driven(cls(m), horizon), np.zeros(m + 1, int), np.zeros(m + 1, int)
    for u, y in rounds:
        i = round(u * m)
        player.play(i / m, y)
        counts[i] += 1
        ones[i] += y
    gamma = JointDistribution.from_counts(np.arange(m + 1) / m, counts, ones)
    stated, (of, growth) = cls(m).guarantees[0].potential, PROVED[cls]
    bias = (m * ones - np.arange(m + 1) * counts) / m
    assert stated.of(gamma, horizon) == pytest.approx(of(m, horizon, bias, counts, ones), rel=1e-9, abs=1e-9)
    law = player.points()
    for i in law:
        assert stated.growth(gamma, i / m, horizon) == pytest.approx(
            growth(m, horizon, i / m, int(counts[i]))
        )
    values = np.array(list(law)) / m
    assert step(stated, gamma, values, list(law.values()), horizon) <= 1 + ROUNDING
    # It bounds the total.
    if cls is ForecastHedging:
        c, total = best_c(m, horizon), np.abs(bias).sum()
        room = math.sqrt(2) * stated.of(gamma, horizon) + (m + 1) * c / math.sqrt(2)
        assert total * (1 - 1 / (math.sqrt(2) * c)) <= room + ROUNDING
    if cls is StepCEMinimiser:
        total = len(rounds) * step_ce(gamma)
        assert rate_of(m, horizon) * total <= stated.of(gamma, horizon) + math.log(2) + ROUNDING


def test_a_potential_tells_a_law_that_does_not_hedge():
    """With biases of 2 and −1, points in the ratio 1 : 2 keep to the proof. In the ratio 2 : 1 they do not."""
    stated = ForecastHedging(4).guarantees[0].potential
    gamma = JointDistribution.from_counts([0.25, 0.5], [8, 2], [4, 0])
    assert step(stated, gamma, [0.25, 0.5], [1 / 3, 2 / 3], 100) <= 1
    assert step(stated, gamma, [0.25, 0.5], [2 / 3, 1 / 3], 100) > 1


@pytest.mark.parametrize("m", [1, 5, 100])
def test_a_play_adds_no_more_than_it_may(m):
    """δ_n against the largest value of (G(E+1) + G(E−1))/2 + h/(2m) − Ψ over a fine grid of biases."""
    for n in {1, 2, 3, 10, m * m // 4 + 1, m * m}:
        e = np.linspace(0.0, min(n, 15.0 * math.sqrt(n)), 200_001)
        up, down = np.exp((e + 1) ** 2 / (3 * (n + 1))), np.exp((e - 1) ** 2 / (3 * (n + 1)))
        largest = ((up + down) / 2 + (up - down) / (4 * m) - np.exp(e**2 / (3 * n))).max()
        assert largest <= growth_of_play(n, m) * (1 + ROUNDING)
        # Where counts are large nothing is lost; where they are small, |E| ≤ n leaves out the worst bias.
        assert n < 10_000 or growth_of_play(n, m) <= 1.02 * largest
    assert growth_of_play(0, m) == pytest.approx(math.exp(1 / 3) - 1, rel=1e-12)
    # It is proved for 3n ≤ 8m².
    assert growth_of_play((8 * m * m - 1) // 3, m) < growth_of_play(8 * m * m // 3 + 1, m) == math.inf


# ---------------------------------------------------------------- beyond floats


def test_weights_of_huge_biases_do_not_overflow():
    """Of an exponent of 1000, of which the exponential is no float."""
    player = Driven(CDLMinimiser(2), 10**4)
    for _ in range(3000):
        player.play(0.5, 1)
        player.play(1.0, 0)
    law = player.points()
    assert law[1] > 1 - 1e-12
    assert sum(law.values()) == 1.0


def test_the_series_of_sinh_is_right_but_for_roundings():
    for x in np.linspace(0, 2 / 3, 50).tolist():
        assert short_sinh(x) == pytest.approx(math.sinh(x), rel=1e-15, abs=0)


@pytest.mark.parametrize("m", [1, 4, 9])
def test_step_ce_beyond_floats_follows_its_rule(m, seed):
    """A player tuned to one round plays many: the sums of its tree are no floats then, and logarithms take over.

    First in turmoil; then where the largest and the least sum of biases are as far from 0, so that small terms decide.
    """
    rng = np.random.default_rng((seed, m))
    turmoil = [(int(rng.integers(m + 1)), int(t < 300)) for t in range(600)]
    even = [(m - 1, 1)] * (120 * m) + [(m, 0)] * 240
    for rounds in (turmoil, even + [(int(rng.integers(m + 1)), int(rng.integers(2))) for _ in range(100)]):
        rule, player, vast, mixed = StepCE(m, 1), Driven(StepCEMinimiser(m), 1), 0, 0
        for i, y in rounds:
            law = player.law()
            assert rule.agrees(law)
            if not player.state[m + 7 : m + 9].sum() < 1e150:  # both sums of the root
                vast, mixed = vast + 1, mixed + (1e-6 < min(law.values()) < 0.5)
            player.play(i / m, y)
            rule.update(None, None, i / m, y, None)
        assert vast > 50
    assert mixed
