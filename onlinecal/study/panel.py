"""Measures read at a checkpoint: measures and decision tasks, as named columns of totals."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.classes import ClassDistribution
from onlinecal.core.columns import ACCOUNT, ALL, GROUP_REGRET, ROUNDS, Column, Held
from onlinecal.core.errors import (
    InvalidData,
    InvalidParameter,
    OnlinecalError,
)
from onlinecal.core.joint import JointDistribution
from onlinecal.core.levels import LevelSets
from onlinecal.core.transcript import Transcript
from onlinecal.core.validation import twice
from onlinecal.measures import with_all
from onlinecal.measures.groups import OF_GROUPS, Family
from onlinecal.study.asked import (
    Asked,
    as_list,
    asked_class_task,
    asked_measure,
    asked_task,
    each_measure,
    known_measures,
    measured,
)

#: the part of the rounds that is all of them, each counting with its whole law
LAWS = -1
#: the most levels, of all Γ, of which arrays are kept for their measures
FEW = 2**20


@dataclass(frozen=True)
class Panel:
    """Measures and tasks evaluated together: a column each, two of a bracket, one for each part of an account.

    With `laws` there are as many columns of the Γ in which each round counts with its whole law.
    """

    asked: tuple[Asked, ...]
    laws: bool = False

    @classmethod
    def of(
        cls,
        measures: Iterable[Any] = (),
        tasks: Iterable[Any] = (),
        *,
        rounds: int | None = None,
        classes: bool = False,
        laws: bool = False,
    ) -> "Panel":
        """Of names, named tables, functions and tasks, of Γ of two outcomes or of `classes`.

        A measure exact up to `rounds` levels has one column. ``"all"`` stands for all other measures.
        """
        if not isinstance(laws, bool):
            raise InvalidParameter(f"laws = {laws!r}; expected true or false")
        specs = with_all(as_list(measures), rounds, known_measures(True) if classes else None)
        own = each_measure(partial(asked_measure, rounds=rounds, classes=classes), specs)
        panel = cls((*own, *map(asked_class_task if classes else asked_task, as_list(tasks))), laws)
        names = panel.names
        if not names:
            raise InvalidParameter("no measures and no tasks; expected at least one of either")
        if (again := twice(names)) is not None:
            raise InvalidParameter(f"{again!r} is asked for twice; expected each measure and task once")
        for asked in own:
            # An option that is out of range is refused before the game.
            if asked.of_groups:
                if asked.options or asked.of_user:
                    measured(asked.name, asked.function, _AnyGroup({ALL: _sample()}))
            elif asked.needs is None and (asked.options or asked.of_user):
                measured(asked.name, asked.function, _sample(3 if classes else 0))
        return panel

    def check_classes(self, classes: int) -> None:
        """Refuses what cannot be read of Γ of so many classes, such as all sets of 20, and tasks of others."""
        for asked in self.asked:
            asked.read(_sample(classes))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns that `read` returns, in its order."""
        return tuple(column for asked in self.asked for column in asked.columns)

    @property
    def keeps(self) -> frozenset[str] | None:
        """The kinds of context that measures of rounds read; None where there is no such measure."""
        needs = [kinds for asked in self.asked if (kinds := asked.needs) is not None]
        return frozenset().union(*needs) if needs else None

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return [column.name for column in self.columns]

    def columns_of(self, streams: Sequence[str] = (), groups: Sequence[str] = ()) -> dict[Column, Any]:
        """Its columns, and those of streams and groups, with what each is of; a number of rounds is of nothing.

        First come those of all rounds, then the largest swap regret of a group for each task, then those of each part
        of the rounds. A group has its number of rounds behind. Those of laws come last.
        """
        found: dict[Column, Any] = {column: asked for asked in self.asked for column in asked.columns}
        own = {column: asked for column, asked in found.items() if not asked.of_groups}
        if groups:
            swaps = (c for c in own if c.of_task and c.measure == ACCOUNT[-1])
            found |= {replace(column, measure=GROUP_REGRET): own[column] for column in swaps}
        for label in (*streams, *groups):
            found |= {replace(column, stream=label): asked for column, asked in own.items()}
            if label in groups:
                found[Column("measure", ROUNDS, stream=label)] = None
        if self.laws:
            found |= {replace(column, laws=True): asked for column, asked in own.items()}
        return found

    def held(self, streams: Sequence[str] = (), groups: Sequence[str] = ()) -> Mapping[Column, Held]:
        """The same columns with what their numbers depend on beside the game."""
        key = tuple(streams), tuple(groups)
        if key not in self._held:
            of = {id(asked): json.dumps(asked.content, sort_keys=True) for asked in self.asked}
            columns = self.columns_of(streams, groups).items()
            kept = {c: Held(c, of[id(asked)]) if asked else Held.of(c, ROUNDS) for c, asked in columns}
            self._held[key] = MappingProxyType(kept)
        return self._held[key]

    @cached_property
    def _held(self) -> dict[tuple[tuple[str, ...], tuple[str, ...]], Mapping[Column, Held]]:
        return {}

    @cached_property
    def of_parts(self) -> "Panel":
        """Without measures of groups; it may be empty."""
        some = tuple(asked for asked in self.asked if not asked.of_groups)
        return self if len(some) == len(self.asked) else Panel(some)

    def read_parts(
        self,
        levels_of: Callable[
            [int | None], Iterable[tuple[Any, LevelSets, Sequence[Transcript | None] | None]]
        ],
        streams: Sequence[str],
        groups: Sequence[str],
        where: str,
        runs: Sequence[int],
    ) -> Floats:
        """The totals of all columns of `columns_of`, (runs, columns); empty sums where no outcome is known.

        `levels_of` gives the places of some runs, their level sets and their rounds. It is asked of each part of the
        rounds by its number, groups behind streams, of all of them (None), and of their laws (`LAWS`).
        """
        families: list[dict[str, Any]] | None = None
        if self.of_parts is not self:
            families = [{} for _ in runs]
        labels = *streams, *groups
        found = {column: np.zeros(len(runs)) for column in self.columns_of(streams, groups)}
        # All rounds come last, when the Γ of all groups are there.
        for part, label in [*enumerate(labels), *[(LAWS, "")] * self.laws, (None, "")]:
            panel = self if part is None else self.of_parts
            columns = [replace(column, stream=label, laws=part == LAWS) for column in panel.columns]
            for places, sets, rounds in levels_of(part):
                if families is not None and (part is None or label in groups):
                    for place, gamma in zip(places, sets, strict=True):
                        families[place][label or ALL] = gamma
                whose = None if families is None or part is not None else [families[i] for i in places]
                numbers = [runs[place] for place in places]
                if columns:
                    totals = panel.read_each(sets, rounds, where, numbers, whose)
                    for column, values in zip(columns, totals.T, strict=True):
                        found[column][places] = values
                if label in groups:
                    found[Column("measure", ROUNDS, stream=label)][places] = sets.weights
        for column in found:
            if column.measure == GROUP_REGRET and column.of_task:
                own = replace(column, measure=ACCOUNT[-1])
                found[column] = np.max([found[replace(own, stream=label)] for label in ("", *groups)], axis=0)
        return np.stack([*found.values()], axis=1)

    def check_groups(self, nature: str, groups: Sequence[str]) -> None:
        """Refuses measures of groups of a nature that has none."""
        for asked in self.asked:
            if asked.of_groups and not groups:
                such = f'{{ name = "grouped", of = "{nature}", groups = {{ odd = 0.5 }} }}'
                raise InvalidParameter(
                    f"measure {asked.name!r} is of groups, and nature {nature!r} has none; expected a nature with "
                    f"groups, such as {such}"
                )

    def only(self, columns: Sequence[Column], streams: Sequence[str], groups: Sequence[str]) -> "Panel":
        """A panel of the measures and tasks to which these of `columns_of` belong; itself where that is all."""
        of = self.columns_of(streams, groups)
        some = tuple(asked for asked in self.asked if any(of[column] is asked for column in columns))
        return self if len(some) == len(self.asked) else Panel(some, self.laws)

    def of_gamma(self) -> "Panel | None":
        """The measures that are read of Γ of draws, so none of rounds; None where there are none."""
        some = tuple(asked for asked in self.asked if asked.needs is None)
        return Panel(some) if some else None

    def read(self, gamma: JointDistribution) -> list[float]:
        """The total T·μ(Γ) of every column, without measures of rounds."""
        return self.read_each(LevelSets.of([gamma]))[0].tolist()

    def read_each(
        self,
        sets: LevelSets,
        rounds: Sequence[Transcript | None] | None = None,
        where: str = "in all rounds",
        runs: Sequence[int] = (0,),
        families: Sequence[Mapping[str, JointDistribution]] | None = None,
    ) -> Floats:
        """As `read`, of Γ of several runs and their rounds, (B, columns). An error says `where`, and the run.

        `families` are the Γ of the groups of each run.
        """
        of_runs = None if families is None else [Family({ALL: each[ALL], **each}) for each in families]
        gammas: Callable[[], list[JointDistribution]] = cache(
            partial(list, sets)
        )  # made once, and only if one is read alone
        few, parts = len(sets.predictions) <= FEW, []
        for asked in self.asked:
            values = asked.many(sets) if few and asked.many is not None else None
            if values is None:
                each: Any = gammas() if asked.needs is None else rounds or [None] * len(sets)
                each = of_runs or [None] * len(sets) if asked.of_groups else each
                values = np.array([*_one_by_one(asked, each, where, runs)], np.float64)
            parts.append(values.reshape(len(sets), len(asked.columns)))
        totals = sets.weights[:, None] * np.concatenate(parts, axis=1)
        for at, column in enumerate(self.columns):
            if dict(column.options).get("per") == "round" and column.measure in OF_GROUPS:
                totals[:, at] /= sets.weights  # what a member meets: no total
        for i, at in np.argwhere(np.isnan(totals))[:1].tolist():
            name = self.columns[at].name
            raise InvalidData(f"{name} is NaN on {gammas()[i]!r}; expected a number; {where}, run {runs[i]}")
        return np.asarray(totals)


def _one_by_one(
    asked: Asked, each: Iterable[Any], where: str, runs: Sequence[int]
) -> Iterator[Sequence[float]]:
    for run, seen in zip(runs, each, strict=True):
        try:
            yield asked.read(seen)
        except OnlinecalError as error:
            raise InvalidData(f"{error}; {where}, run {run}") from error


class _AnyGroup(Family):
    """Γ of whichever group is asked for, since no nature is known yet."""

    def __missing__(self, name: str) -> JointDistribution:
        return self[ALL]


@cache
def _sample(classes: int = 0) -> Any:
    """A calibrated and a miscalibrated level; made when first needed, since numba's code takes long to load."""
    if not classes:
        return JointDistribution.from_counts([0.25, 0.5], [4, 2], [1, 2])
    even, certain = np.full(classes, 1.0 / classes), np.eye(classes)[0]
    return ClassDistribution.from_levels([even, 0.5 * (even + certain)], [4, 2], [even, certain])
