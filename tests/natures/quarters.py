"""A forecaster with laws that are exact floats."""

from dataclasses import dataclass

import numpy as np

from onlinecal.engine import steps
from onlinecal.engine.loop import hear_nothing
from onlinecal.engine.steps import law, own_uniform
from onlinecal.forecasters import Forecaster


@dataclass(frozen=True)
class Quarters(Forecaster):
    """Random laws over the quarters: in no order, one twice, some with an atom without weight, one written −0."""

    grid: bool = False

    def start(self, horizon, stream):
        grid = np.arange(5) / 4 if self.grid else None
        return steps.Forecaster(say_four, hear_nothing, stream=stream, size=4, grid=grid)


def say_four(run, number):
    u, (values, weights) = own_uniform(run, number - 1), law(run)
    first = int(3.0 * u)
    for j in range(4):  # the third, the first, the second, and the first again
        place = first + (2 if j == 0 else 1 if j == 2 else 0)
        values[j] = place / 4.0 if place > 0 else -0.0
    weights[1] = weights[3] = 0.25 if u < 0.5 else 0.125
    weights[2] = 0.25 if u < 0.5 else 0.0
    weights[0] = 1.0 - 2.0 * weights[1] - weights[2]
    return 4
