"""Bounds of the value: they hold the exact one, and are the values of the games that their proof speaks of."""

import functools

import numpy as np
import pytest
from typer.testing import CliRunner

from onlinecal.cli import app
from onlinecal.core.errors import InvalidParameter
from onlinecal.exact import solve, value_bracket


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_they_hold_the_exact_value(m):
    exact, widths = solve(m, 24, progress=False), []
    for clip in (1.0, 1.7, 2.0, 3.0, 24.0):
        found = value_bracket(m, 24, clip, progress=False)
        assert (found.lowers <= exact.values + exact.error).all()
        assert (found.uppers >= exact.values - exact.error).all()
        assert (found.lower, found.upper) == (found.lowers[-1], found.uppers[-1])
        widths.append(found.width)
    assert widths == sorted(widths, reverse=True)
    # Biases of at most T are all told apart.
    assert widths[-1] < 1e-11


def by_the_rules(m, horizon, most, upper):
    """The value of the two games as the docstring tells them, with whole numbers m·E and m·total."""

    def paid(state, i, y):
        """What follows, and what a round adds."""
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


def test_a_long_game():
    """V_T grows by 1/6 a round in the end, as nature sits between two points."""
    found = value_bracket(3, 160, 6.0, progress=False)
    assert found.width < 1e-3
    assert np.diff(found.lowers)[-1] == pytest.approx(1 / 6, abs=1e-4)
    assert found.states < 2000


@pytest.mark.slow
def test_the_figures_of_the_page(full):
    for m, horizon, clip, lower, upper in (
        (3, 1000, 10.0, 167.677396, 167.677418),
        (4, 256, 8.0, 33.650019, 33.650788),
    ):
        if horizon < 1000 or full:
            found = value_bracket(m, horizon, clip, progress=False)
            assert found.lower == pytest.approx(lower, abs=1e-6)
            assert found.upper == pytest.approx(upper, abs=1e-6)


@pytest.mark.parametrize("clip", [0.5, -1.0, float("nan"), "x"])
def test_what_is_no_clip(clip):
    with pytest.raises(InvalidParameter, match="clip"):
        value_bracket(2, 5, clip)


def test_the_command():
    done = CliRunner().invoke(app, ["solve", "--m", "2", "--horizon", "40", "--clip", "4"])
    found = value_bracket(2, 40, 4.0, progress=False)
    assert f"value       between {found.lower:.12g} and {found.upper:.12g}, certified" in done.stdout
    wrong = CliRunner().invoke(
        app, ["solve", "--m", "2", "--horizon", "4", "--clip", "4", "--measure", "cdl"]
    )
    assert wrong.exit_code == 2
    assert "--clip brackets the value of ece" in wrong.stderr
