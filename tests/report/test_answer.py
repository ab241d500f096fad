"""The first sentences of a page, against means and tests that are made here from the totals."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from onlinecal.core.columns import Column
from onlinecal.report.answer import answer
from tests.report.made import INF, cell, noisy, study

PAYOFF = Column("decision_task", "payoff", task="umbrella")
NONE = "None of it is beyond doubt for the expected totals."


def test_sentences_say_which_and_where(seed):
    """The gaps are of 10 deviations and more, so that what is drawn cannot change an order (1e-9)."""
    means = {("a", "drift"): 5, ("b", "drift"): 50, ("c", "drift"): 51, ("a", "coin"): 9, ("b", "coin"): 20,
             ("c", "coin"): 90, ("a", "rain"): 30, ("b", "rain"): 10, ("c", "rain"): 30}  # fmt: skip
    rows = noisy(np.random.default_rng(seed), list(means.values()), runs=8)
    first, second = answer(study(dict(zip(means, rows, strict=True))), "ece")
    assert first == "The lowest mean total of ece is that of a against drift †, coin †; b against rain †."
    assert second.startswith("†: beyond doubt for the expected totals; all † of this sentence hold together")


def many(natures):
    """`a` is the lowest against all natures but the last."""
    return {
        (who, n): [total, total + 0.1]
        for n in (*(f"n{i}" for i in range(natures)), "last")
        for who, total in (("a", 3.0 if n == "last" else 1.0), ("b", 2.0))
    }


APART, NEAR, OTHER = [1.0, 1.01, 0.99], [1.0, 2.0, 3.0], [2.0, 3.5, 1.5]
#: totals, and what is said of them
SAID = [
    ({("a", "n"): [1.0], ("b", "n"): [2.0]}, ["a against n.", NONE]),
    ({("a", "n"): [1.0], ("b", "n"): [2.0], ("a", "n, delay 1"): [1.0], ("b", "n, delay 1"): [2.0],
      ("a", "m"): [3.0], ("b", "m"): [2.0]}, ['a against n, "n, delay 1"; b against m.', NONE]),
    ({("a", "n"): [1.0, 2.0]}, []),
    ({("a", "n"): [INF], ("b", "n"): [2.0]}, []),
    ({("a", "n"): [1.0, 1.0], ("b", "n"): [1.0, 1.0]}, ["a against n; b against n.", NONE]),
    # Against m the mean lead of a is as small as deviations.
    ({("a", "n"): APART, ("c", "n"): [9.0, 9.01, 9.02], ("a", "m"): NEAR, ("c", "m"): OTHER},
     ["a against n †, m.", "†: beyond"]),
    (many(4), ["a against n0, n1, n2, n3; b against last.", NONE]),
    (many(5), ["a against n0, n1, n2, n3, and 1 more; b against last.", NONE]),
    ({(f"f{i}", f"n{j}"): [float(i != j)] for i in range(6) for j in range(6)},
     ["f0 against n0; f1 against n1; f2 against n2; f3 against n3; and 2 more.", NONE]),
]  # fmt: skip


@pytest.mark.parametrize(("totals", "said"), SAID)
def test_what_is_said_of_ties_and_many_natures(totals, said):
    found = [
        each.removeprefix("The lowest mean total of ece is that of ") for each in answer(study(totals), "ece")
    ]
    assert len(found) == len(said)
    assert all(map(str.startswith, found, said))


def test_of_payoffs_the_highest_is_best():
    cells = (cell("a", {PAYOFF: [4.0, 5.0, 4.0]}, "n"), cell("b", {PAYOFF: [9.0, 9.5, 9.1]}, "n"))
    first, _ = answer(study(*cells), PAYOFF.name)
    assert first.startswith(f"The highest mean total of {PAYOFF.name} is that of b against n")


def test_the_level_is_shared_by_all_pairs_of_forecasters():
    """The control: a difference that one test alone would find is not enough among three forecasters."""
    base, seen = np.array([0.0, 0.4, -0.4, 0.1, -0.1, 0.2]), set()
    for shift in np.linspace(0.1, 1.5, 30):
        totals = {"a": base, "b": base[::-1] + shift, "c": base[[2, 1, 0, 5, 4, 3]] + shift}
        p = [ttest_1samp(totals[x] - totals[y], 0.0).pvalue for x, y in combinations("abc", 2)]
        said = answer(study({(who, "n"): row for who, row in totals.items()}), "ece")[1]
        if max(p[:2]) < 0.05 / 3 or min(p[:2]) > 0.05 / 3:
            seen.add(sure := max(p[:2]) < 0.05 / 3)
            assert said.startswith("†: beyond doubt") if sure else said == NONE
    assert seen == {True, False}
