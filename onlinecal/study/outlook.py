"""The games that a run would play: cells, rounds, and the loop of each pair."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from onlinecal.core.words import number_of
from onlinecal.study.planning import Plan

#: the most pairs that are listed one by one
LISTED = 40


@dataclass(frozen=True)
class Outlook:
    """The games that a run would play.

    In the results file are all runs of `finished` cells, and some of `begun` ones. `pairs` are forecaster, nature with
    its schedule, and the loop that plays them. `loops` has the number of pairs of each loop.
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

    def as_json(self) -> dict[str, Any]:
        """For `run --dry-run --json`."""
        return dict(vars(self))

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
        refused = f"; {self.incompatible:,} more cannot be played" if self.incompatible else ""
        counts = (f"{count:,} {loop}" for loop, count in self.loops.items())
        yield f"{number_of(len(self.pairs), 'pair')}: {', '.join(counts)}{refused}"
        width = max(len(forecaster) for forecaster, *_ in self.pairs)
        for forecaster, nature, loop in self.pairs if len(self.pairs) <= LISTED else ():
            yield f"  {loop:8}  {forecaster:{width}}  {nature}"


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
    )
