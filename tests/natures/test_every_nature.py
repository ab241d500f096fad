"""What all natures share: what they reveal and see, laws as distributions, plain ones, and what they refuse."""

import math

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import natures as n
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import FORECASTERS, Constant, ForecastHedging
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.steps import Memory, move
from tests import examples
from tests.natures.written import Written


@pytest.mark.parametrize("cls", [*n.NATURES.values(), *FORECASTERS.values()], ids=[*n.NATURES, *FORECASTERS])
def test_guarantees_are_documented(cls):
    assert "guarantees" not in vars(cls) or "\n    Guarantee: " in cls.__doc__
    assert set(FORECASTERS).isdisjoint(n.NATURES)


# ---------------------------------------------------------------- sight


def reads(sight, what):
    """A plain nature of this sight that reads one thing of each round, and what it read."""
    found = []

    def probability(self, round):
        found.append(getattr(round, what))
        return 0.5

    return n.as_nature(type("Reads", (), {"sight": sight, "probability": probability})), found


@pytest.mark.parametrize("sight", n.Sight)
@pytest.mark.parametrize("what", ["number", "time", "law", "forecast"])
def test_natures_see_what_they_declare(sight, what):
    allowed = sight >= {"law": n.Sight.LAW, "forecast": n.Sight.DRAW}.get(what, n.Sight.NOTHING)
    nature, found = reads(sight, what)
    game = Game(Constant(0.25), nature, horizon=3, runs=range(1))
    if allowed:
        game.advance(3)
        assert found == {"law": [{0.25: 1.0}] * 3, "forecast": [0.25] * 3}.get(what, [1, 2, 3])
        return
    for each in (nature, n.Mixture((nature, n.Contrarian("draw")))):
        with pytest.raises(
            InvalidForecast, match=f"in round 1 but declares sight {sight.name}; expected sight"
        ):
            Game(Constant(0.25), each, horizon=3, runs=range(1)).advance(3)


@move
def _peep(run, number, size, forecast):
    """What a step is shown of a law, and of a draw."""
    return (size + (0.0 if np.isnan(forecast) else 8.0)) / 16.0


@pytest.mark.parametrize(("sight", "shown"), list(zip(n.Sight, (0.0, 0.0, 2 / 16, 10 / 16), strict=True)))
def test_steps_are_shown_what_they_declare(sight, shown):
    class Peeps(n.Nature):
        def start(self, horizon, stream):
            return CompiledNature(_peep, Memory(), sight=sight)

    Peeps.sight = sight
    for nature in (Peeps(), n.Mixture((Peeps(),)), n.Switch(Peeps(), n.Contrarian("draw"), 5)):
        assert truths_of_pair(nature) == shown


def truths_of_pair(nature):
    """q of the first round against two points."""
    return float(Game(ForecastHedging(3), nature, horizon=9, runs=range(1)).ask().probability[0])


def opposite(sight):
    return type("Opposite", (), {"sight": sight, "probability": lambda self, round: 1.0})


@pytest.mark.parametrize("sight", ["law", "LAW", n.Sight.LAW])
def test_a_sight_may_be_a_name(sight):
    assert n.as_nature(opposite(sight)).sight is n.Sight.LAW


@pytest.mark.parametrize("sight", ["laww", 2])
def test_what_is_no_sight_is_refused(sight):
    said = f"nature 'Opposite'.* sight = {sight!r}; expected 'nothing', 'history', 'law', 'draw'"
    with pytest.raises(InvalidParameter, match=said):
        oc.play(Constant(0.5), opposite(sight), horizon=3, runs=1)


def test_a_law_is_shown_as_a_distribution():
    nature, seen = reads(n.Sight.LAW, "law")
    twice = Written([([0.25, 0.75, 0.25, 1.0], [0.25, 0.5, 0.25, 0.0])])
    Game(twice, nature, horizon=1, runs=range(2)).advance(1)
    assert seen == [{0.25: 0.5, 0.75: 0.5}] * 2


# ---------------------------------------------------------------- a law is a distribution, however it is written


def answers(nature, laws, outcomes):
    """q of each round in which these laws are stated, and the forecasts."""
    game, found = Game(Written(laws), nature, horizon=len(laws), runs=range(1)), []
    for outcome in outcomes:
        question = game.ask()
        found.append((question.probability[0], question.forecast[0]))
        game.resolve(question, outcome=outcome)
    return found


def place_of(u, weights):
    """The place that is drawn."""
    return int(np.searchsorted(np.cumsum(weights), u, side="right"))


