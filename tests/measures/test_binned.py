"""Errors of levels, bins, prefixes, weights and moments: from the definitions, with the edges of bins as fractions."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal.measures import (
    binned,
    binned_ce,
    binned_ece,
    binned_ece_width,
    cutoff,
    cutoff_ce,
    ece,
    low_degree_ce,
    soft_binned_ece,
    step_ce,
    weighted_ce,
)
from onlinecal.measures.binned import bins_of_levels
from onlinecal.measures.binned_orders import swept
from tests.strategies import gammas

G = oc.JointDistribution


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.integers(1, 400))
def test_a_grid_value_is_in_the_bin_of_its_fraction(value, m):
    """In NumPy and in the kernel."""
    i, n = value
    gamma = G.from_levels([i / n], [1.0], [0.5])
    (number,), _ = bins_of_levels(gamma, m, "width")
    (compiled,) = binned._numbers(gamma.predictions, gamma.counts, 1.0, m, True)
    assert number == compiled == min(m - 1, int(Fraction(i, n) * m))


@pytest.mark.parametrize(("weights", "m"), [([1 / 3], 28), ([0.1, 0.2], 33), ([1.1, 0.1], 24)])
def test_edges_decide_where_a_quotient_of_weights_is_rounded(weights, m):
    """A level is in the last bin of which the lower edge j W/m is not above the middle of its weight."""
    gamma = G.from_counts(np.arange(1, len(weights) + 1) / 10, weights, np.zeros(len(weights)))
    middles = (2.0 * np.append(0.0, np.cumsum(weights)[:-1]) + weights) * m
    last = [max(j for j in range(m) if 2.0 * j * gamma.weight <= middle) for middle in middles]
    assert bins_of_levels(gamma, m, "quantile")[0].tolist() == last


def test_the_two_point_example():
    """Fewer bins see all of the error or nothing, as their number is even or odd; many see all."""
    gamma = G.from_samples([0.5 - 1e-6, 0.5 + 1e-6], [0, 1])
    for m, seen in ((2, 1), (3, 0), (10, 1), (15, 0), (10**7, 1)):
        assert binned_ece(gamma, bins=m) == pytest.approx(seen * ece(gamma), abs=1e-15)
    assert binned_ece(gamma, bins=10**7, strategy="quantile") == pytest.approx(ece(gamma), abs=1e-15)


@pytest.mark.parametrize("levels", [128, 129, 1000, 1337, 5003])
def test_ece_adds_parts_in_the_order_of_numpy(levels, monkeypatch, seed):
    """To the last bit; parts of 128 are as small as NumPy's own."""
    monkeypatch.setattr(binned, "CHUNK", 128)
    rng = np.random.default_rng([seed, 4])
    gamma = G.from_levels(np.arange(levels) / levels, rng.random(levels), rng.random(levels))
    assert ece(gamma) == float(np.abs(gamma.residuals).sum())


