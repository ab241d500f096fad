"""Forecasters that recalibrate a base forecast, which is given to them as context."""

import math
from dataclasses import dataclass
from typing import ClassVar

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import cell, cells
from onlinecal.core.specification import allow, number, whole
from onlinecal.core.streams import Stream
from onlinecal.engine2 import steps as new
from onlinecal.forecasters.base import Forecaster
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.steps import (
    Memory,
    context,
    floats,
    ints,
    law,
    law_values,
    law_weights,
    learn,
    memo,
    shared,
)


@dataclass(frozen=True)
class Calibeating(Forecaster):
    """Says the mean of b, the base forecast (context ``base``), and of the outcomes so far in its bin.

    Guarantee: For every sequence its Brier total is at most the base forecast's refinement plus `bins`·(1 + ln T). So
    it beats the base by the base's calibration error. The refinement is the Brier total if each bin says its own mean
    in hindsight. The bound depends on the base and so is not one of the table's. It says 0 or 1 only where the base
    does. Proof: docs/proofs.md.

    Source: Foster and Hart 2023, "Calibeating: beating forecasters at their own game", Theorem 3. Deviations: b as an
    imagined outcome. Without it 0 or 1 would be said after the first outcomes of a bin, at an infinite log loss.

    Parameters
    ----------
    bins : int, default 20
        Equal-width bins [a, b) of the base forecast, the last one closed; 1 to 10^6.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"base"})
    deterministic, needs_horizon, safe_under_delay, memory = True, False, True, "O(bins)"
    version: ClassVar[int] = 3
    allowed = allow(bins=whole(1, 10**6))

    bins: int = 20

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        memory = Memory(ints=2 * self.bins, context=1)
        return CompiledForecaster(_beat, _learn_bin, memory, size=1, needs=self.needs)

    def begin(self, horizon: int, stream: Stream) -> new.Forecaster:
        return new.Forecaster(say_bin_mean, learn_bin, [0.0] * (2 * self.bins), note=1, needs={0: "base"})


#: the same as `cells`, of one number in a step
cell_of = new.kernel(cells)


@new.kernel
def bin_of(bins, forecast):
    """The bin of a forecast among equal ones, [a, b) but for the last."""
    return min(cell_of(forecast, bins), bins - 1)


@new.kernel
def mean_in_bin(counts, forecast):
    """The mean outcome so far in the forecast's bin, the forecast as one more; only 0 and 1 are rounded to 0 and 1.

    `counts` are the rounds of each bin, then the outcomes 1.
    """
    bins = len(counts) // 2
    j = bin_of(bins, forecast)
    mean = (counts[bins + j] + forecast) / (counts[j] + 1)
    return min(max(mean, 5e-324), 1.0 - 2.0**-53) if 0.0 < forecast < 1.0 else mean


@new.kernel
def count_in_bin(counts, forecast, outcome):
    """Counts the round in the forecast's bin, and the outcome if it is 1."""
    bins = len(counts) // 2
    j = bin_of(bins, forecast)
    counts[j] += 1
    counts[bins + j] += outcome


def say_bin_mean(run: new.Run, number: int) -> int:
    values, weights = new.law(run)
    values[0], weights[0] = mean_in_bin(new.state(run), new.note(run)[0]), 1.0
    return 1


def learn_bin(run: new.Run, place: int, forecast: float, outcome: int, number: int) -> int:
    count_in_bin(new.state(run), new.note(run)[0], outcome)
    return 0


@kernel
def _bin_mean(state, forecast):
    """The mean outcome so far in the forecast's bin, the forecast as one more; only 0 and 1 are rounded to 0 and 1."""
    bins = len(state) // 2
    j = min(cell(forecast, bins), bins - 1)
    mean = (state[bins + j] + forecast) / (state[j] + 1)
    return min(max(mean, 5e-324), 1.0 - 2.0**-53) if 0.0 < forecast < 1.0 else mean


@kernel
def _count_bin(state, forecast, outcome):
    bins = len(state) // 2
    j = min(cell(forecast, bins), bins - 1)
    state[j] += 1
    state[bins + j] += outcome


@law
def _beat(run, number):
    law_values(run)[0], law_weights(run)[0] = _bin_mean(ints(run), context(run)[0]), 1.0
    return 1


@learn
def _learn_bin(run, number, size, drawn, outcome):
    _count_bin(ints(run), context(run)[0], outcome)
    return 0


_PLATT = {
    "rate": number(1e-9, 10.0),
    "ridge": number(1e-6, 1e6),
    "radius": number(1.0, 1e6),
    "edge": number(1e-12, 0.25),
}


