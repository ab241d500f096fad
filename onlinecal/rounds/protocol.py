"""Starts players, and checks that they have the methods that their specifications declare."""

from __future__ import annotations

import difflib
import inspect
from functools import partial
from typing import Any

import numpy as np

from onlinecal.core.errors import InvalidParameter, OnlinecalError, failure, in_one_line
from onlinecal.core.guarantee import Sight
from onlinecal.core.strategy import check_facts, strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import count, is_whole
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
    try:
        stream = Stream(seed, (role, strategy_key(strategy), f"T={horizon}"), runs[:1])
        player = begin(role, strategy, horizon, stream)
        player.memory.spread(runs)
    except OnlinecalError as error:
        raise InvalidParameter(f"{role} {strategy_name(strategy)!r} at T = {horizon}: {error}") from error
    except MemoryError as error:
        raise InvalidParameter(
            f"{role} {strategy_name(strategy)!r} needs more memory than there is for {len(runs)} run(s) at T = "
            f"{horizon}: {error}; expected fewer runs at a time, a shorter horizon or a coarser grid"
        ) from None
    except Exception as error:
        raise InvalidParameter(
            f"{role} {strategy_name(strategy)!r} cannot be started at T = {horizon}: {failure(error)}"
        ) from error
    return player


def begin(role: str, strategy: Any, horizon: int, stream: Stream) -> Any:
    """Starts a player of one run, made of steps: those of an object in plain Python call its methods."""
    player = strategy.start(horizon, stream)
    if not isinstance(player, CompiledForecaster | CompiledNature):
        fault = plain_fault(role, strategy, player)
        if fault:
            raise InvalidParameter(f"{strategy_name(strategy)!r}: {fault}")
        if is_compiled(player):
            player = compiled_player(role, strategy, player)
        else:
            player = _of_object(role, strategy, horizon, stream, player)
    fault = player.mismatch(strategy)
    if fault:
        raise InvalidParameter(f"{strategy_name(strategy)!r}: {fault}")
    return player


def _of_object(role: str, strategy: Any, horizon: int, stream: Stream, sample: Any) -> Any:
    """Makes a player of steps from an object of one run, and how objects of other runs are made."""
    first = [sample]

    def make(run: int | None) -> Any:
        return first.pop() if run is None else strategy.start(horizon, stream.over(range(run, run + 1)))

    methods: tuple[str, ...]
    name, update = strategy_name(strategy), getattr(sample, "update", None)
    # A third argument with a default is the class's own.
    kept = update is not None and not takes(update, 2)
    if role == "forecaster":
        kinds, sight = sorted(strategy.needs), None
        shown = not takes(sample.forecast, 0)
        methods, atoms = ("forecast", "update"), count("atoms", getattr(sample, "atoms", ATOMS))
    else:
        kinds, sight = sorted(strategy.reveals), strategy.sight
        shown, methods = not takes(sample.probability, 0), ("probability", "update", "reveal")
    seat = partial(Seat, name=name, kinds=kinds, sight=sight, shown=shown, kept=kept)
    memory = Objects(make, seat, methods, len(kinds))
    if role == "forecaster":
        return CompiledForecaster(
            ask_object, tell_object, memory, size=atoms, needs=kinds,
            certificates=certified if strategy.certifies else None,
        )  # fmt: skip
    return CompiledNature(
        move_object, memory, sight=strategy.sight, hear=None if update is None else object_hears,
        reveal=object_reveals if kinds else None, reveals=kinds, streams_of=getattr(sample, "streams_of", None),
    )  # fmt: skip


def certified(memory: Any) -> dict[str, Any]:
    """The totals that the objects certify, name → (runs,)."""
    said = [seat.player.certificates() for seat in memory.seats]
    return {name: np.array([float(each[name]) for each in said]) for name in said[0]}


def check_specification(role: str, strategy: Any) -> None:
    """Refuses a strategy whose class declares something that is no declaration."""
    kinds = ("needs", "certifies") if role == "forecaster" else ("reveals",)
    for name in kinds:
        value = getattr(strategy, name)
        if not isinstance(value, frozenset | set) or not all(isinstance(kind, str) for kind in value):
            raise _undeclared(role, strategy, name, value, "a frozenset of names")
    fault = check_facts(strategy)
    if fault:
        raise InvalidParameter(f"{role} {strategy_name(strategy)!r} declares {fault}")
    if role == "forecaster":
        return
    if not isinstance(strategy.sight, Sight):
        raise _undeclared(role, strategy, "sight", strategy.sight, "a Sight")
    if strategy.length is not None and not (is_whole(strategy.length) and strategy.length >= 1):
        raise _undeclared(role, strategy, "length", strategy.length, "None or an integer ≥ 1")
    if "stream" in strategy.reveals and not strategy.streams:
        what = "their labels, and a player with streams_of(first, last), where 'stream' is revealed"
        raise _undeclared(role, strategy, "streams", strategy.streams, what)


