"""Exponential weights at every threshold by one draw: the law, each step of the proof, and the stated bounds."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import expit

from onlinecal.checks.guarantees import step
from onlinecal.core.joint import JointDistribution
from onlinecal.core.streams import Stream
from onlinecal.decisions.tasks import external_regret
from onlinecal.engine import steps
from onlinecal.engine.seats import caller
from onlinecal.forecasters import ThresholdHedging
from onlinecal.natures import Contrarian
from onlinecal.schedules import Constant, Schedule
from tests.by_hand import Driven
from tests.engine.games import played, same

ROUNDING = 1e-9
UNIT = 2.0**-53


def law_of(m, rounds, ones):
    """The law after these numbers of rounds and of ones."""
    player = Driven(ThresholdHedging(m), 1000)
    player.state[:] = rounds, ones
    return player.points()


@st.composite
def states(draw, most=10**6):
    """A grid, how many rounds there were, how many outcomes were 1."""
    rounds = draw(st.one_of(st.integers(0, 50), st.integers(0, 10**9)))
    share = draw(st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)))
    return draw(st.one_of(st.integers(1, 40), st.integers(1, most))), rounds, round(share * rounds)


# ---------------------------------------------------------------- the law


@given(states(most=200))
@example((1, 0, 0))
@example((7, 10**9, 0))
@example((7, 10**9, 10**9))
def test_the_law_is_that_of_the_formula(state):
    """To 2⁻⁵², against 60 digits."""
    m, rounds, ones = state
    t = rounds + 1
    with localcontext() as digits:
        digits.prec = 60
        exact = [Decimal(1)]
        for i in range(1, m + 1):
            z = 4 / Decimal(t).sqrt() * (ones + Decimal("0.5") - (i - Decimal("0.5")) * t / m)
            exact.append(1 / (1 + (-z).exp()) if z > -200 else Decimal(0))
        exact.append(Decimal(0))
        law = law_of(m, rounds, ones)
        for i in range(m + 1):
            # The logit is rounded, too: it is off by some 2⁻⁵² of its size, which σ' makes less than 2⁻⁵² of.
            assert abs(Decimal(law.get(i, 0.0)) - (exact[i] - exact[i + 1])) <= 3 * Decimal(UNIT)


@given(states(most=20_000))
@example((10**5, 0, 0))
@example((10**5, 10**6, 10**6))
def test_weights_are_multiples_of_one_unit_and_sum_to_1(state):
    """And points far from the mean are left out. Exchanged outcomes mirror the law."""
    m, rounds, ones = state
    law = law_of(m, rounds, ones)
    assert all(w > 0 and (w / UNIT).is_integer() for w in law.values())
    assert sum(map(Fraction, law.values())) == 1
    assert sum(law.values()) == sum(reversed(law.values())) == 1.0
    assert list(law) == sorted(law)
    t = rounds + 1
    assert all(abs(i / m - (ones + 0.5) / t) <= 10 / math.sqrt(t) + 0.5 / m for i in law)
    # At v and 1 − v the logits differ in sign alone, and 1/2 + 1/2 is 1.
    assert {m - i: w for i, w in law_of(m, rounds, rounds - ones).items()} == law


U = st.one_of(
    st.integers(0, 2**53 - 1).map(lambda k: k * UNIT),
    st.sampled_from([0.0, UNIT, 2 * UNIT, 0.5 - UNIT, 0.5, 0.5 + UNIT, 1.0 - 2 * UNIT, 1.0 - UNIT]),
)


@given(states(most=2000), st.lists(U, min_size=1, max_size=20), st.data())
def test_the_atom_is_drawn_alone_as_from_the_law(state, uniforms, data):
    m, rounds, ones = state
    player, law = Driven(ThresholdHedging(m), 1000), law_of(*state)
    player.state[:] = rounds, ones
    player.ask()
    draw = caller(player.player.draw)
    sums = np.cumsum(list(law.values()))
    # At the edges of the law's steps too, where rounding would show.
    edges = data.draw(st.lists(st.sampled_from(range(len(sums))), max_size=10))
    uniforms = [*uniforms, *(sums[j] - UNIT for j in edges), *(sums[j] for j in edges if sums[j] < 1.0)]
    for u in uniforms:
        drawn = list(law)[int(np.searchsorted(sums, u, side="right"))]
        assert draw(player.player.rows[0], u, rounds + 1) == drawn / m


@given(st.integers(1, 3000), st.data())
def test_the_side_of_the_mean_is_that_of_its_formula_on_fine_grids(m, data):
    """The sign of the mean of the law less ½ is that of the bias. On coarse grids all weight may be on ½."""
    rounds = data.draw(st.integers(0, m * m // 4 - 1 if m > 1 else 0))
    ones = data.draw(st.one_of(st.integers(0, rounds), st.integers(-1, 1).map(lambda d: rounds // 2 + d)))
    ones = min(max(ones, 0), rounds)
    mean = sum(Fraction(i, m) * Fraction(w) for i, w in law_of(m, rounds, ones).items())
    assert np.sign(float(mean - Fraction(1, 2))) == np.sign(2 * ones - rounds)
    for steps_, told in ((2, False), (632, False), (633, True), (1265, True)):
        player = ThresholdHedging(steps_).start(10**5, Stream(0, (), range(1)))
        assert (player.side is not None) is told


class ByLaw(Contrarian):
    """The contrarian with the whole law before it."""

    def start(self, horizon, stream):
        return steps.Nature(super().start(horizon, stream).move, sight=self.sight)


@pytest.mark.parametrize(("m", "delay"), [(3, 0), (40, 3), ("4 * T^(1/2)", 0)])
def test_who_goes_by_the_side_plays_as_who_sees_the_law(m, delay):
    options = {"horizon": 2000, "runs": range(3), "schedule": Schedule(delays=Constant(delay))}
    assert same(*(played(ThresholdHedging(m), of, **options).gammas() for of in (Contrarian(), ByLaw())))


# ---------------------------------------------------------------- squared loss


@given(states(most=200).filter(lambda state: 0 < state[1] < 10**5), st.data())
def test_the_proof_for_the_squared_loss_step_by_step(state, data):
    """From any state the law keeps to what a round may add, for either outcome. And the potential bounds the regret."""
    m, rounds, ones = state
    potential = ThresholdHedging(m).guarantees[1].potential
    # How the outcomes are spread over the forecasts does not matter to what a round adds.
    at = data.draw(st.integers(0, m)) / m
    gamma = JointDistribution.from_counts([at], [rounds], [ones])
    law = law_of(m, rounds, ones)
    values, weights = np.array(list(law)) / m, list(law.values())
    assert step(potential, gamma, values, weights, 1) <= 1 + 1e-5
    total = rounds * external_regret(gamma, "quadratic")
    assert total <= potential.of(gamma, 1) + rounds / (4 * m * m) + ROUNDING * (rounds + 1)


def worst_squared(m, horizon, times=1.0):
    """The largest expected regret in squared loss over all outcomes, exactly, of noise that is `times` as large."""
    v, ones = (np.arange(m) + 0.5) / m, np.arange(horizon + 1)
    after = ones**2 / horizon - ones
    for t in range(horizon, 0, -1):
        acting = expit(4 / (times * math.sqrt(t)) * (np.arange(t)[:, None] + 0.5 - v * t))
        zero, one = 2 / m * acting @ v, 1 - 2 / m * acting @ (1 - v)
        after = np.maximum(zero + after[:t], one + after[1 : t + 1])
    return float(after[0])


def squared_bound(m, horizon):
    return ThresholdHedging(m).guarantees[1].bound(horizon)


@pytest.mark.parametrize("m", [1, 2, 7, "T^(1/2)", "4 * T^(1/2)", "20 * T^(1/2)"])
def test_the_worst_nature_in_squared_loss_stays_below_the_bound(m):
    for horizon in (1, 2, 3, 10, 60, 300):
        steps_ = ThresholdHedging(m).steps_at(horizon)
        assert worst_squared(steps_, horizon) <= squared_bound(m, horizon)


def test_a_coarse_grid_and_other_noise_exceed_the_bound():
    """The control."""
    bound = squared_bound("4 * T^(1/2)", 400)
    assert min(worst_squared(2, 400), worst_squared(80, 400, times=30)) > 5 * bound
