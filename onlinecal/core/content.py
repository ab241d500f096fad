"""The content of what is played, as plain data: parameters, versions of built-in code, the source of other code.

Two things of the same content give the same numbers. The source of users' code is a digest of its module's file, and
of those of the same folder that this imports. An installed package has one of all its files. Files that are read do
not count.
"""

import copyreg
import dataclasses
import hashlib
import importlib.util
import inspect
import json
import math
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import lru_cache
from modulefinder import ModuleFinder
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import onlinecal
from onlinecal.core._compile import instructions
from onlinecal.core.errors import InvalidParameter


def content(thing: Any, above: tuple[Any, ...] = ()) -> Any:
    """The content of a strategy, a task, a response, a function, or a value of a parameter; fit for JSON.

    A class or function may name what else it depends on in an attribute `fingerprint`. The field metadata
    ``{"key": False}`` leaves a parameter out, and ``{"key": "unless default"}`` one that was added later. `above` is
    what this is a part of: a thing that holds itself is not followed again.

    >>> from onlinecal.natures import Bernoulli
    >>> content(Bernoulli(0.25))
    {'class': 'Bernoulli', 'version': 1, 'parameters': {'q': 0.25}}
    """
    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or type(thing) in (bool, int, str):
        return thing
    if type(thing) is float:
        if not math.isfinite(thing):
            return {"float": str(thing)}
        return int(thing) if thing.is_integer() else float(thing)  # q = 1 and q = 1.0 are one strategy
    if type(thing) is bytes:  # which pickling would give as itself; dates are kept in them, too
        return {"bytes": hashlib.sha256(thing).hexdigest()[:16]}
    if any(thing is each for each in above):
        return {"above": [thing is each for each in above].index(True)}
    above = (*above, thing)
    if type(thing) is np.ndarray and not thing.dtype.hasobject:
        held = hashlib.sha256(thing.tobytes()).hexdigest()[:16]
        return {"array": held, "dtype": str(thing.dtype), "shape": list(thing.shape)}
    if type(thing) in (list, tuple):
        return [content(item, above) for item in thing]
    if type(thing) in (set, frozenset):
        return {"set": sorted((content(item, above) for item in thing), key=digest)}
    if type(thing) in (dict, MappingProxyType):
        items = ([content(key, above), content(value, above)] for key, value in thing.items())
        return {"mapping": sorted(items, key=digest)}
    if inspect.ismodule(thing):
        name = thing.__name__
        own = not of_library(name) and name.partition(".")[0] != "onlinecal"
        return {"module": name, **({"source": sources(thing)} if own else {})}
    if isinstance(thing, type) or (inspect.isroutine(thing) and not inspect.ismethod(thing)):
        return _code(thing, above)
    return _code(type(thing), above) | _state(thing, above)


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


