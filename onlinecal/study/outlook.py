"""What a run would play, how long it may take and what it needs, before it begins."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from onlinecal.core.errors import OnlinecalError
from onlinecal.core.words import number_of
from onlinecal.engine.game import IMMEDIATE, Game
from onlinecal.rounds.players import made_of_steps
from onlinecal.rounds.protocol import start
from onlinecal.schedules import Schedule
from onlinecal.study.lineup import Lineup
from onlinecal.study.plan import Cell, Plan
from onlinecal.study.run import batch_bytes, batch_size

#: pairs that are measured at most
MEASURED = 24
#: what a measured speed may be off by, either way: the same game takes so much more or less from one time to the next,
#: and later rounds may take longer than the first
SPREAD = 1.5
#: rounds that are played at least to measure a speed
STRETCH = 64
#: seconds that a cell takes beside its rounds: to start its players, and to put it away
EACH = 0.015
#: bytes of a total in a results file, and of a cell beside its totals
TOTAL, CELL = 30, 8000
#: pairs whose loops are listed one by one
LISTED = 40


class Speed(NamedTuple):
    """What a pair takes.

    Attributes
    ----------
    forecaster, nature : int
        The families in the line-ups.
    seconds : float
        For a run-round, with what is read at checkpoints.
    """

    forecaster: int
    nature: int
    seconds: float


class Estimate(NamedTuple):
    """How long a run may take.

    Attributes
    ----------
    lower, middle, upper : float
        Seconds.
    how : str
        How it came about, in words.
    """

    lower: float
    middle: float
    upper: float
    how: str


@dataclass(frozen=True)
class Outlook:
    """What a run would play.

    Attributes
    ----------
    forecasters, natures, schedules, pairs : int
        Pairs: of a forecaster and a nature with its schedule, that can play each other.
    incompatible : int
        Pairs that cannot.
    horizons : tuple of int
        Ascending.
    runs : int
    cells, finished, begun : int
        In the results file are all runs of `finished`, and some of `begun`.
    work : int
        Run-rounds to be played.
    loops : dict of str to int
        Loop of the engine → how many of the pairs it plays.
    listed : tuple of (str, str, str)
        Forecaster, nature with its schedule, loop; empty where there are many pairs.
    looked_at : int
        Of strategies, those that were looked at for that; all, but where a table has very many combinations.
    estimate : Estimate or None
        None where nothing is to be played, or nothing could be measured.
    disk, memory : int
        Bytes, about, that the results file takes in the end, without the Γ that it may keep, and that the largest batch
        of runs takes, of pairs of all families: history, and what the players remember.
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
        estimate = self.estimate
        return {
            "forecasters": self.forecasters,
            "natures": self.natures,
            "schedules": self.schedules,
            "pairs": self.pairs,
            "incompatible": self.incompatible,
            "horizons": list(self.horizons),
            "runs": self.runs,
            "cells": self.cells,
            "finished": self.finished,
            "begun": self.begun,
            "new": self.cells - self.finished - self.begun,
            "run_rounds": self.work,
            "loops": self.loops,
            "listed": [dict(zip(("forecaster", "nature", "loop"), row, strict=True)) for row in self.listed],
            "seconds": None
            if estimate is None
            else {"lower": estimate.lower, "middle": estimate.middle, "upper": estimate.upper},
            "how": None if estimate is None else estimate.how,
            "disk": self.disk,
            "memory": self.memory,
        }


