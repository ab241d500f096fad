"""All that a worker needs to play the units of a study, as bytes: players and panels, the source of plug-ins, versions.

A worker may be on another machine, where the modules of plug-ins do not lie, or lie in another state. So their text is
sent, and read from there. What is in no module, as in a notebook, is sent as a whole.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import io
import pickle
import sys
import threading
import uuid
from collections.abc import Sequence
from functools import cache
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import cloudpickle

import onlinecal
from onlinecal.core import sources
from onlinecal.core.errors import InvalidParameter, OnlinecalError, WorkerError, failure
from onlinecal.rounds.steps import HEAR, LAW, LEARN, MOVE, REVEAL, Step
from onlinecal.study.executors.units import Unit
from onlinecal.study.plan import Cell

#: what must be the same in all processes, so that numbers are
PACKAGES = ("onlinecal", "numpy", "numba", "scipy")
#: tells this process from others
_HOME = uuid.uuid4().hex
_SIGNATURES = (LAW, LEARN, MOVE, HEAR, REVEAL)
#: what a cell is made of; each is sent once, however many cells have it
_PARTS = ("forecaster", "nature", "panel", "schedule", "people", "times", "history", "keep")


class Task(NamedTuple):
    """A unit as it is sent: its cell by numbers, the parts by their places in the kit."""

    unit: Unit
    parts: tuple[int, ...]
    horizon: int
    runs: int
    seed: int


class Text(NamedTuple):
    """The source of a module: where it lies, its text, and whether it is a package."""

    file: str
    text: str
    package: bool


class _Content(NamedTuple):
    home: str
    versions: dict[str, str]
    texts: dict[str, Text]
    sources: dict[tuple[str, str], dict[str, str]]
    parts: bytes


def versions() -> dict[str, str]:
    """Of Python, of the packages that make the numbers, and of the very source of this one."""
    found = {name: str(importlib.import_module(name).__version__) for name in PACKAGES}
    return {"python": python_version(sys.version), **found, "source of onlinecal": _own_source()}


def python_version(full: str) -> str:
    """Its major and minor version."""
    return ".".join(full.split(".")[:2])


def unfit(theirs: dict[str, str], ours: dict[str, str]) -> str:
    """The first difference, in words; "" if there is none."""
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


# ---------------------------------------------------------------- packing


class Packed:
    """The cells of a study as they are sent.

    Attributes
    ----------
    blob : bytes
        For `opened`; once for each worker.
    name : str
        Digest of it.

    Raises
    ------
    InvalidParameter
        Something cannot be sent; the message says what, and of whom.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells = cells
        places: dict[Any, int] = {}
        parts: list[Any] = []
        for cell in cells:
            for name in _PARTS:
                part = getattr(cell, name)
                if places.setdefault(_which(part), len(parts)) == len(parts):
                    parts.append(part)
        self._places = places
        texts: dict[str, Text] = {}
        said: dict[tuple[str, str], dict[str, str]] = {}
        pickled = [_pickled(part, texts, said) for part in parts]
        self.blob = pickle.dumps(_Content(_HOME, versions(), texts, said, pickle.dumps(pickled)), 5)
        self.name = hashlib.sha256(self.blob).hexdigest()[:32]

    def task(self, unit: Unit) -> Task:
        """A unit as it is sent."""
        cell = self._cells[unit.cell]
        parts = tuple(self._places[_which(getattr(cell, name))] for name in _PARTS)
        return Task(unit, parts, cell.horizon, cell.runs, cell.seed)


def _which(part: Any) -> Any:
    """By which a part is told from others: checkpoints by what they are, which many cells share."""
    return ("value", part) if isinstance(part, tuple | int | str) else id(part)


