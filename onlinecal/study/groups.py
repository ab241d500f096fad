"""Who can play whom, and at which horizons: neighbours in a line-up for which that is the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from onlinecal.rounds.protocol import check_specification
from onlinecal.schedules import Schedule
from onlinecal.study.lineup import Entry, Lineup


class Incompatible(NamedTuple):
    """A forecaster and a nature that cannot play each other, and why."""

    forecaster: str
    nature: str
    reason: str


class Group(NamedTuple):
    """Neighbours in a line-up that are played at the same horizons, against the same.

    Attributes
    ----------
    places : range
    horizons : tuple of int
        Ascending; of a forecaster those of the study.
    longest : int or None
    context : frozenset of str
        What a forecaster needs, or a nature reveals.
    length : int or None
        How many rounds it can play.
    """

    places: range
    horizons: tuple[int, ...]
    longest: int | None
    context: frozenset[str]
    length: int | None = None


def groups_of(
    role: str, lineup: Lineup, times: tuple[int, ...], schedules: Sequence[Schedule]
) -> list[Group]:
    """Who of a line-up is played at which horizons: a nature that can play only L rounds at those below, and at L.

    Parameters
    ----------
    role : {"forecaster", "nature"}
    lineup : Lineup
    times : tuple of int
        The horizons of the study, ascending.
    schedules : sequence of Schedule
    """
    limits = [n for n in (schedule.length for schedule in schedules) if n is not None]
    groups: list[Group] = []
    for first, family in zip(lineup.firsts, lineup.families, strict=False):
        places = range(first, first + len(family))
        traits = {_traits(role, lineup[first + i]) for i in family.samples()}
        # Of those that are not looked at, none has an end, and all reveal the same, if so do all that are.
        alike = len(traits) == 1 and next(iter(traits))[1] is None
        for part in [places] if alike else [range(i, i + 1) for i in places]:
            context, own = next(iter(traits)) if alike else _traits(role, lineup[part.start])
            length = min((n for n in (own, *limits) if n is not None), default=None)
            played = times
            if role == "nature" and length is not None and len(times) > 1 and times[-1] > length:
                played = (*(t for t in times if t < length), length)
            group = Group(part, played, family.longest, context, own)
            if groups and groups[-1][1:] == group[1:]:
                group = group._replace(places=range(groups.pop().places.start, part.stop))
            groups.append(group)
    return groups


def _traits(role: str, entry: Entry) -> tuple[frozenset[str], int | None]:
    """What decides whom it can play: what it needs or reveals, and how many rounds it can play."""
    check_specification(role, entry.strategy)
    if role == "forecaster":
        return frozenset(entry.strategy.needs), getattr(entry.strategy, "length", None)
    return frozenset(entry.strategy.reveals), entry.strategy.length
