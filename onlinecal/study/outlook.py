"""Plans of a run: cells, time and memory, before it begins."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from onlinecal.core.errors import OnlinecalError
from onlinecal.core.words import number_of
from onlinecal.engine.game import IMMEDIATE, Game
from onlinecal.engine.separate import Separate
from onlinecal.schedules import Schedule
from onlinecal.study.plan import Cell, Plan, some
from onlinecal.study.run import batch_bytes, batch_size, begin, levels

#: the largest number of pairs that are measured
MEASURED = 24
#: the factor by which a measured speed may be off, as later rounds may take longer
SPREAD = 1.5
#: rounds that are played at least to measure a speed
STRETCH = 64
#: seconds that a cell takes beside its rounds: to start its players, and to put it away
EACH = 0.015
#: bytes of a total in a results file, and of a cell beside its totals
TOTAL, CELL = 30, 8000
#: the most pairs that are listed one by one
LISTED = 40


class Estimate(NamedTuple):
    """How long a run may take, in seconds, and how that was found, in words."""

    lower: float
    middle: float
    upper: float
    how: str


@dataclass(frozen=True)
class Outlook:
    """The games that a run would play.

    Pairs are of a forecaster and a nature with its schedule. In the results file are all runs of `finished` cells, and
    some of `begun` ones; `work` is in run-rounds. `loops` has the number of pairs of each loop. `listed` has
    forecaster, nature and loop of each of few pairs. `looked_at` strategies were started for that. There is no estimate
    where nothing is to be played or measured. `disk` is of the finished file without Γ, `memory` of the largest batch.
    """

    forecasters: int
    natures: int
    schedules: int
    pairs: int
    incompatible: int
    horizons: tuple[int, ...]
    runs: int
    cells: int
    finished: int
    begun: int
    work: int
    loops: dict[str, int]
    listed: tuple[tuple[str, str, str], ...]
    looked_at: int
    estimate: Estimate | None
    disk: int
    memory: int

    def as_json(self) -> dict[str, Any]:
        """For `run --dry-run --json`."""
        said = dict(vars(self))
        seconds = said.pop("estimate") and self.estimate._asdict()  # type: ignore[union-attr]
        how = seconds and seconds.pop("how")
        del said["looked_at"]
        return said | {
            "run_rounds": said.pop("work"),
            "new": self.cells - self.finished - self.begun,
            "listed": [dict(zip(("forecaster", "nature", "loop"), row, strict=True)) for row in self.listed],
            "seconds": seconds,
            "how": how,
        }


#: a pair, by the ids of its entries
_Pair = tuple[int, int]


def outlook(
    plan: Plan,
    budget: float,
    *,
    there: Mapping[str, int] | None = None,
    speeds: Mapping[str, float] | None = None,
) -> Outlook:
    """Describes how a plan would be played; measuring may take `budget` seconds beside compilation, and nothing with 0.

    By the keys of cells, `there` has the number of played runs, `speeds` the seconds of a run-round.
    """
    longest: dict[_Pair, Cell] = {}
    work: dict[_Pair, int] = {}
    known: list[tuple[_Pair, float]] = []
    finished = begun = 0
    seen: set[str] = set()
    for cell in plan:
        pair = id(cell.forecaster), id(cell.nature)
        longest[pair] = max(longest.get(pair, cell), cell, key=lambda each: each.horizon)
        runs = cell.runs
        if there:
            played = min(there.get(cell.key, 0), runs)
            finished, begun = finished + (played == runs), begun + (0 < played < runs)
            if speeds and cell.key in speeds:
                known.append((pair, speeds[cell.key]))
            runs = 0 if cell.key in seen else runs - played  # cells of one key are played once
            seen.add(cell.key)
        if runs:
            work[pair] = work.get(pair, 0) + cell.horizon * runs
    schedules = list(dict.fromkeys(cell.schedule for cell in plan))
    loops, listed, looked_at = _loops(longest, schedules)
    labels = {(cell.forecaster.label, cell.nature.label) for cell in longest.values()}
    refused = {pair[:2] for pair in plan.incompatible}
    chosen = _chosen([longest[pair] for pair in longest if pair in work])
    totals = sum(len(cell.times) for cell in plan) * len(plan[0].columns) * plan[0].runs
    return Outlook(
        forecasters=len({who for who, _ in labels | refused}),
        natures=len({whom for _, whom in labels | refused}),
        schedules=len(schedules),
        pairs=len(longest) * len(schedules),
        incompatible=len(refused - labels),
        horizons=tuple(sorted({cell.horizon for cell in plan})),
        runs=plan[0].runs,
        cells=len(plan),
        finished=finished,
        begun=begun,
        work=sum(work.values()),
        loops=loops,
        listed=listed,
        looked_at=looked_at,
        estimate=_estimate(work, chosen, len(plan) - finished, known, budget),
        disk=totals * TOTAL + len(plan) * CELL,
        memory=max(map(batch_bytes, chosen), default=0),
    )


def _loops(
    pairs: Mapping[_Pair, Cell], schedules: list[Schedule]
) -> tuple[dict[str, int], tuple[tuple[str, str, str], ...], int]:
    """How many pairs each loop plays, each of few pairs with its loop, and how many strategies were started."""
    roles = [[getattr(cell, role) for cell in pairs.values()] for role in ("forecaster", "nature")]
    looked_at = sum(len(some([*dict.fromkeys(map(id, entries))])) for entries in roles)
    loop_of = {
        pair: "simpy" if cell.in_world else "compiled" if cell.in_steps else "python"
        for pair, cell in pairs.items()
    }
    loops = "compiled", "python", "simpy"
    counts = {loop: len(schedules) * list(loop_of.values()).count(loop) for loop in loops}
    listed = [
        (cell.forecaster.label, ", ".join(filter(None, (cell.nature.label, schedule.label))), loop_of[pair])
        for pair, cell in (pairs.items() if len(pairs) * len(schedules) <= LISTED else ())
        for schedule in schedules
    ]
    return {loop: count for loop, count in counts.items() if count}, tuple(listed), looked_at


# ---------------------------------------------------------------- how long it takes


def _estimate(
    work: Mapping[_Pair, int], chosen: list[Cell], left: int, known: list[tuple[_Pair, float]], budget: float
) -> Estimate | None:
    """Seconds, from the speeds of the pair, or else of pairs of its forecaster, or else of any."""
    measured: list[tuple[_Pair, float]] = []
    if budget > 0 and not {pair for pair, _ in known} >= work.keys():
        measured = list(_measured(chosen, budget))
    if not work or not known + measured:
        return None
    speeds: dict[object, list[float]] = {}
    for pair, seconds in known + measured:
        for key in (pair, pair[0], None):
            speeds.setdefault(key, []).append(seconds)
    lower = middle = upper = EACH * left if measured else 0.0
    for pair, rounds in work.items():
        alike = speeds.get(pair) or speeds.get(pair[0]) or speeds[None]
        lower += rounds * min(alike)
        middle += rounds * sum(alike) / len(alike)
        upper += rounds * max(alike)
    said = [f"{number_of(len(known), 'played cell')} of the results file"] if known else []
    if measured:
        said.append(f"{number_of(len(measured), 'pair')}, of which the first rounds were played just now")
    how = f"from the speed of {' and '.join(said)}, "
    if not speeds.keys() >= work.keys():
        how += "others taken for as fast as the slowest and the fastest of them, "
    how += f"each taken for {SPREAD:g} times faster or slower; one process"
    return Estimate(lower / SPREAD, middle, upper * SPREAD, how)


def _measured(cells: list[Cell], budget: float) -> Iterator[tuple[_Pair, float]]:
    """Speeds of some cells; fewer of them where what is compiled or loaded for the first time takes long."""
    left, until = budget, time.perf_counter() + max(5.0 * budget, budget + 2.0)
    for count, cell in zip(range(len(cells), 0, -1), cells, strict=True):
        if left <= 0 or time.perf_counter() > until:
            return
        try:
            seconds, taken = measure(cell, left / count)
        except OnlinecalError:
            continue  # a game that fails is named when it is played
        left -= taken
        yield (id(cell.forecaster), id(cell.nature)), seconds


def _chosen(cells: list[Cell]) -> list[Cell]:
    """The pairs that are measured: each forecaster (of many, some) against some nature first, then other pairs."""
    who = {place: i for i, place in enumerate(dict.fromkeys(id(cell.forecaster) for cell in cells))}
    whom = {place: i for i, place in enumerate(dict.fromkeys(id(cell.nature) for cell in cells))}

    def turn(cell: Cell) -> tuple[int, int]:
        i, j = who[id(cell.forecaster)], whom[id(cell.nature)]
        return (j - i) % len(whom), i

    return sorted(cells, key=turn)[:: max(1, len(who) // MEASURED)][:MEASURED]


def measure(cell: Cell, budget: float) -> tuple[float, float]:
    """Seconds for a run-round of a cell with its checkpoints, and the seconds that measuring took.

    The first rounds are played, twice as many each time, until the budget is spent. The last of these stretches
    counts. Totals of one run are read after the first stretch and after the last. Where there are as many levels as
    rounds, the time of reading grows in proportion to the round. What is compiled or loaded for the first time is
    played and read before, and not counted.
    """
    runs = range(min(cell.runs, batch_size(cell)))

    def read(game: Game | Separate) -> float:
        began = time.perf_counter()
        one = next(levels(game, None), None)
        known = time.perf_counter()
        if one is not None:
            cell.panel.read(*one[1:3])
        once = (known - began) / len(runs) + time.perf_counter() - known
        return once * (1 + len(cell.nature.strategy.streams))

    def played(until: int) -> float:
        began = time.perf_counter()
        game.advance(until)
        return time.perf_counter() - began

    # Without delays, so that an outcome is told.
    warm = begin(cell, runs, schedule=IMMEDIATE)
    for t in (1, 2):
        warm.advance(min(t, cell.horizon))
    read(warm)
    game, first = begin(cell, runs), time.perf_counter()
    step = early = rounds = min(STRETCH, cell.horizon)
    took, before = played(rounds), read(game)
    while rounds < cell.horizon and (rounds == early or time.perf_counter() + 2 * took <= first + budget):
        step = min(rounds, cell.horizon - rounds)
        took, rounds = played(rounds + step), rounds + step
    once = read(game)
    grows = any(gamma.levels > rounds / 2 for gamma in game.known()[:1]) and rounds > early
    more = max(0.0, once - before) / (rounds - early) if grows else 0.0
    reading = sum(once + more * (max(t, early) - rounds) for t in cell.times)
    return took / (step * len(runs)) + reading / cell.horizon, time.perf_counter() - first


def may_be_slow(plan: Plan) -> bool:
    """Whether measuring is worth its time: a run of fewer rounds and readings takes less than ten minutes."""
    return plan.work > 10**7 or plan[0].runs * sum(len(cell.times) for cell in plan) > 20_000


def slow(found: Outlook, patience: float = 600.0) -> bool:
    """Whether a run may well take longer than that."""
    return found.estimate is not None and found.estimate.middle > patience
