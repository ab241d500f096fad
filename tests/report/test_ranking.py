"""Rankings and Pareto fronts: as the totals have it, and no more certain than the runs allow."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.core.guarantee import Sight
from onlinecal.report.comparing import of_fronts, of_ranking
from onlinecal.report.curves import Study
from onlinecal.report.ranking import front_json, fronts, mean_ranks, ranking, ranking_json
from onlinecal.report.study_plot import plot_pareto
from onlinecal.report.style import paper
from onlinecal.report.tables import print_json
from onlinecal.report.totals import totals_markdown
from onlinecal.study import Played
from tests.command_line import onlinecal

caption = plot_pareto.caption

ECE, CDL = Column("measure", "ece"), Column("measure", "cdl")
PAID = Column("decision_task", "payoff", task="umbrella")


def made(totals, nature="drift", columns=(ECE,), horizon=100, **options):
    """A cell for each row of the (columns, forecasters, runs) totals."""
    return [
        Played(
            f"f{i}", nature, horizon, np.array([horizon]),
            {c.name: np.asarray(t[i], dtype=float)[None, :] for c, t in zip(columns, totals, strict=True)},
            tuple(columns), sight=Sight.NOTHING, **options,
        )
        for i in range(len(totals[0]))
    ]  # fmt: skip


def study(*cells):
    return Study(tuple(cell for some in cells for cell in some))


def noisy(rng, means, runs=16, scale=1.0):
    return np.asarray(means)[:, None] + scale * rng.standard_normal((len(means), runs))


def test_ranks_over_natures(seed):
    rng = np.random.default_rng(seed)
    mine = study(made([noisy(rng, [0, 100, 200])], "drift"), made([noisy(rng, [100, 0, 200])], "contrarian"))
    found = ranking(mine, "ece")
    assert mean_ranks(found) == {
        "f0": (1.5, 1.5, 1.5, 2),
        "f1": (1.5, 1.5, 1.5, 2),
        "f2": (3.0, 3.0, 3.0, 2),
    }
    assert [list(s.ranks) for s in found] == [[1, 2, 3], [2, 1, 3]]
    assert [s.apart for s in found] == [[], []]


def test_of_a_payoff_the_higher_is_the_better(seed):
    rng = np.random.default_rng(seed)
    (standing,) = ranking(study(made([noisy(rng, [0, 100])], columns=[PAID])), PAID.name)
    assert list(standing.ranks) == [2.0, 1.0]
    assert standing.certain.tolist() == [[False, False], [True, False]]
    (pair,) = ranking_json(ranking(study(made([noisy(rng, [0, 100])], columns=[PAID])), PAID.name))[
        "natures"
    ][0]["pairs"]
    assert (pair["first"], pair["better"]) == ("f1", "f1")
    assert 90 < pair["lower"] < pair["difference"] < pair["upper"] < 110


def test_ties_and_doubts(seed):
    rng = np.random.default_rng(seed)
    same = noisy(rng, [0.0])[0]
    (standing,) = ranking(study(made([[same, same, same + 50 + rng.standard_normal(16)]])), "ece")
    assert list(standing.ranks) == [1.5, 1.5, 3.0]
    assert standing.span.tolist() == [[1, 2], [1, 2], [3, 3]]
    assert standing.apart == [("f0", "f1")]
    # A single run tells nobody apart.
    (standing,) = ranking(study(made([[[1.0], [2.0]]])), "ece")
    assert standing.span.tolist() == [[1, 2], [1, 2]]


def test_ranks_that_are_not_ruled_out_hold_those_of_the_expected_totals(seed):
    """All of them, of two natures, in at least 95 % of studies if differences are normal: of 300 studies more than
    isf(1e-9) of a binomial with 5 % fail with a probability of at most 1e-9. The ranks of the means themselves, the
    control, are wrong in more.
    """
    rng, wrong, control = np.random.default_rng(seed), 0, 0
    means = np.array([0.0, 0.5, 0.5, 2.0])
    least = 1 + (means < means[:, None]).sum(axis=1)
    most = 4 - (means > means[:, None]).sum(axis=1)
    for _ in range(300):
        found = ranking(study(made([noisy(rng, means)], "a"), made([noisy(rng, means)], "b")), "ece")
        wrong += any((s.span[:, 0] > least).any() or (s.span[:, 1] < most).any() for s in found)
        control += any((s.ranks < least).any() or (s.ranks > most).any() for s in found)
        overall = mean_ranks(found)
        for who, (mean, low, high, _) in overall.items():
            assert low <= mean <= high, who
    limit = binom.isf(1e-9, 300, 0.05)
    assert wrong <= limit
    assert control > limit


def test_what_cannot_be_ranked():
    with pytest.raises(UnknownName, match="did you mean 'ece'"):
        ranking(study(made([[[1.0], [2.0]]])), "eec")
    with pytest.raises(InvalidParameter, match="ece: no nature has met two forecasters at one T"):
        ranking(study(made([[[1.0]]])), "ece")
    for measures, said in (
        (("ece", "ece"), "expected two measures"),
        (("ece", "cd"), "unknown measure 'cd'"),
    ):
        with pytest.raises(oc.OnlinecalError, match=said):
            fronts(study(made([[[1.0], [2.0]]])), *measures)


# ---------------------------------------------------------------- fronts


@given(arrays(float, (2, 6, 1), elements=st.integers(0, 4).map(float)))
def test_a_front_is_that_of_the_definition(totals):
    (front,) = fronts(study(made(totals, columns=[ECE, CDL])), "ece", "cdl")
    points = totals[:, :, 0].T
    for i, mine in enumerate(points):
        by = [f"f{j}" for j, other in enumerate(points) if (other <= mine).all() and (other < mine).any()]
        assert front.by(f"f{i}") == by
        assert (f"f{i}" in front.front) == (not by)
    assert not front.certain.any()


def test_what_is_certain(seed):
    rng = np.random.default_rng(seed)
    totals = [noisy(rng, [0, 100, 50]), noisy(rng, [0, 100, -50])]
    (front,) = fronts(study(made(totals, columns=[ECE, CDL])), "ece", "cdl")
    assert front.front == ["f0", "f2"]
    assert front.by("f1", certain=True) == ["f0", "f2"]
    assert not (front.certain & ~front.dominated).any()
    (paid,) = fronts(study(made(totals, columns=[ECE, PAID])), "ece", PAID.name)
    assert paid.front == ["f0", "f1"]
    assert paid.by("f2", certain=True) == ["f0"]


def test_no_domination_is_certain_more_often_wrong_than_is_said(seed):
    """Three forecasters that are the same in one measure and far apart in the other, so that none is better in both:
    of 400 studies more than isf(1e-9) of a binomial with 5 % say so with a probability of at most 1e-9. In the means
    one dominates another more often, which is the control.
    """
    rng, wrong, control = np.random.default_rng(seed), 0, 0
    for _ in range(400):
        totals = [noisy(rng, [0, 0, 0]), noisy(rng, [0, 100, 200])]
        (front,) = fronts(study(made(totals, columns=[ECE, CDL])), "ece", "cdl")
        wrong += bool(front.certain.any())
        control += bool(front.dominated.any())
    limit = binom.isf(1e-9, 400, 0.05)
    assert wrong <= limit
    assert control > limit


def test_infinite_totals():
    (front,) = fronts(
        study(made([[[1.0] * 3, [np.inf] * 3], [[1.0] * 3, [5.0] * 3]], columns=[ECE, CDL])), "ece", "cdl"
    )
    assert front.front == ["f0"]
    assert not front.certain.any()
    said = front_json(front)["forecasters"][1]
    assert said["totals"] == [None, 5.0]
    mine = study(made([[[1.0] * 3, [np.inf] * 3], [[1.0] * 3, [5.0] * 3]], columns=[ECE, CDL]))
    (ax,) = plot_pareto(mine, ("ece", "cdl"))
    assert list(points(ax)) == ["f0"]


def points(ax):
    """Label → the point of a forecaster; crosses and the line have none."""
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def test_pictures(seed):
    rng = np.random.default_rng(seed)
    totals = [noisy(rng, [0, 100, 50, 60]), noisy(rng, [0, 100, -50, -49.9])]
    totals[1][3] = totals[1][2]  # a tie in one measure: f3 is dominated, and not beyond doubt
    mine = study(*(made(totals, nature, columns=[ECE, CDL]) for nature in ("drift", "rain $1")))
    axes = plot_pareto(mine, ("ece", "cdl"), title="two")
    assert axes.shape == (2,)
    for ax, front in zip(axes, fronts(mine, "ece", "cdl"), strict=True):
        found = points(ax)
        assert list(found) == ["f0", "f1", "f2", "f3"]
        for i, (who, point) in enumerate(found.items()):
            look = paper(ax).style(mine.places[who])
            assert (point.get_color(), point.get_marker()) == (look.colour, look.marker)
            assert (point.get_xdata()[0], point.get_ydata()[0]) == tuple(front.means[i])
            filled = point.get_markerfacecolor() == look.colour
            assert filled == (who in front.front) == (who in ("f0", "f2"))
        crosses = [(x.get_xdata()[0], x.get_ydata()[0]) for x in ax.lines if x.get_marker() == "x"]
        assert crosses == [tuple(front.means[1])]
    assert axes[0].get_xlabel() == "ECE, total (lower is better)"
    said = caption(mine, ("ece", "cdl"))
    assert " ".join(axes[0].figure._supxlabel.get_text().split()) == said
    for part in ("mean totals of 16 runs at T = 100, the largest", "Hollow:", "With a cross:", "with 95 %"):
        assert part in said
    axes[1].figure.savefig("/dev/null", format="png")  # labels of matplotlib's own language are no formulas


def test_the_caption_of_fronts():
    mine = study(made([[[1.0], [200.0]], [[2.0], [1.0]]], columns=[ECE, CDL], recorded=True, open=(3,)))
    said = caption(mine, ("ece", "cdl"))
    assert said.startswith("Point: mean totals of 1 run at T = 100, the largest")
    for text in (said, " ".join(of_fronts(fronts(mine, "ece", "cdl")).notes)):
        assert "On recorded outcomes" in text
        assert "Questions that are open at the end are in no total" in text
    (ax,) = plot_pareto(mine, ("ece", "cdl"))
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")


# ---------------------------------------------------------------- in words


def test_in_words(seed, capsys):
    rng = np.random.default_rng(seed)
    same = noisy(rng, [0.0])[0]
    mine = study(
        made([[same, same], [same, same + 9 + rng.standard_normal(16)]], columns=[ECE, CDL]),
        made([noisy(rng, [0, 9]), noisy(rng, [0, 9])], "rain", columns=[ECE, CDL], recorded=True, open=(3,)),
    )
    of_ranking(ranking(mine, "ece")).print()
    said = " ".join(capsys.readouterr().out.split())
    for text in (
        "ece: ranks; T = 100, 16 runs",
        "Rank 1 has the lowest mean total",
        "Not told apart against drift: f0 – f1",
        "over the forecasters' randomness alone",
        "Questions that are open at the end are in no total",
    ):
        assert text in said
    assert "against rain" not in said
    table = of_ranking(ranking(mine, "ece")).markdown()
    assert (
        "| forecaster | mean rank | drift | rain |\n|---|---|---|---|\n| f0 | 1.25 [1–1.5] | 1.5 [1–2] | 1 |\n"
        in table
    )
    of_fronts(fronts(mine, "ece", "cdl")).print()
    said = " ".join(capsys.readouterr().out.split())
    assert "drift, T = 100, 16 runs: 1 of 2 on the front" in said
    assert "f0 †" in said  # against rain, in both
    assert of_fronts(fronts(mine, "ece", "cdl")).markdown().count("– (on the front)") == 2
    table = totals_markdown(mine)
    assert (
        "**rain, T = 100, 3 open at the end**\n\n| forecaster | ece | cdl |\n|---|---|---|\n| f0 | " in table
    )
    for rows in (
        ranking_json(ranking(mine, "ece")),
        [front_json(front) for front in fronts(mine, "ece", "cdl")],
    ):
        print_json(rows)
        assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == rows


def test_on_the_command_line(tmp_path):
    players = [oc.forecasters.ForecastHedging(m="T^(1/3)"), oc.forecasters.EmpiricalMean()]
    played = oc.play(players, ["drift", "contrarian"], horizon=200, runs=4, measures=["ece", "smooth_ce", "brier"],
                     tasks=["umbrella"])  # fmt: skip
    played.save(tmp_path / "a.db")
    for options, said in (
        ((), "ece: total T·μ and exponent"),  # there is no cdl
        (("--ranking",), "ece: ranks; T = 200, 4 runs"),
        (("--pareto", "ece", "brier"), "on the front"),
        (("--all",), "action_swap_"),
        (("--all", "--nature", "drift", "--markdown"), "action_swap_regret[umbrella]"),
        (("--ranking", "--markdown"), "| forecaster | mean rank | drift | contrarian* |"),
        (("--pareto", "ece", "brier", "--markdown"), "| forecaster | ece | brier | dominated by |"),
    ):
        shown = onlinecal("compare", "a.db", *options, cwd=tmp_path, columns=80).stdout
        assert said in shown
        assert ("contrarian" in shown) != ("--nature" in options)
        if "--markdown" not in options:
            assert max(map(len, shown.splitlines())) <= 80
            shown = onlinecal("compare", "a.db", *options, "--json", cwd=tmp_path).stdout
            assert json.loads(shown, parse_constant=pytest.fail)
    for options, said in (
        (("--all", "--ranking"), "--all and --ranking are two tables; expected one of the two"),
        (("--all", "--measure", "ece"), "--all is of other columns; expected no --measure"),
        (("--pareto", "ece", "eec"), "unknown measure 'eec'; did you mean 'ece'?"),
    ):
        assert onlinecal("compare", "a.db", *options, cwd=tmp_path, rc=2).stderr == f"error: {said}\n"
