"""Baselines and negative controls: what every other forecaster is held against."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onlinecal.core.specification import UNIT, allow, number
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, law, note, shared, state
from onlinecal.forecasters.base import Forecaster, OnGrid, grid_of


@kernel
def write_value(run, value):
    """The law of one value; as a step's result."""
    values, weights = law(run)
    values[0], weights[0] = value, 1.0
    return 1


@kernel
def write_pair(run, m, low, share):
    """The law of weight `share` on the point `low` of m steps and the rest on the next; as a step's result."""
    values, weights = law(run)
    values[0], values[1] = low / m, (low + 1) / m
    weights[0], weights[1] = share, 1.0 - share
    return 2


def count_outcomes(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    """The state is how many rounds there were, and how many outcomes 1."""
    counts = state(run)
    counts[0] += 1
    counts[1] += outcome
    return 0


def learn_nothing(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    return 0


@dataclass(frozen=True)
class Constant(Forecaster):
    """Says the same probability in every round.

    Parameters
    ----------
    p : float, default 0.5
        The forecast, in [0, 1].
    """

    deterministic, needs_horizon, safe_under_delay, memory = True, False, True, "O(1)"
    allowed = allow(p=UNIT)

    p: float = 0.5

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return steps.Forecaster(
            say_all, learn_nothing, shared=[float(self.p)], grid=np.array([float(self.p)])
        )


@dataclass(frozen=True)
class UniformRandom(OnGrid):
    """Says anything: every point of the grid 0, 1/m, …, 1 with the same probability.

    Parameters
    ----------
    m : int or str, default 10
        Steps of the grid, rounded up; a number or an expression in T.
    """

    deterministic, safe_under_delay, memory = False, True, "O(m)"

    m: int | str = 10

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        grid = grid_of(self.steps_at(horizon))
        return steps.Forecaster(say_all, learn_nothing, shared=grid, size=len(grid), grid=grid)


def say_all(run: Run, number: int) -> int:
    """All shared numbers, with the same weight."""
    points, (values, weights) = shared(run), law(run)
    for i in range(len(points)):
        values[i], weights[i] = points[i], 1.0 / len(points)
    return len(points)


@dataclass(frozen=True)
class LastOutcome(Forecaster):
    """Says that what happened last happens again: p_t = y_{t−1}, and 1/2 in the first round."""

    deterministic, needs_horizon, safe_under_delay, memory = True, False, True, "O(1)"

    def steps_at(self, horizon: int) -> int | None:
        return 2

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return steps.Forecaster(say_last, keep_last, state=[0.5], grid=np.array([0.0, 0.5, 1.0]))


def say_last(run: Run, number: int) -> int:
    """The state is the forecast."""
    return write_value(run, state(run)[0])


def keep_last(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    state(run)[0] = outcome
    return 0


@dataclass(frozen=True)
class EmpiricalMean(Forecaster):
    """Says the mean of the outcomes so far: p_t = (ones + a) / (t − 1 + 2a).

    Source: Laplace 1814; Krichevsky and Trofimov 1981.

    Parameters
    ----------
    prior : float, default 1.0
        a, in [0, 10^6], the pseudo-count of each outcome: 1 is Laplace's rule of succession, 1/2 the
        Krichevsky–Trofimov estimator. With 0 the first forecast is 1/2.
    """

    deterministic, needs_horizon, safe_under_delay, memory = True, False, True, "O(1)"
    allowed = allow(prior=number(0.0, 1e6))

    prior: float = 1.0

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return steps.Forecaster(say_mean, count_outcomes, state=[0, 0], shared=[float(self.prior)])


def say_mean(run: Run, number: int) -> int:
    """The state is that of `count_outcomes`; shared is a."""
    rounds, ones, prior = state(run)[0], state(run)[1], shared(run)[0]
    total = rounds + 2.0 * prior
    return write_value(run, (ones + prior) / total if total > 0.0 else 0.5)


@dataclass(frozen=True)
class OfContext(Forecaster):
    """A forecaster that says a function of one number of context, and learns nothing."""

    deterministic, needs_horizon, safe_under_delay, memory = True, False, True, "O(1)"

    def _saying(self, say: Any, *numbers: float) -> steps.Forecaster:
        """A player with this step, which finds the context in its note and these numbers shared."""
        (kind,) = self.needs
        return steps.Forecaster(say, learn_nothing, shared=numbers, note=1, needs={0: kind})


@dataclass(frozen=True)
class Truthful(OfContext):
    """Says nature's own q_t, where nature reveals it (context ``truth``).

    Guarantee: None proved for a single sequence; in the limit it is calibrated by the law of large numbers.

    Source: Błasiok, Gopalan, Hu and Nakkiran 2023, §10: the family D_1.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"truth"})

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return self._saying(say_tempered, 1.0)


@dataclass(frozen=True)
class Tempered(OfContext):
    """Says q^β/(q^β + (1 − q)^β) of nature's q_t (context ``truth``).

    Source: Błasiok, Gopalan, Hu and Nakkiran 2023, §10: the family D_β.

    Parameters
    ----------
    beta : float, default 2.0
        β in [0, 1000]: above 1 too sure of itself, below 1 too timid, 1 truthful.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"truth"})
    allowed = allow(beta=number(0.0, 1000.0))

    beta: float = 2.0

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return self._saying(say_tempered, self.beta)


def say_tempered(run: Run, number: int) -> int:
    q, beta = note(run)[0], shared(run)[0]
    if beta == 1.0:
        return write_value(run, q)
    # The smaller of the two over the larger: no overflow, and 0 and 1 stay themselves.
    if q <= 0.5:
        odds = (q / (1.0 - q)) ** beta
        return write_value(run, odds / (1.0 + odds))
    odds = ((1.0 - q) / q) ** beta
    return write_value(run, 1.0 / (1.0 + odds))


@dataclass(frozen=True)
class Shifted(OfContext):
    """Says nature's q_t (context ``truth``) with the same amount added; no more than 1 and no less than 0.

    Source: Hu, Jambulapati, Tian and Yang 2024, §6: −0.01, beside truths that are uniform on [0.01, 1].

    Parameters
    ----------
    by : float, default 0.1
        In [−1, 1].
    """

    needs: ClassVar[frozenset[str]] = frozenset({"truth"})
    allowed = allow(by=number(-1.0, 1.0))

    by: float = 0.1

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return self._saying(say_shifted, self.by)


def say_shifted(run: Run, number: int) -> int:
    return write_value(run, min(1.0, max(0.0, note(run)[0] + shared(run)[0])))


@dataclass(frozen=True)
class Logistic(OfContext):
    """Says σ(slope · x_t + intercept) of nature's x_t (context ``features``): a logistic regression.

    σ(z) = 1/(1 + e^−z).

    Source: Rossellini et al. 2025; Bairaktari, Hu, Nguyen and Ullman 2026, §9. Deviations: coefficients are given, not
    fitted.

    Parameters
    ----------
    slope, intercept : float, default 1.0 and 0.0
        In [−1000, 1000].
    """

    needs: ClassVar[frozenset[str]] = frozenset({"features"})
    allowed = allow(slope=number(-1000.0, 1000.0), intercept=number(-1000.0, 1000.0))

    slope: float = 1.0
    intercept: float = 0.0

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return self._saying(say_logistic, self.slope, self.intercept)


def say_logistic(run: Run, number: int) -> int:
    z = shared(run)[0] * note(run)[0] + shared(run)[1]
    # Of the number that is not positive: no overflow.
    small = math.exp(-abs(z))
    return write_value(run, 1.0 / (1.0 + small) if z >= 0.0 else small / (1.0 + small))


@dataclass(frozen=True)
class Unchanged(OfContext):
    """Says the base forecast as it is (context ``base``): what every recalibration is to be held against."""

    needs: ClassVar[frozenset[str]] = frozenset({"base"})

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return self._saying(say_tempered, 1.0)
