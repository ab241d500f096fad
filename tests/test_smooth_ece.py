"""SmoothECE: against quadrature of the reflected Gaussians, its error bound, and relplot."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.measures.smooth_ece import _absolute_integral, _Line, smooth_ece, smooth_ece_at
from tests.gammas_metric import ANY, many_levels, split
from tests.oracles import smooth_ece as oracle

SIGMAS = st.sampled_from([0.01, 0.03, 0.1, 0.4, 1.0, 3.0])


@settings(deadline=None, max_examples=60)
@given(gamma=ANY, sigma=SIGMAS)
def test_equals_the_quadrature(gamma, sigma):
    """The midpoint rule of the oracle errs by 6e-7 at σ = 0.01, the mesh by 1e-7."""
    assert smooth_ece_at(gamma, sigma=sigma) == pytest.approx(oracle.smooth_ece_at(gamma, sigma), abs=1e-6)


@settings(deadline=None, max_examples=40)
@given(gamma=ANY, sigma=st.sampled_from([0.1, 0.4, 1.0, 3.0]))
def test_logit_equals_the_quadrature(gamma, sigma):
    value = smooth_ece_at(gamma, sigma=sigma, transform="logit")
    assert value == pytest.approx(oracle.smooth_ece_at_logit(gamma, sigma), abs=2e-6)


@settings(deadline=None, max_examples=60)
@given(gamma=ANY)
def test_the_fixed_point(gamma):
    """smECE_σ does not increase with σ, so |smECE_σ − σ| bounds the distance from the fixed point."""
    value = smooth_ece(gamma)
    if value >= 0.01:
        assert oracle.smooth_ece_at(gamma, value) == pytest.approx(value, abs=1.1e-6 + 1e-6)
    logit = smooth_ece(gamma, transform="logit")
    if logit >= 0.05:
        assert oracle.smooth_ece_at_logit(gamma, logit) == pytest.approx(logit, abs=1.1e-5 + 2e-6)


@settings(deadline=None)
@given(gamma=ANY, pair=st.tuples(st.floats(1e-3, 2.0), st.floats(1e-3, 2.0)))
def test_between_bias_and_ece_and_not_increasing(gamma, pair):
    low, high = sorted(pair)
    bias, ece = abs(float(gamma.residuals.sum())), float(np.abs(gamma.residuals).sum())
    for transform in ("identity", "logit"):
        less = smooth_ece_at(gamma, sigma=high, transform=transform)
        more = smooth_ece_at(gamma, sigma=low, transform=transform)
        assert less <= more + 2.1e-7
        assert bias - 1.1e-7 <= less
        assert more <= ece + 1.1e-7
    assert bias - 1e-9 <= smooth_ece(gamma) <= ece + 1e-9


@pytest.mark.parametrize("transform", ["identity", "logit"])
@settings(deadline=None)
@given(gamma=ANY, sigma=st.floats(0.02, 1.0), ratio=st.floats(0.02, 0.3))
def test_the_mesh_error_bound_holds(transform, gamma, sigma, ratio):
    line = _Line(gamma, transform, sigma)
    coarse = min(max(math.ceil(line.length / (ratio * sigma)), 2), 200_000)
    fine = 8 * coarse
    allowed = line.bound(sigma, coarse) + line.bound(sigma, fine) + 1e-12
    assert abs(line.error(sigma, coarse) - line.error(sigma, fine)) <= allowed


@settings(deadline=None)
@given(gamma=ANY, shares=st.lists(st.floats(0.1, 0.9), min_size=1, max_size=5))
def test_invariances(gamma, shares):
    value = smooth_ece(gamma)
    allowed = 2.3e-6 if value >= 1e-3 else 2e-4
    assert smooth_ece(split(gamma, shares)) == pytest.approx(value, abs=allowed)
    assert smooth_ece(gamma.flip()) == pytest.approx(value, abs=allowed)


@settings(deadline=None)
@given(gamma=ANY)
def test_calibrated_is_exactly_zero(gamma):
    calibrated = JointDistribution.from_levels(gamma.predictions, gamma.mass, gamma.predictions)
    for transform in ("identity", "logit"):
        assert smooth_ece(calibrated, transform=transform) == 0.0
        assert smooth_ece_at(calibrated, sigma=0.1, transform=transform) == 0.0


@settings(deadline=None)
@given(v=st.floats(0.0, 1.0), q=st.floats(0.0, 1.0))
def test_one_level_is_its_residual(v, q):
    gamma = JointDistribution.from_levels([v], [1.0], [q])
    for transform in ("identity", "logit"):
        assert smooth_ece(gamma, transform=transform) == pytest.approx(abs(q - v), abs=1e-15)


@pytest.mark.parametrize("size", [1e-2, 1e-3, 3e-4, 1e-4, 1e-5, 1e-9])
def test_small_values(size):
    """Two levels 0.2 apart with opposite residuals do not meet at so small a σ: the value is the ECE."""
    gamma = JointDistribution.from_levels([0.3, 0.5], [1, 1], [0.3 + size, 0.5 - size])
    assert smooth_ece(gamma) == pytest.approx(size, abs=1.1e-6 if size >= 5e-4 else 1e-4)
    assert smooth_ece(gamma) <= size + 1e-12


def test_levels_at_the_ends_are_nowhere_near_in_log_odds():
    gamma = JointDistribution.from_levels([0.0, 1.0], [1, 1], [0.5, 0.5])
    assert smooth_ece(gamma, transform="logit") == pytest.approx(0.5, abs=1e-12)
    assert smooth_ece(gamma) < 0.4


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bias", [0.0, 0.05, 0.1])
def test_agrees_with_relplot(seed, bias):
    """relplot halves [0, 1] ten times, to 1/1024, and stops at 0.001; its kernel is cut at ±1/2.

    Where σ is below 0.1 the cut does not matter, and 1/1024 + 0.001 is what is left.
    """
    relplot = pytest.importorskip("relplot")
    generator = np.random.default_rng(seed)
    p = generator.random(4000)
    y = (generator.random(4000) < p + bias * np.sin(6.0 * p)).astype(float)
    value = smooth_ece(JointDistribution.from_samples(p, y))
    assert value < 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = relplot.smECE(p, y)
    assert theirs == pytest.approx(value, abs=1.0 / 1024.0 + 0.001)


def test_the_same_value_on_any_mesh_at_many_levels():
    gamma = many_levels(1, 5000)
    value = smooth_ece(gamma)
    assert smooth_ece_at(gamma, sigma=value) == pytest.approx(value, abs=1.3e-6)


def test_the_integral_is_exact_between_mesh_points():
    """∫ |1 − 3x| over [0, 1] is 5/6: a sign change inside a step counts on both sides."""
    assert _absolute_integral(np.array([1.0, -2.0])) == pytest.approx(5.0 / 6.0, abs=1e-15)
    assert _absolute_integral(np.array([1.0, 0.0, -2.0, -1.0])) == pytest.approx(3.0, abs=1e-15)


def test_bad_options():
    gamma = JointDistribution.from_samples([0.4, 0.6], [1, 0])
    for sigma in (0.0, 9e-5, 11.0, math.nan, "1"):
        with pytest.raises(InvalidParameter, match="sigma"):
            smooth_ece_at(gamma, sigma=sigma)
    with pytest.raises(InvalidParameter, match="transform"):
        smooth_ece(gamma, transform="probit")
