"""A player has the methods that its specification declares."""

import dataclasses

import pytest

from onlinecal.checks.conformance import conformance
from onlinecal.core.errors import InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import Forecaster, ForecastHedging, Truthful
from onlinecal.natures import Bernoulli, UniformTruth
from tests.rounds.test_record import Remembers


def with_player(base, **methods):
    """The specification `base` with a player that has these methods (None: without)."""

    class Spec(type(base)):
        def start(self, horizon, runs, stream):
            inner = base.start(horizon, runs, stream)
            own = {
                name: (lambda *a, _m=getattr(inner, name): _m(*a)) for name in NAMES if hasattr(inner, name)
            }

            class Player:
                pass

            player = Player()
            for name, method in (own | methods).items():
                if method is not None:
                    setattr(player, name, method)
            return player

    return Spec(**{f.name: getattr(base, f.name) for f in dataclasses.fields(base)})


NAMES = ("forecast", "update", "certificates", "probability", "context")


@pytest.mark.parametrize(
    ("base", "methods", "match"),
    [
        (Remembers(), {"update": None}, r"no method update\(round\); expected one, since .* declares sight HISTORY"),
        (Remembers(), {"update": None, "updaet": print}, r"no method update\(round\), but updaet"),
        (Bernoulli(), {"update": print}, "has a method update, which is never called, since .* sight NOTHING"),
        (Bernoulli(), {"updates": print}, "method updates, which is never called; is update meant"),
        (Bernoulli(), {"contexts": print}, "method contexts, which is never called; is context meant"),
        (Bernoulli(), {"context": print}, "has a method context, which is never called, since .* does not reveal"),
        (UniformTruth(), {"context": None, "contxt": print}, r"no method context\(round\), but contxt"),
        (Bernoulli(), {"probability": lambda: 0.5}, r"has probability\(\); expected probability\(round\)"),
        (ForecastHedging(), {"update": lambda forecast, outcome: None}, r"expected update\(round\)"),
        (ForecastHedging(), {"certificate": print}, "is certificates meant"),
        (ForecastHedging(), {"certificates": print}, "never called, since the specification does not certify"),
        (ForecastHedging(), {"forecast": None}, r"no method forecast\(round\)"),
        (ForecastHedging(), {"update": 3}, r"no method update\(round\)"),
    ],
)  # fmt: skip
def test_a_player_has_the_methods_that_its_specification_declares(base, methods, match):
    spec = with_player(base, **methods)
    pair = (spec, Bernoulli()) if isinstance(spec, Forecaster) else (ForecastHedging(), spec)
    with pytest.raises(InvalidParameter, match=match):
        Game(*pair, horizon=5, runs=range(8))
    faults = [found.fault for found in conformance(spec) if found.fault]
    assert faults


def test_players_with_their_own_methods_play():
    for base in (ForecastHedging(), Truthful()):
        Game(with_player(base), with_player(UniformTruth()), horizon=5, runs=range(8)).advance(5)
    Game(with_player(ForecastHedging()), with_player(Remembers()), horizon=5, runs=range(8)).advance(5)
