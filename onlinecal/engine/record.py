"""Plain classes, compiled: the attributes of an object are a NumPy record, and its methods are compiled by numba."""

from __future__ import annotations

import copy
import inspect
import re
from collections import namedtuple
from functools import lru_cache
from random import Random
from types import MemberDescriptorType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit
from numba.core.errors import NumbaError

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.plain import TRIED, fresh
from onlinecal.core.strategy import required
from onlinecal.core.streams import Stream
from onlinecal.engine.methods import Method, is_number
from onlinecal.engine.play import Question
from onlinecal.engine.replaced import HOW
from onlinecal.engine.run import state
from onlinecal.engine.seats import seat
from onlinecal.engine.start import apart
from onlinecal.engine.steps import LEARN, MOVE, SAY, Forecaster, Nature, Player

Class = TypeVar("Class", bound=type)
#: rounds that are played both ways before a player begins
REHEARSED = 400


def compiled(cls: Class) -> Class:
    """Has the objects of a plain class played as compiled steps; as a decorator, or called with the class.

    Its methods are compiled by numba when a game begins. An object and the compiled steps are played for 400
    rounds first. They must state and keep the same numbers, bit for bit. Nothing else changes: names, parameters, keys,
    and all numbers are those of the class without it.

    Attributes may be numbers, or lists of numbers of fixed length, or 1-d arrays of int64 or float64. They are made
    in ``__init__``, which may do anything. A list with entries that are assigned has one name. A local name has a
    value on every path to its use. A global number or function is that of the beginning of a game. Comparisons are
    added and are indices where nothing is a number of NumPy. Compiled are ``if``, ``while``, ``for`` over
    ``range``, a list or ``enumerate`` of one, arithmetic, and functions of `math`. So are methods of the class,
    functions of a module that are written so, ``self.stream.uniform(i)``, ``round.number`` and
    ``round.context["kind"]``. A law may be a dict display.

    Notes: Numbers are those of numba. A whole number has 64 bits: beyond them it becomes another, unnoticed. A name
    or attribute that may be a real number is one everywhere. Then it is exact up to 2^53, and its zero has a sign. The
    last digit of a power may be another. A negative power of a whole number stops the game. So does a division by zero,
    or a function of `math` beyond its values. So does an error that a method raises; its words are lost.

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
        kinds = getattr(cls, "needs", ())
        if sample is not None and not isinstance(kinds, str | property):  # else a game tells the kinds
            Record(sample, Sight.DRAW, tuple(sorted(kinds)))
    cls.oc_compiled = True  # type: ignore[attr-defined]
    return cls


def compiled_player(role: str, strategy: Any, player: Any, horizon: int, stream: Stream) -> Any:
    """Makes a player of steps from an object of a compiled class."""
    cls: Any = type(player)
    for name in ("streams", "certificates", "classes") + (("reveals",) if role == "nature" else ()):
        if getattr(cls, name, ()):
            raise InvalidParameter(f"{cls.__name__} has `{name}`, which is not compiled; expected none")
    contexts = tuple(sorted(strategy.needs)) if role == "forecaster" else ()
    sight, wider = getattr(strategy, "sight", Sight.DRAW), frozenset[str]()
    while isinstance(made := compiled_steps(record := Record(player, sight, contexts, wider)), str):
        if record.held[made].array:
            what = f"self.{made} is an array of whole numbers and gets a real one"
            raise InvalidParameter(f"{record.stored[made]}: {what}; expected a whole one")
        wider |= {made}
    streams = [value for value in getattr(player, "__dict__", {}).values() if isinstance(value, Stream)]
    if len(streams) > 1:
        raise InvalidParameter(f"{cls.__name__} has {len(streams)} streams; expected one")
    more: Any = {"note": len(contexts), "stream": streams[0] if streams else None}
    begin = record.numbers(player)

    def make() -> Any:
        if role == "nature":
            return _Nature(made[0], begin, sight=sight, hear=made[1], **more)
        return _Forecaster(
            made[0], made[1], begin, size=record.atoms, needs=dict(enumerate(contexts)), **more
        )

    if (once := (record.key, begin.tobytes())) not in PLAYED_BESIDE:
        rehearse(role, strategy, make(), copy.deepcopy(player), record)
        PLAYED_BESIDE.add(once)
    done = make()
    done.begun = strategy, horizon, stream, record
    return done


#: steps and the numbers that they began with, which have been rehearsed in this process
PLAYED_BESIDE: set[Any] = set()


class _OfObjects(Player):
    """A player of which each run begins as an object of its own."""

    begun: Any

    def spread(self, runs: range) -> None:
        """As `Player.spread`, with the numbers of an object for each run."""
        super().spread(runs)
        strategy, horizon, stream, record = self.begun
        for row, run in zip(self.state[1:], runs[1:], strict=True):
            thing = apart(strategy, strategy.start(horizon, stream.over(range(run, run + 1))))
            row[:] = record.numbers(thing)


class _Forecaster(_OfObjects, Forecaster):
    """A forecaster of a compiled class."""


class _Nature(_OfObjects, Nature):
    """A nature of a compiled class."""


# ---------------------------------------------------------------- the record of an object


class Held(NamedTuple):
    """An attribute of a record: np.int64 or np.float64, the length of a list, and whether it is an array."""

    kind: Any
    length: int | None = None
    array: bool = False


def _entries(value: Any) -> Any:
    return value if type(value) in (list, tuple) else (value,)


def _held(value: Any, numpy: bool) -> Any:
    """An attribute by its value, `Stream`, or in words why it cannot be compiled."""
    if isinstance(value, Stream):
        return Stream
    if type(value) is np.ndarray:
        if value.ndim == 1 and value.dtype in (np.int64, np.float64):
            return Held(value.dtype.type, len(value), True)
        return f"is an array of {value.ndim} dimension(s) of {value.dtype}, not one of int64 or float64"
    entries, many = _entries(value), type(value) in (list, tuple)
    for each in entries:
        if not is_number(each, (bool, int, np.int64, float, np.float64)):
            return f"{'has an entry' if many else 'is'} of the type {type(each).__module__}.{type(each).__qualname__}"
        if numpy and isinstance(each, bool):
            return "is a truth value beside numbers of NumPy, not 0 or 1"
    if not entries:
        return "is an empty list"
    kind = np.float64 if any(isinstance(each, float) for each in entries) else np.int64
    return Held(kind, len(entries) if many else None)


class Record:
    """The attributes of an object as fields of a record, and its methods as they are read.

    `wider` are whole attributes that become real. Records are equal where steps are compiled from the same.
    """

    def __init__(
        self, thing: Any, sight: Sight, contexts: tuple[str, ...], wider: frozenset[str] = frozenset()
    ) -> None:
        self.cls, self.thing, self.contexts, self.atoms = type(thing), thing, contexts, 1
        self.stored, self.methods = dict[str, str](), dict[Any, Any]()
        values = self._attributes()
        #: whether a number is of NumPy, which has other rules for truth values
        self.numpy = any(
            isinstance(e, np.generic | np.ndarray) for v, _ in values.values() for e in _entries(v)
        )
        #: each attribute in the order of their names: `Held`, `Stream`, or why it cannot be compiled
        self.held: dict[str, Any] = {
            name: why or _held(value, self.numpy) for name, (value, why) in values.items()
        }
        self.held |= {name: self.held[name]._replace(kind=np.float64) for name in wider}
        #: the attributes that are numbers
        self.fields = {name: each for name, each in self.held.items() if isinstance(each, Held)}
        fields = [(n, e.kind, *[e.length] * (e.length is not None)) for n, e in self.fields.items()]
        self.dtype = np.dtype(fields or [("nothing", np.int64)])
        says = hasattr(self.cls, "forecast")
        self.shown = ("number", *["forecast"] * (sight >= Sight.DRAW and not says))
        hears = hasattr(self.cls, "update") and sight >= Sight.HISTORY
        #: all that was looked up to read the methods, and what was found
        self.looked = dict[Any, Any]()
        asked: Any = (self.cls, says, hears, self.shown, contexts, self.numpy, *self.held.items())
        kept = _kept(asked)
        if kept and all(how(*of) is found for (how, *of), found in kept[0].looked.items()):
            for name in ("methods", "stored", "atoms", "first", "told", "looked"):
                setattr(self, name, getattr(kept[0], name))
        else:
            self.first = self._step("forecast", "law", 0) if says else self._step("probability", "q", 0)
            self.told = self._step("update", "heard", 2) if hears else None
            kept[:] = [self]
        self._check_lists()
        codes = [(*key, key[0].__code__, repr(key[0].__defaults__)) for key in self.methods]
        used = [(name, type(value), value) for m in self.methods.values() for name, value in m.space.items()]
        self.key = self.cls.__name__, tuple(codes), tuple(used), str(self.dtype), contexts

    def look(self, how: Any, *of: Any) -> Any:
        """Looks something up that is outside of the methods: where it is another thing, they are read again."""
        self.looked[how, *of] = found = how(*of)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def _attributes(self) -> dict[str, tuple[Any, str]]:
        """The value of each attribute, and why it cannot be compiled whatever it is."""
        cls, thing, found = self.cls, self.thing, dict[str, tuple[Any, str]]()
        if inspect.getattr_static(cls, "__getattribute__") is not object.__getattribute__:
            what = f"{cls.__name__} has a __getattribute__, which is not compiled"
            raise InvalidParameter(f"{what}; expected none")
        own = getattr(thing, "__dict__", {})
        names = {name for each in cls.__mro__[:-1] for name in vars(each) if name[:2] != "__"}
        for name in sorted(names | own.keys()):
            static, why = inspect.getattr_static(cls, name, None), ""
            if inspect.isfunction(static):
                if name not in own:
                    continue
                why = "is a method of the class and another thing of the object"
            read = hasattr(static, "__set__") or (hasattr(static, "__get__") and name not in own)
            if not why and read and not isinstance(static, MemberDescriptorType):  # which is of __slots__
                why = "is a property"
            if hasattr(thing, name):
                found[name] = getattr(thing, name), why
        return found

    def _step(self, name: str, returns: str, told: int) -> tuple[Any, ...]:
        """The key of a method that a game calls."""
        if isinstance(why := self.held.get(name), str):
            raise InvalidParameter(f"{self.cls.__name__}: {name} {why}; expected a method of the class")
        function: Any = self.look(inspect.getattr_static, self.cls, name)
        self.read(function, True, returns, told)
        return function, True, returns

    def read(self, function: Any, own: bool, step: str = "", told: int = 0) -> bool:
        """Reads a method or function after what it calls; false within itself."""
        key = function, own, step
        if key not in self.methods:
            self.methods[key] = None
            method = Method(self, function, own, step, told)
            del self.methods[key]
            self.methods[key] = method
        return self.methods[key] is not None

    def _check_lists(self) -> None:
        """Refuses lists with entries that are assigned and that are also something else, or cannot be assigned."""
        others = {f"{each.__name__}.{name}": v for each in self.cls.__mro__ for name, v in vars(each).items()}
        others |= self.first[0].__globals__
        others |= {
            f"self.{n}": getattr(self.thing, n) for n, e in self.fields.items() if e.length is not None
        }
        for name, where in self.stored.items():
            mine, why = getattr(self.thing, name), ""
            arrays = isinstance(mine, np.ndarray)
            if isinstance(mine, tuple) or (arrays and not mine.flags.writeable):
                why = f"a {'read-only array' if arrays else 'tuple'}"
            for other, value in others.items():
                shares = arrays and isinstance(value, np.ndarray) and np.shares_memory(mine, value)
                if other != f"self.{name}" and (mine is value or shares):
                    why = f"which is or shares the numbers of {other}"
            if why:
                expected = "a list of its own, such as list(…), made in __init__"
                raise InvalidParameter(
                    f"{where}: an entry of self.{name} is assigned, {why}; expected {expected}"
                )

    def numbers(self, thing: Any) -> Any:
        """The state of an object as numbers."""
        row = np.zeros(1, self.dtype)
        for name, each in self.fields.items():
            value = np.asarray(getattr(thing, name))
            kinds = "biuf" if each.kind is np.float64 else "bi"
            if value.dtype.kind not in kinds or value.shape != row[name].shape[1:]:
                said = f"{self.cls.__name__}: self.{name} = {value.tolist()!r:.60}"
                expected = "numbers of 64 bits, the same in all runs"
                raise InvalidParameter(
                    f"{said} is of another kind or length than it begins with; expected {expected}"
                )
            row[name] = value
        return row.view(np.float64)

    def same(self, thing: Any, row: Any) -> bool:
        """Whether an object has the numbers of a state; a zero may have another sign."""
        mine, theirs = self.numbers(thing).view(self.dtype)[0], row.view(self.dtype)[0]
        return all(np.array_equal(mine[name], theirs[name], equal_nan=True) for name in self.fields)


@lru_cache(256)
def _kept(asked: Any) -> list[Record]:
    """A place for the last record that was read of a class, for objects with such attributes."""
    return []


#: a round as methods see it; its context is in the note
Round: Any = namedtuple("Round", ("number", "forecast"))


@lru_cache(256)
def compiled_steps(record: Record) -> Any:
    """The steps of a record, compiled once for all that are equal; or the attribute that must be real."""
    made = dict[Any, Any]()
    for key, method in record.methods.items():
        space = {name: made[v] if isinstance(v, tuple) else v for name, v in method.space.items()}
        exec(compile(method.tree, inspect.getfile(method.function), "exec"), space)
        made[key] = njit(**HOW)(space[method.function.__name__])
    dtype, says = record.dtype, record.first[2] == "law"
    me = njit(**HOW)(lambda run: state(run).view(dtype)[0])
    first: Any = made[record.first]
    told: Any = made.get(record.told)

    def say(run: Any, number: int) -> Any:
        return first(run, me(run), Round(number, 0.0))

    def move(run: Any, size: int, forecast: float, number: int) -> Any:
        return first(run, me(run), Round(number, forecast))

    def learn(run: Any, place: int, forecast: float, outcome: int, number: int) -> int:
        told(run, me(run), forecast, outcome, Round(number, forecast))
        return 0

    try:
        steps = njit(SAY, **HOW)(say) if says else njit(MOVE, **HOW)(move)
        return steps, njit(LEARN, **HOW)(learn) if told else None
    except NumbaError as error:
        said = re.sub(r"\x1b\[[\d;]*m", "", str(error))
        if wider := re.search(r"<real in (\w+)>", said):
            return wider[1]
        raise InvalidParameter(_why(record, said)) from error


def _why(record: Record, said: str) -> str:
    """The words of numba, with the line of the user's file."""
    files = {inspect.getfile(method.function) for method in record.methods.values()}
    where = [line for file, line in re.findall(r'File "([^"]*)", line (\d+)', said) if file in files]
    what = next((line.strip() for line in said.splitlines() if line.strip() and "pipeline" not in line), "")
    line = f", line {where[-1]}" if where else ""
    return f"{record.cls.__name__}{line}: it is not compiled: {what} …; expected operations on numbers"


