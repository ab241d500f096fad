"""Forecasters of K classes play as their rules say, written down once more without kernels."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.simplex import grid_points, simplex_grid, simplex_parts
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import base
from onlinecal.forecasters._simplex import rank_of
from tests.by_hand import Driven
from tests.examples import of_classes
from tests.oracles import forecasters as oracle

HORIZON = 120


def rounded(shares, m):
    """The point of the grid 1/m by largest remainders, of exact shares."""
    shares = [Fraction(share) / sum(map(Fraction, shares)) for share in shares]
    parts = [math.floor(share * m) for share in shares]
    order = sorted(range(len(shares)), key=lambda k: (parts[k] - shares[k] * m, k))
    for k in order[: m - sum(parts)]:
        parts[k] += 1
    return tuple(part / m for part in parts)


def default_steps(horizon, classes):
    return max(m for m in range(1, math.isqrt(horizon - 1) + 2) if m == 1 or grid_points(m, classes) <= 10**5)


class Mean:
    def __init__(self, spec, classes, *_):
        self.counts, self.m = [0] * classes, spec.m or default_steps(HORIZON, classes)

    def law(self, number):
        return {rounded([2 * count + 1 for count in self.counts], self.m): 1.0}

    def learn(self, question, outcome):
        self.counts[outcome] += 1


class Leader(Mean):
    def __init__(self, spec, classes, run):
        super().__init__(spec, classes)
        path = ("forecaster", strategy_key(spec), f"T={HORIZON}")
        stream = Stream(0, path, range(run, run + 1)).block(HORIZON * spec.atoms * classes)
        self.noise = np.log1p(-stream[:, 0]).reshape(HORIZON, spec.atoms, classes)
        mean = math.sqrt(HORIZON / classes) if spec.mean is None else spec.mean
        self.log = math.log(mean / (1 + mean))

    def law(self, number):
        law = {}
        for noise in np.floor(self.noise[number - 1] / self.log).astype(int).tolist():
            shares = [count + z for count, z in zip(self.counts, noise, strict=True)]
            point = rounded(shares if any(shares) else [1] * len(shares), self.m)
            law[point] = law.get(point, 0.0) + 1 / len(self.noise[0])
        return law


class ByClass:
    """One forecaster of outcomes 0 and 1 a class, each played by hand."""

    def __init__(self, spec, classes, *_):
        self.m = spec.m or default_steps(HORIZON, classes)
        self.each = [Driven(spec.of, HORIZON) for _ in range(classes)]

    def law(self, number):
        self.asked, law, self.picks = [each.ask() for each in self.each], {}, []
        # The atom of the first class changes first.
        for reverse in product(*(range(len(question.law)) for question in self.asked[::-1])):
            picks = reverse[::-1]
            atoms = [question.law[pick] for question, pick in zip(self.asked, picks, strict=True)]
            # The float next to i/m is meant as i/m.
            shares = [Fraction(value).limit_denominator(100) for value, _ in atoms]
            point = rounded(shares if any(shares) else [1] * len(shares), self.m)
            law[point] = law.get(point, 0.0) + math.prod(weight for _, weight in atoms)
            self.picks.append(picks)
        return {point: weight for point, weight in law.items() if weight > 0}

    def learn(self, question, outcome):
        for k, pick in enumerate(self.picks[question.place]):
            self.each[k].tell(self.asked[k], outcome == k, pick)


class Hedging:
    """That of tests/oracles/forecasters.py, of which points are whole numbers of steps."""

    def __init__(self, spec, classes, *_):
        self.rule, self.memos = oracle.SimplexHedging(spec.m, classes), {}

    def law(self, number):
        law, self.memos[number] = self.rule.forecast()
        return {tuple(k / self.rule.m for k in point): float(w) for point, w in law.items()}

    def learn(self, question, outcome):
        point = tuple(round(self.rule.m * value) for value in question.forecast)
        self.rule.update(None, self.memos[question.number], point, outcome)


class Harmonic:
    """The means of the outcomes as they were told, each by 1/(2·age + 1)."""

    def __init__(self, spec, classes, *_):
        self.classes, self.told = classes, []

    def law(self, number):
        if not self.told:
            return {(1 / self.classes,) * self.classes: 1.0}
        ages, law = 1 / (2 * np.arange(len(self.told)) + 1), {}
        for s in range(1, len(self.told) + 1):
            sums = [ages[:s][::-1][np.equal(self.told[:s], k)].sum() for k in range(self.classes)]
            point = tuple(np.divide(sums, sum(sums)).tolist())
            law[point] = law.get(point, 0.0) + ages[len(self.told) - s] / ages.sum()
        return law

    def learn(self, question, outcome):
        self.told.append(outcome)


#: specification, its rule, and how many questions are open at once
CASES = [
    (f.ClassMean(), Mean, 5), (f.ClassMean(7), Mean, 1), (f.ClassLeader(), Leader, 5),
    (f.ClassLeader(5, mean=2, atoms=3), Leader, 5), (f.ClassByClass(f.ForecastHedging()), ByClass, 1),
    (f.ClassByClass(f.ForecastHedging(4), 9), ByClass, 1), (f.ClassByClass(f.LastOutcome(), 5), ByClass, 1),
    (f.SimplexHedging(4), Hedging, 6), (f.Harmonic(), Harmonic, 5),
]  # fmt: skip


def test_every_forecaster_has_a_rule():
    assert {type(spec) for spec, *_ in CASES} == set(of_classes(f.FORECASTERS).values())


def gathered(law):
    """The weights of points that are equal up to rounding."""
    found = {}
    for point, weight in law.items():
        near = tuple(np.round(point, 12).tolist())
        found[near] = found.get(near, 0.0) + weight
    return {point: weight for point, weight in found.items() if weight > 0}


@pytest.mark.parametrize(
    "nature", [n.Categorical(), n.ContrarianClasses(2), n.ContrarianClasses(4), n.DriftClasses()], ids=str
)
@pytest.mark.parametrize(("spec", "rule", "open"), CASES, ids=str)
def test_it_is_its_rule_also_where_outcomes_come_late(spec, rule, open, nature):
    """Of some open questions the last is told first. Runs have numbers of their own."""
    nature = n.ContrarianClasses(3) if rule is Hedging and nature.classes > 3 else nature
    game, run = Game(spec, nature, horizon=HORIZON, runs=range(3, 5)), 1
    own, mixed = rule(spec, nature.classes, 3 + run), 0
    for first in range(0, HORIZON, open):
        asked = []
        for number in range(first + 1, first + open + 1):
            question = game.ask()
            said, expected = gathered(question.laws[run]), gathered(own.law(number))
            assert said == pytest.approx(expected, abs=1e-12)
            mixed += len(said) > 1
            asked.append(question)
        for question in asked[::-1]:
            game.resolve(question)
            own.learn(question.each[run], question.each[run].outcome)
    assert (mixed > 0) is not spec.deterministic


@pytest.mark.parametrize(("m", "k"), [(1, 2), (6, 2), (2, 3), (7, 3), (4, 5)])
def test_points_of_the_grid_are_all_there_in_the_order_of_their_rank(m, k):
    parts = simplex_parts(m, k)
    expected = [each for each in product(range(m + 1), repeat=k) if sum(each) == m]
    assert parts.tolist() == [list(each) for each in expected]
    assert len(parts) == grid_points(m, k)
    assert [rank_of(each) for each in parts] == [*range(len(parts))]
    assert (simplex_grid(m, k) == parts / m).all()


def test_a_grid_that_has_too_many_points_and_laws_of_too_many_atoms_are_refused(monkeypatch):
    with pytest.raises(
        InvalidParameter, match="m = 5000 of 3 classes is a grid of 12,507,501 points; expected at"
    ):
        Game(f.ClassMean(5000), n.Categorical(), horizon=9, runs=range(1))
    with pytest.raises(
        InvalidParameter, match="'uniform_random' has laws of 17 atoms, and 3 of them 4,913; expected"
    ):
        Game(f.ClassByClass(f.UniformRandom(16)), n.Categorical(), horizon=9, runs=range(1))
    Game(f.ClassByClass(f.UniformRandom(15)), n.Categorical(), horizon=9, runs=range(1))  # 16³ = 4096
    with pytest.raises(InvalidParameter, match="needs truth, which nature 'categorical' does not reveal"):
        Game(f.ClassByClass(f.Truthful()), n.Categorical(), horizon=9, runs=range(1))
    with pytest.raises(
        InvalidParameter, match="it has as many classes as nature; expected a game of classes"
    ):
        f.ClassMean().table_at(9)
    # C(19, 9) = 92,378 points, and C(20, 9) are more than 10^5.
    assert f.ClassMean().facing(n.ContrarianClasses(10)).steps_at(10**6) == 10
    # With a hundredth of as many as may be asked for, and with all of them.
    finest, last, beyond = (f.ClassMean(m).facing(n.ContrarianClasses(2)) for m in (None, 99, 100))
    monkeypatch.setattr(base, "POINTS", 100)
    assert (finest.steps_at(9801), finest.steps_at(10**6)) == (99, 99)
    monkeypatch.setattr(base, "POINTS", 1)
    assert len(last.table_at(9)) == 100
    with pytest.raises(InvalidParameter, match="of 2 classes is a grid of 101 points; expected at most 100"):
        beyond.table_at(9)
