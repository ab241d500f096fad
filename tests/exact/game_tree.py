"""The exact expected total ECE of two players: every draw and every outcome, weighed by its probability."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onlinecal.engine import kernels as k
from onlinecal.engine.game import Game
from onlinecal.forecasters import Forecaster
from onlinecal.natures import Sight
from onlinecal.rounds.hand import Hand
from onlinecal.rounds.protocol import start


def expectation(forecaster, nature, horizon):
    """E[T·ECE] of a short game, both players being told each history from its beginning.

    A nature that is itself random has the stream of one run: this is the expectation given its own draws.
    """

    def value(history):
        if len(history) == horizon:
            totals = {}
            for forecast, y in history:
                totals[forecast] = totals.get(forecast, 0.0) + y - forecast
            return sum(map(abs, totals.values()))
        found = 0.0
        for forecast, weight, q in _after(forecaster, nature, horizon, history):
            for y, p in ((0, 1.0 - q), (1, q)):
                if weight * p > 0.0:
                    found += weight * p * value((*history, (forecast, y)))
        return found

    return value(())


@dataclass(frozen=True, eq=False)
class Recites(Forecaster):
    """States these laws, one after the other."""

    laws: list = field(metadata={"key": False})
    atoms = 1000

    def start(self, horizon, stream):
        return self

    def forecast(self, round):
        return self.laws[round.number - 1]

    def update(self, forecast, outcome):
        pass


def _after(forecaster, nature, horizon, history):
    """(forecast, weight, q) of the round after a history."""
    hand, laws = Hand(start("forecaster", forecaster, horizon, range(1), 0)), []
    for number in range(1, len(history) + 2):
        asked = hand.ask(number)
        size = int(asked.sizes[0])
        values, weights = (part[0, :size].tolist() for part in (asked.values, asked.weights))
        laws.append({v: w for v, w in zip(values, weights, strict=True) if w})
        if number <= len(history):
            forecast, y = history[number - 1]
            hand.tell(asked, np.array([values.index(forecast)]), np.array([y]))
    if nature.sight < Sight.DRAW:
        q = _probability(nature, horizon, laws, history)
        return [(value, weight, q) for value, weight in laws[-1].items()]
    # One that sees the draw is shown it as the law.
    said = [{forecast: 1.0} for forecast, _ in history]
    return [(v, w, _probability(nature, horizon, [*said, {v: 1.0}], history)) for v, w in laws[-1].items()]


def _probability(nature, horizon, laws, history):
    """q of the round after a history in which these laws were stated."""
    game = Game(Recites(laws), nature, horizon=horizon, runs=range(1))
    for law, (forecast, y) in zip(laws, history, strict=False):
        question = game.ask()
        # The forecast that the history has, whatever was drawn.
        game._loop.words.view(np.int64)[0, question.slot, k.OF_PICK] = list(law).index(forecast)
        game.resolve(question, outcome=y)
    return float(game.ask().probability[0])
