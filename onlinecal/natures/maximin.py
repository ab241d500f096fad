"""The nature that plays the solved game."""

import math
from dataclasses import dataclass

from onlinecal.core.guarantee import Guarantee, OnGrid, Sight
from onlinecal.core.streams import Stream
from onlinecal.engine2 import steps as new
from onlinecal.exact.policy import play
from onlinecal.forecasters.minimax import OfSolvedGame, count_bias, play_solved
from onlinecal.natures.base import Nature
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.steps import hear, ints, move, scratch, shared, shared_ints


@dataclass(frozen=True)
class Maximin(OfSolvedGame, Nature):
    r"""Plays optimally for total ECE against forecasters on a grid, which pay the value of the game at least.

    With biases E and r rounds left it states the q that attains V_r(E) = max_q min_i (1 − q) V_{r−1}(E − (i/m) e_i) +
    q V_{r−1}(E + (1 − i/m) e_i), V_0(E) = Σ |E_i|. It is counted as if forecasts off the grid were their nearest point
    on it. The game is solved when it begins.

    Guarantee: E[T·ECE] ≥ V_T(0), the value of the game (`onlinecal solve`), for every forecaster on 0, 1/m, …, 1, also
    for one that knows this rule. No nature that sees at most the law can force more on all of them. Forecasts between
    the points can cost less.

    Information: Sees HISTORY. O(m²) time a round. All runs share tables of the values of all states, which take some
    seconds and 100 MB at most.

    Parameters
    ----------
    m : int, default 2
        Steps of the grid 0, 1/m, …, 1, from 1 to 8. Each has a longest game: `length`.
    """

    sight = Sight.HISTORY

    m: int = 2

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        return CompiledNature(_mix, self._memory(horizon), sight=self.sight, hear=_note)

    def begin(self, horizon: int, stream: Stream) -> new.Nature:
        return new.Nature(mix_optimally, *self._solved(horizon), sight=self.sight, hear=count_bias)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return (self._value(OnGrid(int(self.m)), False),)


def mix_optimally(run: new.Run, size: int, forecast: float, number: int) -> float:
    """The state is all m·E_i of the rounds that are known, and room."""
    _, _, _, q = play_solved(run, number)
    return float(q)


@move
def _mix(run, number, size, forecast):
    """The state is m·E_0, …, m·E_m of the rounds that are known."""
    return play(shared_ints(run), shared(run), number, ints(run), scratch(run))[3]


@hear
def _note(run, number, size, forecast, outcome):
    bias = ints(run)
    m = len(bias) - 1
    i = math.floor(forecast * m + 0.5)
    bias[i] += m * outcome - i
    return 0