def _pickled(part: Any, texts: dict[str, Text], said: dict[tuple[str, str], dict[str, str]]) -> bytes:
    file = io.BytesIO()
    try:
        _Pickler(file, texts, said).dump(part)
    except OnlinecalError:
        raise
    except Exception as error:  # of what may be anybody's object
        what = getattr(part, "label", None) or type(part).__name__.lower()
        raise InvalidParameter(
            f"{what!r} cannot be sent to other processes: {failure(error)}; expected what can be pickled, or jobs = 1"
        ) from error
    return file.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Takes note of the modules of what is pickled by its name, and of what results are kept under."""

    def __init__(
        self, file: Any, texts: dict[str, Text], said: dict[tuple[str, str], dict[str, str]]
    ) -> None:
        super().__init__(file, protocol=5)
        self._texts, self._said = texts, said

    def reducer_override(self, thing: Any) -> Any:
        """As `cloudpickle` has it, but for steps that are in no module: by their function, not by their name."""
        if isinstance(thing, Step):
            self._note(thing.function)
            if thing.__module__ == "__main__":
                return _step, (_SIGNATURES.index(thing.signature), thing.function)
            return NotImplemented
        if isinstance(thing, type) or inspect.isroutine(thing):
            self._note(thing)
        elif isinstance(thing, ModuleType):  # which a function that is in no module refers to
            self._take(thing.__name__)
        return super().reducer_override(thing)

    def _note(self, thing: Any) -> None:
        module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
        if not isinstance(module, str) or not isinstance(name, str) or (module, name) in self._said:
            return
        if module.partition(".")[0] == "onlinecal" or sources.of_library(module):
            return
        try:
            self._said[module, name] = sources.sources(thing)
        except InvalidParameter:  # typed in; nobody asks for it where results are in no file
            self._said[module, name] = {}
        self._take(module)

    def _take(self, module: str) -> None:
        """The text of a module, and of those that it imports."""
        if module.partition(".")[0] == "onlinecal" or sources.of_library(module):
            return
        for own, file in sources.own_modules(module).items():
            if own not in self._texts and own != "__main__" and file.suffix == ".py":
                self._texts[own] = Text(
                    str(file), file.read_text(encoding="utf-8"), file.name == "__init__.py"
                )


def _step(signature: int, function: Any) -> Step:
    return Step(_SIGNATURES[signature], function)


# ---------------------------------------------------------------- opening


class Opened:
    """The same in a worker."""

    def __init__(self, content: _Content) -> None:
        if content.home != _HOME:  # where it was packed, everything is there
            sources.SENT.update({key: value for key, value in content.sources.items() if value})
            _Finder.install(content.texts)
        self._parts = [pickle.loads(part) for part in pickle.loads(content.parts)]

    def cell(self, task: Task) -> Cell:
        """The cell of a unit."""
        named = dict(zip(_PARTS, (self._parts[place] for place in task.parts), strict=True))
        return Cell(horizon=task.horizon, runs=task.runs, seed=task.seed, **named)


_OPENED: dict[str, Opened] = {}
_OPENING = threading.Lock()


def opened(name: str, blob: bytes) -> Opened:
    """What was packed; once for each process.

    Raises
    ------
    WorkerError
        This process is not fit for it: it has other versions, or something that is needed is not there.
    """
    with _OPENING:
        if name not in _OPENED:
            content: _Content = pickle.loads(blob)
            if difference := unfit(versions(), content.versions):
                raise WorkerError(f"a worker has {difference}; install the same there and start it anew")
            try:
                kept = Opened(content)
            except Exception as error:
                raise WorkerError(
                    f"a worker cannot load what is to be played: {failure(error)}; install what it needs there"
                ) from error
            if (
                len(_OPENED) >= 4
            ):  # of studies of before, which a worker of a cluster may have served for days
                _OPENED.pop(next(iter(_OPENED)))
            _OPENED[name] = kept
        return _OPENED[name]


class _Finder(MetaPathFinder, InspectLoader):
    """Finds modules in texts that were sent, before those that lie on this machine."""

    def __init__(self, texts: dict[str, Text]) -> None:
        self._texts = texts

    @classmethod
    def install(cls, texts: dict[str, Text]) -> None:
        """In place of those of before; what was loaded from another text is loaded anew."""
        old = [finder for finder in sys.meta_path if isinstance(finder, cls)]
        loaded = {name: text for finder in old for name, text in finder._texts.items()}
        if any(loaded.get(name) != text for name, text in texts.items()):
            for name in [*loaded, *texts]:
                sys.modules.pop(name, None)
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in old]
        if texts or old:
            sys.meta_path.insert(0, cls({**loaded, **texts}))

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Of what was sent, and of the packages around it."""
        around = any(name.startswith(f"{fullname}.") for name in self._texts)
        if fullname not in self._texts and not around:
            return None
        text = self._texts.get(fullname)
        if text is None and fullname in sys.modules:
            return None
        spec = ModuleSpec(fullname, self, is_package=text is None or text.package)
        if text is not None:
            spec.origin, spec.has_location = self._where(text), True
            if text.package:
                spec.submodule_search_locations = [str(Path(text.file).parent)]
        return spec

    def get_source(self, fullname: str) -> str:
        """The text that was sent."""
        return self._texts[fullname].text if fullname in self._texts else ""

    def get_code(self, fullname: str) -> CodeType:
        """Compiled; nothing of it is kept on the disk."""
        text = self._texts.get(fullname)
        return self.source_to_code(self.get_source(fullname), "<sent>" if text is None else self._where(text))

    def is_package(self, fullname: str) -> bool:
        """Whether it has modules within."""
        return fullname not in self._texts or self._texts[fullname].package

    @staticmethod
    def _where(text: Text) -> str:
        """The file, if that holds the same here; what numba keeps of it must not be taken for that of another."""
        try:
            same = Path(text.file).read_text(encoding="utf-8") == text.text
        except (OSError, ValueError):
            same = False
        return text.file if same else f"{text.file} as it was sent"
