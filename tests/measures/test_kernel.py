"""Kernel calibration error: against the double sum, its bounds, its estimators."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.measures.kernel import kernel_ce, kernel_ce_witness, kernel_norm
from onlinecal.measures.smooth_ce import smooth_ce
from tests.gammas_metric import ANY, many_levels, split
from tests.oracles import smooth as oracle

KERNELS = ["laplace", "gaussian"]
SCALES = [1.0, 0.2, 0.0225, 0.0223, 1e-3, 30.0]  # two of them on either side of the switch of the Gaussian


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", SCALES)
@given(gamma=ANY)
def test_equals_the_double_sum(kernel, scale, gamma):
    value = kernel_ce(gamma, kernel=kernel, scale=scale)
    square = oracle.kernel_ce_squared(gamma, kernel, scale)
    # The oracle's terms are rounded, to 1e-16 of Σ|r|² ≤ 1, so its root is not right to 1e-9 below 1e-7.
    # The narrow Gaussian series multiplies some 1/scale² factors.
    assert value**2 == pytest.approx(square, abs=1e-15, rel=1e-12)
    if square > 1e-12:
        assert value == pytest.approx(math.sqrt(square), abs=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@given(gamma=ANY)
def test_the_witness_attains_the_value(kernel, gamma):
    value = kernel_ce(gamma, kernel=kernel)
    witness = kernel_ce_witness(gamma, kernel=kernel)
    if value == 0.0 or value > 1e-7:  # below, the plain double sum of the check has too few digits
        assert witness.value(gamma) == pytest.approx(value, abs=1e-9)
    assert kernel in str(witness)


@pytest.mark.parametrize("degree", [0, 1, 2, 7, 60])
@given(gamma=ANY, shares=st.lists(st.floats(0.1, 0.9), min_size=1, max_size=5))
def test_the_polynomial_kernel_by_the_double_sum(degree, gamma, shares):
    value = kernel_ce(gamma, kernel="polynomial", degree=degree)
    z, r = 2.0 * gamma.predictions - 1.0, gamma.residuals
    square = float(r @ ((1.0 + np.outer(z, z)) / 2.0) ** degree @ r)
    assert value**2 == pytest.approx(square, abs=2e-16 * (degree + 10))
    witness = kernel_ce_witness(gamma, kernel="polynomial", degree=degree)
    assert witness.value(gamma) == pytest.approx(value, abs=1e-12)
    assert float(r @ witness.weights(gamma.predictions)) == pytest.approx(value, abs=1e-12)
    assert f"polynomial kernel of degree {degree}" in str(witness)
    options = {"kernel": "polynomial", "degree": degree}
    assert kernel_ce(split(gamma, shares), **options) == pytest.approx(value, abs=1e-12)
    assert kernel_ce(gamma.flip(), **options) == pytest.approx(value, abs=1e-12)
    assert kernel_norm(gamma, r[None, :], **options)[0] == pytest.approx(value, abs=1e-15)
    if degree == 0:
        assert value == pytest.approx(abs(r.sum()), abs=1e-15)


def test_a_polynomial_sees_its_moments_only():
    """Residuals that are a third difference are orthogonal to all polynomials of degree 2, and not to those of 3."""
    v = np.array([0.2, 0.4, 0.6, 0.8])
    gamma = JointDistribution.from_levels(v, [1] * 4, v + 0.01 * np.array([1, -3, 3, -1]))
    assert kernel_ce(gamma, kernel="polynomial", degree=2) < 1e-17
    assert kernel_ce(gamma, kernel="polynomial", degree=3) > 1e-5
    # Of the highest degree, predictions that are not equal hardly see each other.
    assert kernel_ce(gamma, kernel="polynomial", degree=1000) < kernel_ce(
        gamma, kernel="polynomial", degree=60
    )
    ends = JointDistribution.from_levels([0.0, 1.0], [1, 1], [0.5, 0.5])
    assert kernel_ce(ends, kernel="polynomial", degree=1000) == pytest.approx(math.sqrt(2) / 4, abs=1e-15)


@pytest.mark.parametrize("kernel", KERNELS)
@settings(deadline=None)
@given(gamma=ANY, shares=st.lists(st.floats(0.1, 0.9), min_size=1, max_size=5))
def test_invariances(kernel, gamma, shares):
    value = kernel_ce(gamma, kernel=kernel)
    assert kernel_ce(split(gamma, shares), kernel=kernel) == pytest.approx(value, abs=1e-12)
    assert kernel_ce(gamma.flip(), kernel=kernel) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", SCALES)
@settings(deadline=None)
@given(gamma=ANY)
def test_calibrated_is_exactly_zero(kernel, scale, gamma):
    calibrated = JointDistribution.from_levels(gamma.predictions, gamma.mass, gamma.predictions)
    assert kernel_ce(calibrated, kernel=kernel, scale=scale) == 0.0


@pytest.mark.parametrize("kernel", KERNELS)
@settings(deadline=None)
@given(v=st.floats(0.0, 1.0), q=st.floats(0.0, 1.0))
def test_one_level_is_its_residual(kernel, v, q):
    gamma = JointDistribution.from_levels([v], [1.0], [q])
    assert kernel_ce(gamma, kernel=kernel) == pytest.approx(abs(q - v), abs=1e-15)


@settings(deadline=None)
@given(gamma=ANY)
def test_laplace_is_at_least_a_third_of_smooth(gamma):
    assert smooth_ce(gamma) / 3.0 <= kernel_ce(gamma) + 1e-12
    assert kernel_ce(gamma) <= float(np.abs(gamma.residuals).sum()) + 1e-12


@pytest.mark.parametrize("kernel", KERNELS)
def test_extreme_scales(kernel):
    """Far below all gaps the levels do not meet (2-norm of the residuals); far above they are one."""
    gamma = many_levels(0, 50, 0.2)
    for scale in (5e-324, 1e-200, 1e-12):
        value = kernel_ce(gamma, kernel=kernel, scale=scale)
        assert value == pytest.approx(float(np.linalg.norm(gamma.residuals)), rel=1e-12)
    for scale in (1e13, 1e200, 1e308):
        value = kernel_ce(gamma, kernel=kernel, scale=scale)
        assert value == pytest.approx(abs(float(gamma.residuals.sum())), rel=1e-9)


def test_neighbours_one_ulp_apart():
    """Neighbours 1 ulp apart act as one level: a sum of squares does not go below 0."""
    v = [0.3, float(np.nextafter(0.3, 1.0))]
    gamma = JointDistribution.from_levels(v, [1.0, 1.0], [0.5, v[1] - (0.5 - v[0])])
    assert 0.0 <= kernel_ce(gamma) < 1e-7


def test_gaussian_is_not_sound():
    """Theorem 8.6's phenomenon: residuals ± alternating as binomial coefficients kill the first moments.

    On m + 1 even levels in [1/4, 3/4] the residuals (−1)^i C(m, i) / 2^m · c are orthogonal to the
    polynomials of degree < m, so the Gaussian error falls like (1/4)^m / sqrt(m!) while smCE falls like 1/m.
    """
    ratios = []
    for m in (2, 6, 10, 14):
        binomial = np.array([math.comb(m, i) for i in range(m + 1)], dtype=float)
        v = 0.25 + 0.5 * np.arange(m + 1) / m
        q = v + 0.25 * (-1.0) ** np.arange(m + 1)
        gamma = JointDistribution.from_levels(v, binomial, q)
        assert smooth_ce(gamma) >= 0.9 * 0.25 * 0.25 / m
        assert kernel_ce(gamma) >= smooth_ce(gamma) / 3.0
        ratios.append(kernel_ce(gamma, kernel="gaussian") / smooth_ce(gamma))
    assert ratios[-1] < 1e-9 < 1e-2 < ratios[0]


def test_a_witness_of_larger_norm_is_refused():
    gamma = JointDistribution.from_samples([0.4, 0.6, 0.9], [1, 0, 1])
    witness = kernel_ce_witness(gamma)
    with pytest.raises(InvalidData, match="squared norm"):
        replace(witness, coefficients=1.1 * witness.coefficients).value(gamma)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "cauchy"},
        {"scale": 0.0},
        {"scale": math.nan},
        {"scale": "1"},
        {"degree": -1},
        {"degree": 1.5},
    ],
)
def test_bad_options(options):
    gamma = JointDistribution.from_samples([0.4], [1])
    with pytest.raises(InvalidParameter, match="expected"):
        kernel_ce(gamma, **options)
