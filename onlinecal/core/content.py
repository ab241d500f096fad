"""The content of what is played, as plain data: parameters, versions of built-in code, the source of other code.

Two things of the same content give the same numbers.
"""

from __future__ import annotations

import copyreg
import dataclasses
import enum
import functools
import hashlib
import inspect
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import onlinecal
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.sources import namers, of_library, of_python, sources


def content(thing: Any) -> Any:
    """The content of a strategy, a task, a response, a function, or a value of a parameter; fit for JSON.

    A class or function may name what else it depends on in an attribute `fingerprint`. The field metadata
    ``{"key": False}`` leaves a parameter out, and ``{"key": "unless default"}`` one that was added later.

    >>> from onlinecal.natures import Bernoulli
    >>> content(Bernoulli(0.25))
    {'class': 'Bernoulli', 'version': 1, 'parameters': {'q': 0.25}}
    """
    return _content(thing, ())


def keyed_fields(thing: Any) -> list[dataclasses.Field[Any]]:
    """The fields of a dataclass that tell one from another, by their metadata `key`; see `content`."""

    def counts(field: dataclasses.Field[Any]) -> bool:
        key = field.metadata.get("key", True)
        return bool(key) and not (key == "unless default" and getattr(thing, field.name) == field.default)

    return list(filter(counts, dataclasses.fields(thing)))


def digest(data: Any) -> str:
    """The key of a content."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, allow_nan=False).encode()).hexdigest()[:32]


def differences(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys that lead to the differences of two contents.

    >>> list(differences({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3, "d": 4}}))
    [('a', 'c'), ('a', 'd')]
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key), new.get(key), (*path, key))
    elif old != new:
        yield path


def _content(thing: Any, above: tuple[Any, ...]) -> Any:
    """`above` is what this is a part of: a thing that holds itself is not followed again."""
    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or type(thing) in (bool, int, str):
        return thing
    if isinstance(thing, float):
        if not math.isfinite(thing):
            return {"float": str(thing)}
        return int(thing) if thing.is_integer() else float(thing)  # q = 1 and q = 1.0 are one strategy
    if type(thing) is bytes:  # which pickling would give as itself; dates are kept in them, too
        return {"bytes": hashlib.sha256(thing).hexdigest()[:16]}
    if any(thing is each for each in above):
        return {"above": [thing is each for each in above].index(True)}
    above = (*above, thing)
    if isinstance(thing, enum.Enum):
        return _code(type(thing), above) | {"member": thing.name}
    if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        held = hashlib.sha256(thing.tobytes()).hexdigest()[:16]
        return {"array": held, "dtype": str(thing.dtype), "shape": list(thing.shape)}
    if isinstance(thing, list | tuple):
        return [_content(item, above) for item in thing]
    if isinstance(thing, set | frozenset):
        return {"set": sorted((_content(item, above) for item in thing), key=digest)}
    if isinstance(thing, Mapping):
        items = ([_content(key, above), _content(value, above)] for key, value in thing.items())
        return {"mapping": sorted(items, key=digest)}
    if isinstance(thing, functools.partial):
        return {"partial": [_content(part, above) for part in (thing.func, thing.args, thing.keywords)]}
    if inspect.ismethod(thing):
        return {"method": [_content(part, above) for part in (thing.__func__, thing.__self__)]}
    if inspect.ismodule(thing):
        name = thing.__name__
        own = not of_library(name) and name.partition(".")[0] != "onlinecal"
        return {"module": name, **({"source": sources(thing)} if own else {})}
    if isinstance(thing, type) or inspect.isroutine(thing):
        return _code(thing, above) | _named(thing)
    return _code(type(thing), above) | _state(thing, above) | _named(type(thing)) | _named(thing)


def _named(thing: Any) -> dict[str, Any]:
    """The source of the modules under which it was named, beside the one that made it."""
    found: dict[str, str] = {}
    for module in namers(thing):
        if module.__name__ != getattr(thing, "__module__", None) and not of_library(module.__name__):
            found |= sources(module)
    return {"named": {"source": found}} if found else {}


def _state(thing: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    """The parameters of a dataclass; of any other object, the state that pickling keeps."""
    # A subclass of a dataclass that is not one itself may keep its state elsewhere than in fields.
    if "__dataclass_fields__" in vars(type(thing)):
        fields = [f for f in keyed_fields(thing) if f.init]
        state = {"parameters": {f.name: _content(getattr(thing, f.name), above) for f in fields}}
    else:
        try:
            reduce = copyreg.dispatch_table.get(type(thing))
            kept = thing.__reduce_ex__(4) if reduce is None else reduce(thing)
        except TypeError as error:
            raise InvalidParameter(
                f"what {thing!r} holds cannot be told ({error}), so results cannot be kept under it"
            ) from None
        parts = kept if isinstance(kept, str) else [p if i < 3 else list(p or ()) for i, p in enumerate(kept)]
        state = {"state": _content(parts, above)}
    mark = getattr(thing, "fingerprint", None)
    return state if mark is None else state | {"fingerprint": _content(mark, above)}


def _code(thing: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    """The name and version of a class or function, or its source."""
    module, name = getattr(thing, "__module__", None) or "builtins", thing.__qualname__
    kind = "class" if isinstance(thing, type) else "function"
    marks = {key: getattr(thing, key, None) for key in ("version", "fingerprint")}
    known = {key: mark for key, mark in marks.items() if isinstance(mark, int | str)}
    if module.partition(".")[0] == "onlinecal":
        return {kind: name, **(known or {"onlinecal": onlinecal.__version__})}
    found = {kind: f"{module}:{name}", **known}
    if of_python(module):
        return found
    if not (isinstance(thing, type) or inspect.isfunction(thing)):
        # Made in C, as the cache around a function is.
        wrapped = getattr(thing, "__wrapped__", None)
        if wrapped is not None:
            return found | {"wrapped": _content(wrapped, above)}
        return found if of_library(module) else found | {"source": sources(thing)}
    held = _inner(thing, above) if isinstance(thing, type) else _held(thing, above)
    return found | {"onlinecal": onlinecal.__version__, "source": sources(thing)} | held


def _held(function: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    """The values that a function holds beyond its source."""
    held: dict[str, Any] = {}
    if function.__defaults__ or function.__kwdefaults__:
        held["defaults"] = _content([function.__defaults__, function.__kwdefaults__], above)
    if function.__closure__:
        held["closure"] = _content([_inside(cell) for cell in function.__closure__], above)
    # A lambda, or a function within another, may not be the only one of its name.
    if "<" in function.__qualname__:
        code = function.__code__
        text = repr((code.co_code, code.co_names, [c for c in code.co_consts if not inspect.iscode(c)]))
        held["code"] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return held


def _inner(cls: type, above: tuple[Any, ...]) -> dict[str, Any]:
    """The functions and values of a class that was made inside of a function."""
    if "<locals>" not in cls.__qualname__:
        return {}
    own = [(k, v) for k, v in sorted(vars(cls).items()) if k[:2] != "__" or inspect.isfunction(v)]
    return {"parts": {name: _content(_bare(part), above) for name, part in own}}


def _inside(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet, or any more
        return None


def _bare(part: Any) -> Any:
    """The functions of a method that a decorator has changed."""
    if isinstance(part, property):
        return [part.fget, part.fset]
    if isinstance(part, functools.cached_property):
        return part.func
    if inspect.ismemberdescriptor(part):
        return None
    return part.__func__ if isinstance(part, classmethod | staticmethod) else part
