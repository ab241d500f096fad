"""Rankings and Pareto fronts: as the totals have it, and no more certain than the runs allow."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom, t

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.report.comparing import front_json, of_fronts, of_ranking, ranking_json
from onlinecal.report.study_plot import pareto_table, plot_pareto
from onlinecal.report.style import COLOURS, MARKERS
from onlinecal.report.terminal import print_json
from onlinecal.report.totals import totals_markdown
from onlinecal.study.compare import fronts, mean_ranks, ranking
from tests.report.made import INF, cell, noisy, study

PAID = Column("decision_task", "payoff", task="umbrella")


def made(nature="drift", columns=("ece", "cdl"), /, *totals, **options):
    """A cell for each row of the (forecasters, runs) totals of each column."""
    rows = zip(*totals, strict=True)
    return [
        cell(f"f{i}", dict(zip(columns, row, strict=False)), nature, **options) for i, row in enumerate(rows)
    ]


def test_ranks_over_natures(seed):
    rng = np.random.default_rng(seed)
    first, second = (
        made("drift", ["ece"], noisy(rng, [0, 100, 200])),
        made("rain", ["ece"], noisy(rng, [100, 0, 200])),
    )
    found = ranking(study(*first, *second), "ece")
    own, last = (1.5, 1.5, 1.5, 2), (3.0, 3.0, 3.0, 2)
    assert [*mean_ranks(found).itertuples(name=None)] == [("f0", *own), ("f1", *own), ("f2", *last)]
    assert [list(s.ranks) for s in found] == [[1, 2, 3], [2, 1, 3]]
    assert [s.apart for s in found] == [[], []]


def test_of_a_payoff_the_higher_is_the_better(seed):
    paid = study(*made("drift", [PAID], noisy(np.random.default_rng(seed), [0, 100])))
    (standing,) = ranking(paid, PAID.name)
    assert list(standing.ranks) == [2.0, 1.0]
    assert standing.certain.tolist() == [[False, False], [True, False]]
    (pair,) = ranking_json([standing])["natures"][0]["pairs"]
    assert (pair["first"], pair["better"]) == ("f1", "f1")
    assert 90 < pair["lower"] < pair["difference"] < pair["upper"] < 110


def test_ties_and_doubts(seed):
    """Of the orders that are said none is wrong more often than is said: see tests/study/test_orders.py."""
    same, far = noisy(np.random.default_rng(seed), [0.0, 50.0])
    (standing,) = ranking(study(*made("drift", ["ece"], [same, same, same + far])), "ece")
    assert list(standing.ranks) == [1.5, 1.5, 3.0]
    assert standing.span.tolist() == [[1, 2], [1, 2], [3, 3]]
    assert standing.apart == [("f0", "f1")]
    # A single run tells none apart.
    (standing,) = ranking(study(*made("drift", ["ece"], [[1.0], [2.0]])), "ece")
    assert standing.span.tolist() == [[1, 2], [1, 2]]


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


# ---------------------------------------------------------------- fronts


@given(arrays(float, (2, 6, 1), elements=st.integers(0, 4).map(float)))
def test_a_front_is_that_of_the_definition(totals):
    (front,) = fronts(study(*made("drift", ("ece", "cdl"), *totals)), "ece", "cdl")
    points = totals[:, :, 0].T
    for i, mine in enumerate(points):
        by = [f"f{j}" for j, other in enumerate(points) if (other <= mine).all() and (other < mine).any()]
        assert front.by(f"f{i}") == by
        assert (f"f{i}" in front.front) == (not by)
    assert not front.certain.any()


def test_what_is_certain(seed):
    rng = np.random.default_rng(seed)
    totals = [noisy(rng, [0, 100, 50]), noisy(rng, [0, 100, -50])]
    (front,) = fronts(study(*made("drift", ("ece", "cdl"), *totals)), "ece", "cdl")
    assert front.front == ["f0", "f2"]
    assert front.by("f1", certain=True) == ["f0", "f2"]
    assert not (front.certain & ~front.dominated).any()
    (paid,) = fronts(study(*made("drift", ("ece", PAID), *totals)), "ece", PAID.name)
    assert paid.front == ["f0", "f1"]
    assert paid.by("f2", certain=True) == ["f0"]


def test_no_domination_is_certain_more_often_wrong_than_is_said(seed):
    """Three forecasters are the same in one measure and far apart in the other, so none is better in both. Of 200
    studies more than isf(1e-9) of a binomial with 5 % say that one is with a probability of at most 1e-9. In the means
    one dominates another more often, which is the control.
    """
    rng, wrong, control = np.random.default_rng(seed), 0, 0
    for _ in range(200):
        totals = noisy(rng, [0, 0, 0]), noisy(rng, [0, 100, 200])
        (front,) = fronts(study(*made("drift", ("ece", "cdl"), *totals)), "ece", "cdl")
        wrong += bool(front.certain.any())
        control += bool(front.dominated.any())
    assert wrong <= binom.isf(1e-9, 200, 0.05) < control


def test_infinite_totals():
    mine = study(*made("drift", ("ece", "cdl"), [[1.0] * 3, [INF] * 3], [[1.0] * 3, [5.0] * 3]))
    (front,) = fronts(mine, "ece", "cdl")
    assert front.front == ["f0"]
    assert not front.certain.any()
    assert front_json(front)["forecasters"][1]["totals"] == [None, 5.0]
    assert pareto_table(mine, ("ece", "cdl"))["first"].isna().tolist() == [False, True]
    plot_pareto(mine, ("ece", "cdl")).draw_without_rendering()


def test_pictures(seed):
    rng = np.random.default_rng(seed)
    totals = [noisy(rng, [0, 100, 50, 60]), noisy(rng, [0, 100, -50, -49.9])]
    totals[1][3] = totals[1][2]  # a tie in one measure: f3 is dominated, and not beyond doubt
    mine = study(*(each for nature in ("drift", "rain $1") for each in made(nature, ("ece", "cdl"), *totals)))
    table, fig = pareto_table(mine, ("ece", "cdl")), plot_pareto(mine, ("ece", "cdl"), title="two")
    for axis, front in zip(fig.axes, fronts(mine, "ece", "cdl"), strict=True):
        part = table[table["nature"] == front.nature]
        assert part["forecaster"].tolist() == ["f0", "f1", "f2", "f3"]
        assert (part[["first", "second"]].to_numpy() == front.means).all()
        assert part["forecaster"][~part["dominated"]].tolist() == ["f0", "f2"]
        assert part["forecaster"][part["certain"]].tolist() == ["f1"]
        points = [line for line in axis.lines if len(line.get_xdata()) == 1 and line.get_marker() != "x"]
        for point, row in zip(points, part.itertuples(), strict=True):
            assert (point.get_xdata()[0], point.get_ydata()[0]) == (row.first, row.second)
            assert (point.get_color(), point.get_marker()) == (COLOURS[row.place], MARKERS[row.place])
            assert (point.get_markerfacecolor() == point.get_color()) != row.dominated
        crosses = [(x.get_xdata()[0], x.get_ydata()[0]) for x in axis.lines if x.get_marker() == "x"]
        assert crosses == [tuple(front.means[1])]
    assert fig.axes[0].get_xlabel() == "ECE, total (lower is better)"
    assert "16 runs · T = 100" in fig.legends[0].get_title().get_text()
    fig.savefig("/dev/null", format="png")  # labels of matplotlib's own language are no formulas


def test_axes_of_fronts_have_one_scale_in_all_panels():
    """Logarithmic if all means of a measure are positive."""
    mine = study(*made("drift", ("ece", "cdl"), [[1.0], [200.0]], [[2.0], [-1.0]]),
                 *made("rain", ("ece", "cdl"), [[1.0], [1.1]], [[2.0], [1.0]]))  # fmt: skip
    scales = [(axis.get_xscale(), axis.get_yscale()) for axis in plot_pareto(mine, ("ece", "cdl")).axes]
    assert scales == [("log", "linear")] * 2


# ---------------------------------------------------------------- in words


def test_in_words(seed, capsys):
    def printed(show, *given):
        show(*given)
        return capsys.readouterr().out

    rng = np.random.default_rng(seed)
    same, more = noisy(rng, [0, 9])
    mine = study(
        *made("drift", ("ece", "cdl"), [same, same], [same, same + more]),
        *made("rain", ("ece", "cdl"), noisy(rng, [0, 9]), noisy(rng, [0, 9]), recorded=True, open=(3,)),
    )
    standings, pareto = ranking(mine, "ece"), fronts(mine, "ece", "cdl")
    said = " ".join(printed(of_ranking(standings).print).split())
    for text in (
        "ece: ranks; T = 100, 16 runs",
        "Rank 1 has the lowest mean total",
        "Not told apart against drift: f0 – f1",
        "over the forecasters' randomness alone",
        "Questions that are open at the end are in no total",
    ):
        assert text in said
    assert "against rain" not in said
    head = "| forecaster | mean rank | drift | rain |\n|---|---|---|---|\n| f0 | 1.25 [1–1.5] | 1.5 [1–2] | 1 |\n"
    assert head in of_ranking(standings).markdown()
    said = " ".join(printed(of_fronts(pareto).print).split())
    assert "drift, T = 100, 16 runs: 1 of 2 on the front" in said
    assert "f0 †" in said  # against rain, in both
    assert of_fronts(pareto).markdown().count("– (on the front)") == 2
    head = "**rain, T = 100, 3 open at the end**\n\n| forecaster | ece | cdl |\n|---|---|---|\n| f0 | "
    assert head in totals_markdown(mine)
    for rows in (ranking_json(standings), [*map(front_json, pareto)]):
        assert json.loads(printed(print_json, rows), parse_constant=pytest.fail) == rows


# ---------------------------------------------------------------- by hand


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        ([0.02], [0.02]), ([0.03, 0.01], [0.045, 0.02]), ([0.02] * 3, [0.06] * 3),
        ([0.001, 0.04, 0.018], [0.003, 0.08, 0.045]),
    ],
)  # fmt: skip
def test_orders_are_certain_by_the_procedure_of_holm_over_all_natures(p, adjusted):
    """One pair against each of N natures: of 2N one-sided tests the least p-value counts 2N times, the next 2N − 1."""
    runs = 16
    spread = np.resize([1.0, -1.0], runs)
    shift = t.isf(np.array(p) / 2.0, runs - 1) * spread.std(ddof=1) / np.sqrt(runs)
    natures = [made(f"n{i}", ["ece"], [np.zeros(runs), spread + by]) for i, by in enumerate(shift)]
    found = ranking(study(*(cell for cells in natures for cell in cells)), "ece")
    pairs = [pair for nature in ranking_json(found)["natures"] for pair in nature["pairs"]]
    assert [pair["p"] for pair in pairs] == pytest.approx(adjusted)
    assert [pair["better"] for pair in pairs] == ["f0" if each <= 0.05 else None for each in adjusted]
    assert [bool(contest.certain[0, 1]) for contest in found] == [each <= 0.05 for each in adjusted]


def test_who_dominates_by_hand():
    """f0 beats f1 in both, ties f2 in one and beats it in the other; f3 is best in the second measure alone."""
    totals = [[1.0], [2.0], [1.0], [9.0]], [[2.0], [3.0], [4.0], [1.0]]
    mine = study(*made("drift", ("ece", "cdl"), *totals))
    (front,) = fronts(mine, "ece", "cdl")
    assert front.front == ["f0", "f3"]
    assert [front.by(who) for who in front.forecasters] == [[], ["f0"], ["f0"], []]
    table = pareto_table(mine, ("ece", "cdl")).set_index("forecaster")
    assert table["dominated"].to_dict() == {"f0": False, "f1": True, "f2": True, "f3": False}
