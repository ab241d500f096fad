"""Grid forecasters without swap regret: the law is the stationary distribution of a matrix.

Row i of the matrix says where the rounds that played the point i would rather have been. Of several stationary
distributions the players take that of a closed set to which the point played last leads.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.columns import Column
from onlinecal.core.expressions import grid_steps
from onlinecal.core.guarantee import Guarantee, Sight, log
from onlinecal.core.specification import STEPS, allow, word
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, law, note, shared, state
from onlinecal.forecasters.base import InSteps, OnGrid, grid_of
from onlinecal.forecasters.hedging import point_of


@dataclass(frozen=True)
class FosterVohra(OnGrid):
    r"""No internal regret for the Brier loss: the law is stationary under the matrix of pairwise regrets.

    R_ij = Σ (i/m − y)² − (j/m − y)² = ((j − i)/m)(2E_i − n_i (j − i)/m), over the n_i rounds that played i, is their
    regret against j. The law q satisfies Σ_i q_i max(R_ij, 0) = q_j Σ_k max(R_jk, 0) for every j. A point without
    positive regret, |E_i| ≤ n_i/(2m), may be played alone.

    Guarantee: With ``swaps="next"``: E[T·ECE] ≤ T/(2m) + √(2(m + 1)T), about (1/2 + √2)·T^{2/3} at m = T^{1/3}, against
    natures that see the law. Proof: docs/proofs.md. With ``swaps="all"`` the same argument gives T/(2m) + (m/2)√(m(m +
    1)T), which is T^{5/6} at best: none is stated.

    Information: 2(m + 1) counters a run. With ``swaps="next"`` mostly a few steps a round. With ``swaps="all"`` a round
    takes O(m² + k³) steps and room for m² numbers, where the point played last leads to k points.

    Source: Foster and Vohra 1998, "Asymptotic calibration", with ``swaps="all"``. Foster 1999, "A proof of calibration
    via Blackwell's approachability theorem", for a mixture of two neighbours. Deviations: the default takes the
    neighbours' regrets only, for which T^{2/3} is proved; the choice among stationary distributions.

    Parameters
    ----------
    m : int or str, default "T^(1/3)"
        Steps of the grid: a number or an expression in T. The latter is rounded up to an even number, so that ½ is on
        the grid.
    swaps : {"next", "all"}, default "next"
        The regrets in the matrix: those against the two neighbours, or, as in the paper, against every point. No regret
        against the neighbours means no regret at all.
    """

    deterministic, safe_under_delay, memory = False, True, "O(m)"
    version: ClassVar[int] = 5
    even: ClassVar[bool] = True
    allowed = allow(m=STEPS, swaps=word("next", "all"))

    m: int | str = "T^(1/3)"
    swaps: Literal["next", "all"] = "next"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        m = self.steps_at(horizon)
        grid, first = grid_of(m), [m // 2] + [0] * (2 * m + 2)
        if self.swaps == "all":
            return steps.Forecaster(without_regret, count_errors, first, grid, size=m + 1, grid=grid)
        return steps.Forecaster(between_neighbours, count_errors, first, grid, size=2, grid=grid)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        if self.swaps == "all":
            return ()

        def slack(horizon: float, m: int, runs: int, rate: float) -> float:
            # √(Φ_t + 8(T − t)/m²) is a supermartingale from √(8T)/m to √Φ_T. A round moves two regrets by at most 2/m,
            # so that given the past it lies in an interval of length 4√2/m. Azuma and Hoeffding over runs·T of its
            # moves, times the factor (m/2)√(m + 1) from √Φ to the ECE.
            return 2.0 * math.sqrt((m + 1) * horizon * math.log(1.0 / rate) / runs)

        def squares(horizon: float, m: int, bias: Floats, rounds: Floats) -> float:
            up, down = (2.0 * bias - rounds / m) / m, (-2.0 * bias - rounds / m) / m
            return float((np.maximum(up[:-1], 0.0) ** 2).sum() + (np.maximum(down[1:], 0.0) ** 2).sum())

        return self._expected(
            Column("measure", "ece"),
            "T/(2m) + √(2(m + 1)T)",
            "after Foster and Vohra 1998; constant in the docstring",
            lambda t, m: t / (2.0 * m) + math.sqrt(2.0 * (m + 1) * t),
            slack,
            self._potential(squares, lambda t, m, v, _: 8.0 / m**2),
        )


@kernel
def errors_of(run):
    """The state: the point that was played last, all m·E_i, and all n_i. The grid is shared."""
    mine, points = state(run), len(shared(run))
    return int(mine[0]), mine[1 : 1 + points], mine[1 + points :]


def count_errors(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    _, bias, rounds = errors_of(run)
    m = len(bias) - 1
    i = point_of(forecast, m)
    state(run)[0] = i
    bias[i] += m * outcome - i
    rounds[i] += 1
    return 0


@kernel
def write_between(run, low, up, down, i):
    """The law on point `low` and the next that flows between them leave as it is; without any, point i."""
    (values, weights), grid = law(run), shared(run)
    share = down / (up + down) if up + down > 0.0 else 1.0 if i == low else 0.0
    values[0], weights[0], values[1], weights[1] = grid[low], share, grid[low + 1], 1.0 - share
    return 2


def between_neighbours(run: Run, number: int) -> int:
    """The matrix is a walk on the line, so a point or a pair is stationary."""
    i, bias, rounds = errors_of(run)
    low = i - int(bias[i] < 0 or i == len(bias) - 1)
    # Regrets of low against high and of high against low, in units of 1/m². While the next point wants to go on in the
    # same direction, walk to it.
    while True:
        high = low + 1
        up, down = 2 * bias[low] - rounds[low], -2 * bias[high] - rounds[high]
        if i == low and up > 0 and 2 * bias[high] > rounds[high]:
            i = low = high
        elif i == high and down > 0 and 2 * bias[low] + rounds[low] < 0:
            i, low = low, low - 1
        else:
            break
    return write_between(run, low, max(up, 0.0), max(down, 0.0), i)


def without_regret(run: Run, number: int) -> int:
    i, bias, rounds = errors_of(run)
    points = len(bias)
    flow = np.zeros((points, points))
    for k in range(points):
        for j in range(points):
            far = float(j - k)
            # R_kj in units of 1/m².
            flow[k, j] = max(far * (2.0 * bias[k] - rounds[k] * far), 0.0)
    return write_stationary(run, flow, np.sort(reached(flow, i)))


@kernel
def reached(flow, start):
    """The points that `start` leads to, itself first."""
    members, seen, count, k = np.full(len(flow), start), np.zeros(len(flow), np.bool_), 1, 0
    seen[start] = True
    while k < count:
        for j in range(len(flow)):
            if flow[members[k], j] > 0.0 and not seen[j]:
                members[count], seen[j] = j, True
                count += 1
        k += 1
    return members[:count]


#: the least flow out of a point; the largest weight relative to the first, before all are scaled down
LEAST, MOST = 1e-100, 1e200


@kernel
def stationary(flow):
    """The weights that the flows leave as they are, of a closed set that point 0 leads to. `flow` is used up."""
    # Elimination without subtraction (Grassmann, Taksar and Heyman 1985): every weight is right to nearly all digits. A
    # point without flow to those before it ends the search: it is in a closed set with those eliminated earlier.
    count, root = len(flow), 0
    for n in range(count - 1, 0, -1):
        out = 0.0
        for j in range(n):
            out += flow[n, j]
        if out == 0.0:
            root = n
            break
        for i in range(n):
            part = flow[i, n] / out
            flow[i, n] = part
            if part > 0.0:
                for j in range(n):
                    flow[i, j] += part * flow[n, j]
    share = np.zeros(count)
    share[root] = total = 1.0
    for n in range(root + 1, count):
        for i in range(root, n):
            share[n] += share[i] * flow[i, n]
        total += share[n]
        if total > MOST:
            share /= MOST
            total /= MOST
    return share / total


@kernel
def write_stationary(run, flow, members):
    """The law of some points, which lead to no others, that the flows leave as it is; as a step's result."""
    own = np.empty((len(members), len(members)))
    for k in range(len(members)):
        for n in range(len(members)):
            own[k, n] = flow[members[k], members[n]]
    (values, weights), grid, share, size = law(run), shared(run), stationary(own), 0
    for k in range(len(members)):
        if share[k] > 0.0:
            values[size], weights[size] = grid[members[k]], share[k]
            size += 1
    return size


