"""A forecaster whose laws are written down, with values that repeat and values without weight."""

import numpy as np

from onlinecal.forecasters import Forecaster
from onlinecal.forecasters.baselines import nothing
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.steps import Memory, law, law_values, law_weights, shared, shared_ints


class Written(Forecaster):
    """States these laws, (values, weights), all of one size."""

    def __init__(self, laws):
        object.__setattr__(self, "laws", np.array(laws, float))

    def start(self, horizon, stream):
        size = self.laws.shape[2]
        return CompiledForecaster(_read, nothing, Memory(shared=self.laws, shared_ints=[size]), size=size)


@law
def _read(run, number):
    size = shared_ints(run)[0]
    at = 2 * size * (number - 1)
    law_values(run)[:size] = shared(run)[at : at + size]
    law_weights(run)[:size] = shared(run)[at + size : at + 2 * size]
    return size
