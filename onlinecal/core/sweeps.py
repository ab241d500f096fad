"""Tables of parameters in which some have several values: every combination, each made when it is asked for.

A list gives several values of a parameter that takes one, and one value of a parameter that takes lists. The type
of the parameter decides. ``{each = […]}`` is several values of any parameter.
"""

import dataclasses
import inspect
import itertools
import math
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from functools import cached_property
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from onlinecal.core.errors import InvalidParameter, suggestion
from onlinecal.core.strategy import strategy_label
from onlinecal.core.validation import choice, integer, is_number, is_whole

#: characters of a label, and of a value in one, at most where that is possible; longer values are numbered
WIDTH, VALUE = 60, 30
#: combinations, and values of one parameter, at most
LARGEST = MOST = 1_000_000
#: the keys of which one at least tells a range
ENDS = ("from", "to", "steps", "step", "spacing")
#: significant digits of what is not whole: the decimal number that was meant, 0.3 and not 0.30000000000000004
DIGITS = 15

#: keys of a table of a strategy that are no parameters
RESERVED = ("name", "label", "longest")


class Kind(NamedTuple):
    """The values that a parameter takes: whether a list or a table is one of them, whether numbers are integers.

    `role` is the kind of thing that a table with a name gives; "" for that of the table around it.
    """

    list: bool = False
    table: bool = False
    whole: bool = False
    role: str = ""


#: of a parameter without a type: whatever is given is its value
ANYTHING = Kind(list=True, table=True)


class Thing(NamedTuple):
    """A strategy, measure or task that a table names: its name in words, and the kinds of its parameters."""

    title: str
    parameters: Mapping[str, Kind]


#: role and table → what it stands for
Find = Callable[[str, Mapping[str, Any]], Thing]


class Case(NamedTuple):
    """A table with single values, or a value in one; and the chosen values in words."""

    value: Any
    text: str = ""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """The combinations of a table; the values of its last parameter with several change first."""

    title: str
    #: the parameters that are given once, in words
    fixed: str
    #: the values of each parameter
    choices: Mapping[str, Sequence[Case]]

    @property
    def several(self) -> list[str]:
        """The parameters with several values, perhaps of a part."""
        return [key for key, cases in self.choices.items() if cases[0].text]

    def __post_init__(self) -> None:
        if (size := math.prod(map(len, self.choices.values()))) > LARGEST:
            raise InvalidParameter(f"{size:.3g} combinations of values; expected at most 10^6")

    def __len__(self) -> int:
        return math.prod(map(len, self.choices.values()))

    def __iter__(self) -> Iterator[Case]:
        for chosen in itertools.product(*self.choices.values()):
            table = {key: case.value for key, case in zip(self.choices, chosen, strict=True)}
            yield Case(table, ", ".join(case.text for case in chosen if case.text))

    def label(self, case: Case, given: str | None = None) -> str:
        """A label of at most `WIDTH` characters if possible: the given one, or the title, and the chosen values."""
        prefix = self.prefix if given is None else given
        return f"{prefix}, {case.text}" if case.text else prefix

    @cached_property
    def prefix(self) -> str:
        """The title, with the other parameters where the label of every combination has room for them."""
        full = f"{self.title} ({self.fixed})" if self.fixed else self.title
        longest = sum(2 + max(len(case.text) for case in self.choices[key]) for key in self.several)
        return full if len(full) + longest <= WIDTH else self.title


def sweep(role: str, table: Mapping[str, Any], find: Find) -> Sweep:
    """The combinations of a table with a name; `find` says what such tables stand for.

    A parameter has a value, values (maybe of ``{each: […]}``), a range, or a table with a name, which is swept too.
    """
    try:
        return _sweep(role, table, find)
    except InvalidParameter as error:
        where = f"{role}{' ' + repr(table['name']) if table.get('name') else ''}: "
        raise InvalidParameter(f"{where}{str(error).removeprefix(where)}") from None


def _sweep(role: str, table: Mapping[str, Any], find: Find, path: str = "") -> Sweep:
    """`path` leads to a table in another: ``"of."``."""
    thing = find(role, table)
    choices = {
        key: [Case(value)]
        if key in RESERVED and not path
        else _cases(role, value, thing.parameters.get(key, ANYTHING), f"{path}{key}", find)
        for key, value in table.items()
    }
    return Sweep(thing.title, _fixed(role, table, thing, find), choices)


def kinds(made: Any) -> dict[str, Kind]:
    """Parameter → kind, of a class or function: by its annotation, or else its default."""
    made = made.func if hasattr(made, "func") and hasattr(made, "keywords") else made
    try:
        parameters = inspect.signature(made).parameters.values()
    except (TypeError, ValueError):  # made in C
        return {}
    annotated = made
    if isinstance(made, type) and not dataclasses.is_dataclass(made):
        annotated = vars(made).get("__init__", made)
    try:
        hints = typing.get_type_hints(annotated)
    except Exception:  # names that are there for type checkers alone
        hints = {}
    return {
        p.name: _kind(hints.get(p.name, Any), p.default)
        for p in parameters
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    }


