"""Distances from calibration and intervals: brackets at many levels, certificates, and what no program answers."""

import importlib
import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given

import onlinecal as oc
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import (
    MEASURES,
    distance_in_metric,
    distance_lower,
    distance_lower_program,
    distance_upper,
    ece,
    explain,
    interval,
    interval_ce,
    kernel_ce,
    smooth_ce,
)
from onlinecal.measures.distance_lower import _linear_excess, _steep_excess
from onlinecal.measures.distance_metric import _at_nodes, _excess, _nodes
from onlinecal.measures.distance_upper import true_distance, true_distance_of_gamma
from onlinecal.measures.interval import interval_ce_bracket, interval_ce_witness, least_max_width, prefix_sums
from onlinecal.measures.witnesses.distances import lipschitz, moving_cost
from tests.marks import slow
from tests.oracles import measures as oracle
from tests.strategies import ANY, close_gammas, many_levels

#: the module, of which the measure has the name
distance_lower_module = importlib.import_module("onlinecal.measures.distance_lower")
# The default tolerance, and what rounding adds.
CLOSED = 1e-9 + 1e-15


def certified(gamma, bracket):
    """Tests what must hold of any bracket of the lower distance, by theorems that know nothing of programs."""
    smooth, bias = smooth_ce(gamma), abs(float(gamma.residuals.sum()))
    assert 0.0 <= bracket.lower <= bracket.upper
    assert bracket.lower <= min(ece(gamma), 2.0 * smooth, interval_ce(gamma)) + 1e-14
    assert bracket.upper >= max(0.5 * smooth, bias) - 1e-14


@given(gamma=ANY | close_gammas(40))
def test_roots_of_the_lower_distance_and_what_else_no_relation_says(gamma):
    """The other inequalities: tests/core/test_relations.py."""
    lower, upper, interval = distance_lower(gamma), distance_upper(gamma), interval_ce(gamma)
    certified(gamma, lower)
    root = math.sqrt(lower.upper + 1e-9)
    assert kernel_ce(gamma) <= root
    assert max(interval, upper.lower) <= 4.0 * root
    assert upper.upper <= interval + 1e-9  # also where it is not exact: the best contiguous groups are tried


def close(nearly):
    """Thousands of levels a last digit apart, which no program sees one by one."""
    generator = np.random.default_rng(5)
    v = np.unique(generator.uniform(0.1, 0.9, 20)[:, None] + 2.2e-16 * np.arange(250))
    q = v + 1e-3 * generator.standard_normal(len(v)) if nearly else generator.random(len(v))
    return JointDistribution.from_levels(v, np.ones(len(v)), q)


def of_one(outcome):
    """Nothing bounds the potential of the other outcome."""
    return JointDistribution.from_samples(np.random.default_rng(5).random(2000), np.full(2000, outcome))


@pytest.mark.parametrize(
    ("make", "given", "tolerance"),
    [
        (many_levels, (501, 501), 1e-5), (many_levels, (501, 501, -0.4), 1e-5),
        slow((many_levels, (1500, 1500), 1e-5)), slow((many_levels, (1500, 1500, -0.4), 1e-5)),
        (close, (True,), 1e-9), (close, (False,), 1e-9), (of_one, (0,), 1e-3), (of_one, (1,), 1e-3),
    ],
)  # fmt: skip
def test_brackets_at_many_levels(make, given, tolerance):
    gamma = make(*given)
    with pytest.MonkeyPatch.context() as patch:
        if gamma.levels == 1500:  # the program from inside is enough
            patch.setattr(scipy.optimize, "linprog", None)
        coarse = distance_lower(gamma)
    fine = distance_lower(gamma, tolerance=tolerance)
    for bracket, width in ((coarse, 1e-3), (fine, tolerance + 1e-15)):
        certified(gamma, bracket)
        assert bracket.width <= width
    assert max(coarse.lower, fine.lower) <= min(coarse.upper, fine.upper)


def test_what_potentials_exceed_in_each_gap_is_that_of_a_fine_grid(seed):
    """Linear in between, or as steep as they can be; both mean that u a(u) + (1 − u) b(u) has a slope of 4 at most."""
    rng = np.random.default_rng([seed, 6])
    for k in (2, 3, 9) * 10:
        nodes = np.unique(rng.random(k).round(3))
        a, b = (lipschitz(nodes, each) for each in rng.normal(0.0, 0.3, (2, len(nodes))))
        x, y = nodes[:-1, None], nodes[1:, None]
        u = np.linspace(nodes[:-1], nodes[1:], 1001, axis=1)
        steep = (np.maximum(c[:-1, None] - (u - x), c[1:, None] - (y - u)) for c in (a, b))
        linear = (np.interp(u, nodes, c) for c in (a, b))
        for (one, zero), find in ((linear, _linear_excess), (steep, _steep_excess)):
            most = (u * one + (1.0 - u) * zero).max(axis=1)
            excess, where = find(nodes, a, b)
            assert (most - 1e-14 <= excess).all()
            assert (excess <= most + 4.0 * np.diff(nodes) / 1000).all()
            assert ((nodes[:-1] <= where) & (where <= nodes[1:])).all()


