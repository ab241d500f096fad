"""Totals and exponents as tables, data and files: the same numbers in each, and those of very many in an overview."""

import json
import math
import re

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import TRUTHS
from onlinecal.growth.rates import KNOWN_RATES, OTHER_RATES, best_known
from onlinecal.growth.words import NONE
from onlinecal.measures import MEASURES
from onlinecal.report import catalogue
from onlinecal.report import totals as overviews
from onlinecal.report.listing import print_catalogue, print_entry
from onlinecal.report.pictures import draw
from onlinecal.report.study_plot import exponents_table, plot_exponents
from onlinecal.report.terminal import number, print_json
from onlinecal.report.totals import (
    cells,
    curve_html,
    exponents_markdown,
    long,
    longest,
    overview,
    print_overview,
    study_html,
    totals,
    totals_data,
    ways_on,
    with_spread,
)
from onlinecal.study.asked import known_measures
from onlinecal.study.curves import Study, summary
from onlinecal.study.played import Promise
from tests.command_line import onlinecal
from tests.report.made import INF, TIMES, cell, curve, study

GOOD = [[2, 1], [3, 2], [4, 4], [6, 5]]


def games(table, times=TIMES, **options):
    """Fresh games: forecaster → at each T its totals, one a run, in two measures."""
    each = ((who, t, row) for who, rows in table.items() for t, row in zip(times, rows, strict=False))
    return study(*(cell(who, {"ece": row, "cdl": row}, times=(t,), **options) for who, t, row in each))


# ---------------------------------------------------------------- exponents


def test_totals_are_those_of_the_curves_at_the_largest_t():
    some = games({"a": GOOD, "b": [[1, INF]] * 4, "c": GOOD[:3]})
    for measures, many in ((None, 6), (["ece"], 3)):
        rows = totals(some, measures)
        assert len(rows) == many
        for row, data in zip(rows.itertuples(), totals_data(rows), strict=True):
            own = some.curve(row.measure, row.forecaster)
            growth, (mean, half) = own.exponent(), summary(own.totals[-1])
            assert (row.total, row.horizon, row.runs, row.exponent) == (mean, own.rounds[-1], 2, growth)
            assert data["exponent"] == (None if growth is None else growth.as_json())
            assert data["half_width"] == (half if math.isfinite(half) else None)
            assert row.against_rates == own.against_rates()


def test_the_markdown_table_stands_beside_what_is_proven():
    def proven(power):
        """Of this power of T, for the first of two forecasters."""
        return study(*(
            cell(who, {"ece": [9 * t**0.6] * 2}, times=(t,), promises=(
                Promise("ece", "", f"T^{power}", "expected", "all", True, t**power),) * (who == "a"))
            for who in "ab" for t in TIMES
        ))  # fmt: skip

    for power, dagger in ((0.7, ""), (-2.0, " †")):
        table = exponents_markdown(proven(power))
        assert table.startswith(
            "**ece** (best known: Ω(T^0.54389) … O(T^(2/3)))\n\n| forecaster | drift | proven |"
        )
        row = f"| a | 0.60 [0.60, 0.60]{dagger} | {power:.2f}: ≤ T^{power} |\n| b | 0.60 [0.60, 0.60] | – |"
        assert (row in table, "†: grows faster" in table) == (True, bool(dagger))
    # Labels stay in their cells.
    odd = study(*(cell("a | b\nc", [t, t], "d|e", times=(t,)) for t in (100, 200, 400)))
    heading, _, row = exponents_markdown(odd).splitlines()[2:5]
    assert (heading, row) == (r"| forecaster | d\|e | proven |", r"| a \| b c | 1.00 [1.00, 1.00] | – |")


def test_a_dash_is_explained_where_one_stands():
    for rows in ([[0, 0]] * 4, [[-1, -2]] * 4, [[INF, 1]] * 4, GOOD[:2]):
        some = games({"a": rows, "b": GOOD})
        assert exponents_table(some, ["ece"])["text"].iloc[0] == "–"
        assert NONE in study_html(some)
    plain = games({"a": GOOD, "b": GOOD})
    assert NONE not in study_html(plain)
    # The cell of a pair that was not played is empty.
    missing = Study((*plain.cells, cell("c", [[1, 2]], "other")))
    assert [t.get_text() for t in plot_exponents(missing, ["ece"]).axes[0].texts].count("") == 3


@pytest.fixture
def shown(monkeypatch):
    """Title, tables and notes in place of the HTML of a notebook."""
    monkeypatch.setattr(overviews, "notebook", lambda title, tables, notes: (title, tables, notes))


