"""CDL, its relatives, U-calibration and SCDL: worst tasks, last digits, rounding, and bounds for decision makers."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.decisions.responses import Rounded, RoundedDown
from onlinecal.measures import (
    binned_ece_width,
    cdl,
    cfdl,
    cutoff,
    cutoff_ce,
    decision,
    scdl,
    scdl_binned,
    soft_rounding,
    step_ce,
    subsampled_step_ce,
    u_calibration,
    v_cdl,
)
from onlinecal.measures.binned import bins_of_levels
from onlinecal.measures.soft_binned import SoftRounding
from tests.decisions.test_tasks import decision_tasks
from tests.strategies import calibrated_gammas, close_gammas, gammas, many_levels

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
    for measure, worst in WORST.items():  # it is as bad by best responses however close the levels
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


@pytest.mark.parametrize("m", [10, 49, 93, 98])
@given(v=st.floats(0, 1))
def test_law_of_the_rounding(m, v):
    """Values on the grid are not rounded at all."""
    law = SoftRounding(m).law(v)
    assert sum(p for _, p in law) == pytest.approx(1.0, abs=1e-12)
    assert sum(x * p for x, p in law) == pytest.approx(v, abs=1e-12)
    assert all(0 <= x <= 1 and p >= 0 and abs(x - v) <= 1 / m for x, p in law)
    for i in range(m + 1):
        assert SoftRounding(m).law(i / m) == ((i / m, 1.0),)


@pytest.mark.parametrize("m", [10, 49, 93, 98])
def test_hard_bins_of_values_just_below_the_grid(m):
    for i in range(1, m + 1):
        below = np.nextafter(i / m, 0)
        gamma = JointDistribution.from_levels([below], [1.0], [1.0 if i < m else 0.0])
        expected = 1 - i / m if i < m else (m - 2) / m  # at (i − 1)/m, by the threshold next to it
        assert scdl_binned(gamma, m=m, soft=False) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("seed", "levels"), [(0, 30), (1, 3000), (2, 3000)])
@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_scdl_is_the_minimum_over_all_powers_of_two(seed, levels, bias):
    gamma = many_levels(seed, levels, bias)
    grids = [2**e for e in range(51)]
    assert scdl(gamma) == min(max(scdl_binned(gamma, m=m), 1 / m) for m in grids)
    response = soft_rounding(gamma)
    assert max(scdl_binned(gamma, m=response.bins), 1 / response.bins) == scdl(gamma)
    least = JointDistribution.from_levels([0.5], [1.0], [np.nextafter(0.5, 1.0)])
    assert scdl(least) == 2.0**-50


@pytest.mark.parametrize("q", [0.75, 0.375, 0.625, 0.875, 0.25])
def test_of_grids_with_the_same_error_the_coarsest_is_the_response(q):
    """At v = 0 SCDL_m is q − 1/m: at q = 3/4 and 3/8 it is 2/m at m = 4 and 8, as large as 1/m of the grid before."""
    gamma = JointDistribution.from_levels([0.0], [1.0], [q])
    errors = {2**e: max(q - 2.0**-e, 2.0**-e) for e in range(9)}
    assert scdl(gamma) == min(errors.values())
    assert soft_rounding(gamma).bins == min(errors, key=errors.get)


@given(calibrated_gammas())
def test_calibrated_forecasts_are_left_as_they_are(gamma):
    response = soft_rounding(gamma)
    assert response.bins is None
    assert response.rounded(gamma) is gamma
    assert response.law(0.3) == ((0.3, 1.0),)
    assert response.bound(gamma) == 0.0


# ---------------------------------------------------------------- bounds for decision makers


def in_bins(gamma, m, strategy, where):
    """Γ of a response to a point of each prediction's bin: `where` of the way from its lower to its upper end."""
    v, (number, _) = gamma.predictions, bins_of_levels(gamma, m, strategy)
    low, high = number / m, (number + 1) / m
    if strategy == "quantile":
        low = np.array([v[number == b].min() for b in number])
        high = np.array([v[number == b].max() for b in number])
    beliefs = np.clip(low + where * (high - low), 0.0, 1.0)
    return JointDistribution.from_counts(beliefs, gamma.counts, gamma.positives)


@given(gammas(), decision_tasks() | st.just(tasks.quadratic()))
def test_swap_regrets(gamma, task):
    """That of every task is at most CDL and 2 ECE, external regret at most UCal: tests/core/test_relations.py."""
    # Within the tolerance of a tie a task takes two levels for one.
    assume(gamma.levels == 1 or np.diff(gamma.predictions).min() > 1e-6)
    regret, gain = task.account(gamma).swap, tasks.restricted_swap_regret(gamma, task)
    assert cfdl(gamma, task=task) == regret
    assert -1e-9 <= gain <= min(regret, 2 * cutoff_ce(gamma), 4 * step_ce(gamma)) + 1e-9
    assert gain <= 8 * subsampled_step_ce(gamma, subsets=64).lower + 1e-9


@given(gammas(), st.integers(1, 40), st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1))
def test_who_rounds_or_responds_to_a_bin(gamma, m, where):
    """All tasks at once: CDL of the beliefs is the largest swap regret of acting on them."""
    soft, hard = (scdl_binned(gamma, m=m, soft=soft) for soft in (True, False))
    assert soft <= min(scdl_binned(gamma, m=2 * m), cdl(gamma)) + 1e-12  # Lemmas 3.2 and 3.4
    assert scdl(gamma) <= 2 * cdl(gamma) + 1e-14
    assert cdl(Rounded().beliefs(gamma)) <= 4 * scdl(gamma) + 1e-9
    assert cdl(Rounded(m).beliefs(gamma)) <= 2 * (soft + 1 / m) + 1e-9
    assert cdl(RoundedDown(m).beliefs(gamma)) <= 2 * (hard + 1 / m) + 1e-9
    for strategy in ("width", "quantile"):
        bound = 2 * binned_ece_width(gamma, bins=m, strategy=strategy)
        assert cdl(in_bins(gamma, m, strategy, where)) <= bound + 1e-9