@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_the_plan_from_inside_is_that_of_the_program_and_reached_in_few_steps(bias, monkeypatch):
    """Some ten, as of any such method, for each of these Γ."""
    monkeypatch.setattr(distance_lower_program, "_STEPS", 15)
    for seed in range(5):
        gamma = many_levels(seed, 40, bias)
        nodes = distance_lower_program.with_ends(gamma.predictions, np.linspace(0.0, 1.0, 21))
        mass = distance_lower_program.hats(gamma, nodes)
        ones, zeros, _ = distance_lower_program.interior_plan(nodes, *mass, 1e-6)
        value = mass[0] @ ones + mass[1] @ zeros
        assert value == pytest.approx(oracle.distance_lower(gamma, 20), abs=2e-6)


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
    if bracket.width > CLOSED:  # one of the two plans that need no program is at least as good
        assert bracket.width <= min(ece(gamma), interval_ce(gamma)) - 0.5 * smooth_ce(gamma) + 1e-14


@pytest.mark.parametrize(("k", "width"), [(1, 1e-9), (500, 1e-9), (501, 1e-3)])
def test_the_default_tolerance_is_that_of_the_number_of_levels(k, width, monkeypatch):
    asked, gamma = [], many_levels(0, k)
    gamma = JointDistribution.from_levels(gamma.predictions, gamma.counts, np.full(k, 0.25))

    def found(gamma, width, seconds):
        asked.append((width, seconds))
        return distance_lower_module.near_bounds(gamma)

    monkeypatch.setattr(distance_lower_module, "bracketed", found)
    distance_lower(gamma)
    distance_lower(gamma, tolerance=0.5, time_limit=7.0)
    assert asked == [(width, 60.0), (0.5, 7.0)]


class Refines(distance_lower_module.Program):
    """Notes its nodes, and never comes closer."""

    def __init__(self, gamma, nodes, every_level):
        super().__init__(gamma, nodes, every_level)
        Refines.seen.append((len(nodes), every_level))

    def solve(self, width, end):
        arriving = distance_lower_program.calibrated(self.gamma, self.nodes, self.mass)
        return self.nodes, arriving, np.zeros(len(self.nodes)), np.zeros(len(self.nodes))

    def cross(self, found):
        Refines.crossed += 1
        return True


def apart(*v):
    """Levels with residuals that cancel."""
    v = np.array(v)
    return JointDistribution.from_levels(
        v, np.ones(len(v)), np.clip(v + 0.3 * (-1.0) ** np.arange(len(v)), 0, 1)
    )


@pytest.mark.parametrize(("gamma", "tolerance", "nodes", "crossed"), [
    (many_levels(0, 500), 1e-9, [(502, True)], 30), (many_levels(0, 501), 1e-9, [(1001, False), (1502, True)], 29),
    (many_levels(0, 8999), 1e-9, [(1001, False), (10_000, True)], 29),
    (many_levels(0, 9000), 1e-9, [(n, False) for n in (1001, 2001, 4001, 8001)], 0),
    # With a tolerance of 0.02 levels that are closer than 0.001 are one node, and so are those as close to an end.
    (apart(0.5, 0.50101), 0.02, [(4, True)], 0), (apart(0.5, 0.50099), 0.02, [(3, True)], 0),
    (apart(0.00099, 0.99901), 0.02, [(2, True)], 30), (apart(0.00101, 0.99899), 0.02, [(4, True)], 30),
])  # fmt: skip
def test_nodes_of_the_lower_distance_are_the_levels_if_they_are_few(
    gamma, tolerance, nodes, crossed, monkeypatch
):
    """Else 1000 even gaps, halved up to 10,000 nodes; and there are 30 refinements at most."""
    Refines.seen, Refines.crossed = [], 0
    monkeypatch.setattr(distance_lower_module, "Program", Refines)
    distance_lower(gamma, tolerance=tolerance)
    assert (Refines.seen, Refines.crossed) == (nodes, crossed)


def test_beyond_what_a_partition_takes_neighbouring_levels_are_moved_together(monkeypatch):
    """15 groups of 45 levels where 20 are partitioned; those around one value cancel, and are moved to it."""
    monkeypatch.setitem(interval.MOST, "mean", 20)
    middles = np.arange(1, 16) / 16
    v = np.ravel(middles[:, None] + 1e-3 * np.array([-1.0, 0.0, 1.0]))
    gamma = JointDistribution.from_levels(
        v, np.ones(45), np.repeat(middles, 3) + np.tile([0.05, 0.0, -0.05], 15)
    )
    nodes, arriving, *_ = distance_lower_module.near_bounds(gamma)
    assert moving_cost(gamma, nodes, arriving) <= 1e-3 < ece(gamma)


