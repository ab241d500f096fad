"""SmoothECE: against quadrature of the reflected Gaussians, its error bound, and relplot."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import explain
from onlinecal.measures.smooth_ece import smooth_ece, smooth_ece_at
from onlinecal.measures.smooth_ece_line import Line, absolute_integral
from tests.gammas_metric import ANY
from tests.oracles import smooth_ece as oracle

ACCURACY = {"identity": 1.1e-6, "logit": 1.1e-5}
BOTH = pytest.mark.parametrize("transform", ACCURACY)
SIGMAS = {"identity": [0.01, 0.03, 0.1, 0.4, 1.0, 3.0], "logit": [0.1, 0.4, 1.0, 3.0]}


@BOTH
@given(gamma=ANY, data=st.data())
def test_equals_the_quadrature(transform, gamma, data):
    """The midpoint rule of the oracle errs by 6e-7, the mesh by 1e-7."""
    sigma = data.draw(st.sampled_from(SIGMAS[transform]))
    value = smooth_ece_at(gamma, sigma=sigma, transform=transform)
    assert value == pytest.approx(oracle.smooth_ece_at(gamma, sigma, transform), abs=1e-6)


@BOTH
@given(gamma=ANY)
def test_the_fixed_point(transform, gamma):
    """smECE_σ does not increase with σ, so |smECE_σ − σ| bounds the distance from the fixed point."""
    value = smooth_ece(gamma, transform=transform)
    if value >= {"identity": 0.01, "logit": 0.05}[transform]:
        allowed = ACCURACY[transform] + 1e-6
        assert oracle.smooth_ece_at(gamma, value, transform) == pytest.approx(value, abs=allowed)


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


@BOTH
@given(gamma=ANY, sigma=st.floats(0.02, 1.0), ratio=st.floats(0.02, 0.3))
def test_the_mesh_error_bound_holds(transform, gamma, sigma, ratio):
    line = Line(gamma, transform, sigma)
    coarse = min(max(math.ceil(line.length / (ratio * sigma)), 2), 200_000)
    fine = 8 * coarse
    allowed = line.bound(sigma, coarse) + line.bound(sigma, fine) + 1e-12
    assert abs(line.error(sigma, coarse) - line.error(sigma, fine)) <= allowed


def two_levels(apart, size):
    """σ = 2 size · erf(apart / (2√2 σ)): two Gaussians of opposite sign, far from the ends, and what they leave."""
    low, high = 0.0, 2.0 * size
    for _ in range(200):
        sigma = 0.5 * (low + high)
        if sigma == 0.0 or 2.0 * size * math.erf(apart / (2.0 * math.sqrt(2.0) * sigma)) > sigma:
            low = sigma
        else:
            high = sigma
    return low


@BOTH
@pytest.mark.parametrize("gap", [1e-14, 1e-12, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
def test_two_levels_that_hardly_differ(transform, gap):
    """Outcomes 1 and 0 at two levels beside 1/2: the value, and a proof that is as close."""
    v = np.array([0.5 - gap / 2, 0.5 + gap / 2])
    gamma = JointDistribution.from_levels(v, [1, 1], [1, 0])
    place = v if transform == "identity" else np.log(v) - np.log1p(-v)
    truth = two_levels(place[1] - place[0], gamma.residuals[0])
    assert smooth_ece(gamma, transform=transform) == pytest.approx(truth, abs=ACCURACY[transform])
    why = explain(gamma, "smooth_ece", transform=transform)
    assert why.within <= ACCURACY[transform]
    proved = why.verify()
    assert proved.lower - 1e-12 <= truth <= proved.upper + 1e-12
    assert proved.width <= ACCURACY[transform] + 1e-6


@st.composite
def few_clusters(draw, most):
    """Up to `most` levels around up to three centres, the ends among them, 1e-16 to 0.1 apart."""
    centres = draw(st.lists(st.sampled_from([0.0, 0.01, 0.3, 0.5, 0.77, 1.0]), min_size=1, max_size=3))
    gap = 10.0 ** draw(st.integers(-16, -1))
    steps = draw(st.lists(st.integers(-30, 30), min_size=2, max_size=most, unique=True))
    v = np.unique([min(max(centres[i % len(centres)] + gap * n, 0.0), 1.0) for i, n in enumerate(steps)])
    alternate = np.resize(draw(st.sampled_from([[0.0, 1.0], [1.0, 0.0, 0.5], [0.3]])), len(v))
    near = np.clip(v + draw(st.sampled_from([1e-3, 1e-6])) * (alternate - 0.5), 0.0, 1.0)
    return JointDistribution.from_levels(v, np.ones(len(v)), draw(st.sampled_from([alternate, near])))


@BOTH
@given(data=st.data())
def test_few_levels_are_resolved_at_every_scale(transform, data):
    gamma = data.draw(few_clusters(50 if transform == "identity" else 100))
    why = explain(gamma, "smooth_ece", transform=transform)
    assert why.within <= ACCURACY[transform]
    proved = why.verify()
    assert proved.lower - why.within <= why.value <= proved.upper + why.within
    assert proved.width <= ACCURACY[transform] + 2e-6


@BOTH
@given(gamma=few_clusters(30), times=st.sampled_from([1.0, 2.0, 10.0, 1e3]), mesh=st.integers(5, 16))
def test_what_a_coarse_mesh_tells_is_true(transform, gamma, times, mesh):
    """Also where it resolves no σ that the line is for: then it tells nothing."""
    value, within = smooth_ece(gamma, transform=transform), ACCURACY[transform]
    line = Line(gamma, transform, min(times * (value + within), 1.0))
    for sigma in (0.1 * value, value):
        low, high = line.around(sigma, 2**mesh)
        assert low - within <= value <= high + within
    if line.length < 1.0:
        assert line.around(2.0 * line.width, 2**mesh) == (line.least, line.most)


@BOTH
@pytest.mark.parametrize("gap", [2.0**-53, 1e-13, 1e-9, 1e-6])
def test_many_levels_that_hardly_differ(transform, gap):
    """Up to 1e-4 in the prediction; along the log odds as well, where they are as close."""
    v = 0.5 + gap * np.arange(2000)
    gamma = JointDistribution.from_levels(v, np.ones(2000), np.arange(2000) % 2)
    why = explain(gamma, "smooth_ece", transform=transform)
    assert why.within <= 1e-4
    proved = why.verify()
    assert proved.lower - why.within <= why.value <= proved.upper + why.within
    assert proved.width <= 1e-4


def test_many_levels_far_apart_in_log_odds():
    """The error that is stated is that of the value: a stated 1e-4 was once exceeded here, and a bracket 0.03 wide."""
    v = np.concatenate(([0.0], np.linspace(0.4, 0.6, 5000), [1.0]))
    gamma = JointDistribution.from_levels(v, np.ones(5002), np.clip(v * np.resize([1.5, 0.5], 5002), 0, 1))
    why = explain(gamma, "smooth_ece", transform="logit")
    proved = why.verify()
    assert proved.width <= 1.1e-5
    assert proved.lower - why.within <= why.value <= proved.upper + why.within


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


def test_the_integral_is_exact_between_mesh_points():
    """∫ |1 − 3x| over [0, 1] is 5/6: a sign change inside a step counts on both sides."""
    assert absolute_integral(np.array([1.0, -2.0])) == pytest.approx(5.0 / 6.0, abs=1e-15)
    assert absolute_integral(np.array([1.0, 0.0, -2.0, -1.0])) == pytest.approx(3.0, abs=1e-15)
