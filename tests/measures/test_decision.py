"""CDL, its relatives and U-calibration: linear programs, worst tasks, inequalities, known values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.measures import decision
from onlinecal.measures.binned import ece
from onlinecal.measures.decision import cdl, cfdl, u_calibration, v_cdl
from tests.decisions.test_tasks import decision_tasks
from tests.oracles import decision as oracle
from tests.oracles import exact
from tests.strategies import close_gammas, gammas

TOTAL = (cdl, v_cdl, u_calibration)
WITNESS = {
    cdl: decision.worst_decision_task,
    v_cdl: decision.worst_kink,
    u_calibration: decision.worst_external_task,
}
tight = 1e-9


def close(value):
    return pytest.approx(value, abs=tight)


def scaled(gamma):
    """Γ on multiples of 1e-6: HiGHS drops coefficients below 1e-9, and with them levels as close as that."""
    return gamma.round(10**6)[0]


@given(gammas(max_levels=5))
def test_cdl_equals_the_linear_program_over_proper_scoring_rules(gamma):
    gamma = scaled(gamma)
    assert cdl(gamma) == close(oracle.cdl(gamma))


@given(gammas(max_levels=6))
def test_u_calibration_equals_the_linear_program(gamma):
    gamma = scaled(gamma)
    assert u_calibration(gamma) == close(oracle.u_calibration(gamma))


@given(st.integers(0, 2**32 - 1), st.integers(50, 400))
def test_v_cdl_is_the_best_kink_at_many_levels(seed, k):
    rng = np.random.default_rng(seed)
    v = np.unique(rng.random(k))
    gamma = JointDistribution.from_levels(v, rng.random(len(v)) + 0.1, rng.random(len(v)))
    q, t = gamma.means, np.concatenate([[0.0, 0.5, 1.0], v, gamma.means])
    regrets = [gamma.mass @ (np.abs(q - x) * ((v <= x) & (x < q) | (q < x) & (x <= v))) for x in t]
    assert v_cdl(gamma) == pytest.approx((regrets / np.maximum(t, 1 - t)).max(), abs=1e-13)


@given(gammas())
def test_the_worst_task_of_u_calibration_is_as_bad_by_best_responses(gamma):
    regret = tasks.external_regret(gamma, WITNESS[u_calibration](gamma).task)
    assert regret == close(u_calibration(gamma))


@given(gammas())
def test_order_of_the_measures(gamma):
    value, single, u = cdl(gamma), v_cdl(gamma), u_calibration(gamma)
    squared = float(gamma.mass @ (gamma.means - gamma.predictions) ** 2)
    assert cfdl(gamma) == close(squared)
    assert squared <= value + tight
    assert value <= 2 * ece(gamma) + tight
    highest = float(max(exact.swap_density(gamma, t) for t in exact.points(gamma)))
    assert highest <= single + tight
    assert single <= value + tight
    assert value <= 2 * highest + tight
    assert u <= value + tight
    assert 0.0 <= u <= 1.0
    assert 0.0 <= value <= 1.0


@given(gammas(), decision_tasks())
def test_no_task_beats_the_worst_one(gamma, task):
    assert cfdl(gamma, task=task) <= cdl(gamma) + tight
    assert tasks.external_regret(gamma, task) <= u_calibration(gamma) + tight


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
        apart = draw(st.sampled_from([1e-17, 1e-16, 1e-15, 1e-12]))
        steps = draw(
            st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=size, max_size=size)
        )
        return np.clip(np.array(draw(st.tuples(unit, unit))) + apart * np.array(steps), 0.0, 1.0)
    return np.array(draw(st.lists(st.tuples(unit, unit), min_size=size, max_size=size)))


@given(st.data())
def test_cdl_bounds_every_task_whatever_is_as_good_as_a_tie(data):
    """Each kink may be off by what makes a payoff of TIE; sums err by some 1e-15."""
    gamma = data.draw(close_gammas())
    table = data.draw(tables(gamma))
    account = tasks.DecisionTask("drawn", table).account(gamma)
    off = 2.0 * len(table) * tasks.TIE + 1e-14
    assert account.swap <= cdl(gamma) + off
    assert account.external <= u_calibration(gamma) + off
    if len(table) <= 2:
        assert account.swap <= v_cdl(gamma) + off


@given(close_gammas())
def test_the_worst_task_is_as_bad_by_best_responses_however_close_the_levels(gamma):
    for measure in (cdl, v_cdl):
        regret = tasks.swap_regret(gamma, WITNESS[measure](gamma).task)
        assert regret == pytest.approx(measure(gamma), abs=1e-14)
