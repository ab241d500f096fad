"""Starts players, and checks that they have what their specifications declare."""

from __future__ import annotations

import difflib
import inspect
import math
from typing import Any

from onlinecal.core.columns import ALL, MOST_GROUPS
from onlinecal.core.errors import InvalidParameter, OnlinecalError, failure, in_one_line
from onlinecal.core.guarantee import Sight
from onlinecal.core.plain import give_own
from onlinecal.core.specification import OfPlain
from onlinecal.core.strategy import check_facts, classes_of, strategy_key, strategy_name
from onlinecal.core.streams import Stream
from onlinecal.core.validation import is_whole
from onlinecal.engine.steps import ASKED_AT, Forecaster, Nature, Player


def start(role: str, strategy: Any, horizon: int, runs: range, seed: int) -> Any:
    """A compiled player for all runs, or an object in plain Python for each."""
    said = f"{role} {strategy_name(strategy)!r}"
    try:
        stream = Stream(seed, (role, strategy_key(strategy), f"T={horizon}"), runs[:1])
        player = begin(role, strategy, horizon, stream)
        if isinstance(player, Player):
            player.spread(runs)
            return player
        others = [strategy.start(horizon, stream.over(range(r, r + 1))) for r in runs[1:]]
        return [player] + [apart(strategy, other) for other in others]
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
    player = strategy.start(horizon, stream)
    if not isinstance(player, Player):
        apart(strategy, player)
    if "oc_compiled" in vars(type(player)):
        from onlinecal.engine.record import compiled_player  # it is not needed for most games

        player = compiled_player(role, strategy, player, horizon, stream)
    if isinstance(player, Forecaster if role == "forecaster" else Nature):
        fault = player.mismatch(strategy)
    else:
        fault = plain_fault(role, strategy, player)
    if fault:
        raise InvalidParameter(f"{strategy_name(strategy)!r}: {fault}")
    return player


def apart(strategy: Any, player: Any) -> Any:
    """The same object in plain Python, with copies of what can change among the attributes of its classes."""
    # A specification without a state may play itself, in all runs; one of a plain class has done it.
    if player is not strategy and not isinstance(strategy, OfPlain):
        give_own(player)
    return player


def check_specification(role: str, strategy: Any) -> None:
    """Refuses a strategy of a class that declares something of another kind than expected."""
    kinds = ("needs", "certifies") if role == "forecaster" else ("reveals",)
    for name in kinds:
        value = getattr(strategy, name)
        if not isinstance(value, frozenset | set) or not all(isinstance(kind, str) for kind in value):
            raise _undeclared(role, strategy, name, "a frozenset of names")
    fault = check_facts(strategy)
    if fault:
        raise InvalidParameter(f"{role} {strategy_name(strategy)!r} declares {fault}")
    if role == "nature" and classes_of(strategy):
        if not (is_whole(strategy.classes) and strategy.classes >= 2):
            raise _undeclared(role, strategy, "classes", "an integer ≥ 2")
        if strategy.group_names:
            raise _undeclared(role, strategy, "groups", "none where it has classes")
    if role == "forecaster":
        return
    if ASKED_AT in strategy.reveals:
        raise _undeclared(
            role, strategy, "reveals", f"none called {ASKED_AT!r}, which is the time of a question"
        )
    groups = strategy.group_names
    good = all(isinstance(group, str) and group for group in groups)
    if not good or len({*groups, ALL}) <= len(groups) or not {*groups} <= strategy.reveals:
        expected = f"different kinds that it reveals, none of them {ALL!r}, which every question is in"
        raise _undeclared(role, strategy, "groups", expected)
    if len(groups) > MOST_GROUPS:
        raise _undeclared(role, strategy, "groups", f"at most {MOST_GROUPS}")
    if not isinstance(strategy.sight, Sight):
        raise _undeclared(role, strategy, "sight", "a Sight")
    if strategy.length is not None and not (is_whole(strategy.length) and strategy.length >= 1):
        raise _undeclared(role, strategy, "length", "None or an integer ≥ 1")
    if "stream" in strategy.reveals and not strategy.streams:
        expected = "their labels, and a player with streams_of(first, last), where 'stream' is revealed"
        raise _undeclared(role, strategy, "streams", expected)


def _undeclared(role: str, strategy: Any, name: str, expected: str) -> InvalidParameter:
    said = f"{role} {strategy_name(strategy)!r} declares {name} = {in_one_line(getattr(strategy, name))}"
    return InvalidParameter(f"{said}; expected {expected}")


