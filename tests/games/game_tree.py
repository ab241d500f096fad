"""The exact expected total ECE of two players: every draw and every outcome, weighed by its probability."""

from __future__ import annotations

from onlinecal.engine.play import Question
from onlinecal.engine.seats import seat
from onlinecal.engine.start import start


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


def _after(forecaster, nature, horizon, history):
    """(forecast, weight, q) of the round after a history; nature is asked for each forecast by itself."""
    found = []
    for value, weight in _asked(forecaster, nature, horizon, history)[0].law:
        question, theirs = _asked(forecaster, nature, horizon, history)
        question.forecast = value
        found.append((value, weight, theirs.move(question)))
    return found


def _asked(forecaster, nature, horizon, history):
    """The question after a history, which both players have been told, with its law; and the nature."""
    mine, theirs = (
        seat(role, strategy, start(role, strategy, horizon, range(1), 0))
        for role, strategy in (("forecaster", forecaster), ("nature", nature))
    )
    for number in range(1, len(history) + 2):
        question = Question(number, float(number))
        theirs.reveal(question)
        question.law = mine.state_law(question)
        if number <= len(history):
            question.forecast, question.outcome = history[number - 1]
            question.place = [value for value, _ in question.law].index(question.forecast)
            theirs.move(question)
            mine.learn(question)
            theirs.learn(question)
    return question, theirs
