"""Distances from calibration: oracles inside the brackets, certificates, and the chain of inequalities."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import example, given, settings
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.measures.binned import ece
from onlinecal.measures.distance_lower import distance_lower
from onlinecal.measures.distance_upper import distance_upper, true_distance, true_distance_of_gamma
from onlinecal.measures.interval import interval_ce
from onlinecal.measures.kernel import kernel_ce
from onlinecal.measures.smooth_ce import smooth_ce
from onlinecal.measures.witnesses.distances import LevelGroups
from tests.experiments import script
from tests.marks import slow
from tests.oracles import measures as oracle
from tests.strategies import ANY, gammas, many_levels, theoretical

crossed, fair_coins = script("consistency").crossed, script("consistency").fair_coins

FEW = st.one_of(gammas(max_levels=7), theoretical(max_levels=6))
GRID = 200
# The default tolerance, and what rounding adds.
CLOSED = 1e-9 + 1e-15


@given(gamma=FEW)
def test_the_coupling_program_lies_in_the_lower_bracket(gamma):
    program = oracle.distance_lower(gamma, GRID)
    bracket = distance_lower(gamma)
    assert bracket.width <= CLOSED
    assert bracket.lower <= program + 1e-9
    assert bracket.upper >= program - 0.5 / GRID**2 - 1e-9


def test_true_distance_of_long_sequences():
    """Between its bounds and far from the upper one, in any order of rounds. 0 where, and only where, it should be."""
    rng = np.random.default_rng(1)
    p, y = rng.integers(0, 11, 150) / 10, rng.integers(0, 2, 150)
    gamma, exact = JointDistribution.from_samples(p, y), true_distance(p, y)
    assert exact.width == 0.0 < true_distance(p, y, max_rounds=149).width
    assert distance_lower(gamma).lower - 1e-12 <= exact.upper < 0.9 * distance_upper(gamma).lower
    mixed = rng.permutation(150)
    assert true_distance(p[mixed], y[mixed]) == exact
    p, y = np.repeat([0.2, 0.4, 0.6, 0.8], 25), np.tile(np.arange(5), 20) < np.repeat([1, 2, 3, 4], 25)
    for order in (1, 2, math.inf):
        assert true_distance(p, y, order=order).upper == 0.0
    moved = p + np.where(np.arange(100) == 7, 1e-12, 0)
    assert true_distance(moved, y, order=20).upper == pytest.approx(1e-12 / 100 ** (1 / 20), rel=1e-3)


@given(gamma=FEW)
@example(gamma=JointDistribution.from_levels([0.1, 0.8, 0.9], [1] * 3, [0.4, 0.8, 0.0]))
def test_the_best_of_all_groupings_lies_in_the_upper_bracket(gamma):
    """In the example 0.1 and 0.9 are best moved together, and 0.8 alone."""
    value = oracle.cheapest_grouping(gamma.predictions, gamma.mass, gamma.means)
    exact, bracket = distance_upper(gamma), distance_upper(gamma, max_levels=1)
    assert exact.lower == exact.upper == pytest.approx(value, abs=1e-9)
    assert bracket.lower - 1e-9 <= value <= bracket.upper + 1e-9


ROUND = st.tuples(st.sampled_from([0.0, 0.3, 0.5, 1.0]) | st.floats(0.0, 1.0), st.integers(0, 1))


@given(st.lists(ROUND, min_size=1, max_size=6), st.sampled_from([1, 1, 1.5, 2, 20, math.inf]))
def test_true_distance_equals_the_best_of_all_groupings_of_rounds(rounds, order):
    p, y = [a for a, _ in rounds], [b for _, b in rounds]
    value = oracle.cheapest_grouping(p, [1.0 / len(p)] * len(p), y, order)
    exact = true_distance(p, y, order=order)
    assert exact.width == 0.0
    assert exact.upper == pytest.approx(value, abs=1e-9)
    loose = true_distance(p, y, order=order, max_rounds=1)
    assert loose.lower - 1e-9 <= value <= loose.upper + 1e-9
    # A mean of a larger order is no smaller.
    least, most = true_distance(p, y), true_distance(p, y, order=math.inf)
    assert least.upper <= exact.upper + 1e-12 <= most.upper + 2e-12


@given(gamma=ANY)
def test_roots_of_the_lower_distance_and_what_else_no_relation_says(gamma):
    """The other inequalities: tests/core/test_relations.py."""
    lower, upper, interval = distance_lower(gamma), distance_upper(gamma), interval_ce(gamma)
    slack = 1e-9
    root = math.sqrt(lower.upper + slack)
    assert kernel_ce(gamma) <= root
    assert max(interval, upper.lower) <= 4.0 * root
    assert upper.upper <= interval + slack  # also where it is not exact: the best contiguous groups are tried
    # E u = E y for a calibrated u, so nothing is nearer than the bias.
    assert lower.upper >= abs(float(gamma.residuals.sum())) - slack


def certified(gamma, bracket):
    """Tests what must hold of any bracket, by theorems that know nothing of programs."""
    smooth, bias = smooth_ce(gamma), abs(float(gamma.residuals.sum()))
    assert 0.0 <= bracket.lower <= bracket.upper
    assert bracket.lower <= min(ece(gamma), 2.0 * smooth, interval_ce(gamma)) + 1e-14
    assert bracket.upper >= max(0.5 * smooth, bias) - 1e-14


@pytest.mark.parametrize("k", [501, slow(1500)])
@pytest.mark.parametrize("bias", [0.0, 0.05, -0.4])
def test_brackets_at_many_levels(k, bias):
    gamma = many_levels(k, k, bias)
    with pytest.MonkeyPatch.context() as patch:
        if k > 1000:  # the program from inside is enough
            patch.setattr(scipy.optimize, "linprog", None)
        coarse = distance_lower(gamma)
    fine = distance_lower(gamma, tolerance=1e-5)
    certified(gamma, fine)
    assert coarse.width <= 1e-3
    assert fine.width <= 1e-5
    assert max(coarse.lower, fine.lower) <= min(coarse.upper, fine.upper)
    upper = distance_upper(gamma)
    assert upper.lower <= upper.upper <= interval_ce(gamma)


@pytest.mark.slow
def test_brackets_of_levels_that_are_hardly_apart(seed):
    """Levels about one to four centres, 1e-17 to 1e-6 apart; residuals from 1e-12 up, weights over 12 orders.

    60 Γ; 3 brackets of 6,055 were wider than the tolerance. At 2 of 1,000, more than 4 of 60 have probability below
    2e-7.
    """
    generator = np.random.default_rng([seed, 15])
    wide = 0
    for _ in range(60):
        centres = generator.choice([0.0, 1.0, 0.5, 0.3, *generator.random(3)], generator.integers(1, 5))
        k, gap, size = generator.integers(2, 60), *10.0 ** generator.uniform([-17, -12], [-6, -1])
        steps = gap * generator.choice([1.0, 1.0, 10.0, 0.1], k) * generator.standard_normal(k)
        v = np.unique(np.clip(generator.choice(centres, k) + steps, 0.0, 1.0) + 0.0)
        k = len(v)
        w = 10.0 ** generator.uniform(-12, 0, k) if generator.random() < 0.5 else np.ones(k)
        noise = v + size * generator.standard_normal(k)
        means = (
            noise,
            v + size * np.sign(noise - v),
            generator.random(k),
            np.where(generator.random(k) < 0.5, v, noise),
        )
        gamma = JointDistribution.from_levels(v, w, np.clip(means[generator.integers(4)], 0.0, 1.0))
        bracket = distance_lower(gamma)
        certified(gamma, bracket)
        wide += bracket.width > CLOSED
    assert wide <= 4


@pytest.mark.parametrize("tolerance", [None, 1e-9])
def test_thousands_of_levels_a_last_digit_apart_or_all_of_one_outcome(tolerance):
    """No program sees the former one by one; nothing bounds the potential of the other outcome of the latter."""
    generator = np.random.default_rng(5)
    v = np.unique(generator.uniform(0.1, 0.9, 20)[:, None] + 2.2e-16 * np.arange(250))
    for q in (generator.random(len(v)), v + 1e-3 * generator.standard_normal(len(v))):
        gamma = JointDistribution.from_levels(v, np.ones(len(v)), q)
        bracket = distance_lower(gamma, tolerance=tolerance)
        certified(gamma, bracket)
        assert bracket.width <= (1e-3 if tolerance is None else CLOSED)
    for outcome in (0, 1):
        gamma = JointDistribution.from_samples(generator.random(2000), np.full(2000, outcome))
        certified(gamma, bracket := distance_lower(gamma))
        assert bracket.width <= 1e-3


class Fails:
    """In place of `scipy.optimize.linprog`: no answer after `good` good ones."""

    def __init__(self, solver, good):
        self.solver, self.good = solver, good

    def __call__(self, *arguments, **options):
        self.good -= 1
        if self.good >= 0:
            return self.solver(*arguments, **options)
        return scipy.optimize.OptimizeResult(status=4, x=None)


@pytest.mark.parametrize("good", [0, 1, 2])
@given(gamma=ANY)
def test_without_an_answer_there_are_certified_bounds(good, gamma):
    """The best of what the programs gave until then and of what needs none; the solver's failure is no error."""
    exact = distance_lower(gamma)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scipy.optimize, "linprog", Fails(scipy.optimize.linprog, good))
        bracket = distance_lower(gamma)
    certified(gamma, bracket)
    assert bracket.lower <= exact.upper + 1e-14
    assert bracket.upper >= exact.lower - 1e-14
    if bracket.width > CLOSED:
        # One of the two plans that need no program is at least as good.
        assert bracket.width <= min(ece(gamma), interval_ce(gamma)) - 0.5 * smooth_ce(gamma) + 1e-14


