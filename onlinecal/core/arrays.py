"""Arrays that are written once and then only read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: bytes of arrays that are allocated together: few allocations, and still in the processor's cache
BYTES = 2**18


class _Window:
    """The interface of an array, without leave to write."""

    def __init__(self, array: NDArray[Any]) -> None:
        interface = array.__array_interface__
        self._array, self.__array_interface__ = array, interface | {"data": (interface["data"][0], True)}


def locked(array: NDArray[Any]) -> Any:
    """A view of the array that can only be read; setting ``flags.writeable`` is refused, for it and for its `base`."""
    return np.asarray(_Window(array))


def own(array: NDArray[Any]) -> Any:
    """A read-only copy with memory of its own, to be handed out."""
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def address(array: Any) -> int:
    """The address of an array's numbers."""
    return int(array.__array_interface__["data"][0])


def rows_for(size: int) -> int:
    """The number of rows of `size` bytes that are allocated together."""
    return min(1024, max(16, BYTES // max(size, 1)))


class Rows:
    """Arrays of one shape, a fresh one whenever it is asked for; they are allocated in blocks."""

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._length = rows_for(int(np.prod(shape)) * self.dtype.itemsize)
        self._at = self._length - 1

    def fresh(self) -> NDArray[Any]:
        """An array that its owner fills. Its `base` leads to others, so it stays with its owner."""
        self._at += 1
        if self._at == self._length:
            self._rows: NDArray[Any] = np.empty((self._length, *self.shape), self.dtype)
            self._at = 0
        return self._rows[self._at]

    def keep(self, values: Any) -> NDArray[Any]:
        """A fresh array with these values."""
        row = self.fresh()
        row[...] = values
        return row

    def __getstate__(self) -> dict[str, Any]:
        # Rows that were handed out belong to others; the next array begins a new block.
        return {"shape": self.shape, "dtype": self.dtype, "_length": self._length, "_at": self._length - 1}
