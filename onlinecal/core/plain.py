"""Players of one run in plain Python: how a fresh one is made, and its name.

A forecaster is any class with `forecast()` and `update(forecast, outcome)`, a nature any class with `probability()`
and maybe `update(forecast, outcome)`. It may be given as the class or as a function that makes one. Either may have
parameters (`functools.partial`, or a table in a scenario). Every run gets a deep copy of an object and of
parameters. It gets copies of defaults and attributes of its class that can change, too.
"""

import copy
import dataclasses
import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar

from onlinecal.core.content import of_library
from onlinecal.core.errors import InvalidParameter, OnlinecalError, failure, in_one_line
from onlinecal.core.validation import check_names, is_number

#: a horizon at which a function is tried, to see what it makes
TRIED = 1000


@dataclass(frozen=True)
class Maker:
    """Calls a class or function with copies of its parameters, by name. `of` is the type of what a function makes."""

    version: ClassVar[int] = 1

    origin: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    of: type | None = dataclasses.field(default=None, metadata={"key": False})

    def __call__(self, **more: Any) -> Any:
        arguments, options = copy.deepcopy((self.arguments, dict(self.options)))
        return fresh(self.origin, *arguments, **options, **more)

    @property
    def __signature__(self) -> inspect.Signature:
        """The arguments that are still to be given."""
        signature = inspect.signature(functools.partial(self.origin, *self.arguments, **dict(self.options)))
        left = [p for p in signature.parameters.values() if p.name not in dict(self.options)]
        return signature.replace(parameters=left)

    @property
    def given(self) -> dict[str, Any]:
        """The parameters with their names."""
        known = known_parameters(self.origin)
        if not known:
            return dict(self.options)
        bound = inspect.signature(self.origin).bind_partial(*self.arguments, **dict(self.options)).arguments
        stars = {p.name for p in known.values() if p.kind is p.VAR_KEYWORD}
        plain = {key: value for key, value in bound.items() if key not in stars}
        return plain | {key: value for star in stars & bound.keys() for key, value in bound[star].items()}


@dataclass(frozen=True, eq=False)
class Copier:
    """Makes a fresh object by copying one. `origin` is a copy of the given object, which stays as it is."""

    version: ClassVar[int] = 1

    origin: Any

    def __call__(self) -> Any:
        return copy.deepcopy(self.origin)

    @property
    def given(self) -> dict[str, Any]:
        """Its fields, or the parameters that it keeps under their names, else the numbers and texts that it holds."""
        if dataclasses.is_dataclass(self.origin):
            return {f.name: getattr(self.origin, f.name) for f in dataclasses.fields(self.origin) if f.init}
        held = {key: value for key, value in getattr(self.origin, "__dict__", {}).items() if key[0] != "_"}
        named = [key for key in inspect.signature(type(self.origin)).parameters if key in held]
        if named:
            return {key: held[key] for key in named}
        return {
            key: value for key, value in held.items() if is_number(value) or isinstance(value, str | bool)
        }


