"""Rankings, Pareto fronts and differences run by run: by hand and by definition."""

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom, ttest_1samp
from scipy.stats import t as student

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.report import page
from onlinecal.report.comparing import (
    answer,
    front_json,
    of_fronts,
    of_measure,
    of_paired,
    of_ranking,
    paired_json,
    ranking_json,
)  # fmt: skip
from onlinecal.report.study_plot import pareto_table, plot_pareto
from onlinecal.report.style import COLOURS, MARKERS
from onlinecal.study.compare import COMMON_RUNS, RECORDED, fronts, mean_ranks, paired, ranking
from tests.report.made import INF, cell, noisy, study

PAID = Column("decision_task", "payoff", task="umbrella")
BOTH = "ece", "cdl"


def made(nature="drift", columns=BOTH, /, *totals, **options):
    """A cell for each row of the (forecasters, runs) totals of each column."""
    rows = zip(*totals, strict=True)
    return [
        cell(f"f{i}", dict(zip(columns, row, strict=False)), nature, **options) for i, row in enumerate(rows)
    ]


# ---------------------------------------------------------------- headings


@pytest.mark.parametrize(("last", "open"), [(100, ()), (200, ()), (200, (4,))])
@pytest.mark.parametrize(
    ("ask", "title", "runs", "late", "rows"),
    [
        (lambda s: of_measure(s, "ece"), "ece: total T·μ and exponent", "", ", 4 open at the end",
         [["f0", "2 ± 2.48\n–", "5.33 ± 1.43\n–"], ["f1", "12.3 ± 3.79\n–", "2.33 ± 1.43\n–"]]),
        (lambda s: of_ranking(ranking(s, "ece")), "ece: ranks", ", 3 runs", "",
         [["f0", "1.5 [1–1.5]", "1", "2 [1–2]"], ["f1", "1.5 [1.5–2]", "2", "1 [1–2]"]]),
        (lambda s: of_paired(*paired(s, "ece")), "ece: differences of totals, run by run", ", 3 runs",
         ", 4 open at the end", [["f0 − f1", "-10.3 ± 2.07 <", "3 in all runs"]]),
    ],
)  # fmt: skip
def test_what_is_the_same_of_all_natures_is_in_the_title_and_else_in_headings(
    ask, title, runs, late, rows, last, open
):
    totals = {"m": [[1, 2, 3], [11, 12, 14]], "n": [[5, 5, 6], [2, 2, 3]]}
    (table,) = ask(study(
        *made("m", ["ece"], totals["m"]), *made("n", ["ece"], totals["n"], times=(last,), open=open)
    )).tables  # fmt: skip
    same = last == 100
    assert table.title == title + f", T = 100{runs}" * same
    ends = f"\nT = 100{runs}", f"\nT = 200{runs}{late * bool(open)}"
    assert table.headings[-2:] == (["m", "n"] if same else ["m" + ends[0], "n" + ends[1]])
    assert table.rows == rows


def test_notes_say_with_what_probability_all_of_a_table_holds():
    mine = study(*made("m", BOTH, [[1, 2], [3, 4], [5, 7]], [[1, 2], [3, 4], [5, 7]]))
    for shown, said in (
        (of_paired(*paired(mine, "ece")), "all intervals of the table (3) hold together with 95 %"),
        (of_ranking(ranking(mine, "ece", 0.9)), "holds together with 90 %"),
        (of_fronts(fronts(mine, *BOTH, level=0.9)), "all † hold together with 90 %"),
    ):
        assert said in " ".join(shown.notes)


def test_a_table_of_a_front_names_six_forecasters_that_dominate_one():
    means = [[1, 2], [3, 4], *([4 + i, 5 + i] for i in range(7))]
    mine = study(*made("m", BOTH, means, [[2, 3], [1, 2], *means[2:]]))
    (shown,) = of_fronts(fronts(mine, *BOTH)).tables
    assert shown.title == "m, T = 100, 2 runs: 2 of 9 on the front"
    assert shown.headings == ["forecaster", *BOTH, "dominated by"]
    front, more = "– (on the front)", "f0\nf1\nf2\nf3\nf4\nf5\nand 2 more"
    assert shown.rows[:3] == [
        ["f0", "1.5", "2.5", front],
        ["f1", "3.5", "1.5", front],
        ["f2", "4.5", "4.5", "f0\nf1"],
    ]
    assert shown.rows[-1] == ["f8", "10.5", "10.5", more]


