"""Natures that flip coins and look at nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from onlinecal.core._compile import kernel
from onlinecal.core.columns import Column
from onlinecal.core.expressions import check_expression, depends_on_horizon, value_at
from onlinecal.core.guarantee import Forecasters, Guarantee, through
from onlinecal.core.strategy import check_number, check_probability
from onlinecal.core.streams import Stream
from onlinecal.natures.base import Nature
from onlinecal.rounds.players import CompiledNature
from onlinecal.rounds.steps import Memory, cached_uniform, context, floats, move, reveal, shared


@dataclass(frozen=True)
class Bernoulli(Nature):
    """Independent coins of one bias: q_t = q.

    Parameters
    ----------
    q : float, default 0.5
        P(y = 1), in [0, 1].

    Guarantee
    ---------
    For 0 < q < 1 every forecaster has a U-calibration, and hence a CDL, of Ω(√T): in the task with its kink at q both
    actions pay the same on average, and by chance the better one pays more in the end.

    Information
    -----------
    Sees nothing.

    Source
    ------
    Folklore; the lower bound as in Kleinberg, Paes Leme, Schneider and Teng 2023.
    """

    needs_horizon, safe_under_delay, memory = False, True, "O(1)"

    q: float = 0.5

    def __post_init__(self) -> None:
        check_probability("q", self.q)

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        return CompiledNature(_line, Memory(shared=[float(self.q), 0.0]))

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        if self.q in (0, 1):
            return ()
        source = "Kleinberg, Paes Leme, Schneider and Teng 2023"
        own = Guarantee(
            Column("measure", "u_calibration"),
            "√T",
            math.sqrt,
            "rate",
            Forecasters.EVERY,
            source,
            upper=False,
        )
        return own, through(own, "cdl")


@dataclass(frozen=True)
class Drift(Nature):
    """Coins with a bias that moves evenly from one end to the other: q_t = a + (b − a)(t − ½)/T.

    Every point of a grid of T^{1/3} steps is used for T^{2/3} rounds, so a forecaster on it pays T^{2/3}.

    Parameters
    ----------
    first, last : float, default 0 and 1
        a and b, in [0, 1].

    Information
    -----------
    Sees nothing.

    Source
    ------
    Folklore.
    """

    needs_horizon, safe_under_delay, memory = True, True, "O(1)"

    first: float = 0.0
    last: float = 1.0

    def __post_init__(self) -> None:
        check_probability("first", self.first)
        check_probability("last", self.last)

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        slope = (self.last - self.first) / horizon
        return CompiledNature(_line, Memory(shared=[self.first - 0.5 * slope, slope]))


@dataclass(frozen=True)
class Sawtooth(Nature):
    """Coins with a bias that climbs evenly from 0 to 1 and falls back at once: q_t = c − ⌊c⌋, c = cycles·(t − ½)/T.

    It repeats `Drift`: every grid point comes back in every cycle.

    Parameters
    ----------
    cycles : float or str, default 10
        How many times it climbs, from 0 (never moves) to 10^9; a number or an expression in T.

    Information
    -----------
    Sees nothing.

    Source
    ------
    Folklore.
    """

    needs_horizon, safe_under_delay, memory = True, True, "O(1)"

    cycles: float | str = 10.0

    def __post_init__(self) -> None:
        check_expression("cycles", self.cycles, 0.0, 1e9)

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        cycles = check_expression("cycles", self.cycles, 0.0, 1e9, horizon)
        return CompiledNature(_saw, Memory(shared=[cycles / horizon]))


@dataclass(frozen=True)
class Sinusoid(Nature):
    """Coins with a bias that swings: q_t = ½ + amplitude · sin(2πt/period).

    Parameters
    ----------
    period : float or str, default "T/10"
        Rounds of a full swing, from 1 to 10^12; a number or an expression in T.
    amplitude : float, default 0.5
        In [0, 1/2].

    Information
    -----------
    Sees nothing.

    Source
    ------
    Folklore.
    """

    safe_under_delay, memory = True, "O(1)"

    period: float | str = "T/10"
    amplitude: float = 0.5

    def __post_init__(self) -> None:
        check_expression("period", self.period, 1.0, 1e12)
        check_number("amplitude", self.amplitude, 0.0, 0.5)

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return depends_on_horizon(self.period)

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        # Below ten rounds T/10 is no period; one round is the shortest there is.
        period = max(1.0, value_at(self.period, horizon))
        memory = Memory(shared=[2.0 * math.pi / period, float(self.amplitude)])
        return CompiledNature(_swing, memory)


@dataclass(frozen=True)
class UniformTruth(Nature):
    """A fresh truth in every round: q_t uniform on [low, high], revealed to forecasters that ask for it.

    Parameters
    ----------
    low, high : float, default 0 and 1
        0 ≤ low ≤ high ≤ 1.

    Information
    -----------
    Sees nothing; reveals the context ``truth``, the (runs,) values of q_t.

    Source
    ------
    Błasiok, Gopalan, Hu and Nakkiran 2023, §10: the calibrated family D_1; with [0.01, 1] the truths of Hu,
    Jambulapati, Tian and Yang 2024, §6.
    """

    low: float = field(default=0.0, metadata={"key": "unless default"})
    high: float = field(default=1.0, metadata={"key": "unless default"})

    reveals: ClassVar[frozenset[str]] = frozenset({"truth"})
    needs_horizon, safe_under_delay, memory = False, True, "O(1)"

    def __post_init__(self) -> None:
        check_probability("high", self.high)
        check_number("low", self.low, 0.0, float(self.high))

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        ends = [float(self.low), float(self.high) - float(self.low)]
        memory = Memory(floats=[-1.0, 0.0, 0.0, 0.0, 0.0], shared=ends, stream=stream, context=1)
        return CompiledNature(_any, memory, reveal=_show_any, reveals=self.reveals)


@dataclass(frozen=True)
class LogisticFeatures(Nature):
    """A fresh event in every round, described by one feature: x_t uniform on [−1, 1], q_t = σ(slope · x_t)^bend.

    σ(z) = 1/(1 + e^−z). With bend = 1 logistic regression on x is the right model.

    Parameters
    ----------
    slope : float, default 4
        In [−100, 100].
    bend : float, default 1
        In [0.01, 100].

    Information
    -----------
    Sees nothing; reveals the context ``features``, the (runs,) values of x_t, and not the truth.

    Source
    ------
    The experiments of Rossellini et al. 2025, repeated in Bairaktari, Hu, Nguyen and Ullman 2026, §9. Deviations: the
    interval, the slope and the family of means.
    """

    slope: float = 4.0
    bend: float = 1.0
    reveals: ClassVar[frozenset[str]] = frozenset({"features"})
    needs_horizon, safe_under_delay, memory = False, True, "O(1)"

    def __post_init__(self) -> None:
        check_number("slope", self.slope, -100.0, 100.0)
        check_number("bend", self.bend, 0.01, 100.0)

    def start(self, horizon: int, stream: Stream) -> CompiledNature:
        memory = Memory(
            floats=[-1.0, 0.0, 0.0, 0.0, 0.0],
            shared=[float(self.slope), float(self.bend)],
            stream=stream,
            context=1,
        )
        return CompiledNature(_logistic, memory, reveal=_show_feature, reveals=self.reveals)


@move
def _line(run, number, size, forecast):
    """q_0 and the slope."""
    # The end points are in [0, 1], so only rounding could leave it.
    return min(1.0, max(0.0, shared(run)[0] + shared(run)[1] * number))


@move
def _saw(run, number, size, forecast):
    """How much it climbs a round."""
    climbed = shared(run)[0] * (number - 0.5)
    return climbed - math.floor(climbed)


@move
def _swing(run, number, size, forecast):
    """Radians a round, and the amplitude."""
    return min(1.0, max(0.0, 0.5 + shared(run)[1] * math.sin(shared(run)[0] * number)))


@kernel
def _truth(run, number):
    """Of the least truth, and how much the largest is above it."""
    # Rounding could leave [0, 1] by the upper end.
    return min(1.0, shared(run)[0] + shared(run)[1] * cached_uniform(run, number - 1, floats(run)))


@move
def _any(run, number, size, forecast):
    return _truth(run, number)


@reveal
def _show_any(run, number):
    context(run)[0] = _truth(run, number)
    return 0


@kernel
def _feature(run, number):
    return 2.0 * cached_uniform(run, number - 1, floats(run)) - 1.0


@move
def _logistic(run, number, size, forecast):
    """The slope and the bend."""
    # (1 + e^−z)^−bend; a slope of 100 is far from overflow.
    return (1.0 + math.exp(-shared(run)[0] * _feature(run, number))) ** -shared(run)[1]


@reveal
def _show_feature(run, number):
    context(run)[0] = _feature(run, number)
    return 0
