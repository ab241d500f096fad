"""A player in plain Python has the methods that its specification declares."""

from dataclasses import dataclass
from functools import partial

import pytest

from onlinecal.checks.conformance import conformance
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.forecasters import Constant, Forecaster, as_forecaster
from onlinecal.natures import Nature, Sight
from tests.engine.games import Mean, game_of, played


def half(self, *round):
    return 0.5


def told(self, forecast, outcome):
    pass


def spec(base, methods, **declared):
    """A specification that declares this, with a player that has these methods."""
    player = type("Player", (), methods)
    body = {"start": lambda self, horizon, stream: player(), **declared}
    return dataclass(frozen=True)(type("Spec", (base,), body))()


def forecaster(declared=None, **methods):
    return spec(Forecaster, {"forecast": half, "update": told} | methods, **(declared or {}))


def nature(declared=None, **methods):
    return spec(Nature, {"probability": half} | methods, **(declared or {}))


REVEALS, HEARS, SEES = {"reveals": frozenset({"truth"})}, {"sight": Sight.HISTORY}, {"sight": Sight.LAW}
CERTIFIES = {"certifies": frozenset({"distance_certificate"})}


def once(self, round):
    return 0.5


@pytest.mark.parametrize(
    ("player", "match"),
    [
        (forecaster(forecast=None), r"no method forecast\(\)"),
        (forecaster(update=3), r"no method update\(forecast, outcome\); expected one"),
        (forecaster(update=None, updaet=told), r"no method update\(forecast, outcome\), but updaet"),
        (forecaster(update=once), r"has update\(round\); expected update\(forecast, outcome\)"),
        (forecaster(certificates=half), "never called, since the specification certifies nothing"),
        (forecaster(certificate=half), "is certificates meant"),
        (forecaster(CERTIFIES), r"no method certificates\(\); the specification certifies something"),
        (nature(probability=None), r"no method probability\(\)"),
        (nature(probability=told), r"has probability\(forecast, outcome\)"),
        (nature(update=told), "has a method update, which is never called, since .* sight NOTHING"),
        (nature(updates=told), "method updates, which is never called; is update meant"),
        (nature(context=once), "a method context, which is never called, since .* declares nothing"),
        (nature(contexts=once), "method contexts, which is never called; is context meant"),
        (nature(REVEALS, contxt=once), r"no method context\(round\), but contxt"),
        (nature(REVEALS, context=lambda self: {}), r"expected context\(round\)"),
        (nature(SEES, probability=half), r"its probability\(\) needs no round, .* expected probability\(round\)"),
        (nature({"length": 0}), "declares length = 0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(player, match):
    pair = (player, None) if isinstance(player, Forecaster) else (None, player)
    with pytest.raises(InvalidParameter, match=match):
        game_of(*pair)
    assert [found.fault for found in conformance(player) if found.fault]


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (type("Number", (), {"forecast": 0.5, "update": told}), "its forecast is no method; expected a Forecaster"),
        (partial(Mean, 1, 2), "forecaster 'Mean' cannot be made: too many positional arguments"),
        (lambda: Constant(7), r"^p = 7; expected a number in \[0, 1\]$"),
    ],
)  # fmt: skip
def test_what_makes_no_forecaster_is_refused(thing, said):
    with pytest.raises(OnlinecalError, match=said):
        as_forecaster(thing)


def test_what_fits_plays():
    certifying = forecaster(CERTIFIES, certificates=lambda self: {"distance_certificate": 3})
    needs = forecaster(REVEALS | {"needs": REVEALS["reveals"]}, update=lambda self, *given: None)
    for mine, theirs in (
        (certifying, nature(HEARS, update=told)),
        (needs, nature(REVEALS, context=lambda self, round: {"truth": 0})),
        (forecaster(), nature(SEES, probability=once, update=lambda self, forecast, outcome, round: None)),
    ):
        game = played(mine, theirs, 6)
        assert game.resolved == 6
        found = {name: totals.tolist() for name, totals in game.certificates().items()}
        assert found == {name: [3.0, 3.0] for name in mine.certifies}