@dataclass(frozen=True)
class OnlinePlatt(Forecaster):
    r"""Online Platt scaling: p = sigmoid(a·logit(b) + c) of the base forecast b (context ``base``).

    θ = (a, c) starts at (1, 0). Online Newton steps after y with gradient g = (p − y)(logit b, 1): A ← A + g gᵀ, θ ← θ
    − A⁻¹g/γ. Then the nearest point of the disc ‖θ‖ ≤ radius in the norm of A.

    Guarantee: Let X = ln((1 − edge)/edge), the largest logit, and Z = radius·√(1 + X²), the largest |a·logit b + c|.
    Let γ ≤ e^{−Z}, `largest_rate`. For every sequence the logarithmic loss is at most that of any scaling θ* + (1/γ)
    ln(1 + (1 + X²)T/(2·ridge)) + γ·ridge·‖θ* − (1, 0)‖²/2. Not one of the table's. Calibration: none proved. Proof:
    docs/proofs.md.

    The default rate is far outside, as that of the source is. It does better on streams that are not made to hurt it.

    Source: Gupta and Ramdas 2023, "Online Platt scaling with calibeating", Algorithm 1; Hazan, Agarwal and Kale 2007
    (online Newton step). Deviations: default constants; the projection is solved to 1e-12.

    Parameters
    ----------
    rate : float, default 0.1
        γ, in [1e-9, 10].
    ridge : float, default 1.0
        A starts at ridge times the identity; in [1e-6, 1e6].
    radius : float, default 100.0
        In [1, 1e6].
    edge : float, default 1e-6
        The base forecast is taken into [edge, 1 − edge], since 0 and 1 have no logit; in [1e-12, 0.25].
    """

    needs: ClassVar[frozenset[str]] = frozenset({"base"})
    deterministic, needs_horizon, safe_under_delay, memory = True, False, True, "O(1)"
    version: ClassVar[int] = 2
    allowed = allow(**_PLATT)

    rate: float = 0.1
    ridge: float = 1.0
    radius: float = 100.0
    edge: float = 1e-6

    @property
    def largest_rate(self) -> float:
        """e^{−Z}: the largest rate at which the guarantee holds for this radius and edge."""
        return math.exp(
            -self.radius * math.hypot(1.0, math.log((1.0 - self.edge) / (1.0 - (1.0 - self.edge))))
        )

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        return _platt(self, 0)

    def begin(self, horizon: int, stream: Stream) -> new.Forecaster:
        return begin_platt(self, 0)


