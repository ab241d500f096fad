"""Soft hedging: every claim of its docstring, and controls without the parts that make it so."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import required, strategy_key
from onlinecal.decisions import tasks
from onlinecal.decisions.responses import Best, DecisionMaker, Rounded
from onlinecal.engine.steps import SAY, compiled, kernel, law, shared
from onlinecal.forecasters import SoftHedging
from onlinecal.forecasters.hedging import say_mean_of_hedger
from onlinecal.measures import cdl, ece, scdl, scdl_binned
from onlinecal.natures import NATURES, Contrarian, Drift, Greedy
from tests.by_hand import Driven
from tests.engine.games import played

OPPONENTS = [cls() for cls in NATURES.values() if not required(cls)]
#: what rounding may add to sums of 10^4 numbers
ROUNDING = 1e-9


def bins(gamma, m):
    """W_j and G_j of Γ's soft bins, by their definition."""
    n = gamma.weight
    weights = np.maximum(0.0, 1.0 - m * np.abs(gamma.predictions[:, None] - np.arange(m + 1) / m))
    mass, ones = n * gamma.mass, n * gamma.mass * gamma.means
    return mass @ weights, ones @ weights - (mass @ weights) * np.arange(m + 1) / m


def ratio_of_bins(gamma, m, horizon):
    """The largest |G_j| − W_j/(2m) over what the proof allows."""
    weight, bias = bins(gamma, m)
    used = weight > 0
    allowed = np.sqrt(3.0 * weight * math.log(3.0 + math.log(horizon)))
    return float(((np.abs(bias) - weight / (2 * m))[used] / allowed[used]).max())


@pytest.mark.parametrize("nature", OPPONENTS, ids=strategy_key)
@pytest.mark.parametrize(("m", "horizon"), [("T^(1/2)/4", 1500), ("T^(1/2)", 400), (1, 300)])
def test_soft_hedging_keeps_its_bound_and_each_bin_its_own(nature, m, horizon, seed):
    horizon, forecaster = min(horizon, nature.length or horizon), SoftHedging(m)
    steps = forecaster.bins_at(horizon)
    bound = forecaster.guarantees[0].bound(horizon)
    binned = 1.5 * steps * (2 + math.log((steps + 1) / 2)) * math.log(3 + math.log(horizon))
    assert bound == pytest.approx(min(horizon, max(horizon / steps, binned)), rel=1e-12)
    for gamma in played(forecaster, nature, horizon, seed=seed).gammas():
        assert ratio_of_bins(gamma, steps, horizon) <= 1 + ROUNDING
        assert horizon * scdl_binned(gamma, m=steps) <= binned
        assert horizon * scdl(gamma) <= bound


@given(st.lists(st.integers(0, 1), min_size=1, max_size=200), st.sampled_from([1, 2, 4, 16]))
def test_every_sequence(outcomes, m):
    player = Driven(SoftHedging(m), len(outcomes))
    said = []
    for y in outcomes:
        said.append(player.say())
        player.play(said[-1], y)
    assert ratio_of_bins(JointDistribution.from_samples(said, outcomes), m, len(outcomes)) <= 1 + ROUNDING


# ---------------------------------------------------------------- the steps of the proof


def psi(r, n):
    return np.exp(r**2 / (3.0 * np.maximum(n, 1e-300)))


def delta(n):
    return np.where(n < 1.0, math.expm1(1 / 3), 1.0 / (3.0 * np.maximum(n, 1.0)))


@given(st.floats(0, 200), st.floats(0, 1), st.floats(-1, 1), st.floats(0, 1), st.floats(0, 8))
def test_what_a_bin_gets(n, w, u, share, power):
    # Up to L = 8, beyond ln P of any game.
    r = share * min(n, math.sqrt(3.0 * n * power))
    c = 3.0 * (n + 1.0)
    h = math.exp((r * r + 1) / c) * math.sinh(2 * r / c)
    first = (math.exp((r + 1) ** 2 / c) + math.exp((r - 1) ** 2 / c)) / 2
    assert first <= (psi(r, n) + delta(n)) * (1 + 1e-12)
    assert psi(r + w * u, n + w) <= (psi(r, n) + w * (delta(n) + h * u)) * (1 + 1e-12)
    assert psi(w, n + w) <= (1 + w * delta(n)) * (1 + 1e-12)


@given(st.lists(st.floats(1e-3, 1), min_size=1, max_size=300))
def test_what_delta_adds_in_all(weights):
    """The sum over the rounds of a bin is at most the integral. Both bins make a start of 3 + ln T at most."""
    before = np.concatenate([[0.0], np.cumsum(weights)[:-1]])
    horizon = len(weights)
    integral = 2 * math.expm1(1 / 3) + math.log(horizon) / 3
    assert float((np.array(weights) * delta(before)).sum()) <= integral
    assert 1 + 2 * integral <= 3 + math.log(horizon)


def test_the_sum_over_bins():
    for m in (1, 2, 3, 8, 100, 4096):
        odd = np.concatenate([[0.0], np.cumsum(1.0 / (2.0 * np.arange(1, m + 1) - 1.0))])
        assert (odd[1:] + odd[m:0:-1]).max() <= 2 + math.log((m + 1) / 2)
    n, a = np.linspace(0, 50, 5001), 3.7
    for k in (1, 2, 9):
        assert (np.sqrt(3 * n * a) - (k - 0.5) * n / 4).max() <= 1.5 * 4 * a / (2 * k - 1) + 1e-12


# ---------------------------------------------------------------- what it is good for, and what it is not


@pytest.mark.parametrize("nature", [Contrarian(), Contrarian("draw"), Greedy()], ids=strategy_key)
def test_without_randomness_scdl_is_small_where_cdl_and_ece_cannot_be(nature, seed):
    horizon = 4000
    (gamma,) = played(SoftHedging(), nature, horizon, seed=seed, runs=range(1)).gammas()
    assert horizon * scdl(gamma) <= SoftHedging().guarantees[0].bound(horizon) < horizon / 15
    assert cdl(gamma) == pytest.approx(1.0)
    assert ece(gamma) >= 0.5
    # Acting on the forecasts is wrong in every round; on forecasts rounded at random to scdl's grid it is not.
    task = tasks.v_shaped(0.5)
    assert tasks.swap_regret(gamma, DecisionMaker(task, Best())) == pytest.approx(1.0)
    assert tasks.swap_regret(gamma, DecisionMaker(task, Rounded())) <= 4 * scdl(gamma)


say_mean = kernel(say_mean_of_hedger)


def say_other_bin(run, number):
    """Goes to the other bin: the shares of both are exchanged."""
    size, values, m = say_mean(run, number), law(run)[0], int(shared(run)[0])
    low = min(int(values[0] * m), m - 1)
    values[0] = (2 * low + 1) / m - values[0]
    return size


class Reversed(SoftHedging):
    def start(self, horizon, stream):
        player = super().start(horizon, stream)
        player.say = compiled(SAY, say_other_bin)
        return player


def test_the_other_shares_break_the_bound_of_a_bin(seed):
    horizon = 4000
    broken = [
        ratio_of_bins(gamma, 16, horizon)
        for nature in (Contrarian("draw"), Greedy(), Drift())
        for gamma in played(Reversed(16), nature, horizon, seed=seed, runs=range(1)).gammas()
    ]
    assert max(broken) > 1.5
