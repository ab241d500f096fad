"""What there is to play: a study as a list of cells, each a pure function of its own description."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from onlinecal.core.columns import Column
from onlinecal.core.content import content, digest
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.validation import is_whole
from onlinecal.decision_makers.tenures import People
from onlinecal.engine.game import IMMEDIATE, VERSION
from onlinecal.engine.horizon import check_horizon, checkpoints
from onlinecal.engine.transcripts import check_kept
from onlinecal.rounds.protocol import check_pair, check_specification, start
from onlinecal.schedules import Schedule
from onlinecal.study.lineup import Entry, Lineup
from onlinecal.study.panel import Panel

__all__ = ["Cell", "Entry", "Plan", "plan"]

NOBODY = People()


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

    @cached_property
    def content(self) -> dict[str, Any]:
        """All that the numbers of one run depend on, for people to read (see `onlinecal.core.content`).

        Labels and the order of cells, of columns and of runs are not among it.
        """
        return {
            "engine": VERSION,
            "forecaster": self.forecaster.content,
            "nature": self.nature.content,
            "horizon": int(self.horizon),
            "times": [int(t) for t in self.times],
            "seed": int(self.seed),
            **self.panel.content,
            # Only where there is something to say: what was played before there were schedules is the same.
            **({} if self.schedule.immediate else {"schedule": content(self.schedule)}),
            **({"decision_makers": self.people.content} if self.people.groups else {}),
        }

    @cached_property
    def key(self) -> str:
        """The digest of `content`: cells of one key have the same numbers, run by run."""
        return digest(self.content)

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


class _Group(NamedTuple):
    """Neighbours in a line-up that are played at the same horizons.

    Attributes
    ----------
    places : range
    horizons : tuple of int
        Ascending; of a forecaster those of the study.
    longest : int or None
    """

    places: range
    horizons: tuple[int, ...]
    longest: int | None


class Plan(Sequence[Cell]):
    """The cells of a study: every forecaster against every nature at every horizon by every schedule, see `plan`.

    Each cell is made when it is asked for; none is kept.

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
    ) -> None:
        self.forecasters, self.natures = forecasters, natures
        self.horizons, self.schedules = tuple(sorted(horizons)), tuple(schedules)
        self.runs, self.seed, self.panel, self.people = runs, seed, panel, people
        self._times = {
            t: tuple(checkpoints(t, per_decade)) if len(self.horizons) == 1 else (t,) for t in self.horizons
        }
        self._who = _grouped(
            (range(first, first + len(family)), self.horizons, family.longest)
            for first, family in zip(forecasters.firsts, forecasters.families, strict=False)
        )
        self._whom = _grouped(self._natures())

    def _natures(self) -> Iterator[tuple[range, tuple[int, ...], int | None]]:
        """Who is played at which horizons: a nature that can play only L rounds at those below, and at L."""
        times = self.horizons
        limits = [n for n in (schedule.length for schedule in self.schedules) if n is not None]
        for first, family in zip(self.natures.firsts, self.natures.families, strict=False):
            places = range(first, first + len(family))
            seen = list(family.samples())
            # Of those that are not looked at, none has an end if none has that is.
            endless = len(seen) < len(places) and all(
                self.natures[first + i].strategy.length is None for i in seen
            )
            for part in [places] if endless else [range(i, i + 1) for i in places]:
                own = None if endless else self.natures[part.start].strategy.length
                length = min((n for n in (own, *limits) if n is not None), default=None)
                played = times
                if length is not None and len(times) > 1 and times[-1] > length:
                    played = (*(t for t in times if t < length), length)
                yield part, played, family.longest

    def _played(self, whom: _Group, who: _Group) -> tuple[int, ...]:
        """The horizons of these."""
        longest = min(n for n in (who.longest, whom.longest, whom.horizons[-1]) if n is not None)
        return tuple(t for t in whom.horizons if t <= longest)

    def matches(self) -> Iterator[tuple[range, range, tuple[int, ...]]]:
        """Places of forecasters and of natures that are all played at the same horizons, and these; in no order."""
        for whom in self._whom:
            for who in self._who:
                yield who.places, whom.places, self._played(whom, who)

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
        for group in self._whom:
            played = [(who.places, self._played(group, who)) for who in self._who]
            for place in group.places:
                nature = self.natures[place]
                for places, horizons in played:
                    for i in places:
                        forecaster = self.forecasters[i]
                        for horizon in horizons:
                            for schedule in self.schedules:
                                yield self._cell(forecaster, nature, horizon, schedule)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        for whom in self._whom:
            sizes = [len(w.places) * len(self._played(whom, w)) * len(self.schedules) for w in self._who]
            at, rest = divmod(place, sum(sizes))
            if at >= len(whom.places):
                place -= sum(sizes) * len(whom.places)
                continue
            for who, size in zip(self._who, sizes, strict=True):
                if rest < size:
                    horizons = self._played(whom, who)
                    rest, schedule = divmod(rest, len(self.schedules))
                    i, t = divmod(rest, len(horizons))
                    return self._cell(
                        self.forecasters[who.places[i]],
                        self.natures[whom.places[at]],
                        horizons[t],
                        self.schedules[schedule],
                    )
                rest -= size
        raise IndexError(place)

    def _cell(self, forecaster: Entry, nature: Entry, horizon: int, schedule: Schedule) -> Cell:
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
        whom = [(group, i) for group in self._whom for i in self._looked_at(self.natures, group)]
        who = [(group, i) for group in self._who for i in self._looked_at(self.forecasters, group)]
        for group in self._whom:
            for other in self._who:
                if not self._played(group, other):
                    labels = self.forecasters[other.places[0]].label, self.natures[group.places[0]].label
                    raise InvalidParameter(
                        f"{labels[0]!r} against {labels[1]!r} is to be played up to "
                        f"T = {min(n for n in (other.longest, group.longest) if n is not None)}, but the shortest "
                        f"horizon is {group.horizons[0]}"
                    )
        for role, lineup, looked_at in (
            ("forecaster", self.forecasters, who),
            ("nature", self.natures, whom),
        ):
            for _, place in looked_at:
                check_specification(role, lineup[place].strategy)
        # Of those that need the same, and of those that reveal the same and play as long, the first.
        asking: dict[Any, int] = {}
        for group, place in who:
            asking.setdefault((frozenset(self.forecasters[place].strategy.needs), group), place)
        giving: dict[Any, int] = {}
        for group, place in whom:
            nature = self.natures[place].strategy
            giving.setdefault((frozenset(nature.reveals), nature.length, group), place)
        for (*_, group), place in giving.items():
            for (_, other), forecaster in asking.items():
                pair = self.forecasters[forecaster].strategy, self.natures[place].strategy
                check_pair(*pair, self._played(group, other)[-1])
        for _, place in whom:
            check_kept(self.panel.keeps or (), self.natures[place].strategy)
            self._check_columns(self.natures[place])
        for role, lineup, looked_at, others in (
            ("forecaster", self.forecasters, who, self._whom),
            ("nature", self.natures, whom, self._who),
        ):
            for group, place in looked_at:
                played = [self._played(*((o, group) if role == "forecaster" else (group, o))) for o in others]
                for horizon in sorted({t for horizons in played for t in horizons}):
                    start(role, lineup[place].strategy, horizon, range(1), self.seed)
        for horizon in sorted({t for *_, horizons in self.matches() for t in horizons}):
            for schedule in self.schedules:
                schedule.clock(horizon, self.seed).check()

    def _looked_at(self, lineup: Lineup, group: _Group) -> list[int]:
        return [i for i in lineup.samples() if i in group.places]

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


