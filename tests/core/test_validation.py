"""Bad input: what is no vector of numbers, no Γ, no option; and NumPy's numbers, which are as good as Python's."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import onlinecal as oc
from onlinecal import measures
from onlinecal.core.errors import InvalidData, InvalidParameter, UnknownName, in_one_line, place, suggestion
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import choice, count, integer, number, positive, probability, vector
from onlinecal.decisions import tasks
from onlinecal.measures import MEASURES

GAMMA = JointDistribution.from_levels([0.2, 0.5, 0.8], [1, 1, 2], [0.4, 0.1, 0.6])
J = JointDistribution


class Tensor:
    """As a tensor, which may take part in a gradient."""

    def __init__(self, gradient=True):
        self.gradient = gradient

    def __array__(self, dtype=None, copy=None):
        if self.gradient:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.\nUse tensor.detach().")
        return np.array([0.25, 0.5])


# -------------------------------------------------------------------- vectors


@pytest.mark.parametrize(
    ("p", "says"),
    [
        (np.ma.array([0.2, 0.5], mask=[False, True]), r"p\[1\] is masked, that is a missing value"),
        ([0.2, "0.5"], r"p\[1\] = '0.5' is not a number"),
        (np.array([0, 1], "m8[s]"), r"p holds dates or times \(timedelta64\[s\]\)"),
        (pd.to_datetime(pd.Series([0, 1])), "p holds dates or times"),
        ([[0.2], [0.2, 0.5]], r"p is not an array of numbers \(ValueError: setting an array element"),
        (Tensor(), r"p is not an array of numbers \(RuntimeError: Can't call numpy\(\) on .* grad\.\)"),
        ([0.2, 0.5j], "p holds complex numbers"), ((x for x in [0.2]), r"p has shape \(\), of type generator"),
        (None, r"p has shape \(\)"), ([0.2, None], r"p\[1\] = nan is a missing value"),
        (pd.Series([0, None], dtype="Int64"), r"p\[1\] = nan is a missing value"),
        ([0.2, Decimal("sNaN")], r"p\[1\] = nan is a missing value"),
    ],
)  # fmt: skip
def test_what_is_no_vector_of_probabilities_is_refused(p, says):
    with pytest.raises(InvalidData, match=says):
        oc.evaluate(p, [0, 1])
    with pytest.raises(InvalidData, match=says.replace("p", "predictions", 1)):
        J.from_counts(p, [1, 1], [0, 1])


@pytest.mark.parametrize(
    "p",
    [
        np.ma.array([0.25, 0.5], mask=False), np.ma.array([0.25, 0.5]), [Fraction(1, 4), Decimal("0.5")],
        [np.float32(0.25), np.float16(0.5)], np.array([0.25, 0.5], np.longdouble), np.array([0.25, 0.5], object),
        pd.Series([0.25, 0.5], dtype="Float64"), pd.Series([0.25, 0.5], dtype="category"),
        memoryview(np.array([0.25, 0.5])), Tensor(gradient=False),
    ],
    ids=lambda p: type(p).__name__,
)  # fmt: skip
def test_other_vectors_of_numbers_are_good(p):
    gamma = J.from_samples(p, [True, np.int8(0)])
    assert vector("p", gamma.predictions) is gamma.predictions  # not copied
    assert gamma.predictions.tolist() == [0.25, 0.5]
    assert gamma.positives.tolist() == [1.0, 0.0]


def test_of_two_columns_with_the_sum_1_the_second_is_taken():
    """But for half a per cent, as of probabilities with two digits."""
    for off in (-0.0049, 0.0049):
        assert J.from_samples([[0.75, 0.25 + off]], [1]).predictions.tolist() == [0.25 + off]
    for off in (-0.0051, 0.0051):
        with pytest.raises(InvalidData, match="expected one dimension"):
            J.from_samples([[0.75, 0.25 + off]], [1])


def test_amounts_above_a_number_are_outcomes():
    assert J.from_samples([0.5] * 3, [1, 2, 3], above=2).positives.tolist() == [1.0]
    assert J.from_samples([0.5], [1], above=-1e308).positives.tolist() == [1.0]
    for above in (1.05e308, -1.05e308):
        with pytest.raises(InvalidParameter, match=r"above = .*; expected a number in \[-1e\+308, 1e\+308\]"):
            J.from_samples([0.5], [1], above=above)
    for words in ({"positive": 1}, {"drop": 1}):
        with pytest.raises(InvalidParameter, match="above = 2 beside labels; expected one or the other"):
            J.from_samples([0.5, 0.5], [1, 3], above=2, **words)


@pytest.mark.parametrize("labels", [["a", "b", "c"], ["void", "b", "b"]])
def test_several_labels_or_an_undecided_one_are_not_0_by_themselves(labels):
    with pytest.raises(
        InvalidData, match=r"y has several labels beside 'b': .* in 1 row.*; expected `negative`"
    ):
        J.from_samples([0.5] * 3, labels, positive="b")
    assert J.from_samples([0.5] * 3, ["a", "b", "A "], positive="b").positives.tolist() == [1.0]


def test_eight_labels_are_told():
    with pytest.raises(InvalidData, match=r"y\[0\] = 'a'; .* \(there are: 'a' in 1 row, .*, 'h' in 1 row\)$"):
        J.from_samples(np.full(9, 0.5), list("abcdefghi"))


def test_rows_of_pandas_must_be_the_same():
    p, y = pd.Series([0.2, 0.8], index=[7, 8]), pd.Series([0, 1])
    for call, said in (
        (lambda: J.from_samples(p, y), "p and y"),
        (lambda: oc.evaluate(p, [0, 1], weights=pd.Series([1, 1], index=[8, 7])), "p and weights"),
        (lambda: J.from_counts(p, [1, 1], y), "predictions and positives"),
        (lambda: J.from_levels([0.2, 0.8], p, y), "mass and means"),
    ):
        with pytest.raises(InvalidData, match=f"{said} are pandas objects with different indices"):
            call()
    same = J.from_samples(p, pd.Series([0, 1], index=[7, 8]), weights=np.ones(2))
    assert same.means.tolist() == J.from_samples(p, [0, 1]).means.tolist() == [0.0, 1.0]


# -------------------------------------------------------------------- weights


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-201, 1e201, 1e307])
def test_weights_with_which_sums_would_lose_digits_are_refused(size):
    half = J.from_counts([0.2], [0.75e200], [0.0])
    for make, said in (
        (lambda: J.from_samples([0.2, 0.8], [0, 1], weights=[size, size]), "weights"),
        (lambda: J.from_counts([0.2, 0.8], [size, size], [0, 0]), "counts"),
        (lambda: J.from_levels([0.2, 0.8], [size, size], [0, 0]), "mass"),
        (lambda: half.merge(half), "merge: weights"),
    ):
        with pytest.raises(InvalidData, match=said + r" sum to .* expected a total from 1e-200 to 1e\+200"):
            make()


# A subset of more rounds has less noise.
EXACT = [record for record in MEASURES.values() if "subsampled" not in record.name]


@pytest.mark.parametrize("record", EXACT, ids=lambda record: record.name)
def test_a_power_of_two_in_the_weights_changes_no_digit(record):
    """Also near the ends of what is allowed; the brackets of linear programs and the widths of quantile bins too."""
    counts, positives = np.array([3.0, 1.0, 4.0]), np.array([1.0, 0.0, 3.0])
    gammas = (J.from_counts([0.2, 0.5, 0.8], counts * s, positives * s) for s in (1.0, 2.0**-660, 2.0**660))
    one, *others = (record.function(gamma, **record.example) for gamma in gammas)
    assert others == [one, one]


# -------------------------------------------------------------------- Γ and options


OF_TASKS = tasks.payoff, tasks.swap_regret, tasks.action_swap_regret, tasks.external_regret
OF_GAMMA = [
    *((getattr(m.function, "func", m.function).__name__, m.function) for m in MEASURES.values()),
    ("brier_decomposition", measures.brier_decomposition), ("merge", GAMMA.merge),
    *((f.__name__, lambda given, f=f: f(given, tasks.umbrella())) for f in OF_TASKS),
    *((task.name, task.account) for task in (tasks.umbrella(), tasks.quadratic())),
]  # fmt: skip


@pytest.mark.parametrize("given", [np.array([0.2, 0.5]), [0.2], None], ids=str)
def test_a_measure_or_task_of_something_else_than_gamma_says_so(given):
    for name, function in OF_GAMMA:
        expected = f"{name}: {type(given).__name__} given; expected a JointDistribution"
        with pytest.raises(InvalidData, match=expected):
            function(given)


#: what takes a number such as 1/4
NUMBERS = [
    lambda x: number("", "x", x, 0.0), lambda x: probability("x", x), lambda x: positive("x", x, "a positive number"),
    tasks.umbrella().respond, lambda x: tasks.DecisionTask("x", [[x, 0], [0, 1]]).payoffs,
    lambda x: measures.weighted_ce(GAMMA, omega=lambda v: x),
]  # fmt: skip
NO_NUMBERS = [None, "0.25", True, np.complex64(0.25), [0.25], math.nan, np.float32("nan"), -(10**400)]
INTEGERS = [
    lambda n: integer("", "n", n, 0), lambda n: count("n", n), lambda n: tasks.random_task(n, n).payoffs,
    lambda n: GAMMA.round(n)[0].predictions.tolist(),
]  # fmt: skip
NO_INTEGERS = (4.0, np.float64(4.0), 1.5, "4", None, True, np.True_, -1)


@pytest.mark.parametrize("take", NUMBERS)
def test_numbers_of_numpy_are_numbers(take):
    for kind in (np.float32, np.float16, np.float64, np.longdouble, Fraction):
        assert take(kind(0.25)) == take(0.25)
    for bad in NO_NUMBERS:
        with pytest.raises((InvalidParameter, InvalidData)):
            take(bad)


@pytest.mark.parametrize("take", INTEGERS)
def test_integers_of_numpy_are_integers(take):
    for kind in (np.int8, np.int64, np.uint8):
        assert take(kind(4)) == take(4)
    for bad in NO_INTEGERS:
        with pytest.raises(InvalidParameter):
            take(bad)


@pytest.mark.parametrize(
    ("take", "good", "bad", "expected"),
    [
        (lambda x: number("who", "x", x, 2.0, 3.0), (2.0, 3), (1.9, 3.1), r"who: x = .*; .* number in \[2, 3\]"),
        (lambda x: probability("x", x), (0, 1.0), (-1e-300, 1.1), r"^x = .*; expected a number in \[0, 1\]"),
        (lambda x: positive("x", x, "one > 0"), (5e-324, 1e308), (0, math.inf, 10**400), "expected one > 0"),
        (lambda n: integer("", "n", n, 2, 10**6), (2, 10**6), (1, 10**6 + 1), r"an integer from 2 to 10\^6"),
        (lambda n: integer("", "n", n, 2, 10**5), (2, 10**5), (1, 10**5 + 1), r"an integer from 2 to 10\^5"),
        (lambda n: integer("", "n", n, 2, 10**4), (2, 10**4), (1, 10**4 + 1), "an integer from 2 to 10000"),
        (lambda n: integer("", "n", n), (-(10**30), 0), (0.0,), "expected an integer$"),
        (lambda n: count("n", n), (1, 10**30), (0,), "expected an integer ≥ 1"),
        (lambda x: choice("", "x", x, ("law", "draw")), ("law", "draw"), ("lav", 1), "one of 'law', 'draw'"),
    ],
)  # fmt: skip
def test_ends_of_what_is_allowed(take, good, bad, expected):
    assert [take(x) for x in good] == [*good]
    for x in bad:
        with pytest.raises(InvalidParameter, match=expected):
            take(x)


def test_long_words_are_cut_and_long_lists_are_shown_by_a_command():
    """A thousand characters; a dozen names."""
    assert in_one_line("x" * 1000, str) == "x" * 1000
    assert in_one_line("x" * 1001, str) == "x" * 1000 + " …"
    names = [f"name {i:02}" for i in range(13)]
    assert suggestion("zzz", names[:12], "a list") == "; known: " + ", ".join(names[:12])
    assert suggestion("zzz", names, "a list") == "; see `a list`"
    assert suggestion("zzz", names) == "; known: " + ", ".join(names)


def test_the_place_of_an_error_is_that_of_a_user_and_else_of_a_library():
    with pytest.raises(json.JSONDecodeError) as raised:
        json.loads("x")
    error = raised.value
    assert re.fullmatch(r" \(.*test_validation\.py:\d+\)", place(error))
    assert re.fullmatch(r" \(decoder\.py:\d+\)", place(error.with_traceback(error.__traceback__.tb_next)))


def test_names_of_ones_own_are_told_where_a_command_lists_ours():
    names = [f"name {i}" for i in range(13)]
    for kind, known, said in (
        ("forecaster", names, "; see `a list`, or name your own as module:Class"), ("measure", names, "; see `a list`"),
        ("forecaster", ["zzy"], "; did you mean 'zzy'?"),
    ):  # fmt: skip
        assert str(UnknownName.of(kind, "zzz", known, "a list")) == f"unknown {kind} 'zzz'{said}"


def test_a_name_is_near_if_six_tenths_of_its_letters_are_the_same():
    assert suggestion("abcde", ["abcxy"]) == "; did you mean 'abcxy'?"
    assert suggestion("abcde", ["abwxy"]) == "; known: abwxy"