# ---------------------------------------------------------------- ranks


def test_ranks_over_natures(seed):
    rng = np.random.default_rng(seed)
    first = made("drift", ["ece"], noisy(rng, [0, 100, 200]))
    second = made("rain", ["ece"], noisy(rng, [100, 0, 200]))
    found = ranking(study(*first, *second), "ece")
    own, last = (1.5, 1.5, 1.5, 2), (3.0, 3.0, 3.0, 2)
    assert [*mean_ranks(found).itertuples(name=None)] == [("f0", *own), ("f1", *own), ("f2", *last)]
    assert [(list(s.ranks), s.apart) for s in found] == [([1, 2, 3], []), ([2, 1, 3], [])]
    assert of_ranking(found).tables[0].frame.to_numpy().tolist()[0] == ["1.5", "1", "2"]


def test_of_a_payoff_the_higher_is_the_better(seed):
    paid = study(*made("drift", [PAID], noisy(np.random.default_rng(seed), [0, 100])))
    (standing,) = ranking(paid, PAID.name)
    assert list(standing.ranks) == [2.0, 1.0]
    assert standing.certain.tolist() == [[False, False], [True, False]]
    data = ranking_json([standing])
    (pair,) = data["natures"][0]["pairs"]
    assert (data["better"], pair["first"], pair["better"]) == ("higher", "f1", "f1")
    assert 90 < pair["lower"] < pair["difference"] < pair["upper"] < 110


def test_ties_and_doubts(seed):
    same, far = noisy(np.random.default_rng(seed), [0.0, 50.0])
    mine = study(*made("drift", ["ece"], [same, same, same + far]), *made("rain", ["ece"], [same, far]))
    found, (single,) = ranking(mine, "ece"), ranking(study(*made("drift", ["ece"], [[1.0], [2.0]])), "ece")
    assert (list(found[0].ranks), found[0].span.tolist()) == ([1.5, 1.5, 3.0], [[1, 2], [1, 2], [3, 3]])
    assert (found[0].apart, single.span.tolist()) == ([("f0", "f1")], [[1, 2], [1, 2]])
    assert "Not told apart against drift: f0 – f1" in of_ranking(found).notes


@pytest.mark.parametrize("p", [[0.02], [0.03, 0.01], [0.02] * 3, [0.001, 0.04, 0.018], [0.05, 0.0251, 0.9]])
def test_orders_are_certain_by_the_procedure_of_holm_over_all_natures(p):
    """One pair against each of N natures: of 2N one-sided tests the least p-value counts 2N times, the next 2N − 1."""
    runs = 16
    spread = np.resize([1.0, -1.0], runs)
    shift = student.isf(np.array(p) / 2.0, runs - 1) * spread.std(ddof=1) / np.sqrt(runs)
    natures = [made(f"n{i}", ["ece"], [np.zeros(runs), spread + by]) for i, by in enumerate(shift)]
    found = ranking(study(*(cell for cells in natures for cell in cells)), "ece")
    pairs = [pair for nature in ranking_json(found)["natures"] for pair in nature["pairs"]]
    order, adjusted, least = np.argsort(p, kind="stable"), np.zeros(len(p)), 0.0
    for k, i in enumerate(order):
        least = adjusted[i] = min(1.0, max(least, p[i] / 2 * (2 * len(p) - k)))
    assert [pair["p"] for pair in pairs] == pytest.approx(adjusted)
    assert [pair["better"] for pair in pairs] == ["f0" if each <= 0.05 else None for each in adjusted]
    assert [bool(contest.certain[0, 1]) for contest in found] == [each <= 0.05 for each in adjusted]
    wide = student.ppf(1 - 0.025 / len(p), runs - 1) * spread.std(ddof=1) / np.sqrt(runs)  # Bonferroni
    for pair, by in zip(pairs, shift, strict=True):
        assert (pair["first"], pair["difference"]) == ("f1", pytest.approx(by))
        assert (pair["lower"], pair["upper"]) == pytest.approx((by - wide, by + wide))


# ---------------------------------------------------------------- fronts