def of_learners(grid: Floats, even: bool) -> steps.Forecaster:
    """A player with a learner at each point of a grid, even or not, which begins in the middle."""
    points = len(grid)
    first = [(points - even) // 2] + [0] * (3 * points)
    return steps.Forecaster(
        where_wishes_lead, learn_wishes, first, grid, size=points, grid=grid, note=1 + 2 * points
    )


@dataclass(frozen=True)
class BlumMansour(OnGrid):
    r"""No full swap regret for the squared loss: a learner at each grid point, and the law that is stationary.

    The learner of i follows the leader on the rounds, weighed by how likely they were to play i. Its x_i is the
    weighted mean of their outcomes and of one imagined outcome, i/m. Row i of the matrix puts x_i on the two
    neighbouring grid points, with mean x_i. The law is stationary: the forecast is where its own learner wants to be.

    Guarantee: E[T·Σ w (q − v)²], the swap regret of the quadratic task, is O(T^{1/3} log T) against natures that see
    the law. Each learner regrets O(log T) in rounds weighed by the law. Rounding costs at most 1/(4m²) a round, and
    drawing from the law adds noise of O(log T) a point. No constant is stated in the sources.

    Source: Blum and Mansour 2007 (the reduction); Fishelson, Kleinberg, Okoroafor, Paes Leme, Schneider and Teng 2025;
    Luo, Senapati and Sharan 2025. Deviations: the imagined outcome, which costs a learner a regret of at most 1; the
    choice among stationary distributions.

    Parameters
    ----------
    m : int or str, default "T^(1/3)"
        Steps of the grid: a number or an expression in T. The latter is rounded up to an even number, so that ½ is on
        the grid.
    """

    deterministic, safe_under_delay, memory = False, True, "O(m)"
    version: ClassVar[int] = 3
    even: ClassVar[bool] = True

    m: int | str = "T^(1/3)"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return of_learners(grid_of(self.steps_at(horizon)), True)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        column = Column("quadratic_task", "swap_regret", task="quadratic")
        rate, source = "T^(1/3) log T", "Fishelson et al. 2025; Luo, Senapati and Sharan 2025, m = T^(1/3)"
        return (Guarantee(column, rate, lambda t: t ** (1 / 3) * log(t), "rate", Sight.LAW, source),)


@dataclass(frozen=True)
class BlumMansourLog(InSteps):
    r"""No full swap regret for the logarithmic loss: as `BlumMansour`, on a grid that is finer towards 0 and 1.

    The points are z_i = sin²(π(2i + 1)/(4(m + 1))), i = 0 … m: the step is about √(z(1 − z))/m, and none is 0 or 1. The
    learner of i wants to be at x_i: the mean of one imagined outcome z_i and of the outcomes, weighed as there. Row i
    of the matrix puts x_i, moved to [z_0, z_m], on the two points next to it, with that mean. The law is stationary.

    Guarantee: Let P_t(i) be the weight of z_i in the law of round t, S_i = Σ P_t(i) y_t and n_i = Σ P_t(i). The swap
    regret that is weighed by the law, Σ n_i KL(S_i/n_i ‖ z_i), is O(T^{1/3} log T) for m = T^{1/3}, against natures
    that see the law. Argument: docs/proofs.md. KL calibration itself, `oc.measures.bregman`, is of the forecasts that
    were drawn; this adds noise of O(log T) a point. No constant is stated.

    Source: Luo, Senapati and Sharan 2025, "Simultaneous swap regret minimization via KL-calibration"; Blum and Mansour
    2007 (the reduction). Deviations: grid, learners and argument are ours.

    Parameters
    ----------
    m : int or str, default "T^(1/3)"
        One less than the points, rounded up; a number or an expression in T.
    """

    deterministic, safe_under_delay, memory = False, True, "O(m)"
    version: ClassVar[int] = 2

    m: int | str = "T^(1/3)"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        return of_learners(sine_grid(grid_steps("m", self.m, horizon)), False)


def sine_grid(m: int) -> Floats:
    """The m + 1 points of the docstring, symmetric about 1/2."""
    grid: Floats = np.sin(math.pi * (2.0 * np.arange(m + 1) + 1.0) / (4.0 * (m + 1))) ** 2
    return grid


@kernel
def learners_of(run):
    """The weights of the learners, their biases times m, and how many steps each wants to be from its point."""
    mine, points = state(run)[1:], len(shared(run))
    return mine[:points], mine[points : 2 * points], mine[2 * points :]


def where_wishes_lead(run: Run, number: int) -> int:
    """The state is the point that was played last, and the learners; the grid is shared.

    The note is the law: its size, values and weights.
    """
    pull, i = learners_of(run)[2], int(state(run)[0])
    low = i - int(pull[i] < 0.0 or i == len(pull) - 1)
    up, down = pull[low], -pull[low + 1]
    if 0.0 <= up <= 1.0 and 0.0 <= down <= 1.0:
        # Mostly the point played last and a neighbour wish no further than each other.
        size = write_between(run, low, up, down, i)
    else:
        flow = wishes(pull)
        size = write_stationary(run, flow, reached(flow, i))
    (values, weights), kept = law(run), note(run)
    kept[0], most = size, len(kept) >> 1  # the law of a part has room for more than its own
    kept[1 : 1 + size], kept[1 + most : 1 + most + size] = values[:size], weights[:size]
    return size


@kernel
def wishes(pull):
    """The matrix of wishes: each learner wants to be between two points, and how much it wants either."""
    flow = np.zeros((len(pull), len(pull)))
    for k in range(len(pull)):
        whole = math.floor(pull[k])
        for j, rate in ((k + whole, 1.0 - (pull[k] - whole)), (k + whole + 1, pull[k] - whole)):
            if rate > LEAST:
                flow[k, j] = rate
    return flow


def learn_wishes(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    """Every point that might have been played learns, in proportion to its weight in the law."""
    (weight, bias, pull), grid, kept = learners_of(run), shared(run), note(run)
    state(run)[0] = np.searchsorted(grid, forecast)
    m, most = len(grid) - 1, len(kept) >> 1
    for j in range(1, 1 + int(kept[0])):
        i, w = np.searchsorted(grid, kept[j]), kept[j + most]
        weight[i] += w
        if grid[0] == 0.0:  # 0, 1/m, …, 1
            bias[i] += w * (m * outcome - i)
            pull[i] = bias[i] / (1.0 + weight[i])
        else:
            bias[i] += w * (outcome - grid[i])
            pull[i] = steps_to(grid, i, grid[i] + bias[i] / (1.0 + weight[i]))
    return 0


@kernel
def steps_to(grid, i, x):
    """Steps from point i to x, which is moved into the grid, in parts of the step where it ends."""
    j = i
    while j > 0 and x < grid[j]:
        j -= 1
    while j < len(grid) - 2 and x >= grid[j + 1]:
        j += 1
    if j == len(grid) - 1:
        return 0.0
    part = (x - grid[j]) / (grid[j + 1] - grid[j])
    return j - i + min(1.0, max(0.0, part))