def outlook(
    plan: Plan,
    budget: float,
    *,
    there: Mapping[str, int] | None = None,
    speeds: Mapping[str, float] | None = None,
) -> Outlook:
    """What playing a plan would be.

    Parameters
    ----------
    plan : Plan
    budget : float
        Seconds that measuring may take, beside what is compiled when it is first needed. With 0 nothing is measured.
    there : mapping of str to int, optional
        Key of a cell → how many of its runs have been played.
    speeds : mapping of str to float, optional
        Key of a cell → seconds for a run-round that it took.
    """
    loops, listed, looked_at = _loops(plan)
    work, counts, known = _work(plan, there or {}, speeds or {})
    totals = sum(
        len(who) * len(whom) * (len(horizons) if len(plan.horizons) > 1 else len(plan[0].times))
        for who, whom, horizons in plan.matches()
    )
    columns = len(plan[0].columns)
    return Outlook(
        forecasters=len(plan.forecasters),
        natures=len(plan.natures),
        schedules=len(plan.schedules),
        pairs=len(plan.schedules) * sum(len(who) * len(whom) for who, whom, _ in plan.matches()),
        incompatible=len(plan.forecasters) * len(plan.natures)
        - sum(len(who) * len(whom) for who, whom, _ in plan.matches()),
        horizons=tuple(sorted({t for *_, horizons in plan.matches() for t in horizons})),
        runs=plan.runs,
        cells=len(plan),
        finished=counts[0],
        begun=counts[1],
        work=sum(work.values()),
        loops=loops,
        listed=listed,
        looked_at=looked_at,
        estimate=_estimate(plan, work, len(plan) - counts[0], known, budget),
        disk=totals * len(plan.schedules) * columns * plan.runs * TOTAL + len(plan) * CELL,
        memory=max((batch_bytes(cell) for *_, cell in _chosen(plan, work)), default=0),
    )


# ---------------------------------------------------------------- what there is to play

Work = dict[tuple[int, int], int]


def _work(
    plan: Plan, there: Mapping[str, int], speeds: Mapping[str, float]
) -> tuple[Work, tuple[int, int], list[Speed]]:
    """Run-rounds by the families of forecaster and nature; finished and begun cells; speeds of those families."""
    work: Work = {}
    known: list[Speed] = []
    if not there:
        for who, whom, horizons in plan.matches():
            for i, count in _parts(plan.forecasters, who):
                for j, other in _parts(plan.natures, whom):
                    added = count * other * sum(horizons) * plan.runs * len(plan.schedules)
                    work[i, j] = work.get((i, j), 0) + added
        return work, (0, 0), known
    families = [
        {family.label(i): at for at, family in enumerate(lineup.families) for i in range(len(family))}
        for lineup in (plan.forecasters, plan.natures)
    ]
    finished = begun = 0
    seen: set[str] = set()
    for cell in plan:
        played = min(there.get(cell.key, 0), cell.runs)
        finished, begun = finished + (played == cell.runs), begun + (0 < played < cell.runs)
        at = families[0][cell.forecaster.label], families[1][cell.nature.label]
        if cell.key in speeds:
            known.append(Speed(*at, speeds[cell.key]))
        if cell.key not in seen:  # cells that share their numbers are played once
            seen.add(cell.key)
            work[at] = work.get(at, 0) + cell.horizon * (cell.runs - played)
    return {at: rounds for at, rounds in work.items() if rounds}, (finished, begun), known


def _parts(lineup: Lineup, places: range) -> Iterator[tuple[int, int]]:
    """Families, and how many of these places are theirs."""
    for i, (first, family) in enumerate(zip(lineup.firsts, lineup.families, strict=False)):
        count = min(places.stop, first + len(family)) - max(places.start, first)
        if count > 0:
            yield i, count