@dataclass(frozen=True)
class TrackingPlatt(Forecaster):
    """Online Platt scaling, calibeaten: what `Calibeating` says of the scaled forecast.

    Guarantee: That of `Calibeating` with the scaled forecast as the base; it never says 0 or 1.

    Source: Gupta and Ramdas 2023, "Online Platt scaling with calibeating", §3 (TOPS). Deviations: those of the two
    parts.

    Parameters
    ----------
    rate, ridge, radius, edge : float
        As for `OnlinePlatt`.
    bins : int, default 20
        As for `Calibeating`, of the scaled forecast.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"base"})
    deterministic, needs_horizon, safe_under_delay, memory = True, False, True, "O(bins)"
    version: ClassVar[int] = 3
    allowed = allow(**_PLATT, bins=whole(1, 10**6))

    rate: float = 0.1
    ridge: float = 1.0
    radius: float = 100.0
    bins: int = 20
    edge: float = 1e-6

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        return _platt(self, self.bins)

    def begin(self, horizon: int, stream: Stream) -> new.Forecaster:
        return begin_platt(self, self.bins)


#: the state: (a, c), the symmetric matrix A as (A_11, A_12, A_22), then counts of bins, if any. The note: the base
#: forecast, and the scaled one
COUNTS = 5
BASE, SCALED = range(2)


def begin_platt(spec: OnlinePlatt | TrackingPlatt, bins: int) -> new.Forecaster:
    """A player with this number of bins of the scaled forecast."""
    state = [1.0, 0.0, spec.ridge, 0.0, spec.ridge, *[0.0] * (2 * bins)]
    shared = [spec.rate, spec.radius, spec.edge]
    return new.Forecaster(say_scaled, learn_scaled, state, shared, note=2, needs={BASE: "base"})


@new.kernel
def clipped_logit(base, edge):
    """The logit of a forecast that is taken off 0 and 1."""
    b = min(max(base, edge), 1.0 - edge)
    return math.log(b / (1.0 - b))


def say_scaled(run: new.Run, number: int) -> int:
    theta, noted, (values, weights) = new.state(run), new.note(run), new.law(run)
    z = theta[0] * clipped_logit(noted[BASE], new.shared(run)[2]) + theta[1]
    # Beyond 36 the nearest number is 1, of which a surprise would cost an infinite log loss.
    scaled = 1.0 / (1.0 + math.exp(-min(max(z, -36.0), 36.0)))
    # The step is taken from where the forecast was made, however many others have been taken meanwhile.
    noted[SCALED] = scaled
    values[0], weights[0] = mean_in_bin(theta[COUNTS:], scaled) if len(theta) > COUNTS else scaled, 1.0
    return 1


def learn_scaled(run: new.Run, place: int, forecast: float, outcome: int, number: int) -> int:
    state, given, scaled = new.state(run), new.shared(run), new.note(run)[SCALED]
    logit = clipped_logit(new.note(run)[BASE], given[2])
    newton_step(state, logit, scaled - outcome, given[0], given[1])
    if len(state) > COUNTS:
        count_in_bin(state[COUNTS:], scaled, outcome)
    return 0


@new.kernel
def newton_step(state, logit, error, rate, radius):
    """θ ← θ − A⁻¹g/γ with the gradient g = error·(logit, 1), and back into the disc."""
    gx, gy = error * logit, error
    a, b, c = state[2] + gx * gx, state[3] + gx * gy, state[4] + gy * gy
    state[2], state[3], state[4] = a, b, c
    det = a * c - b * b
    x = state[0] - (c * gx - b * gy) / (det * rate)
    y = state[1] - (a * gy - b * gx) / (det * rate)
    if x * x + y * y > radius * radius:
        # The nearest point solves (A + λI)θ = Aθ' with ‖θ‖ = radius; the norm falls in λ, so bisect.
        u, v = a * x + b * y, b * x + c * y
        low, high = 0.0, 1.0
        while True:
            d = (a + high) * (c + high) - b * b
            x, y = ((c + high) * u - b * v) / d, ((a + high) * v - b * u) / d
            if x * x + y * y <= radius * radius:
                break
            low, high = high, 2.0 * high
        while high - low > 1e-12 * high:
            middle = 0.5 * (low + high)
            d = (a + middle) * (c + middle) - b * b
            x, y = ((c + middle) * u - b * v) / d, ((a + middle) * v - b * u) / d
            if x * x + y * y > radius * radius:
                low = middle
            else:
                high = middle
    state[0], state[1] = x, y


def _platt(spec: OnlinePlatt | TrackingPlatt, bins: int) -> CompiledForecaster:
    """A player with the state (a, c), the symmetric matrix A as (A_11, A_12, A_22), and counts of bins, if any."""
    state, shared = [1.0, 0.0, spec.ridge, 0.0, spec.ridge], [spec.rate, spec.radius, spec.edge]
    memory = Memory(ints=2 * bins, floats=state, shared=shared, context=1, memo=1)
    return CompiledForecaster(_scale, _learn_scaled, memory, size=1, needs=spec.needs)


@kernel
def _clipped_logit(base, edge):
    b = min(max(base, edge), 1.0 - edge)
    return math.log(b / (1.0 - b))


@law
def _scale(run, number):
    theta, state = floats(run), ints(run)
    z = theta[0] * _clipped_logit(context(run)[0], shared(run)[2]) + theta[1]
    # Beyond 36 the nearest number is 1, of which a surprise would cost an infinite log loss.
    scaled = 1.0 / (1.0 + math.exp(-min(max(z, -36.0), 36.0)))
    # The step is taken from where the forecast was made, however many others have been taken meanwhile.
    memo(run)[0] = scaled
    law_values(run)[0], law_weights(run)[0] = _bin_mean(state, scaled) if len(state) > 0 else scaled, 1.0
    return 1


@learn
def _learn_scaled(run, number, size, drawn, outcome):
    scaled, state = memo(run)[0], ints(run)
    if not 0.0 <= scaled <= 1.0:
        return -1
    rate, radius, edge = shared(run)[0], shared(run)[1], shared(run)[2]
    _newton_step(floats(run), _clipped_logit(context(run)[0], edge), scaled - outcome, rate, radius)
    if len(state) > 0:
        _count_bin(state, scaled, outcome)
    return 0


@kernel
def _newton_step(state, logit, error, rate, radius):
    """θ ← θ − A⁻¹g/γ with the gradient g = error·(logit, 1), and back into the disc."""
    gx, gy = error * logit, error
    a, b, c = state[2] + gx * gx, state[3] + gx * gy, state[4] + gy * gy
    state[2], state[3], state[4] = a, b, c
    det = a * c - b * b
    x = state[0] - (c * gx - b * gy) / (det * rate)
    y = state[1] - (a * gy - b * gx) / (det * rate)
    if x * x + y * y > radius * radius:
        # The nearest point solves (A + λI)θ = Aθ' with ‖θ‖ = radius; the norm falls in λ, so bisect.
        u, v = a * x + b * y, b * x + c * y
        low, high = 0.0, 1.0
        while True:
            d = (a + high) * (c + high) - b * b
            x, y = ((c + high) * u - b * v) / d, ((a + high) * v - b * u) / d
            if x * x + y * y <= radius * radius:
                break
            low, high = high, 2.0 * high
        while high - low > 1e-12 * high:
            middle = 0.5 * (low + high)
            d = (a + middle) * (c + middle) - b * b
            x, y = ((c + middle) * u - b * v) / d, ((a + middle) * v - b * u) / d
            if x * x + y * y > radius * radius:
                low = middle
            else:
                high = middle
    state[0], state[1] = x, y
