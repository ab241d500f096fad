"""Differences run by run: they are those of the totals, their intervals cover, and natures that look are refused."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.sight import Sight
from onlinecal.report.curves import Study
from onlinecal.report.paired import interval, paired
from onlinecal.report.summaries import print_paired
from onlinecal.study import Played
from tests.results import cells, played, read

F, N = oc.forecasters, oc.natures
THREE = [F.Constant(0.3), F.Constant(0.7), F.ForecastHedging()]


def study(**options):
    options = {"horizon": [50, 200], "runs": 6, "measures": ["brier", "ece"], "delays": [0, 5]} | options
    return oc.play(THREE, [N.Drift(), N.RandomWalk()], **options)


def test_they_are_the_differences_of_the_totals():
    mine = study()
    found, refused = paired(mine, "brier")
    assert refused == []
    assert [(d.nature, d.first, d.second) for d in found][:3] == [
        ("drift", "constant (p=0.3)", "constant (p=0.7)"),
        ("drift", "constant (p=0.3)", "forecast hedging"),
        ("drift", "constant (p=0.7)", "forecast hedging"),
    ]
    assert len(found) == 3 * 4
    for d in found:
        totals = [mine.curve("brier", who, d.nature).totals[-1] for who in (d.first, d.second)]
        expected = interval(totals[0] - totals[1], 1.0 - 0.05 / len(found))
        assert (d.mean, d.half_width) == expected
        assert (d.horizon, d.runs, d.open) == (200, 6, 5 if "delay 5" in d.nature else 0)


def test_an_interval_covers_as_often_as_it_says(seed):
    """Of a real difference, whose expectation is known: (0.3 − q)² − (0.7 − q)² a round, plus what is not due to p.

    Both forecasts are constants, so that the difference of their Brier totals is linear in the number of ones, which is
    binomial; whether Student's interval holds the expectation depends on these numbers alone. Of 10^6 groups of 8 that
    numpy drew 20.0 % missed, as many as it says. With 18 to 22 % the misses of 400 groups leave the 1e-7 quantiles of
    the two binomials with a probability of at most 2e-7. The control, intervals of half the width, missed in 50 %.
    """
    q, rounds, groups, size, level = 0.4, 2000, 400, 8, 0.8
    both = oc.play(
        THREE[:2],
        N.Bernoulli(q),
        horizon=rounds,
        runs=groups * size,
        seed=seed,
        measures=["brier"],
        per_decade=1,
    )
    truth = rounds * ((0.3**2 - 0.7**2) * (1 - q) + (0.7**2 - 0.3**2) * q)
    first, second = (cell.totals["brier"][-1].reshape(groups, size) for cell in both.cells)
    low, high = binom.ppf(1e-7, groups, 0.18), binom.isf(1e-7, groups, 0.22)
    misses, control = 0, 0
    for values in first - second:
        mean, half = interval(values, level)
        misses += abs(mean - truth) > half
        control += abs(mean - truth) > 0.5 * half
    assert low <= misses <= high
    assert control > high


def test_all_intervals_hold_together(seed):
    """Of twelve at 95 % together, at least one misses in no more than 5 % of studies.

    Normal differences, as is said, so that the level is exact: Bonferroni. Of 1,000 such families, more than
    `isf(1e-9)` of a binomial with 5 % miss with a probability of 1e-9. Twelve intervals of 95 % each are the control:
    some of them misses in 1 − 0.95^12 = 46 % of families.
    """
    rng = np.random.default_rng(seed)
    together, alone = 0, 0
    for _ in range(1000):
        family = rng.standard_normal((12, 8))
        sides = [[interval(v, level) for v in family] for level in (1.0 - 0.05 / 12, 0.95)]
        together += any(abs(m) > half for m, half in sides[0])
        alone += any(abs(m) > half for m, half in sides[1])
    most = binom.isf(1e-9, 1000, 0.05)
    assert together <= most
    assert alone > most


def test_what_is_due_to_the_outcomes_cancels():
    """The point of it: with the same outcomes the difference varies less than the totals do."""
    found, _ = paired(oc.play(
        [F.ForecastHedging(), F.DefensiveForecasting()], N.RandomWalk(), horizon=1000, runs=16, measures=["brier"]
    ), "brier")  # fmt: skip
    mine = oc.play(
        [F.ForecastHedging(), F.DefensiveForecasting()],
        N.RandomWalk(),
        horizon=1000,
        runs=16,
        measures=["brier"],
    )
    first, second = (interval(cell.totals["brier"][-1], 0.95)[1] for cell in mine.cells)
    assert found[0].half_width < 0.5 * math.hypot(first, second)


@pytest.mark.parametrize(
    ("nature", "why"),
    [
        (N.Contrarian(), r"contrarian: it may look at the law of the forecast, so that"),
        (N.Greedy(), r"greedy: it may look at the law of the forecast, so that"),
        (N.Markov(), r"markov: it may look at past forecasts, so that"),
        (N.Streams((N.Drift(), N.Markov())), "it may look at past forecasts"),
    ],
)
def test_natures_that_look_are_refused_with_the_reason(nature, why):
    looked = oc.play(THREE[:2], nature, horizon=50, runs=3, measures=["ece"])
    with pytest.raises(InvalidParameter, match="nothing can be compared run by run: .*" + why):
        paired(looked, "ece")
    mixed = oc.play(THREE[:2], [nature, N.Drift()], horizon=50, runs=3, measures=["ece"])
    found, refused = paired(mixed, "ece")
    assert {d.nature for d in found} == {"drift"}
    assert len(refused) == 1
    assert "each forecaster has outcomes of its own" in refused[0]


def test_outcomes_are_the_same_for_natures_that_see_nothing_and_only_for_them(seed):
    """What `sight` in the results stands for, for every nature that needs no file: the ones of each run."""

    def ones(gamma):
        return float(gamma.positives.sum() / gamma.weight)

    for name in ("drift", "random_walk", "bernoulli", "sinusoid", "piecewise", "uniform_truth", "contrarian"):
        cell, other = oc.play(
            [F.Constant(0.2), F.ForecastHedging()],
            name,
            horizon=300,
            runs=4,
            seed=seed,
            measures=[ones],
            delays=3,
        ).cells
        same = np.array_equal(cell.totals["ones"], other.totals["ones"])
        assert same == (cell.sight == Sight.NOTHING) == (name != "contrarian")


def test_too_few_to_compare():
    with pytest.raises(InvalidParameter, match="drift: a single run; expected two at least"):
        paired(oc.play(THREE[:2], N.Drift(), horizon=20, runs=1), "ece")
    many = oc.play(THREE[:2], [N.Bernoulli(i / 10) for i in range(1, 6)], horizon=5, runs=1, measures=["ece"])
    with pytest.raises(
        InvalidParameter, match=r"\(q=0\.3\): a single run; expected two at least; and 2 more natures$"
    ):
        paired(many, "ece")
    with pytest.raises(InvalidParameter, match="a single forecaster at T = 20; expected two at least"):
        paired(oc.play(THREE[0], N.Drift(), horizon=20, runs=3), "ece")


def test_recorded_outcomes_are_said_to_be_so(tmp_path, capsys):
    file = tmp_path / "rows.csv"
    file.write_text("outcome\n" + "1\n0\n1\n" * 20)
    found, _ = paired(oc.play(THREE, N.Replay(str(file)), horizon=60, runs=3, measures=["brier"]), "brier")
    assert all(d.recorded for d in found)
    assert found[0].same  # two constants on the same rows
    print_paired(found, ["somebody: why"])
    said = " ".join(capsys.readouterr().out.split())
    assert "over the forecasters' randomness alone" in said
    assert said.endswith("not compared: somebody: why")


@pytest.mark.parametrize(("runs", "certain"), [(2, False), (5, False), (6, True)])
def test_the_same_difference_in_all_runs_has_no_interval(runs, certain, capsys):
    """Three runs of one pair cannot tell 2 from what chance would make of whole numbers: 2^(1−R) ≤ 5 % from R = 6."""

    def cell(who, total):
        return Played(who, "n", 9, np.array([9]), {"ece": np.full((1, runs), total)}, (Column("measure", "ece"),),
                      sight=Sight.NOTHING)  # fmt: skip

    (found,), _ = paired(Study((cell("a", 1.0), cell("b", 3.0))), "ece")
    assert (found.mean, found.same) == (-2.0, True)
    assert found.better == ("a" if certain else "")
    said = found.as_json()
    assert (said["low"], said["high"], said["same_in_all_runs"]) == (None, None, True)
    assert said["lower_total"] == found.better
    print_paired([found], [])
    printed = " ".join(capsys.readouterr().out.split())
    assert ("-2 in all runs <" in printed) == certain
    assert "-2 in all runs" in printed
    assert "± 0" not in printed
    (tie,), _ = paired(Study((cell("a", 1.0), cell("b", 1.0))), "ece")
    assert (tie.mean, tie.same, tie.better) == (0.0, True, "")


def test_two_coins_that_agree_in_few_runs_are_not_put_in_order(seed):
    """Differences of ±1 or 0 with mean 0: of R = 3 runs all are the same, and not 0, in 2·3^−3 = 7.4 % of studies.

    At a level of 95 % no order may be said in more than 5 %. Of 2,000 studies none is; the interval of before, the
    difference ± 0, would have said one in 148 of them, and in fewer than 60 with a probability below 1e-14.
    """
    rng = np.random.default_rng(seed)
    column = (Column("measure", "ece"),)
    wrong = before = 0
    for _ in range(2000):
        values = rng.integers(-1, 2, 3).astype(np.float64)
        first, second = (
            Played(who, "n", 9, np.array([9]), {"ece": v[None]}, column, sight=Sight.NOTHING)
            for who, v in (("a", 1.0 + values), ("b", np.ones(3)))
        )
        wrong += paired(Study((first, second)), "ece")[0][0].better != "" and bool(
            (values == values[0]).all()
        )
        before += interval(values, 0.95) == (values[0], 0.0) and values[0] != 0.0
    assert wrong == 0
    assert before > 60


def test_infinite_totals_have_no_difference(capsys):
    found, _ = paired(oc.play([F.Constant(0.0), F.Constant(0.5)], N.Bernoulli(), horizon=60, runs=3,
                              measures=["log_loss"]), "log_loss")  # fmt: skip
    assert math.isnan(found[0].mean)
    assert found[0].better == ""
    print_paired(found, [])
    assert "infinite totals" in capsys.readouterr().out


def test_sight_is_in_the_file(tmp_path):
    planned = cells(natures=(N.Drift(), N.Contrarian()))
    mine, _, _ = played(tmp_path / "a.db", planned)
    assert {(c.nature, c.sight) for c in read(tmp_path / "a.db").cells} == {
        ("drift", Sight.NOTHING), ("contrarian", Sight.LAW),
    }  # fmt: skip
    assert mine.cells == read(tmp_path / "a.db").cells
    # From memory and from the file the same is compared.
    again = Study(tuple(oc.study.play_cell(c) for c in planned))
    assert paired(again, "ece") == paired(mine, "ece")
