"""What there is to play: a study as a list of cells, each a pure function of its own description."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from onlinecal.core.columns import Column, Held
from onlinecal.core.content import content, digest
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_label
from onlinecal.core.validation import is_whole
from onlinecal.decision_makers.tenures import People
from onlinecal.engine.game import IMMEDIATE, VERSION
from onlinecal.engine.horizon import check_horizon, checkpoints
from onlinecal.engine.transcripts import check_kept
from onlinecal.rounds.protocol import check_pair, start
from onlinecal.schedules import Schedule
from onlinecal.study.gammas import KEEP, Keep, check_keep
from onlinecal.study.panel import Panel

NOBODY = People()


@dataclass(frozen=True)
class Entry:
    """A strategy with the label that people see, and the longest horizon that it is to be played at, if any."""

    strategy: Any
    label: str
    longest: int | None = None

    @classmethod
    def of(cls, strategy: Any, label: str | None = None, longest: int | None = None) -> Entry:
        """With its own name where no label is given."""
        return cls(strategy, label or strategy_label(strategy), longest)

    @cached_property
    def content(self) -> Any:
        """The content of the strategy, as it was when first asked for: its source may be edited during a game."""
        return content(self.strategy)


@dataclass(frozen=True)
class Cell:
    """One forecaster against one nature at one horizon, in all its runs.

    Attributes
    ----------
    forecaster, nature : Entry
    horizon, runs, seed : int
    times : tuple of int
        Checkpoints, ascending; the last is the horizon.
    panel : Panel
    first : int
        The first run to play; those before are there already.
    schedule : Schedule
        When questions are asked and outcomes become known.
    people : People
        Decision makers who join and leave.
    keep : int, "all" or "none"
        Up to how many levels a run's Γ is kept exactly (see `onlinecal.study.gammas`); no numbers depend on it.
    """

    forecaster: Entry
    nature: Entry
    horizon: int
    runs: int
    seed: int
    times: tuple[int, ...]
    panel: Panel
    first: int = 0
    schedule: Schedule = IMMEDIATE
    people: People = NOBODY
    keep: Keep = KEEP

    @cached_property
    def content(self) -> dict[str, Any]:
        """All that the rounds of one run depend on, for people to read (see `onlinecal.core.content`).

        Labels and the order of cells and of runs are not among it, nor what is measured (`held`).
        """
        return {
            "engine": VERSION,
            "forecaster": self.forecaster.content,
            "nature": self.nature.content,
            "horizon": int(self.horizon),
            "times": [int(t) for t in self.times],
            "seed": int(self.seed),
            # Only where there is something to say: what was played before there were schedules is the same.
            **({} if self.schedule.immediate else {"schedule": content(self.schedule)}),
            **({"decision_makers": self.people.content} if self.people.groups else {}),
        }

    @cached_property
    def key(self) -> str:
        """The digest of `content`: cells of one key have the same rounds, run by run."""
        return digest(self.content)

    @property
    def held(self) -> Mapping[Column, Held]:
        """Its columns, those of streams too, with what their numbers depend on beside the rounds."""
        return self.panel.held(self.nature.strategy.streams)

    @property
    def nature_label(self) -> str:
        """Nature's label, with the schedule where there is one."""
        return ", ".join(filter(None, (self.nature.label, self.schedule.label)))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the panel, and of each stream."""
        own = self.panel.columns
        return own + tuple(replace(c, stream=s) for s in self.nature.strategy.streams for c in own)

    @property
    def work(self) -> int:
        """Run-rounds: what progress is measured in."""
        return self.horizon * (self.runs - self.first)


def plan(
    forecasters: Iterable[Entry],
    natures: Iterable[Entry],
    *,
    horizons: Sequence[int],
    runs: int,
    seed: int,
    panel: Panel,
    per_decade: int = 8,
    schedules: Sequence[Schedule] = (IMMEDIATE,),
    people: People = NOBODY,
    keep: Keep = KEEP,
) -> list[Cell]:
    """The cells of a study: every forecaster against every nature at every horizon by every schedule.

    With several horizons each is a game of its own that is read at its end; with a single one the game is read at
    geometric checkpoints, `per_decade` for each factor of ten. A nature that can play only L rounds, such as a
    recorded stream, is played at those of several horizons that are shorter, and at L.

    Raises
    ------
    InvalidParameter
        A horizon, number of runs or of checkpoints, or pair of players that cannot be played, also where that shows
        only when a player is started at the horizon; two strategies or schedules of one label; a schedule by which no
        outcome would become known, or with times that cannot be.
    """
    who, whom = list(forecasters), list(natures)
    if not who or not whom:
        raise InvalidParameter(f"no {'forecasters' if not who else 'natures'}; expected at least one")
    if not horizons:
        raise InvalidParameter("no horizons; expected at least one")
    for i, horizon in enumerate(horizons):
        check_horizon(horizon)
        if horizon in horizons[:i]:
            raise InvalidParameter(f"horizon {horizon} is given twice; expected each once")
    if not is_whole(runs) or not 1 <= runs <= 100_000:
        raise InvalidParameter(f"runs = {runs!r}; expected an integer from 1 to 100000")
    if not is_whole(per_decade) or not 1 <= per_decade <= 100:
        raise InvalidParameter(f"per_decade = {per_decade!r}; expected an integer from 1 to 100")
    if not is_whole(seed):
        raise InvalidParameter(f"seed = {seed!r}; expected an integer")
    keep = check_keep(keep)
    # Of Python, whatever they were: they are written into files.
    horizons, runs, seed, per_decade = [int(t) for t in horizons], int(runs), int(seed), int(per_decade)
    for kind, entries in (("forecasters", who), ("natures", whom)):
        labels = [entry.label for entry in entries]
        if kind == "natures":
            labels += [schedule.label for schedule in schedules]
        for label in labels:
            if labels.count(label) > 1:
                raise InvalidParameter(f"two {kind} are called {label!r}; give one of them another label")
    times = sorted(horizons)
    cells = []
    for nature in whom:
        lengths = [nature.strategy.length, *(schedule.length for schedule in schedules)]
        length = min((n for n in lengths if n is not None), default=None)
        own = times
        if length is not None and len(times) > 1 and times[-1] > length:
            own = [t for t in times if t < length] + [length]
        for forecaster in who:
            longest = min(forecaster.longest or own[-1], nature.longest or own[-1])
            played = [t for t in own if t <= longest]
            if not played:
                raise InvalidParameter(
                    f"{forecaster.label!r} against {nature.label!r} is to be played up to T = {longest}, "
                    f"but the shortest horizon is {own[0]}"
                )
            check_pair(forecaster.strategy, nature.strategy, played[-1])
            check_kept(panel.keeps or (), nature.strategy)
            for horizon in played:
                points = checkpoints(horizon, per_decade) if len(times) == 1 else [horizon]
                cells += [
                    Cell(
                        forecaster,
                        nature,
                        horizon,
                        runs,
                        seed,
                        tuple(points),
                        panel,
                        schedule=schedule,
                        people=people,
                        keep=keep,
                    )
                    for schedule in schedules
                ]
    _check_names(cells)
    _try_to_start(cells)
    return cells


def _check_names(cells: Iterable[Cell]) -> None:
    """Refuses names that would be put together in two ways: of natures with schedules, of columns with streams."""
    made: dict[str, tuple[str, str]] = {}
    for cell in cells:
        parts = cell.nature.label, cell.schedule.label
        if made.setdefault(cell.nature_label, parts) != parts:
            raise InvalidParameter(
                f"two natures with their schedules are called {cell.nature_label!r}; give one of them another label"
            )
    for nature in {id(cell.nature): cell for cell in cells}.values():
        names = [column.name for column in nature.columns] if nature.nature.strategy.streams else []
        for name in names:
            if names.count(name) > 1:
                raise InvalidParameter(
                    f"two columns of {nature.nature.label!r} are called {name!r}; give the stream, measure or task "
                    "another name"
                )


def _try_to_start(cells: Iterable[Cell]) -> None:
    """Starts every player once, for one run, and throws it away: what depends on T is refused before any game."""
    started = set()
    for cell in cells:
        for role, entry in (("forecaster", cell.forecaster), ("nature", cell.nature)):
            if (key := (id(entry), cell.horizon)) not in started:
                started.add(key)
                start(role, entry.strategy, cell.horizon, range(1), cell.seed)
        if (key := (id(cell.schedule), cell.horizon)) not in started:
            started.add(key)
            cell.schedule.clock(cell.horizon, cell.seed).check()
