"""Bad input: what is no vector of numbers, no Γ, no option; and NumPy's numbers, which are as good as Python's."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import onlinecal as oc
from onlinecal import measures
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.core.validation import vector
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
        (Tensor(), r"p is not an array of numbers \(RuntimeError: Can't call numpy\(\) on Tensor that "),
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


#: what takes a number, with a good one
NUMBERS = [
    (lambda x: measures.ece(GAMMA, order=x), 2.5),
    (lambda x: measures.kernel_ce(GAMMA, kernel="gaussian", scale=x), 0.25),
    (lambda x: measures.random_interval_ce(GAMMA, epsilon=x), 0.25),
    (lambda x: measures.distance_lower(GAMMA, tolerance=x), 0.25), (lambda x: tasks.v_shaped(x).payoffs, 0.25),
    (lambda x: tasks.umbrella().respond(x), 0.25), (lambda x: tasks.DecisionTask("x", [[x, 0], [0, 1]]).payoffs, 0.25),
    (lambda x: measures.weighted_ce(GAMMA, omega=lambda v: x), 0.25),
]  # fmt: skip
NO_NUMBERS = [None, "0.25", True, np.complex64(0.25), [0.25], math.nan, np.float32("nan"), -(10**400)]
INTEGERS = [
    lambda n: GAMMA.round(n)[0].predictions.tolist(), lambda n: measures.binned_ece(GAMMA, bins=n),
    lambda n: measures.interval_ce(GAMMA, max_levels=n),
    lambda n: measures.true_distance([0.2, 0.5], [0, 1], max_rounds=n), lambda n: tasks.random_task(n, n).payoffs,
    lambda n: oc.evaluate([0.2, 0.5], [0, 1], measures=["ece"], bootstrap=n, seed=n).rows[0].interval,
]  # fmt: skip
NO_INTEGERS = (4.0, np.float64(4.0), 1.5, "4", None, True, np.True_, -1)


@pytest.mark.parametrize("call", range(len(NUMBERS)))
def test_numbers_of_numpy_are_numbers(call):
    function, x = NUMBERS[call]
    expected = function(x)
    for kind in (np.float32, np.float16, np.float64, np.longdouble, Fraction):
        assert function(kind(x)) == expected
    for bad in NO_NUMBERS if call != 3 else NO_NUMBERS[1:]:  # of which None is the default
        with pytest.raises((InvalidParameter, InvalidData)):
            function(bad)


@pytest.mark.parametrize("call", range(len(INTEGERS)))
def test_integers_of_numpy_are_integers(call):
    function = INTEGERS[call]
    expected = function(4)
    for kind in (np.int8, np.int64, np.uint8):
        assert function(kind(4)) == expected
    for bad in NO_INTEGERS:
        if bad is not None or call != 2:  # of which None is the default
            with pytest.raises(InvalidParameter):
                function(bad)