def check_pair(forecaster: Any, nature: Any, horizon: int) -> None:
    """Refuse players that cannot play as long, or a nature that does not reveal what the forecaster needs."""
    check_specification("forecaster", forecaster)
    check_specification("nature", nature)
    if nature.length is not None and horizon > nature.length:
        raise InvalidParameter(
            f"horizon = {horizon}, but nature {strategy_name(nature)!r} has {nature.length} rounds; "
            f"expected at most {nature.length}"
        )
    longest = getattr(forecaster, "length", None)
    if longest is not None and horizon > longest:
        raise InvalidParameter(
            f"horizon = {horizon}, but forecaster {strategy_name(forecaster)!r} plays {longest} rounds; "
            f"expected at most {longest}"
        )
    missing = sorted(forecaster.needs - nature.reveals)
    if missing:
        raise InvalidParameter(
            f"forecaster {strategy_name(forecaster)!r} needs {', '.join(missing)}, which nature "
            f"{strategy_name(nature)!r} does not reveal"
        )


def _undeclared(role: str, strategy: Any, name: str, value: Any, expected: str) -> InvalidParameter:
    return InvalidParameter(
        f"{role} {strategy_name(strategy)!r} declares {name} = {in_one_line(value)}; expected {expected}"
    )


def plain_fault(role: str, strategy: Any, player: Any) -> str:
    """Describes what is wrong with the methods of an object in plain Python; "" for nothing."""
    for name, (needed, forbidden, arguments, counts) in _methods(role, strategy).items():
        method = getattr(player, name, None)
        if needed and not callable(method):
            near = difflib.get_close_matches(name, _public(player), n=1, cutoff=0.6)
            return (
                f"its player has no method {name}({arguments})"
                + (f", but {near[0]}" if near else "")
                + f"; {needed}"
            )
        if forbidden and callable(method):
            return f"its player has a method {name}, which is never called, since {forbidden}"
        if callable(method) and not any(takes(method, n) for n in counts):
            return f"its player has {name}{inspect.signature(method)}; expected {name}({arguments})"
        if not callable(method):
            near = difflib.get_close_matches(name, _public(player), n=1, cutoff=0.8)
            if near and near[0] not in METHODS:
                return f"its player has a method {near[0]}, which is never called; is {name} meant?"
    if role == "nature" and strategy.sight >= Sight.LAW and takes(player.probability, 0):
        return (
            f"its class declares sight {strategy.sight.name}, but its probability() needs no round, by which it would "
            "see; expected probability(round)"
        )
    return ""


METHODS = ("forecast", "probability", "update", "context", "certificates")


def _methods(role: str, strategy: Any) -> dict[str, tuple[str, str, str, tuple[int, ...]]]:
    """Method → why the object must have it, why it must not, its arguments, and how many it may take."""
    if role == "forecaster":
        certifies = "the specification certifies something"
        return {
            "forecast": ("expected one", "", "", (0, 1)),
            "update": ("expected one", "", "forecast, outcome", (2, 3)),
            "certificates": (certifies, "", "", (0,))
            if strategy.certifies
            else ("", "the specification certifies nothing", "", (0,)),
        }
    blind = (
        "" if strategy.sight >= Sight.HISTORY else f"the specification declares sight {strategy.sight.name}"
    )
    return {
        "probability": ("expected one", "", "", (0, 1)),
        "update": ("", blind, "forecast, outcome", (2, 3)),
        "context": (
            ("the specification reveals context", "", "round", (1,))
            if strategy.reveals
            else ("", "the specification declares nothing that it `reveals`", "round", (1,))
        ),
    }


def _public(player: Any) -> list[str]:
    return [
        name for name in dir(player) if not name.startswith("_") and callable(getattr(player, name, None))
    ]


def takes(method: Any, count: int) -> bool:
    """Whether a method can be called with this number of arguments."""
    try:
        inspect.signature(method).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # a compiled callable that does not say
        return True
    return True
