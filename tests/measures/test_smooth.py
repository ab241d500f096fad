"""Smooth, kernel and two-bin errors and SmoothECE: programs, double sums, quadrature, bounds, relplot."""

import math
import warnings
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import (
    atb,
    earthmover_distance,
    ece,
    explain,
    kernel_ce,
    smooth_ce,
    smooth_ece,
    smooth_ece_at,
)
from onlinecal.measures.kernel import kernel_ce_witness, kernel_norm
from onlinecal.measures.smooth_ece_line import Line, absolute_integrals
from tests.oracles import measures as oracle
from tests.strategies import ANY, many_levels

G = JointDistribution
ACCURACY = {"identity": 1.1e-6, "logit": 1.1e-5}
BOTH = pytest.mark.parametrize("transform", ACCURACY)
KERNELS = ["laplace", "gaussian"]


def cubic(v):
    return v + v**3


@pytest.mark.parametrize("metric", ["identity", "logit", cubic])
@given(gamma=ANY)
def test_equals_the_linear_program(metric, gamma):
    assert smooth_ce(gamma, metric=metric) == pytest.approx(oracle.smooth_ce(gamma, metric), abs=1e-9)


@given(gamma=ANY)
def test_given_metrics_that_have_names(gamma):
    with np.errstate(divide="ignore"):
        odds = smooth_ce(gamma, metric=lambda v: np.log(v) - np.log1p(-v))
    assert odds == pytest.approx(smooth_ce(gamma, metric="logit"), abs=1e-9)
    assert odds >= smooth_ce(gamma) - 1e-9  # |logit u − logit v| ≥ |u − v|: more weights are allowed
    # The dual of |u − v| is another one; no two levels near each other, and all in one place.
    bias = abs(gamma.residuals.sum())
    for times, value in ((1.0, smooth_ce(gamma)), (1e300, ece(gamma)), (1e-300, bias)):
        assert smooth_ce(gamma, metric=lambda v, c=times: c * v) == pytest.approx(value, abs=1e-13)


def test_a_rounded_metric_may_exchange_neighbours():
    """As `np.cbrt` does."""
    gamma = G.from_levels([np.nextafter(0.5, 0.0), 0.5], [1, 1], [0.2, 0.7])
    assert smooth_ce(gamma, metric=lambda v: v - 1e-16 * (v == 0.5)) == pytest.approx(smooth_ce(gamma))


@given(gamma=ANY)
def test_the_earth_movers_distance_is_that_of_the_coupling_program(gamma):
    value = earthmover_distance(gamma)
    assert value == pytest.approx(oracle.earthmover_distance(gamma), abs=1e-9)
    assert value == pytest.approx(smooth_ce(gamma, metric=lambda v: 2 * v), abs=1e-13)
    # Lemma 3.4.
    assert smooth_ce(gamma) <= value + 1e-15 <= 2 * smooth_ce(gamma) + 2e-15
    assert value <= ece(gamma) + 1e-15


def test_lemma_3_4_is_tight_on_both_sides():
    one, two = G.from_levels([0.3], [1], [0.5]), G.from_samples([0.4, 0.6], [1, 0])
    assert earthmover_distance(one) == smooth_ce(one)
    assert earthmover_distance(two) == pytest.approx(2 * smooth_ce(two), abs=1e-15)


# ---------------------------------------------------------------- kernels


#: K(u, v) by its options; on either side of the switch of the Gaussian
KERNEL = [
    ({"kernel": kind, "scale": scale}, lambda u, v, p=p, s=scale: np.exp(-((np.abs(u - v) / s) ** p)))
    for kind, p in (("laplace", 1), ("gaussian", 2))
    for scale in (0.2, 0.0225, 0.0223, 30.0)
] + [
    (
        {"kernel": "polynomial", "degree": d},
        lambda u, v, d=d: ((1.0 + (2.0 * u - 1.0) * (2.0 * v - 1.0)) / 2.0) ** d,
    )
    for d in (0, 1, 2, 7, 60, 1000)
]


@pytest.mark.parametrize(("options", "kernel"), KERNEL, ids=lambda x: str(x) if isinstance(x, dict) else "")
@given(gamma=ANY)
def test_equals_the_double_sum(options, kernel, gamma):
    v, r, value = gamma.predictions, gamma.residuals, kernel_ce(gamma, **options)
    rounding = 2e-16 * (options.get("degree", 0) + 10)
    assert value**2 == pytest.approx(float(r @ kernel(v[:, None], v) @ r), abs=rounding, rel=1e-12)
    witness = kernel_ce_witness(gamma, **options)
    within = 1e-12 if "degree" in options else 1e-7
    assert float(r @ witness.weights(v)) == pytest.approx(value, abs=within)
    assert kernel_norm(gamma, r[None, :], **options)[0] == pytest.approx(value, abs=within)


@pytest.mark.parametrize("kernel", KERNELS)
def test_extreme_scales(kernel):
    """Far below all gaps the levels do not meet (2-norm of the residuals); far above they are one."""
    gamma = many_levels(0, 50, 0.2)
    apart, one = float(np.linalg.norm(gamma.residuals)), abs(float(gamma.residuals.sum()))
    for scale in (5e-324, 1e-200, 1e-12, 1e13, 1e200, 1e308):
        value = kernel_ce(gamma, kernel=kernel, scale=scale)
        assert value == pytest.approx(apart if scale < 1.0 else one, rel=1e-9)


