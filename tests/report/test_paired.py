"""Differences run by run: they are those of the totals, and natures that look are refused."""

import numpy as np
import pytest
from scipy.stats import t

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.report.comparing import of_paired, paired_json
from onlinecal.study.compare import paired
from tests.report.made import INF, cell, study

F, N = oc.forecasters, oc.natures
THREE = [F.Constant(0.3), F.Constant(0.7), F.ForecastHedging()]


def test_they_are_the_differences_of_the_totals():
    """Intervals cover as often as is said by tests/study/test_orders.py."""
    natures = [N.Drift(), N.RandomWalk()]
    mine = oc.play(THREE, natures, horizon=[50, 200], runs=6, measures=["brier", "ece"], delays=[0, 5])
    found, refused = paired(mine, "brier")
    assert refused == []
    pairs = [("constant (p=0.3)", "constant (p=0.7)"), ("constant (p=0.3)", "forecast hedging"),
             ("constant (p=0.7)", "forecast hedging")]  # fmt: skip
    assert found[["first", "second"]].apply(tuple, axis=1).tolist()[:3] == pairs
    assert found["nature"].tolist()[:3] == ["drift"] * 3
    assert len(found) == 3 * 4
    for d in found.itertuples():
        first, second = (mine.curve("brier", who, d.nature).totals[-1] for who in (d.first, d.second))
        half = t.ppf(1 - 0.025 / len(found), 5) * (first - second).std(ddof=1) / 6**0.5
        assert (d.difference, d.half_width) == pytest.approx(((first - second).mean(), half))
        late = 5 if "delay 5" in d.nature else 0
        assert (d.low, d.high) == pytest.approx((d.difference - half, d.difference + half))
        assert (d.horizon, d.runs, d.open) == (200, 6, late)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([cell(who, [1, 2], "n", sight=Sight.DRAW) for who in "ab"], "n: it may look at the forecast, so that each"),
        ([cell(who, [1, 2], "n", sight=Sight.LAW) for who in "ab"], "n: it may look at the law of the forecast"),
        ([cell(who, [1, 2], "n", sight=Sight.HISTORY) for who in "ab"], "n: it may look at past forecasts, so that"),
        ([cell(who, [1], f"n{i}") for i in range(5) for who in "ab"],
         "n2: a single run; expected two at least; and 2 more natures$"),
        ([cell("a", [1, 2])], "a single forecaster at T = 100; expected two at least"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_with_the_reason(cells, said):
    with pytest.raises(InvalidParameter, match=f"nothing can be compared run by run: .*{said}"):
        paired(study(*cells), "ece")
    both = study(*cells, *(cell(who, [1, 3], "fair") for who in "ab"))
    found, refused = paired(both, "ece")
    assert set(found["nature"]) == {"fair"}
    assert len(refused) == len(both.natures) - 1


def test_outcomes_are_the_same_for_natures_that_see_nothing_and_only_for_them(seed):
    def ones(gamma):
        return float(gamma.positives.sum() / gamma.weight)

    for name in ("drift", "random_walk", "bernoulli", "sinusoid", "piecewise", "uniform_truth", "contrarian"):
        players = [F.Constant(0.2), F.ForecastHedging()]
        one, other = oc.play(players, name, horizon=300, runs=4, seed=seed, measures=[ones], delays=3).cells
        same = np.array_equal(one.totals["ones"], other.totals["ones"])
        assert same == (one.sight == Sight.NOTHING) == (name != "contrarian")


def printed(capsys, *given):
    of_paired(*given).print()
    return " ".join(capsys.readouterr().out.split())


def test_recorded_outcomes_are_said_to_be_so(capsys):
    found, _ = paired(study(*(cell(who, [1, k], recorded=True) for k, who in enumerate("ab"))), "ece")
    assert found["recorded"].all()
    said = printed(capsys, found, ["one: why"])
    assert "over the forecasters' randomness alone" in said
    assert said.endswith("not compared: one: why")


@pytest.mark.parametrize(("runs", "certain"), [(2, False), (5, False), (6, True)])
def test_the_same_difference_in_all_runs_has_no_interval(runs, certain, capsys):
    """Three runs of one pair cannot tell 2 from what chance would make of whole numbers: 2^(1−R) ≤ 5 % from R = 6."""
    found, _ = paired(study({("a", "n"): [1.0] * runs, ("b", "n"): [3.0] * runs}), "ece")
    (said,) = paired_json(found)
    assert (said["difference"], said["lower_total"]) == (-2.0, "a" if certain else "")
    assert (said["low"], said["high"], said["same_in_all_runs"]) == (None, None, True)
    text = printed(capsys, found, [])
    assert ("-2 in all runs <" in text) == certain
    assert ("-2 in all runs" in text, "± 0" in text) == (True, False)
    (tie,) = paired_json(paired(study({(who, "n"): [1.0] * runs for who in "ab"}), "ece")[0])
    assert (tie["difference"], tie["same_in_all_runs"], tie["lower_total"]) == (0.0, True, "")


def test_infinite_totals_have_no_difference(capsys):
    found, _ = paired(study({("a", "n"): [INF, INF, 3.0], ("b", "n"): [1.0, 2.0, 3.0]}), "ece")
    assert np.isnan(found["difference"]).all()
    assert found["lower_total"].tolist() == [""]
    assert "infinite totals" in printed(capsys, found, [])
