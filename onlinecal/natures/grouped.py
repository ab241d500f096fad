"""Natures with groups: kinds of context with the value 0 or 1, of which a question may have any number."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from onlinecal.core.arrays import Ints
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.specification import UNIT, allow, number, part
from onlinecal.core.strategy import strategy_key
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.parts import begin_part
from onlinecal.engine.steps import Run, kernel, note, own_uniform, shared
from onlinecal.natures.adversarial import contradict
from onlinecal.natures.base import Nature, OfNatures
from onlinecal.natures.composed import steps_of

#: shared: how many groups are drawn, and how many there are. Then come the probabilities of those that are drawn, which
#: of them each group is made of, as bits, and one more number for each group.
DRAWN, MANY, CHANCES = range(3)


@kernel
def reveal_groups(run, number):
    """Draws the groups of a question, and writes them into the first numbers of the note."""
    given, noted = shared(run), note(run)
    drawn, many, bits = int(given[DRAWN]), int(given[MANY]), 0
    for k in range(drawn):
        if own_uniform(run, (number - 1) * drawn + k) < given[CHANCES + k]:
            bits |= 1 << k
    for g in range(many):
        made_of = int(given[CHANCES + drawn + g])
        noted[g] = 1.0 if bits & made_of == made_of else 0.0


@kernel
def number_of_groups(run, g):
    """The further number of a group."""
    given = shared(run)
    return given[CHANCES + int(given[DRAWN]) + int(given[MANY]) + g]


def made_of(groups: Mapping[str, Any]) -> Ints:
    """Which of the groups that are drawn each group is made of, as bits."""
    drawn = [name for name, value in groups.items() if not isinstance(value, list | tuple)]

    def bits(name: str, within: tuple[str, ...] = ()) -> int:
        if name in within or name not in groups:
            known = ", ".join(other for other in groups if other not in (*within, name))
            raise InvalidParameter(
                f"groups: {within[0] if within else name!r} is made of {name!r}; expected some of {known}"
            )
        if name in drawn:
            return 1 << drawn.index(name)
        found = 0
        for other in groups[name]:
            found |= bits(other, (*within, name))
        return found

    return np.array([bits(name) for name in groups], np.int64)


def check_groups(name: str, groups: Any) -> None:
    """Refuses groups that are neither drawn with a probability nor made of others."""
    if not isinstance(groups, Mapping) or not groups:
        raise InvalidParameter(f"{name} = {groups!r}; expected a table of groups, such as {{ odd = 0.5 }}")
    for group, value in groups.items():
        if not isinstance(value, list | tuple):
            UNIT(f"{name}.{group}", value)
        elif len(value) < 2 or not all(isinstance(other, str) for other in value):
            raise InvalidParameter(f"{name}.{group} = {value!r}; expected the names of two groups or more")
    made_of(groups)


def shared_of(groups: Mapping[str, Any], numbers: list[float]) -> list[float]:
    """The numbers that all runs share: the groups, and one more number of each."""
    chances = [float(value) for value in groups.values() if not isinstance(value, list | tuple)]
    return [len(chances), len(groups), *chances, *made_of(groups).tolist(), *numbers]


@dataclass(frozen=True)
class Grouped(OfNatures):
    """A nature whose questions are in groups, drawn in each run on its own.

    Information: Has the sight of its part. Reveals each group, 1 for its members and 0 for others, and the context of
    the part.

    Parameters
    ----------
    of : Nature
        In a scenario, a table with a name.
    groups : mapping
        At most 16. The probability with which a question is in a group, independent of all others. Or the names of
        others: it has the questions that are in all of them.
    rates : mapping, optional
        What is added to q_t for the members of a group; the sum is cut to [0, 1]. Not of a nature that sees the law.
    """

    allowed = allow(of=part("nature"), groups=check_groups)

    of: Nature
    groups: Any = field()
    rates: Any = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(strategy_key(self))  # a mapping has none

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers("rates", self.rates, self.groups, -1.0, ())
        if self.rates and self.of.sight >= Sight.LAW:
            raise InvalidParameter(
                f"rates = {dict(self.rates)!r} of a nature that sees the law; expected none, or another nature"
            )
        if self.of.group_names:
            raise InvalidParameter(
                "groups: the part has groups of its own; expected all of them in one place"
            )
        if common := sorted({*self.groups} & self.of.reveals):
            raise InvalidParameter(f"groups: the part reveals {', '.join(common)} too; expected other names")

    @property
    def reveals(self) -> frozenset[str]:  # type: ignore[override]
        return self.of.reveals | {*self.groups}

    @property
    def group_names(self) -> tuple[str, ...]:
        return tuple(self.groups)

    @property
    def streams(self) -> Any:
        """Those of the part."""
        return self.of.streams

    @property
    def length(self) -> int | None:
        return self.of.length

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        player, first = begin_part("nature", self.of, horizon, stream.child("of")), len(self.groups)
        move, hear, reveal = steps_of_grouped(steps_of(player), first)
        return steps.Nature(
            move, shared=shared_of(self.groups, [float(self.rates.get(name, 0.0)) for name in self.groups]),
            sight=self.sight, hear=hear if player.hear is not None else None, reveal=reveal,
            reveals=dict(enumerate(self.groups)) | {first + at: kind for at, kind in player.reveals.items()},
            times=[first + at for at in player.times], streams_of=player.streams_of, parts=[player],
            note=first + player.note, stream=stream,
        )  # fmt: skip


@cache
def steps_of_grouped(part: tuple[Any, ...], first: int) -> tuple[Any, ...]:
    """The steps of a nature in groups, with those of its part, which has the note from place `first` on."""
    move_part, tell_part, reveal_part = part

    def move(run: Run, size: int, forecast: float, number: int) -> float:
        noted, q = note(run), move_part(run, 0, first, size, forecast, number)
        added = 0.0
        for g in range(first):
            added += noted[g] * number_of_groups(run, g)
        if added != 0.0 and 0.0 <= q <= 1.0:
            q = min(max(q + added, 0.0), 1.0)
        return q

    def hear(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
        return tell_part(run, 0, first, forecast, outcome, number)

    def reveal(run: Run, number: int) -> int:
        reveal_groups(run, number)
        return reveal_part(run, 0, first, number)

    return move, hear, reveal


@dataclass(frozen=True)
class GroupContrarian(Nature):
    """Does the opposite of the forecast, as seen from the thresholds of a question's groups.

    y = 1 if and only if the mean of the law is below the mean threshold of the groups of the question. Groups without a
    threshold do not count; where none of a question's groups has one, it is one half. Without thresholds it is
    `Contrarian`. It hurts who ignores groups, not who hedges in each.

    Parameters
    ----------
    groups : mapping
        As of `Grouped`.
    thresholds : mapping, optional
        A number in [0, 1] of each of some groups; ``all`` is the group of every question.
    """

    sight = Sight.LAW
    needs_horizon, safe_under_delay, memory = False, True, "O(1)"
    allowed = allow(groups=check_groups)

    groups: Any = field()
    thresholds: Any = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(strategy_key(self))  # a mapping has none

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers("thresholds", self.thresholds, self.groups, 0.0, ("all",))

    @property
    def reveals(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(self.groups)

    def start(self, horizon: int, stream: Stream) -> steps.Nature:
        each = [float(self.thresholds.get(name, -1.0)) for name in (*self.groups, "all")]
        return steps.Nature(
            contradict_groups, shared=shared_of(self.groups, each), sight=self.sight, reveal=reveal_members,
            reveals=dict(enumerate(self.groups)), note=len(self.groups), stream=stream,
        )  # fmt: skip


def check_numbers(
    name: str, values: Any, groups: Mapping[str, Any], low: float, more: tuple[str, ...]
) -> None:
    """Refuses what is no number from `low` to 1 of each of some groups."""
    known = (*groups, *more)
    if not isinstance(values, Mapping):
        raise InvalidParameter(f"{name} = {values!r}; expected a table of numbers of {', '.join(known)}")
    for group, value in values.items():
        if group not in known:
            raise InvalidParameter(f"{name}: {group!r} is no group; expected of {', '.join(known)}")
        number(low, 1.0)(f"{name}.{group}", value)


def reveal_members(run: Run, number: int) -> int:
    reveal_groups(run, number)
    return 0


def contradict_groups(run: Run, size: int, forecast: float, number: int) -> float:
    """The further numbers are the thresholds, −1 for none, with that of all questions behind."""
    noted, total, many = note(run), 0.0, 0
    for g in range(len(noted) + 1):
        threshold = number_of_groups(run, g)
        if threshold >= 0.0 and (g == len(noted) or noted[g] == 1.0):
            total += threshold
            many += 1
    return contradict(run, size, total / many if many else 0.5)