def _grouped(parts: Iterable[tuple[range, tuple[int, ...], int | None]]) -> list[_Group]:
    """Neighbours that are the same, put together."""
    groups: list[_Group] = []
    for places, horizons, longest in parts:
        if groups and groups[-1][1:] == (horizons, longest):
            groups[-1] = _Group(range(groups[-1].places.start, places.stop), horizons, longest)
        else:
            groups.append(_Group(places, horizons, longest))
    return groups


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
) -> Plan:
    """The cells of a study: every forecaster against every nature at every horizon by every schedule.

    With several horizons each is a game of its own that is read at its end; with a single one the game is read at
    geometric checkpoints, `per_decade` for each factor of ten. A nature that can play only L rounds, such as a
    recorded stream, is played at those of several horizons that are shorter, and at L.

    Raises
    ------
    InvalidParameter
        A horizon, number of runs or of checkpoints, or pair of players that cannot be played, also where that shows
        only when a player is started at the horizon; two strategies or schedules of one label; a schedule by which no
        outcome would become known, or with times that cannot be. Of tables with very many combinations see
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
        raise InvalidParameter(f"runs = {runs!r}; expected an integer from 1 to 100000")
    if not is_whole(per_decade) or not 1 <= per_decade <= 100:
        raise InvalidParameter(f"per_decade = {per_decade!r}; expected an integer from 1 to 100")
    if not is_whole(seed):
        raise InvalidParameter(f"seed = {seed!r}; expected an integer")
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
    )
    made.check()
    return made
