"""CDL, its relatives, U-calibration and SCDL: worst tasks, last digits, rounding, and bounds for decision makers."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.decisions.responses import Rounded, RoundedDown
from onlinecal.decisions.tasks import DecisionTask
from onlinecal.measures import (
    MEASURES,
    cdl,
    cutoff,
    decision,
    scdl,
    scdl_binned,
    soft_rounding,
    u_calibration,
    v_cdl,
)
from onlinecal.measures.smooth_ce import smooth_ce_witness
from onlinecal.measures.soft_binned import SoftRounding
from tests.decisions.test_tasks import decision_tasks
from tests.strategies import calibrated_gammas, close_gammas, gammas

WORST = {
    cdl: decision.worst_decision_task, v_cdl: decision.worst_kink, u_calibration: decision.worst_external_task,
}  # fmt: skip


@st.composite
def tables(draw, gamma):
    """Payoffs with kinks at the levels of Γ, with weights over 12 orders; or such that hardly differ; or any."""
    kind = draw(st.sampled_from(["kinks", "hardly", "any"]))
    unit = st.floats(0.0, 1.0)
    size = draw(st.integers(1, 4))
    if kind == "kinks":
        t = np.sort(draw(st.lists(st.sampled_from(gamma.predictions.tolist()), min_size=size, max_size=size)))
        weights = 10.0 ** np.array(draw(st.lists(st.floats(-12.0, 0.0), min_size=size, max_size=size)))
        falls = np.append(np.cumsum((weights * t)[::-1])[::-1], 0.0)
        rises = np.append(0.0, np.cumsum(weights * (1.0 - t)))
        return np.stack([falls, rises], axis=1) / max(falls[0], rises[-1])
    if kind == "hardly":
        apart, step = draw(st.sampled_from([1e-17, 1e-16, 1e-15, 1e-12])), st.integers(-3, 3)
        steps = draw(st.lists(st.tuples(step, step), min_size=size, max_size=size))
        return np.clip(np.array(draw(st.tuples(unit, unit))) + apart * np.array(steps), 0.0, 1.0)
    return np.array(draw(st.lists(st.tuples(unit, unit), min_size=size, max_size=size)))


@given(st.data())
def test_cdl_bounds_every_task_whatever_is_as_good_as_a_tie(data):
    """Each kink may be off by what makes a payoff of TIE; sums err by some 1e-15."""
    gamma = data.draw(close_gammas())
    table = data.draw(tables(gamma))
    account = tasks.DecisionTask("drawn", table).account(gamma)
    off = 2.0 * len(table) * tasks.TIE + 1e-14
    assert account.swap <= (v_cdl if len(table) <= 2 else cdl)(gamma) + off
    assert account.external <= u_calibration(gamma) + off
    for (
        measure,
        worst,
    ) in WORST.items():  # the worst task is as bad by best responses however close the levels
        regret = tasks.external_regret if measure is u_calibration else tasks.swap_regret
        assert regret(gamma, worst(gamma).task) == pytest.approx(measure(gamma), abs=1e-14)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_no_digits_are_lost_over_many_levels(seeds):
    rng = np.random.default_rng(seeds)
    v = np.unique(rng.random(100_000))
    gamma = JointDistribution.from_samples(v, rng.random(len(v)) < v)
    value, t = decision._v_cdl(gamma.predictions, gamma.counts, gamma.means)
    up = (gamma.predictions <= t) & (t < gamma.means)
    down = (gamma.means < t) & (t <= gamma.predictions)
    terms = np.concatenate([gamma.means[up] - t, t - gamma.means[down]])
    assert value / gamma.weight == pytest.approx(math.fsum(terms) / max(t, 1 - t) / gamma.weight, abs=1e-15)
    sums = np.array([math.fsum(gamma.residuals[:j]) for j in (1, 1000, 50_000, len(v))])
    low, high, _, _ = cutoff.extremes(gamma)
    assert low <= sums.min() + 1e-17
    assert high >= sums.max() - 1e-17


# ---------------------------------------------------------------- soft bins


@given(gammas(), st.integers(1, 40))
def test_lemmas(gamma, m):
    value = scdl_binned(gamma, m=m)
    assert value <= scdl_binned(gamma, m=2 * m) + 1e-12  # Lemma 3.2
    assert value <= cdl(gamma) + 1e-12  # Lemma 3.4
    assert scdl(gamma) <= 2 * cdl(gamma) + 1e-14


@given(st.floats(0, 1), st.integers(1, 1000))
def test_law_of_the_rounding(v, m):
    law = SoftRounding(m).law(v)
    assert sum(p for _, p in law) == pytest.approx(1.0, abs=1e-12)
    assert sum(x * p for x, p in law) == pytest.approx(v, abs=1e-12)
    assert all(0 <= x <= 1 and p >= 0 and abs(x - v) <= 1 / m for x, p in law)


@pytest.mark.parametrize("m", [10, 49, 93, 98])
def test_hard_bins_of_values_just_below_the_grid(m):
    """And values on it are not rounded at all."""
    for i in range(m + 1):
        assert SoftRounding(m).law(i / m) == ((i / m, 1.0),)
        if i:
            below = np.nextafter(i / m, 0)
            gamma = JointDistribution.from_levels([below], [1.0], [1.0 if i < m else 0.0])
            expected = 1 - i / m if i < m else (m - 2) / m  # at (i − 1)/m, by the threshold next to it
            assert scdl_binned(gamma, m=m, soft=False) == pytest.approx(expected, abs=1e-12)


@given(calibrated_gammas())
def test_calibrated_forecasts_are_left_as_they_are(gamma):
    response = soft_rounding(gamma)
    assert response.bins is None
    assert response.rounded(gamma) is gamma
    assert response.law(0.3) == ((0.3, 1.0),)
    assert response.bound(gamma) == 0.0


# ---------------------------------------------------------------- bounds for decision makers

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
