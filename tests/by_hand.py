"""Players driven by hand: a forecaster without a game, and games a round at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine.game import Game
from onlinecal.forecasters import as_forecaster
from onlinecal.rounds.hand import Hand
from onlinecal.rounds.law import summed
from onlinecal.rounds.protocol import start


class Driven:
    """A forecaster in some runs; its questions and outcomes come from a test."""

    def __init__(self, spec, horizon=100, runs=1, seed=0):
        self.player = start("forecaster", spec, horizon, range(runs), seed)
        self.memory, self.hand, self.runs, self.told = self.player.memory, Hand(self.player), runs, 0

    def ask(self, **context):
        """Asks the next round, where no other is open."""
        return self.hand.ask(self.told + 1, context)

    def law(self, run=0, **context):
        """The law of the next round, value → weight; it changes nothing."""
        return law_of(self.ask(**context), run)

    def points(self, run=0):
        """The same, grid point → weight."""
        asked = self.ask()
        atoms, weights = (x[run, : asked.sizes[run]].tolist() for x in (asked.atoms, asked.weights))
        return {i: w for i, w in zip(atoms, weights, strict=True) if w > 0.0}

    def tell(self, asked, outcome, drawn=0):
        """Tells all runs a round."""
        self.told += 1
        self.hand.tell(
            asked, *(np.broadcast_to(np.asarray(x, np.int64), self.runs).copy() for x in (drawn, outcome))
        )

    def play(self, atoms, outcome, asked=None):
        """Tells a round in which these points of the grid, or these numbers, were played, whatever the law."""
        asked, grid = asked or self.ask(), self.player.grid
        asked.sizes[:], asked.weights[:, 0] = 1, 1.0
        asked.values[:, 0] = atoms if grid is None else grid[atoms]
        if grid is not None:
            asked.atoms[:, 0] = atoms
        self.tell(asked, outcome)


def law_of(asked, run=0):
    """The law of one run, value → weight, without values of no weight."""
    return summed(*(x[run, : asked.sizes[run]].tolist() for x in (asked.values, asked.weights)))


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
