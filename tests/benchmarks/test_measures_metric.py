"""Times of the metric measures on distinct predictions, after compilation.

Run: pytest tests/benchmarks --benchmark-only.
"""

import functools

import pytest

from onlinecal.core.joint import JointDistribution
from onlinecal.measures.distance_lower import distance_lower
from onlinecal.measures.distance_upper import distance_upper
from onlinecal.measures.interval import interval_ce, interval_ce_bracket
from onlinecal.measures.kernel import kernel_ce
from onlinecal.measures.smooth_ce import smooth_ce, smooth_ce_witness
from onlinecal.measures.smooth_ece import smooth_ece, smooth_ece_at
from onlinecal.measures.surrogate import surrogate_interval_ce
from tests.gammas_metric import many_levels

BIASES = {"calibrated": 0.0, "biased": 0.1}

CASES = {
    "smooth_ce": (smooth_ce, (60, 10**4, 10**5, 10**6)),
    "smooth_ce_logit": (functools.partial(smooth_ce, metric="logit"), (60, 10**4, 10**5, 10**6)),
    "smooth_ce_witness": (smooth_ce_witness, (60, 10**4, 10**5, 10**6)),
    "kernel_ce": (kernel_ce, (60, 10**4, 10**5, 10**6)),
    "kernel_ce_gaussian": (functools.partial(kernel_ce, kernel="gaussian"), (60, 10**4, 10**5, 10**6)),
    "interval_ce": (interval_ce, (60, 10**4, 10**5)),
    "interval_ce_max": (functools.partial(interval_ce, width="max"), (60, 10**3, 10**4)),
    "interval_ce_bracket": (interval_ce_bracket, (10**4, 10**5, 10**6)),
    "surrogate_interval_ce": (surrogate_interval_ce, (60, 10**4, 10**5)),
    "distance_lower": (distance_lower, (60, 500, 10**4, 10**5, 10**6)),
    "distance_upper": (distance_upper, (12, 60, 10**4, 10**5)),
    "smooth_ece": (smooth_ece, (60, 10**4, 10**5, 10**6)),
    "smooth_ece_logit": (functools.partial(smooth_ece, transform="logit"), (60, 10**4, 10**5)),
    "smooth_ece_at": (functools.partial(smooth_ece_at, sigma=0.01), (60, 10**4, 10**5, 10**6)),
}


@functools.cache
def _gamma(k: int, kind: str) -> JointDistribution:
    gamma = many_levels(0, k, BIASES[kind])
    gamma.residuals, gamma.mass  # noqa: B018 — part of Γ, computed once
    return gamma


@pytest.mark.parametrize("kind", BIASES)
@pytest.mark.parametrize(
    ("name", "k"),
    [(name, k) for name, (_, sizes) in CASES.items() for k in sizes],
    ids=lambda value: str(value),
)
def test_time(benchmark, name, k, kind):
    function = CASES[name][0]
    gamma = _gamma(k, kind)
    function(gamma)  # compiles
    benchmark.group = f"{name}, k = {k}"
    benchmark(function, gamma)