def rewritten(values, weights, u, generator):
    """The same law with each value twice, values without weight, in another order in which the same value is drawn."""
    share = generator.choice([0.25, 0.5, 1.0], len(values))
    other = generator.choice([0.0, 0.5, 1.0], 2)
    twice = np.concatenate((share * weights, (1.0 - share) * weights, [0.0, 0.0]))
    values = np.concatenate((values, values, other))
    while True:
        order = generator.permutation(len(values))
        if (
            values[order][place_of(u, twice[order])]
            == values[place_of(u, twice[: len(share)] + twice[len(share) : -2])]
        ):
            return values[order], twice[order]


def test_natures_depend_on_a_law_as_a_distribution(seed, tmp_path):
    """To the last digit where sums of weights are exact, as of these; of others up to the order of summation."""
    generator, laws, horizon = np.random.default_rng(seed), [], 100
    for _ in range(horizon):
        weights = [[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.25, 0.25, 0.5]][generator.integers(3)]
        laws.append((generator.choice(9, 3, replace=False) / 8, np.array(weights)))
    outcomes = generator.integers(0, 2, horizon)
    uniforms = Stream(0, ("forecast", strategy_key(Written(laws)), f"T={horizon}"), range(1)).block(horizon)[
        :, 0
    ]
    others = [rewritten(*law, u, generator) for law, u in zip(laws, uniforms, strict=True)]
    seen = [nature for nature in examples.natures(tmp_path) if nature.sight >= n.Sight.LAW]
    assert len({type(nature) for nature in seen}) >= 9
    for nature in [*seen, n.KinkApproach(cells=7)]:
        assert answers(nature, laws, outcomes) == answers(nature, others, outcomes), nature


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("cls", "refused"),
    [
        (n.Bernoulli, [{"q": 1.01}, {"q": math.nan}]),
        (n.Drift, [{"first": -0.1}]),
        (n.Sawtooth, [{"cycles": x} for x in (-1, "T^(1/0)", math.inf)]),
        (n.Sinusoid, [{"period": 0.5}, {"amplitude": 0.6}, {"period": "__import__('os')"}]),
        (n.UniformTruth, [{"low": low, "high": high} for low, high in ((0.5, 0.4), (-0.1, 1), (0, 1.1))]),
        (n.LogisticFeatures, [{"slope": 1e3}, {"bend": 0}]),
        (n.RandomWalk, [{"step": 0}, {"step": 5}, {"step": True}, {"edge": 0}, {"first": 0.001}]),
        (n.Piecewise, [{"segments": 0}, {"segments": 5, "change_rate": 0.1},
                       {"change_rate": 1.5}, {"change_rate": "T"}]),
        (n.Markov, [{"p01": 1.5}, {"p10": math.nan}]),
        (n.EarlyStopping, [{"bias": 0}, {"bias": "T^(1/0)"}]),
        (n.Sidestepping, [{"cells": 0}, {"cells": "__import__('os')"}]),
        (n.Contrarian, [{"sees": "all"}]),
        (n.Greedy, [{"target": "cdl"}, {"kink": 1.5}, {"cells": 0}, {"cells": 2.0}]),
        (n.KinkApproach, [{"kink": 1.5}, {"dwell": 0}, {"dwell": math.nan}, {"cells": 0}, {"cells": True}]),
        (n.SparseBias, [{"kink": -0.1}, {"reach": 0.0}, {"reach": math.inf}]),
        (n.LogisticPolicy, [{"weights": (1,) * 7}, {"weights": "12345678"}, {"weights": (math.nan,) * 8}]),
        (n.Ratchet, [{"width": -1.0}, {"kink": 2}, {"low": math.inf}]),
        (n.SignPreservation, [{"cells": 0}, {"cells": 11}, {"rounds": 0}, {"rounds": 65}, {"rounds": 2.5}]),
        (n.Replay, [{"file": 3}, {"file": "a.csv", "base": 3}, {"file": "a.csv", "time": 3}]),
        (n.Mixture, [
            {"natures": ()}, {"natures": "bernoulli"}, {"natures": (n.Bernoulli(), Constant())},
            {"natures": (n.Bernoulli(),), "weights": (0,)}, {"natures": (n.Bernoulli(), n.Drift()), "weights": (1,)},
            {"natures": (n.Bernoulli(), n.Drift()), "weights": (1, -1)},
        ]),
        (n.Switch, [{"first": n.Drift(), "then": n.Drift}, {"first": n.Drift(), "then": n.Drift(), "at": -1}]),
    ],
)  # fmt: skip
def test_parameters_out_of_range(cls, refused):
    for given in refused:
        with pytest.raises(InvalidParameter):
            cls(**given)


def test_an_expression_that_is_out_of_range_only_at_this_horizon():
    with pytest.raises(InvalidParameter, match=r"change_rate = '20/T', which is 2 at T = 10; expected"):
        Game(Constant(), n.Piecewise(change_rate="20/T"), horizon=10, runs=range(1))