@pytest.mark.parametrize(
    ("who", "whom", "forecasters", "natures"), [(43, 2, 40, 1), (10, 8, 10, 4), (10, 4, 10, 4), (3, 2, 3, 2)]
)
@pytest.mark.parametrize("measures", [6, 7])
def test_a_notebook_has_the_first_of_many_and_says_so(shown, who, whom, forecasters, natures, measures):
    names = [f"m{i}" for i in range(measures)]
    games = (cell(f"f{i}", {m: [1, 2] for m in names}, f"n{j}") for i in range(who) for j in range(whom))
    title, tables, notes = study_html(study(*games, name="mine"))
    assert (title, [table.title for table in tables]) == ("mine", [f"n{j}, T = 100" for j in range(natures)])
    assert {table.frame.shape for table in tables} == {(forecasters, 6)}
    left = (who * whom, measures) != (forecasters * natures, 6)
    assert any("not all is shown" in note for note in notes) == left


def test_a_curve_in_a_notebook_has_some_t_evenly_with_the_last(shown):
    title, (table,), notes = curve_html(curve([[t, 3 * t] for t in range(1, 101)], range(1, 101)))
    assert (title, table.headings) == (
        "brier: one against drift",
        ["T", "mean total of 2 runs", "± 95 %", "a round"],
    )
    assert [row[0] for row in table.rows] == [f"{t}" for t in range(1, 101, 3)]
    assert table.rows[-1] == ["100", "200", "1,271", "2"]
    assert notes[-1] == "34 of 100 T are shown"
    _, (table,), notes = curve_html(curve([[1]] * 40, range(1, 41)))
    assert (len(table.rows), table.rows[1]) == (40, ["2", "1", "–", "0.5"])
    assert not [note for note in notes if "are shown" in note]


# ---------------------------------------------------------------- numbers and words


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
    halves = {np.nan: "5", 0.5: "5 ± 0.5", 1e-11: "5 ± 1e-11", 1e-12: "5 ± 0"}
    assert {half: with_spread(5.0, half) for half in halves} == halves


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


def test_paragraphs_of_a_docstring_go_on_over_its_full_lines_and_lists_do_not(capsys):
    full, said = "a " * 47 + "b", ["It is.", "Rule:", "- one", "- {full}", "- two", "    {full}", "left"]
    entry = {"name": "it", "kind": "task", "parameters": [], "guarantees": [], "implied": [],
             "documentation": "\n".join(["{full}", "c", *said]).format(full=full)}  # fmt: skip
    print_entry(entry)
    shown = capsys.readouterr().out
    assert " ".join(shown.split()).endswith(f"{full} c It is. Rule: - one - {full} - two {full} left")
    alone = [line for line in shown.splitlines() if line in ("c", *said)]
    assert alone == ["It is.", "Rule:", "- one", "- two", "left"]


def test_a_cell_has_its_total_its_t_and_its_growth():
    some = study(
        *(cell("a", [3 * t, 3 * t], times=(t,)) for t in (100, 200, 400)), cell("b", [2, 2], times=(50,)),
        cell("c", [1], times=(400,), open=(7,)),
    )  # fmt: skip
    rows = totals(some)
    assert longest(rows) == (400, ", 7 open at the end")
    assert longest(rows[rows["forecaster"] != "c"]) == (400, "")
    assert cells(rows, 400) == ["1,200 ± 0\nT^1.00\n[1.00, 1.00]", "2 ± 0\nat T = 50\n–", "1\n–"]
    assert cells(rows, 400, spread=False, growth=False) == ["1,200", "2\nat T = 50", "1"]
    assert cells(rows, 400, growth=False, remark=True) == ["1,200 ± 0\nabove O", "2 ± 0\nat T = 50", "1"]


