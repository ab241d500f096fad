"""What is printed, for machines and for people."""

import json
import math

import numpy as np
import pytest

from onlinecal.core.columns import Column
from onlinecal.report import console as tables
from onlinecal.report.console import print_json
from onlinecal.report.curves import Study
from onlinecal.study import Played


def printed(capsys, value):
    print_json(value)
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_a_number_that_is_not_finite_is_null_and_the_key_beside_it_says_which(capsys):
    rows = [
        {"total": math.inf, "fit": {"low": -math.inf, "high": 1.0}, "trend": math.nan, "name": "inf"},
        {"total": 2, "fit": None, "trend": np.float64("-inf"), "name": "é×"},
    ]
    assert printed(capsys, rows) == [
        {
            "total": None,
            "total_is": "inf",
            "fit": {"low": None, "low_is": "-inf", "high": 1.0},
            "trend": None,
            "trend_is": "nan",
            "name": "inf",
        },
        {"total": 2, "fit": None, "trend": None, "trend_is": "-inf", "name": "é×"},
    ]


def test_numbers_of_numpy_are_numbers(capsys):
    value = {"a": np.int64(3), "b": np.float32(0.5), "c": np.array([1, 2]), "d": np.bool_(True), "e": (1, 2)}
    assert printed(capsys, value) == {"a": 3, "b": 0.5, "c": [1, 2], "d": True, "e": [1, 2]}


def test_any_size_of_a_total_fits_a_cell():
    said = [tables._number(x) for x in (0.0, 1e-320, 0.1234, 12.34, 123456.7, -1e14, 1e15, -1e300, np.inf)]
    assert said == [
        "0",
        "1e-320",
        "0.123",
        "12.3",
        "123,457",
        "-100,000,000,000,000",
        "1e+15",
        "-1e+300",
        "inf",
    ]


def test_labels_stay_in_their_cells_of_a_markdown_table():
    cells = [
        Played("a | b\nc", "d|e", t, np.array([t]), {"ece": np.array([[t, t]])}, (Column("measure", "ece"),))
        for t in (100.0, 200.0, 400.0)
    ]
    heading, _, row = tables.exponents_markdown(Study(tuple(cells))).splitlines()[2:5]
    assert heading == r"| forecaster | d\|e | proven |"
    assert row == r"| a \| b c | 1.00 [1.00, 1.00] | – |"


def test_lists_and_anything_else(capsys):
    assert printed(capsys, [1.0, math.inf, None, print]) == [1.0, None, None, str(print)]
