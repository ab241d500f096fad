"""Proofs of bounds in expectation, round by round from any state and for either outcome: nothing is left to chance."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.checks.guarantees import step
from onlinecal.core.joint import JointDistribution
from onlinecal.forecasters import CDLMinimiser, ForecastHedging, FosterVohra, StepCEMinimiser
from onlinecal.forecasters.hedging import growth_of_play, pair_of, short_sinh
from onlinecal.forecasters.thresholds import best_rate, empty_tree, mend, set_leaf
from onlinecal.measures import cdl, step_ce
from onlinecal.natures import Bernoulli
from tests.by_hand import Driven
from tests.engine.games import played
from tests.oracles.forecasters import StepCE

ROUNDING = 1e-9


def set_biases(player, biases, rounds=()):
    """Gives a player these biases m·E_i, with the pair that they have, and numbers of rounds, with the weights."""
    m = len(biases) - 1
    player.state[: m + 2] = [*biases, pair_of(np.array(biases, float), m)]
    for i, n in enumerate(rounds):
        bias, s, at = abs(biases[i] / m), 1.0 / (3.0 * (n + 1.0)), m + 2 + 3 * i
        player.state[at : at + 3] = (bias * bias + 1.0) * s, short_sinh(2.0 * bias * s), n


@st.composite
def states(draw, most=40, squares=False):
    """A grid, how often each point was played, and with how many ones; if `squares`, at most m² times."""
    m = draw(st.integers(1, 12))
    most = m * m if squares else most
    counts = np.array(draw(st.lists(st.integers(0, most), min_size=m + 1, max_size=m + 1)))
    return m, counts, np.array([draw(st.integers(0, int(n))) for n in counts])


def biases_of(state):
    m, counts, ones = state
    return m * ones - np.arange(m + 1) * counts


def after(state, law):
    """For each outcome the states that a law leads to, with their weights and what was played."""
    m, counts, ones = state
    for y in (0, 1):
        yield [
            (i, w, (m, counts + one, ones + y * one))
            for i, w in law.items()
            for one in [np.eye(m + 1, dtype=int)[i]]
        ]


def gamma_of(state):
    m, counts, ones = state
    return JointDistribution.from_counts(np.arange(m + 1) / m, counts, ones)


# ---------------------------------------------------------------- squares of regrets, and of biases


@given(states(), st.data())
def test_the_proof_of_foster_vohra_step_by_step(state, data):
    """Bound and slack rest on this: Φ = Σ max(R, 0)² grows by at most 8/m² in expectation, its root moves by at most
    2√2/m.
    """
    m, counts, _ = state
    player = Driven(FosterVohra(m))
    player.state[:] = [data.draw(st.integers(0, m)), *biases_of(state), *counts]

    def potential(state):
        _, counts, ones = state
        loss = np.array([ones * (j / m - 1) ** 2 + (counts - ones) * (j / m) ** 2 for j in range(m + 1)]).T
        regret = np.diag(loss)[:, None] - loss
        return sum(max(0.0, regret[i, j]) ** 2 for i in range(m + 1) for j in (i - 1, i + 1) if 0 <= j <= m)

    before, stated = potential(state), FosterVohra(m).guarantees[0].potential
    for moves in after(state, player.points()):
        for _, _, there in moves:
            assert abs(math.sqrt(potential(there)) - math.sqrt(before)) <= 2 * math.sqrt(2) / m + ROUNDING
            assert stated.of(gamma_of(there), 100) == pytest.approx(potential(there), rel=1e-9, abs=1e-9)
        assert sum(w * potential(there) for _, w, there in moves) - before <= 8 / m**2 + ROUNDING


@given(states(), st.data())
def test_regret_against_a_far_point_is_at_most_its_steps_times_that_against_the_next(state, data):
    m, counts, ones = state
    i, j = data.draw(st.integers(0, m)), data.draw(st.integers(0, m))
    n, bias = counts[i], (m * ones[i] - i * counts[i]) / m

    def regret(to):
        return (to - i) / m * (2 * bias - n * (to - i) / m)

    if i != j:
        assert regret(j) <= abs(j - i) * regret(i + (1 if j > i else -1)) + ROUNDING
    most = max(regret(k) for k in (i - 1, i + 1) if 0 <= k <= m)
    assert abs(bias) <= n / (2 * m) + m / 2 * max(most, 0.0) + ROUNDING


@given(states(), st.integers(1, 10_000))
def test_the_proof_of_hedging_step_by_step(state, horizon):
    """Ψ grows by at most √2/(4m) + 1/(8c) in expectation, moves by at most 1 + 1/(2c), on which the slack rests, and
    bounds Σ|E_i|.
    """
    m = state[0]
    player = Driven(ForecastHedging(m), horizon)
    set_biases(player, biases_of(state))
    c = (1 + math.sqrt(1 + horizon * (m + 2) / (2 * m * (m + 1)))) / math.sqrt(2)

    def potential(state):
        bias = biases_of(state) / m
        squares = np.maximum(bias[:-1], 0) ** 2 + np.maximum(-bias[1:], 0) ** 2
        return np.sum(np.sqrt(squares + c * c) - c) - (1 - 2 * np.arange(m + 1) / m) @ bias / (2 * c)

    before, stated = potential(state), ForecastHedging(m).guarantees[0].potential
    total = np.abs(biases_of(state) / m).sum()
    assert (
        total * (1 - 1 / (math.sqrt(2) * c)) <= math.sqrt(2) * before + (m + 1) * c / math.sqrt(2) + ROUNDING
    )
    for moves in after(state, player.points()):
        allowed = sum(w * stated.growth(gamma_of(there), i / m, horizon) for i, w, there in moves)
        for _, _, there in moves:
            assert abs(potential(there) - before) <= 1 + 1 / (2 * c) + ROUNDING
            assert stated.of(gamma_of(there), horizon) == pytest.approx(potential(there), rel=1e-9, abs=1e-9)
        assert sum(w * potential(there) for _, w, there in moves) - before <= allowed + ROUNDING
        assert allowed <= math.sqrt(2) / (4 * m) + 1 / (8 * c) + ROUNDING


def test_the_potential_of_hedging_tells_a_law_that_does_not_hedge():
    """Biases of 2 and −1: the points in the ratio 1 : 2 keep to the proof, in the ratio 2 : 1 they do not."""
    stated = ForecastHedging(4).guarantees[0].potential
    gamma = JointDistribution.from_counts([0.25, 0.5], [8, 2], [4, 0])
    assert step(stated, gamma, [0.25, 0.5], [1 / 3, 2 / 3], 100) <= 1
    assert step(stated, gamma, [0.25, 0.5], [2 / 3, 1 / 3], 100) > 1


def test_the_bound_of_hedging_in_the_words_of_its_docstring():
    (guarantee,) = ForecastHedging().guarantees
    by_power = [guarantee.bound(t) / t ** (2 / 3) for t in (1000, 10**6, 10**15)]
    assert by_power == pytest.approx([1.43, 1.2279, (1 + math.sqrt(2)) / 2], rel=2e-4)
    assert max(guarantee.bound(t) / t ** (2 / 3) for t in range(1000, 20_000, 7)) == by_power[0]
    for m, horizon in ((1, 7), (4, 500), (30, 10**5)):
        said = horizon / (2 * m) + m + 1 + math.sqrt((m + 1) * (m + 1 + horizon / 2 + horizon / m))
        assert ForecastHedging(m).guarantees[0].bound(horizon) == pytest.approx(said, rel=1e-12)


@given(st.integers(1, 40).flatmap(lambda m: st.lists(st.integers(-5, 5), min_size=m + 1, max_size=m + 1)))
def test_a_pair_of_opposite_signs_is_always_found(bias):
    bias[0], bias[-1] = abs(bias[0]), -abs(bias[-1])
    i = pair_of(np.array(bias, float), len(bias) - 1)
    assert bias[i] >= 0 >= bias[i + 1]


@given(st.floats(0, 2 / 3))
def test_the_series_is_the_hyperbolic_sine(x):
    assert short_sinh(x) == pytest.approx(math.sinh(x), rel=4e-16, abs=5e-324)


def test_weights_of_huge_biases_do_not_overflow():
    player, rounds = Driven(CDLMinimiser(2), 10**9), np.array([10, 10**8, 10**8])
    set_biases(player, np.array([0, 2 * 10**8, -2 * 10**8]), rounds)
    assert sum(player.law().values()) == 1.0
    set_biases(player, np.array([0, 2 * 10**8, -1]), rounds)
    assert player.points() == {2: 1.0}


# ---------------------------------------------------------------- the CDL minimiser


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


def potentials(state):
    """B_e = Ψ(max(E_i, 0)) + Ψ(max(−E_{i+1}, 0)) − 1 of every edge."""
    bias, size = biases_of(state) / state[0], 3 * np.maximum(state[1], 1)
    up, down = np.exp(np.maximum(bias, 0) ** 2 / size), np.exp(np.maximum(-bias, 0) ** 2 / size)
    return up[:-1] + down[1:] - 1


@given(states(squares=True), st.data())
def test_no_round_raises_a_product_of_potentials(state, data):
    m, counts, _ = state
    player = Driven(CDLMinimiser(m))
    set_biases(player, biases_of(state), counts)
    edge = round(m * player.say())
    theta = np.array(data.draw(st.lists(st.floats(0.0, 1.0), min_size=m, max_size=m)))
    allowed = np.array([growth_of_play(int(n), m) for n in counts])
    before = potentials(state)
    product = np.prod((before + allowed[:-1] + allowed[1:] + 2.0) ** theta)
    for moves in after(state, player.points()):
        growth, mean = 0.0, 0.0
        for i, w, there in moves:
            now, left = potentials(there), allowed + 1.0 - allowed[i] * np.eye(m + 1)[i]
            growth += w * (now[edge] - before[edge])
            assert (np.delete(now - before, edge) <= allowed[i] + ROUNDING).all()
            mean += w * np.prod((now + left[:-1] + left[1:]) ** theta)
        assert growth <= sum(w * allowed[i] for i, w, _ in moves) + ROUNDING * before.max()
        assert mean <= product * (1 + ROUNDING)


@given(states(squares=True))
def test_regret_is_bounded_by_potentials_and_each_edge_is_needed_once(state):
    m, counts, _ = state
    if not counts.sum():
        return
    horizon, grid, bias = int(counts.sum()), np.arange(m + 1) / m, biases_of(state) / m
    level = bias**2 / (3 * np.maximum(counts, 1))
    edge_of = np.where(
        bias > 0, np.arange(m + 1), np.arange(m + 1) - 1
    )  # the edge whose potential has the bias
    logs, largest = np.log(potentials(state)), 0.0
    for j, t in enumerate(grid):
        towards = np.where(grid == t, np.abs(bias), np.where(grid < t, bias, -bias))
        regret = np.maximum(towards - counts * np.abs(grid - t), 0).sum()
        needed, steps = towards > 0, np.abs(np.arange(m + 1) - j) + 5.0
        assert regret <= 5 * horizon / m + 0.75 * m * (level / steps)[needed].sum() + ROUNDING
        theta = np.zeros(m)
        np.add.at(theta, edge_of[needed], 2.5 / steps[needed])
        assert (theta <= 1).all()
        assert (level[needed] <= logs[edge_of[needed]] + ROUNDING).all()
        largest = max(largest, regret)
    assert horizon * cdl(gamma_of(state)) <= 2 * largest + ROUNDING


@pytest.mark.parametrize("m", [1, 2, 3, 10, 31, 100, 1000])
def test_weights_of_the_distances_sum_to_a_logarithm(m):
    for j in {0, 1, m // 3, m // 2, m}:
        if j <= m:
            steps = np.abs(np.arange(m + 1) - j) + 5.0
            assert (1 / steps).sum() <= 0.2 + 2 * math.log1p(m / 10)


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


# ---------------------------------------------------------------- signed thresholds


def with_biases(m, horizon, biases):
    """A player with these m·E_i in its only run."""
    player = Driven(StepCEMinimiser(m), horizon)
    player.state[:] = [*biases, *tree_of(biases, horizon).ravel()]
    return player


def tree_of(biases, horizon):
    """The tree of these biases, made at once."""
    m, tree = len(biases) - 1, empty_tree(len(biases))
    leaves = len(tree) >> 1
    for i, bias in enumerate(biases):
        set_leaf(tree[leaves + i], best_rate(horizon, m) / m * bias)
    for node in range(leaves - 1, 0, -1):
        mend(tree[node], tree[2 * node], tree[2 * node + 1])
    return tree


@given(st.integers(1, 40), st.integers(1, 80), st.integers(0, 99))
def test_after_any_game_the_tree_is_that_of_its_biases(m, horizon, seed):
    game = played(StepCEMinimiser(m), Bernoulli(0.4), horizon, runs=range(2), seed=seed)
    for gamma, state in zip(game.gammas(), game.forecaster.state, strict=True):
        points = np.rint(m * gamma.predictions).astype(int)
        biases = np.zeros(m + 1)
        biases[points] = m * gamma.positives - points * gamma.counts
        # To the last bit: the laws depend on the biases alone, whatever the order of the rounds.
        assert (state == [*biases, *tree_of(biases, horizon).ravel()]).all()


@given(
    st.integers(1, 30).flatmap(
        lambda m: st.lists(st.integers(-(10**11), 10**11), min_size=m + 1, max_size=m + 1)
    )
)
def test_huge_biases_give_laws(biases):
    m = len(biases) - 1
    law = with_biases(m, 10**8, biases).points()
    assert sum(law.values()) == 1.0
    assert all(0 <= i <= m and 0 < w <= 1 for i, w in law.items())


@given(st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.floats(-3, 3)), min_size=2), st.integers(250, 500))
def test_the_law_is_that_of_the_rule_beyond_floats(exponents, size):
    """From e^ηP that are floats to those that are far from it: the sums are then taken by logarithms."""
    m, horizon = len(exponents) - 1, 1000
    moved = np.array([sign * size + more for sign, more in exponents])
    rule = StepCE(m, horizon)
    rule.bias = np.diff(moved * m / rule.rate, prepend=0.0).astype(np.int64)
    law = with_biases(m, horizon, rule.bias).points()
    largest = max(rule.gain(k)[1] for i in law for k in (i - 1, i, i + 1) if 0 <= k <= m)
    gains = [w * value * math.exp(size - largest) for i, w in law.items() for value, size in [rule.gain(i)]]
    # A weight may be too small for a float. At an end there may be nothing to gain from.
    nothing = (law == {0: 1.0} and gains[0] < 0.0) or (law == {m: 1.0} and gains[0] > 0.0)
    assert nothing or (abs(sum(gains)) <= 1e-9 and gains[0] >= -1e-9)


@pytest.mark.parametrize("m", [1, 4, 9])
def test_step_ce_beyond_floats_follows_its_rule(m, seed):
    """A player tuned to one round plays many: the sums of its tree are no floats then, and logarithms take over."""
    rng = np.random.default_rng((seed, m))
    rule, player, vast = StepCE(m, 1), Driven(StepCEMinimiser(m), 1), 0
    for t in range(600):
        assert rule.agrees(player.law())
        vast += not player.state[m + 7 : m + 9].sum() < 1e150  # both sums of the root
        i, y = int(rng.integers(m + 1)), int(t < 300)
        player.play(i / m, y)
        rule.update(None, None, i / m, y, None)
    assert vast > 50


def test_exact_ties_of_large_weights():
    """Thresholds of opposite signs, with weights of equal size and far beyond any float."""
    m, horizon = 4, 100
    law = with_biases(m, horizon, [0, 10**7, -2 * 10**7, 10**7, 0]).points()
    assert sum(law.values()) == 1.0
    assert set(law) <= {1, 2}


@given(states(), st.integers(1, 10_000))
def test_the_proof_of_thresholds_step_by_step(state, horizon):
    """Φ = Σ cosh(ηP_k) grows by the factor of the proof at most, in expectation. It bounds the total, and the stated
    potential is its logarithm.
    """
    m, counts, _ = state
    rate, player = best_rate(horizon, m), with_biases(m, horizon, biases_of(state))
    stated = StepCEMinimiser(m).guarantees[0].potential

    def log_potential(state):
        exponents = rate * np.cumsum(biases_of(state) / m)
        return np.logaddexp.reduce(np.concatenate([exponents, -exponents])) - math.log(2)

    before, largest = log_potential(state), np.abs(np.cumsum(biases_of(state) / m)).max()
    assert rate * largest <= before + math.log(2) + ROUNDING
    if counts.sum():
        assert counts.sum() * step_ce(gamma_of(state)) == pytest.approx(largest, abs=1e-9)
        assert stated.of(gamma_of(state), horizon) == pytest.approx(before, rel=1e-9)
    allowed, coarse = stated.growth(None, 0.5, horizon), max(1.0, 2 * math.sinh(rate / (2 * m)))
    said = math.log(math.exp(rate**2 / 8) + coarse * math.expm1(rate) / (4 * m))
    assert allowed == pytest.approx(said, rel=1e-9)
    for moves in after(state, player.points()):
        grown = np.logaddexp.reduce([math.log(w) + log_potential(there) for _, w, there in moves])
        assert grown <= before + allowed + ROUNDING


def test_the_growth_is_below_the_exponent_of_the_bound():
    """T times the growth, and the start: what Jensen's inequality makes of them is at most the stated bound."""
    for m in ("T^(1/2)", 1, 3, 50, "2 * T^(1/2)"):
        (guarantee,) = StepCEMinimiser(m).guarantees
        for horizon in (1, 2, 5, 10, 100, 1000, 10**4, 10**6, 10**8):
            steps = StepCEMinimiser(m).steps_at(horizon)
            rate = best_rate(horizon, steps)
            proved = (
                math.log(2 * steps + 2) + horizon * guarantee.potential.growth(None, 0.5, horizon)
            ) / rate
            assert min(horizon, proved) <= guarantee.bound(horizon) * (1 + ROUNDING)
            assert rate > 0.96 * steps or 2 * math.sinh(rate / (2 * steps)) <= 1


def test_the_bound_at_root_t():
    (guarantee,) = StepCEMinimiser().guarantees
    for horizon, apart in ((1000, 0.03), (10**5, 0.003), (10**8, 1e-4)):
        about = math.sqrt(horizon) * (math.sqrt(math.log(2 * math.sqrt(horizon) + 2) / 2) + 0.25)
        assert about < guarantee.bound(horizon) < (1 + apart) * about
    steps = StepCEMinimiser().steps_at
    assert [t for t in range(1, 100) if best_rate(t, steps(t)) > 0.96 * steps(t)] == [1, 2, 3]
