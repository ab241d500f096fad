"""How kernels are compiled: by numba, all with one arithmetic, and kept on disk.

No `fastmath`: the order of floating-point operations is part of the result. A measure gives the same digits without
compilation (`NUMBA_DISABLE_JIT=1`). Numba is imported when the first kernel is called.
"""

import contextlib
import hashlib
import os
import sys
import warnings
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

#: how every kernel is compiled
HOW = {"error_model": "numpy", "nogil": True}
#: whether `NUMBA_DISABLE_JIT` says that nothing is compiled
_OFF = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"

if TYPE_CHECKING:
    # Numba finds the types of a kernel where it is called, so that it is written without. Checkers of types are
    # told to ask for none here, and take it for `Any`. Every other function states its types.
    from typing import no_type_check as kernel
    from typing import no_type_check as part_of_kernel
else:

    def kernel(function, **how):
        """Compiles a function of arrays and numbers when it is first called."""
        return function if _OFF else Kernel(function, how)

    def part_of_kernel(function):
        """The same for a part of each kernel that calls it, as a call with arrays takes its time."""
        return kernel(function, forceinline=True)


class Kernel:
    """A function that numba is given when Python or another kernel first calls it."""

    def __init__(self, function: Callable[..., Any], how: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._given = function, how

    def __call__(self, *arguments: Any) -> Any:
        return self.code(*arguments)

    @cached_property
    def code(self) -> Any:
        """The function as numba has it."""
        return kept(self._given[0], **self._given[1])

    def __reduce__(self) -> Any:
        return Kernel, self._given


def kept(function: Callable[..., Any], *signature: Any, **how: Any) -> Any:
    """The function as numba has it; its machine code is kept on disk, where there is a place for it.

    Of closures it is kept where all that they call is of the package, since only of this the `STATE` is known.
    """
    if _OFF:
        return function
    # One that was sent is not kept: numba would look for its module, and not find it.
    if function.__module__ in sys.modules and (function.__closure__ is None or name_of(function)):
        try:
            made = _njit()(*signature, cache=True, **HOW | how)(_named(function))
        except RuntimeError:  # there is no file, or no folder that can be written
            if function.__module__.startswith("onlinecal.") and Path(function.__code__.co_filename).is_file():
                _say_that_nothing_is_kept()
        else:
            _forget_others(str(made.stats.cache_path))
            return made
    return linked(function, *signature, **how)


def linked(function: Callable[..., Any], *signature: Any, **how: Any) -> Any:
    """The function as numba has it; its machine code is kept on disk as a part of what calls it alone.

    Numba links machine code by the name of a function and a number, which each process counts from 1. So two processes
    may give one name to two kernels of a factory. Where both are loaded, each call reaches the same one. A random name
    keeps them apart.
    """
    alone = _renamed(function, f".{uuid4().hex}", function.__closure__)
    return update_wrapper(_njit()(*signature, **HOW | how)(alone), function)


def _renamed(function: Any, more: str, cells: Any) -> Any:
    """The same function with these cells, under a longer name."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
    )
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__ + more
    return copy


@cache
def _njit() -> Any:
    """Numba's decorator; from now on numba takes a kernel within another for what it has made of it."""
    from numba import njit, typeof
    from numba.extending import typeof_impl

    for of in (Kernel, _Held):
        typeof_impl.register(of)(lambda one, _: typeof(one.code))
    return njit


@cache
def _say_that_nothing_is_kept() -> None:
    warnings.warn(
        "compiled code cannot be kept, since neither the package's folder nor the user's cache can be written; each "
        "start compiles anew. Set NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=2,
    )


# ---------------------------------------------------------------- code that is kept, of this state of the package

#: rooms of which no kernel of another file takes a function or a number; a test holds it
APART = {
    "checks", "commands", "exploit", "growth", "logs", "monitoring", "recalibration", "report", "study",
    "worlds",
}  # fmt: skip


def state_of(package: Path) -> str:
    """A digest of the names, sizes and times of the files from which kernels and steps may take something."""
    state = hashlib.blake2b(digest_size=6)
    for room in sorted(os.scandir(package), key=lambda entry: entry.name):
        if room.is_dir() and room.name not in APART:
            for file in sorted(Path(room.path).rglob("*.py")):
                found = file.stat()
                state.update(f"{file.relative_to(package)} {found.st_size} {found.st_mtime_ns}\n".encode())
    return state.hexdigest()


# Taken as early as can be: what is compiled is what has been imported, though a file may change later.
_MARK, STATE = ".onlinecal_", state_of(Path(__file__).parents[1])


def _named(function: Any) -> Any:
    """The same function under a name with the state of the package, as numba keeps machine code by names.

    Numba itself sees changes of the function's own file, and none of the functions that it calls. Each closure has a
    name of its own: of two under one name, two processes could write the code into the same file. So has each function
    of users, as a file that they changed may have another of the same name.
    """
    cells = function.__closure__ and tuple(
        CellType(_held(cell.cell_contents)) for cell in function.__closure__
    )
    ours = (function.__module__ or "").startswith("onlinecal.")
    own = name_of(function) if cells else "" if ours else repr(instructions(function.__code__))
    digest = own and hashlib.blake2b(own.encode(), digest_size=8).hexdigest()
    return _renamed(function, f"{digest}{_MARK}{STATE}", cells)


def instructions(code: CodeType) -> tuple[Any, ...]:
    """The instructions of a code and of each within it, wherever it is written."""
    constants = [instructions(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    return code.co_code, code.co_names, constants


class _Held:
    """A compiled function in a closure that is kept. Its pickle, by which numba finds the machine code, is its name."""

    def __init__(self, code: Any) -> None:
        self.code = code

    def __reduce__(self) -> Any:
        return str, (name_of(self.code),)


def _held(value: Any) -> Any:
    return _Held(value) if callable(value) else value


def name_of(function: Any) -> str:
    """The name of a function of the package, with all that it holds where it is a closure; "" where it has none.

    Functions of users have none, nor those that call Python, as they say by an attribute `calls_python`.
    """
    python = function._given[0] if isinstance(function, Kernel) else getattr(function, "py_func", function)
    ours = isinstance(python, FunctionType) and (python.__module__ or "").startswith("onlinecal.")
    if not ours or hasattr(python, "calls_python"):
        return ""
    parts = [python.__module__, python.__code__.co_qualname, str(python.__code__.co_firstlineno)]
    for cell in python.__closure__ or ():
        value = cell.cell_contents
        value = value.code if isinstance(value, _Held) else value
        part = name_of(value) if callable(value) else _spelt(value)
        if not part:
            return ""
        parts.append(part)
    return f"{parts[0]}.{parts[1]}:{parts[2]}({', '.join(parts[3:])})"


def _spelt(value: Any) -> str:
    """A number, or an array of them, as a text; "" for all else."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"{value.dtype}{value.tolist()}" if type(value).__module__ == "numpy" and value.ndim else ""


@cache
def _forget_others(folder: str) -> None:
    """Deletes machine code of other states of the package. A process that finds it gone compiles."""
    with contextlib.suppress(OSError):
        for file in Path(folder).glob(f"*{_MARK}*.nb?"):
            if STATE not in file.name:
                file.unlink(missing_ok=True)
