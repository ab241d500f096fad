"""How the inner steps are compiled: one decorator, so that all kernels follow one arithmetic.

The machine code is cached on disk. No `fastmath`: the order of floating-point operations is part of the result. A
measure gives the same digits without compilation (`NUMBA_DISABLE_JIT=1`). Numba is imported when the first kernel
is called.
"""

import os
import threading
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np


def _kernel(function: Callable[..., Any]) -> Any:
    """Compiles a function of arrays and numbers when it is first called: from its text, if it states its result."""
    return _compiled(function)


def _part_of_kernel(function: Callable[..., Any]) -> Any:
    """The same for a part of each kernel that calls it, as a call with arrays takes its time."""
    return _compiled(function, forceinline=True)


if TYPE_CHECKING:
    # Numba finds the types of a kernel where it is called, so that it is written without. Checkers of types are
    # told to ask for none here, and take it for `Any`. Every other function states its types.
    from typing import no_type_check as kernel
    from typing import no_type_check as part_of_kernel
else:
    kernel, part_of_kernel = _kernel, _part_of_kernel


def _compiled(function: Callable[..., Any], **inlined: Any) -> Any:
    off = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
    return function if off else Kernel(function, inlined)


class Kernel:
    """A compiled function: Python calls machine code; compiled code takes it in as a part of its own."""

    def __init__(self, function: Callable[..., Any], inlined: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._given = function, inlined

    def __call__(self, *arguments: Any) -> Any:
        return self.code(*arguments)

    @cached_property
    def code(self) -> Any:
        """The function that Python calls."""
        from onlinecal.core._machine_code import whole

        return whole(self._given[0])

    @cached_property
    def part(self) -> Any:
        """The function that kernels take in."""
        from onlinecal.core._machine_code import part

        return part(self._given[0], self._given[1])

    @property
    def _numba_type_(self) -> Any:
        """By this name numba asks what it is."""
        from onlinecal.core._machine_code import Called

        return Called(self.part)

    def __reduce__(self) -> Any:
        return Kernel, self._given


class _Spent(threading.local):
    """Seconds in which this thread has compiled."""

    seconds = 0.0


spent = _Spent()


@part_of_kernel
def index(i: Any) -> Any:
    """The same index, not negative to the compiled code. Indices that count from the end take three more
    instructions.
    """
    return np.uint64(i)