def check_pair(forecaster: Any, nature: Any, horizon: int) -> None:
    """Refuses players that cannot play as long, or a nature that does not reveal what the forecaster needs."""
    check_specification("forecaster", forecaster)
    check_specification("nature", nature)
    if not same_outcomes(forecaster, nature):
        said = [f"{strategy_name(each)!r} is of {_outcomes(each)}" for each in (forecaster, nature)]
        raise InvalidParameter(f"forecaster {said[0]}, and nature {said[1]}; expected the same of both")
    for role, player, has in (("nature", nature, "has"), ("forecaster", forecaster, "plays")):
        length = getattr(player, "length", None)
        if length is not None and horizon > length:
            raise InvalidParameter(
                f"horizon = {horizon}, but {role} {strategy_name(player)!r} {has} {length} rounds; expected at most "
                f"{length}"
            )
    missing = sorted(forecaster.needs - nature.reveals)
    if missing:
        raise InvalidParameter(
            f"forecaster {strategy_name(forecaster)!r} needs {', '.join(missing)}, which nature "
            f"{strategy_name(nature)!r} does not reveal"
        )


def same_outcomes(forecaster: Any, nature: Any) -> bool:
    """Whether both are of outcomes 0 and 1, or of as many classes; many forecasters are of as many as nature."""
    of_classes = [getattr(each, "of_classes", False) for each in (forecaster, nature)]
    able = classes_of(forecaster) in (0, classes_of(nature)) and classes_of(nature) <= _most(forecaster)
    return of_classes in ([False] * 2, [True] * 2) and able


def _outcomes(strategy: Any) -> str:
    if not getattr(strategy, "of_classes", False):
        return "the outcomes 0 and 1"
    several = "several" if math.isinf(_most(strategy)) else f"at most {_most(strategy)}"
    return f"{strategy.classes or several} classes"


def _most(strategy: Any) -> Any:
    """How many classes it can play."""
    return getattr(strategy, "most_classes", math.inf)


def check_classes(nature: Any, schedule: Any, keeps: Any, laws: bool) -> None:
    """Refuses what has a meaning for two outcomes alone, in a game of classes; laws in others, or of late rounds."""
    if not classes_of(nature):
        if laws:
            raise InvalidParameter(
                f"laws = True and nature {strategy_name(nature)!r}; expected one of classes"
            )
        return
    said = f"nature {strategy_name(nature)!r} is of {classes_of(nature)} classes"
    if laws and not schedule.immediate:
        raise InvalidParameter(
            f"laws = True with {schedule.label}; expected outcomes that become known at once"
        )
    if schedule.delays.by_outcome:
        raise InvalidParameter(f"{said}, and delays depend on whether the outcome is 0 or 1; expected others")
    if keeps is not None:
        raise InvalidParameter(f"{said}, of which no rounds are kept one by one; expected keeps = None")


def plain_fault(role: str, strategy: Any, player: Any) -> str:
    """Describes what is wrong with the methods of an object in plain Python; "" for nothing."""
    names = [n for n in dir(player) if not n.startswith("_") and callable(getattr(player, n, None))]
    for name, (arguments, counts, needed, forbidden) in _methods(role, strategy).items():
        method = getattr(player, name, None)
        if not callable(method):
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.6 if needed else 0.8)
            if needed:
                but = f", but {near[0]}" if near else ""
                return f"its player has no method {name}({arguments}){but}; {needed}"
            if near and near[0] not in METHODS:
                return f"its player has a method {near[0]}, which is never called; is {name} meant?"
        elif forbidden:
            return (
                f"its player has a method {name}, which is never called, since the specification {forbidden}"
            )
        elif not any(takes(method, n) for n in counts):
            return f"its player has {name}{inspect.signature(method)}; expected {name}({arguments})"
    if role == "nature" and strategy.sight >= Sight.LAW and takes(player.probability, 0):
        return (
            f"its class declares sight {strategy.sight.name}, but its probability() needs no round, by which it would "
            "see; expected probability(round)"
        )
    return ""


METHODS = ("forecast", "probability", "update", "context", "certificates")


def _methods(role: str, strategy: Any) -> dict[str, tuple[str, tuple[int, ...], str, str]]:
    """Method → its arguments, how many it may take, why the object must have it, and why it must not."""
    if role == "forecaster":
        says = bool(strategy.certifies)
        why, not_why = "the specification certifies something" * says, "certifies nothing" * (not says)
        return {
            "forecast": ("", (0, 1), "expected one", ""),
            "update": ("forecast, outcome", (2, 3), "expected one", ""),
            "certificates": ("", (0,), why, not_why),
        }
    says, sight = bool(strategy.reveals), strategy.sight
    why, not_why = (
        "the specification reveals context" * says,
        "declares nothing that it `reveals`" * (not says),
    )
    return {
        "probability": ("", (0, 1), "expected one", ""),
        "update": ("forecast, outcome", (2, 3), "", f"declares sight {sight.name}" * (sight < Sight.HISTORY)),
        "context": ("round", (1,), why, not_why),
    }


def takes(method: Any, count: int) -> bool:
    """Whether a method can be called with this number of arguments."""
    try:
        inspect.signature(method).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # a compiled callable that does not say
        return True
    return True
