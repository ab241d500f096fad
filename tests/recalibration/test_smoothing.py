"""The random post-processing of SmoothECE: calibrated on its samples, and not far from where it came from."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.recalibration.smoothing import smooth_recalibration


def density(v, t, sigma):
    """Of the reflected step from v, by its images."""
    near = range(-4 - math.ceil(4 * sigma), 5 + math.ceil(4 * sigma))
    return sum(norm.pdf(t, 2 * k + v, sigma) + norm.pdf(t, 2 * k - v, sigma) for k in near)


def joint(p, y, sigma, points=4001):
    """(levels, points) joint masses of level and κ₁, midpoints; and Γ."""
    gamma = oc.JointDistribution.from_samples(p, y)
    t = (np.arange(points) + 0.5) / points
    masses = np.array([m * density(v, t, sigma) for v, m in zip(gamma.predictions, gamma.mass, strict=True)])
    return gamma, t, masses / points


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.1, 0.35, 0.5, 0.8, 1.0]), st.booleans()), min_size=2, max_size=12
    ),
    st.sampled_from([None, 0.02, 0.3, 2.0]),
)
def test_it_is_calibrated_and_near(samples, sigma):
    p, y = [one for one, _ in samples], [int(happened) for _, happened in samples]
    fitted = smooth_recalibration(p, y, sigma=sigma)
    if fitted.sigma < 0.005:  # calibrated as it is: nothing to smooth, or finer than the mesh of this test
        return
    gamma, t, masses = joint(p, y, fitted.sigma)
    means = gamma.predictions + gamma.residuals / gamma.mass
    kappa = np.interp(t, fitted.points, fitted.values)
    # E[(y − κ) 1{κ₁ in a cell}] = 0 for 100 cells, by quadrature.
    residuals = (masses * (means[:, None] - kappa[None, :])).sum(axis=0)
    assert np.abs(residuals.reshape(-1, 1).cumsum()).max() < 5e-4
    mean = masses @ kappa / gamma.mass
    assert np.abs(fitted.mean(gamma.predictions) - mean).max() < 5e-4
    moved = (masses * np.abs(kappa[None, :] - gamma.predictions[:, None])).sum()
    if sigma is None:
        assert fitted.sigma == pytest.approx(oc.measures.smooth_ece(gamma))
        assert moved <= fitted.bound + 5e-4
        assert fitted.bound == pytest.approx(2.5958 * fitted.sigma, rel=1e-4)  # 1 + 2√(2/π)


@pytest.mark.parametrize(("sigma", "points"), [(1e-4, 1_000_001), (0.02, 5001), (0.05, 2001), (10.0, 2001)])
def test_a_width_has_a_hundred_points_and_the_map_has_2001_at_least(sigma, points):
    fitted = smooth_recalibration([0.2, 0.7], [0, 1], sigma=sigma)
    assert (fitted.sigma, len(fitted.points), len(fitted.values)) == (sigma, points, points)
    assert (fitted.points[0], fitted.points[-1]) == (0.0, 1.0)


def test_the_width_of_forecasts_that_are_hardly_off_is_the_least():
    gamma = oc.JointDistribution.from_levels([0.5], [1.0], [0.50001])
    assert 0.0 < oc.measures.smooth_ece(gamma) < smooth_recalibration(gamma).sigma == 1e-4


@pytest.mark.parametrize("sigma", [0.99e-4, 10.01])
def test_other_widths_are_refused(sigma):
    with pytest.raises(InvalidParameter, match="sigma"):
        smooth_recalibration([0.2, 0.7], [0, 1], sigma=sigma)


def test_without_the_second_step_it_is_not_calibrated():
    # The control of the test above: noise alone calibrates nothing.
    p, y = [0.9] * 10, [0] * 10
    fitted = smooth_recalibration(p, y, sigma=0.05)
    gamma, t, masses = joint(p, y, 0.05)
    residuals = (masses * (0.0 - t[None, :])).sum(axis=0)
    assert abs(residuals.sum()) > 0.5
    assert fitted.values.max() < 1e-12
    assert gamma.weight == 10


def test_draws_are_of_that_law(seed):
    rng = np.random.default_rng(seed)
    p = rng.random(500)
    y = rng.random(500) < p**2
    fitted = smooth_recalibration(p, y)
    draws = np.concatenate([fitted(p, seed=100 * seed + s) for s in range(100)])
    means = fitted.mean(p)
    # 50,000 draws in [0, 1]: by Hoeffding the mean is within 0.0145 of its expectation, but for 1e-9.
    assert abs(draws.mean() - means.mean()) < 0.0145
    # Calibrated on its samples: the mean outcome is the mean forecast.
    assert means.mean() == pytest.approx(y.mean(), abs=1e-3)
    assert (fitted(p, seed=3) == fitted(p, seed=3)).all()
    assert (fitted(p, seed=3) != fitted(p, seed=4)).any()
    assert np.abs(np.concatenate([fitted(p, seed=s) - p for s in range(100)])).mean() <= fitted.bound


def test_where_all_is_well_nothing_moves_and_far_from_all_levels_it_is_the_nearest():
    fitted = smooth_recalibration([0.5, 0.5, 0.0], [0, 1, 0])
    assert fitted.sigma == fitted.bound == 0.0
    for said in (fitted([0.1, 0.7]), fitted.mean([0.1, 0.7])):
        assert said.tolist() == [0.1, 0.7]
    fitted = smooth_recalibration([0.1, 0.1, 0.9, 0.9], [0, 1, 1, 1], sigma=0.001)
    said = np.interp([0.0, 0.3, 0.49, 0.51, 0.6, 1.0], fitted.points, fitted.values)
    assert said.tolist() == [0.5, 0.5, 0.5, 1.0, 1.0, 1.0]
