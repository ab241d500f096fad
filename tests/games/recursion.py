"""The value of a game by definition: a program in each state, all policies, and players that are told each history."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
from scipy.optimize import linprog

from onlinecal.core.joint import JointDistribution
from onlinecal.engine.play import Question
from onlinecal.engine.seats import seat
from onlinecal.engine.start import start
from onlinecal.measures import MEASURES


@cache
def total(measure, m, counts):
    """T·μ of a tuple of (n, s) for each point."""
    n, s = np.array(counts, float).T
    found = MEASURES[measure].function(JointDistribution.from_counts(np.arange(m + 1) / m, n, s))
    return n.sum() * (found if isinstance(found, float) else found.lower + found.width / 2)


def played(counts, i, y):
    n, s = counts[i]
    return (*counts[:i], (n + 1, s + y), *counts[i + 1 :])


def some_counts(rng, m, rounds):
    """(n, s) of each point after some rounds at random."""
    counts = np.zeros((m + 1, 2), int)
    for _ in range(rounds):
        counts[rng.integers(0, m + 1)] += (1, rng.integers(0, 2))
    return counts


def matrix_value(a):
    """min over laws w of max over y of (w a)_y, by linear programming."""
    points = len(a)
    outcomes = np.transpose(a)
    above, law = np.hstack([outcomes, -np.ones((len(outcomes), 1))]), [[*np.ones(points), 0.0]]
    bounds = [(0, None)] * points + [(None, None)]
    return linprog([*np.zeros(points), 1.0], above, np.zeros(len(outcomes)), law, [1.0], bounds).fun


def dual_value(a):
    """max over q of min_i (1 − q) a_i + q b_i, by linear programming: nature chooses without seeing the law."""
    below = [[x - y, 1.0] for x, y in a], [x for x, _ in a]
    return -linprog([0.0, -1.0], *below, bounds=[(0, 1), (None, None)]).fun


def value_by_programs(measure, m, horizon, of_state=matrix_value):
    @cache
    def value(left, counts):
        if left == 0:
            return total(measure, m, counts)
        after = [[value(left - 1, played(counts, i, y)) for y in (0, 1)] for i in range(m + 1)]
        return of_state(np.array(after))

    return value(horizon, ((0, 0),) * (m + 1))


def value_of_deterministic_policies(measure, m, horizon):
    """The least, over all deterministic policies, of the largest total over all sequences of outcomes."""
    histories = [h for t in range(horizon) for h in itertools.product((0, 1), repeat=t)]
    best = np.inf
    for policy in itertools.product(range(m + 1), repeat=len(histories)):
        plays = dict(zip(histories, policy, strict=True))
        worst = -np.inf
        for outcomes in itertools.product((0, 1), repeat=horizon):
            counts = ((0, 0),) * (m + 1)
            for t, y in enumerate(outcomes):
                counts = played(counts, plays[outcomes[:t]], y)
            worst = max(worst, total(measure, m, counts))
        best = min(best, worst)
    return best


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
        for forecast, weight in asked(horizon, history, forecaster)[0].law:
            # Nature is asked for each forecast by itself.
            question, theirs = asked(horizon, history, forecaster, nature)
            question.forecast = forecast
            q = theirs.move(question)
            for y, p in ((0, 1.0 - q), (1, q)):
                if weight * p > 0.0:
                    found += weight * p * value((*history, (forecast, y)))
        return found

    return value(())


def asked(horizon, history, forecaster, nature=None):
    """The question after a history (forecast, outcome), …, which both players have been told; and the nature."""
    mine = seat("forecaster", forecaster, start("forecaster", forecaster, horizon, range(1), 0))
    theirs = nature and seat("nature", nature, start("nature", nature, horizon, range(1), 0))
    for number in range(1, len(history) + 2):
        question = Question(number, float(number))
        if theirs:
            theirs.reveal(question)
        question.law = mine.state_law(question)
        if number <= len(history):
            question.forecast, question.outcome = history[number - 1]
            drawn = [j for j, (v, w) in enumerate(question.law) if v == question.forecast and w > 0.0]
            question.place = drawn[0]
            if theirs:
                theirs.move(question)
            mine.learn(question)
            if theirs:
                theirs.learn(question)
    return question, theirs


def law_after(forecaster, m, horizon, history):
    """The law on the grid, point → weight, after (point, outcome), …"""
    law = asked(horizon, [(i / m, y) for i, y in history], forecaster)[0].law
    return {round(m * value): weight for value, weight in law if weight > 0.0}
