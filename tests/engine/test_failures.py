"""Players that state nonsense or raise an error are stopped in their round and named, in one line."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.core.strategy import strategy_key
from onlinecal.engine.game import Game
from onlinecal.forecasters import (
    Constant,
    Forecaster,
    Law,
    Scalar,
    Truthful,
)
from onlinecal.natures import Bernoulli, Contrarian, Mixture, Nature, Sight
from tests.engine.test_game import play
from tests.engine.test_open_rounds import game_of

# ---------------------------------------------------------------- what goes wrong in the middle


class _Odd(Exception):
    def __str__(self):
        raise ValueError("no words")


class _Fails(Forecaster):
    """Fails when it is told of round 3."""

    error = RuntimeError("boom")

    def start(self, horizon, runs, stream):
        law, error = Law(runs, 1), self.error

        class Player:
            def forecast(self, round):
                return law

            def update(self, round):
                if round.number == 3:
                    raise error

        return Player()


class _Deaf(Nature):
    sight = Sight.HISTORY

    def start(self, horizon, runs, stream):
        class Player:
            def probability(self, round):
                return 0.5

            def update(self, round):
                if round.number == 3:
                    round.law  # noqa: B018

        return Player()


@pytest.mark.parametrize(
    ("pair", "match"),
    [
        ((_Fails(), Bernoulli()), r"forecaster '_fails' failed in round 3: RuntimeError: boom"),
        ((Constant(), _Deaf()), r"asked for the law in round 3"),
    ],
)
def test_a_game_does_not_go_on_when_somebody_was_not_told_a_round(pair, match):
    game = game_of(*pair)
    with pytest.raises(Exception, match=match):
        game.advance(6)
    for on in (lambda: game.advance(6), game.ask, game.law, game.gammas, game.certificates):
        with pytest.raises(InvalidForecast, match=match):
            on()


@pytest.mark.parametrize("error", [_Odd(), RuntimeError("two\nlines\x1b[31m"), KeyError("x\ny")])
def test_a_failure_is_told_in_one_line(error):
    class Fails(_Fails):
        pass

    Fails.error = error
    with pytest.raises(InvalidForecast, match=r"forecaster 'fails' failed in round 3: \w+") as told:
        game_of(Fails()).advance(6)
    assert str(told.value).isprintable()


# ---------------------------------------------------------------- what is no probability


@pytest.mark.parametrize(
    "q",
    [
        "0.5", b"0.5", 1j, np.array([0.5, 0.5]) * 1j, np.array(["0.5", "0.5"]), np.array([0.5, 0.5], object),
        np.datetime64(0, "s"), np.timedelta64(1, "s"), None, [0.5, None], np.ma.array([0.5, 0.5], mask=[1, 0]),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("mixed", [False, True])
def test_what_is_no_number_is_no_probability(q, mixed):
    class Says(Nature):
        def start(self, horizon, runs, stream):
            class Player:
                def probability(self, round):
                    return q

            return Player()

    nature = Mixture((Says(), Contrarian())) if mixed else Says()
    with pytest.raises(InvalidForecast, match=r"stated q = .* in round 1"):
        game_of(Constant(), nature).advance(1)


@pytest.mark.parametrize(
    "q", [1, True, np.float32(0.5), [0, 1], (0.5, 0.25), np.array([0, 1]), np.array([True, False])], ids=repr
)
def test_numbers_of_every_kind_are_probabilities(q):
    class Says(Nature):
        def start(self, horizon, runs, stream):
            class Player:
                def probability(self, round):
                    return q

            return Player()

    game = game_of(Constant(), Says())
    game.advance(3)
    assert game.resolved == 3


# ---------------------------------------------------------------- bad players


@dataclass(frozen=True)
class Bad(Forecaster):
    atoms: float = 0.5
    weight: float = 1.0
    at: int = 3

    def start(self, horizon, runs, stream):
        return _BadPlayer(self, Law(runs, 1))


class _BadPlayer:
    def __init__(self, spec, law):
        self.spec, self.law = spec, law

    def forecast(self, round):
        if round.number == self.spec.at:
            self.law.atoms[2], self.law.weights[2] = self.spec.atoms, self.spec.weight
        return self.law

    def update(self, round): ...


@pytest.mark.parametrize(
    "bad",
    [
        Bad(atoms=1.01),
        Bad(atoms=float("nan")),
        Bad(atoms=-1e-9),
        Bad(weight=0.99),
        Bad(weight=-1),
        Bad(weight=float("nan")),
    ],
    ids=strategy_key,
)
def test_a_bad_law_is_stopped_in_its_round_and_named(bad):
    game = Game(bad, Bernoulli(), horizon=10, runs=range(5, 9))
    with pytest.raises(InvalidForecast, match=r"forecaster 'bad' stated .* in round 3, run 7; expected"):
        game.advance(10)
    assert game.asked == game.resolved == 2
    assert game.gammas()[0].weight == 2


def test_a_bad_grid_index_is_stopped():
    @dataclass(frozen=True)
    class OffGrid(Forecaster):
        def start(self, horizon, runs, stream):
            player = _BadPlayer(Bad(atoms=2, at=2), Law(runs, 1, np.array([0.0, 1.0])))
            return player

    with pytest.raises(InvalidForecast, match="round 2, run 2"):
        play(OffGrid(), Bernoulli())


@pytest.mark.parametrize("said", [None, 0.5, np.zeros(4), Law(3, 1)], ids=["none", "number", "array", "law"])
def test_something_that_is_no_law_is_stopped(said):
    @dataclass(frozen=True)
    class Odd(Forecaster):
        def start(self, horizon, runs, stream):
            player = _BadPlayer(Bad(), Law(runs, 1))
            player.forecast = lambda round: said
            return player

    with pytest.raises(InvalidForecast, match="'odd' returned"):
        play(Odd(), Bernoulli())


@pytest.mark.parametrize("q", [1.5, -0.1, float("nan"), "high", None, np.zeros(3), [0.5, 0.5, 2.0, 0.5]])
def test_a_bad_probability_is_stopped_and_named(q):
    @dataclass(frozen=True)
    class Wild(Nature):
        def start(self, horizon, runs, stream):
            return self

        def probability(self, round):
            return q if round.number == 2 else 0.5

    with pytest.raises(InvalidForecast, match=r"nature 'wild' stated q = .* in round 2"):
        play(Constant(), Wild())


@pytest.mark.parametrize(
    "said",
    ["0.5", None, 2.0, float("nan"), np.array([0.5]), [0.5], {0.5: 0.9}, {0.5: 2, 0.6: -1}, {}, {0.5: "1"}],
    ids=repr,
)
def test_a_scalar_forecaster_that_says_nonsense(said):
    class Nonsense:
        made = 0

        def __init__(self):
            Nonsense.made += 1
            self.sane, self.told = Nonsense.made != 3, False

        def forecast(self):
            return 0.5 if self.sane or not self.told else said

        def update(self, forecast, outcome):
            self.told = True

    with pytest.raises(InvalidForecast, match=r"forecaster 'odd' stated .* in round 2, run 7; expected "):
        play(Scalar(Nonsense, name="odd"), Bernoulli(), runs=range(5, 9))


@pytest.mark.parametrize("where", ["forecast", "update", "probability", "context"])
def test_a_player_that_raises_is_named_with_its_round(where):
    class Fragile:
        def __init__(self):
            self.round = 0

        def forecast(self):
            self.round += 1
            return 1 / (0 if where == "forecast" and self.round == 5 else 2)

        def update(self, forecast, outcome):
            if where == "update" and self.round == 5:
                raise KeyError("lost")

    @dataclass(frozen=True)
    class Fussy(Nature):
        reveals: ClassVar = frozenset({"truth"})

        def start(self, horizon, runs, stream):
            return self

        def probability(self, round):
            return 0.5 if where != "probability" or round.number < 5 else [][round.number]

        def context(self, round):
            return {"truth": np.full(4, 0.5)} if where != "context" or round.number < 5 else {}

    who = {
        "forecast": "forecaster 'fragile' .* ZeroDivisionError",
        "update": "forecaster 'fragile' .* KeyError",
        "probability": "nature 'fussy' .* IndexError",
        "context": "nature 'fussy' .* KeyError",
    }[where]
    who = who.replace(".*", "failed in round 5:")
    # Context that is missing has no place in the user's code.
    place = "" if where == "context" else r".* \(.*test_failures.py:\d+\)$"
    with pytest.raises(InvalidForecast, match=who + place) as raised:
        play(Truthful() if where == "context" else Scalar(Fragile, name="fragile"), Fussy())
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("what", [MemoryError("7 TiB"), ValueError("boom")])
def test_a_player_that_cannot_be_started_is_named(what):
    @dataclass(frozen=True)
    class Unable(Nature):
        def start(self, horizon, runs, stream):
            raise what

    with pytest.raises(InvalidParameter, match=rf"nature 'unable' .*{what}"):
        Game(Constant(), Unable(), horizon=7, runs=range(3))
