"""The source of users' code, as a digest: results that it made are kept under it.

Covered are the module of a class or function, the one under which it was named, and the modules that they import, as
far as they are not installed or belong to the same package. Comments, layout and files that are read do not count.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from onlinecal.core.errors import InvalidParameter


def sources(thing: Any) -> dict[str, str]:
    """Module → digest of its source, for the module of a class or function and those that it imports.

    The modules of an installed package have one digest together, under the name of the package.
    """
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
    """The module of that name and those that it imports, directly or through others → file and digest."""
    found: dict[str, tuple[Path, str]] = {}
    waiting = [first]
    while waiting:
        name = waiting.pop()
        file = None if name in found else _file(name)
        if file is None or (name != first and not _counts(name, file, first)):
            continue
        status = file.stat()
        digest, imports = _read(file, status.st_mtime_ns, status.st_size)
        found[name] = file, digest
        waiting += (each for level, module in imports for each in _named(name, file, level, module))
    return found


def named_in(thing: Any, module: ModuleType) -> None:
    """Note that a user named a thing as one of this module, so that the module's code counts for it."""
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
    folders = (sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib"))
    return not _LIBRARIES & set(file.parts) and any(map(file.is_relative_to, folders))


def _file(module: str) -> Path | None:
    """Where a module lies; None for one that is not in a file, or not to be found."""
    loaded = sys.modules.get(module)
    if loaded is None:
        spec = _spec(module)
        file = None if spec is None or not spec.has_location else spec.origin
    else:
        file = getattr(loaded, "__file__", None)
    return Path(file) if file is not None and Path(file).is_file() else None


def _spec(module: str) -> ModuleSpec | None:
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


def _named(importer: str, file: Path, level: int, module: str) -> Iterator[str]:
    """The full name of what `importer` imports, and the packages around it, which run first."""
    if level:
        package = importer if file.name == "__init__.py" else importer.rpartition(".")[0]
        above = package.split(".")[: len(package.split(".")) - level + 1]
        module = ".".join([*above, module]).strip(".")
    parts = module.split(".")
    yield from (".".join(parts[:i]) for i in range(1, len(parts) + 1) if parts[0])


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]