def test_gaussian_is_not_sound():
    """Theorem 8.6's phenomenon: residuals ± alternating as binomial coefficients kill the first moments.

    On m + 1 even levels in [1/4, 3/4] the residuals (−1)^i C(m, i) / 2^m · c are orthogonal to the
    polynomials of degree < m. So the Gaussian error falls like (1/4)^m / sqrt(m!) while smCE falls like 1/m.
    """
    ratios = []
    for m in (2, 6, 10, 14):
        binomial = np.array([math.comb(m, i) for i in range(m + 1)], dtype=float)
        v = 0.25 + 0.5 * np.arange(m + 1) / m
        gamma = G.from_levels(v, binomial, v + 0.25 * (-1.0) ** np.arange(m + 1))
        assert smooth_ce(gamma) >= 0.9 * 0.25 * 0.25 / m
        ratios.append(kernel_ce(gamma, kernel="gaussian") / smooth_ce(gamma))
    assert ratios[-1] < 1e-9 < 1e-2 < ratios[0]


# ---------------------------------------------------------------- two bins


def two_bins(gamma):
    """∫ of both squared sums, exactly, on the pieces on which they do not change."""
    total, levels = (
        Fraction(0),
        [tuple(map(Fraction, x)) for x in zip(gamma.predictions, gamma.residuals, strict=True)],
    )
    for a, b in pairwise(sorted({Fraction(0), Fraction(1), *(v for v, _ in levels)})):
        below = sum(r for v, r in levels if v < (a + b) / 2)
        total += (b - a) * (below**2 + (sum(r for _, r in levels) - below) ** 2)
    return float(total)


@given(gamma=ANY)
def test_it_is_that_of_the_definition_and_between_its_bounds(gamma):
    value = atb(gamma)
    assert value == pytest.approx(two_bins(gamma), abs=1e-14)
    assert smooth_ce(gamma) ** 2 / 5 - 1e-14 <= value <= smooth_ce(gamma) + 1e-14


def expected(measure, report, truth):
    """E of a measure over independent outcomes, by all of them."""
    outcomes = map(np.array, product((0, 1), repeat=len(truth)))
    return sum(np.prod(np.where(y, truth, 1 - truth)) * measure(report, y) for y in outcomes)


def test_nothing_is_better_than_the_truth(seed):
    """By the sum over all outcomes: no probability of failure."""
    rng = np.random.default_rng([seed, 1])
    for n in (1, 2, 5):
        truth = rng.random(n)
        best = expected(atb, truth, truth)
        for size in (1e-3, 0.1, 1.0) * 10:
            report = np.clip(truth + size * rng.uniform(-1, 1, n), 0, 1)
            # The bias of each bin is added, squared; strictly more unless the report is the truth.
            assert expected(atb, report, truth) > best or np.allclose(report, truth, atol=1e-9)
    # The control: one forecast of an event of probability 0.7 has less expected smCE at 1.
    truth, lie = np.array([0.7]), np.array([1.0])
    assert expected(smooth_ce, lie, truth) < expected(smooth_ce, truth, truth)
    assert expected(atb, lie, truth) > expected(atb, truth, truth)


# ---------------------------------------------------------------- SmoothECE


@BOTH
@given(gamma=ANY, sigma=st.sampled_from([0.01, 0.03, 0.1, 0.4, 1.0, 3.0]))
def test_equals_the_quadrature(transform, gamma, sigma):
    """The midpoint rule of the oracle errs by 6e-7, the mesh by 1e-7."""
    sigma = max(sigma, 0.1) if transform == "logit" else sigma
    value = smooth_ece_at(gamma, sigma=sigma, transform=transform)
    assert value == pytest.approx(oracle.smooth_ece_at(gamma, sigma, transform), abs=1e-6)
    # smECE_σ does not increase with σ, so |smECE_σ − σ| bounds the distance from the fixed point.
    value = smooth_ece(gamma, transform=transform)
    if value >= {"identity": 0.01, "logit": 0.05}[transform]:
        allowed = ACCURACY[transform] + 1e-6
        assert oracle.smooth_ece_at(gamma, value, transform) == pytest.approx(value, abs=allowed)


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
@pytest.mark.parametrize("gap", [2.0**-53, 1e-13, 1e-9, 1e-6])
def test_many_levels_that_hardly_differ(transform, gap):
    """Up to 1e-4 in the prediction; along the log odds as well, where they are as close."""
    v = 0.5 + gap * np.arange(2000)
    proved(G.from_levels(v, np.ones(2000), np.arange(2000) % 2), transform, 1e-4, 1e-4)


def test_many_levels_far_apart_in_log_odds():
    """The error that is stated is that of the value: a stated 1e-4 was once exceeded here, and a bracket 0.03 wide."""
    v = np.concatenate(([0.0], np.linspace(0.4, 0.6, 5000), [1.0]))
    q = np.clip(v * np.resize([1.5, 0.5], 5002), 0, 1)
    proved(G.from_levels(v, np.ones(5002), q), "logit", 1.0, 1.1e-5)


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


def test_the_integral_is_exact_between_mesh_points():
    """∫ |1 − 3x| over [0, 1] is 5/6: a sign change inside a step counts on both sides."""
    found = [absolute_integrals(np.array([row]))[0] for row in ([1.0, -2.0], [1.0, 0.0, -2.0, -1.0])]
    assert found == pytest.approx([5.0 / 6.0, 3.0], abs=1e-15)
