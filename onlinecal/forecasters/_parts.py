"""Forecasters that are parts of others: their rounds are records like those of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onlinecal.core.errors import InvalidParameter, shown
from onlinecal.core.strategy import strategy_name
from onlinecal.forecasters.base import Forecaster, Player
from onlinecal.rounds.law import Ints, Law
from onlinecal.rounds.protocol import protocol_fault
from onlinecal.rounds.record import Recorder, Round, check_round, not_ours, tell


def check_forecasters(name: str, values: Sequence[Any]) -> None:
    """Refuses a parameter that is no list of forecasters, or an empty one."""
    if not values:
        raise InvalidParameter(f"{name} is empty; expected at least one forecaster")
    for value in values:
        if not isinstance(value, Forecaster):
            raise InvalidParameter(
                f"{name} = {shown(value)}; expected a forecaster (in a scenario: a table with a name)"
            )


def checked(forecaster: Forecaster, player: Any, runs: int) -> Player:
    """A part's player, which is what its specification declares."""
    fault = protocol_fault(forecaster, player)
    if not fault and hasattr(player, "mismatch"):
        fault = player.mismatch(forecaster, runs)
    if fault:
        raise InvalidParameter(f"forecaster {strategy_name(forecaster)!r}, part of another: {fault}")
    return player


class Part:
    """A player among or under others. Its rounds are records like those of the engine, and travel in the memo."""

    def __init__(self, forecaster: Forecaster, player: Player, runs: int) -> None:
        self.player: Any = checked(forecaster, player, runs)
        self.recorder = Recorder(runs)

    def state(self, whole: Round, number: int | None = None) -> Round:
        """This round as the part plays it, with its law; it may count rounds by itself."""
        round = Round(whole.number if number is None else number, whole.time, whole.context)
        self.recorder.record(round, self.player.forecast(round))
        return round

    def update(self, round: Round, drawn: Ints, whole: Round) -> None:
        """Tells it which atom of its law it is to believe was drawn, and the outcome."""
        tell(round, drawn, whole.outcome, whole.resolved)
        self.player.update(round)


def memo_of(round: Round, law: Law, kind: type) -> Any:
    """What `forecast` left on a round of these laws."""
    check_round(round, law)
    if not isinstance(round.memo, kind):
        raise not_ours(round)
    return round.memo
