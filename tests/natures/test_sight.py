"""Sight: natures see what they declare, laws as distributions."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import natures as n
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.engine import steps
from onlinecal.engine.game import Game
from onlinecal.forecasters import Constant, ForecastHedging
from tests.natures.quarters import Quarters


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
