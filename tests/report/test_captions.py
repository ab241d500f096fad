"""Captions, legends and notes are true of any totals: one run, one T, zero, infinite, unequal numbers of runs."""

from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from onlinecal.core.columns import Column
from onlinecal.report import page
from onlinecal.report.comparing import answer, of_fronts, of_paired, of_ranking
from onlinecal.report.late_plot import late_table
from onlinecal.report.page_pictures import few
from onlinecal.report.plots import captions
from onlinecal.report.study_plot import exponents_table, plot_exponents
from onlinecal.report.totals import exponents_markdown, print_totals, study_html, totals_markdown
from onlinecal.study.compare import COMMON_RUNS, fronts, paired, ranking
from onlinecal.study.curves import Study
from onlinecal.study.played import Promise
from tests.report import made
from tests.report.made import INF, TIMES, cell, curve


def games(table, times=TIMES, **options):
    """Fresh games: forecaster → at each T its totals, one a run, in two measures."""
    each = ((who, t, row) for who, rows in table.items() for t, row in zip(times, rows, strict=False))
    return made.study(*(cell(who, {"ece": row, "cdl": row}, times=(t,), **options) for who, t, row in each))


def one_game(times):
    """Forecasters a and b, a game each, with totals of the order √T."""
    rows = {who: np.sqrt(times)[:, None] * [k, k + 0.1] for k, who in ((1, "a"), (2, "b"))}
    return made.study(*(cell(who, {"ece": row, "cdl": row}, times=times) for who, row in rows.items()))


GOOD = [[2, 1], [3, 2], [4, 4], [6, 5]]


def printed(capsys, some, show=lambda some: answer(some, {}, "ece", None, markdown=False, as_json=False)):
    show(some)
    return " ".join(capsys.readouterr().out.split())


def test_an_exponent_says_of_which_times_it_is(capsys):
    """Of one game it is over the last two decades, whatever is drawn before them."""
    long, short = one_game([10, 100, 1000, 10_000, 100_000]), one_game([1000, 10_000, 100_000])
    assert long.curve("ece", "a").exponent() == long.curve("ece", "a").tail.exponent() != None  # noqa: E711
    fresh = games({"c": np.sqrt(TIMES)[:, None] * [1.0, 1.1]})
    for curves, said in (
        (long.curves(), "over the last two decades of the rounds of one game."),
        (short.curves(), "over these T."),
        ([*long.curves(), *fresh.curves()], "over these T, or the last two decades of the rounds of one game."),
    ):  # fmt: skip
        assert f"Exponent: mean growth {said}" in captions["curves"](curves)
    # Games of their own on one recorded stream are no rounds of one game, though they are fitted alike.
    recorded = Study(tuple(replace(c, recorded=True) for c in fresh.cells))
    both = Study((*fresh.cells, *(replace(c, nature="rain") for c in recorded.cells)))
    for some, along, said in (
        (long, True, "Prefixes of one game, T = 1,000 … 100,000; 2 runs."),
        (fresh, False, "Fresh games, T = 100 … 800; 2 runs. Exponents are means over these T ± half"),
        (recorded, False, "Games of their own on one recorded stream, T = 100 … 800;"),
        (
            both,
            False,
            "Fresh games, T = 100 … 800; games of their own on one recorded stream, T = 100 … 800;",
        ),
    ):
        among = "over these T (along one game, over their last two decades)" in printed(capsys, some)
        assert among == along
        assert captions["exponents"](some, ["ece"]).startswith(said)


def test_rates_say_through_which_point_they_are_drawn():
    dotted = "Dotted: proven rate, drawn through the first point of its curve, or of the lowest curve where the nature"
    for upper in (False, True):
        promises = [(t, Promise("ece", "", "√T", "rate", "all", upper, t**0.5)) for t in TIMES]
        said = captions["curves"]([curve(GOOD, measure="ece", promises=tuple(promises))])
        assert dotted in said
        assert ("In the colour of the text: what the nature forces." in said) != upper
    assert "Dotted" not in captions["curves"]([curve(GOOD)])


def test_a_dash_is_explained_where_one_stands(capsys):
    why = "–: no exponent, as there are fewer than three T or a mean total is 0, negative or infinite"
    for totals in ([[0, 0]] * 4, [[-1, -2]] * 4, [[INF, 1]] * 4, GOOD[:2]):
        some = games({"a": totals, "b": GOOD})
        assert exponents_table(some, ["ece"])["text"].iloc[0] == "–"
        titled = printed(capsys, some, lambda some: print_totals(some, "title"))
        for shown in (printed(capsys, some), titled, exponents_markdown(some), study_html(some)):
            assert why in shown
    plain = games({"a": GOOD, "b": GOOD})
    assert why not in exponents_markdown(plain) + study_html(plain)
    # The cell of a pair that was not played is empty.
    missing = Study((*plain.cells, cell("c", [[1, 2]], "other")))
    assert [t.get_text() for t in plot_exponents(missing, ["ece"])[0].texts].count("") == 3