def _kind(annotation: Any, default: Any) -> Kind:
    parts = list(_parts(annotation))
    if Any in parts and default not in (inspect.Parameter.empty, None):
        parts = [type(default)]
    if Any in parts:
        return ANYTHING
    table = [issubclass(part, Mapping) for part in parts]
    lists = [issubclass(part, Iterable) and not issubclass(part, str | bytes) for part in parts]
    several = any(is_list and not is_table for is_list, is_table in zip(lists, table, strict=True))
    return Kind(list=several, table=any(table), whole=int in parts and float not in parts)


def _parts(annotation: Any) -> Iterator[Any]:
    """The classes of which it may be one; `Any` for what can be anything."""
    origin = typing.get_origin(annotation) or annotation
    if origin in (typing.Union, types.UnionType):
        for part in typing.get_args(annotation):
            yield from _parts(part)
    elif hasattr(origin, "__value__"):  # of the statement ``type``, as NumPy's types are from 2.5 on
        yield from _parts(origin.__value__)
    elif origin is typing.Annotated:
        yield from _parts(annotation.__origin__)
    elif origin is typing.Literal:
        yield from map(type, typing.get_args(annotation))
    else:
        yield origin if isinstance(origin, type) and origin is not object else Any


def _cases(role: str, value: Any, kind: Kind, name: str, find: Find) -> list[Case]:
    """The values of a parameter."""
    if _has_name(value):
        return list(_sweep(kind.role or role, value, find, f"{name}."))
    if isinstance(value, list | tuple) and kind.list:
        items = {
            str(i): _cases(role, item, kind, f"{name}.{i}", find) if _has_name(item) else [Case(item)]
            for i, item in enumerate(value)
        }
        return [Case(list(case.value.values()), case.text) for case in Sweep("", "", items)]
    several = _several(value, kind)
    if several is None:
        return [Case(value)]
    if not isinstance(several, list | tuple | range):
        raise InvalidParameter(f"{name} = {dict(value)!r}; expected each = a list of values, or a range")
    values = list(_values(kind.role or role, several, kind, name, find))
    texts = _texts(name, values, kind.role or role, find)
    return [Case(each, f"{name} = {text}") for each, text in zip(values, texts, strict=True)]


def _several(value: Any, kind: Kind) -> Any:
    """The values among which ranges may stand; None for what is one value."""
    if isinstance(value, Mapping):
        each, one = value.keys() == {"each"}, kind.table or not _is_range(value)
    else:
        each, one = False, kind.list or not isinstance(value, list | tuple | range | np.ndarray)
    if one and not each:
        return None
    value = value["each"] if each else value
    return [value] if _is_range(value) else value.tolist() if isinstance(value, np.ndarray) else value


def _values(role: str, given: Iterable[Any], kind: Kind, name: str, find: Find) -> Iterator[Any]:
    """One after the other, those of ranges and of tables that are swept themselves too."""
    for value in given:
        if _is_range(value) and not kind.table:
            yield from ranged(name, value, whole=kind.whole)
        elif _has_name(value):
            yield from (case.value for case in _sweep(role, value, find))
        else:
            yield value


def _texts(name: str, values: Sequence[Any], role: str, find: Find) -> tuple[str, ...]:
    if not values:
        raise InvalidParameter(f"{name} is an empty list; expected at least one value")
    if len(values) > MOST:
        raise InvalidParameter(f"{name} has {len(values):,} values; expected at most {MOST:,}")
    full = [_shown(value, role, find) for value in values]
    seen: set[str] = set()
    for text in full:
        if text in seen:
            raise InvalidParameter(f"{name} = {text} is given twice; expected each value once")
        seen.add(text)
    short = [PurePath(text).name if isinstance(v, str) and "/" in text and len(text) > VALUE else text
             for v, text in zip(values, full, strict=True)]  # fmt: skip
    if len(set(short)) < len(short):
        short = full
    # Long values are numbered; the names of strategies are kept, for a number would say too little.
    return tuple(
        f"#{i}" if len(text) > VALUE and not (_has_name(value) or dataclasses.is_dataclass(value)) else text
        for i, (value, text) in enumerate(zip(values, short, strict=True), 1)
    )


def _fixed(role: str, table: Mapping[str, Any], thing: Thing, find: Find) -> str:
    """The parameters of a table that have one value, as strategies write them: ``of=forecast hedging, m=10``."""
    known = {key: thing.parameters.get(key, ANYTHING) for key in table if key not in RESERVED}
    return ", ".join(
        f"{key}={_shown(table[key], kind.role or role, find, given=True)}"
        for key, kind in known.items()
        if _several(table[key], kind) is None
    )


