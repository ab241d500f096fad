"""What is printed for machines."""

import json
import math

import numpy as np
import pytest

from onlinecal.report.console import print_json


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


def test_lists_and_anything_else(capsys):
    assert printed(capsys, [1.0, math.inf, None, print]) == [1.0, None, None, str(print)]
