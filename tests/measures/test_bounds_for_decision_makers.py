"""The column "bounds for decision makers": every entry on random Γ, and Γ that attain its constant."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.decisions.responses import DecisionMaker, Rounded, RoundedDown
from onlinecal.decisions.tasks import DecisionTask
from onlinecal.measures import MEASURES, cdl, decision
from onlinecal.measures.smooth_ce import smooth_ce_witness
from tests.decisions.test_tasks import decision_tasks
from tests.strategies import gammas

tight = 1e-9


def value(name, gamma, **options):
    return MEASURES[name].function(gamma, **options)


def swap(gamma, task):
    return task.account(gamma).swap


def in_bins(gamma, m, strategy, where):
    """Γ of a response to a point of each prediction's bin: `where` of the way from its lower to its upper end."""
    v = gamma.predictions
    if strategy == "width":
        edges = np.arange(m + 1) / m
        bins = np.minimum(np.searchsorted(edges, v, side="right") - 1, m - 1)
        low, high = edges[bins], edges[bins + 1]
    else:
        middle = (np.cumsum(gamma.counts) - gamma.counts / 2) / gamma.weight
        bins = np.minimum((middle * m).astype(int), m - 1)
        low = np.array([v[bins == b].min() for b in bins])
        high = np.array([v[bins == b].max() for b in bins])
    beliefs = np.clip(low + where * (high - low), 0.0, 1.0)
    return JointDistribution.from_counts(beliefs, gamma.counts, gamma.positives)


def squared_gain(gamma, delta):
    """How much smaller the squared loss of v + δ(v) is."""
    v, q = gamma.predictions, gamma.means
    return float(gamma.mass @ ((v - q) ** 2 - (v + delta - q) ** 2))


def over_costs(gamma, function):
    """∫ function(cost) d cost of what is linear between the predictions."""
    ends = np.unique(np.concatenate([[0.0, 1.0], gamma.predictions]))
    return sum((b - a) * function((a + b) / 2) for a, b in pairwise(ends))


def against_foresight(gamma, cost):
    """The loss of an umbrella carried if v > cost against one that is carried if it rains."""
    wet = gamma.base_rate
    return wet * (1 - cost) + (1 - wet) - tasks.payoff(gamma, tasks.umbrella(cost=float(cost)))


@given(gammas(), decision_tasks() | st.just(tasks.quadratic()))
def test_swap_regrets(gamma, task):
    """That of every task is at most CDL and 2 ECE, external regret at most UCal: tests/core/test_relations.py."""
    # Within the tolerance of a tie a task takes two levels for one.
    assume(gamma.levels == 1 or np.diff(gamma.predictions).min() > 1e-6)
    regret = swap(gamma, task)
    assert value("cfdl", gamma, task=task) == regret
    if isinstance(task, DecisionTask) and len(task.actions) == 2:
        assert regret <= value("v_cdl", gamma) + tight
    gain = tasks.restricted_swap_regret(gamma, task)
    assert -tight <= gain <= min(regret, 2 * value("cutoff_ce", gamma), 4 * value("step_ce", gamma)) + tight
    assert gain <= 8 * value("subsampled_step_ce", gamma, subsets=64).lower + tight


@given(gammas(), st.integers(1, 40), st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1))
def test_who_rounds_or_responds_to_a_bin(gamma, m, where):
    """All tasks at once: CDL of the beliefs is the largest swap regret of acting on them."""
    soft, hard = (value("scdl_binned", gamma, m=m, soft=soft) for soft in (True, False))
    assert cdl(Rounded().beliefs(gamma)) <= 4 * value("scdl", gamma) + tight
    assert cdl(Rounded(m).beliefs(gamma)) <= 2 * (soft + 1 / m) + tight
    assert cdl(RoundedDown(m).beliefs(gamma)) <= 2 * (hard + 1 / m) + tight
    for strategy in ("width", "quantile"):
        bound = 2 * value("binned_ece_width", gamma, bins=m, strategy=strategy)
        assert cdl(in_bins(gamma, m, strategy, where)) <= bound + tight


@given(gammas(), st.data())
def test_what_lipschitz_recalibration_gains(gamma, data):
    v, bound = gamma.predictions, 2 * value("smooth_ce", gamma)
    for c in (1.0, 0.5, 0.1):  # the weights of smCE itself, kept in [0, 1], which leaves them 1-Lipschitz
        delta = np.clip(c * smooth_ce_witness(gamma).weights, -v, 1 - v)
        assert squared_gain(gamma, delta) <= bound + tight
    steps = data.draw(st.lists(st.floats(0, 1), min_size=len(v) - 1, max_size=len(v) - 1))
    first = data.draw(st.floats(0, 1))
    monotone = np.minimum(first + np.concatenate([[0.0], np.cumsum(steps * np.diff(v))]), 1.0)
    assert squared_gain(gamma, monotone - v) <= bound + tight
    assert squared_gain(gamma, gamma.base_rate - v) <= bound + tight
    # Any 1-Lipschitz function: κ − v is 2-Lipschitz, so that half of it is a weight.
    signs = data.draw(st.lists(st.floats(-1, 1), min_size=len(v) - 1, max_size=len(v) - 1))
    free = np.clip(first + np.concatenate([[0.0], np.cumsum(signs * np.diff(v))]), 0.0, 1.0)
    assert squared_gain(gamma, free - v) <= 2 * bound + tight


