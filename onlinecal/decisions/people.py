"""The decision makers of a study, alone or in groups that come at random, and their accounts."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.columns import ACCOUNT
from onlinecal.core.content import content
from onlinecal.core.errors import InvalidParameter, suggestion
from onlinecal.core.levels import LevelSets
from onlinecal.core.streams import Stream
from onlinecal.core.validation import Named, count, is_number
from onlinecal.decisions.regret import accounts_of_levels
from onlinecal.decisions.responses import (
    Best,
    DecisionMaker,
    as_decision_maker,
    as_response,
    response_name,
)
from onlinecal.decisions.tasks import DecisionTask, Task, is_task, random_task
from onlinecal.measures.decision import cdls
from onlinecal.schedules import Arrivals, Delays, as_arrivals, as_delays
from onlinecal.schedules.base import beginnings, endings

#: the most decision makers of a group, and the most levels of which accounts are made at once
MOST, LEVELS = 100_000, 2**18
#: the account of one in a run: its rounds with a known outcome, then totals over them
ENTRIES = ("rounds", *ACCOUNT)


@dataclass(frozen=True)
class Person(Named):
    """A decision maker that acts on the questions that are asked from `join` up to, not including, `leave`."""

    who: Task
    join: float = 0.0
    leave: float = math.inf
    label: str = ""

    def __post_init__(self) -> None:
        if not is_task(self.who):
            raise InvalidParameter(f"decision maker {self.who!r}; expected a task, or a task with a response")
        if not self.label:
            object.__setattr__(self, "label", self.who.name)
        said = f"decision maker {self.label!r}"
        for name in ("join", "leave"):
            value = getattr(self, name)
            if not is_number(value) or math.isnan(value) or value < 0:
                raise InvalidParameter(f"{said}: {name} = {value!r}; expected a time of 0 or later")
            object.__setattr__(self, name, float(value))
        if self.leave < self.join:
            times = f"leaves at {self.leave:g} and joins at {self.join:g}"
            raise InvalidParameter(f"{said} {times}; expected leave at join or later")

    @property
    def task(self) -> Task:
        """The task without its response."""
        return self.who.task if isinstance(self.who, DecisionMaker) else self.who

    @property
    def response(self) -> str:
        """The name of the response; "" for the best one."""
        return response_name(self.who.response) if isinstance(self.who, DecisionMaker) else ""

    @property
    def cuts(self) -> tuple[float, float]:
        """The cuts between which it is there: from the beginning if it joins at 0, never if it leaves at once."""
        if self.leave == self.join:
            return math.inf, math.inf
        return self.join if self.join > 0.0 else -math.inf, self.leave


@dataclass(frozen=True)
class Group:
    """One or many decision makers, as a scenario describes them."""

    task: Any
    response: Any = None
    join: float = 0.0
    leave: float = math.inf
    count: int = 1
    arrivals: Arrivals | None = None
    stay: Delays | None = None
    label: str = ""

    @classmethod
    def of(cls, spec: Any) -> "Group":
        """A group from a mapping with these keys, a `Person`, or a task."""
        if isinstance(spec, Group):
            return spec
        if isinstance(spec, Person):
            return cls(spec.who, None, spec.join, spec.leave, label=spec.label)
        if not isinstance(spec, Mapping):
            return cls(spec)
        known = [f.name for f in fields(cls)]
        for key in spec:
            if key not in known:
                raise InvalidParameter(f"decision makers have no {key!r}{suggestion(str(key), known)}")
        if "task" not in spec:
            raise InvalidParameter(f"decision makers {dict(spec)!r} have no task; expected a name or a table")
        return cls(**spec)

    def __post_init__(self) -> None:
        count("count", self.count, most=MOST)
        if is_number(self.join) and is_number(self.leave) and self.leave <= self.join:
            said = f"decision makers join from {self.join:g} on and leave at {self.leave:g}"
            raise InvalidParameter(f"{said}; expected to join before")
        for name, convert in (("arrivals", as_arrivals), ("stay", as_delays)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, convert(getattr(self, name)))
        if self.stay is not None and self.stay.by_outcome:
            raise InvalidParameter("stay = by_outcome; a stay has no outcome; expected other delays")
        if not isinstance(self.label, str):
            raise InvalidParameter(f"decision makers: label = {self.label!r}; expected text")
        self.people(0, 0)  # refuses

    @property
    def _random(self) -> dict[str, Any] | None:
        """The options of random tasks; None for a task that all share."""
        if self.task == "random":
            return {}
        if isinstance(self.task, Mapping) and self.task.get("name") == "random":
            return {key: value for key, value in self.task.items() if key != "name"}
        return None

    @property
    def _acting(self) -> Any:
        return Best() if self.response is None else as_response(self.response)

    @property
    def content(self) -> dict[str, Any]:
        """The content of the accounts beside the seed: of a task that is named, the task; no labels."""
        names = ("join", "leave", "count", "arrivals", "stay")
        own = self._random
        task = as_decision_maker(self.task) if own is None else random_task(**{"seed": 0, **own})
        found = {name: content(getattr(self, name)) for name in names}
        found |= {"task": content(task), "response": content(self._acting)}
        return found if own is None else found | {"random": True}

    def people(self, seed: int, place: int) -> list[Person]:
        """The decision makers, for the scenario's seed and the place of the group in its list."""
        # A row of each stream for one decision maker: its time of joining, its stay, its task.
        streams = [
            Stream(seed, ("decision makers", str(place), what), range(1)).block(self.count)[:, 0]
            for what in ("join", "stay", "task")
        ]
        ends = Person(_IDLE, self.join, self.leave, self.label or "decision makers")
        joins, leaves = np.full(self.count, ends.join), np.full(self.count, ends.leave)
        for times, said in (
            (self.arrivals, "but their arrivals have {} times; expected at most {}"),
            (self.stay, "but of {} it is said how long they stay; expected at most {}"),
        ):
            length = None if times is None else times.length
            if length is not None and length < self.count:
                raise InvalidParameter(f"{self.count} decision makers, {said.format(length, length)}")
        if self.arrivals is not None:
            joins = ends.join + beginnings(self.arrivals, 1, 0.0, streams[0], "decision maker")
        if self.stay is not None:
            leaves = np.minimum(endings(self.stay, 1, joins, streams[1], _EARLY), leaves)
        leaves = np.maximum(leaves, joins)  # one that would come after all have left never acts
        options, response = self._random, self._acting
        common = None if options is not None else as_decision_maker(self.task)
        if isinstance(common, DecisionMaker) and self.response is not None:
            raise InvalidParameter(f"decision makers of {common.name!r} have two responses; expected one")
        found = []
        for i in range(self.count):
            task = common
            if task is None:
                own = random_task(**{"seed": int(streams[2][i] * 2**53), **(options or {})})
                task = DecisionTask("random", own.payoffs, own.actions)
            who = task if response == Best() else DecisionMaker(task, response)
            label = self.label or who.name
            found.append(Person(who, joins[i], leaves[i], f"{label} {i + 1}" if self.count > 1 else label))
        return found


