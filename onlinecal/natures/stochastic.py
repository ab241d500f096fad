"""Natures that flip coins, and never look at the forecast."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import check_expression, depends_on_horizon, grid_steps, value_at
from onlinecal.core.guarantee import Forecasters, Guarantee, Sight, through
from onlinecal.core.specification import UNIT, allow, expression, number, tuned
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, note, own_uniform, shared, state
from onlinecal.natures.adaptive import keep_bias
from onlinecal.natures.base import ENDS, Nature


@dataclass(frozen=True)
class Bernoulli(Nature):
    """Independent coins of one bias: q_t = q.

    Guarantee: For 0 < q < 1 every forecaster has a U-calibration, and hence a CDL, of Ω(√T). In the task with its kink
    at q both actions pay the same on average, and one more by chance.

    Source: Folklore; the lower bound as in Kleinberg, Paes Leme, Schneider and Teng 2023.

    Parameters
    ----------
    q : float, default 0.5
        P(y = 1), in [0, 1].
    """

    needs_horizon, safe_under_delay, memory = False, True, "O(1)"
    allowed = allow(q=UNIT)

    q: float = 0.5

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        return steps.Nature(line, shared=[float(self.q), 0.0])

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        if self.q in (0, 1):
            return ()
        source, column = "Kleinberg, Paes Leme, Schneider and Teng 2023", Column("measure", "u_calibration")
        own = Guarantee(column, "√T", math.sqrt, "rate", Forecasters.EVERY, source, upper=False)
        return own, through(own, "cdl")


@dataclass(frozen=True)
class Drift(Nature):
    """Coins with a bias that moves evenly from one end to the other: q_t = a + (b − a)(t − ½)/T.

    Every point of a grid of T^{1/3} steps is used for T^{2/3} rounds, so a forecaster on it pays T^{2/3}.

    Parameters
    ----------
    first, last : float, default 0 and 1
        a and b, in [0, 1]. In tables also ``from`` and ``to``.
    """

    needs_horizon, safe_under_delay, memory = True, True, "O(1)"
    allowed = allow(first=UNIT, last=UNIT)
    synonyms = ENDS

    first: float = 0.0
    last: float = 1.0

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        slope = (self.last - self.first) / horizon
        return steps.Nature(line, shared=[self.first - 0.5 * slope, slope])


def line(run: Run, size: int, forecast: float, number: int) -> float:
    """Shared are q_0 and the slope."""
    # The end points are in [0, 1], so only rounding could leave it.
    return min(1.0, max(0.0, shared(run)[0] + shared(run)[1] * number))


@dataclass(frozen=True)
class Sawtooth(Nature):
    """Coins with a bias that climbs evenly from 0 to 1 and falls back at once: q_t = c − ⌊c⌋, c = cycles·(t − ½)/T.

    It repeats `Drift`: every grid point comes back in every cycle.

    Parameters
    ----------
    cycles : float or str, default 10
        How many times it climbs, in [0, 10^9]; at 0 it never moves. A number or an expression in T.
    """

    needs_horizon, safe_under_delay, memory = True, True, "O(1)"
    allowed = allow(cycles=expression(0.0, 1e9))

    cycles: float | str = 10.0

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        cycles = check_expression("cycles", self.cycles, 0.0, 1e9, horizon)
        return steps.Nature(climb, shared=[cycles / horizon])


def climb(run: Run, size: int, forecast: float, number: int) -> float:
    """Shared is how much it climbs a round."""
    climbed = shared(run)[0] * (number - 0.5)
    return climbed - math.floor(climbed)


@dataclass(frozen=True)
class Sinusoid(Nature):
    """Coins with a bias that swings: q_t = ½ + amplitude · sin(2πt/period).

    Parameters
    ----------
    period : float or str, default "T/10"
        Rounds of a full swing, from 1 to 10^12; a number or an expression in T.
    amplitude : float, default 0.5
        In [0, 1/2].
    """

    safe_under_delay, memory = True, "O(1)"
    needs_horizon = tuned("period")
    allowed = allow(period=expression(1.0, 1e12), amplitude=number(0.0, 0.5))

    period: float | str = "T/10"
    amplitude: float = 0.5

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        # Below ten rounds T/10 is no period; one round is the shortest there is.
        period = max(1.0, value_at(self.period, horizon))
        return steps.Nature(swing, shared=[2.0 * math.pi / period, float(self.amplitude)])


def swing(run: Run, size: int, forecast: float, number: int) -> float:
    """Shared are radians a round, and the amplitude."""
    return min(1.0, max(0.0, 0.5 + shared(run)[1] * math.sin(shared(run)[0] * number)))


@dataclass(frozen=True)
class UniformTruth(Nature):
    """A fresh truth in every round: q_t uniform on [low, high], revealed as the context ``truth``.

    Source: Błasiok, Gopalan, Hu and Nakkiran 2023, §10: the calibrated family D_1; with [0.01, 1] the truths of Hu,
    Jambulapati, Tian and Yang 2024, §6.

    Parameters
    ----------
    low, high : float, default 0 and 1
        0 ≤ low ≤ high ≤ 1.
    """

    low: float = field(default=0.0, metadata={"key": "unless default"})
    high: float = field(default=1.0, metadata={"key": "unless default"})

    reveals: ClassVar[frozenset[str]] = frozenset({"truth"})
    needs_horizon, safe_under_delay, memory = False, True, "O(1)"
    allowed = allow(high=UNIT)

    def __post_init__(self) -> None:
        super().__post_init__()
        number(0.0, float(self.high))("low", self.low)

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        ends = [float(self.low), float(self.high) - float(self.low)]
        return steps.Nature(
            move_truth, shared=ends, reveal=reveal_truth, reveals={0: "truth"}, note=1, stream=stream
        )


@kernel
def truth(run, number):
    """Shared are the least truth, and how much the largest is above it."""
    # Rounding could leave [0, 1] by the upper end.
    return min(1.0, shared(run)[0] + shared(run)[1] * own_uniform(run, number - 1))


def move_truth(run: Run, size: int, forecast: float, number: int) -> float:
    return truth(run, number)


def reveal_truth(run: Run, number: int) -> int:
    note(run)[0] = truth(run, number)
    return 0


@dataclass(frozen=True)
class LogisticFeatures(Nature):
    """A fresh event in every round, described by one feature: x_t uniform on [−1, 1], q_t = σ(slope · x_t)^bend.

    σ(z) = 1/(1 + e^−z). With bend = 1 logistic regression on x is the right model.

    Information: Sees nothing; reveals the context ``features``, the (runs,) values of x_t, and not the truth.

    Source: The experiments of Rossellini et al. 2025, repeated in Bairaktari, Hu, Nguyen and Ullman 2026, §9.
    Deviations: the interval, the slope and the family of means.

    Parameters
    ----------
    slope : float, default 4
        In [−100, 100].
    bend : float, default 1
        In [0.01, 100].
    """

    slope: float = 4.0
    bend: float = 1.0
    reveals: ClassVar[frozenset[str]] = frozenset({"features"})
    needs_horizon, safe_under_delay, memory = False, True, "O(1)"
    allowed = allow(slope=number(-100.0, 100.0), bend=number(0.01, 100.0))

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        return steps.Nature(
            move_logistic, shared=[float(self.slope), float(self.bend)], reveal=reveal_feature,
            reveals={0: "features"}, note=1, stream=stream,
        )  # fmt: skip


@kernel
def feature(run, number):
    return 2.0 * own_uniform(run, number - 1) - 1.0


def move_logistic(run: Run, size: int, forecast: float, number: int) -> float:
    """Shared are the slope and the bend."""
    # (1 + e^−z)^−bend; a slope of 100 is far from overflow.
    return (1.0 + math.exp(-shared(run)[0] * feature(run, number))) ** -shared(run)[1]


def reveal_feature(run: Run, number: int) -> int:
    note(run)[0] = feature(run, number)
    return 0


@dataclass(frozen=True)
class RandomWalk(Nature):
    """Coins with a bias that wanders: the logit of q_t goes up or down by `step`, each with probability 1/2.

    Where a step would leave [`edge`, 1 − `edge`], the logit is reflected there.

    Parameters
    ----------
    step : float or str, default 0.05
        In [1e-12, 4]; a number or an expression in T.
    first : float, default 0.5
        The bias before the first step, in [edge, 1 − edge].
    edge : float, default 0.01
        In [1e-9, 0.1].
    """

    safe_under_delay, memory = True, "O(1)"
    needs_horizon = tuned("step")
    allowed = allow(step=expression(1e-12, 4.0), edge=number(1e-9, 0.1))

    step: float | str = 0.05
    first: float = 0.5
    edge: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        number(self.edge, 1.0 - self.edge)("first", self.first)

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        step = check_expression("step", self.step, 1e-12, 4.0, horizon)
        return steps.Nature(walk, [_logit(self.first)], [step, -_logit(self.edge)], stream=stream)


def walk(run: Run, size: int, forecast: float, number: int) -> float:
    """The state is the logit; shared are the step and where it is reflected."""
    step, end = shared(run)[0], shared(run)[1]
    here = state(run)[0] + (step if own_uniform(run, number - 1) < 0.5 else -step)
    if here > end:
        here = 2.0 * end - here
    elif here < -end:
        here = -2.0 * end - here
    state(run)[0] = here
    return 1.0 / (1.0 + math.exp(-here))


def _logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)


@dataclass(frozen=True)
class Piecewise(Nature):
    """Coins of one bias for a while, then of another: every piece has a fresh bias, uniform on [0, 1].

    Parameters
    ----------
    segments : int or str, optional
        Pieces of equal length, the same in all runs; rounded up, a number or an expression in T. Default: 10, unless a
        change rate is given.
    change_rate : float or str, optional
        Instead: in each run a new piece begins in each round with this probability. In [0, 1], a number or an
        expression in T such as ``"10/T"``.
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

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        pieces, rate = 0, 0.0
        if self.change_rate is not None:
            rate = check_expression("change_rate", self.change_rate, 0.0, 1.0, horizon)
        else:
            pieces = grid_steps("segments", self._pieces, horizon)
        return steps.Nature(piece, [0.0], [pieces, horizon, rate], stream=stream)


