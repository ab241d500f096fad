"""Forecasters that are calibrated in every group of questions at once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.expressions import check_expression, depends_on_horizon
from onlinecal.core.guarantee import Guarantee, Sight
from onlinecal.core.specification import STEPS, allow, list_of, optional, word
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.steps import Run, kernel, note, shared, state
from onlinecal.forecasters.base import OnGrid, grid_of
from onlinecal.forecasters.baselines import write_pair, write_value
from onlinecal.forecasters.hedging import point_of


def _names(name: str, groups: Any) -> None:
    list_of(name, groups, "names of groups", least=0)
    if not all(isinstance(group, str) for group in groups) or len({*groups}) < len(groups):
        raise InvalidParameter(f"{name} = {groups!r}; expected different names")


@dataclass(frozen=True)
class GroupHedging(OnGrid):
    r"""Hedges between two neighbouring grid points, so that no group's biases can grow.

    E_{g,i} is the sum of y − c over the rounds of group g with forecast i/m. Here c is the middle between the points of
    the law. The group `all` has every round. S_i is the sum of E_{g,i} over the groups of the question. From a pair
    with S_i > 0 ≥ S_{i+1} it plays i with probability |S_{i+1}| / (|S_i| + |S_{i+1}|), else i + 1. Where S_0 ≤ 0 it
    says 0, and else where S_m ≥ 0 it says 1. Sums are whole multiples of 1/(2m), so comparisons are exact.

    Guarantee: Against natures that see the law, with n groups besides `all` and N = (1 + n)T:
    E[multi_ece] ≤ E[swap_multi_ece] ≤ √((m + 1)N) + T/(2m). At the default m that is about 1.5 (TN)^{1/3}. The sum of
    all E² is at most N in expectation; the player tracks it as ``group_energy``. With `weights` "size" the ECE of a
    group of n_g rounds is at most √((m + 1)(1 + n)n_g) + n_g/(2m) in expectation. With at most b questions open at once
    N becomes N + 2(1 + n)T(b − 1), and b is added to the error. Proof: docs/proofs.md.

    Information: Needs the groups of a question; without any it plays for `all` alone. O((1 + n) log m) a round.

    Source: This package; the middle of an edge as the centre of both its points makes the first-order term 0. The
    measure: Noarov, Ramalingam, Roth and Xie 2025, "High-dimensional prediction for sequential decision making".

    Parameters
    ----------
    m : int or str, optional
        Steps of the grid: a number or an expression in T. The latter is rounded up to an even number, so that ½ is on
        the grid. Default: the even number nearest to (T²/N)^{1/3}.
    groups : sequence of str, optional
        For which it plays. Default: all of nature's.
    weights : {"equal", "size"}, default "equal"
        Whether each group counts alike, or by 1/n_g.
    sizes : mapping, optional
        The number of rounds n_g of each group, a number or an expression in T; that of `all` is T. With them N is
        their sum. Needed for the weights "size".
    """

    deterministic, safe_under_delay, even = False, True, True
    version: ClassVar[int] = 2
    certifies: ClassVar[frozenset[str]] = frozenset({"group_energy"})
    allowed = allow(
        m=optional(STEPS),
        groups=optional(_names),
        weights=word("equal", "size"),
        sizes=lambda name, sizes: None,
    )

    m: int | str | None = None  # type: ignore[assignment]
    groups: Any = None
    weights: Literal["equal", "size"] = "equal"
    sizes: Any = None

    def __hash__(self) -> int:
        return hash(strategy_key(self))  # a mapping has none

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights == "size" and self.sizes is None:
            raise InvalidParameter("weights = 'size' without sizes; expected the sizes of all groups")
        if self.sizes is not None and not isinstance(self.sizes, Mapping):
            raise InvalidParameter(f"sizes = {self.sizes!r}; expected a table, such as {{ odd = 'T/2' }}")
        for group, size in (self.sizes or {}).items():
            check_expression(f"sizes.{group}", size, 0.0, 1e12)

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return True if self.m is None or self.sizes else depends_on_horizon(self.m)

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(self.groups or ())

    @property
    def memory(self) -> str:  # type: ignore[override]
        return f"O({1 + len(self.needs)} * {'T^(1/3)' if self.m is None else 'm'})"

    def facing(self, nature: Any) -> Any:
        return replace(self, groups=nature.group_names) if self.groups is None else self

    def steps_at(self, horizon: int) -> int:
        if self.m is not None:
            return super().steps_at(horizon)
        return max(2, 2 * round((horizon**2 / sum(self._sizes(horizon))) ** (1.0 / 3.0) / 2.0))

    def _sizes(self, horizon: float) -> list[float]:
        """The rounds of `all` and of each group, at most."""
        groups = self.groups or ()
        if self.sizes is None:
            return [float(horizon)] * (1 + len(groups))
        if missing := [group for group in groups if group not in self.sizes]:
            raise InvalidParameter(f"sizes of {', '.join(missing)} are missing; expected those of all groups")
        each = [check_expression(f"sizes.{g}", self.sizes[g], 0.0, 1e12, int(horizon)) for g in groups]
        return [float(horizon), *(max(1.0, size) for size in each)]

    def start(self, horizon: int, stream: Stream) -> steps.Forecaster:
        m, groups = self.steps_at(horizon), self.groups or ()
        alphas = [1.0 / size if self.weights == "size" else 1.0 for size in self._sizes(horizon)]
        return steps.Forecaster(
            hedge_groups, learn_groups, [0.0] * (len(alphas) * (m + 1)), [m, *alphas], size=2, grid=grid_of(m),
            needs=dict(enumerate(groups, 1)), note=1 + len(groups), certificates=group_energy,
        )  # fmt: skip

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        count = 1 + len(self.groups or ())

        def energy(horizon: float, own: float = 0.0) -> float:
            """N, or with weights by size what stands for it in the bound of a group of this size."""
            return count * own if own else sum(self._sizes(horizon))

        def bound(horizon: float, own: float = 0.0) -> float:
            m = self.steps_at(int(horizon))
            return math.sqrt((m + 1.0) * energy(horizon, own)) + (own or horizon) / (2.0 * m)

        def slack(horizon: float, runs: int, rate: float) -> float:
            # √(Φ + N/2) grows by N/(2√(N/2)) at most in expectation, and in a round by √count at most: Azuma and
            # Hoeffding over runs·T rounds.
            m, most = self.steps_at(int(horizon)), energy(horizon)
            moves = math.sqrt(2.0 * count * horizon * math.log(1.0 / rate) / runs)
            return math.sqrt(m + 1.0) * ((math.sqrt(2.0) - 1.0) * math.sqrt(most) + moves)

        def energy_slack(horizon: float, runs: int, rate: float) -> float:
            # By the same steps, and the norm of what moves √(Φ + N/2) in all runs: Hsu, Kakade and Zhang 2012.
            most, share = energy(horizon), math.log(1.0 / rate) / runs
            moves = math.sqrt(count * horizon * (1.0 + 2.0 * math.sqrt(share) + 2.0 * share))
            return (math.sqrt(2.0 * most) + moves) ** 2 - most

        def late(horizon: float, most: int) -> float:
            return energy(horizon) + 2.0 * count * horizon * (most - 1.0)

        def delayed(horizon: float, most: int) -> float:
            m = self.steps_at(int(horizon))
            return math.sqrt((m + 1.0) * late(horizon, most)) + horizon / (2.0 * m) + most

        def known(column: Column, formula: str, own: Any, **more: Any) -> Guarantee:
            source = "after Noarov et al. 2025; proof in docs/proofs.md"
            return Guarantee(column, formula, own, "expected", Sight.LAW, source, **more)

        tracked = Column("certificate", "group_energy")
        if self.weights == "size":
            formula = "√((m + 1)(1 + n)n_g) + n_g/(2m)"
            of_group = [
                partial(lambda place, horizon: bound(horizon, self._sizes(horizon)[place]), k)
                for k in range(count)
            ]
            columns = [Column("measure", "ece", stream=group) for group in ("", *(self.groups or ()))]
            errors = [known(c, formula, own) for c, own in zip(columns, of_group, strict=True)]
            return (*errors, known(tracked, "1 + n", lambda horizon: float(count)))
        energies = "Σ n_g" if self.sizes else f"·{count}T" if count > 1 else "T"
        formula = f"√((m + 1){energies}) + T/(2m)"
        # Where it is known that there is none, measures of groups are not there either.
        names = ("ece",) if self.groups == () else ("swap_multi_ece", "multi_ece", "ece")
        more = {"slack": slack, "delayed": delayed}
        return (
            *(known(Column("measure", n), formula, bound, of_groups=n != "ece", **more) for n in names),
            known(tracked, energies.removeprefix("·"), energy, slack=energy_slack, delayed=late),
        )


def group_energy(player: steps.Forecaster) -> dict[str, Floats]:
    """Σ_g α_g Σ_i E_{g,i}² for each run."""
    m, alphas = player.shared[0], player.shared[1:]
    squares = np.square(player.state / (2.0 * m)).reshape(len(player.state), len(alphas), -1)
    return {"group_energy": squares.sum(axis=2) @ alphas}


@kernel
def sum_of_groups(biases, given, noted, m, i):
    """S_i: E_{g,i}, weighed, of the groups that the note tells."""
    total = given[1] * biases[i]
    for g in range(1, len(noted)):
        if noted[g] == 1.0:
            total += given[1 + g] * biases[g * (m + 1) + i]
    return total


def hedge_groups(run: Run, number: int) -> int:
    """The state is 2m·E_{g,i}, a row for each group; shared are m and the weights; the note has 2m·c and the groups."""
    biases, given, noted = state(run), shared(run), note(run)
    m = int(given[0])
    below = sum_of_groups(biases, given, noted, m, 0)
    if below <= 0.0:
        noted[0] = 0.0
        return write_value(run, 0.0)
    above = sum_of_groups(biases, given, noted, m, m)
    if above >= 0.0:
        noted[0] = 2.0 * m
        return write_value(run, 1.0)
    low, high = 0, m
    while high - low > 1:
        middle = (low + high) >> 1
        own = sum_of_groups(biases, given, noted, m, middle)
        if own > 0.0:
            low, below = middle, own
        else:
            high, above = middle, own
    noted[0] = 2.0 * low + 1.0
    return write_pair(run, m, low, -above / (below - above))


def learn_groups(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
    biases, noted, m = state(run), note(run), int(shared(run)[0])
    j, moved = point_of(forecast, m), 2.0 * m * outcome - noted[0]
    biases[j] += moved
    for g in range(1, len(noted)):
        if noted[g] == 1.0:
            biases[g * (m + 1) + j] += moved
    return 0
