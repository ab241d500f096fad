"""The forecaster that plays the solved game."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinecal.core.columns import Column
from onlinecal.core.guarantee import Guarantee, OnGrid, Potential, Sight
from onlinecal.core.specification import Specification, allow, whole
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, law, shared, state
from onlinecal.forecasters.base import Forecaster, grid_of
from onlinecal.forecasters.hedging import point_of
from onlinecal.games.policy import longest, play, policy, slack

#: what a round may add to the value in expectation by rounding, as a share of T
ROUNDING = 1e-12


@dataclass(frozen=True)
class OfSolvedGame(Specification):
    """A player of the game on m steps that is solved when it begins."""

    needs_horizon, safe_under_delay, memory = True, True, "O(m)"
    allowed = allow(m=whole(1, 8))

    m: int = 2

    @property
    def length(self) -> int | None:
        return longest(int(self.m))

    def _solved(self, horizon: int) -> tuple[Any, Any]:
        """State and shared numbers: all m·E_i and room for `play`; the length of the tables, and the solved game."""
        solved = policy(int(self.m), horizon)
        tables = np.concatenate([[len(solved.ints)], solved.ints, solved.floats])
        return np.zeros(3 * int(self.m) + 3), tables

    def _value(self, against: Sight | OnGrid, upper: bool, potential: Potential | None = None) -> Guarantee:
        """The value of the game as a bound, with its error on the safe side; trivial in too long games."""
        m = int(self.m)

        def bound(horizon: float) -> float:
            if horizon > longest(m):
                return float(horizon) if upper else 0.0
            solved = policy(m, int(horizon))
            return solved.value + solved.error if upper else solved.value - solved.error

        column, formula = Column("measure", "ece"), f"V_T, the value of the game on {m} steps"
        return Guarantee(
            column, formula, bound, "expected", against, "onlinecal.games",
            upper=upper, slack=slack, potential=potential,
        )  # fmt: skip


@dataclass(frozen=True)
class Minimax(OfSolvedGame, Forecaster):
    r"""Plays optimally for total ECE on a grid: no forecaster on it pays less against its worst nature.

    With biases E and r rounds left it states the law that attains V_r(E) = min_w max_y Σ_i w_i V_{r−1}(E + (y − i/m)
    e_i), V_0(E) = Σ |E_i|. The game is solved when it begins.

    Guarantee: E[T·ECE] ≤ V_T(0), the value of the game (`onlinecal solve`), against natures that see the law. No
    forecaster on this grid has a smaller bound. V moves by at most 1 a round. So the mean of N runs exceeds it by √(2T
    ln(1/δ)/N) with probability δ at most (Azuma).

    Information: O(m²) time a round. All runs share tables of the values of all states: some seconds and 100 MB at most.

    Parameters
    ----------
    m : int, default 2
        Steps of the grid 0, 1/m, …, 1, from 1 to 8. Each has a longest game: `length`.
    """

    deterministic = False

    m: int = 2

    def steps_at(self, horizon: int) -> int | None:
        return int(self.m)

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return steps.Forecaster(
            say_optimally, count_bias, *self._solved(horizon), size=2, grid=grid_of(int(self.m))
        )

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        m = int(self.m)

        def value(gamma: Any, horizon: int) -> float:
            places = np.rint(m * gamma.predictions).astype(int)
            biases = np.zeros(m + 1, np.int64)
            np.add.at(biases, places, np.rint(m * gamma.positives - places * gamma.counts).astype(np.int64))
            return policy(m, int(horizon)).value_at(biases, int(horizon - round(gamma.weight)))

        potential = Potential(value, lambda gamma, v, horizon: ROUNDING * horizon)
        return (self._value(Sight.LAW, True, potential),)


@kernel
def play_solved(run, number):
    """The play of a round: the two points of the law, the share of the first, nature's q."""
    mine, given = state(run), shared(run)
    points, tables = len(mine) // 3, 1 + int(given[0])
    return play(given[1:tables], given[tables:], number, mine[:points], mine[points:])


def say_optimally(run: Run, number: int) -> int:
    """The state is m·E_0, …, m·E_m of the rounds that are known, and room; shared is the solved game."""
    (values, weights), m = law(run), len(state(run)) // 3 - 1
    low, high, share, _ = play_solved(run, number)
    values[0], values[1], weights[0], weights[1] = low / m, high / m, share, 1.0 - share
    return 1 if low == high else 2


def count_bias(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    bias, m = state(run), len(state(run)) // 3 - 1
    i = point_of(forecast, m)
    bias[i] += m * outcome - i
    bias[m + 1 :] = 0.0  # the room is no part of the state
    return 0
