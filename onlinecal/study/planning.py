"""A study as a list of cells, each a pure function of its description."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

from onlinecal.core.columns import Column, Held
from onlinecal.core.content import content, digest
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Guarantee, following
from onlinecal.core.strategy import classes_of, strategy_label
from onlinecal.core.validation import integer, twice
from onlinecal.core.words import number_of
from onlinecal.decisions.people import People
from onlinecal.engine.game import IMMEDIATE, VERSION
from onlinecal.engine.horizon import check_horizon, checkpoints
from onlinecal.engine.start import check_classes, check_pair, check_specification, same_outcomes, start
from onlinecal.engine.steps import Player
from onlinecal.engine.transcripts import check_kept
from onlinecal.schedules import Schedule
from onlinecal.study.entries import Incompatible
from onlinecal.study.gammas import KEEP, Keep, check_keep
from onlinecal.study.panel import Panel
from onlinecal.worlds.base import World
from onlinecal.worlds.run import VERSION as WORLDS_VERSION

__all__ = ["Cell", "Entry", "Incompatible", "Plan", "plan"]

NOBODY = People()
#: the largest number of cells of a plan, which are all in memory
MOST = 10**6


@dataclass(frozen=True)
class Entry:
    """A strategy, its label, and the longest horizon at which it is played, if any."""

    strategy: Any
    label: str
    longest: int | None = None

    @classmethod
    def of(cls, strategy: Any, label: str | None = None, longest: int | None = None) -> "Entry":
        """With its own name where no label is given."""
        return cls(strategy, label or strategy_label(strategy), longest)

    @cached_property
    def content(self) -> Any:
        """The content of the strategy when first asked for: its source may be edited during a game."""
        return content(self.strategy)

    @property
    def in_steps(self) -> bool:
        """Whether its players are made of steps alone; False before one has been started."""
        return any(steps for _, steps in self._started.values())

    def facing(self, nature: "Entry") -> "Entry":
        """A forecaster as it plays a nature, which may have groups; itself where that is all the same to it."""
        told = self.strategy.facing(nature.strategy)
        return self if told is self.strategy else replace(self, strategy=told)

    def points_at(self, horizon: int) -> int | None:
        """The number of points of a forecaster's grid; None for no grid."""
        self.start("forecaster", horizon, 0)
        return self._started[horizon][0]

    def start(self, role: str, horizon: int, seed: int) -> None:
        """Starts a player, once, to see that it can be done and what it shows of itself."""
        if horizon in self._started:
            return
        player = start(role, self.strategy, horizon, range(1), seed)
        grid = getattr(player, "grid", None)
        self._started[horizon] = None if grid is None else len(grid), isinstance(player, Player)

    @cached_property
    def _started(self) -> dict[int, tuple[int | None, bool]]:
        return {}

    @property
    def length(self) -> int | None:
        """How many rounds it can play; None for any number."""
        return getattr(self.strategy, "length", None)

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Those of the strategy, found once for all its opponents."""
        return tuple(self.strategy.guarantees)

    def following(self, guarantee: Guarantee, column: Column) -> list[Guarantee]:
        """The bounds on a column that follow from one of `guarantees`, found once for all its opponents."""
        key = id(guarantee), column
        if key not in self._following:
            self._following[key] = following([guarantee], column)
        return self._following[key]

    @cached_property
    def _following(self) -> dict[tuple[int, Column], list[Guarantee]]:
        return {}


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
        Decision makers, each with the time at which it joins and leaves.
    keep : int, "all" or "none"
        Up to how many levels a run's Γ is kept (see `onlinecal.study.gammas`); no numbers depend on it.
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
        """All that the rounds of one run depend on (see `onlinecal.core.content`): no labels, no measures."""
        return {
            "engine": VERSION,
            **({"worlds": WORLDS_VERSION} if self.in_world else {}),
            "forecaster": self.forecaster.content,
            "nature": self.nature.content,
            "horizon": int(self.horizon),
            "times": [int(t) for t in self.times],
            "seed": int(self.seed),
            # Each only where it differs from the default, so that earlier results keep their keys.
            **({} if self.schedule.immediate else {"schedule": content(self.schedule)}),
            **({"laws": True} if self.panel.laws else {}),
            **({"decision_makers": self.people.content} if self.people.groups else {}),
        }

    @cached_property
    def key(self) -> str:
        """The digest of `content`: cells of one key have the same rounds, run by run."""
        return digest(self.content)

    @property
    def held(self) -> Mapping[Column, Held]:
        """Its columns, those of streams and groups too, with what their numbers depend on beside the rounds."""
        return self.panel.held(self.nature.strategy.streams, self.nature.strategy.group_names)

    @property
    def in_world(self) -> bool:
        """Whether nature is a world, which asks and answers at times of its own."""
        return isinstance(self.nature.strategy, World)

    @property
    def in_steps(self) -> bool:
        """Whether both players are made of steps alone, so that compiled code plays it."""
        return self.forecaster.in_steps and self.nature.in_steps

    @property
    def loop(self) -> str:
        """The loop that plays it: "simpy", "compiled" or "python"."""
        return "simpy" if self.in_world else "compiled" if self.in_steps else "python"

    @property
    def immediate(self) -> bool:
        """Whether every outcome is known before the next question."""
        return self.schedule.immediate and not self.in_world

    @property
    def nature_label(self) -> str:
        """Nature's label, with the schedule where there is one."""
        return ", ".join(filter(None, (self.nature.label, self.schedule.label)))

    @property
    def players(self) -> str:
        """Both in words, for errors."""
        return f"{self.forecaster.label!r} against {self.nature_label!r}"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the panel, and of each stream and group."""
        return tuple(self.panel.columns_of(self.nature.strategy.streams, self.nature.strategy.group_names))

    @property
    def work(self) -> int:
        """Run-rounds: what progress is measured in."""
        return self.horizon * (self.runs - self.first)


class Plan(list[Cell]):
    """The cells of a study, a list; see `plan`.

    Parameters
    ----------
    cells : iterable of Cell
    incompatible : sequence of Incompatible
        Pairs that cannot play each other, or not up to the longest horizon.
    """

    def __init__(self, cells: Iterable[Cell] = (), incompatible: Sequence[Incompatible] = ()) -> None:
        super().__init__(cells)
        self.incompatible = tuple(incompatible)

    def __getitem__(self, place: Any) -> Any:
        """A cell, or of a slice a plan with the same `incompatible`."""
        found = super().__getitem__(place)
        return Plan(found, self.incompatible) if isinstance(place, slice) else found

    @property
    def work(self) -> int:
        """Run-rounds of all cells."""
        return sum(cell.work for cell in self)


def plan(
    forecasters: Iterable[Entry],
    natures: Iterable[Entry],
    *,
    horizons: Sequence[int],
    runs: int,
    seed: int,
    panel: Panel,
    per_decade: int = 8,
    ends: bool = False,
    schedules: Sequence[Schedule] = (IMMEDIATE,),
    people: People = NOBODY,
    keep: Keep = KEEP,
) -> Plan:
    """The cells of a study: every forecaster against every nature at every horizon by every schedule.

    Of several horizons each is a game of its own, read at its end. A single one is read at geometric checkpoints,
    `per_decade` for each factor of ten, or (`ends`) at its end too. A nature of L rounds, such as a recorded stream, is
    played at all shorter horizons and at L. Pairs that cannot play
    each other are left out (`Plan.incompatible`), as long as there are others.

    Raises
    ------
    InvalidParameter
        A horizon, number of runs or of checkpoints that cannot be played. No pair of players that can play each other.
        More than a million cells. A player that cannot be started at a horizon. Two strategies or
        schedules of one label. A schedule by which no outcome would become known.
    """
    who, whom = list(forecasters), list(natures)
    if not who or not whom:
        raise InvalidParameter(f"no {'natures' if who else 'forecasters'}; expected at least one")
    _check_numbers(horizons, runs, seed, per_decade)
    # Of Python, whatever they were: they are written into files.
    times = tuple(sorted(int(t) for t in horizons))
    for role, entries in (("forecaster", who), ("nature", whom)):
        for entry in entries:
            check_specification(role, entry.strategy)
    if (count := len(who) * len(whom) * len(times) * len(schedules)) > MOST:
        raise InvalidParameter(
            f"the study has up to {count:,} cells; expected at most {MOST:,}: fewer values of a parameter, or several "
            "studies"
        )
    _check_labels(who, whom, schedules)
    pairs, incompatible = _pairs(who, whom, times, [n for s in schedules if (n := s.length) is not None])
    if not pairs:
        more = len(incompatible) - 1
        raise InvalidParameter(
            incompatible[0].reason + (f"; nor can {number_of(more, 'other pair')} be played" if more else "")
        )
    for entry in whom:
        check_kept(panel.keeps or (), entry.strategy)
        _check_parts(panel, entry)
    if of_classes(whom):
        if people.groups:
            raise InvalidParameter(
                f"decision makers in games of classes ({whom[0].label!r}); expected a nature of outcomes 0 and 1, or "
                "tasks"
            )
        for size in {classes_of(entry.strategy) for entry in whom}:
            panel.check_classes(size)
    if panel.laws:
        for entry, schedule in product(whom, schedules):
            check_classes(entry.strategy, schedule, None, True)
    if late := next((s for s in schedules if not s.immediate), None):
        for entry in whom:
            if isinstance(entry.strategy, World):
                raise InvalidParameter(
                    f"{entry.label!r} is a world, which asks and answers at times of its own; expected no arrivals or "
                    f"delays ({late.label}), or a nature"
                )
    for one, other, played in pairs:
        for t in played:
            one.start("forecaster", t, int(seed))
            if not isinstance(other.strategy, World):  # which is a process that only play starts
                other.start("nature", t, int(seed))
    for horizon in sorted({t for *_, played in pairs for t in played}):
        for schedule in schedules:
            if not schedule.immediate:
                schedule.clock(horizon, int(seed)).check()
    on_the_way = len(times) == 1 and not ends
    read = {t: tuple(checkpoints(t, int(per_decade))) if on_the_way else (t,) for t in times}
    keep = check_keep(keep)
    cells = (
        Cell(one, other, t, int(runs), int(seed), read.get(t, (t,)), panel, 0, schedule, people, keep)
        for one, other, played in pairs
        for t in played
        for schedule in schedules
    )
    return Plan(cells, incompatible)


def of_classes(natures: Sequence[Entry]) -> bool:
    """Whether natures are of K classes, all or none of them; both kinds in one study are refused."""
    kinds = {classes_of(entry.strategy) > 0: entry.label for entry in natures}
    if len(kinds) > 1:
        raise InvalidParameter(
            f"nature {kinds[True]!r} is of classes and {kinds[False]!r} of outcomes 0 and 1, which have "
            "other measures; expected a study for each kind"
        )
    return True in kinds


_Pairs = list[tuple[Entry, Entry, Sequence[int]]]


def _pairs(
    who: Sequence[Entry], whom: Sequence[Entry], times: tuple[int, ...], limits: list[int]
) -> tuple[_Pairs, list[Incompatible]]:
    """Each pair with the horizons at which it is played, and the pairs that cannot be; `limits` are of schedules."""
    pairs: _Pairs = []
    incompatible: list[Incompatible] = []
    needs = [entry.strategy.needs for entry in who]
    for nature in whom:
        own = times
        length = min((n for n in (nature.length, *limits) if n is not None), default=None)
        if length is not None and len(times) > 1 and times[-1] > length:
            own = (*(t for t in times if t < length), length)
        for forecaster, needed in zip(who, needs, strict=True):
            longest = min(n for n in (forecaster.longest, nature.longest, own[-1]) if n is not None)
            wanted = own if longest == own[-1] else tuple(t for t in own if t <= longest)
            if not wanted:
                raise InvalidParameter(
                    f"{forecaster.label!r} against {nature.label!r} is to be played up to T = {longest}, but the "
                    f"shortest horizon is {own[0]}"
                )
            able = needed <= nature.strategy.reveals and wanted[-1] <= (nature.length or wanted[-1])
            able = able and same_outcomes(forecaster.strategy, nature.strategy)
            played = tuple(t for t in wanted if able and t <= (forecaster.length or t))
            if played != wanted:
                try:
                    check_pair(forecaster.strategy, nature.strategy, wanted[-1])
                except InvalidParameter as error:
                    incompatible.append(Incompatible(forecaster.label, nature.label, str(error)))
            if played:
                pairs.append((forecaster.facing(nature), nature, played))
    return pairs, incompatible


def _check_numbers(horizons: Sequence[int], runs: int, seed: int, per_decade: int) -> None:
    if not horizons:
        raise InvalidParameter("no horizons; expected at least one")
    for horizon in horizons:
        check_horizon(horizon)
    if (again := twice(horizons)) is not None:
        raise InvalidParameter(f"horizon {again} is given twice; expected each once")
    for name, value, most in (("runs", runs, 100_000), ("per_decade", per_decade, 100)):
        integer("", name, value, 1, most)
    integer("", "seed", seed)


def _check_labels(who: Sequence[Entry], whom: Sequence[Entry], schedules: Sequence[Schedule]) -> None:
    """Refuses two of one label, and names that natures and schedules give in two ways."""
    late = [schedule.label for schedule in schedules]
    natures = [entry.label for entry in whom]
    both = [", ".join(filter(None, (label, text))) for label in natures for text in late] if any(late) else []
    for kind, labels in (
        ("forecasters", [entry.label for entry in who]),
        ("schedules", [text or "no delay" for text in late]),
        ("natures", [*natures, *late]),
        ("natures with their schedules", both),
    ):
        if (again := twice(labels)) is not None:
            raise InvalidParameter(f"two {kind} are called {again!r}; leave one out or give it another label")


def _check_parts(panel: Panel, nature: Entry) -> None:
    """Refuses two columns of one name, of streams and groups, and measures of groups where there are none."""
    streams, groups = nature.strategy.streams, nature.strategy.group_names
    panel.check_groups(nature.label, groups)
    labels = ("", *streams, *groups)
    if (again := twice(replace(c, stream=s).name for s in labels for c in panel.columns)) is not None:
        raise InvalidParameter(
            f"two columns of {nature.label!r} are called {again!r}; expected other names of streams, groups or measures"
        )
