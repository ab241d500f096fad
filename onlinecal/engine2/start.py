"""Starts players, and checks that they have what their specifications declare."""

from __future__ import annotations

from typing import Any

from onlinecal.core.errors import InvalidParameter, OnlinecalError, failure
from onlinecal.core.strategy import strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.engine2.steps import Forecaster, Nature, Player
from onlinecal.rounds.protocol import plain_fault


def start(role: str, strategy: Any, horizon: int, runs: range, seed: int) -> Any:
    """A compiled player for all runs, or an object in plain Python for each."""
    said = f"{role} {strategy_name(strategy)!r}"
    try:
        stream = Stream(seed, (role, strategy_key(strategy), f"T={horizon}"), runs[:1])
        player = begin(role, strategy, horizon, stream)
        if isinstance(player, Player):
            player.spread(runs)
            return player
        return [player] + [strategy.start(horizon, stream.over(range(r, r + 1))) for r in runs[1:]]
    except OnlinecalError as error:
        raise InvalidParameter(f"{said} at T = {horizon}: {error}") from error
    except MemoryError as error:
        raise InvalidParameter(
            f"{said} needs more memory than there is for {len(runs)} run(s) at T = {horizon}: {error}; expected fewer "
            "runs at a time, a shorter horizon or a coarser grid"
        ) from None
    except Exception as error:
        raise InvalidParameter(f"{said} cannot be started at T = {horizon}: {failure(error)}") from error


def begin(role: str, strategy: Any, horizon: int, stream: Stream) -> Any:
    """A player of one run: made of steps, or an object in plain Python."""
    player = getattr(strategy, "begin", strategy.start)(horizon, stream)
    if "oc_compiled" in vars(type(player)):
        from onlinecal.engine2.record import compiled_player  # it is not needed for most games

        player = compiled_player(role, strategy, player)
    if isinstance(player, Forecaster if role == "forecaster" else Nature):
        fault = player.mismatch(strategy)
    else:
        fault = plain_fault(role, strategy, player)
    if fault:
        raise InvalidParameter(f"{strategy_name(strategy)!r}: {fault}")
    return player
