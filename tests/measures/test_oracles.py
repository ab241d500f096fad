"""The catalogue × oracles: values are those of definitions, of programs, and of rational numbers."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES, distance_in_metric, distance_lower, ece, smooth_ce
from onlinecal.measures.base import ends
from onlinecal.measures.distance_upper import true_distance, true_distance_of_gamma
from onlinecal.measures.kernel import kernel_ce_witness, kernel_norm
from tests.oracles import exact
from tests.oracles import measures as oracle
from tests.strategies import ANY, close_gammas, gammas, many_levels, theoretical
from tests.witnesses import case_id

FEW = gammas(7) | theoretical(6)
#: HiGHS drops coefficients below 1e-9, and with them levels as close as that
ON_GRID = gammas(5).map(lambda gamma: gamma.round(10**6)[0])
CLOSE = ANY | close_gammas(20) | st.builds(many_levels, st.integers(0, 999), st.integers(36, 40))
#: What the default tolerance of the lower distance leaves, and rounding.
CLOSED = 1e-9 + 1e-15


def cubic(v):
    return v + v**3


def losses(gamma, m, soft, threshold=None):
    found = oracle.threshold_losses(gamma, m, soft)
    return max(found) if threshold is None else found[threshold - 1]


def bound(function, **options):
    """The oracle with the options of the measure."""
    return options, partial(function, **options)


SOFT = [
    (1, 0.1, 2.0),
    (7, 1e-3, 1.0),
    (15, 0.01, 2),
    (20, 10.0, math.inf),
    (4, 1e-9, 1.5),
    (3, 1e300, 1000.0),
]
#: measure, (options, oracle), how far they may be apart, on which Γ
TABLE = [
    *(("ece", bound(oracle.ece, order=p), 1e-12, gammas()) for p in (1, 1.0, 1.5, 2, 10, 1000.0, math.inf)),
    *(
        ("soft_binned_ece", bound(oracle.soft_binned_ece, bins=m, temperature=t, order=p), 1e-9, ANY)
        for m, t, p in SOFT
    ),
    *(("smooth_ce", bound(oracle.smooth_ce, metric=metric), 1e-9, ANY) for metric in ("identity", "logit", cubic)),
    ("earthmover_distance", bound(oracle.earthmover_distance), 1e-9, ANY),
    ("cdl", bound(oracle.cdl), 1e-9, ON_GRID),
    ("u_calibration", bound(oracle.u_calibration), 1e-9, ON_GRID),
    *((name, bound(getattr(exact, name)), 1e-15, gammas()) for name in ("cdl", "v_cdl", "u_calibration")),
    ("interval_ce", bound(oracle.interval_program), 1e-13, CLOSE),
    ("interval_ce", ({"width": "max"}, oracle.interval_ce_by_widths), 1e-13, CLOSE),
    ("interval_ce_bracket", ({"width": "max", "blocks": 1}, oracle.interval_ce_by_widths), 1e-13, CLOSE),
    ("interval_ce_bracket", ({"blocks": 1}, oracle.interval_program), 1e-13, CLOSE),
    ("atb", bound(oracle.atb), 1e-14, ANY),
    *(("scdl_binned", bound(losses, m=m, soft=soft), 1e-12, gammas()) for m in (1, 5, 12) for soft in (True, False)),
    *(
        ("soft_binned_loss", bound(losses, m=m, threshold=i, soft=soft), 1e-12, gammas())
        for m, i in ((1, 1), (3, 3), (12, 5))
        for soft in (True, False)
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "asked", "within", "some"), TABLE, ids=lambda x: x if isinstance(x, str) else ""
)
@given(data=st.data())
def test_values_are_those_of_oracles(name, asked, within, some, data):
    (options, oracle), gamma = asked, data.draw(some)
    (low, high), so = ends(MEASURES[name].function(gamma, **options)), oracle(gamma)
    assert low - within <= so <= high + within
    assert low == high or "blocks" in options


# ---------------------------------------------------------------- distances: programs on grids

GRID = 200


@given(gamma=FEW)
def test_the_coupling_program_lies_in_the_lower_bracket(gamma):
    program, bracket = oracle.distance_lower(gamma, GRID), distance_lower(gamma)
    assert bracket.width <= CLOSED
    assert bracket.lower <= program + 1e-9
    assert bracket.upper >= program - 0.5 / GRID**2 - 1e-9


@given(gamma=ANY, metric=st.sampled_from(["identity", "logit", cubic, lambda v: 3.0 * v, np.cbrt]))
def test_the_coupling_program_lies_in_the_bracket_of_a_metric(gamma, metric):
    """That of the oracle is above the distance, and no more so than what its grid allows."""
    gamma = gamma.round(16)[0]
    found = distance_in_metric(gamma, metric=metric, nodes=120)
    assert 0.0 <= found.lower <= oracle.distance_in_metric(gamma, metric, 80) + 1e-7
    assert found.upper >= oracle.distance_in_metric(gamma, metric, 80, slack=1.0) - 1e-7
    assert found.upper <= ece(gamma) + 1e-9
    if gamma.levels < 10:
        assert found.width < 3e-3
    if metric is not np.cbrt:  # BN24, Theorem 15, of metrics that are at least |u − v|
        weak = smooth_ce(gamma, metric=metric)
        assert found.lower / 2 - 1e-9 <= weak <= 2 * found.upper + 1e-9


ROUND = st.tuples(st.sampled_from([0.0, 0.3, 0.5, 1.0]) | st.floats(0.0, 1.0), st.integers(0, 1))


@given(st.lists(ROUND, min_size=1, max_size=6), st.sampled_from([1, 1, 1.5, 2, 20, math.inf]))
@example([(0.1, 0), (0.8, 1), (0.9, 0), (0.8, 1), (0.8, 0)], 1)
def test_true_distance_equals_the_best_of_all_groupings_of_rounds(rounds, order):
    p, y = [a for a, _ in rounds], [b for _, b in rounds]
    value = oracle.cheapest_grouping(p, [1.0 / len(p)] * len(p), y, order)
    exactly, loose = true_distance(p, y, order=order), true_distance(p, y, order=order, max_rounds=1)
    assert exactly.width == 0.0
    assert exactly.upper == pytest.approx(value, abs=1e-9)
    assert loose.lower - 1e-9 <= value <= loose.upper + 1e-9
    if order != math.inf:
        assert true_distance_of_gamma(JointDistribution.from_samples(p, y), order=order) == exactly.upper


# ---------------------------------------------------------------- kernels and SmoothECE

#: K(u, v) by its options; on either side of the switch of the Gaussian
KERNEL = [
    ({"kernel": kind, "scale": scale}, lambda u, v, p=p, s=scale: np.exp(-((np.abs(u - v) / s) ** p)))
    for kind, p in (("laplace", 1), ("gaussian", 2))
    for scale in (0.2, 0.0225, 0.0223, 30.0, 1e-12)
] + [
    ({"kernel": "polynomial", "degree": d}, lambda u, v, d=d: ((1.0 + (2.0 * u - 1.0) * (2.0 * v - 1.0)) / 2.0) ** d)
    for d in (0, 1, 2, 7, 60, 1000)
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "kernel"), KERNEL, ids=lambda x: case_id(x) if isinstance(x, dict) else ""
)
@given(gamma=ANY)
def test_kernels_equal_the_double_sum(options, kernel, gamma):
    v, r, value = gamma.predictions, gamma.residuals, MEASURES["kernel_ce"].function(gamma, **options)
    rounding = 2e-16 * (options.get("degree", 0) + 10)
    assert value**2 == pytest.approx(float(r @ kernel(v[:, None], v) @ r), abs=rounding, rel=1e-12)
    within = 1e-12 if "degree" in options else 1e-7
    weights = kernel_ce_witness(gamma, **options).weights(v)
    assert [float(r @ weights), kernel_norm(gamma, r[None, :], **options)[0]] == pytest.approx(
        [value] * 2, abs=within
    )


@pytest.mark.parametrize(
    ("transform", "accuracy", "least"), [("identity", 1.1e-6, 0.01), ("logit", 1.1e-5, 0.05)]
)
@given(gamma=ANY, sigma=st.sampled_from([0.01, 0.03, 0.1, 0.4, 1.0, 3.0]))
def test_smooth_ece_equals_the_quadrature(transform, accuracy, least, gamma, sigma):
    """The midpoint rule of the oracle errs by 6e-7, the mesh by 1e-7. The value is a fixed point: smECE_σ does not rise
    with σ, so that |smECE_σ − σ| bounds the distance from it.
    """
    sigma = max(sigma, 0.1) if transform == "logit" else sigma
    value = MEASURES["smooth_ece_at"].function(gamma, sigma=sigma, transform=transform)
    assert value == pytest.approx(oracle.smooth_ece_at(gamma, sigma, transform), abs=1e-6)
    value = MEASURES["smooth_ece"].function(gamma, transform=transform)
    if value >= least:
        assert oracle.smooth_ece_at(gamma, value, transform) == pytest.approx(value, abs=accuracy + 1e-6)
