"""Natures of K classes are their rules, written down once more."""

from __future__ import annotations

from collections import defaultdict

import pytest

from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from tests.examples import of_classes

HORIZON = 40


class Laws:
    """Laws with ties, with an atom of no weight, and on the corners."""

    classes = 3

    def __init__(self):
        self.rounds = 0

    def forecast(self):
        third = 1 / 3
        laws = [
            [third, third, third], [0, 0.5, 0.5], {(0.5, 0.5, 0): 0.5, (0.25, 0.25, 0.5): 0.5},
            {(0, 0.25, 0.75): 0.0, (0.5, 0, 0.5): 1.0}, {(1, 0, 0): 0.4, (0, 1, 0): 0.3, (0, 0, 1): 0.3},
            {(0.1, 0.2, 0.7): 0.5, (0.2, 0.1, 0.7): 0.5},
        ]  # fmt: skip
        return laws[self.rounds % len(laws)]

    def update(self, forecast, outcome):
        self.rounds += 1


#: outcomes that have the smallest mean, the first of equal ones
LEAST = [0, 0, 2, 1, 1, 0]


def drift(t):
    return [1 - (2 * t - 1) / 80, 0, (2 * t - 1) / 80]


RULES = [
    (n.Categorical(), lambda t: (0.5, 0.3, 0.2)),
    (n.Categorical([0.4999999, 0.3, 0.2]), lambda t: (0.4999999 / 0.9999999, 0.3 / 0.9999999, 0.2 / 0.9999999)),
    (n.ContrarianClasses(), lambda t: [float(k == LEAST[(t - 1) % 6]) for k in range(3)]),
    (n.DriftClasses(), drift),
    (n.DriftClasses((0, 0, 1), (1, 0, 0)), lambda t: drift(t)[::-1]),
]  # fmt: skip


def test_every_nature_has_a_rule():
    """That of the greedy one is below."""
    assert {type(spec) for spec, _ in RULES} | {n.GreedyClasses} == set(of_classes(n.NATURES).values())


def test_distributions_are_of_2_to_1000_classes_and_sum_to_1():
    for q in ((0.0, 1.0), [1 / 1000] * 1000, (0.5, 0.5 + 0.9e-6), (0.5, 0.5 - 0.9e-6)):
        assert n.Categorical(q).classes == len(q)
    for q, said in (([1.0], "2 to 1000"), ([1 / 1001] * 1001, "2 to 1000"), ((0.5, 0.5 + 1.1e-6), "which sum to"),
                    ((0.5, 0.5 - 1.1e-6), "which sum to"), ((1.1, -0.1), "q")):  # fmt: skip
        with pytest.raises(InvalidParameter, match=said):
            n.Categorical(q)


@pytest.mark.parametrize(("nature", "rule"), RULES, ids=[str(spec) for spec, _ in RULES])
def test_it_is_its_rule(nature, rule):
    game = Game(Laws, nature, horizon=HORIZON, runs=range(2))
    for t in range(1, HORIZON + 1):
        question = game.ask()
        for stated in question.probability.tolist():
            assert stated == pytest.approx([*rule(t)], abs=1e-15)
        game.resolve(question)


@pytest.mark.parametrize("nature", [n.ContrarianClasses(), n.GreedyClasses()], ids=str)
@pytest.mark.parametrize(("apart", "outcome"), [(0.9e-9, 0), (1.1e-9, 2)])
def test_the_first_of_classes_that_are_equal_within_a_billionth(nature, apart, outcome):
    class Nearly:
        classes = 3

        def forecast(self):
            return [1 / 3 + apart / 2, 1 / 3, 1 / 3 - apart / 2]

        def update(self, forecast, outcome): ...

    question = Game(Nearly, nature, horizon=1, runs=range(1)).ask()
    assert question.probability[0].tolist() == [float(k == outcome) for k in range(3)]


def total(errors):
    return 0.5 * sum(abs(each) for point in errors.values() for each in point)


def raised(errors, point, outcome):
    """The errors of all points after one more round."""
    then = [each - v + (k == outcome) for k, (each, v) in enumerate(zip(errors[point], point, strict=True))]
    return errors | {point: then}


@pytest.mark.parametrize("forecaster", [Laws, f.SimplexHedging(3), f.Harmonic()], ids=str)
def test_the_greedy_one_raises_ece_most(forecaster):
    """By the errors of all points, with each class tried; the outcome is then any, so that errors differ."""
    runs = range(2)
    game = Game(forecaster, n.GreedyClasses(), horizon=HORIZON, runs=runs)
    kept = [defaultdict(lambda: [0.0] * 3) for _ in runs]
    for t in range(HORIZON):
        question = game.ask()
        for run, errors in enumerate(kept):
            law = question.laws[run]
            gains = [sum(w * total(raised(errors, v, y)) for v, w in law.items() if w) for y in range(3)]
            first = next(y for y in range(3) if gains[y] > max(gains) - 1e-9)
            assert question.probability[run].tolist() == [float(y == first) for y in range(3)]
        outcomes = [(t + run) * (t + 2) % 3 for run in runs]
        for run, errors in enumerate(kept):
            kept[run] = raised(errors, tuple(question.forecast[run].tolist()), outcomes[run])
        game.resolve(question, outcome=outcomes)
