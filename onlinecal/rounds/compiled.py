"""Compiled steps of a user's plain class."""

from __future__ import annotations

import copy
import functools
import inspect
import math
import re
from random import Random
from types import MemberDescriptorType
from typing import Any, TypeVar

import numpy as np
from numba.core.errors import NumbaError

from onlinecal.core._compile import kernel
from onlinecal.core.arrays import address
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.plain import TRIED, fresh
from onlinecal.core.strategy import required
from onlinecal.rounds.arithmetic import COMPARED, NOT_WHOLE
from onlinecal.rounds.law import law_of
from onlinecal.rounds.plain import Round
from onlinecal.rounds.players import CompiledForecaster, CompiledNature
from onlinecal.rounds.steps import (
    HEAR,
    LAW,
    LEARN,
    MOVE,
    RAISED,
    VALUES,
    WEIGHTS,
    Memory,
    Step,
    call_hear,
    call_law,
    call_learn,
    call_move,
    law_values,
    law_weights,
)
from onlinecal.rounds.translation import Translation
from onlinecal.rounds.words import run_of
from onlinecal.rounds.written import plain_number

#: rounds that are played both ways before a player begins
REHEARSED = 400
Class = TypeVar("Class", bound=type)


def compiled(cls: Class) -> Class:
    """Has the objects of a plain class played as compiled steps; as a decorator, or called with the class.

    Its methods are translated when a game begins, and compiled. The machine code is kept beside the file of the class.
    An object and the compiled steps are played for 400 rounds first. They must state and keep the same numbers, bit for
    bit. Nothing else changes: names, parameters, keys, and all numbers are those of the class without it.

    Attributes may be numbers, or lists or 1-d arrays of numbers of fixed length, made in ``__init__``. Arrays are of
    int64 or float64. A list with entries that are assigned has one name. A local name has a value on every path to its
    use. A global number or function is that of the beginning of a game. Two comparisons are added, and an entry is
    taken by one, where nothing is a number of NumPy. Reading and writing attributes has no code of its own. Translated
    are ``if``, ``for`` over ``range``, a list or ``enumerate`` of one, and ``while``. So are arithmetic, functions of
    `math`, methods of the class and functions of a module that are written so. A law may be a dict display.
    ``__init__`` is played in Python and may do anything.

    Notes: An error that a method raises stops the game in its round, but its words are lost. So does a division by
    zero, and a whole number of more than 64 bits. So does one of more than 53 bits where a real one may stand, as far
    as one method shows it. An attribute that begins as 0 and becomes a real number is a real one from the beginning.

    Parameters
    ----------
    cls : class
        A forecaster, with ``forecast()`` and ``update(forecast, outcome)``, or a nature, with ``probability()`` or
        ``probability(round)`` and maybe ``update``. It is changed in place, as by `dataclasses.dataclass`. Its
        subclasses are not changed.

    Returns
    -------
    class
        The same class.

    Raises
    ------
    InvalidParameter
        Something in its methods cannot be translated: the message says where, and what was expected. It is raised at
        once where the parameters have defaults, or else when a game begins. So is, with the round, what
        differs from the plain object.

    Examples
    --------
    >>> import onlinecal as oc
    >>> @oc.compiled
    ... class EMA:
    ...     def __init__(self, rate=0.1):
    ...         self.rate, self.mean = rate, 0.5
    ...     def forecast(self):
    ...         return self.mean
    ...     def update(self, forecast, outcome):
    ...         self.mean += self.rate * (outcome - self.mean)
    >>> study = oc.play(EMA(0.5), "bernoulli", horizon=100_000, runs=4)
    """
    if not isinstance(cls, type) or not (hasattr(cls, "forecast") or hasattr(cls, "probability")):
        raise InvalidParameter(f"compiled: {cls!r}; expected a class with forecast() or probability()")
    if not set(required(cls)) - {"horizon"}:
        try:
            sample = fresh(
                cls, **({"horizon": TRIED} if "horizon" in inspect.signature(cls).parameters else {})
            )
        except Exception:
            sample = None  # it needs parameters, or cannot be made at all: then a game says so
        if sample is not None:
            _check_lists(cls, sample, _translated(cls, tuple(_kinds(sample).items()), Sight.DRAW)[0])
    cls.oc_compiled = True  # type: ignore[attr-defined]
    return cls


def is_compiled(player: Any) -> bool:
    """Whether the class of an object was marked; not where one that it inherits from was."""
    return "oc_compiled" in vars(type(player))


