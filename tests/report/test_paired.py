"""Differences run by run: they are those of the totals, their intervals cover, and natures that look are refused."""

import math

import numpy as np
import pytest
from scipy.stats import binom, t

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.growth.orders import differences
from onlinecal.report.comparing import of_paired
from onlinecal.report.curves import Study
from onlinecal.report.ranking import paired
from onlinecal.study import Played

F, N = oc.forecasters, oc.natures
THREE = [F.Constant(0.3), F.Constant(0.7), F.ForecastHedging()]


def test_they_are_the_differences_of_the_totals():
    mine = oc.play(
        THREE,
        [N.Drift(), N.RandomWalk()],
        horizon=[50, 200],
        runs=6,
        measures=["brier", "ece"],
        delays=[0, 5],
    )
    found, refused = paired(mine, "brier")
    assert refused == []
    pairs = [("constant (p=0.3)", "constant (p=0.7)"), ("constant (p=0.3)", "forecast hedging"),
             ("constant (p=0.7)", "forecast hedging")]  # fmt: skip
    assert [(d.nature, d.forecasters) for d in found][:3] == [("drift", pair) for pair in pairs]
    assert len(found) == 3 * 4
    for d in found:
        first, second = (mine.curve("brier", who, d.nature).totals[-1] for who in d.forecasters)
        half = t.ppf(1 - 0.025 / len(found), 5) * (first - second).std(ddof=1) / 6**0.5
        assert (d.mean, d.half_width) == pytest.approx(((first - second).mean(), half))
        assert (d.contest.horizon, d.contest.runs, d.contest.open) == (
            200,
            6,
            5 if "delay 5" in d.nature else 0,
        )


@pytest.mark.slow
def test_an_interval_covers_as_often_as_it_says(seed):
    """Of a known difference, linear in a binomial number of ones. Of 10^6 groups of 8 that numpy drew 20.0 % missed.

    With 18 to 22 % the misses of 400 groups leave the 1e-7 quantiles of the two binomials with a probability of at most
    2e-7. The control, intervals of half the width, missed in 50 %.
    """
    q, rounds, groups, size = 0.4, 2000, 400, 8
    both = oc.play(THREE[:2], N.Bernoulli(q), horizon=rounds, runs=groups * size, seed=seed, measures=["brier"],
                   per_decade=1)  # fmt: skip
    truth = rounds * ((0.3**2 - 0.7**2) * (1 - q) + (0.7**2 - 0.3**2) * q)
    misses = control = 0
    for group in np.stack([c.totals["brier"][-1].reshape(groups, size) for c in both.cells], axis=1):
        pairs = differences(group)
        off, half = abs(pairs.difference[0, 1] - truth), pairs.half_width(0.8)[0, 1]
        misses += off > half
        control += off > 0.5 * half
    low, high = binom.ppf(1e-7, groups, 0.18), binom.isf(1e-7, groups, 0.22)
    assert low <= misses <= high < control


@pytest.mark.parametrize(
    ("nature", "why"),
    [
        (N.Contrarian(), r"contrarian: it may look at the law of the forecast, so that"),
        (N.Markov(), r"markov: it may look at past forecasts, so that"),
        (N.Streams((N.Drift(), N.Markov())), "it may look at past forecasts"),
    ],
)
def test_natures_that_look_are_refused_with_the_reason(nature, why):
    mixed = oc.play(THREE[:2], [nature, N.Drift()], horizon=50, runs=3, measures=["ece"])
    with pytest.raises(InvalidParameter, match="nothing can be compared run by run: .*" + why):
        paired(mixed.only(natures=mixed.natures[:1]), "ece")
    found, (refused,) = paired(mixed, "ece")
    assert {d.nature for d in found} == {"drift"}
    assert "each forecaster has outcomes of its own" in refused


