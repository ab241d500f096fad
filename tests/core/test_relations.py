"""The relations between measures, each on random Γ with ties and on examples that attain it, and what follows."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal.core.columns import QUADRATIC, SQUARED_LOSS, Column
from onlinecal.core.guarantee import (
    RELATIONS,
    Forecasters,
    Guarantee,
    OnGrid,
    Sight,
    applies,
    chain,
    factor,
    through,
    tightest,
)
from onlinecal.core.joint import JointDistribution
from onlinecal.decisions.tasks import quadratic
from onlinecal.growth.rates import KNOWN_RATES
from onlinecal.measures import MEASURES, Bracket, true_distance
from onlinecal.measures.classes.catalogue import MEASURES as CLASSES
from tests.decisions.test_tasks import decision_tasks
from tests.strategies import gammas

REGRETS = {"swap_regret": "swap", "action_swap_regret": "action_swap", "external_regret": "external"}
CERTIFICATES = ("distance_certificate", "kernel_ce_certificate")


def ends(gamma, name, task=None):
    """Lower and upper end of a quantity on Γ; of a regret, that of the task."""
    if name == QUADRATIC:
        return (quadratic().account(gamma).swap,) * 2
    if name == SQUARED_LOSS:
        return (quadratic().account(gamma).external,) * 2
    if name in REGRETS:
        return (getattr(task.account(gamma), REGRETS[name]),) * 2
    value = MEASURES[name].function(gamma)
    return (value.lower, value.upper) if isinstance(value, Bracket) else (value, value)


def tolerance(relation):
    # smooth_ce is exact; smooth_ece is right to 1e-4 below 5e-4 and to 1.1e-6 above.
    return 2e-4 if "smooth_ece" in (relation.smaller, relation.larger) else 1e-9


OF_CLASSES = ("classwise", "toplabel", "setwise")
ON_GAMMA = [r for r in RELATIONS if not {r.smaller, r.larger} & {"distance", *CERTIFICATES, *OF_CLASSES}]


def test_every_name_is_a_column_or_said_to_be_none():
    columns = {*MEASURES, *OF_CLASSES, *CERTIFICATES, *REGRETS, QUADRATIC, SQUARED_LOSS, "distance"}
    for relation in RELATIONS:
        assert {relation.smaller, relation.larger} <= columns
        assert relation.factor >= 1.0
        assert relation.source
    pairs = [(r.smaller, r.larger) for r in RELATIONS]
    assert len(set(pairs)) == len(pairs)
    # The others are tested below, on sequences, and with delays: tests/forecasters/test_deterministic.py.
    assert {(r.smaller, r.larger) for r in RELATIONS if r not in ON_GAMMA} == {
        ("distance_lower", "distance"), ("distance", "distance_upper"), ("distance", "distance_certificate"),
        ("kernel_ce", "kernel_ce_certificate"), *((name, "ece") for name in OF_CLASSES),
    }  # fmt: skip
    assert {rate.measure for rate in KNOWN_RATES} <= {name for pair in pairs for name in pair}
    assert set(ATTAIN) == {(r.smaller, r.larger) for r in RELATIONS if r.factor > 1.0}


@given(gamma=gammas(max_levels=6), task=decision_tasks())
def test_every_relation_holds(gamma, task):
    # Within the tolerance of a tie a task takes two levels for one.
    assume(gamma.levels == 1 or np.diff(gamma.predictions).min() > 1e-6)
    values = {name: ends(gamma, name, task) for r in ON_GAMMA for name in (r.smaller, r.larger)}
    for relation in ON_GAMMA:
        smaller, larger = values[relation.smaller][0], values[relation.larger][1]
        assert smaller <= relation.factor * larger + tolerance(relation), str(relation)


def test_relations_of_classes_hold(seed):
    """What else follows from the ECE of classes is in tests/measures/test_classes.py."""
    rng = np.random.default_rng(seed)
    for classes in (2, 3, 3, 3, 5, 5):
        v, q = rng.dirichlet([0.5] * classes, (2, 6))
        gamma = oc.ClassDistribution.from_levels(v, rng.random(6), q)
        for name in OF_CLASSES:
            assert (
                CLASSES[name].function(gamma)
                <= factor(chain(name, "ece")) * CLASSES["ece"].function(gamma) + 1e-9
            )


@given(st.data())
def test_the_true_distance_lies_between_its_bounds(data):
    tenths = st.integers(0, 10).map(lambda i: i / 10)
    p = data.draw(st.lists(tenths | st.floats(0.0, 1.0), min_size=1, max_size=6))
    y = data.draw(st.lists(st.integers(0, 1), min_size=len(p), max_size=len(p)))
    gamma = JointDistribution.from_samples(p, y)
    distance = true_distance(p, y)
    assert distance.width == 0.0
    assert ends(gamma, "distance_lower")[0] <= distance.upper + 1e-9
    assert distance.lower <= ends(gamma, "distance_upper")[1] + 1e-9


# -------------------------------------------------------------------- constants

E = 1e-6


def levels(v, w, q):
    return JointDistribution.from_levels(v, w, q)


def zigzag(steps):
    """Residuals of which the mean embedding is a weight that stays near 1 and goes up and down with slope 1."""
    v = np.linspace(0.01, 0.99, steps + 1)
    weight = np.where(np.arange(steps + 1) % 2, 1 - (v[1] - v[0]), 1.0)
    r = np.linalg.solve(np.exp(-abs(v[:, None] - v)), weight)
    return levels(v, np.ones(steps + 1), v + 0.009 * r / abs(r).max())


#: Γ that attain at least 97 % of a factor above 1; None where no such Γ is known
ATTAIN = {
    ("distance_lower", "smooth_ce"): levels([0.5 - E, 0.5 + E], [1, 1], [1, 0]),
    # Outcomes 1 moved down from 0.05 alone: the outcomes 0 that stay there lose as much.
    ("smooth_ce", "distance_lower"): levels([0, 0.05], [0.05, 0.95], [1, 0]),
    ("smooth_ce", "kernel_ce"): zigzag(300),
    ("smooth_ce", "smooth_ece"): None,
    ("cdl", "ece"): levels([0.5], [1], [0.5 + E]),
    ("cdl", "v_cdl"): levels([E, 1 - E], [1, 1], [0.1, 0.9]),
    ("u_calibration", "cutoff_ce"): levels([0.5], [1], [0.5 + E]),
    ("cutoff_ce", "step_ce"): levels([0.5 - 2 * E, 0.5 - E], [1, 2], [0, 1]),
    ("low_degree_ce", "smooth_ce"): levels([0.98, 1], [1, 0.02], [1, 0]),
}


@pytest.mark.parametrize("relation", [r for r in RELATIONS if ATTAIN.get((r.smaller, r.larger))], ids=str)
def test_the_factor_cannot_be_lowered(relation):
    gamma = ATTAIN[relation.smaller, relation.larger]
    smaller, larger = ends(gamma, relation.smaller)[0], ends(gamma, relation.larger)[1]
    assert smaller >= 0.97 * relation.factor * larger > 0.0


# -------------------------------------------------------------------- chains


def test_a_chain_is_the_one_with_the_least_factor():
    names = {r.smaller for r in RELATIONS} | {r.larger for r in RELATIONS}
    best = {(a, b): 1.0 if a == b else math.inf for a in names for b in names}
    for r in RELATIONS:
        best[r.smaller, r.larger] = r.factor
    for middle in names:  # Floyd and Warshall
        for a in names:
            for b in names:
                best[a, b] = min(best[a, b], best[a, middle] * best[middle, b])
    for (a, b), product in best.items():
        way = chain(a, b)
        if math.isinf(product):
            assert way is None
            continue
        assert factor(way) == pytest.approx(product)
        assert [r.smaller for r in way] + [b] == [a, *(r.larger for r in way)]
    # No chain may bring a quantity below itself, or some relation is false.
    assert all(best[a, a] == 1.0 for a in names)


# -------------------------------------------------------------------- what follows for strategies


def bound(measure, formula, value, *, upper=True, kind="expected", slack=None):
    against = Sight.LAW if upper else Forecasters.DETERMINISTIC
    return Guarantee(measure, formula, lambda t: value * t**0.5, kind, against, "source", upper, slack=slack)


def test_a_bound_goes_through_the_relations():
    own = bound("ece", "2√T + 1", 3.0, slack=lambda t, runs, rate: 5.0)
    follows = through(own, "cdl")
    assert (follows.measure, follows.formula, follows.bound(100)) == ("cdl", "2(2√T + 1)", 60.0)
    assert follows.slack(100, 1, 0.1) == 10.0
    assert (follows.kind, follows.against, follows.upper) == (own.kind, own.against, own.upper)
    assert follows.source == "source; with cdl ≤ 2 ece (Hu and Wu 2024; Gopalan and Hu 2025)"
    forced = bound("u_calibration", "T/2", 1.0, upper=False)
    assert [through(forced, m).formula for m in ("cdl", "cutoff_ce", "step_ce")] == ["T/2", "T/4", "T/8"]
    for measure, formula, other, expected in (
        ("ece", "T/2", "cdl", "T"), ("kernel_ce", "√T/2", "smooth_ce", "√2(√T/2)"),
        ("kernel_ce", "√T/2", "distance_lower", "2√2(√T/2)"), ("smooth_ece", "T", "smooth_ce", "1.8(T)"),
        ("ece", "√T + L with L = ln T", "cdl", "2(√T + L) with L = ln T"),
    ):  # fmt: skip
        assert through(bound(measure, formula, 1.0), other).formula == expected
    assert through(forced, "step_ce").bound(100) == 2.5
    sums = bound("u_calibration", "√T + 1 with T > 9", 1.0, upper=False)
    assert [through(sums, m).formula for m in ("cdl", "cutoff_ce", "step_ce")] == [
        "√T + 1 with T > 9", "(√T + 1)/2 with T > 9", "(√T + 1)/4 with T > 9",
    ]  # fmt: skip
    with pytest.raises(LookupError, match="from u_calibration to smooth_ce"):
        through(forced, "smooth_ce")
    assert through(bound("cdl", "√T", 1.0, kind="rate"), "v_cdl").formula == "√T"


def test_the_tightest_bound_of_each_kind_is_kept():
    ece, rate = bound("ece", "√T", 1.0), bound("cdl", "√T log T", 1.0, kind="rate")
    stated = [ece, bound("kernel_ce", "√T/2", 0.5), rate]
    smooth = Column("measure", "smooth_ce")
    (one,) = tightest(stated, smooth, 100)
    assert (one.formula, one.measure) == ("√2(√T/2)", "smooth_ce")  # less than √T, which the ECE gives
    assert [g.formula for g in tightest(stated, Column("measure", "cdl"), 100)] == ["2√T", "√T log T"]
    # A stated one is preferred to one that follows and says the same.
    assert tightest([ece, bound("smooth_ce", "own", 1.0)], smooth, 100)[0].formula == "own"
    assert tightest(stated, Column("measure", "brier"), 100) == []


def test_whom_a_bound_is_against():
    on_thirds = replace(bound("ece", "T/3", 1.0, upper=False), against=OnGrid(3))
    assert (
        str(on_thirds) == "total ece ≥ T/3 in expectation, against every forecaster on 0, 1/3, …, 1 (source)"
    )
    assert [OnGrid(3).fits(grid) for grid in ([0, 1 / 3, 2 / 3, 1], [0.0, 0.5], None)] == [True, False, False]


def test_a_bound_of_groups_binds_a_forecaster_that_needs_them_and_others_any():
    own = bound("ece", "√T", 1.0)
    for needs, sight, expected in (
        ((), Sight.LAW, [True, False]), (("odd",), Sight.LAW, [True, True]), (("odd",), Sight.DRAW, [False, False]),
    ):  # fmt: skip
        players = SimpleNamespace(needs=set(needs)), SimpleNamespace(group_names=("odd",), sight=sight)
        assert [each.binds(*players) for each in (own, replace(own, of_groups=True))] == expected


def test_bounds_are_of_columns_and_not_of_names():
    """Of ends of brackets, tasks and functions."""
    ends = [Column("measure", "distance_lower", end=end) for end in ("", "lower", "upper")]
    assert {c.quantity for c in ends} == {"distance_lower"}
    assert [[applies(c, upper) for c in ends] for upper in (True, False)] == [
        [True, True, False],
        [True, False, True],
    ]
    for column, quantity in (
        (Column("other_task", "swap_regret", task="mine"), ""),
        (Column("decision_task", "swap_regret", task="mine"), "swap_regret"),
        (Column("decision_task", "swap_regret", task="mine", response="rounded"), ""),
        (Column("quadratic_task", "swap_regret", task="brier"), QUADRATIC),
        (squared := Column("quadratic_task", "external_regret", task="brier"), SQUARED_LOSS),
        (Column("decision_task", "swap_regret", task="quadratic"), "swap_regret"),
        (Column("function", "ece"), ""),
    ):
        assert column.quantity == quantity
    # A bound on the squared loss bounds no other task.
    own = Guarantee(squared, "1", lambda t: 1.0, "expected", Sight.LAW, "nobody")
    assert tightest([own], Column("decision_task", "external_regret", task="mine"), 100) == []
    assert tightest([own], squared, 100) == [own]
    stated = [bound("ece", "√T", 1.0), bound("distance", "T/2", 0.5, upper=False)]
    for end in ("lower", "upper"):
        (one,) = tightest(stated, Column("measure", "distance_upper", end=end), 100)
        assert one.upper is (end == "lower")
