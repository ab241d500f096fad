"""Runs of worlds on the engine of before, read as those of `engine2`; it goes when they are played by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from onlinecal.core.joint import JointDistribution
from onlinecal.core.levels import LevelSets


def as_of_today(simulation: Any) -> Any:
    """The simulation, with runs that are read as a `Game`."""
    for part in simulation.parts:
        if not hasattr(part, "history"):
            part.history, part.streams, part.cuts = (
                History(part.ledger),
                part.ledger.streams,
                part.ledger.cuts,
            )
            part.stretches, part.gamma = part.ledger.stretches, part.history.of_time
    return simulation


class History:
    """A ledger, read as a history."""

    def __init__(self, ledger: Any) -> None:
        self.ledger, self.grid = ledger, ledger.grid

    def of_time(self, place: int, stream: int | None, since: float, until: float) -> JointDistribution | None:
        """Γ of a time."""
        gammas = self.ledger.gammas(stream, since, until)
        return gammas[0] if gammas else None

    def levels(self, chosen: Callable[[int], bool] | None = None) -> Iterator[tuple[int, LevelSets]]:
        """The level sets of all streams, or of one."""
        streams = range(self.ledger.streams)
        stream = None if chosen is None else next(filter(chosen, streams))
        return ((0, sets) for sets in self.ledger.each(stream))
