"""Blum–Mansour for the logarithmic loss: the parts of its argument, and what they come to."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln, entr, xlogy

from onlinecal.core.strategy import required, strategy_key
from onlinecal.forecasters import BlumMansour, BlumMansourLog
from onlinecal.forecasters.internal_regret import _steps_to, sine_grid
from onlinecal.measures import bregman
from onlinecal.natures import NATURES, Bernoulli
from tests.bounds_in_games import measured
from tests.by_hand import noted

OPPONENTS = [cls() for cls in NATURES.values() if not required(cls)]


def loss(x, y):
    return -np.log(np.where(y == 1, x, 1.0 - x))


@pytest.mark.parametrize("m", [1, 2, 9, 100, 10**6])
def test_the_grid(m):
    z = sine_grid(m)
    assert len(z) == m + 1
    assert z[0] > 0
    assert z[-1] < 1
    assert (np.diff(z) > 0).all()
    assert (np.abs(z + z[::-1] - 1.0) <= 1e-15).all()
    middle = (z[1:] + z[:-1]) / 2
    steps = np.diff(z) / np.sqrt(middle * (1 - middle)) * (m + 1)
    assert (np.abs(steps / math.pi - 1.0) <= 0.25).all()


@given(st.integers(1, 40), st.data())
def test_where_a_point_between_is(m, data):
    z = sine_grid(m)
    i, x = data.draw(st.integers(0, m)), data.draw(st.floats(0, 1))
    steps = i + _steps_to(z, i, x)
    low = min(math.floor(steps), m - 1)
    there = z[low] + (steps - low) * (z[low + 1] - z[low])
    assert there == pytest.approx(min(max(x, z[0]), z[-1]), abs=1e-12)


@given(
    st.floats(1e-9, 1 - 1e-9),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=200),
)
def test_a_learner_regrets_what_its_prior_costs(z, rounds):
    n = ones = paid = 0.0
    for w, y in rounds:
        x = (z + ones) / (1.0 + n)
        paid += w * float(loss(x, y))
        n, ones = n + w, ones + w * y
    assert paid <= (betaln(z, 1 - z) - betaln(z + ones, 1 - z + n - ones)) * (1 + 1e-9) + 1e-9


def swap_regret(forecaster, nature, horizon, seed):
    """Of one game: Σ n_i KL(S_i/n_i ‖ z_i), what the learners may regret in all, and what rounding them cost."""
    log, game = noted(forecaster, nature, horizon, runs=1, seed=seed)
    m = len(game.forecaster.grid) - 1
    z, n, ones, rounding = sine_grid(m), np.zeros(m + 1), np.zeros(m + 1), 0.0
    for round in log:
        y = round.outcome[0]
        x = (z + ones) / (1.0 + n)
        law = np.zeros(m + 1)
        for v, w in round.laws[0].items():
            law[np.abs(z - v).argmin()] += w
        # What the rows of the matrix say, in the mean over the law; which is the law.
        rounded = np.array([np.interp(x, z, unit) for unit in np.eye(m + 1)]).T
        assert law @ rounded == pytest.approx(law, abs=1e-9)
        rounding += float(law @ (rounded @ loss(z, y) - loss(np.clip(x, 1e-300, 1 - 1e-16), y)))
        n, ones = n + law, ones + law * y
    used = n > 0
    q = ones[used] / n[used]
    best = n[used] * (entr(q) + entr(1 - q))
    regret = float((-xlogy(ones[used], z[used]) - xlogy(n[used] - ones[used], 1 - z[used]) - best).sum())
    learners = betaln(z, 1 - z) - betaln(z + ones, 1 - z + n - ones)
    return regret, float((learners[used] - best).sum()), rounding, m


@pytest.mark.parametrize("nature", OPPONENTS, ids=strategy_key)
def test_swap_regret_is_that_of_the_learners_and_of_rounding(nature, seed):
    horizon = min(250, nature.length or 250)
    regret, learners, rounding, m = swap_regret(BlumMansourLog(), nature, horizon, seed)
    assert -1e-9 <= regret <= learners + rounding + 1e-6
    # Each learner: half a logarithm of its weight, that of the prior of an extreme point, and a constant.
    assert learners <= (m + 1) * (math.log(horizon + 1) + 2 * math.log(m + 1) + 2)
    # What rounding costs: a logarithm times T/m².
    assert rounding <= 3 * math.log(horizon + 2) * (horizon + m) / (m + 1) ** 2 + 1


def test_kl_calibration_is_finite_where_on_the_even_grid_it_is_not(seed):
    ours, even = (
        measured(forecaster, Bernoulli(0.001), bregman, 8000, seed, runs=4)
        for forecaster in (BlumMansourLog(), BlumMansour())
    )
    assert np.isfinite(ours).all()
    # Once an event happens that was forecast as impossible, as nearly all are. That none of 4 runs has one while 0 is
    # forecast, for nine tenths of the rounds, has a probability of 0.999^(4 · 7200) < 1e-12.
    assert np.isinf(even).any()
