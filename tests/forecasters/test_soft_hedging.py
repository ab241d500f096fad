"""Soft hedging: every claim of its docstring, and controls without the parts that make it so."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import strategy_key
from onlinecal.engine.steps import SAY, compiled, kernel, law, shared
from onlinecal.forecasters import SoftHedging
from onlinecal.forecasters.hedging import say_mean_of_hedger
from onlinecal.measures import scdl_binned
from onlinecal.natures import Contrarian, Greedy
from tests.by_hand import Driven
from tests.engine.games import played

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


@given(st.lists(st.integers(0, 1), min_size=1, max_size=200), st.sampled_from([1, 2, 4, 16]))
def test_every_sequence(outcomes, m):
    player = Driven(SoftHedging(m), len(outcomes))
    said = []
    for y in outcomes:
        said.append(player.say())
        player.play(said[-1], y)
    assert ratio_of_bins(JointDistribution.from_samples(said, outcomes), m, len(outcomes)) <= 1 + ROUNDING


# ---------------------------------------------------------------- what it is good for, and what it is not


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


@pytest.mark.parametrize("nature", [Contrarian("draw"), Greedy()], ids=strategy_key)
def test_each_bin_keeps_its_bound_and_the_other_shares_break_it(nature, seed):
    """The bound of all bins together holds too; that of `scdl` against others is held in test_guarantees.py."""
    horizon, binned = 4000, 24 * (2 + math.log(8.5)) * math.log(3 + math.log(4000))
    for gamma in played(SoftHedging(16), nature, horizon, seed=seed).gammas():
        assert ratio_of_bins(gamma, 16, horizon) <= 1 + ROUNDING
        assert horizon * scdl_binned(gamma, m=16) <= binned
    broken = played(Reversed(16), nature, horizon, seed=seed, runs=range(1)).gammas()
    assert ratio_of_bins(broken[0], 16, horizon) > 1.5
