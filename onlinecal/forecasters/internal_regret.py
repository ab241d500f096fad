"""Grid forecasters without swap regret for the squared loss: the law is the stationary distribution of a matrix.

Row i of the matrix says where the rounds that played i/m would rather have been. Who plays a distribution that the
matrix leaves as it is has nothing to gain, to first order, from any swap. Where several distributions are stationary
the players take that of the closed set to which the point played last leads: mostly a single point or a pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onlinecal._compile import kernel
from onlinecal.errors import InvalidParameter
from onlinecal.expressions import grid_steps
from onlinecal.forecasters.base import Forecaster, ForecasterView, Ints, Law, Player, grid_of
from onlinecal.guarantee import Guarantee
from onlinecal.sight import Sight
from onlinecal.streams import Stream


@dataclass(frozen=True)
class FosterVohra(Forecaster):
    r"""No internal regret for the Brier loss: the law is stationary under the matrix of pairwise regrets.

    R_ij = Σ (i/m − y)² − (j/m − y)² = ((j − i)/m)(2E_i − n_i (j − i)/m), over the n_i rounds that played i, is
    what they lost
    against j. The law q satisfies Σ_i q_i max(R_ij, 0) = q_j Σ_k max(R_jk, 0) for every j: each point gives
    away as much as it gets. A point without positive regret, |E_i| ≤ n_i/(2m), may be played alone.

    Parameters
    ----------
    m : int or str, default "T^(1/3)"
        Steps of the grid, rounded up; a number or an expression in T.
    swaps : {"all", "next"}, default "all"
        Which regrets are in the matrix: those against every point, as in the paper, or only against the two neighbours.

    Guarantee
    ---------
    With ``swaps="next"``: E[T·ECE] ≤ T/(2m) + √(2(m + 1)T), which is 1.9·T^{2/3} at m = T^{1/3}, against natures that
    see the law. Proof: Φ = Σ max(R_ij, 0)² has no first-order growth, and a round that plays i adds at most
    the squares of its two losses against the neighbours, 2·(2/m)²; and |E_i| ≤ n_i/(2m) + (m/2) max_j R_ij.
    With ``swaps="all"`` the same argument gives T/(2m) + (m/2)√(m(m + 1)T), which is more than T at m = T^{1/3} and
    T^{5/6} at best: none is stated. Measured against a drift its ECE grows like T^{0.74} at m = T^{1/3}.

    Information
    -----------
    Randomised; needs the horizon (through m). Mostly a few steps a round, to a point or a pair; while points with few
    rounds have wide jumps, the cube of the size of a closed set, up to (m + 1)³. 2(m + 1) counters a run.

    Source
    ------
    Foster and Vohra 1998, "Asymptotic calibration". Deviations: the paper leaves open which stationary distribution
    is taken where there are several, see the head of this file; ``swaps="next"`` is ours. The T^{2/3} that later papers
    quote for the paper is proved here for the neighbours only.
    """

    m: int | str = "T^(1/3)"
    swaps: Literal["all", "next"] = "all"

    def __post_init__(self) -> None:
        grid_steps("m", self.m, 1000)
        if self.swaps not in ("all", "next"):
            raise InvalidParameter(f"swaps = {self.swaps!r}; expected 'all' or 'next'")

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player on the grid of this horizon."""
        m = grid_steps("m", self.m, horizon)
        return _FosterVohraPlayer(runs, m, m if self.swaps == "all" else 1)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The bound of the docstring, where there is one."""
        if self.swaps == "all":
            return ()

        def bound(horizon: float) -> float:
            m = grid_steps("m", self.m, int(horizon))
            return horizon / (2.0 * m) + math.sqrt(2.0 * (m + 1) * horizon)

        source = "after Foster and Vohra 1998; constant in the docstring"
        return (Guarantee("ece", "T/(2m) + √(2(m + 1)T)", bound, "expected", Sight.LAW, source),)


@dataclass(frozen=True)
class BlumMansour(Forecaster):
    r"""No full swap regret for the squared loss: a learner at each grid point, and the law that is stationary.

    The learner of i follows the leader on the rounds, weighed by how likely they were to play i: its x_i is their
    weighted mean outcome. Row i of the matrix puts x_i on the two neighbouring grid points, with mean x_i. The law is
    stationary, so the forecast is where its own learner wants to be.

    Parameters
    ----------
    m : int or str, default "T^(1/3)"
        Steps of the grid, rounded up; a number or an expression in T.

    Guarantee
    ---------
    E[T·Σ w (q − v)²], the swap regret of the quadratic task, is O(T^{1/3} log T) against natures that see the law: each
    learner regrets O(log T) and the rounding costs at most 1/(4m²) a round. No constant is stated in the source.

    Information
    -----------
    Randomised; needs the horizon (through m). Mostly a few steps a round, to a point or a pair; while the counts are
    small the cube of the size of a closed set; 2(m + 1) numbers a run.

    Source
    ------
    Blum and Mansour 2007 (the reduction); Fishelson, Kleinberg, Okoroafor, Paes Leme, Schneider and Teng 2025; Luo,
    Senapati and Sharan 2025. Deviations: a learner that has no weight yet stays at its own point; the choice of
    stationary distribution is that at the head of this file.
    """

    m: int | str = "T^(1/3)"

    def __post_init__(self) -> None:
        grid_steps("m", self.m, 1000)

    def start(self, horizon: int, runs: int, stream: Stream) -> Player:
        """A player on the grid of this horizon."""
        return _BlumMansourPlayer(runs, grid_steps("m", self.m, horizon))

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The rate for the squared ℓ2 calibration error."""
        return (
            Guarantee(
                measure="swap_regret[quadratic]",
                formula="T^(1/3) log T",
                bound=lambda t: t ** (1 / 3) * math.log(t),
                kind="rate",
                against=Sight.LAW,
                source="Fishelson et al. 2025; Luo, Senapati and Sharan 2025, m = T^(1/3)",
            ),
        )


