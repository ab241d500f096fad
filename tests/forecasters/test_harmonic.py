"""Harmonic weights: values by hand, the rule with open rounds, errors of laws; and Γ of laws in general."""

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import ClassMean, ForecastHedging, Harmonic, SimplexHedging
from onlinecal.measures.classes import ece
from onlinecal.natures import Categorical, Contrarian, ContrarianClasses
from onlinecal.schedules import Constant, Schedule

THIRD = (1 / 3,) * 3


def weighted(outcomes, classes):
    """The mean of outcomes, each by 1/(2·age + 1)."""
    weights = 1 / (2 * np.arange(len(outcomes))[::-1] + 1)
    found = np.array([weights[np.array(outcomes) == k].sum() for k in range(classes)])
    return tuple((found / found.sum()).tolist())


def law_after(outcomes, classes):
    if not outcomes:
        return {(1 / classes,) * classes: 1.0}
    weights, law = 1 / (2 * np.arange(len(outcomes))[::-1] + 1), {}
    for s, w in enumerate((weights / weights.sum()).tolist(), 1):
        point = weighted(outcomes[:s], classes)
        law[point] = law.get(point, 0.0) + w
    return law


def rounded(law):
    found = {}
    for point, w in law.items():
        key = tuple(np.round(point, 12).tolist())
        found[key] = found.get(key, 0.0) + w
    return found


def test_values_by_hand():
    game = Game(Harmonic(), ContrarianClasses(), horizon=4, runs=range(1), laws=True)
    laws = []
    for y in (0, 1, 2, 0):
        question = game.ask()
        laws.append(rounded(question.laws[0]))
        game.resolve(question, outcome=y)
    first, second, third = (1, 0, 0), (1 / 4, 3 / 4, 0), (3 / 23, 5 / 23, 15 / 23)
    for law, expected in zip(laws, [
        {THIRD: 1}, {first: 1}, {second: 3 / 4, first: 1 / 4}, {third: 15 / 23, second: 5 / 23, first: 3 / 23},
    ], strict=True):  # fmt: skip
        assert law == pytest.approx(rounded(expected), abs=1e-15)
    gamma = game.gamma_of_laws(0)
    tallies = dict(zip(map(tuple, gamma.predictions.round(12).tolist()), gamma.tallies.tolist(), strict=True))
    expected = {
        third: [15 / 23, 0, 0],
        second: [5 / 23, 0, 3 / 4],
        THIRD: [1, 0, 0],
        first: [3 / 23, 1, 1 / 4],
    }
    assert tallies.keys() == rounded(dict.fromkeys(expected, 0)).keys()
    for point, came in expected.items():
        assert tallies[tuple(np.round(point, 12).tolist())] == pytest.approx(came, abs=1e-14)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_rounds_in_flight(classes, seed):
    """Outcomes count in the order in which they are told."""
    rng, waiting, told = np.random.default_rng(seed), [], []
    game = Game(Harmonic(), ContrarianClasses(classes), horizon=60, runs=range(1), seed=seed)
    for _ in range(60):
        question = game.ask()
        said, expected = rounded(question.laws[0]), rounded(law_after(told, classes))
        assert said == pytest.approx(expected, abs=1e-12)
        waiting.append(question)
        if len(waiting) > 4:
            told.append(int(rng.integers(classes)))
            game.resolve(waiting.pop(rng.integers(5)), outcome=told[-1])


@pytest.mark.parametrize(("classes", "known"), [
    (2, (0.258, 0.208, 0.174)), (3, (0.304, 0.244, 0.204)), (10, (0.512, 0.414, 0.347)),
])  # fmt: skip
def test_errors_of_laws_against_a_contrarian(classes, known):
    """Of a prototype; this play is not random. Draws from the laws err by far more."""
    for horizon, value in zip((256, 1024, 4096), known, strict=True):
        game = Game(Harmonic(), ContrarianClasses(classes), horizon=horizon, runs=range(2), laws=True)
        game.advance(horizon)
        laws = [game.gamma_of_laws(run) for run in range(2)]
        assert [round(ece(gamma), 3) for gamma in laws] == [value] * 2
        assert [gamma.weight for gamma in laws] == pytest.approx([horizon] * 2)
        assert min(map(ece, game.gammas())) > value + 0.1


class Shares:
    """A plain forecaster with two points."""

    classes = 3

    def forecast(self):
        return {(0.5, 0.5, 0.0): 0.25, (0.0, 0.5, 0.5): 0.75}

    def update(self, forecast, outcome): ...


@pytest.mark.parametrize("mine", [SimplexHedging(3), Harmonic(), Shares], ids=str)
@pytest.mark.parametrize("in_python", [False, True])
def test_each_round_counts_with_its_whole_law(mine, in_python, seed):
    """The sum of the laws that questions show; it is the same from compiled code, and from a game in two pieces."""
    given = {"horizon": 60, "runs": range(2), "seed": seed}
    game, hand = Game(mine, Categorical(), laws=True, **given), Game(mine, Categorical(), **given)
    game.in_python |= in_python
    game.advance(25)
    game.advance(60)
    expected = [{}, {}]
    for _ in range(60):
        question = hand.ask()
        hand.resolve(question)
        for each, law, q in zip(expected, question.laws, question.each, strict=True):
            for point, w in law.items():
                each.setdefault(point, np.zeros(3))[q.outcome] += w
    for run, each in enumerate(expected):
        gamma = game.gamma_of_laws(run)
        there = {point: tallies for point, tallies in each.items() if tallies.any()}
        assert [tuple(point) for point in gamma.predictions.tolist()] == sorted(there)
        assert gamma.tallies == pytest.approx(np.array([there[point] for point in sorted(there)]), abs=1e-12)


def test_without_randomness_laws_are_draws():
    game = Game(ClassMean(5), Categorical(), horizon=200, runs=range(1), laws=True)
    game.advance(200)
    (drawn,), laws = game.gammas(), game.gamma_of_laws(0)
    assert np.array_equal(drawn.predictions, laws.predictions)
    assert np.array_equal(drawn.tallies, laws.tallies)


def test_what_is_refused():
    given = {"horizon": 20, "runs": range(1)}
    with pytest.raises(InvalidParameter, match=r"10,?000"):
        Game(Harmonic(), ContrarianClasses(), horizon=10_001, runs=range(1))
    with pytest.raises(InvalidParameter, match="expected outcomes that become known at once"):
        Game(Harmonic(), ContrarianClasses(), laws=True, schedule=Schedule(delays=Constant(2)), **given)
    with pytest.raises(InvalidParameter, match="nature 'contrarian'; expected one of classes"):
        Game(ForecastHedging(), Contrarian(), laws=True, **given)
    with pytest.raises(InvalidParameter, match="expected laws=True at its beginning"):
        Game(Harmonic(), ContrarianClasses(), **given).gamma_of_laws(0)
