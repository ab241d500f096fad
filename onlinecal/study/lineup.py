"""Who plays in a study: strategies with their labels, each made when it is asked for, since there may be a million."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Protocol

from onlinecal.core.content import content
from onlinecal.core.strategy import strategy_label

#: entries that are kept once they have been made
KEPT = 10_000


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


class Family(Protocol):
    """Entries of one table."""

    @property
    def longest(self) -> int | None:
        """The longest horizon of all of them, if any."""

    def __len__(self) -> int: ...

    def label(self, place: int) -> str:
        """Of an entry, which is not made for that."""

    def make(self, place: int) -> Entry:
        """An entry."""

    def samples(self) -> Iterable[int]:
        """Those that are looked at before anything is played: all, unless there are very many."""


@dataclass(frozen=True)
class One:
    """A family of a single entry."""

    entry: Entry

    @property
    def longest(self) -> int | None:
        """Of the entry."""
        return self.entry.longest

    def __len__(self) -> int:
        return 1

    def label(self, place: int) -> str:
        """Of the entry."""
        return self.entry.label

    def make(self, place: int) -> Entry:
        """The entry."""
        return self.entry

    def samples(self) -> Iterable[int]:
        """The entry."""
        return range(1)


class Lineup(Sequence[Entry]):
    """The entries of several families, one family after the other.

    Parameters
    ----------
    families : iterable of Family
    """

    def __init__(self, families: Iterable[Family]) -> None:
        self.families = tuple(families)
        self.firsts = [0, *accumulate(len(family) for family in self.families)]
        self._made: OrderedDict[int, Entry] = OrderedDict()

    @classmethod
    def of(cls, entries: Iterable[Entry | Lineup]) -> Lineup:
        """Of entries, and of line-ups that are taken apart."""
        if isinstance(entries, Lineup):
            return entries
        families: list[Family] = []
        for each in entries:
            families += each.families if isinstance(each, Lineup) else [One(each)]
        return cls(families)

    def __len__(self) -> int:
        return self.firsts[-1]

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        found = self._made.get(place)
        if found is None:
            which = bisect_right(self.firsts, place) - 1
            found = self._made[place] = self.families[which].make(place - self.firsts[which])
            if len(self._made) > KEPT:
                self._made.popitem(last=False)
        return found

    def __iter__(self) -> Iterator[Entry]:
        return (self[i] for i in range(len(self)))

    def labels(self) -> Iterator[str]:
        """Of all entries, in their order; none is made for that."""
        return (family.label(i) for family in self.families for i in range(len(family)))

    def samples(self) -> list[int]:
        """The places of those that are looked at before anything is played."""
        return [
            first + i
            for first, family in zip(self.firsts, self.families, strict=False)
            for i in family.samples()
        ]
