"""What natures in plain Python see: what their class declares."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.engine.game import Game
from onlinecal.forecasters import ForecastHedging
from onlinecal.natures import Contrarian, Sight, as_nature
from tests.natures.written import Written


def outcomes(nature, seed):
    game = Game(ForecastHedging(), nature, horizon=300, runs=range(3), seed=seed)
    game.advance(300)
    return [(gamma.predictions.tolist(), gamma.positives.tolist()) for gamma in game.gammas()]


def opposite(sight, q, **more):
    return type("Opposite", (), {"sight": sight, "probability": q, **more})


def by_mean(self, round):
    return float(sum(p * w for p, w in round.law.items()) < 0.5)


@pytest.mark.parametrize("sight", ["law", "LAW", Sight.LAW])
def test_a_plain_nature_sees_the_law_that_it_declares(sight, seed):
    spec = as_nature(opposite(sight, by_mean))
    assert spec.sight is Sight.LAW
    assert outcomes(spec, seed) == outcomes(Contrarian(), seed)


def test_a_plain_nature_sees_the_draw_that_it_declares(seed):
    spec = as_nature(opposite("draw", lambda self, round: float(round.forecast < 0.5)))
    assert outcomes(spec, seed) == outcomes(Contrarian("draw"), seed)


def test_every_plain_nature_may_know_round_and_time():
    seen = []

    class Counts:
        def probability(self, round):
            seen.append((round.number, round.time))
            return 0.5

    oc.play(oc.forecasters.Constant(0.5), Counts, horizon=3, runs=1, measures=["ece"])
    assert seen == [(1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_law_is_shown_as_a_distribution():
    seen = []
    nature = opposite("law", lambda self, round: seen.append(round.law) or 0.5)
    twice = Written([([0.25, 0.75, 0.25, 1.0], [0.25, 0.5, 0.25, 0.0])])
    Game(twice, as_nature(nature), horizon=1, runs=range(2)).advance(1)
    assert seen == [{0.25: 0.5, 0.75: 0.5}] * 2


@pytest.mark.parametrize(
    ("nature", "error", "said"),
    [
        (opposite("laww", by_mean), InvalidParameter, "sight = 'laww'; expected 'nothing', 'history', 'law', 'draw'"),
        (opposite(2, by_mean), InvalidParameter, "sight = 2; expected"),
        (opposite("law", lambda self: 0.5), InvalidParameter, r"sight LAW, but .* expected probability\(round\)"),
        (opposite("nothing", lambda self: 0.5, update=np.add), InvalidParameter, "update, which is never called"),
        (opposite("history", by_mean), InvalidForecast, "asked for the law in round 1 but declares sight HISTORY"),
        (opposite(None, by_mean), InvalidForecast, "asked for the law in round 1 but declares sight NOTHING"),
    ],
)  # fmt: skip
def test_a_sight_that_is_not_honoured_is_refused(nature, error, said):
    with pytest.raises(error, match=f"nature 'Opposite'.*{said}"):
        oc.play(oc.forecasters.Constant(0.5), nature, horizon=3, runs=1)


def test_a_declared_sight_goes_with_the_past_and_without():
    told = []
    hears = {"update": lambda self, forecast, outcome: told.append((forecast, outcome))}
    for more, rounds in ((hears, 5), ({}, 0)):
        told.clear()
        oc.play(oc.forecasters.Constant(0.25), opposite("law", by_mean, **more), horizon=5, runs=1)
        assert told == [(0.25, 1)] * rounds
