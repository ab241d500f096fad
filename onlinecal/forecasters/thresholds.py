"""A grid forecaster with a small bias up to any threshold: exponential weights over signed thresholds.

P_k = E_0 + … + E_k is the bias of all rounds that played at most k/m. The sums Σ_{k ≥ i} exp(±ηP_k) are kept in a
binary tree over the grid, relative to where their part begins. So a round changes the nodes above one point.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.columns import Column
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, shared, state
from onlinecal.forecasters.base import OnGrid, grid_of
from onlinecal.forecasters.baselines import write_pair, write_value
from onlinecal.forecasters.hedging import point_of


@dataclass(frozen=True)
class StepCEMinimiser(OnGrid):
    r"""Randomises between two neighbouring grid points so that no bias up to a threshold can be expected to grow.

    H(i) = Σ_{k ≥ i} sinh(η(P_k + ½ − i/m)) is what an outcome gains for all signed thresholds together, weighed by
    exp(±ηP_k), where i is played. From a pair with H(i) > 0 ≥ H(i+1) it plays i with probability |H(i+1)| / (|H(i)| +
    |H(i+1)|), else i + 1; 0 where H(0) ≤ 0 and 1 where H(m) > 0, which no outcome can gain from. η = √(8 ln(2m + 2)/T).

    Guarantee: E[T·step_ce] ≤ √(T ln(2m + 2)/2) + (T/(4m)) (e^η − 1)/η, about √T (√(ln(2√T + 2)/2) + 1/4) at m = √T,
    against natures that see the law. It is T where that is less, or where η > 0.96 m: at m = √T in games of up to 3
    rounds. The cutoff calibration error is at most twice as large. Proof: docs/proofs.md.

    Information: O(log m) time a round, O(m) where an |ηP_k| is above 340; some 13 numbers a grid point and run.

    Source: After Okoroafor, Kleinberg and Kim 2025, "Near-optimal algorithms for omniprediction" (O(√(T log T))).
    Deviations: rule, constants and proof are ours.

    Parameters
    ----------
    m : int or str, default "T^(1/2)"
        Steps of the grid 0, 1/m, …, 1, rounded up; a number or an expression in T.
    """

    deterministic, needs_horizon, safe_under_delay, memory = False, True, True, "O(m)"
    # Four numbers a node with up to four nodes for each of the m steps, and some more.
    unit_bytes: ClassVar[float] = 192.0
    version: ClassVar[int] = 2

    m: int | str = "T^(1/2)"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        m = self.steps_at(horizon)
        rate = best_rate(horizon, m) / m
        tilt = np.exp(rate * (0.5 * m - np.arange(m + 1)))
        state = np.concatenate([np.zeros(m + 1), empty_tree(m + 1).ravel()])
        shared = [rate, *tilt, *(1.0 / tilt)]
        return steps.Forecaster(say_between, learn_in_tree, state, shared, size=2, grid=grid_of(m))

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        def bound(horizon: float, m: int) -> float:
            rate = best_rate(horizon, m)
            if rate > 0.96 * m:
                return horizon
            spread = math.sqrt(0.5 * horizon * math.log(2.0 * m + 2.0))
            return min(horizon, spread + horizon / (4.0 * m) * math.expm1(rate) / rate)

        def weights(horizon: float, m: int, bias: Floats, rounds: Floats) -> float:
            """ln Σ_k cosh(ηP_k)."""
            exponents = best_rate(horizon, m) * np.abs(np.cumsum(bias))
            largest = exponents.max()
            total = 0.5 * (np.exp(exponents - largest) + np.exp(-exponents - largest)).sum()
            return float(largest + np.log(total))

        def growth(horizon: float, m: int, v: float, gamma: object) -> float:
            rate = best_rate(horizon, m)
            coarse = max(1.0, 2.0 * math.sinh(0.5 * rate / m))
            return math.log(math.exp(rate * rate / 8.0) + coarse * math.expm1(rate) / (4.0 * m))

        return self._expected(
            Column("measure", "step_ce"),
            "√(T ln(2m + 2)/2) + (T/(4m))(e^η − 1)/η, or T where η > 0.96 m with η = √(8 ln(2m + 2)/T)",
            "after Okoroafor, Kleinberg and Kim 2025; proof in docs/proofs.md",
            bound,
            # The proof bounds the mean of exp(η max|P|) in each run, so that Chernoff's bound holds for their mean.
            lambda t, m, runs, rate: math.log(1.0 / rate) / (runs * best_rate(t, m)),
            self._potential(weights, growth),
        )


def best_rate(horizon: float, m: int) -> float:
    return math.sqrt(8.0 * math.log(2.0 * m + 2.0) / horizon)


# Node n has the children 2n and 2n + 1, the root is 1, and the leaves are the points of the grid. Empty leaves follow.
# A node has e^{±ηB}, with B the bias of its points. With P measured from where it begins, it has Σ e^{ηP_k} and Σ
# e^{−ηP_k}. All are functions of the biases, whatever the order of rounds.

#: the numbers of a node
RISE, FALL, UP, DOWN = range(4)
#: below this sum of the root all exponentials are safe floats
VAST = 1e150


def empty_tree(points: int) -> Floats:
    """The nodes where no point has a bias: all exponentials are 1, the sums are numbers of points."""
    leaves = 1 << (points - 1).bit_length()
    tree = np.ones((2 * leaves, 4))
    tree[leaves + points :, UP:] = 0.0
    while leaves > 1:
        leaves //= 2
        below = tree[2 * leaves : 4 * leaves, UP:]
        tree[leaves : 2 * leaves, UP:] = below[0::2] + below[1::2]
    return tree


@kernel
def parts_of(run):
    """m·E_0, …, m·E_m; the nodes; and of shared numbers e^{η(½ − i/m)} and e^{−η(½ − i/m)}."""
    points, mine = len(shared(run)) >> 1, state(run)
    tilts = shared(run)[1:]
    return mine[:points], mine[points:].reshape(-1, 4), tilts[:points], tilts[points:]


@kernel
def set_leaf(leaf, exponent):
    """Makes a leaf, by ηE."""
    leaf[RISE] = leaf[UP] = math.exp(exponent)
    leaf[FALL] = leaf[DOWN] = math.exp(-exponent)


@kernel
def mend(here, left, right):
    """Makes a node from its children."""
    here[RISE], here[FALL] = left[RISE] * right[RISE], left[FALL] * right[FALL]
    here[UP], here[DOWN] = left[UP] + left[RISE] * right[UP], left[DOWN] + left[FALL] * right[DOWN]


def say_between(run: Run, number: int) -> int:
    """Walks down the tree to the pair; the points beside it have H > 0 or H ≤ 0.

    The state is m·E_0, …, m·E_m and the tree. Shared are η/m and the exponentials that `parts_of` returns.
    """
    biases, tree, tilt, back = parts_of(run)
    points = len(biases)
    if not tree[1, UP] + tree[1, DOWN] < VAST:
        return write_by_logarithms(run, biases, shared(run)[0])
    # The points of `node` begin at `first`, behind points with biases B that sum to e^{ηB} = rise = 1/fall. H is not
    # positive where they end, and the sums from there on are `over` and `under`.
    node, first, length, rise, fall, over, under = 1, 0, len(tree) >> 1, 1.0, 1.0, 0.0, 0.0
    while length > 1:
        length >>= 1
        middle, node = first + length, 2 * node
        if middle >= points:
            continue
        left, right = tree[node], tree[node + 1]
        to_rise, to_fall = rise * left[RISE], fall * left[FALL]
        over_middle, under_middle = over + to_rise * right[UP], under + to_fall * right[DOWN]
        h = over_middle * tilt[middle] - under_middle * back[middle]
        if h > 0.0:
            node, first, rise, fall = node + 1, middle, to_rise, to_fall
        elif h == 0.0:
            return write_value(run, middle / (points - 1))
        else:
            over, under = over_middle, under_middle
    if first == points - 1:
        return write_value(run, first / (points - 1))
    leaf = tree[node]
    here = (over + rise * leaf[UP]) * tilt[first] - (under + fall * leaf[DOWN]) * back[first]
    if here <= 0.0:  # at 0; at another point only by rounding, where H is 0
        return write_value(run, first / (points - 1))
    there = under * back[first + 1] - over * tilt[first + 1]
    return write_pair(run, points - 1, first, there / (here + there))


@kernel
def write_by_logarithms(run, biases, rate):
    """The same by logarithms, point by point from the last, where the sums are no floats."""
    m, before = len(biases) - 1, biases.sum()
    plus_end = minus_end = over = under = -math.inf
    for i in range(m, -1, -1):
        over, under = log_of_sum(over, rate * before), log_of_sum(under, -rate * before)
        shift = rate * (0.5 * m - i)
        plus, minus = over + shift, under - shift
        if plus >= minus:
            if i == m or plus == minus:
                return write_value(run, i / m)
            # The two values of H, divided by the larger of their larger parts.
            top = max(plus, minus_end)
            here = math.exp(plus - top) * -math.expm1(minus - plus)
            there = math.exp(minus_end - top) * -math.expm1(plus_end - minus_end)
            return write_pair(run, m, i, there / (here + there))
        plus_end, minus_end = plus, minus
        before -= biases[i]
    return write_value(run, 0.0)


@kernel
def log_of_sum(x, y):
    """ln(e^x + e^y); −∞ stands for nothing."""
    most, least = max(x, y), min(x, y)
    return most + math.log1p(math.exp(least - most)) if least - most > -40.0 else most


def learn_in_tree(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    biases, tree, _, _ = parts_of(run)
    m = len(biases) - 1
    i = point_of(forecast, m)
    biases[i] += m * outcome - i
    node = (len(tree) >> 1) + i
    set_leaf(tree[node], shared(run)[0] * biases[i])
    while node > 1:
        node >>= 1
        mend(tree[node], tree[2 * node], tree[2 * node + 1])
    return 0
