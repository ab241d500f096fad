"""What objects do to themselves and to others: each run has its own, whatever a class or a default holds."""

import gc
import pickle
import random
import sys
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

import onlinecal as oc
from onlinecal import forecasters as f
from onlinecal.core.errors import InvalidForecast, InvalidParameter
from onlinecal.forecasters.base import as_forecaster
from tests.engine.games import Mean, SeesDraw, Shown, Timed, game_of, played
from tests.engine.test_objects import COIN, LATE, Fails, Says


def test_a_player_may_play_games_of_its_own():
    class Inner(Mean):
        def forecast(self):
            try:
                played(Says("x"), horizon=2)
            except InvalidForecast:
                return played(Says(0.25), horizon=3).gammas()[0].predictions[0]

        def update(self, forecast, outcome):
            played(Fails("forecast"), horizon=9 if self.rounds == 5 else 3)
            self.rounds += 1

    match = r"'Inner' failed in round 6, run 0: InvalidForecast: .*'Fails' failed in round 4"
    with pytest.raises(InvalidForecast, match=match):
        played(Inner, horizon=9, schedule=LATE)


def test_a_player_cannot_go_on_with_the_game_that_asks_it():
    asking = type("Asking", (Mean,), {"forecast": lambda self: held[0].ask()})
    held = [game_of(asking, horizon=2)]
    for _ in range(2):
        with pytest.raises(
            InvalidForecast, match=r"in round 1, run 0: .*game in which it is asked; expected"
        ):
            held[0].advance(2)


class Seen:
    """Counts outcomes in a list of its class."""

    seen = [0]  # noqa: RUF012
    also = seen

    def forecast(self):
        return 1 / (len(self.seen) + len(self.also))

    def update(self, forecast, outcome):
        self.seen.append(outcome)


class Inherits(Seen):
    """Its base has the list, and its `__init__` changes it; it is known by its class."""

    missing = object()

    def __init__(self, start=2):
        self.last = self.missing
        self.seen.extend([1] * start)

    def forecast(self):
        return 1.0 if self.last is Inherits.missing else super().forecast()

    def update(self, forecast, outcome):
        self.last = outcome
        super().update(forecast, outcome)


class Drawn(Mean):
    """Generators of the class and of a default, and a dict of the class's own in a tuple."""

    class Counts(dict):
        pass

    kept, drawn = (0, Counts()), np.random.default_rng(1)

    def __init__(self, own=random.Random(1)):
        self.own = own

    def forecast(self):
        counts = self.kept[1]
        counts["n"] = counts.get("n", 0) + 1
        return (self.drawn.random() + self.own.random() + 1 / counts["n"]) / 3

    def update(self, forecast, outcome): ...


@dataclass
class Made(Seen):
    """A list that a dataclass makes."""

    seen: list = field(default_factory=lambda: [0])


def of_a_function(seen=[]):  # noqa: B006
    made = Seen()
    made.seen = seen
    return made


def of_runs(forecaster, runs, nature=COIN):
    """The forecasts of each run."""
    game = played(forecaster, nature, 6, runs=runs, keeps=())
    return [game.transcripts.of(i).forecasts.tolist() for i in range(len(runs))]


SHARING = [Seen, Inherits, Drawn, Made, Seen(), of_a_function, partial(Inherits, start=3)]


@pytest.mark.parametrize(
    "forecaster", SHARING, ids=lambda each: getattr(each, "__name__", type(each).__name__)
)
def test_no_run_sees_what_another_has_put_into_its_class_or_defaults(forecaster):
    together = of_runs(forecaster, range(3))
    assert together == [of_runs(forecaster, range(i, i + 1))[0] for i in (2, 0, 1)]
    assert together[0] == together[1] == together[2]
    assert len(set(together[0])) > 1
    assert (Seen.seen, Drawn.kept) == ([0], (0, {}))


