"""Forecasters that recalibrate a base forecast, which is given to them as context."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from onlinecal.core.arrays import cells
from onlinecal.core.specification import allow, number, whole
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, note, shared, state
from onlinecal.forecasters.base import Forecaster
from onlinecal.forecasters.baselines import write_value


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

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return steps.Forecaster(say_bin_mean, learn_bin, [0.0] * (2 * self.bins), note=1, needs={0: "base"})


#: the same as `cells`, of one number in a step
cell_of = kernel(cells)


@kernel
def bin_of(bins, forecast):
    """The bin of a forecast among equal ones, [a, b) but for the last."""
    return min(cell_of(forecast, bins), bins - 1)


@kernel
def mean_in_bin(counts, forecast):
    """The mean outcome so far in the forecast's bin, the forecast as one more; only 0 and 1 are rounded to 0 and 1.

    `counts` are the rounds of each bin, then the outcomes 1.
    """
    bins = len(counts) // 2
    j = bin_of(bins, forecast)
    mean = (counts[bins + j] + forecast) / (counts[j] + 1)
    return min(max(mean, 5e-324), 1.0 - 2.0**-53) if 0.0 < forecast < 1.0 else mean


@kernel
def count_in_bin(counts, forecast, outcome):
    """Counts the round in the forecast's bin, and the outcome if it is 1."""
    bins = len(counts) // 2
    j = bin_of(bins, forecast)
    counts[j] += 1
    counts[bins + j] += outcome


def say_bin_mean(run: Run, number: int) -> int:
    """The state is the rounds of each bin, then its outcomes 1; the note is the base forecast."""
    return write_value(run, mean_in_bin(state(run), note(run)[0]))


def learn_bin(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    count_in_bin(state(run), note(run)[0], outcome)
    return 0


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
    allowed = allow(
        rate=number(1e-9, 10.0), ridge=number(1e-6, 1e6), radius=number(1.0, 1e6), edge=number(1e-12, 0.25)
    )

    rate: float = 0.1
    ridge: float = 1.0
    radius: float = 100.0
    edge: float = 1e-6
    #: how many bins correct the scaled forecast. It has no type, so it is a parameter of `TrackingPlatt` alone
    bins = cast(Any, 0)

    @property
    def largest_rate(self) -> float:
        """e^{−Z}: the largest rate at which the guarantee holds for this radius and edge."""
        return math.exp(
            -self.radius * math.hypot(1.0, math.log((1.0 - self.edge) / (1.0 - (1.0 - self.edge))))
        )

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        first, given = [1.0, 0.0, self.ridge, 0.0, self.ridge], [self.rate, self.radius, self.edge]
        return steps.Forecaster(
            say_scaled, learn_scaled, first + [0.0] * (2 * self.bins), given, note=2, needs={BASE: "base"}
        )


@dataclass(frozen=True)
class TrackingPlatt(OnlinePlatt):
    """Online Platt scaling, calibeaten: what `Calibeating` says of the scaled forecast.

    Guarantee: That of `Calibeating` with the scaled forecast as the base; it never says 0 or 1.

    Source: Gupta and Ramdas 2023, "Online Platt scaling with calibeating", §3 (TOPS). Deviations: those of the two
    parts.

    Parameters
    ----------
    rate, ridge, radius, edge : float
        As for `OnlinePlatt`.
    bins : int, default 20
        As for `Calibeating`, of the scaled forecast; from 1 to 10^6.
    """

    memory = "O(bins)"
    version: ClassVar[int] = 3
    allowed = allow(**OnlinePlatt.allowed, bins=whole(1, 10**6))

    bins: int = 20


#: where the counts of bins begin in the state; the note is the base forecast, and the scaled one
COUNTS = 5
BASE, SCALED = range(2)


@kernel
def clipped_logit(base, edge):
    """The logit of a forecast that is taken off 0 and 1."""
    b = min(max(base, edge), 1.0 - edge)
    return math.log(b / (1.0 - b))


def say_scaled(run: Run, number: int) -> int:
    """The state is a, c, the matrix A as A_11, A_12, A_22, and counts of bins as in `say_bin_mean`, if any."""
    theta, noted = state(run), note(run)
    z = theta[0] * clipped_logit(noted[BASE], shared(run)[2]) + theta[1]
    # Beyond 36 the nearest number is 1, of which a surprise would cost an infinite log loss.
    scaled = 1.0 / (1.0 + math.exp(-min(max(z, -36.0), 36.0)))
    # The step is taken from where the forecast was made, however many others have been taken meanwhile.
    noted[SCALED] = scaled
    return write_value(run, mean_in_bin(theta[COUNTS:], scaled) if len(theta) > COUNTS else scaled)


def learn_scaled(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    mine, given, scaled = state(run), shared(run), note(run)[SCALED]
    newton_step(mine, clipped_logit(note(run)[BASE], given[2]), scaled - outcome, given[0], given[1])
    if len(mine) > COUNTS:
        count_in_bin(mine[COUNTS:], scaled, outcome)
    return 0


@kernel
def newton_step(mine, logit, error, rate, radius):
    """θ ← θ − A⁻¹g/γ with the gradient g = error·(logit, 1), and back into the disc."""
    gx, gy = error * logit, error
    a, b, c = mine[2] + gx * gx, mine[3] + gx * gy, mine[4] + gy * gy
    mine[2], mine[3], mine[4] = a, b, c
    det = a * c - b * b
    x = mine[0] - (c * gx - b * gy) / (det * rate)
    y = mine[1] - (a * gy - b * gx) / (det * rate)
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
    mine[0], mine[1] = x, y
