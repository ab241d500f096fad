"""Starts players, and checks that they have the methods that their specifications declare."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidParameter, OnlinecalError, failure
from onlinecal.core.strategy import strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import count
from onlinecal.engine2.start import apart, plain_fault, takes
from onlinecal.engine2.start import check_pair as check_pair
from onlinecal.engine2.start import check_specification as check_specification
from onlinecal.rounds.compiled import compiled_player, is_compiled
from onlinecal.rounds.plain import (
    Objects,
    Seat,
    ask_object,
    move_object,
    object_hears,
    object_reveals,
    tell_object,
)
from onlinecal.rounds.players import CompiledForecaster, CompiledNature

#: atoms of the law of a plain forecaster, at most, unless its class has an attribute `atoms`
ATOMS = 64


def start(role: str, strategy: Any, horizon: int, runs: range, seed: int) -> Any:
    """Starts a player of the strategy for a game of this horizon, with the stream that belongs to it."""
    said = f"{role} {strategy_name(strategy)!r}"
    try:
        stream = Stream(seed, (role, strategy_key(strategy), f"T={horizon}"), runs[:1])
        player = begin(role, strategy, horizon, stream)
        player.memory.spread(runs)
    except OnlinecalError as error:
        raise InvalidParameter(f"{said} at T = {horizon}: {error}") from error
    except MemoryError as error:
        raise InvalidParameter(
            f"{said} needs more memory than there is for {len(runs)} run(s) at T = {horizon}: {error}; expected fewer "
            "runs at a time, a shorter horizon or a coarser grid"
        ) from None
    except Exception as error:
        raise InvalidParameter(f"{said} cannot be started at T = {horizon}: {failure(error)}") from error
    return player


def begin(role: str, strategy: Any, horizon: int, stream: Stream) -> Any:
    """Starts a player of one run, made of steps: those of an object in plain Python call its methods."""
    player, fault = strategy.start(horizon, stream), ""
    if not isinstance(player, CompiledForecaster | CompiledNature):
        apart(strategy, player)
        fault = plain_fault(role, strategy, player)
        make = compiled_player if is_compiled(player) else partial(_of_object, horizon, stream)
        player = None if fault else make(role, strategy, player)
    fault = fault or player.mismatch(strategy)
    if fault:
        raise InvalidParameter(f"{strategy_name(strategy)!r}: {fault}")
    return player


def _of_object(horizon: int, stream: Stream, role: str, strategy: Any, sample: Any) -> Any:
    """Makes a player of steps from an object of one run. Those of other runs are made when it is spread."""
    forecasts, update = role == "forecaster", getattr(sample, "update", None)
    kinds = sorted(strategy.needs if forecasts else strategy.reveals)
    name, sight = ("forecast", None) if forecasts else ("probability", strategy.sight)
    # A third argument of `update` with a default is the class's own.
    shown, kept = not takes(getattr(sample, name), 0), update is not None and not takes(update, 2)
    label, first, streams_of = strategy_name(strategy), [sample], getattr(sample, "streams_of", None)

    def make(run: int | None) -> Seat:
        own = first.pop() if run is None else strategy.start(horizon, stream.over(range(run, run + 1)))
        return Seat(apart(strategy, own), label, kinds, sight, shown, kept, streams_of)

    methods = (name, "update") if forecasts else (name, "update", "reveal")
    memory = Objects(make, methods, len(kinds))
    if forecasts:
        return CompiledForecaster(
            ask_object, tell_object, memory, size=count("atoms", getattr(sample, "atoms", ATOMS)), needs=kinds,
            certificates=certified if strategy.certifies else None,
        )  # fmt: skip
    return CompiledNature(
        move_object, memory, sight=strategy.sight, hear=None if update is None else object_hears,
        reveal=object_reveals if kinds else None, reveals=kinds, streams_of=streams_of,
    )  # fmt: skip


def certified(memory: Any) -> dict[str, Any]:
    """The totals that the objects certify, name → (runs,)."""
    said = [seat.player.certificates() for seat in memory.seats]
    return {name: np.array([float(each[name]) for each in said]) for name in said[0]}