def _shown(value: Any, role: str, find: Find, given: bool = False) -> str:
    """A value in a label: one that was chosen, or one that is `given` for all combinations."""
    if _has_name(value):
        thing = find(role, value)
        inner = _fixed(role, value, thing, find)
        return f"{thing.title} ({inner})" if inner else thing.title
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return strategy_label(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_shown(item, role, find, given) for item in value) + "]"
    if isinstance(value, str):
        return f'"{value}"' if given else value
    if is_number(value):
        short = f"{value:g}"
        return short if given or float(short) == value else str(value)
    return str(value) if given else str(value).lower() if isinstance(value, bool) else str(value)


def _has_name(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str)


def _is_range(value: Any) -> bool:
    return isinstance(value, Mapping) and not value.keys().isdisjoint(ENDS) and not _has_name(value)


def ranged(name: str, spec: Mapping[str, Any], *, whole: bool = False) -> list[int | float]:
    """The numbers of a range, ascending, computed in decimal numbers; rounded to integers, each once, if `whole`.

    >>> ranged("q", {"from": 0.1, "to": 0.5, "steps": 5})
    [0.1, 0.2, 0.3, 0.4, 0.5]
    >>> ranged("m", {"from": 10, "to": 1000, "steps": 3, "spacing": "log"})
    [10, 100, 1000]
    """
    said = f"{name} = {dict(spec)!r}"
    log = check_range(name, spec, ENDS, whole)
    if ("steps" in spec) == ("step" in spec):
        raise InvalidParameter(f"{said}; expected either steps (how many) or step (how far apart)")
    low, high = _exact(spec["from"]), _exact(spec["to"])
    if low > high:
        raise InvalidParameter(f"{said}: from is above to; expected from ≤ to")
    if log and "step" in spec:
        raise InvalidParameter(f"{said}: expected steps with spacing = 'log'")
    with localcontext() as context:
        context.prec = 40
        values = _spaced(said, spec, low, high, log)
        if whole:
            values = list(dict.fromkeys(value.to_integral_value() for value in values))
            if len(values) < spec.get("steps", 0) and high - low + 1 < spec["steps"]:
                there = f"there are {int(high - low) + 1} whole numbers"
                raise InvalidParameter(f"{said}: {there}, fewer than steps = {spec['steps']}")
        else:
            context.prec = DIGITS
            values = [value if value in (low, high) else +value for value in values]
    given = [spec[key] for key in ("from", "to", "step") if key in spec]
    as_whole = whole or (all(map(is_whole, given)) and all(value == int(value) for value in values))
    return [int(value) if as_whole else float(value) for value in values]


def check_range(name: str, spec: Mapping[str, Any], keys: Sequence[str], whole: bool) -> bool:
    """Refuse a range that has other keys or no ends; whether it is spaced in the logarithm."""
    said = f"{name} = {dict(spec)!r}"
    for key in spec:
        if key not in keys:
            raise InvalidParameter(f"{said}: a range has no {key!r}{suggestion(str(key), keys)}")
    for key in ("from", "to", *({"step"} & spec.keys())):
        if key not in spec:
            raise InvalidParameter(f"{said}: a range needs {key!r}")
        value = spec[key]
        if not (is_number(value) and math.isfinite(value)):
            raise InvalidParameter(f"{said}: {key} = {value!r}; expected a finite number")
        if whole and value != int(value):
            raise InvalidParameter(f"{said}: {key} = {value!r}; expected a whole number, as {name} is one")
    spacing = choice(said, "spacing", spec.get("spacing", "linear"), ("linear", "log"))
    if spacing == "log" and spec["from"] <= 0:
        raise InvalidParameter(f"{said}: expected from > 0 with spacing = 'log'")
    return bool(spacing == "log")


def _spaced(said: str, spec: Mapping[str, Any], low: Decimal, high: Decimal, log: bool) -> list[Decimal]:
    if "step" in spec:
        step = _exact(spec["step"])
        if step <= 0:
            raise InvalidParameter(f"{said}: step = {spec['step']!r}; expected a number above 0")
        count = (high - low) / step
        if count >= MOST:
            raise InvalidParameter(f"{said}: {count:.3g} values; expected at most {MOST:,}")
        return [low + i * step for i in range(int(count) + 1)]
    steps = integer(said, "steps", spec["steps"], 2, MOST)
    if low == high:
        raise InvalidParameter(f"{said}: from and to are the same; expected from < to")
    last = steps - 1
    if log:
        ratio = (high / low).ln() / last
        inner = [low * (ratio * i).exp() for i in range(1, last)]
    else:
        inner = [low + (high - low) * i / last for i in range(1, last)]
    return [low, *inner, high]


def _exact(number: Any) -> Decimal:
    """The decimal number that was written."""
    return Decimal(int(number)) if is_whole(number) else Decimal(repr(float(number)))
