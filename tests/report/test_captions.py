"""What captions, legends and notes say is so of any totals: one run, one T, zero, infinite, unequal numbers of runs."""

from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from onlinecal.core.columns import Column
from onlinecal.core.guarantee import Sight
from onlinecal.report import page
from onlinecal.report.comparing import answer, of_fronts, of_paired, of_ranking
from onlinecal.report.curves import Study, summary
from onlinecal.report.late_plot import late_table
from onlinecal.report.page_pictures import few
from onlinecal.report.plots import captions
from onlinecal.report.ranking import COMMON_RUNS, fronts, paired, ranking
from onlinecal.report.study_plot import exponents_table, plot_exponents
from onlinecal.report.totals import exponents_markdown, print_totals, study_html, totals_markdown
from onlinecal.study.played import Played, Promise

INF = np.inf
TIMES = (100, 200, 400, 800)


def cell(who, rows, times, horizon, nature="drift", measures=("ece", "cdl"), **options):
    """A cell with these totals, (checkpoints, runs), in each measure."""
    totals = {name: np.array(rows, float).reshape(len(times), -1) for name in measures}
    columns = tuple(Column("measure", name) for name in measures)
    return Played(who, nature, horizon, np.array(times), totals, columns, sight=Sight.NOTHING, **options)


def study(table, times=TIMES, **options):
    """Fresh games: forecaster → at each T its totals, one a run."""
    each = ((who, t, row) for who, rows in table.items() for t, row in zip(times, rows, strict=False))
    return Study(tuple(cell(who, [row], (t,), t, **options) for who, t, row in each))


def one_game(times):
    """Forecasters a and b, a game each, whose totals are those of √T."""
    rows = {who: np.sqrt(times)[:, None] * [k, k + 0.1] for k, who in ((1, "a"), (2, "b"))}
    return Study(tuple(cell(who, row, times, times[-1]) for who, row in rows.items()))


GOOD = [[2, 1], [3, 2], [4, 4], [6, 5]]


def compared(capsys, some, show=lambda some: answer(some, {}, "ece", None, markdown=False, as_json=False)):
    show(some)
    return " ".join(capsys.readouterr().out.split())


def test_an_exponent_says_of_which_times_it_is(capsys):
    """Of one game it is over the last two decades, whatever is drawn before them."""
    long, short = one_game([10, 100, 1000, 10_000, 100_000]), one_game([1000, 10_000, 100_000])
    assert long.curve("ece", "a").exponent() == long.curve("ece", "a").tail.exponent() != None  # noqa: E711
    fresh = study({"c": np.sqrt(TIMES)[:, None] * [1.0, 1.1]})
    for curves, said in (
        (long.curves(), "over the last two decades of the rounds of one game, where"),
        (short.curves(), "over these T, where"),
        ([*long.curves(), *fresh.curves()], "over these T, or the last two decades of the rounds of one game, where"),
    ):  # fmt: skip
        assert f"Exponent: mean growth {said}" in captions["curves"](curves)
    # Games of their own on one recorded stream are no rounds of one game, though they are fitted alike.
    recorded = Study(tuple(replace(c, recorded=True) for c in fresh.cells))
    assert not recorded.curve("ece").exponent().fresh
    for some, along in ((long, True), (fresh, False), (recorded, False)):
        assert (
            "over these T (along one game, over their last two decades)" in compared(capsys, some)
        ) == along
    assert captions["exponents"](long, ["ece"]).startswith("Prefixes of one game, T = 1,000 … 100,000;")


def test_rates_say_through_which_point_they_are_drawn():
    (curve,) = study({"a": GOOD}, measures=("ece",)).curves()
    for upper in (False, True):
        rate = Promise("ece", "", "√T", "rate", "every forecaster", upper, 1.0)
        kept = tuple((t, replace(rate, bound=t**0.5)) for t in TIMES)
        said = captions["curves"]([replace(curve, promises=kept)])
        assert (
            "Dotted: proven rate, drawn through the first point of its curve, or of the lowest curve where the nature"
            in said
        )
        assert ("In the colour of the text: what the nature forces." in said) != upper
    assert "Dotted" not in captions["curves"]([curve])


def test_a_dash_is_explained_where_one_stands(capsys):
    why = "–: no exponent, as there are fewer than three T or a mean total is 0, negative or infinite"
    for totals in ([[0, 0]] * 4, [[-1, -2]] * 4, [[INF, 1]] * 4, GOOD[:2]):
        some = study({"a": totals, "b": GOOD})
        assert exponents_table(some, ["ece"])["text"].iloc[0] == "–"
        titled = compared(capsys, some, lambda some: print_totals(some, "title"))
        for shown in (compared(capsys, some), titled, exponents_markdown(some), study_html(some)):
            assert why in shown
    plain = study({"a": GOOD, "b": GOOD})
    assert why not in exponents_markdown(plain) + study_html(plain)
    # Who was not played has an empty cell.
    missing = Study((*plain.cells, cell("c", [[1, 2]], (800,), 800, nature="other")))
    assert [t.get_text() for t in plot_exponents(missing, ["ece"])[0].texts].count("") == 3


