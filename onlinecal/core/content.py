"""The content of what is played, as plain data: parameters, versions of built-in code, the source of other code.

Two things of the same content give the same numbers. The source of users' code is a digest of modules: of classes
and functions, of their names, and imported ones. Installed modules count where they belong to the same package.
Comments, layout and files that are read do not count.
"""

import ast
import copyreg
import dataclasses
import enum
import functools
import hashlib
import importlib.util
import inspect
import json
import math
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import onlinecal
from onlinecal.core.errors import InvalidParameter


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
        held["code"] = _digest(text.encode())
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


def sources(thing: Any) -> dict[str, str]:
    """Module → digest of its source, of a thing's module and its imports; an installed package has one digest."""
    first: str = thing.__name__ if inspect.ismodule(thing) else thing.__module__
    if (known := SENT.get((first, thing.__qualname__ if hasattr(thing, "__qualname__") else ""))) is not None:
        return dict(known)
    if _file(first) is None:
        try:
            return {first: _digest(inspect.getsource(thing).encode())}
        except (OSError, TypeError):
            raise InvalidParameter(
                f"the source of {first}:{thing.__name__} cannot be read, so what its results depend on cannot be told; "
                "expected it in a file"
            ) from None
    found: dict[str, str] = {}
    package: dict[str, str] = {}
    for name, (file, text) in _modules(first).items():
        (package if _LIBRARIES & set(file.parts) else found)[name] = text
    if package:
        found[first.partition(".")[0]] = _digest(repr(sorted(package.items())).encode())
    return dict(sorted(found.items()))


def own_modules(first: str) -> dict[str, Path]:
    """A module and those that it imports → their files, without those of installed libraries."""
    files = {name: file for name, (file, _) in _modules(first).items()}
    return {name: file for name, file in files.items() if not _LIBRARIES & set(file.parts)}


#: (module, name) → `sources`, where another process has read them: here their files may not lie, or differ
SENT: dict[tuple[str, str], dict[str, str]] = {}


def _modules(first: str) -> dict[str, tuple[Path, str]]:
    """The module of that name, its packages, and what these import, directly or not → file and digest."""
    found: dict[str, tuple[Path, str]] = {}
    waiting = [*_full_names("", Path(), 0, first)]
    while waiting:
        name = waiting.pop()
        file = None if name in found else _file(name)
        if file is None or (name != first and not _counts(name, file, first)):
            continue
        status = file.stat()
        digest, imports = _read(file, status.st_mtime_ns, status.st_size)
        found[name] = file, digest
        waiting += (each for level, module in imports for each in _full_names(name, file, level, module))
    return found


def named_in(thing: Any, module: ModuleType) -> None:
    """Notes that a user named a thing as one of this module; then the module's code counts for it."""
    _NAMED.setdefault(id(thing), (thing, {}))[1][module.__name__] = module


def namers(thing: Any) -> list[ModuleType]:
    """The modules under which a user named this thing."""
    return list(_NAMED[id(thing)][1].values()) if id(thing) in _NAMED else []


#: id → thing, which keeps the id its own, and its modules by name
_NAMED: dict[int, tuple[Any, dict[str, ModuleType]]] = {}


def _counts(name: str, file: Path, first: str) -> bool:
    """Whether a module that is imported belongs to the code of `first`."""
    top = name.partition(".")[0]
    if top == "onlinecal" or _standard(file):
        return False
    return top == first.partition(".")[0] or not _LIBRARIES & set(file.parts)


def of_python(module: str) -> bool:
    """Whether a module is a part of Python itself."""
    file = _file(module)
    return module in sys.builtin_module_names if file is None else _standard(file)


def of_library(module: str) -> bool:
    """Whether a module is a part of Python, or of anything that was installed."""
    file = _file(module)
    return of_python(module) or (file is not None and bool(_LIBRARIES & set(file.parts)))


#: folders of what was installed
_LIBRARIES = {"site-packages", "dist-packages"}


def _standard(file: Path) -> bool:
    return not _LIBRARIES & set(file.parts) and any(map(file.is_relative_to, _folders()))


@cache
def _folders() -> list[str]:
    """Where the standard library is; Python takes a tenth of a millisecond to tell."""
    return [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")]


def _file(module: str) -> Path | None:
    """Where a module lies; None for one that is not in a file, or not to be found."""
    loaded = sys.modules.get(module)
    if loaded is None:
        spec = _spec(module)
        file = None if spec is None or not spec.has_location else spec.origin
    else:
        file = getattr(loaded, "__file__", None)
    return Path(file) if file is not None and Path(file).is_file() else None


def _spec(module: str) -> Any:
    """Where Python would find a module, without importing the packages around it; None for what is no module."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
        for name in rest:
            if spec is None or spec.submodule_search_locations is None:
                return None
            spec = PathFinder.find_spec(f"{spec.name}.{name}", spec.submodule_search_locations)
    except (ImportError, ValueError):
        return None  # a module that has been made by hand
    return spec


@lru_cache(maxsize=1024)
def _read(file: Path, changed: int, size: int) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Digest of a file, and what it imports: (dots of a relative import, name)."""
    text = file.read_bytes()
    try:
        tree = ast.parse(text)
        plain = ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError):
        return _digest(text), ()  # a compiled module, or one that has been edited since it was imported
    return _digest(plain.encode("utf-8", "surrogatepass")), tuple(_imports(tree))


def _imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield node.level, module
            # A name that is imported from a package may be a module of it.
            yield from ((node.level, f"{module}.{alias.name}".strip(".")) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            # import_module(".part", __package__), however the function is reached
            function, name = node.func, node.args[0].value
            called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
            if called in ("import_module", "__import__") and isinstance(name, str):
                plain = name.lstrip(".")
                yield len(name) - len(plain), plain


def _full_names(importer: str, file: Path, level: int, module: str) -> Iterator[str]:
    """The full name of what `importer` imports, and the packages around it, which run first."""
    if level:
        package = importer if file.name == "__init__.py" else importer.rpartition(".")[0]
        above = package.split(".")[: len(package.split(".")) - level + 1]
        module = ".".join([*above, module]).strip(".")
    parts = module.split(".")
    yield from (".".join(parts[:i]) for i in range(1, len(parts) + 1) if parts[0])


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]