@given(arrays(float, (2, 6, 1), elements=st.integers(0, 4).map(float)))
def test_a_front_is_that_of_the_definition(totals):
    (front,) = fronts(study(*made("drift", BOTH, *totals)), *BOTH)
    points = totals[:, :, 0].T
    for i, mine in enumerate(points):
        by = [f"f{j}" for j, other in enumerate(points) if (other <= mine).all() and (other < mine).any()]
        assert front.by(f"f{i}") == by
        assert (f"f{i}" in front.front) == (not by)
    assert [points[int(who[1:])][0] for who in front.front] == sorted(
        points[int(who[1:])][0] for who in front.front
    )
    assert not front.certain.any()


def test_a_domination_is_certain_by_the_larger_of_two_p_values(seed):
    rng = np.random.default_rng(seed)
    totals = [noisy(rng, [0, 100, 50]), noisy(rng, [0, 100, -50])]
    (front,) = fronts(study(*made("drift", BOTH, *totals)), *BOTH)
    assert front.front == ["f0", "f2"]
    assert front.by("f1", certain=True) == ["f0", "f2"]
    assert not (front.certain & ~front.dominated).any()
    (paid,) = fronts(study(*made("drift", ("ece", PAID), *totals)), "ece", PAID.name)
    assert (paid.front, paid.by("f2", certain=True)) == (["f0", "f1"], ["f0"])
    assert of_fronts([paid]).tables[0].frame["dominated by"].tolist() == ["– (on the front)"] * 2 + ["f0 †"]
    # Of two forecasters it is the paired test of each measure, two-sided.
    for shift in np.linspace(0.0, 1.5, 20):
        one = totals[0][:1], np.roll(totals[0][:1], 1)
        two = [np.concatenate((each, each + by + 0.3 * other)) for each, by, other in zip(
            one, (1.0, shift), rng.standard_normal((2, 1, 16)), strict=True)]  # fmt: skip
        (front,) = fronts(study(*made("drift", BOTH, *two)), *BOTH)
        p = max(ttest_1samp(each[1] - each[0], 0.0).pvalue for each in two)
        better = all(each[1].mean() > each[0].mean() for each in two)
        assert bool(front.certain[0, 1]) == (better and p <= 0.05)


def test_no_domination_is_certain_more_often_wrong_than_is_said(seed):
    """Three forecasters are the same in one measure and far apart in the other, so none is better in both. Of 200
    studies more than isf(1e-9) of a binomial with 5 % say that one is with a probability of at most 1e-9. In the means
    one dominates another more often, which is the control.
    """
    rng, wrong, control = np.random.default_rng(seed), 0, 0
    for _ in range(200):
        totals = noisy(rng, [0, 0, 0]), noisy(rng, [0, 100, 200])
        (front,) = fronts(study(*made("drift", BOTH, *totals)), *BOTH)
        wrong += bool(front.certain.any())
        control += bool(front.dominated.any())
    assert wrong <= binom.isf(1e-9, 200, 0.05) < control


def test_pictures_of_fronts(seed):
    rng = np.random.default_rng(seed)
    totals = [noisy(rng, [0, 100, 50, 60, 0]), noisy(rng, [0, 100, -50, -49.9, 0])]
    totals[1][3] = totals[1][2]  # a tie in one measure: f3 is dominated, and not beyond doubt
    totals[0][4] = INF  # no point, and dominated
    mine = study(*(each for nature in ("drift", "rain $1") for each in made(nature, BOTH, *totals)))
    table, fig = pareto_table(mine, BOTH), plot_pareto(mine, BOTH, title="two")
    for axis, front in zip(fig.axes, fronts(mine, *BOTH), strict=True):
        part = table[table["nature"] == front.nature]
        assert part["forecaster"].tolist() == ["f0", "f1", "f2", "f3", "f4"]
        assert (part[["first", "second"]].to_numpy()[:4] == front.means[:4]).all()
        assert part[["first", "second"]].isna().all(axis=1).tolist() == [False] * 4 + [True]
        assert part["dominated"].tolist() == [False, True, False, True, True]
        assert part["certain"].tolist() == [False, True, False, False, False]
        points = [line for line in axis.lines if len(line.get_xdata()) == 1 and line.get_marker() != "x"]
        for point, row in zip(points[:4], part.itertuples(), strict=False):
            assert (point.get_xdata()[0], point.get_ydata()[0]) == (row.first, row.second)
            assert (point.get_color(), point.get_marker()) == (COLOURS[row.place], MARKERS[row.place])
            assert (point.get_markerfacecolor() == point.get_color()) != row.dominated
        (line,) = (line for line in axis.lines if len(line.get_xdata()) > 1)
        assert (line.get_xdata().tolist(), line.get_drawstyle()) == (
            sorted(front.means[[0, 2], 0]),
            "steps-post",
        )
        crosses = [(x.get_xdata()[0], x.get_ydata()[0]) for x in axis.lines if x.get_marker() == "x"]
        assert crosses == [tuple(front.means[1])]
    assert front_json(front)["forecasters"][4]["totals"][0] is None
    assert fig.axes[0].get_xlabel() == "ECE, total (lower is better)"
    fig.savefig("/dev/null", format="png")  # labels of matplotlib's own language are no formulas
    # Of a payoff the higher is the better, so that a front rises.
    paid = study(*made("drift", ("ece", PAID), [[1, 2], [3, 4], [9, 9]], [[1, 2], [5, 6], [0, 1]]))
    (axis,) = plot_pareto(paid, ["ece", PAID.name]).axes
    assert [line.get_drawstyle() for line in axis.lines if len(line.get_xdata()) > 1] == ["steps-pre"]
    # Axes are logarithmic in all panels where all means of a measure are positive.
    mine = study(*made("drift", BOTH, [[1.0], [200.0]], [[2.0], [-1.0]]),
                 *made("rain", BOTH, [[1.0], [1.1]], [[2.0], [1.0]]))  # fmt: skip
    scales = [(axis.get_xscale(), axis.get_yscale()) for axis in plot_pareto(mine, BOTH).axes]
    assert scales == [("log", "linear")] * 2