def _loops(plan: Plan) -> tuple[dict[str, int], tuple[tuple[str, str, str], ...], int]:
    """How many pairs each loop plays, each of few pairs with its loop, and how many strategies were looked at."""
    able: list[dict[int, bool]] = []
    for role, lineup in (("forecaster", plan.forecasters), ("nature", plan.natures)):
        found = {}
        for i in lineup.samples():
            entry = lineup[i]
            able_to = [t for t in plan.horizons if t <= min(entry.longest or t, _length(entry, t))]
            horizon = max(able_to, default=_length(entry, plan.horizons[0]))
            player = start(role, entry.strategy, horizon, range(1), plan.seed)
            found[i] = made_of_steps(player)
        able.append(found)
    counts = {"compiled": 0, "event": 0}
    keeps = bool(plan.panel.keeps)
    pairs = 0
    for who, whom, _ in plan.matches():
        shares = [_share(found, places) for found, places in zip(able, (who, whom), strict=True)]
        both = len(who) * len(whom)
        compiled = 0 if keeps else round(both * shares[0] * shares[1]) * len(plan.schedules)
        counts["compiled"] += compiled
        counts["event"] += both * len(plan.schedules) - compiled
        pairs += both * len(plan.schedules)
    listed = []
    for who, whom, _ in plan.matches() if pairs <= LISTED else ():
        for j in whom:
            for i in who:
                for schedule in plan.schedules:
                    fast = able[0][i] and able[1][j] and not keeps
                    label = ", ".join(filter(None, (plan.natures[j].label, schedule.label)))
                    listed.append((plan.forecasters[i].label, label, "compiled" if fast else "event"))
    return {loop: count for loop, count in counts.items() if count}, tuple(listed), sum(map(len, able))


def _length(entry: Any, most: int) -> int:
    length = getattr(entry.strategy, "length", None)
    return most if length is None else length


def _share(found: Mapping[int, bool], places: range) -> float:
    """Which part of them is able, of those that were looked at."""
    own = [found[i] for i in places if i in found] if len(places) <= len(found) else list(found.values())
    return sum(own) / len(own) if own else 0.0


# ---------------------------------------------------------------- how long it takes


def _estimate(plan: Plan, work: Work, left: int, known: list[Speed], budget: float) -> Estimate | None:
    """Seconds, from the speeds of pairs of the same families, or else of the same forecasters, or else of any."""
    if not work:
        return None
    measured: list[Speed] = []
    if budget > 0 and not {(s.forecaster, s.nature) for s in known} >= work.keys():
        measured = list(_measured(plan, work, budget))
    speeds = known + measured
    if not speeds:
        return None
    lower = middle = upper = 0.0
    for (i, j), rounds in work.items():
        alike = (
            [s.seconds for s in speeds if (s.forecaster, s.nature) == (i, j)]
            or [s.seconds for s in speeds if s.forecaster == i]
            or [s.seconds for s in speeds]
        )
        lower += rounds * min(alike) / SPREAD
        middle += rounds * sum(alike) / len(alike)
        upper += rounds * max(alike) * SPREAD
    if measured:
        cells = EACH * left
        lower, middle, upper = lower + cells / SPREAD, middle + cells, upper + cells * SPREAD
    said = []
    if known:
        said.append(f"{number_of(len(known), 'played cell')} of the results file")
    if measured:
        said.append(f"{number_of(len(measured), 'pair')}, of which the first rounds were played just now")
    how = f"from the speed of {' and '.join(said)}, "
    if not {(s.forecaster, s.nature) for s in speeds} >= work.keys():
        how += "others taken for as fast as the slowest and the fastest of them, "
    how += f"each taken for {SPREAD:g} times faster or slower; one process"
    return Estimate(lower, middle, upper, how)


def _measured(plan: Plan, work: Work, budget: float) -> Iterator[Speed]:
    """Speeds of some pairs: first each family of forecasters against some nature, then other pairs.

    What is compiled or loaded when it is first needed is not counted; where that takes long, fewer pairs are measured.
    """
    left, pairs = budget, _chosen(plan, work)
    until = time.perf_counter() + max(5.0 * budget, budget + 2.0)
    for count, (i, j, cell) in zip(range(len(pairs), 0, -1), pairs, strict=True):
        if left <= 0 or time.perf_counter() > until:
            return
        try:
            seconds, taken = measure(cell, left / count)
        except OnlinecalError:
            continue  # a game that fails is named when it is played
        left -= taken
        yield Speed(i, j, seconds)


