"""Expressions in T are parsed, and nothing else is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import check_expression, grid_steps, value_at


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("T^(1/3)", 1000 ** (1 / 3)),
        ("2*sqrt(T) + 1", 2 * math.sqrt(1000) + 1),
        ("-T**2/-4", 250_000),
        ("max(3, log(T), min(2, T))", math.log(1000)),
        ("ceil(T/7) - floor(1.5)", 142),
        ("T" + "+T" * 49 + " ", 50_000),
        (12, 12),
    ],
)
def test_values(expression, value):
    assert value_at(expression, 1000) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')", "T^(1/0)", "(-T)^(1/2)", "T^T", "1e999", "log(-1)", "sqrt(-T)", "log()", "T.real", "T T",
        "",
        "()", "lambda: 1", "[T]", "T if T else 1", "'a'", "True", "open", "sqrt(x=3)", "t", "T" + "+T" * 50,
        "9^9^9^9^9",
        None, [1], True, float("nan"), "ceil(10^400)", "(" * 200,
    ],
)  # fmt: skip
def test_nothing_else(expression):
    with pytest.raises(InvalidParameter, match=r"expected|no value|neither"):
        value_at(expression, 1000)


@given(st.integers(1, 1000))
def test_perfect_powers_are_not_rounded_up_twice(root):
    assert grid_steps("m", "T^(1/3)", root**3) == root
    assert grid_steps("m", "T^(1/2)", root**2) == root
    assert grid_steps("m", "T^(1/2)", root**2 + 1) == root + 1
    assert grid_steps("m", "T + 1/10^5", root) == root + 1
    # Up to a billionth of itself.
    assert grid_steps("m", root * (1 + 0.95e-9), 9) == root
    assert grid_steps("m", root * (1 + 1.05e-9), 9) == root + 1


def test_ends_of_what_is_allowed():
    assert [grid_steps("m", m, 9) for m in (1, "T/9", 10**6)] == [1, 1, 10**6]
    assert [check_expression("q", q, 2.0, 3.0, 9) for q in (2, "T/3")] == [2.0, 3.0]
    for q in (1.9, "T/2"):
        with pytest.raises(InvalidParameter, match=r"^q = .*; expected a number in \[2, 3\]$"):
            check_expression("q", q, 2.0, 3.0, 9)
    # Before T is known: in range at some T, and at none of those that are tried.
    for at in ("1/(T - 2)", "3 - T", "T - 4", "T - 9"):  # of which the last three are 1 at 2, 5 and 10 alone
        assert math.isnan(check_expression("q", at, 0.0, 1.0))
    with pytest.raises(InvalidParameter, match=r"q = .T., which is 1e[+]09 at T = 1000000000; expected"):
        check_expression("q", "T", 0.0, 1.0)


@pytest.mark.parametrize("m", [0, -3, "T^2", "1/T - 1", 10**6 + 1])
def test_grid_out_of_range(m):
    with pytest.raises(InvalidParameter, match="expected 1 to"):
        grid_steps("m", m, 10**4)
