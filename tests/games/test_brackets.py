"""Bounds of the value hold the exact one, and are the values of the games that their proof speaks of."""

import functools

import numpy as np
import pytest
from scipy.optimize import linprog

from onlinecal.core.errors import InvalidParameter
from onlinecal.games import brackets, solve, value_bracket
from tests.games.recursion import matrix_value

#: measures that are tried, and rounding in a bracket of short games
OTHERS = ("smooth_ce", "kernel_ce", "cutoff_ce", "step_ce")
ROUNDED = 1e-9


@pytest.mark.parametrize(
    ("measure", "m", "horizon"),
    [*(("ece", m, 24) for m in (1, 2, 3, 4)), *((measure, 2, 12) for measure in OTHERS), ("smooth_ce", 1, 9),
     ("step_ce", 4, 6), ("earthmover_distance", 3, 8), ("low_degree_ce", 3, 8), ("binned_ece", 2, 9),
     pytest.param("ece", 3, 40, marks=pytest.mark.slow)],
)  # fmt: skip
def test_they_hold_the_exact_value(measure, m, horizon):
    exact, widths = solve(m, horizon, measure, progress=False), []
    for clip in sorted((1.0, 1.7, 3.0, horizon / 4.0, horizon)):
        found = value_bracket(m, horizon, clip, measure, progress=False)
        assert (found.lowers <= exact.values + exact.error).all()
        assert (found.uppers >= exact.values - exact.error).all()
        assert (found.lower, found.upper) == (found.lowers[-1], found.uppers[-1])
        assert found.lower >= 0.0
        widths.append(found.width)
    assert max(np.diff(widths)) < ROUNDED
    assert widths[-1] < ROUNDED  # biases of at most T are all told apart


def by_the_rules(m, horizon, most, upper):
    """The value of the two games as the docstring tells them, with whole numbers m·E and m·total."""

    def paid(state, i, y):
        """The next state, and what a round adds."""
        move, (bias, sign) = m * y - i, state[i]
        if sign:
            return state, sign * move
        after = bias + move
        if upper and abs(after) > most:
            return state, abs(move)
        row = list(state)
        row[i] = (after, 0)
        if not upper and abs(after) >= most:
            row[i] = (0, 1 if after > 0 else -1)
        return tuple(row), abs(after) - abs(bias)

    @functools.cache
    def value(state, left):
        if left == 0:
            return 0.0
        pairs = []
        for i in range(m + 1):
            follows = [paid(state, i, y) for y in (0, 1)]
            pairs.append(tuple(gain + value(then, left - 1) for then, gain in follows))
        best = min(max(pair) for pair in pairs)
        for a, b in pairs:
            for c, d in pairs:
                if a < b and c > d:
                    best = min(best, (b * c - a * d) / (b - a + c - d))
        return best

    return value(((0, 0),) * (m + 1), horizon) / m


@pytest.mark.parametrize(("m", "clip"), [(1, 1.0), (2, 1.0), (2, 1.5), (3, 1.0), (3, 1.4), (4, 1.0)])
def test_they_are_the_games_of_the_proof(m, clip):
    found = value_bracket(m, 7 if m < 4 else 5, clip, progress=False)
    for bound, upper in ((found.lower, False), (found.upper, True)):
        assert bound == pytest.approx(by_the_rules(m, found.horizon, int(clip * m), upper), abs=1e-11)


def norm(measure, m, biases):
    """The seminorm itself, by the sum or the maximum that defines it."""
    grid = np.arange(m + 1) / m
    if measure == "kernel_ce":
        return float(np.sqrt(max(biases @ np.exp(-np.abs(grid[:, None] - grid)) @ biases, 0.0)))
    if measure == "smooth_ce":
        near = np.diff(np.eye(m + 1), axis=0)
        return -linprog(-biases, np.concatenate([near, -near]), np.full(2 * m, 1.0 / m), bounds=(-1, 1)).fun
    prefixes = np.concatenate([[0.0], np.cumsum(biases)])
    return float(np.ptp(prefixes) if measure == "cutoff_ce" else np.abs(prefixes).max())


def charged_by_the_rules(measure, m, horizon, most, sign):
    """The value of the two games of other measures as the docstring tells them, by a program in every state."""
    each = [[norm(measure, m, (y - i / m) * np.eye(m + 1)[i]) for y in (0, 1)] for i in range(m + 1)]

    @functools.cache
    def value(state, left):
        if left == 0:
            return norm(measure, m, np.array(state) / m)
        after = np.empty((m + 1, 2))
        for i in range(m + 1):
            for y in (0, 1):
                bias = state[i] + m * y - i
                if abs(bias) > most:
                    after[i, y] = sign * each[i][y] + value(state, left - 1)
                else:
                    after[i, y] = value((*state[:i], bias, *state[i + 1 :]), left - 1)
        return matrix_value(after)

    return value((0,) * (m + 1), horizon)


@pytest.mark.parametrize("measure", OTHERS)
@pytest.mark.parametrize(("m", "clip"), [(1, 1.0), (2, 1.0), (3, 1.4)])
def test_those_of_other_measures_are_the_games_of_the_proof(measure, m, clip):
    found = value_bracket(m, 5 if m < 3 else 3, clip, measure, progress=False)
    most = int(clip * m)
    upper = charged_by_the_rules(measure, m, found.horizon, most, 1)
    lower = max(charged_by_the_rules(measure, m, found.horizon, most, -1), 0.0)
    assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=1e-7)


def test_charges_that_are_too_small_bound_nothing(monkeypatch):
    """Half of the seminorm of what is left away is not enough, in either direction."""
    right = solve(2, 9, "step_ce", progress=False).value
    monkeypatch.setattr(brackets, "charges", lambda measure, m: np.zeros((m + 1, 2)))
    assert value_bracket(2, 9, 1.0, "step_ce", progress=False).upper < right - 0.1


def test_rounding_is_included():
    """That of the solution; of other measures than total ECE another 1e-12 a round, since charges are not exact."""
    for measure, horizon, charged in (("ece", 1, 0), ("ece", 3, 0), ("smooth_ce", 1, 1), ("smooth_ce", 3, 3)):
        exact = solve(1, horizon, measure, progress=False)
        found = value_bracket(1, horizon, 5.0, measure, progress=False)
        error = exact.error + charged * 1e-12
        assert found.upper - exact.value == pytest.approx(error, rel=1e-3, abs=0.0)
        assert exact.value - found.lower == pytest.approx(error, rel=1e-3, abs=0.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"m": 40, "horizon": 100_001}, r"horizon = 100001; expected an integer from 1 to 10\^5"),
        ({"clip": 0.99}, "clip = 0.99"), ({"m": 0}, "m = 0"), ({"measure": "cdl"}, "depends on more than the biases"),
    ],
)  # fmt: skip
def test_what_is_refused(options, said):
    with pytest.raises(InvalidParameter, match=said):
        value_bracket(**{"m": 2, "horizon": 3, "clip": 1.0} | options)


def test_a_long_game():
    """V_T grows by 1/6 a round in the end, as nature sits between two points."""
    found = value_bracket(3, 160, 6.0, progress=False)
    assert found.width < 1e-3
    assert np.diff(found.lowers)[-1] == pytest.approx(1 / 6, abs=1e-4)
    assert found.states < 2000
