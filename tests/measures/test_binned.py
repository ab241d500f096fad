"""ECE and its binned forms: values from the definition, edges of bins, inequalities, bad options."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.joint import JointDistribution
from onlinecal.measures.binned import binned_ece, binned_ece_width, ece
from onlinecal.measures.interval import interval_ce
from tests.oracles import ece as oracle
from tests.oracles import exact
from tests.strategies import gammas

orders = st.sampled_from([1, 1.0, 1.5, 2, 3.0, 10, 1000.0, math.inf])
bin_counts = st.integers(1, 30)


@given(gammas(), orders)
def test_ece_is_a_norm_of_the_errors(gamma, order):
    errors = [abs(q - v) for q, v in zip(gamma.means.tolist(), gamma.predictions.tolist(), strict=True)]
    if order == math.inf:
        expected = max(errors)
    else:
        top = max(errors) or 1.0
        shares = gamma.mass.tolist()
        expected = top * sum(w * (e / top) ** order for w, e in zip(shares, errors, strict=True)) ** (
            1 / order
        )
    assert ece(gamma, order=order) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@given(gammas())
def test_ece_rises_with_the_order(gamma):
    values = [ece(gamma, order=p) for p in (1, 2, 5, math.inf)]
    assert all(a <= b + 1e-12 for a, b in pairwise(values))


@given(gammas(), bin_counts)
def test_equal_width_bins(gamma, m):
    for function, widths in ((binned_ece, False), (binned_ece_width, True)):
        assert function(gamma, bins=m) == pytest.approx(float(exact.binned_ece(gamma, m, widths)), abs=1e-14)


@given(gammas(), bin_counts)
def test_quantile_bins(gamma, m):
    bins = oracle.quantile_bins(gamma, m)
    expected = oracle.gap(gamma, bins)
    assert binned_ece(gamma, bins=m, strategy="quantile") == pytest.approx(expected, abs=1e-14)
    with_width = binned_ece_width(gamma, bins=m, strategy="quantile")
    assert with_width == pytest.approx(expected + oracle.span(gamma, bins), abs=1e-14)


@given(gammas(), bin_counts, st.sampled_from(["width", "quantile"]))
def test_between_bias_and_ece_and_certified_with_width(gamma, bins, strategy):
    value = binned_ece(gamma, bins=bins, strategy=strategy)
    assert abs(gamma.residuals.sum()) <= value + 1e-12
    assert value <= ece(gamma) + 1e-12
    assert interval_ce(gamma) <= binned_ece_width(gamma, bins=bins, strategy=strategy) + 1e-12


def together(a, b, m):
    """Whether levels a < b share a bin: opposite residuals then cancel."""
    pair = JointDistribution.from_levels([a, b], [1.0, 1.0], [1.0, 0.0])
    same, apart = abs(1.0 - a - b) / 2, (1.0 - a + b) / 2
    value = binned_ece(pair, bins=m)
    assert value == pytest.approx(same, abs=1e-15) or value == pytest.approx(apart, abs=1e-15)
    return value == pytest.approx(same, abs=1e-15)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.integers(1, 400))
def test_a_grid_value_is_in_the_bin_of_its_fraction(value, m):
    i, n = value
    v = i / n
    right = min(m - 1, int(Fraction(i, n) * m))
    low, high = right / m, (right + 1) / m
    if v > low:
        assert together(low, v, m)
    elif low > 0:
        assert not together(np.nextafter(low, 0), v, m)
    if v < high < 1:
        assert not together(v, high, m)


def test_bins_of_tenths_begin_at_each_tenth():
    for i in range(1, 10):
        assert not together(np.nextafter(i / 10, 0), i / 10, 10)
        assert together(i / 10, np.nextafter(i / 10, 1), 10)
    assert together(0.9, 1.0, 10)
    assert not together(1 - 0.9, 0.1, 10)  # 0.09999999999999998


@pytest.mark.parametrize(
    ("m", "apart"), [(2, True), (3, False), (10, True), (11, False), (15, False), (16, True)]
)
def test_exactly_m_bins_and_the_two_point_example(m, apart):
    gamma = JointDistribution.from_samples([0.5 - 1e-6, 0.5 + 1e-6], [0, 1])
    assert ece(gamma) == pytest.approx(0.5 - 1e-6, abs=1e-15)
    assert binned_ece(gamma, bins=m) == pytest.approx(0.5 - 1e-6 if apart else 0.0, abs=1e-15)


def test_many_more_bins_than_levels():
    gamma = JointDistribution.from_levels([0.1, 0.2], [1, 1], [0.3, 0.0])
    for strategy in ("width", "quantile"):
        assert binned_ece(gamma, bins=10**7, strategy=strategy) == pytest.approx(ece(gamma), abs=1e-15)
