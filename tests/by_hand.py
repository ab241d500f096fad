"""Players driven by hand: a forecaster without a game, and games a round at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.engine.law import summed
from onlinecal.engine.play import Question
from onlinecal.engine.seats import seat
from onlinecal.engine.start import start
from onlinecal.engine.steps import Coming, Player
from onlinecal.forecasters import as_forecaster


class Driven:
    """One run of a forecaster; its questions and outcomes come from a test."""

    def __init__(self, spec, horizon=100, run=0, seed=0):
        self.player = start("forecaster", spec, horizon, range(run, run + 1), seed)
        self.seat = seat(
            "forecaster", spec, self.player if isinstance(self.player, Player) else self.player[0]
        )
        self.told = 0

    @property
    def state(self):
        """The numbers of a compiled player, to be read or changed."""
        return self.player.state[0]

    def ask(self, **context):
        """The next question, where no other is open, with its law."""
        question = Question(self.told + 1, self.told + 1.0, context=context)
        if isinstance(self.player, Player):
            self.player.make_room(Coming(question.number, 1))
        question.law = self.seat.state_law(question)
        return question

    def say(self, **context):
        """The first value of the next law, and of a forecaster without randomness the forecast; changes nothing."""
        return self.ask(**context).law[0][0]

    def law(self, **context):
        """The law of the next round, value → weight; it changes nothing."""
        return summed(*zip(*self.ask(**context).law, strict=True))

    def points(self):
        """The same of a grid 0, 1/m, …, 1: point → weight."""
        m = len(self.player.grid) - 1
        return {round(m * value): weight for value, weight in self.law().items()}

    def tell(self, question, outcome, place=0):
        """Tells a round in which this atom of the law was drawn."""
        question.place, question.forecast, question.outcome = place, question.law[place][0], int(outcome)
        self.told += 1
        self.seat.learn(question)

    def play(self, forecast, outcome, **context):
        """Tells a round in which this was forecast, whatever the law."""
        question = self.ask(**context)
        question.law = [(forecast, 1.0)]
        self.tell(question, outcome)


class Noted(NamedTuple):
    """A round of a game: a law, value → weight, and the other numbers, of each run."""

    laws: list
    q: np.ndarray
    forecast: np.ndarray
    outcome: np.ndarray


def noted(forecaster, nature, horizon, runs=3, seed=0):
    """The rounds of a game, and the game; outcomes are those that the stream of the nature makes of q."""
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed)
    path = "outcome", strategy_key(nature), f"T={horizon}"
    uniforms, log = Stream(seed, path, range(runs)).block(horizon), []
    for u in uniforms:
        question = game.ask()
        log.append(
            Noted(question.laws, question.probability, question.forecast, (u < question.probability) + 0)
        )
        game.resolve(question)
    return log, game


def revealed(nature, horizon, runs=3, seed=0):
    """All that nature reveals to a constant: kind → (rounds, runs)."""
    game = Game(
        as_forecaster(Half), nature, horizon=horizon, runs=range(runs), seed=seed, keeps=nature.reveals
    )
    game.advance(horizon)
    each = [game.transcripts.of(run).context for run in range(runs)]
    return {kind: np.stack([context[kind] for context in each], axis=1) for kind in nature.reveals}


def truths(nature, horizon, runs=3, seed=0):
    """q of each round and run, against a constant."""
    return np.array([round.q for round in noted(as_forecaster(Half), nature, horizon, runs, seed)[0]])


def measured(forecaster, nature, measure, horizon, seed, runs=16):
    """T·μ of each run."""
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed)
    game.advance(horizon)
    return horizon * np.array([measure(gamma) for gamma in game.gammas()])


class Half:
    def forecast(self):
        return 0.5

    def update(self, forecast, outcome): ...


def reciting(said):
    """A plain forecaster that states these numbers or laws, one after the other."""

    class Recited:
        deterministic = not any(isinstance(law, dict) for law in said)

        def forecast(self, round):
            return said[round.number - 1]

        def update(self, forecast, outcome): ...

    return as_forecaster(Recited)
