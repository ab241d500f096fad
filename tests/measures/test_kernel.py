"""Kernel calibration error: against the double sum, and its bounds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.measures.kernel import kernel_ce, kernel_ce_witness, kernel_norm
from onlinecal.measures.smooth_ce import smooth_ce
from tests.gammas_metric import ANY, many_levels, split

KERNELS = ["laplace", "gaussian"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", [0.2, 0.0225, 0.0223, 30.0])  # on either side of the switch of the Gaussian
@given(gamma=ANY)
def test_equals_the_double_sum(kernel, scale, gamma):
    v, r = gamma.predictions, gamma.residuals
    apart = np.abs(v[:, None] - v) / scale
    square = float(r @ np.exp(-apart if kernel == "laplace" else -(apart**2)) @ r)
    assert kernel_ce(gamma, kernel=kernel, scale=scale) ** 2 == pytest.approx(square, abs=1e-15, rel=1e-12)


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