_EARLY = "decision maker {} leaves at time {}, who joins at {}; expected nobody to leave before"
_IDLE = DecisionTask("idle", ((0.0, 0.0),))


@dataclass(frozen=True)
class People:
    """The decision makers of a study: the same for all its cells."""

    groups: tuple[Group, ...] = ()
    seed: int = 0

    @classmethod
    def of(cls, specs: Any, seed: int) -> "People":
        """Decision makers from a list of what `Group.of` takes, or a single one."""
        single = isinstance(specs, Mapping | Group | Person | str) or is_task(specs)
        single = single or not isinstance(specs, Iterable)
        people = cls(tuple(map(Group.of, [specs] if single else specs)), int(seed))
        seen: set[str] = set()
        for person in people.each:
            if person.label in seen:
                raise InvalidParameter(
                    f"two decision makers are called {person.label!r}; expected other labels"
                )
            seen.add(person.label)
        return people

    @cached_property
    def each(self) -> Sequence[Person]:
        """All of them, group by group."""
        return [person for i, group in enumerate(self.groups) for person in group.people(self.seed, i)]

    @property
    def cuts(self) -> list[float]:
        """The times of joining and leaving."""
        times = {time for person in self.each for time in (person.join, person.leave)}
        return sorted(time for time in times if 0.0 < time < math.inf)

    @property
    def content(self) -> list[Any]:
        """The content of their accounts, beside the seed."""
        return [group.content for group in self.groups]


