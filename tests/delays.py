"""Games in which outcomes are told late, driven by hand."""

from __future__ import annotations

from collections import defaultdict

from onlinecal.engine.game import Game


def play(forecaster, nature, delays, *, runs=1, seed=0, each=None):
    """A game of a round for each delay; the outcome of round t is told at the end of round t + delay, if there is one.

    Returns the game and the most questions that were open at once, the one that was being asked included. `each` is
    called with every open round when it has been asked.
    """
    game = Game(forecaster, nature, horizon=len(delays), runs=range(runs), seed=seed, loop="event")
    due, most = defaultdict(list), 0
    for t, delay in enumerate(delays, 1):
        open_ = game.ask()
        most = max(most, game.asked - game.resolved)
        if each is not None:
            each(open_)
        due[t + int(delay)].append(open_)
        for late in due.pop(t, ()):
            game.resolve(late, time=float(t))
    return game, most
