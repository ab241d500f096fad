"""The nature that plays the solved game."""

from dataclasses import dataclass

from onlinecal.core.guarantee import Guarantee, OnGrid, Sight
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run
from onlinecal.forecasters.minimax import OfSolvedGame, count_bias, play_solved
from onlinecal.natures.base import Nature


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

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        return steps.Nature(mix_optimally, *self._solved(horizon), sight=self.sight, hear=count_bias)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return (self._value(OnGrid(int(self.m)), False),)


def mix_optimally(run: Run, size: int, forecast: float, number: int) -> float:
    """The state is that of `say_optimally`."""
    _, _, _, q = play_solved(run, number)
    return float(q)