@pytest.mark.parametrize(("least", "scale"), [(0.0, "linear"), (1e-3, "log")])
def test_axes_of_fronts_are_logarithmic_where_all_means_are_positive(least, scale):
    (axis,) = plot_pareto(study(*made("drift", BOTH, [[least], [2.0]], [[1.0], [2.0]])), BOTH).axes
    assert (axis.get_xscale(), axis.get_yscale()) == (scale, "log")


@pytest.mark.parametrize(("power", "remark"), [(0.9, "above O"), (0.6, ""), (0.2, "below Ω")])
def test_notes_of_a_measure_have_the_best_known_rates_and_the_remarks_that_occur(power, remark):
    mine = study(*(cell("a", [t**power] * 2, times=(t,)) for t in (100, 200, 400, 800)))
    _, known, *remarks = of_measure(mine, "ece").notes
    assert known.startswith("best known against the worst nature: Ω(T^0.54389) … O(T^(2/3)); a remark marks")
    assert [note.partition(":")[0] for note in remarks] == [remark] * bool(remark)


# ---------------------------------------------------------------- differences run by run


def test_they_are_the_differences_of_the_totals(seed):
    """With intervals of Bonferroni over all pairs; that they cover is tested in tests/study/test_orders.py.

    A difference of 50 standard deviations is in doubt with a probability below 1e-12.
    """
    rng = np.random.default_rng(seed)
    totals = {nature: noisy(rng, [0, 50, 0.1], 6) for nature in ("m", "n")}
    mine = study(*(
        each for nature, rows in totals.items() for each in made(nature, ["ece"], rows, open=(5,) * (nature == "n"))
    ))  # fmt: skip
    found, refused = paired(mine, "ece")
    assert refused == []
    asked = [(nature, i, j) for nature in totals for i, j in combinations(range(3), 2)]
    for d, (nature, i, j) in zip(found.itertuples(), asked, strict=True):
        each = totals[nature][i] - totals[nature][j]
        mean, half = each.mean(), student.ppf(1 - 0.025 / 6, 5) * each.std(ddof=1) / 6**0.5
        assert (d.nature, d.first, d.second, d.pair) == (nature, f"f{i}", f"f{j}", f"f{i} − f{j}")
        assert (d.difference, d.half_width, d.low, d.high) == pytest.approx(
            (mean, half, mean - half, mean + half)
        )
        assert d.lower_total == (d.first if mean + half < 0 else d.second if mean - half > 0 else "")
        assert (d.horizon, d.runs, d.open) == (100, 6, 5 * (nature == "n"))
    assert {*found["lower_total"]} >= {"f0", "f2"}


