"""Values of games of K classes: against programs in every state, two classes, and what is known."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.games import classes as games
from onlinecal.games import solve_classes
from onlinecal.games.rational import rational_value
from tests.games.recursion import matrix_value


def value_by_programs(classes, m, horizon):
    """The value from the total at the end alone, with a state for every number of rounds and outcomes."""
    points = np.array(games.grid(classes, m)) / m

    @cache
    def value(left, ends):
        counts = np.array(ends).reshape(-1, classes)
        if left == 0:
            gamma = oc.ClassDistribution.from_counts(points, counts)
            return gamma.weight * oc.measures.classes.ece(gamma)
        after = counts.ravel() + np.eye(counts.size, dtype=int)
        each = [value(left - 1, tuple(end.tolist())) for end in after]
        return matrix_value(np.reshape(each, counts.shape))

    return value(horizon, (0,) * len(points) * classes)


@pytest.mark.parametrize("given", [(3, 1, 3), (3, 2, 2), (4, 1, 2)])
def test_as_a_program_in_every_state(given):
    assert float(solve_classes(*given).value) == pytest.approx(value_by_programs(*given), abs=1e-7)


@pytest.mark.parametrize(
    ("classes", "m", "known"),
    [
        (3, 1, [2 / 3, 4 / 3, 2]),
        (3, 2, [0.666667, 1.166667, 1.614507]),
        (3, 3, [0.666667, 1.066667, 1.426667]),
        (4, 1, [3 / 4, 3 / 2]),
        (6, 1, [5 / 6]),
    ],
)
def test_known_values(classes, m, known):
    found = [float(solve_classes(classes, m, t).value) for t in range(1, len(known) + 1)]
    assert found == pytest.approx(known, abs=5e-7)
    assert solve_classes(classes, m, 1).value == Fraction(classes - 1, classes)


@pytest.mark.parametrize("sight", ["law", "draw", "history"])
def test_two_classes_are_the_binary_game(sight):
    """Two ways to the same rational numbers: a program in each state, and pairs of forecasts."""
    for m, horizon in ((1, 4), (2, 5), (3, 4), (4, 3)):
        assert solve_classes(2, m, horizon, sight).value == rational_value(m, horizon, "ece", sight)


def test_against_who_sees_the_draw():
    assert [solve_classes(3, m, 2, "draw").value for m in (1, 2, 3)] == [2, 2, Fraction(4, 3)]


def test_both_sides_hold_the_value(seed):
    """Of matrix games of whole numbers, exactly; also with equal rows and columns, and values below 0."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        rows = rng.integers(-3, 3, size=rng.integers(1, 7, 2)).tolist()
        value, law, q = games.against_law([list(map(Fraction, row)) for row in rows])
        assert sum(law.values()) == sum(q) == 1
        assert min(*law.values(), *q) >= 0
        assert max(sum(w * rows[i][y] for i, w in law.items()) for y in range(len(q))) == value
        assert min(sum(p * x for p, x in zip(q, row, strict=True)) for row in rows) == value


def test_merging_more_would_change_the_value(monkeypatch):
    right = solve_classes(3, 2, 4).value
    monkeypatch.setattr(games, "settled", lambda m, left, v, bias: tuple(np.clip(bias, -1, 1).tolist()))
    assert abs(solve_classes(3, 2, 4).value - right) > 1e-3


def test_states_are_counted_before_they_are_looked_at():
    """The letters without permutations of classes: at least 1/K! of them, and as many as there are for two classes."""
    found, letters = solve_classes(3, 3, 3), games.ClassBiases(3, 3, 3)
    most = max(games.how_many(letters, left) for left in (1, 2, 3))
    assert most / 6 <= found.states <= most


def test_as_many_steps_as_are_said_are_taken(monkeypatch):
    """In the first round four points with two outcomes each; of the one state a permutation is one more."""
    monkeypatch.setattr(games, "MOST", 4 * 2 * 2)
    assert games.solve_classes(2, 3, 1).value == Fraction(1, 2)
    monkeypatch.setattr(games, "MOST", 4 * 2 * 2 - 1)
    with pytest.raises(
        InvalidParameter, match="16 steps already for T = 1; none of this grid fits; expected at most 15 st"
    ):
        games.solve_classes(2, 3, 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((1, 2, 2), "classes = 1"), ((3, 0, 2), "m = 0"), ((3, 2, 8), "from 1 to 7"), ((3, 2, 2, "all"), "sight"),
        ((3, 6, 5), r"6.2e\+06 steps already for T = 4; the largest T that fits is 3"),
        ((12, 1, 1), "none of this grid fits"),
        ((100, 4, 1), "none of this grid fits"), ((3, 1000, 7), "none of this grid fits"),
    ],
)  # fmt: skip
def test_what_is_refused(given, said):
    with pytest.raises(InvalidParameter, match=said):
        solve_classes(*given)
