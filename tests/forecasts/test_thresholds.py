"""The worst threshold: its loss by the definition, as payoffs of a task, and beside the measures that bound it."""

import re

import numpy as np
import pytest
from hypothesis import given

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.forecasts.thresholds import threshold_regret, worst_threshold
from tests.gammas_metric import ANY


def payoff(gamma, t, acts):
    """Per decision, of the task with a single kink t, for those who act on these levels."""
    first, second = (np.array(pay) for pay in oc.tasks.v_shaped(t).payoffs)
    pay = np.where(acts, *(row[0] + (row[1] - row[0]) * gamma.means for row in (second, first)))
    return float(gamma.mass @ pay)


def by_definition(gamma):
    """The most that any threshold loses against any other one, over all t at levels, of all pairs."""
    v = gamma.predictions
    rules = [v >= s for s in v] + [v > s for s in v]
    return max(
        payoff(gamma, t, rule) - payoff(gamma, t, acts)
        for t in v
        for acts in (v >= t, v > t)
        for rule in rules
    )


@given(gamma=ANY)
def test_the_loss_is_that_of_a_task_and_the_largest(gamma):
    if gamma.levels > 40:
        gamma, _ = gamma.round(20)
    worst = worst_threshold(gamma)
    assert worst.loss == pytest.approx(max(by_definition(gamma), 0.0), abs=1e-12)
    assert worst.loss == threshold_regret(gamma)
    # Every number that is said, from the levels alone.
    v = gamma.predictions
    misled = (v >= worst.lowest) & (v <= worst.highest)
    assert worst.share == pytest.approx(float(gamma.mass[misled].sum()), rel=1e-12)
    bias = float(gamma.mass[misled] @ (v - gamma.means)[misled]) / worst.share
    assert worst.bias == pytest.approx(bias, abs=1e-12)
    acts = v >= worst.at if worst.acts_too_often else v > worst.at
    better = v > worst.highest if worst.acts_too_often else v >= worst.lowest
    if worst.loss > 0.0:
        gained = payoff(gamma, worst.at, better) - payoff(gamma, worst.at, acts)
        assert gained == pytest.approx(worst.loss, abs=1e-12)
        assert (acts != better).tolist() == misled.tolist()
        assert (worst.bias > 0.0) == worst.acts_too_often
    # No more than what any swap of actions gains, and than the cutoff calibration error allows.
    assert worst.loss <= oc.measures.v_cdl(gamma) + 1e-12
    assert worst.loss <= 2.0 * oc.measures.cutoff_ce(gamma) + 1e-12


def test_the_words_hold_the_numbers():
    gamma = oc.JointDistribution.from_samples([0.25, 0.75, 0.75, 0.75, 0.75], [0, 1, 0, 0, 1])
    said = str(worst_threshold(gamma))
    assert [float(x) for x in re.findall(r"\d+\.\d+", said)] == [0.75, 0.267, 0.75, 0.8, 0.25, 0.75]
    assert "too high" in said
    # Mirrored, those who wait lose as much.
    mirrored = worst_threshold(gamma.flip())
    assert mirrored.loss == pytest.approx(worst_threshold(gamma).loss, abs=1e-15)
    assert str(mirrored).startswith("act when p > 0.25: you lose 0.267 per decision; predictions of 0.25")
    assert "too low by 0.25; p ≥ 0.25 would be better" in str(mirrored)


def test_nothing_is_lost_by_calibrated_forecasts():
    gamma = oc.JointDistribution.from_levels([0.2, 0.6], [0.5, 0.5], [0.2, 0.6])
    assert worst_threshold(gamma).loss == 0.0
    assert str(worst_threshold(gamma)) == "no threshold loses: another one would never have been better"


def test_fewer_thresholds_find_no_more_and_none_is_refused():
    rng = np.random.default_rng(3)
    p = rng.random(5000)
    gamma = oc.JointDistribution.from_samples(p, rng.random(5000) < p**1.3)
    full, few = worst_threshold(gamma, most=5000), worst_threshold(gamma, most=50)
    assert few.tried == 50
    assert 0.5 * full.loss < few.loss <= full.loss
    with pytest.raises(InvalidParameter, match="most = 0"):
        worst_threshold(gamma, most=0)


def test_of_many_levels_it_is_the_worst_of_those_that_were_tried():
    """Another may be worse: the words say so, and nothing of it where all were tried."""
    v = np.linspace(0.0, 1.0, 9)
    wrong = oc.JointDistribution.from_counts(v, np.full(9, 8.0), np.array([8, 1, 8, 3, 8, 5, 8, 7, 0.0]))
    assert "tried" not in str(worst_threshold(wrong))
    some = worst_threshold(wrong, most=3)
    assert str(some).endswith("would be better (the worst of 3 thresholds that were tried, of 9)")
    assert some.loss < worst_threshold(wrong).loss
    right = oc.JointDistribution.from_levels(v, np.full(9, 1 / 9), v)
    assert str(worst_threshold(right)).startswith("no threshold loses")
    assert str(worst_threshold(right, most=3)).startswith("no threshold of 3 that were tried loses")
