"""Plain classes as they are and as records; and what is refused of them."""

from __future__ import annotations

import pytest

from onlinecal.engine.game import Game
from onlinecal.natures import Bernoulli, Contrarian
from onlinecal.schedules import Constant, Pareto, Poisson, Schedule
from tests.engine.games import same

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


def played(forecaster, schedule):
    game = Game(forecaster, Contrarian(), horizon=T, runs=range(2), seed=3, schedule=schedule)
    game.advance(T // 2)
    game.advance(T)
    return game


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda each: each.label)
@pytest.mark.parametrize("cls", [Mean, Numbered])
def test_records_play_as_the_plain_class(cls, schedule, monkeypatch):
    """Plain classes stand beside plain Python in test_game.py."""
    plain = played(cls, schedule)
    monkeypatch.setattr(cls, "oc_compiled", True, raising=False)
    game = played(cls, schedule)
    assert (plain.compiled, game.compiled) == (False, True)
    assert same(game.gammas(), plain.gammas())


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
