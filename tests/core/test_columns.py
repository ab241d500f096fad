"""Columns as data: names are made from them and never read back. Two things of one name are told apart."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from onlinecal.core.columns import Column, read_column, written

#: name → column
COLUMNS = {
    "ece": Column("measure", "ece"),
    "binned_ece(bins=15)": Column("measure", "binned_ece", (("bins", 15),)),
    "d(max_levels=30)[upper]": Column("measure", "d", (("max_levels", 30),), end="upper"),
    "f(x=2.5, at=[0.1, 0.2], how=None)": Column(
        "function", "f", (("x", 2.5), ("at", (0.1, 0.2)), ("how", None))
    ),
    "payoff[umbrella, big [x]]": Column("decision_task", "payoff", task="umbrella, big [x]"),
    "payoff[u, rounded(m=10)]": Column("decision_task", "payoff", task="u", response="rounded(m=10)"),
    "f(x=nan)": Column("function", "f", (("x", float("nan")),)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_what_it_was_after_a_file(name):
    column = COLUMNS[name]
    again = Column.from_json(json.loads(json.dumps(column.as_json())))
    assert (again, hash(again), str(again)) == (column, hash(column), name)
    assert [read_column(text) for text in (written(column), name, "3", None)] == [column, None, None, None]


def ece(gamma):
    """Not that of the catalogue."""


def test_options_are_of_python_whatever_they_were():
    """Of what has no text of its own, an abridged array or an object, the content is told apart."""
    options = (("a", np.int64(3)), ("b", np.float64(0.5)), ("c", [np.float64(0.25)]), ("d", ece))
    one = Column("measure", "m", options)
    assert one.options[:3] == (("a", 3), ("b", 0.5), ("c", (0.25,)))
    assert isinstance(one.options[3][1], str)

    def name(x):
        return Column("function", "f", (("x", x),)).name

    assert name(np.array([0.5, 2])) == "f(x=[0.5, 2.0])" == name([0.5, 2.0])
    assert [name(np.zeros(n)) == name([0.0] * n) for n in (20, 21)] == [True, False]
    one, other = np.arange(3000.0), np.arange(3000.0)
    other[1500] = 0.0
    assert name(one) == name(one.copy()) != name(other)
    assert "\n" not in name(np.ones((40, 40)))
    long = type("Long", (), {"__str__": lambda self: "x" * self.size})
    one, other = long(), long()
    one.size, other.size = 200, 201
    assert name(one) == f"f(x={'x' * 200})"
    assert name(other).startswith("f(x=Long ")
    assert name(object()) == name(object())
    assert re.fullmatch(r"f\(x=ece [0-9a-f]{8}\)", name(ece))
    assert " at 0x" not in name(ece)


def test_options_of_other_types_are_other_columns():
    """1, True and 1.0 are equal to Python; their names differ, and so do the columns."""
    columns = [Column("function", "f", (("x", x),)) for x in (1, True, 1.0)]
    assert [column.name for column in columns] == ["f(x=1)", "f(x=True)", "f(x=1.0)"]
    assert len({*columns}) == 3
