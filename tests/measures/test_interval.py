"""Interval calibration: against slow programs and exact shifts, its bracket, its order of bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.measures.interval import (
    interval_ce,
    interval_ce_bracket,
    interval_ce_witness,
    least_max_width,
    prefix_sums,
)
from onlinecal.measures.smooth_ce import smooth_ce
from onlinecal.measures.surrogate import random_interval_ce
from tests.gammas_metric import ANY, many_levels


def unpruned(gamma):
    """The dynamic program over end points without pruning, in NumPy rows."""
    v = gamma.predictions
    prefix = np.concatenate(([0.0], np.cumsum(gamma.residuals)))
    mass = np.concatenate(([0.0], np.cumsum(gamma.mass)))
    cost = np.zeros(gamma.levels + 1)
    for b in range(1, gamma.levels + 1):
        a = np.arange(b)
        cost[b] = (cost[a] + np.abs(prefix[b] - prefix[a]) + (mass[b] - mass[a]) * (v[b - 1] - v[a])).min()
    return float(cost[-1])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bias", [0.0, 0.05, -0.4])
def test_pruning_loses_nothing_at_many_levels(seed, bias):
    gamma = many_levels(seed, 1500, bias)
    value = interval_ce(gamma)
    assert value == pytest.approx(unpruned(gamma), abs=1e-12)
    bracket = interval_ce_bracket(gamma, blocks=300)
    assert bracket.lower <= value <= bracket.upper <= 1.5 * value
    widest = interval_ce(gamma, width="max")
    assert value <= widest
    bracket = interval_ce_bracket(gamma, width="max", blocks=300)
    assert bracket.lower <= widest <= bracket.upper <= 1.05 * widest
    assert interval_ce_witness(gamma, width="max").value(gamma) == pytest.approx(widest, abs=1e-12)


def over_all_widths(gamma):
    """The least over every width that a group can have, each by a dynamic program over all groups."""
    v = gamma.predictions
    prefix = np.concatenate(([0.0], np.cumsum(gamma.residuals)))
    best = np.inf
    for widest in np.unique(np.abs(v[:, None] - v)):
        cost = np.zeros(gamma.levels + 1)
        for b in range(1, gamma.levels + 1):
            a = np.flatnonzero(v[b - 1] - v[:b] <= widest)
            cost[b] = (cost[a] + np.abs(prefix[b] - prefix[a])).min()
        best = min(best, cost[-1] + widest)
    return best


@st.composite
def hard(draw):
    """Γ of up to 40 levels: close and wide apart, with residuals that alternate, hardly differ from 0, or are huge."""
    # A set of more than 32 takes a second word.
    seed, k = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 20) | st.integers(36, 40))
    generator = np.random.default_rng(seed)
    places = [
        lambda: generator.random(k),
        lambda: np.arange(k) / k,
        lambda: 10.0 ** generator.uniform(-15, 0, k),
        lambda: np.clip(
            generator.choice(generator.random(4), k) + 1e-15 * generator.integers(-5, 6, k), 0, 1
        ),
    ]
    v = np.unique(draw(st.sampled_from(places))())
    k = len(v)
    w = 10.0 ** generator.uniform(-12, 0, k) if draw(st.booleans()) else np.ones(k)
    means = [
        lambda: np.arange(k) % 2.0,
        lambda: generator.random(k),
        lambda: np.clip(v + 1e-6 * generator.standard_normal(k), 0, 1),
        lambda: np.where(generator.random(k) < 0.5, v, 1.0),
    ]
    return JointDistribution.from_levels(v, w, draw(st.sampled_from(means))())


@given(gamma=hard())
def test_the_search_over_widths_equals_trying_them_all(gamma):
    value = over_all_widths(gamma)
    assert interval_ce(gamma, width="max") == pytest.approx(value, abs=1e-13)
    assert interval_ce_witness(gamma, width="max").value(gamma) == pytest.approx(value, abs=1e-13)
    bracket = interval_ce_bracket(gamma, width="max", blocks=1)
    assert bracket.lower - 1e-13 <= value <= bracket.upper + 1e-13
    mean = interval_ce(gamma)
    assert mean == pytest.approx(unpruned(gamma), abs=1e-13)
    assert mean**2 / 32.0 <= interval_ce_bracket(gamma, blocks=1).lower + 1e-15


def test_where_all_widths_are_equally_good_few_are_tried_for_each():
    """100 pairs of levels, each a little further apart, and each worth joining exactly as much as that width costs."""
    pairs = 100
    left, step = np.arange(pairs) * 0.98 / pairs + 0.01, 0.4 / pairs**2
    v = np.ravel(np.column_stack((left, left + step * np.arange(1, pairs + 1))))
    q = v + np.tile([step * pairs, -step * pairs], pairs)
    prefix = prefix_sums(JointDistribution.from_levels(v, np.ones(len(v)), q).residuals)
    lower, upper, _ = least_max_width(prefix, v, v, most=5 * pairs)
    assert lower == upper == pytest.approx(step * pairs, abs=1e-13)


@given(gamma=ANY)
def test_order_of_the_measures(gamma):
    assert smooth_ce(gamma) <= interval_ce(gamma) + 1e-12
    assert interval_ce(gamma) <= interval_ce(gamma, width="max") + 1e-9
    assert random_interval_ce(gamma, epsilon=0.5) <= random_interval_ce(gamma, epsilon=0.25) + 1e-12
