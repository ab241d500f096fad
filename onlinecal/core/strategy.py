"""Specifications of forecasters and natures: frozen dataclasses of parameters, their names, and facts as class data.

Facts are what strategies state of themselves (docs/writing.md); `onlinecal.checks.facts` measures them. None stands for
"does not say".
"""

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from onlinecal.core.content import content, digest, keyed_fields
from onlinecal.core.errors import LIST, InvalidParameter, OnlinecalError, failure, meant
from onlinecal.core.expressions import value_at
from onlinecal.core.plain import Copier, Maker
from onlinecal.core.plain import required as required
from onlinecal.core.validation import check_names, is_number, is_whole


def strategy_name(strategy: Any) -> str:
    """The name in scenarios and tables: the class in snake case, or the name of a plug-in.

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
    fields = (f.name for f in dataclasses.fields(strategy) if f.init)
    # A plain class has no attribute where a field has a `default_factory`.
    return {name: getattr(strategy, name) for name in fields if hasattr(strategy, name)}


def strategy_key(strategy: Any) -> str:
    """The player as text: ``bernoulli(q=0.5)``, with the digest of a file that it reads, its `fingerprint`."""
    # Players of one text face the same randomness. Which parameters are in it: `keyed_fields`.
    keyed = {field.name for field in keyed_fields(strategy)}
    values = [f"{key}={_text(value)}" for key, value in sorted(parameters(strategy).items()) if key in keyed]
    fingerprint = getattr(strategy, "fingerprint", None)
    if fingerprint is not None:
        values.append(f"sha256={fingerprint}")
    return f"{strategy_name(strategy)}({', '.join(values)})"


def strategy_label(strategy: Any) -> str:
    """A short name for people: parameters that differ from the defaults; of a plug-in, those that it is called with."""
    fields = [f for f in dataclasses.fields(strategy) if f.init] if dataclasses.is_dataclass(strategy) else []
    changed = [f.name for f in fields if _differs(getattr(strategy, f.name), _default(f))]
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
    """The usual name of a thing that is made: a specification's class in words, else the name.

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


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


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
    """Name and options of a name, or of a table with a name; `what` begins the refusal."""
    if isinstance(spec, str):
        return spec, {}
    if isinstance(spec, Mapping) and isinstance(spec.get("name"), str):
        return spec["name"], {key: value for key, value in spec.items() if key != "name"}
    raise InvalidParameter(f"{what} {spec!r}; expected {expected}")


def build(kind: str, known: Mapping[str, Any], name: str, options: Mapping[str, Any]) -> Any:
    """The specification called `name` with these parameters, none of which it may lack or refuse."""
    cls = known[meant(kind, name, known, LIST)]
    synonyms = getattr(cls, "synonyms", {})
    for key, own in synonyms.items():
        if key in options and own in options:
            raise InvalidParameter(
                f"{kind} {name!r} has {key!r} and {own!r}; expected one, as they are the same"
            )
    options = {synonyms.get(key, key): value for key, value in options.items()}
    check_names(f"{kind} {name!r}", cls, options)
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
        if "key" not in vars(value):  # kept with it: where it is sent to, its files may not lie, or differ
            origin = value.origin if callable(value.origin) else type(value.origin)
            given = ", ".join(f"{key}={_text(each)}" for key, each in sorted(value.given.items()))
            vars(value)["key"] = f"{origin.__module__}:{origin.__qualname__}({given})"
        return str(vars(value)["key"])
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


#: names of facts that are true or false, and of all, as they are listed
TRUTHS = ("deterministic", "needs_horizon", "safe_under_delay")
FACTS = (*TRUTHS, "memory")

_GROWTH = re.compile(r"O\((.+)\)")
#: a parameter in a growth, maybe of a part: ``m``, ``of.m``, ``natures[1].cells``
_PARAMETER = re.compile(
    r"(?<![\w.])(?!(?:t|T|sqrt|log|ceil|floor|min|max)\b)[A-Za-z_]\w*(?:\[\d+\]|\.[A-Za-z_]\w*)*"
)


