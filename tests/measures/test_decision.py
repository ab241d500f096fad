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
    cfdl,
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
from onlinecal.measures.soft_binned import SoftRounding, rounded_down
from tests.oracles import exact
from tests.oracles import measures as oracle
from tests.strategies import calibrated_gammas, close_gammas, gammas
from tests.witnesses import MORE

WITNESS = {
    cdl: decision.worst_decision_task,
    v_cdl: decision.worst_kink,
    u_calibration: decision.worst_external_task,
}
tight = 1e-9
grids = st.integers(1, 40)


@pytest.mark.parametrize("name", ["cdl", "u_calibration"])
@given(gamma=gammas(max_levels=5))
def test_cdl_equals_the_linear_program_over_proper_scoring_rules(name, gamma):
    # On multiples of 1e-6: HiGHS drops coefficients below 1e-9, and with them levels as close as that.
    gamma = gamma.round(10**6)[0]
    value = MEASURES[name].function(gamma)
    assert value == pytest.approx(getattr(oracle, name)(gamma), abs=tight)


@pytest.mark.parametrize("name", ["cdl", "u_calibration", "v_cdl"])
@given(gamma=gammas())
def test_to_the_last_digits(name, gamma):
    assert MEASURES[name].function(gamma) == pytest.approx(float(getattr(exact, name)(gamma)), abs=1e-15)


@given(st.integers(0, 2**32 - 1), st.integers(50, 400))
def test_v_cdl_is_the_best_kink_at_many_levels(seeds, k):
    rng = np.random.default_rng(seeds)
    v = np.unique(rng.random(k))
    gamma = JointDistribution.from_levels(v, rng.random(len(v)) + 0.1, rng.random(len(v)))
    q, t = gamma.means, np.concatenate([[0.0, 0.5, 1.0], v, gamma.means])
    regrets = [gamma.mass @ (np.abs(q - x) * ((v <= x) & (x < q) | (q < x) & (x <= v))) for x in t]
    assert v_cdl(gamma) == pytest.approx((regrets / np.maximum(t, 1 - t)).max(), abs=1e-13)


@given(gammas())
def test_the_highest_kink_and_the_quadratic_and_worst_task(gamma):
    """The order of these measures: tests/core/test_relations.py."""
    highest = float(max(exact.swap_density(gamma, t) for t in exact.points(gamma)))
    assert highest <= v_cdl(gamma) + tight
    assert cdl(gamma) <= 2 * highest + tight
    squared = float(gamma.mass @ (gamma.means - gamma.predictions) ** 2)
    assert cfdl(gamma) == pytest.approx(squared, abs=tight)
    worst = WITNESS[u_calibration](gamma).task
    assert tasks.external_regret(gamma, worst) == pytest.approx(u_calibration(gamma), abs=tight)


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
        regret = tasks.swap_regret(gamma, WITNESS[measure](gamma).task)
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
    """Every measure on Γ of several kinds, as the exact digits of its value."""
    rng = np.random.default_rng(5)
    v = np.arange(1, 40) / 40
    kinds = {
        "grid": JointDistribution.from_samples(rng.integers(0, 11, 200) / 10, rng.integers(0, 2, 200)),
        "real": JointDistribution.from_samples(rng.random(60), rng.integers(0, 2, 60)),
        "near": JointDistribution.from_levels(v, np.ones(39), v + 1e-3),
        "ends": JointDistribution.from_samples([0.0, 1.0, 1.0], [1, 0, 1]),
    }
    result = {}
    for kind, gamma in kinds.items():
        for record in MEASURES.values():
            if record.name == "distance_lower" or record.name.startswith("subsampled"):  # minutes
                continue
            for options in (record.example, *MORE.get(record.name, [])):
                value = ends(record.function(gamma, **options))
                result[f"{record.name} {len(result)}"] = [float(x).hex() for x in value]
        for name, task in tasks.TASKS.items():
            result[f"{name} {kind}"] = [x.hex() for x in task().account(gamma)]
    return result


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
    value = scdl_binned(gamma, m=m, soft=soft)
    assert value == pytest.approx(oracle.scdl_binned(gamma, m, soft), abs=1e-12)
    rounded = SoftRounding(m).rounded(gamma) if soft else rounded_down(gamma, m)
    losses = [soft_binned_loss(gamma, m=m, threshold=i, soft=soft) for i in range(1, m + 1)]
    assert value == pytest.approx(max(losses), abs=1e-14)
    if (gamma.means == gamma.predictions).all():
        assert losses == [0.0] * m
        return
    for i, loss in enumerate(losses, 1):
        expected = sum(
            w * max(q - i / m if v < (i - 0.5) / m else (i - 1) / m - q, 0.0)
            for v, w, q in zip(rounded.predictions, rounded.mass, rounded.means, strict=True)
        )
        assert loss == pytest.approx(expected, abs=1e-12)


