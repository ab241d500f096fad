"""Smooth calibration error: against the linear program, its witness, invariances, edges."""

import numpy as np
import pytest
from hypothesis import given

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import earthmover_distance, ece
from onlinecal.measures.smooth_ce import chain_dual, smooth_ce, smooth_ce_witness
from onlinecal.measures.witnesses.weights import distances
from tests.gammas_metric import ANY, many_levels
from tests.oracles import smooth as oracle


def cubic(v):
    return v + v**3


METRICS = ["identity", "logit", cubic]


@pytest.mark.parametrize("metric", METRICS)
@given(gamma=ANY)
def test_equals_the_linear_program(metric, gamma):
    assert smooth_ce(gamma, metric=metric) == pytest.approx(oracle.smooth_ce(gamma, metric), abs=1e-9)


def test_tied_predictions_on_a_grid():
    """A 21-point grid with 1000 samples, where the published dynamic program goes wrong by a factor of 5."""
    generator = np.random.default_rng(0)
    for _ in range(20):
        p = generator.integers(0, 21, 1000) / 20
        gamma = JointDistribution.from_samples(p, generator.random(1000) < p)
        assert smooth_ce(gamma) == pytest.approx(oracle.smooth_ce(gamma), abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bias", [0.0, 0.02, -0.3])
def test_both_duals_and_the_witness_agree_at_many_levels(seed, bias):
    gamma = many_levels(seed, 3000, bias)
    value = smooth_ce(gamma)
    assert chain_dual(distances(gamma, "identity"), gamma.residuals)[0] == pytest.approx(value, abs=1e-13)
    assert smooth_ce_witness(gamma).value(gamma) == pytest.approx(value, abs=1e-13)
    logit = smooth_ce(gamma, metric="logit")
    assert smooth_ce_witness(gamma, metric="logit").value(gamma) == pytest.approx(logit, abs=1e-13)
    assert logit >= value - 1e-15  # |logit u − logit v| ≥ |u − v|: more weights are allowed


def test_known_values():
    swapped = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    assert smooth_ce(swapped) == pytest.approx(0.06, abs=1e-15)
    # Lemma 4.5: v = 1/2 ± α with a fair coin: residuals ±α/2 on weights that differ by 2α at most give α².
    fair = JointDistribution.from_levels([0.4, 0.6], [1, 1], [0.5, 0.5])
    assert smooth_ce(fair) == pytest.approx(0.01, abs=1e-15)
    # The levels 0 and 1 are one apart, and infinitely far apart in log odds.
    ends = JointDistribution.from_samples([0.0, 1.0], [1, 0])
    assert smooth_ce(ends) == pytest.approx(0.5, abs=1e-15)
    assert smooth_ce(ends, metric="logit") == 1.0


def test_logit_frees_the_ends_only():
    gamma = JointDistribution.from_levels([0.0, 0.5, 0.55, 1.0], [1, 1, 1, 1], [0.4, 0.4, 0.6, 0.7])
    inner = JointDistribution.from_levels([0.5, 0.55], [1, 1], [0.4, 0.6])
    expected = 0.4 / 4 + 0.3 / 4 + smooth_ce(inner, metric="logit") / 2
    assert smooth_ce(gamma, metric="logit") == pytest.approx(expected, abs=1e-15)


@given(gamma=ANY)
def test_given_metrics_that_have_names(gamma):
    with np.errstate(divide="ignore"):
        odds = smooth_ce(gamma, metric=lambda v: np.log(v) - np.log1p(-v))
    assert odds == pytest.approx(smooth_ce(gamma, metric="logit"), abs=1e-9)
    assert smooth_ce(gamma, metric=lambda v: v) == pytest.approx(smooth_ce(gamma), abs=1e-13)
    # No two levels near each other, and all in one place.
    assert smooth_ce(gamma, metric=lambda v: 1e300 * v) == pytest.approx(ece(gamma), abs=1e-13)
    bias = abs(gamma.residuals.sum())
    assert smooth_ce(gamma, metric=lambda v: 1e-300 * v) == pytest.approx(bias, abs=1e-13)


@given(gamma=ANY)
def test_the_earth_movers_distance_is_that_of_the_coupling_program(gamma):
    value = earthmover_distance(gamma)
    assert value == pytest.approx(oracle.earthmover_distance(gamma), abs=1e-9)
    assert value == pytest.approx(smooth_ce(gamma, metric=lambda v: 2 * v), abs=1e-13)
    # Lemma 3.4.
    assert smooth_ce(gamma) <= value + 1e-15 <= 2 * smooth_ce(gamma) + 2e-15
    assert value <= ece(gamma) + 1e-15


def test_lemma_3_4_is_tight_on_both_sides():
    one = JointDistribution.from_levels([0.3], [1], [0.5])
    assert earthmover_distance(one) == smooth_ce(one)
    two = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    assert earthmover_distance(two) == pytest.approx(2 * smooth_ce(two), abs=1e-15)