def test_dotted_lines_of_late_games_begin_at_a_point_that_is_drawn():
    """Not at a T at which the total is 0, and of no line that has no point."""
    late = [
        cell("a", [row], (t,), t, "drift" + f", delay {delay}" * (delay > 0), ("ece",), open=(delay,) * (delay > 0),
             schedule=("drift", f"delay {delay}" * (delay > 0)))
        for delay in (0, 3)
        for t, row in zip(TIMES[:3], GOOD[:3], strict=True)
    ]  # fmt: skip
    for without, first in (((100,), 200), (TIMES, None)):
        zero = [c.horizon in without and not c.open for c in late]
        cells = [
            replace(c, totals={"ece": c.totals["ece"] * (not z)}) for c, z in zip(late, zero, strict=True)
        ]
        table = late_table(Study(tuple(cells)), ["ece"])
        bound, line = (
            next(iter(table[table["mark"] == kind].groupby("part")))[1] for kind in ("rate", "mean")
        )
        assert bound["place"].iloc[0] == line["place"].iloc[0] == (first is None)
        at = 0 if first is None else line["T"].tolist().index(first)
        assert bound["total"].iloc[at] == pytest.approx(line["total"].iloc[at])


@pytest.mark.filterwarnings("error")
def test_forecasters_with_unequal_numbers_of_runs_are_compared_on_those_that_all_have():
    """As a file of two may have them: runs are numbered, and the first two are those of both."""
    unequal = study(
        {"a": [[1, 2], [2, 3], [3, 4], [4, 5]], "b": [[2, 3, 9], [3, 4, 9], [4, 5, 9], [7, 9, 99]]}
    )
    standing = ranking(unequal, "ece")[0]
    assert (standing.runs, standing.fewer, standing.means.tolist()) == (2, True, [[4.5], [8.0]])
    (front,) = fronts(unequal, "ece", "cdl")
    assert (front.runs, front.means[:, 0].tolist()) == (2, [4.5, 8.0])
    (difference,), _ = paired(unequal, "ece")
    assert (difference.contest.runs, difference.mean) == (2, -3.5)
    table = page.lowest(unequal)
    assert table.rows[0][1].value == 4.5
    equal = study({"a": GOOD, "b": GOOD})
    for said in (
        of_ranking(ranking(unequal, "ece")).notes, of_fronts([front]).notes, of_paired([difference], []).notes,
        [captions["pareto"](unequal, ["ece", "cdl"])], table.notes,
    ):  # fmt: skip
        assert COMMON_RUNS in " ".join(said)
    assert COMMON_RUNS not in " ".join([*of_ranking(ranking(equal, "ece")).notes, *page.lowest(equal).notes])


def test_what_a_total_is_depends_on_what_there_is(capsys):
    half = "± half-width of its 95 % interval by Student's t, each by itself"
    for some, said in (
        (study({"a": [[1], [2], [3], [4]]}), "total T·μ of a single run"),
        (study({"a": GOOD}), f"mean total T·μ over the runs {half}"),
        (
            study({"a": [[1, 1]] * 4}),
            f"mean total T·μ over the runs {half}, 0 where all runs have the same total",
        ),
        (study({"a": [[INF, 1]] * 4}), "mean total T·μ over the runs"),
        (
            study({"a": GOOD}, open=(3,)),
            f"{half}, of questions with a known outcome: those that are open at the end",
        ),
    ):
        for shown in (compared(capsys, some), totals_markdown(some), unescape(study_html(some))):
            assert said.lower() in shown.lower()
            assert (half in shown) == (half in said)
    assert summary([1.0]) == (1.0, INF)


@pytest.mark.filterwarnings("error")
def test_a_mean_that_is_infinite_both_ways_is_the_lowest_of_nobody():
    odd = study({"a": [[INF, -INF]] * 4, "b": GOOD, "c": [[INF, INF]] * 4})
    assert [row[1].text for row in page.lowest(odd).rows] == ["b", "b"]
    for most, names in ((1, ["b"]), (2, ["b", "c"])):
        assert few(odd, odd.natures, "ece", most)[0].forecasters == names
    two = Study((*odd.cells, *(replace(c, nature="other") for c in study({"a": GOOD, "b": GOOD}).cells)))
    assert page.lowest(two).rows[0][-1].text == "b"


def test_of_tasks_the_runs_are_those_of_the_largest_horizon_and_recorded_outcomes_are_named():
    regret = Column("decision_task", "external_regret", task="umbrella")
    cells = [
        replace(c, totals={regret.name: c.totals["ece"]}, columns=(regret,))
        for c in study({"a": GOOD[:2]}).cells
    ]
    first, last = cells
    fewer = replace(first, totals={name: totals[:, :1] for name, totals in first.totals.items()})
    assert "mean of 2 runs." in captions["tasks"](Study((fewer, last)))
    assert "recorded" not in captions["tasks"](Study((first, last)))
    recorded = Study(tuple(replace(c, recorded=True) for c in cells))
    assert "an interval is over the forecasters' randomness alone" in captions["tasks"](recorded)
