"""Starts players, and checks that they have the methods that their specifications declare."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

from onlinecal.core.errors import InvalidParameter, OnlinecalError, failure, in_one_line
from onlinecal.core.facts import check_facts
from onlinecal.core.sight import Sight
from onlinecal.core.strategy import strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import is_whole


def start(role: str, strategy: Any, horizon: int, runs: range, seed: int) -> Any:
    """A player of the strategy for a game of this horizon, with the stream that belongs to it.

    Raises
    ------
    InvalidParameter
        It cannot be started, or what is started has not the methods that the specification declares.
    """
    try:
        stream = Stream(seed, (role, strategy_key(strategy), f"T={horizon}"), runs)
        player = strategy.start(horizon, len(runs), stream)
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
    fault = protocol_fault(strategy, player)
    if not fault and hasattr(
        player, "mismatch"
    ):  # made of steps, which are called without a look at what they get
        fault = player.mismatch(strategy, len(runs))
    if fault:
        raise InvalidParameter(f"{role} {strategy_name(strategy)!r}: {fault}")
    return player


def check_specification(role: str, strategy: Any) -> None:
    """Refuses a strategy whose class declares something that is no declaration.

    Raises
    ------
    InvalidParameter
    """
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


def protocol_fault(strategy: Any, player: Any) -> str:
    """What is wrong with the methods of a player, in words; "" if nothing is.

    A method of the protocol that is declared and missing would be missed in the middle of a game; one that is there
    and not declared would never be called; and so would one whose name is misspelt.
    """
    wanted = _protocol(strategy)
    for name, (needed, declared, argument) in wanted.items():
        method = getattr(player, name, None)
        if needed and not callable(method):
            return f"its player has no method {name}({argument}){_meant(player, name)}; expected one, since {declared}"
        if not needed and callable(method):
            return f"its player has a method {name}, which is never called, since {declared}"
        if needed and not takes(method, bool(argument)):
            return f"its player has {name}{inspect.signature(method)}; expected {name}({argument})"  # type: ignore[arg-type]
    missing = [name for name in wanted if not callable(getattr(player, name, None))]
    for name in _public(player):
        near = difflib.get_close_matches(name, missing, n=1, cutoff=0.8) if name not in wanted else []
        if near:
            return (
                f"its player has a method {name}, which is never called; is {near[0]} meant? That one is called where "
                f"{wanted[near[0]][1].replace('not ', '', 1)}"
            )
    return ""


def _protocol(strategy: Any) -> dict[str, tuple[bool, str, str]]:
    """Method → whether the player must have it, why or why not, and its argument."""
    always = "every player has it"
    if hasattr(strategy, "certifies"):  # a forecaster
        certifies = bool(strategy.certifies)
        declared = f"the specification {'certifies something' if certifies else 'does not certify anything'}"
        return {
            "forecast": (True, always, "round"),
            "update": (True, always, "round"),
            "certificates": (certifies, declared, ""),
        }
    hears, reveals = strategy.sight >= Sight.HISTORY, bool(strategy.reveals)
    return {
        "probability": (True, always, "round"),
        "update": (hears, f"the specification declares sight {strategy.sight.name}", "round"),
        "context": (
            reveals,
            f"the specification {'reveals' if reveals else 'does not reveal'} something",
            "round",
        ),
    }


def _public(player: Any) -> list[str]:
    return [
        name for name in dir(player) if not name.startswith("_") and callable(getattr(player, name, None))
    ]


def _meant(player: Any, name: str) -> str:
    near = difflib.get_close_matches(name, _public(player), n=1, cutoff=0.6)
    return f", but {near[0]}" if near else ""


def takes(method: Any, argument: bool) -> bool:
    """Whether a method can be called with one argument, or (False) with none."""
    try:
        inspect.signature(method).bind(*([None] if argument else []))
    except TypeError:
        return False
    except ValueError:  # a compiled callable that does not say
        return True
    return True
