"""Games in which outcomes are told late, driven by hand."""

from __future__ import annotations

import heapq

from onlinecal.engine.game import Game


def play(forecaster, nature, delays, *, times=None, runs=1, seed=0, each=None):
    """A game of a question for each delay; its outcome is told when that has passed, if the game still goes on.

    Questions are asked at `times`, by default 1, 2, 3, …, and come before outcomes of the same time: with the default
    the outcome of round t is told at the end of round t + delay. Outcomes of one time are told in the order of their
    questions. Returns the game, and the most questions that were open at once, the one that was being asked included.
    `each` is called with every question when it has been asked.
    """
    game = Game(forecaster, nature, horizon=len(delays), runs=range(runs), seed=seed)
    times = range(1, len(delays) + 1) if times is None else times
    waiting, most = [], 0

    def tell():
        due, _, question = heapq.heappop(waiting)
        game.resolve(question, time=due)

    for number, (time, delay) in enumerate(zip(times, delays, strict=True), 1):
        while waiting and waiting[0][0] < time:
            tell()
        question = game.ask(time=float(time))
        if each is not None:
            each(question)
        most = max(most, game.asked - game.resolved)
        heapq.heappush(waiting, (float(time + delay), number, question))
    while waiting and waiting[0][0] <= time:
        tell()
    return game, most
