"""`onlinecal solve` and `onlinecal exploit`, as a user gives them."""

import json
import re
from fractions import Fraction

import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import at_least, at_most
from onlinecal.exploit import exploit
from onlinecal.forecasters import EmpiricalMean, ForecastHedging, Rounded
from onlinecal.games import solve, value_bracket
from onlinecal.games.rational import counts_of, legible, rational_text, rational_value
from tests.command_line import onlinecal


def test_solve(tmp_path):
    said = onlinecal("solve --m 2 --horizon 3", cwd=tmp_path).stdout
    for words in ("value       29/28 ≈ 1.03571428571", "forecaster  0.5 with probability 1"):
        assert words in said
    found = json.loads(
        onlinecal("solve --m 4 --horizon 6 --after '0.5:1, 0.5:1' --json", cwd=tmp_path).stdout
    )
    here = solve(4, 6).at([0, 0, 4, 0, 0], 4)
    assert (found["value"], found["value_here"], found["left"]) == (solve(4, 6).value, here.value, 4)
    assert [each["forecast"] for each in found["law"]] == list(here.forecasts)
    assert found["after"] == here.after.tolist()
    bracket = value_bracket(2, 12, 4.0, "step_ce", progress=False)
    said = onlinecal("solve --m 2 --horizon 12 --clip 4 --measure step_ce", cwd=tmp_path).stdout
    assert f"between {at_most(bracket.lower, 12)} and {at_least(bracket.upper, 12)}, certified" in said


@pytest.mark.parametrize(
    ("after", "said"),
    [
        *(
            (text, f"round '{text}'; expected forecast:outcome")
            for text in ("half:1", "0.3:1", "1.5:1", "0.5:2", "0.5")
        ),
        ("0.5:1, 0.5:1, 0:0", "3 rounds have been played of T = 3; expected fewer"),
    ],
)
def test_rounds_that_cannot_have_been_played(after, said):
    with pytest.raises(InvalidParameter, match=said):
        counts_of(after, 2, 3)


def test_fractions_are_of_small_games_and_short():
    """Up to T = 6 on 6 steps, and 40 characters; a value is computed up to T = 10."""
    told = [bool(rational_text(m, t, "ece", "law")) for m, t in ((1, 6), (1, 7), (6, 1), (7, 1))]
    assert told == [True, False, True, False]
    assert rational_text(2, 3, "cdl", "law") == ""
    shortest = Fraction(1, 10**37)
    assert [legible(x) for x in (shortest, shortest / 10, Fraction(1, 2**20_000))] == [str(shortest), "", ""]
    assert rational_value(1, 10) == 5
    with pytest.raises(InvalidParameter, match="horizon = 11; expected an integer from 1 to 10"):
        rational_value(1, 11)


def test_rounds_near_a_point_are_of_it():
    """Within 1e-9 of a step, also beyond the ends; m rounds are counted at their points."""
    assert counts_of("0.5:1, 0.3333333333333:0,-1e-10:0, 1.0000000001:1", 6, 9).tolist() == [
        [1, 0], [0, 0], [1, 0], [1, 1], [0, 0], [0, 0], [1, 1],
    ]  # fmt: skip
    for text in ("0.333333:0", "-1e-8:0", "1.00000001:1"):
        with pytest.raises(InvalidParameter, match="expected forecast:outcome"):
            counts_of(text, 6, 9)


def test_solve_of_classes(tmp_path):
    said = onlinecal("solve --classes 3 --m 3 --horizon 2", cwd=tmp_path).stdout
    for words in (
        "total ece of 3 classes",
        "value       16/15 ≈ 1.06666666667\n",
        "(0.333333, 0.333333",
    ):
        assert words in said
    found = json.loads(onlinecal("solve --classes 4 --m 1 --horizon 2 --json", cwd=tmp_path).stdout)
    assert (found["value"], found["rational"], found["q"]) == (1.5, "3/2", [0.25] * 4)
    assert [each["weight"] for each in found["law"]] == [0.25] * 4
    found = json.loads(onlinecal("solve --classes 3 --m 3 --horizon 2 --json", cwd=tmp_path).stdout)
    assert found["error"] == float(abs(Fraction(16, 15) - Fraction(found["value"]))) > 0.0
    assert [sum(each["forecast"]) for each in found["law"]] == pytest.approx([1.0] * len(found["law"]))
    said = onlinecal("solve --classes 3 --m 1 --horizon 3 --sight draw", cwd=tmp_path).stdout
    assert "value       3\n" in said
    assert "nature      class 1 for that forecast" in said


@pytest.mark.parametrize(("m", "horizon"), [(4, 7), (7, 4)])
def test_what_is_printed_holds_for_the_rational_value(tmp_path, m, horizon):
    exact = rational_value(m, horizon)
    words = onlinecal(f"solve --m {m} --horizon {horizon}", cwd=tmp_path).stdout
    value, error = re.search(r"value +([\d.]+) ± (\S+)", words).groups()
    assert abs(Fraction(value) - exact) <= Fraction(error)
    words = onlinecal(f"solve --m {m} --horizon {horizon} --clip 1.5", cwd=tmp_path).stdout
    low, high = re.search(r"between ([\d.]+) and ([\d.]+), certified", words).groups()
    found = value_bracket(m, horizon, 1.5, progress=False)
    assert Fraction(low) <= Fraction(found.lower) <= exact <= Fraction(found.upper) <= Fraction(high)
    assert max(len(each.replace(".", "")) for each in (low, high)) == 12


def test_exploit(tmp_path):
    said = onlinecal("exploit", "forecast_hedging", "--m", 4, "--horizon", 6, cwd=tmp_path).stdout
    found = exploit(ForecastHedging(4), 6)
    assert f"value           {found.value:.12g} ±" in said
    assert f"exploitability  {found.value - solve(4, 6).value:.12g}" in said
    table = '{ name = "rounded", m = 2, of = { name = "empirical_mean" } }'
    read = json.loads(onlinecal("exploit", table, "--horizon", 6, "--json", cwd=tmp_path).stdout)
    assert read["value"] == exploit(Rounded(EmpiricalMean(), 2), 6).value
    assert read["exploitability"] == read["value"] - read["minimax"]


@pytest.mark.parametrize(
    ("forecaster", "why"),
    [
        ("constant", "of an even grid 0, 1/m, …, 1 only"),
        (
            '{ name = "rounded", m = 400, of = { name = "constant" } }',
            "m = 400, T = 9: the game of ece needs ",
        ),
    ],
)
def test_exploit_says_why_there_is_no_minimax(tmp_path, forecaster, why):
    line = ("exploit", forecaster, "--horizon", 9)
    said = onlinecal(*line, cwd=tmp_path, columns=300).stdout.splitlines()
    assert said[-1].startswith(f"minimax         {why}")
    found = json.loads(onlinecal(*line, "--json", cwd=tmp_path).stdout)
    assert (found["minimax"], found["exploitability"]) == (None, None)
    assert found["value"] > 0.0