def _chosen(plan: Plan, work: Work) -> list[tuple[int, int, Cell]]:
    """Pairs of different families, and of large families several, each at its longest horizon, in the middle of its
    family.
    """
    order = sorted(work, key=lambda at: ((at[1] - at[0]) % len(plan.natures.families), at))
    found: dict[tuple[int, int], tuple[int, int, Cell]] = {}
    for share in (0.5, 0.0, 1.0):
        for i, j in islice(order, MEASURED):
            sizes = len(plan.forecasters.families[i]), len(plan.natures.families[j])
            if share != 0.5 and max(sizes) == 1:
                continue
            places = (
                plan.forecasters.firsts[i] + round(share * (sizes[0] - 1)),
                plan.natures.firsts[j] + round(share * (sizes[1] - 1)),
            )
            if places in found:
                continue
            forecaster, nature = plan.forecasters[places[0]], plan.natures[places[1]]
            horizons = [
                t for t in plan.horizons
                if t <= min(forecaster.longest or t, nature.longest or t, _length(nature, t), _length(forecaster, t))
            ]  # fmt: skip
            if horizons:
                found[places] = i, j, plan.cell(forecaster, nature, horizons[-1], plan.schedules[-1])
    return list(islice(found.values(), MEASURED))


def measure(cell: Cell, budget: float) -> tuple[float, float]:
    """Seconds for a run-round of a cell, with what is read at its checkpoints; and how long it took to find out.

    The first rounds are played, twice as many each time, until that has taken the budget; the last of these stretches
    counts. What is read is read of one run, after the first stretch and after the last. Where there are as many levels
    as rounds, it takes so much longer for each round, between these and after them. The very first rounds and reading
    are for what is compiled or loaded when it is first needed, and not counted.
    """
    runs = range(min(cell.runs, batch_size(cell)))

    def begin(horizon: int, schedule: Schedule) -> Game:
        return Game(
            cell.forecaster.strategy, cell.nature.strategy, horizon=horizon, runs=runs, seed=cell.seed,
            schedule=schedule, cuts=cell.people.cuts, keeps=cell.panel.keeps,
        )  # fmt: skip

    def read(game: Game) -> float:
        began = time.perf_counter()
        gammas = game.known()[:1]
        known = time.perf_counter()
        for gamma in gammas:
            cell.panel.read(gamma, None if game.transcripts is None else game.transcripts.of(0, None))
        once = (known - began) / len(runs) + time.perf_counter() - known
        return once * (1 + len(cell.nature.strategy.streams))

    # Without delays, so that an outcome is told.
    warm = begin(cell.horizon, IMMEDIATE)
    for t in (1, 2):
        warm.advance(min(t, cell.horizon))
    read(warm)
    game = begin(cell.horizon, cell.schedule)
    first = time.perf_counter()
    game.advance(rounds := min(STRETCH, cell.horizon))
    now = time.perf_counter()
    slope, early = (now - first) / (rounds * len(runs)), (rounds, read(game))
    while rounds < cell.horizon:
        step = min(rounds, cell.horizon - rounds)
        began = time.perf_counter()
        game.advance(rounds + step)
        now = time.perf_counter()
        slope, rounds = (now - began) / (step * len(runs)), rounds + step
        if now + 2 * (now - began) > first + budget:
            break
    once = read(game)
    grows = any(gamma.levels > rounds / 2 for gamma in game.known()[:1]) and rounds > early[0]
    more = max(0.0, once - early[1]) / (rounds - early[0]) if grows else 0.0
    reading = sum(once + more * (max(t, early[0]) - rounds) for t in cell.times)
    return slope + reading / cell.horizon, time.perf_counter() - first


def may_be_slow(plan: Plan) -> bool:
    """Whether measuring is worth its time: a run of fewer rounds and readings takes less than ten minutes."""
    readings = plan.runs * len(plan) * len(plan[0].times)
    return plan.work > 10**7 or readings > 20_000


def slow(found: Outlook, patience: float = 600.0) -> bool:
    """Whether a run may well take longer than that."""
    return found.estimate is not None and found.estimate.middle > patience