def of_equal_mass(p, m):
    """The bin of each sample: that of the middle of all samples of its prediction, in whole numbers."""
    _, place, counts = np.unique(p, return_inverse=True, return_counts=True)
    middles = 2 * np.cumsum(counts) - counts
    return np.minimum(middles * m // (2 * len(p)), m - 1)[place]


def by_definition(p, y, number, order, debiased=False):
    """The norm of the errors of the bins in which the samples are."""
    parts = []
    for j in set(number.tolist()):
        mine = number == j
        error, q, n = abs(y[mine].mean() - p[mine].mean()), y[mine].mean(), mine.sum()
        bias = q * (1 - q) / (n - 1) if debiased and n > 1 else 0.0
        parts.append((n / len(p), error, bias))
    if order == math.inf:
        return max(error for _, error, _ in parts)
    return max(sum(w * (error**order - bias) for w, error, bias in parts), 0.0) ** (1 / order)


@pytest.mark.parametrize("order", [1, 1.5, 2, 7, math.inf])
@pytest.mark.parametrize("bins", [1, 4, 10, [0.0, 0.25, 0.3, 0.3000001, 0.8, 1.0]], ids=str)
def test_bins_of_equal_width_of_equal_mass_and_with_edges_of_your_own(order, bins, seed):
    """Bins are [a, b), the last one closed."""
    rng = np.random.default_rng([seed, 3])
    edges = bins if isinstance(bins, list) else [j / bins for j in range(bins + 1)]
    for n, digits in ((1, 17), (9, 1), (300, 17), (300, 2)):
        p = np.append(np.round(rng.random(n), digits), [0.0, 1.0, 0.25, 0.8])
        y = rng.integers(0, 2, n + 4)
        gamma, number = G.from_samples(p, y), np.searchsorted(edges[1:-1], p, side="right")
        for kind in (bins, np.array(edges)):
            value = binned_ce(gamma, order=order, bins=kind)
            assert value == pytest.approx(by_definition(p, y, number, order), abs=1e-12)
        if order == 2:
            square = by_definition(p, y, number, 2, debiased=True)
            assert binned_ce(gamma, bins=bins, debiased=True) == pytest.approx(square, abs=1e-8)
        if isinstance(bins, int):
            number, options = of_equal_mass(p, bins), {"bins": bins, "strategy": "quantile"}
            error = by_definition(p, y, number, order)
            assert binned_ce(gamma, order=order, **options) == pytest.approx(error, abs=1e-12)
            if order == 1:
                span = sum(np.mean(number == j) * np.ptp(p[number == j]) for j in set(number.tolist()))
                assert binned_ece(gamma, **options) == pytest.approx(error, abs=1e-12)
                assert binned_ece_width(gamma, **options) == pytest.approx(error + span, abs=1e-12)


@pytest.mark.parametrize("temperature", [1e-5, 5e-324])
def test_soft_bins_of_no_temperature_are_hard(temperature):
    gamma = G.from_levels([0.05, 0.33, 0.38, 0.61, 0.77], [1, 2, 1, 3, 1], [0.2, 0.9, 0.1, 0.3, 1.0])
    soft = soft_binned_ece(gamma, bins=4, temperature=temperature)
    assert soft == pytest.approx(binned_ce(gamma, bins=4), abs=1e-14)


def test_many_soft_bins_are_held_for_some_levels_at_a_time(seed):
    """With 10⁵ bins for ten; the values are those of each level."""
    rng = np.random.default_rng([seed, 5])
    v, means, bins = np.sort(rng.random(25)), rng.random(25), 10**5
    middles = (np.arange(bins) + 0.5) / bins
    mass, residual = np.zeros((2, bins))
    for p, q in zip(v, means, strict=True):
        share = np.exp(-((p - middles) ** 2) / 1e-3)
        mass += share / share.sum() / 25
        residual += share / share.sum() / 25 * (q - p)
    held = mass > 1e-300
    found = soft_binned_ece(G.from_levels(v, np.ones(25), means), bins=bins, temperature=1e-3, order=1.0)
    assert found == pytest.approx(np.abs(residual[held]).sum(), rel=1e-9)


def sweep_by_definition(p, y):
    """More and more bins of equal mass, while means of outcomes do not fall."""
    last = None
    for b in range(1, len(p) + 2):
        number = of_equal_mass(p, b)
        means = [
            Fraction(int(y[number == j].sum()), int((number == j).sum()))
            for j in sorted(set(number.tolist()))
        ]
        if any(later < one for one, later in pairwise(means)):
            return last
        last = b, number
    return last


@pytest.mark.parametrize("digits", [17, 1, 2])
def test_a_sweep_is_that_of_the_definition(digits, seed):
    rng = np.random.default_rng([seed, digits])
    for n in (1, 2, 5, 40, 150):
        p = np.round(rng.random(n), digits)
        y = (rng.random(n) < p**1.5).astype(int)
        gamma = G.from_samples(p, y)
        bins, number = sweep_by_definition(p, y)
        if bins <= n:  # else it goes on for ever, and bins stay as they are
            assert swept(gamma, 1000) == bins
        for order in (1, 2):
            value = binned_ce(gamma, order=order, strategy="sweep")
            assert value == pytest.approx(by_definition(p, y, number, order), abs=1e-12)


@given(gammas(), st.integers(0, 6))
def test_weights_moments_and_the_largest_of_a_family(gamma, degree):
    """BGHN23, Definition 7.1: thresholds give the step error, intervals the cutoff error, powers that of low degree."""
    v, r = gamma.predictions, gamma.residuals
    moments = [abs(sum(r * v**j)) for j in range(degree + 1)]
    powers = [lambda x, j=j: x**j for j in range(1, degree + 1)]
    interval = cutoff.worst_interval(gamma)
    steps = [(v <= t).astype(float) for t in v]
    between = [(lambda x, a=a, b=b: (a <= x) & (x <= b)) for a in v for b in v if a <= b]
    for weights, expected in (
        (None, moments[0]), (lambda v: 1, moments[0]), (v**degree, moments[-1]), (lambda v: v**degree, moments[-1]),
        (np.sign(r), ece(gamma)), ((v >= interval.lower) & (v <= interval.upper), cutoff_ce(gamma)),
        (steps, step_ce(gamma)), (np.array(steps), step_ce(gamma)), (between, cutoff_ce(gamma)),
        ([lambda x: 1, *powers], max(moments)),
    ):  # fmt: skip
        assert weighted_ce(gamma, omega=weights) == pytest.approx(expected, abs=1e-14)
    assert low_degree_ce(gamma, degree=degree) == pytest.approx(max(moments), abs=1e-14)
    norms = cutoff.weighted_norm(gamma, r[None, :] * np.array([[1.0], [-2.0]]), omega=steps)
    assert norms == pytest.approx(np.array([1, 2]) * step_ce(gamma), abs=1e-14)


def test_a_sweep_stops_at_the_first_fall_and_not_at_ties():
    # Two bins fall, three do not: 1 bin.
    assert swept(G.from_samples([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0, 1, 1, 0, 1, 0]), 1000) == 1
    # Equal means are no fall, also where sums of weights are rounded.
    p = np.repeat(np.arange(1, 10) / 10, 2)
    for w in (1.0, 0.1, 1e-9, 3e15):
        assert swept(G.from_samples(p, np.tile([0, 1], 9), weights=np.full(18, w)), 50) == 50
    thirds = G.from_levels(np.arange(1, 8) / 10, [1, 1, 3, 7, 1, 5, 3], np.full(7, 1 / 3))
    assert swept(thirds, 50) == 50
    # Perfectly told apart: as many bins as are tried, of whatever n.
    p = np.linspace(0.0, 1.0, 100_000)
    assert swept(G.from_samples(p, p > 0.5), 1000) == 1000
