"""The first sentences of a page, against means and tests that are made here from the totals."""

import re
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from onlinecal.core.columns import Column
from onlinecal.report.answer import answer
from tests.report.made import INF, cell, noisy, study

PAYOFF = Column("decision_task", "payoff", task="umbrella")


def test_three_sentences_say_which_where_and_by_how_much(seed):
    """The gaps are of 10 deviations and more, so that what is drawn cannot change an order (1e-9)."""
    means = {("a", "drift"): 5, ("b", "drift"): 50, ("c", "drift"): 51, ("a", "coin"): 9, ("b", "coin"): 20,
             ("c", "coin"): 90, ("a", "rain"): 30, ("b", "rain"): 10, ("c", "rain"): 30}  # fmt: skip
    rows = noisy(np.random.default_rng(seed), list(means.values()), runs=8)
    totals = dict(zip(means, rows, strict=True))
    first, second, third = answer(study(totals), "ece")
    assert first == "By ece, a has the lowest mean total against drift and coin (2 of 3 natures)."
    assert second == (
        "This is beyond doubt for the expected totals; the lowest mean is that of b against rain."
    )
    found = re.fullmatch(
        r"The largest lead is against drift at T = 100: (\S+), and the next, (\w), has (\S+), (\S+) times as much\.",
        third,
    )
    means = {pair: values.mean() for pair, values in totals.items()}
    after = min("bc", key=lambda who: means[who, "drift"])
    wanted = [means["a", "drift"], means[after, "drift"], means[after, "drift"] / means["a", "drift"]]
    assert found[2] == after
    np.testing.assert_allclose([float(found[k]) for k in (1, 3, 4)], wanted, rtol=0.006)  # three digits


def many(natures):
    """`a` is the lowest against all natures but the last."""
    return {
        (who, n): [total, total + 0.1]
        for n in (*(f"n{i}" for i in range(natures)), "last")
        for who, total in (("a", 3.0 if n == "last" else 1.0), ("b", 2.0))
    }


APART, NEAR, OTHER = [1.0, 1.01, 0.99], [1.0, 2.0, 3.0], [2.0, 3.5, 1.5]
#: two best forecasters of one nature each; the lead of `a` on 20 is the larger
EQUAL = {("a", "n"): [1.0, 3.0, 2.0], ("c", "n"): [60.0, 1.5, 2.0], ("c", "m"): APART}
#: totals, and the beginnings of the sentences
SAID = [
    ({("a", "n"): [1.0], ("b", "n"): [2.0]},
     ["By ece, a has the lowest mean total against n.",
      "Against none of them is this beyond doubt for the expected totals.",
      "The largest lead is against n at T = 100: 1, and the next, b, has 2, 2 times as much."]),
    ({("a", "n"): [1.0], ("b", "n"): [2.0], ("a", "n, delay 1"): [1.0], ("b", "n, delay 1"): [2.0],
      ("a", "m"): [3.0], ("b", "m"): [2.0]},
     ['By ece, a has the lowest mean total against n and "n, delay 1" (2 of 3 natures).']),
    ({("a", "n"): [1.0, 2.0]}, []),
    ({("a", "n"): [INF], ("b", "n"): [2.0]}, []),
    ({("a", "n"): [1.0, 1.0], ("b", "n"): [1.0, 1.0]},
     ["", "", "The largest lead is against n at T = 100: 1, and the next, b, has 1."]),
    # Against m and o the mean leads of a and c are as small as deviations.
    ({("a", "n"): APART, ("c", "n"): [9.0, 9.01, 9.02], ("a", "m"): NEAR, ("c", "m"): OTHER, ("a", "o"): OTHER,
      ("c", "o"): NEAR},
     ["", "This is beyond doubt for the expected totals against n; the lowest mean is that of c against o."]),
    # Of two that are best equally often, the one beyond doubt is named, or the one with the larger lead.
    ({**EQUAL, ("a", "m"): [9.0, 9.01, 9.02]}, ["By ece, c has the lowest", "This is beyond doubt"]),
    ({**EQUAL, ("a", "m"): [1.0, 4.0, 2.5]}, ["By ece, a has the lowest", "Against none of them"]),
    (many(4), ["By ece, a has the lowest mean total against n0, n1, n2 and n3 (4 of 5 natures)."]),
    (many(5), ["By ece, a has the lowest mean total against n0, n1, n2, n3 and 1 more (5 of 6 natures)."]),
]  # fmt: skip


@pytest.mark.parametrize(("totals", "said"), SAID)
def test_what_is_said_of_leads_ties_and_many_natures(totals, said):
    found = answer(study(totals), "ece")
    assert len(found) == (3 if said else 0)
    assert all(map(str.startswith, found, said))


def test_of_payoffs_the_highest_is_best():
    cells = (cell("a", {PAYOFF: [4.0, 5.0, 4.0]}, "n"), cell("b", {PAYOFF: [9.0, 9.5, 9.1]}, "n"))
    first, _, third = answer(study(*cells), PAYOFF.name)
    assert first.startswith(f"By {PAYOFF.name}, b has the highest mean total against n")
    assert third == "The largest lead is against n at T = 100: 9.2, and the next, a, has 4.33."


def test_the_level_is_shared_by_all_pairs_of_forecasters():
    """The control: a difference that one test alone would find is not enough among three forecasters."""
    base, seen = np.array([0.0, 0.4, -0.4, 0.1, -0.1, 0.2]), set()
    for shift in np.linspace(0.1, 1.5, 30):
        totals = {"a": base, "b": base[::-1] + shift, "c": base[[2, 1, 0, 5, 4, 3]] + shift}
        p = [ttest_1samp(totals[x] - totals[y], 0.0).pvalue for x, y in combinations("abc", 2)]
        said = answer(study({(who, "n"): row for who, row in totals.items()}), "ece")[1]
        if max(p[:2]) < 0.05 / 3 or min(p[:2]) > 0.05 / 3:
            seen.add(sure := max(p[:2]) < 0.05 / 3)
            assert said.startswith("This is beyond doubt" if sure else "Against none")
    assert seen == {True, False}