@given(gammas())
def test_value_is_the_minimum_over_all_powers_of_two(gamma):
    every = [max(scdl_binned(gamma, m=2**e), 2.0**-e) for e in range(51)]
    calibrated = (gamma.means == gamma.predictions).all()
    assert scdl(gamma) == pytest.approx(0.0 if calibrated else min(every), rel=1e-9, abs=1e-15)


@given(gammas(), grids)
def test_lemmas(gamma, m):
    value = scdl_binned(gamma, m=m)
    assert value <= scdl_binned(gamma, m=2 * m) + 1e-12  # Lemma 3.2
    assert value <= cdl(gamma) + 1e-12  # Lemma 3.4
    assert cdl(SoftRounding(m).rounded(gamma)) <= 2 * (value + 1 / m) + 1e-12  # Lemma 4.3
    assert scdl(gamma) <= 2 * cdl(gamma) + 1e-14


@given(gammas())
def test_response_has_swap_regret_of_at_most_four_times_the_value_for_the_worst_task(gamma):
    response = soft_rounding(gamma)
    assert response.value(gamma) == pytest.approx(scdl(gamma), abs=1e-12)
    assert cdl(response.rounded(gamma)) <= 4 * scdl(gamma) + 1e-12


@given(gammas(), grids)
def test_rounding_keeps_mass_mean_and_outcomes(gamma, m):
    rounded = SoftRounding(m).rounded(gamma)
    assert rounded.weight == pytest.approx(gamma.weight, rel=1e-12)
    assert rounded.mass @ rounded.predictions == pytest.approx(gamma.mass @ gamma.predictions, abs=1e-12)
    mass, ones = oracle.rounded(gamma, m)
    index = np.rint(rounded.predictions * m).astype(int)
    assert np.allclose(rounded.predictions * m, index, atol=1e-9)
    assert rounded.mass == pytest.approx(mass[index], abs=1e-12)
    assert rounded.positives / rounded.weight == pytest.approx(ones[index], abs=1e-12)


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
            expected = oracle.scdl_binned(gamma, m, False)
            assert scdl_binned(gamma, m=m, soft=False) == pytest.approx(expected, abs=1e-12)


@given(calibrated_gammas())
def test_calibrated_forecasts_are_left_as_they_are(gamma):
    response = soft_rounding(gamma)
    assert response.bins is None
    assert response.rounded(gamma) is gamma
    assert response.law(0.3) == ((0.3, 1.0),)
    assert response.value(gamma) <= 2.0**-49  # means may have been rounded to the predictions


def test_continuity_where_cdl_jumps():
    # All mass at 1/2 is calibrated; moved by 1e-6 towards the outcomes' side CDL jumps and SCDL does not.
    gamma = JointDistribution.from_samples([0.5 - 1e-6, 0.5 + 1e-6], [0, 1])
    assert cdl(gamma) > 0.49
    assert scdl(gamma) < 0.01
