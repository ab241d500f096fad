"""Decision tasks: checks of input, the regrets against enumeration, and the order between them."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.decisions.tasks import DecisionTask, QuadraticTask
from tests.oracles import tasks as oracle
from tests.strategies import TENTHS, calibrated_gammas, close_gammas, gammas

payoff_values = st.one_of(st.sampled_from(TENTHS), st.floats(0, 1, allow_subnormal=False))


@st.composite
def decision_tasks(draw: st.DrawFn, most: int = 4) -> DecisionTask:
    """Any table (dominated and repeated actions too), or a named task."""
    named = [tasks.umbrella(), tasks.umbrella(cost=0.5), tasks.v_shaped(0.2), tasks.three_action()]
    if draw(st.booleans()):
        return draw(
            st.sampled_from(named) | st.builds(tasks.random_task, st.integers(1, most), st.integers(0, 99))
        )
    table = draw(st.lists(st.tuples(payoff_values, payoff_values), min_size=1, max_size=most))
    return DecisionTask("drawn", table)


@given(gammas(max_levels=4), decision_tasks(3))
def test_account_equals_enumeration_over_all_swaps(gamma, task):
    assume(not oracle.crowded(gamma, task))
    account = task.account(gamma)
    assert account.payoff == pytest.approx(oracle.payoff(gamma, task), abs=1e-9)
    assert account.swap == pytest.approx(oracle.swap_regret(gamma, task), abs=1e-9)
    assert account.action_swap == pytest.approx(oracle.action_swap_regret(gamma, task), abs=1e-9)
    assert account.external == pytest.approx(oracle.external_regret(gamma, task), abs=1e-9)


@given(gammas(), calibrated_gammas(), decision_tasks() | st.just(QuadraticTask()))
def test_regrets_are_ordered_without_tolerance(gamma, calibrated, task):
    external = tasks.external_regret(gamma, task)
    action_swap = tasks.action_swap_regret(gamma, task)
    assert external <= action_swap <= tasks.swap_regret(gamma, task) <= 1.0
    assert action_swap >= 0.0
    _, external, action_swap, swap = task.account(calibrated)
    assert external <= 0.0 == action_swap == swap


@given(close_gammas(), st.data())
def test_two_actions_on_levels_that_are_as_good_as_equal(gamma, data):
    t = data.draw(st.sampled_from([*gamma.predictions.tolist(), 0.3, 0.5, 0.0, 1.0]))
    row = st.tuples(payoff_values, payoff_values)
    for task in (
        tasks.v_shaped(t),
        tasks.umbrella(cost=t),
        DecisionTask("drawn", data.draw(st.tuples(row, row))),
    ):
        expected = oracle.swap_regret_of_two_actions(gamma, task)
        assert task.account(gamma).swap == pytest.approx(expected, abs=1e-14)
    low, high = np.array(tasks.v_shaped(t).payoffs)
    assert {0.0, 1.0} <= {*low, *high}  # the whole range
    assert (1 - t) * low[0] + t * low[1] == pytest.approx((1 - t) * high[0] + t * high[1], abs=1e-15)


def test_ties_go_against_the_forecaster():
    task = tasks.v_shaped(0.5)
    for q in (0.0, 1.0):
        gamma = JointDistribution.from_levels([0.5], [1.0], [q])
        assert tasks.swap_regret(gamma, task) == 0.5 * 2
        assert tasks.payoff(gamma, task) == 0.0
    # Payoffs of 0.3 and 0.1 + 0.2 are a tie too.
    for payoffs in ([[0.3, 1.0], [0.1 + 0.2, 0.0]], [[0.1 + 0.2, 1.0], [0.3, 0.0]]):
        near = DecisionTask("near", payoffs)
        assert tasks.swap_regret(JointDistribution.from_levels([0.0], [1.0], [1.0]), near) == 1.0
        assert tasks.swap_regret(JointDistribution.from_levels([1e-15], [1.0], [1.0]), near) == 0.0


@pytest.mark.parametrize("cost", [0.25, 0.3, 0.1, 2 / 3])
def test_the_first_and_the_last_number_on_a_kink_are_ties_and_no_other(cost):
    """Ties regret either outcome; elsewhere one of both is what the response is for."""
    task = tasks.umbrella(cost=cost)
    (low,), (high,) = task.envelope[2:]
    for v, tie in (
        (low, True),
        (high, True),
        (np.nextafter(low, 0.0), False),
        (np.nextafter(high, 1.0), False),
    ):
        regrets = [tasks.swap_regret(JointDistribution.from_levels([v], [1], [q]), task) for q in (0.0, 1.0)]
        assert (min(regrets) > 0.0) is tie
        assert (len(oracle.tied(v, task)) == 2) is tie


def test_of_responses_that_pay_the_same_the_first_action_is_taken():
    """At v = q = 1/4 two pay the same. Those below would gain by saying 1, less so if the level at 1/4 is with them."""
    gamma = JointDistribution.from_levels([0.1, 0.25], [1, 1], [1.0, 0.25])
    rows = tasks.three_action().payoffs
    for payoffs, gain in ((rows, 0.75), (rows[::-1], 1.0)):
        assert DecisionTask("three", payoffs).account(gamma).action_swap == gain / 2


@pytest.mark.parametrize("mirrored", [False, True])
def test_of_kinks_that_contend_for_a_level_the_sharpest_decides(mirrored):
    """One of 2e-15 at 0.3 is as wide as [0, 0.5]. It would rather have the second level, of which four regret 0.1 each.

    At the other, at 0.5, the first regrets 0.5 if it is on the kink, and then the second regrets as much as on it.
    """
    gamma = JointDistribution.from_levels([0.5, 0.5 + 2.0**-51], [1, 4], [0.0, 0.4])
    payoffs = [[1.0, 0.0], [1.0 - 0.6e-15, 1.4e-15], [0.5, 0.5]]
    if mirrored:
        gamma, payoffs = gamma.flip(), [row[::-1] for row in payoffs[::-1]]
    swap = DecisionTask("hardly", payoffs).account(gamma).swap
    assert swap == pytest.approx((0.5 + 4 * 0.1) / 5, abs=1e-14)


@pytest.mark.parametrize("q", [0.0, 1.0])
@pytest.mark.parametrize("low", [0.875, 0.625])
def test_a_level_may_be_on_two_kinks(low, q):
    """Those of an action between two others, hardly better than both at 1/2 alone; one or the other is the sharper."""
    row = [np.nextafter(low, 1.0), np.nextafter(1.0 - low, 1.0)]
    task = DecisionTask("near", [[1.0, 0.0], row, [0.5, 0.5]])
    assert len(task.envelope[0]) == 3
    assert tasks.swap_regret(JointDistribution.from_levels([0.5], [1.0], [q]), task) == 0.5


@pytest.mark.parametrize("m", [3, 7, 10, 30, 49])
def test_a_grid_value_lies_on_the_kink_that_is_meant(m):
    """Payoffs that are rounded may put the kink beside i/m by a digit or two: 1 − 0.3 is 0.7."""
    for i in range(1, m):
        v = i / m
        for task in (tasks.umbrella(cost=v), tasks.v_shaped(v)):
            assert tasks.swap_regret(JointDistribution.from_levels([v], [1.0], [0.0]), task) > 0.0
            assert tasks.swap_regret(JointDistribution.from_levels([v], [1.0], [1.0]), task) > 0.0
            assert tasks.swap_regret(JointDistribution.from_levels([v], [1.0], [v]), task) == 0.0


def test_named_tasks_are_what_they_say():
    for constructor in tasks.TASKS.values():
        task = constructor()
        assert task == constructor() == pickle.loads(pickle.dumps(task))
        assert hash(task) == hash(constructor())
        assert task.name in str(task)
    a = DecisionTask("x", [[1, 0], [0, 1]], ["no", "yes"])
    assert a == DecisionTask("x", np.array([[1.0, 0.0], [0.0, 1.0]]), ("no", "yes"))
    assert a != DecisionTask("x", [[1, 0], [0, 0.5]], ["no", "yes"])
    assert DecisionTask("x", [[1, 0]]).actions == ("action 0",)
    for task, answers in (
        (tasks.umbrella(cost=0.25), {0.24: "leave", 0.26: "carry"}),
        (tasks.v_shaped(0.7), {0.69: "low", 0.71: "high"}),
        (tasks.three_action(), {0.24: "no", 0.26: "unsure", 0.74: "unsure", 0.76: "yes"}),
        (tasks.quadratic(), {0.3: 0.3}),
        (
            DecisionTask("x", [[0.5, 0.5], [1, 0], [0, 1]]),
            {0.5: "action 0", 0.4: "action 1", 0.6: "action 2"},
        ),
    ):
        assert {v: task.respond(v) for v in answers} == answers


@given(st.integers(1, 12), st.integers(0, 10_000))
def test_random_task_uses_every_action_and_the_whole_range(count, seed):
    task = tasks.random_task(count, seed)
    assert task == tasks.random_task(count, seed)
    assert len(task.payoffs) == count
    if count > 1:
        assert task.table.max() == 1.0
        steps = np.diff(task.table, axis=0)
        kinks = -steps[:, 0] / (steps[:, 1] - steps[:, 0])
        assert (np.diff(kinks) > -1e-9).all()  # in order, so that each action is best between two of them
        assert (steps[:, 0] <= 0).all()
        assert (steps[:, 1] >= 0).all()


def test_a_random_task_has_a_million_actions_at_most():
    with pytest.raises(InvalidParameter, match=r"actions = 1000001; expected an integer from 1 to 10\^6$"):
        tasks.random_task(10**6 + 1)
    with pytest.raises(InvalidParameter, match="seed = -1"):
        tasks.random_task(3, -1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("", [[1, 0]]), "name = ''"), ((3, [[1, 0]]), "name = 3"), (("x", []), r"payoffs = \[\]"),
        (("x", 0.5), "payoffs = 0.5"), (("x", [0.5]), "payoffs = "), (("x", [[1, 0, 1]]), r"payoffs\[0\]"),
        *((("x", [[1, 0], [0, u]]), rf"payoffs\[1\]\[1\] = {u!r}") for u in (1.1, -0.1, math.nan, "1", True)),
        (("x", [[1, 0]], ["a", "b"]), "expected 1"), *((("x", [[1, 0]], names), "a list") for names in ("a", None, 5)),
        (("x", [[1, 0]], [""]), r"actions\[0\] = ''"), (("x", [[1, 0], [0, 1]], ["a", "a"]), "'a' again"),
    ],
)  # fmt: skip
def test_bad_tasks_are_refused_by_name(arguments, says):
    with pytest.raises(InvalidParameter, match=says):
        DecisionTask(*arguments)
