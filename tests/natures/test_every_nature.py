"""All natures: what they reveal and see, laws as distributions, plain ones, and what they refuse."""

import math

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import natures as n
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.engine import steps
from onlinecal.engine.game import Game
from onlinecal.forecasters import Constant, ForecastHedging
from tests.natures.quarters import Quarters

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


def peep(run, size, forecast, number):
    """The law and the draw as a step is shown them."""
    return (size + (0.0 if np.isnan(forecast) else 8.0)) / 16.0


@pytest.mark.parametrize(("sight", "shown"), list(zip(n.Sight, (0.0, 0.0, 2 / 16, 10 / 16), strict=True)))
def test_steps_are_shown_what_they_declare(sight, shown):
    class Peeps(n.Nature):
        def start(self, horizon, stream):
            return steps.Nature(peep, sight=sight)

    Peeps.sight = sight
    for nature in (Peeps(), n.Mixture((Peeps(),)), n.Switch(Peeps(), n.Contrarian("draw"), 5)):
        assert truths_of_pair(nature) == shown


def truths_of_pair(nature):
    """q of the first round against two points."""
    return float(Game(ForecastHedging(3), nature, horizon=9, runs=range(1)).ask().probability[0])


def test_a_sight_may_be_a_name():
    def opposite(sight):
        return type("Opposite", (), {"sight": sight, "probability": lambda self, round: 1.0})

    for sight in ("law", "LAW", n.Sight.LAW):
        assert n.as_nature(opposite(sight)).sight is n.Sight.LAW
    for wrong in ("laww", 2):
        with pytest.raises(InvalidParameter, match=f"sight = {wrong!r}; expected"):
            oc.play(Constant(0.5), opposite(wrong), horizon=3, runs=1)


def test_a_law_is_shown_as_a_distribution():
    """However it is written; that steps depend on nothing else of it is in test_rules.py."""
    nature, seen = reads(n.Sight.LAW, "law")
    Game(Quarters(), nature, horizon=50, runs=range(2)).advance(50)
    assert {(min(law.values()) > 0.0, sum(law.values())) for law in seen} == {(True, 1.0)}
    assert {len(law) for law in seen} == {2, 3}


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
        (n.Replay, [{"file": 3}, {"file": "a.csv", "base": 3}, {"file": "a.csv", "time": 3}]),
        (n.Mixture, [
            {"natures": ()}, {"natures": "bernoulli"}, {"natures": (n.Bernoulli(), Constant())},
            {"natures": (n.Bernoulli(),), "weights": (0,)}, {"natures": (n.Bernoulli(), n.Drift()), "weights": (1,)},
            {"natures": (n.Bernoulli(), n.Drift()), "weights": (1, -1)},
        ]),
        (n.Switch, [{"first": n.Drift(), "then": n.Drift}, {"first": n.Drift(), "then": n.Drift(), "at": -1}]),
        (n.Streams, [{"parts": ()}, {"parts": n.Drift()}, {"parts": (n.Drift(), Constant())}]),
        (n.Streams, [{"parts": (n.Drift(), n.Streams((n.Drift(),)))}]),
        (n.Streams, [{"parts": (n.Drift(), n.Drift())} | more for more in (
            {"order": "sorted"}, {"weights": (1, 2)}, {"order": "random", "weights": (1,)},
            {"order": "random", "weights": (1, -1)}, {"order": "random", "weights": (0, 0)},
            {"labels": ("a", "a")}, {"labels": ("a", "")}, {"labels": "ab"})]),
    ],
)  # fmt: skip
def test_parameters_out_of_range(cls, refused):
    for given in refused:
        with pytest.raises(InvalidParameter):
            cls(**given)
    with pytest.raises(InvalidParameter, match="which is 2 at T = 10"):
        Game(Constant(), n.Piecewise(change_rate="20/T"), horizon=10, runs=range(1))