# ---------------------------------------------------------------- the rehearsal


def rehearse(role: str, strategy: Any, made: Any, thing: Any, record: Record) -> None:
    """Plays an object beside the steps that are compiled from its class; an error where they differ in a bit."""
    sittings, random = [seat(role, strategy, each) for each in (thing, made)], Random(0)
    for number in range(1, REHEARSED + 1):
        # Outcomes are constant and then random; some forecasts are extreme.
        outcome = int(random.random() < (0.0, 1.0, 0.4)[3 * (number - 1) // REHEARSED])
        drawn = random.choice([0.0, 1.0, 0.5, 5e-324, 1 - 2**-53] + [random.random()] * 10)
        q = Question(number, float(number), outcome=outcome, forecast=drawn, law=[(drawn, 1.0)])
        # Those of groups are 0 or 1.
        context = {kind: random.choice([0.0, 1.0, random.random()]) for kind in record.contexts}
        q.context, pick = context, random.random()
        (said, error), (again, fault) = (_round(role, each, copy.copy(q), pick) for each in sittings)
        if error is not None and fault is not None:
            return
        if error is not None:
            how = f"ends in Python alone, by {error!r}"
        elif fault is not None:
            how = f"ends compiled alone, by {fault!r}"
        elif repr(said) != repr(again):
            how = f"states {said} in Python and {again} compiled"
        elif not record.same(thing, made.state[0]):
            how = "keeps other numbers compiled than in Python"
        else:
            continue
        raise InvalidParameter(
            f"{record.cls.__name__}, round {number} of a rehearsal: it {how}; expected the same, bit for bit: play "
            "it without oc.compiled, or write it so that no rounding depends on it"
        )


def _round(role: str, sitting: Any, q: Question, pick: float) -> tuple[Any, Exception | None]:
    """The statement of a player in a round, which it then hears; and how it failed."""
    said: Any = None
    try:
        if role == "forecaster":
            said = [(value + 0.0, weight) for value, weight in sitting.state_law(q)]
            q.place = int(pick * len(said))
            q.forecast = said[q.place][0]
        else:
            sitting.reveal(q)
            said = sitting.move(q)
        sitting.learn(q)
    except Exception as error:  # of any kind: the steps must come to an end there too
        return said, error
    return said, None
