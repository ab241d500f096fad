"""What is printed, for machines and for people."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.growth import simultaneous
from onlinecal.growth.words import line
from onlinecal.report import grid
from onlinecal.report.console import print_json
from onlinecal.report.curves import Study
from onlinecal.report.markdown import exponents_markdown
from onlinecal.study import Played


def test_a_table_of_many_intervals_holds_as_a_whole():
    from onlinecal.report.console import totals

    study = oc.play(
        [oc.forecasters.ForecastHedging(), oc.forecasters.EmpiricalMean()],
        [oc.natures.Drift(), oc.natures.Bernoulli()],
        horizon=[100, 196, 484, 1000],
        runs=4,
        measures=["ece", "cdl"],
    )
    for measures, cells in ((None, 8), (["ece"], 4)):
        rows = totals(study, measures)
        assert len(rows) == cells
        for row in rows:
            growth = study.exponent(row["measure"], row["forecaster"], row["nature"], level=1 - 0.05 / cells)
            assert row["exponent"] == growth.as_json()
    curve = study.curve("ece", "forecast hedging", "drift")
    assert curve.exponent(0.99).lower < curve.exponent().lower


def test_the_markdown_table_stands_beside_what_is_proven():
    study = oc.play(
        [oc.forecasters.ForecastHedging(), oc.forecasters.Constant()],
        oc.natures.Drift(),
        horizon=[1000, 1728, 4096, 8000, 16_384],
        runs=4,
        measures=["ece"],
    )
    curve = study.curve("ece", "forecast hedging")
    bound = oc.forecasters.ForecastHedging().guarantees[0].bound
    assert curve.proven() == pytest.approx(np.log(bound(16_384) / bound(1000)) / np.log(16.384))
    assert study.curve("ece", "constant").proven() is None
    table = exponents_markdown(study)
    assert "**ece** (best known: Ω(T^0.54389) … O(T^(2/3)))" in table
    shown = line(curve.exponent(simultaneous(2)))
    assert (
        f"| forecast hedging | {shown} | {curve.proven():.2f}: ≤ T/(2m) + m + 1 + √((m + 1)(m + 1 + T/2 + T/m)) |"
        in table
    )
    assert "- T^α: mean growth exponent over these T" in table
    assert "the intervals of each table hold all together with 95 %" in table
    assert "†" not in table
    cells = [
        replace(c, promises=tuple(replace(p, bound=c.horizon**-2.0, formula="T^-2") for p in c.promises))
        for c in study.cells
    ]
    table = exponents_markdown(replace(study, cells=tuple(cells)))
    assert f"| forecast hedging | {shown} † | -2.00: ≤ T^-2 |" in table
    assert table.splitlines()[-1].startswith("† Grows faster over these T than the bound proved")
    assert table.count("† Grows") == 1


def printed(capsys, value):
    print_json(value)
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_a_number_that_is_not_finite_is_null_and_the_key_beside_it_says_which(capsys):
    rows = [
        {"total": math.inf, "fit": {"lower": -math.inf, "upper": 1.0}, "trend": math.nan, "name": "inf"},
        {"total": 2, "fit": None, "trend": np.float64("-inf"), "name": "é×"},
    ]
    assert printed(capsys, rows) == [
        {
            "total": None,
            "total_is": "inf",
            "fit": {"lower": None, "lower_is": "-inf", "upper": 1.0},
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
    said = [grid.number(x) for x in (0.0, 1e-320, 0.1234, 12.34, 123456.7, -1e14, 1e15, -1e300, np.inf)]
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
    heading, _, row = exponents_markdown(Study(tuple(cells))).splitlines()[2:5]
    assert heading == r"| forecaster | d\|e | proven |"
    assert row == r"| a \| b c | 1.00 [1.00, 1.00] | – |"


def test_lists_and_anything_else(capsys):
    assert printed(capsys, [1.0, math.inf, None, print]) == [1.0, None, None, str(print)]
