"""One run of a game in plain Python: uniforms of its streams, question after question, late outcomes in a heap."""

from __future__ import annotations

import heapq
import inspect
from types import SimpleNamespace

from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.schedules import Schedule


def call(method, *given):
    """Calls a method with as many of these arguments as it has."""
    return method(*given[: len(inspect.signature(method).parameters)])


def uniforms(role, strategy, horizon, run, seed):
    """The uniforms of one run for forecasts or for outcomes."""
    path = role, strategy_key(strategy), f"T={horizon}"
    return Stream(seed, path, range(run, run + 1)).block(horizon)[:, 0].tolist()


def drawn(law, u):
    """The first value at which the sum of the weights is above u, or else the last with weight."""
    total = 0.0
    for value, weight in law.items():
        if weight > 0.0:
            last = value
            if total + weight > u:
                return value
        total += weight
    return last


def play(pair, mine, theirs, *, horizon, run, seed, schedule=None, asked=None):
    """The resolved rounds in order: number, when asked, when known, forecast, outcome.

    Parameters
    ----------
    pair : (Forecaster, Nature)
        They name the streams.
    mine, theirs : object
        Players in plain Python, for this run.
    horizon, run, seed : int
    schedule : Schedule, optional
    asked : int, optional
        How many questions are asked. Default: all.
    """
    forecasts, outcomes = (
        uniforms(r, s, horizon, run, seed) for r, s in zip(("forecast", "outcome"), pair, strict=True)
    )
    clock = (schedule or Schedule()).clock(horizon, seed)
    waiting, told = [], []

    def tell(before):
        while waiting and waiting[0][0] < before:
            known, number, p, y, (round, seen) = heapq.heappop(waiting)
            told.append((number, round.time, known, p, y))
            call(mine.update, p, y, round)
            if hasattr(theirs, "update"):
                call(theirs.update, p, y, seen)

    for number in range(1, (asked or horizon) + 1):
        (time,), (known,) = (part.tolist() for part in clock.span(number, number))
        tell(time)
        round = SimpleNamespace(number=number, time=time, context={}, memo=None)
        if hasattr(theirs, "context"):
            round.context = theirs.context(round)
        law = call(mine.forecast, round)
        law = {float(v) + 0.0: float(w) for v, w in (law if isinstance(law, dict) else {law: 1.0}).items()}
        p = drawn(law, forecasts[number - 1])
        seen = SimpleNamespace(
            number=number, time=time, memo=None, forecast=p, law={v: w for v, w in law.items() if w > 0}
        )
        y = int(outcomes[number - 1] < call(theirs.probability, seen))
        known = known[y] if isinstance(known, list) else known  # a delay that depends on the outcome
        heapq.heappush(waiting, (known, number, p, y, (round, seen)))
    tell(clock.times(number + 1)[0])
    return told
