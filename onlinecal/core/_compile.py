"""How the inner steps are compiled: one decorator, so that all kernels follow one arithmetic.

The machine code is cached on disk. No `fastmath`: the order of floating-point operations is part of the
result, and a measure gives the same digits with compilation switched off (`NUMBA_DISABLE_JIT=1`).
"""

import contextlib
import hashlib
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cfunc, extending, njit
from numba.core.caching import FunctionCache

#: a function of a kernel by its machine code; untyped, since it is called with less than it is written with
intrinsic: Any = extending.intrinsic


def _kernel(function: Callable[..., Any]) -> Any:
    """Compiles a function of arrays and numbers when it is first called."""
    return _compiled(function)


def _part_of_kernel(function: Callable[..., Any]) -> Any:
    """The same for one that becomes a part of each kernel that calls it, as a call with arrays takes its time."""
    return _compiled(function, forceinline=True)


if TYPE_CHECKING:
    # A kernel has the types that numba finds where it is called, so it is written without: whoever checks types is
    # told to ask for none here, and takes it for `Any`. Every other function states its types.
    from typing import no_type_check as kernel
    from typing import no_type_check as part_of_kernel
else:
    kernel, part_of_kernel = _kernel, _part_of_kernel


def _compiled(function: Callable[..., Any], **more: Any) -> Any:
    if not _can_be_cached(function):
        return njit(error_model="numpy", nogil=True, **more)(function)
    compiled = njit(cache=True, error_model="numpy", nogil=True, **more)(function)
    if compiled is not function:  # compilation is not switched off
        _forget_stale(Path(str(compiled.stats.cache_path)))
    return compiled


def c_function(signature: Any, function: Callable[..., Any]) -> Any:
    """Compiles a function to a C function of this signature, at once."""
    kept = _can_be_cached(function)
    if kept:
        _forget_stale(Path(str(FunctionCache(function).cache_path)))
    return cfunc(signature, cache=kept, error_model="numpy")(function)


def native_address(compiled: Any) -> int:
    """Where the code of a C function is that takes numba's own arguments: result and error by address, then its own.

    It returns 0 unless it raised an error, which a C function can only print before it returns a zero.
    """
    return int(compiled._library.get_pointer_to_function(compiled.native_name.removeprefix("cfunc.")))


def _can_be_cached(function: Callable[..., Any]) -> bool:
    """Whether its machine code can be kept: not where no folder can be written, nor that of code without a file."""
    try:
        FunctionCache(function)
    except RuntimeError:
        if function.__module__.startswith("onlinecal.") and Path(function.__code__.co_filename).is_file():
            _say_that_nothing_is_kept()
        return False
    return True


@cache
def _say_that_nothing_is_kept() -> None:
    warnings.warn(
        "compiled code cannot be kept, since neither the package's folder nor the user's cache can be written; each "
        "start compiles anew. Set NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=2,
    )


@cache
def _forget_stale(folder: Path) -> None:
    """Deletes the machine code in one of numba's folders if the package has changed since it was made.

    Numba renews a kernel when its own file changes, but not when that of a kernel which it calls does, and would then
    play with yesterday's arithmetic.
    """
    stamp, sources = folder / "onlinecal.stamp", _sources()
    with contextlib.suppress(OSError):  # where nothing can be written, nothing is cached
        if not stamp.exists() or stamp.read_text() != sources:
            for index in folder.glob("*.nbi"):
                index.unlink(missing_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            stamp.write_text(sources)


@cache
def _sources() -> str:
    """A digest of which sources there are, and of when they were written."""
    package = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=16)
    for source in sorted(package.rglob("*.py")):
        stat = source.stat()
        digest.update(f"{source.relative_to(package)} {stat.st_mtime_ns} {stat.st_size}\n".encode())
    return digest.hexdigest()


@part_of_kernel
def index(i: Any) -> Any:
    """The same index, of which the compiled code is to know that it is not negative: one that is counts from the end,
    which takes three more instructions.
    """
    return np.uint64(i)
