"""Γ of K classes: counting, its reductions to events, and what bad input says."""

import copy
import inspect
import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal import ClassDistribution, JointDistribution
from onlinecal.core.errors import InvalidData, InvalidParameter

SAMPLES, COUNTS, LEVELS = (
    getattr(ClassDistribution, f"from_{way}") for way in ("samples", "counts", "levels")
)
PARTS = ("predictions", "counts", "tallies", "means")
#: quarters, so that rows sum to 1 without rounding
quarters = st.sampled_from([[a / 4, b / 4, (4 - a - b) / 4] for a in range(5) for b in range(5 - a)])
rows = st.lists(st.tuples(quarters, st.integers(0, 2)), min_size=1, max_size=40)


def parts(gamma):
    return [getattr(gamma, part).tolist() for part in PARTS]


@given(rows, st.randoms())
def test_every_way_to_gamma_is_counting(pairs, random):
    found = Counter((tuple(p), y) for p, y in pairs)
    levels = sorted({p for p, _ in found})
    tallies = [[found[p, y] for y in range(3)] for p in levels]
    mixed = random.sample(pairs, len(pairs))
    p, y = zip(*mixed, strict=True)
    named = ["b", "c", "a"]
    ways = [
        SAMPLES(p, y), SAMPLES(p, y, weights=np.ones(len(p))), SAMPLES(y_prob=p, y_true=y),
        SAMPLES(np.array(p), [named[i] for i in y], labels=named),
        SAMPLES(pd.DataFrame(p, columns=named), [named[i] for i in y]),
        COUNTS([*levels[::-1], *levels], [*tallies[::-1], *np.zeros((len(levels), 3))]),
        SAMPLES([*p, [0.125, 0.125, 0.75]], [*y, 1], weights=[*np.ones(len(p)), 0.0]),
    ]  # fmt: skip
    counts = [float(sum(row)) for row in tallies]
    means = [[a / n for a in row] for row, n in zip(tallies, counts, strict=True)]
    for gamma in (*ways, copy.deepcopy(ways[0]), pickle.loads(pickle.dumps(ways[0]))):
        assert parts(gamma) == [[*map(list, levels)], counts, tallies, means]
        assert (gamma.levels, gamma.classes, gamma.weight) == (len(levels), 3, len(pairs))
        assert not gamma.predictions.flags.writeable
    assert repr(SAMPLES(p, y, labels=np.arange(3)).labels) == "(0, 1, 2)"
    assert ways[3].labels == ways[4].labels == ("b", "c", "a")
    assert ways[0].labels == (0, 1, 2)


@given(rows)
def test_events_are_those_of_the_samples(pairs):
    p, y = np.array([p for p, _ in pairs]), np.array([y for _, y in pairs])
    gamma = SAMPLES(p, y, labels=None)
    for classes in ({0}, {2}, {0, 1}, {1, 2}):
        want = JointDistribution.from_samples(p[:, [*classes]].sum(axis=1), np.isin(y, [*classes]))
        found = gamma.binary(classes)
        for part in ("predictions", "counts", "positives"):
            assert getattr(found, part).tolist() == getattr(want, part).tolist()
        # A mean of joined levels is a quotient of sums, of one level the sum of its means.
        assert found.means == pytest.approx(want.means, abs=1e-15)
    want = JointDistribution.from_samples(*oc.binary_forecasts(p, y))
    assert gamma.toplabel().predictions.tolist() == want.predictions.tolist()
    assert gamma.toplabel().positives.tolist() == want.positives.tolist()
    each = gamma.toplabels()
    assert sum(one.weight for one in each.values()) == gamma.weight
    top = p.argmax(axis=1)
    for label, one in each.items():
        assert one.positives.sum() == (y[top == label] == label).sum()