def fresh(make: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Calls a class or function, and gives the object its own attributes; those of a class before its `__init__`."""
    if not isinstance(make, type) or type(make).__call__ is not type.__call__:
        thing = make(*arguments, **options)
        give_own(thing)
        return thing
    if not _shared(make):
        return make(*arguments, **options)
    # As the class does when it is called.
    new: Any = make.__new__
    thing = new(make) if new is object.__new__ else new(make, *arguments, **options)
    if isinstance(thing, make):
        give_own(thing)
        type(thing).__init__(thing, *arguments, **options)
    return thing


def give_own(thing: Any) -> None:
    """Gives an object copies of what can change among the attributes of its classes: all runs have the same classes."""
    cls, had = type(thing), getattr(thing, "__dict__", {})
    shared = {name: value for name, value in _shared(cls).items() if name not in had}
    own = shared and copies(f"class {cls.__name__}", shared)
    for name, value in own.items():
        if value is shared[name]:
            continue
        try:
            object.__setattr__(thing, name, value)
        except AttributeError:
            raise InvalidParameter(
                f"class {cls.__name__}: {name} = {in_one_line(value)} can change, and all runs share it, as objects "
                "with slots have no copies of it; expected it made in __init__, or a tuple or frozenset"
            ) from None


def copies(said: str, shared: dict[str, Any]) -> dict[str, Any]:
    """Copies, made at once: two names of one list stay so. What cannot change is the same."""
    return copied(f"{said}: {' or '.join(shared)}", shared, "it made in __init__")


def copied(said: str, thing: Any, expected: str) -> Any:
    """A copy of a thing; `said` begins the refusal where there can be none."""
    try:
        return copy.deepcopy(thing)
    except Exception as error:
        raise InvalidParameter(
            f"{said} cannot be copied, and each run needs its own: {failure(error)}; expected {expected}"
        ) from error


#: facts that the package reads from the class
_FACTS = {"needs", "reveals", "streams", "groups", "certifies"}


def _shared(cls: type) -> dict[str, Any]:
    """The attributes of a user's class and of its bases that may change, but for functions, classes and modules."""
    found: dict[str, Any] = {}
    for each in reversed(cls.__mro__[:-1]):
        own = {
            name: value
            for name, value in vars(each).items()
            # Of an abstract class `_abc_impl` is Python's.
            if name[:2] + name[-2:] != "____"
            and name not in _FACTS
            and name != "_abc_impl"
            and changes(value)
        }
        found = {name: value for name, value in found.items() if name not in vars(each)}
        if own and _of_a_user(each.__module__):
            found |= own
    return found


@functools.cache
def _of_a_user(module: str) -> bool:
    return module.partition(".")[0] != "onlinecal" and not of_library(module)


_FIXED = (
    object, bool, int, float, complex, str, bytes, type(None), frozenset, range, MappingProxyType, ModuleType,
)  # fmt: skip


def changes(value: Any) -> bool:
    """Whether a value may change: no number, text, error, function, class, module, or object without a state."""
    if type(value) in _FIXED or hasattr(value, "__get__") or isinstance(value, type | BaseException):
        return False
    if type(value) is tuple:
        return any(map(changes, value))
    # Code tells an object without attributes from others by `is`.
    return type(value).__base__ is not object or getattr(value, "__dict__", None) != {}


def lifted(
    role: str,
    thing: Any,
    options: Mapping[str, Any],
    methods: Mapping[str, str],
    called: str | None = None,
    refuse: type[OnlinecalError] = InvalidParameter,
) -> tuple[Any, str, Any]:
    """How objects with these methods (name → arguments) are made of a class, function, partial or object."""
    # Returns `make`, called without arguments or with `horizon`, a name, and a sample. The sample is a class, an
    # object, or a finished specification. `called` is its name in messages, `refuse` the error for anything else.
    has = " and ".join(f"{method}({arguments})" for method, arguments in methods.items())
    expected = f"expected a {role.capitalize()}, or a class with {has}"
    function, arguments = thing, ()
    if isinstance(thing, functools.partial):
        function, arguments, options = thing.func, thing.args, {**thing.keywords, **options}
    made = not (isinstance(function, type) or inspect.isroutine(function))
    missing = _missing(function, methods) if made or isinstance(function, type) else []
    if missing:
        own = [name for name in dir(function) if name[0] != "_" and not hasattr(str, name)]
        near = difflib.get_close_matches(missing[0], own, n=1)
        but = f": it has {near[0]}; is {missing[0]} meant?" if near else f"; {expected}"
        if near == missing[:1]:
            but = f": its {near[0]} is no method; {expected}"
        raise refuse(f"{called or in_one_line(thing)} is not a {role}{but}")
    if made:
        name = type(function).__name__
        no_options(role, function, options, called)
        return Copier(copied(f"{role} {(called or name)!r}", function, "its class")), name, function
    name = function.__name__
    make = _maker(role, called or name, function, arguments, options)
    if isinstance(function, type):
        return make if make.given else function, name, function
    try:
        sample = make(horizon=TRIED) if "horizon" in inspect.signature(make).parameters else make()
    except OnlinecalError:
        raise
    except Exception as error:
        raise InvalidParameter(f"{role} {(called or name)!r} cannot be made: {failure(error)}") from error
    return dataclasses.replace(make, of=type(sample)), name, sample


def no_options(role: str, thing: Any, options: Mapping[str, Any], called: str | None = None) -> None:
    """Refuses parameters for what has been made."""
    if options:
        raise InvalidParameter(
            f"{role} {(called or type(thing).__name__)!r} is an object that has been made and takes no parameter "
            f"{next(iter(options))!r}; expected parameters with its class"
        )


def check_made(role: str, name: str, sample: Any, methods: Mapping[str, str]) -> None:
    """Refuses what a function made that has not the methods."""
    missing = _missing(sample, methods)
    if missing:
        raise InvalidParameter(
            f"{role} {name!r} made {in_one_line(sample)}, which has no method {missing[0]}({methods[missing[0]]}); "
            "expected one"
        )


def required(made: Any) -> list[str]:
    """The parameters of a specification, or of anything that can be called, that have no default."""
    parameters = inspect.signature(made).parameters.values()
    return [
        p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]


def _missing(thing: Any, methods: Mapping[str, str]) -> list[str]:
    return [name for name in methods if not callable(getattr(thing, name, None))]


def _maker(
    role: str, name: str, function: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]
) -> Maker:
    """The function with its parameters; nothing must be left to be given but the horizon."""
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    # Copies: parameters stay as they are when the caller changes its own.
    given = copied(
        f"{role} {name!r} has parameters, which", (arguments, tuple(sorted(options.items()))), "others"
    )
    made = Maker(function, *given)
    try:
        signature = inspect.signature(function)
    except ValueError:  # made in C
        return made
    check_names(f"{role} {name!r}", function, options)
    try:
        signature.bind_partial(*arguments, **options)
    except TypeError as error:  # too many, or one given twice
        raise InvalidParameter(f"{role} {name!r} cannot be made: {error}") from None
    return made


def known_parameters(made: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(made).parameters
    except ValueError:  # made in C
        return {}
