"""Binned errors of other orders, and the one without bias."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal.measures import binned_ce, binned_ece, ece, soft_binned_ece
from onlinecal.measures.binned_orders import swept
from tests.gammas_metric import ANY

G = oc.JointDistribution


def by_definition(p, y, bins, order, debiased=False):
    edges = [j / bins for j in range(1, bins)]
    number = np.array([sum(v >= e for e in edges) for v in p])
    parts = []
    for j in set(number):
        mine = number == j
        error, q, n = abs(y[mine].mean() - p[mine].mean()), y[mine].mean(), mine.sum()
        bias = q * (1 - q) / (n - 1) if debiased and n > 1 else 0.0
        parts.append((n / len(p), error, bias))
    if order == math.inf:
        return max(error for _, error, _ in parts)
    total = sum(w * (error**order - bias) for w, error, bias in parts)
    return max(total, 0.0) ** (1 / order)


@pytest.mark.parametrize("order", [1, 1.5, 2, 7, math.inf])
@pytest.mark.parametrize("bins", [1, 4, 10])
def test_it_is_that_of_the_definition(order, bins):
    rng = np.random.default_rng(bins)
    for n in (1, 9, 300):
        p, y = rng.random(n), rng.integers(0, 2, n)
        assert binned_ce(G.from_samples(p, y), order=order, bins=bins) == pytest.approx(
            by_definition(p, y, bins, order), abs=1e-12
        )
        if order == 1:
            assert binned_ce(G.from_samples(p, y), order=1, bins=bins) == pytest.approx(
                binned_ece(G.from_samples(p, y), bins=bins), abs=1e-14
            )
        if order == 2:
            assert binned_ce(G.from_samples(p, y), bins=bins, debiased=True) == pytest.approx(
                by_definition(p, y, bins, 2, debiased=True), abs=1e-8
            )


def sweep_by_definition(p, y, order):
    """Bins as the middles of their levels say, more and more of them, while means of outcomes do not fall."""
    from fractions import Fraction

    levels = sorted(set(p))
    counts = [sum(a == v for a in p) for v in levels]
    middles = [Fraction(2 * sum(counts[:i]) + counts[i], 2 * len(p)) for i in range(len(levels))]
    last = None
    for b in range(1, 1001):
        bins = {}
        for v, middle in zip(levels, middles, strict=True):
            bins.setdefault(min(int(middle * b), b - 1), []).append(v)
        inside = [[i for i in range(len(p)) if p[i] in vs] for _, vs in sorted(bins.items())]
        means = [Fraction(int(sum(y[i] for i in rows)), len(rows)) for rows in inside]
        if any(later < one for one, later in pairwise(means)):
            break
        last = (
            b,
            sum(len(rows) / len(p) * abs(np.mean([y[i] - p[i] for i in rows])) ** order for rows in inside)
            ** (1 / order),
        )
        if b > len(p):
            break
    return last


@pytest.mark.parametrize("digits", [None, 1, 2])
def test_a_sweep_is_that_of_the_definition(digits, seed):
    rng = np.random.default_rng([seed, digits or 0])
    for n in (1, 2, 5, 40, 150):
        p = rng.random(n)
        p = p if digits is None else np.round(p, digits)
        y = (rng.random(n) < p**1.5).astype(int)
        gamma = G.from_samples(p, y)
        for order in (1, 2):
            bins, value = sweep_by_definition(p.tolist(), y.tolist(), order)
            if bins <= n:  # else it goes on for ever, and bins stay as they are
                assert swept(gamma, 1000) == bins
            assert binned_ce(gamma, order=order, strategy="sweep") == pytest.approx(value, abs=1e-12)


def test_a_sweep_stops_at_the_first_fall_and_not_at_ties():
    # Two bins fall, three do not: 1 bin.
    gamma = G.from_samples([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0, 1, 1, 0, 1, 0])
    assert swept(gamma, 1000) == 1
    # Equal means are no fall, also where sums of weights are rounded.
    p = np.repeat(np.arange(1, 10) / 10, 2)
    for w in (1.0, 0.1, 1e-9, 3e15):
        same = G.from_samples(p, np.tile([0, 1], 9), weights=np.full(18, w))
        assert swept(same, 50) == 50
        assert binned_ce(same, strategy="sweep", bins=50) == pytest.approx(
            binned_ce(same, bins=9, strategy="quantile")
        )
    # Perfectly told apart: as many bins as are tried, of whatever n.
    p = np.linspace(0.0, 1.0, 100_000)
    assert swept(G.from_samples(p, p > 0.5), 1000) == 1000


def test_edges_of_your_own():
    rng = np.random.default_rng(3)
    p, y = np.append(rng.random(500), [0.0, 1.0, 0.25, 0.8]), rng.integers(0, 2, 504)
    gamma, edges = G.from_samples(p, y), [0.0, 0.25, 0.3, 0.3000001, 0.8, 1.0]
    number = np.searchsorted(edges[1:-1], p, side="right")  # [a, b), the last closed
    rows = [number == j for j in np.unique(number)]
    for order in (1, 2):
        value = sum(r.mean() * abs((y - p)[r].mean()) ** order for r in rows) ** (1 / order)
        for kind in (edges, tuple(edges), np.array(edges)):
            assert binned_ce(gamma, order=order, bins=kind) == pytest.approx(value, abs=1e-13)
    tenths = [j / 10 for j in range(11)]
    for debiased in (False, True):
        assert binned_ce(gamma, bins=tenths, debiased=debiased) == binned_ce(gamma, debiased=debiased)
    named = {"name": "binned_ce", "bins": [0.0, 0.5, 1.0], "order": 1.0}
    row = oc.evaluate(gamma, measures=[named], bootstrap=50).rows[0]
    assert row.value == binned_ce(gamma, bins=2, order=1.0)
    assert row.interval[0] <= row.value <= row.interval[1]


def test_a_sweep_has_no_interval():
    gamma = G.from_samples(np.repeat([0.2, 0.8], 100), np.tile([0, 1, 1, 1], 50))
    row = oc.evaluate(
        gamma, measures=[{"name": "binned_ce", "strategy": "sweep"}], bootstrap=20, reference=20
    ).rows[0]
    assert row.interval is None
    assert "the number of bins of a sweep is that of the sample" in row.interval_by
    assert 0.0 < row.p_value <= 1.0


def test_the_debiased_square_has_no_bias():
    """Exactly, by all numbers of ones in two bins of five samples; the plain square has one, of Σ w q (1 − q)/n."""
    from scipy.stats import binom

    v, q, n = np.array([0.25, 0.75]), np.array([0.4, 0.7]), 5
    counts = np.arange(n + 1)
    law = [binom.pmf(counts, n, x) for x in q]
    square = plain = 0.0
    for a in counts:
        for b in counts:
            gamma = G.from_counts(v, [n, n], [a, b])
            one = binned_ce(gamma) ** 2
            bias = sum(0.5 * (c / n) * (1 - c / n) / (n - 1) for c in (a, b))
            assert binned_ce(gamma, debiased=True) == pytest.approx(math.sqrt(max(one - bias, 0.0)), abs=1e-9)
            square += law[0][a] * law[1][b] * (one - bias)
            plain += law[0][a] * law[1][b] * one
    assert square == pytest.approx(0.5 * ((q - v) ** 2).sum(), abs=1e-14)
    assert plain - square == pytest.approx(0.5 * (q * (1 - q) / n).sum(), abs=1e-14)


@given(
    gamma=ANY,
    m=st.integers(1, 20),
    temperature=st.floats(1e-3, 10.0),
    order=st.sampled_from([1.0, 2.0, 3.0, math.inf]),
)
def test_soft_bins_by_definition(gamma, m, temperature, order):
    value = soft_binned_ece(gamma, bins=m, temperature=temperature, order=order)
    mass, residual = [0.0] * m, [0.0] * m
    for v, w, r in zip(
        gamma.predictions.tolist(), gamma.mass.tolist(), gamma.residuals.tolist(), strict=True
    ):
        near = [math.exp(-((v - (j + 0.5) / m) ** 2) / temperature) for j in range(m)]
        if sum(near) < 1e-200:
            return
        for j in range(m):
            mass[j] += w * near[j] / sum(near)
            residual[j] += r * near[j] / sum(near)
    errors = [(w, abs(r) / w) for w, r in zip(mass, residual, strict=True) if w > 1e-290]
    if order == math.inf:
        assert value == pytest.approx(max(e for _, e in errors), abs=1e-9)
    else:
        assert value == pytest.approx(sum(w * e**order for w, e in errors) ** (1 / order), abs=1e-9)
    if order == 1.0:
        assert value <= ece(gamma) + 1e-12


@given(gamma=ANY, m=st.integers(1, 20))
def test_soft_bins_become_hard_ones(gamma, m):
    """But for predictions on an edge, which are in both bins."""
    v = gamma.predictions
    if np.abs(m * v - np.rint(m * v)).min() > 1e-3 or m == 1:
        for temperature in (1e-9, 1e-300):
            assert soft_binned_ece(gamma, bins=m, temperature=temperature) == pytest.approx(
                binned_ce(gamma, bins=m), abs=1e-9
            )
    assert soft_binned_ece(gamma, bins=m, temperature=1e300) == pytest.approx(
        abs(gamma.residuals.sum()), abs=1e-9
    )
    calibrated = G.from_levels(v, gamma.mass, v)
    assert soft_binned_ece(calibrated, bins=m) == 0.0


def test_soft_bins_of_an_edge_are_shared_equally():
    gamma = G.from_levels([0.5], [1], [0.7])
    assert soft_binned_ece(gamma, bins=2, temperature=1e-300) == pytest.approx(0.2)
    both = G.from_levels([0.25, 0.5], [1, 1], [0.25, 0.7])
    # Bin 1 has 3/4 of the mass and half of the error, which is 0.1, bin 2 the rest.
    assert soft_binned_ece(both, bins=2, temperature=1e-300, order=math.inf) == pytest.approx(0.2)
    assert soft_binned_ece(both, bins=2, temperature=1e-300, order=1) == pytest.approx(0.1)