def test_rows_are_divided_by_their_sum_and_differ_by_the_last_bit():
    assert SAMPLES([[0.3, 0.7], [0.1 + 0.2, 0.7], [0.3, 0.7]], [0, 1, 1]).levels == 2
    assert SAMPLES([[0.5, 0.5 + 9.5e-7]], [0]).predictions.sum() == pytest.approx(1.0, abs=1e-15)
    assert SAMPLES([[-0.0, 1.0], [0.0, 1.0]], [1, 1]).levels == 1
    assert SAMPLES(np.full((1, 100), 0.01), [99]).binary(range(50)).predictions == pytest.approx([0.5])
    assert not LEVELS([[0.1, 0.2, 0.7]], [3], [[0.1, 0.2, 0.7]]).residuals.any()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SAMPLES([[0.5], [1.0]], [0, 0]), r"shape \(2, 1\); expected .*K ≥ 2"),
        (lambda: SAMPLES(np.zeros((0, 3)), []), "no row"),
        (lambda: SAMPLES([[0.5, 0.5], [0.5, 0.5 + 1.05e-6]], [0, 1]), r"p\[1\] sums to 1.00000105; expected 1"),
        (lambda: SAMPLES([[0.5, 0.5], [1.5, -0.5]], [0, 1]), r"p\[:, 0\]\[1\] = 1.5 is outside"),
        (lambda: SAMPLES([[0.5, np.nan]], [0]), r"p\[:, 1\]\[0\] = nan is a missing"),
        (lambda: SAMPLES([[0.5, 0.5]], [2]), r"y\[0\] = 2.0 is no class; expected an integer from 0 to 1"),
        (lambda: SAMPLES([[0.5, 0.5]] * 2, ["a", None], labels=["a", "b"]), r"y\[1\] = None is no class"),
        (lambda: SAMPLES([[0.5, 0.5]], ["c"], labels=["a", "b"]), r"'c' is no class; expected one of 'a', 'b'"),
        (lambda: SAMPLES([[1.0, *[0.0] * 11]], ["z"], labels="abcdefghijkl"), "'j', 'k', 'l'$"),
        (lambda: SAMPLES([[1.0, *[0.0] * 12]], ["z"], labels="abcdefghijklm"), "'k', 'l', and 1 more$"),
        (lambda: SAMPLES([[0.5, 0.5]], ["a"], labels=["a", "a"]), "2 names, 1 of them different; expected 2"),
        (lambda: SAMPLES([[0.5, 0.5]], ["a"], labels=[["a"], ["b"]]), r"labels = .*'a'.*; expected 2 words or numbers"),
        (lambda: SAMPLES([[0.5, 0.5]], ["a"], labels=2), "labels = 2; expected 2 words or numbers"),
        (lambda: SAMPLES([[0.5, 0.5], [1]], [0, 1]), "p have rows of several lengths; expected K numbers in each"),
        (lambda: SAMPLES([[0.5, 0.5]], ["a"]), r"y\[0\] = 'a' is not a number"),
        (lambda: SAMPLES([[0.5, 0.5]], [0, 1]), "1 rows and y 2 values"),
        (lambda: SAMPLES([[0.5, 0.5]], [0], weights=[-1]), r"weights\[0\] = -1.0"),
        (lambda: SAMPLES([[0.5, 0.5]], [0], weights=[1, 1]), "as many"),
        (lambda: COUNTS([[0.5, 0.5]], [[1, -1]]), r"tallies\[0, 1\] = -1.0"),
        (lambda: COUNTS([[0.5, 0.5]], [[0, 0]]), "positive finite total"),
        (lambda: COUNTS([[0.5, 0.5]], [[0, 0, 1]]), r"shape \(1, 3\); expected \(1, 2\)"),
        (lambda: LEVELS([[0.5, 0.5]] * 2, [1, 1], [[1, 0]] * 2), r"predictions\[1\] is there twice"),
        (lambda: LEVELS([[0.5, 0.5]], [0], [[1, 0]]), "mass"),
        (lambda: LEVELS([[0.5, 0.5], [1, 0]], [1, 0], [[1, 0]] * 2), r"mass\[1\] is 0; expected positive"),
        (lambda: SAMPLES([[0.5, 0.5]], [0]).merge(SAMPLES([[0.5, 0.5]], ["a"], labels=["a", "b"])), "of other labels"),
        (lambda: LEVELS([[0.5, 0.5]], [1], [[1, 0.1]]), r"means\[0\] sums to 1.1"),
        (ClassDistribution, "from_samples"),
    ],
)  # fmt: skip
def test_bad_input_is_named(make, said):
    with pytest.raises(InvalidData, match=said):
        make()


def test_rounding_of_sums_makes_no_levels():
    """0.7 + 0.2 + 0.1 is not 1, and 0.1 + 0.2 is not 0.3: of ten rows at p(S) = 0.3, three are in S."""
    assert SAMPLES([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]], [0, 1]).classwise(2).levels == 1
    gamma = SAMPLES([[0.1, 0.2, 0.7]] * 5 + [[0.3, 0.0, 0.7]] * 5, [0] * 3 + [2] * 7)
    assert gamma.binary({0, 1}).predictions.tolist() == [0.3]
    # As five times 1/11, which is not 5/11.
    assert (
        SAMPLES([[1 / 11] * 11, [5 / 11, *[0.0] * 4, 6 / 11, *[0.0] * 5]], [0, 5]).binary(range(5)).levels
        == 1
    )
    assert oc.measures.ece(gamma.binary({0, 1})) == pytest.approx(0, abs=1e-15)
    found = oc.evaluate_classes(gamma, draws=0).table().loc["setwise ece", "value"]
    assert found == pytest.approx(oc.measures.classes.setwise(gamma).value) == pytest.approx(0.4)


def test_a_function_of_gamma_says_that_it_takes_samples():
    said = (inspect.getdoc(of) for of in (oc.measures.classes.setwise, oc.measures.ece))
    for words, first in zip(said, ("The largest value ", "Mean gap "), strict=True):
        assert words.startswith(first)
        assert "\n\nTakes Γ" in words


@pytest.mark.parametrize("classes", [set(), {0, 1, 2}, {3}, "0", 1])
def test_sets_of_classes_that_are_none_are_refused(classes):
    with pytest.raises(InvalidParameter, match="expected"):
        SAMPLES([[0.5, 0.25, 0.25]], [0]).binary(classes)
