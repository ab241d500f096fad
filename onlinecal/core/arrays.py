"""Arrays that are written once and then only read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: bytes of arrays that are allocated together: few allocations, and still in the processor's cache
BYTES = 2**18


class _Window:
    """What numpy needs to read an array, without leave to write."""

    __slots__ = ("_array",)

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        interface = dict(self._array.__array_interface__)
        interface["data"] = (interface["data"][0], True)
        return interface


def locked(array: NDArray[Any]) -> Any:
    """A view of the array that can only be read; setting ``flags.writeable`` is refused, for it and for its `base`.

    A read-only view that numpy makes by itself can be unlocked as long as the array behind it is writable.
    """
    return np.asarray(_Window(array))


def address(array: Any) -> int:
    """Where an array's numbers are."""
    return int(array.__array_interface__["data"][0])
