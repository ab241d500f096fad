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
from tests.strategies import ANY, close_gammas, many_levels


def program(gamma, widest=np.inf):
    """The least cost of groups, by mean width, or of groups no wider than `widest` and without their width."""
    v, prefix, mass = gamma.predictions, prefix_sums(gamma.residuals), prefix_sums(gamma.mass)
    cost = np.zeros(gamma.levels + 1)
    for b in range(1, gamma.levels + 1):
        a = np.flatnonzero(v[b - 1] - v[:b] <= widest)
        wide = (mass[b] - mass[a]) * (v[b - 1] - v[a]) if widest == np.inf else 0.0
        cost[b] = (cost[a] + np.abs(prefix[b] - prefix[a]) + wide).min()
    return float(cost[-1])


@pytest.mark.parametrize("bias", [0.0, 0.05, -0.4])
def test_pruning_loses_nothing_at_many_levels(bias, seed):
    gamma = many_levels(seed, 1500, bias)
    value = interval_ce(gamma)
    assert value == pytest.approx(program(gamma), abs=1e-12)
    bracket = interval_ce_bracket(gamma, blocks=300)
    assert bracket.lower <= value <= bracket.upper <= 1.5 * value
    widest = interval_ce(gamma, width="max")
    assert value <= widest
    bracket = interval_ce_bracket(gamma, width="max", blocks=300)
    assert bracket.lower <= widest <= bracket.upper <= 1.05 * widest
    assert interval_ce_witness(gamma, width="max").bound(gamma) == pytest.approx(widest, abs=1e-12)


@given(gamma=ANY | close_gammas(20) | st.builds(many_levels, st.integers(0, 999), st.integers(36, 40)))
def test_the_search_over_widths_equals_trying_them_all(gamma):
    v = gamma.predictions
    value = min(program(gamma, widest) + widest for widest in np.unique(np.abs(v[:, None] - v)))
    assert interval_ce(gamma, width="max") == pytest.approx(value, abs=1e-13)
    assert interval_ce_witness(gamma, width="max").bound(gamma) == pytest.approx(value, abs=1e-13)
    bracket = interval_ce_bracket(gamma, width="max", blocks=1)
    assert bracket.lower - 1e-13 <= value <= bracket.upper + 1e-13
    mean = interval_ce(gamma)
    assert mean == pytest.approx(program(gamma), abs=1e-13)
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