def test_an_attribute_hides_that_of_a_base():
    """Of 1, 1/2, 1/3, … each has the length of a list that grows, and of the tuple that hides the other."""
    assert of_runs(type("Hides", (Seen,), {"also": ()}), range(1)) == [[1 / n for n in range(1, 7)]]


class Tells:
    """A nature that counts in its class."""

    said = [0]  # noqa: RUF012

    def probability(self):
        self.said.append(0)
        return 1 / len(self.said)


class Bell:
    """A world that counts in its class."""

    said = [0]  # noqa: RUF012

    def run(self, env, market):
        while True:
            self.said.append(0)
            yield env.timeout(1.0)
            market.resolve(market.ask(), len(self.said) % 3 == 0)


@pytest.mark.parametrize("nature", [Tells, Bell])
def test_natures_and_worlds_have_their_own_too(nature):
    given = {"horizon": 20, "measures": ["brier"], "seed": 4}
    one, many = (oc.play([f.EmpiricalMean(), Seen], nature, runs=n, **given) for n in (1, 3))
    for who in one.forecasters:
        assert (many.curve("brier", who).totals[:, :1] == one.curve("brier", who).totals).all()
    assert Bell.said == Tells.said == Seen.seen == [0]


WRITTEN_DOWN: list = []


def test_what_cannot_be_copied_for_each_run_is_refused_or_shared():
    bare = {"__slots__": (), "seen": [], "forecast": Seen.forecast, "update": Seen.update}
    turns = {"turns": (x for x in (0.1, 0.9)), "forecast": lambda self: next(self.turns)}
    assert of_runs(type("Slots", (Seen,), {"__slots__": ()}), range(2))  # its base has room for attributes
    for cls, said in (
        (type("Bare", (), bare), r"class Bare: seen = \[\] can change, .* expected it made in __init__"),
        (type("Steady", (Seen,), turns), r"Steady: .*turns cannot be copied.* \(copy\.py:\d+\); expected"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            of_runs(cls, range(2))
    # What a module holds is shared by all runs, as docs/writing.md says.
    writes = {
        "forecast": lambda self: 1 / (1 + len(WRITTEN_DOWN)),
        "update": lambda self, p, y: WRITTEN_DOWN.append(y),
    }
    assert of_runs(type("Global", (), writes), range(1)) != of_runs(type("Global", (), writes), range(1))


def test_what_cannot_be_pickled_is_said_and_the_game_goes_on():
    assert pickle.loads(pickle.dumps(played(Says(0.25), Timed, 9))).resolved == 9
    for what in (lambda: 0.25, lambda: (x for x in "abc")):  # how objects are made is in the game, too
        held = game_of(as_forecaster(lambda what=what: Says(what(), at=0)), horizon=9)
        held.advance(3)
        with pytest.raises(Exception, match="pickle"):
            pickle.dumps(held)
        held.advance(9)
        assert held.resolved == 9


def test_nothing_is_lost_or_left_over_round_after_round():
    told = type("Told", (SeesDraw,), {"reveals": Timed.reveals, "context": Timed.context})
    game = game_of(Shown, told, 3_000, runs=range(1), schedule=LATE)
    held = []
    for until in (500, 1_000, 3_000):
        game.advance(until)
        gc.collect()
        references = [sys.getrefcount(player[0]) for player in (game.forecaster, game.nature)]
        held.append((len(gc.get_objects()), references, len(game.plays[0].waiting)))
    assert abs(held[1][0] - held[2][0]) < 500  # of 2,000 rounds
    assert held[1][1:] == held[2][1:]
    assert held[2][2] == 3


def test_a_world_only_reads_its_questions():
    class Writes(Bell):
        def run(self, env, market):
            market.ask().forecast = 0.9
            yield env.timeout(1.0)

    match = "AttributeError: forecast of question 1, asked at 0,? is read-only, and was set to 0.9"
    with pytest.raises(InvalidForecast, match=match):
        oc.play(f.EmpiricalMean(), Writes, horizon=5, runs=1)
