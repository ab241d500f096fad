"""The proof of the CDL minimiser's bound, step by step, with nothing left to chance."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.forecasters import CDLMinimiser
from onlinecal.forecasters.hedging import growth_of_play
from onlinecal.measures import cdl
from tests.by_hand import Driven
from tests.forecasters.biases import set_biases

ROUNDING = 1e-9


# ---------------------------------------------------------------- what a play may add


@pytest.mark.parametrize("m", [1, 2, 5, 20, 100, 1000])
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


def total_growth(horizon, m):
    """An upper bound of δ_0 + … + δ_{T−1}: exact up to 300, then in blocks of 2 %, since n·δ_n does not fall."""
    total = sum(growth_of_play(n, m) for n in range(min(horizon, 300)))
    first = 300
    while first < horizon:
        end = min(horizon, math.ceil(first * 1.02))
        most = end * growth_of_play(end, m)
        total += most * (math.log((end - 1) / first) + 1 / first)
        first = end
    return total


@pytest.mark.parametrize("horizon", [*range(1, 60), 10**3, 10**4, 10**5, 10**6, 10**9])
def test_all_plays_of_a_point_add_little(horizon):
    m = math.isqrt(horizon - 1) + 1  # √T, rounded up
    assert total_growth(horizon, m) <= math.log(horizon) / 3 + 4.5
    assert 1 + 2 * total_growth(horizon, m) <= 10 + math.log(horizon)


def test_blocks_are_an_upper_bound_and_a_close_one():
    horizon, m = 5000, 71
    exact = sum(growth_of_play(n, m) for n in range(horizon))
    assert exact <= total_growth(horizon, m) <= 1.05 * exact


# ---------------------------------------------------------------- one round from any state


@st.composite
def states(draw):
    """A grid, and how often each point was played with how many ones; no count above m²."""
    m = draw(st.integers(1, 12))
    counts = np.array(draw(st.lists(st.integers(0, m * m), min_size=m + 1, max_size=m + 1)))
    ones = np.array([draw(st.integers(0, int(n))) for n in counts])
    return m, counts, ones


def potentials(m, counts, ones):
    """B_e = Ψ(max(E_i, 0)) + Ψ(max(−E_{i+1}, 0)) − 1 of every edge."""
    bias = ones - counts * np.arange(m + 1) / m
    size = 3 * np.maximum(counts, 1)
    up, down = np.exp(np.maximum(bias, 0) ** 2 / size), np.exp(np.maximum(-bias, 0) ** 2 / size)
    return up[:-1] + down[1:] - 1


@given(states(), st.data())
def test_no_round_raises_a_product_of_potentials(state, data):
    m, counts, ones = state
    player = Driven(CDLMinimiser(m))
    set_biases(player, m * ones - np.arange(m + 1) * counts, counts)
    played = list(player.points().items())
    edge = int(player.ask().atoms[0, 0])
    theta = np.array(data.draw(st.lists(st.floats(0.0, 1.0), min_size=m, max_size=m)))

    allowed = [growth_of_play(int(n), m) for n in counts]
    still_to_come = np.array([a + 1.0 for a in allowed])
    before = potentials(m, counts, ones)
    product = np.prod((before + still_to_come[:-1] + still_to_come[1:]) ** theta)
    for y in (0, 1):
        growth, mean = 0.0, 0.0
        for i, w in played:
            one = np.eye(m + 1, dtype=int)[i]
            after = potentials(m, counts + one, ones + y * one)
            growth += w * (after[edge] - before[edge])
            others = np.delete(after - before, edge)
            assert (others <= allowed[i] + ROUNDING).all()
            left = still_to_come - allowed[i] * one
            mean += w * np.prod((after + left[:-1] + left[1:]) ** theta)
        assert growth <= sum(w * allowed[i] for i, w in played) + ROUNDING * before.max()
        assert mean <= product * (1 + ROUNDING)


# ---------------------------------------------------------------- from potentials to the CDL


@given(states())
def test_regret_is_bounded_by_potentials_and_each_edge_is_needed_once(state):
    m, counts, ones = state
    if not counts.sum():
        return
    horizon, grid = int(counts.sum()), np.arange(m + 1) / m
    bias = ones - counts * grid
    level = bias**2 / (3 * np.maximum(counts, 1))
    edge_of = np.where(
        bias > 0, np.arange(m + 1), np.arange(m + 1) - 1
    )  # the edge whose potential has the bias
    logs = np.log(potentials(m, counts, ones))
    largest = 0.0
    for j, t in enumerate(grid):
        towards = np.where(grid == t, np.abs(bias), np.where(grid < t, bias, -bias))
        regret = np.maximum(towards - counts * np.abs(grid - t), 0).sum()
        needed = towards > 0
        steps = np.abs(np.arange(m + 1) - j) + 5.0
        assert regret <= 5 * horizon / m + 0.75 * m * (level / steps)[needed].sum() + ROUNDING
        theta = np.zeros(m)
        np.add.at(theta, edge_of[needed], 2.5 / steps[needed])
        assert (theta <= 1).all()
        assert (level[needed] <= logs[edge_of[needed]] + ROUNDING).all()
        assert (1 / steps).sum() <= 0.2 + 2 * math.log1p(m / 10) + ROUNDING
        largest = max(largest, regret)
    gamma = JointDistribution.from_counts(grid, counts, ones)
    assert horizon * cdl(gamma) <= 2 * largest + ROUNDING


@pytest.mark.parametrize("m", [1, 2, 3, 10, 31, 100, 1000])
def test_weights_of_the_distances_sum_to_a_logarithm(m):
    for j in {0, 1, m // 3, m // 2, m}:
        if j <= m:
            steps = np.abs(np.arange(m + 1) - j) + 5.0
            assert (1 / steps).sum() <= 0.2 + 2 * math.log1p(m / 10)


# ---------------------------------------------------------------- the bound


def test_the_bound_at_root_t_is_that_of_the_proof_or_nothing():
    (closed,), (general,) = CDLMinimiser().guarantees, CDLMinimiser("T^(1/2) + 0").guarantees
    assert closed.formula != general.formula
    for horizon in {*range(1, 3000), *map(round, np.geomspace(3000, 1e9, 300))}:
        assert closed.bound(horizon) >= min(horizon, general.bound(horizon))
    # It says something from a few hundred rounds on, and grows like √T log T log log T.
    assert closed.bound(1000) < 1000
    assert closed.bound(1e9) / closed.bound(1e6) < 10**1.75


def test_a_grid_coarser_than_root_t_has_no_bound():
    (guarantee,) = CDLMinimiser(100).guarantees
    assert guarantee.bound(10_000) < 4000
    assert guarantee.bound(10_001) == 10_001
    assert "or T where m < √T" in guarantee.formula