def test_outcomes_are_the_same_for_natures_that_see_nothing_and_only_for_them(seed):
    def ones(gamma):
        return float(gamma.positives.sum() / gamma.weight)

    for name in ("drift", "random_walk", "bernoulli", "sinusoid", "piecewise", "uniform_truth", "contrarian"):
        players = [F.Constant(0.2), F.ForecastHedging()]
        cell, other = oc.play(players, name, horizon=300, runs=4, seed=seed, measures=[ones], delays=3).cells
        same = np.array_equal(cell.totals["ones"], other.totals["ones"])
        assert same == (cell.sight == Sight.NOTHING) == (name != "contrarian")


def test_too_few_to_compare():
    many = oc.play(THREE[:2], [N.Bernoulli(i / 10) for i in range(1, 6)], horizon=5, runs=1, measures=["ece"])
    for some, said in (
        (many, r"\(q=0\.3\): a single run; expected two at least; and 2 more natures$"),
        (
            oc.play(THREE[0], N.Drift(), horizon=20, runs=3),
            "a single forecaster at T = 20; expected two at least",
        ),
    ):
        with pytest.raises(InvalidParameter, match=said):
            paired(some, "ece")


def test_recorded_outcomes_are_said_to_be_so(tmp_path, capsys):
    file = tmp_path / "rows.csv"
    file.write_text("outcome\n" + "1\n0\n1\n" * 20)
    found, _ = paired(oc.play(THREE, N.Replay(str(file)), horizon=60, runs=3, measures=["brier"]), "brier")
    assert all(d.contest.recorded for d in found)
    assert found[0].same  # two constants on the same rows
    of_paired(found, ["somebody: why"]).print()
    said = " ".join(capsys.readouterr().out.split())
    assert "over the forecasters' randomness alone" in said
    assert said.endswith("not compared: somebody: why")


def cell(who, totals):
    columns = (Column("measure", "ece"),)
    return Played(who, "n", 9, np.array([9]), {"ece": np.array([totals])}, columns, sight=Sight.NOTHING)


@pytest.mark.parametrize(("runs", "certain"), [(2, False), (5, False), (6, True)])
def test_the_same_difference_in_all_runs_has_no_interval(runs, certain, capsys):
    """Three runs of one pair cannot tell 2 from what chance would make of whole numbers: 2^(1−R) ≤ 5 % from R = 6."""
    (found,), _ = paired(Study((cell("a", [1.0] * runs), cell("b", [3.0] * runs))), "ece")
    assert (found.mean, found.same, found.better) == (-2.0, True, "a" if certain else "")
    said = found.as_json()
    assert (said["low"], said["high"], said["same_in_all_runs"]) == (None, None, True)
    assert said["lower_total"] == found.better
    of_paired([found], []).print()
    printed = " ".join(capsys.readouterr().out.split())
    assert ("-2 in all runs <" in printed) == certain
    assert ("-2 in all runs" in printed, "± 0" in printed) == (True, False)
    (tie,), _ = paired(Study((cell("a", [1.0] * runs), cell("b", [1.0] * runs))), "ece")
    assert (tie.mean, tie.same, tie.better) == (0.0, True, "")


def test_two_coins_that_agree_in_few_runs_are_not_put_in_order(seed):
    """Differences of ±1 or 0 with mean 0: of R = 3 runs all are the same, and not 0, in 2·3^−3 = 7.4 % of studies.

    The control, the difference ± 0, is in 148 of 2,000 on average, in fewer than 60 with a probability below 1e-14.
    """
    rng, control = np.random.default_rng(seed), 0
    for values in rng.integers(-1, 2, (2000, 3)).astype(float):
        same = bool((values == values[0]).all())
        (found,), _ = paired(Study((cell("a", 1.0 + values), cell("b", np.ones(3)))), "ece")
        assert not (same and found.better)
        control += same and values[0] != 0.0
    assert control > 60


def test_infinite_totals_have_no_difference(capsys):
    played_ = oc.play(
        [F.Constant(0.0), F.Constant(0.5)], N.Bernoulli(), horizon=60, runs=3, measures=["log_loss"]
    )
    found, _ = paired(played_, "log_loss")
    assert math.isnan(found[0].mean)
    assert found[0].better == ""
    of_paired(found, []).print()
    assert "infinite totals" in capsys.readouterr().out
