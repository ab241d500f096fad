"""What forecasters and natures have in common: a specification is a frozen dataclass of parameters."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from onlinecal.core.content import content, digest, keyed_fields
from onlinecal.core.errors import (
    LIST,
    InvalidParameter,
    OnlinecalError,
    UnknownName,
    failure,
    shown,
    suggestion,
)
from onlinecal.core.plain import Copier, Maker
from onlinecal.core.validation import is_number, is_whole


def strategy_name(strategy: Any) -> str:
    """The name in scenarios and tables: the class in snake case, or the name that a plug-in was called by.

    >>> class CDLMinimiser: ...
    >>> strategy_name(CDLMinimiser)
    'cdl_minimiser'
    """
    called = getattr(strategy, "name", None)
    return called if isinstance(called, str) else "_".join(_words(strategy)).lower()


def parameters(strategy: Any) -> dict[str, Any]:
    """Names and values of a specification's parameters."""
    if not dataclasses.is_dataclass(strategy):
        return {}
    return {f.name: getattr(strategy, f.name) for f in dataclasses.fields(strategy) if f.init}


def strategy_key(strategy: Any) -> str:
    """Who plays, as text: ``bernoulli(q=0.5)``. Streams use it: players of one text face the same randomness.

    It is not what results are kept under, for it says nothing of code (see `onlinecal.core.content`). A strategy that
    reads a file adds the digest of what it read, its attribute `fingerprint`, and keeps the path out with the field
    metadata ``{"key": False}``; a parameter that was added later is not in the text where it is the default
    (``{"key": "unless default"}``).
    """
    shown = {field.name for field in keyed_fields(strategy)}
    values = [
        f"{name}={_text(value)}" for name, value in sorted(parameters(strategy).items()) if name in shown
    ]
    fingerprint = getattr(strategy, "fingerprint", None)
    if fingerprint is not None:
        values.append(f"sha256={fingerprint}")
    return f"{strategy_name(strategy)}({', '.join(values)})"


def strategy_label(strategy: Any) -> str:
    """A short name for people: the parameters only where they differ from the defaults, also in nested strategies.

    A strategy that is named by a parameter, as a lifted plug-in is, shows neither the name again nor what it calls, but
    what it calls that with.
    """
    fields = [f for f in dataclasses.fields(strategy) if f.init] if dataclasses.is_dataclass(strategy) else []
    changed = [f.name for f in fields if _differs(getattr(strategy, f.name), f.default)]
    if "name" in changed:
        changed = [key for key in changed if key != "name" and not callable(getattr(strategy, key))]
    made = getattr(strategy, "make", None)
    given = made.given if isinstance(made, Maker | Copier) else {}
    given |= {key: getattr(strategy, key) for key in changed}
    shown = ", ".join(f"{key}={_shown(value)}" for key, value in given.items())
    called = getattr(strategy, "name", None)
    name = called if isinstance(called, str) else _title(strategy)
    return f"{name} ({shown})" if shown else name


def title(made: Any) -> str:
    """What people call what a class or function makes: of a specification its class in words, else the name.

    >>> class CDLMinimiser:
    ...     def start(self, horizon, stream): ...
    >>> title(CDLMinimiser), title(len)
    ('CDL minimiser', 'len')
    """
    made = getattr(made, "func", made)  # of a partial
    if dataclasses.is_dataclass(made) or hasattr(made, "start"):
        return _title(made)
    return getattr(made, "__name__", None) or type(made).__name__


def _title(strategy: Any) -> str:
    # An acronym stays one: CDL minimiser.
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in _words(strategy))


def _differs(value: Any, default: Any) -> bool:
    try:
        return bool(value != default)
    except ValueError:  # of arrays, number by number
        return True


def registry(classes: Iterable[type]) -> dict[str, type]:
    """Name → class, from an explicit list of exports."""
    return {strategy_name(cls): cls for cls in classes}


