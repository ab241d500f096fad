"""Natures that are parts of others."""

from __future__ import annotations

from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_name
from onlinecal.natures.base import Nature, NaturePlayer, NatureRound, Sight
from onlinecal.rounds.protocol import protocol_fault


def check_nature(name: str, value: Any) -> None:
    """Refuses a parameter that is no nature."""
    if not isinstance(value, Nature):
        raise InvalidParameter(
            f"{name} = {value!r}; expected a nature, or in a scenario a table with its name"
        )


class Part:
    """A player among others, which sees of a round no more than its own sight allows."""

    def __init__(self, nature: Nature, player: NaturePlayer) -> None:
        fault = protocol_fault(nature, player)
        if fault:
            raise InvalidParameter(f"nature {strategy_name(nature)!r}, part of another: {fault}")
        self.player: Any = player
        self.name, self.sight = strategy_name(nature), nature.sight

    def of(self, whole: NatureRound, number: int | None = None) -> NatureRound:
        """The round as this part sees it."""
        return whole.part(self.name, self.sight, number)

    def update(self, round: NatureRound) -> None:
        """Tells it a round that is its own, if it is to hear of any."""
        if self.sight >= Sight.HISTORY:
            self.player.update(round)
