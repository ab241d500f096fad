"""A forecaster whose laws are exact floats."""

from dataclasses import dataclass

import numpy as np

from onlinecal.forecasters import Forecaster
from onlinecal.forecasters.baselines import nothing
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.steps import Memory, law, law_atoms, law_values, law_weights, own_uniform


@dataclass(frozen=True)
class Quarters(Forecaster):
    """Random laws over the quarters, some with an atom without weight, and one written −0."""

    grid: bool = False

    def start(self, horizon, stream):
        grid = np.arange(5) / 4 if self.grid else None
        return CompiledForecaster(_three, nothing, Memory(stream=stream), size=3, grid=grid)


@law
def _three(run, number):
    u, weights = own_uniform(run, number - 1), law_weights(run)
    first = int(3.0 * u)
    for j in range(3):
        law_atoms(run)[j] = first + j
        law_values(run)[j] = (first + j) / 4.0 if first + j > 0 else -0.0
    weights[0] = 0.5 if u < 0.5 else 0.25
    weights[1] = 0.25 if u < 0.5 else 0.0
    weights[2] = 1.0 - weights[0] - weights[1]
    return 3
