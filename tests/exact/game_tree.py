"""The exact expected total ECE of two players: every draw and every outcome, weighed by its probability."""

from __future__ import annotations

import numpy as np
from onlinecal.rounds.record import Recorder, Round, resolve, tell

from onlinecal.natures import NatureRound, Sight
from onlinecal.rounds.protocol import start


def expectation(forecaster, nature, horizon):
    """E[T·ECE] of a short game, both players being told each history from its beginning.

    A nature that is itself random has the stream of one run, so that this is the expectation given its own draws.
    """

    def value(history):
        if len(history) == horizon:
            totals = {}
            for forecast, y in history:
                totals[forecast] = totals.get(forecast, 0.0) + y - forecast
            return sum(map(abs, totals.values()))
        law = _after(forecaster, nature, horizon, history)
        found = 0.0
        for forecast, weight, q in law:
            for y, p in ((0, 1.0 - q), (1, q)):
                if weight * p > 0.0:
                    found += weight * p * value((*history, (forecast, y)))
        return found

    return value(())


def _after(forecaster, nature, horizon, history):
    """(forecast, weight, q) of the round after a history."""
    player = start("forecaster", forecaster, horizon, range(1), 0)
    other, recorder = start("nature", nature, horizon, range(1), 0), Recorder(1)
    for number in range(1, len(history) + 2):
        # Nature may toss its own coins once a round: it is asked once, but where it sees the draw.
        last = number == len(history) + 1
        round = Round(number, float(number))
        seen = NatureRound(round, "nature", nature.sight)
        if nature.reveals:
            other.context(seen)
        recorder.record(round, player.forecast(round))
        values, weights = round.law.support[0], round.law.weights[0]
        places = [j for j in range(len(values)) if weights[j] > 0.0]
        if last:
            found = []
            for j in places if nature.sight is Sight.DRAW else places[:1]:
                tell(round, np.array([j]), np.array([0]))
                q = float(np.broadcast_to(other.probability(seen), (1,))[0])
                found.append(q)
            qs = found if len(found) == len(places) else found * len(places)
            return [(float(values[j]), float(weights[j]), q) for j, q in zip(places, qs, strict=True)]
        forecast, y = history[number - 1]
        j = next(j for j in places if values[j] == forecast)
        tell(round, np.array([j]), np.array([y]))
        other.probability(seen)
        resolve(round, float(number))
        player.update(round)
        if nature.sight >= Sight.HISTORY:
            other.update(seen)
    raise AssertionError
