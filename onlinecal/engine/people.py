"""The accounts of decision makers in a game of this engine, which shows its rounds as `engine2` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from onlinecal.core.joint import JointDistribution
from onlinecal.decisions import people
from onlinecal.decisions.people import Person


class Accounts(people.Accounts):
    """See `onlinecal.decisions.people.Accounts`."""

    def __init__(self, game: Any, people: Sequence[Person]) -> None:
        super().__init__(_Shown(game), people)

    def _gammas(self) -> Iterator[Any]:
        return super()._gammas() if self.game.game.ledger.rounds else iter(())


class _Shown:
    def __init__(self, game: Any) -> None:
        self.game, self.runs, self.streams, self.cuts, self.history = game, game.runs, 1, (), self

    @property
    def grid(self) -> Any:
        return self.game.ledger.grid

    def stretches(self, since: float, until: float) -> Any:
        return self.game.ledger.stretches(since, until)

    def before_stretches(self, streams: int, most: int) -> Any:
        return self.game.ledger.running_counts()

    def gamma(self, run: int, stream: None, since: float, until: float) -> JointDistribution | None:
        gammas = self.game.ledger.gammas(stream, since, until)
        return None if gammas is None else gammas[run]