@pytest.mark.parametrize(("letters", "joined"), [(89, False), (90, True)])
def test_a_line_of_ninety_letters_is_full(letters, joined, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    full = "a" * letters
    print_entry({"name": "it", "kind": "task", "parameters": [], "guarantees": [], "implied": [],
                 "documentation": f"{full}\nb"})  # fmt: skip
    assert (f"{full} b" in capsys.readouterr().out.splitlines()) == joined


def test_an_entry_is_printed_with_its_parameters_facts_and_bounds(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    given = [
        {"name": "m", "required": True, "default": None},
        {"name": "p", "required": False, "default": 0.5},
    ]
    said = {"documentation": "It is.", "deterministic": "yes", "loop": "simpy", "guarantees": ["ece ≤ 1"]}
    print_entry({"name": "it", "kind": "forecasters", "parameters": given, **said, "implied": ["≤ 2: cdl"]})
    assert capsys.readouterr().out.splitlines() == [
        "it (forecasters; parameters: m, p = 0.5)", "", "It is.", "", "Deterministic: yes", "Loop: simpy", "",
        "Proved, at the default parameters", "- ece ≤ 1", "",
        "Which implies (swap_regret, external_regret: of every task)", "- ≤ 2: cdl",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "headings"),
    [
        ("forecasters", ["what it is", "proved"]), ("natures", ["what it is", "proved"]), ("tasks", ["what it is"]),
        ("measures", ["what it is", "source"]), ("class_measures", ["what it is", "source"]),
        ("rates", ["total", "source"]),
    ],
)  # fmt: skip
def test_headings_of_the_catalogue_say_what_stands_below_them(kind, headings, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    print_catalogue(
        [{"kind": kind, "name": "a name", "summary": "Of it.", "known": "By whom."}], as_json=False
    )
    title, first, row, _ = (re.split("  +", line.strip()) for line in capsys.readouterr().out.splitlines())
    assert (title, first, row) == ([kind], ["name", *headings], ["a name", "Of it.", "By whom."])


@pytest.mark.parametrize(("columns", "lines"), [(71, True), (72, False)])
def test_a_narrow_terminal_has_a_line_for_each_entry(columns, lines, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    print_catalogue(
        [{"kind": "tasks", "name": "it", "summary": "What it is.", "known": "By them."}], as_json=False
    )
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert (shown == ["tasks", "it: What it is.", "  By them."]) == lines


def test_what_a_bound_implies_is_of_games_of_its_kind():
    for name, there in (("simplex_hedging", known_measures(classes=True)), ("forecast_hedging", MEASURES)):
        (found,) = catalogue.entries(name)
        implied = {word for line in found["implied"] for word in line.partition(": ")[2].split(", ")}
        assert {"smooth_ce", "cdl", "swap_regret"} <= implied <= {*there, "swap_regret", "external_regret"}


def test_rates_are_those_stated_and_then_those_that_follow_from_them():
    """Those that follow are of other measures, or of the other side; of each measure the best is among both."""
    kinds = "rates", "rates that follow from these", "rates of other quantities"
    stated, follow, others = (
        [row for row in catalogue.rows("rates") if row["kind"] == kind] for kind in kinds
    )
    assert [(row["name"], row["summary"], row["known"]) for row in stated] == [
        (rate.measure, str(rate), rate.source) for rate in KNOWN_RATES
    ]
    assert [float(row["exponent"]) for row in stated] == pytest.approx(
        [rate.exponent for rate in KNOWN_RATES], abs=5e-5
    )
    first, then = ({(row["name"], row["summary"][0]) for row in rows} for rows in (stated, follow))
    assert not first & then
    best = {(name, str(rate)) for name in MEASURES for rate in best_known(name)}
    assert best <= {(row["name"], row["summary"]) for row in stated + follow}
    assert [row["summary"] for row in others] == [rate.statement for rate in OTHER_RATES]


OF_PARAMETERS = "depends on its parameters"


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("harmonic", ["no", "no", "yes", "O(T * classes)", "compiled steps"]),
        ("almost_one_step_ahead", ["yes", "yes", "yes", "O(m)", "compiled steps"]),
        ("delayed", [OF_PARAMETERS, OF_PARAMETERS, "yes", OF_PARAMETERS, OF_PARAMETERS]),
        ("tests.engine.games:Laws", ["not declared", "no", *["not declared"] * 2, "plain Python"]),
        ("sparse_bias", ["yes", "yes", "O(t)", "compiled steps"]), ("replay", ["no", "yes", "O(1)", OF_PARAMETERS]),
        ("queue", ["no", "yes", "O(t)", "simpy"]),
    ],
)  # fmt: skip
def test_facts_of_a_player_are_those_that_it_states_and_how_it_is_played(name, facts):
    """Whether it is deterministic is said of forecasters alone."""
    (found,) = catalogue.entries(name)
    names = ["deterministic", "needs_horizon", "safe_under_delay", "memory", "loop"][-len(facts) :]
    assert {key: found[key] for key in (*TRUTHS, "memory", "loop") if key in found} == dict(
        zip(names, facts, strict=True)
    )


# ---------------------------------------------------------------- very many cells


def table(means, measures=("ece",)):
    """A study of one run in which forecaster i has the total means[i, j] against nature j."""
    return study(*(
        cell(f"f{i}", {name: [m] for name in measures}, f"n{j}")
        for i, row in enumerate(means) for j, m in enumerate(row)
    ))  # fmt: skip


def test_extremes_are_those_of_the_means(seed):
    means = np.random.default_rng(seed).random((7, 5))
    found = overview(table(means), "ece")
    order = sorted(range(7), key=lambda i: (means[i].max(), np.median(means[i])))
    assert [*found.forecaster.index] == [f"f{i}" for i in order]
    for who, row in found.forecaster.iterrows():
        own = means[int(who[1:])]
        assert (row["least"], row["median"], row["largest"]) == (own.min(), np.median(own), own.max())
        assert (row["easiest"], row["hardest"]) == (f"n{own.argmin()}", f"n{own.argmax()}")
    order = sorted(range(5), key=lambda j: (-means[:, j].min(), -np.median(means[:, j])))
    assert [*found.nature.index] == [f"n{j}" for j in order]
    assert all(row["easiest"] == f"f{means[:, int(n[1:])].argmin()}" for n, row in found.nature.iterrows())
    assert found.horizon == 100


def test_means_are_over_runs_and_ties_keep_the_order_of_the_study():
    found = overview(study({("b", "n"): [1, 3], ("a", "n"): [2, 2], ("c", "n"): [0, 0]}), "ece")
    assert [*found.forecaster.largest.items()] == [("c", 0.0), ("b", 2.0), ("a", 2.0)]


def test_games_of_other_lengths_and_totals_that_have_no_mean_are_left_out():
    some = study(
        cell("a", [5, 7], "n"), cell("a", [900, 900], "short", (50,)), cell("b", [INF, -INF], "n"),
        cell("c", [INF, 1], "n"),
    )  # fmt: skip
    found = overview(some, "ece")
    assert found.forecaster.largest.to_dict() == {"a": 6.0, "c": np.inf}
    assert [*found.nature.index] == ["n"]
    found = overview(study(cell("a", [1], times=(50,)), cell("a", [2]), cell("b", [3])), "ece")
    assert [*found.forecaster.largest] == [2.0, 3.0]


def test_of_many_rows_both_ends_are_printed_and_the_rest_is_counted(capsys):
    many, names = 2 * overviews.SHOWN + 2, [f"m{i}" for i in range(10)]
    print_overview(table(np.arange(1.0, many + 1)[:, None] + np.zeros(3)), "a title", ["ece"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["a title", f"{many} forecasters against 3 natures, 1 run"]
    shown = [line.split()[0] for line in lines if line.startswith(" f") and "forecaster" not in line]
    assert shown == [f"f{i}" for i in (*range(5), *range(many - 5, many))]
    assert "and 2 more forecasters between them" in lines
    print_overview(table(np.ones((2, 2)), measures=names), "title", names)
    printed = capsys.readouterr().out
    assert ("m2: natures by" in printed, "m3: natures by" in printed) == (True, False)
    assert "measured, too: m3, m4, m5, m6, m7, and 2 more" in printed
    print_overview(study(cell("a", [INF, -INF])), "no mean is known", ["ece"])


def test_a_run_ends_with_them_where_there_are_very_many_totals(tmp_path, monkeypatch):
    scenario, path = tmp_path / "s.toml", tmp_path / "the results.db"
    scenario.write_text(
        'runs = 1\nhorizon = 4\nmeasures = ["ece"]\nforecasters = [{ name = "constant", p = { each = [0.25, 0.5] } }]\n'
        'natures = [{ name = "bernoulli", q = { each = [0.5, 0.75] } }]\n'
    )
    whole = onlinecal("run", scenario, "-o", path, cwd=tmp_path).stdout
    assert f"picture: onlinecal plot '{path}'" in whole
    monkeypatch.setattr(overviews, "LONG", 3)
    short = onlinecal("run", scenario, "-o", path, "--resume", cwd=tmp_path).stdout
    assert "forecasters by their largest total over the natures" in short
    assert short.endswith(f"\nresults: {path}\n{ways_on(path, 'ece')}\n")
    assert f"onlinecal export '{path}' -o '{tmp_path / 'the results.csv'}'" in short
    monkeypatch.setattr(overviews, "LONG", 4)
    assert onlinecal("run", scenario, "-o", path, "--resume", cwd=tmp_path).stdout == whole


def test_what_is_long_is_told_by_pairs_and_measures():
    wide = table(np.ones((25, 40)))
    assert (long(wide, ["ece"]), long(wide, ["ece", "cdl"])) == (False, True)
    for kind in ("curves", "runs", "slopes"):
        with pytest.raises(
            InvalidParameter, match="1,001 curves; expected at most 1,000, chosen by --forecaster"
        ):
            draw(table(np.ones((1001, 1))), kind)
