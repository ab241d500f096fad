"""SmoothECE: its error bound holds, few and many levels are resolved, and another package agrees."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import (
    ece,
    explain,
    smooth_ece,
    smooth_ece_at,
)
from onlinecal.measures.smooth_ece import scale_means, scales
from onlinecal.measures.smooth_ece_line import Line
from tests.strategies import ANY

G = JointDistribution
ACCURACY = {"identity": 1.1e-6, "logit": 1.1e-5}
BOTH = pytest.mark.parametrize("transform", ACCURACY)


@given(gamma=ANY, pair=st.tuples(st.floats(1e-3, 2.0), st.floats(1e-3, 2.0)))
def test_between_bias_and_ece_and_not_increasing(gamma, pair):
    bias, most = abs(float(gamma.residuals.sum())), ece(gamma)
    for transform in ("identity", "logit"):
        more, less = (smooth_ece_at(gamma, sigma=s, transform=transform) for s in sorted(pair))
        assert less <= more + 2.1e-7
        assert bias - 1.1e-7 <= less
        assert more <= most + 1.1e-7
    assert bias - 1e-9 <= smooth_ece(gamma) <= most + 1e-9


@BOTH
@given(gamma=ANY, sigma=st.floats(0.02, 1.0), ratio=st.floats(0.02, 0.3))
def test_the_mesh_error_bound_holds(transform, gamma, sigma, ratio):
    line = Line(gamma, transform, sigma)
    coarse = min(max(math.ceil(line.length / (ratio * sigma)), 2), 200_000)
    fine = 8 * coarse
    allowed = line.bound(sigma, coarse) + line.bound(sigma, fine) + 1e-12
    assert abs(line.error(sigma, coarse) - line.error(sigma, fine)) <= allowed


@pytest.mark.parametrize("sigma", [1e-4, 4e-4, 0.05, 10.0])
def test_the_error_stated_is_that_of_the_formula(sigma):
    """0.242 (h/σ)² Σ|r|, on a mesh that makes it 1e-7 and has two steps to a σ, up to 2^20."""
    gamma = G.from_levels(np.linspace(0.0, 1.0, 21), np.ones(21), np.full(21, 0.5))
    size = np.abs(gamma.residuals).sum()
    line = Line(gamma, "identity", sigma)
    least = max(2.0, math.sqrt(0.242 * size / 1e-7)) / sigma * line.length
    mesh = line.mesh(sigma, 1e-7)
    if least >= 2**20:
        assert mesh == 2**20
    else:
        assert max(least, 64) <= mesh <= 1.2 * max(least, 64) + 1  # FFTs of some lengths are fast
    error = 0.242 * (line.length / mesh / sigma) ** 2 * size
    assert (
        explain(gamma, "smooth_ece_at", sigma=sigma).within == line.bound(sigma, mesh) == pytest.approx(error)
    )
    steps = [math.nextafter(2.0, 0.0), 2.0]
    assert [line.resolves(each / 64, 64) for each in np.multiply(steps, line.length)] == [False, True]


def test_lines_are_shortened_to_18_standard_deviations_and_half_of_that_at_the_ends():
    gamma = G.from_levels([0.25, 0.2505, 0.75], [1, 1, 1], [0.0, 1.0, 0.5])
    for width, length in ((1e-3, 2 * 9e-3 + 5e-4 + 18e-3), (1e-5, 2 * 9e-5 + 2 * 18e-5), (0.25, 1.0)):
        assert Line(gamma, "identity", width).length == pytest.approx(length, rel=1e-12)
        assert Line(gamma, "identity", 0.25).shortened(width) == pytest.approx(length, rel=1e-12)
        ends, log_odds = 2 * 9 * width, np.diff(np.log([1 / 3, 0.2505 / 0.7495, 3.0]))
        of_logit = ends + np.minimum(log_odds, 18 * width).sum()
        assert Line(gamma, "logit", width).length == pytest.approx(of_logit, rel=1e-9)


def test_scales_fall_by_a_third_of_two_from_1_to_half_a_standard_error():
    for samples in (1, 2, 100, 10**4, 10**9):
        found = scales(samples)
        last = max(0.5 / math.sqrt(samples), 2.0**-13)
        assert found[0] == 1.0
        assert found[1:] == pytest.approx(found[:-1] / 2 ** (1 / 3))
        assert found[-1] <= last * (1 + 1e-12) < found[-1] * 2 ** (1 / 3) * (1 + 1e-9)
        assert scale_means(samples) == pytest.approx(np.sqrt(1 + 1 / (math.sqrt(math.pi) * found)))
        assert scale_means(samples, sigma=0.1) == pytest.approx([math.sqrt(1 + 10 / math.sqrt(math.pi))])


def proved(gamma, transform, within, width):
    """The value is as near to its proof as it says."""
    why = explain(gamma, "smooth_ece", transform=transform)
    assert why.within <= within
    found = why.verify()
    assert found.lower - why.within <= why.value <= found.upper + why.within
    assert found.width <= width


@st.composite
def few_clusters(draw, most):
    """Up to `most` levels around up to three centres, the ends among them, 1e-16 to 0.1 apart."""
    centres = draw(st.lists(st.sampled_from([0.0, 0.01, 0.3, 0.5, 0.77, 1.0]), min_size=1, max_size=3))
    gap = 10.0 ** draw(st.integers(-16, -1))
    steps = draw(st.lists(st.integers(-30, 30), min_size=2, max_size=most, unique=True))
    v = np.unique([min(max(centres[i % len(centres)] + gap * n, 0.0), 1.0) for i, n in enumerate(steps)])
    alternate = np.resize(draw(st.sampled_from([[0.0, 1.0], [1.0, 0.0, 0.5], [0.3]])), len(v))
    near = np.clip(v + draw(st.sampled_from([1e-3, 1e-6])) * (alternate - 0.5), 0.0, 1.0)
    return G.from_levels(v, np.ones(len(v)), draw(st.sampled_from([alternate, near])))


@BOTH
@given(gamma=few_clusters(50), times=st.sampled_from([1.0, 2.0, 10.0, 1e3]), mesh=st.integers(5, 16))
def test_few_levels_are_resolved_and_what_a_coarse_mesh_tells_is_true(transform, gamma, times, mesh):
    """Also where it resolves no σ that the line is for: then it tells nothing."""
    within = ACCURACY[transform]
    proved(gamma, transform, within, within + 2e-6)
    value = smooth_ece(gamma, transform=transform)
    line = Line(gamma, transform, min(times * (value + within), 1.0))
    for sigma in (0.1 * value, value):
        low, high = line.around(sigma, 2**mesh)
        assert low - within <= value <= high + within
    if line.length < 1.0:
        assert line.around(2.0 * line.width, 2**mesh) == (line.least, line.most)


@BOTH
@pytest.mark.parametrize("sigma", [0.3, 0.7, 1.2])
def test_signs_change_at_wide_scales_where_all_errors_cancel(transform, sigma):
    gamma = G.from_levels([0.01, 0.99], [1, 1], [1.0, 0.0])
    why = explain(gamma, "smooth_ece_at", sigma=sigma, transform=transform)
    assert why.verify().width <= 2e-7
    assert len(why.witness.changes) > 0


@BOTH
@pytest.mark.parametrize("gap", [2.0**-53, 1e-13, 1e-9, 1e-6])
def test_many_levels_that_hardly_differ(transform, gap):
    """Up to 1e-4 in the prediction; along the log odds as well, where they are as close."""
    v = 0.5 + gap * np.arange(2000)
    proved(G.from_levels(v, np.ones(2000), np.arange(2000) % 2), transform, 1e-4, 1e-4)


@pytest.mark.parametrize("bias", [0.0, 0.05, 0.1])
def test_agrees_with_relplot(bias, seed):
    """relplot halves [0, 1] ten times, to 1/1024, and stops at 0.001; its kernel is cut at ±1/2.

    Where σ is below 0.1 the cut does not matter, and 1/1024 + 0.001 is what is left.
    """
    relplot = pytest.importorskip("relplot")
    generator = np.random.default_rng(seed)
    p = generator.random(4000)
    y = (generator.random(4000) < p + bias * np.sin(6.0 * p)).astype(float)
    value = smooth_ece(G.from_samples(p, y))
    assert value < 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert relplot.smECE(p, y) == pytest.approx(value, abs=1.0 / 1024.0 + 0.001)
