"""The mean of the outcomes, shaken by fresh noise: small external regret in every decision task."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from onlinecal.core.columns import Column
from onlinecal.core.expressions import check_expression
from onlinecal.core.guarantee import Guarantee, Potential, Sight
from onlinecal.core.specification import allow, expression, tuned, whole
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, law, own_uniform, shared, state
from onlinecal.forecasters.base import Forecaster, OnGrid, grid_of
from onlinecal.forecasters.baselines import count_outcomes


@dataclass(frozen=True)
class PerturbedLeader(Forecaster):
    r"""Says p_t = (ones + Z_1) / (t − 1 + Z_0 + Z_1) with Z_0, Z_1 geometric with mean √T, fresh in every round.

    The law of p_t has no finite support. So in each round `atoms` independent pairs (Z_0, Z_1) are drawn, and the
    stated law is uniform over their forecasts. The forecast played has exactly the law of the formula.

    Guarantee: E[T·U-calibration] = O(√T) against natures that see the history; the source states no constant.

    None holds against natures that see the law, whatever `atoms` is: they see the sampled forecasts. Let nature play y
    = 0 if at least half of the atoms lie above 1/2, and else y = 1. This forces T·E|B/K − 1/2| with K = `atoms` and B
    binomial(K, 1/2), about T/√(2πK). Proof: docs/proofs.md. `ThresholdHedging` has a bound against such natures.

    Source: Daskalakis and Syrgkanis 2016, "Learning in auctions: regret is hard, envy is easy". Luo, Senapati and
    Sharan 2024, "Optimal multiclass U-calibration error". Deviations: the finite law described above; 1/2 where the
    fraction is 0/0.

    Parameters
    ----------
    mean : float or str, default "T^(1/2)"
        Mean of the geometric noise, in [0, 10^12]; a number or an expression in T. Z takes the values 0, 1, ….
    atoms : int, default 16
        Forecasts in the stated law, 1 to 1000.
    """

    deterministic, safe_under_delay, memory = False, True, "O(atoms)"
    needs_horizon = tuned("mean")
    allowed = allow(mean=expression(0.0, 1e12), atoms=whole(1, 1000))

    mean: float | str = "T^(1/2)"
    atoms: int = 16

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        say, draw = uniform_steps(shaken)
        return steps.Forecaster(
            say, count_outcomes, [0, 0], [self._scale(horizon), self.atoms], size=self.atoms, draw=draw,
            stream=stream,
        )  # fmt: skip

    def _scale(self, horizon: int) -> float:
        mean = check_expression("mean", self.mean, 0.0, 1e12, horizon)
        return scale_of(mean)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        source = "Daskalakis and Syrgkanis 2016; Luo, Senapati and Sharan 2024"
        column = Column("measure", "u_calibration")
        return (Guarantee(column, "√T", math.sqrt, "rate", Sight.HISTORY, source),)


def scale_of(mean: float) -> float:
    """The scale of `geometric` for noise of this mean."""
    # P(Z ≥ z) = a^z with a = mean/(1 + mean): Z is the integer part of log u / log a.
    return 0.0 if mean == 0.0 else 1.0 / math.log(mean / (1.0 + mean))


@kernel
def geometric(run, i, scale):
    """The geometric noise of uniform i of the run."""
    # 1 − u is in (0, 1], so the logarithm is finite.
    return math.floor(math.log(1.0 - own_uniform(run, i)) * scale)


@cache
def uniform_steps(atom: Any) -> tuple[Any, Any]:
    """The steps `say` and `draw` of a law that is uniform over independent atoms; the last shared number says how many.

    `atom(run, number, j)` is forecast j of a round.
    """

    def say(run: Run, number: int) -> int:
        atoms, (values, weights) = int(shared(run)[-1]), law(run)
        for j in range(atoms):
            values[j], weights[j] = atom(run, number, j), 1.0 / atoms
        return atoms

    def draw(run: Run, u: float, number: int) -> float:
        # The noise of the other atoms is not needed.
        atoms = int(shared(run)[-1])
        j, total = 0, 1.0 / atoms
        while total <= u and j < atoms - 1:
            j, total = j + 1, total + 1.0 / atoms
        return atom(run, number, j)

    return say, draw


@kernel
def shaken(run, number, j):
    """Forecast j of a round, with the noise of two uniforms of its own."""
    rounds, ones, scale = state(run)[0], state(run)[1], shared(run)[0]
    first = 2 * ((number - 1) * int(shared(run)[1]) + j)
    z0, z1 = geometric(run, first, scale), geometric(run, first + 1, scale)
    total = rounds + z0 + z1
    return (ones + z1) / total if total > 0 else 0.5


#: √t times the rate of round t
RATE = 4.0
#: a logit at which a probability is 1, as it differs from that by less than half of 2^−53
CERTAIN = 38.0


@dataclass(frozen=True)
class ThresholdHedging(OnGrid):
    r"""Says the mean of the outcomes, shaken by logistic noise, on a grid: exponential weights at every threshold.

    p_t is the point of the grid nearest to (ones + ½ + √t Z/4)/t, with Z from the logistic distribution, and 0 or 1
    beyond them. At a threshold v = (i − ½)/m always acting has gained ones − v(t − 1) more than never acting. To act
    where p_t > v is to act with probability σ(η_t (ones + ½ − vt)), σ(x) = 1/(1 + e^{−x}), η_t = 4/√t. So one draw
    hedges between the two actions of every threshold. The differences of these probabilities are the law.

    Guarantee: E[T·u_calibration] ≤ 1.23√T + √(TL/2) + 3L + T/m with L = ln(2 + 5m/√T), or T where that is less, against
    natures that see the law. At m = 4√T it is O(√T), and near 2.7√T for large T. The proof gives a little less, for
    plots and checks: 0.85√T + 0.13 (1 + ln T) + T/m + (2/λ) ln(2 + 2φQe^{φV}), with φ = e^λ − 1 − λ, λ = 5√(L/T), A =
    0.35√T + (1 + ln T)/12, V = T/16 + 4A²/T and Q = m√T/8 + T/16 + mA/2. (That it is less was computed, not proved.)
    Proof: docs/proofs.md.

    Squared loss. E[Σ (p_t − y_t)²] − min_q Σ (q − y_t)² ≤ 0.456 (1 + ln T) + 0.35 + 0.85√T/m + T/(4m²), which is
    0.456 ln T + 1.04 at most at m = 4√T, for every sequence of outcomes and against natures that see the law.

    Nothing is proved of games with delays.

    Information: Two counters a run beside the law. O(1) time a round against natures that do not see the law, else
    O(m/√t).

    Source: After Kleinberg, Paes Leme, Schneider and Teng 2023, "U-calibration: forecasting for an unknown agent".
    Frongillo, Luo, Mehta and Schneider 2026: O(√T) for bounded proper losses together with O(log T) for smooth ones.
    Deviations: rule, constants and proofs are ours; of smooth losses only the squared one is proved.

    Parameters
    ----------
    m : int or str, default "4 * T^(1/2)"
        Steps of the grid 0, 1/m, …, 1, rounded up; a number or an expression in T.
    """

    deterministic, safe_under_delay, memory = False, True, "O(m)"

    m: int | str = "4 * T^(1/2)"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        m = self.steps_at(horizon)
        # On a coarse grid all weight may be on 1/2, wherever the mean of the outcomes is.
        side = side_of_mean if RATE * math.sqrt(horizon) <= 2.0 * m else None
        return steps.Forecaster(
            say_differences, count_outcomes, [0, 0], [m, RATE], size=m + 1, grid=grid_of(m), draw=draw_difference,
            side=side,
        )  # fmt: skip

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        def bound(horizon: float, m: int) -> float:
            root, logs = math.sqrt(horizon), 1.0 + math.log(horizon)
            drift = 0.35 * root + logs / 12.0
            most = horizon / 16.0 + 4.0 * drift**2 / horizon
            total = m * root / 8.0 + horizon / 16.0 + m * drift / 2.0
            scale = _scale(horizon, m)
            phi = math.expm1(scale) - scale
            # By logarithms, as e^φV is no float in short games on fine grids.
            largest = np.logaddexp(math.log(2.0), math.log(2.0 * phi * total) + phi * most) / scale
            return min(horizon, 0.85 * root + 0.13 * logs + horizon / m + 2.0 * float(largest))

        def squared(horizon: float, m: int) -> float:
            logs = 0.456 * (1.0 + math.log(horizon))
            return logs + 0.35 + 0.85 * math.sqrt(horizon) / m + horizon / (4.0 * m * m)

        def squared_slack(horizon: float, m: int, runs: int, rate: float) -> float:
            # Freedman's inequality: a loss in [0, 1] has a variance of 4 (π/√(48t) + 1/(2m))² at most.
            spread = (
                math.pi**2 / 12.0 * (1.0 + math.log(horizon)) + 3.63 * math.sqrt(horizon) / m + horizon / m**2
            )
            rarity = math.log(1.0 / rate) / runs
            return rarity / 3.0 + math.sqrt(rarity**2 / 9.0 + 2.0 * rarity * spread)

        def shaken(gamma: Any, horizon: int) -> float:
            """The squared loss, and for each threshold v the (2/m) ln(1 + e^{ηG})/η that it may gain.

            G is ones − vt after t rounds, and η the rate of the next one; v is the middle of a cell.
            """
            m = self.steps_at(horizon)
            gains = gamma.positives.sum() - (np.arange(m) + 0.5) / m * gamma.counts.sum()
            eta = RATE / math.sqrt(gamma.counts.sum() + 1.0)
            # Less the loss of never acting, as that of the best constant is taken from both.
            loss = gamma.predictions * (gamma.predictions * gamma.counts - 2.0 * gamma.positives)
            return float(loss.sum() + 2.0 / m * np.logaddexp(0.0, eta * gains).sum() / eta)

        def growth(gamma: Any, v: float, horizon: int) -> float:
            m, t = self.steps_at(horizon), gamma.counts.sum() + 1.0
            here, there = math.sqrt(t) / RATE, math.sqrt(t + 1.0) / RATE
            drift = math.pi**2 / 3.0 * (there**2 - here**2) / t + 2.0 * math.log(2.0) / m * (there - here)
            return 0.25 * (1.0 / t + 0.25 / (m * here)) + drift

        calibration = self._expected(
            Column("measure", "u_calibration"),
            "1.23√T + √(TL/2) + 3L + T/m with L = ln(2 + 5m/√T)",
            "after Kleinberg et al. 2023; proof in docs/proofs.md",
            bound,
            # The proof bounds the mean of exp(λ max M) in each run, so that Chernoff's bound holds for their mean.
            lambda t, m, runs, rate: 2.0 * math.log(1.0 / rate) / (runs * _scale(t, m)),
        )
        loss = self._expected(
            Column("quadratic_task", "external_regret", task="quadratic"),
            "0.456(1 + ln T) + 0.35 + 0.85√T/m + T/(4m²)",
            "proof in docs/proofs.md; the rate is that of Frongillo et al. 2026",
            squared,
            squared_slack,
            Potential(shaken, growth, linear=True),
        )
        return calibration + loss


def _scale(horizon: float, m: int) -> float:
    """The λ of the proof: any is allowed, and in long games this one is nearly the best."""
    return 5.0 * math.sqrt(math.log(2.0 + 5.0 * m / math.sqrt(horizon)) / horizon)


@kernel
def of_thresholds(run):
    """m, and η_t (ones + ½ − (i − ½)t/m) as a scale times a difference of whole numbers, head − i · twice."""
    t, ones, m = state(run)[0] + 1.0, state(run)[1], int(shared(run)[0])
    return m, m * (2.0 * ones + 1.0) + t, 2.0 * t, shared(run)[1] / (2.0 * m * math.sqrt(t))


@kernel
def share_above(i, m, head, twice, scale):
    """P(p ≥ i/m), a multiple of 2^−53: sums and differences of such numbers are exact, so the weights sum to 1."""
    if i <= 0:
        return 1.0
    if i > m:
        return 0.0
    z = scale * (head - i * twice)
    more = 1.0 / (1.0 + math.exp(-abs(z)))
    return more if z >= 0.0 else 1.0 - more


@kernel
def point_at(z, m, head, twice, scale):
    """The point of the grid at or below that at which the logit of `share_above` is z, up to rounding."""
    return int(min(max((head - z / scale) / twice, 0.0), float(m)))


def say_differences(run: Run, number: int) -> int:
    """The state is how many rounds there were and how many outcomes 1; m and √t η_t are shared."""
    (m, head, twice, scale), (values, weights) = of_thresholds(run), law(run)
    i, size, above = point_at(CERTAIN, m, head, twice, scale), 0, 1.0
    while above > 0.0:
        beyond = share_above(i + 1, m, head, twice, scale)
        if beyond < above:
            values[size], weights[size] = i / m, above - beyond
            size, above = size + 1, beyond
        i += 1
    return size


def draw_difference(run: Run, u: float, number: int) -> float:
    """The first point of the grid at which the sum of the weights is above u."""
    m, head, twice, scale = of_thresholds(run)
    i = point_at(math.log((1.0 - u) / u) if u > 0.0 else CERTAIN, m, head, twice, scale)
    # Rounding may have led to a neighbour.
    while i > 0 and 1.0 - share_above(i, m, head, twice, scale) > u:
        i -= 1
    while 1.0 - share_above(i + 1, m, head, twice, scale) <= u:
        i += 1
    return i / m


def side_of_mean(run: Run, number: int) -> float:
    """The law is symmetric about (ones + ½)/t before it is moved into [0, 1], and more ones shift it up."""
    rounds, ones = state(run)[0], state(run)[1]
    return 2.0 * ones - rounds
