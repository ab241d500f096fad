"""What measures make of samples: bad ones are named, other kinds of numbers mean the same."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData

BAD = {
    "nan": ([0.5, math.nan], [0, 1], r"p\[1\] = nan is a missing value"),
    "infinite": ([0.5, math.inf], [0, 1], r"p\[1\] = inf is outside"),
    "above one": ([0.5, 1.0 + 1e-12], [0, 1], r"p\[1\] = 1.000000000001 is outside"),
    "below zero": ([-1e-300, 0.5], [0, 1], r"p\[0\] = -1e-300 is outside"),
    "no outcome": ([0.5, 0.5], [0, 2], r"y\[1\] = 2.0 is not an outcome"),
    "missing outcome": ([0.5, 0.5], [math.nan, 1], r"y\[0\] = nan is a missing value"),
    "swapped": ([0, 1, 1], [0.2, 0.7, 0.9], "these look swapped"),
    "none": ([], [], "no samples"),
    "lengths": ([0.5], [0, 1], "p has 1 values and y has 2"),
    "two dimensions": ([[0.5, 0.5]], [0, 1], r"p has shape \(1, 2\)"),
    "two dimensions of y": ([0.5, 0.5], [[0], [1]], r"y has shape \(2, 1\)"),
    "a number": (0.5, 1, r"p has shape \(\)"),
    "text": (["half"], [1], "not a number"),
    "nothing": (None, [1], r"p has shape \(\)"),
    "a gap": (pd.Series([0.5, None, 0.2]), pd.Series([0, 1, 1]), r"p\[1\] = nan is a missing value"),
    "a gap of integers": (pd.Series([0.5, 0.1]), pd.Series([0, None], dtype="Int64"), "missing|not a number"),
    "complex": (np.array([0.5 + 0.1j]), [1], "p holds complex numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_samples_are_named(case):
    p, y, says = BAD[case]
    with pytest.raises(InvalidData, match=says):
        oc.evaluate(p, y)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([1, -1], r"weights\[1\] = -1.0"),
        ([0, 0], "weights sum to 0.0"),
        ([1, math.inf], r"weights\[1\] = inf"),
        ([1, math.nan], r"weights\[1\] = nan"),
        ([1], "weights has 1"),
        ([1e308, 1e308], "weights sum to inf"),
    ],
)
def test_bad_weights_are_named(weights, says):
    with pytest.raises(InvalidData, match=says):
        oc.evaluate([0.2, 0.5], [0, 1], weights=weights)


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.25, 0.5, 0.75, 0.75], [False, True, True, False]),
        (np.array([0.25, 0.5, 0.75, 0.75], np.float32), np.array([0, 1, 1, 0], np.int8)),
        ((0.25, 0.5, 0.75, 0.75), (0.0, 1.0, 1.0, 0.0)),
        (pd.Series([0.25, 0.5, 0.75, 0.75]), pd.Series([0, 1, 1, 0])),
        (np.array([0.75, 0.75, 0.5, 0.25])[::-1], np.array([0, 1, 1, 0], object)),
        (np.array([[0.25, 0.5, 0.75, 0.75]]).T[:, 0], np.array([0, 1, 1, 0], np.uint64)),
    ],
)
def test_other_kinds_of_numbers_mean_the_same(p, y):
    plain = oc.evaluate([0.25, 0.5, 0.75, 0.75], [0, 1, 1, 0]).table()
    other = oc.evaluate(p, y).table()
    pd.testing.assert_frame_equal(plain, other)


def test_predictions_that_are_outcomes():
    table = oc.evaluate([True, False, 1, 0], [1, 0, 1, 0]).table()
    assert (table.drop("binned_ece_width").upper == 0.0).all()


def test_float32_is_taken_for_the_number_that_it_is():
    single = np.array([0.3], np.float32)
    assert oc.evaluate(single, [0])["ece"] == float(single[0]) != 0.3


@pytest.mark.slow
def test_ten_million_samples(full):
    n = 10**7 if full else 10**6
    generator = np.random.default_rng(0)
    p = generator.random(n)
    result = oc.evaluate(p, generator.random(n) < p)
    table = result.table()
    # Hoeffding: the mean error of n independent outcomes exceeds this with probability below 2e-9.
    noise = math.sqrt(10.0 / n)
    assert result["weighted_ce"] < noise
    assert table.upper["distance_lower"] < 2e-3
    assert table.lower["interval_ce"] <= table.upper["interval_ce"] < 0.05
    assert (table.lower <= table.upper).all()
    assert table["value"]["brier"] == pytest.approx(1 / 6, abs=2 * noise)
