"""Plain classes: by the definition of a game, and as records; and what is refused of them."""

from __future__ import annotations

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.engine2.game import Game
from onlinecal.natures import Bernoulli, Contrarian
from onlinecal.schedules import Constant, Pareto, Poisson, Schedule
from tests.engine2.test_same import bits
from tests.oracles.game import play

T = 300
SCHEDULES = Schedule(), Schedule(delays=Constant(3)), Schedule(Poisson(2), Pareto())


class Mean:
    """A whole number that becomes a real one, and laws of one or two atoms."""

    def __init__(self):
        self.ones, self.rounds, self.last, self.seen = 0, 0, 0, [0, 0]

    def forecast(self):
        p = (self.ones + 1) / (self.rounds + 2)
        return p if self.rounds % 3 else {p: 1 - p, self.last: p}

    def update(self, forecast, outcome):
        self.ones, self.rounds = self.ones + outcome, self.rounds + 1
        self.last = 1 if outcome else 0.0
        self.seen[outcome] += 1


class Numbered:
    """Looks at the round, also later."""

    def __init__(self):
        self.total = 0

    def forecast(self, round):
        return {0.25: 0.5, 0.75: 0.5} if round.number % 2 == 0 else {0.5: 1.0}

    def update(self, forecast, outcome, round):
        self.total += round.number


class Hind:
    """Contradicts the law."""

    sight = "law"

    def __init__(self):
        self.last = 0.5

    def probability(self, round):
        return 1 - sum(v * w for v, w in round.law.items())

    def update(self, forecast, outcome):
        self.last = forecast


def played(forecaster, nature, schedule):
    game = Game(forecaster, nature, horizon=T, runs=range(2), seed=3, schedule=schedule)
    game.advance(T // 2)
    game.advance(T)
    return game


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda each: each.label)
@pytest.mark.parametrize("forecaster", [Mean, Numbered])
def test_plain_classes_play_by_the_definition(forecaster, schedule):
    game = played(forecaster, Hind, schedule)
    assert not game.compiled
    for run, gamma in enumerate(game.gammas()):
        told = play(game.pair, forecaster(), Hind(), horizon=T, run=run, seed=3, schedule=schedule)
        assert bits([gamma]) == bits(
            [JointDistribution.from_samples(*zip(*(r[3:] for r in told), strict=True))]
        )


@pytest.mark.parametrize("schedule", SCHEDULES[1:], ids=lambda each: each.label)
@pytest.mark.parametrize("cls", [Mean, Numbered])
def test_records_play_as_the_plain_class(cls, schedule, monkeypatch):
    plain = bits(played(cls, Contrarian(), schedule).gammas())
    monkeypatch.setattr(cls, "oc_compiled", True, raising=False)
    game = played(cls, Contrarian(), schedule)
    assert game.compiled
    assert bits(game.gammas()) == plain


#: of the last object of `Open` that was made
TOLD: list = []


class Open:
    """Takes all that is revealed, and keeps the round with its question."""

    needs = "all"

    def __init__(self):
        TOLD.clear()

    def forecast(self, round):
        round.memo = dict(round.context)
        return 0.5

    def update(self, forecast, outcome, round):
        TOLD.append((round.number, round.memo, dict(round.context)))


class Telling:
    """Reveals two numbers, and finds them and its memo again."""

    reveals, sight = frozenset({"day", "night"}), "history"

    def __init__(self):
        self.found = 0

    def context(self, round):
        round.memo = round.number
        return {"day": round.number % 7, "night": 0.5 / round.number}

    def probability(self, round):
        assert round.memo == round.number
        assert round.context == {"day": round.number % 7, "night": 0.5 / round.number}
        return 0.3

    def update(self, forecast, outcome, round):
        assert round.memo == round.number
        assert round.context["day"] == round.number % 7


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda each: each.label)
def test_context_and_memo_come_back_with_the_outcome(schedule):
    game = Game(Open, Telling, horizon=40, runs=range(1), schedule=schedule)
    game.advance(40)
    assert len(TOLD) == game.resolved > 5
    for number, memo, context in TOLD:
        assert memo == context == {"day": number % 7, "night": 0.5 / number}


@pytest.mark.parametrize("schedule", SCHEDULES[:2], ids=lambda each: each.label)
def test_all_is_nothing_where_nothing_is_revealed(schedule):
    game = Game(Open, Bernoulli(), horizon=40, runs=range(1), schedule=schedule)
    game.advance(40)
    assert {str(memo) for _, memo, _ in TOLD} == {"{}"}


class Quiet:
    """Does what all of those below do."""

    def __init__(self):
        self.n, self.x = 0, 0

    def forecast(self):
        return 0.5

    def update(self, forecast, outcome):
        self.n += 1


class Alias(Quiet):
    def __init__(self):
        self.n, self.a = 0, [0, 0]
        self.b = self.a


class View(Quiet):
    def __init__(self):
        self.n, self.a = 0, np.zeros(4)
        self.b = self.a[1:]


class Narrow(Quiet):
    def __init__(self):
        self.n, self.a = 0, np.zeros(3, np.int8)


class Truths(Quiet):
    def __init__(self):
        self.n, self.a = 0, np.zeros(3, bool)


class Branch(Quiet):
    def forecast(self):
        if self.n > 1000:
            p = 0.3
        return p if self.n > 1000 else 0.5


class Late(Quiet):
    def update(self, forecast, outcome):
        self.n += 1
        if self.n > 1000:
            self.x += 0.5


class Stores(Quiet):
    def __init__(self):
        self.n, self.a = 0, (1, 2)

    def update(self, forecast, outcome):
        self.n += 1
        if self.n > 1000:
            self.a[0] = 3


class ReadOnly(Stores):
    def __init__(self):
        self.n, self.a = 0, np.array([1, 2])
        self.a.flags.writeable = False


class OfNumpy(Quiet):
    def __init__(self):
        self.n, self.a = 0, np.float32(0.5)


class Grows(Quiet):
    def __init__(self):
        self.n, self.a = 0, [1]

    def update(self, forecast, outcome):
        self.n += 1
        if self.n > 1000:
            self.a.append(1)


class Slices(Grows):
    def update(self, forecast, outcome):
        self.n += 1
        if self.n > 1000:
            self.a[1:][0] = 2


OUTSIDE = [0.5]


class Outside(Quiet):
    def forecast(self):
        return OUTSIDE[0]


class Later(Quiet):
    def forecast(self):
        return not_there(0.5)  # noqa: F821


REFUSED = {
    Alias: "b is a as well", View: "b is a as well, or a part of it", Narrow: "array of int8", Truths: "array",
    Branch: "p may have no value here", Late: "begins as a whole number and is given a real one",
    Stores: "is a tuple, which cannot be changed", ReadOnly: "is a ndarray, which cannot be changed",
    OfNumpy: r"is np.float32\(0.5\); expected a number", Grows: "used as a whole", Slices: "a view, not a copy",
    Outside: "OUTSIDE can change outside",
    Later: "not_there is not defined yet",
}  # fmt: skip


@pytest.mark.parametrize("cls", REFUSED)
def test_what_would_be_silently_wrong_is_refused(cls, monkeypatch):
    monkeypatch.setattr(cls, "oc_compiled", True, raising=False)
    with pytest.raises(InvalidParameter, match=REFUSED[cls]):
        Game(cls, Bernoulli(), horizon=10, runs=range(1))
