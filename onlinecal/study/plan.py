"""What there is to play: a study as a list of cells, each a pure function of its own description."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from onlinecal.core.columns import Column, Held
from onlinecal.core.content import content, digest
from onlinecal.core.errors import InvalidParameter, shown
from onlinecal.core.validation import is_whole
from onlinecal.core.words import number_of
from onlinecal.decision_makers.tenures import People
from onlinecal.engine.game import IMMEDIATE, VERSION
from onlinecal.engine.horizon import check_horizon, checkpoints
from onlinecal.engine.keeping import Exact, Keeping, OnGrid
from onlinecal.engine.transcripts import check_kept
from onlinecal.rounds.protocol import check_pair, start
from onlinecal.schedules import Schedule
from onlinecal.study.gammas import KEEP, Keep, check_keep
from onlinecal.study.groups import Group, Incompatible, groups_of
from onlinecal.study.lineup import Entry, Lineup
from onlinecal.study.panel import Panel

__all__ = ["Cell", "Entry", "Incompatible", "Plan", "plan"]

NOBODY = People()
EXACT = Exact()


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
    history : Exact or OnGrid
        How forecasts that are on no grid are kept.
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
    history: Keeping = EXACT
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
            # Wherever they are kept exactly, the rounds are as they were played.
            **({"history": self.history.m} if isinstance(self.history, OnGrid) else {}),
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
        return _columns(self.panel, self.nature)

    @property
    def work(self) -> int:
        """Run-rounds: what progress is measured in."""
        return self.horizon * (self.runs - self.first)


def _columns(panel: Panel, nature: Entry) -> tuple[Column, ...]:
    """Those of the panel, and of each stream of a nature."""
    own = panel.columns
    return own + tuple(replace(c, stream=s) for s in nature.strategy.streams for c in own)


class Plan(Sequence[Cell]):
    """The cells of a study: every forecaster against every nature at every horizon by every schedule, see `plan`.

    Each cell is made when it is asked for; none is kept. Pairs that cannot play each other are left out.

    Parameters
    ----------
    forecasters, natures : Lineup
    horizons : sequence of int
    per_decade : int
        Checkpoints, with a single horizon.
    schedules : sequence of Schedule
    runs, seed : int
    panel : Panel
    people : People
    history : Exact or OnGrid
    keep : int, "all" or "none"
    """

    def __init__(
        self,
        forecasters: Lineup,
        natures: Lineup,
        *,
        horizons: Sequence[int],
        per_decade: int,
        schedules: Sequence[Schedule],
        runs: int,
        seed: int,
        panel: Panel,
        people: People,
        history: Keeping,
        keep: Keep,
    ) -> None:
        self.forecasters, self.natures = forecasters, natures
        self.horizons, self.schedules = tuple(sorted(horizons)), tuple(schedules)
        self.runs, self.seed, self.panel, self.people = runs, seed, panel, people
        self.history, self.keep = history, keep
        self._times = {
            t: tuple(checkpoints(t, per_decade)) if len(self.horizons) == 1 else (t,) for t in self.horizons
        }
        self._who = groups_of("forecaster", forecasters, self.horizons, self.schedules)
        self._whom = groups_of("nature", natures, self.horizons, self.schedules)
        self._matched = {
            (i, j): self._match(whom, who)
            for i, whom in enumerate(self._whom)
            for j, who in enumerate(self._who)
        }

    def _match(self, whom: Group, who: Group) -> tuple[int, ...]:
        """The horizons of these that both can play; none if they cannot play each other."""
        played = self._wanted(whom, who)
        able = who.context <= whom.context and (whom.length is None or played[-1] <= whom.length)
        return tuple(t for t in played if who.length is None or t <= who.length) if able else ()

    def _wanted(self, whom: Group, who: Group) -> tuple[int, ...]:
        """The horizons at which these are to be played."""
        longest = min(n for n in (who.longest, whom.longest, whom.horizons[-1]) if n is not None)
        played = tuple(t for t in whom.horizons if t <= longest)
        if not played:
            labels = self.forecasters[who.places[0]].label, self.natures[whom.places[0]].label
            raise InvalidParameter(
                f"{labels[0]!r} against {labels[1]!r} is to be played up to T = {longest}, but the shortest horizon is "
                f"{whom.horizons[0]}"
            )
        return played

    @property
    def incompatible(self) -> tuple[Incompatible, ...]:
        """Pairs that cannot play each other, or not as long as the longest horizon."""
        found = []
        for (i, j), horizons in self._matched.items():
            wanted = self._wanted(self._whom[i], self._who[j])
            for nature in () if horizons == wanted else self._whom[i].places:
                for forecaster in self._who[j].places:
                    pair = self.forecasters[forecaster], self.natures[nature]
                    try:
                        check_pair(pair[0].strategy, pair[1].strategy, wanted[-1])
                    except InvalidParameter as error:
                        found.append(Incompatible(pair[0].label, pair[1].label, str(error)))
        return tuple(found)

    def matches(self) -> Iterator[tuple[range, range, tuple[int, ...]]]:
        """Places of forecasters and of natures that are all played at the same horizons, and these; in no order."""
        for (i, j), horizons in self._matched.items():
            if horizons:
                yield self._who[j].places, self._whom[i].places, horizons

    def __len__(self) -> int:
        return len(self.schedules) * sum(
            len(who) * len(whom) * len(horizons) for who, whom, horizons in self.matches()
        )

    @property
    def work(self) -> int:
        """Run-rounds of all cells."""
        rounds = sum(len(who) * len(whom) * sum(horizons) for who, whom, horizons in self.matches())
        return self.runs * len(self.schedules) * rounds

    def __iter__(self) -> Iterator[Cell]:
        for i, whom in enumerate(self._whom):
            for place in whom.places:
                nature = self.natures[place]
                for j, who in enumerate(self._who):
                    for other in who.places if self._matched[i, j] else ():
                        forecaster = self.forecasters[other]
                        for horizon in self._matched[i, j]:
                            for schedule in self.schedules:
                                yield self.cell(forecaster, nature, horizon, schedule)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        for i, whom in enumerate(self._whom):
            sizes = [
                len(who.places) * len(self._matched[i, j]) * len(self.schedules)
                for j, who in enumerate(self._who)
            ]
            if place >= sum(sizes) * len(whom.places):
                place -= sum(sizes) * len(whom.places)
                continue
            at, rest = divmod(place, sum(sizes))
            j = 0
            while rest >= sizes[j]:
                rest, j = rest - sizes[j], j + 1
            rest, schedule = divmod(rest, len(self.schedules))
            other, t = divmod(rest, len(self._matched[i, j]))
            forecaster, nature = self.forecasters[self._who[j].places[other]], self.natures[whom.places[at]]
            return self.cell(forecaster, nature, self._matched[i, j][t], self.schedules[schedule])
        raise IndexError(place)

    def cell(self, forecaster: Entry, nature: Entry, horizon: int, schedule: Schedule) -> Cell:
        """That of these."""
        return Cell(
            forecaster,
            nature,
            horizon,
            self.runs,
            self.seed,
            self._times.get(horizon, (horizon,)),
            self.panel,
            schedule=schedule,
            people=self.people,
            history=self.history,
            keep=self.keep,
        )

    # ---------------------------------------------------------------- what cannot be played

    def check(self) -> None:
        """Refuses what cannot be played; nothing is.

        Of the strategies of a table with many combinations some are looked at (`core.sweeps.Sweep.samples`), each of
        them started once for each of its horizons; the others are when they play.

        Raises
        ------
        InvalidParameter
        """
        self._check_labels()
        if not any(self._matched.values()):
            refused = self.incompatible
            more = len(refused) - 1
            raise InvalidParameter(
                refused[0].reason + (f"; nor can {number_of(more, 'other pair')} be played" if more else "")
            )
        played: dict[tuple[str, range], set[int]] = {}
        for who, whom, horizons in self.matches():
            played.setdefault(("forecaster", who), set()).update(horizons)
            played.setdefault(("nature", whom), set()).update(horizons)
        for place in self.natures.samples():
            check_kept(self.panel.keeps or (), self.natures[place].strategy)
            self._check_columns(self.natures[place])
        free = False
        for role, lineup, groups in (
            ("forecaster", self.forecasters, self._who),
            ("nature", self.natures, self._whom),
        ):
            looked_at = lineup.samples()
            for group in groups:
                own = looked_at[
                    bisect_left(looked_at, group.places.start) : bisect_left(looked_at, group.places.stop)
                ]
                for place in own:
                    for horizon in sorted(played.get((role, group.places), ())):
                        player = start(role, lineup[place].strategy, horizon, range(1), self.seed)
                        free |= role == "forecaster" and grid_of_player(player) is None
        for horizon in sorted({t for *_, horizons in self.matches() for t in horizons}):
            for schedule in self.schedules:
                # Of an immediate one there is nothing to refuse, nor to load machine code for.
                if not schedule.immediate:
                    schedule.clock(horizon, self.seed).check()
        self._settle_history(free)

    def _settle_history(self, free: bool) -> None:
        """Where some forecaster is `free` of a grid and its forecasts are moved to one, columns are brackets."""
        if not isinstance(self.history, OnGrid):
            return
        if not free:
            self.history = EXACT
            return
        try:
            if self.people.groups:
                raise InvalidParameter(
                    "decision makers who join and leave act on forecasts as they are; expected none"
                )
            self.panel = self.panel.of_moved()
        except InvalidParameter as error:
            raise InvalidParameter(f"history = {self.history.m}: {error}, or history = 'exact'") from None

    def _check_labels(self) -> None:
        """Refuses two of one label, and names that would be put together in two ways, of natures with schedules."""
        schedules = [schedule.label for schedule in self.schedules]
        for kind, labels in (
            ("forecasters", self.forecasters.labels()),
            ("natures", (*self.natures.labels(), *schedules)),
        ):
            seen: set[str] = set()
            for label in labels:
                if label in seen:
                    raise InvalidParameter(f"two {kind} are called {label!r}; give one of them another label")
                seen.add(label)
        made: dict[str, tuple[str, str]] = {}
        for label in self.natures.labels() if any(schedules) else ():
            for schedule in schedules:
                whole = ", ".join(filter(None, (label, schedule)))
                if made.setdefault(whole, (label, schedule)) != (label, schedule):
                    raise InvalidParameter(
                        f"two natures with their schedules are called {whole!r}; give one of them another label"
                    )

    def _check_columns(self, nature: Entry) -> None:
        """Refuses two columns of one name, of streams."""
        if not nature.strategy.streams:
            return
        seen: set[str] = set()
        for column in _columns(self.panel, nature):
            if column.name in seen:
                raise InvalidParameter(
                    f"two columns of {nature.label!r} are called {column.name!r}; give the stream, measure or task "
                    "another name"
                )
            seen.add(column.name)


def plan(
    forecasters: Iterable[Entry | Lineup],
    natures: Iterable[Entry | Lineup],
    *,
    horizons: Sequence[int],
    runs: int,
    seed: int,
    panel: Panel,
    per_decade: int = 8,
    schedules: Sequence[Schedule] = (IMMEDIATE,),
    people: People = NOBODY,
    history: Keeping = EXACT,
    keep: Keep = KEEP,
) -> Plan:
    """The cells of a study: every forecaster against every nature at every horizon by every schedule.

    With several horizons each is a game of its own that is read at its end; with a single one the game is read at
    geometric checkpoints, `per_decade` for each factor of ten. A nature that can play only L rounds, such as a
    recorded stream, is played at those of several horizons that are shorter, and at L. Pairs that cannot play
    each other are left out (`Plan.incompatible`), as long as there are others.

    Raises
    ------
    InvalidParameter
        A horizon, number of runs or of checkpoints that cannot be played; no pair of players that can play each
        other; a player that cannot be started at a horizon; two strategies or schedules of one label; a schedule by
        which no outcome would become known, or with times that cannot be; forecasts that are to be moved to a grid, and
        a measure, task or decision maker of which nothing is known then. Of tables with very many combinations see
        `Plan.check`.
    """
    who, whom = Lineup.of(forecasters), Lineup.of(natures)
    if not len(who) or not len(whom):
        raise InvalidParameter(f"no {'natures' if len(who) else 'forecasters'}; expected at least one")
    if not horizons:
        raise InvalidParameter("no horizons; expected at least one")
    for i, horizon in enumerate(horizons):
        check_horizon(horizon)
        if horizon in horizons[:i]:
            raise InvalidParameter(f"horizon {horizon} is given twice; expected each once")
    if not is_whole(runs) or not 1 <= runs <= 100_000:
        raise InvalidParameter(f"runs = {shown(runs)}; expected an integer from 1 to 100000")
    if not is_whole(per_decade) or not 1 <= per_decade <= 100:
        raise InvalidParameter(f"per_decade = {shown(per_decade)}; expected an integer from 1 to 100")
    if not is_whole(seed):
        raise InvalidParameter(f"seed = {shown(seed)}; expected an integer")
    if abs(seed) >= 10**300:
        raise InvalidParameter("seed has more than 300 digits; expected an integer of fewer")
    # Of Python, whatever they were: they are written into files.
    made = Plan(
        who,
        whom,
        horizons=[int(t) for t in horizons],
        per_decade=int(per_decade),
        schedules=schedules,
        runs=int(runs),
        seed=int(seed),
        panel=panel,
        people=people,
        history=history,
        keep=check_keep(keep),
    )
    made.check()
    return made


def grid_of_player(player: Any) -> Any:
    """The grid that a forecaster's player says it plays on, itself or by its law; None where it says none."""
    return getattr(player, "grid", getattr(getattr(player, "law", None), "grid", None))
