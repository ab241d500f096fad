"""Baselines of games of K classes."""

from dataclasses import dataclass

from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, law, shared, state
from onlinecal.forecasters._simplex import rank_of, round_whole
from onlinecal.forecasters.base import OnSimplex


@dataclass(frozen=True)
class ClassMean(OnSimplex):
    """Says the shares of the classes so far, (n_k + ½)/(t − 1 + K/2), rounded to the grid 1/m of the simplex.

    Rounding is down, and the steps that are left go to the largest remainders, of equal ones to the first classes.

    Source: Krichevsky and Trofimov 1981, for the ½. Largest remainders: Hamilton's method of apportionment.

    Parameters
    ----------
    m : int or str, optional
        Steps of the grid: a number or an expression in T. Default: √T, or fewer where that has more than 10^5 points.
    """

    deterministic, safe_under_delay, memory = True, True, "O(classes)"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        k = self.classes
        return steps.Forecaster(
            say_shares, count_classes, [0.0] * 3 * k, [self.steps_at(horizon)], table=self.table_at(horizon)
        )


def say_shares(run: Run, number: int) -> int:
    """The state is how often each class came, and room for twice as many numbers."""
    k, (values, weights) = len(state(run)) // 3, law(run)
    counts, doubled, parts = state(run)[:k], state(run)[k : 2 * k], state(run)[2 * k :]
    for y in range(k):
        doubled[y] = 2.0 * counts[y] + 1.0
    round_whole(doubled, int(shared(run)[0]), parts)
    values[0], weights[0] = rank_of(parts), 1.0
    return 1


def count_classes(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    state(run)[outcome] += 1.0
    return 0
