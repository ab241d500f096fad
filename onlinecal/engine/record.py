"""Plain classes, compiled: the attributes of an object are a NumPy record, and its methods are compiled by numba."""

from __future__ import annotations

import ast
import copy
import inspect
import re
from collections import namedtuple
from functools import cached_property, lru_cache
from random import Random
from typing import Any, TypeVar

import numpy as np
from numba import NumbaError, njit

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Sight
from onlinecal.core.streams import Stream
from onlinecal.engine.methods import Field, Method, is_number
from onlinecal.engine.play import Question
from onlinecal.engine.replaced import HOW
from onlinecal.engine.run import state
from onlinecal.engine.seats import seat
from onlinecal.engine.start import apart
from onlinecal.engine.steps import LEARN, MOVE, SAY, Forecaster, Nature

Class = TypeVar("Class", bound=type)
#: rounds that are played both ways before a player begins
REHEARSED = 400
#: what a round comes to in which a method raises an error
ENDED = "an error"


def compiled(cls: Class) -> Class:
    """Has the objects of a plain class played as compiled steps; as a decorator, or called with the class.

    Its methods are compiled by numba as a game begins. An object and the compiled steps are played for 400 rounds
    first, and must state and keep the same numbers, bit for bit. Names, parameters and keys stay the same.

    Attributes are numbers of Python, or lists of them that keep their length, made in ``__init__``, which may do
    anything. One that gets real numbers begins as one: 0.0. Methods have ``if``, ``while``, ``for`` over ``range``, a
    list or ``enumerate`` of one, arithmetic, functions of `math` and your own, and other methods. They may use
    ``self.stream.uniform(i)``, ``round.number`` and ``round.context["kind"]``, and state a law as a dict display.

    Notes: A whole number has 64 bits: beyond them it becomes another, unnoticed. In quotients, compared with a real
    number, and in a name that may be one, it is exact up to 2^53. The zero of such a name has a sign. The last digit of
    a power may be another. Words of errors are lost. Constants of a module are taken as a game begins. A truth value
    that is kept among real numbers is a forecast of a law.

    Parameters
    ----------
    cls : class
        A forecaster or nature in plain Python. It is changed in place, as by `dataclasses.dataclass`; its subclasses
        are not.

    Returns
    -------
    class
        The same class.

    Raises
    ------
    InvalidParameter
        It is no class of players. As a game begins: something is not compiled, in which line, and what was expected; or
        the object states or keeps another number, in which round.

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
    cls.oc_compiled = True  # type: ignore[attr-defined]
    return cls


def compiled_player(role: str, strategy: Any, player: Any, horizon: int, stream: Stream) -> Any:
    """Makes a player of steps from an object of a compiled class."""

    def begun(run: int) -> Any:
        return apart(strategy, strategy.start(horizon, stream.over(range(run, run + 1))))

    for name in ("classes", "streams", "certificates", "reveals"):
        if getattr(type(player), name, ()):
            raise InvalidParameter(
                f"{type(player).__name__} has `{name}`, which is not compiled; expected none"
            )
    contexts = tuple(sorted(strategy.needs)) if role == "forecaster" else ()
    sight = getattr(strategy, "sight", Sight.DRAW)
    record = record_of(player, apart(strategy, strategy.start(horizon, stream)), sight, contexts)
    (first, told), begin = record.steps, record.numbers(player)
    own = next((getattr(player, name) for name, held in record.held.items() if held is Stream), None)
    more: Any = {"note": len(contexts), "stream": own, "begins": lambda run: record.numbers(begun(run))}

    def make() -> Any:
        if role == "nature":
            return Nature(first, begin, sight=sight, hear=told, **more)
        return Forecaster(first, told, begin, size=record.atoms, needs=dict(enumerate(contexts)), **more)

    if begin.tobytes() not in record.rehearsed:
        rehearse(role, strategy, make(), copy.deepcopy(player), record)
        record.rehearsed.add(begin.tobytes())
    return make()


# ---------------------------------------------------------------- the record of an object


def _held(value: Any) -> Any:
    """An attribute by its value, `Stream`, or in words why it cannot be compiled."""
    if isinstance(value, Stream):
        return Stream
    entries, length = (value, len(value)) if type(value) is list else ([value], None)
    for each in entries:
        if not is_number(each):
            bits = " of more than 64 bits" if type(each) is int else ""
            return f"holds a {type(each).__module__}.{type(each).__qualname__}{bits}"
    kind = np.float64 if any(type(each) is float for each in entries) else np.int64
    return Field(kind, length) if entries else "is an empty list"


def attributes(thing: Any, other: Any) -> dict[str, Any]:
    """The attributes of an object, by name: `Field`, `Stream`, or why one cannot be compiled.

    `other` is another object that was begun in the same way: a list of both is refused.
    """
    cls: Any = type(thing)
    own, found = getattr(thing, "__dict__", {}), dict[str, Any]()
    if cls.__getattribute__ is not object.__getattribute__ or cls.__setattr__ is not object.__setattr__:
        raise InvalidParameter(f"{cls.__name__} has a __getattribute__ or __setattr__; expected none")
    seen = {id(value): "one of all runs" for value in getattr(other, "__dict__", {}).values()}
    for name in sorted(own.keys() | {name for each in cls.__mro__[:-1] for name in vars(each)}):
        static = inspect.getattr_static(cls, name, None)
        if hasattr(static, "__get__") and (name in own or not inspect.isfunction(static)):
            found[name] = "is a property, or hides a method"
        elif not hasattr(static, "__get__") and name[:2] != "__":
            value = getattr(thing, name)
            same = seen.setdefault(id(value), f"self.{name}") if type(value) is list else ""
            found[name] = _held(value) if same in ("", f"self.{name}") else f"is the same list as {same}"
    return found


def record_of(thing: Any, other: Any, sight: Sight, contexts: tuple[str, ...]) -> Record:
    """The record of an object; a new one where anything has changed of which its methods are made."""
    held, cls = attributes(thing, other), type(thing)
    kept = _kept((cls, sight, contexts, *held.items()))
    if not kept or any(how(*of) is not found for (how, *of), found in kept[0].looked.items()):
        kept[:] = [Record(cls, sight, contexts, held)]
    return kept[0]


@lru_cache(256)
def _kept(asked: Any) -> list[Record]:
    """A place for the last record of a class, for objects with such attributes."""
    return []


#: a round as methods see it; its context is in the note
Round: Any = namedtuple("Round", ("number", "forecast"))


class Record:
    """The attributes of an object as fields of a record, and its methods as they are read."""

    def __init__(self, cls: Any, sight: Sight, contexts: tuple[str, ...], held: dict[str, Any]) -> None:
        self.cls, self.contexts, self.held, self.atoms = cls, contexts, held, 1
        self.fields = {name: each for name, each in held.items() if isinstance(each, Field)}
        fields = [(n, e.kind, *[e.length] * (e.length is not None)) for n, e in self.fields.items()]
        self.dtype = np.dtype(fields or [("nothing", np.int64)])
        #: all that was looked up to read the methods, and what was found; beginnings that have been rehearsed
        self.looked, self.rehearsed = dict[Any, Any](), set[bytes]()
        #: the names of methods in compiled code, the methods, each after those that it calls, and what else has a name
        self.names, self.methods, self.space = dict[Any, str](), dict[str, Method](), dict[str, Any]()
        if list(held.values()).count(Stream) > 1:
            raise InvalidParameter(f"{cls.__name__} has several streams; expected one")
        self.says = hasattr(cls, "forecast")
        self.shown = ("number",) if self.says or sight < Sight.DRAW else ("number", "forecast")
        self.first = self._step("forecast", "law") if self.says else self._step("probability", "q")
        hears = hasattr(cls, "update") and sight >= Sight.HISTORY
        self.told = self._step("update", "told") if hears else ""

    def look(self, how: Any, *of: Any) -> Any:
        """Looks something up that is outside of the methods: where it is another thing, they are read again."""
        self.looked[how, *of] = found = how(*of)
        return found

    def _step(self, name: str, step: str) -> str:
        """The name of a method that a game calls."""
        if name in self.held:
            raise InvalidParameter(f"{self.cls.__name__}: {name} {self.held[name]}; expected a method")
        return self.read(self.look(inspect.getattr_static, self.cls, name), True, step).id

    def read(self, function: Any, own: bool, step: str = "") -> Any:
        """Reads a method or function, after what it calls, and returns its name; None within itself."""
        key = function, own, step
        if key not in self.names:
            self.names[key] = f".{len(self.names)}"
            self.methods[self.names[key]] = Method(self, function, self.names[key], own, step)
        name = self.names[key]
        return ast.Name(name, ast.Load()) if name in self.methods else None

    def put(self, name: str, value: Any) -> Any:
        """A name of compiled code for a value."""
        self.space[f".{name}"] = value
        return ast.Name(f".{name}", ast.Load())

    @cached_property
    def steps(self) -> tuple[Any, Any]:
        """The steps `say` or `move`, and `learn` or None."""
        space = self.space
        for name, method in self.methods.items():
            exec(compile(method.tree, inspect.getfile(method.function), "exec"), space)
            space[name].__defaults__ = method.defaults
            space[name] = njit(**HOW)(space[name])
        first, dtype = space[self.first], self.dtype
        told: Any = space.get(self.told)
        me = njit(**HOW)(lambda run: state(run).view(dtype)[0])

        def say(run: Any, number: int) -> Any:
            return first(run, me(run), Round(number, 0.0))

        def move(run: Any, size: int, forecast: float, number: int) -> Any:
            return first(run, me(run), Round(number, forecast))

        def learn(run: Any, place: int, forecast: float, outcome: int, number: int) -> int:
            told(run, me(run), forecast, outcome, Round(number, forecast))
            return 0

        try:
            steps = njit(SAY, **HOW)(say) if self.says else njit(MOVE, **HOW)(move)
            return steps, njit(LEARN, **HOW)(learn) if told else None
        except NumbaError as error:
            raise InvalidParameter(self._why(re.sub(r"\x1b\[[\d;]*m", "", str(error)))) from error

    def _why(self, said: str) -> str:
        """The words of numba, or ours in it, with the user's line, which is named before those that call it."""
        files = {inspect.getfile(method.function) for method in self.methods.values()}
        where = [line for file, line in re.findall(r'File "([^"]*)", line (\d+)', said) if file in files]
        label = f"{self.cls.__name__}{f', line {where[0]}' if where else ''}: "
        if ours := re.search("<<(.*)>>", said):
            return label + ours[1]
        lines = [each.strip() for each in said.splitlines() if each.strip() and "pipeline" not in each]
        return f"{label}it is not compiled: {lines[0]} …; expected operations on numbers"

    def numbers(self, thing: Any) -> Any:
        """The state of an object as numbers."""
        row = np.zeros(1, self.dtype)
        for name, each in self.fields.items():
            value = getattr(thing, name)
            if _held(value) not in (each, each._replace(kind=np.int64)):
                what = f"{self.cls.__name__}: self.{name} = {value!r:.60} is of another kind or length"
                raise InvalidParameter(f"{what}; expected numbers of 64 bits, the same in all runs")
            row[name] = value
        return row.view(np.float64)


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
        q.context = {kind: random.choice([0.0, 1.0, random.random()]) for kind in record.contexts}
        pick = random.random()
        said, again = (_round(role, each, copy.copy(q), pick) for each in sittings)
        if said == again == ENDED:
            return
        how = ""
        if said != again:
            how = f"comes to {said} in Python and {again} compiled"
        elif record.numbers(thing).tobytes() != made.state.tobytes():
            how = "keeps other numbers compiled"
        if how:
            what = f"{record.cls.__name__}, round {number} of a rehearsal: it {how}; expected the same"
            raise InvalidParameter(
                f"{what}, bit for bit: play it without oc.compiled, or so that nothing is rounded"
            )


def _round(role: str, sitting: Any, q: Question, pick: float) -> str:
    """Plays a round, and returns what the player stated as text; `ENDED` if it ended in an error."""
    try:
        if role == "forecaster":
            law = [(value + 0.0, weight) for value, weight in sitting.state_law(q)]
            q.place = int(pick * len(law))
            q.forecast, said = law[q.place][0], repr(law)
        else:
            sitting.reveal(q)
            said = repr(sitting.move(q))
        sitting.learn(q)
    except Exception:  # of any kind: the steps must come to an end there too
        return ENDED
    return said