@pytest.mark.parametrize("k", [40, 3000])
def test_the_time_limit_widens_the_bracket(k):
    gamma = many_levels(3, k, 0.1)
    full, cut = distance_lower(gamma), distance_lower(gamma, time_limit=1e-9)
    certified(gamma, cut)
    assert cut.lower <= full.upper
    assert cut.upper >= full.lower
    assert cut.width > full.width
    assert cut.width <= min(ece(gamma), interval_ce(gamma)) - 0.5 * smooth_ce(gamma)


def test_recalibration_may_be_far_from_the_best_post_processing():
    """§6.1: of ½ ± ε with certain outcomes, the wrong way round, recalibration moves by ½ + ε, the constant ½ by ε."""
    gamma = crossed(0.01)
    assert ece(gamma) == pytest.approx(0.51)
    assert distance_upper(gamma).upper == pytest.approx(0.01)
    assert LevelGroups([0, 0]).values(gamma).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.25])
def test_quadratic_gap_of_lemma_4_5(alpha):
    gamma = fair_coins(alpha)
    assert distance_lower(gamma).upper <= 2.0 * alpha**2 + 1e-9
    assert distance_upper(gamma).upper == pytest.approx(alpha, abs=1e-12)


@settings(max_examples=10)
@given(gamma=theoretical(max_levels=3))
def test_groups_of_levels_are_the_post_processings_that_calibrate(gamma):
    """GH25, Definitions 6.3 and 6.4, Lemma 6.5 and Theorem 6.6. The values κ(v_1), … are calibrated if and only if they
    are those of a partition of the levels. Those of single levels are E[y | v], and move by the ECE. The values that
    move least do so by the upper distance.
    """
    k = gamma.levels
    labels = np.array(list(itertools.product(range(k), repeat=k)))
    made = np.array([LevelGroups(each).values(gamma) for each in labels])
    candidates = np.unique([*made.ravel(), 0.5, *gamma.predictions])
    for values in map(np.array, itertools.product(candidates, repeat=k)):
        same = np.abs(values[:, None] - values) < 1e-12
        apart = np.abs(same @ (gamma.mass * (gamma.means - values)))  # of each group of equal values
        near = (np.abs(values - made) < 1e-12).all(axis=1).any()
        assert (apart.max() < 1e-12 * gamma.mass.min()) <= near
    for each in labels:
        after = LevelGroups(each).applied(gamma)
        assert ece(after) == 0.0
        assert after.weight == pytest.approx(gamma.weight, rel=1e-14)
        assert after.base_rate == pytest.approx(gamma.base_rate, abs=1e-14)
    costs = np.abs(made - gamma.predictions) @ gamma.mass
    alone = np.arange(k)
    assert (LevelGroups(alone).values(gamma) == gamma.means).all()
    assert costs[(labels == alone).all(axis=1)] == pytest.approx([ece(gamma)], abs=1e-14)
    assert distance_upper(gamma).upper == pytest.approx(costs.min(), abs=1e-14)


def test_the_true_distance_of_a_game_is_that_of_its_rounds():
    draw = np.random.default_rng(5)
    p, y = draw.integers(0, 4, 60) / 4, draw.integers(0, 2, 60)
    for order in (1.0, 2.0):
        of_game = true_distance_of_gamma(JointDistribution.from_samples(p, y), order=order)
        assert of_game == true_distance(p, y, order=order).upper > 0.0
    study = oc.play(
        "forecast_hedging", "contrarian", horizon=[30], runs=3, measures="true_distance", keep="all"
    )
    gammas = [study.gamma(run=run) for run in range(3)]
    assert study.curve("true_distance").totals.tolist() == [
        [30 * true_distance_of_gamma(gamma) for gamma in gammas]
    ]
    with pytest.raises(InvalidParameter, match="no whole numbers; expected rounds without weights"):
        true_distance_of_gamma(JointDistribution.from_samples([0.5, 0.2], [0, 1], weights=[0.5, 1.0]))
    with pytest.raises(InvalidParameter, match="of 401 rounds; expected at most 400"):
        true_distance_of_gamma(JointDistribution.from_counts([0.5], [401], [7]))
