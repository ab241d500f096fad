"""Natures with coins that change at random, and never look at the forecast."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import check_expression, depends_on_horizon, grid_steps
from onlinecal.core.strategy import check_number, check_probability
from onlinecal.core.streams import Stream
from onlinecal.natures.base import Nature, Sight
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.steps import Memory, cached_uniform, floats, hear, move, shared, shared_ints


@dataclass(frozen=True)
class RandomWalk(Nature):
    """Coins with a bias that wanders: the logit of q_t goes up or down by `step`, each with probability 1/2.

    Where a step would leave [`edge`, 1 − `edge`], the logit is reflected there.

    Parameters
    ----------
    step : float or str, default 0.05
        In (0, 4]; a number or an expression in T.
    first : float, default 0.5
        The bias before the first step, in [edge, 1 − edge].
    edge : float, default 0.01
        In [1e-9, 0.1].

    Information
    -----------
    Sees nothing. Each run has a walk of its own, one number of state.

    Source
    ------
    Folklore.
    """

    safe_under_delay, memory = True, "O(1)"

    step: float | str = 0.05
    first: float = 0.5
    edge: float = 0.01

    def __post_init__(self) -> None:
        check_expression("step", self.step, 1e-12, 4.0)
        check_number("edge", self.edge, 1e-9, 0.1)
        check_number("first", self.first, self.edge, 1.0 - self.edge)

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return depends_on_horizon(self.step)

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        step = check_expression("step", self.step, 1e-12, 4.0, horizon)
        memory = Memory(
            floats=[_logit(self.first), -1.0, 0.0, 0.0, 0.0, 0.0],
            shared=[step, -_logit(self.edge)],
            stream=stream,
        )
        return CompiledNature(_walk, memory)


@move
def _walk(run, number, size, forecast):
    """The logit is the first number of the state."""
    state, step, end = floats(run), shared(run)[0], shared(run)[1]
    here = state[0] + (step if cached_uniform(run, number - 1, state[1:]) < 0.5 else -step)
    if here > end:
        here = 2.0 * end - here
    elif here < -end:
        here = -2.0 * end - here
    state[0] = here
    return 1.0 / (1.0 + math.exp(-here))


@dataclass(frozen=True)
class Piecewise(Nature):
    """Coins of one bias for a while, then of another: every piece has a fresh bias, uniform on [0, 1].

    Parameters
    ----------
    segments : int or str, optional
        The horizon is cut into this many pieces of equal length (up to a round), the same in all runs; rounded up, a
        number or an expression in T. Default: 10, unless a change rate is given.
    change_rate : float or str, optional
        Instead: a new piece begins in each round with this probability, in each run for itself; in [0, 1], a number
        or an expression in T such as ``"10/T"``.

    Information
    -----------
    Sees nothing. Each run has biases of its own, one number of state.

    Source
    ------
    Folklore.
    """

    safe_under_delay, memory = True, "O(1)"

    segments: int | str | None = None
    change_rate: float | str | None = None

    def __post_init__(self) -> None:
        if self.segments is not None and self.change_rate is not None:
            raise InvalidParameter(
                f"segments = {self.segments!r} and change_rate = {self.change_rate!r}; expected one of the two"
            )
        if self.change_rate is not None:
            check_expression("change_rate", self.change_rate, 0.0, 1.0)
        else:
            grid_steps("segments", self._pieces, 1_000_000)

    @property
    def _pieces(self) -> int | str:
        return 10 if self.segments is None else self.segments

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return self.change_rate is None or depends_on_horizon(self.change_rate)

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        if self.change_rate is not None:
            rate = check_expression("change_rate", self.change_rate, 0.0, 1.0, horizon)
            pieces = 0
        else:
            pieces, rate = grid_steps("segments", self._pieces, horizon), 0.0
        memory = Memory(
            floats=[0.0, -1.0, 0.0, 0.0, 0.0, 0.0],
            shared_ints=[pieces, horizon],
            shared=[rate],
            stream=stream,
        )
        return CompiledNature(_piece, memory)


@move
def _piece(run, number, size, forecast):
    """The bias of the piece is the first number of the state."""
    state, pieces, horizon, rate = floats(run), shared_ints(run)[0], shared_ints(run)[1], shared(run)[0]
    t, u = number - 1, cached_uniform(run, number - 1, state[1:])
    if t == 0 or t * pieces // horizon != (t - 1) * pieces // horizon:
        state[0] = u
    elif u < rate:
        state[0] = u / rate  # given the change, again uniform on [0, 1)
    return state[0]


@dataclass(frozen=True)
class Markov(Nature):
    """Outcomes that remember the last one: q_t = p01 after an outcome 0, and 1 − p10 after an outcome 1.

    Parameters
    ----------
    p01, p10 : float, default 0.1 and 0.1
        Probabilities of going from 0 to 1 and from 1 to 0, in [0, 1].

    Information
    -----------
    Sees HISTORY, because q_t depends on y_{t−1}, which the engine draws; it does not look at the forecasts. q_1 is the
    stationary probability p01/(p01 + p10), 1/2 if both are 0.

    Source
    ------
    Folklore.
    """

    p01: float = 0.1
    p10: float = 0.1
    sight = Sight.HISTORY
    needs_horizon, safe_under_delay, memory = False, True, "O(1)"

    def __post_init__(self) -> None:
        check_probability("p01", self.p01)
        check_probability("p10", self.p10)

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        total = self.p01 + self.p10
        first = self.p01 / total if total > 0.0 else 0.5
        memory = Memory(floats=[first], shared=[float(self.p01), 1.0 - self.p10])
        return CompiledNature(_stay, memory, sight=self.sight, hear=_follow)


@move
def _stay(run, number, size, forecast):
    """q is the state."""
    return floats(run)[0]


@hear
def _follow(run, number, size, forecast, outcome):
    floats(run)[0] = shared(run)[outcome]
    return 0


def _logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)