def compiled_player(role: str, strategy: Any, player: Any) -> Any:
    """Makes a player of steps from an object of a compiled class, as `protocol.begin` does from any other."""
    cls: Any = type(player)
    for name in ("needs", "reveals", "streams", "certificates"):
        if getattr(cls, name, ()):
            raise InvalidParameter(f"{cls.__name__} has `{name}`, which is not compiled; expected none")
    sight, end = getattr(strategy, "sight", Sight.NOTHING), copy.deepcopy(player)
    stated, done, error, kinds = _rehearsed(role, sight, end)
    translation, steps = _translated(cls, tuple(kinds.items()), sight)
    _check_lists(cls, player, translation)
    for step in filter(None, steps):
        _compile(step)
    begin, other = (_memory(cls, player, translation) for _ in range(2))
    if role == "forecaster":
        made: Any = CompiledForecaster(steps[0], steps[1], begin, size=translation.atoms)
    else:
        made = CompiledNature(steps[0], begin, sight=sight, hear=steps[1])
    again, as_far = _rehearsed_compiled(role, made, other)
    for t, (one, two) in enumerate(zip(stated, again[: (as_far + 1) // 2], strict=False), 1):
        if repr(one) != repr(two):
            raise _differs(cls, t, f"states {_law(one)} in Python and {_law(two)} compiled")
    if done != as_far:
        beyond = (
            "ends compiled alone, as at a whole number beyond 64 bits, or 53 where it may be a real one, or at a "
            "negative power of one"
        )
        how = beyond if error is None else f"ends in Python alone, by {error!r}"
        raise _differs(cls, min(done, as_far) // 2 + 1, how)
    last = _memory(cls, end, translation)
    kept = [(each.ints.tobytes(), each.floats.tobytes()) for each in (last, other)]
    if error is None and kept[0] != kept[1]:
        raise _differs(cls, REHEARSED, "keeps other numbers compiled than in Python")
    return made


def _differs(cls: type, number: int, how: str) -> InvalidParameter:
    return InvalidParameter(
        f"{cls.__name__}, round {number} of a rehearsal: it {how}; expected the same, bit for bit: play it without "
        "oc.compiled, or write it so that no rounding depends on it"
    )


def _law(said: Any) -> str:
    values, weights = said
    return repr(values[0] if weights == [1.0] else dict(zip(values, weights, strict=True)))


def _step(*made_of: Any) -> Step:
    """A step of a class, made again where it is sent."""
    *of, place = made_of
    made: Step = _translated(*of)[1][place]
    return made


#: what was translated, by class, kinds and sight; the latest ones
_MADE: dict[Any, tuple[Translation, Any]] = {}


def _translated(cls: Any, kinds: tuple[tuple[str, str], ...], sight: Sight) -> tuple[Translation, Any]:
    """The methods of a class with attributes of these kinds, and the two steps of a player.

    They are made again where a name outside of the class, such as a global number, has another meaning now.
    """
    made = _MADE.pop(key := (cls, kinds, sight), None)
    if made is None or not made[0].current:
        made = _translate(cls, kinds, sight)
    _MADE[key] = made
    if len(_MADE) > 256:
        del _MADE[next(iter(_MADE))]
    return made


def _translate(cls: Any, kinds: tuple[tuple[str, str], ...], sight: Sight) -> tuple[Translation, Any]:
    forecasts = hasattr(cls, "forecast")
    drawn = {"forecast": "oc_forecast"} if sight >= Sight.DRAW and not forecasts else {}
    made = Translation(cls, dict(kinds), {"number": "oc_number"} | drawn)
    if forecasts:
        marks = ("forecast", LAW), ("update", LEARN)
        told, given = "oc_values(oc_run)[oc_drawn]", "oc_run, oc_number, oc_size, oc_drawn, oc_outcome"
        made.step("forecast", "oc_run, oc_number", {}, "law", "raise ValueError")
    else:
        marks = ("probability", MOVE), ("update", HEAR)
        told, given = "oc_forecast", "oc_run, oc_number, oc_size, oc_forecast, oc_outcome"
        made.step("probability", given.removesuffix(", oc_outcome"), {}, "q", "raise ValueError")
    if hasattr(cls, "update"):
        made.step("update", given, {1: told, 2: "oc_outcome"}, "code", "return 0")
    functions = made.functions()
    return made, tuple(
        Step(signature, functions[name], f"{cls.__qualname__}.{name}", (_step, (cls, kinds, sight, i)))
        if name in functions
        else None
        for i, (name, signature) in enumerate(marks)
    )


def _compile(step: Step) -> None:
    try:
        step.address  # noqa: B018  # it is compiled when this is asked for
    except NumbaError as error:
        text = re.sub(r"\x1b\[\d*m", "", str(error))
        line = re.search(r'File "[^"]*", line (\d+)', text)
        where = f", line {line[1]}" if line else ""
        said = next(iter(text.splitlines()[1:]), text)
        why = f"it is not compiled: {said}{' …' * (said != text)}; expected operations on numbers"
        if NOT_WHOLE in text:
            why = f"an attribute {NOT_WHOLE}; expected one that begins as a real one, such as 0.0"
        if COMPARED in text:
            why = f"a number {COMPARED}; expected int(…) around it"
        raise InvalidParameter(f"{step.__qualname__}{where}: {why}") from error


# ---------------------------------------------------------------- the state of an object


def _kind(value: Any) -> str:
    """``"int"``, ``"float"``, ``"ints"`` or ``"floats"``; any other kind in words, after a mark."""
    if type(value) in (bool, np.int64) or plain_number(value, int):
        return "int"
    if type(value) is np.float64 or plain_number(value, float):
        return "float"
    if type(value) is np.ndarray:
        if value.ndim == 1 and value.dtype in (np.int64, np.float64):
            return "floats" if value.dtype == np.float64 else "ints"
        return f"!is an array of {value.ndim} dimension(s) of {value.dtype}, not one of int64 or float64"
    if type(value) in (list, tuple):
        of = {_kind(each) for each in value}
        if not of:
            return "!is an empty list"
        if of <= {"int", "float"}:
            return "floats" if "float" in of else "ints"
        return f"!has an entry that {min(of - {'int', 'float'}).lstrip('!')}"
    return f"!is of the type {type(value).__module__}.{type(value).__qualname__}"


def _kinds(thing: Any) -> dict[str, str]:
    """The kinds of the attributes of an object, in the order of their names; "!name" → why it has none.

    "!" is there where some are numbers of NumPy, which has another arithmetic of comparisons.
    """
    cls, found = type(thing), {}
    names = {name for each in cls.__mro__[:-1] for name in vars(each) if name[:2] != "__"}
    for name in sorted(names | getattr(thing, "__dict__", {}).keys()):
        static = inspect.getattr_static(cls, name, None)
        own = name in getattr(thing, "__dict__", {})
        if inspect.isfunction(static):
            if own:
                found[f"!{name}"] = "is a method of the class and another thing of the object"
            continue
        if not hasattr(thing, name):
            continue
        value = getattr(thing, name)
        kind, entries = _kind(value), value if type(value) in (list, tuple) else (value,)
        if any(isinstance(each, np.generic | np.ndarray) for each in entries):
            found["!"] = "numbers of NumPy"
        read = hasattr(static, "__set__") or (hasattr(static, "__get__") and not own)
        if read and not isinstance(static, MemberDescriptorType):  # which is of __slots__
            kind = "!is a property"
        found[name if kind[0] != "!" else f"!{name}"] = kind.removeprefix("!")
    return found


def _check_lists(cls: type, thing: Any, made: Translation) -> None:
    """Refuses lists with entries that are assigned and that are also something else, or cannot be assigned."""
    lists = {f"self.{name}": getattr(thing, name) for name in made.places if made.kinds[name].endswith("s")}
    first: Any = inspect.getattr_static(cls, "forecast" if hasattr(cls, "forecast") else "probability")
    held = {f"{each.__name__}.{name}": value for each in cls.__mro__ for name, value in vars(each).items()}
    others = held | first.__globals__ | lists
    for name, where in made.stored.items():
        mine, why = getattr(thing, name), ""
        if isinstance(mine, tuple) or (isinstance(mine, np.ndarray) and not mine.flags.writeable):
            kind = "tuple" if isinstance(mine, tuple) else "read-only array"
            why = f"an entry of self.{name} is assigned, a {kind}"
        for other, value in others.items():
            arrays = isinstance(mine, np.ndarray) and isinstance(value, np.ndarray)
            if other != f"self.{name}" and (mine is value or (arrays and np.shares_memory(mine, value))):
                why = f"an entry of self.{name} is assigned, which is or shares the numbers of {other}"
        if why:
            raise InvalidParameter(
                f"{where}: {why}; expected a list of its own, such as list(…), made in __init__"
            )


def _memory(cls: type, thing: Any, made: Translation) -> Memory:
    """The state of an object, where its steps look for it."""
    state: dict[str, list[Any]] = {"i": [0] * made.sizes[0], "f": [0.0] * made.sizes[1]}
    for name, at in made.places.items():
        kind, value = made.kinds[name], getattr(thing, name)
        if kind.endswith("s"):
            state["i"][at : at + 2] = len(state[kind[0]]), len(value)
            state[kind[0]] += list(value)
        else:
            state[kind[0]][at] = value
    try:
        return Memory(ints=np.array(state["i"], np.int64), floats=np.array(state["f"], np.float64))
    except (OverflowError, TypeError, ValueError) as error:
        said = f"{cls.__name__}: its state does not stay one of numbers of 64 bits: {error}"
        raise InvalidParameter(said) from None


# ---------------------------------------------------------------- the rehearsal


@functools.cache
def _rounds() -> tuple[Any, Any, Any]:
    """Constant outcomes and then random ones, which atom is drawn, and forecasts with extreme ones."""
    random, rounds = Random(0), range(REHEARSED)
    outcomes = [int(random.random() < (0.0, 1.0, 0.4)[3 * t // REHEARSED]) for t in rounds]
    ends = (0.0, 1.0, 0.5, 5e-324, 1 - 2**-53)
    picks = [random.randrange(2**20) for _ in rounds]
    forecasts = [random.choice(ends) if random.random() < 0.3 else random.random() for _ in rounds]
    return outcomes, picks, forecasts


def _rehearsed(role: str, sight: Sight, thing: Any) -> tuple[list[Any], int, Any, dict[str, str]]:
    """Laws that an object states, how many of its methods ended, its error, and the kinds of its attributes."""
    first = thing.forecast if role == "forecaster" else thing.probability
    update = getattr(thing, "update", None)
    shown = len(inspect.signature(first).parameters) > 0
    kept = update is not None and len(inspect.signature(update).parameters) > 2
    stated: list[Any] = []
    kinds, done = _kinds(thing), 0
    real = {name for name, kind in kinds.items() if kind == "int"}
    try:
        for t, (outcome, pick, drawn) in enumerate(zip(*_rounds(), strict=True), 1):
            seen = Round("", t, math.nan, sight=sight, forecast=drawn)
            law = law_of(first(seen) if shown else first())
            row = [float(value) for value in law], [float(weight) for weight in law.values()]
            stated.append(row)
            done += 1
            if update is not None:
                told = row[0][pick % len(row[0])] if role == "forecaster" else drawn
                update(told, outcome, *[seen] * kept)
            done += 1
            kinds |= {name: "float" for name in real if isinstance(getattr(thing, name), float)}
    except Exception as error:  # of any kind: the steps must come to an end there too
        return stated, done, error, kinds
    grown = {name for name, kind in _kinds(thing).items() if kind == "floats" and kinds.get(name) == "ints"}
    return stated, done, None, kinds | dict.fromkeys(grown, "floats")


def _rehearsed_compiled(role: str, made: Any, memory: Memory) -> tuple[list[Any], int]:
    """Laws that the steps state, and how many came to their ends."""
    size = getattr(made, "size", 1)
    law, said = np.zeros((2, size)), np.zeros((REHEARSED, 1 + 2 * size))
    fields = memory.fields()[0].copy()
    fields[[VALUES, WEIGHTS]] = address(law[0]), address(law[1])
    fields[[VALUES + 1, WEIGHTS + 1]] = size
    steps = [0 if step is None else step.address for step in made.steps[:2]]
    done = _played(role == "forecaster", *steps, fields, *map(np.array, _rounds()), said)
    sizes = said[:, 0].astype(int).tolist()
    return [
        (row[1 : 1 + n].tolist(), row[1 + size : 1 + size + n].tolist())
        for row, n in zip(said, sizes, strict=True)
    ], done


@kernel
def _played(forecasts, first, second, fields, outcomes, picks, drawn, said):
    """Plays a player made of steps, and writes its laws down; how many steps came to their ends."""
    run = run_of(fields)
    values, weights = law_values(run), law_weights(run)
    for t in range(len(said)):
        if forecasts:
            size = call_law(first, (run, t + 1))
        else:
            size, weights[0], values[0] = 1, 1.0, call_move(first, (run, t + 1, 0, drawn[t]))
        if size < 1 or values[0] == RAISED:
            return 2 * t
        said[t, 0] = size
        for j in range(size):
            said[t, 1 + j], said[t, 1 + len(values) + j] = values[j], weights[j]
        code = 0
        if forecasts:
            code = call_learn(second, (run, t + 1, size, picks[t] % size, outcomes[t]))
        elif second != 0:
            code = call_hear(second, (run, t + 1, 0, drawn[t], outcomes[t]))
        if code < 0:
            return 2 * t + 1
    return 2 * len(said)