def test_up_to_as_many_levels_as_asked_for_all_groups_are_tried():
    for k, options, exact in (
        (12, {}, True), (11, {"max_levels": 11}, True), (13, {"max_levels": 13}, True), (13, {}, False),
        (11, {"max_levels": 10}, False),
    ):  # fmt: skip
        means = np.random.default_rng(k).random(k)
        gamma = JointDistribution.from_levels(np.linspace(0.05, 0.95, k), np.ones(k), means)
        assert (distance_upper(gamma, **options).width == 0.0) == exact


@pytest.mark.parametrize("k", [40, 3000])
def test_the_time_limit_widens_the_bracket(k):
    gamma = many_levels(3, k, 0.1)
    full, cut = distance_lower(gamma), distance_lower(gamma, time_limit=1e-9)
    certified(gamma, cut)
    assert cut.lower <= full.upper
    assert cut.upper >= full.lower
    assert full.width < cut.width <= min(ece(gamma), interval_ce(gamma)) - 0.5 * smooth_ce(gamma)


# ---------------------------------------------------------------- of rounds, in a metric, of intervals


def test_true_distance_of_long_sequences_and_of_games():
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
    study = oc.play(
        "forecast_hedging", "contrarian", horizon=[30], runs=3, measures="true_distance", keep="all"
    )
    values = [30 * true_distance_of_gamma(study.gamma(run=run)) for run in range(3)]
    assert study.curve("true_distance").totals.tolist() == [values]


@pytest.mark.parametrize("order", [1.0, 3.0, math.inf])
def test_true_distance_of_too_many_rounds_is_up_to_that_of_the_groups_of_levels(order):
    p, y = [0.1, 0.2, 0.2, 0.5, 0.9], [1, 0, 0, 1, 0]
    gamma = JointDistribution.from_samples(p, y)
    found, moved = true_distance(p, y, order=order, max_rounds=4), []
    groups = explain(gamma, "distance_upper").witness.labels
    for group in set(groups.tolist()):
        inside = np.isin(p, gamma.predictions[groups == group])
        moved += [abs(v - np.mean(np.array(y)[inside])) for v in np.array(p)[inside]]
    assert found.lower == distance_lower(gamma).lower
    assert found.upper == pytest.approx(
        max(moved) if order == math.inf else np.mean(np.power(moved, order)) ** (1 / order)
    )


@given(gamma=ANY)
def test_the_identity_is_the_distance_but_for_outcomes_that_are_exchanged(gamma):
    found, plain = distance_in_metric(gamma, metric="identity", nodes=60), distance_lower(gamma)
    assert found.lower <= plain.upper + 1e-9
    assert plain.lower <= 4 * found.upper + 1e-9
    # Where predictions cannot move, outcomes are exchanged.
    frozen = distance_in_metric(gamma, metric=lambda v: 1e12 * v, nodes=60)
    if gamma.levels == 1 or np.diff(gamma.predictions).min() > 1e-9:
        assert frozen.upper == pytest.approx(ece(gamma), abs=1e-6)


def test_brackets_of_a_metric_are_as_narrow_as_stated(seed):
    """At most 2.8e-4 and 2.3e-5 wide in 141 cases; as other seeds may differ, twice that is allowed."""
    generator = np.random.default_rng([seed, 5])
    for k in (2, 40):
        for p in (generator.random(k), generator.beta(0.1, 0.1, k), 10.0 ** -generator.uniform(0.0, 9.0, k)):
            gamma = JointDistribution.from_samples(p, generator.random(k) < 0.3)
            assert distance_in_metric(gamma).width <= 5.6e-4
            assert distance_in_metric(gamma, metric="identity").width <= 4.6e-5
    gamma = many_levels(0, 1100, 0.1)
    found = distance_in_metric(gamma, metric="identity")
    assert found.width < 2e-3
    assert found.lower <= 2 * smooth_ce(gamma)


@pytest.mark.parametrize("metric", ["identity", "logit"])
def test_half_of_the_nodes_of_a_metric_are_even_in_u_and_half_in_h(metric):
    """From 1e-9 to 1 − 1e-9, beside both ends; and up to 1000 levels, of more both ends among them."""
    even, end = np.linspace(0.0, 1.0, 5), math.log(1e9 - 1.0)
    in_h = (
        np.linspace(1e-9, 1.0 - 1e-9, 4)
        if metric == "identity"
        else 1 / (1 + np.exp(-np.linspace(-end, end, 4)))
    )
    found = _nodes(JointDistribution.from_levels([0.25], [1], [0.5]), metric, 7)
    assert found == pytest.approx(np.unique(np.r_[even, in_h]), rel=1e-3)
    for k, kept in ((1000, 1000), (1001, 1000), (3000, 1000)):
        gamma = many_levels(0, k)
        own = np.intersect1d(_nodes(gamma, metric, 2), gamma.predictions)
        assert (len(own), own[0], own[-1]) == (kept, gamma.predictions[0], gamma.predictions[-1])


