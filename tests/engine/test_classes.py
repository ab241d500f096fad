"""Games of K classes: plain players, refusals, and what such a game gives."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal import natures as n
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.engine import steps
from onlinecal.engine.game import Game
from onlinecal.forecasters.base import OfClasses
from onlinecal.natures.base import Nature
from onlinecal.schedules import Bursts, ByOutcome, Constant, Schedule
from onlinecal.worlds import Queue
from onlinecal.worlds.run import Simulation
from tests.engine.games import Mean, again, bits, check_all_ways, game_of, played, same


class Shares:
    """Half a law on the shares of the classes so far, rounded down, and half on the first class."""

    classes = 3

    def __init__(self):
        self.counts = [1, 1, 1]

    def forecast(self):
        total = sum(self.counts)
        return {tuple(count / total for count in self.counts): 0.5, (1, 0, 0): 0.5}

    def update(self, forecast, outcome):
        assert (type(forecast), type(forecast[1]), type(outcome)) == (tuple, float, int)
        self.counts[outcome] += 1


class Turns:
    """Each class in turn nearly always, in two streams, whichever it is told."""

    classes = 3
    reveals = frozenset({"stream"})
    streams = ("a", "b")

    def context(self, round):
        return {"stream": round.number % 2}

    def streams_of(self, first, last):
        return np.arange(first, last + 1) % 2

    def probability(self, round):
        q = [0.1, 0.1, 0.1]
        q[round.number % 3] = 0.8
        return q


class Least:
    """The contrarian in plain Python."""

    classes = 3
    sight = "law"

    def probability(self, round):
        mean = [sum(w * v[k] for v, w in round.law.items()) for k in range(3)]
        least = next(k for k in range(3) if mean[k] <= min(mean) + 1e-9)
        return [float(k == least) for k in range(3)]


class Scaled(Nature):
    """The contrarian of means times 2, 1 and 3, which its runs share."""

    of_classes, classes, sight = True, 3, Sight.LAW

    def start(self, horizon, stream):
        return steps.Nature(contradict_scaled, shared=[2, 1, 3], sight=self.sight, classes=3, note=3)


def contradict_scaled(run, size, forecast, number):
    (values, weights), points, scale = steps.law(run), steps.table(run), steps.shared(run)
    mean = np.zeros(3)
    for j in range(size):
        for k in range(3):
            mean[k] += scale[k] * weights[j] * points[3 * int(values[j]) + k]
    steps.note(run)[:] = 0.0
    steps.note(run)[np.argmin(mean)] = 1.0
    return 0.0


SCHEDULES = [Schedule(), Schedule(Bursts(5), Constant(2.5))]
#: those of registered strategies are in test_same.py
PAIRS = [
    *((Shares, theirs) for theirs in (Turns, Least, n.Categorical(), n.ContrarianClasses(), Scaled())),
    *((f.ClassMean(4), theirs) for theirs in (Turns, Least, Scaled())),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=["none", "bursts"])
@pytest.mark.parametrize(("mine", "theirs"), PAIRS, ids=str)
def test_plain_players_are_the_same_in_all_ways(mine, theirs, schedule):
    compiled = not isinstance(mine, type) and not isinstance(theirs, type)
    mine, theirs = f.as_forecaster(mine), n.as_nature(theirs)
    check_all_ways(mine, theirs, schedule, compiled=compiled)


@pytest.mark.parametrize("classes", [2, 100])
def test_there_may_be_two_classes_or_many(classes):
    mine, theirs = f.ClassMean(), n.ContrarianClasses(classes)
    check_all_ways(mine, theirs, SCHEDULES[1])
    gamma = played(mine, theirs, runs=range(1)).gammas()[0]
    assert (gamma.classes, gamma.weight) == (classes, 300)


def test_a_table_may_have_a_single_point():
    """The place on it is found without a look at what is behind it in memory, here zeros."""
    game = game_of(f.Harmonic(), n.Categorical(), horizon=1)
    game.history.grid = np.zeros(9)[:1]
    game.advance(1)
    assert [gamma.predictions.tolist() for gamma in game.gammas()] == [[[1 / 3] * 3]] * 2


@pytest.mark.parametrize("mine", [f.ClassMean(), f.ClassMean(4), Shares], ids=str)
def test_a_contrarian_in_plain_python_plays_as_the_compiled_one(mine):
    """No outcome is drawn, so that both games are the same though their names differ."""
    assert bits(played(mine, n.ContrarianClasses()).gammas()) == bits(played(mine, Least).gammas())


def test_a_game_gives_distributions_of_classes_by_stream_and_stretch():
    game = Game(f.ClassMean(2), Turns, horizon=60, runs=range(2), cuts=(20.0,))
    game.advance(60)
    (gamma, _) = game.gammas()
    assert isinstance(gamma, oc.ClassDistribution)
    assert (gamma.classes, gamma.weight) == (3, 60)
    assert [game.gammas(stream)[0].weight for stream in (0, 1)] == [30, 30]
    assert game.gammas(until=20.0)[0].weight == 19
    # Stated by hand: the shares 11/23, 7/23, 5/23 of (5, 3, 2) are 1, 1, 0 halves.
    hand, told = Game(f.ClassMean(2), n.Categorical(), horizon=60, runs=range(1)), [0] * 5 + [1] * 3 + [2] * 2
    for outcome in told:
        hand.resolve(hand.ask(), outcome=outcome)
    assert hand.laws() == [{(0.5, 0.5, 0.0): 1.0}]
    assert hand.gammas()[0].tallies.sum(axis=0).tolist() == [5, 3, 2]


def test_a_question_by_hand_has_numbers_of_each_class():
    game = game_of(f.ClassMean(), n.Categorical(), horizon=9, runs=range(2))
    question = game.ask()
    assert question.forecast.shape == question.probability.shape == (2, 3)
    assert question.probability[1].tolist() == [0.5, 0.3, 0.2]
    with pytest.raises(
        InvalidParameter, match="outcome = 3; expected an integer from 0 to 2, or one of them"
    ):
        game.resolve(question, outcome=3)
    game, question = again((game, question))
    game.resolve(question, outcome=[2, 0])
    assert [gamma.means.tolist() for gamma in game.gammas()] == [[[0, 0, 1]], [[1, 0, 0]]]


class Draws(Nature):
    """States what it is given, as steps do."""

    of_classes, classes = True, 3

    def __init__(self, q):
        self.q = q

    def start(self, horizon, stream):
        return steps.Nature(state_all, shared=self.q, classes=3, note=3)


def state_all(run, size, forecast, number):
    steps.note(run)[:] = steps.shared(run)
    return 0.0


def test_an_outcome_is_the_first_class_whose_sum_is_above_the_uniform():
    """The uniforms of nature alone decide, and one without a chance never comes."""
    game = Game(f.ClassMean(), n.Categorical((0.25, 0.0, 0.5, 0.25)), horizon=2000, runs=range(1), seed=4)
    uniforms = game.uniforms[1].block(2000)[:, 0]
    game.advance(2000)
    expected = np.bincount(np.searchsorted([0.25, 0.25, 0.75], uniforms, side="right"), minlength=4)
    assert game.gammas()[0].tallies.sum(axis=0).tolist() == expected.tolist()
    assert expected[1] == 0


class Says(OfClasses):
    """States these places with these weights."""

    def __init__(self, values, weights, table=np.eye(3)):
        self.values, self.weights, self.table = values, weights, np.array(table)

    def start(self, horizon, stream):
        given, size = [*self.values, *self.weights], len(self.values)
        return steps.Forecaster(say_given, keep_nothing, shared=given, size=size, table=self.table)


def say_given(run, number):
    (values, weights), given = steps.law(run), steps.shared(run)
    size = len(given) // 2
    values[:size], weights[:size] = given[:size], given[size:]
    return size


def keep_nothing(run, place, forecast, outcome, number):
    return 0


class Chosen(Shares):
    """Of as many classes as it is told."""

    def __init__(self, classes=4):
        self.classes, self.counts = classes, [1] * classes

    classes = None

    def forecast(self):
        return [count / sum(self.counts) for count in self.counts]


def stating(said):
    return type("Said", (Shares,), {"forecast": lambda self: said})


def asking(said, **more):
    return type("Said", (Least,), {"probability": lambda self, round: said} | more)


CLASSES = "is of the outcomes 0 and 1, and nature 'categorical' is of 3 classes; expected the same of both"
COINS, MEAN, AT = n.Categorical(), f.ClassMean(), "in round 1, run 0; expected"
#: forecaster, nature, and the words; a set has no order, and keys of a dict are no probabilities though 0 + 1 is 1
REFUSED = [
    (f.ForecastHedging(), COINS, f"forecaster 'forecast_hedging' {CLASSES}"),
    (Mean, COINS, f"forecaster 'Mean' {CLASSES}"),
    (Chosen, n.ContrarianClasses(5), "'Chosen' is of 4 classes, and nature 'contrarian_classes' is of 5"),
    (MEAN, n.Bernoulli(), "'class_mean' is of several classes, and nature 'bernoulli' is of the outcomes 0"),
    (Shares, n.ContrarianClasses(4), "'Shares' is of 3 classes, and nature 'contrarian_classes' is of 4 classes"),
    (MEAN, asking([1.0], classes=1), "declares classes = 1; expected an integer ≥ 2"),
    (MEAN, asking([1.0], groups=("odd",), reveals={"odd"}), "groups = .'odd',.; expected none where it has classes"),
    (Says([0], [1.0], [[1, 0, 0]] * 2), COINS, "its player has a point twice in its table"),
    (Says([0], [1.0], [[1, 0, 0, 0]]), COINS, "has a table of 4 columns; expected 3"),
    (stating([0.5, 0.6, 0.1]), COINS, rf"stated the forecast \(0.5, 0.6, 0.1\) {AT} 3 probabilities"),
    (stating([0.5, 0.5]), COINS, rf"stated \[0.5, 0.5\] {AT} 3 probabilities, one for each class"),
    (stating({0.5, 0.3, 0.2}), COINS, "stated {.*}"), (stating("100"), COINS, "stated '100'"),
    (stating(["0.5", "0.3", "0.2"]), COINS, r"stated \['0.5', '0.3', "),
    (stating({0: 0.5, 1: 0.3, 2: 0.2}), COINS, "stated a law on 0"),
    (stating({(1, 0): 1}), COINS, r"stated a law on \(1, 0\)"),
    (stating({(1, 0, 0): "1"}), COINS, rf"stated {{\(1, 0, 0\): '1'}} {AT} a dict {{forecast: weight}}"),
    (MEAN, asking(0.5), f"stated q = 0.5 {AT} 3 probabilities"),
    (MEAN, asking({0: 0.5, 1: 0.5}, classes=2), rf"stated q = {{0: 0.5, 1: 0.5}} {AT}"),
]  # fmt: skip


@pytest.mark.parametrize(("mine", "theirs", "words"), REFUSED, ids=range(len(REFUSED)))
def test_players_that_do_not_fit_are_refused_by_name(mine, theirs, words):
    with pytest.raises((InvalidParameter, InvalidForecast), match=words):
        played(mine, theirs)


@pytest.mark.parametrize("in_python", [False, True])
@pytest.mark.parametrize(("mine", "theirs", "words"), [
    (Says([0, 3], [0.5, 0.5]), n.Categorical(), r"stated the places \[0, 3\] with weights \[0.5, 0.5\] in round 1"),
    (Says([0, 1], [0.5, 0.5 + 2e-9]), n.Categorical(), "in round 1"),
    (f.ClassMean(), Draws([0.5, 0.6, 0.1]), r"stated q = \[0.5, 0.6, 0.1\] in round 1, run 0; expected 3 probabil"),
    (f.ClassMean(), Draws([0.5, 0.6, -0.1]), r"stated q = \[0.5, 0.6, -0.1\] in round 1, run 0"),
    (f.ClassMean(), Draws([0.5, 0.5 + 2e-9, 0.0]), "stated q = .* in round 1, run 0"),
])  # fmt: skip
def test_steps_that_state_something_else_are_stopped(mine, theirs, words, in_python):
    game = game_of(mine, theirs)
    game.in_python |= in_python
    with pytest.raises(InvalidForecast, match=words):
        game.advance(3)
    near = game_of(Says([0, 1], [0.5, 0.5 + 9e-10]), Draws([0.5, 0.5 + 9e-10, 0.0]))  # the control
    near.in_python |= in_python
    near.advance(3)


def test_what_is_of_two_outcomes_is_refused():
    with pytest.raises(InvalidParameter, match="delays depend on whether the outcome is 0 or 1"):
        game_of(f.ClassMean(), n.Categorical(), schedule=Schedule(delays=ByOutcome(0, 9)))
    with pytest.raises(InvalidParameter, match="no rounds are kept one by one; expected keeps = None"):
        game_of(f.ClassMean(), n.Categorical(), keeps=())
    with pytest.raises(InvalidParameter, match="which is of several classes; expected a forecaster"):
        f.Delayed(f.ClassMean())
    with pytest.raises(
        InvalidParameter, match="is of several classes, and nature 'queue' is of the outcomes 0"
    ):
        Simulation(f.ClassMean(), Queue(), horizon=9, runs=range(1))


class Labels(Mean):
    """What else `classes` may be: the labels of two outcomes."""

    classes = (0, 1)


def test_the_number_of_classes_may_be_a_parameter_and_other_attributes_of_the_name_are_none():
    (gamma,) = played(Chosen(5), n.ContrarianClasses(5), runs=range(1)).gammas()
    (other,) = played(partial(Chosen, 5), n.ContrarianClasses(5), runs=range(1)).gammas()
    assert bits([gamma]) == bits([other])
    assert gamma.classes == 5
    assert same(played(Labels).gammas(), played(Mean).gammas())