def some(facts: Iterable[bool | None]) -> bool | None:
    """Whether one of the facts is true: None where that hangs on one that is not said.

    >>> some([False, None, True]), some([False, None])
    (True, None)
    """
    known = set(facts)
    return True if True in known else None if None in known else False


def every(facts: Iterable[bool | None]) -> bool | None:
    """Whether all are true: None where that hangs on one that is not said.

    >>> every([True, None, False]), every([True, None])
    (False, None)
    """
    known = set(facts)
    return False if False in known else None if None in known else True


def classes_of(strategy: Any) -> int:
    """The number of classes of which a strategy is; 0 for one of outcomes 0 and 1."""
    return strategy.classes if getattr(strategy, "of_classes", False) else 0


def counts_open(strategy: Any) -> bool:
    """Whether what it states may depend on which questions are open: it declares so, or one of its parts does."""
    if getattr(strategy, "counts_open", False) is True:
        return True
    return any(counts_open(part) for part in _parts(strategy))


def memory_of(parts: Mapping[str, Any]) -> str | None:
    """The growth of a strategy that keeps nothing but the states of its parts; a path leads to each part.

    >>> from onlinecal.forecasters import Constant, ForecastHedging
    >>> memory_of({"of[0]": Constant(), "of[1]": ForecastHedging()})
    'O(of[1].m)'
    """
    terms = []
    for path, part in parts.items():
        stated = part.memory
        if stated is None:
            return None
        terms.append(_PARAMETER.sub(rf"{path}.\g<0>", _inside(stated)))
    grow = list(dict.fromkeys(term for term in terms if term != "1"))
    return f"O({' + '.join(grow) or '1'})"


def memory_at(strategy: Any, rounds: int, horizon: int) -> float:
    """The value of the growth that a strategy states, after `rounds` rounds of a game of this horizon."""

    def parameter(found: re.Match[str]) -> str:
        value = strategy
        for part in re.findall(r"\w+", found[0]):
            settings = getattr(value, "settings", {})  # of what is made of somebody's plain class
            value = value[int(part)] if part.isdigit() else settings.get(part) or getattr(value, part)
        return repr(float(value) if is_number(value) else value_at(value, horizon))

    text = _inside(strategy.memory)
    try:
        text = _PARAMETER.sub(parameter, text)
        return value_at(re.sub(r"\bt\b", str(rounds), text), horizon)
    except (AttributeError, IndexError, TypeError) as error:
        raise InvalidParameter(f"memory = {strategy.memory!r}: {error}") from None


def bytes_at(strategy: Any, rounds: int, horizon: int) -> float:
    """About how many bytes the state of a run takes at most: `memory` times the largest `unit_bytes` of its parts."""
    if getattr(strategy, "memory", None) is None:
        return 0.0
    return memory_at(strategy, rounds, horizon) * _unit(strategy)


def _unit(strategy: Any) -> float:
    parts = (_unit(part) for part in _parts(strategy) if hasattr(part, "unit_bytes"))
    return max(float(strategy.unit_bytes), *parts, 0.0)


def _parts(strategy: Any) -> list[Any]:
    """The strategies that it is made of."""
    held = parameters(strategy).values()
    every = [each for value in held for each in (value if isinstance(value, tuple) else (value,))]
    return [part for part in every if dataclasses.is_dataclass(part)]


def check_facts(strategy: Any) -> str:
    """Describes faults in the form of the facts that a strategy states, in words; "" if nothing is."""
    for name in TRUTHS:
        fact = getattr(strategy, name, None)
        if fact is not None and not isinstance(fact, bool):
            return f"{name} = {fact!r}; expected True, False, or None for 'does not say'"
    if getattr(strategy, "memory", None) is not None:
        try:
            memory_at(strategy, 1000, 1000)
        except InvalidParameter as error:
            return str(error)
    return ""


def _inside(growth: Any) -> str:
    found = _GROWTH.fullmatch(growth) if isinstance(growth, str) else None
    if found is None:
        raise InvalidParameter(
            f"memory = {growth!r}; expected 'O(…)' of t, T and parameters, such as 'O(1)', 'O(m)' or 'O(t)'"
        )
    return found[1]