#: the envelope of a task without a table
_NOTHING = np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0), np.zeros(0)


class Accounts:
    """Gains and regrets of each decision maker in a game or run of a world with their times as `cuts`.

    A decision maker acts on the questions that are asked while it is there. Its account has those with a known outcome,
    even if it left before.
    """

    def __init__(self, game: Any, people: Sequence[Person]) -> None:
        self.game, self.people = game, people
        #: of each, the first stretch between cuts and that after its last
        self._stretches = np.array([game.stretches(*each.cuts) for each in people], np.int64).reshape(-1, 2)
        #: whether its task is no table of payoffs, or a derived class that may account otherwise
        self._own = [getattr(type(each.who), "account", None) is not DecisionTask.account for each in people]
        #: envelopes one behind the other: where that of each begins, where its kinks do, and their parts
        envelopes: list[Any] = [
            _NOTHING if own else each.who.envelope  # type: ignore[attr-defined]  # a table's
            for each, own in zip(people, self._own, strict=True)
        ]
        parts = [np.concatenate(part) for part in zip(_NOTHING, *envelopes, strict=True)]
        self._tables = *(np.cumsum([0, *(len(each[i]) for each in envelopes)]) for i in (0, 2)), *parts

    def read(self) -> Floats:
        """The `ENTRIES` now, (decision makers, runs, 5); zeros where there is no round yet."""
        runs = len(self.game.runs)
        entries = np.zeros((len(self.people) * runs, len(ENTRIES)))
        for places, sets in self._gammas():
            who, accounts = places // runs, np.zeros((len(sets), len(ACCOUNT)))
            levels = sets.predictions, sets.mass, sets.means, sets.starts
            accounts_of_levels(*levels, who, *self._tables, accounts)
            if any(self._own):
                for i, gamma in enumerate(sets):
                    if self._own[who[i]]:
                        accounts[i] = self.people[who[i]].who.account(gamma)
            entries[places, 0], entries[places, 1:] = sets.weights, sets.weights[:, None] * accounts
        return entries.reshape(-1, runs, len(ENTRIES))

    def cdl(self) -> Floats:
        """The CDL of the rounds of each as totals, (decision makers, runs)."""
        runs = len(self.game.runs)
        totals = np.zeros(len(self.people) * runs)
        for places, sets in self._gammas():
            totals[places] = sets.weights * cdls(sets)
        return totals.reshape(-1, runs)

    def _gammas(self) -> Iterator[tuple[Ints, LevelSets]]:
        """Γ of each decision maker in each run that has a round, by its place among all. Some come at a time."""
        runs, history = len(self.game.runs), self.game.history
        grid = history.grid
        if grid is None or not (np.diff(grid) > 0.0).all():
            for place in range(len(self.people) * runs):
                gamma = self.game.gamma(place % runs, None, *self.people[place // runs].cuts)
                if gamma is not None:
                    yield np.array([place]), LevelSets.of([gamma])
            return
        counts, positives = history.before_stretches(self.game.streams, len(self.game.cuts) + 1)
        ends = np.minimum(self._stretches, len(counts) - 1)
        many = max(1, LEVELS // (runs * len(grid)))
        for first in range(0, len(ends), many):
            since, until = ends[first : first + many].T
            rounds, ones = (
                (each[until] - each[since]).reshape(-1, len(grid)) for each in (counts, positives)
            )
            places = np.flatnonzero(rounds.any(axis=1))
            if len(places):
                yield first * runs + places, LevelSets.of_counts(grid, rounds, ones)


__all__ = ["ENTRIES", "Accounts", "Group", "People", "Person"]
