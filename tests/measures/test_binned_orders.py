"""Binned errors of other orders, and the one without bias."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.measures import binned_ce, binned_ece, ece, soft_binned_ece
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


def test_of_a_bin_a_level_it_is_the_error_of_levels():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 10, 200) / 10
    gamma = G.from_samples(p, rng.integers(0, 2, 200))
    for order in (1, 2, 3, math.inf):
        assert binned_ce(gamma, order=order) == pytest.approx(ece(gamma, order=order), abs=1e-14)
        assert binned_ce(gamma, order=order, bins=10, strategy="quantile") <= ece(gamma, order=order) + 1e-14


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


def test_without_samples_there_is_no_bias_to_take_off():
    gamma = G.from_levels([0.2, 0.8], [0.5, 0.5], [0.3, 0.6])
    assert binned_ce(gamma, debiased=True) == binned_ce(gamma)


def test_what_cannot_be():
    for wrong in ({"order": 0.5}, {"bins": 0}, {"strategy": "wide"}, {"order": 1, "debiased": True}):
        with pytest.raises(InvalidParameter, match="binned_ce"):
            binned_ce([0.5], [1], **wrong)


@pytest.mark.parametrize("order", [2, math.inf])
@pytest.mark.parametrize("name", ["calibrated", "off"])
def test_its_interval_holds_the_value_of_the_population(name, order, seed):
    """Of 40 samples 95 % and more; fewer than 28 has probability at most 1e-7 by the binomial law at 95 %."""
    rng = np.random.default_rng([seed, 4])
    v = np.array([0.05, 0.3, 0.55, 0.6, 0.95])
    q = v if name == "calibrated" else 0.2 + 0.6 * v
    truth, held = binned_ce(G.from_levels(v, np.full(5, 0.2), q), order=order, bins=4), 0
    for run in range(40):
        i = rng.integers(0, 5, 400)
        (row,) = oc.evaluate(
            v[i], rng.random(400) < q[i], measures=[{"name": "binned_ce", "order": order, "bins": 4}], bootstrap=200,
            seed=run,
        ).rows  # fmt: skip
        held += row.interval[0] <= truth <= row.interval[1]
    assert held >= 28


def test_where_there_is_no_interval_the_table_says_why():
    rng = np.random.default_rng(0)
    p = rng.random(100)
    rows = oc.evaluate(
        p, rng.random(100) < p, bootstrap=20, measures=["binned_ce", {"name": "binned_ce", "debiased": True}]
    ).rows
    assert [row.interval for row in rows] == [None, None]
    assert "bins with fewer than 30 samples" in rows[0].interval_by
    assert "a debiased estimate may be 0 where the error is not" in rows[1].interval_by


@settings(deadline=None, max_examples=60)
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


@settings(deadline=None, max_examples=60)
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


@pytest.mark.parametrize(
    "options",
    [
        {"bins": 0},
        {"bins": 10**6},
        {"temperature": 0.0},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"order": 0.5},
    ],
    ids=str,
)
def test_what_are_no_soft_bins(options):
    with pytest.raises(InvalidParameter, match="expected"):
        soft_binned_ece([0.4], [1], **options)
