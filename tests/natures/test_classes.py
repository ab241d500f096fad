"""Natures of K classes are their rules, written down once more."""

from __future__ import annotations

import pytest

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
    assert {type(spec) for spec, _ in RULES} == set(of_classes(n.NATURES).values())


@pytest.mark.parametrize(("nature", "rule"), RULES, ids=[str(spec) for spec, _ in RULES])
def test_it_is_its_rule(nature, rule):
    game = Game(Laws, nature, horizon=HORIZON, runs=range(2))
    for t in range(1, HORIZON + 1):
        question = game.ask()
        for stated in question.probability.tolist():
            assert stated == pytest.approx([*rule(t)], abs=1e-15)
        game.resolve(question)


@pytest.mark.parametrize(("make", "words"), [
    (lambda: n.Categorical((0.5, 0.6)), r"q = \(0.5, 0.6\), which sum to 1.1; expected 1 within 1e-06"),
    (lambda: n.Categorical((1.5, -0.5)), r"q\[0\] = 1.5; expected a number"),
    (lambda: n.Categorical(0.5), "q = 0.5; expected a list of probabilities"),
    (lambda: n.Categorical((1,)), r"q = \(1,\); expected 2 to 1000 probabilities"),
    (lambda: n.DriftClasses((1, 0), (0, 0, 1)), "expected 2 probabilities, as many as first has"),
    (lambda: n.ContrarianClasses(1), "classes = 1; expected an integer from 2"),
], ids=range(6))  # fmt: skip
def test_what_is_no_distribution_is_refused(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()
