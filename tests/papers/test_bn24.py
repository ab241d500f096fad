"""Błasiok and Nakkiran 2024: SmoothECE beside the distance from calibration and beside the diagram that shows it.

With c = √(2/π), the mean size of a normal number: reflection only shortens a way. The constants of the theorems are
derived here in one line each, since copies of the paper have lost them. They are not larger than the paper's.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import distance_lower, smooth_ce, smooth_ece, smooth_ece_at
from tests.experiments import script
from tests.strategies import ANY

fair_coins = script("consistency").fair_coins

C = math.sqrt(2.0 / math.pi)
SIGMA = st.floats(0.005, 1.0)
ROUNDING = 1e-7


@given(gamma=ANY, sigma=SIGMA)
def test_lemma_8(gamma, sigma):
    """E|v − (v + σZ)| = cσ is all that smoothing changes of a 1-Lipschitz function: smCE ≤ smECE_σ + cσ."""
    assert smooth_ce(gamma) <= smooth_ece_at(gamma, sigma=sigma) + C * sigma + ROUNDING
    assert distance_lower(gamma).lower <= 2.0 * (smooth_ece_at(gamma, sigma=sigma) + C * sigma) + ROUNDING


@given(gamma=ANY, sigma=SIGMA)
def test_lemma_9(gamma, sigma):
    """Kernels at u and v differ by c|u − v|/σ in total: smECE_σ ≤ (1 + c/σ) · lower distance."""
    assert smooth_ece_at(gamma, sigma=sigma) <= (1.0 + C / sigma) * distance_lower(gamma).upper + ROUNDING


@given(gamma=ANY)
def test_theorem_7(gamma):
    """½·lower distance ≤ smECE ≤ 2·√(lower distance), as printed. The lemmas at σ* = smECE give the right side, and the
    left with (1 + c)·smECE.
    """
    value, lower = smooth_ece(gamma), distance_lower(gamma)
    assert 0.5 * lower.lower <= value + ROUNDING
    assert value <= 2.0 * math.sqrt(lower.upper) + ROUNDING


def test_the_root_in_theorem_7_is_needed():
    # Fair coins at ½ ± a: the lower distance is of order a², SmoothECE of order a.
    a = 1e-3
    gamma = fair_coins(a)
    assert smooth_ece(gamma) > 100 * distance_lower(gamma).upper


def kernel(v, t, sigma):
    """Reflected Gaussian of centre v at the points t, image after image."""
    images = range(-math.ceil(4.5 * sigma) - 1, math.ceil(4.5 * sigma) + 2)
    places = [2 * k + side * v for k in images for side in (1, -1)]
    density = sum(np.exp(-0.5 * ((t - place) / sigma) ** 2) for place in places)
    return density / (sigma * math.sqrt(2 * math.pi))


def error_of_the_diagram(gamma, sigma, points=20_000):
    """Eq. (8): the ECE that a reader of the smoothed diagram sees, ∫ |ŷ(t) − t| δ(t) dt."""
    t = (np.arange(points) + 0.5) / points
    smoothed = sum(
        w * (q - t) * kernel(v, t, sigma)
        for v, w, q in zip(gamma.predictions, gamma.mass, gamma.means, strict=True)
    )
    return float(np.abs(smoothed).mean())


@given(gamma=ANY, sigma=st.floats(0.02, 1.0))
def test_lemma_13(gamma, sigma):
    seen = error_of_the_diagram(gamma, sigma)
    assert abs(seen - smooth_ece_at(gamma, sigma=sigma)) <= C * sigma + 1e-5


def gained(gamma):
    """§1.2: the squared loss that η gains, from v to κ(v) = v + η(v) in [0, 1], the most over 1-Lipschitz η."""
    v, mass = gamma.predictions, gamma.mass
    bias = gamma.means - v
    apart = np.diff(v)
    found = minimize(
        lambda eta: mass @ (eta**2 - 2 * eta * bias), np.zeros(len(v)), jac=lambda eta: 2 * mass * (eta - bias),
        bounds=list(zip(-v, 1 - v, strict=True)), method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
        constraints=[
            {"type": "ineq", "fun": lambda eta: apart - np.diff(eta)},
            {"type": "ineq", "fun": lambda eta: apart + np.diff(eta)},
        ] if len(v) > 1 else (),
    )  # fmt: skip
    assert found.success, found.message
    return -float(found.fun)


@given(gamma=ANY)
def test_section_1_2_what_post_processing_gains(gamma):
    """smCE² ≤ gain ≤ 2·smCE. Left: the best weight times smCE, cut to [0, 1], gains at least 2·smCE² − smCE². Right: η
    is a 1-Lipschitz weight in [−1, 1], and its square only costs.
    """
    value, gap = smooth_ce(gamma), gained(gamma)
    assert value**2 - 1e-6 <= gap <= 2.0 * value + 1e-6


def test_section_1_2_both_sides_are_needed():
    """Of a constant forecast that is a too low the gain is a², and smCE is a. Where sure forecasts are always wrong at
    both ends, the gain is ¾ of 2·smCE.
    """
    low = JointDistribution.from_levels([0.25], [1.0], [0.5])
    assert gained(low) == pytest.approx(smooth_ce(low) ** 2, rel=1e-6)
    wrong = JointDistribution.from_levels([0.0, 1.0], [0.5, 0.5], [1.0, 0.0])
    assert gained(wrong) == pytest.approx(0.75, rel=1e-6)
    assert smooth_ce(wrong) == pytest.approx(0.5, rel=1e-9)
