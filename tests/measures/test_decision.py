"""CDL, its relatives, U-calibration and SCDL: linear programs, worst tasks, lemmas, last digits."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import tasks
from onlinecal.measures import (
    MEASURES,
    cdl,
    cutoff,
    decision,
    scdl,
    scdl_binned,
    soft_binned_loss,
    soft_rounding,
    u_calibration,
    v_cdl,
)
from onlinecal.measures.base import ends
from onlinecal.measures.soft_binned import SoftRounding
from tests import golden
from tests.oracles import exact
from tests.oracles import measures as oracle
from tests.strategies import calibrated_gammas, close_gammas, gammas
from tests.witnesses import EVERY

WITNESS = {
    "cdl": decision.worst_decision_task, "v_cdl": decision.worst_kink, "u_calibration": decision.worst_external_task,
}  # fmt: skip
tight = 1e-9


@pytest.mark.parametrize("name", ["cdl", "u_calibration"])
@given(gamma=gammas(max_levels=5))
def test_cdl_equals_the_linear_program_over_proper_scoring_rules(name, gamma):
    # On multiples of 1e-6: HiGHS drops coefficients below 1e-9, and with them levels as close as that.
    gamma = gamma.round(10**6)[0]
    value = MEASURES[name].function(gamma)
    assert value == pytest.approx(getattr(oracle, name)(gamma), abs=tight)


@pytest.mark.parametrize("name", WITNESS)
@given(gamma=gammas())
def test_to_the_last_digits(name, gamma):
    """And the worst task, and the highest kink, which is half of CDL or more."""
    value = MEASURES[name].function(gamma)
    assert value == pytest.approx(float(getattr(exact, name)(gamma)), abs=1e-15)
    highest = float(max(exact.swap_density(gamma, t) for t in exact.points(gamma)))
    assert name == "u_calibration" or highest - tight <= value <= 2 * highest + tight
    if name == "u_calibration":
        assert tasks.external_regret(gamma, WITNESS[name](gamma).task) == pytest.approx(value, abs=tight)


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
    for measure in (cdl, v_cdl):  # the worst task is as bad by best responses however close the levels
        regret = tasks.swap_regret(gamma, WITNESS[measure.__name__](gamma).task)
        assert regret == pytest.approx(measure(gamma), abs=1e-14)


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


def digits():
    """Every measure and task on Γ of several kinds, as the exact digits of its value."""
    found = {}
    for gamma in golden.gammas():
        for record, options in EVERY:
            if record.name != "distance_lower" and not record.name.startswith("subsampled"):  # minutes
                value = ends(record.function(gamma, **options))
                found[f"{record.name} {len(found)}"] = [float(x).hex() for x in value]
        for name, task in tasks.TASKS.items():
            found[f"{name} {len(found)}"] = [x.hex() for x in task().account(gamma)]
    return found


@pytest.mark.slow
def test_the_same_digits_without_compilation():
    code = "import json, tests.measures.test_decision as t; print(json.dumps(t.digits()))"
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == digits()


# ---------------------------------------------------------------- soft bins


@given(gammas(), st.integers(1, 12), st.booleans())
def test_the_loss_of_each_threshold_by_definition_3_1(gamma, m, soft):
    losses = [soft_binned_loss(gamma, m=m, threshold=i, soft=soft) for i in range(1, m + 1)]
    assert losses == pytest.approx(oracle.threshold_losses(gamma, m, soft), abs=1e-12)
    assert scdl_binned(gamma, m=m, soft=soft) == pytest.approx(max(losses), abs=1e-14)
    if (gamma.means == gamma.predictions).all():
        assert losses == [0.0] * m


@given(gammas(), st.integers(1, 40))
def test_lemmas(gamma, m):
    """Lemma 4.3: tests/measures/test_bounds_for_decision_makers.py."""
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


def test_continuity_where_cdl_jumps():
    # All mass at 1/2 is calibrated; moved by 1e-6 towards the outcomes' side CDL jumps and SCDL does not.
    gamma = JointDistribution.from_samples([0.5 - 1e-6, 0.5 + 1e-6], [0, 1])
    assert cdl(gamma) > 0.49
    assert scdl(gamma) < 0.01
