"""Decision makers that join and leave, and groups of them that come at random."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from onlinecal.core.content import content
from onlinecal.core.errors import InvalidParameter, suggestion
from onlinecal.core.streams import Stream
from onlinecal.core.validation import Named, count, is_number
from onlinecal.decision_makers.responses import (
    Best,
    DecisionMaker,
    as_decision_maker,
    as_response,
    response_name,
)
from onlinecal.decisions.base import DecisionTask, Task, is_task
from onlinecal.decisions.tasks import random_task
from onlinecal.schedules import Arrivals, Delays, as_arrivals, as_delays
from onlinecal.schedules.base import beginnings, endings

MOST = 100_000


@dataclass(frozen=True)
class Tenure(Named):
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
        for name in ("join", "leave"):
            value = getattr(self, name)
            if not is_number(value) or math.isnan(value) or value < 0:
                said = f"decision maker {self.label!r}: {name} = {value!r}"
                raise InvalidParameter(f"{said}; expected a time of 0 or later")
            object.__setattr__(self, name, float(value))
        if self.leave < self.join:
            said = f"decision maker {self.label!r} leaves at {self.leave:g} and joins at {self.join:g}"
            raise InvalidParameter(f"{said}; expected leave at join or later")

    @property
    def task(self) -> Task:
        """The task without its response."""
        return self.who.task if isinstance(self.who, DecisionMaker) else self.who

    @property
    def response(self) -> str:
        """The name of the response; "" for the best one."""
        return response_name(self.who.response) if isinstance(self.who, DecisionMaker) else ""


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
        """A group from a mapping with these keys, a `Tenure`, or a task."""
        if isinstance(spec, Group):
            return spec
        if isinstance(spec, Tenure):
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
        self.tenures(0, 0)  # refuses

    @property
    def _random(self) -> dict[str, Any] | None:
        """The options of random tasks; None for a task that all share."""
        if self.task == "random":
            return {}
        if isinstance(self.task, Mapping) and self.task.get("name") == "random":
            return {key: value for key, value in self.task.items() if key != "name"}
        return None

    @property
    def content(self) -> dict[str, Any]:
        """The content of the accounts beside the seed: of a task that is named, the task; no labels."""
        names = ("join", "leave", "count", "arrivals", "stay")
        own = self._random
        task = as_decision_maker(self.task) if own is None else random_task(**{"seed": 0, **own})
        found = {name: content(getattr(self, name)) for name in names}
        found |= {"task": content(task), "response": content(self._acting)}
        return found if own is None else found | {"random": True}

    @property
    def _acting(self) -> Any:
        return Best() if self.response is None else as_response(self.response)

    def tenures(self, seed: int, place: int) -> list[Tenure]:
        """The decision makers, for the scenario's seed and the place of the group in its list."""
        # A row of each stream for one decision maker: its time of joining, its stay, its task.
        streams = [
            Stream(seed, ("decision makers", str(place), what), range(1)).block(self.count)[:, 0]
            for what in ("join", "stay", "task")
        ]
        ends = Tenure(_IDLE, self.join, self.leave, self.label or "decision makers")
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
        options = self._random
        common = None if options is not None else as_decision_maker(self.task)
        response = self._acting
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
            found.append(Tenure(who, joins[i], leaves[i], f"{label} {i + 1}" if self.count > 1 else label))
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
        single = isinstance(specs, Mapping | Group | Tenure | str) or is_task(specs)
        single = single or not isinstance(specs, Iterable)
        people = cls(tuple(map(Group.of, [specs] if single else specs)), int(seed))
        seen: set[str] = set()
        for tenure in people.tenures:
            if tenure.label in seen:
                raise InvalidParameter(
                    f"two decision makers are called {tenure.label!r}; expected other labels"
                )
            seen.add(tenure.label)
        return people

    @cached_property
    def tenures(self) -> Sequence[Tenure]:
        return [t for i, group in enumerate(self.groups) for t in group.tenures(self.seed, i)]

    @property
    def cuts(self) -> list[float]:
        """The times of joining and leaving."""
        times = {time for t in self.tenures for time in (t.join, t.leave)}
        return sorted(time for time in times if 0.0 < time < math.inf)

    @property
    def content(self) -> list[Any]:
        """The content of their accounts, beside the seed."""
        return [group.content for group in self.groups]
