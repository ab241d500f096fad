"""Rounds whose question is asked and whose outcome is not told yet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from onlinecal.engine.ledger import Part
from onlinecal.natures.base import NatureRound
from onlinecal.rounds.record import Round


@dataclass(slots=True)
class Open:
    """A round that is asked and not resolved: its record, nature's face of it, the part of the game it is in, and the
    context that is kept with it.
    """

    round: Round
    nature: NatureRound
    part: Part
    context: Mapping[str, Any]


@dataclass
class Waiting:
    """Open rounds in the order in which their outcomes become known, those of one time by their numbers."""

    _rounds: list[tuple[float, int, Open]] = field(default_factory=list)

    def add(self, known: float, open: Open) -> None:
        """A round whose outcome becomes known then; what never does is not waited for."""
        if known < math.inf:
            heappush(self._rounds, (known, open.round.number, open))

    def next(self, before: float) -> tuple[float, Open] | None:
        """When the first outcome before this time becomes known, and of which round, which then waits no longer."""
        if not self._rounds or self._rounds[0][0] >= before:
            return None
        known, _, open = heappop(self._rounds)
        return known, open