@pytest.mark.parametrize(
    ("form", "row"), [("markdown", "| f0 − f1 | -1 in all runs |"), ("as_json", '"first": "f0"')]
)
def test_what_is_not_compared_is_said_beside_markdown_and_json(form, row, capsys):
    mine = study(*made("fair", ["ece"], [[1, 2], [2, 3]]), *made("once", ["ece"], [[1], [2]]))
    answer(mine, {"paired": True}, None, None, **{"markdown": False, "as_json": False, form: True})
    out, err = capsys.readouterr()
    assert (row in out, err) == (True, "not compared: once: a single run; expected two at least\n")


@pytest.mark.parametrize(
    ("asked", "measure", "pareto", "said"),
    [
        ({"all": True, "ranking": True}, None, None, "--all and --ranking are two tables; expected one of the two"),
        ({"paired": True}, None, BOTH, "--paired and --pareto are two tables"),
        *(
            ({name: True}, "ece", None, f"--{name} is of other columns; expected no --measure")
            for name in ("people", "all")
        ),
        ({}, "ece", BOTH, "--pareto is of other columns; expected no --measure"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_asked_for_together(asked, measure, pareto, said):
    with pytest.raises(InvalidParameter, match=said):
        answer(study(*made()), asked, measure, pareto, markdown=False, as_json=False)


@pytest.mark.parametrize(
    ("ask", "who", "said"),
    [
        (lambda s: ranking(s, "eec"), 2, "did you mean 'ece'"),
        (lambda s: ranking(s, "ece"), 1, "ece: no nature has met two forecasters at one T"),
        (lambda s: fronts(s, "ece", "ece"), 2, "expected two measures"),
        (lambda s: fronts(s, "ece", "cd"), 2, "unknown measure 'cd'"),
    ],
)
def test_what_cannot_be_ranked(ask, who, said):
    with pytest.raises(oc.OnlinecalError, match=said):
        ask(study(*made("drift", ["ece"], [[1.0], [2.0]][:who])))


@pytest.mark.parametrize(("runs", "certain"), [(2, False), (5, False), (6, True)])
def test_the_same_difference_in_all_runs_has_no_interval(runs, certain):
    """Three runs of one pair cannot tell 2 from what chance would make of whole numbers: 2^(1−R) ≤ 5 % from R = 6."""
    found, _ = paired(study({("a", "n"): [1.0] * runs, ("b", "n"): [3.0] * runs}), "ece")
    (said,) = paired_json(found)
    assert (said["difference"], said["lower_total"]) == (-2.0, "a" if certain else "")
    assert (said["low"], said["high"], said["same_in_all_runs"]) == (None, None, True)
    assert of_paired(found, []).tables[0].frame.iat[0, 0] == "-2 in all runs" + " <" * certain
    (tie,) = paired_json(paired(study({(who, "n"): [1.0] * runs for who in "ab"}), "ece")[0])
    assert (tie["difference"], tie["same_in_all_runs"], tie["lower_total"]) == (0.0, True, "")


def test_infinite_recorded_and_unequal_runs():
    found, _ = paired(study({("a", "n"): [INF, INF, 3.0], ("b", "n"): [1.0, 2.0, 3.0]}), "ece")
    assert (found["difference"].isna().all(), found["lower_total"].tolist()) == (True, [""])
    assert of_paired(found, []).tables[0].frame.iat[0, 0] == "infinite totals"
    found, _ = paired(study(*(cell(who, [1, k], recorded=True) for k, who in enumerate("ab"))), "ece")
    assert found["recorded"].all()
    assert RECORDED in of_paired(found, []).notes[0]
    # Runs are numbered: the first two are those of both, as a merged file may have them.
    unequal = study(*made("drift", BOTH, [[4, 5], [7, 9, 99]], [[4, 5], [7, 9, 99]]))
    standing, (front,) = ranking(unequal, "ece")[0], fronts(unequal, *BOTH)
    assert (standing.runs, standing.fewer, standing.means.tolist()) == (2, True, [[4.5], [8.0]])
    assert (front.runs, front.means[:, 0].tolist()) == (2, [4.5, 8.0])
    difference, _ = paired(unequal, "ece")
    assert difference[["runs", "difference"]].values.tolist() == [[2, -3.5]]
    table = page.lowest(unequal)
    assert table.values.iat[0, 0] == 4.5
    assert COMMON_RUNS in of_ranking([standing]).notes
    for rows in (ranking_json([standing]), [front_json(front)]):
        assert json.loads(json.dumps(rows, allow_nan=False)) == rows
