"""Baselines of games of K classes."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import check_expression, depends_on_horizon
from onlinecal.core.specification import STEPS, allow, expression, optional, part, whole
from onlinecal.core.strategy import some, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.parts import begin_part
from onlinecal.engine.steps import Run, kernel, law, note, shared, state
from onlinecal.forecasters._simplex import rank_of, round_shares, round_whole
from onlinecal.forecasters.base import Forecaster, OfOthers, OnSimplex
from onlinecal.forecasters.composed import is_law, joined, part_of, pass_on
from onlinecal.forecasters.perturbed import geometric, scale_of, uniform_steps


@dataclass(frozen=True)
class ClassMean(OnSimplex):
    """Says the shares of the classes so far, (n_k + ½)/(t − 1 + K/2), rounded to the grid 1/m of the simplex.

    Rounding is down, and the steps that are left go to the largest remainders, of equal ones to the first classes.

    Source: Krichevsky and Trofimov 1981, for the ½. Largest remainders: Hamilton's method of apportionment.

    Parameters
    ----------
    m : int or str, optional
        Steps of the grid: a number or an expression in T. Default: √T, or fewer where that has more than 10^5 points.
    """

    deterministic, safe_under_delay, memory = True, True, "O(classes)"

    m: int | str | None = None

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        k = self.classes
        return steps.Forecaster(
            say_shares, count_classes, [0.0] * 3 * k, [self.steps_at(horizon)], table=self.table_at(horizon)
        )


def say_shares(run: Run, number: int) -> int:
    """The state is how often each class came, and room for twice as many numbers."""
    (counts, doubled, parts), (values, weights) = thirds(run), law(run)
    for y in range(len(counts)):
        doubled[y] = 2.0 * counts[y] + 1.0
    round_whole(doubled, int(shared(run)[0]), parts)
    values[0], weights[0] = rank_of(parts), 1.0
    return 1


@kernel
def thirds(run):
    """The three parts of a state: how often each class came, and room for two numbers of each."""
    mine, k = state(run), len(state(run)) // 3
    return mine[:k], mine[k : 2 * k], mine[2 * k :]


def count_classes(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    state(run)[outcome] += 1.0
    return 0


@dataclass(frozen=True)
class ClassLeader(OnSimplex):
    r"""Says (n_k + Z_k)/Σ_j (n_j + Z_j), with Z_k geometric with mean √(T/K), fresh in every round.

    n_k is how often class k came. As of `PerturbedLeader`, `atoms` independent Z are drawn in each round, and the
    stated law is uniform over their forecasts. These are rounded to the grid 1/m of the simplex, as `ClassMean` says.

    Guarantee: E[T·U-calibration] = O(√(KT)) against natures that see the history, before rounding; the source states
    no constant. None holds against natures that see the law.

    Source: Luo, Senapati and Sharan 2024, "Optimal multiclass U-calibration error and beyond". Deviations: the grid;
    all classes alike where the fraction is 0/0; the mean of Z is that of two outcomes, √T, with T/K for T.

    Parameters
    ----------
    m : int or str, optional
        Steps of the grid, as of `ClassMean`.
    mean : float or str, optional
        Mean of the geometric noise, in [0, 10^12]; a number or an expression in T. Default: √(T/K).
    atoms : int, default 16
        Forecasts in the stated law, 1 to 1000.
    """

    deterministic, safe_under_delay, memory = False, True, "O(classes + atoms)"
    allowed = allow(m=optional(STEPS), mean=optional(expression(0.0, 1e12)), atoms=whole(1, 1000))

    m: int | str | None = None
    mean: float | str | None = None
    atoms: int = 16

    @property
    def needs_horizon(self) -> bool:  # type: ignore[override]
        return self.m is None or self.mean is None or any(map(depends_on_horizon, (self.m, self.mean)))

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        mean = math.sqrt(horizon / self.classes)
        if self.mean is not None:
            mean = check_expression("mean", self.mean, 0.0, 1e12, horizon)
        say, draw = uniform_steps(shaken)
        return steps.Forecaster(
            say, count_classes, [0.0] * 3 * self.classes, [self.steps_at(horizon), scale_of(mean), self.atoms],
            size=self.atoms, table=self.table_at(horizon), draw=draw, stream=stream,
        )  # fmt: skip


@kernel
def shaken(run, number, j):
    """The place of forecast j of a round."""
    (counts, noisy, parts), given = thirds(run), shared(run)
    k, total = len(counts), 0.0
    first = k * ((number - 1) * int(given[2]) + j)
    for y in range(k):
        noisy[y] = counts[y] + geometric(run, first + y, given[1])
        total += noisy[y]
    if total == 0.0:
        noisy[:] = 1.0
    round_whole(noisy, int(given[0]), parts)
    return float(rank_of(parts))


#: atoms of a law of several forecasters, at most
MOST = 4096


@dataclass(frozen=True)
class ClassByClass(OfOthers, OnSimplex):
    """One forecaster of the outcomes 0 and 1 for each class; says the drawn forecasts divided by their sum.

    Each forecaster learns whether its class came. The point is rounded to the grid 1/m of the simplex: down, and the
    steps that are left go to the largest remainders. Where all forecasts are 0, all classes are alike.

    Information: The law has an atom for each combination of atoms, at most 4096. Each class is calibrated before the
    division, which is not so behind it.

    Parameters
    ----------
    of : Forecaster
        The one of which each class has a copy.
    m : int or str, optional
        Steps of the grid, as of `ClassMean`.
    """

    allowed = allow(of=part("forecaster"), m=optional(STEPS))
    facing = OnSimplex.facing

    of: Forecaster
    m: int | str | None = None

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return some([self.m is None or depends_on_horizon(self.m), self.of.needs_horizon])

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        own = super().memory
        return own and f"O(classes * ({own[2:-1]}))"

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        k = self.classes
        players = [begin_part("forecaster", self.of, horizon, stream.child(f"class {y}")) for y in range(k)]
        atoms = players[0].size
        if atoms**k > MOST:
            raise InvalidParameter(
                f"of = {strategy_name(self.of)!r} has laws of {atoms} atoms, and {k} of them {atoms**k:,}; expected at "
                f"most {MOST:,} combinations"
            )
        own, numbers, of_parts = joined(players, k * (1 + 2 * atoms))
        say, learn = product_steps(own[0][0], own[1][0])
        return steps.Forecaster(
            say, learn, [0.0] * 2 * k, [*numbers, self.steps_at(horizon), atoms],
            size=atoms**k, table=self.table_at(horizon), **of_parts,
        )  # fmt: skip


@cache
def product_steps(say_one: Any, learn_one: Any) -> Any:
    """The steps of one forecaster a class, with m and the atoms of a law behind the numbers of parts.

    The note: the size of each law; then of each the values, and the weights. The state is room for two points.
    """

    def say(run: Run, number: int) -> int:
        stated, k, total = note(run), len(state(run)) // 2, 1
        atoms = int(shared(run)[-1])
        for y in range(k):
            part = part_of(run, y, 0)
            size = say_one(part, number)
            if not is_law(part, size):
                return pass_on(run, part, size)
            (values, weights), at = law(part), k + 2 * atoms * y
            stated[y], total = size, total * size
            for j in range(size):
                stated[at + j], stated[at + atoms + j] = values[j] + 0.0, weights[j]
        (values, weights), shares, parts = law(run), state(run)[:k], state(run)[k:]
        for place in range(total):
            left, weight = place, 1.0
            for y in range(k):
                at = k + 2 * atoms * y + left % int(stated[y])
                left //= int(stated[y])
                shares[y], weight = stated[at], weight * stated[at + atoms]
            round_shares(shares, int(shared(run)[-2]), parts)
            values[place], weights[place] = rank_of(parts), weight
        return total

    def learn(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
        stated, k, left, atoms = note(run), len(state(run)) // 2, place, int(shared(run)[-1])
        for y in range(k):
            j = left % int(stated[y])
            left //= int(stated[y])
            value = stated[k + 2 * atoms * y + j]
            code = learn_one(part_of(run, y, 0), j, value, 1 if y == outcome else 0, number)
            if code < 0:
                return code
        return 0

    return say, learn
