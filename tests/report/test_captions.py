"""What captions, legends and notes say is so of any totals: one run, one T, zero, infinite, unequal numbers of runs."""

from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from onlinecal.core.columns import Column
from onlinecal.core.guarantee import Sight
from onlinecal.report import page_rows
from onlinecal.report.curves import Study, summary
from onlinecal.report.exponent_plot import heats
from onlinecal.report.late_frames import late_frames
from onlinecal.report.page_pictures import lowest
from onlinecal.report.paired import paired
from onlinecal.report.plots import captions
from onlinecal.report.ranking import COMMON_RUNS, fronts, ranking
from onlinecal.report.totals import exponents_markdown, print_totals, study_html, totals_markdown
from onlinecal.study.played import Played, Promise
from tests.report.shown import front_legend, print_compare, print_paired, print_ranking

INF = np.inf
TIMES = (100, 200, 400, 800)


def cell(who, rows, times, horizon, nature="drift", measures=("ece", "cdl"), **options):
    """A cell with these totals, (checkpoints, runs), in each measure."""
    totals = {name: np.array(rows, float).reshape(len(times), -1) for name in measures}
    columns = tuple(Column("measure", name) for name in measures)
    return Played(who, nature, horizon, np.array(times), totals, columns, sight=Sight.NOTHING, **options)


def study(table, times=TIMES, **options):
    """Fresh games: forecaster → at each T its totals, one a run."""
    return Study(
        tuple(
            cell(who, [row], (t,), t, **options)
            for who, rows in table.items()
            for t, row in zip(times, rows, strict=False)
        )
    )


def one_game(times):
    """Forecasters a and b, a game each, whose totals are those of √T."""
    found = [
        cell(who, np.sqrt(times)[:, None] * [k, k + 0.1], times, times[-1]) for k, who in ((1, "a"), (2, "b"))
    ]
    return Study(tuple(found))


GOOD = [[2, 1], [3, 2], [4, 4], [6, 5]]
UNEQUAL = study({"a": [[1, 2], [2, 3], [3, 4], [4, 5]], "b": [[2, 3, 9], [3, 4, 9], [4, 5, 9], [7, 9, 99]]})


def printed(capsys, show, *arguments):
    show(*arguments)
    return " ".join(capsys.readouterr().out.split())


# ---------------------------------------------------------------- what the T are


def test_an_exponent_says_of_which_times_it_is(capsys):
    """Of one game it is over the last two decades, whatever is drawn before them."""
    long, short = one_game([10, 100, 1000, 10_000, 100_000]), one_game([1000, 10_000, 100_000])
    assert long.curve("ece", "a").exponent() == long.curve("ece", "a").tail.exponent() != None  # noqa: E711
    assert "Exponent: mean growth over the last two decades of the rounds of one game, where" in captions[
        "curves"
    ](long.curves())
    assert "Exponent: mean growth over these T, where" in captions["curves"](short.curves())
    fresh = study({"c": np.sqrt(TIMES)[:, None] * [1.0, 1.1]})
    both = [*long.curves(), *fresh.curves()]
    assert "over these T, or the last two decades of the rounds of one game, where" in captions["curves"](
        both
    )
    assert "over these T (along one game, over their last two decades)" in printed(
        capsys, print_compare, long, "ece"
    )
    assert "along one game" not in printed(capsys, print_compare, fresh, "ece")
    # Games of their own on one recorded stream are no rounds of one game, though they are fitted alike.
    recorded = Study(tuple(replace(c, recorded=True) for c in fresh.cells))
    assert not recorded.curve("ece").exponent().fresh
    assert "along one game" not in printed(capsys, print_compare, recorded, "ece")
    assert captions["exponents"](long, ["ece"]).startswith("Prefixes of one game, T = 1,000 … 100,000;")


# ---------------------------------------------------------------- what has no place


def test_a_rate_that_only_nature_forces_goes_through_no_curve_of_its_own():
    forced = Promise("ece", "", "√T", "rate", "every forecaster", False, 1.0)
    own = Promise("ece", "", "√T", "rate", "all", True, 1.0)
    (curve,) = study({"a": GOOD}, measures=("ece",)).curves()
    for promises, said in (
        ([forced], "Dotted: proven rate. "),
        ([own], "Dotted: proven rate, drawn through the first point of its curve."),
        ([forced, own], "Dotted: proven rate, drawn through the first point of its curve."),
    ):
        kept = tuple((t, replace(p, bound=t**0.5)) for t in TIMES for p in promises)
        assert said in captions["curves"]([replace(curve, promises=kept)])


def test_a_dash_is_explained_where_one_stands(capsys):
    why = "–: no exponent, as there are fewer than three T or a mean total is 0, negative or infinite"
    for totals in ([[0, 0]] * 4, [[-1, -2]] * 4, [[INF, 1]] * 4, GOOD[:2]):
        some = study({"a": totals, "b": GOOD})
        assert heats(some, ["ece"])[0].texts[0] == ["–"]
        assert why in captions["exponents"](some, ["ece"])
        for shown in (
            printed(capsys, print_compare, some, "ece"),
            printed(capsys, print_totals, some, "title"),
            exponents_markdown(some),
            study_html(some),
        ):
            assert why in shown
    plain = study({"a": GOOD, "b": GOOD})
    assert why not in captions["exponents"](plain, ["ece"]) + exponents_markdown(plain) + study_html(plain)
    # Who was not played has an empty cell.
    missing = Study((*plain.cells, cell("c", [[1, 2]], (800,), 800, nature="other")))
    assert heats(missing, ["ece"])[0].texts[0][1] == ""