def piece(run: Run, size: int, forecast: float, number: int) -> float:
    """The state is the bias of the piece."""
    bias, given = state(run), shared(run)
    pieces, horizon, rate = int(given[0]), int(given[1]), given[2]
    t, u = number - 1, own_uniform(run, number - 1)
    if t == 0 or t * pieces // horizon != (t - 1) * pieces // horizon:
        bias[0] = u
    elif u < rate:
        bias[0] = u / rate  # given the change, again uniform on [0, 1)
    return bias[0]


@dataclass(frozen=True)
class Markov(Nature):
    """Outcomes that remember the last one: q_t = p01 after an outcome 0, and 1 − p10 after an outcome 1.

    Information: Sees HISTORY, because q_t depends on y_{t−1}, which the engine draws; it does not look at the
    forecasts. q_1 is the stationary probability p01/(p01 + p10), 1/2 if both are 0.

    Parameters
    ----------
    p01, p10 : float, default 0.1 and 0.1
        Probabilities of going from 0 to 1 and from 1 to 0, in [0, 1].
    """

    p01: float = 0.1
    p10: float = 0.1
    sight = Sight.HISTORY
    needs_horizon, safe_under_delay, memory = False, True, "O(1)"
    allowed = allow(p01=UNIT, p10=UNIT)

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        total = self.p01 + self.p10
        first = self.p01 / total if total > 0.0 else 0.5
        return steps.Nature(
            keep_bias, [first], [float(self.p01), 1.0 - self.p10], sight=self.sight, hear=follow_outcome
        )


def follow_outcome(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    """Shared is q after each outcome."""
    state(run)[0] = shared(run)[outcome]
    return 0
