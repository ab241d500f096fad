"""Forecasters that play between two neighbouring points of a grid with biases of opposite signs.

Those on the grid keep the bias E_i = Σ (y − i/m) of each point, as the integer m·E_i. E_0 ≥ 0 ≥ E_m always, so a
binary search finds neighbours with E_i ≥ 0 ≥ E_{i+1}.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.columns import Column
from onlinecal.core.expressions import grid_steps
from onlinecal.core.guarantee import Guarantee, Sight, through
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, shared, state
from onlinecal.forecasters.base import InSteps, OnGrid, biases, grid_of
from onlinecal.forecasters.baselines import write_pair, write_value


def _no_bias(m: int) -> list[int]:
    """All biases of a grid of m steps, 0 at first, and the point where `pair_of` finds them then."""
    return [0] * (m + 1) + [m // 2]


@dataclass(frozen=True)
class ForecastHedging(OnGrid):
    r"""Randomises between two neighbouring grid points so that their biases cannot grow together.

    E_i is the bias of the grid point i/m: the sum of y − i/m over its rounds. From a pair with E_i ≥ 0 ≥ E_{i+1} it
    plays i with probability |E_{i+1}| / (|E_i| + |E_{i+1}|), else i + 1 (one half where both are 0). The
    expected first-order change of Σ E² is then 0 up to order 1/m.

    Guarantee: E[T·ECE] ≤ T/(2m) + m + 1 + √((m + 1)(m + 1 + T/2 + T/m)), against natures that see the law. For large T
    that is (1 + √2)/2 ≈ 1.21 times T^{2/3} at m = T^{1/3}, with 1.43 at T = 1000 and 1.23 at 10⁶. Proof:
    docs/proofs.md.

    Source: Foster 1999, "A proof of calibration via Blackwell's approachability theorem"; Foster and Hart 2021,
    "Forecast hedging and calibration". Deviations: no tolerance of 1/(2m) around each point.

    Parameters
    ----------
    m : int or str, default "T^(1/3)"
        Steps of the grid 0, 1/m, …, 1: a number or an expression in T. The latter is rounded up to an even number, so
        that ½ is on the grid.
    """

    deterministic, safe_under_delay, memory = False, True, "O(m)"
    version: ClassVar[int] = 2
    even: ClassVar[bool] = True

    m: int | str = "T^(1/3)"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        m = self.steps_at(horizon)
        return steps.Forecaster(hedge, learn_bias, _no_bias(m), [m], size=2, grid=grid_of(m))

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        def slack(horizon: float, m: int, runs: int, rate: float) -> float:
            # Ψ of the proof moves by at most 1 + 1/(2c), so its centred moves lie in intervals of twice that. Azuma and
            # Hoeffding over runs·T of them, and Σ|E_i| (1 − 1/(√2 c)) ≤ √2 Ψ + a constant.
            c = _best_c(horizon, m)
            moves = math.sqrt(2.0 * horizon * math.log(1.0 / rate) / runs) * (1.0 + 0.5 / c)
            return math.sqrt(2.0) * moves / (1.0 - 1.0 / (math.sqrt(2.0) * c))

        def energy(horizon: float, m: int, bias: Floats, rounds: Floats) -> float:
            squares = np.maximum(bias[:-1], 0.0) ** 2 + np.maximum(-bias[1:], 0.0) ** 2
            c = _best_c(horizon, m)
            # √(Φ + c²) − c, without the difference of two numbers that are nearly equal.
            gained = squares / (np.sqrt(squares + c * c) + c)
            return float(gained.sum() - ((1.0 - 2.0 * np.arange(m + 1) / m) * bias).sum() / (2.0 * c))

        return self._expected(
            Column("measure", "ece"),
            "T/(2m) + m + 1 + √((m + 1)(m + 1 + T/2 + T/m))",
            "Foster 1999; Foster and Hart 2021; proof in docs/proofs.md",
            lambda t, m: t / (2.0 * m) + (m + 1.0) * math.sqrt(2.0) * _best_c(t, m),
            slack,
            self._potential(
                energy, lambda t, m, v, _: math.sqrt(2.0) / (4.0 * m) + v * (1.0 - v) / (2.0 * _best_c(t, m))
            ),
        )


def _best_c(horizon: float, m: int) -> float:
    """The c of the proof at which the bound is least."""
    return math.sqrt(0.5) * (1.0 + math.sqrt(1.0 + horizon * (m + 2.0) / (2.0 * m * (m + 1.0))))


@kernel
def pair_of(bias, m):
    """A point i with bias[i] ≥ 0 ≥ bias[i + 1], for one run; a game starts in the middle of the grid."""
    low, high = 0, m
    while high - low > 1:
        middle = (low + high) >> 1
        b = bias[middle]
        if b > 0:
            low = middle
        elif b < 0:
            high = middle
        elif bias[middle + 1] <= 0:
            return middle
        else:
            low = middle + 1
    return low


@kernel
def add_bias(bias, m, i, amount):
    """Adds to m·E_i, and keeps the pair, which depends on signs alone, in bias[m + 1]."""
    old, now = bias[i], bias[i] + amount
    bias[i] = now
    if (old > 0) != (now > 0) or (old < 0) != (now < 0):
        bias[m + 1] = pair_of(bias, m)


@kernel
def point_of(forecast, m):
    """The place of a forecast on the grid of m steps."""
    return int(forecast * m + 0.5)


def hedge(run: Run, number: int) -> int:
    """The state is m·E_0, …, m·E_m, and the pair that it plays; shared is m."""
    bias, m = state(run), int(shared(run)[0])
    i = int(bias[m + 1])
    a, b = bias[i], -bias[i + 1]
    return write_pair(run, m, i, 0.5 if a + b == 0 else b / (a + b))


def learn_bias(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    m = int(shared(run)[0])
    i = point_of(forecast, m)
    add_bias(state(run), m, i, m * outcome - i)
    return 0


@dataclass(frozen=True)
class CDLMinimiser(OnGrid):
    r"""Hedges like `ForecastHedging`, with each bias weighed by how unlikely it is at its number of rounds.

    From a pair with E_i ≥ 0 ≥ E_{i+1} it plays i with probability |h_{i+1}| / (|h_i| + |h_{i+1}|), where h_i =
    w(E_i, n_i) − w(−E_i, n_i) is the AdaNormalHedge weight, w(R, C) = ½[exp([R+1]₊²/(3(C+1))) −
    exp([R−1]₊²/(3(C+1)))]. Every bias then stays of order √(n_i log T), not only the sum of squares small.

    Guarantee: At m = √T, against natures that see the law, E[T·CDL] ≤ √T (10 + 4.1 ln(1 + √T/10) ln(10 + ln T)), which
    grows like √T log T log log T. On a finer grid it is 10T/m + m ((0.3 + 3 ln(1 + m/10)) ln P + 0.6 ln(m + 1)) with P
    = 10 + ln T; on a coarser one none is proved. The source states O(√T log T) for its algorithm, without a constant.
    Proof: docs/proofs.md.

    Source: Hu and Wu 2024, "Predict to minimize swap regret for all payoff-bounded tasks"; Luo and Schapire 2015
    (AdaNormalHedge). Deviations: h is computed as exp((E²+1)/(3(n+1))) · sinh(2E/(3(n+1))), the same number.

    Parameters
    ----------
    m : int or str, default "T^(1/2)"
        Steps of the grid: a number or an expression in T. The latter is rounded up to an even number, so that ½ is on
        the grid.
    """

    deterministic, safe_under_delay, memory = False, True, "O(m)"
    version: ClassVar[int] = 2
    even: ClassVar[bool] = True

    m: int | str = "T^(1/2)"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        m = self.steps_at(horizon)
        state = _no_bias(m) + [0] * (m + 1)
        return steps.Forecaster(hedge_anytime, learn_and_count, state, [m, 1.0 / m], size=2, grid=grid_of(m))

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        root = self.m == "T^(1/2)"

        def bound(horizon: float, m: int) -> float:
            if m * m < horizon:
                return float(horizon)
            spread = math.log(10.0 + math.log(horizon))
            if root:
                return math.sqrt(horizon) * (10.0 + 4.1 * math.log1p(math.sqrt(horizon) / 10.0) * spread)
            logs = (0.3 + 3.0 * math.log1p(m / 10.0)) * spread + 0.6 * math.log(m + 1.0)
            return 10.0 * horizon / m + m * logs

        def powers(horizon: float, m: int, bias: Floats, rounds: Floats) -> float:
            # Beyond the cap, of which the exponential is a float, all potentials are alike.
            return float(np.exp(np.minimum(bias**2 / (3.0 * np.maximum(rounds, 1.0)), 500.0)).sum())

        fine = "10T/m + m((0.3 + 3 ln(1 + m/10)) ln(10 + ln T) + 0.6 ln(m + 1)), or T where m < √T"
        return self._expected(
            Column("measure", "cdl"),
            "√T(10 + 4.1 ln(1 + √T/10) ln(10 + ln T))" if root else fine,
            "after Hu and Wu 2024; proof in docs/proofs.md",
            bound,
            # The proof bounds the exponential moment of each run, so Chernoff's bound takes its place for their mean.
            lambda t, m, runs, rate: 0.6 * m * math.log(1.0 / rate) / runs,
            self._potential(
                powers, lambda t, m, v, gamma: growth_of_play(int(biases(gamma, m)[1][round(v * m)]), m)
            ),
        )


def growth_of_play(n: int, m: int) -> float:
    """δ_n: growth of Σ Ψ_i by a play of a point with n rounds, apart from the part that the law makes vanish.

    (1/(3n)) max_L e^L (1 − L + ρ√L) with ρ = √(3n)/m ≤ √8, at the root x = √L of x³ − ρx² − ρ/2; e^{1/3} − 1 for n = 0.
    """
    if n == 0:
        return math.exp(1.0 / 3.0) - 1.0
    rho = math.sqrt(3.0 * n) / m
    if rho * rho > 8.0:
        return math.inf
    x = float(np.roots([1.0, -rho, 0.0, -0.5 * rho]).real.max())
    return math.exp(x * x) * (1.0 - x * x + rho * x) / (3.0 * n)


def hedge_anytime(run: Run, number: int) -> int:
    """The state is m·E_0, …, m·E_m, the pair, and how many rounds each point has had; shared are m and 1/m."""
    mine, m, step = state(run), int(shared(run)[0]), shared(run)[1]
    i = int(mine[m + 1])
    bias, rounds = mine[i : i + 2], mine[m + 2 + i : m + 4 + i]
    left, right = hedging_weights(abs(step * bias[0]), rounds[0], abs(step * bias[1]), rounds[1])
    return write_pair(run, m, i, 0.5 if left + right == 0.0 else right / (left + right))


@kernel
def hedging_weights(above, n, below, k):
    """The h of two biases with their numbers of rounds, exp((E² + 1)/(3(n + 1))) · sinh(2E/(3(n + 1))), in proportion.

    Both lack the exponential of the second. That of the first may become infinite.
    """
    s, t = 1.0 / (3.0 * (n + 1.0)), 1.0 / (3.0 * (k + 1.0))
    apart = math.exp((above * above + 1.0) * s - (below * below + 1.0) * t)
    return apart * short_sinh(2.0 * above * s), short_sinh(2.0 * below * t)


@kernel
def short_sinh(x):
    """sinh for 0 ≤ x < 2/3, which |E| ≤ n keeps it below: Taylor's series, with a remainder under rounding there."""
    y = x * x
    tail = 1 / 362880 + y * (1 / 39916800 + y * (1 / 6227020800 + y * (1 / 1307674368000)))
    return x * (1.0 + y * (1 / 6 + y * (1 / 120 + y * (1 / 5040 + y * tail))))