def test_dotted_lines_of_late_games_begin_at_a_point_that_is_drawn():
    """Not at a T at which the total is 0, and of no line that has no point."""
    for without, first in (((100,), 200), (TIMES, None)):
        late = made.study(*(
            cell("a", np.multiply(row, delay > 0 or t not in without), f"drift{schedule}", times=(t,),
                 open=(delay,) * (delay > 0), schedule=("drift", schedule.removeprefix(", ")))
            for delay, schedule in ((0, ""), (3, ", delay 3"))
            for t, row in zip(TIMES[:3], GOOD[:3], strict=True)
        ))  # fmt: skip
        table = late_table(late, ["ece"])
        bound, line = (
            next(iter(table[table["mark"] == kind].groupby("part")))[1] for kind in ("rate", "mean")
        )
        assert bound["place"].iloc[0] == line["place"].iloc[0] == (first is None)
        at = 0 if first is None else line["T"].tolist().index(first)
        assert bound["total"].iloc[at] == pytest.approx(line["total"].iloc[at])


def test_forecasters_with_unequal_numbers_of_runs_are_compared_on_those_that_all_have():
    """As a file of two may have them: runs are numbered, and the first two are those of both."""
    unequal = games(
        {"a": [[1, 2], [2, 3], [3, 4], [4, 5]], "b": [[2, 3, 9], [3, 4, 9], [4, 5, 9], [7, 9, 99]]}
    )
    standing = ranking(unequal, "ece")[0]
    assert (standing.runs, standing.fewer, standing.means.tolist()) == (2, True, [[4.5], [8.0]])
    (front,) = fronts(unequal, "ece", "cdl")
    assert (front.runs, front.means[:, 0].tolist()) == (2, [4.5, 8.0])
    difference, _ = paired(unequal, "ece")
    assert difference[["runs", "difference"]].values.tolist() == [[2, -3.5]]
    table = page.lowest(unequal)
    assert table.rows[0][1].value == 4.5
    for said in (
        of_ranking(ranking(unequal, "ece")).notes, of_fronts([front]).notes, of_paired(difference, []).notes,
        [captions["pareto"](unequal, ["ece", "cdl"])], table.notes,
    ):  # fmt: skip
        assert COMMON_RUNS in " ".join(said)
    equal = games({"a": GOOD, "b": GOOD})
    assert COMMON_RUNS not in " ".join([*of_ranking(ranking(equal, "ece")).notes, *page.lowest(equal).notes])


HALF = "± half-width of its 95 % interval by Student's t, each by itself"


@pytest.mark.parametrize(
    ("totals", "options", "said"),
    [
        ([[1], [2], [3], [4]], {}, "total T·μ of a single run"),
        (GOOD, {}, f"mean total T·μ over the runs {HALF}"),
        ([[1, 1]] * 4, {}, f"mean total T·μ over the runs {HALF}, 0 where all runs have the same total"),
        ([[INF, 1]] * 4, {}, "mean total T·μ over the runs"),
        (GOOD, {"open": (3,)},
         f"{HALF}, of questions with a known outcome: those that are open at the end"),
    ],
)  # fmt: skip
def test_what_a_total_is_depends_on_what_there_is(totals, options, said, capsys):
    some = games({"a": totals}, **options)
    for shown in (printed(capsys, some), totals_markdown(some), unescape(study_html(some))):
        assert said.lower() in shown.lower()
        assert (HALF in shown) == (HALF in said)


def test_a_mean_that_is_infinite_both_ways_is_never_the_lowest():
    odd = games({"a": [[INF, -INF]] * 4, "b": GOOD, "c": [[INF, INF]] * 4})
    assert [row[1].text for row in page.lowest(odd).rows] == ["b", "b"]
    for most, names in ((1, ["b"]), (2, ["b", "c"])):
        assert few(odd, odd.natures, "ece", most)[0].forecasters == names
    two = Study((*odd.cells, *games({"a": GOOD, "b": GOOD}, nature="other").cells))
    assert page.lowest(two).rows[0][-1].text == "b"


def test_of_tasks_the_runs_are_those_of_the_largest_horizon_and_recorded_outcomes_are_named():
    regret = Column("decision_task", "external_regret", task="umbrella")
    for runs, recorded in ((1, False), (2, True)):
        said = captions["tasks"](made.study(
            cell("a", {regret: [GOOD[0][:runs]]}, recorded=recorded),
            cell("a", {regret: [GOOD[1]]}, times=(200,), recorded=recorded),
        ))  # fmt: skip
        assert "mean of 2 runs." in said
        assert ("an interval is over the forecasters' randomness alone" in said) == recorded
        assert ("recorded" in said) == recorded
