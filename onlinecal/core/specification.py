"""The common parts of forecasters and natures: facts, ranges of parameters, parts, and players in plain Python."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, cast

from onlinecal.core import validation
from onlinecal.core.errors import InvalidParameter, OnlinecalError, in_one_line
from onlinecal.core.expressions import check_expression, check_steps, depends_on_horizon
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.plain import (
    TRIED,
    Copier,
    Maker,
    changes,
    check_made,
    copies,
    fresh,
    known_parameters,
    lifted,
    no_options,
)
from onlinecal.core.strategy import build, every, make, memory_of, parameters, required, some, strategy_name
from onlinecal.core.streams import Stream

#: a function of a parameter's name and value that refuses what is not allowed
Check = Callable[[str, Any], Any]
#: a number in [0, 1]; a number of steps of a grid, or an expression in T
UNIT: Check = validation.probability
STEPS: Check = check_steps


@dataclass(frozen=True)
class Checked(validation.Named):
    """Base of frozen dataclasses of parameters, which are checked when one is made. Lists become tuples."""

    #: what is allowed of each parameter
    allowed: ClassVar[Mapping[str, Check]] = MappingProxyType({})
    #: raised when its numbers change: results are kept under it (tests/golden.py)
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        # An object is hashed by what is compared; the rest is its state.
        for field in fields(self):
            if field.compare and isinstance(value := getattr(self, field.name, None), list):
                object.__setattr__(self, field.name, tuple(value))
        for name, check in self.allowed.items():
            check(name, getattr(self, name))


@dataclass(frozen=True)
class Specification(Checked):
    """Base of the specifications; a subclass is a frozen dataclass of parameters with `start`."""

    #: "forecaster" or "nature"
    role: ClassVar[str]
    #: whether its play may depend on the horizon; this and the next two facts: onlinecal.core.strategy
    needs_horizon: ClassVar[bool | None] = None
    #: whether rounds may be resolved late and in any order
    safe_under_delay: ClassVar[bool | None] = None
    #: how the state of a run grows, at most: "O(m)"
    memory: ClassVar[str | None] = None
    #: how many bytes one of these takes, at most: "O(m)" is that many times the brackets
    unit_bytes: ClassVar[float] = 64.0
    #: whether forecasts are points in the simplex, and outcomes one of `classes`; else 0 or 1
    of_classes: ClassVar[Any] = False
    #: other words for parameters, in tables: word → parameter
    synonyms: ClassVar[Mapping[str, str]] = MappingProxyType({})
    #: how many outcomes there can be. Without a type, since it is a parameter of some
    classes = cast(Any, 2)

    def start(self, horizon: int, stream: Stream) -> Any:
        """Starts a player of one run, with fresh state and uniforms of its own for what it states at random."""
        raise TypeError(f"{type(self).__name__} has no method start(horizon, stream)")

    @property
    def length(self) -> int | None:
        """How many rounds it can play; None for any number."""
        return None

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The proved bounds; empty for nothing."""
        return ()


def tuned(*names: str) -> Any:
    """The fact `needs_horizon` of a strategy that depends on T by these parameters alone."""
    return property(lambda self: any(depends_on_horizon(getattr(self, name)) for name in names))


def allow(**checks: Check) -> Mapping[str, Check]:
    """Names each parameter with its check."""
    return MappingProxyType(checks)


def number(low: float, high: float) -> Check:
    """A number in [low, high]."""
    return partial(validation.number, "", least=low, most=high)


def above_zero(high: float) -> Check:
    """A number in (0, high]."""

    def check(name: str, value: Any) -> None:
        if validation.number("", name, value, 0.0, high) == 0.0:
            raise InvalidParameter(f"{name} = 0; expected a number above 0")

    return check


def whole(low: int, high: int) -> Check:
    """An integer from low to high."""
    return partial(validation.integer, "", least=low, most=high)


def expression(low: float, high: float) -> Check:
    """A number in [low, high], or an expression in T that is one at some T."""
    return partial(check_expression, low=low, high=high)


def word(*known: str) -> Check:
    """One of these words."""
    return partial(validation.choice, "", known=known)


def optional(check: Check) -> Check:
    """The same, or None."""
    return lambda name, value: None if value is None else check(name, value)


def list_of(name: str, values: Any, what: str, many: int | None = None, least: int = 1) -> tuple[Any, ...]:
    """Checks a list, which must have `many` entries, or at least `least`; returns it as a tuple."""
    good = isinstance(values, Sequence) and not isinstance(values, str)
    if not good or (len(values) != many if many is not None else len(values) < least):
        raise InvalidParameter(f"{name} = {values!r}; expected {many or 'a list of'} {what}")
    return tuple(values)


def several(check: Check, what: str, many: int | None = None) -> Check:
    """A list of `many` of them, or of at least one; `what` they are."""

    def each(name: str, values: Any) -> None:
        for k, value in enumerate(list_of(name, values, what, many)):
            check(f"{name}[{k}]", value)

    return each


