"""A forecaster without randomness that hedges at soft bins: a forecast between two grid points counts at both."""

import math
from dataclasses import dataclass

from onlinecal.core.columns import Column
from onlinecal.core.expressions import grid_steps
from onlinecal.core.guarantee import Guarantee, Sight
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, shared, state
from onlinecal.forecasters.base import InSteps
from onlinecal.forecasters.baselines import write_value
from onlinecal.forecasters.hedging import short_sinh


@dataclass(frozen=True)
class SoftHedging(InSteps):
    r"""Hedges between two neighbouring soft bins, without randomness: the forecast is the mean of the law of a hedger.

    A forecast v counts at the grid points next to it, j/m with weight w_j = (1 − m|v − j/m|)_+, as in `scdl_binned`. A
    bin with weight W_j and bias G_j = Σ w_j (y − j/m) is too low by A_j = G_j − W_j/(2m) or too high by B_j = −G_j −
    W_j/(2m) where that is positive. A search by halves finds a bin that is neither, so that j/m is forecast. Or it
    finds a bin j that is too low below one that is too high. Then v is between them, with w_j = h(B_{j+1}, W_{j+1}) /
    (h(A_j, W_j) + h(B_{j+1}, W_{j+1})) and h(R, n) = exp((R² + 1)/(3(n + 1))) sinh(2R/(3(n + 1))).

    Guarantee: For every sequence of outcomes T·SCDL_m ≤ (3m/2)(2 + ln((m + 1)/2)) ln(3 + ln T), and T·scdl is at most
    that or T/m, whichever is larger. With m of order √T that grows like √T log T log log T. Proof: docs/proofs.md.

    Nothing is proved with delays.

    Source: This package, for the measure of Bairaktari, Hu, Nguyen and Ullman 2026. Weights after Luo and Schapire 2015
    (AdaNormalHedge), the tolerance of half a step after Foster 1999.

    Parameters
    ----------
    m : int or str, default "T^(1/2)/4"
        Bins are 1/m apart; rounded up to a power of two. A number or an expression in T.
    """

    deterministic, safe_under_delay, memory = True, True, "O(m)"

    m: int | str = "T^(1/2)/4"

    def bins_at(self, horizon: int) -> int:
        """How many bins, less one, at this horizon: a power of two."""
        return 1 << (grid_steps("m", self.m, horizon) - 1).bit_length()

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        m = self.bins_at(horizon)
        return steps.Forecaster(say_mean_of_hedger, count_softly, [0] * (2 * m + 2), [m])

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        def bound(horizon: float) -> float:
            m = self.bins_at(int(horizon))
            binned = 1.5 * m * (2.0 + math.log((m + 1) / 2.0)) * math.log(3.0 + math.log(horizon))
            return min(horizon, max(horizon / m, binned))

        formula = f"max(T/m, (3m/2)(2 + ln((m + 1)/2)) ln(3 + ln T)) with m = {self.m}, up to a power of two"
        source = "this package; proof in docs/proofs.md"
        return (Guarantee(Column("measure", "scdl"), formula, bound, "deterministic", Sight.DRAW, source),)


@kernel
def of_bins(run):
    """The steps m, and of each bin its bias and its weight."""
    m, mine = int(shared(run)[0]), state(run)
    return m, mine[: m + 1], mine[m + 1 :]


def say_mean_of_hedger(run: Run, number: int) -> int:
    """The state is the biases of all bins, then their weights; shared is m."""
    return write_value(run, mean_of_hedger(*of_bins(run)))


@kernel
def mean_of_hedger(m, bias, rounds):
    """The forecast. Bin 0 is never too high and bin m never too low."""
    half = 0.5 / m
    low, high = 0, m
    while high - low > 1:
        middle = (low + high) >> 1
        if abs(bias[middle]) <= half * rounds[middle]:
            return middle / m
        if bias[middle] > 0.0:
            low = middle
        else:
            high = middle
    above, below = bias[low] - half * rounds[low], -bias[high] - half * rounds[high]
    if above <= 0.0:
        return low / m
    if below <= 0.0:
        return high / m
    s, t = 1.0 / (3.0 * (rounds[low] + 1.0)), 1.0 / (3.0 * (rounds[high] + 1.0))
    # The two h without the exponential of the second. That of the first may become infinite, and the share 0.
    left = math.exp((above * above + 1.0) * s - (below * below + 1.0) * t) * short_sinh(2.0 * above * s)
    right = short_sinh(2.0 * below * t)
    return (low + (1.0 - right / (left + right))) / m


def count_softly(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    m, bias, rounds = of_bins(run)
    # As m is a power of two, m times the forecast and the difference are exact, and 1/m is.
    j = min(int(forecast * m), m - 1)
    up = forecast * m - j
    for i, w in ((j, 1.0 - up), (j + 1, up)):
        bias[i] += w * (outcome - i / m)
        rounds[i] += w
    return 0