def test_dotted_lines_of_late_games_begin_at_a_point_that_is_drawn():
    """Not at a T at which the total is 0, and of no line that has no point."""
    late = [
        cell("a", [row], (t,), t, "drift" + f", delay {delay}" * (delay > 0), ("ece",), open=(delay,) * (delay > 0),
             schedule=("drift", f"delay {delay}" * (delay > 0)))
        for delay in (0, 3)
        for t, row in zip(TIMES[:3], GOOD[:3], strict=True)
    ]  # fmt: skip
    cells = [
        replace(c, totals={"ece": 0.0 * c.totals["ece"]}) if c.horizon == 100 and not c.open else c
        for c in late
    ]
    (each,) = late_frames(Study(tuple(cells)), ["ece"])
    bound, line = each.frame.bounds[0], each.frame.lines[0]
    assert line.rounds[line.shown].tolist() == [200, 400]
    assert bound.values[1] == pytest.approx(line.mean[1])
    none = [replace(c, totals={"ece": 0.0 * c.totals["ece"]}) if not c.open else c for c in late]
    (each,) = late_frames(Study(tuple(none)), ["ece"])
    (bound,) = each.frame.bounds
    assert bound.style == each.frame.lines[0].style == 1
    assert bound.values[0] == pytest.approx(each.frame.lines[0].mean[0])


# ---------------------------------------------------------------- runs and totals


@pytest.mark.filterwarnings("error")
def test_forecasters_with_unequal_numbers_of_runs_are_compared_on_those_that_all_have(capsys):
    """As a file of two may have them: runs are numbered, and the first two are those of both."""
    standing = ranking(UNEQUAL, "ece").standings[0]
    assert (standing.runs, standing.fewer, standing.means.tolist()) == (2, True, [4.5, 8.0])
    ((front,),) = [fronts(UNEQUAL, "ece", "cdl")]
    assert (front.runs, front.means[:, 0].tolist()) == (2, [4.5, 8.0])
    (difference,), _ = paired(UNEQUAL, "ece")
    assert (difference.runs, difference.mean) == (2, -3.5)
    table, meaning = page_rows.lowest(UNEQUAL)
    assert table.rows[0][1][0].value == 4.5
    for said in (
        printed(capsys, print_ranking, ranking(UNEQUAL, "ece")),
        front_legend([front]),
        captions["pareto"](UNEQUAL, ["ece", "cdl"]),
        printed(capsys, print_paired, [difference], []),
        meaning,
    ):
        assert COMMON_RUNS in said
    equal = study({"a": GOOD, "b": GOOD})
    assert (
        COMMON_RUNS not in printed(capsys, print_ranking, ranking(equal, "ece")) + page_rows.lowest(equal)[1]
    )


def test_what_a_total_is_depends_on_what_there_is(capsys):
    alone, same = study({"a": [[1], [2], [3], [4]]}), study({"a": [[1, 1]] * 4})
    half = "± half-width of its 95 % interval by Student's t, each by itself"
    for some, said in (
        (alone, "total T·μ of a single run"),
        (study({"a": GOOD}), f"mean total T·μ over the runs {half}"),
        (same, f"mean total T·μ over the runs {half}, 0 where all runs have the same total"),
        (study({"a": [[INF, 1]] * 4}), "mean total T·μ over the runs"),
        (
            study({"a": GOOD}, open=(3,)),
            f"{half}, of questions with a known outcome: those that are open at the end",
        ),
    ):
        for shown in (
            printed(capsys, print_compare, some, "ece"),
            totals_markdown(some),
            unescape(study_html(some)),
        ):
            assert said.lower() in shown.lower()
            assert (half in shown) == (half in said)
    assert summary([1.0]) == (1.0, INF)


@pytest.mark.filterwarnings("error")
def test_a_mean_that_is_infinite_both_ways_is_the_lowest_of_nobody():
    odd = study({"a": [[INF, -INF]] * 4, "b": GOOD, "c": [[INF, INF]] * 4})
    table, _ = page_rows.lowest(odd)
    assert [row[1][0].text for row in table.rows] == ["b", "b"]
    assert [curve.forecaster for curve in lowest(odd.curves(["ece"]), 1)] == ["b"]
    assert [curve.forecaster for curve in lowest(odd.curves(["ece"]), 2)] == ["b", "c"]
    two = Study((*odd.cells, *(replace(c, nature="other") for c in study({"a": GOOD, "b": GOOD}).cells)))
    assert page_rows.lowest(two)[0].rows[0][1][-1].text == "b"


# ---------------------------------------------------------------- tasks and questions


def test_of_tasks_only_what_is_drawn_is_said():
    """The runs are those of the largest T; that intervals of recorded outcomes are not over outcomes is said."""
    regret = Column("decision_task", "external_regret", task="umbrella")
    played = Study(
        tuple(
            replace(c, totals={regret.name: c.totals["ece"]}, columns=(regret,))
            for c in study({"a": GOOD[:2]}).cells
        )
    )
    first, last = played.cells
    fewer = replace(first, totals={name: totals[:, :1] for name, totals in first.totals.items()})
    assert "mean of 2 runs." in captions["tasks"](Study((fewer, last)))
    assert "recorded" not in captions["tasks"](played)
    recorded = Study(tuple(replace(c, recorded=True) for c in played.cells))
    assert "an interval is over the forecasters' randomness alone" in captions["tasks"](recorded)
