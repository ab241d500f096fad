"""The cells of a study as bytes for workers, with the code of plug-ins and the versions of packages.

A worker may be on another machine, where the modules of plug-ins do not lie, or are others. So classes and functions of
modules that are not installed are sent by value, in their state of the beginning.
"""

import dataclasses
import hashlib
import importlib
import inspect
import io
import pickle
import sys
import threading
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import cloudpickle
import numba.cloudpickle

import onlinecal
from onlinecal.core import content as sources
from onlinecal.core.errors import InvalidParameter, OnlinecalError, WorkerError, failure
from onlinecal.study.panel import Panel
from onlinecal.study.planning import Cell, Entry

#: packages on which the numbers depend
PACKAGES = ("onlinecal", "numpy", "numba", "scipy")
#: tells this process from others
_HOME = uuid.uuid4().hex


def versions() -> dict[str, str]:
    """Of Python, of the packages that make the numbers, and of the very source of this one."""
    found = {name: str(importlib.import_module(name).__version__) for name in PACKAGES}
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python, **found, "source of onlinecal": _own_source()}


def unfit(theirs: dict[str, str], ours: dict[str, str]) -> str:
    """The first difference, in words; "" for no difference."""
    for name, version in ours.items():
        if theirs.get(name) != version:
            if name == "source of onlinecal":
                return f"onlinecal {ours['onlinecal']} with another source than here"
            return f"{name} {theirs.get(name) or '(none)'}, here it is {version}"
    return ""


@cache
def _own_source() -> str:
    home = Path(onlinecal.__file__).parent
    state = hashlib.sha256()
    for file in sorted(home.rglob("*.py")):
        state.update(f"{file.relative_to(home).as_posix()} {file.stat().st_size}\n".encode())
        state.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return state.hexdigest()[:16]


def packed(cells: Sequence[Cell]) -> tuple[str, bytes]:
    """The digest of the cells as bytes, and these bytes, for `opened`; what cannot be sent is refused by name."""
    file = io.BytesIO()
    with ExitStack() as afterwards:
        pickler = _Pickler(file, afterwards)
        try:
            pickler.dump(list(cells))
        except OnlinecalError:
            raise
        except Exception as error:  # parameters may be any object
            raise InvalidParameter(
                f"{pickler.what!r} cannot be sent to other processes: {failure(error)}; expected what can be pickled, "
                "or jobs = 1"
            ) from error
    blob = pickle.dumps((_HOME, versions(), pickler.said, file.getvalue()), 5)
    return hashlib.sha256(blob).hexdigest()[:32], blob


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Pickles what is not installed by value, and notes the sources that results are kept under."""

    def __init__(self, file: Any, afterwards: ExitStack) -> None:
        super().__init__(file, protocol=5)
        self.what, self._afterwards = "panel", afterwards
        self.said: dict[tuple[str, str], dict[str, str]] = {}

    def reducer_override(self, thing: Any) -> Any:
        """As `cloudpickle` has it, but for cells and their parts."""
        if isinstance(thing, Cell | Entry | Panel):  # without what they have found meanwhile
            self.what = getattr(thing, "label", self.what)
            return type(thing), tuple(getattr(thing, field.name) for field in dataclasses.fields(thing))
        if isinstance(thing, type) or inspect.isroutine(thing):
            self._note(thing)
        elif isinstance(thing, ModuleType):
            self._own(thing.__name__)
        elif isinstance(thing, CodeType):
            # With the name of its file, which cloudpickle leaves out, and messages about errors have.
            made, parts = self.dispatch_table[CodeType](thing)
            return made, tuple(thing.co_filename if part == "<dynamic-code>" else part for part in parts)
        return super().reducer_override(thing)

    def _note(self, thing: Any) -> bool:
        """Whether a class or function is of a module that is not installed, and sent by value."""
        module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
        if not isinstance(module, str) or not isinstance(name, str) or not self._own(module):
            return False
        if (module, name) not in self.said:
            try:
                self.said[module, name] = sources.sources(thing)
            except InvalidParameter:  # typed in; only a results file asks for it
                self.said[module, name] = {}
        return True

    def _own(self, module: str) -> bool:
        if module.partition(".")[0] == "onlinecal" or sources.of_library(module):
            return False
        loaded = sys.modules.get(module)
        if loaded is None or module == "__main__":
            return True
        for each in (cloudpickle, numba.cloudpickle):
            if module not in each.list_registry_pickle_by_value():
                each.register_pickle_by_value(loaded)
                self._afterwards.callback(each.unregister_pickle_by_value, loaded)
        return True


_OPENED: dict[str, list[Cell]] = {}
_OPENING = threading.Lock()


def opened(name: str, blob: bytes) -> list[Cell]:
    """The cells that were packed, read once for each process; WorkerError where it is not fit for them."""
    with _OPENING:
        if name not in _OPENED:
            home, theirs, said, held = pickle.loads(blob)
            if difference := unfit(versions(), theirs):
                raise WorkerError(f"a worker has {difference}; install the same there and start it again")
            if home != _HOME:
                sources.SENT.update({key: value for key, value in said.items() if value})
            try:
                cells = pickle.loads(held)
            except Exception as error:
                raise WorkerError(
                    f"a worker cannot load what is to be played: {failure(error)}; install what it needs there"
                ) from error
            while len(_OPENED) >= 4:  # a worker of a cluster may serve many studies
                _OPENED.pop(next(iter(_OPENED)))
            _OPENED[name] = cells
        return _OPENED[name]
