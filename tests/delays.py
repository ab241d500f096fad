"""Games in which outcomes are told late."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from onlinecal.engine.game import Game
from onlinecal.schedules import Delays, Schedule


@dataclass(frozen=True)
class Listed(Delays):
    """These delays, one for each question."""

    delays: tuple[float, ...]

    def known(self, first, asked, uniforms):
        return asked + np.append(self.delays, 0.0)[first - 1 : first - 1 + len(asked)]


def play(forecaster, nature, delays, *, runs=1, seed=0):
    """A game of a question a unit and these delays, and the most questions that were open at once, the one that was
    being asked included: the outcome of round t is told at the end of round t + delay.
    """
    delays, horizon = tuple(map(float, delays)), len(delays)
    schedule = Schedule(delays=Listed(delays))
    game = Game(forecaster, nature, horizon=horizon, runs=range(runs), seed=seed, schedule=schedule)
    game.advance(horizon)
    asked = np.arange(1, horizon + 1)
    told = np.searchsorted(np.sort(asked + np.array(delays)), asked)
    return game, int((asked - told).max())


def by_hand(forecaster, nature, delays, *, times=None, runs=1, seed=0):
    """The same, asked and told by hand at these times (default: 1, 2, 3, …): the game, and all questions.

    Questions come before outcomes of the same time, and these in the order of their questions.
    """
    game, waiting, asked = Game(forecaster, nature, horizon=len(delays), runs=range(runs), seed=seed), [], []
    times = range(1, len(delays) + 1) if times is None else times

    def tell_before(time):
        while waiting and waiting[0][0] < time:
            due, _, question = heapq.heappop(waiting)
            game.resolve(question, time=due)

    for number, (time, delay) in enumerate(zip(times, delays, strict=True), 1):
        tell_before(time)
        asked.append(game.ask(time=float(time)))
        heapq.heappush(waiting, (float(time + delay), number, asked[-1]))
    tell_before(np.nextafter(time, np.inf))
    return game, asked
