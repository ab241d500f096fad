"""The games that a run would play: cells, rounds, and the loop of each pair."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from onlinecal.core.words import number_of
from onlinecal.study.planning import Plan

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
    some of `begun` ones. `loops` has the number of pairs of each loop, and few pairs are `listed`.
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

    def as_json(self) -> dict[str, Any]:
        """For `run --dry-run --json`."""
        return vars(self) | {"listed": [pair._asdict() for pair in self.listed]}

    def lines(self) -> Iterator[str]:
        """In words."""
        parts = f"{number_of(self.cells, 'cell')}: {self.new:,} new"
        if self.begun:
            parts += f", {self.begun:,} of which some runs are there"
        yield parts + (f", {self.finished:,} in the results file already" if self.finished else "")
        late = f" by {self.schedules:,} schedules" if self.schedules > 1 else ""
        refused = f"; {self.incompatible:,} cannot play each other" if self.incompatible else ""
        who, whom = number_of(self.forecasters, "forecaster"), number_of(self.natures, "nature")
        yield f"{who} × {whom}{late}: {number_of(self.pairs, 'pair')}{refused}"
        horizons = self.horizons
        shown = ", ".join(f"{t:,}" for t in horizons)
        if len(horizons) > 10:
            shown = f"{len(horizons)} from {horizons[0]:,} to {horizons[-1]:,}"
        yield f"T = {shown}; {number_of(self.runs, 'run')}"
        yield f"{self.run_rounds:,} run-rounds to be played"
        width = max((len(pair.forecaster) for pair in self.listed), default=0)
        for pair in self.listed:
            yield f"  {pair.loop:8}  {pair.forecaster:{width}}  {pair.nature}"
        if not self.listed:
            counts = (f"{loop} for {number_of(count, 'pair')}" for loop, count in self.loops.items())
            yield f"loops: {', '.join(counts)}"


def outlook(plan: Plan, there: Mapping[str, int] = MappingProxyType({})) -> Outlook:
    """Describes what of a plan would be played; `there` has the number of played runs by key."""
    # Cells of one key are played once.
    left = {cell.key: cell.horizon * max(0, cell.runs - there.get(cell.key, 0)) for cell in plan}
    played = [min(there.get(cell.key, 0), cell.runs) for cell in plan]
    finished = sum(runs == cell.runs for runs, cell in zip(played, plan, strict=True))
    begun = sum(0 < runs < cell.runs for runs, cell in zip(played, plan, strict=True))
    pairs = dict.fromkeys(
        Listed(
            cell.forecaster.label,
            cell.nature_label,
            "simpy" if cell.in_world else "compiled" if cell.in_steps else "python",
        )
        for cell in plan
    )
    labels = {(cell.forecaster.label, cell.nature.label) for cell in plan}
    refused = {pair[:2] for pair in plan.incompatible}
    return Outlook(
        forecasters=len({who for who, _ in labels | refused}),
        natures=len({whom for _, whom in labels | refused}),
        schedules=len({cell.schedule.label for cell in plan}),
        pairs=len(pairs),
        incompatible=len(refused - labels),
        horizons=tuple(sorted({cell.horizon for cell in plan})),
        runs=plan[0].runs,
        cells=len(plan),
        finished=finished,
        begun=begun,
        new=len(plan) - finished - begun,
        run_rounds=sum(left.values()),
        loops=dict(sorted(Counter(pair.loop for pair in pairs).items())),
        listed=tuple(pairs) if len(pairs) <= LISTED else (),
    )
