"""Cells as bytes for workers: plug-ins by value, and the versions of all that the numbers depend on."""

import dataclasses
import hashlib
import importlib
import inspect
import io
import pickle
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import cloudpickle
import numba.cloudpickle

import onlinecal
from onlinecal.core.content import of_library
from onlinecal.core.errors import InvalidParameter, WorkerError, failure
from onlinecal.core.strategy import strategy_key
from onlinecal.study.panel import Panel
from onlinecal.study.planning import Cell, Entry


@cache
def versions() -> dict[str, str]:
    """Of Python, of the packages that make the numbers, and of the very source of this one."""
    names = ("onlinecal", "numpy", "numba", "scipy")
    home, state = Path(onlinecal.__file__).parent, hashlib.sha256()
    for file in sorted(home.rglob("*.py")):
        state.update(file.relative_to(home).as_posix().encode() + file.read_bytes().replace(b"\r\n", b"\n"))
    return {
        "Python": f"{sys.version_info.major}.{sys.version_info.minor}",
        **{name: str(importlib.import_module(name).__version__) for name in names},
        "the source of onlinecal": state.hexdigest()[:8],
    }


def packed(cells: Sequence[Cell]) -> bytes:
    """The cells, for `opened` in another process; what cannot be sent is refused by name."""
    file = io.BytesIO()
    with ExitStack() as afterwards:
        pickler = _Pickler(file, afterwards)
        try:
            pickler.dump(list(cells))
        except Exception as error:  # parameters may be any object
            raise InvalidParameter(
                f"{pickler.what!r} cannot be sent to other processes: {failure(error)}; expected what can be pickled, "
                "or jobs = 1"
            ) from error
    return pickle.dumps((versions(), file.getvalue()))


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Pickles by value what is not installed, as it is now. On a worker its files may not lie, or be others."""

    def __init__(self, file: Any, afterwards: ExitStack) -> None:
        super().__init__(file)
        self.what, self._afterwards = "panel", afterwards

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, Cell | Entry | Panel):  # without what they have found meanwhile
            if isinstance(thing, Entry):
                self.what = thing.label
                strategy_key(thing.strategy)  # plug-ins keep theirs
            return type(thing), tuple(getattr(thing, field.name) for field in dataclasses.fields(thing))
        if isinstance(thing, type) or inspect.isroutine(thing):
            self._by_value(getattr(thing, "__module__", None))
        elif isinstance(thing, ModuleType):
            self._by_value(thing.__name__)
        elif isinstance(thing, CodeType):
            # cloudpickle leaves out the name of the file, which messages about errors have.
            made, parts = self.dispatch_table[CodeType](thing)
            return made, tuple(thing.co_filename if part == "<dynamic-code>" else part for part in parts)
        return super().reducer_override(thing)

    def _by_value(self, name: Any) -> None:
        """Notes for both picklers, as numba has its own, that this module is sent, if it is not installed."""
        module = sys.modules.get(name) if isinstance(name, str) else None
        if module is None or name == "__main__" or name.partition(".")[0] == "onlinecal" or of_library(name):
            return
        for each in (cloudpickle, numba.cloudpickle):
            if name not in each.list_registry_pickle_by_value():
                each.register_pickle_by_value(module)
                self._afterwards.callback(each.unregister_pickle_by_value, module)


@lru_cache(4)  # a worker of a cluster may serve many studies
def opened(blob: bytes) -> list[Cell]:
    """The cells that were packed; WorkerError where this process is not fit for them."""
    wanted, held = pickle.loads(blob)
    for name, version in versions().items():
        if wanted.get(name) != version:
            raise WorkerError(
                f"a worker has {name} {version}, and not {wanted.get(name)}; install the same there and start it again"
            )
    try:
        cells: list[Cell] = pickle.loads(held)
    except Exception as error:
        raise WorkerError(
            f"a worker cannot load what is to be played: {failure(error)}; install what it needs there"
        ) from error
    return cells
