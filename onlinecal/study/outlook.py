"""The games that a run would play: cells, rounds, and the loop of each pair."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from onlinecal.core.words import number_of
from onlinecal.study.planning import Cell, Plan

#: the most pairs that are listed one by one
LISTED = 40
#: where slow measures take as many seconds in a study, they are named
LONG = 5.0


@dataclass(frozen=True)
class Outlook:
    """The games that a run would play.

    In the results file are all runs of `finished` cells, and some of `begun` ones. `pairs` are forecaster, nature with
    its schedule, and the loop that plays them. `loops` has the number of pairs of each loop. `measuring` has the
    seconds that slow measures take, about.
    """

    horizons: tuple[int, ...]
    runs: int
    cells: int
    finished: int
    begun: int
    new: int
    run_rounds: int
    incompatible: int
    loops: dict[str, int]
    pairs: tuple[tuple[str, str, str], ...]
    measuring: dict[str, float]

    def lines(self) -> Iterator[str]:
        """In words."""
        parts = f"{number_of(self.cells, 'cell')}: {self.new:,} new"
        if self.begun:
            parts += f", {self.begun:,} of which some runs are there"
        yield parts + (f", {self.finished:,} in the results file already" if self.finished else "")
        shown = ", ".join(f"{t:,}" for t in self.horizons)
        if len(self.horizons) > 10:
            shown = f"{len(self.horizons)} from {self.horizons[0]:,} to {self.horizons[-1]:,}"
        yield f"T = {shown}; {number_of(self.runs, 'run')}; {self.run_rounds:,} run-rounds to be played"
        if said := slow_measures(self.measuring):
            yield said
        refused = f"; {self.incompatible:,} more cannot be played" if self.incompatible else ""
        counts = (f"{count:,} {loop}" for loop, count in self.loops.items())
        yield f"{number_of(len(self.pairs), 'pair')}: {', '.join(counts)}{refused}"
        width = max(len(forecaster) for forecaster, *_ in self.pairs)
        for forecaster, nature, loop in self.pairs if len(self.pairs) <= LISTED else ():
            yield f"  {loop:8}  {forecaster:{width}}  {nature}"


def measuring(plan: Iterable[Cell], there: Mapping[str, int] = MappingProxyType({})) -> dict[str, float]:
    """Seconds of one core that measures take by what they declare, the slowest first; none for all that are fast."""
    found: dict[str, float] = {}
    for cell in plan:
        slow = [
            (asked.name, s)
            for asked in cell.panel.asked
            if asked.record and (s := asked.record.seconds) is not None
        ]
        points = cell.forecaster.points_at(cell.horizon) if slow else None
        streams = 1 + len(cell.nature.strategy.streams)
        for name, seconds in slow:
            each = sum(seconds(min(t, points or t), t) for t in cell.times)
            runs = max(0, cell.runs - there.get(cell.key, 0))
            found[name] = found.get(name, 0.0) + each * streams * runs
    return {name: round(found[name], 1) for name in sorted(found, key=lambda name: -found[name])}


def slow_measures(found: Mapping[str, float]) -> str:
    """A line on the measures that take most of the time; "" where all of them together take little."""
    if sum(found.values()) < LONG:
        return ""
    named = [f"{name} some {time:,.0f} s" for name, time in found.items() if time >= 1.0]
    return f"measuring takes longest, on one core: {', '.join(named)}"


def outlook(plan: Plan, there: Mapping[str, int] = MappingProxyType({})) -> Outlook:
    """Describes what of a plan would be played; `there` has the number of played runs by key."""
    played = [min(there.get(cell.key, 0), cell.runs) for cell in plan]
    finished = sum(runs == cell.runs for runs, cell in zip(played, plan, strict=True))
    begun = sum(0 < runs < cell.runs for runs, cell in zip(played, plan, strict=True))
    # Cells of one key are played once.
    left = {cell.key: cell.horizon * (cell.runs - runs) for cell, runs in zip(plan, played, strict=True)}
    pairs = dict.fromkeys((cell.forecaster.label, cell.nature_label, cell.loop) for cell in plan)
    some = {(cell.forecaster.label, cell.nature.label) for cell in plan}  # played, if not up to every horizon
    return Outlook(
        horizons=tuple(sorted({cell.horizon for cell in plan})),
        runs=plan[0].runs,
        cells=len(plan),
        finished=finished,
        begun=begun,
        new=len(plan) - finished - begun,
        run_rounds=sum(left.values()),
        incompatible=len({pair[:2] for pair in plan.incompatible} - some),
        loops=dict(Counter(loop for *_, loop in sorted(pairs, key=lambda pair: pair[2]))),
        pairs=tuple(pairs),
        measuring=measuring(plan, there),
    )
