"""Games and players for the tests of the engine."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise
from unittest.mock import patch

import numpy as np

from onlinecal.core.errors import InvalidForecast
from onlinecal.core.guarantee import Sight
from onlinecal.core.strategy import classes_of
from onlinecal.engine import game as module
from onlinecal.engine import steps
from onlinecal.engine.game import Game
from onlinecal.forecasters import EmpiricalMean, Forecaster
from onlinecal.natures import Bernoulli, Nature


def game_of(forecaster=None, nature=None, horizon=6, runs=range(2), **options):
    """A game of specifications or plain classes."""
    return Game(forecaster or EmpiricalMean(), nature or Bernoulli(), horizon=horizon, runs=runs, **options)


def played(forecaster=None, nature=None, horizon=300, **options):
    """The same at its end."""
    game = game_of(forecaster, nature, horizon, **options)
    game.advance(horizon)
    return game


def bits(gammas):
    """All of some Γ."""
    return [[getattr(g, part).tobytes() for part in ("predictions", "counts", "means")] for g in gammas]


def same(first, second):
    """Whether two lists of Γ are the same to the bit."""
    return bits(first) == bits(second)


def came_to(game, run=None):
    """All that a game came to, of one run or of all: Γ by stream and stretch, certificates, transcripts."""
    runs, found = range(len(game.runs)) if run is None else [run], {"asked": game.asked}
    ends = [-math.inf, *game.cuts, math.inf]
    for stream in (None, *range(game.streams)):
        for since, until in {(-math.inf, math.inf), *pairwise(ends)}:
            each = [game.gamma(r, stream, since, until) for r in runs]
            found[stream, since, until] = [gamma and bits([gamma]) for gamma in each]
        if game.transcripts is not None:
            found["rounds", stream] = [
                rounds and [v.tobytes() for v in vars(rounds).values() if isinstance(v, np.ndarray)]
                for rounds in (game.transcripts.of(r, stream) for r in runs)
            ]
    return found | {name: totals[list(runs)].tolist() for name, totals in game.certificates().items()}


def again(game):
    return pickle.loads(pickle.dumps(game))


def refusal_of(play, *given):
    """The error that stops a game, as copies in too few slots do; "" for none."""
    try:
        play(*given)
    except InvalidForecast as error:
        return str(error)
    return ""


def check_all_ways(mine, theirs, schedule, horizon=120, compiled=True):
    """A game in Python is the same pickled halfway, by the loop, paused, in threads, and of one run alone."""
    keeps = None if classes_of(theirs) else ()
    given = {"horizon": horizon, "seed": 9, "schedule": schedule, "cuts": (20.0, 55.5, 90.0), "keeps": keeps}

    def begun(runs=range(2, 4), in_python=False, **options):
        game = Game(mine, theirs, runs=runs, **given, **options)
        game.in_python |= in_python
        return game

    defined, third = begun(in_python=True), horizon // 3
    said = refusal_of(defined.advance, third)
    if not said:
        at_third, defined = came_to(defined), again(defined)
        said = refusal_of(defined.advance, horizon)
    if said:
        assert refusal_of(begun().advance, horizon) == said
        return
    expected, alone = came_to(defined), came_to(defined, 1)
    paused = begun()
    assert paused.compiled is compiled
    for until in (third, horizon // 2, horizon):
        paused.advance(until)
        paused = again(paused)
        assert until != third or came_to(paused) == at_third
    assert came_to(paused) == expected
    with patch.object(module, "THREAD", 1):
        threads = begun(threads=2)
        threads.advance(horizon)
    assert came_to(threads) == expected
    of_one_run = begun(range(3, 4))
    of_one_run.advance(horizon)
    assert came_to(of_one_run, 0) == alone


# ---------------------------------------------------------------- players of the steps that a test gives


def fair(run, number):
    values, weights = steps.law(run)
    values[0], weights[0] = 0.5, 1.0
    return 1


def nothing(run, place, forecast, outcome, number):
    return 0


def half(run, size, forecast, number):
    return 0.5


def forecaster_of(say=fair, learn=nothing, declares=(), **options):
    class Made(Forecaster):
        needs = frozenset(declares)
        deterministic = True

        def start(self, horizon, stream):
            return steps.Forecaster(say, learn, **options)

    return Made()


def nature_of(move=half, sees=Sight.NOTHING, declares=(), **options):
    class Made(Nature):
        sight = sees
        reveals = frozenset(declares)

        def start(self, horizon, stream):
            return steps.Nature(move, **{"sight": sees} | options)

    return Made()


# ---------------------------------------------------------------- players in plain Python


class Mean:
    """(1 + ones)/(2 + rounds)."""

    def __init__(self):
        self.ones, self.rounds = 0, 0

    def forecast(self):
        return (self.ones + 1) / (self.rounds + 2)

    def update(self, forecast, outcome):
        assert (type(forecast), type(outcome)) == (float, int)
        self.rounds += 1
        self.ones += outcome


class Laws(Mean):
    """Laws of more and more atoms, now and then a number that is no float."""

    def forecast(self):
        if self.rounds % 5 == 0:
            return self.rounds % 2
        size = 1 + self.rounds % 40
        return {(i + 1) / (size + self.ones + 1): 1 / size for i in range(size)}


class Shown(Laws):
    """Learns from its memo and the context."""

    needs = frozenset({"side"})

    def forecast(self, round):
        round.memo = [round.number, round.time, self.rounds]
        law = super().forecast()
        return law if round.context["side"] > 0.5 else 0.25

    def update(self, forecast, outcome, round):
        super().update(forecast, outcome)
        self.ones += sum(round.memo) % 2
        round.memo.clear()


class Looks:
    """Says what it is shown of the round, and finds what it left there."""

    needs = frozenset({"truth"})

    def __init__(self):
        self.shift = 0.0

    def forecast(self, round):
        round.memo = round.time
        return (round.context["truth"] + round.number % 7 + round.time % 3 + self.shift) / 11

    def update(self, forecast, outcome, round):
        assert round.memo == round.time
        self.shift = (self.shift + outcome + round.number * round.context["truth"]) % 1


class Coin:
    def probability(self):
        return 0.3


class Follows:
    def __init__(self):
        self.last = 0.5

    def probability(self):
        return 1 - self.last

    def update(self, forecast, outcome):
        assert (type(forecast), type(outcome)) == (float, int)
        self.last = forecast


class Timed:
    reveals = frozenset({"side"})

    def context(self, round):
        return {"side": round.number % 2}

    def probability(self, round):
        return (7 * round.number + round.time) % 10 / 10


class SeesLaw(Follows):
    sight = "law"

    def probability(self, round):
        mean = sum(value * weight for value, weight in round.law.items())
        return 0.25 * (self.last < 0.5) + 0.65 * (mean < 0.5) + round.time % 2 / 20


class SeesDraw(SeesLaw):
    sight = "draw"

    def probability(self, round):
        round.memo = round.forecast
        return 0.9 * super().probability(round) + 0.1 * (round.forecast > 0.3)

    def update(self, forecast, outcome, round):
        assert round.memo == round.forecast == forecast
        round.law.clear()
        super().update(forecast, outcome)
