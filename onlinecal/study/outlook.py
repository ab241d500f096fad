"""Plans of a run: cells, time and memory, before it begins."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

from onlinecal.core.errors import OnlinecalError
from onlinecal.core.progress import Progress
from onlinecal.core.words import number_of
from onlinecal.engine.game import IMMEDIATE, Game
from onlinecal.schedules import Schedule
from onlinecal.study.planning import Cell, Plan
from onlinecal.study.run import batch_size, begin, bytes_of, levels
from onlinecal.worlds.run import Simulation

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


class Listed(NamedTuple):
    """A pair and the loop that plays it."""

    forecaster: str
    nature: str
    loop: str


@dataclass(frozen=True)
class Outlook:
    """The games that a run would play.

    Pairs are of a forecaster and a nature with its schedule. In the results file are all runs of `finished` cells, and
    some of `begun` ones. `loops` has the number of pairs of each loop, and few pairs are `listed`. `seconds` has
    lower, middle and upper; `how` says how they were found. Without a measurement there are neither.
    `disk` is of the finished file without Γ, `memory` of the largest batch.
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
    new: int
    run_rounds: int
    loops: dict[str, int]
    listed: tuple[Listed, ...]
    seconds: dict[str, float] | None
    how: str | None
    disk: int
    memory: int

    def as_json(self) -> dict[str, Any]:
        """For `run --dry-run --json`."""
        return vars(self) | {"listed": [pair._asdict() for pair in self.listed]}


#: a pair, by the ids of its entries
_Pair = tuple[int, int]


def outlook(plan: Plan, budget: float, there: Mapping[str, int] = MappingProxyType({})) -> Outlook:
    """Describes how a plan would be played, in `budget` seconds; `there` has the number of played runs by key."""
    longest: dict[_Pair, Cell] = {}
    work, seen = Counter[_Pair](), set[str]()
    finished = begun = 0
    for cell in plan:
        pair, runs = (id(cell.forecaster), id(cell.nature)), cell.runs
        longest[pair] = max(longest.get(pair, cell), cell, key=lambda each: each.horizon)
        if there:
            played = min(there.get(cell.key, 0), runs)
            finished, begun = finished + (played == runs), begun + (0 < played < runs)
            runs = 0 if cell.key in seen else runs - played  # cells of one key are played once
            seen.add(cell.key)
        if runs:
            work[pair] += cell.horizon * runs
    schedules = list(dict.fromkeys(cell.schedule for cell in plan))
    loops, listed = _loops(longest, schedules)
    labels = {(cell.forecaster.label, cell.nature.label) for cell in longest.values()}
    refused = {pair[:2] for pair in plan.incompatible}
    chosen = _chosen([longest[pair] for pair in longest if pair in work])
    seconds, how = _estimate(work, chosen, len(plan) - finished, budget)
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
        new=len(plan) - finished - begun,
        run_rounds=work.total(),
        loops=loops,
        listed=listed,
        seconds=seconds,
        how=how,
        disk=totals * TOTAL + len(plan) * CELL,
        memory=max((int(min(cell.runs, batch_size(cell)) * bytes_of(cell)) for cell in chosen), default=0),
    )


def _loops(
    pairs: Mapping[_Pair, Cell], schedules: list[Schedule]
) -> tuple[dict[str, int], tuple[Listed, ...]]:
    """How many pairs each loop plays, and each of few pairs with its loop."""
    each = [
        (cell, "simpy" if cell.in_world else "compiled" if cell.in_steps else "python")
        for cell in pairs.values()
    ]
    counts = Counter(loop for _, loop in each)
    listed = tuple(
        Listed(cell.forecaster.label, ", ".join(filter(None, (cell.nature.label, schedule.label))), loop)
        for cell, loop in (each if len(pairs) * len(schedules) <= LISTED else ())
        for schedule in schedules
    )
    return {name: len(schedules) * counts[name] for name in sorted(counts)}, listed


def _estimate(
    work: Mapping[_Pair, int], chosen: list[Cell], left: int, budget: float
) -> tuple[dict[str, float] | None, str | None]:
    """Seconds, from speeds of the pair, else of its forecaster, else of any; and how they were found."""
    measured = list(_measured(chosen, budget)) if budget > 0 else []
    if not measured:
        return None, None
    speeds: dict[object, list[float]] = {}
    for pair, seconds in measured:
        for key in (pair, pair[0], None):
            speeds.setdefault(key, []).append(seconds)
    found = {
        name: spread * (EACH * left + sum(
            rounds * of(speeds.get(pair) or speeds.get(pair[0]) or speeds[None]) for pair, rounds in work.items()
        ))
        for name, of, spread in (("lower", min, 1.0 / SPREAD), ("middle", fmean, 1.0), ("upper", max, SPREAD))
    }  # fmt: skip
    others = "" if speeds.keys() >= work.keys() else (
        "others taken for as fast as the slowest and the fastest of them, "
    )  # fmt: skip
    return found, (
        f"from the speed of {number_of(len(measured), 'pair')}, of which the first rounds were played just now, "
        f"{others}each taken for {SPREAD:g} times faster or slower; one process"
    )


def _measured(cells: list[Cell], budget: float) -> Iterator[tuple[_Pair, float]]:
    """Speeds of some cells; fewer of them where what is compiled or loaded for the first time takes long."""
    left, until = budget, time.perf_counter() + max(5.0 * budget, budget + 2.0)
    with Progress(len(cells), unit="pairs", ticks=True) as progress:
        for count, cell in zip(range(len(cells), 0, -1), cells, strict=True):
            if left <= 0 or time.perf_counter() > until:
                return
            progress.advance(1)
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
    """Seconds of a run-round, by the last of ever longer first stretches within the budget, and those that it took."""
    runs = range(min(cell.runs, batch_size(cell)))

    def read(game: Game | Simulation) -> float:
        began = time.perf_counter()
        some = next(levels(game, None), None)
        known = time.perf_counter()
        once = (known - began) / len(runs)
        if some is not None:
            _, sets, rounds = some
            cell.panel.read(next(iter(sets)), rounds[0] if rounds else None)
            alone, again = time.perf_counter() - known, time.perf_counter()
            if alone * len(sets) < budget:  # a game reads them together
                cell.panel.read_each(sets, rounds)
                alone = (time.perf_counter() - again) / len(sets)
            once += alone
        return once * (1 + len(cell.nature.strategy.streams))

    # First what is compiled or loaded for the first time; without delays, so that an outcome is told.
    warm = begin(cell, runs, schedule=IMMEDIATE)
    for t in (1, 2):
        warm.advance(min(t, cell.horizon))
    read(warm)
    game, first = begin(cell, runs), time.perf_counter()
    game.advance(1)  # memory that is used for the first time takes long, and only once
    second = time.perf_counter()
    rounds, step, took = 1, 1, second - first
    while rounds < cell.horizon and (rounds == 1 or time.perf_counter() + 2 * took <= second + budget):
        step, began = min(max(rounds, STRETCH), cell.horizon - rounds), time.perf_counter()
        game.advance(rounds + step)
        rounds, took = rounds + step, time.perf_counter() - began
    # Of as many levels as rounds the time of reading grows in proportion to the round.
    once, grows = read(game), any(gamma.levels > rounds / 2 for gamma in game.known()[:1])
    reading = once * (sum(cell.times) / rounds if grows else len(cell.times))
    return took / (step * len(runs)) + reading / cell.horizon, time.perf_counter() - first
