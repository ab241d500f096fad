"""Grid forecasters without swap regret for the squared loss: the law is the stationary distribution of a matrix.

Row i of the matrix says where the rounds that played i/m would rather have been. Of several stationary distributions
the players take that of a closed set to which the point played last leads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from onlinecal.core._compile import kernel
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Guarantee, Sight, log
from onlinecal.core.streams import Stream
from onlinecal.forecasters import _potentials
from onlinecal.forecasters._pairwise import pairwise_player
from onlinecal.forecasters._stationary import TINY, count_regrets, state_either, state_stationary, whole
from onlinecal.forecasters.base import OnGrid, grid_of
from onlinecal.rounds.players import CompiledForecaster
from onlinecal.rounds.steps import Memory, floats, ints, law, law_atoms, law_weights, learn, scratch


@dataclass(frozen=True)
class FosterVohra(OnGrid):
    r"""No internal regret for the Brier loss: the law is stationary under the matrix of pairwise regrets.

    R_ij = Σ (i/m − y)² − (j/m − y)² = ((j − i)/m)(2E_i − n_i (j − i)/m), over the n_i rounds that played i, is their
    regret against j. The law q satisfies Σ_i q_i max(R_ij, 0) = q_j Σ_k max(R_jk, 0) for every j. A point without
    positive regret, |E_i| ≤ n_i/(2m), may be played alone.

    Parameters
    ----------
    m : int or str, default "T^(1/3)"
        Steps of the grid, rounded up; a number or an expression in T.
    swaps : {"next", "all"}, default "next"
        The regrets in the matrix: those against the two neighbours, or, as in the paper, against every point. Without
        regret against the neighbours there is none at all.

    Guarantee
    ---------
    With ``swaps="next"``: E[T·ECE] ≤ T/(2m) + √(2(m + 1)T), about (1/2 + √2)·T^{2/3} at m = T^{1/3}, against natures
    that see the law. Proof: Φ = Σ max(R_ij, 0)² has no first-order growth, and a round that plays i adds at most
    the squares of its two losses against the neighbours, 2·(2/m)²; and |E_i| ≤ n_i/(2m) + (m/2) max_j R_ij.
    With ``swaps="all"`` the same argument gives T/(2m) + (m/2)√(m(m + 1)T), which is T^{5/6} at best: none is stated.

    Information
    -----------
    2(m + 1) counters a run. With ``swaps="next"`` mostly a few steps a round. With ``swaps="all"`` (m + 1)² floats a
    run, O(m²) steps a round, and O(m³) when a point is played that has been out of use.

    Source
    ------
    Foster and Vohra 1998, "Asymptotic calibration", with ``swaps="all"``; Foster 1999, "A proof of calibration via
    Blackwell's approachability theorem", for a mixture of two neighbours. Deviations: the default takes the neighbours'
    regrets only, for which T^{2/3} is proved; the choice among stationary distributions.
    """

    deterministic, safe_under_delay = False, True

    m: int | str = "T^(1/3)"
    swaps: Literal["next", "all"] = "next"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.swaps not in ("next", "all"):
            raise InvalidParameter(f"swaps = {self.swaps!r}; expected 'next' or 'all'")

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        return "O(m^2)" if self.swaps == "all" else "O(m)"

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        m = self.steps_at(horizon)
        if self.swaps == "all":
            return pairwise_player(m)
        memory = Memory(ints=[m // 2] + [0] * (2 * m + 2))
        return CompiledForecaster(_state_neighbours, _count, memory, size=2, grid=grid_of(m))

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        if self.swaps == "all":
            return ()

        def bound(horizon: float) -> float:
            m = self.steps_at(int(horizon))
            return horizon / (2.0 * m) + math.sqrt(2.0 * (m + 1) * horizon)

        def slack(horizon: float, runs: int, rate: float) -> float:
            # √(Φ_t + 8(T − t)/m²) is a supermartingale from √(8T)/m to √Φ_T, and given the past it lies in an interval
            # of length 4√2/m, since a round moves two regrets by at most 2/m: Azuma and Hoeffding over runs·T of its
            # moves, times the factor (m/2)√(m + 1) from √Φ to the ECE.
            m = self.steps_at(int(horizon))
            return 2.0 * math.sqrt((m + 1) * horizon * math.log(1.0 / rate) / runs)

        source = "after Foster and Vohra 1998; constant in the docstring"
        formula = "T/(2m) + √(2(m + 1)T)"
        potential = _potentials.neighbours(self.m)
        return (
            Guarantee(
                Column("measure", "ece"),
                formula,
                bound,
                "expected",
                Sight.LAW,
                source,
                slack=slack,
                potential=potential,
            ),
        )


@dataclass(frozen=True)
class BlumMansour(OnGrid):
    r"""No full swap regret for the squared loss: a learner at each grid point, and the law that is stationary.

    The learner of i follows the leader on the rounds, weighed by how likely they were to play i: its x_i is the
    weighted mean of their outcomes and of one imagined outcome, i/m. Row i of the matrix puts x_i on the two
    neighbouring grid points, with mean x_i. The law is stationary: the forecast is where its own learner wants to be.

    Parameters
    ----------
    m : int or str, default "T^(1/3)"
        Steps of the grid, rounded up; a number or an expression in T.

    Guarantee
    ---------
    E[T·Σ w (q − v)²], the swap regret of the quadratic task, is O(T^{1/3} log T) against natures that see the law: each
    learner regrets O(log T) in rounds weighed by the law, the rounding costs at most 1/(4m²) a round, and drawing from
    the law adds noise of O(log T) a point to what is weighed. No constant is stated in the sources.

    Information
    -----------
    Mostly a few steps a round; while the counts are small the cube of the size of a closed set. 3(m + 1) numbers a run,
    and (m + 1)² for all runs together.

    Source
    ------
    Blum and Mansour 2007 (the reduction); Fishelson, Kleinberg, Okoroafor, Paes Leme, Schneider and Teng 2025; Luo,
    Senapati and Sharan 2025. Deviations: the imagined outcome, which costs a learner a regret of at most 1; the choice
    among stationary distributions.
    """

    deterministic, safe_under_delay, memory = False, True, "O(m)"

    m: int | str = "T^(1/3)"

    def start(self, horizon: int, stream: Stream) -> CompiledForecaster:
        m = self.steps_at(horizon)
        points = m + 1
        memory = Memory(
            ints=[m // 2] + [-1] * points, floats=3 * points, scratch=points * points + 2 * points
        )
        return CompiledForecaster(state_wishes, _learn_wishes, memory, size=max(2, points), grid=grid_of(m))

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return (
            Guarantee(
                column=Column("quadratic_task", "swap_regret", task="quadratic"),
                formula="T^(1/3) log T",
                bound=lambda t: t ** (1 / 3) * log(t),
                kind="rate",
                against=Sight.LAW,
                source="Fishelson et al. 2025; Luo, Senapati and Sharan 2025, m = T^(1/3)",
            ),
        )


# ---------------------------------------------------------------- steps: Foster–Vohra on neighbours


@law
def _state_neighbours(run, number):
    """The point played last, m·E_i and n_i. The matrix is a walk on the line, so a point or a pair is stationary."""
    state = ints(run)
    points = len(state) // 2
    i, bias, rounds = state[0], state[1 : 1 + points], state[1 + points :]
    low = i - np.int64(bias[i] < 0 or i == points - 1)
    # Regrets of low against high and of high against low, in units of 1/m². While the next point wants to go on in
    # the same direction, walk: to a point without regret, or to a pair that point at each other.
    while True:
        high = low + 1
        up, down = 2 * bias[low] - rounds[low], -2 * bias[high] - rounds[high]
        if i == low and up > 0 and 2 * bias[high] > rounds[high]:
            i = low = high
        elif i == high and down > 0 and 2 * bias[low] + rounds[low] < 0:
            i, low = low, low - 1
        else:
            break
    up, down = max(up, 0), max(down, 0)
    stay = 1.0 if i == low else 0.0
    return state_either(run, low, down / (up + down) if up + down > 0 else stay)


@learn
def _count(run, number, size, drawn, outcome):
    state, i = ints(run), law_atoms(run)[drawn]
    points = len(state) // 2
    state[0] = i
    count_regrets(state[1 : 1 + points], state[1 + points :], i, outcome)
    return 0


# ---------------------------------------------------------------- steps: Blum–Mansour


@kernel
def learners(run):
    """Each point's learner: its weight, its bias times m, and how many steps from its point it wants to be."""
    state = floats(run)
    points = len(state) // 3
    return state[:points], state[points : 2 * points], state[2 * points :]


