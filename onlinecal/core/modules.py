"""Modules of users, imported by name or from a file; errors are named with their place."""

import contextlib
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from onlinecal.core.errors import InvalidParameter, UnknownName, failure, place, suggestion
from onlinecal.core.files import local

_EXPECTED = "expected module:name, such as 'mine:EMA' or 'mine.py:EMA'"


def split(kind: str, name: str) -> tuple[str, str]:
    """Module, or file that ends in ``.py``, and the name in it."""
    module, _, attribute = name.rpartition(":")
    named = all(part.isidentifier() for part in module.split("."))
    if not (named or (is_file(module) and "\0" not in module)) or (
        attribute and not attribute.isidentifier()
    ):
        raise UnknownName(f"{kind} {name!r}: {_EXPECTED}")
    return module, attribute


def is_file(module: str) -> bool:
    """Whether this names a file of Python in place of a module."""
    return Path(module).suffix == ".py"


def locate(kind: str, name: str, folder: Path | None = None) -> Any:
    """The thing ``module:attribute`` or ``file.py:attribute``, found in the working directory, last in `folder`."""
    module, attribute = split(kind, name)
    # A console script does not look for modules where it is called; people keep their plug-ins there.
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    if folder is not None:
        _look_in(folder)
    loaded = _imported(f"{kind} {name!r}", module, folder)
    try:
        return getattr(loaded, attribute)
    except AttributeError:
        raise UnknownName(f"{kind} {name!r}: {_without(loaded, attribute)}") from None


def _look_in(folder: Path) -> None:
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))


def _imported(whose: str, module: str, folder: Path | None) -> ModuleType:
    # Python may take a compiled module for a source that was edited within the same second to the same length. So
    # that the written code is played, nothing compiled is kept.
    compiled, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    importlib.invalidate_caches()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            if is_file(module):
                return _from_file(whose, Path(module), folder)
            return importlib.import_module(module)
    except (UnknownName, GeneratorExit):
        raise
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"while {whose} was being imported{place(error)}") from None
    except BaseException as error:  # it runs whatever a user wrote
        if isinstance(error, ModuleNotFoundError) and not place(error):
            raise UnknownName(f"{whose}: {error}; {_EXPECTED}, in the working directory") from None
        raise InvalidParameter(f"{whose}: module {module!r} cannot be imported: {failure(error)}") from None
    finally:
        sys.dont_write_bytecode = compiled


def _from_file(whose: str, path: Path, folder: Path | None) -> ModuleType:
    """The module in a file, under the name by which modules of its folder import it."""
    places = [local(path)] + ([] if folder is None else [folder / path])
    file = next((each.resolve() for each in places if each.is_file()), None)
    if file is None:
        raise UnknownName(f"{whose}: there is no file {str(path)!r}; expected one, or the name of a module")
    name = file.stem
    there, ours = sys.modules.get(name), name not in sys.stdlib_module_names
    other = (getattr(there, "__file__", None) or "another") if ours else "Python's own"
    if not ours or (there is not None and Path(other).resolve() != file):
        raise UnknownName(f"{whose}: a module {name!r} is there already, {other}; give the file another name")
    if "." in name:
        raise UnknownName(f"{whose}: a file with a dot in its name is no module; give it another name")
    if there is not None:
        return there
    _look_in(file.parent)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    loaded = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return loaded


def _without(module: ModuleType, attribute: str) -> str:
    """That it has no such name, and which it has of its own."""
    things = vars(module).items()
    own = [n for n, v in things if getattr(v, "__module__", None) == module.__name__ and n[0] != "_"]
    if not attribute:
        return f"expected a name in it{suggestion('', own)}"
    return f"module {module.__name__!r} has no {attribute!r}{suggestion(attribute, own) if own else ''}"