def named_table(
    what: str, spec: Any, expected: str = "a name or a table with a name"
) -> tuple[str, dict[str, Any]]:
    """Name and options of what a scenario gives by its name, or by a table with a name; `what` begins the message.

    Raises
    ------
    InvalidParameter
        It is neither.
    """
    if isinstance(spec, str):
        return spec, {}
    if isinstance(spec, Mapping) and isinstance(spec.get("name"), str):
        return spec["name"], {key: value for key, value in spec.items() if key != "name"}
    raise InvalidParameter(f"{what} {spec!r}; expected {expected}")


def build(kind: str, known: Mapping[str, Any], name: str, options: Mapping[str, Any]) -> Any:
    """The specification called `name` with these parameters.

    Raises
    ------
    UnknownName
        No such name.
    InvalidParameter
        A parameter that it does not have, lacks, or refuses.
    """
    if name not in known:
        raise UnknownName.of(kind, name, known, LIST)
    cls = known[name]
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init} if dataclasses.is_dataclass(cls) else {}
    for key in options:
        if key not in fields:
            raise InvalidParameter(f"{kind} {name!r} has no parameter {key!r}{suggestion(key, fields)}")
    return make(kind, cls, name, **{k: tuple(v) if isinstance(v, list) else v for k, v in options.items()})


def make(kind: str, cls: Any, name: str | None = None, **options: Any) -> Any:
    """The specification of this class; InvalidParameter where a parameter is refused, or missing without a default."""
    for key in required(cls):
        if key not in options:
            raise InvalidParameter(f"{kind} {name or strategy_name(cls)!r} needs the parameter {key!r}")
    try:
        return cls(**options)
    except OnlinecalError:
        raise
    except Exception as error:  # it may be anybody's class
        raise InvalidParameter(
            f"{kind} {name or strategy_name(cls)!r} cannot be made: {failure(error)}"
        ) from error


def required(cls: Any) -> list[str]:
    """The parameters of a specification, or of anything that can be called, that have no default."""
    named = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )
    return [
        p.name
        for p in inspect.signature(cls).parameters.values()
        if p.kind in named and p.default is inspect.Parameter.empty
    ]


def check_probability(name: str, value: Any) -> None:
    """Refuse a parameter that is not a number in [0, 1]."""
    check_number(name, value, 0.0, 1.0)


def check_number(name: str, value: Any, low: float, high: float) -> None:
    """Refuse a parameter that is not a number in [low, high]."""
    if not is_number(value) or not low <= value <= high:
        raise InvalidParameter(f"{name} = {shown(value)}; expected a number in [{low:g}, {high:g}]")


def check_whole(name: str, value: Any, low: int, high: int) -> None:
    """Refuse a parameter that is not an integer from low to high."""
    if not is_whole(value) or not low <= value <= high:
        raise InvalidParameter(f"{name} = {shown(value)}; expected an integer from {low} to {_power(high)}")


def _power(number: int) -> str:
    """10^6 for a million."""
    zeros = len(str(number)) - 1
    return f"10^{zeros}" if zeros > 4 and number == 10**zeros else str(number)


def _words(strategy: Any) -> list[str]:
    name = (strategy if isinstance(strategy, type) else type(strategy)).__name__
    return re.split(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", name)


def _shown(value: Any) -> str:
    """A parameter in a label."""
    if dataclasses.is_dataclass(value):
        return strategy_label(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return f"{value:g}" if is_number(value) and not is_whole(value) else _text(value)


def _text(value: Any) -> str:
    """A parameter in a key."""
    if isinstance(value, Maker | Copier):
        origin = value.origin if callable(value.origin) else type(value.origin)
        given = ", ".join(f"{key}={_text(each)}" for key, each in sorted(value.given.items()))
        return f"{origin.__module__}:{origin.__qualname__}({given})"
    if dataclasses.is_dataclass(value):
        return strategy_key(value)
    if callable(value):
        return f"{value.__module__}:{value.__qualname__}"
    if is_number(value):  # of Python or of NumPy, whole or not: q = 1 and q = 1.0 are one strategy
        whole = isinstance(value, int) or (math.isfinite(value) and value == int(value))
        return str(int(value)) if whole else json.dumps(float(value))
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    try:
        return json.dumps(value)
    except (TypeError, ValueError):  # of a plain plug-in, which may have any
        return f"{type(value).__name__} {digest(content(value))[:8]}"