def learn_and_count(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    mine, m = state(run), int(shared(run)[0])
    i = point_of(forecast, m)
    add_bias(mine, m, i, m * outcome - i)
    mine[m + 2 + i] += 1
    return 0


@dataclass(frozen=True)
class AlmostOneStepAhead(OnGrid):
    r"""Plays, without randomness, next to an imagined player that knows one outcome in advance.

    The biases are those of the imagined player. From a pair with E_i ≥ 0 ≥ E_{i+1} it plays i/m. The imagined player
    takes i + 1 if y = 1 and i if y = 0. So each of its biases moves towards 0, and |E_i| ≤ 1 for ever.

    Guarantee: For every sequence the total distance from calibration is at most T/m + m + 1. At m = √T that is 2√T + 1,
    also where √T is rounded up, as E_0 and E_m stay 0. The imagined forecasts are the certificate: the player tracks
    Σ|p_t − p̃_t| + Σ|E_i| as ``distance_certificate``.

    With at most b questions open at once, the one being asked included, it is at most T/m + b(m − 1). Proof:
    docs/proofs.md. At m = √(T/b) that is 2√(bT).

    Source: Arunachaleswaran, Collina, Roth and Shi 2025, "An elementary predictor obtaining distance to calibration".

    Parameters
    ----------
    m : int or str, default "T^(1/2)"
        Steps of the grid, rounded up; a number or an expression in T.
    """

    certifies: ClassVar[frozenset[str]] = frozenset({"distance_certificate"})
    deterministic, safe_under_delay, memory = True, True, "O(m)"

    m: int | str = "T^(1/2)"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        m = self.steps_at(horizon)
        return steps.Forecaster(
            play_low, imagine, [0] * (m + 2), [m], grid=grid_of(m), certificates=distance_certificate
        )

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        root = self.m == "T^(1/2)"

        def bound(horizon: float) -> float:
            m = self.steps_at(int(horizon))
            return 2.0 * math.sqrt(horizon) + 1.0 if root else horizon / m + m + 1.0

        def delayed(horizon: float, most: int) -> float:
            m = self.steps_at(int(horizon))
            return horizon / m + most * (m - 1.0)

        own = Guarantee(
            Column("certificate", "distance_certificate"),
            "2√T + 1" if root else "T/m + m + 1",
            bound,
            "deterministic",
            Sight.DRAW,
            "Arunachaleswaran, Collina, Roth and Shi 2025",
            delayed=delayed,
        )
        return own, through(own, "smooth_ce")


def distance_certificate(player: steps.Forecaster) -> dict[str, Floats]:
    """Σ|p − p̃| + Σ|E_i| for each run: moving p to p̃ and p̃ to its conditional means costs that much."""
    bias, apart = player.state[:, :-1], player.state[:, -1]
    return {"distance_certificate": (apart + np.abs(bias).sum(axis=1)) / (bias.shape[1] - 1)}


def play_low(run: Run, number: int) -> int:
    """The state is m·E_0, …, m·E_m of the imagined player, and m·Σ|p − p̃|."""
    m = int(shared(run)[0])
    return write_value(run, pair_of(state(run), m) / m)


def imagine(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    bias, m = state(run), int(shared(run)[0])
    i = point_of(forecast, m) + outcome
    bias[i] += m * outcome - i
    bias[m + 1] += outcome
    return 0


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
    left, right = hedging_weights(above, rounds[low], below, rounds[high])
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