class _Stationary:
    """A player whose law has as many atoms as the closed sets need, which is two most of the time."""

    #: rounds that a law must have been too large by half before a smaller one takes its place
    PATIENCE = 256

    def __init__(self, runs: int, m: int) -> None:
        self.law = Law(runs, 2, grid_of(m))
        self.idle = 0
        #: the point played last: the next closed set is mostly there, so it is sought from there
        self.last = np.full(runs, m // 2, np.int64)
        #: room for one run's matrix and for the search in it
        self.flow = np.zeros((m + 1, m + 1))
        self.marks = np.zeros((3, m + 1), np.int64)

    def forecast(self, view: ForecasterView) -> Law:
        needed, size = self._state(), self.law.atoms.shape[1]
        self.idle = self.idle + 1 if 2 * needed <= size > 2 else 0
        if needed > size or self.idle > self.PATIENCE:
            self.law = Law(len(self.law.atoms), max(2, needed), self.law.grid)
            self.idle = 0
            self._state()
        return self.law

    def _state(self) -> int:
        """Fills the law if it is large enough; returns how many atoms it needs."""
        raise AssertionError("each player states its own law")


class _FosterVohraPlayer(_Stationary):
    """Counts n_i and integer biases m·E_i."""

    def __init__(self, runs: int, m: int, reach: int) -> None:
        super().__init__(runs, m)
        self.reach = reach
        self.bias = np.zeros((runs, m + 1), np.int64)
        self.rounds = np.zeros((runs, m + 1), np.int64)

    def _state(self) -> int:
        return _state_regrets(
            self.bias,
            self.rounds,
            self.reach,
            self.last,
            self.flow,
            self.marks,
            self.law.atoms,
            self.law.weights,
        )

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        self.last[:] = forecast
        _learn_regrets(self.bias, self.rounds, forecast, outcome)


class _BlumMansourPlayer(_Stationary):
    """Weights and weighted outcomes of each point's learner, and where it wants to be, times m."""

    def __init__(self, runs: int, m: int) -> None:
        super().__init__(runs, m)
        self.weight = np.zeros((runs, m + 1))
        self.ones = np.zeros((runs, m + 1))
        self.wish = np.tile(np.arange(m + 1.0), (runs, 1))

    def _state(self) -> int:
        return _state_wishes(self.wish, self.last, self.flow, self.marks, self.law.atoms, self.law.weights)

    def update(self, forecast: NDArray[Any], outcome: Ints) -> None:
        self.last[:] = forecast
        # Every point that might have been played learns, in proportion to its weight in the law.
        _learn_wishes(self.weight, self.ones, self.wish, self.law.atoms, self.law.weights, outcome)


@kernel
def _put_pair(atoms, weights, i, share):
    """Weight `share` on i and the rest on i + 1."""
    atoms[0], weights[0] = i, share
    for j in range(1, len(atoms)):
        atoms[j], weights[j] = i + 1, 0.0
    weights[1] = 1.0 - share


@kernel
def _put_point(atoms, weights, i):
    for j in range(len(atoms)):
        atoms[j], weights[j] = i, 0.0
    weights[0] = 1.0


@kernel
def _state_regrets(bias, rounds, reach, last, flow, marks, atoms, weights):
    needed = 0
    for r in range(len(bias)):
        i = last[r]
        a, n = 2 * abs(bias[r, i]), rounds[r, i]
        # In steps of 1/m, i regrets a step of d in the direction of its bias if and only if d · n < a. As long as only
        # single steps are regretted, walk: to a point without regret, or to a pair that point at each other.
        while n < a and (reach == 1 or a <= 2 * n):
            j = i + 1 if bias[r, i] > 0 else i - 1
            b, k = 2 * abs(bias[r, j]), rounds[r, j]
            if k < b and (reach == 1 or b <= 2 * k) and (bias[r, i] > 0) != (bias[r, j] > 0):
                stay, leave = float(b - k), float(a - n)
                if i < j:
                    _put_pair(atoms[r], weights[r], i, stay / (stay + leave))
                else:
                    _put_pair(atoms[r], weights[r], j, leave / (stay + leave))
                needed = max(needed, 2)
                break
            i, a, n = j, b, k
        else:
            if a <= n:
                _put_point(atoms[r], weights[r], i)
                needed = max(needed, 1)
            else:
                low, size = _block_of_regrets(bias[r], rounds[r], reach, i, flow)
                needed = max(needed, _put_stationary(flow, size, i - low, low, marks, atoms[r], weights[r]))
    return needed


@kernel
def _block_of_regrets(bias, rounds, reach, start, flow):
    """Positive regrets within the least interval that `start` is in and no point of it wants to leave."""
    last = len(bias) - 1
    low = high = start
    grown = True
    while grown:
        grown = False
        for j in range(low, high + 1):
            # The largest step with step · n < 2 m |E|, in the direction of the bias.
            step = min(reach, (2 * abs(bias[j]) - 1) // rounds[j]) if rounds[j] > 0 else 0
            if bias[j] > 0 and j + step > high and high < last:
                high, grown = min(last, j + step), True
            elif bias[j] < 0 and j - step < low and low > 0:
                low, grown = max(0, j - step), True
    for i in range(low, high + 1):
        for j in range(low, high + 1):
            regret = (j - i) * (2 * bias[i] - rounds[i] * (j - i)) if abs(j - i) <= reach else 0
            flow[i - low, j - low] = max(0.0, float(regret))
    return low, high - low + 1


@kernel
def _state_wishes(wish, last, flow, marks, atoms, weights):
    needed = 0
    for r in range(len(wish)):
        # Follow the wishes from the point played last, a few steps: to a point that wishes itself, or to a pair whose
        # wishes lie between the two.
        i = last[r]
        for _ in range(4):
            low = math.floor(wish[r, i])
            high = math.ceil(wish[r, i])
            if low == high:
                if low == i:
                    break
                i = low
                continue
            up, down = wish[r, low] - low, high - wish[r, high]
            if up == 0.0 or down == 0.0:
                i = low if up == 0.0 else high
                continue
            if 0.0 < up <= 1.0 and 0.0 < down <= 1.0:
                break
            i = low
        low, high = math.floor(wish[r, i]), math.ceil(wish[r, i])
        up, down = wish[r, low] - low, high - wish[r, high]
        if low == high == i:
            _put_point(atoms[r], weights[r], i)
            needed = max(needed, 1)
        elif low < high and 0.0 < up <= 1.0 and 0.0 < down <= 1.0:
            _put_pair(atoms[r], weights[r], low, down / (up + down))
            needed = max(needed, 2)
        else:
            first, size = _block_of_wishes(wish[r], i, flow)
            needed = max(needed, _put_stationary(flow, size, i - first, first, marks, atoms[r], weights[r]))
    return needed


@kernel
def _block_of_wishes(wish, start, flow):
    """The matrix within the least interval that `start` is in and no wish of a point in it leaves."""
    low = high = start
    grown = True
    while grown:
        grown = False
        for j in range(low, high + 1):
            first, end = math.floor(wish[j]), math.ceil(wish[j])
            if first < low or end > high:
                low, high, grown = min(low, first), max(high, end), True
    for i in range(low, high + 1):
        for j in range(low, high + 1):
            flow[i - low, j - low] = max(0.0, 1.0 - abs(wish[i] - j)) if j != i else 0.0
    return low, high - low + 1


@kernel
def _put_stationary(flow, size, start, offset, marks, atoms, weights):
    """The stationary law of the closed set that `start` leads to; returns the size of the set.

    `flow` holds a block of `size` points, of which the first is `offset`. The set: as long as some point that can be
    reached does not lead back, go on from there. Its law: elimination without subtraction (Grassmann, Taksar and
    Heyman 1985), so every weight is right to nearly all digits.
    """
    seen, back, members = marks[0], marks[1], marks[2]
    here = start
    lost = True
    while lost:
        lost = False
        _reach(flow, size, here, seen, members)
        _reach(flow.T, size, here, back, members)
        for k in range(size):
            if seen[k] == 1 and back[k] == 0:
                here, lost = k, True
                break
    count = 0
    for k in range(size):
        if seen[k] == 1:
            members[count] = k
            count += 1
    if count > len(atoms):
        return count
    if count < size:
        for i in range(count):
            for j in range(count):
                flow[i, j] = flow[members[i], members[j]]
    # From the last point to the second: what flows through a point is passed on to those before it. The inner loop
    # runs along rows without indirection, which the compiler turns into vector instructions.
    for n in range(count - 1, 0, -1):
        out = 0.0
        for j in range(n):
            out += flow[n, j]
        passed = flow[n]
        for i in range(n):
            share = flow[i, n] / out
            flow[i, n] = share
            if share > 0.0:
                row = flow[i]
                for j in range(n):
                    row[j] += share * passed[j]
    weights[0] = total = 1.0
    for n in range(1, count):
        weights[n] = 0.0
        for i in range(n):
            weights[n] += weights[i] * flow[i, n]
        total += weights[n]
    for n in range(len(atoms)):
        atoms[n] = offset + members[min(n, count - 1)]
        weights[n] = weights[n] / total if n < count else 0.0
    return count


@kernel
def _reach(flow, size, start, seen, stack):
    """Marks all points of the block that `start` leads to, itself included."""
    seen[:size] = 0
    seen[start] = 1
    stack[0] = start
    waiting = 1
    while waiting > 0:
        waiting -= 1
        i = stack[waiting]
        for j in range(size):
            if flow[i, j] > 0.0 and seen[j] == 0:
                seen[j] = 1
                stack[waiting] = j
                waiting += 1


@kernel
def _learn_regrets(bias, rounds, forecast, outcome):
    m = bias.shape[1] - 1
    for r in range(len(bias)):
        i = forecast[r]
        bias[r, i] += m * outcome[r] - i
        rounds[r, i] += 1


@kernel
def _learn_wishes(weight, ones, wish, atoms, weights, outcome):
    m = weight.shape[1] - 1
    for r in range(len(weight)):
        for j in range(atoms.shape[1]):
            w, i = weights[r, j], atoms[r, j]
            if w > 0.0:
                weight[r, i] += w
                ones[r, i] += w * outcome[r]
                wish[r, i] = m * min(1.0, ones[r, i] / weight[r, i])
