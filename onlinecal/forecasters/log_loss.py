"""Forecasters without swap regret for the logarithmic loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.expressions import grid_steps
from onlinecal.core.streams import Stream
from onlinecal.forecasters.base import InSteps
from onlinecal.forecasters.internal_regret import learners, state_wishes
from onlinecal.rounds.law import Floats
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.steps import Memory, ints, law_atoms, law_weights, learn, shared


@dataclass(frozen=True)
class BlumMansourLog(InSteps):
    r"""No full swap regret for the logarithmic loss: as `BlumMansour`, on a grid that is finer towards 0 and 1.

    The points are z_i = sin²(π(2i + 1)/(4(m + 1))), i = 0 … m: the step is about √(z(1 − z))/m, and none is 0 or 1. The
    learner of i wants to be at x_i, the mean of the outcomes, weighed by how likely their rounds were to play i, and of
    one imagined outcome, z_i. Row i of the matrix puts x_i, moved to [z_0, z_m], on the two points next to it, with
    that mean. The law is stationary.

    Parameters
    ----------
    m : int or str, default "T^(1/3)"
        One less than the points, rounded up; a number or an expression in T.

    Guarantee
    ---------
    Against natures that see the law, with P_t(i) the weight of z_i in the law of round t and S_i = Σ P_t(i) y_t,
    n_i = Σ P_t(i), the swap regret that is weighed by the law, Σ n_i KL(S_i/n_i ‖ z_i), is O(T^{1/3} log T) for m =
    T^{1/3}. For the law is stationary, so it is the regret of all learners and what rounding costs. The forecast of
    a learner is the mean of its posterior, so its regret is at most ln B(z_i, 1 − z_i) − ln B(z_i + S_i, 1 − z_i +
    n_i − S_i) − n_i H(S_i/n_i), which is O(log T) (Jensen: exp of minus a loss of weight at most 1 is concave in
    x); rounding x costs O(1/m²) a round up to a logarithm. KL calibration itself, `oc.measures.bregman`, is of the
    forecasts that were drawn; drawing adds noise of O(log T) a point to what is weighed. No constant is stated.

    Information
    -----------
    As `BlumMansour`.

    Source
    ------
    Luo, Senapati and Sharan 2025, "Simultaneous swap regret minimization via KL-calibration"; Blum and Mansour 2007
    (the reduction). Deviations: grid, learners and argument are ours.
    """

    deterministic, safe_under_delay, memory = False, True, "O(m)"

    m: int | str = "T^(1/3)"

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        grid = sine_grid(grid_steps("m", self.m, horizon))
        points = len(grid)
        memory = Memory(
            ints=[points // 2] + [-1] * points,
            floats=3 * points,
            shared=grid,
            scratch=points * points + 2 * points,
        )
        return CompiledForecaster(state_wishes, _learn_log, memory, size=max(2, points), grid=grid)


def sine_grid(m: int) -> Floats:
    """The m + 1 points of the docstring, symmetric about 1/2."""
    grid: Floats = np.sin(math.pi * (2.0 * np.arange(m + 1) + 1.0) / (4.0 * (m + 1))) ** 2
    return grid


@kernel
def _steps_to(grid, i, x):
    """How many steps from point i, in parts of the step where it ends, x is; which moves to the ends of the grid."""
    j = i
    while j > 0 and x < grid[j]:
        j -= 1
    while j < len(grid) - 2 and x >= grid[j + 1]:
        j += 1
    if j == len(grid) - 1:
        return 0.0
    part = (x - grid[j]) / (grid[j + 1] - grid[j])
    return j - i + min(1.0, max(0.0, part))


@learn
def _learn_log(run, number, size, drawn, outcome):
    """Every point that might have been played learns, in proportion to its weight in the law."""
    weight, bias, pull = learners(run)
    atoms, weights, grid = law_atoms(run), law_weights(run), shared(run)
    ints(run)[0] = atoms[drawn]
    for j in range(size):
        w, i = weights[j], atoms[j]
        if w == 0.0:
            break
        weight[i] += w
        bias[i] += w * (outcome - grid[i])
        pull[i] = _steps_to(grid, i, grid[i] + bias[i] / (1.0 + weight[i]))
    return 0