def part(role: str) -> Check:
    """A specification of this role: a forecaster or a nature."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, Specification) or value.role != role:
            expected = f"expected a {role} (in a scenario: a table with a name)"
            raise InvalidParameter(f"{name} = {value!r}; {expected}")
        if value.of_classes:
            expected = f"expected a {role} of the outcomes 0 and 1"
            raise InvalidParameter(f"{name} = {value!r}, which is of several classes; {expected}")

    return check


def parts(role: str) -> Check:
    """A list of at least one of them."""
    return several(part(role), f"{role}s")


class Composition(Specification):
    """A strategy made of others, which are parameters or in lists that are: the facts follow from theirs."""

    @property
    def _parts(self) -> dict[str, Any]:
        """Where each part is, ``"of[0]"``, and the part."""
        held = dict(parameters(self))
        for name, value in parameters(self).items():
            held |= {f"{name}[{k}]": part for k, part in enumerate(value)} if isinstance(value, tuple) else {}
        return {at: part for at, part in held.items() if isinstance(part, Specification)}

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return some(part.needs_horizon for part in self._parts.values())

    @property
    def safe_under_delay(self) -> bool | None:  # type: ignore[override]
        return every(part.safe_under_delay for part in self._parts.values())

    @property
    def memory(self) -> str | None:  # type: ignore[override]
        return memory_of(self._parts)


def declared(fact: str, kind: Callable[[Any], Any] | None = None) -> Any:
    """A fact of the class of plain players: True, False or a text, or names as a set or tuple (`kind`)."""

    def told(plain: "OfPlain") -> Any:
        value = getattr(plain.origin, fact, None)
        if kind is None:
            return value if isinstance(value, bool | str) else None
        if isinstance(value, property):  # of a class: its objects have the names
            value = getattr(plain.player(TRIED, Stream(0, ("declared",), range(1))), fact)
        # What can be read once would be empty the second time; a set has another order in each process.
        listed = isinstance(value, Iterable) and not isinstance(value, str | Iterator)
        ordered = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        names = kind(ordered if listed else ())
        if not (listed or value is None) or not all(isinstance(name, str) for name in names):
            said = f"{plain.role} {plain.name!r} declares {fact} = {in_one_line(value)}"
            raise InvalidParameter(f"{said}; expected names, in a set or tuple")
        return names

    return property(told)


class OfPlain(Specification):
    """A specification that makes players in plain Python (`make`: see `lifted`), with the facts that they declare."""

    make: Callable[..., Any]
    name: str

    safe_under_delay = declared("safe_under_delay")
    memory = declared("memory")

    def __post_init__(self) -> None:
        missing = [key for key in required(self.make) if key not in ("horizon", "stream")]
        if missing:
            raise InvalidParameter(
                f"{self.role} {self.name!r} cannot be made without arguments: {self.make!r} needs "
                f"{', '.join(missing)}; expected defaults for all but horizon and stream"
            )

    def start(self, horizon: int, stream: Stream) -> Any:
        return self.player(horizon, stream)

    def player(self, horizon: int, stream: Stream | None = None) -> Any:
        """A fresh object, with copies of what can change: no run sees what another one has put there."""
        known = known_parameters(self.make)
        defaults = {
            name: p.default
            for name, p in known.items()
            if p.kind is not p.POSITIONAL_ONLY and p.default is not p.empty and changes(p.default)
        }
        own = defaults and copies(f"{self.role} {self.name!r}", defaults)
        told = {"horizon": horizon} | ({} if stream is None else {"stream": stream})
        return fresh(self.make, **own | {name: value for name, value in told.items() if name in known})

    @property
    def origin(self) -> Any:
        """The class of its players, or the object of which they are copies."""
        # A class of a user may have attributes of any name.
        if not isinstance(self.make, Maker | Copier):
            return self.make
        return (isinstance(self.make, Maker) and self.make.of) or self.make.origin

    @property
    def of_classes(self) -> bool:
        """Whether its class has a whole number as attribute or parameter `classes`."""
        return self._classes > 0

    @property
    def classes(self) -> int:
        """That number; else 2."""
        return self._classes or 2

    @property
    def _classes(self) -> int:
        stated: list[Any] = [getattr(self.origin, "classes", None), self.settings.get("classes")]
        return next((int(value) for value in stated if validation.is_whole(value)), 0)

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        """The declared fact, or else whether it is told the horizon."""
        told = getattr(self.origin, "needs_horizon", None)
        return told if isinstance(told, bool) else "horizon" in known_parameters(self.make)

    @property
    def settings(self) -> dict[str, Any]:
        """Its parameters with their values, also where those are defaults."""
        made = self.make if isinstance(self.make, Maker | Copier) else Maker(self.make)
        known = known_parameters(made.origin if callable(made.origin) else type(made.origin))
        return {key: p.default for key, p in known.items() if p.default is not p.empty} | made.given


S = TypeVar("S", bound=Specification)


def specified(
    base: type[S],
    plain: Callable[..., S],
    methods: Mapping[str, str],
    thing: Any,
    options: Mapping[str, Any],
    called: str | None,
    refuse: type[OnlinecalError] = InvalidParameter,
) -> S:
    """A specification with this base, of what is one, or by `plain` of what makes players with these methods."""
    role = base.role
    if isinstance(thing, type) and issubclass(thing, base):
        name = called or strategy_name(thing)
        return build(role, {name: thing}, name, options)
    if isinstance(thing, base):
        no_options(role, thing, options, called)
        return thing
    if isinstance(thing, partial) and isinstance(thing.func, type) and issubclass(thing.func, base):
        return make(role, thing, called or strategy_name(thing.func), **options)
    make_one, name, sample = lifted(role, thing, options, methods, called, refuse)
    if isinstance(sample, base):
        return sample
    check_made(role, called or name, sample, methods)
    return plain(make_one, name=name)
