"""The worst threshold: its loss by the definition, as payoffs of a task, and beside the measures that bound it."""

import re

import numpy as np
import pytest
from hypothesis import given

import onlinecal as oc
from onlinecal.logs.thresholds import threshold_regret, worst_threshold
from tests.strategies import ANY


def payoff(gamma, t, acts):
    """Per decision, of the task with a single kink t, of acting on these levels."""
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
    assert [float(x) for x in re.findall(r"\d+\.\d+", said)] == [0.75, 0.267, 0.75, 0.8, 0.25]
    assert "too high" in said
    assert worst_threshold(gamma).better == "p > 0.75"
    # Mirrored, waiting loses as much.
    mirrored = worst_threshold(gamma.flip())
    assert mirrored.loss == pytest.approx(worst_threshold(gamma).loss, abs=1e-15)
    assert str(mirrored).startswith("act when p > 0.25: you lose 0.267 per decision; predictions of 0.25")
    assert str(mirrored).endswith("too low by 0.25")
    assert mirrored.better == "p ≥ 0.25"
    # Where acting and waiting lose as much it is acting.
    both = worst_threshold(oc.JointDistribution.from_levels([0.25, 0.75], [0.5, 0.5], [0.5, 0.5]))
    assert str(both).startswith("act when p ≥ 0.75: you lose 0.167 per decision")
    calm = worst_threshold(oc.JointDistribution.from_levels([0.2, 0.6], [0.5, 0.5], [0.2, 0.6]))
    assert str(calm) == "no threshold loses: another one would never have been better"


@pytest.mark.parametrize("levels", [1, 2, 63, 64, 65, 3000])
def test_all_pairs_of_thresholds_are_compared(levels, seed):
    """Also of more levels than a table of all pairs could be searched for in each draw, and of ties."""
    rng = np.random.default_rng([seed, levels])
    p = rng.random(levels)
    for q in (p, np.full(levels, 0.5), 1.0 - p):
        gamma = oc.JointDistribution.from_samples(p, rng.random(levels) < q)
        v, w, k = gamma.predictions, gamma.mass, gamma.levels
        mass, ones = (np.append(0.0, np.cumsum(x)) for x in (w, w * gamma.means))
        lost = [0.0]
        for i, t in enumerate(v):
            high = (t * (mass[i + 1 :] - mass[i]) - ones[i + 1 :] + ones[i]).max()
            low = (ones[i + 1] - ones[: i + 1] - t * (mass[i + 1] - mass[: i + 1])).max()
            lost.append(max(high, low) / max(t, 1.0 - t))
        assert (k, worst_threshold(gamma).loss) == (levels, pytest.approx(max(lost), abs=1e-12))


def test_of_distinct_calibrated_means_nothing_is_lost():
    """Sums over a million levels are rounded by more than 1e-14, and the loss is not."""
    v = np.linspace(0.0, 1.0, 10**6)
    assert worst_threshold(oc.JointDistribution.from_levels(v, np.full(10**6, 1e-6), v)).loss == 0.0
