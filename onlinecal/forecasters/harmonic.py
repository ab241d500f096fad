"""Distributional calibration in any number of classes, by harmonic weights."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, law, shared, state
from onlinecal.forecasters.base import OfClasses


@dataclass(frozen=True)
class Harmonic(OfClasses):
    r"""Says one of the weighted means of the outcomes after each round so far, of which late ones are likelier.

    The mean after round t is p_t = Σ_{s≤t} y_s/(2(t − s) + 1), divided by its sum, with y_s the unit vector of an
    outcome. In round t it says p_s, s < t, with probability proportional to 1/(2(t − s) − 1); in the first round all
    classes alike. Outcomes that come late count in the order in which they come.

    Guarantee: For laws, with which each round counts at every p_s by its probability, the source bounds the error on
    every sequence by 18γT/ln T, of order T·log K/log T. That says little at a T that can be played.

    Information: O(t) a round, and O(T) atoms of a law; T ≤ 10,000. The error of draws from the laws is far larger than
    that of laws: play it with ``laws=True``.

    Source: Fishelson and Mohri 2026, "High-dimensional online calibration from harmonic weights".
    """

    #: rounds, at most
    length: ClassVar[int] = 10_000
    deterministic, needs_horizon, safe_under_delay, memory = False, False, True, "O(T * classes)"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        points = np.zeros((horizon, self.classes))
        points[0] = 1.0 / self.classes
        weights = 1.0 / (2.0 * np.arange(horizon) + 1.0)
        # The number of outcomes, and these.
        return steps.Forecaster(
            say_means, add_mean, [0.0] * (1 + horizon), [self.classes, *weights], size=max(1, horizon - 1),
            table=points, own_table=True,
        )  # fmt: skip


@kernel
def parts_of(run):
    """The number of classes, the weights by age, how many outcomes there are, and the table, then the outcomes."""
    given, mine = shared(run), state(run)
    k, horizon = int(given[0]), len(given) - 1
    told = mine[horizon * k :]
    return k, given[1:], int(told[0]), mine[: horizon * k], told[1:]


def say_means(run: Run, number: int) -> int:
    """The state is the table, in which place 0 is the centre and place s is p_s, the number of outcomes, and these."""
    _, ages, told, _, _ = parts_of(run)
    values, weights = law(run)
    if told == 0:
        values[0], weights[0] = 0.0, 1.0
        return 1
    total = ages[:told].sum()
    for s in range(told):
        values[s], weights[s] = s + 1.0, ages[told - 1 - s] / total
    return told


def add_mean(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    k, ages, told, points, outcomes = parts_of(run)
    outcomes[told] = outcome
    told += 1
    state(run)[len(points)] = told
    if told * k < len(points):  # after the last round none is asked
        mean = points[told * k : (told + 1) * k]
        mean[:] = 0.0
        for s in range(told):
            mean[int(outcomes[s])] += ages[told - 1 - s]
        mean /= mean.sum()
    return 0