@law
def state_wishes(run, number):
    """The point played last, and room for where a point is in the matrix."""
    pull, i = learners(run)[2], ints(run)[0]
    low = i - np.int64(pull[i] < 0.0 or i == len(pull) - 1)
    up, down = pull[low], -pull[low + 1]
    if 0.0 <= up <= 1.0 and 0.0 <= down <= 1.0:
        # Mostly the point played last and a neighbour wish no further than each other.
        stay = 1.0 if i == low else 0.0
        return state_either(run, low, down / (up + down) if up + down > 0.0 else stay)
    points, room = len(pull), scratch(run)
    flow, members = room[: points * points].reshape(points, points), whole(room[points * points : -points])
    count = _wishes_from(pull, i, flow, members, ints(run)[1:])
    return state_stationary(run, flow, count, members, room[-points:])


@kernel
def _wishes_from(pull, start, flow, members, place):
    """The matrix on the points that `start` leads to; returns how many there are. `place` is −1 before and after."""
    members[0], place[start] = start, 0
    count, k = 1, 0
    while k < count:
        i = members[k]
        for j in range(count):
            flow[k, j] = 0.0
        steps = math.floor(pull[i])
        part = pull[i] - steps
        for j, rate in ((i + steps, 1.0 - part), (i + steps + 1, part)):
            if rate > TINY:
                if place[j] < 0:
                    members[count], place[j] = j, count
                    for n in range(k + 1):
                        flow[n, count] = 0.0
                    count += 1
                flow[k, place[j]] = rate
        k += 1
    for k in range(count):
        place[members[k]] = -1
    return count


@learn
def _learn_wishes(run, number, size, drawn, outcome):
    """Every point that might have been played learns, in proportion to its weight in the law."""
    weight, bias, pull = learners(run)
    atoms, weights, m = law_atoms(run), law_weights(run), len(weight) - 1
    ints(run)[0] = atoms[drawn]
    for j in range(size):
        w, i = weights[j], atoms[j]
        if w == 0.0:
            break
        weight[i] += w
        bias[i] += w * (m * outcome - i)
        pull[i] = bias[i] / (1.0 + weight[i])
    return 0
