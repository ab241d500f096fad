"""Simplex hedging: its choice of a cell in exact numbers, and its grid."""

from fractions import Fraction

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.simplex import simplex_parts
from onlinecal.engine.game import Game
from onlinecal.forecasters import GroupHedging, SimplexHedging
from onlinecal.forecasters.simplex import cells_of, find_cell, write_centre
from onlinecal.games.classes import against_law
from onlinecal.natures import ContrarianClasses
from tests.oracles.forecasters import SimplexHedging as Rule


def gains(rule, law, memo):
    """By what the law changes Σ‖B‖² in expectation for each class: the first-order term, and all of it."""
    classes = len(rule.zero)
    found = []
    for y in range(classes):
        first = whole = Fraction(0)
        for point, w in law.items():
            centre = memo[1] if rule.centred else [Fraction(k, rule.m) for k in point]
            x = [(k == y) - c for k, c in enumerate(centre)]
            first += 2 * w * sum(b * each for b, each in zip(rule.of(point), x, strict=True))
            whole += w * sum(each * each for each in x)
        found.append((first, first + whole))
    return found


def contrarian(rng, t, law, each):
    mean = [sum(w * point[k] for point, w in law.items()) for k in range(len(each))]
    return mean.index(min(mean))


def greedy(rng, t, law, each):
    """The class that raises the energy most."""
    return max(range(len(each)), key=lambda y: each[y][1])


def iid(rng, t, law, each):
    return rng.integers(len(each))


def certain(rng, t, law, each):
    return len(each) - 1


def drift(rng, t, law, each):
    return rng.choice(len(each), p=[max(0.0, 1.0 - t / 100), min(1.0, t / 100), *[0.0] * (len(each) - 2)])


def some(rng):
    """A nature that depends on the time, on the likeliest forecast and on chance, in a way of its own."""
    period, shares = rng.integers(1, 6), rng.dirichlet([rng.choice([0.02, 0.3, 1.0])] * 3, size=(6, 3))

    def outcome(rng, t, law, each):
        q = shares[t % period, max(law, key=law.get).index(max(max(law, key=law.get)))][: len(each)]
        return rng.choice(len(each), p=(q + 1e-9) / (q + 1e-9).sum())

    return outcome


def rounds(rule, nature, horizon, rng):
    """Plays the rule: before each round the law, its memo, and its gains."""
    for t in range(horizon):
        law, memo = rule.forecast()
        each = gains(rule, law, memo)
        yield law, memo, each
        outcome = nature(rng, t, law, each)
        points = list(law)
        point = points[rng.choice(len(points), p=[float(w) for w in law.values()])]
        rule.update(law, memo, point, outcome)


def said(rule, given, parts):
    """The law and the centre of the code, from the errors of the rule."""
    b = np.array(
        [6 * rule.m * rule.of(tuple(point))[k] for point in parts for k in range(len(rule.zero))]
        + [rule.last]
    )
    assert all(each.denominator == 1 for each in b[:-1])
    values, weights, centre = np.zeros((3, len(rule.zero)))
    size, cell = find_cell(b.astype(float), given, values, weights)
    write_centre(given, values, size, centre)
    law = {tuple(parts[int(i)]): w for i, w in zip(values[:size], weights[:size], strict=True)}
    return law, (cell, (centre / (6 * rule.m)).tolist())


def check(m, classes, nature, horizon, rng):
    rule, given, parts = Rule(m, classes), cells_of(m, classes), simplex_parts(m, classes).tolist()
    for law, memo, each in rounds(rule, nature, horizon, rng):
        for first, whole in each:
            assert first <= 0
            assert whole <= 2
        mine, (cell, centre) = said(rule, given, parts)
        assert list(mine) == list(law)
        assert [*mine.values()] == pytest.approx([float(w) for w in law.values()], abs=1e-15)
        assert cell == memo[0]
        assert centre == pytest.approx([float(c) for c in memo[1]], abs=1e-15)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("nature", [contrarian, greedy, iid, drift, certain, some])
def test_no_outcome_can_be_expected_to_raise_the_energy(nature, classes, seed):
    """There always is a cell, with first-order terms of at most 0, exactly. The code says what the rule says."""
    games = [(1 + k % 4, 25) for k in range(100)] if nature is some else [(1, 30), (4, 150)]
    for k, (m, horizon) in enumerate(games):
        rng = np.random.default_rng([seed, k])
        check(m, classes, some(rng) if nature is some else nature, horizon, rng)


def test_grid_points_as_centres_do_not_do(seed):
    """A control: some outcomes then raise the energy by more than 2 in expectation."""
    rule = Rule(4, 3, centred=False)
    worst = max(
        whole for *_, each in rounds(rule, contrarian, 150, np.random.default_rng(seed)) for _, whole in each
    )
    assert worst > 3


def test_cells_before_the_first_have_no_weights(seed):
    """By a linear program for each: the best weights leave an outcome with a term above 0."""
    rng = np.random.default_rng([seed, 3])
    for classes, m in ((3, 2), (3, 4), (2, 5)):
        rule, skipped = Rule(m, classes), 0
        for law, _, _ in rounds(rule, drift, 60, rng):
            for _, cell in rule.cells():
                c = rule.centre(cell)
                rows = [
                    [each[y] - sum(a * b for a, b in zip(each, c, strict=True)) for y in range(classes)]
                    for each in map(rule.of, cell)
                ]
                value = against_law(rows)[0]
                if list(cell) == list(law):
                    assert value <= 0
                    break
                assert value > 0
                skipped += 1
        assert skipped > 0


def test_its_grid():
    assert [SimplexHedging().steps_at(t) for t in (1, 2000, 10**5)] == [1, 7, 17]
    assert SimplexHedging("T^(1/4)").steps_at(10_000) == 10
    two = SimplexHedging().facing(ContrarianClasses(2))
    assert two.steps_at(1000) == GroupHedging().steps_at(1000) == 10
    (own,), (other, _) = two.guarantees, GroupHedging(groups=()).guarantees
    assert own.formula == other.formula
    for given in (1000, 8), (10**6, 1):
        assert own.bound(given[0]) == pytest.approx(other.bound(given[0]), rel=1e-14)
        assert own.slack(*given, 1e-9) == pytest.approx(other.slack(*given, 1e-9), rel=1e-14)
        assert own.delayed(*given) == pytest.approx(other.delayed(*given), rel=1e-14)
    with pytest.raises(InvalidParameter, match="'simplex_hedging' is of at most 3 classes, and nature"):
        Game(SimplexHedging(), ContrarianClasses(4), horizon=10, runs=range(1))
