"""Tables for machines and for people, and what `show` says of classes that users wrote."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.growth.words import line
from onlinecal.report import catalogue
from onlinecal.report.curve_plot import slopes_table
from onlinecal.report.listing import print_entry
from onlinecal.report.study_plot import exponents_table
from onlinecal.report.tables import Table, of_rows
from onlinecal.report.terminal import number, print_json
from onlinecal.report.totals import exponents_markdown, totals, totals_data
from tests.report.made import cell, study

F, N = oc.forecasters, oc.natures


def test_an_exponent_is_the_same_in_every_table():
    """However many others are shown with it, and also in pictures."""
    played = oc.play([F.ForecastHedging(), F.EmpiricalMean()], [N.Drift(), N.Bernoulli()],
                     horizon=[100, 196, 484, 1000], runs=4, measures=["ece", "cdl"])  # fmt: skip
    for measures, cells in ((None, 8), (["ece"], 4)):
        rows = totals(played, measures)
        assert len(rows) == cells
        for row, data in zip(rows.itertuples(), totals_data(rows), strict=True):
            growth = played.exponent(row.measure, row.forecaster, row.nature)
            assert row.exponent == growth
            assert data["exponent"] == growth.as_json()
    heat = exponents_table(played, ["ece"])
    for who, nature, value, half in heat[["forecaster", "nature", "exponent", "half"]].itertuples(
        index=False
    ):
        growth = played.exponent("ece", who, nature)
        assert (value, half) == (growth.value, (growth.upper - growth.lower) / 2)
    slopes = slopes_table(played.curves())
    fitted = slopes[slopes["mark"] == "fitted"]
    for row in fitted.itertuples():
        growth = played.exponent(row.measure, row.forecaster, row.nature)
        assert (row.slope, row.lower, row.upper) == (growth.value, growth.lower, growth.upper)
    assert len(fitted)


def test_the_markdown_table_stands_beside_what_is_proven():
    played = oc.play([F.ForecastHedging(), F.Constant()], N.Drift(), horizon=[1000, 1728, 4096, 8000], runs=4,
                     measures=["ece"])  # fmt: skip
    curve, bound = played.curve("ece", "forecast hedging"), F.ForecastHedging().guarantees[0].bound
    assert curve.proven() == pytest.approx(np.log(bound(8000) / bound(1000)) / np.log(8))
    assert played.curve("ece", "constant").proven() is None
    table, shown = exponents_markdown(played), line(curve.exponent())
    proof = f"{curve.proven():.2f}: ≤ T/(2m) + m + 1 + √((m + 1)(m + 1 + T/2 + T/m))"
    for said in (
        "**ece** (best known: Ω(T^0.54389) … O(T^(2/3)))",
        f"| forecast hedging | {shown} | {proof} |",
        "- T^α: mean growth exponent over these T",
        "with its own 95 % interval, of many of which one in twenty misses",
    ):
        assert said in table
    assert "†" not in table
    cells = [
        replace(c, promises=tuple(replace(p, bound=c.horizon**-2.0, formula="T^-2") for p in c.promises))
        for c in played.cells
    ]
    table = exponents_markdown(replace(played, cells=tuple(cells)))
    assert f"| forecast hedging | {shown} † | -2.00: ≤ T^-2 |" in table
    assert table.splitlines()[-1].startswith(
        "† Grows faster over these T, and still at the largest, than the bound"
    )


def test_labels_stay_in_their_cells_of_a_markdown_table():
    odd = study(*(cell("a | b\nc", [t, t], "d|e", times=(t,)) for t in (100, 200, 400)))
    heading, _, row = exponents_markdown(odd).splitlines()[2:5]
    assert heading == r"| forecaster | d\|e | proven |"
    assert row == r"| a \| b c | 1.00 [1.00, 1.00] | – |"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"total": math.inf, "fit": {"lower": -math.inf, "upper": 1.0}, "trend": math.nan, "name": "inf"},
         {"total": None, "total_is": "inf", "fit": {"lower": None, "lower_is": "-inf", "upper": 1.0}, "trend": None,
          "trend_is": "nan", "name": "inf"}),
        ([{"total": 2, "fit": None, "trend": np.float64("-inf"), "name": "é×"}],
         [{"total": 2, "fit": None, "trend": None, "trend_is": "-inf", "name": "é×"}]),
        ({"a": np.int64(3), "b": np.float32(0.5), "c": np.array([1, 2]), "d": np.bool_(True), "e": (1, 2)},
         {"a": 3, "b": 0.5, "c": [1, 2], "d": True, "e": [1, 2]}),
        ([1.0, math.inf, None, print], [1.0, None, None, str(print)]),
    ],
)  # fmt: skip
def test_json_has_numbers_and_names_what_is_not_finite(value, said, capsys):
    print_json(value)
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == said


def test_any_size_of_a_total_fits_a_cell():
    said = {0.0: "0", 1e-320: "1e-320", 0.1234: "0.123", 12.34: "12.3", 123456.7: "123,457",
            -1e14: "-100,000,000,000,000", 1e15: "1e+15", -1e300: "-1e+300", np.inf: "inf"}  # fmt: skip
    assert {x: number(x) for x in said} == said
    assert number(-0.0) == "0"


OWN = """
from functools import partial
from onlinecal.forecasters import Constant
class Silent:
    def __init__(self, weight=1.0): self.weight = weight
    def forecast(self): return 0.5
    def update(self, forecast, outcome): pass
class Said(Silent):
    "Says 1/2."
class Derived(Constant): pass
silent, said = partial(Silent, 2.0), partial(partial(Said), weight=2.0)
made = Said(3.0)
def make(weight=1.0):
    "Makes one."
    return Said(weight)
"""


def test_a_docstring_is_its_own(tmp_path, monkeypatch, capsys):
    """Not that of the class it derives from, which may do something else, nor that of `partial`."""
    (tmp_path / "catalogue_own.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    said = {"Silent": "", "silent": "", "Derived": "", "Said": "Says 1/2.", "said": "Says 1/2.", "made": "Says 1/2.",
            "make": "Makes one."}  # fmt: skip
    for name, documentation in said.items():
        (found,) = catalogue.entries(f"catalogue_own:{name}")
        assert found["documentation"] == documentation
        print_entry(found)
        assert (documentation or "It has no docstring.") in capsys.readouterr().out


@pytest.mark.parametrize("width", [40, 60, 100])
def test_headings_do_not_break_inside_a_word(width):
    headings = [
        "forecaster",
        "smooth_ece",
        "swap_regret[umbrella, rounded(m=10)]",
        "distance_lower[upper]",
        "exponent",
    ]
    table = Table("", of_rows(headings, [["forecast hedging, m = 10", *"1234"]]))
    words = {word for line in table.lines(width) for word in re.findall("[a-z]+", line)}
    assert {word for heading in headings for word in re.findall("[a-z]+", heading)} <= words
