"""The first sentences of a page, against means and tests that are made here from the totals."""

import re
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from onlinecal.core.columns import Column
from onlinecal.core.guarantee import Sight
from onlinecal.report.answer import answer
from onlinecal.report.curves import Study
from onlinecal.study.played import Played


def study(totals, measure="ece", kind="measure"):
    """Of (forecaster, nature) → totals of each run at T = 100."""
    column = Column(kind, measure, task="umbrella" if kind == "decision_task" else "")
    return Study(tuple(
        Played(who, nature, 100, np.array([100]), {column.name: np.array([values], float)}, (column,), (),
               sight=Sight.NOTHING)
        for (who, nature), values in totals.items()
    )), column.name  # fmt: skip


RNG_RUNS = 8


def drawn(rng, means):
    return {pair: mean + rng.normal(size=RNG_RUNS) for pair, mean in means.items()}


MEANS = {("a", "drift"): 5.0, ("b", "drift"): 50.0, ("c", "drift"): 51.0, ("a", "coin"): 9.0, ("b", "coin"): 20.0,
         ("c", "coin"): 90.0, ("a", "rain"): 30.0, ("b", "rain"): 10.0, ("c", "rain"): 30.0}  # fmt: skip


def test_three_sentences_say_which_where_and_by_how_much(seed):
    """The gaps are of 10 deviations and more, so that what is drawn cannot change an order (1e-9)."""
    totals = drawn(np.random.default_rng(seed), MEANS)
    mine, measure = study(totals)
    first, second, third = answer(mine, measure)
    assert first == "By ece, a has the lowest mean total against drift and coin (2 of 3 natures)."
    assert (
        second == "This is beyond doubt for the expected totals; the lowest mean is that of b against rain."
    )
    means = {pair: values.mean() for pair, values in totals.items()}
    found = re.fullmatch(
        r"The largest lead is against drift at T = 100: (\S+), and the next, (\w), has (\S+), (\S+) times as much\.",
        third,
    )
    after = min("bc", key=lambda who: means[who, "drift"])
    numbers = [float(found[k]) for k in (1, 3, 4)]
    wanted = [means["a", "drift"], means[after, "drift"], means[after, "drift"] / means["a", "drift"]]
    assert found[2] == after
    np.testing.assert_allclose(numbers, wanted, rtol=0.006)  # three digits


def test_one_run_one_forecaster_and_ties():
    single, measure = study({("a", "n"): [1.0], ("b", "n"): [2.0]})
    assert answer(single, measure) == [
        "By ece, a has the lowest mean total against n.",
        "Against none of them is this beyond doubt for the expected totals.",
        "The largest lead is against n at T = 100: 1, and the next, b, has 2, 2 times as much.",
    ]
    late, measure = study(
        {("a", "n"): [1.0], ("b", "n"): [2.0], ("a", "n, delay 1"): [1.0], ("b", "n, delay 1"): [2.0]}
    )
    late = Study((*late.cells, *study({("a", "m"): [3.0], ("b", "m"): [2.0]})[0].cells))
    assert answer(late, measure)[0].endswith('against n and "n, delay 1" (2 of 3 natures).')
    assert answer(*study({("a", "n"): [1.0, 2.0]})) == []
    same = {(who, "n"): [1.0, 1.0] for who in "ab"}
    assert answer(*study(same))[2] == "The largest lead is against n at T = 100: 1, and the next, b, has 1."
    assert answer(*study({("a", "n"): [np.inf], ("b", "n"): [2.0]})) == []


def test_only_leads_of_the_first_are_said_to_be_beyond_doubt():
    """Against m and o the mean leads of a and c are as small as deviations."""
    apart, far, near, other = [1.0, 1.01, 0.99], [9.0, 9.01, 9.02], [1.0, 2.0, 3.0], [2.0, 3.5, 1.5]
    totals = {("a", "n"): apart, ("c", "n"): far, ("a", "m"): near, ("c", "m"): other, ("a", "o"): other}
    second = answer(*study({**totals, ("c", "o"): near}))[1]
    assert second.startswith("This is beyond doubt for the expected totals against n; ")
    assert second.endswith("the lowest mean is that of c against o.")


@pytest.mark.parametrize(("far", "best"), [([9.0, 9.01, 9.02], "c"), ([1.0, 4.0, 2.5], "a")])
def test_of_two_that_are_best_equally_often_it_is_the_one_beyond_doubt_or_with_the_larger_lead(far, best):
    """The lead of c on `far` is beyond doubt, or that of a on 20 is larger and neither is."""
    totals = {
        ("a", "n"): [1.0, 3.0, 2.0],
        ("c", "n"): [60.0, 1.5, 2.0],
        ("a", "m"): far,
        ("c", "m"): [1.0, 1.01, 0.99],
    }
    first, second, _ = answer(*study(totals))
    assert first.startswith(f"By ece, {best} has the lowest mean total against ")
    assert second.startswith("This is beyond doubt") == (best == "c")


def test_of_payoffs_the_highest_is_best():
    mine, measure = study(
        {("a", "n"): [4.0, 5.0, 4.0], ("b", "n"): [9.0, 9.5, 9.1]}, "payoff", "decision_task"
    )
    first, _, third = answer(mine, measure)
    assert first.startswith(f"By {measure}, b has the highest mean total against n")
    assert third == "The largest lead is against n at T = 100: 9.2, and the next, a, has 4.33."


@pytest.mark.parametrize("many", [4, 5])
def test_of_many_natures_some_are_named(many):
    names = [f"n{i}" for i in range(many)]
    mine, measure = study({(who, n): [v, v + 0.1] for n in [*names, "last"] for who, v in (
        ("a", 1.0 if n != "last" else 3.0), ("b", 2.0))})  # fmt: skip
    first = answer(mine, measure)[0]
    shown = "n0, n1, n2 and n3" + " and 1 more" * (many == 5)
    shown = shown if many == 4 else "n0, n1, n2, n3 and 1 more"
    assert first == f"By ece, a has the lowest mean total against {shown} ({many} of {many + 1} natures)."


def test_pairs_of_forecasters_are_as_many_as_the_doubt_is_spread_over():
    """The control of the level: a difference that one test alone would find is not enough among three forecasters."""
    base = np.array([0.0, 0.4, -0.4, 0.1, -0.1, 0.2])
    for shift in np.linspace(0.1, 1.5, 30):
        totals = {
            ("a", "n"): base,
            ("b", "n"): base[::-1] + shift,
            ("c", "n"): base[[2, 1, 0, 5, 4, 3]] + shift,
        }
        p = [ttest_1samp(totals[x, "n"] - totals[y, "n"], 0.0).pvalue for x, y in combinations("abc", 2)]
        said = answer(*study(totals))[1]
        if max(p[:2]) < 0.05 / 3:
            assert said.startswith("This is beyond doubt")
        if min(p[:2]) > 0.05:
            assert said.startswith("Against none")