@given(gammas())
def test_scores(gamma):
    mean = over_costs(gamma, lambda cost: against_foresight(gamma, cost))
    assert value("brier", gamma) == pytest.approx(2 * mean, abs=1e-12)
    loss = value("log_loss", gamma)
    wealth = 0.0
    for v, n, ones in zip(gamma.predictions, gamma.counts, gamma.positives, strict=True):
        for share, times in ((v, ones), (1 - v, n - ones)):
            if times > 0:
                wealth += times * (math.log(2 * share) if share > 0 else -math.inf)
    assert math.log(2) - loss == pytest.approx(wealth / gamma.weight, abs=1e-9)


E = 1e-3
HALF = tasks.v_shaped(0.5)


def levels(v, w, q):
    return JointDistribution.from_levels(v, w, q)


def worst(gamma, name):
    """The regret of the task that its measure finds worst, from its payoffs."""
    task = {"cdl": decision.worst_decision_task, "u_calibration": decision.worst_external_task,
            "v_cdl": decision.worst_kink}[name](gamma).task  # fmt: skip
    return tasks.external_regret(gamma, task) if name == "u_calibration" else swap(gamma, task)


#: (gain, bound) of a Γ that attains at least 90 % of what is said
ATTAIN = {
    "ece": lambda: (swap(g := levels([0.5], [1], [0.5 + E]), HALF), 2 * value("ece", g)),
    # The lower end of the bin, from a prediction at its upper one.
    "binned_ece_width": lambda: (
        swap(in_bins(g := levels([0.599], [1], [0.65]), 10, "width", 0.0), HALF),
        2 * value("binned_ece_width", g, bins=10),
    ),
    "smooth_ce": lambda: (
        squared_gain(g := levels([0.48, 0.52], [1, 1], [1, 0]), 0.5 - g.predictions),
        2 * value("smooth_ce", g),
    ),
    "cfdl": lambda: (swap(g := levels([0.3], [1], [0.9]), HALF), value("cfdl", g, task=HALF)),
    "v_cdl": lambda: (worst(g := levels([E, 1 - E], [1, 1], [0.1, 0.9]), "cdl"), 2 * value("v_cdl", g)),
    "cdl": lambda: (worst(g := levels([0.2, 0.8], [1, 1], [0.4, 0.6]), "cdl"), value("cdl", g)),
    "u_calibration": lambda: (
        worst(g := levels([0.4, 0.6], [1, 1], [0.6, 0.4]), "u_calibration"),
        value("u_calibration", g),
    ),
    "scdl_binned": lambda: (
        swap(g := levels([0.5], [1], [0.7]), DecisionMaker(HALF, Rounded(8))),
        2 * (value("scdl_binned", g, m=8) + 1 / 8),
    ),
    "scdl": lambda: (
        swap(g := levels([0.5], [1], [0.75]), DecisionMaker(HALF, Rounded())),
        4 * value("scdl", g),
    ),
    "cutoff_ce": lambda: (
        tasks.restricted_swap_regret(g := levels([0.499], [1], [1]), HALF),
        2 * value("cutoff_ce", g),
    ),
    "step_ce": lambda: (
        tasks.restricted_swap_regret(g := levels([0.499, 0.4995], [1, 2], [0, 1]), HALF),
        4 * value("step_ce", g),
    ),
    # Of many rounds, of which chance leaves little beside the bias of half of them.
    "subsampled_step_ce": lambda: (
        tasks.restricted_swap_regret(g := levels([0.499, 0.4995], [10**9, 2 * 10**9], [0, 1]), HALF),
        8 * value("subsampled_step_ce", g).upper,
    ),
    "brier": lambda: (2 * over_costs(g := levels([0.3], [1], [1]), lambda c: against_foresight(g, c)), 0.49),
    "log_loss": lambda: (math.log(2 * 0.9), math.log(2) - value("log_loss", levels([0.9], [1], [1]))),
}


@pytest.mark.parametrize("name", [record.name for record in MEASURES.values() if record.decisions])
def test_the_constant_is_attained(name):
    gain, bound = ATTAIN[name]()
    assert 0.9 * bound <= gain <= bound * (1 + 1e-9)