def _state(thing: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    """The parameters of a dataclass; of any other object, the state that pickling keeps."""
    # A subclass of a dataclass that is not one itself may keep its state elsewhere than in fields. So may one with
    # parameters that are no fields.
    cls: Any = type(thing)
    if "__dataclass_fields__" in vars(cls) and not _other_parameters(cls):
        fields = [f for f in keyed_fields(thing) if f.init]
        state = {"parameters": {f.name: content(getattr(thing, f.name), above) for f in fields}}
    else:
        try:
            reduce = copyreg.dispatch_table.get(type(thing))
            kept = thing.__reduce_ex__(4) if reduce is None else reduce(thing)
        except TypeError as error:
            raise InvalidParameter(
                f"what {thing!r} holds cannot be told ({error}), so results cannot be kept under it"
            ) from None
        parts = kept if isinstance(kept, str) else [p if i < 3 else list(p or ()) for i, p in enumerate(kept)]
        state = {"state": content(parts, above)}
    mark = getattr(thing, "fingerprint", None)
    return state if mark is None else state | {"fingerprint": content(mark, above)}


@lru_cache(maxsize=1024)
def _other_parameters(cls: Any) -> bool:
    """Whether a dataclass is made of parameters that are none of its fields."""
    parameters = [*inspect.signature(cls.__init__).parameters][1:]
    return not set(parameters) <= {field.name for field in dataclasses.fields(cls)}


def _code(thing: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    """The name and version of a class or function, or its source and what it holds beyond."""
    module, name = getattr(thing, "__module__", None) or "builtins", thing.__qualname__
    kind = "class" if isinstance(thing, type) else "function"
    marks = {key: getattr(thing, key, None) for key in ("version", "fingerprint")}
    known = {key: mark for key, mark in marks.items() if isinstance(mark, int | str)}
    if module.partition(".")[0] == "onlinecal":
        return {kind: name, **(known or {"onlinecal": onlinecal.__version__})}
    found = {kind: f"{module}:{name}", **known}
    if isinstance(thing, type) or inspect.isfunction(thing):
        if of_python(module):
            return found
        held = _inner(thing, above) if isinstance(thing, type) else _held(thing, above)
        return found | {"onlinecal": onlinecal.__version__, "source": sources(thing)} | held
    # Made in C, as the cache around a function is.
    wrapped = getattr(thing, "__wrapped__", None)
    if wrapped is not None:
        return found | {"wrapped": content(wrapped, above)}
    return found if of_library(module) else found | {"source": sources(thing)}


def _held(function: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    """The values that a function holds beyond its source."""
    inside = [_inside(cell) for cell in function.__closure__ or ()]
    held = {"defaults": function.__defaults__, "named": function.__kwdefaults__, "closure": inside}
    if not _found_by_name(function):
        held["code"] = repr(instructions(function.__code__))
    return {name: content(value, above) for name, value in held.items() if value}


def _found_by_name(thing: Any) -> bool:
    """Whether a class or function is the one that its module has of that name; a factory may make several."""
    found: Any = sys.modules.get(thing.__module__)
    for name in thing.__qualname__.split("."):
        found = inspect.getattr_static(found, name, None)
    inside = _bare(found)
    return found is thing or (isinstance(inside, list) and any(each is thing for each in inside))


def _inside(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet, or any more
        return None


def _inner(cls: type, above: tuple[Any, ...]) -> dict[str, Any]:
    """The values of a class and of its bases, which another module may have changed.

    A class that its module does not hold under its name counts with all its attributes.
    """
    made, parts = not _found_by_name(cls), {}
    for name, part in sorted(vars(cls).items()):
        strange = inspect.isfunction(part) and part.__qualname__ != f"{cls.__qualname__}.{name}"
        told = strange or type(part) in _PLAIN or (made and not inspect.ismemberdescriptor(part))
        if told and (name[:2] != "__" or inspect.isfunction(part)):
            parts[name] = content(_bare(part), above)
    own = [each for each in cls.__bases__ if not of_library(each.__module__)]
    bases = [content(each, above) for each in own if each.__module__.partition(".")[0] != "onlinecal"]
    return {name: value for name, value in (("parts", parts), ("bases", bases)) if value}


#: values that are no objects of their own
_PLAIN = (bool, int, float, str, tuple, list, dict, set, frozenset, np.ndarray)


def _bare(part: Any) -> Any:
    """The functions of a method that a decorator has changed."""
    inside = [getattr(part, name, None) for name in ("__func__", "fget", "fset", "func")]
    return [each for each in inside if each is not None] or part


def sources(thing: Any) -> dict[str, str]:
    """Module → digest of its files: of a thing's module and those of its folder that this imports.

    An installed package has one digest, of all its files.
    """
    first: str = thing.__name__ if inspect.ismodule(thing) else thing.__module__
    file, top = _file(first), first.partition(".")[0]
    if file is None:
        try:
            return {first: _digest(inspect.getsource(thing).encode())}
        except (OSError, TypeError):
            raise InvalidParameter(
                f"the source of {first}:{thing.__name__} cannot be read, so what its results depend on cannot be told; "
                "expected it in a file"
            ) from None
    if not _LIBRARIES & set(file.parts):
        return {name: _digest(each.read_bytes()) for name, each in sorted(own_modules(first).items())}
    package = (_file(top) or file).parent
    files = sorted(package.rglob("*.py")) if package.name == top else [file]
    return {
        top: digest([[str(each.relative_to(package)), _digest(each.read_bytes())] for each in files])[:16]
    }


def own_modules(first: str) -> dict[str, Path]:
    """A module that is not installed and those of its folder that it imports, directly or not → their files."""
    file = _file(first)
    if file is None or _LIBRARIES & set(file.parts):
        return {}
    files, stamps = _FOUND.get(file, ({}, []))
    if files and stamps == _stamps(files):
        return files
    deep = first.count(".") + (file.name == "__init__.py")
    finder = ModuleFinder(path=[str(file.parents[deep])], excludes=["onlinecal"])
    try:
        finder.import_hook(first)
    except (ImportError, SyntaxError):  # run as a script, or edited since it was imported
        return {first: file}
    found: dict[str, Any] = finder.modules
    files = {name: Path(each.__file__) for name, each in found.items() if each.__file__}
    _FOUND[file] = files, _stamps(files)
    return files


#: file of a module → `own_modules` and their `_stamps`: as long as no file is edited, they import the same
_FOUND: dict[Path, tuple[dict[str, Path], list[tuple[int, int]]]] = {}


def _stamps(files: dict[str, Path]) -> list[tuple[int, int]]:
    """Time and size of each file; zeros of one that is gone."""
    known = (file.stat() if file.is_file() else None for file in files.values())
    return [(0, 0) if each is None else (each.st_mtime_ns, each.st_size) for each in known]


def of_python(module: str) -> bool:
    """Whether a module is a part of Python itself."""
    file, top = _file(module), module.partition(".")[0]
    return top in sys.stdlib_module_names and (file is None or any(map(file.is_relative_to, _STANDARD)))


def of_library(module: str) -> bool:
    """Whether a module is a part of Python, or of anything that was installed."""
    file = _file(module)
    return of_python(module) or (file is not None and bool(_LIBRARIES & set(file.parts)))


#: folders of what was installed
_LIBRARIES = {"site-packages", "dist-packages"}


#: where the standard library is
_STANDARD = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")]


def _file(module: str) -> Path | None:
    """Where a module lies; None for one that is not in a file, or not to be found."""
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if loaded is None:
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            return None  # a module that has been made by hand
        file = spec.origin if spec is not None and spec.has_location else None
    return Path(file) if file is not None and Path(file).is_file() else None


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]