@pytest.mark.parametrize("metric", ["identity", "logit"])
def test_what_potentials_in_a_metric_exceed_is_that_of_a_fine_grid(metric, seed):
    """With a and b linear in h between nodes, and constant in a gap that is infinitely long."""
    rng = np.random.default_rng([seed, 7])
    h = (lambda u: u) if metric == "identity" else (lambda u: np.log(u) - np.log1p(-u))
    for k in (1, 3, 8) * 2:
        u = np.r_[0.0, np.unique(rng.uniform(0.01, 0.99, k)), 1.0]
        a, b = rng.normal(-0.1, 0.3, (2, len(u)))
        most = max((u * a + (1.0 - u) * b).max(), 0.0)
        for i in range(k + 1):
            x = np.linspace(u[i], u[i + 1], 2001)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = (h(x) - h(u[i])) / (h(u[i + 1]) - h(u[i]))
            if metric == "logit" and i in (0, k):
                share = np.full(len(x), float(i == 0))
            one, zero = (c[i] + share * (c[i + 1] - c[i]) for c in (a, b))
            most = max(most, (x * one + (1.0 - x) * zero).max())
        assert most - 1e-12 <= _excess(u, a, b, metric) <= most + 1e-2


def test_levels_between_the_nodes_move_to_the_nearer_one(seed):
    gamma, u = many_levels(seed, 300), np.array([0.0, 0.1, 0.35, 0.8, 1.0])
    one, zero, moved = _at_nodes(gamma, "identity", u)
    apart = np.abs(gamma.predictions[:, None] - u)
    assert moved == pytest.approx(gamma.mass @ apart.min(axis=1))
    near = apart.argmin(axis=1)[:, None] == np.arange(5)
    assert one == pytest.approx((gamma.mass * gamma.means) @ near)
    assert one + zero == pytest.approx(gamma.mass @ near)


@pytest.mark.parametrize("bias", [0.0, -0.4])
def test_pruning_of_intervals_loses_nothing_at_many_levels(bias, seed):
    gamma = many_levels(seed, 1500, bias)
    value, widest = interval_ce(gamma), interval_ce(gamma, width="max")
    assert value == pytest.approx(oracle.interval_program(gamma), abs=1e-12)
    assert value <= widest
    assert interval_ce_witness(gamma, width="max").bound(gamma) == pytest.approx(widest, abs=1e-12)
    for width, exact, share in (("mean", value, 1.5), ("max", widest, 1.05)):
        bracket = interval_ce_bracket(gamma, width=width, blocks=300)
        assert bracket.lower <= exact <= bracket.upper <= share * exact


def test_beyond_its_limit_the_interval_error_is_bracketed_with_as_many_blocks_up_to_2000():
    gamma, record = many_levels(0, 3000), MEASURES["interval_ce"]
    for most, blocks in ((7, 7), (2000, 2000), (2500, 2000)):
        found = record.bind(max_levels=most)(gamma)
        assert (
            found
            == interval_ce_bracket(gamma, blocks=blocks)
            != interval_ce_bracket(gamma, blocks=blocks + 1)
        )


def test_where_all_widths_are_equally_good_few_are_tried_for_each():
    """100 pairs of levels, each a little further apart, and each worth joining exactly as much as that width costs."""
    pairs = 100
    left, step = np.arange(pairs) * 0.98 / pairs + 0.01, 0.4 / pairs**2
    v = np.ravel(np.column_stack((left, left + step * np.arange(1, pairs + 1))))
    q = v + np.tile([step * pairs, -step * pairs], pairs)
    prefix = prefix_sums(JointDistribution.from_levels(v, np.ones(len(v)), q).residuals)
    lower, upper, _ = least_max_width(prefix, v, v, most=5 * pairs)
    assert lower == upper == pytest.approx(step * pairs, abs=1e-13)


def test_as_many_widths_are_tried_as_are_asked_for_and_32_for_a_bracket(monkeypatch):
    gamma, tried, narrow = many_levels(0, 1500), [], interval._narrow
    monkeypatch.setattr(interval, "_narrow", lambda *given: (tried.append(given), narrow(*given))[1])
    for most in (2, 3, 32, 33):
        prefix, v = prefix_sums(gamma.residuals), gamma.predictions
        least_max_width(prefix, v, v, most)
        assert len(tried) == most
        tried.clear()
    interval_ce_bracket(gamma, width="max", blocks=1)
    assert len(tried) == 32
