"""Captions, legends and notes are true of any totals: one run, one T, zero, infinite, unequal numbers of runs."""

import importlib
from html import unescape

import numpy as np
import pytest

from onlinecal.report import page
from onlinecal.report.comparing import answer, of_fronts, of_paired, of_ranking
from onlinecal.report.late_plot import delays_table
from onlinecal.report.page_pictures import few
from onlinecal.report.study_plot import exponents_table, plot_exponents
from onlinecal.report.totals import exponents_markdown, print_totals, study_html, totals_markdown
from onlinecal.study.compare import COMMON_RUNS, fronts, paired, ranking
from onlinecal.study.curves import Study
from tests.report import made
from tests.report.made import INF, TIMES, cell


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
    assert [t.get_text() for t in plot_exponents(missing, ["ece"]).axes[0].texts].count("") == 3


def test_dotted_lines_of_late_games_begin_at_a_point_that_is_drawn():
    """Not at a T at which the total is 0, and of no line that has no point."""
    for without, first in (((100,), 200), (TIMES, None)):
        late = made.study(*(
            cell("a", np.multiply(row, delay > 0 or t not in without), f"drift{schedule}", times=(t,),
                 open=(delay,) * (delay > 0), schedule=("drift", schedule.removeprefix(", ")))
            for delay, schedule in ((0, ""), (3, ", delay 3"))
            for t, row in zip(TIMES[:3], GOOD[:3], strict=True)
        ))  # fmt: skip
        table = delays_table(late, ["ece"])
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
    assert table.values.iat[0, 0] == 4.5
    for said in (
        of_ranking(ranking(unequal, "ece")).notes, of_fronts([front]).notes, of_paired(difference, []).notes,
        table.notes,
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
    assert [row[1].splitlines()[0] for row in page.lowest(odd).rows] == ["b", "b"]
    for most, names in ((1, ["b"]), (2, ["b", "c"])):
        assert few(odd, odd.natures, "ece", most)[0].forecasters == names
    two = Study((*odd.cells, *games({"a": GOOD, "b": GOOD}, nature="other").cells))
    assert page.lowest(two).rows[0][-1].startswith("b\n")


def test_captions_are_at_most_60_words():
    modules = ("curve_plot", "decision_plot", "late_plot", "people", "regret_plot", "reliability_plot", "study_plot",
               "sweep_plot", "trajectory_plot", "world_plot")  # fmt: skip
    found = {}
    for module in modules:
        for name, value in vars(importlib.import_module(f"onlinecal.report.{module}")).items():
            texts = value if isinstance(value, dict) else {name: value}
            found |= {
                f"{module}.{name} {k}": v for k, v in texts.items() if name.isupper() and isinstance(v, str)
            }
    captions = {name: text for name, text in found.items() if text.endswith(".")}
    assert len(captions) >= 18
    assert [name for name, text in captions.items() if len(text.split()) > 60] == []
