"""Arrays that are written once and then only read; and the rule by which values fall into cells."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinecal.core._compile import part_of_kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


#: bytes that are copied sooner than a window is made
COPIED = 2**14


class _Window:
    """The interface of an array, without leave to write."""

    def __init__(self, array: NDArray[Any]) -> None:
        interface = array.__array_interface__
        self._array, self.__array_interface__ = array, interface | {"data": (interface["data"][0], True)}


def locked(array: NDArray[Any]) -> Any:
    """The array's numbers, only to be read, by its `base` too. Kernels then need no second form for other arrays."""
    if array.nbytes <= COPIED:
        return np.ndarray(array.shape, array.dtype, array.tobytes())
    return np.asarray(_Window(array))


def cells(v: Any, m: Any) -> Any:
    """The number j of the cell [j/m, (j + 1)/m) of v in [0, 1]; m for v = 1. Edges are rounded to floats."""
    nearest = np.rint(v * m)
    return np.int64(nearest) - (v < nearest / m)


#: the same of one value, in kernels
cell = part_of_kernel(cells)
