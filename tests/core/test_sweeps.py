"""Several values of a parameter: which lists are values and which are several, their order, labels and ranges."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.sweeps import WIDTH, Kind, Thing, kinds, ranged, sweep
from onlinecal.decisions.tasks import TASKS
from onlinecal.forecasters import FORECASTERS
from onlinecal.measures import MEASURES
from onlinecal.natures import NATURES

LIST = Kind(list=True)
KINDS = {"m": Kind(whole=True), "q": Kind(), "of": Kind(), "weights": LIST, "parts": LIST}


def swept(**table):
    return sweep("forecaster", {"name": "a", **table}, lambda role, table: Thing(table["name"], KINDS))


# ---------------------------------------------------------------- types


def untyped(rate=0.1, bins=10, weights=(1, 2), what=None, word="x", needed=...):
    pass


def annotated(
    gamma, a: float, b: "int | str", c: "tuple[float, ...] | None" = None, d: Sequence[int] = (), e: Literal["x"] = "x",
    f: "np.ndarray" = None, h: dict[str, int] | None = None, i: bool = True, j: int | float = 1,
):  # fmt: skip
    pass


def unresolved(a: "NoSuchName | None" = 3, b: "NoSuchName" = None, c=(1, 2)):  # noqa: F821
    """Types that cannot be told: the defaults decide."""


@dataclass(frozen=True)
class Specified:
    of: "Specified | None" = None
    many: "tuple[Specified, ...]" = ()


@pytest.mark.parametrize(
    ("made", "lists", "whole", "tables"),
    [
        (untyped, "weights what", "bins", "what"), (annotated, "gamma c d f", "b", "gamma h"), (dict, "", "", ""),
        (unresolved, "b c", "a", "b"), (Specified, "many", "", ""),
    ],
)  # fmt: skip
def test_the_type_says_whether_a_list_is_a_value(made, lists, whole, tables):
    found = kinds(made).items()
    assert [name for name, kind in found if kind.list] == lists.split()
    assert [name for name, kind in found if kind.whole] == whole.split()
    assert [name for name, kind in found if kind.table] == tables.split()


def test_of_what_there_is_only_these_parameters_take_lists():
    known = [*FORECASTERS.items(), *NATURES.items()]
    taken = {f"{name}.{key}" for name, cls in known for key, kind in kinds(cls).items() if kind.list}
    expected = (
        "expert_mixture.of expert_aggregation.of logistic_policy.weights mixture.natures mixture.weights"
    )
    assert taken == {*expected.split(), "streams.parts", "streams.weights", "streams.labels"}
    options = {(n, k) for n, m in MEASURES.items() for k, kind in kinds(m.function).items() if kind.list}
    assert options == {("binned_ce", "bins"), ("weighted_ce", "weights")}
    assert not any(kind.list for task in TASKS.values() for kind in kinds(task).values())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement `type` is of Python 3.12")
def test_named_types_are_what_they_stand_for():
    names = {}
    exec("type Few = list[float] | float\ntype Both = Few | int\ndef made(few: Few, both: Both): ...", names)
    assert kinds(names["made"]) == {"few": Kind(list=True), "both": Kind(list=True)}


# ---------------------------------------------------------------- combinations


INNER = {"name": "b", "m": [1, 2]}
EACH = {"each": [[1, 2], [2, 1]]}
FILES = {"each": [f"/a/very/long/way/to/the/folder/{name}.csv" for name in ("rain", "snow")]}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"m": ["T^(1/3)", 20], "q": [0.1, 0.2]},
         [f"a, m = {m}, q = {q}" for m in ("T^(1/3)", 20) for q in (0.1, 0.2)]),
        ({"weights": EACH}, ["a, weights = [1, 2]", "a, weights = [2, 1]"]),
        ({"of": INNER, "q": [0.5, 1]}, [f"a (of=b), of.m = {m}, q = {q}" for m in (1, 2) for q in ("0.5", "1")]),
        ({"parts": [{"name": "b"}, INNER]}, [f"a (parts=[b, b]), parts.1.m = {m}" for m in (1, 2)]),
        ({"of": [{"name": "b"}, {"name": "c", "m": [1, 2]}]}, ["a, of = b", "a, of = c (m=1)", "a, of = c (m=2)"]),
        ({"q": 0.25, "m": [1, 2]}, ["a (q=0.25), m = 1", "a (q=0.25), m = 2"]),
        ({"file": "f" * 60, "m": [1, 2]}, ["a, m = 1", "a, m = 2"]),
        ({"file": FILES}, ["a, file = rain.csv", "a, file = snow.csv"]),
        ({"file": {"each": ["x" * 40, "y" * 40]}}, ["a, file = #1", "a, file = #2"]),
        ({"q": [0.1234567, 0.1234568, 1e-9]}, ["a, q = 0.1234567", "a, q = 0.1234568", "a, q = 1e-09"]),
    ],
)  # fmt: skip
def test_every_combination_has_a_label_in_order(table, expected):
    made = swept(**table)
    assert list(map(made.label, made)) == expected
    assert max(map(len, expected)) <= WIDTH


@pytest.mark.parametrize(
    ("table", "key", "expected"),
    [
        ({"m": ["T^(1/3)", 20], "q": 0.5}, "m", ["T^(1/3)", 20]), ({"m": 3}, "m", [3]),
        ({"weights": [1, 2]}, "weights", [[1, 2]]), ({"weights": EACH}, "weights", [[1, 2], [2, 1]]),
        ({"m": {"each": {"from": 1, "to": 3, "step": 1}}}, "m", [1, 2, 3]),
        ({"of": INNER}, "of", [{"name": "b", "m": 1}, {"name": "b", "m": 2}]),
    ],
)  # fmt: skip
def test_tables_have_single_values(table, key, expected):
    made = swept(**table)
    assert [case.value for case in made] == [{"name": "a", **table, key: value} for value in expected]
    assert made.label(next(iter(made)), "mine").startswith("mine")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"m": []}, "m is an empty list; expected at least one value"),
        ({"m": {"each": []}}, "m is an empty list"),
        ({"of": {"name": "b", "m": []}}, r"of\.m is an empty list"),
        ({"m": [1, 2, 1]}, "m = 1 is given twice"),
        ({"q": [1, 1.0]}, "q = 1 is given twice"),
        ({"m": {"each": 3}}, "expected each = a list of values, or a range"),
        ({"q": list(range(1000)), "m": list(range(2000)), "of": list(range(1000))}, "2e.09 combinations"),
        ({"parts": [{"name": "b", "m": list(range(1000))}] * 3}, "1e.09 combinations"),
        ({"q": {"from": 1, "to": 2}}, "expected either steps"),
        ({"q": {"from": 1, "to": 2, "steps": 2, "step": 1}}, "expected either steps"),
        ({"q": {"from": 1, "steps": 2}}, "a range needs 'to'"),
        ({"q": {"from": 1, "to": 2, "count": 2}}, "a range has no 'count'"),
        ({"q": {"from": 2, "to": 1, "steps": 2}}, "from is above to"),
        ({"q": {"from": 1, "to": 1, "steps": 2}}, "from and to are the same"),
        ({"q": {"from": 1, "to": 2, "steps": 1}}, "steps = 1; expected an integer from 2"),
        ({"q": {"from": 1, "to": 2, "steps": 2.0}}, "steps = 2.0"),
        ({"q": {"from": 1, "to": 2, "step": 0}}, "step = 0; expected a number above 0"),
        ({"q": {"from": 0, "to": 1, "step": 1e-9}}, "1e.9 values; expected at most 1,000,000"),
        ({"q": {"from": 0, "to": 1, "steps": 3, "spacing": "log"}}, "from > 0"),
        ({"q": {"from": 1, "to": 2, "step": 1, "spacing": "log"}}, "expected steps"),
        ({"q": {"from": 1, "to": 2, "steps": 3, "spacing": "lin"}}, "expected one of 'linear', 'log'"),
        ({"q": {"from": "1", "to": 2, "steps": 3}}, "from = '1'; expected a finite number"),
        ({"q": {"from": 1, "to": float("inf"), "steps": 3}}, "to = inf; expected a finite number"),
        ({"q": {"from": True, "to": 2, "steps": 3}}, "from = True"),
        ({"m": {"from": 1, "to": 3, "steps": 9}}, "there are 3 whole numbers, fewer than steps = 9"),
        ({"m": {"from": 0.5, "to": 3, "steps": 2}}, "expected a whole number"),
    ],
)
def test_refused(table, said):
    with pytest.raises(InvalidParameter, match=said):
        list(swept(**table))


def test_a_million_are_not_made():
    made = swept(m=list(range(1000)), q=list(range(1000)))
    assert len(made) == 10**6
    assert next(iter(made)).value == {"name": "a", "m": 0, "q": 0}


# ---------------------------------------------------------------- ranges


def test_ranges():
    assert ranged("q", {"from": 0.1, "to": 0.9, "steps": 9}) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert ranged("q", {"from": 0, "to": 1, "step": 0.3}) == [0.0, 0.3, 0.6, 0.9]
    assert ranged("m", {"from": 10, "to": 1000, "steps": 3, "spacing": "log"}) == [10, 100, 1000]
    assert ranged("m", {"from": 1, "to": 10, "steps": 5}, whole=True) == [1, 3, 6, 8, 10]
    assert ranged("m", {"from": 1, "to": 10, "steps": 5}) == [1.0, 3.25, 5.5, 7.75, 10.0]
    assert ranged("m", {"from": 5, "to": 6, "step": 2}) == [5]
    assert all(type(v) is int for v in ranged("m", {"from": 0, "to": 100, "steps": 5}))


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.integers(2, 50), st.sampled_from(["linear", "log"]))
def test_a_range_has_its_ends_and_is_even(low, width, steps, spacing):
    high = low + width
    if high <= low or (spacing == "log" and low <= 1e-6):
        return
    values = ranged("q", {"from": low, "to": high, "steps": steps, "spacing": spacing})
    assert (values[0], values[-1], len(values)) == (low, high, steps)
    even = np.linspace if spacing == "linear" else np.geomspace
    # The smallest numbers that there are lie further apart than that.
    apart = 1e-12 * max(abs(low), abs(high)) + 5e-324
    np.testing.assert_allclose(values, even(low, high, steps), rtol=1e-12, atol=apart)
