"""Plain classes, compiled: the attributes of an object are the state of a run, and its methods are steps."""

from __future__ import annotations

import copy
import inspect
import re
from types import MemberDescriptorType
from typing import Any, TypeVar

import numpy as np
from numba.core.errors import NumbaError

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.plain import TRIED, fresh
from onlinecal.core.strategy import required
from onlinecal.core.streams import Stream
from onlinecal.engine.expressions import REAL, TRUTH, WHOLE, Code, Held, Kind
from onlinecal.engine.rehearsal import rehearse
from onlinecal.engine.start import apart
from onlinecal.engine.steps import Forecaster, Nature, Player
from onlinecal.engine.translation import Translation, compiled_steps
from onlinecal.engine.written import plain_number

Class = TypeVar("Class", bound=type)


def compiled(cls: Class) -> Class:
    """Has the objects of a plain class played as compiled steps; as a decorator, or called with the class.

    Its methods are translated when a game begins, and compiled. An object and the compiled steps are played for 400
    rounds first. They must state and keep the same numbers, bit for bit. Nothing else changes: names, parameters, keys,
    and all numbers are those of the class without it.

    Attributes may be numbers, or lists or 1-d arrays of numbers of fixed length, made in ``__init__``. Arrays are of
    int64 or float64. A list with entries that are assigned has one name. A local name has a value on every path to its
    use. A global number or function is that of the beginning of a game. Two comparisons are added, and an entry is
    taken by one, where nothing is a number of NumPy. Reading and writing attributes has no code of its own. Translated
    are ``if``, ``for`` over ``range``, a list or ``enumerate`` of one, and ``while``. So are arithmetic, functions of
    `math`, methods of the class and functions of a module that are written so. So are ``self.stream.uniform(i)``,
    ``round.number`` and ``round.context["kind"]``. A law may be a dict display. ``__init__`` is played in Python and
    may do anything.

    Notes: An error that a method raises stops the game in its round, but its words are lost. So does a division by
    zero, and a whole number of more than 64 bits. So does one of more than 53 bits where a real one may stand. An
    attribute that begins as 0 and becomes a real number is a real one from the beginning.

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
    if not set(required(cls)) - {"horizon", "stream"}:
        given = {"horizon": TRIED, "stream": Stream(0, ("compiled",), range(1))}
        try:
            known = inspect.signature(cls).parameters
            sample = fresh(cls, **{name: value for name, value in given.items() if name in known})
        except Exception:
            sample = None  # it needs parameters, or cannot be made at all: then a game says so
        if sample is not None:
            kinds = getattr(cls, "needs", ())
            contexts = () if isinstance(kinds, str) else tuple(sorted(kinds))
            _translated(cls, sample, Sight.DRAW, contexts)
    cls.oc_compiled = True  # type: ignore[attr-defined]
    return cls


def compiled_player(role: str, strategy: Any, player: Any, horizon: int, stream: Stream) -> Any:
    """Makes a player of steps from an object of a compiled class."""
    cls: Any = type(player)
    for name in ("streams", "certificates") + (("reveals",) if role == "nature" else ()):
        if getattr(cls, name, ()):
            raise InvalidParameter(f"{cls.__name__} has `{name}`, which is not compiled; expected none")
    contexts = tuple(sorted(strategy.needs)) if role == "forecaster" else ()
    sight, end = getattr(strategy, "sight", Sight.DRAW), copy.deepcopy(player)
    translation, text, names = _translated(cls, player, sight, contexts)
    try:
        first, told = (*compiled_steps(text, *names), None)[:2]
    except NumbaError as error:
        lines = re.sub(r"\x1b\[\d*m", "", str(error)).splitlines()
        said = next((line for line in lines if line.strip() and "pipeline" not in line), "")
        raise InvalidParameter(
            f"{cls.__name__} is not compiled: {said} …; expected operations on numbers"
        ) from error
    memory: Any = {"note": len(contexts), "stream": _stream(cls, player)}
    begin = numbers(cls, player, translation)
    if role == "forecaster":
        made: Any = _Forecaster(
            first, told, begin, size=translation.atoms, needs=dict(enumerate(contexts)), **memory
        )
    else:
        made = _Nature(first, begin, sight=sight, hear=told, **memory)
    made.begun = strategy, horizon, stream, translation
    rehearse(role, strategy, made, end, lambda: numbers(cls, end, translation))
    return made


class _OfObjects(Player):
    """A player of which each run begins as an object of its own."""

    begun: Any

    def spread(self, runs: range) -> None:
        """As `Player.spread`, with the numbers of an object for each run."""
        super().spread(runs)
        strategy, horizon, stream, translation = self.begun
        for row, run in zip(self.state[1:], runs[1:], strict=True):
            thing = apart(strategy, strategy.start(horizon, stream.over(range(run, run + 1))))
            cls, others = type(thing), held(thing)
            own = numbers(cls, thing, translation)
            for name in translation.places:
                if others[name].kind & ~translation.kinds[name] or len(own) != len(row):
                    what = f"self.{name} is of another kind or length in run {run} than in run {runs[0]}"
                    raise InvalidParameter(f"{cls.__name__}: {what}; expected the same in all")
            row[:] = own


class _Forecaster(_OfObjects, Forecaster):
    """A forecaster of a compiled class."""


class _Nature(_OfObjects, Nature):
    """A nature of a compiled class."""


def _translated(
    cls: Any, thing: Any, sight: Sight, contexts: tuple[str, ...]
) -> tuple[Translation, str, tuple[str, ...]]:
    """The methods of a class with the attributes of an object; the text of their steps, and which it has."""
    forecasts = hasattr(cls, "forecast")
    drawn = {"forecast": "oc_forecast"} if sight >= Sight.DRAW and not forecasts else {}
    made = Translation(cls, held(thing), {"number": "oc_number"} | drawn, contexts)
    steps: dict[str, Any] = {"forecast": ("oc_run, oc_number", (), "law")}
    if not forecasts:
        steps = {"probability": ("oc_run, oc_size, oc_forecast, oc_number", (), "q")}
    if hasattr(cls, "update") and sight >= Sight.HISTORY:
        told = Code("oc_forecast", REAL), Code("oc_outcome", WHOLE)
        steps["update"] = "oc_run, oc_place, oc_forecast, oc_outcome, oc_number", told, "code"
    text = made.read(steps)
    _check_lists(cls, thing, made)
    return made, text, tuple(steps)


# ---------------------------------------------------------------- the state of an object


def _held(value: Any) -> Held | str:
    """An attribute by its value, or in words why it cannot be compiled."""
    for kind, of in ((TRUTH, bool), (WHOLE, int), (REAL, float)):
        if plain_number(value, of):
            return Held(kind)
    if isinstance(value, np.int64 | np.float64):
        return Held(WHOLE if type(value) is np.int64 else REAL)
    if type(value) is np.ndarray:
        if value.ndim == 1 and value.dtype in (np.int64, np.float64):
            return Held(REAL if value.dtype == np.float64 else WHOLE, True, True)
        return f"is an array of {value.ndim} dimension(s) of {value.dtype}, not one of int64 or float64"
    if type(value) in (list, tuple):
        kind, each = Kind(0), list(map(_held, value))
        for entry in each:
            if isinstance(entry, str) or entry.many or not entry.kind:
                return f"has an entry that {entry if isinstance(entry, str) else 'is no number'}"
            kind |= entry.kind
        return Held(kind, True) if each else "is an empty list"
    if isinstance(value, Stream):
        return Held(Kind(0))
    return f"is of the type {type(value).__module__}.{type(value).__qualname__}"


def held(thing: Any) -> dict[str, Any]:
    """The attributes of an object, in the order of their names. "!" is there if some are numbers of NumPy."""
    cls, found, own = type(thing), dict[str, Any](), getattr(thing, "__dict__", {})
    names = {name for each in cls.__mro__[:-1] for name in vars(each) if name[:2] != "__"}
    for name in sorted(names | own.keys()):
        static = inspect.getattr_static(cls, name, None)
        if inspect.isfunction(static):
            if name in own:
                found[name] = "is a method of the class and another thing of the object"
            continue
        if not hasattr(thing, name):
            continue
        value = getattr(thing, name)
        found[name], entries = _held(value), value if type(value) in (list, tuple) else (value,)
        if any(isinstance(each, np.generic | np.ndarray) for each in entries):
            found["!"] = "numbers of NumPy"
        read = hasattr(static, "__set__") or (hasattr(static, "__get__") and name not in own)
        if read and not isinstance(static, MemberDescriptorType):  # which is of __slots__
            found[name] = "is a property"
    return found


def _check_lists(cls: type, thing: Any, made: Translation) -> None:
    """Refuses lists with entries that are assigned and that are also something else, or cannot be assigned."""
    lists = {f"self.{name}": getattr(thing, name) for name in made.places if made.held[name].many}
    first: Any = inspect.getattr_static(cls, "forecast" if hasattr(cls, "forecast") else "probability")
    others = {f"{each.__name__}.{name}": value for each in cls.__mro__ for name, value in vars(each).items()}
    for name, where in made.stored.items():
        mine, why = getattr(thing, name), ""
        if isinstance(mine, tuple) or (isinstance(mine, np.ndarray) and not mine.flags.writeable):
            kind = "tuple" if isinstance(mine, tuple) else "read-only array"
            why = f"an entry of self.{name} is assigned, a {kind}"
        for other, value in (others | first.__globals__ | lists).items():
            arrays = isinstance(mine, np.ndarray) and isinstance(value, np.ndarray)
            if other != f"self.{name}" and (mine is value or (arrays and np.shares_memory(mine, value))):
                why = f"an entry of self.{name} is assigned, which is or shares the numbers of {other}"
        if why:
            raise InvalidParameter(
                f"{where}: {why}; expected a list of its own, such as list(…), made in __init__"
            )


def _stream(cls: type, thing: Any) -> Stream | None:
    """The stream that is an attribute of an object."""
    found = {
        name: value for name, value in getattr(thing, "__dict__", {}).items() if isinstance(value, Stream)
    }
    if len(found) > 1:
        raise InvalidParameter(f"{cls.__name__} has the streams {', '.join(found)}; expected one")
    return next(iter(found.values()), None)


def numbers(cls: type, thing: Any, made: Translation) -> Any:
    """The state of an object, where its steps look for it."""
    state, row = np.zeros(made.size), list[Any]()
    whole = state.view(np.int64)
    try:
        for name, at in made.places.items():
            kind, value = made.kinds[name], getattr(thing, name)
            if not made.held[name].many:
                (state if kind & REAL else whole)[at] = value
                continue
            whole[at : at + 2] = made.size + sum(map(len, row)), len(value)
            row.append(np.array(value, np.float64 if kind & REAL else np.int64).view(np.float64))
    except (OverflowError, TypeError, ValueError) as error:
        said = f"{cls.__name__}: its state does not stay one of numbers of 64 bits: {error}"
        raise InvalidParameter(said) from None
    return np.concatenate([state, *row])
