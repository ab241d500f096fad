"""Accounts of decision makers that act at random on forecasts, from a Γ with predictions that were moved."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.decisions.responses import Best, DecisionMaker, Noisy, Rounded, RoundedDown
from onlinecal.decisions.tasks import DecisionTask, QuadraticTask, umbrella
from tests.decisions.test_tasks import decision_tasks
from tests.measures.test_catalogue import moves

NOISE = itertools.product((0.02, 0.3), ("laplace", "gaussian", "uniform"), (4, 50))
RESPONSES = [Rounded(1), Rounded(3), Rounded(10), *itertools.starmap(Noisy, NOISE)]


@pytest.mark.parametrize("response", RESPONSES, ids=str)
@given(case=moves(), task=st.one_of(st.just(QuadraticTask()), decision_tasks()))
def test_the_brackets_hold_the_account_before_the_move(response, case, task):
    before, after, moved = case
    who = DecisionMaker(task, response)
    for value, bracket in zip(who.account(before), who.account_of_moved(after, moved), strict=True):
        assert bracket.lower <= value + 1e-12
        assert bracket.upper >= value - 1e-12


def test_the_payoff_needs_all_of_it():
    """All certain of y = 1, at a belief at which a wrong action is certain, on the way to the right one."""
    levels = JointDistribution.from_levels
    task = DecisionTask("certain", [[1, 0], [0, 1]])
    before, after = levels([0.49], [1], [1.0]), levels([0.48], [1], [1.0])
    for response, share in ((Rounded(1), 0.99), (Noisy(0.25, "uniform", 100_000), 0.99)):
        who = DecisionMaker(task, response)
        values = [who.account(gamma).payoff for gamma in (before, after)]
        assert values[0] - values[1] >= share * who.sensitivity * 0.01
        bracket = who.account_of_moved(after, 0.01)[0]
        assert values[0] <= bracket.upper <= values[0] + 1e-3
        # Less would not hold it.
        assert who.account_of_moved(after, 0.98 * 0.01)[0].upper < values[0]


@pytest.mark.parametrize("response", [Best(), Rounded(), RoundedDown(4)])
def test_who_does_not_act_at_random_has_no_bracket(response):
    who = DecisionMaker(umbrella(), response)
    assert who.sensitivity is None
    with pytest.raises(InvalidParameter, match=r"umbrella.*random.*rounded"):
        who.account_of_moved(JointDistribution.from_levels([0.5], [1], [0.5]), 0.0)
